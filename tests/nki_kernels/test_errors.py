"""What a kernel of NKI may not do: the code, the range and the words of each refusal; what was recorded before it remains."""
import pytest

from support import compiler
from support.nki_kernels import HEAD

KERNEL = HEAD + """
@nki.jit
def kernel(a: nl.tensor[128, 512], b: nl.tensor[64, 512]):
    out = nl.ndarray(a.shape, a.dtype, buffer=nl.shared_hbm)
    x = nl.load(a)
    p = nl.ndarray((128, 512), nl.float32, buffer=nl.psum)
    i = nl.ndarray((128, 512), nl.int32)
    {line}
    nl.store(out, x)
    return out
"""
LINE = KERNEL.splitlines().index("    {line}") + 1

# the line, the code, a part of the message; « and » around the range if it is not the whole line
CASES = [
    # names
    ("«nisa.tensor_tensr»(x, x, x, nl.add)", "nki-unknown-api", "nki.isa has no tensor_tensr"),
    ("«nl.sofmax»(x)", "nki-unknown-api", "nki.language has no sofmax"),
    ("«nki.simulat»(x)", "nki-unknown-api", "nki has no simulat"),
    ("nisa.tensor_scalar(x, x, «nl.mod», 2.0)", "nki-operator", "op0 cannot be mod, which no engine has"),
    ("nl.bypass(x, x)", "nki-operator", "nl.bypass is no function of tensors"),
    ("«nl.arange»(128)", "nki-mask-removed", "nki.language.arange belongs to an earlier NKI"),
    ("nki.baremetal(kernel)", "nki-removed-api", "nki.baremetal belongs to an earlier NKI"),
    # calls
    ("nisa.memset(x)", "nki-call", '"value" is missing'),
    ("nisa.memset(x, 0.0, «valu=3»)", "nki-call", 'has no parameter "valu"'),
    ("nisa.memset(x, 0.0, «dst=x»)", "nki-call", '"dst" is given twice'),
    ("nisa.memset(x, 0.0, None, «1», 2, 3)", "nki-call", "6 arguments"),
    ("nisa.memset(«3», 0.0)", "nki-call", "dst must be a tensor, not int"),
    ("nisa.memset(x, «x»)", "nki-call", "value must be a number, not"),
    ("nisa.memset(x, «'zero'»)", "nki-call", "value must be a number, not str"),
    ("nisa.memset(x, 0.0, engine=nisa.engine.tensor)", "nki-call", "memset does not run on the engine tensor"),
    ("nisa.memset(x, 0.0, engine=«7»)", "nki-removed-api", "engine=7: numbers for choices belong to an earlier NKI"),
    ("nisa.tensor_tensor(x, x, x, nl.add, «mask=True»)", "nki-mask-removed", "has no mask"),
    ("nisa.tensor_tensor(x, x, x, nl.add, «dtype=nl.float32»)", "nki-removed-api", "has no dtype"),
    ("nisa.tensor_scalar(x, x, nl.add, 1.0, op1=«nl.multiply»)", "nki-call", "op1 and operand1 go together"),
    # functions, which consist of calls: at the argument that the operand of the call comes from
    ("nl.add(x, «a»)", "nki-memory", "data2 is in shared_hbm"),
    ("nl.add(x, «'one'»)", "nki-call", "must be a number or a tensor, not str"),
    ("nl.add(x, y=«x[:, 0:4]»)", "nki-shape-mismatch", "x has the shape (128, 512), but x has (128, 4)"),
    ("nl.where(x, «a», x)", "nki-memory", "on_true is in shared_hbm"),
    ("nl.store(out, «p»)", "nki-memory", "src is in psum"),
    ("nl.store(out, «3.0»)", "nki-call", "src must be a tensor, not float"),
    ("nl.copy(«3.0»)", "nki-call", "nl.copy: x must be a tensor, not float"),
    ("nl.transpose(«x»)", "nki-size-limit", "a tensor in sbuf has 512 partitions"),
    ("nl.sum(x, axis=«0»)", "nki-operand", "axis 0"),
    # operators and types
    ("nisa.tensor_tensor(x, x, x, «nl.exp»)", "nki-operator", "exp is a function"),
    ("nisa.activation(x, «nl.add», x)", "nki-operator", "add is an operator"),
    ("nisa.tensor_tensor(x, x, x, «'plus'»)", "nki-operator", "op cannot be 'plus'"),
    ("nisa.tensor_reduce(x[:, 0:1], nl.power, x, axis=1)", "nki-operator", "power does not reduce"),
    ("nisa.tensor_tensor(«x», x, x, nl.bitwise_and)", "nki-dtype", "has the type float32"),
    ("nisa.tensor_scalar(i, i, nl.bitwise_and, 1, op1=nl.add, operand1=1.0)", "nki-operator", "add computes with numbers"),
    ("nl.ndarray((4, 4), «'float7'»)", "nki-dtype", "'float7' is not a data type"),
    # memories
    ("nisa.nc_matmul(«x», x, x)", "nki-memory", "dst is in sbuf, but it must be in psum"),
    ("nisa.nc_matmul(p, «p», x)", "nki-memory", "stationary is in psum, but it must be in sbuf"),
    ("nisa.tensor_copy(x, «a»)", "nki-memory", "src is in shared_hbm, but it must be in psum or sbuf"),
    ("nisa.dma_copy(«p», a)", "nki-memory", "dst is in psum, but it must be in hbm or sbuf"),
    ("nisa.tensor_tensor(x, «p», p, nl.add)", "nki-operand", "data1 and data2 are both in PSUM"),
    ("nl.ndarray((4, 4), nl.float32, buffer=«'cache'»)", "nki-memory", "'cache' is not a memory"),
    # sizes and shapes
    ("nl.ndarray(«(256, 4)», nl.float32)", "nki-size-limit", "has 256 partitions, but there are 128"),
    ("nl.ndarray(«(128, 60000)», nl.float32)", "nki-size-limit", "a tensor needs 240000 bytes"),
    ("nl.ndarray(«(128,)», nl.float32)", "nki-size-limit", "2 to 8 dimensions, not 1"),
    ("nl.ndarray(«(128, 0)», nl.float32)", "nki-size-limit", "dimension 1 of a tensor has the size 0"),
    ("nisa.tensor_copy(x, «x[0:64]»)", "nki-shape-mismatch", "src has 64 partitions, but dst has 128"),
    ("nisa.tensor_copy(x, «x[:, 0:3]»)", "nki-shape-mismatch", "src has 3 elements in each partition, but dst has 512"),
    ("nisa.dma_copy(x, «b»)", "nki-shape-mismatch", "src has 32768 elements, but dst has 65536"),
    ("nisa.tensor_scalar(x, x, nl.add, «x»)", "nki-operand", "operand0 has 512 elements in each partition"),
    ("nisa.activation(x, nl.exp, x, bias=«x»)", "nki-operand", "bias has 512 elements"),
    ("nisa.activation(x, nl.exp, x, reduce_op=«nl.max», reduce_res=x[:, 0:1])", "nki-operator", "reduce_op is max"),
    ("nisa.tensor_reduce(x[:, 0:1], nl.add, x, axis=«0»)", "nki-operand", "axis 0"),
    ("nisa.tensor_reduce(x[:, 0:2], nl.add, x, axis=1)", "nki-shape-mismatch", "1 elements remain"),
    ("nisa.nc_matmul(p, «x[:, 0:256]», x)", "nki-size-limit", "stationary has 256 elements"),
    ("nisa.nc_matmul(p, «x[0:64, 0:128]», x)", "nki-shape-mismatch", "stationary has 64 partitions, but moving has 128"),
    ("nisa.nc_matmul(p[:, 0:8], x[:, 0:128], x)", "nki-shape-mismatch", "the product has the shape (128, 512), but dst has (128, 8)"),
    ("nisa.nc_matmul(p, «i[:, 0:128]», x)", "nki-dtype", "stationary has the type int32, but the Tensor engine multiplies floats"),
    ("nisa.tensor_copy_predicated(x, 0.0, «x»)", "nki-dtype", "predicate has the type float32"),
    ("nl.add(x, «nl.load(a[:, 0:4])»)", "nki-shape-mismatch", "nl.add: x has the shape (128, 512)"),
    ("nisa.dma_transpose(x, x)", "nki-shape-mismatch", "the transpose of src has the shape (512, 128), but dst has (128, 512)"),
    ("nisa.dma_transpose(x, x.reshape((128, 2, 256)), axes=(1, 2, 0))", "nki-operand", "DMA does not transpose 3 dimensions like this"),
    ("nisa.dma_transpose(«x», x.reshape((128, 2, 256)), axes=(2, 1, 0))", "nki-shape-mismatch", "dst has another shape than the transpose of src"),
    ("nisa.dma_compute(x, [x], nl.add)", "nki-operand", "dma_compute has 1 sources, but it takes 2 to 16"),
    ("nisa.dma_compute(x, [x, x], «nl.multiply»)", "nki-operator", "reduce_op is multiply"),
    ("nisa.dma_compute(x, [x, x], nl.add, scales=[1.0, 2.0])", "nki-operand", "the scales of dma_compute are 1"),
    ("nisa.dma_copy(x, «x.vector_select(0, i[:, 0:1])»)", "nki-view", "rows are selected in HBM only"),
    ("nisa.dma_copy(x, «a.vector_select(1, i[:, 0:1])»)", "nki-view", "rows are selected in dimension 0, not 1"),
    ("nisa.dma_copy(x, «a.vector_select(0, x[:, 0:1])»)", "nki-dtype", "the row numbers have the type float32"),
    ("nisa.dma_copy(x, «a.vector_select(0, i)»)", "nki-view", "the row numbers are in sbuf, 512 in each partition"),
    ("nisa.dma_copy(x, «a.reshape((256, 256)).ap([[256, 128], [1, 512]], vector_offset=i[:, 0:1])»)", "nki-view",
     "the rows of a are selected by its own shape, not by that of reshape"),
    ("nisa.dma_copy(x, «a.ap([[512, 64], [1, 512]], vector_offset=i[:, 0:1])»)", "nki-view", "there are 128 row numbers, but the pattern has 64 rows"),
    ("nisa.dma_copy(x[0:64], a.vector_select(0, i[:, 0:1]))", "nki-operand", "rows of src are selected for 128 partitions, but dst is in sbuf and has 64"),
    ("nisa.dma_transpose(x, a.vector_select(0, i[:, 0:1]))", "nki-operand", "src of nisa.dma_transpose cannot be rows that are selected by number"),
    ("nisa.nc_transpose(p, «x»)", "nki-size-limit", "data has 512 elements in each partition, but at most 128 fit"),
    ("nisa.nc_transpose(p[:, 0:128], i[:, 0:128])", "nki-dtype", "the Tensor engine transposes floats, not int32"),
    ("nisa.scalar_tensor_tensor(x, «p», nl.add, 1.0, nl.add, p)", "nki-operand", "data and operand1 are both in PSUM"),
    ("nisa.tensor_scalar(x, p, nl.add, «p[:, 0:1]»)", "nki-operand", "operand0 and data are both in PSUM"),
    ("nisa.activation(x, nl.exp, p, bias=«p[:, 0:1]»)", "nki-operand", "bias and data are both in PSUM"),
    ("nisa.activation(x, nl.exp, p, scale=«p[:, 0:1]»)", "nki-operand", "scale and data are both in PSUM"),
    ("nisa.scalar_tensor_tensor(i, i, «nl.bitwise_and», 1, nl.add, i)", "nki-operator", "op0 is bitwise_and"),
    ("nisa.tensor_scalar_reduce(x, x, nl.add, 1.0, «nl.logical_or», x[:, 0:1])", "nki-operator", "reduce_op is logical_or"),
    ("nisa.tensor_scalar_reduce(x, x, nl.add, 1.0, nl.add, x[:, 0:1], reduce_cmd=nisa.reduce_cmd.idle)", "nki-operand",
     "no call before has left anything in the accumulator registers, which idle goes on with"),
    ("nisa.activation(x, nl.exp, x, reduce_op=nl.add, reduce_res=x[:, 0:1], reduce_cmd=nisa.reduce_cmd.reduce)", "nki-operand", "the accumulator registers"),
    ("nisa.activation(x, nl.exp, x, reduce_op=nl.add, reduce_res=x[:, 0:1], reduce_cmd=nisa.reduce_cmd.load_reduce)", "nki-operand", "no number to begin with"),
    ("nisa.activation(x, nl.exp, x, reduce_op=nl.add, reduce_res=x[:, 0:1], reduce_cmd='add_up')", "nki-call", "add_up is no reduce_cmd"),
    ("nisa.tensor_scalar_reduce(x, x, nl.add, 1.0, nl.add, reduce_init=«2.0»)", "nki-call", "reduce_init and the reduce_cmd load_reduce go together"),
    ("nisa.tensor_scalar(x, x, nl.add)", "nki-call", '"operand0" is missing'),
    ("nisa.tensor_scalar(x, x, nl.abs, 2.0)", "nki-operand", "abs takes one value, but operand0 is given"),
    ("nisa.tensor_scalar(x, x, «nl.exp»)", "nki-operator", "exp is a function"),
    ("nisa.tensor_scalar(x, x, nl.rsqrt)", "nki-operator", "rsqrt is an operator of GpSimd"),
    ("nisa.tensor_scalar(x, x, nl.square)", "nki-operator", "square is an operator of trn3, not of trn2"),
    ("nisa.tensor_tensor(x, x, x, nl.abs_max)", "nki-operator", "abs_max is an operator of trn3"),
    ("nisa.tensor_scalar(x, x, nl.subtract, 1.0, engine=nisa.engine.scalar)", "nki-operator", "the Scalar engine multiplies, adds"),
    ("nisa.activation(x, nl.prelu, x)", "nki-operator", "prelu needs a slope"),
    ("nisa.range_select(x, x, «nl.not_equal», nl.less, 0.0, 1.0)", "nki-operator", "comp_op0 is not_equal"),
    ("nisa.range_select(x, x, nl.less, nl.less, 0.0, 1.0, range_start=0.5)", "nki-size-limit", "the indices go from 0.5"),
    ("nisa.range_select(x, x, nl.less, nl.less, 0.0, 1.0, range_start=16776705.0)", "nki-size-limit", "the indices go from 1.67767e+07"),
    ("nisa.exponential(x, x)", "nki-unsupported", "trn2 does not have nisa.exponential"),
    ("nisa.activate2(x, nl.exp, x, 1.0, 1.0, nl.add, nl.add)", "nki-unsupported", "trn2 does not have nisa.activate2"),
    ("nisa.dropout(i, «x», 0.5)", "nki-dtype", "data is float32, but dst is int32"),
    ("nisa.nc_stream_shuffle(x, x, «[0] * 31»)", "nki-operand", "shuffle_mask has 31 entries"),
    ("nisa.nc_stream_shuffle(x, x, «[0] * 33»)", "nki-size-limit", "shuffle_mask has 33 entries, but at most 32 are possible"),
    ("nisa.nc_stream_shuffle(x, x, «[32] * 32»)", "nki-bounds", "takes partition 0 from place 32"),
    ("nisa.nc_stream_shuffle(x[0:8], x[0:8], «[8] * 32»)", "nki-bounds", "takes partition 0 from place 8"),
    ("nisa.nc_stream_shuffle(i, «x», [0] * 32)", "nki-dtype", "src is float32, but dst is int32"),
    ("nisa.nc_n_gather(x, x, «i»)", "nki-dtype", "indices is int32, but it must be uint32"),
    ("nisa.local_gather(x, x, nl.ndarray((128, 32), nl.uint16), «3»)", "nki-operand", "num_elem_per_idx is 3"),
    ("nisa.local_gather(x, x, nl.ndarray((128, 300), nl.uint16))", "nki-size-limit", "there are 4800 indices"),
    ("nisa.local_gather(x[:, 0:500], x, nl.ndarray((128, 32), nl.uint16))", "nki-shape-mismatch", "512 indices of 1 elements are gathered, but dst has 500"),
    ("nisa.local_gather(«x[0:8]», x[0:8], nl.ndarray((8, 32), nl.uint16))", "nki-operand", "dst has 8 partitions, which is no multiple of 16"),
    ("nisa.sequence_bounds(x, «x»)", "nki-shape-mismatch", "segment_ids has the shape (128, 512)"),
    ("nisa.nonzero_with_count(i, «x»)", "nki-shape-mismatch", "so dst must have 513, not 512"),
    ("nisa.nonzero_with_count(«x», x)", "nki-dtype", "dst is float32, but it must be int32"),
    ("nisa.rng(«x»)", "nki-dtype", "dst has the type float32"),
    ("nisa.rand2(x, 0.0, 1.0)", "nki-unsupported", "trn2 does not have nisa.rand2"),
    ("nisa.set_rng_seed(«i»)", "nki-operand", "src_seeds has 65536 elements"),
    ("nisa.rand_get_state(«nl.ndarray((4, 24), nl.uint32)»)", "nki-shape-mismatch", "the state of a lane has 6 words"),
    ("nisa.rand_get_state(nl.ndarray((4, 24), nl.uint32), engine=nisa.engine.vector)", "nki-unsupported", "trn2 does not have nisa.rand_get_state"),
    ("nisa.core_barrier(out, (0, 2))", "nki-operand", "a barrier is between the cores 0 and 1"),
    ("nisa.sendrecv(x, x, 1, 1, 0)", "nki-operand", "the kernel runs on one core"),
    ("nl.shared_constant(«'weights.npy'»)", "nki-unsupported", "a constant in a file"),
    ("nl.shared_constant(np.zeros((4, 4)))", "nki-dtype", "a constant cannot have the type dtype('float64')"),
    ("nl.store(«nl.shared_constant(np.zeros((128, 512), np.float32))», x)", "nki-operand", "which cannot be written"),
    ("nisa.quantize_mx(x, x, x)", "nki-unsupported", "trn2 does not have nisa.quantize_mx"),
    ("y = nl.ndarray((32, 4), «nl.float8_e4m3fn_x4»)", "nki-dtype", "trn2 does not have the type float8_e4m3fn_x4"),
    ("nisa.nc_transpose(x, «x»)", "nki-size-limit", "Vector transposes at most 32 by 32"),
    ("nisa.nc_transpose(x[:, 0:128], x[:, 0:128], engine=nisa.engine.tensor)", "nki-memory", "the Tensor engine reads SBUF and writes PSUM"),
    ("nisa.select_reduce(x, «x», x, 0.0)", "nki-dtype", "predicate has the type float32"),
    ("nisa.affine_select(x, [[1, 512]], 1, x, 0.0, cmp_op=«nl.add»)", "nki-operator", "cmp_op is add"),
    ("nisa.affine_select(x, [[1, 500]], 1, x, 0.0)", "nki-shape-mismatch", "the pattern has 500 elements"),
    ("nisa.tensor_scalar_cumulative(x, x, nl.add, nl.add, 1.0, reduce_cmd=nisa.reduce_cmd.reset)", "nki-call", "cannot have the reduce_cmd reset"),
    ("nisa.tensor_scalar_cumulative(x, x, nl.add, nl.add, 1.0, «2.0»)", "nki-call", "imm1 and the reduce_cmd load_reduce go together"),
    ("nisa.tensor_scalar_cumulative(x, x, nl.add, «nl.less», 1.0)", "nki-operator", "op1 is less"),
    ("nisa.bn_stats(«x[:, 0:5]», x)", "nki-shape-mismatch", "dst has 5 elements in each partition, but it must have 6"),
    ("nisa.bn_aggr(x[:, 0:2], «x»)", "nki-shape-mismatch", "it must have groups of 3"),
    ("nisa.max8(x[:, 0:8], «x[:, 0:7]»)", "nki-shape-mismatch", "src has 7 elements in each partition, but it must have 8 to 16384"),
    ("nisa.nc_find_index8(«i[:, 0:8]», x, x[:, 0:8])", "nki-dtype", "dst has the type int32"),
    ("nisa.nc_match_replace8(x, «i», x[:, 0:8], 0.0)", "nki-dtype", "data has the type int32"),
    ("nisa.nc_matmul(p, «x[:, 0:128]», x, perf_mode=nisa.matmul_perf_mode.double_row)", "nki-dtype", "stationary is float32"),
    ("nisa.nc_matmul(p, x[:, 0:128], x, perf_mode='triple_row')", "nki-call", "triple_row is no perf_mode"),
    ("nisa.nc_matmul(p, x[:, 0:128], «x», is_transpose=True)", "nki-operand", "moving has the shape (128, 512), which is not that of an identity matrix"),
    ("nisa.nc_matmul(p, x[:, 0:128], x, tile_size=(64, 128))", "nki-call", "tile_position and tile_size go together"),
    ("nisa.nc_matmul(p, x[:, 0:128], x, tile_size=(64, 128), tile_position=(0, 0))", "nki-size-limit", "the product has 128 rows, but the tile 64"),
    ("nisa.nc_matmul(p, x[0:64, 0:128], x[0:64], tile_size=(64, 128), tile_position=(32, 0))", "nki-operand", "a tile of 64 rows begins at 32"),
    ("nisa.nc_matmul(p, x[0:64, 0:128], x[0:64], tile_size=(64, 128), tile_position=(64, 0))", "nki-address", "the tile begins at rows 64, but stationary at partition 0"),
    ("nisa.nc_matmul(p, x[0:16, 0:128], x[0:16], tile_size=(16, 128), tile_position=(0, 0))", "nki-operand", "a tile has 16 rows"),
    ("nisa.nc_matmul(«nl.ndarray((128, 512), nl.bfloat16, buffer=nl.psum)», x[:, 0:128], x)", "nki-dtype", "dst is bfloat16, which the product of float32"),
    # places
    ("nisa.memset(«x[1:3]», 0.0)", "nki-address", "dst covers 2 partitions from 1 on"),
    ("nisa.memset(«x[32:96]», 0.0)", "nki-address", "dst covers 64 partitions from 32 on"),
    ("nisa.memset(«x[0:128:2]», 0.0)", "nki-address", "dst steps over partitions by 2"),
    # Python on tensors
    ("y = «x + x»", "nki-tensor-operator", "tensors of NKI have no operators"),
    ("«x[0:2]» = x", "nki-tile-assignment", "a part of a tensor cannot be assigned to"),
    ("if «x»: pass", "nki-tensor-truth", "a tensor has no truth value"),
    ("y = «x[:, 600]»", "nki-bounds", "the index 600 is not inside dimension 1"),
    ("y = «p.view(nl.int32).view(nl.bfloat16)»", "nki-view", "elements of 4 bytes in PSUM cannot be seen as 2"),
    ("y = «a.vector_select(0, i[:, 0:1]).view(nl.int32)»", "nki-view", "rows that numbers select have no other type"),
    ("y = «x.ap([[512, 128], [1, 512]], dtype=nl.float8_e4m3fn_x4)»", "nki-dtype", "trn2 does not have the type float8_e4m3fn_x4"),
    ("y = «x.reshape((64, 1024))»", "nki-view", "reshape cannot change the partition dimension"),
    ("y = «x[nl.load(b)]»", "nki-operand", "an index is a tensor"),
    # results
    ("return «x»", "nki-output", "x is in sbuf, but results are in shared_hbm"),
    ("return out[0:64]", "nki-output", "a part of out is returned"),
    ("return «None»", "nki-output", "the kernel returns nothing"),
    ("return «3»", "nki-output", "an object of type int"),
    ("return out", "nki-output", "nothing is written to the result out"),
    # Python itself
    ("assert «a.shape[0] == 64», 'rows'", "nki-assert", "AssertionError: rows"),
    ("y = «1 / (a.shape[0] - 128)»", "nki-host-error", "ZeroDivisionError"),
    ("undefined_name", "nki-name", "undefined_name is not defined"),
]


@pytest.mark.parametrize("line, code, message", CASES, ids=[f"{i}-{c[1]}" for i, c in enumerate(CASES)])
def test_each_refusal_has_its_code_its_range_and_says_what_was_found(line, code, message):
    plain = line.replace("«", "").replace("»", "")
    result = compiler.compile(KERNEL.format(line=plain))
    errors = [d for d in result["diagnostics"] if d["severity"] == "error"]
    assert len(errors) == 1 and result["status"] == "error"
    [d] = errors
    assert (d["code"], message in d["message"]) == (code, True), d
    begin = 5 + (line.index("«") if "«" in line else 0)
    end = 5 + (line.index("»") - 1 if "»" in line else len(line))
    place = d["range"]
    assert (place["line"], place["col"], place["end_col"]) == (LINE, begin, end), place
    [kernel] = result["kernels"]
    assert [s["name"] for s in kernel["stages"]] == ["nki-ast", "nki-trace"]
    analysis, trace = kernel["stages"]
    assert plain in analysis["text"] and "partial" not in analysis
    assert trace["partial"] and "x = nl.load(a)" in trace["text"], "what was recorded remains"


def test_a_call_outside_of_a_kernel_is_refused():
    [d] = compiler.compile("import nki.language as nl\nx = nl.ndarray((4, 4), nl.float32)\n")["diagnostics"]
    assert d["code"] == "nki-call" and d["message"] == "no NKI kernel is running here" and d["range"]["line"] == 2


def test_a_loop_that_unrolls_without_end_is_refused():
    body = "for _ in range(10 ** 9): nisa.memset(x, 0.0)"
    result = compiler.compile(KERNEL.format(line=body))
    assert "too-many-operations" in [d["code"] for d in result["diagnostics"]]


def test_names_that_a_kernel_does_not_use_refuse_nothing():
    source = "from nki.language import while_loop, arange, no_such_name\n" + KERNEL.format(line="pass")
    assert compiler.compile(source)["status"] == "ok"


PACKED = KERNEL.format(line="""u = nl.ndarray((64, 8), nl.uint8)
    d = nl.ndarray((64, 8), nl.float8_e4m3fn_x4)
    f = nl.ndarray((64, 8), nl.float4_e2m1fn_x4)
    h = nl.ndarray((64, 32), nl.bfloat16)
    q = nl.ndarray((8, 8), nl.float32, buffer=nl.psum)
    {line}""")
ON_TRN3 = [
    ("nisa.quantize_mx(u, h, u)", "nki-dtype", "dst is uint8"),
    ("nisa.quantize_mx(f, h, u)", "nki-dtype", "dst is float4_e2m1fn_x4"),
    ("nisa.quantize_mx(d, x[0:64, 0:32], u)", "nki-dtype", "src is float32, but it must be bfloat16 or float16"),
    ("nisa.quantize_mx(d, h[:, 0:28], u)", "nki-shape-mismatch", "src has 28 elements in each partition, but dst has 8"),
    ("nisa.quantize_mx(d[0:16], h[0:16], u[0:16])", "nki-operand", "dst has 16 partitions, which is no multiple of 32"),
    ("nisa.quantize_mx(d, h, u[:, 0:7])", "nki-shape-mismatch", "dst_scale has the shape (64, 7), but dst has (64, 8)"),
    ("nisa.quantize_mx(d, h, u[0:32])", "nki-shape-mismatch", "dst_scale has the shape (32, 8), but dst has (64, 8)"),
    ("nisa.nc_matmul_mx(q, d, d[0:32], u, u[0:32])", "nki-shape-mismatch", "stationary has 64 partitions, but moving has 32"),
    ("nisa.nc_matmul_mx(q, d, d, u, i[0:64, 0:8])", "nki-dtype", "moving_scale is int32"),
    ("nisa.nc_matmul_mx(q[:, 0:4], d, d, u, u)", "nki-shape-mismatch", "the product has the shape (8, 8), but dst has (8, 4)"),
    ("nisa.nc_matmul_mx(q, d, d, u, u, tile_position=(0, 64), tile_size=(64, 64))", "nki-call", "tiles of rows only"),
    ("nisa.tensor_scalar(d, d, nl.add, 1.0)", "nki-dtype", "dst is float8_e4m3fn_x4"),
    ("nisa.memset(d, 1)", "nki-dtype", "dst is float8_e4m3fn_x4"),
]


@pytest.mark.parametrize("line, code, message", ON_TRN3, ids=[c[0] for c in ON_TRN3])
def test_each_refusal_of_packed_elements_says_what_was_found(line, code, message):
    errors = [d for d in compiler.compile(PACKED.format(line=line), "--target", "trn3")["diagnostics"] if d["severity"] == "error"]
    assert [(d["code"], message in d["message"]) for d in errors] == [(code, True)], errors


@pytest.mark.parametrize("mistake, code", [
    ("t = nl.ndarray((256, 512), nl.float32, buffer=nl.sbuf); nisa.memset(t, 1.0)", "nki-size-limit"),
    ("t = nl.load(a); nisa.tensor_copy(dst=u, src=t[0:3])", "nki-size-limit"), ("x = u[300]; nisa.memset(x, 0.0)", "nki-bounds"),
    ("y = nl.exp(nl.add(u, nl.load(a[0:64]))); nl.store(out, y)", "nki-shape-mismatch"), ("y = nl.exp(nl.gelou(u))", "nki-unknown-api")])
def test_a_kernel_runs_on_after_a_tensor_that_was_refused(mistake, code):
    source = HEAD + f"""
@nki.jit
def k(a: nl.tensor[nl.float32, (256, 512)]):
    out, u = nl.ndarray((128, 512), a.dtype, buffer=nl.shared_hbm), nl.ndarray((128, 512), nl.float32, buffer=nl.sbuf)
    nisa.dma_copy(dst=u, src=a[0:128])
    nisa.tensor_tensor(dst=u, data1=u, data2=u[:, 0:50], op=nl.add)
    {mistake}
    nisa.tensor_tensor(dst=u, data1=u, data2=u[:, 0:100], op=nl.add)
    nl.store(out, u)
    return out
"""
    found = [d["code"] for d in compiler.compile(source)["diagnostics"] if d["severity"] == "error"]
    assert sorted(found) == sorted(["nki-shape-mismatch", code, "nki-shape-mismatch"])


MISTAKES = [  # the line, « and » around the range, the code and what is said
    ("y = «x.reshape((64, 1024))»", "nki-view", "reshape cannot change the partition dimension"),
    ("y = «x.slice(1, 9, 3)»", "nki-bounds", ""),
    ("y = «x.flatten_dims(0, 1)»", "nki-view", ""),
    ("y = «x.rearrange(('p', 'f'), ('f', 'p'))»", "nki-view", ""),
    ("y = «x.permut»((1, 0))", "nki-name", "a tensor has no permut"),
    ("y = nl.exp(«no_such_name»)", "nki-name", "no_such_name is not defined"),
    ("y = «no_such_function»(x)", "nki-name", "no_such_function is not defined"),
    ("y = nl.exp(«no_name» if a.shape[0] > 3 else x)", "nki-name", "no_name is not defined"),
    ("y = «nl.mgrid»[0:128, 0:512]", "nki-mask-removed", "nki.language.mgrid belongs to an earlier NKI"),
    ("y = «nl.par_dim»(128)", "nki-mask-removed", "nki.language.par_dim belongs to an earlier NKI"),
    ("y = «nki.simulat»(x)", "nki-unknown-api", "nki has no simulat"),
]
USES = ["z = x[:, y]", "z = y.reshape((128, 4))", "z = nl.ndarray(y.shape, y.dtype)", "z = x.ap([[512, 128], [y, 4]])", "nisa.tensor_copy(x, y)",
        "nl.store(out[:, y:512], x)", "nisa.iota(i, [[y, 512]])"]


@pytest.mark.parametrize("first", range(len(MISTAKES)))
def test_a_kernel_with_five_mistakes_shows_five(first):
    """Methods, names and functions that are refused, each used after it, do not end the kernel."""
    chosen = [MISTAKES[(first + k) % len(MISTAKES)] for k in range(5)]
    lines, want = [], []
    for k, (line, code, text) in enumerate(chosen):
        want.append((LINE + len(lines), 5 + line.index("«"), 4 + line.index("»"), code))
        lines += [line.replace("«", "").replace("»", ""), USES[(first + k) % len(USES)]]
    found = [d for d in compiler.compile(KERNEL.format(line="\n    ".join(lines)))["diagnostics"] if d["severity"] == "error"]
    got = sorted((d["range"]["line"], d["range"]["col"], d["range"]["end_col"], d["code"]) for d in found)
    assert got == want, found
    by_line = {d["range"]["line"]: d["message"] for d in found}
    assert all(text in by_line[line] for (line, *_), (_, _, text) in zip(want, chosen))


def test_questions_about_attributes_that_tensors_do_not_have_are_pythons():
    line = "assert not hasattr(x, 'no_such') and getattr(x, 'no_such', 7) == 7"
    assert compiler.compile(KERNEL.format(line=line))["status"] == "ok"


def test_tensors_that_do_not_fit_together_say_so():
    """Each fits; both are in use when the second is written."""
    line = "y = nl.ndarray((128, 40000), nl.float32); z = nl.ndarray((128, 40000), nl.float32)\n    nisa.memset(y, 1.0); nisa.memset(z, 2.0)\n" \
           "    nisa.tensor_tensor(x, y[:, 0:512], z[:, 0:512], nl.add)"
    result = compiler.compile(KERNEL.format(line=line))
    found = [d for d in result["diagnostics"] if d["severity"] == "error"]
    assert [d["code"] for d in found] == ["nki-memory-full"] and LINE <= found[0]["range"]["line"] <= LINE + 1, found


@pytest.mark.parametrize("call, found", [
    ("nl.max(x, «3»)", "axis 3 of a tensor of 2 dimensions"), ("nl.max(x, axis=«(0, 1)»)", "axis 0 of a tensor"),
    ("nl.mean(x, «-3»)", "axis -3 of a tensor"), ("«nl.max(x)»", "nl.max takes two tensors, or one and an axis"),
    ("nl.matmul(«x», a, transpose_x=True)", "the product has 512 partitions, but at most 128 fit"),
    ("nl.matmul(b, «a»)", "x has 100 elements in each partition, but y has 128 partitions"),
    ("nisa.activation(dst=x, op=«nl.expp», data=x)", "nki.language has no expp"),
    ("nl.zeros((4, 4), «nl.float31»)", "nki.language has no float31"),
])
def test_the_argument_is_blamed_and_the_kernel_goes_on(call, found):
    plain = call.replace("«", "").replace("»", "")
    source = HEAD + f"""
@nki.jit
def kernel(h: nl.tensor[nl.float32, (128, 512)]):
    out = nl.ndarray(h.shape, h.dtype, buffer=nl.shared_hbm)
    x = nl.load(h)
    a, b = nl.load(h[:, 0:200]), nl.load(h[:, 0:100])
    {plain}
    nl.sum(x, axis=0)
    nl.store(out, x)
    return out
"""
    errors = [d for d in compiler.compile(source)["diagnostics"] if d["severity"] == "error"]
    lines = source.splitlines()
    at = [lines[d["range"]["line"] - 1][d["range"]["col"] - 1:d["range"]["end_col"] - 1] for d in errors]
    assert at == [call[call.index("«") + 1:call.index("»")], "0"] and found in errors[0]["message"], errors
