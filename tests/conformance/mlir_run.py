"""Runs a function of an MLIR module on NumPy arrays, with LLVM's own command-line tools and none of our code.

The independent oracle beside the product's own numeric check: mlir-opt-22 lowers the text, clang-22 compiles it to a
shared object, ctypes calls the C interface with memref descriptors.
"""
import ctypes
import os
import pathlib
import re
import subprocess
import tempfile

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = ROOT / os.environ.get("BUILD", "build")
LLVM = pathlib.Path("/usr/lib/llvm-22")

TO_LLVM = [
    "--one-shot-bufferize=bufferize-function-boundaries function-boundary-type-conversion=identity-layout-map",
    "--convert-linalg-to-loops", "--lower-affine", "--convert-scf-to-cf", "--llvm-request-c-wrappers",
    "--expand-strided-metadata", "--lower-affine", "--memref-expand", "--arith-expand=include-bf16",
    "--convert-math-to-llvm", "--convert-math-to-libm", "--convert-to-llvm", "--reconcile-unrealized-casts",
]


def mlir_opt(text, *arguments):
    """Parses and verifies the text with our dialects loaded; returns what mlir-opt-22 prints."""
    done = subprocess.run(
        ["mlir-opt-22", f"--irdl-file={BUILD}/dialects.irdl", *arguments, "-"],
        input=text, capture_output=True, text=True,
    )
    assert done.returncode == 0, f"mlir-opt-22 refuses:\n{done.stderr[:3000]}\n{text[:3000]}"
    return done.stdout


def descriptor(rank):
    class Memref(ctypes.Structure):
        _fields_ = [("base", ctypes.c_void_p), ("data", ctypes.c_void_p), ("offset", ctypes.c_int64)] + (
            [("sizes", ctypes.c_int64 * rank), ("strides", ctypes.c_int64 * rank)] if rank else []
        )

    return Memref


def to_descriptor(array):
    d = descriptor(array.ndim)()
    d.base = d.data = array.ctypes.data
    d.offset = 0
    for i in range(array.ndim):
        d.sizes[i] = array.shape[i]
        d.strides[i] = array.strides[i] // array.itemsize
    return d


def from_descriptor(d, shape, dtype):
    if not shape:
        strides = ()
    else:
        assert tuple(d.sizes) == tuple(shape), (tuple(d.sizes), shape)
        strides = tuple(s * np.dtype(dtype).itemsize for s in d.strides)
    if 0 in shape:
        return np.zeros(shape, dtype)
    address = d.data + d.offset * np.dtype(dtype).itemsize
    span = sum((n - 1) * s for n, s in zip(shape, strides)) + np.dtype(dtype).itemsize
    raw = (ctypes.c_char * span).from_address(address)
    return np.ndarray(shape, dtype, buffer=raw, strides=strides).copy()


def run(text, function, inputs, outputs):
    """inputs: arrays; outputs: [(shape, dtype)].  Returns the outputs as arrays; the inputs are copied first."""
    lowered = mlir_opt(re.sub(r'^ *"nkipy\.\w+"\(.*\n', "", text, flags=re.M), *TO_LLVM)  # annotations compute nothing
    with tempfile.TemporaryDirectory() as tmp:
        ll, so = pathlib.Path(tmp) / "m.ll", pathlib.Path(tmp) / "m.so"
        translated = subprocess.run(["mlir-translate-22", "--mlir-to-llvmir"], input=lowered, capture_output=True, text=True)
        assert translated.returncode == 0, translated.stderr[:3000]
        ll.write_text(translated.stdout)
        subprocess.run(
            ["clang-22", "-O1", "-shared", "-fPIC", "-w", "-o", so, ll, f"-L{LLVM}/lib", "-lmlir_c_runner_utils", "-lm",
             f"-Wl,-rpath,{LLVM}/lib"], check=True)
        library = ctypes.CDLL(str(so))
        call = library[f"_mlir_ciface_{function}"]
        copies = [np.array(a, order="C", copy=True) for a in inputs]
        arguments = [to_descriptor(a) for a in copies]
        results = [descriptor(len(shape)) for shape, _ in outputs]
        if len(results) > 1:
            class Packed(ctypes.Structure):
                _fields_ = [(f"r{i}", r) for i, r in enumerate(results)]
            packed = Packed()
            call(ctypes.byref(packed), *map(ctypes.byref, arguments))
            got = [getattr(packed, f"r{i}") for i in range(len(results))]
        elif results:
            one = results[0]()
            call(ctypes.byref(one), *map(ctypes.byref, arguments))
            got = [one]
        else:
            call(*map(ctypes.byref, arguments))
            got = []
        return [from_descriptor(d, shape, dtype) for d, (shape, dtype) in zip(got, outputs)]


def function_name(text):
    return re.search(r"func\.func (?:public )?@([\w$.]+)", text).group(1)
