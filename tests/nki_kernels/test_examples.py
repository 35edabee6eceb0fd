"""The NKI examples of the product: each is right as a Python program, on the simulated machine, and at every stage."""
import json
import subprocess
import sys

import pytest

from support import compiler, warm
from support.nki_kernels import TARGETS
from support.paths import BUILD, ROOT

EXAMPLES = sorted((ROOT / "explorer/examples/nki").glob("*.py"))
each = pytest.mark.parametrize("path", EXAMPLES, ids=[p.stem for p in EXAMPLES])
RUN = "import nkipy, runpy, sys; runpy.run_path(sys.argv[1], run_name='__main__')"


def test_there_are_twelve_in_order():
    assert [p.name[:3] for p in EXAMPLES] == [f"{i:02}_" for i in range(1, 13)]


@each
def test_an_example_is_right_as_a_python_program(path):
    """Its own assertions compare it with NumPy."""
    done = subprocess.run([sys.executable, "-c", RUN, path], env={"PYTHONPATH": str(BUILD / "python")}, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr[-2000:]
    assert path.read_text().count("    assert ") >= 1


@each
@pytest.mark.parametrize("target", TARGETS)
def test_every_stage_of_an_example_computes_what_its_calls_compute(path, target):
    result = compiler.compile(path.read_text(), "--target", target, check=True)
    assert result["status"] == "ok" and not result["diagnostics"], result["diagnostics"]
    for kernel in result["kernels"]:
        assert kernel["pipeline"] == "nki"
        checks = [s["check"]["status"] for s in kernel["stages"] if s["dialect"] == "nisa"]
        assert checks and set(checks) == {"pass"}, kernel["name"]


def times(path):
    """The simulated time of each kernel, by name."""
    done = warm.run("run", path, "--json", "-")
    assert done.returncode == 0, done.stderr
    kernels = json.loads(done.stdout)["kernels"]
    assert all(o["pass"] for k in kernels for o in k["simulation"]["outputs"])
    return {k["name"]: k["profile"]["total_us"] for k in kernels}


@each
def test_an_example_runs_on_the_simulated_machine(path):
    took = times(path)
    # what a lesson says is faster is faster
    if "tiled" in took:
        assert took["hoisted"] < 0.95 * took["tiled"]  # its loads are fewer; those of the other overlap its products
    if "one_buffer" in took:
        assert took["two_buffers"] < 0.7 * took["one_buffer"]
