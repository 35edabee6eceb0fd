"""The largest element of each row and its index, for rows that are longer than one instruction takes."""
import nki
import nki.isa as nisa
import nki.language as nl

from ..utils.kernel_helpers import div_ceil

STAGE = 2048


@nki.jit
def cascaded_max(x):
    """x: (rows, n) with up to 128 rows.  Returns values (rows, 1) and indices (rows, 1) in uint32.

    The maxima of the parts come first; the index is searched for in all parts, and the first one that has it counts."""
    rows, n = x.shape
    values = nl.ndarray((rows, 1), x.dtype, buffer=nl.shared_hbm)
    indices = nl.ndarray((rows, 1), nl.uint32, buffer=nl.shared_hbm)
    parts = div_ceil(n, STAGE)
    tile = nl.ndarray((rows, n), x.dtype)
    nisa.dma_copy(dst=tile, src=x)
    maxima = nl.ndarray((rows, max(8, parts)), nl.float32)
    nisa.memset(dst=maxima, value=-3.0e38)
    for i in range(parts):
        nisa.tensor_reduce(dst=maxima[:, i:i + 1], op=nl.maximum, data=tile[:, i * STAGE:min(n, (i + 1) * STAGE)], axis=1)
    best, top = nl.ndarray((rows, 8), nl.float32), nl.ndarray((rows, 1), x.dtype)
    nisa.max8(dst=best, src=maxima)
    nisa.tensor_copy(dst=top, src=best[:, 0:1])
    found = nl.ndarray((rows, parts), nl.float32)
    for i in range(parts):
        width = min(n, (i + 1) * STAGE) - i * STAGE
        wanted, at = nl.ndarray((rows, 8), x.dtype), nl.ndarray((rows, 8), nl.uint32)
        nisa.tensor_copy(dst=wanted, src=best[:, 0:1].broadcast(1, 8))
        nisa.nc_find_index8(dst=at, data=tile[:, i * STAGE:i * STAGE + width], vals=wanted)
        # a part without it has all ones, which as a number is larger than every index
        nisa.tensor_copy(dst=found[:, i:i + 1], src=at[:, 0:1])
        nisa.tensor_scalar(dst=found[:, i:i + 1], data=found[:, i:i + 1], op0=nl.add, operand0=float(i * STAGE))
    first = nl.ndarray((rows, 1), nl.float32)
    nisa.tensor_reduce(dst=first, op=nl.minimum, data=found, axis=1)
    result = nl.ndarray((rows, 1), nl.uint32)
    nisa.tensor_copy(dst=result, src=first)
    nisa.dma_copy(dst=values, src=top)
    nisa.dma_copy(dst=indices, src=result)
    return values, indices
