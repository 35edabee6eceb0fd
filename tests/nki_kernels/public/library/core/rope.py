"""Rotary embeddings, for heads whose halves are contiguous or interleaved."""
from typing import Optional

import nki
import nki.isa as nisa
import nki.language as nl

from ..utils.kernel_assert import kernel_assert
from ..utils.kernel_helpers import shard
from ..utils.tensor_view import TensorView
from ..utils.tiled_range import Tile, TiledRange


def rope_in_sbuf(x, cos, sin, out, interleaved: bool = False):
    """x, out: (d, n) in SBUF; cos, sin: (d // 2, n).  Rows of x are pairs: k and k + d // 2."""
    d, n = x.shape
    half = d // 2
    upper, lower = nl.ndarray((half, n), nl.float32, buffer=nl.sbuf), nl.ndarray((half, n), nl.float32, buffer=nl.sbuf)
    second = nl.ndarray((half, n), x.dtype, buffer=nl.sbuf)
    nisa.tensor_copy(dst=second, src=x[half:d, :])
    nisa.tensor_tensor(dst=upper, data1=x[0:half, :], data2=cos, op=nl.multiply)
    nisa.tensor_tensor(dst=lower, data1=second, data2=sin, op=nl.multiply)
    nisa.tensor_tensor(dst=out[0:half, :], data1=upper, data2=lower, op=nl.subtract)
    nisa.tensor_tensor(dst=upper, data1=second, data2=cos, op=nl.multiply)
    nisa.tensor_tensor(dst=lower, data1=x[0:half, :], data2=sin, op=nl.multiply)
    nisa.tensor_tensor(dst=upper, data1=upper, data2=lower, op=nl.add)
    nisa.tensor_copy(dst=out[half:d, :], src=upper)


@nki.jit
def rope(x, cos, sin, contiguous_layout: bool = True, lnc_shard: Optional[bool] = None):
    """x: (d, batch, heads, s); cos, sin: (d // 2, batch, s).  The result has the shape of x.

    contiguous_layout: an element and its partner are d // 2 rows apart, else neighbours."""
    d, batch, heads, s = x.shape
    kernel_assert(d in (64, 128), f"d is 64 or 128, not {d}")
    kernel_assert(tuple(cos.shape) == (d // 2, batch, s), f"cos has the shape {cos.shape}")
    out = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)
    first, count = shard(s) if lnc_shard is not None and lnc_shard else (0, s)
    for b in range(batch):
        for t in TiledRange(Tile(0, first, count), 512):
            c, sn = (nl.ndarray((d // 2, t.size), cos.dtype, buffer=nl.sbuf) for _ in range(2))
            nisa.dma_copy(dst=c, src=cos[:, b, t.start:t.end])
            nisa.dma_copy(dst=sn, src=sin[:, b, t.start:t.end])
            for h in range(heads):
                tile, result = (nl.ndarray((d, t.size), x.dtype, buffer=nl.sbuf) for _ in range(2))
                for tensor, on_chip, is_load in ((x, tile, True), (out, result, False)):
                    if not is_load:
                        rope_in_sbuf(tile, c, sn, result)
                    head = TensorView(tensor).select(1, b).select(1, h).slice(1, t.start, t.end)
                    if contiguous_layout:
                        src, dst = (head.get_view(), on_chip) if is_load else (on_chip, head.get_view())
                        nisa.dma_copy(dst=dst, src=src)
                        continue
                    pairs = head.reshape_dim(0, (d // 2, 2))
                    for k in range(2):
                        part, view = on_chip[k * (d // 2):(k + 1) * (d // 2), :], pairs.select(1, k).get_view()
                        nisa.dma_copy(dst=part if is_load else view, src=view if is_load else part)
    return out


@nki.jit
def rope_hf(q, k, cos, sin):
    """q: (batch, heads, s, d), k: (batch, kv_heads, s, d); cos, sin: (s, d).  x * cos + rotate_half(x) * sin, with rows of
    the sequence on partitions."""
    batch, heads, s, d = q.shape
    q_out = nl.ndarray(q.shape, q.dtype, buffer=nl.shared_hbm)
    k_out = nl.ndarray(k.shape, k.dtype, buffer=nl.shared_hbm)
    for t in TiledRange(s, nl.tile_size.pmax):
        c, sn = nl.ndarray((t.size, d), nl.float32), nl.ndarray((t.size, d), nl.float32)
        nisa.dma_copy(dst=c, src=cos[t.start:t.end])
        nisa.dma_copy(dst=sn, src=sin[t.start:t.end])
        for x, out in ((q, q_out), (k, k_out)):
            for b in range(batch):
                n = x.shape[1]
                tile = nl.ndarray((t.size, n, d), x.dtype)
                nisa.dma_copy(dst=tile, src=x[b, :, t.start:t.end, :].permute((1, 0, 2)))
                turned = nl.ndarray((t.size, n, d), nl.float32)
                nisa.tensor_scalar(dst=turned[:, :, 0:d // 2], data=tile[:, :, d // 2:d], op0=nl.multiply, operand0=-1.0)
                nisa.tensor_copy(dst=turned[:, :, d // 2:d], src=tile[:, :, 0:d // 2])
                all_heads = lambda v: v.expand_dim(1).broadcast(1, n)
                nisa.tensor_tensor(dst=turned, data1=turned, data2=all_heads(sn), op=nl.multiply)
                product = nl.ndarray((t.size, n, d), nl.float32)
                nisa.tensor_tensor(dst=product, data1=tile, data2=all_heads(c), op=nl.multiply)
                result = nl.ndarray((t.size, n, d), x.dtype)
                nisa.tensor_tensor(dst=result, data1=product, data2=turned, op=nl.add)
                nisa.dma_copy(dst=out[b, :, t.start:t.end, :].permute((1, 0, 2)), src=result)
    return q_out, k_out
