"""What a kernel of NKI beta 1 may not do: the code, the range and the words of each refusal."""
import pytest

from support import compiler
from support.nki_beta1 import HEAD

KERNEL = HEAD + """
@nki.jit
def kernel(a: tensor[200, 512], b: tensor[64, 512]):
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    ip, jf, one = nl.arange(128)[:, None], nl.arange(512)[None, :], nl.arange(1)[None, :]
    x = nl.load(a[ip, jf])
    p = nl.ndarray((nl.par_dim(128), 512), dtype=nl.float32, buffer=nl.psum)
    blocks = nl.ndarray((2, nl.par_dim(128), 512), dtype=nl.float32)
    i = nl.zeros((128, 512), dtype=nl.int32)
    {line}
    nl.store(out[ip, jf], x)
    return out
"""
LINE = KERNEL.splitlines().index("    {line}") + 1

# the line, the code, a part of the message; « and » around the range if it is not the whole line
CASES = [
    # names
    ("nisa.tensor_tensr(x, x, nl.add)", "nki-unknown-api", "neuronxcc.nki.isa has no tensor_tensr"),
    ("nl.sofmax(x)", "nki-unknown-api", "neuronxcc.nki.language has no sofmax"),
    ("«nl.loop_reduce(x, nl.add, [0])»", "nki-call", "the result of nl.loop_reduce is not assigned to a tile"),
    ("nisa.builtin_custom_op(x)", "nki-unsupported", "builtin_custom_op is not compiled here"),
    # accesses
    ("y = nl.load(«a[128 + ip, jf]»)", "nki-bounds", "the indices 128 to 255 are not inside of dimension 0 of a, which has 200"),
    ("y = nl.copy(«x[ip, jf + 1]»)", "nki-bounds", "the indices 1 to 512 are not inside of dimension 1 of x"),
    ("y = nl.copy(«x[ip, jf, jf]»)", "nki-bounds", "there are 3 indices for 2 dimensions"),
    ("y = nl.copy(«x[200]»)", "nki-bounds", "the index 200 is not inside dimension 0"),
    ("y = nl.copy(«x[ip, 0:4]»)", "nki-view", "mixes slices and index tiles"),
    ("y = nl.copy(«x[nl.arange(64)[None, :], nl.arange(64)[:, None]]»)", "nki-view", "partitions of x are not the first axis"),
    ("y = nl.copy(«x[nl.arange(64)[:, None] * 2, jf]»)", "nki-address", "steps over partitions by 2"),
    ("y = nl.copy(«x[ip, 511 - jf]»)", "nki-view", "goes backwards"),
    ("y = nl.copy(«blocks»)", "nki-view", "blocks has 1 block dimensions"),
    ("y = nl.copy(«x[i]»)", "nki-unsupported", "x is on chip"),
    ("y = nl.copy(«x[1.5]»)", "nki-bounds", "not float"),
    ("y = «ip[3]»", "nki-bounds", "cannot be indexed by 3"),
    ("y = «nl.arange(128)[:, None] + nl.arange(64)[:, None]»", "nki-shape-mismatch", "index tiles of the shapes (128, 1) and (64, 1)"),
    ("y = «ip * jf»", "nki-mask", "the product of two index tiles is not affine"),
    ("y = «jf // 2»", "nki-mask", "is not affine"),
    ("y = «jf % 3»", "nki-mask", "is not affine"),
    # masks
    ("y = nl.exp(x, mask=«3»)", "nki-mask", "a mask is a comparison of index tiles, not int"),
    ("y = nl.exp(x, mask=(«nl.arange(64)[:, None] < 3»))", "nki-mask", "a mask of the shape (64, 1) does not fit to a tile of the shape (128, 512)"),
    ("nl.store(out[ip, jf], x, mask=(«ip >= jf»))", "nki-mask", "over several axes together cannot restrict a store"),
    ("y = nl.sum(x, axis=1, mask=(«ip >= jf»))", "nki-mask", "cannot restrict a reduction"),
    ("y = «(ip < 3) | (jf < 4)»", "nki-mask", "masks are combined by & only"),
    ("y = 1 if «ip < 3» else 2", "nki-tensor-truth", "a comparison of index tiles has no truth value"),
    # operands
    ("y = «x + nl.load(b)»", "nki-shape-mismatch", "the shapes (128, 512) and (64, 512)"),
    ("y = nl.add(x, «a»)", "nki-memory", "a is in shared_hbm, but engines work on SBUF and PSUM"),
    ("y = nl.add(x, «'one'»)", "nki-call", "nl.add takes tiles and numbers, not str"),
    ("y = nl.load(«x»)", "nki-memory", "x is in sbuf, but src must be in hbm"),
    ("nl.store(«x», x)", "nki-memory", "x is in sbuf, but dst must be in hbm"),
    ("nl.store(out[ip, jf], «3.0»)", "nki-call", "nl.store stores a tile, not float"),
    ("«nl.store(out[ip, nl.arange(3)[None, :]], x)»", "nki-shape-mismatch", "a tile of the shape (128, 512) is stored to"),
    ("«x[ip, nl.arange(3)[None, :]]» = x", "nki-shape-mismatch", "a tile of the shape (128, 512) is assigned to one of the shape (128, 3)"),
    ("«out[ip, jf]» = x", "nki-memory", "out is in shared_hbm, and cannot be assigned to"),
    ("«x[...]» = 'zero'", "nki-call", "a tile cannot be set to str"),
    ("if «x»: pass", "nki-tensor-truth", "the data of x is not known at compile time"),
    ("for row in «x»: pass", "nki-tensor-operator", "a tensor is no sequence"),
    ("y = «x @ x»", "nki-tensor-operator", "@ is no operator of tiles"),
    ("y = nisa.tensor_tensor(x, «3.0», nl.add)", "nki-call", "data2 must be a tile, not float"),
    ("y = nisa.tensor_tensor(x, x, «nl.exp»)", "nki-operator", "exp is a function"),
    ("y = nisa.activation(«nl.add», x)", "nki-operator", "add is an operator"),
    ("y = nisa.tensor_reduce(nl.add, x, axis=«0»)", "nki-operand", "axis 0 of a tile of 2 dimensions cannot be reduced"),
    ("y = nisa.nc_matmul(«x», x)", "nki-size-limit", "stationary has 512 elements"),
    ("y = nisa.nc_matmul(«i[ip, nl.arange(64)[None, :]]», x)", "nki-dtype", "stationary has the type int32, but the Tensor engine multiplies floats"),
    ("y = nisa.iota(«3», dtype=nl.int32)", "nki-call", "iota takes an index tile, not int"),
    ("y = nisa.affine_select(pred=«True», on_true_tile=x, on_false_value=0.0)", "nki-call", "pred must be a comparison of index tiles"),
    # sizes and types
    ("y = nl.ndarray(«(nl.par_dim(256), 4)», dtype=nl.float32)", "nki-size-limit", "has 256 partitions, but there are 128"),
    ("y = nl.load(«a»)", "nki-size-limit", "has 200 partitions, but there are 128"),
    ("y = nl.ndarray(«(nl.par_dim(4), nl.par_dim(4))», dtype=nl.float32)", "nki-call", "more than one nl.par_dim"),
    ("y = nl.zeros((128, 4), dtype=«'float7'»)", "nki-dtype", "'float7' is not a data type"),
    ("y = «i.broadcast_to((128, 7))»", "nki-shape-mismatch", "which is not broadcast to (128, 7)"),
    ("y = nl.ndarray((4, 4), dtype=nl.float32, buffer=«'cache'»)", "nki-memory", "'cache' is not a memory"),
    # parameters
    ("nl.store(b, nl.load(b))", "nki-output", "the parameter b is written, but not returned"),
]


@pytest.mark.parametrize("line,code,message", CASES, ids=[c[0] for c in CASES])
def test_a_refusal_has_a_code_a_range_and_words(line, code, message):
    plain = line.replace("«", "").replace("»", "")
    result = compiler.compile(KERNEL.replace("{line}", plain))
    [d] = [d for d in result["diagnostics"] if d["severity"] == "error"]
    assert d["code"] == code and message in d["message"], d
    if code == "nki-output":
        return
    place = d["range"]
    assert (place["line"], place["end_line"]) == (LINE, LINE), place
    if "«" in line:
        begin = 5 + line.index("«")
        assert (place["col"], place["end_col"]) == (begin, begin + line.index("»") - line.index("«") - 1), place


def test_a_tile_of_beta_1_is_refused_by_newer_calls():
    source = HEAD + """import nki.isa as newer

@nki.jit
def kernel(a: tensor[128, 64]):
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    x = nl.load(a)
    newer.tensor_copy(dst=x, src=x)
    nl.store(out, x)
    return out
"""
    codes = {d["code"]: d["message"] for d in compiler.compile(source)["diagnostics"]}
    assert codes["nki-mixed-generations"] == "nki.isa.tensor_copy belongs to newer NKI, but the kernel is beta 1"


# several lines at `{line}`, and the severity
SCOPES = [
    ("for k in nl.affine_range(2):\n    y = nl.ndarray((128, 512), nl.float32)\n    y[...] = nl.exp(x)\nx = nl.add(«y», 1.0)", "error"),
    ("if a.shape[0] == 200:\n    y = nl.ndarray((128, 512), nl.float32)\nelse:\n    y = nl.ndarray((128, 512), nl.float32)\n«y»[...] = nl.exp(x)", "error"),
    ("y = nl.ndarray((128, 512), nl.float32)\nfor k in nl.sequential_range(2):\n    «y» = nl.ndarray((128, 512), nl.float32)\n    y[...] = x", "warning"),
]


@pytest.mark.parametrize("lines, severity", SCOPES)
def test_a_tensor_of_a_loop_or_branch_is_not_used_after_it(lines, severity):
    plain = lines.replace("«", "").replace("»", "").replace("\n", "\n    ")
    found = [d for d in compiler.compile(KERNEL.replace("{line}", plain))["diagnostics"] if d["code"] == "nki-scope"]
    [(row, text)] = [(n, t) for n, t in enumerate(lines.split("\n")) if "«" in t]
    assert [d["severity"] for d in found] == [severity], found
    place = found[0]["range"]
    assert (place["line"], place["col"]) == (LINE + row, 5 + text.index("«"))
    assert place["end_col"] == place["col"] + text.index("»") - text.index("«") - 1


SEVERAL = """import neuronxcc.nki as nki
import neuronxcc.nki.isa as nisa
import neuronxcc.nki.language as nl
from neuronxcc.nki.typing import tensor

@nki.jit
def f(a: tensor[128, 512]):
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    ip, jf = nl.arange(128)[:, None], nl.arange(512)[None, :]
    x = nl.load(a)
    lost = nl.load(a[ip, jf + 1])
    y = nl.lood(a[ip, jf])
    z = nl.add(x, a)
    later = nl.exp(z) + y
    later[0:64, 0:4] = x[0:64, 0:4]
    w = nisa.nc_matmul(x, x)
    if x > 0:
        q = nl.load(a[ip, jf], mask=(ip != 3))
    x[ip % 4, jf] = 3.0
    x += nl.sum(later, axis=1)
    nisa.nc_matmul(x)
    nisa.tensor_tensor(x, x, nl.add, engin=nisa.vector_engine)
    nl.store(out, value=x @ x)
    for i in range(y.shape[0]):
        nl.store(a[i], never)
    return out
"""


def test_a_kernel_shows_all_its_mistakes_and_nothing_that_follows_from_them():
    """After a refusal the kernel runs on; what is computed from the refused result is not refused again."""
    result = compiler.compile(SEVERAL)
    errors = [(d["range"]["line"], d["code"]) for d in result["diagnostics"] if d["severity"] == "error"]
    assert result["status"] == "error" and errors == [
        (11, "nki-bounds"), (12, "nki-unknown-api"), (13, "nki-memory"), (16, "nki-size-limit"), (17, "nki-tensor-truth"), (18, "nki-mask"),
        (19, "nki-mask"), (21, "nki-call"), (22, "nki-call"), (23, "nki-tensor-operator")]
    hints = [d["hint"] for d in result["diagnostics"] if d["code"] == "nki-call"]
    assert hints[0].startswith("nisa.nc_matmul(stationary, moving") and hints[1].startswith("did you mean engine? nisa.tensor_tensor(")
