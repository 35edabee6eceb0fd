"""Files that call their kernels with tensors of torch or arrays of JAX compile for these shapes, though neither is installed."""
import ml_dtypes
import numpy as np
import pytest

from nkx import missing
from nkx.stand_ins import arrays
from support import compiler

KERNEL = """
@nki.jit
def add(a, b):
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    nl.store(out, nl.add(nl.load(a), nl.load(b)))
    return out

"""
GA, BETA1 = ("import nki, nki.language as nl\n", "import neuronxcc.nki as nki, neuronxcc.nki.language as nl\n")
XLA = "import torch\nfrom torch_xla.core import xla_model as xm\n"


@pytest.mark.parametrize("head", [GA, BETA1], ids=["GA", "beta 1"])
@pytest.mark.parametrize("calls, shape, dtype", [
    ("device = xm.xla_device()\na = torch.rand((4, 3), dtype=torch.float16).to(device=device)\nadd(a, torch.ones(4, 3, dtype=torch.float16))",
     [4, 3], "float16"),
    ("add(torch.randn(128, 64, dtype=torch.bfloat16), torch.zeros(size=(128, 64)).bfloat16())", [128, 64], "bfloat16"),
    ("x = torch.full((8, 16), 2.0, device=torch.device('cpu'))\nadd(x, torch.zeros_like(x))", [8, 16], "float32"),
    ("x = torch.arange(32, dtype=torch.float32).reshape(4, 8)\nadd(x.t().contiguous(), torch.from_numpy(x.numpy()).transpose(0, 1))", [8, 4],
     "float32"),
    ("if __name__ == '__main__':\n    add(torch.rand(16, 4).permute(1, 0), torch.tensor([[1.0] * 16] * 4))", [4, 16], "float32"),
], ids=["SDK", "bf16", "like", "transposed", "main"])
def test_the_shapes_come_from_tensors_of_torch(head, calls, shape, dtype):
    result = compiler.compile(XLA + head + KERNEL + calls + "\n")
    errors = [d for d in result["diagnostics"] if d["severity"] == "error"]
    assert not errors, errors
    [kernel] = result["kernels"]
    assert [(t["shape"], t["dtype"]) for t in kernel["inputs"]] == [(shape, dtype)] * 2


def test_the_shapes_come_from_arrays_of_jax_that_is_installed():
    source = "import jax, jax.numpy as jnp\n" + GA + KERNEL + (
        "a = jax.random.uniform(jax.random.PRNGKey(1), (128, 64), dtype=jnp.bfloat16)\nadd(a, jnp.ones((128, 64), dtype=jnp.bfloat16))\n")
    [kernel] = compiler.compile(source)["kernels"]
    assert [(t["shape"], t["dtype"]) for t in kernel["inputs"]] == [([128, 64], "bfloat16")] * 2


@pytest.mark.parametrize("call, shape, dtype", [
    ("jax.numpy.zeros((4, 8))", (4, 8), "float32"), ("jax.numpy.ones(7, bf16)", (7,), "bfloat16"), ("jax.numpy.full((2, 2), 3, dtype=bf16)", (2, 2), "bfloat16"),
    ("jax.random.uniform(jax.random.PRNGKey(0), (4, 8), dtype=bf16)", (4, 8), "bfloat16"), ("jax.numpy.arange(5)", (5,), "int32"),
    ("jax.random.normal(key=jax.random.key(3), shape=(2, 3))", (2, 3), "float32"), ("jax.random.randint(jax.random.PRNGKey(0), (3,), 0, 9)", (3,), "int32"),
    ("jax.numpy.array([[1.0, 2.0]])", (1, 2), "float32"), ("jax.random.uniform(jax.random.split(jax.random.key(3))[1], (2,))", (2,), "float32")])
def test_stand_ins_for_arrays_of_jax_have_its_shapes_and_types(call, shape, dtype):
    class Names:
        def __init__(self, name):
            self.name = name

        def __getattr__(self, part):
            full = f"{self.name}.{part}"
            return arrays.FUNCTIONS.get(full) or Names(full)

    a = eval(call, {"jax": Names("jax"), "bf16": missing.Missing("jax.numpy.bfloat16", ("jax", "k.py:1"))})  # our own text
    assert a.shape == shape and a.dtype == (ml_dtypes.bfloat16 if dtype == "bfloat16" else np.dtype(dtype))


def test_what_computes_with_tensors_is_still_missing():
    result = compiler.compile(XLA + GA + KERNEL + "add(torch.softmax(torch.rand(4, 4), 0), torch.rand(4, 4))\n")
    [d] = [d for d in result["diagnostics"] if d["code"] == "python-import"]
    assert "torch.softmax cannot be used" in d["message"]


@pytest.mark.parametrize("main", [False, True])
def test_what_a_file_does_with_the_result_by_torch_is_no_error(main):
    """The kernel was called, so its shapes are known; the comparison with torch cannot run."""
    lines = ["r = add(torch.rand(4, 8), torch.ones(4, 8))", "assert torch.allclose(r, torch.rand(4, 8) + 1)", "print('never')"]
    driver = "if __name__ == '__main__':\n    " + "\n    ".join(lines) if main else "\n".join(lines)
    result = compiler.compile(XLA + GA + KERNEL + driver + "\n")
    assert result["status"] == "ok"
    [kernel] = result["kernels"]
    assert kernel["stages"][-1]["name"] == "engine-programs"
    [d] = [d for d in result["diagnostics"] if d["code"] == "python-import"]
    assert d["severity"] == "warning" and "torch.allclose cannot be used" in d["message"] and "nothing after this line runs" in d["hint"]
    assert not any("never" in d["message"] for d in result["diagnostics"])


def test_torch_inside_of_a_kernel_is_an_error():
    bad = KERNEL.replace("    return out", "    torch.relu(a)\n    return out")
    result = compiler.compile(XLA + GA + bad + "add(torch.rand(4, 8), torch.ones(4, 8))\n")
    assert result["status"] == "error" and {d["code"] for d in result["diagnostics"] if d["severity"] == "error"} == {"python-import"}


def test_the_time_of_a_benchmark_is_said_to_be_unknown():
    source = BETA1 + KERNEL + ("import numpy as np\nx = np.ones((4, 8), np.float32)\nb = nki.benchmark(warmup=1)(add)\nb(x, x)\n"
                               "b.benchmark_result.nc_latency.get_latency_percentile(50)\n")
    result = compiler.compile(source)
    [d] = result["diagnostics"]
    assert result["status"] == "ok" and d["severity"] == "warning" and "0.0 is no measured time" in d["message"]
    assert source.splitlines()[d["range"]["line"] - 1].startswith("b.benchmark_result")


def test_a_kernel_with_five_mistakes_shows_five():
    """Of all kinds: some are seen in the source, others when the kernel is traced."""
    source = GA + """import nki.isa as nisa

@nki.jit
def wrong(x: nl.tensor[nl.float32, (128, 512)]):
    out = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)
    a = nl.load(x)
    nisa.tensor_tensr(dst=a, data1=a, data2=a, op=nl.add)
    nisa.activation(dst=a, op=nl.add, data=a)
    nisa.tensor_copy(dst=a, src=x)
    nisa.tensor_scalar(dst=a, data=a, op0=nl.multiply, operand=2.0)
    b = a[0:129, :]
    nl.store(out, a)
    return out
"""
    found = [(d["range"]["line"], d["code"]) for d in compiler.compile(source)["diagnostics"]]
    assert sorted(found) == [(8, "nki-unknown-api"), (9, "nki-operator"), (10, "nki-memory"), (11, "nki-call"), (12, "nki-bounds")]
