"""Writing to the columns of a tile that numbers select, t.indirect(index), for compiler/trace/nki/columns.c.

There is no instruction for it: the tile goes through HBM, where the 16 elements of a column in a group of partitions are a row, and
rows can be written by number.
"""
import _nkx
from nki import isa

GROUP, ROWS = 16, 128  # partitions that share their numbers; rows of one transfer


def _by_column(tile, n):
    """A copy of a tile in HBM, (groups * columns, partitions of a group), and its view in the order of the tile."""
    t = _nkx.nki_ndarray((tile.shape[0] // GROUP * n, GROUP), tile.dtype, "hbm", "")
    view = t.reshape((tile.shape[0] // GROUP, n, GROUP)).permute((0, 2, 1))
    isa.dma_copy(dst=view, src=tile)
    return t, view


def scatter(tile, index, values):
    """tile[p, index[16 g + i % 16, i // 16]] = values[p, i] in each partition p of each group g of 16."""
    groups, columns, n = tile.shape[0] // GROUP, tile.size // tile.shape[0], values.shape[1]
    rows, in_order = _by_column(tile, columns)
    given, _ = _by_column(values, n)
    of_group = index.size // index.shape[0] * GROUP  # numbers
    numbers = _by_column(index, of_group // GROUP)[0].reshape((groups * of_group, 1))
    for g in range(groups):
        for first in range(0, n, ROWS):
            k = min(ROWS, n - first)
            row, number, at = (_nkx.nki_ndarray((k, size), dtype, "sbuf", "") for size, dtype in ((GROUP, tile.dtype), (1, index.dtype), (1, "uint32")))
            isa.dma_copy(dst=row, src=given[g * n + first:g * n + first + k, :])
            isa.dma_copy(dst=number, src=numbers[g * of_group + first:g * of_group + first + k, :])
            isa.tensor_scalar(dst=at, data=number, op0="add", operand0=float(g * columns))
            isa.dma_copy(dst=rows.vector_select(0, at), src=row)
    isa.dma_copy(dst=tile, src=in_order)
