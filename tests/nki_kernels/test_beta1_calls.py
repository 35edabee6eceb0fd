"""Every call of nki.language and nki.isa of beta 1, on the simulated machine, against NumPy."""
import inspect
import json
import os
import re
import subprocess
import sys

import pytest

import nkipy  # noqa: F401  (it adds neuronxcc.nki where the vendor's package is not installed)
from support.nki_beta1_calls import CASES, HEAD
from support.paths import BUILD

@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """All cases in one Python, because most of the time is the start."""
    folder = tmp_path_factory.mktemp("calls")
    program = HEAD + f"\ncases = json.loads({json.dumps(json.dumps([c[:3] for c in CASES]))})\n" + """
found = []
for names, result, want in cases:
    try:
        found.append(run(names.split(), result, want))
    except Exception as e:
        found.append({"failed": "".join(traceback.format_exception(e))})
json.dump(found, open("found.json", "w"))
"""
    (folder / "calls.py").write_text(program)
    path = os.pathsep.join(map(str, (BUILD / "python", BUILD / "python/nkx/stubs")))
    done = subprocess.run([sys.executable, "calls.py"], cwd=folder, env={"PATH": os.environ["PATH"], "PYTHONPATH": path},
                          capture_output=True, text=True, timeout=400)
    assert done.returncode == 0, done.stderr
    return json.loads((folder / "found.json").read_text())


@pytest.mark.parametrize("number", range(len(CASES)), ids=[c[1] for c in CASES])
def test_a_call_of_beta_1_computes_what_numpy_computes(results, number):
    found, (_, _, _, dtype, error) = results[number], CASES[number]
    assert "failed" not in found, found["failed"]
    assert found["dtype"] == dtype and found["error"] <= error, found


# what makes no instruction, and what needs a loop, another machine or a tensor in HBM that is written: tested in other files
ELSEWHERE = {"nl.ds", "nl.num_programs", "nl.program_id", "nl.program_ndim", "nl.sequential_range", "nl.static_range", "nl.nc", "nl.spmd_dim",
             "nl.refuse", "nl.finfo", "nl.atomic_rmw", "nl.abs_max", "nl.abs_min", "nl.loop_reduce", "nisa.get_nc_version", "nisa.get_nc_sub_version", "nisa.refuse", "nisa.reduced"}


def test_each_function_of_beta_1_is_the_one_call_of_a_kernel_above():
    import neuronxcc.nki.isa as nisa
    import neuronxcc.nki.language as nl
    written = HEAD + " ".join(c[1] for c in CASES)
    functions = {f"{short}.{n}" for short, m in (("nl", nl), ("nisa", nisa)) for n, f in vars(m).items() if n[0] != "_" and inspect.isfunction(f)}
    assert {n for n in functions if not re.search(rf"\b{re.escape(n)}\b", written)} == ELSEWHERE
