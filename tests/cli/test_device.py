"""nkx run --device neuron, on a library with libnrt's interface that simulates (tests/neuron/libnrt.c)."""
import json
import re
import subprocess

import numpy as np
import pytest

from support import warm
from support.paths import BUILD, ROOT

EXAMPLES = ROOT / "explorer" / "examples"
STAND_IN = BUILD / "test/neuron/libnrt.so.1"
DEFINED = re.findall(r"NRT_FUNCTION\((\w+), ([\w ]+), (\w+), (\(.*\))\)", (ROOT / "compiler/neff/nrt.def").read_text())


def nkx(*args, status=0, **variables):
    run = warm.text(*args, env={k: str(v) for k, v in variables.items()})
    assert run.returncode == status, run.stdout + run.stderr
    return run.stdout + run.stderr


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    path = tmp_path_factory.mktemp("device") / "k.sim.neff"
    nkx("neff", "pack", EXAMPLES / "01_matmul_bias_relu.py", "-o", path)
    return path


def left(report):
    """What the library handed out and did not get back, and the calls."""
    last = json.loads(report.read_text().splitlines()[-1])
    return {k: n for k, n in last["live"].items() if n}, last["calls"]


def library(tmp_path, functions, detail="Release"):
    """A shared library with these functions, which do nothing."""
    source, path = tmp_path / "lib.c", tmp_path / "lib.so"
    lines = [f"int {f}(void) {{ return 0; }}" for f in functions if f != "nrt_get_version"]
    lines.append(f'int nrt_get_version(char *v, unsigned long n) {{ for (unsigned long i = 0; i < n; i++) v[i] = 0; '
                 f'for (int i = 0; i < {len(detail)}; i++) v[32 + i] = "{detail}"[i]; return 0; }}')
    source.write_text("\n".join(lines))
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", path, source], check=True)
    return path


def test_a_kernel_is_compared_with_numpy_and_the_simulator_side_by_side(package, tmp_path):
    out, report = tmp_path / "o.json", tmp_path / "report"
    text = nkx("run", EXAMPLES / "01_matmul_bias_relu.py", "--device", "neuron", "--neff", package, "--repeat", "2", "--json", out,
               "--device-profile", tmp_path / "p.ntff", NKX_LIBNRT=STAND_IN, NRT_STAND_IN_REPORT=report)
    assert "NO DEVICE, but a stand-in of the tests" in text and "says nothing about a Neuron device" in text
    assert text.count("  pass\n") == 3, "NumPy beside the simulator, and both beside the device"
    kernel = json.loads(out.read_text())["kernels"][0]
    device = kernel["device"]
    assert device["status"] == "ok" and device["stand_in"] is True and device["cores"] == 2
    assert device["outputs"][0]["reference"]["of"] == "numpy" and device["outputs"][0]["simulator"]["max_abs_err"] == 0
    assert device["simulated_us"] == pytest.approx(kernel["profile"]["total_us"])
    measured = device["measured"]
    assert measured["executions"] == 3 and 0 < measured["least_us"] <= measured["median_us"]
    nothing, calls = left(report)
    assert nothing == {} and calls["nrt_execute"] == 3 and calls["nrt_profile_stop"] == 1
    assert (tmp_path / "p.ntff").exists()


KERNEL = """
import numpy as np
from nkipy.core.compile import trace

@trace
def update(cache, row):
    cache[1:2] = row
    return cache * {factor}

update.specialize(np.ones((4, 8), np.float32), np.ones((1, 8), np.float32))
"""


def test_a_parameter_that_is_written_has_one_tensor_and_is_written_anew_before_each_execution(tmp_path):
    kernel, other, neff, out, report = (tmp_path / n for n in ("k.py", "o.py", "k.sim.neff", "o.json", "report"))
    kernel.write_text(KERNEL.format(factor=2))
    other.write_text(KERNEL.format(factor=3))
    nkx("neff", "pack", kernel, "-o", neff)
    run = ("--device", "neuron", "--neff", neff, "--repeat", "1", "--libnrt", STAND_IN, "--json", out)
    nkx("run", kernel, *run, NRT_STAND_IN_REPORT=report)
    device = json.loads(out.read_text())["kernels"][0]["device"]
    assert all(o["reference"]["pass"] and o["simulator"]["pass"] for o in device["outputs"]) and len(device["outputs"]) == 2
    nothing, calls = left(report)
    assert nothing == {} and calls["nrt_tensor_allocate"] == 3 and calls["nrt_tensor_write"] == 4

    refused = nkx("run", other, *run, status=1)
    assert "the device's output output0 differs from the reference by" in refused and "[check-failed]" in refused
    other.write_text(KERNEL.format(factor=2).replace("(4, 8)", "(4, 9)").replace("(1, 8)", "(1, 9)"))
    assert "has 128 bytes in the NEFF, and 144 in the kernel [neuron-neff]" in nkx("run", other, *run, status=1)


def test_a_package_alone_runs_beside_the_simulator_on_the_given_inputs(package, tmp_path):
    rng = np.random.default_rng(3)
    shapes = {"x": (256, 256), "w": (256, 512), "bias": (512,)}
    arrays = {n: rng.standard_normal(s).astype(np.float32) for n, s in shapes.items()}
    np.savez(tmp_path / "in.npz", **arrays)
    text = nkx("run", package, "--device", "neuron", "--inputs", tmp_path / "in.npz", "--cores", "1-2", "--repeat", "0",
               "--save-outputs", tmp_path / "out.npz", NKX_LIBNRT=STAND_IN)
    assert "beside simulator" in text and "FAIL" not in text
    want = np.maximum(arrays["x"] @ arrays["w"] + arrays["bias"], 0)
    np.testing.assert_allclose(np.load(tmp_path / "out.npz")["output0"], want, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("failing", ["nrt_load=10", "nrt_execute@2=1005"])
def test_a_call_that_fails_ends_the_run_with_its_status_and_nothing_is_left(package, tmp_path, failing):
    report = tmp_path / "report"
    name, number = re.match(r"(\w+)(?:@2)?=(\d+)", failing).groups()
    text = nkx("run", package, "--device", "neuron", "--repeat", "1", status=1, NKX_LIBNRT=STAND_IN, NRT_STAND_IN_FAIL=failing,
               NRT_STAND_IN_REPORT=report)
    assert re.search(rf"{name}: NRT_\w+ \({number}\): .* \[neuron-status\]", text)
    assert left(report)[0] == {}


def test_a_library_that_is_missing_or_is_no_libnrt_is_named(package, tmp_path):
    run = ("run", package, "--device", "neuron")
    missing = nkx(*run, status=1)
    assert "[neuron-library]" in missing and "--libnrt or NKX_LIBNRT" in missing
    assert f"{tmp_path / 'none.so'}: cannot open" in nkx(*run, "--libnrt", tmp_path / "none.so", status=1)
    lacking = library(tmp_path, [n for kind, _, n, _ in DEFINED if kind == "NEEDED" and n != "nrt_tensor_read"])
    assert "lib.so has no function nrt_tensor_read: it is no libnrt of version 2 [neuron-function]" in nkx(*run, "--libnrt", lacking, status=1)


def test_a_simulation_package_never_reaches_a_real_runtime(package, tmp_path):
    real = library(tmp_path, [n for *_, n, _ in DEFINED])
    text = nkx("run", package, "--device", "neuron", "--libnrt", real, status=1)
    assert "Neuron device: " in text and "a simulation package, which no device executes" in text and "[neuron-package]" in text


def test_a_neff_of_the_vendor_goes_to_the_runtime_alone(tmp_path):
    neff = tmp_path / "k.neff"
    header = bytearray(1024)
    header[0], header[8:16], header[16], header[24] = 2, (1024).to_bytes(8, "little"), 4, 1
    neff.write_bytes(bytes(header) + b"data")
    text = nkx("run", neff, "--device", "neuron", status=1, NKX_LIBNRT=STAND_IN)
    assert "nrt_load: NRT_INVALID (2)" in text and "simulated" not in text.replace("simulates", "")


def test_options_that_do_not_belong_together_are_refused(package, tmp_path):
    assert "are for --device neuron" in nkx("run", package, "--repeat", "2", status=2)
    assert "expected neuron" in nkx("run", package, "--device", "gpu", status=2)
    assert "are for --device neuron" in nkx("run", package, "--lnc", "2", status=2)
    assert "expected a number from 0" in nkx("run", package, "--device", "neuron", "--repeat", "-1", status=2)
