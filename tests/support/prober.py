"""C libraries that a kernel loads through ctypes, as an attacker would, and what they tell from inside the jail."""
import json
import subprocess

from support.paths import TESTS
from support.server import codes


def build_library(name, place):
    """place/NAME.so, made of jail/NAME.c."""
    subprocess.run(["gcc", "-std=c17", "-D_GNU_SOURCE", "-O2", "-g", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-o",
                    place / f"{name}.so", TESTS / f"jail/{name}.c"], check=True)
    return place / f"{name}.so"


def run_inside(server, code):
    """Runs Python code in a worker, with `prober` being the library; what it assigns to `said` (of JSON) comes back."""
    source = (f"import ctypes, json, os, struct\nprober = ctypes.CDLL({str(server.prober)!r})\nsaid = None\n{code}\n"
              "b = json.dumps({'frame': 'diagnostic', 'diagnostic': {'code': 'said', 'message': json.dumps(said)}}).encode()\n"
              "os.write(3, struct.pack('<I', len(b)) + b)\n")
    result = server.compile(source, inputs=[])
    for d in result["diagnostics"]:
        if d["code"] == "said":
            return json.loads(d["message"])
    raise AssertionError(f"the code in the worker did not come to its end: {result['diagnostics']}")


def tell(server, call):
    """What one call of the prober reported: [(name, result, errno)], and whether it was ended before its end."""
    result = server.compile(f"import ctypes\nctypes.CDLL({str(server.prober)!r}).{call}\n", inputs=[])
    told = []
    for d in result["diagnostics"]:
        if d["code"] == "probe":
            name, value, error = d["message"].rsplit(" ", 2)
            told.append((name, int(value), int(error)))
    return told, "worker-died" in codes(result)


def tell_all(server, entry):
    """All tries of an entry; one that ended the worker is (its place, "killed", 0)."""
    told = []
    while True:
        more, was_killed = tell(server, f"{entry}({len(told)})")
        told += more
        if not was_killed:
            return told
        told.append((f"try {len(told)}", "killed", 0))
