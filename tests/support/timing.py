"""Simulated times without values: compiles a source to its end and times what came out on the simulated machine."""
import json
import pathlib
import subprocess
import tempfile

from support.paths import BUILD, WORKER

TARGET = "trn2"
MEASURE = BUILD / "bench/measure"


def compiled(path, *arguments, target=TARGET):
    """The kernels of a file with all of their stages; raises if one is refused."""
    done = subprocess.run([WORKER, "compile", path, "--quiet", "--target", target, "--json", "-", *arguments], capture_output=True)
    result = json.loads(done.stdout) if done.stdout else {"status": done.stderr.decode()[-500:], "diagnostics": []}
    if result["status"] != "ok":
        errors = [d["message"] for d in result["diagnostics"] if d["severity"] == "error"] or [result["status"]]
        raise RuntimeError(f"{path}: {errors[0]}")
    return result["kernels"]


def rows(texts, target=TARGET):
    """What `measure --row` says of each text of engine programs."""
    with tempfile.TemporaryDirectory() as tmp:
        paths = []
        for number, text in enumerate(texts):
            paths.append(pathlib.Path(tmp) / f"{number}.mlir")
            paths[-1].write_text(text)
        done = subprocess.run([MEASURE, target, "--row", *paths], capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(done.stderr)
    return [json.loads(line) for line in done.stdout.splitlines()]


def last_text(kernel):
    assert kernel["stages"][-1]["dialect"] == "nisa", kernel["stages"][-1]["name"]
    return kernel["stages"][-1]["text"]


def share_on_one_partition(row):
    """Of the instructions and transfers that work on more than one element, those that keep to one partition."""
    return row["narrow"] / max(1, row["instructions"] + row["transfers"])
