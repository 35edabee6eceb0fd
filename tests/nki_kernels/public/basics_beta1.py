"""NKI beta 1: an addition that many instances of the kernel share, on one core and on two."""
import neuronxcc.nki as nki
import neuronxcc.nki.language as nl

ROWS, COLUMNS = 128, 512


@nki.jit
def spmd_add(a, b):
    """An instance adds the tile that its two numbers name."""
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    row, column = nl.program_id(0) * ROWS, nl.program_id(1) * COLUMNS
    ix = row + nl.arange(ROWS)[:, None]
    iy = column + nl.arange(COLUMNS)[None, :]
    x = nl.load(a[ix, iy])
    y = nl.load(b[ix, iy])
    nl.store(out[ix, iy], value=x + y)
    return out
