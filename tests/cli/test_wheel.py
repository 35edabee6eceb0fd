"""The wheel, installed into a fresh environment, far from the tree."""
import os
import pathlib
import subprocess
import sys
import sysconfig

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


def test_the_wheel_installs_and_runs_a_kernel(tmp_path):
    def run(*command, **options):
        return subprocess.run(command, check=True, capture_output=True, text=True, timeout=120, cwd=tmp_path, **options).stdout

    run(sys.executable, ROOT / "compiler/package/wheel.py", BUILD / "python", tmp_path / "wheel")
    (wheel,) = (tmp_path / "wheel").iterdir()
    run(sys.executable, "-m", "venv", tmp_path / "venv")
    python = tmp_path / "venv/bin/python"
    (site,) = (tmp_path / "venv/lib").glob("*/site-packages")
    (site / "numpy.pth").write_text(sysconfig.get_path("purelib") + "\n")  # what the wheel depends on
    run(python, "-m", "pip", "install", "-q", "--no-index", "--disable-pip-version-check", wheel)
    (tmp_path / "program.py").write_text(PROGRAM)
    out = run(python, tmp_path / "program.py", env={"PATH": os.environ["PATH"], "NKI_SIMULATOR": "1"})
    assert (tmp_path / "profile/t.json").exists()
    tracer, compiler, ranks, dtype = out.split()
    assert pathlib.Path(tracer).parent == pathlib.Path(compiler).parent == site and (ranks, dtype) == ("1", "bfloat16")
    assert "Runs a NEFF" in run(tmp_path / "venv/bin/spike-run", "--help")
