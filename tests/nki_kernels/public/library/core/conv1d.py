"""Convolutions over a sequence: all channels by products, or each channel alone."""
import nki
import nki.isa as nisa
import nki.language as nl

from ..utils.kernel_assert import kernel_assert
from ..utils.tiled_range import TiledRange

L_TILE = 512


@nki.jit
def conv1d(x, filters, bias=None, stride=1, padding=(0, 0), dilation=1, activation_fn=None):
    """x: (batch, c_in, l), filters: (k, c_in, c_out), bias: (c_out,).  Returns (batch, c_out, l_out).

    An element of the filter is a product of c_in by c_out with a shifted view of the input: they add up in PSUM."""
    batch, c_in, l = x.shape
    taps, _, c_out = filters.shape
    left, right = padding
    l_out = (l + left + right - dilation * (taps - 1) - 1) // stride + 1
    kernel_assert(l_out > 0, f"the filter is longer than the input: {l_out}")
    out = nl.ndarray((batch, c_out, l_out), x.dtype, buffer=nl.shared_hbm)
    ins, outs = TiledRange(c_in, nl.tile_size.pmax), TiledRange(c_out, nl.tile_size.gemm_stationary_fmax)

    weights = []
    for i in ins:
        w = nl.ndarray((i.size, taps, c_out), filters.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=w, src=filters[:, i.start:i.end, :].permute((1, 0, 2)))
        weights.append(w)
    biases = []
    for o in outs:
        if bias is not None:
            b = nl.ndarray((o.size, 1), nl.float32, buffer=nl.sbuf)
            nisa.dma_copy(dst=b, src=bias.reshape((c_out, 1))[o.start:o.end, :])
            biases.append(b)
    for b in range(batch):
        rows = []
        for i in ins:
            row = nl.ndarray((i.size, left + l + right), x.dtype, buffer=nl.sbuf)
            if left + right > 0:
                nisa.memset(dst=row, value=0.0)
            nisa.dma_copy(dst=row[:, left:left + l], src=x[b, i.start:i.end, :])
            rows.append(row)
        for o in outs:
            for t in TiledRange(l_out, L_TILE):
                psum = nl.ndarray((o.size, t.size), nl.float32, buffer=nl.psum)
                for i in ins:
                    for k in range(taps):
                        first = t.start * stride + k * dilation
                        moving = rows[i.index][:, first:first + (t.size - 1) * stride + 1:stride]
                        nisa.nc_matmul(dst=psum, stationary=weights[i.index][:, k, o.start:o.end], moving=moving)
                result = nl.ndarray((o.size, t.size), x.dtype, buffer=nl.sbuf)
                op = activation_fn if activation_fn is not None else nl.copy
                if bias is not None:
                    nisa.activation(dst=result, op=op, data=psum, bias=biases[o.index])
                else:
                    nisa.activation(dst=result, op=op, data=psum)
                nisa.dma_copy(dst=out[b, o.start:o.end, t.start:t.end], src=result)
    return out


@nki.jit
def depthwise_conv1d(x, filters):
    """x: (batch, c, l), filters: (c, k).  Returns (batch, c, l - k + 1): each channel is its own partition."""
    batch, c, l = x.shape
    taps = filters.shape[1]
    n = l - taps + 1
    out = nl.ndarray((batch, c, n), x.dtype, buffer=nl.shared_hbm)
    for p in TiledRange(c, nl.tile_size.pmax):
        w = nl.ndarray((p.size, taps), nl.float32, buffer=nl.sbuf)
        nisa.dma_copy(dst=w, src=filters[p.start:p.end, :])
        for b in range(batch):
            row = nl.ndarray((p.size, l), x.dtype, buffer=nl.sbuf)
            nisa.dma_copy(dst=row, src=x[b, p.start:p.end, :])
            total = nl.ndarray((p.size, n), nl.float32, buffer=nl.sbuf)
            nisa.tensor_scalar(dst=total, data=row[:, 0:n], op0=nl.multiply, operand0=w[:, 0:1])
            for k in range(1, taps):
                nisa.scalar_tensor_tensor(dst=total, data=row[:, k:k + n], op0=nl.multiply, operand0=w[:, k:k + 1], op1=nl.add, operand1=total)
            result = total
            if x.dtype != nl.float32:
                result = nl.ndarray((p.size, n), x.dtype, buffer=nl.sbuf)
                nisa.tensor_copy(dst=result, src=total)
            nisa.dma_copy(dst=out[b, p.start:p.end, :], src=result)
    return out
