"""NKI beta 1, where the vendor's package is not installed: the tracer records kernels, and the simulator runs them."""
import _nkx
from nkx import nki_framework, nki_names, nki_run
from nkx.nki_run import simulate  # noqa: F401

__nkx_stub__ = True
GENERATION = 1  # NKI_BETA_1 of compiler/trace/kernels.h
simulate_kernel, baremetal, benchmark, profile = nki_run.ways_to_run(GENERATION)
__getattr__ = nki_names.attribute_of("neuronxcc.nki", modules={"compiler", "isa", "language", "typing"})
FrameworkKernel = nki_framework.kernel_class(GENERATION)


def jit(fn=None, **options):
    """Makes a function a kernel of beta 1; its mode does not matter."""
    nki_run.check_options(options, GENERATION)
    return jit if fn is None else _nkx.nki_kernel(fn, GENERATION)


def trace(fn=None, **options):
    """A function that kernels call."""
    return trace if fn is None else fn


nki_jit = jit
