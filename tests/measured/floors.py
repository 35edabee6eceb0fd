"""What no program of a kernel whose inputs lie on all partitions can beat on the simulated machine, from the constants of
compiler/sim/cost.def.

    floor = max(max(loaded + end + DMA signal + latency, worked) + signal + start + end, moved)

    start       from the trigger of a transfer to its first byte, by the engine that is fastest (GpSimd); descriptors of what is
                stored are built ahead
    end         from the last byte of a transfer to its semaphore
    loaded      the bytes of all inputs, each moved once, by all queues at the rate of HBM.  Until the hardware's descriptors
                move their first byte only those move that GpSimd builds, one at a time: a descriptor fills a row of one partition.
                On fewer partitions the rows are longer and come earlier, and the engines compute longer; the formula does not
                count that case
    latency     of instructions that wait for each other between the last load and the first store: their overheads until the
                result, and a signal between two of them.  A pass over a row is one instruction, so a pass that needs the whole row
                before it counts with its elements
    worked      when the engine is done that has most of what no other engine can do, if it has had all from the first byte
                on, and the latency after that; what several can do is divided among them.  The Tensor engine has half of its
                clock until the first window of its clock ends, whatever it does
    moved       start, the bytes of inputs and outputs at the rate of HBM, end

Memory, banks, semaphores and the time that triggers hold their engine are free; the Tensor engine has its full clock from the
second window on; the transfers have long descriptors, without a cost of their own.  So a floor may be out of reach.
"""
import re
from pathlib import Path

COST = Path(__file__).resolve().parents[2] / "compiler/sim/cost.def"
PARTITIONS = 128


def constants(target="trn2"):
    """name -> its value, with times in nanoseconds."""
    column = ("trn1", "trn2", "trn3").index(target)
    out = {}
    for name, unit, *values in re.findall(r"SIM_CONSTANT\(SIM_(\w+), (\w+), (\d+), (\d+), (\d+)", COST.read_text()):
        out[name] = int(values[column]) / (1000 if unit == "PS" else 1)
    return out


C = constants()
VECTOR, SCALAR, GPSIMD, TENSOR = (C[f"{e}_MHZ"] / 1000 for e in ("VECTOR", "SCALAR", "GPSIMD", "TENSOR"))  # cycles a nanosecond


def cycles_of_products(m, k, n):
    """Of f32, for the stationary operand's blocks of 128 by 128."""
    return -(-m // PARTITIONS) * -(-k // PARTITIONS) * n * C["TENSOR_F32"]


def product(batches, m, k, n, epilogue=0):
    """Work and latency: the result leaves PSUM by Vector; with an epilogue that reads PSUM it does so at once."""
    return {"tensor": True, "work": batches * cycles_of_products(m, k, n) / TENSOR,
            "latency": C["TENSOR_DEPTH"] + C["SIGNAL_TENSOR"] + C["VECTOR_DONE"] + epilogue}


def function(elements):
    """One activation of so many elements, spread over all partitions."""
    return {"work": elements / PARTITIONS / SCALAR,
            "latency": C["SCALAR_DONE"] + C["SCALAR_FUNCTION_DONE"] + C["SCALAR_SBUF_DONE"]}


def softmax(rows, columns):
    """Maximum, exponential with its sum, reciprocal, product: each waits for the one before.  Of the passes only the exponential is
    bound to an engine; the last tile's maximum needs the whole row."""
    chain = [columns / VECTOR + C["REDUCE_DONE"],
             (columns + C["SCALAR_SUM"]) / SCALAR + C["SCALAR_DONE"] + C["SCALAR_FUNCTION_DONE"] + C["SCALAR_SBUF_DONE"] + C["SCALAR_POINTER_DONE"],
             C["REDUCE_DONE"], columns / 2 / VECTOR + C["VECTOR_DONE"] + C["VECTOR_POINTER_DONE"]]
    tiles = -(-rows // PARTITIONS)
    return {"work": (tiles - 1) * columns / SCALAR, "latency": sum(chain) + (len(chain) - 1) * C["SIGNAL"]}


def sum_and_difference(elements):
    """Two cycles an element and operation, divided between Vector and GpSimd so that both end together."""
    return {"work": 2 * 2 * elements / PARTITIONS / (VECTOR + GPSIMD), "latency": C["VECTOR_DONE"]}


def transpose(elements):
    """A transfer that transposes, to SBUF, at nine tenths of the rate, and one that stores: no engine computes."""
    return {"work": 4 * elements / C["PEAK_HBM"] / (C["TRANSPOSE_HBM"] / 100), "latency": 0}


# bytes of each input, of all outputs, and what engines do
KERNELS = {
    "batch_matmul_knobs": ([2 * 256 * 256 * 4] * 2, 2 * 256 * 256 * 4, product(2, 256, 256, 256)),
    "exp_partition_dim_1": ([64 * 128 * 4], 64 * 128 * 4, function(64 * 128)),
    "fuse_siblings": ([512 * 512 * 4] * 2, 2 * 512 * 512 * 4, sum_and_difference(512 * 512)),
    "matmul_add_knobs": ([256 * 256 * 4] * 3, 256 * 256 * 4, product(1, 256, 256, 256)),
    "matmul_auto": ([256 * 128 * 4, 128 * 512 * 4], 256 * 512 * 4, product(1, 256, 128, 512)),
    "sigmoid_auto": ([128 * 256 * 4], 128 * 256 * 4, function(128 * 256)),
    "softmax_auto": ([256 * 256 * 4], 256 * 256 * 4, softmax(256, 256)),
    "softmax_knobs": ([256 * 256 * 4], 256 * 256 * 4, softmax(256, 256)),
    "transpose_3d_knobs": ([2 * 128 * 256 * 4], 2 * 128 * 256 * 4, transpose(2 * 128 * 256)),
}


def loaded(inputs):
    """When the last byte of these inputs is there, in nanoseconds from the first trigger."""
    row = max(inputs) / PARTITIONS
    first, hardware, rate = C["TRIGGER_START_SOFTWARE"], C["TRIGGER_START"], C["PEAK_HBM"]
    early = min(rate, row / C["TRIGGER_BUILD"])  # bytes a nanosecond
    before = early * (hardware - first)
    return first + sum(inputs) / early if sum(inputs) < before else hardware + (sum(inputs) - before) / rate


def worked(begin, work, is_tensor):
    """When work that begins then is done."""
    window = C["TENSOR_WINDOW"]
    slow = max(0, min(work, (window - begin) / 2)) if is_tensor else 0
    return begin + work + slow


def floor_us(kernel):
    """In microseconds."""
    inputs, outputs, engines = KERNELS[kernel]
    start, end = C["TRIGGER_START_SOFTWARE"], C["DMA_END"]
    arrive, leave = end + C["SIGNAL_DMA"], C["SIGNAL"] + start + end
    done = max(loaded(inputs) + arrive, worked(start + arrive, engines["work"], "tensor" in engines)) + engines["latency"]
    return max(done + leave, start + (sum(inputs) + outputs) / C["PEAK_HBM"] + end) / 1000
