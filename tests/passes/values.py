"""What a module computes before and after `nkx opt --pass`, run by LLVM's own tools and none of our code.

    import values
    after = values.check(TEXT, ["remove-redundant-zero-fill"], rng)        # same results on random inputs, or it fails
    after = values.opt(TEXT, "canonicalize-loop-step")                     # only the text
    got = values.run(text, inputs)                                         # only the numbers

What the later stages mean but LLVM does not know is taken away first: nkipy operations and attributes, memory spaces,
transform scripts.
tensor.empty and memref.alloc start at zero, as PSUM does (remove-redundant-zero-fill relies on it).  A memref function
returns its results; memref arguments are inputs.
"""
import ctypes
import pathlib
import re
import subprocess
import tempfile

import ml_dtypes
import numpy as np

from mlir_run import BUILD, LLVM, TO_LLVM, descriptor, from_descriptor, mlir_opt, to_descriptor

NKX = BUILD / "bin/nkx-worker"

# memref-level loops read buffers through casts that these passes have to fold first
PASSES = ["--one-shot-bufferize=bufferize-function-boundaries function-boundary-type-conversion=identity-layout-map "
          "allow-unknown-ops allow-return-allocs-from-loops", "--canonicalize"] + TO_LLVM[1:]
assert TO_LLVM[0].startswith("--one-shot-bufferize"), "mlir_run.TO_LLVM has changed: see PASSES"


class Refused(Exception):
    """nkx opt ended with an error; str() is what it said."""


def opt(text, *passes):
    """The text after `nkx opt` with these passes ("name" or "name=options")."""
    done = subprocess.run([NKX, "opt", *(f"--{p}" for p in passes), "-"], input=text, capture_output=True, text=True)
    if done.returncode == 1:
        raise Refused(done.stderr)
    assert done.returncode == 0, f"nkx opt {passes}: exit {done.returncode}\n{done.stderr[:3000]}\n{text[:4000]}"
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
    """A fill behind every tensor.empty, alloc_tensor without a copy, and memref.alloc."""
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
    """The text without what only our passes know, its buffers zeroed.  mlir-opt normalises the form first."""
    text = _strip_ops(mlir_opt(text))
    text = re.sub(r"attributes +\{ *\} *", "", _strip_spaces(text))
    text = re.sub(r"attrs = +\{ *\} *", "", text)
    return _zero_fill(re.sub(r" \{, ", " {", re.sub(r",? \}", "}", re.sub(r" \{ *\}(?= (?:ins|:))", "", text))))


# ---- running it -----------------------------------------------------------------------------------------------------

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


def run(text, inputs):
    """The first function's results on these arrays; arguments that it writes are not returned."""
    name, _, outputs = signature(mlir_opt(text))
    lowered = mlir_opt(prepare(text), *PASSES)
    with tempfile.TemporaryDirectory() as tmp:
        ll, so = pathlib.Path(tmp) / "m.ll", pathlib.Path(tmp) / "m.so"
        done = subprocess.run(["mlir-translate-22", "--mlir-to-llvmir"], input=lowered, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr[:3000]
        ll.write_text(done.stdout)
        subprocess.run(["clang-22", "-O1", "-ffp-contract=off", "-shared", "-fPIC", "-w", "-o", so, ll,
                        f"-L{LLVM}/lib", "-lmlir_c_runner_utils", "-lm", f"-Wl,-rpath,{LLVM}/lib"], check=True)
        call = ctypes.CDLL(str(so))[f"_mlir_ciface_{name}"]
        call.restype = None
        copies = [np.array(a, order="C", copy=True) for a in inputs]
        arguments = [to_descriptor(a) for a in copies]
        packed = type("Packed", (ctypes.Structure,),
                      {"_fields_": [(f"r{i}", descriptor(len(s))) for i, (s, _) in enumerate(outputs)]})()
        call(*([ctypes.byref(packed)] if outputs else []), *map(ctypes.byref, arguments))
        return [from_descriptor(getattr(packed, f"r{i}"), s, d) for i, (s, d) in enumerate(outputs)]


# ---- comparing ------------------------------------------------------------------------------------------------------

def random_inputs(text, rng):
    """One array per argument: floats away from zero, so that quotients stay tame; integers in [-9, 9] without 0."""
    made = []
    for shape, dtype in signature(mlir_opt(text))[1]:
        if dtype == np.bool_:
            made.append(rng.integers(0, 2, shape).astype(bool))
        elif dtype.kind in "iu":
            made.append((rng.integers(1, 10, shape) * rng.choice([-1, 1], shape)).astype(dtype))
        else:
            made.append(((np.abs(rng.standard_normal(shape)) + 0.5) * rng.choice([-1, 1], shape)).astype(dtype))
    return made


def same(got, want, tol=1e-5):
    """Integers and bools exactly; floats within tol relative to the values' size (at least the dtype's precision)."""
    assert len(got) == len(want)
    for k, (g, w) in enumerate(zip(got, want)):
        assert g.shape == w.shape and g.dtype == w.dtype, f"output {k}: {g.dtype}{g.shape} instead of {w.dtype}{w.shape}"
        if g.dtype.kind in "iub":
            assert np.array_equal(g, w), f"output {k}: {np.sum(g != w)} of {g.size} differ"
            continue
        t = max(tol, {"float16": 4e-3, "bfloat16": 3e-2}.get(g.dtype.name, 0))
        np.testing.assert_allclose(g.astype(np.float64), w.astype(np.float64), rtol=t, atol=t, err_msg=f"output {k}")


def check(text, passes, rng, tol=1e-5, inputs=None):
    """Runs text before and after the passes on the same inputs, asserts the same results; returns the text after."""
    passes = [passes] if isinstance(passes, str) else passes
    after = opt(text, *passes)
    inputs = random_inputs(text, rng) if inputs is None else inputs
    same(run(after, inputs), run(text, inputs), tol)
    return after
