/* calls: the tables of calls, operators and functions. */
#include <assert.h>
#include <stddef.h>
#include <string.h>

#include "nki/nki.h"

#define H (1u << MEM_HBM | 1u << MEM_SHARED_HBM)
#define S (1u << MEM_SBUF)
#define P (1u << MEM_PSUM)
#define R 0u /* no memory: a register */

#define DST(n, m) {.name = n, .kind = NKI_PARAM_DST, .memories = m}
#define SRC(n, m) {.name = n, .kind = NKI_PARAM_SRC, .memories = m}
#define NUMBER(n, m) {.name = n, .kind = NKI_PARAM_NUMBER, .memories = m}
#define CONST(n) {.name = n, .kind = NKI_PARAM_CONST}
#define OP(n) {.name = n, .kind = NKI_PARAM_OP}
#define ALU(n) {.name = n, .kind = NKI_PARAM_ALU}
#define FUNC(n) {.name = n, .kind = NKI_PARAM_FUNC}
#define INTS(n) {.name = n, .kind = NKI_PARAM_INTS}
/* OPT(OP("x")) is OPT_OP("x") */
#define OPT(x) OPT_##x
#define OPT_DST(n, m) {.name = n, .kind = NKI_PARAM_DST, .memories = m, .is_optional = true}
#define OPT_SRC(n, m) {.name = n, .kind = NKI_PARAM_SRC, .memories = m, .is_optional = true}
#define OPT_NUMBER(n, m) {.name = n, .kind = NKI_PARAM_NUMBER, .memories = m, .is_optional = true}
#define OPT_CONST(n) {.name = n, .kind = NKI_PARAM_CONST, .is_optional = true}
#define OPT_ALU(n) {.name = n, .kind = NKI_PARAM_ALU, .is_optional = true}
#define OPT_OP(n) {.name = n, .kind = NKI_PARAM_OP, .is_optional = true}
#define OPT_FLAG(n) {.name = n, .kind = NKI_PARAM_FLAG, .is_optional = true}
#define OPT_INTS(n) {.name = n, .kind = NKI_PARAM_INTS, .is_optional = true}
#define OPT_WORD(n) {.name = n, .kind = NKI_PARAM_WORD, .is_optional = true}
#define NO_PARAM {.kind = NKI_PARAM_END}
#define OPT_ENGINE {.name = "engine", .kind = NKI_PARAM_ENGINE, .is_optional = true}

#define TENSOR NISA_ENGINE_TENSOR
#define VECTOR NISA_ENGINE_VECTOR
#define SCALAR NISA_ENGINE_SCALAR
#define GPSIMD NISA_ENGINE_GPSIMD
#define DMA NISA_ENGINE_DMA
#define SYNC NISA_ENGINE_SYNC
#define ENGINES(...) {__VA_ARGS__}
#define PARAMS(...) {__VA_ARGS__}

const struct nki_call_def nki_calls[NKI_CALLS] = {
#define NKI_CALL(e, n, engine_list, what, params) [NKI_##e] = {n, engine_list, what, params},
#include "nki/calls.def"
#undef NKI_CALL
};

int nki_n_params(const struct nki_call_def *def) {
  int n = 0;
  while (n < NKI_PARAMS_MAX && def->param[n].kind)
    n++;
  return n;
}

static size_t size_of(const struct nki_call *c) {
  return offsetof(struct nki_call, value) + (size_t)nki_n_params(nki_def(c)) * sizeof *c->value;
}

struct nki_call *nki_call_keep(struct arena *a, const struct nki_call *c) {
  return arena_dup(a, c, size_of(c));
}

struct nki_call nki_call_copy(const struct nki_call *c) {
  struct nki_call copy = {.kind = c->kind};
  memcpy(&copy, c, size_of(c));
  return copy;
}

const struct nki_value *nki_value(const struct nki_call *c, const char *name) {
  const struct nki_call_def *def = nki_def(c);
  int i = 0;
  while (strcmp(def->param[i].name, name) != 0)
    i++;
  assert(i < NKI_PARAMS_MAX);
  return &c->value[i];
}

enum nki_region nki_region_of(const struct nki_call *c) {
  switch (c->kind) {
  case NKI_DEVICE_FOR:
  case NKI_DEVICE_WHILE:
  case NKI_DEVICE_IF:
    return NKI_BEGINS;
  case NKI_DEVICE_DO:
  case NKI_DEVICE_ELSE:
    return NKI_GOES_ON;
  case NKI_DEVICE_END:
    return NKI_ENDS;
  default:
    return NKI_NO_REGION;
  }
}

void nki_each_tensor(const struct nki_call *c, nki_tensor_fn *f, void *user) {
  const struct nki_call_def *def = nki_def(c);
  for (int k = 0; k < nki_n_params(def); k++) {
    const struct nki_value *v = &c->value[k];
    if (v->kind != NKI_VIEW)
      continue;
    f(user, nki_storage(v->view->tensor), def->param[k].kind == NKI_PARAM_DST);
    for (int i = 0; i < v->view->n_terms; i++)
      if (v->view->terms[i].reg)
        f(user, v->view->terms[i].reg, false);
  }
}

static const struct {
  const char *name;
  enum dtype dtype;
} packed[] = {[NKI_E4M3FN_X4] = {"float8_e4m3fn_x4", DT_U32},
              [NKI_E5M2_X4] = {"float8_e5m2_x4", DT_U32},
              [NKI_E2M1FN_X4] = {"float4_e2m1fn_x4", DT_U16},
              [NKI_E8M0] = {"float8_e8m0fnu", DT_U8},
              [NKI_TF32] = {"tfloat32", DT_F32}};

enum nki_packed nki_packed_find(const char *name, enum dtype *dtype) {
  for (int k = NKI_E4M3FN_X4; k <= NKI_TF32; k++)
    if (!strcmp(packed[k].name, name)) {
      *dtype = packed[k].dtype;
      return (enum nki_packed)k;
    }
  return NKI_PLAIN;
}

const char *nki_type_name(const struct nki_tensor *t) {
  return t->packed ? packed[t->packed].name : dtype_numpy_name(t->dtype);
}

/* The operators of nki.language that calls of nki.isa take, as the NKI reference lists them. */
const struct nki_op nki_ops[] = {
    {"add", "add", NKI_ARITH, true, false},
    {"subtract", "subtract", NKI_ARITH, true, false},
    {"multiply", "multiply", NKI_ARITH, true, false},
    {"maximum", "max", NKI_ARITH, true, false},
    {"max", "max", NKI_ARITH, true, false},
    {"minimum", "min", NKI_ARITH, true, false},
    {"min", "min", NKI_ARITH, true, false},
    {"power", "pow", NKI_ARITH, false, false},
    {"equal", "is_eq", NKI_ARITH, false, false},
    {"not_equal", "is_ne", NKI_ARITH, false, false},
    {"greater", "is_gt", NKI_ARITH, false, false},
    {"greater_equal", "is_ge", NKI_ARITH, false, false},
    {"less", "is_lt", NKI_ARITH, false, false},
    {"less_equal", "is_le", NKI_ARITH, false, false},
    {"abs_max", "abs_max", NKI_ARITH, true, false},
    {"abs_min", "abs_min", NKI_ARITH, true, false},
    {"fmod", "mod", NKI_ARITH, false, false},
    {"bypass", "bypass", NKI_ARITH, false, false},
    {"logical_and", "logical_and", NKI_ARITH, true, false},
    {"logical_or", "logical_or", NKI_ARITH, true, false},
    {"logical_xor", "logical_xor", NKI_ARITH, true, false},
    {"bitwise_and", "bitwise_and", NKI_BITS, true, false},
    {"bitwise_or", "bitwise_or", NKI_BITS, true, false},
    {"bitwise_xor", "bitwise_xor", NKI_BITS, true, false},
    {"left_shift", "shift_left", NKI_BITS, false, false},
    {"right_shift", "shift_right_logical", NKI_BITS, false, false},
    {"copy", "copy", NKI_FUNC, false, false},
    {"exp", "exp", NKI_FUNC, false, false},
    {"log", "log", NKI_FUNC, false, false},
    {"sqrt", "sqrt", NKI_FUNC, false, false},
    {"rsqrt", "rsqrt", NKI_FUNC, false, true},
    {"square", "square", NKI_FUNC, false, true},
    {"abs", "abs", NKI_FUNC, false, true},
    {"tanh", "tanh", NKI_FUNC, false, false},
    {"sin", "sin", NKI_FUNC, false, false},
    {"erf", "erf", NKI_FUNC, false, false},
    {"sign", "sign", NKI_FUNC, false, false},
    {"arctan", "arctan", NKI_FUNC, false, false},
    {"relu", "relu", NKI_FUNC, false, true},
    {"sigmoid", "sigmoid", NKI_FUNC, false, false},
    {"gelu", "gelu", NKI_FUNC, false, false},
    {"gelu_apprx_tanh", "gelu_apprx_tanh", NKI_FUNC, false, false},
    {"gelu_apprx_sigmoid", "gelu_apprx_sigmoid", NKI_FUNC, false, false},
    {"gelu_apprx_sigmoid_dx", "gelu_apprx_sigmoid_dx", NKI_FUNC, false, false},
    {"gelu_dx", "gelu_dx", NKI_FUNC, false, false},
    {"silu", "silu", NKI_FUNC, false, false},
    {"silu_dx", "silu_dx", NKI_FUNC, false, false},
    {"softplus", "softplus", NKI_FUNC, false, false},
    {"mish", "mish", NKI_FUNC, false, false},
    {"erf_dx", "erf_dx", NKI_FUNC, false, false},
    {"floor", "floor", NKI_FUNC, false, false},
    {"ceil", "ceil", NKI_FUNC, false, false},
    {"trunc", "trunc", NKI_FUNC, false, false},
    {"reciprocal", "reciprocal", NKI_FUNC, false, true},
    {"prelu", "prelu", NKI_FUNC, false, false},
};
const int nki_n_ops = sizeof nki_ops / sizeof *nki_ops;

const struct nki_op *nki_op_find(const char *name) {
  for (int i = 0; i < nki_n_ops; i++)
    if (!strcmp(nki_ops[i].name, name))
      return &nki_ops[i];
  return NULL;
}
