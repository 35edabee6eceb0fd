"""FrameworkKernel: what a framework asks of an NKI kernel before it emits a custom call, and what is kept between calls."""
import os
import subprocess
import sys

import pytest

from support.paths import BUILD

HEAD = """
import base64, json, sys, types
import ml_dtypes
import numpy as np
import pytest
import neuronxcc.nki as beta
import neuronxcc.nki.language as bl
import nki
import nki.language as nl

def older(a, scale=2.0):
    c = bl.ndarray(a.shape, dtype=a.dtype, buffer=bl.shared_hbm)
    bl.store(c, bl.load(a) * scale)
    return c

@nki.jit
def newer(a, b, n=1):
    c = nl.ndarray((n, *a.shape), a.dtype, buffer=nl.shared_hbm)
    x = nl.load(a)
    for i in range(n):
        nl.store(c[i], x)
    nl.store(b, x)
    return c, b

def config(d):
    return json.loads(base64.b64decode(d[0]))

F = nki.FrameworkKernel
x, y = np.ones((64, 32), np.float32), np.ones((64, 32), np.float32)
"""
PATH = os.pathsep.join(map(str, (BUILD / "python", BUILD / "python/nkx/stubs")))

PROGRAMS = {
    "the configuration says what goes in and out and what is written in place": """
d = F(newer).dump_config(x, y, n=3)
c, inputs, outputs = d
assert (inputs, outputs) == (["a", "b.must_alias_input"], ["c", "b"])
assert config(d)["func_name"] == "newer" and config(d)["kernel_version"] == 1 and config(d)["grid"] == [] and config(d)["has_collectives"] is False
assert config(d)["klir_binary"] == {"binary": None, "input_names": inputs, "output_names": outputs, "aliases": [[1, 1]]}
assert "no device code" in config(d)["note"]
assert d.return_types == [(np.dtype("float32"), (3, 64, 32)), (np.dtype("float32"), (64, 32))] and d.operand_output_aliases == {1: 1}
assert d.result_is_sequence and d.constant_values == []
""",
    "equal calls are traced once, and a call of other shapes, dtypes, attributes or grid is traced anew": """
k = F(newer)
first = k.dump_config(x, y)
k._trace = None  # an equal call does not trace
assert k.dump_config(x + 1, b=y, n=1) is first
del k._trace
others = [k.dump_config(x[:32], y[:32]), k.dump_config(x.astype(np.float16), y), k.dump_config(x, y, 2), k[2].dump_config(x, y)]
assert all(o is not first for o in others) and len(set(map(id, others))) == 4
assert config(others[3])["grid"] == [2] and k.grid == ()
assert k.dump_config(x, y) is first and k[2].dump_config(x, y) is others[3]
assert k.dump_config(x, y).return_types == k.return_types
""",
    "a global that the kernel reads is a part of what is compared": """
SCALE = 1.0
def scaled(a):
    c = nl.ndarray(a.shape, a.dtype, buffer=nl.shared_hbm)
    nl.store(c, nl.multiply(nl.load(a), SCALE))
    return c
k = F(scaled)
first = k.dump_config(x)
assert k.dump_config(x) is first
SCALE = 2.0
assert k.dump_config(x) is not first
""",
    "what is kept has a bound": """
from nkx import nki_framework
k = beta.FrameworkKernel(older)
first = k.dump_config(x, 0.5)
for i in range(nki_framework.KEPT_MAX):
    k.dump_config(x, 1.0 + i)
assert len(k._kept) == nki_framework.KEPT_MAX and k.dump_config(x, 0.5) is not first
""",
    "kernels of beta 1 are those of neuronxcc.nki": """
d = beta.FrameworkKernel(older).dump_config(x.astype(np.float16))
assert d.return_types == [(np.dtype("float16"), (64, 32))] and d[1:] == (["a"], ["c"]) and not d.result_is_sequence
""",
    "arrays of JAX are tensors": """
jax = pytest.importorskip("jax")
k = F(newer)
d = k.dump_config(jax.numpy.ones((64, 32), jax.numpy.bfloat16), jax.ShapeDtypeStruct((64, 32), jax.numpy.bfloat16))
assert d.return_types[1] == (np.dtype(ml_dtypes.bfloat16), (64, 32))
assert k.is_framework_tensor(jax.numpy.ones(3)) and not k.is_framework_tensor(3) and not k.is_framework_tensor([1.0])
assert k.map_framework_tensor(jax.numpy.ones((2, 3), jax.numpy.int32)) == ((2, 3), np.dtype("int32"))
""",
    "tensors of PyTorch are tensors": """
class DType:
    def __init__(self, name): self.name = name
    def __repr__(self): return "torch." + self.name
    name = property(lambda self: self.__dict__["n"], lambda self, n: self.__dict__.update(n=n))
class Tensor:
    def __init__(self, shape, dtype): self.shape, self.dtype = shape, dtype
torch = types.ModuleType("torch")
torch.Tensor = Tensor
sys.modules["torch"] = torch
k = F(newer)
for name in ("float32", "bfloat16", "int32", "float8_e5m2"):
    assert k.translate_to_neuron_dtype(DType(name)).name == name
d = k.dump_config(Tensor((64, 32), DType("bfloat16")), Tensor((64, 32), DType("bfloat16")))
assert d.return_types[0] == (np.dtype(ml_dtypes.bfloat16), (1, 64, 32))
""",
    "a subclass says what its tensors are": """
class Mine:
    def __init__(self, dims, kind): self.dims, self.kind = dims, kind
class MyKernel(F):
    def translate_to_neuron_dtype(self, dtype): return {"half": np.float16}[dtype]
    def is_framework_tensor(self, t): return isinstance(t, Mine)
    def map_framework_tensor(self, t): return t.dims, t.kind
k = MyKernel(newer)
d = k.dump_config(Mine((64, 32), "half"), Mine((64, 32), "half"), n=2)
assert d.return_types[0] == (np.dtype("float16"), (2, 64, 32)) and type(k[2]) is MyKernel
assert k.dump_config(Mine((64, 32), "half"), Mine((64, 32), "half"), n=2) is d
""",
    "a kernel that is refused says why": """
def wrong(a):
    return nl.load(a)
with pytest.raises(Exception) as e:
    F(wrong).dump_config(x)
assert "wrong" in str(e.value) or "hbm" in str(e.value), e.value
""",
}


@pytest.mark.parametrize("what", PROGRAMS)
def test_a_framework_kernel(what, tmp_path):
    done = subprocess.run([sys.executable, "-c", HEAD + PROGRAMS[what]], capture_output=True, text=True, timeout=120, cwd=tmp_path,
                          env={"PATH": os.environ["PATH"], "PYTHONPATH": PATH, "JAX_PLATFORMS": "cpu"})
    assert done.returncode == 0, done.stderr[-2000:]
