"""The kernels of this directory: how one is stated, and the source text that the product gets of it.

    @kernel(3, "256x256", "256x1 f32 0.5:2", EPS=1e-6)
    def rmsnorm(x, w): ...                     # an ordinary kernel; put(...) is its knobs

    formulas(1, {"exp": "np.exp(x)"}, "128x256", tile=[64, 128])

Inputs: shape, dtype (f32 if not said), range (uniform; integers without the upper end).  Capitals are constants: they
stand in the text as numbers, so that one function serves several sizes.  A function that others call is named by
`uses`.  Every kernel has the variant "plain" and, if it says put, "builder"; with forms=ALL_FORMS also the two function
forms of the knob.  `needs` names features of the front end (left_out.py).
Levels: 1 one operation, 2 a few, 3 sensitive to tiling and layout, 4 attention, norms, MLP, 5 whole layers.
"""
import ast
import copy
import dataclasses
import inspect
import sys
import textwrap

import ml_dtypes
import numpy as np

SBUF, HBM, SHARED = "Sbuf", "Hbm", "SharedHbm"
ALL_FORMS = ("builder", "function", "old")
DTYPES = {"f32": "float32", "f16": "float16", "bf16": "bfloat16", "i32": "int32", "i8": "int8", "bool": "bool"}
KERNELS = {}  # by name

HEAD = """import ml_dtypes
import numpy as np
from nkigen import knob, trace as specified
from nkigen.apis import fori_loop
from nkipy import knob as mark
from nkipy.core.compile import trace
from nkipy_kernelgen.knob import knob as annotate

SBUF, HBM, SHARED = "Sbuf", "Hbm", "SharedHbm"


def draw(seed, shape, dtype, low, high):
    rng = np.random.default_rng(seed)
    if np.dtype(dtype).kind in "iub":
        return rng.integers(low, high, shape).astype(dtype)
    return rng.uniform(low, high, shape).astype(np.float32).astype(dtype)

"""
PUT = {
    "plain": "",
    "builder": """
def put(x, tile, space=None, reduction=(), dim=None):
    knob.knob(x).tile_op(tile_size=[*tile, *reduction]).layout(mem_space=space, partition_dim=dim)
""",
    "function": """
def put(x, tile, space=None, reduction=(), dim=None):
    mark(x, mem_space=space, partition_dim=dim, tile_size=tile, reduction_tile=list(reduction) or None)
""",
    "old": """
def put(x, tile, space=None, reduction=(), dim=None):
    annotate(x, mem_space=space, partition_dim=dim, tile_size=tile, reduction_tile=list(reduction) or None)
""",
}


def draw(seed, shape, dtype, low, high):
    """As in HEAD: the same arrays in the test as in the kernel's source."""
    rng = np.random.default_rng(seed)
    if np.dtype(dtype).kind in "iub":
        return rng.integers(low, high, shape).astype(dtype)
    return rng.uniform(low, high, shape).astype(np.float32).astype(dtype)


@dataclasses.dataclass
class Input:
    shape: tuple
    dtype: str
    low: float
    high: float
    ranged: bool

    @staticmethod
    def parse(text):
        shape, dtype, low, high, ranged = (), "f32", -1.0, 1.0, False
        for i, word in enumerate(text.split()):
            if i == 0:
                shape = tuple(int(d) for d in word.split("x")) if word != "scalar" else ()
            elif ":" in word:
                low, high = (float(v) for v in word.split(":"))
                ranged = True
            else:
                dtype = word
        if dtype in ("i32", "i8", "bool") and not ranged:
            low, high = 0, 2 if dtype == "bool" else 8
        return Input(shape, dtype, low, high, ranged)

    def numpy_dtype(self):
        return ml_dtypes.bfloat16 if self.dtype == "bf16" else np.dtype(DTYPES[self.dtype])

    def array(self, seed):
        return draw(seed, self.shape, self.numpy_dtype(), self.low, self.high)

    def expression(self, seed):
        name = "ml_dtypes.bfloat16" if self.dtype == "bf16" else f"np.dtype('{DTYPES[self.dtype]}')"
        return f"draw({seed}, {self.shape!r}, {name}, {self.low!r}, {self.high!r})"


class _Rewrite(ast.NodeTransformer):
    """Puts constants in; without `knobs`, drops the statements that are knobs."""

    def __init__(self, constants, knobs):
        self.constants, self.knobs, self.found = constants, knobs, False

    def visit_Name(self, node):
        if node.id in self.constants and isinstance(node.ctx, ast.Load):
            return ast.parse(repr(self.constants[node.id]), mode="eval").body
        return node

    def visit_Expr(self, node):
        f = node.value.func if isinstance(node.value, ast.Call) else None
        if isinstance(f, ast.Name) and f.id == "put" or isinstance(f, ast.Attribute) and ast.unparse(f).startswith("knob."):
            self.found = True
            return self.generic_visit(node) if self.knobs else None
        return self.generic_visit(node)


@dataclasses.dataclass
class Kernel:
    name: str
    level: int
    inputs: list
    tree: ast.FunctionDef
    uses: tuple = ()
    constants: dict = dataclasses.field(default_factory=dict)
    needs: tuple = ()
    forms: tuple = ("builder",)
    heavy: bool = False  # a check of all its stages takes more than some seconds
    family: str = ""

    def has_knobs(self):
        trees = [self.tree] + [_tree(u) for u in self.uses]
        return any("put(" in ast.unparse(t) or "knob." in ast.unparse(t) for t in trees)

    def variants(self):
        return ("plain", *self.forms) if self.has_knobs() else ("plain",)

    def rewritten(self, tree, variant):
        tree = _Rewrite(self.constants, variant != "plain").visit(copy.deepcopy(tree))
        return ast.unparse(ast.fix_missing_locations(tree))

    def helpers(self, variant):
        return [self.rewritten(_tree(u), variant) for u in self.uses]

    def arrays(self):
        return [p.array(i) for i, p in enumerate(self.inputs)]

    def text(self, variant):
        body = self.rewritten(self.tree, variant)
        if any(p.ranged for p in self.inputs):
            given = ",\n    ".join(p.expression(i) for i, p in enumerate(self.inputs))
            return f"@trace\n{body}\n\n{self.name}.specialize(\n    {given})\n"
        specs = ", ".join(f"({p.shape!r}, {p.dtype!r})" for p in self.inputs)
        return f"@specified(input_specs=[{specs}])\n{body}\n"


def _tree(function):
    tree = ast.parse(textwrap.dedent(inspect.getsource(function))).body[0]
    tree.decorator_list = []
    return tree


def _add(k):
    assert k.name not in KERNELS, k.name
    k.tree.name = k.name
    KERNELS[k.name] = k


def kernel(level, *inputs, name=None, uses=(), needs=(), forms=("builder",), heavy=False, **constants):
    def register(function):
        tree = _tree(function)
        parsed = [Input.parse(i) for i in inputs]
        assert len(parsed) == len(tree.args.args), function.__name__
        family = function.__module__.rsplit(".", 1)[-1]
        _add(Kernel(name or function.__name__, level, parsed, tree, tuple(uses), constants, tuple(needs), forms, heavy, family))
        return function

    return register


def formulas(level, table, *inputs, tile=None, prefix="", family=None, needs=()):
    """One kernel per formula of x, y, z; `tile` is the knob of its result."""
    names = "xyzuvw"[: len(inputs)]
    family = family or sys._getframe(1).f_globals["__name__"].rsplit(".", 1)[-1]
    for name, formula in table.items():
        knob = f"    put(r, {list(tile)}, 'SharedHbm')\n" if tile else ""
        text = f"def k({', '.join(names)}):\n    r = {formula}\n{knob}    return r\n"
        _add(Kernel(prefix + name, level, [Input.parse(i) for i in inputs], ast.parse(text).body[0], needs=tuple(needs),
                    family=family))


def source(members, variant):
    """One file with these kernels (of one variant) and what they call."""
    helpers = list(dict.fromkeys(h for k in members for h in k.helpers(variant)))
    return HEAD + PUT[variant] + "\n\n" + "\n\n".join(helpers + [k.text(variant) for k in members])
