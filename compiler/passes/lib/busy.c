/* busy: see the header. */
#include "passes/lib/busy.h"

#include <string.h>

#include "mlir-c/BuiltinTypes.h"

static double cycle_ns(enum nisa_engine e, enum target t) {
  static const double ns[TARGET_COUNT][NISA_ENGINE_COUNT] = {
      [TARGET_TRN1] = {[NISA_ENGINE_TENSOR] = 0.357,
                       [NISA_ENGINE_VECTOR] = 0.893,
                       [NISA_ENGINE_SCALAR] = 0.714,
                       [NISA_ENGINE_GPSIMD] = 0.714},
      [TARGET_TRN2] = {[NISA_ENGINE_TENSOR] = 0.417,
                       [NISA_ENGINE_VECTOR] = 1.042,
                       [NISA_ENGINE_SCALAR] = 0.833,
                       [NISA_ENGINE_GPSIMD] = 0.833},
      [TARGET_TRN3] = {[NISA_ENGINE_TENSOR] = 0.417,
                       [NISA_ENGINE_VECTOR] = 0.833,
                       [NISA_ENGINE_SCALAR] = 0.833,
                       [NISA_ENGINE_GPSIMD] = 0.833},
  };
  return ns[t][e];
}

/* Bytes that all DMA engines move in a nanosecond. */
static double dma_rate(enum target t) {
  return t == TARGET_TRN1 ? 280 : t == TARGET_TRN2 ? 410 : 528;
}

static bool is_half(const struct nisa_access *x) {
  MlirType t = nisa_access_element(x);
  return mlirTypeIsABF16(t) || mlirTypeIsAF16(t);
}

static bool is_in_psum(const struct nisa_access *x) {
  return nisa_is_data(x) && nisa_access_space(x) == MEM_PSUM;
}

static bool has_pointer(const struct nisa_instr *in) {
  for (int k = 2; k < in->def->n_operands; k++)
    if (nisa_is_data(&in->operand[k]))
      return true;
  return false;
}

/* True if it may have an operand of one element per partition, and has. */
static bool takes_column(const struct nisa_instr *in) {
  return in->def->kind == NISA_SCALAR_TENSOR_TENSOR ? nisa_is_data(nisa_operand(in, "operand0"))
                                                    : in->def->kind == NISA_TENSOR_SCALAR_ARITH && has_pointer(in);
}

int64_t busy_elements(const struct nisa_instr *in) {
  int64_t most = 1;
  for (int k = 0; k < in->def->n_operands; k++) {
    const int64_t n = nisa_is_data(&in->operand[k]) ? nisa_free_elements(&in->operand[k]) : 1;
    most = n > most ? n : most;
  }
  return most;
}

double busy_start_ns(const struct nisa_instr *in, enum nisa_engine e) {
  switch (e) {
  case NISA_ENGINE_GPSIMD:
    return 125;
  case NISA_ENGINE_SCALAR: /* a table of functions is taken to be there */
    return in->def->kind == NISA_ACTIVATION || has_pointer(in) ? 100 : 49;
  case NISA_ENGINE_VECTOR:
    return 75 + (takes_column(in) ? 53 : 0);
  default:
    return 0;
  }
}

/* Cycles of Vector for each element of a copy or of an operation with scalars. */
static double copy_slope(const struct nisa_instr *in, enum target t) {
  const struct nisa_access *dst = &in->operand[0], *src = &in->operand[1];
  if (t == TARGET_TRN1 || !nisa_is_data(src))
    return 1;
  if (is_half(dst) && is_half(src))
    return is_in_psum(dst) || is_in_psum(src) ? 0.5 : 0.25;
  return is_in_psum(dst) || is_in_psum(src) || is_half(dst) || is_half(src) ? 1 : 0.5;
}

static double pair_slope(const struct nisa_instr *in, enum nisa_engine e) {
  const struct nisa_access *dst = &in->operand[0], *x = &in->operand[1], *y = &in->operand[2];
  if (e == NISA_ENGINE_SCALAR) /* of two operands that are the same: an activation */
    return 1;
  if (e != NISA_ENGINE_VECTOR)
    return 2;
  return is_in_psum(x) || is_in_psum(y) || (is_half(dst) && is_half(x) && is_half(y)) ? 1 : 2;
}

static double scalar_tensor_slope(const struct nisa_instr *in) {
  const bool is_fast = is_half(nisa_operand(in, "src")) && is_half(nisa_operand(in, "operand1")) &&
                       busy_elements(in) % 2 == 0 && !strcmp(nisa_text_attr(in->op, "op0"), "subtract") &&
                       !strcmp(nisa_text_attr(in->op, "op1"), "multiply");
  return is_fast ? 1 : 2;
}

static double slope(const struct nisa_instr *in, enum nisa_engine e, enum target t) {
  switch (in->def->kind) {
  case NISA_TENSOR_TENSOR_ARITH:
    return pair_slope(in, e);
  case NISA_SCALAR_TENSOR_TENSOR:
    return scalar_tensor_slope(in);
  case NISA_TENSOR_COPY_PREDICATED:
  case NISA_TENSOR_TENSOR_SCAN:
    return 2;
  case NISA_TENSOR_COPY:
  case NISA_TENSOR_SCALAR_ARITH:
    return e == NISA_ENGINE_VECTOR ? copy_slope(in, t) : 1;
  case NISA_TENSOR_REDUCE_ARITH: /* sums and largest elements of short floats */
    return e == NISA_ENGINE_VECTOR && is_half(&in->operand[1]) && is_half(&in->operand[0]) ? 0.5 : 1;
  case NISA_RECIPROCAL:
    return t == TARGET_TRN1 ? 2.5 : 5.76;
  case NISA_TENSOR_TENSOR_POWER:
    return 8;
  default:
    return 1;
  }
}

static double matmul_ns(const struct nisa_instr *in, enum target t) {
  const struct nisa_access *moving = nisa_operand(in, "moving");
  const int64_t n = nisa_free_elements(moving);
  const double passes = mlirTypeIsAF32(nisa_access_element(moving)) ? 4 : 1;
  return (double)(n > 64 ? n : 64) * passes * cycle_ns(NISA_ENGINE_TENSOR, t);
}

static double dma_ns(const struct nisa_instr *in, enum target t) {
  const struct nisa_access *dst = &in->operand[0];
  const int64_t bytes = nisa_element_bytes(nisa_access_element(dst));
  return (double)(nisa_partitions(dst) * nisa_free_elements(dst) * bytes) / dma_rate(t);
}

double busy_ns(const struct nisa_instr *in, enum nisa_engine e, enum target t) {
  if (!nisa_is_data(&in->operand[0]))
    return 0;
  if (e == NISA_ENGINE_DMA)
    return dma_ns(in, t);
  if (e == NISA_ENGINE_TENSOR)
    return in->def->kind == NISA_MATMUL ? matmul_ns(in, t) : 0;
  return busy_start_ns(in, e) + (double)busy_elements(in) * slope(in, e, t) * cycle_ns(e, t);
}

double busy_with_attrs_ns(const struct nisa_instr *in, enum nisa_engine e, enum target t, int n,
                          MlirNamedAttribute const *attrs) {
  struct nisa_instr made = *in;
  made.op = nisa_create(in, mlirLocationUnknownGet(mlirAttributeGetContext(attrs[0].attribute)), n, attrs);
  const double ns = busy_ns(&made, e, t);
  mlirOperationDestroy(made.op);
  return ns;
}

double busy_trigger_ns(enum nisa_engine e, int64_t descriptors, enum target t) {
  if (t == TARGET_TRN1) /* they are prepared */
    return 50;
  return e == NISA_ENGINE_GPSIMD ? 53 + 9.3 * (double)descriptors : 485 + 0.6 * (double)descriptors;
}
