"""The first kernels of the tutorials, in the newest generation."""
import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def getting_started_add(a, b):
    """One tile: at most 128 rows."""
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    x = nl.load(a)
    y = nl.load(b)
    nl.store(out, value=nl.add(x, y))
    return out


@nki.jit
def tiled_add(a, b, rows=128, columns=512):
    assert a.shape == b.shape, "the arrays have different shapes"
    m, n = a.shape
    assert m % rows == 0 and n % columns == 0, f"{m} by {n} elements are not tiles of {rows} by {columns}"
    out = nl.ndarray((m, n), dtype=a.dtype, buffer=nl.shared_hbm)
    for i in nl.affine_range(m // rows):
        for j in nl.affine_range(n // columns):
            at = (slice(i * rows, (i + 1) * rows), slice(j * columns, (j + 1) * columns))
            x = nl.ndarray((rows, columns), dtype=a.dtype, buffer=nl.sbuf)
            y = nl.ndarray((rows, columns), dtype=b.dtype, buffer=nl.sbuf)
            nisa.dma_copy(dst=x, src=a[at])
            nisa.dma_copy(dst=y, src=b[at])
            total = nl.ndarray((rows, columns), dtype=a.dtype, buffer=nl.sbuf)
            nisa.tensor_tensor(dst=total, data1=x, data2=y, op=nl.add)
            nisa.dma_copy(dst=out[at], src=total)
    return out


@nki.jit
def even_and_odd(x):
    """Columns with even and with odd numbers, by slices with a step."""
    rows, columns = x.shape
    even = nl.ndarray((rows, columns // 2), dtype=x.dtype, buffer=nl.shared_hbm)
    odd = nl.ndarray((rows, columns // 2), dtype=x.dtype, buffer=nl.shared_hbm)
    t = nl.load(x)
    for first, out in ((0, even), (1, odd)):
        part = nl.ndarray((rows, columns // 2), dtype=x.dtype, buffer=nl.sbuf)
        nisa.tensor_copy(dst=part, src=t[:, first:columns:2])
        nl.store(out, part)
    return even, odd


@nki.jit
def maxpool_by_slices(x, pool=2):
    """Windows that do not overlap: one slice with a step for each place in the window."""
    p, h, w = x.shape
    out = nl.ndarray((p, h // pool, w // pool), dtype=x.dtype, buffer=nl.shared_hbm)
    t = nl.load(x)
    best = nl.ndarray((p, h // pool, w // pool), dtype=x.dtype, buffer=nl.sbuf)
    nisa.tensor_copy(dst=best, src=t[:, 0:h:pool, 0:w:pool])
    for i in range(pool):
        for j in range(pool):
            if i or j:
                nisa.tensor_tensor(dst=best, data1=best, data2=t[:, i:h:pool, j:w:pool], op=nl.maximum)
    nl.store(out, best)
    return out


@nki.jit
def layout_pass(x):
    """(rows, 128): loaded turned, so that 128 is the number of partitions."""
    out = nl.ndarray((x.shape[1], x.shape[0]), dtype=x.dtype, buffer=nl.shared_hbm)
    t = nl.load(x.permute((1, 0)))
    nl.store(out, nl.exp(t))
    return out


@nki.jit
def layout_violation(x):
    """As many partitions as rows: more than 128 do not exist."""
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    nl.store(out, nl.exp(nl.load(x)))
    return out


@nki.jit
def layout_loop(x):
    """Tiles of 128 rows, and one of the rest."""
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    P = nl.tile_size.pmax
    for i in nl.affine_range((x.shape[0] + P - 1) // P):
        n = min(P, x.shape[0] - i * P)
        t = nl.load(x[i * P:i * P + n, :])
        nl.store(out[i * P:i * P + n, :], nl.exp(t))
    return out


@nki.jit
def transpose2d(x, rows, columns):
    """Each row of x is a matrix of `rows` by `columns` elements, which is transposed, a column after the other."""
    p = x.shape[0]
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    t = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    turned = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=t, src=x)
    for c in nl.static_range(columns):
        nisa.tensor_copy(dst=turned[:, c * rows:(c + 1) * rows], src=t.ap(pattern=[[rows * columns, p], [columns, rows]], offset=c))
    nisa.dma_copy(dst=out, src=turned)
    return out


@nki.jit
def average_pool(x, pool):
    """Means of windows of pool by pool elements, as a view with five axes."""
    c, h, w = x.shape
    out = nl.ndarray((c, h // pool, w // pool), dtype=x.dtype, buffer=nl.shared_hbm)
    t = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=t, src=x)
    windows = t.ap(pattern=[[h * w, c], [pool * w, h // pool], [pool, w // pool], [w, pool], [1, pool]])
    total = nl.sum(windows, axis=[3, 4])
    mean = nl.ndarray((c, h // pool, w // pool), dtype=x.dtype, buffer=nl.sbuf)
    nisa.tensor_scalar(dst=mean, data=total, op0=nl.multiply, operand0=1.0 / (pool * pool))
    nisa.dma_copy(dst=out, src=mean)
    return out
