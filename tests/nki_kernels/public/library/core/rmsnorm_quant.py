"""RMS norm, and each row scaled to the range of fp8."""
from dataclasses import dataclass
from typing import Optional

import nki
import nki.isa as nisa
import nki.language as nl

from ..utils.common_types import NormType
from ..utils.kernel_assert import kernel_assert
from ..utils.kernel_helpers import div_ceil, load_broadcast, shard
from ..utils.tiled_range import Tile, TiledRange

FP8_MAX = 240.0


@dataclass(frozen=True)
class RmsNormQuantArgs:
    lower_bound: float = 0.0
    norm_type: NormType = NormType.RMS_NORM
    eps: float = 1e-6

    def has_norm(self):
        return self.norm_type != NormType.NO_NORM

    def has_lower_bound(self):
        return self.lower_bound is not None and self.lower_bound > 0


@nki.jit
def rmsnorm_quant(hidden, w, args: Optional[RmsNormQuantArgs] = None):
    """hidden: (batch, s, h), w: (h,).  Returns the rows in fp8 and, behind the same shape, their scales: (batch, s, 1)."""
    args = args if args is not None else RmsNormQuantArgs(lower_bound=0.01)
    batch, s, h = hidden.shape
    kernel_assert(w.shape == (h,), f"w has the shape {w.shape}, but h is {h}")
    rows = batch * s
    x = hidden.reshape((rows, h))
    out = nl.ndarray((batch, s, h), nl.float8_e4m3, buffer=nl.shared_hbm)
    scales = nl.ndarray((batch, s, 1), nl.float32, buffer=nl.shared_hbm)
    flat, flat_scales = out.reshape((rows, h)), scales.reshape((rows, 1))
    first, count = shard(rows)
    gains = {}
    for t in TiledRange(Tile(0, first, count), nl.tile_size.pmax):
        if t.size not in gains.keys():
            gains[t.size] = load_broadcast(w, t.size, nl.float32)
        tile = nl.ndarray((t.size, h), nl.float32, buffer=nl.sbuf)
        nisa.dma_copy(dst=tile, src=x[t.start:t.end, :])
        if args.has_norm():
            squares, total = nl.ndarray((t.size, h), nl.bfloat16), nl.ndarray((t.size, 1), nl.float32)
            nisa.activation_reduce(dst=squares, op=nl.square, data=tile, reduce_op=nl.add, reduce_res=total)
            nisa.tensor_scalar(dst=total, data=total, op0=nl.multiply, operand0=1.0 / h, op1=nl.add, operand1=args.eps)
            nisa.activation(dst=total, op=nl.rsqrt, data=total)
            nisa.scalar_tensor_tensor(dst=tile, data=tile, op0=nl.multiply, operand0=total, op1=nl.multiply, operand1=gains[t.size])
        size, largest = nl.ndarray((t.size, h), nl.float32), nl.ndarray((t.size, 1), nl.float32)
        nisa.activation(dst=size, op=nl.abs, data=tile)
        nisa.tensor_reduce(dst=largest, op=nl.maximum, data=size, axis=1)
        if args.has_lower_bound():
            nisa.tensor_scalar(dst=largest, data=largest, op0=nl.maximum, operand0=args.lower_bound)
        inverse = nl.ndarray((t.size, 1), nl.float32)
        nisa.tensor_scalar(dst=largest, data=largest, op0=nl.multiply, operand0=1.0 / FP8_MAX)
        nisa.reciprocal(dst=inverse, data=largest)
        quantized = nl.ndarray((t.size, h), nl.float8_e4m3, buffer=nl.sbuf)
        nisa.activation(dst=quantized, op=nl.copy, data=tile, scale=inverse)
        nisa.dma_copy(dst=flat[t.start:t.end, :], src=quantized)
        nisa.dma_copy(dst=flat_scales[t.start:t.end, :], src=largest)
    return out, scales
