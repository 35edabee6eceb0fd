"""nki.isa: one function for each instruction.  The table of calls is compiler/nki/calls.def."""
import enum

import _nkx
from nkx import nki_names

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


class constants:
    """The same names under nki.isa.constants."""
    engine, reduce_cmd, dge_mode, oob_mode, matmul_perf_mode, dma_engine, nc_version = (
        engine, reduce_cmd, dge_mode, oob_mode, matmul_perf_mode, dma_engine, nc_version)


tensor_engine, scalar_engine, gpsimd_engine, vector_engine, unknown_engine = (
    engine.tensor, engine.scalar, engine.gpsimd, engine.vector, engine.unknown)


def get_nc_version():
    return {"trn1": nc_version.gen2, "trn2": nc_version.gen3, "trn3": nc_version.gen4}[_nkx.nki_target()]


def get_nc_sub_version():
    """No machine that is compiled for has variants."""
    return 0


__getattr__ = nki_names.attribute_of(
    __name__,
    unsupported={
        "dma_compute", "nc_matmul_mx", "quantize_mx", "register_alloc", "register_load", "register_move",
        "register_store", "topk"},
    removed={"tensor_copy_dynamic_src": "tensor_copy of a view", "tensor_copy_dynamic_dst": "tensor_copy into a view",
             "builtin_custom_op": "there is no replacement"})
