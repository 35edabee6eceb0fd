"""The sources of kernels that calls and forms become, and their inputs."""
import collections
import re

import numpy as np

from support.operations.table import TABLE
from support.paths import ROOT

STORED = """

def stored(write, x):
    y = x + 0 if x.dtype != bool else x | False
    write(y)
    return y
"""


def operations():
    """[(name, callables under numpy, tensor method or None, kind)] of the front end, in the order of its table."""
    text = (ROOT / "compiler/trace/ops.def").read_text()
    rows = re.findall(r'^TRACE_OP\(\w+, "([\w.]+)",\s*(NULL|"[^"]*"),\s*(NULL|"[^"]*"),\s*"(\w+)"', text, re.M)
    return [(name, "" if numpy == "NULL" else numpy[1:-1], None if method == "NULL" else method[1:-1], kind) for name, numpy, method, kind in rows]


# ---- calls: many in one kernel


CALLS_HEAD = "import numpy as np\nimport ml_dtypes\nfrom nkipy.core import ops\n" + STORED


def function(name, calls):
    """One function that returns what all calls give, after their helpers; and its inputs."""
    arrays = {n: a for c in calls for n, a in c.arrays.items()}
    helpers = "".join(f"\n\n{text}" for c in calls for text in c.helpers.values())
    lines = "".join(f"        {c.expression},\n" for c in calls)
    return f"{helpers}\n\ndef {name}({', '.join(arrays)}):\n    return (\n{lines}    )\n", arrays


def kernel(calls):
    """A source with one kernel of all calls, and its inputs."""
    text, arrays = function("kernel", calls)
    return CALLS_HEAD + text, arrays


def kernels(groups):
    """A source with a kernel for each group of calls, and the inputs of all."""
    source, inputs = f"from nkigen import trace\n{CALLS_HEAD}", {}
    for k, calls in enumerate(groups):
        text, arrays = function(f"kernel_{k}", calls)
        specs = f"@trace(input_specs={[(a.shape, a.dtype.name) for a in arrays.values()]!r})\n"
        source += text.replace(f"def kernel_{k}(", f"{specs}def kernel_{k}(", 1)
        inputs |= arrays
    return source, inputs


# ---- forms: each a kernel


FORMS_HEAD = ("import numpy as np\nimport nkipy.distributed.collectives as cc\nfrom nkigen import trace\nfrom nkipy.core import ops\n"
              + STORED + "\n\n")
SHAPES = ((130, 7), (256, 33))  # R by C: two tiles of partitions, the second one short; whole tiles

Form = collections.namedtuple("Form", "name op number source")


def _parameters(dtype, r, c):
    return {"x": ((r, c), dtype), "y": ((r, c), dtype), "p": ((r, c), dtype), "c": ((r, c), "bool"), "d": ((r, c), "bool"),
            "s": ((1, c), dtype), "t": ((r, 1), dtype), "i": ((c,), "i32")}


def forms(shapes=SHAPES):
    """A kernel for every form, dtype and shape; parameters that it does not use are left out."""
    made = []
    for op, row in TABLE.items():
        for n, form in enumerate(row.forms):
            only, text = re.match(r"(?:([fi]):)?(.*)$", form).groups()
            for r, c in shapes:
                for dtype in ("f32", "i32"):
                    if only and only != dtype[0] or (dtype == "i32" and not re.search(r"\b[xypst]\b", text)):
                        continue
                    specs = {v: spec for v, spec in _parameters(dtype, r, c).items() if re.search(rf"\b{v}\b", text)}
                    name = f"{op.replace('.', '_')}_{n}_{dtype}_{r}x{c}"
                    body = re.sub(r"\bR\b", str(r), re.sub(r"\bC\b", str(c), text))
                    made.append(Form(name, op, n, f"@trace(input_specs={list(specs.values())!r})\n"
                                                  f"def {name}({', '.join(specs)}):\n    return {body}\n"))
    return made


def form_inputs(kernel, rng):
    """Values for a form's parameters: ties in x, no zero in y and p, indices in range."""
    made = []
    for tensor in kernel["inputs"]:
        name, shape, t = tensor["name"], tensor["shape"], tensor["dtype"]
        if t == "bool":
            made.append(rng.integers(0, 2, shape).astype(bool))
        elif name == "i":
            made.append(rng.integers(-5, shape[0], shape).astype(np.int32))
        elif t == "int32":
            x = rng.integers(1 if name in "yp" else -7, 8, shape)
            made.append((x * (rng.choice([-1, 1], shape) if name == "y" else 1)).astype(np.int32))
        else:
            x = rng.uniform(0.25, 3, shape) * (1 if name == "p" else rng.choice([-1, 1], shape))
            made.append(x.astype(np.float32))
    return made
