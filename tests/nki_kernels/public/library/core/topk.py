"""The k largest elements of each row and their indices, eight at a time."""
import nki
import nki.isa as nisa
import nki.language as nl

from ..utils.kernel_assert import kernel_assert
from ..utils.kernel_helpers import div_ceil
from ..utils.tiled_range import TiledRange

LOWEST = -3.0e38


@nki.jit
def topk(x, k=20, sorted=True):
    """x: (rows, n).  Returns values (rows, k), from the largest on, and indices (rows, k) in uint32.

    Each round takes the eight largest, finds their places, and replaces them by a number below all others."""
    rows, n = x.shape
    kernel_assert(8 <= n <= 16384, f"a row has {n} elements")
    kernel_assert(0 < k <= n, f"k is {k}")
    values = nl.ndarray((rows, k), x.dtype, buffer=nl.shared_hbm)
    indices = nl.ndarray((rows, k), nl.uint32, buffer=nl.shared_hbm)
    rounds = div_ceil(k, 8)
    for p in TiledRange(rows, nl.tile_size.pmax):
        now = nl.ndarray((p.size, n), nl.float32, buffer=nl.sbuf)
        nisa.dma_copy(dst=now, src=x[p.start:p.end, :])
        best = nl.ndarray((p.size, rounds * 8), nl.float32, buffer=nl.sbuf)
        at = nl.ndarray((p.size, rounds * 8), nl.uint32, buffer=nl.sbuf)
        for r in range(rounds):
            eight = slice(r * 8, (r + 1) * 8)
            nisa.max8(dst=best[:, eight], src=now)
            nisa.nc_find_index8(dst=at[:, eight], data=now, vals=best[:, eight])
            if r + 1 < rounds:
                after = nl.ndarray((p.size, n), nl.float32, buffer=nl.sbuf)
                nisa.nc_match_replace8(dst=after, data=now, vals=best[:, eight], imm=LOWEST)
                now = after
        result = best
        if x.dtype != nl.float32:
            result = nl.ndarray((p.size, rounds * 8), x.dtype, buffer=nl.sbuf)
            nisa.tensor_copy(dst=result, src=best)
        nisa.dma_copy(dst=values[p.start:p.end, :], src=result[:, 0:k])
        nisa.dma_copy(dst=indices[p.start:p.end, :], src=at[:, 0:k])
    return values, indices
