"""Compiled kernels against NumPy."""
import numpy as np
from nkx import package

from .llvm import LLVMModule

__all__ = ["LLVMModule", "verify_against_numpy"]


def _random(info, rng):
    if info.dtype.kind in "biu":
        return rng.randint(0, 2 if info.dtype.kind == "b" else 4, info.shape).astype(info.dtype)
    if info.dtype.kind == "c":
        return np.asarray(rng.rand(*info.shape) + 1j * rng.rand(*info.shape)).astype(info.dtype)
    return np.asarray(rng.rand(*info.shape)).astype(info.dtype)


def _tolerance(dtype):
    """(rtol, atol): a few roundings of the type, since sums are taken in another order."""
    if dtype.kind in "biu":
        return 0, 0
    eps = float(package.ml_dtypes.finfo(np.float32 if dtype.kind == "c" else dtype).eps)
    return 64 * eps, 32 * eps


def verify_against_numpy(kernel, inputs=None, stop_after=None, rtol=None, atol=None, target="trn2", seed=42,
                         is_simulated=False):
    """Runs a @trace kernel as machine code, or its instructions on the simulated machine, and compares every output with the plain function on the same arrays.

    inputs: arrays, or None for random ones.  stop_after: the stage that runs (a pass before NISA); None for the linalg
    that the kernel is lowered to.  AssertionError says what differs; returns the outputs.
    """
    code, rng = package.code_of(kernel), np.random.RandomState(seed)
    arrays = [_random(i, rng) for i in code.inputs] if inputs is None else [np.asarray(a) for a in inputs]
    call = package.compiler().simulate if is_simulated else package.compiler().run
    if is_simulated:
        program = code.simulator(target)
    elif stop_after is None:
        program = code.load()
    else:
        text = code.stages(stop_after, target)[-1][1]
        program = package.compiler().load(text, code.name)["program"]
    got = package.run_program(program, code.inputs, code.outputs, arrays, call)
    copies = [np.array(a, i.dtype) for i, a in zip(code.inputs, arrays)]
    with np.errstate(all="ignore"):
        r = package.function_of(kernel)(*copies)
    returned = [] if r is None else list(r) if isinstance(r, (tuple, list)) else [r]
    for k, info in enumerate(code.outputs):
        want = copies[info.alias_of] if info.alias_of >= 0 else np.asarray(returned[k])
        assert want.shape == info.shape, f"{info.name} has shape {info.shape}, with NumPy {want.shape}"
        r, a = _tolerance(info.dtype)
        wide = np.complex128 if info.dtype.kind == "c" else np.float64
        np.testing.assert_allclose(got[k].astype(wide), want.astype(wide), rtol=r if rtol is None else rtol,
                                   atol=a * max(1, np.max(np.abs(want.astype(wide)), initial=0))
                                   if atol is None else atol,
                                   err_msg=f"{code.name}, {info.name}, {'instructions' if is_simulated else stop_after or 'linalg'}")
    return got
