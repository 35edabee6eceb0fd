"""NKI 0.3 and later, where the vendor's package is not installed: the tracer records kernels, and the simulator runs them."""
import _nkx
from nkx import nki_framework, nki_names, nki_registers, nki_run
from nkx.nki_run import simulate  # noqa: F401

__nkx_stub__ = True
GENERATION = 2  # NKI_GA of compiler/trace/kernels.h
__getattr__ = nki_names.attribute_of("nki", modules={"isa", "language", "typing"})
# Newer versions of NKI have these no more; outside of kernels they do here what they did.
simulate_kernel, baremetal, benchmark, profile = nki_run.ways_to_run(GENERATION)
FrameworkKernel = nki_framework.kernel_class(GENERATION)


def jit(fn=None, **options):
    """Makes a function an NKI kernel; @jit, @jit() and @jit(mode=…) mean the same."""
    nki_run.check_options(options)
    if fn is None:
        return jit
    return _nkx.nki_kernel(nki_registers.rewritten(fn), GENERATION)


trace = jit
