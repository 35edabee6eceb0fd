"""NKI kernels inside of NumPy kernels.  The vendor's compiler, which makes the code that such a call carries, is not here:
what can be said without it is said, and the rest is refused."""
import _nkx
from nkigen.custom_op import CustomOp

__all__ = ["NKICustomOp", "nki_custom_op", "wrap_nki_kernel"]


def _name(kernel):
    return getattr(kernel, "__name__", type(kernel).__name__)


def wrap_nki_kernel(kernel, operands, grid=(), is_nki_beta_2_version=False, is_nki_beta_3_version=False, **options):
    raise NotImplementedError(f"{_name(kernel)}: an NKI kernel inside of a NumPy kernel needs the vendor's NKI compiler; "
                              "compile the NKI kernel by itself")


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
        if not _nkx.is_tracing():
            raise RuntimeError("an NKI custom op is called from a kernel that is traced")
        if self.nki_kernel is not None:
            return wrap_nki_kernel(self.nki_kernel, args)(*args)
        return CustomOp.from_kernel_builder(self.kernel_builder, self.input_specs, self.output_specs)(*args)


def nki_custom_op(*, nki_kernel=None, kernel_builder=None, input_specs=None, output_specs=None):
    return NKICustomOp(nki_kernel, kernel_builder, input_specs, output_specs)
