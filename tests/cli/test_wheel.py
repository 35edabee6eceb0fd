"""The wheel, installed into a fresh environment, far from the tree."""
import json
import os
import pathlib
import re
import subprocess
import sys
import sysconfig

import pytest

from support.paths import BUILD, ROOT

PROGRAM = """
import numpy as np
import _nkx, _nkxc
from nkigen import trace, verify_against_numpy
from nkipy.runtime import baremetal_jit
import nki.language as nl, torch.distributed as dist  # nkipy has stand-ins

@baremetal_jit
def softmax(x):
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)

import neuronxcc.nki as beta, neuronxcc.nki.language as bl, nki

@beta.benchmark(warmup=2, iters=3)
@beta.jit
def doubled(a):
    out = bl.ndarray(a.shape, dtype=a.dtype, buffer=bl.shared_hbm)
    bl.store(out, bl.load(a) * 2.0)
    return out

@nki.jit
def halved(a):
    out = nl.ndarray(a.shape, a.dtype, buffer=nl.shared_hbm)
    nl.store(out, nl.multiply(nl.load(a), 0.5))
    return out

a = np.arange(12, dtype=np.float32).reshape(3, 4)
assert (doubled(a) == 2 * a).all() and doubled.benchmark_result.nc_latency.get_latency_percentile(99) > 1
assert (halved(a) == a / 2).all() and (nki.simulate(halved)(a) == a / 2).all()

for package, kernel, want in (beta, doubled.__wrapped__, 2 * a), (nki, halved.func, a / 2):
    run = [package.simulate(package.jit(kernel)), package.jit(mode="simulation")(kernel), package.jit(mode="benchmark")(kernel),
           lambda x: package.simulate_kernel(package.jit(kernel), x),
           package.baremetal(kernel), package.benchmark(kernel), package.profile(working_directory="profile", save_trace_name="t.json")(kernel)]
    for f in run:
        assert type(f(a)) is np.ndarray and (f(a) == want).all(), (package.__name__, f)
    assert run[-2].benchmark_result.nc_latency.get_latency_percentile(50) > 1 and run[-1].profile["total_us"] > 1

x = np.random.default_rng(0).standard_normal((64, 32)).astype(np.float32)
np.testing.assert_allclose(softmax(x), softmax.__wrapped__(x), rtol=1e-5)
verify_against_numpy(trace(softmax.__wrapped__, input_specs=[((128, 128), "bf16")]))
print(_nkx.__file__, _nkxc.__file__, dist.get_world_size(), nl.bfloat16.name)
"""


NOTEBOOK = """
import json, sys
import nbformat
from nbclient import NotebookClient
from nbconvert import HTMLExporter

cells = ["%load_ext nkx", "%%nkx\\nimport numpy as np\\nfrom nkigen import trace\\n\\n@trace(input_specs=[((128, 256), 'f32')])\\ndef f(x):\\n    return np.exp(x)\\n"]
book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(c) for c in cells])
NotebookClient(book, timeout=120).execute()
(shown,) = [o["data"] for o in book.cells[1].outputs if o["output_type"] == "execute_result"]
print(json.dumps({"text": shown["text/plain"], "html": HTMLExporter().from_notebook_node(book)[0]}))
"""


def run(*command, folder, **options):
    done = subprocess.run(command, capture_output=True, text=True, timeout=240, cwd=folder, **options)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """(a fresh environment's Python, its packages' folder): the wheel is there, and nothing of the tree but the packages from PyPI."""
    folder = tmp_path_factory.mktemp("wheel")
    run(sys.executable, ROOT / "compiler/package/wheel.py", BUILD / "python", folder / "wheel", folder=folder)
    (wheel,) = (folder / "wheel").iterdir()
    run(sys.executable, "-m", "venv", folder / "venv", folder=folder)
    (site,) = (folder / "venv/lib").glob("*/site-packages")
    (site / "numpy.pth").write_text(sysconfig.get_path("purelib") + "\n")  # what the wheel depends on
    run(folder / "venv/bin/python", "-m", "pip", "install", "-q", "--no-index", "--disable-pip-version-check", wheel, folder=folder)
    return folder / "venv/bin/python", site


def test_the_wheel_installs_and_runs_a_kernel(installed, tmp_path):
    python, site = installed
    (tmp_path / "program.py").write_text(PROGRAM)
    out = run(python, tmp_path / "program.py", folder=tmp_path, env={"PATH": os.environ["PATH"], "NKI_SIMULATOR": "1"})
    assert (tmp_path / "profile/t.json").exists()
    tracer, compiler, ranks, dtype = out.split()
    assert pathlib.Path(tracer).parent == pathlib.Path(compiler).parent == site and (ranks, dtype) == ("1", "bfloat16")
    assert "Runs a NEFF" in run(python.parent / "spike-run", "--help", folder=tmp_path)


def test_a_notebook_has_its_cells_from_the_wheel_alone(installed, tmp_path):
    """No program of the tree is in reach: neither in PATH nor in the environment."""
    python, site = installed
    (tmp_path / "notebook.py").write_text(NOTEBOOK)
    said = run(python, tmp_path / "notebook.py", folder=tmp_path, env={"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "JUPYTER_PATH": f"{sysconfig.get_path('data')}/share/jupyter"})
    shown = json.loads(said)
    assert re.search(r"^f: \d+ stages, [\d.]+ µs simulated; check: \d+ stages agree with NumPy", shown["text"], re.M)
    assert "engine-programs" in shown["html"] and "<svg" in shown["html"]
    assert str(ROOT) not in (site / "nkx/notebook.py").read_text()
