"""A stack of tensors in SBUF, at addresses that the kernel chooses."""
import nki.language as nl

from .kernel_assert import kernel_assert
from .kernel_helpers import dtype_bytes


class SbufManager(nl.NKIObject):
    """alloc_stack() takes the next bytes of each partition, close_scope() gives back those since open_scope()."""

    def __init__(self, first, end, use_auto_alloc=False):
        self.first, self.end, self.at = first, end, first
        self.use_auto_alloc = use_auto_alloc
        self.scopes, self.high = [], first

    def open_scope(self, name=""):
        self.scopes.append(self.at)

    def close_scope(self):
        self.at = self.scopes.pop()

    def alloc_stack(self, shape, dtype, name="", align=4):
        n = dtype_bytes(dtype)
        for size in shape[1:]:
            n = n * size
        self.at = (self.at + align - 1) // align * align
        kernel_assert(self.at + n <= self.end, f"{name} needs {n} bytes at {self.at} of {self.end}")
        address = None if self.use_auto_alloc else (0, self.at)
        self.at = self.at + n
        self.high = max(self.high, self.at)
        return nl.ndarray(shape, dtype, buffer=nl.sbuf, address=address)


def create_auto_alloc_manager():
    return SbufManager(0, nl.tile_size.sbuf_fmax_bytes, use_auto_alloc=True)
