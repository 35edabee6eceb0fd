"""nki.isa: one function for each instruction.  The table of calls is compiler/nki/calls.def."""
import enum
import sys
import types

import _nkx
from nkx import nki_names, nki_registers, nki_written

globals().update(_nkx.nki_isa())


class engine(enum.Enum):
    unknown, tensor, scalar, gpsimd, dma, vector, sync = range(7)


class reduce_cmd(enum.Enum):
    idle, reset, reduce, reset_reduce, load_reduce = range(5)


class dge_mode(enum.Enum):
    unknown, swdge, hwdge, none = range(4)


class oob_mode(enum.Enum):
    error, skip = range(2)


class matmul_perf_mode(enum.Enum):
    none, double_row = range(2)


class dma_engine(enum.Enum):
    dma, gpsimd_dma = 1, 2


class nc_version(enum.IntEnum):
    gen2, gen3, gen4 = 2, 3, 4


# the same names in a module, which can be imported
constants = types.ModuleType("nki.isa.constants")
for _name in ("engine", "reduce_cmd", "dge_mode", "oob_mode", "matmul_perf_mode", "dma_engine", "nc_version"):
    setattr(constants, _name, globals()[_name])
sys.modules["nki.isa.constants"] = constants


tensor_engine, scalar_engine, gpsimd_engine, vector_engine, unknown_engine = (
    engine.tensor, engine.scalar, engine.gpsimd, engine.vector, engine.unknown)


_sum_of_two = globals()["dma_compute"]


def dma_compute(dst, srcs, reduce_op="add", scales=None, unique_indices=True, oob_mode=None, name=None):
    """dst = the sum of srcs, which are at most 16; or dst += src for rows that numbers select in dst or in src."""
    if scales is not None and any(s != 1 for s in scales):
        nki_names.refuse(_nkx.NkiOperand, "the scales of dma_compute are 1", "scale with nisa.tensor_scalar")
    if not 1 < len(srcs) <= 16:
        nki_names.refuse(_nkx.NkiOperand, f"dma_compute has {len(srcs)} sources, but it takes 2 to 16")
    if any(t.is_indirect() for t in (dst, *srcs)):
        _update(dst, srcs, reduce_op, oob_mode)
        return
    total = srcs[0]
    for x in srcs[1:-1]:
        both = _nkx.nki_ndarray(dst.shape, "float32", "hbm", "")
        _sum_of_two(dst=both, src=total, other=x, reduce_op=reduce_op)
        total = both
    _sum_of_two(dst=dst, src=total, other=srcs[-1], reduce_op=reduce_op)


def _update(dst, srcs, reduce_op, oob_mode):
    """One of the two sources is dst itself."""
    same = [t for t in srcs if t.name == dst.name and t.is_indirect() == dst.is_indirect()]
    if len(srcs) != 2 or not same:
        nki_names.refuse(_nkx.NkiOperand, "rows that are selected by number are updated in place",
                         "give dst as one of two sources")
    [src] = [t for t in srcs if t is not same[0]]
    if dst.is_indirect():
        _sum_of_two(dst=dst, src=src, reduce_op=reduce_op, oob_mode=oob_mode)
    else:
        _sum_of_two(dst=dst, src=src, other=same[0], reduce_op=reduce_op, oob_mode=oob_mode)


dma_compute = nki_written.wrapped("nisa.dma_compute", dma_compute)


def register_alloc(x=None):
    """A register of 32 bits.  x: its first value, a number, a register or a tensor of one element, which also gives it its
    type; without x the first load or move does."""
    return nki_registers.alloc(register_move, register_load, x)  # noqa: F821


def get_nc_version():
    return {"trn1": nc_version.gen2, "trn2": nc_version.gen3, "trn3": nc_version.gen4}[_nkx.nki_target()]


def get_nc_sub_version():
    """No machine that is compiled for has variants."""
    return 0


__getattr__ = nki_names.attribute_of(
    __name__,
    removed={"tensor_copy_dynamic_src": "tensor_copy of a view", "tensor_copy_dynamic_dst": "tensor_copy into a view",
             "builtin_custom_op": "there is no replacement"})
