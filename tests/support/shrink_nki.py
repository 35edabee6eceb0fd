"""A random NKI kernel that fails, with as few statements as still fail in the same way.

    PYTHONPATH=tests python3 -m support.shrink_nki SEED BATCH NUMBER     the kernel of tests/nki_kernels/test_random_nki.py
"""
import re
import sys

import numpy as np

from support import random_nki
from support.nki_model import Model, Unsuitable
from support.runs import simulated


def close(got, want, is_exact):
    """The same numbers; where the order of sums matters, nearly."""
    x, y = got.astype(np.float64), want.astype(np.float64)
    return x.shape == y.shape and (np.array_equal(x, y) if is_exact else np.abs(x - y).max() <= 0.02 * max(1, np.abs(y).max()))


def fault_of(kernel):
    """What is wrong with it on the simulated machine, without places and numbers; None if it computes what the model does."""
    try:
        got, _ = simulated(random_nki.HEAD + kernel.source(), kernel.inputs)
    except AssertionError as e:
        [*codes] = re.findall(r"error: (.*?) \[([\w-]+)\]", str(e))
        return re.sub(r"\w*\d+\w*|0x\w+", "", str(codes or str(e)[:300]))
    wrong = [is_exact for name, want, is_exact in kernel.results() if not close(got[name], want, is_exact)]
    return "values" if wrong else None


def _lists(nodes):
    """All lists of statements in it, the innermost first."""
    for n in nodes:
        for _, inner in getattr(n, "parts", ()):
            yield from _lists(inner)
    yield nodes


def _still(kernel, fails):
    """Evaluates the changed kernel; whether it fails in the same way."""
    kernel.model = Model(kernel.inputs)
    try:
        random_nki.run_all(kernel.model, kernel.nodes)
        outs = kernel.outs
        kernel.outs = [o for o in outs if o in kernel.model.names and kernel.model.names[o].is_set.all()]
        if kernel.outs and fails(kernel):
            return True
        kernel.outs = outs
    except (Unsuitable, KeyError, NameError, IndexError):  # what is left uses what is gone
        pass
    return False


def shrink(kernel, fails):
    changed = True
    while changed:
        changed = False
        for nodes in _lists(kernel.nodes):
            for i in reversed(range(len(nodes))):
                gone = nodes.pop(i)
                if nodes and _still(kernel, fails):
                    changed = True
                else:
                    nodes.insert(i, gone)
    _still(kernel, lambda k: True)
    return kernel


if __name__ == "__main__":
    seed, batch, number = map(int, sys.argv[1:])
    drawn = random_nki.kernel([seed, batch, number], f"k{number}")
    fault = fault_of(drawn)
    print(f"{fault}\n{random_nki.HEAD}{shrink(drawn, lambda k: fault_of(k) == fault).source()}" if fault else "this kernel is right")
