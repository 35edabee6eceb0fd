/* verify_ops: checks the operands of each operation together: corresponding sizes, limits of the tensor engine
 * (architecture guides of trn1 and trn2), and types.  verify.c has checked each operand separately. */
#include <assert.h>
#include <string.h>

#include "mlir-c/BuiltinAttributes.h"
#include "mlir-c/BuiltinTypes.h"

#include "ir/query.h"
#include "nisa/range.h"
#include "nisa/verify_ops.h"

MlirType nisa_element(const struct nisa_access *x) {
  return nisa_access_element(x);
}

static bool is_in_psum(const struct nisa_access *x) {
  return x && !nisa_is_scalar(x) && nisa_access_space(x) == MEM_PSUM;
}

/* ---- sizes ------------------------------------------------------------------------------------------------------ */

/* Checks that x has dst's partitions and as many elements in each. */
void nisa_check_same(struct nisa_check *c, const struct nisa_instr *in, const char *name) {
  const struct nisa_access *x = nisa_operand(in, name), *dst = &in->operand[0];

  if (!x || nisa_is_scalar(x))
    return;
  if (nisa_partitions(x) != nisa_partitions(dst) || nisa_free_elements(x) != nisa_free_elements(dst))
    nisa_complain(c, in->op, "%s has %lld partitions of %lld elements, dst has %lld of %lld", name,
                  (long long)nisa_partitions(x), (long long)nisa_free_elements(x), (long long)nisa_partitions(dst),
                  (long long)nisa_free_elements(dst));
}

/* Checks that x is a scalar or has one element for each of dst's partitions. */
void nisa_check_column(struct nisa_check *c, const struct nisa_instr *in, const char *name) {
  const struct nisa_access *x = nisa_operand(in, name);

  if (!x || nisa_is_scalar(x))
    return;
  if (nisa_partitions(x) != nisa_partitions(&in->operand[0]) || nisa_free_elements(x) != 1)
    nisa_complain(c, in->op, "%s must have one element for each of the %lld partitions", name,
                  (long long)nisa_partitions(&in->operand[0]));
}

static void check_one_in_psum(struct nisa_check *c, const struct nisa_instr *in, const char *a, const char *b) {
  if (is_in_psum(nisa_operand(in, a)) && is_in_psum(nisa_operand(in, b)))
    nisa_complain(c, in->op, "%s and %s are both in PSUM; the engine reads one operand there", a, b);
}

/* ---- tensor engine ---------------------------------------------------------------------------------------------- */

/* True if the bytes of a result are in one bank in each partition: an allocation starts at a bank or is inside one. */
static bool fits_a_bank(const struct nisa_access *x, int64_t bank) {
  MlirType t = mlirValueGetType(x->base);
  int64_t unit = nisa_element_bytes(nisa_access_element(x)), span = unit, grid = bank;
  uint64_t at = 0; /* modulo 2^64: banks have a power of two of bytes */
  struct nisa_index i;

  if (mlirTypeIsNull(x->type) && nisa_type_bytes(t) <= bank) /* so wherever the result is in it */
    return true;
  for (int r = (int)mlirShapedTypeGetRank(t) - 1; r >= 1; r--) {
    nisa_access_index(x, r, &i);
    at += (uint64_t)i.constant * (uint64_t)unit;
    for (int k = 0; k < x->n_dims; k++)
      span += i.dim[k] * (x->tile[k] - 1) * unit;
    for (int k = 0; k < x->n_indices; k++)
      if (i.sym[k])
        grid = nisa_gcd(i.sym[k] % grid * (nisa_divisor(x->indices[k]) % grid) * (unit % grid), grid);
    unit *= nisa_access_extent(x, r);
  }
  return (int64_t)(at % (uint64_t)grid) + span <= grid;
}

static bool is_matmul_input(MlirType t) {
  return mlirTypeIsAFloat(t) && nisa_element_bytes(t) <= 4;
}

void nisa_check_limit(struct nisa_check *c, const struct nisa_instr *in, const char *what, int64_t n, int64_t max) {
  if (n > max)
    nisa_complain(c, in->op, "%s is %lld; the tensor engine takes at most %lld", what, (long long)n, (long long)max);
}

void nisa_check_product(struct nisa_check *c, const struct nisa_instr *in) {
  const struct nisa_access *dst = &in->operand[0], *a = &in->operand[1], *b = &in->operand[2];
  const int64_t k = nisa_partitions(a), rows = nisa_free_elements(a), columns = nisa_free_elements(b);

  nisa_check_limit(c, in, "M (columns of stationary)", rows, c->machine->matmul_m);
  nisa_check_limit(c, in, "N (columns of moving)", columns, c->machine->matmul_n);
  if (nisa_partitions(b) != k)
    nisa_complain(c, in->op, "stationary has %lld partitions, moving %lld", (long long)k,
                  (long long)nisa_partitions(b));
  if (nisa_partitions(dst) != rows || nisa_free_elements(dst) != columns)
    nisa_complain(c, in->op, "dst is %lld x %lld, the product %lld x %lld", (long long)nisa_partitions(dst),
                  (long long)nisa_free_elements(dst), (long long)rows, (long long)columns);
}

void nisa_check_position(struct nisa_check *c, const struct nisa_instr *in, int operand, int64_t used) {
  int64_t position;
  if (!ir_int_constant(in->operand[operand].base, &position) || position < 0 || position % 32 ||
      position + used > NISA_PARTITIONS)
    nisa_complain(c, in->op, "%s must be 0, 32, 64 or 96, with the product inside the array",
                  in->def->operand[operand].name);
}

static void check_matmul(struct nisa_check *c, const struct nisa_instr *in) {
  const struct nisa_access *dst = &in->operand[0], *a = &in->operand[1], *b = &in->operand[2];
  const struct nisa_machine *m = c->machine;
  const int64_t k = nisa_partitions(a);

  nisa_check_limit(c, in, "K (partitions)", k, m->matmul_k);
  nisa_check_product(c, in);
  if (!is_matmul_input(nisa_element(a)) || !is_matmul_input(nisa_element(b)))
    nisa_complain(c, in->op, "the tensor engine multiplies f32, bf16, f16 and f8 only");
  else if (mlirTypeIsAF32(nisa_element(a)) != mlirTypeIsAF32(nisa_element(b)))
    nisa_complain(c, in->op, "f32 can only be multiplied with f32");
  MlirAttribute passes = ir_attr(in->op, "is_transpose");
  if (!mlirAttributeIsNull(passes) && mlirAttributeIsABool(passes) && mlirBoolAttrGetValue(passes)) {
    if (!mlirTypeEqual(nisa_element(dst), nisa_element(a)) &&
        !mlirTypeIsAF32(nisa_element(dst))) /* f32 holds every element unchanged */
      nisa_complain(c, in->op, "a transpose does not convert its operand");
  } else if (!mlirTypeIsAF32(nisa_element(dst)) && !(m->bf16_psum && mlirTypeIsABF16(nisa_element(dst))))
    nisa_complain(c, in->op, "a product is f32%s", m->bf16_psum ? " or bf16" : "");
  int64_t whole = m->matmul_one_bank ? m->psum_bank_bytes : m->psum_bytes;
  if (!fits_a_bank(dst, whole))
    nisa_complain(c, in->op, "dst does not lie within %lld bytes of PSUM per partition", (long long)whole);
  nisa_check_position(c, in, 3, k);
  nisa_check_position(c, in, 4, nisa_free_elements(a));
  if (!strcmp(nisa_text_attr(in->op, "perf_opt"), "double_row") &&
      (c->target == TARGET_TRN1 || nisa_element_bytes(nisa_element(a)) != 1 ||
       nisa_element_bytes(nisa_element(b)) != 1))
    nisa_complain(c, in->op, "double rows are products of 8-bit floats, from trn2 on");
  if (!strncmp(nisa_text_attr(in->op, "perf_opt"), "tf32", 4) && !mlirTypeIsAF32(nisa_element(a)))
    nisa_complain(c, in->op, "elements of f32 are read as tf32, not others");
}

/* ---- reductions and others -------------------------------------------------------------------------------------- */

static void check_reduce(struct nisa_check *c, const struct nisa_instr *in) {
  const struct nisa_access *dst = &in->operand[0], *src = &in->operand[1];
  int64_t n = ir_int_attr(in->op, "num_r_dim", 0), kept = 1;

  if (n < 1 || n > src->n_dims - src->par_dims) {
    nisa_complain(c, in->op, "num_r_dim is %lld; src has %d free dimensions", (long long)n,
                  src->n_dims - src->par_dims);
    return;
  }
  for (int k = src->par_dims; k < src->n_dims - n; k++)
    kept *= src->tile[k];
  if (nisa_partitions(dst) != nisa_partitions(src) || nisa_free_elements(dst) != kept)
    nisa_complain(c, in->op, "dst has %lld partitions of %lld elements; the reduction leaves %lld of %lld",
                  (long long)nisa_partitions(dst), (long long)nisa_free_elements(dst), (long long)nisa_partitions(src),
                  (long long)kept);
}

static void check_cross_lane(struct nisa_check *c, const struct nisa_instr *in) {
  const struct nisa_access *dst = &in->operand[0], *src = &in->operand[1];
  if (nisa_partitions(dst) != 1 || nisa_free_elements(dst) != nisa_free_elements(src))
    nisa_complain(c, in->op, "dst must be one partition of %lld elements", (long long)nisa_free_elements(src));
}

static bool is_zero(MlirValue v) {
  MlirOperation def = mlirValueIsAOpResult(v) ? mlirOpResultGetOwner(v) : (MlirOperation){NULL};
  if (mlirOperationIsNull(def) || !ir_is(def, "arith.constant"))
    return false;
  MlirAttribute a = ir_attr(def, "value");
  return mlirAttributeIsAFloat(a) && mlirFloatAttrGetValueDouble(a) == 0;
}

static void check_activation(struct nisa_check *c, const struct nisa_instr *in) {
  const struct nisa_access *bias = nisa_operand(in, "bias");

  nisa_check_same(c, in, "src");
  nisa_check_column(c, in, "bias");
  nisa_check_column(c, in, "scale");
  nisa_check_column(c, in, "reduce_res");
  check_one_in_psum(c, in, "src", "bias");
  check_one_in_psum(c, in, "src", "scale");
  if (c->target == TARGET_TRN1 && nisa_is_scalar(bias) && !is_zero(bias->base))
    nisa_complain(c, in->op, "a bias other than 0 must be in memory on trn1");
}

static void check_iota(struct nisa_check *c, const struct nisa_instr *in) {
  MlirAttribute a = ir_attr(in->op, "coefficients");
  if (mlirAttributeIsNull(a) || !mlirAttributeIsADenseI64Array(a) ||
      mlirDenseArrayGetNumElements(a) != in->operand[0].n_dims)
    nisa_complain(c, in->op, "it needs a coefficient for each dimension of dst");
  if (!mlirTypeIsAIndex(mlirValueGetType(in->operand[1].base)))
    nisa_complain(c, in->op, "its offset is no index");
}

/* Checks that the operands of a bit operation on floats are as wide as the result, because it works on their bits. */
static void check_bits(struct nisa_check *c, const struct nisa_instr *in, const char *attr) {
  MlirAttribute op = ir_attr(in->op, attr);
  const struct nisa_access *other = NULL;
  int64_t width = nisa_element_bytes(nisa_element(&in->operand[0]));
  bool has_float = false;

  if (mlirAttributeIsNull(op) || !mlirAttributeIsAString(op) ||
      strncmp(mlirStringAttrGetValue(op).data, "bitwise_", strlen("bitwise_")))
    return;
  for (int k = 0; k < in->def->n_operands; k++) {
    const struct nisa_access *x = &in->operand[k];
    if (nisa_is_absent(x))
      continue;
    MlirType t = nisa_is_scalar(x) ? mlirValueGetType(x->base) : nisa_element(x);
    has_float |= mlirTypeIsAFloat(t);
    if (nisa_element_bytes(t) != width)
      other = x;
  }
  if (has_float && other)
    nisa_complain(c, in->op, "bits of floats need one width, but %s has another than dst",
                  in->def->operand[other - in->operand].name);
}

static void check_predicated(struct nisa_check *c, const struct nisa_instr *in) {
  nisa_check_same(c, in, "src");
  nisa_check_same(c, in, "predicate");
  check_one_in_psum(c, in, "src", "predicate");
  if (!mlirTypeIsAInteger(nisa_element(nisa_operand(in, "predicate"))))
    nisa_complain(c, in->op, "the predicate must be an integer");
}

static void check_source(struct nisa_check *c, const struct nisa_instr *in) {
  nisa_check_same(c, in, "src");
}

/* Operators that not every machine has, and functions in place of an operator. */
static void check_machine_has(struct nisa_check *c, const struct nisa_instr *in, const char *attr) {
  const char *op = nisa_text_attr(in->op, attr);
  if (c->target != TARGET_TRN3 &&
      (!strcmp(op, "abs_max") || !strcmp(op, "abs_min") || !strcmp(op, "square") || !strcmp(op, "relu")))
    nisa_complain(c, in->op, "%s is an operator of trn3", op);
  if (!strcmp(op, "rsqrt") && in->engine != NISA_ENGINE_GPSIMD)
    nisa_complain(c, in->op, "rsqrt is an operator of GpSimd");
}

static void check_tensors(struct nisa_check *c, const struct nisa_instr *in) {
  nisa_check_same(c, in, "lhs");
  nisa_check_same(c, in, "rhs");
  check_one_in_psum(c, in, "lhs", "rhs");
  check_bits(c, in, "op");
  check_machine_has(c, in, "op");
}

static void check_scalars(struct nisa_check *c, const struct nisa_instr *in) {
  nisa_check_same(c, in, "src");
  nisa_check_column(c, in, "operand0");
  nisa_check_column(c, in, "operand1");
  check_one_in_psum(c, in, "src", "operand0");
  check_bits(c, in, "op0");
  check_bits(c, in, "op1");
  check_machine_has(c, in, "op0");
  check_machine_has(c, in, "op1");
}

static void check_scalar_tensor(struct nisa_check *c, const struct nisa_instr *in) {
  nisa_check_same(c, in, "src");
  nisa_check_column(c, in, "operand0");
  nisa_check_same(c, in, "operand1");
  check_one_in_psum(c, in, "src", "operand1");
  check_one_in_psum(c, in, "src", "operand0");
  check_machine_has(c, in, "op0");
  check_machine_has(c, in, "op1");
}

/* ---- along a partition ------------------------------------------------------------------------------------------ */

static void check_scan(struct nisa_check *c, const struct nisa_instr *in) {
  nisa_check_same(c, in, "lhs");
  nisa_check_same(c, in, "rhs");
  nisa_check_column(c, in, "initial");
  check_one_in_psum(c, in, "lhs", "rhs");
}

static void check_cumulative(struct nisa_check *c, const struct nisa_instr *in) {
  nisa_check_same(c, in, "src");
  nisa_check_column(c, in, "operand0");
  nisa_check_column(c, in, "initial");
}

/* Checks that the operand has dst's partitions, and at least `least` and at most `most` elements in each. */
void nisa_check_elements(struct nisa_check *c, const struct nisa_instr *in, const char *name, int64_t least,
                         int64_t most) {
  const struct nisa_access *x = nisa_operand(in, name);
  if (!x)
    return;
  const int64_t n = nisa_free_elements(x), partitions = nisa_partitions(&in->operand[0]);
  if (nisa_partitions(x) != partitions)
    nisa_complain(c, in->op, "%s has %lld partitions, dst has %lld", name, (long long)nisa_partitions(x),
                  (long long)partitions);
  if (n < least || n > most)
    nisa_complain(c, in->op,
                  least == most ? "%s has %lld elements in each partition, but it must have %lld"
                                : "%s has %lld elements in each partition, but it must have %lld to %lld",
                  name, (long long)n, (long long)least, (long long)most);
}

static void check_index(struct nisa_check *c, const struct nisa_instr *in, const char *name) {
  const struct nisa_access *x = nisa_operand(in, name);
  if (!x)
    return;
  const int64_t bytes = nisa_element_bytes(nisa_element(x));
  if (!mlirTypeIsAInteger(nisa_element(x)) || (bytes != 2 && bytes != 4))
    nisa_complain(c, in->op, "%s must be an integer of 16 or 32 bits", name);
  nisa_check_elements(c, in, name, 8, 8);
}

enum { STATS_MOST = 512, EIGHT_MOST = 16384 }; /* elements of a partition: NKI's bn_stats and max8 */

static void check_stats(struct nisa_check *c, const struct nisa_instr *in) {
  nisa_check_elements(c, in, "dst", 6, 6);
  nisa_check_elements(c, in, "src", 1, STATS_MOST);
}

static void check_aggr(struct nisa_check *c, const struct nisa_instr *in) {
  nisa_check_elements(c, in, "dst", 2, 2);
  nisa_check_elements(c, in, "src", 3, INT64_MAX);
  if (nisa_free_elements(&in->operand[1]) % 3)
    nisa_complain(c, in->op, "src must have groups of three elements");
}

static void check_max8(struct nisa_check *c, const struct nisa_instr *in) {
  nisa_check_elements(c, in, "dst", 8, 8);
  nisa_check_elements(c, in, "src", 8, EIGHT_MOST);
}

static void check_find8(struct nisa_check *c, const struct nisa_instr *in) {
  check_index(c, in, "dst");
  nisa_check_elements(c, in, "src", 8, EIGHT_MOST);
  nisa_check_elements(c, in, "values", 8, 8);
}

static void check_replace8(struct nisa_check *c, const struct nisa_instr *in) {
  nisa_check_same(c, in, "src");
  nisa_check_elements(c, in, "src", 8, EIGHT_MOST);
  nisa_check_elements(c, in, "values", 8, 8);
  check_index(c, in, "dst_index");
}

static void check_register(struct nisa_check *c, const struct nisa_instr *in) {
  if (nisa_partitions(&in->operand[0]) != 1 || nisa_free_elements(&in->operand[0]) != 1)
    nisa_complain(c, in->op, "a register holds one element");
}

/* A register has the type of the element that it is stored in: the sequencer does not convert. */
static void check_register_store(struct nisa_check *c, const struct nisa_instr *in) {
  check_register(c, in);
  if (!mlirTypeEqual(mlirValueGetType(in->operand[1].base), nisa_element(&in->operand[0])))
    nisa_complain(c, in->op, "the type of value is not that of the elements of dst");
}

void nisa_check_instr(struct nisa_check *c, const struct nisa_instr *in) {
  static void (*const checks[NISA_KIND_COUNT])(struct nisa_check *, const struct nisa_instr *) = {
      [NISA_DMA_COPY] = nisa_check_dma_copy,
      [NISA_DMA_TRANSPOSE] = nisa_check_dma_transpose,
      [NISA_DMA_COPY_INDIRECT] = nisa_check_indirect,
      [NISA_DMA_SCATTER] = nisa_check_scatter,
      [NISA_DMA_COMPUTE] = nisa_check_dma_compute,
      [NISA_SENDRECV] = nisa_check_exchange,
      [NISA_ALL_GATHER] = nisa_check_collective,
      [NISA_ALL_REDUCE] = nisa_check_collective,
      [NISA_REDUCE_SCATTER] = nisa_check_collective,
      [NISA_ALL_TO_ALL] = nisa_check_collective,
      [NISA_COLLECTIVE_PERMUTE] = nisa_check_collective,
      [NISA_MATMUL] = check_matmul,
      [NISA_TENSOR_COPY] = check_source,
      [NISA_RECIPROCAL] = check_source,
      [NISA_TENSOR_COPY_PREDICATED] = check_predicated,
      [NISA_TENSOR_TENSOR_ARITH] = check_tensors,
      [NISA_TENSOR_TENSOR_POWER] = check_tensors,
      [NISA_TENSOR_SCALAR_ARITH] = check_scalars,
      [NISA_SCALAR_TENSOR_TENSOR] = check_scalar_tensor,
      [NISA_TENSOR_REDUCE_ARITH] = check_reduce,
      [NISA_CROSS_LANE_REDUCE_ARITH] = check_cross_lane,
      [NISA_ACTIVATION] = check_activation,
      [NISA_IOTA] = check_iota,
      [NISA_REGISTER_LOAD] = check_register,
      [NISA_REGISTER_STORE] = check_register_store,
      [NISA_TENSOR_TENSOR_SCAN] = check_scan,
      [NISA_TENSOR_SCALAR_CUMULATIVE] = check_cumulative,
      [NISA_BN_STATS] = check_stats,
      [NISA_BN_AGGR] = check_aggr,
      [NISA_MAX8] = check_max8,
      [NISA_FIND_INDEX8] = check_find8,
      [NISA_MATCH_REPLACE8] = check_replace8,
      [NISA_STREAM_SHUFFLE] = nisa_check_shuffle,
      [NISA_GATHER] = nisa_check_gather,
      [NISA_MATMUL_MX] = nisa_check_matmul_mx,
      [NISA_QUANTIZE_MX] = nisa_check_quantize,
      [NISA_TRANSPOSE] = nisa_check_transpose,
      [NISA_LOCAL_GATHER] = nisa_check_local_gather,
      [NISA_SEQUENCE_BOUNDS] = nisa_check_bounds,
      [NISA_NONZERO_WITH_COUNT] = nisa_check_nonzero,
      [NISA_TOPK] = nisa_check_topk,
      [NISA_RANDOM] = nisa_check_random,
      [NISA_RANDOM_SEED] = nisa_check_seed,
      [NISA_RANDOM_SET_STATE] = nisa_check_state,
      [NISA_RANDOM_GET_STATE] = nisa_check_state,
  };
  assert(in->def && in->def->kind < NISA_KIND_COUNT);
  if (checks[in->def->kind])
    checks[in->def->kind](c, in);
}
