"""What a module computes before and after `nkx opt --pass`.

    after = values.check(TEXT, ["remove-redundant-zero-fill"], rng)        # same results on random inputs, or it fails
    after = values.opt(TEXT, "canonicalize-loop-step")                     # only the text
    got = values.run(text, inputs)                                         # only the numbers (oracles/llvm.py)
"""
import numpy as np

from support import warm
from support.oracles.llvm import run, signature
from support.oracles.mlir import normalize


class Refused(Exception):
    """nkx opt ended with an error; str() is what it said."""


def opt(text, *passes):
    """The text after `nkx opt` with these passes ("name" or "name=options")."""
    done = warm.run("opt", *(f"--{p}" for p in passes), "-", input=text.encode())
    if done.returncode == 1:
        raise Refused(done.stderr.decode())
    assert done.returncode == 0, f"nkx opt {passes}: exit {done.returncode}\n{done.stderr.decode()[:3000]}\n{text[:4000]}"
    return done.stdout.decode()


def random_inputs(text, rng):
    """One array per argument: floats away from zero, so that quotients stay tame; integers in [-9, 9] without 0."""
    made = []
    for shape, dtype in signature(normalize(text))[1]:
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
