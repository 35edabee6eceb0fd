"""Sums along the last axis, each of all elements up to its own."""
import nki
import nki.isa as nisa
import nki.language as nl

from ..utils.kernel_assert import kernel_assert
from ..utils.kernel_helpers import shard
from ..utils.tiled_range import Tile, TiledRange

F_TILE = 512


@nki.jit
def cumsum(x, axis=-1):
    """x: (…, n).  The rows are divided between the cores; a row is computed in tiles, each of which goes on from the last
    column of the one before it."""
    kernel_assert(axis in (-1, len(x.shape) - 1), f"only the last axis can be summed, not axis {axis}")
    rows = 1
    for n in x.shape[:-1]:
        rows *= n
    flat = x.reshape((rows, x.shape[-1]))
    out = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)
    flat_out = out.reshape((rows, x.shape[-1]))
    first, count = shard(rows)
    for p in TiledRange(Tile(0, first, count), nl.tile_size.pmax):
        carry = nl.ndarray((p.size, 1), nl.float32, buffer=nl.sbuf)
        nisa.memset(dst=carry, value=0.0)
        ones = nl.ndarray((p.size, F_TILE), nl.float32, buffer=nl.sbuf)
        nisa.memset(dst=ones, value=1.0)
        for f in TiledRange(x.shape[-1], F_TILE):
            tile = nl.ndarray((p.size, f.size), x.dtype, buffer=nl.sbuf)
            nisa.dma_copy(dst=tile, src=flat[p.start:p.end, f.start:f.end])
            sums = nl.ndarray((p.size, f.size), nl.float32, buffer=nl.sbuf)
            nisa.tensor_tensor_scan(dst=sums, data0=ones[:, 0:f.size], data1=tile, initial=carry, op0=nl.multiply, op1=nl.add)
            nisa.tensor_copy(dst=carry, src=sums[:, f.size - 1:f.size])
            if x.dtype != nl.float32:
                narrow = nl.ndarray((p.size, f.size), x.dtype, buffer=nl.sbuf)
                nisa.tensor_copy(dst=narrow, src=sums)
                sums = narrow
            nisa.dma_copy(dst=flat_out[p.start:p.end, f.ds()], src=sums)
    return out
