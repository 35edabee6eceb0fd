"""Tests of kernels in the modes of nkigen's own: run_kernel_test, and nkigen_test as a decorator.

    LLVM          the text after `stop_after` runs on this processor and is compared with NumPy
    STRING_CHECK  check_ir_contains and check_ir_not_contains are substrings of that text
    FILECHECK     LLVM's FileCheck reads that text with check_patterns
    BIR_SIM       the instructions run on the simulated machine and are compared with NumPy
    HW            needs a Neuron device; the simulated machine takes its place where NKX_DEVICE=sim chooses it
"""
import enum
import os
import shutil
import subprocess
import tempfile

import numpy as np
from _nkx import trace
from nkx import device, package

from .execution_engine import verify_against_numpy

__all__ = ["Mode", "nkigen_test", "run_kernel_test"]


class Mode(enum.Flag):
    LLVM = enum.auto()
    STRING_CHECK = enum.auto()
    FILECHECK = enum.auto()
    BIR_SIM = enum.auto()
    HW = enum.auto()


def _check_modes(modes, stop_after, patterns, contains, absent):
    whole = modes & (Mode.BIR_SIM | Mode.HW)
    if not modes:
        raise ValueError("no mode was given")
    if Mode.LLVM in modes and (whole or stop_after is None):
        raise ValueError("LLVM needs stop_after, and goes with neither BIR_SIM nor HW: NISA does not run on this processor")
    if whole and stop_after is not None:
        raise ValueError("BIR_SIM and HW need all passes: leave out stop_after")
    if Mode.STRING_CHECK in modes and not (contains or absent):
        raise ValueError("STRING_CHECK needs check_ir_contains or check_ir_not_contains")
    if Mode.FILECHECK in modes and not patterns:
        raise ValueError("FILECHECK needs check_patterns")
    if Mode.HW in modes and not device.is_neuron_compatible():
        raise RuntimeError("there is no Neuron device: HW cannot run (NKX_DEVICE=sim chooses the simulated machine)")


def _inputs(kernel):
    rng = np.random.RandomState(42)
    return [(rng.randint(0, 100, i.shape) if i.dtype.kind in "biu" else np.asarray(rng.rand(*i.shape))).astype(i.dtype)
            for i in package.code_of(kernel).inputs]


def _file_check(text, patterns):
    tool = shutil.which("FileCheck-22") or shutil.which("FileCheck")
    if not tool:
        raise RuntimeError("FILECHECK needs LLVM's FileCheck (Debian: llvm-22-tools)")
    with tempfile.TemporaryDirectory() as d:
        path = os.path.join(d, "patterns")
        with open(path, "w", encoding="utf-8") as f:
            f.write(patterns)
        done = subprocess.run([tool, path], input=text, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def run_kernel_test(traced_fn, stop_after=None, modes=Mode.LLVM, inputs=None, check_patterns=None, check_ir_contains=None,
                    check_ir_not_contains=None, rtol=1e-5, atol=1e-8, target=None, request=None):
    """Raises ValueError for modes that do not go together, and AssertionError for what differs."""
    _check_modes(modes, stop_after, check_patterns, check_ir_contains, check_ir_not_contains)
    target = target or "trn2"
    if modes & (Mode.LLVM | Mode.BIR_SIM | Mode.HW):
        verify_against_numpy(traced_fn, _inputs(traced_fn) if inputs is None else inputs, stop_after, rtol, atol, target,
                             is_simulated=Mode.LLVM not in modes)
    if not modes & (Mode.STRING_CHECK | Mode.FILECHECK):
        return
    text = str(package.code_of(traced_fn).stages(stop_after, target)[-1][1])
    for wanted in check_ir_contains or ():
        assert wanted in text, f"{wanted!r} is not in\n{text}"
    for unwanted in check_ir_not_contains or ():
        assert unwanted not in text, f"{unwanted!r} is in\n{text}"
    if Mode.FILECHECK in modes:
        _file_check(text, check_patterns)


def nkigen_test(input_specs, **options):
    """Makes a test of a plain function: it is traced for these specs and given to run_kernel_test."""
    def decorate(fn):
        def test():
            run_kernel_test(trace(input_specs=input_specs)(fn), **options)

        test.__name__, test.__doc__ = fn.__name__, fn.__doc__
        return test

    return decorate
