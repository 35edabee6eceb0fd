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


class nc_version(enum.IntEnum):
    gen2, gen3, gen4 = 2, 3, 4


class constants:
    """The same names under nki.isa.constants."""
    engine, reduce_cmd, dge_mode, oob_mode, matmul_perf_mode, nc_version = (
        engine, reduce_cmd, dge_mode, oob_mode, matmul_perf_mode, nc_version)


tensor_engine, scalar_engine, gpsimd_engine, vector_engine, unknown_engine = (
    engine.tensor, engine.scalar, engine.gpsimd, engine.vector, engine.unknown)


def get_nc_version():
    return {"trn1": nc_version.gen2, "trn2": nc_version.gen3, "trn3": nc_version.gen4}[_nkx.nki_target()]


__getattr__ = nki_names.attribute_of(
    __name__,
    unsupported={
        "activate2", "core_barrier", "dma_compute", "dropout", "exponential", "get_nc_sub_version", "local_gather",
        "nc_matmul_mx", "nc_n_gather", "nc_stream_shuffle", "nonzero_with_count", "quantize_mx", "rand2",
        "rand_get_state", "rand_set_state", "range_select", "register_alloc", "register_load", "register_move",
        "register_store", "rng", "sendrecv", "sequence_bounds", "set_rng_seed", "topk"},
    removed={"tensor_copy_dynamic_src": "tensor_copy of a view", "tensor_copy_dynamic_dst": "tensor_copy into a view",
             "builtin_custom_op": "there is no replacement"})
