"""NKI kernels inside NumPy kernels: see nkx/nki_kernel.py."""
import _nkx
from nkigen.custom_op import CustomOp
from nkx import nki_kernel

__all__ = ["NKICustomOp", "nki_custom_op", "wrap_nki_kernel"]

nki_kernel.take_over_jit()


def wrap_nki_kernel(kernel, operands, grid=(), is_nki_beta_2_version=False, is_nki_beta_3_version=False, **options):
    """A function that calls the kernel on tensors of the operands' shapes; keyword options are its compile-time values.
    The flags are ignored: the generation is known from the kernel, or from the modules of the vendor's front end."""
    is_ours = nki_kernel.is_ours(kernel)  # which is recorded for each trace
    traced = None if is_ours else nki_kernel.trace_vendor(kernel, tuple(map(nki_kernel.stand_in, operands)), options, grid)
    shapes = [o.shape for o in operands if nki_kernel.is_tensor(o)]

    def call(*args):
        got = [a.shape for a in args if nki_kernel.is_tensor(a)]
        if got != shapes:
            raise ValueError(f"{nki_kernel.name_of(kernel)} was traced for operands of shape {shapes}, not {got}")
        if is_ours:
            return nki_kernel.call(kernel, args, options, grid)
        return nki_kernel.emit(kernel, traced, args, options)

    return call


class NKICustomOp:
    """One operation with an implementation in NKI, one for nkigen's kernel builder, or both."""

    def __init__(self, nki_kernel=None, kernel_builder=None, input_specs=None, output_specs=None):
        if nki_kernel is None and kernel_builder is None:
            raise ValueError("nki_custom_op needs nki_kernel or kernel_builder")
        if kernel_builder is not None and (input_specs is None or output_specs is None):
            raise ValueError("kernel_builder needs input_specs and output_specs")
        self.nki_kernel, self.kernel_builder = nki_kernel, kernel_builder
        self.input_specs, self.output_specs = input_specs, output_specs

    def __call__(self, *args):
        if not _nkx.is_tracing() and not (self.nki_kernel and nki_kernel.is_ours(self.nki_kernel)):
            raise RuntimeError("an NKI custom op is called from a kernel that is traced")
        if self.nki_kernel is not None:
            return wrap_nki_kernel(self.nki_kernel, args)(*args)
        return CustomOp.from_kernel_builder(self.kernel_builder, self.input_specs, self.output_specs)(*args)


def nki_custom_op(*, nki_kernel=None, kernel_builder=None, input_specs=None, output_specs=None):
    return NKICustomOp(nki_kernel, kernel_builder, input_specs, output_specs)
