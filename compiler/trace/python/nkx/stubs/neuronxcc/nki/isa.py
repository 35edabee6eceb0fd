"""nki.isa of beta 1: calls return a new tile, and take mask= and dtype=.  Each becomes a call of today's nki.isa."""
import math
import sys

import _nkx
import numpy as np
from nki import isa as _isa
from nki.isa import (constants, dge_mode, engine, get_nc_sub_version, get_nc_version, gpsimd_engine, matmul_perf_mode,  # noqa: F401
                     nc_version, oob_mode, reduce_cmd, scalar_engine, tensor_engine, unknown_engine, vector_engine)
from nkx import nki_beta1_ops as _b
from nkx import nki_names, nki_written
from nkx.nki_beta1_index import Index, Mask
from nkx.nki_names import refuse

sys.modules["neuronxcc.nki.isa.constants"] = constants
_Tensor = _b.Tensor
_LEAST = float(np.finfo(np.float32).min)


def _tile(name, x):
    if not isinstance(x, _Tensor):
        refuse(_nkx.NkiCall, f"{name} must be a tile, not {type(x).__name__}", argument=name)
    _b.check_operand(name, x)
    return x


def _like(x, box, shape):
    """An operand that is a number, or a tile with one element in each partition, or of the shape of the instruction."""
    return _b.part_of(x, box, shape) if isinstance(x, _Tensor) else x


def _written(x, box):
    """The view of a tile that the caller gives to write to."""
    return None if x is None else _b.part_of(x, [box[0], *[(0, n) for n in x.shape[1:]]] if box else (), x.shape)


def _mapped(x, dtype, mask, emit, more=(), buffer="sbuf"):
    """An instruction whose result has the shape of x.  emit(dst, view of x, box); more: other operands."""
    _tile("data", x)
    return _b.result(x.shape, _b.dtype_of(dtype or x.dtype), mask, lambda to, box: emit(to, _b.part_of(x, box, x.shape), box),
                     (x, *more), buffer)


# ---- copies ---------------------------------------------------------------------------------------------------------


def tensor_copy(src, *, mask=None, dtype=None, engine=unknown_engine):
    return _mapped(src, dtype, mask, lambda to, x, box: _isa.tensor_copy(dst=to, src=x, engine=engine))


def tensor_copy_predicated(*, src, dst, predicate, reverse_pred=False, mask=None, dtype=None):
    box, _ = _b.box_of(mask, dst.shape)
    if box is not None:
        _isa.tensor_copy_predicated(dst=_b.part_of(dst, box, dst.shape), src=_like(src, box, dst.shape),
                                    predicate=_b.part_of(predicate, box, dst.shape), reverse_pred=reverse_pred)


def dma_copy(*, dst, src, mask=None, dst_rmw_op=None, **options):
    if dst_rmw_op is not None and getattr(_b.operator_of(dst_rmw_op), "__name__", _b.operator_of(dst_rmw_op)) != "add":
        refuse(_nkx.NkiOperator, "dst_rmw_op of dma_copy adds", "pass dst_rmw_op=np.add", argument="dst_rmw_op")
    box, rest = _b.box_of(mask, dst.shape)
    if rest:
        refuse(_nkx.NkiMask, "a mask over several axes together cannot restrict a copy", "restrict one axis in each copy", argument="mask")
    if box is not None:
        dst.memory.begin_writing()
        to, x = _b.part_of(dst, box, dst.shape), _b.part_of(src, box, dst.shape)
        if dst_rmw_op is None:
            _isa.dma_copy(dst=to, src=x, **options)
        else:
            _isa.dma_compute(to, [to, x], "add")


def dma_transpose(src, *, axes=None, mask=None, dtype=None):
    t = _b.new(src.shape[::-1], dtype or src.dtype)
    _isa.dma_transpose(dst=t.view(), src=src.view(), axes=axes)
    return t


def memset(shape, value, dtype, *, mask=None, engine=unknown_engine):
    t = _b.new(shape, _b.dtype_of(dtype))
    _isa.memset(dst=t.view(), value=value, engine=engine)
    return t


def iota(expr, dtype, *, mask=None):
    if not isinstance(expr, Index):
        refuse(_nkx.NkiCall, f"iota takes an index tile, not {type(expr).__name__}", "nisa.iota(nl.arange(512)[None, :], nl.int32)", argument="expr")
    t = _b.new(expr.shape if expr.ndim > 1 else (*expr.shape, 1), _b.dtype_of(dtype))
    _b.numbers(expr, t.dtype, t.view())
    return t


# ---- the Tensor engine ----------------------------------------------------------------------------------------------


def nc_matmul(stationary, moving, *, is_stationary_onezero=False, is_moving_onezero=False, is_transpose=False,
              tile_position=(), tile_size=(), mask=None):
    """stationary.T @ moving in PSUM, in float32; a transpose keeps the type of its data."""
    x, y = _tile("stationary", stationary), _tile("moving", moving)
    rows, columns = math.prod(x.shape[1:]), math.prod(y.shape[1:])
    if rows > 128:
        refuse(_nkx.NkiSizeLimit, f"stationary has {rows} elements in each partition, but at most 128 fit",
               "use tiles of nl.tile_size.gemm_stationary_fmax", argument="stationary")
    t = (rows, columns) if y.ndim == 2 else (rows, *y.shape[1:])
    own, others = _b.valid_box(x, x.shape), _b.valid_box(y, y.shape)
    box, rest = _b.box_of(mask, (rows, columns)) if mask is not None else ((), [])
    if own is None or others is None:
        box = None
    elif own or others:
        own, others = own or [(0, n) for n in x.shape], others or [(0, n) for n in y.shape]
        summed = _b.intersection(own[:1], others[:1], x.shape[:1])
        box = _b.intersection(box, [own[1], others[1]], (rows, columns)) if summed is not None else None
    if rest or (box or own) and (x.ndim > 2 or y.ndim > 2):
        refuse(_nkx.NkiMask, "this mask does not restrict rows and columns of a product", argument="mask")
    r = _b.new(t, x.dtype if is_transpose else "float32", "psum")
    r.is_product = True
    _b.mark(r, box)
    if box is None:
        return r
    summed = (summed or [(0, x.shape[0])])[0] if own or others else (0, x.shape[0])
    part = lambda v, d: v.view([summed, box[d] if box else (0, v.shape[1])] if box or own else None)
    flags = {k: v for k, v in {"is_stationary_onezero": is_stationary_onezero, "is_moving_onezero": is_moving_onezero,
                               "is_transpose": is_transpose, "tile_position": tile_position, "tile_size": tile_size}.items() if v}
    _isa.nc_matmul(dst=r.view(box or None), stationary=part(x, 0), moving=part(y, 1), **flags)
    return r


def nc_transpose(data, *, mask=None, dtype=None, engine=unknown_engine):
    x = _tile("data", data)
    columns = math.prod(x.shape[1:])
    box, _ = _b.cut(mask, x.shape, (x,))
    t = _b.new((columns, x.shape[0]), _b.dtype_of(dtype or x.dtype), "sbuf" if engine == vector_engine else "psum")
    _b.mark(t, box and box[::-1])
    if box is not None:
        _isa.nc_transpose(dst=t.view(box[::-1] or None), data=x.view(box or None), engine=engine)
    return t


# ---- element by element ---------------------------------------------------------------------------------------------


def tensor_tensor(data1, data2, op, *, dtype=None, mask=None, engine=unknown_engine):
    x, y = _tile("data1", data1), _tile("data2", data2)
    shape = _b.broadcast_shapes(x.shape, y.shape)
    if shape is None or x.shape[0] != y.shape[0]:
        refuse(_nkx.NkiShapeMismatch, f"data1 has the shape {x.shape}, but data2 has {y.shape}", argument="data2")
    x, y = x.broadcast_to(shape), y.broadcast_to(shape)
    return _b.result(shape, _b.dtype_of(dtype or _b.promote(x, y)), mask, lambda to, box: _isa.tensor_tensor(
        dst=to, data1=_b.part_of(x, box, shape), data2=_b.part_of(y, box, shape), op=_b.operator_of(op), engine=engine), (x, y))


def tensor_scalar(data, op0, operand0, reverse0=False, op1=None, operand1=None, reverse1=False, *, dtype=None, mask=None,
                  engine=unknown_engine):
    more = {} if op1 is None else {"op1": _b.operator_of(op1), "reverse1": reverse1}
    return _mapped(data, dtype, mask, lambda to, x, box: _isa.tensor_scalar(
        dst=to, data=x, op0=_b.operator_of(op0), operand0=_like(operand0, box, data.shape), reverse0=reverse0,
        **more, **({"operand1": _like(operand1, box, data.shape)} if more else {}), engine=engine), (operand0, operand1))


def scalar_tensor_tensor(*, data, op0, operand0, op1, operand1, reverse0=False, reverse1=False, dtype=None, mask=None):
    return _mapped(data, dtype, mask, lambda to, x, box: _isa.scalar_tensor_tensor(
        dst=to, data=x, op0=_b.operator_of(op0), operand0=_like(operand0, box, data.shape), op1=_b.operator_of(op1),
        operand1=_like(operand1.broadcast_to(data.shape), box, data.shape), reverse0=reverse0, reverse1=reverse1),
        (operand0, operand1))


def reciprocal(data, *, dtype=None, mask=None):
    return _mapped(data, dtype, mask, lambda to, x, box: _isa.reciprocal(dst=to, data=x))


def _activation(emit, op, data, bias, scale, reduce_res, mask, dtype, **more):
    if bias is not None:
        more["bias"] = bias
    if isinstance(scale, _Tensor) or scale != 1.0:
        more["scale"] = scale
    if reduce_res is not None:
        more["reduce_res"] = reduce_res

    def put(to, x, box):
        views = {k: _written(v, box) if k == "reduce_res" else _like(v, box, data.shape) for k, v in more.items()}
        emit(dst=to, op=_b.operator_of(op), data=x, **views)

    return _mapped(data, dtype, mask, put, (bias, scale))


def activation(op, data, *, bias=None, scale=1.0, reduce_op=None, reduce_res=None, reduce_cmd=reduce_cmd.idle, mask=None, dtype=None):
    more = {} if reduce_op is None else {"reduce_op": _b.operator_of(reduce_op)}
    more |= {} if reduce_cmd.name == "idle" else {"reduce_cmd": reduce_cmd}
    return _activation(_isa.activation, op, data, bias, scale, reduce_res, mask, dtype, **more)


def activation_reduce(op, data, *, reduce_op, reduce_res, bias=None, scale=1.0, mask=None, dtype=None):
    return _activation(_isa.activation_reduce, op, data, bias, scale, reduce_res, mask, dtype, reduce_op=_b.operator_of(reduce_op))


def affine_select(pred, on_true_tile, on_false_value, *, mask=None, dtype=None):
    """on_true_tile where the comparison of index tiles holds, else the number.  GpSimd does not reach PSUM: a tile there is copied."""
    x = _tile("on_true_tile", on_true_tile)
    if not isinstance(pred, Mask):
        refuse(_nkx.NkiCall, f"pred must be a comparison of index tiles, not {type(pred).__name__}", "pred=(i_q >= i_k)", argument="pred")
    conditions = [c.to(x.shape) for c in pred.conditions]
    if len(conditions) == 2 and (conditions[0] + conditions[1]).reach() == (0, 0) and not any((conditions[0] + conditions[1]).steps):
        conditions, compare = conditions[:1], "equal"
    else:
        compare = "greater_equal"
    if len(conditions) > 1:
        refuse(_nkx.NkiMask, "affine_select takes one comparison", "use affine_select once for each", argument="pred")
    (c,) = conditions

    def emit(to, view, box):
        offset = c.offset + (sum(s * first for s, (first, _) in zip(c.steps, box)) if box else 0)
        view = _b.in_sbuf(view)
        _isa.affine_select(dst=to, pattern=[[s, n] for s, n in zip(c.steps[1:], view.shape[1:])], channel_multiplier=c.steps[0],
                           on_true_tile=view, on_false_value=on_false_value, cmp_op=compare, offset=offset)

    return _mapped(x, dtype, mask, emit)


def select_reduce(*, dst, predicate, on_true, on_false, reduce_res=None, reduce_cmd=reduce_cmd.idle, reduce_op=None,
                  reverse_pred=False, mask=None, dtype=None):
    more = {} if reduce_res is None else {"reduce_res": reduce_res.view(), "reduce_cmd": reduce_cmd}
    more |= {} if reduce_op is None else {"reduce_op": _b.operator_of(reduce_op)}
    _isa.select_reduce(dst=dst.view(), predicate=predicate.view(), on_true=_like(on_true, (), dst.shape),
                       on_false=_like(on_false, (), dst.shape), reverse_pred=reverse_pred, **more)


# ---- along a partition ----------------------------------------------------------------------------------------------


def reduced(op, data, axis, dtype, mask, negate, keepdims):
    """The reduction over free axes; those that are reduced need not be the last ones."""
    x = _tile("data", data)
    axes = sorted(a + x.ndim if a < 0 else a for a in ([axis] if isinstance(axis, int) else axis))
    if not axes or axes[0] < 1 or axes[-1] >= x.ndim:
        refuse(_nkx.NkiOperand, f"axis {axis} of a tile of {x.ndim} dimensions cannot be reduced",
               "reduce free axes; nisa.tensor_partition_reduce reduces partitions", argument="axis")
    shape = [1 if d in axes else n for d, n in enumerate(x.shape)]
    box, rest = _b.cut(mask, x.shape, (x,))
    if rest:
        refuse(_nkx.NkiMask, "a mask over several axes together cannot restrict a reduction", "set the other elements first", argument="mask")
    if not keepdims:
        shape = [n for d, n in enumerate(shape) if d not in axes]
    t = _b.new(shape if len(shape) > 1 else (*shape, 1), _b.dtype_of(dtype or x.dtype))
    if box is None:
        _b.mark(t, None)
        return t
    kept = [(0, 1) if d in axes else b for d, b in enumerate(box) if keepdims or d not in axes]
    kept += [(0, 1)] * (t.ndim - len(kept)) if box else []
    _b.mark(t, () if kept == [(0, n) for n in t.shape] else kept)
    to = t.view(t.memory.valid)
    order = [a for a in range(x.ndim) if a not in axes] + axes
    source = x.with_last(axes).view([box[a] for a in order] if box else None)
    more = {"negate": True} if negate else {}
    _isa.tensor_reduce(dst=to, op=_b.operator_of(op), data=source, axis=tuple(range(x.ndim - len(axes), x.ndim)), **more)
    return t


def tensor_reduce(op, data, axis, *, mask=None, dtype=None, negate=False, keepdims=False):
    return reduced(op, data, axis, dtype, mask, negate, keepdims)


def tensor_partition_reduce(op, data, *, mask=None, dtype=None):
    x = _tile("data", data)
    t = _b.new((1, *x.shape[1:]), dtype or x.dtype)
    _isa.tensor_partition_reduce(dst=t.view(), op=_b.operator_of(op), data=x.view())
    return t


def tensor_scalar_reduce(*, data, op0, operand0, reduce_op, reduce_res, reverse0=False, mask=None, dtype=None):
    return _mapped(data, dtype, mask, lambda to, x, box: _isa.tensor_scalar_reduce(
        dst=to, data=x, op0=_b.operator_of(op0), operand0=_like(operand0, box, data.shape), reduce_op=_b.operator_of(reduce_op),
        reduce_res=_written(reduce_res, box), reverse0=reverse0))


def tensor_tensor_scan(data0, data1, initial, op0, op1, reverse0=False, reverse1=False, *, dtype=None, mask=None):
    return _mapped(data0, dtype or _b.promote(data0, data1), mask, lambda to, x, box: _isa.tensor_tensor_scan(
        dst=to, data0=x, data1=_like(data1, box, data0.shape), initial=_like(initial, box, data0.shape), op0=_b.operator_of(op0), op1=_b.operator_of(op1),
        reverse0=reverse0, reverse1=reverse1), (data1, initial))


def _row(call, x, n, dtype, mask, **more):
    """A call with n results in each partition."""
    _tile("data", x)
    t = _b.new((x.shape[0], n), _b.dtype_of(dtype or x.dtype))
    box, _ = _b.cut(mask, x.shape, (x,))
    _b.mark(t, [box[0], (0, n)] if box else box)
    if box is not None:
        call(dst=t.view([box[0], (0, n)] if box else None), **{k: _b.part_of(v, box, x.shape) for k, v in more.items()})
    return t


def bn_stats(data, *, mask=None, dtype=None):
    return _row(_isa.bn_stats, data, 6, dtype or np.float32, mask, data=data)


def bn_aggr(data, *, mask=None, dtype=None):
    return _row(_isa.bn_aggr, data, 2, dtype or np.float32, mask, data=data)


def max8(*, src, mask=None, dtype=None):
    return _row(_isa.max8, src, 8, dtype, mask, src=src)


def nc_find_index8(*, data, vals, mask=None, dtype=None):
    return _row(_isa.nc_find_index8, data, 8, dtype or np.uint32, None, data=data, vals=vals)


def nc_match_replace8(*, data, vals, imm, dst_idx=None, mask=None, dtype=None):
    more = {} if dst_idx is None else {"dst_idx": dst_idx.view()}
    return _mapped(data, dtype, None, lambda to, x, box: _isa.nc_match_replace8(dst=to, data=x, vals=vals.view(), imm=imm, **more))


def dropout(data, prob, *, mask=None, dtype=None):
    t = _mapped(data, None, mask, lambda to, x, box: _isa.dropout(dst=to, data=x, prob=_like(prob, box, data.shape)), (prob,))
    return t if dtype is None or _b.dtype_of(dtype) == t.dtype else _b.copied(t, dtype)


def nc_stream_shuffle(src, dst, shuffle_mask, *, dtype=None, mask=None):
    box, _ = _b.box_of(mask, dst.shape)
    if box is not None:
        _isa.nc_stream_shuffle(dst=_b.part_of(dst, box, dst.shape), src=_b.part_of(_tile("src", src), box, dst.shape),
                               shuffle_mask=shuffle_mask)


def range_select(*, on_true_tile, comp_op0, comp_op1, bound0, bound1, reduce_cmd=None, reduce_res=None, reduce_op=None,
                 range_start=0.0, on_false_value=_LEAST, mask=None, dtype=None):
    more = {k: v for k, v in {"reduce_cmd": reduce_cmd, "reduce_op": reduce_op and _b.operator_of(reduce_op)}.items() if v is not None}
    return _mapped(on_true_tile, dtype, mask, lambda to, x, box: _isa.range_select(
        dst=to, on_true_tile=x, comp_op0=_b.operator_of(comp_op0), comp_op1=_b.operator_of(comp_op1),
        bound0=_like(bound0, box, on_true_tile.shape), bound1=_like(bound1, box, on_true_tile.shape), range_start=range_start,
        on_false_value=on_false_value, **more, **({} if reduce_res is None else {"reduce_res": _written(reduce_res, box)})),
        (bound0, bound1))


def sequence_bounds(*, segment_ids, dtype=None):
    x = _tile("segment_ids", segment_ids)
    t = _b.new((1, 2, x.shape[1]), _b.dtype_of(dtype or x.dtype))
    _isa.sequence_bounds(dst=t.view(), segment_ids=x.view())
    return t


def local_gather(src_buffer, index, num_elem_per_idx=1, num_valid_indices=None, *, mask=None):
    """The result has num_valid_indices runs of num_elem_per_idx elements in each partition."""
    x, at = _tile("src_buffer", src_buffer), _tile("index", index)
    n = num_valid_indices or 16 * math.prod(at.shape[1:])
    t = _b.new((x.shape[0], n, num_elem_per_idx) if num_elem_per_idx > 1 else (x.shape[0], n), x.dtype)
    _isa.local_gather(dst=t.view(), src_buffer=x.view(), index=at.view(), num_elem_per_idx=num_elem_per_idx, num_valid_indices=n)
    return t


nki_written.install(globals(), "nisa", {"refuse", "get_nc_version", "get_nc_sub_version", "reduced"}, goes_on=True)
__getattr__ = nki_names.attribute_of(
    __name__)
