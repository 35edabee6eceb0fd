"""Places of what is not zero, and a flat copy of blocks at places that are data."""
import nki
import nki.isa as nisa
import nki.language as nl

from ..utils.kernel_assert import kernel_assert

ROWS_OF_RESULTS = 16


@nki.jit
def find_nonzero_indices(x, row_start: int = 0, chunk: int = None):
    """x: (rows, n) with up to 8 rows.  Returns the indices of what is not zero, (rows, n) in int32 and filled up with -1,
    and their numbers, (rows, 1).

    nonzero_with_count works on one partition of 16, so rows are put on those."""
    rows, n = x.shape
    kernel_assert(rows <= nl.tile_size.pmax // ROWS_OF_RESULTS, f"{rows} rows do not fit")
    chunk = chunk if chunk is not None else n
    kernel_assert(n % chunk == 0, f"{n} columns are not chunks of {chunk}")
    indices = nl.ndarray((rows, n), nl.int32, buffer=nl.shared_hbm)
    counts = nl.ndarray((rows, n // chunk), nl.int32, buffer=nl.shared_hbm)
    spread = nl.ndarray((nl.tile_size.pmax, n), nl.float32, buffer=nl.sbuf)
    nisa.memset(dst=spread, value=0.0)
    for r in range(rows):
        nisa.dma_copy(dst=spread[r * ROWS_OF_RESULTS:r * ROWS_OF_RESULTS + 1, :], src=x[r:r + 1, :])
    for c in range(n // chunk):
        found = nl.ndarray((nl.tile_size.pmax, chunk + 1), nl.int32, buffer=nl.sbuf)
        nisa.memset(dst=found, value=0)
        nisa.nonzero_with_count(dst=found, src=spread[:, c * chunk:(c + 1) * chunk], index_offset=row_start + c * chunk, padding_val=-1)
        for r in range(rows):
            row = found[r * ROWS_OF_RESULTS:r * ROWS_OF_RESULTS + 1, :]
            nisa.dma_copy(dst=indices[r:r + 1, c * chunk:(c + 1) * chunk], src=row[:, 0:chunk])
            nisa.dma_copy(dst=counts[r:r + 1, c:c + 1], src=row[:, chunk:chunk + 1])
    return indices, counts


@nki.jit
def indexed_flatten(x, row_of, padding_value=-1):
    """x: (groups, f) in int32, row_of: (groups, 1).  Returns (groups * f,) in which row i of x stands at row row_of[i]; other
    places hold padding_value, and groups whose number is out of range are left out."""
    groups, f = x.shape
    kernel_assert(groups <= nl.tile_size.pmax, f"{groups} groups do not fit on partitions")
    out = nl.ndarray((groups * f,), x.dtype, buffer=nl.shared_hbm)
    tile, fill = nl.ndarray((groups, f), x.dtype), nl.ndarray((groups, f), x.dtype)
    at = nl.ndarray((groups, 1), nl.int32)
    nisa.memset(dst=fill, value=padding_value)
    nisa.dma_copy(dst=out.reshape((groups, f)), src=fill)
    nisa.dma_copy(dst=tile, src=x)
    nisa.dma_copy(dst=at, src=row_of)
    # a row of out is one element, so the numbers count elements
    nisa.tensor_scalar(dst=at, data=at, op0=nl.multiply, operand0=float(f))
    nisa.dma_copy(dst=out.ap(pattern=[[f, groups], [1, f]], offset=0, vector_offset=at, indirect_dim=0), src=tile,
                  oob_mode=nisa.oob_mode.skip)
    return out
