"""The jail is tested from inside: servers are those of the API's tests, the prober is a C library that a kernel loads
through ctypes, as an attacker would."""
import importlib.util
import json
import pathlib
import shutil
import subprocess
import sys

import pytest

HERE = pathlib.Path(__file__).resolve().parent
spec = importlib.util.spec_from_file_location("api_conftest", HERE.parent / "api/conftest.py")
api = importlib.util.module_from_spec(spec)
sys.modules["api_conftest"] = api
spec.loader.exec_module(api)
sys.path.insert(0, str(HERE))


def build_library(name, place):
    """place/NAME.so, made of NAME.c here."""
    subprocess.run(["gcc", "-std=c17", "-D_GNU_SOURCE", "-O2", "-g", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-o",
                    place / f"{name}.so", HERE / f"{name}.c"], check=True)
    return place / f"{name}.so"


@pytest.fixture(scope="session")
def prober_dir(tmp_path_factory):
    """The kernels' packages with the prober beside them: what a job sees, it may load."""
    place = tmp_path_factory.mktemp("python")
    shutil.copytree(api.BUILD / "python", place, dirs_exist_ok=True)
    build_library("prober", place)
    return place


@pytest.fixture(scope="session")
def probed(prober_dir):
    """A server whose jobs can load the prober."""
    s = api.Server("--python-dir", str(prober_dir), "--workers", "4", "--job-timeout-ms", "10000")
    s.prober = prober_dir / "prober.so"
    s.settle()
    yield s
    if s.process.poll() is None:
        api.stop_and_audit(s)


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
    """What one call of the prober told: [(name, result, errno)], and whether it was ended before its end."""
    result = server.compile(f"import ctypes\nctypes.CDLL({str(server.prober)!r}).{call}\n", inputs=[])
    told = []
    for d in result["diagnostics"]:
        if d["code"] == "probe":
            name, value, error = d["message"].rsplit(" ", 2)
            told.append((name, int(value), int(error)))
    return told, "worker-died" in api.codes(result)


def tell_all(server, entry):
    """All tries of an entry; one that ended the worker is (its place, "killed", 0)."""
    told = []
    while True:
        more, was_killed = tell(server, f"{entry}({len(told)})")
        told += more
        if not was_killed:
            return told
        told.append((f"try {len(told)}", "killed", 0))
