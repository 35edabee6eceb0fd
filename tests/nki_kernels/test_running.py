"""NKI kernels called in an ordinary Python: arrays, times and profiles of the simulated machine, under both package names."""
import os
import subprocess
import sys

import pytest

from support.paths import BUILD

HEAD = """
import numpy as np
import neuronxcc.nki as beta
import neuronxcc.nki.language as bl
import nki
import nki.language as nl

def older(a, b):
    c = bl.ndarray(a.shape, dtype=a.dtype, buffer=bl.shared_hbm)
    ip, jf = bl.arange(a.shape[0])[:, None], bl.arange(a.shape[1])[None, :]
    bl.store(c[ip, jf], bl.load(a[ip, jf]) + bl.load(b[ip, jf]))
    return c

def newer(a, b):
    c = nl.ndarray(a.shape, a.dtype, buffer=nl.shared_hbm)
    nl.store(c, nl.add(nl.load(a), nl.load(b)))
    return c

x = np.arange(64 * 32, dtype=np.float32).reshape(64, 32)
y = np.full((64, 32), 3, np.float32)
"""
PATH = os.pathsep.join(map(str, (BUILD / "python", BUILD / "python/nkx/stubs")))


def run(program, cwd, **variables):
    return subprocess.run([sys.executable, "-c", HEAD + program], capture_output=True, text=True, timeout=120, cwd=cwd,
                          env={"PATH": os.environ["PATH"], "PYTHONPATH": PATH} | variables)


WAYS = {
    "jit": "r = beta.jit(older)(x, y)",
    "jit of 0.3": "r = nki.jit(newer)(x, y)",
    "jit with a mode": "r = beta.jit(mode='simulation')(older)(x, y)",
    "simulate_kernel": "r = beta.simulate_kernel(beta.jit(older), x, y)",
    "simulate_kernel of a plain function": "r = beta.simulate_kernel(older, x, y)",
    "simulate_kernel of 0.3": "r = nki.simulate_kernel(nki.jit(newer), x, y)",
    "simulate": "r = nki.simulate(nki.jit(newer))(x, y)",
    "simulate of beta 1": "r = nki.simulate(beta.jit(older))(x, b=y)",
    "baremetal": "r = beta.baremetal(older)(x, y)",
    "baremetal with options": "r = beta.baremetal(save_neff_name='k.neff', artifacts_dir='.')(older)(x, y)",
    "baremetal of 0.3": "r = nki.baremetal(newer)(x, y)",
    "benchmark": "r = beta.benchmark(warmup=10, iters=100, save_neff_name='k.neff')(older)(x, y)",
    "profile": "r = beta.profile(working_directory='w', save_trace_name='t.json', profile_nth=2)(older)(x, y)",
}


@pytest.mark.parametrize("way", WAYS)
def test_every_way_to_run_a_kernel_returns_its_arrays(way, tmp_path):
    done = run(WAYS[way] + "\nassert type(r) is np.ndarray and (r == x + y).all()", tmp_path)
    assert done.returncode == 0, done.stderr


def test_nki_simulator_and_the_target_of_the_environment_are_accepted(tmp_path):
    for target in ("trn1", "inf2", "gen3", "trn3"):
        done = run("assert (nki.jit(newer)(x, y) == x + y).all()", tmp_path, NKI_SIMULATOR="1", NEURON_PLATFORM_TARGET_OVERRIDE=target)
        assert done.returncode == 0, done.stderr


def test_a_benchmark_gives_the_time_of_the_simulated_machine(tmp_path):
    done = run("""
for b in (beta.benchmark(older), nki.benchmark(warmup=1, iters=1)(nki.jit(newer))):
    b(x, y)
    first = b.benchmark_result.nc_latency.get_latency_percentile(50)
    b(np.tile(x, (1, 64)), np.tile(y, (1, 64)))
    assert 1 < first < b.benchmark_result.nc_latency.get_latency_percentile(99) < 1000
""", tmp_path)
    assert done.returncode == 0, done.stderr


def test_a_profile_says_where_the_time_goes_and_writes_its_timeline(tmp_path):
    done = run("""
p = beta.profile(working_directory="w", save_trace_name="trace.json")(older)
p(x, y)
assert p.profile["total_us"] > 1 and "vector" in str(p.profile).lower()
import json
assert json.load(open("w/trace.json"))["traceEvents"]
""", tmp_path)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("way", ["baremetal", "benchmark", "profile"])
def test_a_neff_that_nobody_here_can_make_is_not_promised(way, tmp_path):
    done = run(f"beta.{way}(save_neff_name='k.neff')(older)(x, y)", tmp_path)
    assert done.returncode == 0 and "no NEFF is written" in done.stderr and not list(tmp_path.rglob("*.neff"))


def test_an_argument_that_the_kernel_writes_is_written(tmp_path):
    done = run("""
from neuronxcc.nki.typing import mutable_tensor

def first_version(a, out):
    bl.store(out, bl.load(a) * 2.0)

def in_place(a: mutable_tensor, n):
    i, j = bl.arange(64)[:, None], bl.arange(8)[None, :]
    bl.store(a[i, j], bl.load(a[i, j]) + n)
    return a

out = np.zeros_like(x)
r = beta.simulate_kernel(first_version, x, out)
assert (out == 2 * x).all() and (r == out).all()
z = x.copy()
beta.baremetal(in_place)(z, 5.0)
assert (z[:, :8] == x[:, :8] + 5).all() and (z[:, 8:] == x[:, 8:]).all()
""", tmp_path)
    assert done.returncode == 0, done.stderr


def test_a_mistake_is_an_exception_with_its_hint(tmp_path):
    done = run("beta.jit(older)(x, y[:, :5])", tmp_path)
    assert done.returncode == 1 and "in older" in done.stderr
    assert "the indices 0 to 31 are not inside of dimension 1 of b, which has 5 elements" in done.stderr and "hint: a mask" in done.stderr


def test_a_grid_of_beta_1_runs_all_its_instances(tmp_path):
    done = run("""
def tiled(a, b):
    c = bl.ndarray(a.shape, dtype=a.dtype, buffer=bl.shared_hbm)
    ip, jf = bl.program_id(0) * 32 + bl.arange(32)[:, None], bl.program_id(1) * 16 + bl.arange(16)[None, :]
    bl.store(c[ip, jf], bl.load(a[ip, jf]) + bl.load(b[ip, jf]))
    return c

k = beta.jit(tiled)
assert (k[2, 2](x, y) == x + y).all() and (beta.simulate_kernel(k[2, 2], x, y) == x + y).all()
assert (beta.benchmark(k)[2, 2](x, y) == x + y).all()
""", tmp_path)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("change", ["SCALE = 5.0", "helper = lambda: 5.0", "config.scale = 5.0", "nested.__defaults__ = (5.0,)"])
def test_a_kernel_is_compiled_again_when_what_it_reads_has_changed(change, tmp_path):
    program = """
class Config: scale = 2.0
config, SCALE = Config(), 2.0
def nested(scale=2.0): return min(scale, 5.0) + 0
def helper(): return SCALE
@nki.jit
def k(a):
    c = nl.ndarray(a.shape, a.dtype, buffer=nl.shared_hbm)
    nl.store(c, nl.multiply(nl.load(a), helper() + nested() + config.scale))
    return c
assert (k(x) == 6 * x).all() and (k(x) == 6 * x).all()
$
assert (k(x) == 9 * x).all()
"""
    done = run(program.replace("$", change), tmp_path)
    assert done.returncode == 0, done.stderr


def test_a_kernel_is_compiled_once_for_equal_calls(tmp_path):
    program = """
from nkx import nki_run
SCALE = 2.0
@nki.jit
def k(a, factors=(1, 2)):
    c = nl.ndarray(a.shape, a.dtype, buffer=nl.shared_hbm)
    nl.store(c, nl.multiply(nl.load(a), SCALE * sum(factors)))
    return c
for _ in range(3): k(x)
k(y, (1, 2))
assert len(nki_run._programs) == 1
k(x, (1, 3)), k(x[:32])
assert len(nki_run._programs) == 3
"""
    done = run(program, tmp_path)
    assert done.returncode == 0, done.stderr
