"""Products with the weights around attention: qkv, with a norm before it, and the output projection."""
from typing import Optional

import nki
import nki.isa as nisa
import nki.language as nl

from ..utils.allocator import SbufManager, create_auto_alloc_manager
from ..utils.common_types import NormType
from ..utils.kernel_assert import kernel_assert
from ..utils.kernel_helpers import load_broadcast, shard, transpose_to
from ..utils.tiled_range import Tile, TiledRange

N_TILE = 512


def normalize(x, norm, gain, eps, sbm):
    """x: (rows, h) in SBUF, in place."""
    rows, h = x.shape
    if norm == NormType.NO_NORM:
        return
    sbm.open_scope("norm")
    scale = sbm.alloc_stack((rows, 1), nl.float32, name="scale")
    if norm == NormType.RMS_NORM:
        squares = sbm.alloc_stack((rows, h), nl.float32, name="squares")
        nisa.activation_reduce(dst=squares, op=nl.square, data=x, reduce_op=nl.add, reduce_res=scale)
        nisa.tensor_scalar(dst=scale, data=scale, op0=nl.multiply, operand0=1.0 / h, op1=nl.add, operand1=eps)
        nisa.activation(dst=scale, op=nl.rsqrt, data=scale)
        nisa.tensor_scalar(dst=x, data=x, op0=nl.multiply, operand0=scale)
    elif norm == NormType.LAYER_NORM:
        chunk = nl.tile_size.bn_stats_fmax
        parts = TiledRange(h, chunk)
        stats = sbm.alloc_stack((rows, 6 * len(parts)), nl.float32, name="stats")
        moments = sbm.alloc_stack((rows, 2), nl.float32, name="moments")
        for t in parts:
            nisa.bn_stats(dst=stats[:, 6 * t.index:6 * t.index + 6], data=x[:, t.start:t.end])
        nisa.bn_aggr(dst=moments, data=stats)
        nisa.tensor_scalar(dst=scale, data=moments[:, 1:2], op0=nl.add, operand0=eps)
        nisa.activation(dst=scale, op=nl.rsqrt, data=scale)
        nisa.tensor_scalar(dst=x, data=x, op0=nl.subtract, operand0=moments[:, 0:1], op1=nl.multiply, operand1=scale)
    if gain is not None:
        nisa.tensor_tensor(dst=x, data1=x, data2=gain, op=nl.multiply)
    sbm.close_scope()


@nki.jit
def qkv(hidden, weights, bias=None, norm: NormType = NormType.RMS_NORM, gain=None, residual=None, eps: float = 1e-6,
        sbm: Optional[SbufManager] = None):
    """hidden: (batch, s, h), weights: (h, n), n for q, k and v of all heads.  Returns (batch, s, n) and, with a residual,
    hidden + residual before the norm."""
    batch, s, h = hidden.shape
    n = weights.shape[1]
    kernel_assert(weights.shape[0] == h and h % 128 == 0, f"weights have the shape {weights.shape}, but h is {h}")
    if sbm is None:
        sbm = create_auto_alloc_manager()
    out = nl.ndarray((batch, s, n), hidden.dtype, buffer=nl.shared_hbm)
    added = nl.ndarray(hidden.shape, hidden.dtype, buffer=nl.shared_hbm) if residual is not None else None
    w = sbm.alloc_stack((128, h // 128, n), weights.dtype, name="weights")
    nisa.dma_copy(dst=w, src=weights.reshape_dim(0, (h // 128, 128)).permute((1, 0, 2)))
    first, count = shard(s)
    for b in range(batch):
        for t in TiledRange(Tile(0, first, count), 128):
            sbm.open_scope(f"tile {t.index}")
            x = sbm.alloc_stack((t.size, h), nl.float32, name="x")
            nisa.dma_copy(dst=x, src=hidden[b, t.start:t.end, :])
            if residual is not None:
                more = sbm.alloc_stack((t.size, h), nl.float32, name="residual")
                nisa.dma_copy(dst=more, src=residual[b, t.start:t.end, :])
                nisa.tensor_tensor(dst=x, data1=x, data2=more, op=nl.add)
                nisa.dma_copy(dst=added[b, t.start:t.end, :], src=x)
            normalize(x, norm, load_broadcast(gain, t.size, nl.float32) if gain is not None else None, eps, sbm)
            narrow = sbm.alloc_stack((t.size, h), weights.dtype, name="narrow")
            nisa.tensor_copy(dst=narrow, src=x)
            turned = sbm.alloc_stack((128, h // 128, t.size), weights.dtype, name="turned")
            for k in range(h // 128):
                transpose_to(turned[:, k, :], narrow[:, k * 128:(k + 1) * 128])
            row = None
            if bias is not None:
                row = load_broadcast(bias, t.size, nl.float32)
            for o in TiledRange(n, N_TILE):
                psum = nl.ndarray((t.size, o.size), nl.float32, buffer=nl.psum)
                for k in range(h // 128):
                    nisa.nc_matmul(dst=psum, stationary=turned[:, k, :], moving=w[:, k, o.start:o.end])
                result = nl.ndarray((t.size, o.size), hidden.dtype, buffer=nl.sbuf)
                if row is not None:
                    nisa.tensor_tensor(dst=result, data1=psum, data2=row[:, o.start:o.end], op=nl.add)
                else:
                    nisa.tensor_copy(dst=result, src=psum, engine=nisa.scalar_engine if o.index % 2 else nisa.vector_engine)
                nisa.dma_copy(dst=out[b, t.start:t.end, o.start:o.end], src=result)
            sbm.close_scope()
    if residual is not None:
        return out, added
    return out


@nki.jit
def output_projection(attention, weights, bias=None):
    """attention: (batch, heads, d, s), weights: (heads * d, h).  Returns (batch, s, h): d is what the product sums over, so
    nothing is transposed.  The cores divide h."""
    batch, heads, d, s = attention.shape
    h = weights.shape[1]
    kernel_assert(weights.shape[0] == heads * d, f"weights have {weights.shape[0]} rows, but there are {heads} heads of {d}")
    out = nl.ndarray((batch, s, h), attention.dtype, buffer=nl.shared_hbm)
    first, count = shard(h, 128)
    w = nl.ndarray((d, heads, count), weights.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=w, src=weights.reshape((heads, d, h))[:, :, first:first + count].permute((1, 0, 2)))
    for b in range(batch):
        for t in TiledRange(s, 128):
            x = nl.ndarray((d, heads, t.size), attention.dtype, buffer=nl.sbuf)
            nisa.dma_copy(dst=x, src=attention[b, :, :, t.start:t.end].permute((1, 0, 2)))
            for o in TiledRange(count, N_TILE):
                psum = nl.ndarray((t.size, o.size), nl.float32, buffer=nl.psum)
                for i in range(heads):
                    nisa.nc_matmul(dst=psum, stationary=x[:, i, :], moving=w[:, i, o.start:o.end])
                result = nl.ndarray((t.size, o.size), attention.dtype, buffer=nl.sbuf)
                if bias is not None:
                    row = load_broadcast(bias, t.size, nl.float32)
                    nisa.tensor_tensor(dst=result, data1=psum, data2=row[:, first + o.start:first + o.end], op=nl.add)
                else:
                    nisa.tensor_copy(dst=result, src=psum)
                nisa.dma_copy(dst=out[b, t.start:t.end, first + o.start:first + o.end], src=result)
    return out
