"""The catalogue of errors of NKI, situation by situation: a kernel that gets into each, and what is said of it.

A case: (situation, generation, text, code, words of the message, words of the hint).  The text is lines of the kernel below, or of a
whole kernel if it begins with "@", after definitions if it has a line "@@"; « and » are around the range.  The words of the message say
what was found and what is possible, those of the hint what to do instead; None: the message says that itself.
"""
HEADS = {
    2: "import enum\nimport numpy as np\nimport nki\nimport nki.isa as nisa\nimport nki.language as nl\n",
    1: "import numpy as np\nimport neuronxcc.nki as nki\nimport neuronxcc.nki.isa as nisa\nimport neuronxcc.nki.language as nl\nimport neuronxcc.nki.typing as nt\n",
}
KERNELS = {
    2: """
@nki.jit
def k$(a: nl.tensor[128, 512], b: nl.tensor[64, 512]):
    out = nl.ndarray(a.shape, a.dtype, buffer=nl.shared_hbm)
    x = nl.load(a)
    p = nl.ndarray((128, 512), nl.float32, buffer=nl.psum)
    i = nl.ndarray((128, 512), nl.int32)
    r = nisa.register_alloc(0)
{body}
    nl.store(out, x)
    return out
""",
    1: """
@nki.jit
def k$(a: nt.tensor[128, 512], b: nt.tensor[64, 512]):
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    x = nl.load(a)
{body}
    nl.store(out, x)
    return out
""",
}
INSIDE = ["inner class", "import", "try", "raise", "match", "async", "del", "global", "nonlocal", "type"]

CASES = {
    "nki-unsupported-statement": [
        ("inner class", 2, "«class C»: pass", ("class", "inside of a kernel"), "outside of the kernel"),
        ("import", 2, "«import math»", ("import",), "top of the file"),
        ("try", 2, "«try:\n    y = 1\nexcept ValueError:\n    y = 2»", ("try",), ""),
        ("raise", 2, "«raise ValueError('x')»", ("raise",), "assert"),
        ("match", 2, "«match a.shape[0]:\n    case 128:\n        pass»", ("match",), "if"),
        ("async", 2, "«async def f()»: pass", ("async",), ""),
        ("del", 2, "«del i»", ("del",), ""),
        ("global", 2, "«global g»", ("global",), "argument"),
        ("nonlocal", 2, "n = 1\ndef f():\n    «nonlocal n»", ("nonlocal",), "return"),
    ],
    "nki-unsupported-signature": [
        ("star argument", 2, "@nki.jit\ndef k$(a: nl.tensor[4, 4], «*b»): return a\n", ("b",), "one by one"),
        ("starred call", 2, "nisa.memset(«*[x, 0.0]»)", ("star", "inside of a kernel"), "one by one"),
        ("keywords of a call", 2, "nisa.memset(x, «**{'value': 0.0}»)", ("two stars",), "one by one"),
        ("position-only", 2, "@nki.jit\ndef k$(«a: nl.tensor[4, 4]», /): return a\n", ("a is position-only",), "slash"),
        ("keyword-only", 2, "@nki.jit\ndef k$(a: nl.tensor[4, 4], *, «b»=1): return a\n", ("b",), ""),
    ],
    "nki-tensor-operator": [
        ("@ on tiles", 2, "y = «x @ x»", ("no operators",), "nisa.nc_matmul"),
        ("operator on tiles", 2, "y = «x + 1.0»", ("no operators",), "nl.add"),
        ("unary operator on tiles", 2, "y = «-x»", ("no operators",), "nl.negative"),
        ("comparison of tiles", 2, "y = «x < 1.0»", ("no operators",), "nl.less"),
        ("augmented assignment", 2, "«x += 1.0»", ("beta 1",), "nisa.tensor_tensor"),
    ],
    "nki-tile-assignment": [("assignment to a part", 2, "«x[0:4]» = 1.0", ("cannot be assigned to",), "nisa.tensor_copy")],
    "nki-tensor-truth": [
        ("if on data", 2, "if «x»: pass", ("no truth value", "x"), "nl.where"), ("assert on data", 2, "assert «x»", ("no truth value",), "nl.where"),
        ("if on data", 1, "if «x»: pass", ("no truth value",), "nl.where")],
    "nki-register-in-host-code": [
        ("int() of a register", 2, "y = int(«r»)", ("register", "device"), ""), ("range() of a register", 2, "for k in range(«r»): pass", ("register", "device"), "")],
    "nki-device-loop": [
        ("break", 2, "for k in nl.dynamic_range(4):\n    «break»", ("break",), "number of rounds"),
        ("continue", 2, "for k in nl.dynamic_range(4):\n    «continue»", ("continue",), "number of rounds"),
        ("return", 2, "for k in nl.dynamic_range(4):\n    «return out»", ("return",), "number of rounds"),
        ("in no_reorder", 2, "with nl.no_reorder():\n    for k in «nl.dynamic_range(4)»:\n        nisa.memset(x, 0.0)", ("no_reorder",), "move the loop out"),
        ("write to the counter", 2, "for k in nl.dynamic_range(4):\n    «k» = 3", ("k",), "another name"),
        ("a value that is carried", 2, "n = 0\nfor k in nl.dynamic_range(4):\n    «n» = n + 1\n    nisa.memset(x, 0.0)", ("n",), "register"),
    ],
    "nki-unsupported-class": [
        ("base class", 2, "class B$(«dict»): pass\n@@\ny = B$()", ("dict",), ""),
        ("decorator", 2, "@«staticmethod»\ndef f(): pass", ("staticmethod",), ""),
        ("keyword", 2, "class M$(type): pass\nclass C$(«metaclass=M$»): pass\n@@\ny = C$()", ("metaclass",), ""),
        ("bare expression", 2, "class C$(nl.NKIObject):\n    «1 + 1»\n@@\ny = C$()", (), ""),
    ],
    "nki-unsupported-format": [("format", 2, "print(«f'{1.5:.2f}'»)", ("format",), "")],
    "nki-argument": [
        ("integer out of range", 2, "nisa.memset(i, «1 << 70»)", ("more than 64 bits",), ""),
        ("list as argument", 2, "@nki.jit\ndef k$(a, b): return a\n\n\nk$(np.zeros((4, 4), np.float32), [1])\n", ("list",), "tuple"),
        ("object without __dict__", 2, "@nki.jit\ndef k$(a, b): return a\n\n\nk$(np.zeros((4, 4), np.float32), object())\n", ("object",), "")],
    "nki-call": [
        ("missing", 2, "«nisa.memset(x)»", ('"value" is missing',), "memset("), ("unknown", 2, "nisa.memset(x, 0.0, «valu=3»)", ('no parameter "valu"',), "memset("),
        ("too many", 2, "nisa.memset(x, 0.0, None, «1», 2, 3)", ("6 arguments", "3 parameters"), "memset("), ("wrong kind", 2, "nisa.memset(«[x]», 0.0)", ("must be a tensor", "list"), None),
        ("builtin's keyword", 2, "y = «sorted([1], revers=True)»", ("revers",), None)],
    "nki-name": [
        ("name", 2, "y = «not_there»", ("not_there is not defined",), None), ("attribute of a tensor", 2, "y = «x.shap»", ("a tensor has no shap",), "shape"),
        ("attribute of a list", 2, "y = «[1].appendd»(2)", ("appendd",), None), ("attribute of a dict", 2, "y = «{}.key»()", ("key",), None),
        ("attribute of a slice", 2, "y = «slice(0, 4).begin»", ("begin",), None)],
    "nki-unknown-api": [("nl", 2, "y = «nl.sofmax»(x)", ("nki.language has no sofmax",), "softmax"), ("nisa", 2, "«nisa.tensor_tensr»(x, x, x, nl.add)", ("nki.isa has no tensor_tensr",), "tensor_tensor")],
    "nki-removed-api": [
        (f"nki.{n}", 2, f"«nki.{n}(x)»", (f"nki.{n}", "earlier NKI"), "") for n in ("baremetal", "benchmark", "profile", "simulate_kernel")] + [
        ("tensor_copy_dynamic_src", 2, "«nisa.tensor_copy_dynamic_src»(x)", ("tensor_copy_dynamic_src", "earlier NKI"), "view"),
        ("dst_rmw_op", 2, "nisa.dma_copy(out, x, «dst_rmw_op=nl.add»)", ("dst_rmw_op",), "dma_compute"),
        ("psumAccumulateFlag", 2, "nisa.nc_matmul(p, x[:, 0:128], x, «psumAccumulateFlag=1»)", ("psumAccumulateFlag",), "accumulate"),
        ("platform_target", 2, "@«nki.jit(platform_target='trn2')»\ndef k$(a: nl.tensor[4, 4]): return a\n", ("platform_target",), ""),
        ("string buffer", 2, "y = nl.ndarray((4, 4), nl.float32, buffer=«'sbuf'»)", ("sbuf",), "nl.sbuf"),
        ("integer enum", 2, "nisa.memset(x, 0.0, engine=«7»)", ("engine=7",), "nisa.engine")],
    "nki-mixed-generations": [("beta-1 name", 2, "y = «nl.static_cast»(x, nl.float32)", ("static_cast", "earlier NKI"), "type")],
    "nki-mask-removed": [
        ("mask", 2, "nisa.tensor_tensor(x, x, x, nl.add, «mask=True»)", ("no mask",), "slice")] + [
        (n, 2, f"y = «nl.{n}»{args}", (f"nki.language.{n}", "earlier NKI"), "") for n, args in (("arange", "(128)"), ("mgrid", "[0:4, 0:4]"), ("par_dim", "(128)"))],
    "nki-operator": [
        ("operator for function", 2, "nisa.activation(x, «nl.add», x)", ("add is an operator",), ""), ("function for operator", 2, "nisa.tensor_tensor(x, x, x, «nl.exp»)", ("exp is a function",), "nisa.activation"),
        ("logical_not", 2, "nisa.tensor_scalar(x, x, «nl.logical_not», 1.0)", ("logical_not", "no engine"), "nl.equal")],
    "nki-dtype": [
        ("unknown", 2, "y = nl.ndarray((4, 4), «'float7'»)", ("'float7' is not a data type",), "nl.float32"),
        ("unsupported", 2, "nisa.tensor_tensor(«x», x, x, nl.bitwise_and)", ("has the type float32",), "")],
    "nki-memory": [
        ("psum wanted", 2, "nisa.nc_matmul(«x», x, x)", ("dst is in sbuf", "must be in psum"), "buffer=nl.psum"), ("HBM given", 2, "nisa.tensor_copy(x, «a»)", ("src is in shared_hbm", "must be in psum or sbuf"), "copy it to SBUF"),
        ("HBM given", 1, "y = nl.exp(«a»)", ("a is in", "SBUF and PSUM"), "nl.load")],
    "nki-bounds": [
        ("index", 2, "y = «x[:, 512]»", ("512", "512 elements"), "0 to 511"), ("slice", 2, "y = «x[:, 0:513]»", ("0:513", "512"), "stop <= 512"), ("step", 2, "y = «x[:, 0:4:0]»", ("step", "0"), "at least 1"),
        ("too many indices", 2, "y = «x[0, 0, 0]»", ("3 indices for 2 dimensions",), "..."), ("index tiles", 1, "y = nl.load(«a[nl.arange(128)[:, None], nl.arange(513)[None, :]]»)", ("512", "512 elements"), "mask")],
    "nki-size-limit": [
        ("partitions", 2, "y = nl.ndarray(«(129, 4)», nl.float32)", ("129", "128"), "pmax"), ("dimension", 2, "nisa.nc_matmul(p, «x[:, 0:129]», x)", ("129", "128"), ""),
        ("rank", 2, "y = nl.ndarray(«(1,) * 9», nl.float32)", ("9 entries", "at most 8"), "merge"), ("partitions", 1, "y = nl.ndarray(«(nl.par_dim(129), 4)», nl.float32)", ("129", "128"), "pmax")],
    "nki-shape-mismatch": [
        ("partitions", 2, "nisa.tensor_copy(x, «x[0:64]»)", ("src has 64 partitions", "dst has 128"), "slice"), ("elements", 2, "nisa.tensor_copy(x, «x[:, 0:3]»)", ("3 elements", "512"), "slice")],
    "nki-operand": [
        ("bias", 2, "nisa.activation(x, nl.exp, x, bias=«x»)", ("bias has 512 elements",), ""), ("scale", 2, "nisa.activation(x, nl.exp, x, scale=«x»)", ("scale has 512 elements",), ""),
        ("both in PSUM", 2, "nisa.tensor_tensor(x, «p», p, nl.add)", ("data1 and data2 are both in PSUM",), "")],
    "nki-address": [("partition", 2, "nisa.memset(«x[16:32]», 0.0)", ("16 partitions from 16",), "0, 32, 64 or 96")],
    "nki-view": [
        ("reshape against the order", 2, "y = «x.reshape((128, 4, 128)).permute((0, 2, 1)).reshape((128, 512))»", ("order",), "copy it"),
        ("partitions reshaped", 2, "y = «x.reshape((64, 1024))»", ("partition",), ""), ("partitions permuted", 2, "y = «x.permute((1, 0))»", ("partition",), "")],
    "nki-affine-dependence": [("two writes", 1, "for k in nl.affine_range(4):\n    «nl.store(out[0:128, 0:512], x)»", ("out",), "sequential_range")],
    "nki-scope": [("used after the loop", 1, "for k in nl.affine_range(2):\n    y = nl.exp(x)\nz = nl.exp(«y»)", ("y is made inside",), "before")],
    "nki-output": [
        ("not in shared_hbm", 2, "return «x»", ("x is in sbuf", "shared_hbm"), "nl.ndarray"), ("never written", 2, "«return out»", ("nothing is written", "out"), "nl.store"),
        ("immutable one written", 1, "nl.store(a, x)", ("a is written, but not returned",), "mutable_tensor"),
        ("in a loop", 1, "for k in nl.affine_range(2):\n    y = nl.ndarray((4, 4), dtype=nl.float32, buffer=«nl.shared_hbm»)", ("inside of a loop",), "before the loop")],
    "nki-name-in-use": [("tensor", 2, "y = nl.ndarray((4, 4), nl.float32, name='t')\nz = nl.ndarray((4, 4), nl.float32, name=«'t'»)", ("'t'",), "another name")],
    "nki-grid": [("axis", 2, "y = nl.program_id(«1»)", ("one axis", "program_id(1)"), "nl.program_id(0)")],
    "nki-assert": [("message", 2, "assert «a.shape[0] == 64», 'rows'", ("rows",), None)],
    "nki-host-error": [("division by zero", 2, "y = «1 // 0»", ("ZeroDivisionError",), None)],
    "nki-memory-full": [
        ("SBUF", 2, "y, z = nl.ndarray((128, 40000), nl.float32), nl.ndarray((128, 40000), nl.float32)\nnisa.memset(y, 1.0)\nnisa.memset(z, 2.0)\n"
         "nisa.tensor_tensor(x, y[:, 0:512], z[:, 0:512], nl.add)", ("322048 bytes", "every SBUF partition"), "smaller tiles"),
        ("PSUM tensor not at a bank's start", 2, "y = nl.ndarray((128, 4), nl.float32, buffer=nl.psum, address=(0, 1000))\nnisa.nc_matmul(y, x[:, 0:128], x[:, 0:4])",
         ("1000", "2048"), "multiple")],
}
