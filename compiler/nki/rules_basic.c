/* rules_basic: the rules of every operand, of operands together, and of the commonest calls. */
#include <string.h>

#include "nki/rules.h"

/* ---- every view -------------------------------------------------------------------------------------------------- */

static const char *memories_text(struct arena *a, unsigned memories) {
  const char *text = "";
  for (int s = MEM_HBM; s < NISA_SPACES; s++)
    if (memories >> s & 1 && s != MEM_SHARED_HBM)
      text = arena_printf(a, *text ? "%s or %s" : "%s%s", text, nisa_space_name((enum mem_space)s));
  return text;
}

/* True for calls that move bits, and for those of packed elements. */
static bool takes_packed(const struct nki_call *c) {
  switch (c->kind) {
  case NKI_DMA_COPY:
  case NKI_TENSOR_COPY:
  case NKI_QUANTIZE_MX:
  case NKI_NC_MATMUL_MX:
  case NKI_NC_STREAM_SHUFFLE:
    return true;
  case NKI_MEMSET:
    return nki_value(c, "value")->number == 0;
  default:
    return false;
  }
}

/* What to do with a tensor that is in memory s, where the parameter cannot have it. */
static const char *memory_remedy(const struct nki_param_def *def, enum mem_space s) {
  if (def->kind == NKI_PARAM_DST)
    return def->memories >> MEM_PSUM & 1 && !(def->memories >> MEM_SBUF & 1)
               ? "make it with nl.ndarray(…, buffer=nl.psum)"
               : "write to a tile in SBUF, and copy that";
  return s == MEM_PSUM || mem_is_dram(s) ? "copy it to SBUF first"
                                         : "copy it first, with nisa.tensor_copy or nisa.dma_copy";
}

/* Checks one view against the parameter that it is given for. */
static bool check_view(const struct nki_call *c, const struct nki_param_def *def, const struct nki_view *v,
                       struct nki_error *err) {
  const enum mem_space s = v->tensor->space;
  if (v->tensor->reg) /* its parameter takes registers only */
    return true;
  if (nki_is_packed(v->tensor->packed) && !takes_packed(c))
    return nki_refuse(err, DG_NKI_DTYPE, "packed elements are copied, quantized and multiplied with scales", "%s is %s",
                      def->name, nki_type_name(v->tensor));
  if (v->tensor->initial && def->kind == NKI_PARAM_DST)
    return nki_refuse(err, DG_NKI_OPERAND, "copy it to a tensor of nl.ndarray",
                      "%s is the constant %s, which cannot be written", def->name, v->tensor->name);
  if (!(def->memories >> s & 1))
    return nki_refuse(err, DG_NKI_MEMORY, memory_remedy(def, s), "%s is in %s, but it must be in %s", def->name,
                      nisa_space_name(s), memories_text(err->arena, def->memories));
  const enum nisa_engine usual = nki_def(c)->engines[0];
  if (!mem_is_on_chip(s) || usual == NISA_ENGINE_DMA || usual == NISA_ENGINE_SYNC) /* these reach every partition */
    return true;
  if (v->dim[0].stride != 1 && v->dim[0].size > 1)
    return nki_refuse(err, DG_NKI_ADDRESS, "the partitions of an operand are neighbours",
                      "%s steps over partitions by %lld", def->name, (long long)v->dim[0].stride);
  if (v->partition % 32 || (v->partition % 64 == 32 && v->dim[0].size > 32) ||
      (v->partition == 64 && v->dim[0].size > 64))
    return nki_refuse(err, DG_NKI_ADDRESS,
                      "begin at partition 0, 32, 64 or 96; from 32 and 96 on there are 32 partitions, from 64 on 64",
                      "%s covers %lld partitions from %lld on", def->name, (long long)v->dim[0].size,
                      (long long)v->partition);
  return true;
}

/* ---- operands together ------------------------------------------------------------------------------------------- */

bool nki_same_partitions(const char *name, const struct nki_view *v, const struct nki_view *dst,
                         struct nki_error *err) {
  if (v->dim[0].size == dst->dim[0].size)
    return true;
  return nki_refuse(err, DG_NKI_SHAPE_MISMATCH, "slice the larger one: x[0:n]; partitions are not repeated",
                    "%s has %lld partitions, but dst has %lld", name, (long long)v->dim[0].size,
                    (long long)dst->dim[0].size);
}

/* v corresponds to dst element by element. */
bool nki_same_shape(const char *name, const struct nki_view *v, const struct nki_view *dst, struct nki_error *err) {
  if (!nki_same_partitions(name, v, dst, err))
    return false;
  if (nki_free_elements(v) == nki_free_elements(dst))
    return true;
  return nki_refuse(err, DG_NKI_SHAPE_MISMATCH,
                    "slice the larger one: x[:, 0:n]; .broadcast repeats a dimension of size 1",
                    "%s has %lld elements in each partition, but dst has %lld", name, (long long)nki_free_elements(v),
                    (long long)nki_free_elements(dst));
}

/* v has one element for each partition of dst. */
bool nki_is_column(const char *name, const struct nki_view *v, const struct nki_view *dst, struct nki_error *err) {
  if (!nki_same_partitions(name, v, dst, err))
    return false;
  if (nki_free_elements(v) == 1)
    return true;
  return nki_refuse(err, DG_NKI_OPERAND, "give a number, or a tensor of shape (partitions, 1)",
                    "%s has %lld elements in each partition, but it must have one", name,
                    (long long)nki_free_elements(v));
}

bool nki_not_both_in_psum(const char *x, const struct nki_view *v, const char *y, const struct nki_view *w,
                          struct nki_error *err) {
  if (v->tensor->space != MEM_PSUM || w->tensor->space != MEM_PSUM)
    return true;
  return nki_refuse(err, DG_NKI_OPERAND, "copy one of them to SBUF first", "%s and %s are both in PSUM", x, y);
}

/* True for what all calls but copies of bits need: dtypes in which engines compute. */
static bool is_bits_op(const struct nki_value *op) {
  return op->kind == NKI_OP && op->op->is == NKI_BITS;
}

static bool check_bits(const struct nki_call *c, const struct nki_value *op, struct nki_error *err) {
  const struct nki_call_def *def = nki_def(c);
  if (!is_bits_op(op))
    return true;
  for (int i = 0; i < nki_n_params(def); i++)
    if (c->value[i].kind == NKI_VIEW && !dtype_is_int(c->value[i].view->tensor->dtype))
      return nki_refuse(err, DG_NKI_DTYPE, "operations on bits take integers", "%s of %s has the type %s",
                        def->param[i].name, op->op->name, dtype_numpy_name(c->value[i].view->tensor->dtype));
  return true;
}

/* ---- calls one by one -------------------------------------------------------------------------------------------- */

#define VIEW(name) (nki_value(c, name)->view)

static bool check_same_elements(const struct nki_call *c, struct nki_error *err) {
  const struct nki_view *dst = VIEW("dst"), *src = VIEW("src");
  const enum dtype to = dst->tensor->dtype, from = src->tensor->dtype;
  if (!nki_check_rows(c, err))
    return false;
  if (to != from && dtype_is_int(to) && dtype_is_int(from))
    return nki_refuse(err, DG_NKI_DTYPE, "copy it as it is, and cast it with nisa.tensor_copy",
                      "DMA does not convert %s to %s", dtype_numpy_name(from), dtype_numpy_name(to));
  if (nki_elements(dst) == nki_elements(src))
    return true;
  return nki_refuse(
      err, DG_NKI_SHAPE_MISMATCH, "slice the larger one; the shapes may differ, the numbers of elements not",
      "src has %lld elements, but dst has %lld", (long long)nki_elements(src), (long long)nki_elements(dst));
}

static bool check_reduce(const struct nki_program *p, const struct nki_call *c, struct nki_error *err) {
  const struct nki_view *dst = VIEW("dst"), *data = VIEW("data");
  const struct nki_value *axis = nki_value(c, "axis"), *op = nki_value(c, "op");
  int64_t reduced = 1;
  if (!nki_machine_has(p, op->op, err))
    return false;
  if (!op->op->can_reduce)
    return nki_refuse(err, DG_NKI_OPERATOR, NULL, "%s does not reduce", op->op->name);
  if (nki_value(c, "negate")->integer && strcmp(op->op->nisa, "add") && strcmp(op->op->nisa, "max") &&
      strcmp(op->op->nisa, "min"))
    return nki_refuse(err, DG_NKI_UNSUPPORTED, "negate with nisa.tensor_scalar",
                      "negate with %s is not compiled here yet", op->op->name);
  for (int i = 0; i < axis->n; i++) {
    const int64_t want = data->rank - axis->n + i, at = axis->ints[i] < 0 ? axis->ints[i] + data->rank : axis->ints[i];
    if (at != want || at < 1)
      return nki_refuse(err, DG_NKI_OPERAND, "reduce the last axes; tensor_partition_reduce reduces partitions",
                        "axis %lld of a tensor of %d dimensions cannot be reduced alone", (long long)axis->ints[i],
                        data->rank);
    reduced *= data->dim[at].size;
  }
  if (!nki_same_partitions("data", data, dst, err))
    return false;
  if (nki_free_elements(data) / reduced != nki_free_elements(dst))
    return nki_refuse(err, DG_NKI_SHAPE_MISMATCH, NULL, "%lld elements remain in each partition, but dst has %lld",
                      (long long)(nki_free_elements(data) / reduced), (long long)nki_free_elements(dst));
  return true;
}

static bool check_activation(const struct nki_program *p, const struct nki_call *c, struct nki_error *err) {
  const struct nki_view *dst = VIEW("dst");
  const struct nki_value *bias = nki_value(c, "bias"), *scale = nki_value(c, "scale");
  const struct nki_value *reduce = nki_value(c, "reduce_op");
  if (!nki_same_shape("data", VIEW("data"), dst, err))
    return false;
  if (bias->kind == NKI_VIEW && bias->view->tensor->packed == NKI_TF32)
    return nki_refuse(err, DG_NKI_DTYPE, "make it of float32", "bias is tfloat32, which only the Tensor engine reads");
  if (bias->kind == NKI_VIEW ? !nki_is_column("bias", bias->view, dst, err) : false)
    return false;
  if (p->target == TARGET_TRN1 && bias->kind != NKI_VIEW && bias->number)
    return nki_refuse(err, DG_NKI_OPERAND, "give a tensor of shape (partitions, 1)",
                      "on trn1 the bias of an activation is a tensor, not a number");
  if (scale->kind == NKI_VIEW ? !nki_is_column("scale", scale->view, dst, err) : false)
    return false;
  if (reduce->kind == NKI_OP && strcmp(reduce->op->nisa, "add") != 0)
    return nki_refuse(err, DG_NKI_OPERATOR, "the Scalar engine adds", "reduce_op is %s", reduce->op->name);
  if (!strcmp(nki_value(c, "op")->op->nisa, "prelu"))
    return nki_refuse(err, DG_NKI_OPERATOR, "use nisa.activate2 with relu_param", "prelu needs a slope");
  return nki_check_registers(p, c, err);
}

/* A function of one value has no operand, an operator of two has one. */
static bool check_alu(const struct nki_program *p, const struct nki_call *c, const char *name, const char *operand,
                      struct nki_error *err) {
  const struct nki_op *op = nki_value(c, name)->op;
  const struct nki_value *x = nki_value(c, operand);
  if (op->is != NKI_FUNC && x->kind == NKI_ABSENT)
    return nki_refuse(err, DG_NKI_CALL, "give a number, or a tensor of shape (partitions, 1)",
                      "nisa.tensor_scalar: \"%s\" is missing", operand);
  if (op->is == NKI_FUNC && (x->kind == NKI_VIEW || (x->kind != NKI_ABSENT && x->number)))
    return nki_refuse(err, DG_NKI_OPERAND, "leave it out", "%s takes one value, but %s is given", op->name, operand);
  if (!strcmp(op->nisa, "rsqrt") && c->engine != NISA_ENGINE_GPSIMD)
    return nki_refuse(err, DG_NKI_OPERATOR, "pass engine=nisa.engine.gpsimd, or use nisa.activation",
                      "rsqrt is an operator of GpSimd");
  if (!strcmp(op->nisa, "bypass"))
    return nki_refuse(err, DG_NKI_OPERATOR, "leave it out", "%s is bypass", name);
  return nki_machine_has(p, op, err);
}

/* The Scalar engine multiplies, adds, or does both. */
static bool check_on_scalar(const struct nki_program *p, const struct nki_call *c, struct nki_error *err) {
  const struct nki_value *op1 = nki_value(c, "op1");
  const char *op0 = nki_value(c, "op0")->op->nisa;
  const bool multiplies = !strcmp(op0, "multiply"), adds = !strcmp(op0, "add");
  if (c->engine != NISA_ENGINE_SCALAR)
    return true;
  if (p->target == TARGET_TRN1)
    return nki_refuse(err, DG_NKI_CALL, "use the engine vector",
                      "trn1 does not have tensor_scalar on the Scalar engine");
  if (op1->kind == NKI_OP ? multiplies && !strcmp(op1->op->nisa, "add") : multiplies || adds)
    return true;
  return nki_refuse(err, DG_NKI_OPERATOR, "use the engine vector",
                    "the Scalar engine multiplies, adds, or multiplies and adds");
}

static bool check_scalar(const struct nki_program *p, const struct nki_call *c, struct nki_error *err) {
  const struct nki_view *dst = VIEW("dst");
  const struct nki_value *op0 = nki_value(c, "op0"), *op1 = nki_value(c, "op1"), *x0 = nki_value(c, "operand0"),
                         *x1 = nki_value(c, "operand1");
  if (!nki_same_shape("data", VIEW("data"), dst, err) || !check_bits(c, op0, err) || !check_bits(c, op1, err))
    return false;
  if (!check_alu(p, c, "op0", "operand0", err) || !check_on_scalar(p, c, err))
    return false;
  if (op1->kind == NKI_OP && op1->op->is == NKI_FUNC ? !check_alu(p, c, "op1", "operand1", err)
                                                     : (op1->kind == NKI_OP) != (x1->kind != NKI_ABSENT))
    return err->text ? false : nki_refuse(err, DG_NKI_CALL, "give both, or none", "op1 and operand1 go together");
  if (op1->kind == NKI_OP && !nki_machine_has(p, op1->op, err))
    return false;
  if (op1->kind == NKI_OP && (op1->op->is == NKI_BITS) != (op0->op->is == NKI_BITS))
    return nki_refuse(err, DG_NKI_OPERATOR, "use two instructions", "%s computes with numbers, %s with bits",
                      op0->op->is == NKI_BITS ? op1->op->name : op0->op->name,
                      op0->op->is == NKI_BITS ? op0->op->name : op1->op->name);
  return (x0->kind != NKI_VIEW || nki_is_column("operand0", x0->view, dst, err)) &&
         (x1->kind != NKI_VIEW || nki_is_column("operand1", x1->view, dst, err));
}

static bool check_predicated(const struct nki_call *c, struct nki_error *err) {
  const struct nki_view *dst = VIEW("dst"), *predicate = VIEW("predicate");
  const struct nki_value *src = nki_value(c, "src");
  if (!nki_same_shape("predicate", predicate, dst, err))
    return false;
  const enum dtype t = predicate->tensor->dtype;
  if (t != DT_U8 && t != DT_U16 && t != DT_U32)
    return nki_refuse(err, DG_NKI_DTYPE, "use uint8, uint16 or uint32", "predicate has the type %s",
                      dtype_numpy_name(t));
  if (src->kind != NKI_VIEW)
    return true;
  if (src->view->tensor->dtype != dst->tensor->dtype)
    return nki_refuse(err, DG_NKI_DTYPE, NULL, "src is %s, but dst is %s", dtype_numpy_name(src->view->tensor->dtype),
                      dtype_numpy_name(dst->tensor->dtype));
  return nki_same_shape("src", src->view, dst, err) &&
         nki_not_both_in_psum("src", src->view, "predicate", predicate, err);
}

static bool check_partition_reduce(const struct nki_call *c, struct nki_error *err) {
  const struct nki_view *dst = VIEW("dst"), *data = VIEW("data");
  const char *op = nki_value(c, "op")->op->nisa;
  if (strcmp(op, "add") && strcmp(op, "max") && strcmp(op, "bitwise_or") && strcmp(op, "bitwise_and"))
    return nki_refuse(err, DG_NKI_OPERATOR, "use add, maximum, bitwise_and or bitwise_or",
                      "partitions cannot be reduced by %s", nki_value(c, "op")->op->name);
  if (dst->dim[0].size != 1 || nki_free_elements(dst) != nki_free_elements(data))
    return nki_refuse(err, DG_NKI_SHAPE_MISMATCH, NULL, "dst has the shape (%lld, %lld), but the result has (1, %lld)",
                      (long long)dst->dim[0].size, (long long)nki_free_elements(dst),
                      (long long)nki_free_elements(data));
  return true;
}

bool nki_check_pattern(const struct nki_call *c, struct nki_error *err) {
  const struct nki_value *pattern = nki_value(c, "pattern");
  int64_t n = 1;
  if (!pattern->n || pattern->n % 2 || pattern->n > 2 * 4)
    return nki_refuse(err, DG_NKI_OPERAND, "write [[step, size], …]", "a pattern has 1 to 4 pairs");
  for (int i = 0; i < pattern->n; i += 2)
    n *= pattern->ints[i + 1];
  if (n != nki_free_elements(VIEW("dst")))
    return nki_refuse(err, DG_NKI_SHAPE_MISMATCH, NULL,
                      "the pattern has %lld elements, but dst has %lld in each partition", (long long)n,
                      (long long)nki_free_elements(VIEW("dst")));
  return true;
}

static bool check_tensor_tensor(const struct nki_program *p, const struct nki_call *c, struct nki_error *err) {
  const struct nki_view *dst = VIEW("dst"), *x = VIEW("data1"), *y = VIEW("data2");
  if (!strcmp(nki_value(c, "op")->op->nisa, "bypass"))
    return nki_refuse(err, DG_NKI_OPERATOR, "use nisa.tensor_copy", "op is bypass");
  return nki_machine_has(p, nki_value(c, "op")->op, err) && nki_same_shape("data1", x, dst, err) &&
         nki_same_shape("data2", y, dst, err) && check_bits(c, nki_value(c, "op"), err) &&
         nki_not_both_in_psum("data1", x, "data2", y, err);
}

/* Vector and Scalar read one operand in PSUM: data, or the column beside it. */
static bool check_columns_in_psum(const struct nki_call *c, struct nki_error *err) {
  const struct nki_call_def *def = nki_def(c);
  const struct nki_view *data = NULL;
  for (int i = 0; i < nki_n_params(def); i++) {
    const char *name = def->param[i].name;
    if (c->value[i].kind != NKI_VIEW)
      continue;
    if (!strcmp(name, "data"))
      data = c->value[i].view;
    const bool is_column =
        !strcmp(name, "operand0") || !strcmp(name, "bias") || !strcmp(name, "scale") || !strcmp(name, "imm0") ||
        (!strcmp(name, "operand1") && c->kind == NKI_TENSOR_SCALAR && c->engine == NISA_ENGINE_SCALAR);
    if (is_column && data && !nki_not_both_in_psum(name, c->value[i].view, "data", data, err))
      return false;
  }
  return true;
}

bool nki_check_call(const struct nki_program *p, const struct nki_call *c, struct nki_error *err) {
  const struct nki_call_def *def = nki_def(c);
  for (int i = 0; i < nki_n_params(def); i++)
    if (c->value[i].kind == NKI_VIEW && !check_view(c, &def->param[i], c->value[i].view, err))
      return false;
  if (!check_columns_in_psum(c, err))
    return false;
  if (def->engines[0] == NISA_ENGINE_SYNC)
    return nki_rules_registers(c, err);
  switch (c->kind) {
  case NKI_DMA_COPY:
    return check_same_elements(c, err);
  case NKI_TENSOR_COPY:
    return nki_same_shape("src", VIEW("src"), VIEW("dst"), err);
  case NKI_TENSOR_COPY_PREDICATED:
    return check_predicated(c, err);
  case NKI_MEMSET:
    return true;
  case NKI_TENSOR_TENSOR:
    return check_tensor_tensor(p, c, err);
  case NKI_TENSOR_SCALAR:
    return check_scalar(p, c, err);
  case NKI_TENSOR_REDUCE:
    return check_reduce(p, c, err);
  case NKI_TENSOR_PARTITION_REDUCE:
    return check_partition_reduce(c, err);
  case NKI_ACTIVATION:
  case NKI_ACTIVATION_REDUCE:
    return check_activation(p, c, err);
  case NKI_RECIPROCAL:
    return nki_same_shape("data", VIEW("data"), VIEW("dst"), err);
  case NKI_IOTA:
    return nki_check_pattern(c, err);
  default:
    return nki_rules_more(p, c, err);
  }
}
