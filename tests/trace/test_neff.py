"""NEFFs in an ordinary Python: nkipy.runtime and spike, on the simulated machine and through libnrt's interface (tests/neuron)."""
import json
import os
import warnings

import ml_dtypes
import numpy as np
import pytest

import spike
from nkipy.runtime import DeviceKernel
from nkx import neuron, package
from spike import SpikeModel, SpikeTensor
from spike.run import main as spike_run
from support import warm
from support.paths import BUILD

KERNEL = """
import numpy as np, ml_dtypes
from nkipy.core.compile import trace

@trace
def update(cache, row, scale):
    cache[1:2] = row
    return cache * scale, row > 0

f32 = np.float32
update.specialize(np.ones((4, 8), f32), np.ones((1, 8), f32), np.ones((8,), ml_dtypes.bfloat16))
"""
RNG = np.random.default_rng(7)


@pytest.fixture(scope="module")
def neff(tmp_path_factory):
    folder = tmp_path_factory.mktemp("neff")
    (folder / "k.py").write_text(KERNEL)
    path = folder / "update.sim.neff"
    assert warm.text("neff", "pack", folder / "k.py", "-o", path).returncode == 0
    return path


@pytest.fixture(params=["simulator", "libnrt"])
def where(request, monkeypatch):
    """Where NEFFs run."""
    if request.param == "libnrt":
        monkeypatch.setenv("NKX_LIBNRT", str(BUILD / "test/neuron/libnrt.so.1"))
        monkeypatch.setenv("NKX_DEVICE", "neuron")
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "(.* is a stand-in for tests|there is no Neuron device)")
        yield request.param
    neuron.reset()


def inputs():
    return {"cache": RNG.uniform(-2, 2, (4, 8)).astype(np.float32), "row": RNG.uniform(-2, 2, (1, 8)).astype(np.float32),
            "scale": RNG.uniform(-2, 2, 8).astype(ml_dtypes.bfloat16)}


def want(x):
    cache = x["cache"].copy()
    cache[1:2] = x["row"]
    return cache * x["scale"].astype(np.float32), x["row"] > 0, cache


def test_a_neff_runs_as_the_kernel_and_writes_what_the_kernel_writes(neff, where):
    k = DeviceKernel.load_from_neff(neff)
    assert k.name == "update"
    assert list(k.input_tensors_info) == ["cache.must_alias_input", "row", "scale"]
    assert list(k.output_tensors_info) == ["output0", "output1", "cache"]
    x = inputs()
    expected, given = want(x), {n: a.copy() for n, a in x.items()}
    results = k(inputs=given)
    for got, w in zip(results, expected, strict=True):
        np.testing.assert_allclose(got.numpy().astype(np.float32), w.astype(np.float32), rtol=1e-5)
    np.testing.assert_array_equal(given["cache"], expected[2])
    times = k.benchmark(x, warmup_iter=1, benchmark_iter=3)
    assert times.iterations == 3 and times.warmup_iterations == 1 and 0 < times.min_ms <= times.mean_ms <= times.max_ms
    with pytest.raises(ValueError, match=r"row has shape \(3,\)"):
        k(inputs={**x, "row": np.ones(3, np.float32)})


def test_models_and_tensors_of_spike_are_on_cores(neff, where):
    first, second = SpikeModel.load_from_neff(neff, core_id=0), SpikeModel.load_from_neff(neff, name="two", core_id=1)
    assert (first.name, second.name) == ("update", "two")
    x = inputs()
    for core, model in enumerate((first, second)):
        tensors = {n: SpikeTensor.from_numpy(a, name=n, core_id=core) for n, a in x.items()}
        out = SpikeTensor.allocate_uninitialized((4, 8), np.float32, core_id=core)
        assert model(tensors, {"output0": out}) is None
        np.testing.assert_allclose(out.numpy(), want(x)[0], rtol=1e-5)
        results = model({n: SpikeTensor.from_numpy(a, core_id=core) for n, a in x.items()})
        assert [r.core_id for r in results] == [core] * 3
    with pytest.raises(ValueError, match="row is on core 0, the model two on core 1"):
        second({n: SpikeTensor.from_numpy(a, core_id=0) if n == "row" else a for n, a in x.items()})


def test_a_program_of_a_group_needs_all_its_devices(neff, where):
    alone = SpikeModel.load_from_neff(neff, cc_enabled=True, rank_id=0, world_size=1)
    x = inputs()
    np.testing.assert_allclose(alone(x)[0].numpy(), want(x)[0], rtol=1e-5)
    with pytest.raises((ValueError, RuntimeError), match="one device; the group has 2|nrt_load_collectives: NRT_INVALID"):
        SpikeModel.load_from_neff(neff, cc_enabled=True, rank_id=1, world_size=2)


def test_a_trace_is_saved_as_what_it_is(neff, where, tmp_path):
    path = tmp_path / "t.ntff"
    SpikeModel.load_from_neff(neff)(inputs(), save_trace=True, ntff_name=str(path))
    if where == "libnrt":
        assert "there is no profile without a device" in path.read_text()
    else:
        assert json.loads((tmp_path / "t.json").read_text())["traceEvents"] and not path.exists()


def test_spike_run_shows_outputs_and_times(neff, where, tmp_path, capsys):
    x = inputs()
    np.savez(tmp_path / "in.npz", **x)
    status = spike_run([str(neff), "--inputs", str(tmp_path / "in.npz"), "--outputs", str(tmp_path / "out.npz"), "--iterations", "2"])
    text = capsys.readouterr().out
    assert status == 0 and "output0  float32[4, 8]  min" in text and "2 executions: mean" in text
    assert ("stand-in for tests" in text) == (where == "libnrt") and ("no device" in text)
    np.testing.assert_allclose(np.load(tmp_path / "out.npz")["output0"], want(x)[0], rtol=1e-5)
    assert spike_run([str(tmp_path / "none.neff")]) == 1 and "none.neff" in capsys.readouterr().err


def test_the_runtime_says_what_it_is_and_fails_with_codes(neff, monkeypatch):
    monkeypatch.setenv("NKX_DEVICE", "neuron")
    monkeypatch.setenv("NKX_LIBNRT", "/none/libnrt.so.1")
    with pytest.raises(package.compiler().CompileError, match=r"/none/libnrt.so.1: cannot open .*\[neuron-library\]"):
        DeviceKernel.load_from_neff(neff)
    monkeypatch.setenv("NKX_LIBNRT", str(BUILD / "test/neuron/libnrt.so.1"))
    spike.configure(visible_cores=[2, 3, 4])
    with pytest.warns(package.DeviceWarning, match="is a stand-in for tests: no Neuron device runs anything"):
        assert spike.runtime()["cores"] == 3 and spike.runtime()["stand_in"]
    k = SpikeModel.load_from_neff(neff, core_id=2)
    with pytest.raises(RuntimeError, match=r"nrt_load: NRT_LOAD_NOT_ENOUGH_NC \(9\).*\[neuron-status\]"):
        SpikeModel.load_from_neff(neff, core_id=3)
    monkeypatch.setenv("NRT_STAND_IN_FAIL", "nrt_tensor_read=6")
    with pytest.raises(RuntimeError, match=r"nrt_tensor_read: NRT_HW_ERROR \(6\)"):
        k(inputs())
    monkeypatch.delenv("NRT_STAND_IN_FAIL")
    with pytest.raises(RuntimeError, match="in use"):
        spike.configure()
    spike.reset()
    with pytest.raises(RuntimeError, match="the Neuron runtime has been closed"):
        k(inputs())
    spike.configure()
    os.unsetenv("NEURON_RT_VISIBLE_CORES")  # libnrt reads it; os.environ has not seen it


def test_a_file_that_is_no_neff_is_refused(tmp_path):
    path = tmp_path / "x.neff"
    path.write_bytes(b"hello")
    with pytest.raises(ValueError, match="not a NEFF"):
        DeviceKernel.load_from_neff(path)
