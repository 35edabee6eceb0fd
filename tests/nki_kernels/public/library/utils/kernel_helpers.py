"""What most kernels need: rounding up, the part of a core, sizes of types."""
from typing import Tuple

import nki.isa as nisa
import nki.language as nl

from .kernel_assert import kernel_assert

_BYTES = {"float32": 4, "bfloat16": 2, "float16": 2, "int32": 4, "uint32": 4, "float8_e4m3": 1, "uint8": 1}


def div_ceil(n: int, d: int) -> int:
    return (n + d - 1) // d


def dtype_bytes(dtype) -> int:
    return _BYTES[str(dtype)]


def program_sharding_info() -> Tuple[int, int]:
    """(number of cores, this core's number); one core where the kernel is not launched on several."""
    if nl.program_ndim() == 0:
        return 1, 0
    n, me = nl.num_programs(axes=0), nl.program_id(axis=0)
    kernel_assert(n in (1, 2), f"a launch has 1 or 2 cores, not {n}")
    return n, me


def shard(size: int, unit: int = 1) -> Tuple[int, int]:
    """(first, number) of this core's part of `size` elements; a multiple of `unit` where it can be."""
    n, me = program_sharding_info()
    part = div_ceil(div_ceil(size, unit), n) * unit
    first = min(size, me * part)
    return first, min(part, size - first)


def is_at_least_gen3() -> bool:
    return nisa.get_nc_version() >= nisa.nc_version.gen3


def load_broadcast(vector, partitions: int, dtype=None):
    """A vector in HBM, repeated in every partition."""
    (n,) = vector.shape
    row = nl.ndarray((partitions, n), dtype if dtype is not None else vector.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=row, src=vector.ap(pattern=[[0, partitions], [1, n]]))
    return row


def transpose_to(dst, src, through=None):
    """dst = src.T by the Tensor engine, for up to 128 by 128 elements."""
    p, f = src.shape
    psum = nl.ndarray((f, p), src.dtype, buffer=nl.psum)
    nisa.nc_transpose(dst=psum, data=src)
    nisa.tensor_copy(dst=dst, src=psum)
