"""Runs a function of an MLIR module on NumPy arrays, with MLIR and LLVM themselves and none of our code.

    results = llvm.run(text, inputs)          # of the first function; arguments that it writes are not returned
    again = llvm.mlir_opt(text)               # parsed, verified and printed by mlir-opt

MLIR's passes lower the text, LLVM compiles it to a shared object (support/oracles/mlir.py), ctypes calls its C interface
with memref descriptors.
What the later stages mean but LLVM does not know is taken away first: nkipy operations and attributes, memory spaces,
transform scripts.  tensor.empty and memref.alloc start at zero, as PSUM does (remove-redundant-zero-fill relies on it).  A
memref function returns its results; memref arguments are inputs.
"""
import ctypes
import functools
import pathlib
import re
import subprocess
import tempfile

import ml_dtypes
import numpy as np

from support.oracles import mlir
from support.paths import BUILD

LLVM = pathlib.Path("/usr/lib/llvm-22")

# memref-level loops read buffers through casts that bufferization and canonicalization have to fold first
TO_LLVM = ",".join((
    "one-shot-bufferize{bufferize-function-boundaries function-boundary-type-conversion=identity-layout-map "
    "allow-unknown-ops allow-return-allocs-from-loops}", "canonicalize",
    "convert-linalg-to-loops", "lower-affine", "convert-scf-to-cf", "func.func(llvm-request-c-wrappers)",
    "expand-strided-metadata", "lower-affine", "memref-expand", "arith-expand{include-bf16}",
    "convert-math-to-llvm", "convert-math-to-libm", "convert-to-llvm", "reconcile-unrealized-casts",
))


@functools.lru_cache(8)
def mlir_opt(text, *arguments):
    """Parses and verifies the text with our dialects loaded; returns what mlir-opt-22 prints."""
    done = subprocess.run(
        ["mlir-opt-22", f"--irdl-file={BUILD}/dialects.irdl", *arguments, "-"],
        input=text, capture_output=True, text=True,
    )
    assert done.returncode == 0, f"mlir-opt-22 refuses:\n{done.stderr[:3000]}\n{text[:3000]}"
    return done.stdout


# ---- making IR runnable ---------------------------------------------------------------------------------------------

ELEMENT = {"f64": np.float64, "f32": np.float32, "f16": np.float16, "bf16": ml_dtypes.bfloat16, "i64": np.int64,
           "i32": np.int32, "i16": np.int16, "i8": np.int8, "i1": np.bool_}


def _strip_ops(text):
    """Without nkipy operations (they have no result), nkipy attributes and transform scripts."""
    text = re.sub(r"^( *)transform\.named_sequence .*?^\1\}\n", "", text, flags=re.M | re.S)
    text = text.replace("module attributes {transform.with_named_sequence} {", "module {", 1)
    text = re.sub(r'^\s*"nkipy\.\w+"\(.*$\n?', "", text, flags=re.M)
    text = re.sub(r"\bnkipy\.\w+ = (?:-?\d+ : i\d+|\{[^{}]*\}|array<[^<>]*>|\"[^\"]*\")(?:, )?", "", text)
    return text


def _strip_spaces(text):
    """Without memory spaces: of memref types, alloc_tensor and memory_space_cast."""
    text = re.sub(r"memory_space = \d+ : i\d+(?:, )?", "", text)
    return re.sub(r"(memref<[^<>]*(?:<[^<>]*>[^<>]*)*?), \d+ : i\d+>", r"\1>", text)


def _zero(kind):
    return "false" if kind == "i1" else f"{0 if kind.startswith('i') else 0.0} : {kind}"


def _zero_fill(text):
    """A fill after every tensor.empty, alloc_tensor without a copy, and memref.alloc."""
    n = 0

    def tensor(m):
        nonlocal n
        n += 1
        indent, name, op, attrs, shape, kind = m.groups()
        return (f"{indent}%zf_e{n} = {op}(){attrs or ''} : tensor<{shape}{kind}>\n"
                f"{indent}%zf_c{n} = arith.constant {_zero(kind)}\n"
                f"{indent}{name} = linalg.fill ins(%zf_c{n} : {kind}) outs(%zf_e{n} : tensor<{shape}{kind}>)"
                f" -> tensor<{shape}{kind}>")

    def memref(m):
        nonlocal n
        n += 1
        indent, name, rest, inner = m.groups()
        kind = re.match(r"(?:\d+x)*(\w+)", inner).group(1)
        return (f"{indent}{name} = memref.alloc{rest} : memref<{inner}>\n"
                f"{indent}%zf_c{n} = arith.constant {_zero(kind)}\n"
                f"{indent}linalg.fill ins(%zf_c{n} : {kind}) outs({name} : memref<{inner}>)")

    text = re.sub(r"^( *)(%\S+) = (tensor\.empty|bufferization\.alloc_tensor)\(\)( \{[^{}]*\})? : tensor<((?:\d+x)*)(\w+)>$",
                  tensor, text, flags=re.M)
    return re.sub(r"^( *)(%\S+) = memref\.alloc(\(\)(?: \{[^{}]*\})?) : memref<(.*)>$", memref, text, flags=re.M)


def prepare(text):
    """The text without what only our passes know, its buffers zeroed.  MLIR normalises the form first."""
    text = _strip_ops(mlir.normalize(text))
    text = re.sub(r"attributes +\{ *\} *", "", _strip_spaces(text))
    text = re.sub(r"attrs = +\{ *\} *", "", text)
    return _zero_fill(re.sub(r" \{, ", " {", re.sub(r",? \}", "}", re.sub(r" \{ *\}(?= (?:ins|:))", "", text))))


# ---- running it -----------------------------------------------------------------------------------------------------

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


def _types(part):
    """[(shape, dtype)] of the tensor and memref types in a signature part."""
    found = []
    for shape, kind in re.findall(r"(?:tensor|memref)<((?:\d+x)*)([a-z]+\d+)", part):
        found.append((tuple(int(d) for d in shape.split("x")[:-1]), np.dtype(ELEMENT[kind])))
    return found


def signature(text):
    """(name, inputs, outputs) of the first function, each a list of (shape, dtype)."""
    m = re.search(r"func\.func (?:public )?@([\w$.]+)\((.*?)\)(?: -> (.*?))?(?: attributes \{.*?\})? \{$", text, re.M)
    assert m, text[:2000]
    return m.group(1), _types(m.group(2)), _types(m.group(3) or "")


def _library(text):
    """A shared object of a module, loaded."""
    with tempfile.TemporaryDirectory() as tmp:
        mlir.object_file(text, TO_LLVM, f"{tmp}/m.o")
        done = subprocess.run(["ld", "-shared", "-o", f"{tmp}/m.so", f"{tmp}/m.o"], capture_output=True, text=True)
        assert done.returncode == 0, f"ld: {done.stderr[:3000]}"
        return ctypes.CDLL(f"{tmp}/m.so")


@functools.cache
def _runtime():
    """What the code calls, for every library that is loaded later: copies of memrefs, and functions of libm."""
    return [ctypes.CDLL(name, mode=ctypes.RTLD_GLOBAL) for name in (f"{LLVM}/lib/libmlir_c_runner_utils.so", "libm.so.6")]


def run(text, inputs):
    """The first function's results on these arrays; arguments that it writes are not returned."""
    name, _, outputs = signature(mlir.normalize(text))
    _runtime()
    call = _library(prepare(text))[f"_mlir_ciface_{name}"]
    call.restype = None
    copies = [np.array(a, order="C", copy=True) for a in inputs]
    arguments = [to_descriptor(a) for a in copies]
    packed = type("Packed", (ctypes.Structure,),
                  {"_fields_": [(f"r{i}", descriptor(len(s))) for i, (s, _) in enumerate(outputs)]})()
    call(*([ctypes.byref(packed)] if outputs else []), *map(ctypes.byref, arguments))
    return [from_descriptor(getattr(packed, f"r{i}"), s, d) for i, (s, d) in enumerate(outputs)]
