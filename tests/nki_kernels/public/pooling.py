"""NKI beta 1: windows and neighbours by index tiles: maximum over windows, and pictures with more elements by linear
interpolation in two and in three dimensions.
"""
import neuronxcc.nki as nki
import neuronxcc.nki.isa as nisa
import neuronxcc.nki.language as nl


@nki.jit
def maxpool2d(x, size=3, stride=2, padding=1):
    """x: (channels, height, width).  A border of `padding` elements is smaller than every number."""
    channels, h, w = x.shape
    oh, ow = (h + 2 * padding - size) // stride + 1, (w + 2 * padding - size) // stride + 1
    out = nl.ndarray((channels, oh, ow), dtype=x.dtype, buffer=nl.shared_hbm)
    P = nl.tile_size.pmax
    i_in, i_out = nl.mgrid[0:P, 0:h, 0:w], nl.mgrid[0:P, 0:oh, 0:ow]
    i_w = nl.mgrid[0:P, 0:oh, 0:ow, 0:size, 0:size]
    for c in nl.affine_range((channels + P - 1) // P):
        padded = nl.full((nl.par_dim(P), h + 2 * padding, w + 2 * padding), fill_value=nl.fp32.min, dtype=x.dtype)
        inside = (c * P + i_in.p < channels)
        padded[i_in.p, padding + i_in.x, padding + i_in.y] = nl.load(x[c * P + i_in.p, i_in.x, i_in.y], mask=inside)
        best = nl.max(padded[i_w.p, stride * i_w.x + i_w.z, stride * i_w.y + i_w.w], axis=[3, 4], mask=(c * P + i_w.p < channels))
        nl.store(out[c * P + i_out.p, i_out.x, i_out.y], value=best, mask=(c * P + i_out.p < channels))
    return out


@nki.jit
def bilinear2x(x, rows=4):
    """x: (channels, height, width), twice as high and wide; every new element is 1/4 of one neighbour and 3/4 of the other.

    The first axis of a tile counts channels; `rows` rows of the input at a time."""
    channels, h, w = x.shape
    out = nl.ndarray((channels, 2 * h, 2 * w), dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.load(x)
    for r in nl.affine_range(h // rows):
        # rows above and below, which end at the border of the picture
        near, far = nl.ndarray((channels, rows, w), dtype=x.dtype), nl.ndarray((channels, 2, rows, w), dtype=x.dtype)
        i = nl.mgrid[0:channels, 0:rows, 0:w]
        near[i.p, i.x, i.y] = nl.multiply(tile[i.p, r * rows + i.x, i.y], 0.75)
        far[i.p, 0, i.x, i.y] = nl.multiply(tile[i.p, r * rows + i.x - 1, i.y], 0.25, mask=(r * rows + i.x >= 1))
        far[i.p, 1, i.x, i.y] = nl.multiply(tile[i.p, r * rows + i.x + 1, i.y], 0.25, mask=(r * rows + i.x < h - 1))
        j = nl.mgrid[0:channels, 0:1, 0:w]
        if r == 0:
            far[j.p, 0, j.x, j.y] = nl.multiply(tile[j.p, j.x, j.y], 0.25)
        if r == h // rows - 1:
            far[j.p, 1, rows - 1 + j.x, j.y] = nl.multiply(tile[j.p, h - 1 + j.x, j.y], 0.25)
        high = nl.ndarray((channels, 2 * rows, w), dtype=x.dtype)
        high[i.p, 2 * i.x, i.y] = nl.add(near[i.p, i.x, i.y], far[i.p, 0, i.x, i.y])
        high[i.p, 2 * i.x + 1, i.y] = nl.add(near[i.p, i.x, i.y], far[i.p, 1, i.x, i.y])
        # the same along the width
        wide = nl.ndarray((channels, 2 * rows, 2 * w), dtype=x.dtype)
        a, b = nl.mgrid[0:channels, 0:2 * rows, 0:w - 1], nl.mgrid[0:channels, 0:2 * rows, 0:1]
        wide[a.p, a.x, 2 * a.y + 1] = high[a.p, a.x, a.y] * 0.75 + high[a.p, a.x, a.y + 1] * 0.25
        wide[a.p, a.x, 2 * a.y + 2] = high[a.p, a.x, a.y + 1] * 0.75 + high[a.p, a.x, a.y] * 0.25
        wide[b.p, b.x, b.y] = nl.copy(high[b.p, b.x, b.y])
        wide[b.p, b.x, 2 * w - 1 + b.y] = nl.copy(high[b.p, b.x, w - 1 + b.y])
        o = nl.mgrid[0:channels, 0:2 * rows, 0:2 * w]
        nl.store(out[o.p, 2 * r * rows + o.x, o.y], value=wide[o.p, o.x, o.y])
    return out


@nki.jit
def trilinear2x(x):
    """x: (channels, depth, height, width): 2n - 1 elements along each axis; new ones are means of their neighbours."""
    channels, depth, h, w = x.shape
    out = nl.ndarray((channels, 2 * depth - 1, 2 * h - 1, 2 * w - 1), dtype=x.dtype, buffer=nl.shared_hbm)
    P = nl.tile_size.pmax
    for c in nl.affine_range((channels + P - 1) // P):
        i = nl.mgrid[0:P, 0:h, 0:w]
        for z in nl.affine_range(2 * depth - 1):
            inside = (c * P + i.p < channels)
            # the picture between two, or one of them
            below = nl.load(x[c * P + i.p, z // 2, i.x, i.y], mask=inside)
            above = nl.load(x[c * P + i.p, (z + 1) // 2, i.x, i.y], mask=inside)
            mean = nl.multiply(nl.add(below, above, mask=inside), 0.5, mask=inside)
            r = nl.ndarray((nl.par_dim(P), 2 * h - 1, 2 * w - 1), dtype=x.dtype)
            r[i.p, 2 * i.x, 2 * i.y] = nl.copy(mean, mask=inside)
            a = nl.mgrid[0:P, 0:h, 0:w - 1]
            r[a.p, 2 * a.x, 2 * a.y + 1] = nl.multiply(nl.add(mean[a.p, a.x, a.y], mean[a.p, a.x, a.y + 1]), 0.5, mask=(c * P + a.p < channels))
            b = nl.mgrid[0:P, 0:h - 1, 0:2 * w - 1]
            r[b.p, 2 * b.x + 1, b.y] = nl.multiply(nl.add(r[b.p, 2 * b.x, b.y], r[b.p, 2 * b.x + 2, b.y], mask=(c * P + b.p < channels)), 0.5,
                                                   mask=(c * P + b.p < channels))
            o = nl.mgrid[0:P, 0:2 * h - 1, 0:2 * w - 1]
            nl.store(out[c * P + o.p, z, o.x, o.y], value=r[o.p, o.x, o.y], mask=(c * P + o.p < channels))
    return out
