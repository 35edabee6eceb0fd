"""Attention for context encoding, with a causal mask, and its backward pass."""
from dataclasses import dataclass
from typing import Optional

import nki
import nki.isa as nisa
import nki.language as nl

from ..utils.kernel_assert import kernel_assert
from ..utils.kernel_helpers import shard, transpose_to
from ..utils.tiled_range import Tile, TiledRange

P, K_TILE = 128, 512
LOWEST = -1.0e30


@dataclass
class AttnConfig(nl.NKIObject):
    seqlen: int = 0
    d: int = 0
    scale: float = 1.0
    causal: bool = True
    sliding_window: Optional[int] = None

    def __post_init__(self):
        kernel_assert(self.d <= P, f"d is {self.d}, but at most {P} fit")
        kernel_assert(self.seqlen % P == 0, f"the sequence has {self.seqlen} elements")

    def last_key(self, q: Tile):
        return q.end if self.causal else self.seqlen


@dataclass
class Running(nl.NKIObject):
    """The state of a row of tiles between its sections of keys."""
    top: object = None
    total: object = None
    acc: object = None


def column(n, value):
    t = nl.ndarray((n, 1), nl.float32, buffer=nl.sbuf)
    nisa.memset(dst=t, value=value)
    return t


def masked_scores(cfg, q_sb, k_sb, q: Tile, k: Tile):
    """Scores of a tile of queries and a tile of keys; those that the mask leaves out are very small."""
    psum = nl.ndarray((q.size, k.size), nl.float32, buffer=nl.psum)
    nisa.nc_matmul(dst=psum, stationary=q_sb, moving=k_sb)
    scores = nl.ndarray((q.size, k.size), nl.float32, buffer=nl.sbuf)
    nisa.tensor_copy(dst=scores, src=psum)
    if cfg.causal and k.end > q.start:
        nisa.affine_select(dst=scores, pattern=[[-1, k.size]], channel_multiplier=1, on_true_tile=scores, on_false_value=LOWEST,
                           cmp_op=nl.greater_equal, offset=q.start - k.start)
    if cfg.sliding_window is not None:
        nisa.affine_select(dst=scores, pattern=[[1, k.size]], channel_multiplier=-1, on_true_tile=scores, on_false_value=LOWEST,
                           cmp_op=nl.greater_equal, offset=k.start - q.start + cfg.sliding_window - 1)
    return scores


def add_section(cfg, state, q_sb, k_sb, v_sb, q: Tile, k: Tile, compute):
    scores = masked_scores(cfg, q_sb, k_sb, q, k)
    higher, shrink, minus, part = column(q.size, 0.0), column(q.size, 0.0), column(q.size, 0.0), column(q.size, 0.0)
    nisa.tensor_reduce(dst=higher, op=nl.maximum, data=scores, axis=1)
    nisa.tensor_tensor(dst=higher, data1=higher, data2=state.top, op=nl.maximum)
    nisa.tensor_scalar(dst=minus, data=higher, op0=nl.multiply, operand0=-cfg.scale)
    nisa.activation(dst=shrink, op=nl.exp, data=state.top, bias=minus, scale=cfg.scale)
    e = nl.ndarray((q.size, k.size), compute, buffer=nl.sbuf)
    nisa.activation(dst=e, op=nl.exp, data=scores, bias=minus, scale=cfg.scale, reduce_op=nl.add, reduce_res=part,
                    reduce_cmd=nisa.reduce_cmd.reset_reduce)
    nisa.scalar_tensor_tensor(dst=state.total, data=state.total, op0=nl.multiply, operand0=shrink, op1=nl.add, operand1=part)
    product = nl.ndarray((q.size, cfg.d), nl.float32, buffer=nl.psum)
    for j in range(k.size // P):
        e_t = nl.ndarray((P, q.size), compute, buffer=nl.sbuf)
        transpose_to(e_t, e[:, j * P:(j + 1) * P])
        nisa.nc_matmul(dst=product, stationary=e_t, moving=v_sb[:, j, :])
    nisa.scalar_tensor_tensor(dst=state.acc, data=state.acc, op0=nl.multiply, operand0=shrink, op1=nl.add, operand1=product)
    nisa.tensor_copy(dst=state.top, src=higher)


@nki.jit
def attention_cte(q, k, v, scale: float = 1.0, causal_mask: bool = True, sliding_window: Optional[int] = None, save_lse: bool = False):
    """q: (heads, d, s), k: (kv_heads, d, s), v: (kv_heads, s, d).  Returns (heads, s, d) and, for a backward pass, the
    log of each row's sum, (heads, s, 1).  The cores divide the heads; several heads may share keys."""
    heads, d, s = q.shape
    kv_heads = k.shape[0]
    kernel_assert(heads % kv_heads == 0, f"{heads} heads cannot share {kv_heads} of keys")
    cfg = AttnConfig(seqlen=s, d=d, scale=scale, causal=causal_mask, sliding_window=sliding_window)
    out = nl.ndarray((heads, s, d), q.dtype, buffer=nl.shared_hbm)
    lse = nl.ndarray((heads, s, 1), nl.float32, buffer=nl.shared_hbm) if save_lse else None
    first, count = shard(heads)
    for h in range(first, first + count):
        group = h // (heads // kv_heads)
        for i in TiledRange(s, P):
            q_sb = nl.ndarray((d, i.size), q.dtype, buffer=nl.sbuf)
            nisa.dma_copy(dst=q_sb, src=q[h, :, i.start:i.end])
            acc = nl.ndarray((i.size, d), nl.float32, buffer=nl.sbuf)
            nisa.memset(dst=acc, value=0.0)
            state = Running(top=column(i.size, LOWEST), total=column(i.size, 0.0), acc=acc)
            for j in TiledRange(cfg.last_key(i), K_TILE):
                if sliding_window is not None and j.end <= i.start - sliding_window + 1:
                    continue
                k_sb = nl.ndarray((d, j.size), k.dtype, buffer=nl.sbuf)
                v_sb = nl.ndarray((P, j.size // P, d), v.dtype, buffer=nl.sbuf)
                nisa.dma_copy(dst=k_sb, src=k[group, :, j.start:j.end])
                nisa.dma_copy(dst=v_sb, src=v[group, j.start:j.end, :].reshape_dim(0, (j.size // P, P)).permute((1, 0, 2)))
                add_section(cfg, state, q_sb, k_sb, v_sb, i, j, q.dtype)
            inverse, result = column(i.size, 0.0), nl.ndarray((i.size, d), q.dtype, buffer=nl.sbuf)
            nisa.reciprocal(dst=inverse, data=state.total)
            nisa.activation(dst=result, op=nl.copy, data=state.acc, scale=inverse)
            nisa.dma_copy(dst=out[h, i.start:i.end, :], src=result)
            if lse is not None:
                nisa.activation(dst=inverse, op=nl.log, data=state.total)
                nisa.scalar_tensor_tensor(dst=inverse, data=state.top, op0=nl.multiply, operand0=scale, op1=nl.add, operand1=inverse)
                nisa.dma_copy(dst=lse[h, i.start:i.end, :], src=inverse)
    if lse is not None:
        return out, lse
    return out


@nki.jit
def attention_bwd(q, k, v, o, grad, lse, scale: float = 1.0, causal_mask: bool = True):
    """q, k, v, o, grad: (heads, d, s), lse: (heads, s, 1) of attention_cte.  Returns the gradients of q, k and v."""
    heads, d, s = q.shape
    cfg = AttnConfig(seqlen=s, d=d, scale=scale, causal=causal_mask)
    gradients = [nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm) for x in (q, k, v)]
    tiles = TiledRange(s, P)
    first, count = shard(heads)
    for h in range(first, first + count):
        on_chip, turned = {}, {}
        for name, x in (("q", q), ("k", k), ("v", v), ("o", o), ("grad", grad)):
            on_chip[name] = nl.ndarray((d, s), x.dtype, buffer=nl.sbuf)
            nisa.dma_copy(dst=on_chip[name], src=x[h])
            if name not in ["v"]:
                turned[name] = nl.ndarray((P, len(tiles), d), x.dtype, buffer=nl.sbuf)
                for t in tiles:
                    transpose_to(turned[name][:, t.index, :], on_chip[name][:, t.start:t.end])
        minus_lse = nl.ndarray((P, len(tiles)), nl.float32, buffer=nl.sbuf)
        delta = nl.ndarray((P, len(tiles)), nl.float32, buffer=nl.sbuf)
        for t in tiles:
            nisa.dma_copy(dst=minus_lse[:, t.index:t.index + 1], src=lse[h, t.start:t.end, :])
            products = nl.ndarray((P, d), nl.float32, buffer=nl.sbuf)
            nisa.tensor_tensor(dst=products, data1=turned["o"][:, t.index, :], data2=turned["grad"][:, t.index, :], op=nl.multiply)
            nisa.tensor_reduce(dst=delta[:, t.index:t.index + 1], op=nl.add, data=products, axis=1)
        nisa.tensor_scalar(dst=minus_lse, data=minus_lse, op0=nl.multiply, operand0=-1.0)
        dq = [nl.ndarray((d, P), nl.float32, buffer=nl.sbuf) for _ in tiles]
        for t in tiles:
            nisa.memset(dst=dq[t.index], value=0.0)
        for j in tiles:
            dk, dv = (nl.ndarray((d, P), nl.float32, buffer=nl.psum) for _ in range(2))
            for i in tiles:
                if causal_mask and i.end <= j.start:
                    continue
                scores = masked_scores(cfg, on_chip["q"][:, i.start:i.end], on_chip["k"][:, j.start:j.end], i, j)
                p, ds = nl.ndarray((P, P), q.dtype, buffer=nl.sbuf), nl.ndarray((P, P), q.dtype, buffer=nl.sbuf)
                at = slice(i.index, i.index + 1)
                nisa.activation(dst=p, op=nl.exp, data=scores, bias=minus_lse[:, at], scale=scale)
                nisa.nc_matmul(dst=dv, stationary=turned["grad"][:, i.index, :], moving=p)
                dp = nl.ndarray((P, P), nl.float32, buffer=nl.psum)
                nisa.nc_matmul(dst=dp, stationary=on_chip["grad"][:, i.start:i.end], moving=on_chip["v"][:, j.start:j.end])
                nisa.scalar_tensor_tensor(dst=ds, data=dp, op0=nl.subtract, operand0=delta[:, at], op1=nl.multiply, operand1=p)
                nisa.tensor_scalar(dst=ds, data=ds, op0=nl.multiply, operand0=scale)
                nisa.nc_matmul(dst=dk, stationary=turned["q"][:, i.index, :], moving=ds)
                ds_t = nl.ndarray((P, P), q.dtype, buffer=nl.sbuf)
                transpose_to(ds_t, ds)
                part = nl.ndarray((d, P), nl.float32, buffer=nl.psum)
                nisa.nc_matmul(dst=part, stationary=turned["k"][:, j.index, :], moving=ds_t)
                nisa.tensor_tensor(dst=dq[i.index], data1=dq[i.index], data2=part, op=nl.add)
            for total, gradient in ((dk, gradients[1]), (dv, gradients[2])):
                result = nl.ndarray((d, P), gradient.dtype, buffer=nl.sbuf)
                nisa.tensor_copy(dst=result, src=total)
                nisa.dma_copy(dst=gradient[h, :, j.start:j.end], src=result)
        for i in tiles:
            nisa.dma_copy(dst=gradients[0][h, :, i.start:i.end], src=dq[i.index])
    return gradients[0], gradients[1], gradients[2]
