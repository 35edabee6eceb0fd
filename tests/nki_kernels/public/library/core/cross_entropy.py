"""Cross entropy of logits over a large vocabulary, and its gradient, with a running maximum and sum."""
import nki
import nki.isa as nisa
import nki.language as nl

from ..utils.kernel_assert import kernel_assert
from ..utils.kernel_helpers import shard
from ..utils.tiled_range import Tile, TiledRange

SMALLEST = -3.0e38


def column(n, value=None):
    t = nl.ndarray((n, 1), nl.float32, buffer=nl.sbuf)
    if value is not None:
        nisa.memset(dst=t, value=value)
    return t


def hits(target, v, rows):
    """1.0 where the number of the column is the target of the row."""
    numbers = nl.ndarray((rows, v.size), nl.float32, buffer=nl.sbuf)
    nisa.iota(dst=numbers, pattern=[[1, v.size]], offset=v.start, channel_multiplier=0)
    nisa.tensor_scalar(dst=numbers, data=numbers, op0=nl.equal, operand0=target)
    return numbers


@nki.jit
def cross_entropy_forward(logits, targets, v_tile=1024):
    """logits: (positions, vocabulary), targets: (positions, 1) in int32.  Returns the loss and log(sum(exp)), (positions, 1)."""
    positions, vocabulary = logits.shape
    kernel_assert(targets.shape[0] == positions, "each position has a target")
    loss = nl.ndarray((positions, 1), nl.float32, buffer=nl.shared_hbm)
    lse = nl.ndarray((positions, 1), nl.float32, buffer=nl.shared_hbm)
    first, count = shard(positions)
    for p in TiledRange(Tile(0, first, count), nl.tile_size.pmax):
        target = column(p.size)
        nisa.dma_copy(dst=target, src=targets[p.start:p.end, :])
        top, total, picked = column(p.size, SMALLEST), column(p.size, 0.0), column(p.size, 0.0)
        for v in TiledRange(vocabulary, v_tile):
            tile = nl.ndarray((p.size, v.size), logits.dtype, buffer=nl.sbuf)
            nisa.dma_copy(dst=tile, src=logits[p.start:p.end, v.start:v.end])
            own, higher, shrink, part = column(p.size), column(p.size), column(p.size), column(p.size)
            nisa.tensor_reduce(dst=own, op=nl.maximum, data=tile, axis=1)
            nisa.tensor_tensor(dst=higher, data1=top, data2=own, op=nl.maximum)
            nisa.tensor_tensor(dst=shrink, data1=top, data2=higher, op=nl.subtract)
            nisa.activation(dst=shrink, op=nl.exp, data=shrink)
            nisa.tensor_scalar(dst=own, data=higher, op0=nl.multiply, operand0=-1.0)
            e = nl.ndarray((p.size, v.size), nl.float32, buffer=nl.sbuf)
            nisa.activation_reduce(dst=e, op=nl.exp, data=tile, bias=own, reduce_op=nl.add, reduce_res=part)
            nisa.scalar_tensor_tensor(dst=total, data=total, op0=nl.multiply, operand0=shrink, op1=nl.add, operand1=part)
            nisa.tensor_copy(dst=top, src=higher)
            hit = hits(target, v, p.size)
            nisa.tensor_tensor(dst=hit, data1=hit, data2=tile, op=nl.multiply)
            nisa.tensor_reduce(dst=part, op=nl.add, data=hit, axis=1)
            nisa.tensor_tensor(dst=picked, data1=picked, data2=part, op=nl.add)
        nisa.activation(dst=total, op=nl.log, data=total)
        nisa.tensor_tensor(dst=total, data1=total, data2=top, op=nl.add)
        nisa.dma_copy(dst=lse[p.start:p.end, :], src=total)
        nisa.tensor_tensor(dst=total, data1=total, data2=picked, op=nl.subtract)
        nisa.dma_copy(dst=loss[p.start:p.end, :], src=total)
    return loss, lse


@nki.jit
def cross_entropy_backward(logits, targets, lse, grad, v_tile=1024):
    """The gradient of the logits: (exp(logits - lse) - hit) * grad."""
    positions, vocabulary = logits.shape
    out = nl.ndarray(logits.shape, logits.dtype, buffer=nl.shared_hbm)
    first, count = shard(positions)
    for p in TiledRange(Tile(0, first, count), nl.tile_size.pmax):
        target, minus_lse, scale = column(p.size), column(p.size), column(p.size)
        nisa.dma_copy(dst=target, src=targets[p.start:p.end, :])
        nisa.dma_copy(dst=minus_lse, src=lse[p.start:p.end, :])
        nisa.tensor_scalar(dst=minus_lse, data=minus_lse, op0=nl.multiply, operand0=-1.0)
        nisa.dma_copy(dst=scale, src=grad[p.start:p.end, :])
        for v in TiledRange(vocabulary, v_tile):
            tile = nl.ndarray((p.size, v.size), logits.dtype, buffer=nl.sbuf)
            nisa.dma_copy(dst=tile, src=logits[p.start:p.end, v.start:v.end])
            e = nl.ndarray((p.size, v.size), nl.float32, buffer=nl.sbuf)
            nisa.activation(dst=e, op=nl.exp, data=tile, bias=minus_lse)
            nisa.tensor_tensor(dst=e, data1=e, data2=hits(target, v, p.size), op=nl.subtract)
            nisa.tensor_scalar(dst=tile, data=e, op0=nl.multiply, operand0=scale)
            nisa.dma_copy(dst=out[p.start:p.end, v.start:v.end], src=tile)
    return out
