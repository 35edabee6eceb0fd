"""The feed-forward part of a layer, with a gate, and its mixture of experts."""
from dataclasses import dataclass
from typing import Optional

import nki
import nki.isa as nisa
import nki.language as nl

from ..utils.common_types import ActFnType, ExpertAffinityScaleMode, NormType, activation_of
from ..utils.kernel_assert import kernel_assert
from ..utils.kernel_helpers import load_broadcast, shard, transpose_to
from ..utils.tiled_range import Tile, TiledRange
from .projections import normalize
from ..utils.allocator import create_auto_alloc_manager

P, N_TILE = 128, 512


@dataclass
class MlpWeights(nl.NKIObject):
    """gate and up: (h, i), down: (i, h); there may be no gate."""
    up: object = None
    down: object = None
    gate: Optional[object] = None

    def __post_init__(self):
        kernel_assert(tuple(self.up.shape) == tuple(reversed(self.down.shape)), f"up {self.up.shape} and down {self.down.shape} do not fit")

    @property
    def intermediate(self):
        return self.up.shape[1]


@dataclass
class MlpParameters(nl.NKIObject):
    weights: MlpWeights = None
    activation: ActFnType = ActFnType.SiLU
    norm: NormType = NormType.NO_NORM
    eps: float = 1e-6

    def has_gate(self):
        return self.weights.gate is not None


def load_weights(w):
    """(rows, columns) in HBM to (128, rows // 128, columns) in SBUF."""
    rows, columns = w.shape
    tile = nl.ndarray((P, rows // P, columns), w.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=w.reshape_dim(0, (rows // P, P)).permute((1, 0, 2)))
    return tile


def columns_of(w, x_t, rows, dst, op=None, bias=None):
    """dst (128, columns // 128, rows) = op((x @ w).T): w stays, and the rows of x move."""
    for c in range(w.shape[2] // P):
        psum = nl.ndarray((P, rows), nl.float32, buffer=nl.psum)
        for k in range(w.shape[1]):
            nisa.nc_matmul(dst=psum, stationary=w[:, k, c * P:(c + 1) * P], moving=x_t[:, k, :])
        if op is None:
            nisa.tensor_copy(dst=dst[:, c, :], src=psum)
        else:
            nisa.activation(dst=dst[:, c, :], op=op, data=psum)


def mlp_tile(p: MlpParameters, up, down, gate, x_t, rows, result):
    """result (rows, h) = (act(x @ gate) * (x @ up)) @ down for one tile of rows."""
    n = p.weights.intermediate // P
    inner = nl.ndarray((P, n, rows), x_t.dtype, buffer=nl.sbuf)
    op = activation_of(p.activation)
    if p.has_gate():
        gated, raised = (nl.ndarray((P, n, rows), nl.float32, buffer=nl.sbuf) for _ in range(2))
        columns_of(gate, x_t, rows, gated, op)
        columns_of(up, x_t, rows, raised)
        nisa.tensor_tensor(dst=inner, data1=gated, data2=raised, op=nl.multiply)
    else:
        columns_of(up, x_t, rows, inner, op)
    for o in TiledRange(down.shape[2], N_TILE):
        psum = nl.ndarray((rows, o.size), nl.float32, buffer=nl.psum)
        for k in range(n):
            nisa.nc_matmul(dst=psum, stationary=inner[:, k, :], moving=down[:, k, o.start:o.end])
        nisa.tensor_copy(dst=result[:, o.start:o.end], src=psum)


def transposed(x, rows, dtype):
    """(rows, h) to (128, h // 128, rows)."""
    narrow = nl.ndarray(x.shape, dtype, buffer=nl.sbuf)
    nisa.tensor_copy(dst=narrow, src=x)
    x_t = nl.ndarray((P, x.shape[1] // P, rows), dtype, buffer=nl.sbuf)
    for k in range(x.shape[1] // P):
        transpose_to(x_t[:, k, :], narrow[:, k * P:(k + 1) * P])
    return x_t


@nki.jit
def mlp(hidden, up, down, gate=None, gain=None, residual=None, activation=ActFnType.SiLU, norm=NormType.NO_NORM):
    """hidden: (batch, s, h).  The cores divide the sequence."""
    batch, s, h = hidden.shape
    p = MlpParameters(weights=MlpWeights(up=up, down=down, gate=gate), activation=activation, norm=norm)
    out = nl.ndarray(hidden.shape, hidden.dtype, buffer=nl.shared_hbm)
    up_sb, down_sb = load_weights(up), load_weights(down)
    gate_sb = load_weights(gate) if p.has_gate() else None
    sbm = create_auto_alloc_manager()
    first, count = shard(s)
    for b in range(batch):
        for t in TiledRange(Tile(0, first, count), P):
            x = nl.ndarray((t.size, h), nl.float32, buffer=nl.sbuf)
            nisa.dma_copy(dst=x, src=hidden[b, t.start:t.end, :])
            normalize(x, p.norm, load_broadcast(gain, t.size, nl.float32) if gain is not None else None, p.eps, sbm)
            result = nl.ndarray((t.size, h), hidden.dtype, buffer=nl.sbuf)
            mlp_tile(p, up_sb, down_sb, gate_sb, transposed(x, t.size, hidden.dtype), t.size, result)
            if residual is not None:
                more = nl.ndarray((t.size, h), nl.float32, buffer=nl.sbuf)
                nisa.dma_copy(dst=more, src=residual[b, t.start:t.end, :])
                nisa.tensor_tensor(dst=result, data1=result, data2=more, op=nl.add)
            nisa.dma_copy(dst=out[b, t.start:t.end, :], src=result)
    return out


@dataclass
class Routing(nl.NKIObject):
    """Which rows go to an expert, and with which weight."""
    rows_of_block: object = None
    expert_of_block: tuple = ()
    mode: ExpertAffinityScaleMode = ExpertAffinityScaleMode.POST_SCALE


@nki.jit
def moe(hidden, gate_up, down, affinities, rows_of_block, expert_of_block=(0, 1, 1), scale_mode=ExpertAffinityScaleMode.POST_SCALE):
    """hidden: (tokens, h), gate_up: (experts, h, 2 * i), down: (experts, i, h), affinities: (tokens, experts),
    rows_of_block: (blocks, 128) in int32, numbers of tokens, or tokens and more where a block is not full.

    A block gathers the rows of its expert, computes them, and adds the results to the rows' sums."""
    tokens, h = hidden.shape
    experts, _, twice = gate_up.shape
    i = twice // 2
    blocks = rows_of_block.shape[0]
    kernel_assert(len(expert_of_block) == blocks, f"{blocks} blocks, but experts of {len(expert_of_block)}")
    routing = Routing(rows_of_block, tuple(expert_of_block), scale_mode)
    out = nl.ndarray((tokens, h), nl.float32, buffer=nl.shared_hbm)
    for t in TiledRange(tokens, P):
        zero = nl.ndarray((t.size, h), nl.float32, buffer=nl.sbuf)
        nisa.memset(dst=zero, value=0.0)
        nisa.dma_copy(dst=out[t.start:t.end, :], src=zero)
    loaded = {}
    for b in range(blocks):
        expert = routing.expert_of_block[b]
        kernel_assert(0 <= expert < experts, f"there is no expert {expert}")
        key = f"expert {expert}"
        if key not in loaded:
            both = load_weights(gate_up[expert])
            loaded[key] = (both[:, :, 0:i], both[:, :, i:2 * i], load_weights(down[expert]))
        gate_sb, up_sb, down_sb = loaded[key]
        at = nl.ndarray((P, 1), nl.int32, buffer=nl.sbuf)
        nisa.dma_copy(dst=at, src=routing.rows_of_block[b].reshape((P, 1)))
        x, weight = nl.ndarray((P, h), hidden.dtype, buffer=nl.sbuf), nl.ndarray((P, experts), nl.float32, buffer=nl.sbuf)
        nisa.memset(dst=x, value=0.0)
        nisa.memset(dst=weight, value=0.0)
        nisa.dma_copy(dst=x, src=hidden.ap(pattern=[[h, P], [1, h]], offset=0, vector_offset=at, indirect_dim=0), oob_mode=nisa.oob_mode.skip)
        nisa.dma_copy(dst=weight, src=affinities.ap(pattern=[[experts, P], [1, experts]], offset=0, vector_offset=at, indirect_dim=0),
                      oob_mode=nisa.oob_mode.skip)
        p = MlpParameters(weights=MlpWeights(up=gate_up[expert][:, i:2 * i], down=down[expert], gate=gate_up[expert][:, 0:i]))
        result = nl.ndarray((P, h), nl.float32, buffer=nl.sbuf)
        mlp_tile(p, up_sb, down_sb, gate_sb, transposed(x, P, hidden.dtype), P, result)
        if routing.mode == ExpertAffinityScaleMode.POST_SCALE:
            nisa.tensor_scalar(dst=result, data=result, op0=nl.multiply, operand0=weight[:, expert:expert + 1])
        # a row may have results of several experts
        old = nl.ndarray((P, h), nl.float32, buffer=nl.sbuf)
        nisa.memset(dst=old, value=0.0)
        place = out.ap(pattern=[[h, P], [1, h]], offset=0, vector_offset=at, indirect_dim=0)
        nisa.dma_copy(dst=old, src=place, oob_mode=nisa.oob_mode.skip)
        nisa.tensor_tensor(dst=result, data1=result, data2=old, op=nl.add)
        nisa.dma_copy(dst=place, src=result, oob_mode=nisa.oob_mode.skip)
    return out
