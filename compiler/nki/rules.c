/* rules: the operands together of calls that move data in other shapes, or that become several instructions. */
#include "nki/rules.h"

#include <math.h>
#include <string.h>

#include "nki/compose.h"

#define VIEW(name) (nki_value(c, name)->view)

/* dst has the shape of the transpose of src. */
static bool check_transposed(const char *name, const struct nki_view *src, const struct nki_view *dst,
                             struct nki_error *err) {
  const int64_t rows = src->dim[0].size, columns = nki_free_elements(src);
  if (dst->dim[0].size != columns || nki_free_elements(dst) != rows)
    return nki_refuse(
        err, DG_NKI_SHAPE_MISMATCH, NULL, "the transpose of %s has the shape (%lld, %lld), but dst has (%lld, %lld)",
        name, (long long)columns, (long long)rows, (long long)dst->dim[0].size, (long long)nki_free_elements(dst));
  if (src->tensor->dtype != dst->tensor->dtype)
    return nki_refuse(err, DG_NKI_DTYPE, "a transpose does not convert", "%s is %s, but dst is %s", name,
                      dtype_numpy_name(src->tensor->dtype), dtype_numpy_name(dst->tensor->dtype));
  return true;
}

enum nisa_engine nki_transpose_engine(const struct nki_call *c) {
  if (c->engine != NISA_ENGINE_NONE)
    return c->engine;
  return VIEW("dst")->tensor->space == MEM_PSUM && VIEW("data")->tensor->space == MEM_SBUF ? NISA_ENGINE_TENSOR
                                                                                           : NISA_ENGINE_VECTOR;
}

/* On Vector: at most 32 by 32, between SBUF and PSUM as one likes. */
static bool check_small_transpose(const struct nki_call *c, struct nki_error *err) {
  enum { MOST = 32 };
  const struct nki_view *data = VIEW("data");
  const int64_t rows = data->dim[0].size, columns = nki_free_elements(data);
  if (rows > MOST || columns > MOST)
    return nki_refuse(err, DG_NKI_SIZE_LIMIT, "write to PSUM: the Tensor engine transposes 128 by 128",
                      "data has the shape (%lld, %lld), but Vector transposes at most 32 by 32", (long long)rows,
                      (long long)columns);
  return check_transposed("data", data, VIEW("dst"), err);
}

static bool check_transpose(const struct nki_program *p, const struct nki_call *c, struct nki_error *err) {
  const struct nki_view *dst = VIEW("dst"), *data = VIEW("data");
  const int64_t columns = nki_free_elements(data), most = nisa_machine(p->target)->matmul_m;
  if (nki_transpose_engine(c) == NISA_ENGINE_VECTOR)
    return check_small_transpose(c, err);
  if (dst->tensor->space != MEM_PSUM || data->tensor->space != MEM_SBUF)
    return nki_refuse(err, DG_NKI_MEMORY, "use engine=nisa.engine.vector",
                      "the Tensor engine reads SBUF and writes PSUM, but data is in %s and dst in %s",
                      nisa_space_name(data->tensor->space), nisa_space_name(dst->tensor->space));
  if (columns > most)
    return nki_refuse(err, DG_NKI_SIZE_LIMIT, "transpose parts of 128 by 128",
                      "data has %lld elements in each partition, but at most %lld fit", (long long)columns,
                      (long long)most);
  if (!dtype_is_float(data->tensor->dtype))
    return nki_refuse(err, DG_NKI_DTYPE, "cast it with nisa.tensor_copy, or use nisa.dma_transpose",
                      "the Tensor engine transposes floats, not %s", dtype_numpy_name(data->tensor->dtype));
  return check_transposed("data", data, dst, err);
}

bool nki_machine_has(const struct nki_program *p, const struct nki_op *op, struct nki_error *err) {
  static const char *const later[] = {"abs_max", "abs_min", "square", "relu"};
  for (size_t k = 0; k < sizeof later / sizeof *later; k++)
    if (p->target != TARGET_TRN3 && !strcmp(op->nisa, later[k]))
      return nki_refuse(err, DG_NKI_OPERATOR, op->is == NKI_FUNC ? "use nisa.activation" : "use other operators",
                        "%s is an operator of trn3, not of %s", op->name, target_name(p->target));
  return true;
}

bool nki_is_from(const struct nki_program *p, enum target first, const struct nki_call *c, struct nki_error *err) {
  return p->target >= first || nki_refuse(err, DG_NKI_UNSUPPORTED, "choose another target", "%s does not have nisa.%s",
                                          target_name(p->target), nki_def(c)->name);
}

bool nki_check_arith(const struct nki_program *p, const char *name, const struct nki_value *v, struct nki_error *err) {
  if (v->op->is == NKI_ARITH && strcmp(v->op->nisa, "pow") != 0 && strcmp(v->op->nisa, "bypass") != 0)
    return nki_machine_has(p, v->op, err);
  return nki_refuse(err, DG_NKI_OPERATOR, "use an operator of numbers, such as nl.add", "%s is %s", name, v->op->name);
}

/* The operator reduces, and is one of add, multiply, maximum and minimum. */
static bool check_reducing(const char *name, const struct nki_value *v, struct nki_error *err) {
  static const char *const can[] = {"add", "multiply", "max", "min"};
  for (size_t k = 0; k < sizeof can / sizeof *can; k++)
    if (!strcmp(v->op->nisa, can[k]))
      return true;
  return nki_refuse(err, DG_NKI_OPERATOR, "use nl.add, multiply, maximum or minimum", "%s is %s", name, v->op->name);
}

/* True if an earlier call has left something in the registers that c uses. */
static bool registers_are_set(const struct nki_program *p, const struct nki_call *c) {
  for (int i = p->items.n - 1; i >= 0; i--) {
    const struct nki_call *before = p->items.v[i].call;
    if (before && nki_registers_of(before) == nki_registers_of(c) && strcmp(nki_reduce_cmd(before), "idle") != 0)
      return true;
  }
  return false;
}

bool nki_check_registers(const struct nki_program *p, const struct nki_call *c, struct nki_error *err) {
  static const char *const known[] = {"idle", "reset", "reduce", "reset_reduce", "load_reduce"};
  const char *cmd = nki_reduce_cmd(c);
  const bool loads = !strcmp(cmd, "load_reduce");
  const struct nki_value *res = c->kind == NKI_TENSOR_SCALAR_CUMULATIVE ? NULL : nki_value(c, "reduce_res");
  bool is_known = false;
  for (size_t k = 0; k < sizeof known / sizeof *known; k++)
    is_known |= !strcmp(cmd, known[k]);
  if (!is_known)
    return nki_refuse(err, DG_NKI_CALL, "use nisa.reduce_cmd.idle, reset, reduce, reset_reduce or load_reduce",
                      "%s is no reduce_cmd", cmd);
  if (loads && c->kind != NKI_TENSOR_SCALAR_REDUCE && c->kind != NKI_EXPONENTIAL &&
      c->kind != NKI_TENSOR_SCALAR_CUMULATIVE)
    return nki_refuse(err, DG_NKI_OPERAND, "use reset_reduce",
                      "nisa.%s has no number to begin with, as load_reduce needs", nki_def(c)->name);
  if (nki_needs_registers(c) && strcmp(cmd, "reset") != 0 && !registers_are_set(p, c))
    return nki_refuse(err, DG_NKI_OPERAND, "begin with reduce_cmd=nisa.reduce_cmd.reset_reduce",
                      "no call before has left anything in the accumulator registers, which %s goes on with", cmd);
  return !res || res->kind != NKI_VIEW || nki_is_column("reduce_res", res->view, VIEW("dst"), err);
}

bool nki_check_number(const char *name, const struct nki_value *v, const struct nki_view *dst, struct nki_error *err) {
  return v->kind != NKI_VIEW || nki_is_column(name, v->view, dst, err);
}

static bool check_scalar_tensor(const struct nki_program *p, const struct nki_call *c, struct nki_error *err) {
  const struct nki_view *dst = VIEW("dst"), *data = VIEW("data"), *other = VIEW("operand1");
  return nki_same_shape("data", data, dst, err) && nki_same_shape("operand1", other, dst, err) &&
         nki_check_number("operand0", nki_value(c, "operand0"), dst, err) &&
         nki_check_arith(p, "op0", nki_value(c, "op0"), err) && nki_check_arith(p, "op1", nki_value(c, "op1"), err) &&
         nki_not_both_in_psum("data", data, "operand1", other, err);
}

static bool check_scalar_reduce(const struct nki_program *p, const struct nki_call *c, struct nki_error *err) {
  const struct nki_view *dst = VIEW("dst");
  if ((nki_value(c, "reduce_init")->kind != NKI_ABSENT) != !strcmp(nki_reduce_cmd(c), "load_reduce"))
    return nki_refuse(err, DG_NKI_CALL, NULL, "reduce_init and the reduce_cmd load_reduce go together");
  return nki_same_shape("data", VIEW("data"), dst, err) &&
         nki_check_number("operand0", nki_value(c, "operand0"), dst, err) &&
         nki_check_arith(p, "op0", nki_value(c, "op0"), err) &&
         check_reducing("reduce_op", nki_value(c, "reduce_op"), err) && nki_check_registers(p, c, err);
}

static bool check_predicate(const struct nki_call *c, struct nki_error *err) {
  const struct nki_view *predicate = VIEW("predicate"), *dst = VIEW("dst");
  if (!dtype_is_int(predicate->tensor->dtype) || dtype_size(predicate->tensor->dtype) > 2)
    return nki_refuse(err, DG_NKI_DTYPE, "use uint8 or uint16", "predicate has the type %s",
                      dtype_numpy_name(predicate->tensor->dtype));
  if (nki_is_same(predicate->tensor, dst->tensor))
    return nki_refuse(err, DG_NKI_UNSUPPORTED, "write to another tensor",
                      "dst and predicate are parts of one tensor; that is not compiled here yet");
  return nki_same_shape("predicate", predicate, dst, err);
}

static bool check_select(const struct nki_program *p, const struct nki_call *c, struct nki_error *err) {
  static const char *const names[] = {"on_true", "on_false"};
  const struct nki_view *dst = VIEW("dst"), *predicate = VIEW("predicate");
  const struct nki_value *op = nki_value(c, "reduce_op");
  int in_dst = 0;
  if (!check_predicate(c, err) || !nki_check_registers(p, c, err))
    return false;
  for (int k = 0; k < 2; k++) {
    const struct nki_value *v = nki_value(c, names[k]);
    if (v->kind != NKI_VIEW)
      continue;
    in_dst += nki_is_same(v->view->tensor, dst->tensor);
    if (!nki_same_shape(names[k], v->view, dst, err) ||
        !nki_not_both_in_psum(names[k], v->view, "predicate", predicate, err))
      return false;
  }
  if (in_dst == 2)
    return nki_refuse(err, DG_NKI_UNSUPPORTED, "write to another tensor",
                      "dst, on_true and on_false are parts of one tensor; that is not compiled here yet");
  if (op->kind == NKI_OP && strcmp(op->op->nisa, "max") != 0)
    return nki_refuse(err, DG_NKI_OPERATOR, "it is the maximum", "reduce_op is %s", op->op->name);
  return true;
}

static bool check_affine_select(const struct nki_call *c, struct nki_error *err) {
  static const char *const can[] = {"is_eq", "is_ne", "is_gt", "is_ge", "is_lt", "is_le"};
  const struct nki_value *op = nki_value(c, "cmp_op");
  bool compares = op->kind != NKI_OP;
  for (size_t k = 0; k < sizeof can / sizeof *can; k++)
    compares |= op->kind == NKI_OP && !strcmp(op->op->nisa, can[k]);
  if (!compares)
    return nki_refuse(err, DG_NKI_OPERATOR, "use nl.equal, nl.less, …", "cmp_op is %s", op->op->name);
  return nki_check_pattern(c, err) && nki_same_shape("on_true_tile", VIEW("on_true_tile"), VIEW("dst"), err);
}

static bool check_comparison(const char *name, const struct nki_value *v, struct nki_error *err) {
  static const char *const can[] = {"is_eq", "is_gt", "is_ge", "is_lt", "is_le"};
  for (size_t k = 0; k < sizeof can / sizeof *can; k++)
    if (!strcmp(v->op->nisa, can[k]))
      return true;
  return nki_refuse(err, DG_NKI_OPERATOR, "use nl.equal, greater, greater_equal, less or less_equal", "%s is %s", name,
                    v->op->name);
}

static bool check_range_select(const struct nki_program *p, const struct nki_call *c, struct nki_error *err) {
  const struct nki_view *dst = VIEW("dst");
  const struct nki_value *op = nki_value(c, "reduce_op"), *start = nki_value(c, "range_start");
  const double first = start->number, last = first + (double)nki_free_elements(dst);
  if (!nki_is_from(p, TARGET_TRN2, c, err) || !nki_same_shape("on_true_tile", VIEW("on_true_tile"), dst, err) ||
      !check_comparison("comp_op0", nki_value(c, "comp_op0"), err) ||
      !check_comparison("comp_op1", nki_value(c, "comp_op1"), err) ||
      !nki_check_number("bound0", nki_value(c, "bound0"), dst, err) ||
      !nki_check_number("bound1", nki_value(c, "bound1"), dst, err) || !nki_check_registers(p, c, err))
    return false;
  if (first != floor(first) || first < 0 || last > 0x1p24)
    return nki_refuse(err, DG_NKI_SIZE_LIMIT, "the indices are computed in float32",
                      "the indices go from %g to %g, but they must be integers from 0 to 2^24", first, last);
  if (op->kind == NKI_OP && strcmp(op->op->nisa, "max") != 0)
    return nki_refuse(err, DG_NKI_OPERATOR, "it is the maximum", "reduce_op is %s", op->op->name);
  return true;
}

static bool check_exponential(const struct nki_program *p, const struct nki_call *c, struct nki_error *err) {
  const struct nki_view *dst = VIEW("dst");
  return nki_is_from(p, TARGET_TRN3, c, err) && nki_same_shape("src", VIEW("src"), dst, err) &&
         nki_check_number("max_value", nki_value(c, "max_value"), dst, err) && nki_check_registers(p, c, err);
}

/* The pairs of operators that the Scalar engine has. */
static bool check_pair(const struct nki_call *c, struct nki_error *err) {
  static const char *const can[][2] = {{"multiply", "add"}, {"multiply", "subtract"}, {"multiply", "bypass"},
                                       {"add", "bypass"},   {"subtract", "bypass"},   {"bypass", "bypass"}};
  const struct nki_op *op0 = nki_value(c, "op0")->op, *op1 = nki_value(c, "op1")->op;
  for (size_t k = 0; k < sizeof can / sizeof *can; k++)
    if (!strcmp(op0->nisa, can[k][0]) && !strcmp(op1->nisa, can[k][1]))
      return true;
  return nki_refuse(err, DG_NKI_OPERATOR, "multiply and add, multiply and subtract, or one of them and nl.bypass",
                    "op0 and op1 are %s and %s", op0->name, op1->name);
}

static bool check_activate2(const struct nki_program *p, const struct nki_call *c, struct nki_error *err) {
  const struct nki_view *dst = VIEW("dst");
  const struct nki_value *op = nki_value(c, "reduce_op");
  static const char *const can[] = {"add", "max", "min", "abs_max", "abs_min"};
  bool reduces = op->kind != NKI_OP;
  for (size_t k = 0; k < sizeof can / sizeof *can; k++)
    reduces |= op->kind == NKI_OP && !strcmp(op->op->nisa, can[k]);
  if (!reduces)
    return nki_refuse(err, DG_NKI_OPERATOR, "use add, maximum, minimum, abs_max or abs_min", "reduce_op is %s",
                      op->op->name);
  return nki_is_from(p, TARGET_TRN3, c, err) && check_pair(c, err) && nki_same_shape("data", VIEW("data"), dst, err) &&
         nki_check_number("imm0", nki_value(c, "imm0"), dst, err) &&
         nki_check_number("imm1", nki_value(c, "imm1"), dst, err) && nki_check_registers(p, c, err);
}

static bool check_dropout(const struct nki_call *c, struct nki_error *err) {
  const struct nki_view *dst = VIEW("dst"), *data = VIEW("data");
  const struct nki_value *prob = nki_value(c, "prob");
  if (dst->tensor->dtype != data->tensor->dtype)
    return nki_refuse(err, DG_NKI_DTYPE, "dropout does not convert", "data is %s, but dst is %s",
                      dtype_numpy_name(data->tensor->dtype), dtype_numpy_name(dst->tensor->dtype));
  if (prob->kind != NKI_VIEW && !(prob->number >= 0 && prob->number <= 1))
    return nki_refuse(err, DG_NKI_OPERAND, "give the probability that an element becomes 0, from 0 to 1", "prob is %g",
                      prob->number);
  return nki_same_shape("data", data, dst, err) && nki_check_number("prob", prob, dst, err);
}

/* ---- along a partition ------------------------------------------------------------------------------------------- */

static bool check_scan(const struct nki_program *p, const struct nki_call *c, struct nki_error *err) {
  const struct nki_view *dst = VIEW("dst"), *x = VIEW("data0"), *y = VIEW("data1");
  return nki_same_shape("data0", x, dst, err) && nki_same_shape("data1", y, dst, err) &&
         nki_check_number("initial", nki_value(c, "initial"), dst, err) &&
         nki_check_arith(p, "op0", nki_value(c, "op0"), err) && nki_check_arith(p, "op1", nki_value(c, "op1"), err) &&
         nki_not_both_in_psum("data0", x, "data1", y, err);
}

static bool check_cumulative(const struct nki_program *p, const struct nki_call *c, struct nki_error *err) {
  const struct nki_view *dst = VIEW("dst"), *src = VIEW("src");
  const struct nki_value *op1 = nki_value(c, "op1"), *cmd = nki_value(c, "reduce_cmd");
  const bool loads = cmd->kind == NKI_WORD && !strcmp(cmd->word, "load_reduce");
  if (cmd->kind == NKI_WORD && !strstr(cmd->word, "reduce"))
    return nki_refuse(err, DG_NKI_CALL, "use reset_reduce, reduce or load_reduce",
                      "a running result cannot have the reduce_cmd %s", cmd->word);
  if (loads != (nki_value(c, "imm1")->kind != NKI_ABSENT))
    return nki_refuse(err, DG_NKI_CALL, NULL, "imm1 and the reduce_cmd load_reduce go together");
  if (strcmp(op1->op->nisa, "subtract") != 0 && !check_reducing("op1", op1, err))
    return false;
  if (dtype_is_int(src->tensor->dtype) && dtype_size(src->tensor->dtype) == 4)
    return nki_refuse(err, DG_NKI_DTYPE, "cast it with nisa.tensor_copy", "src has the type %s",
                      dtype_numpy_name(src->tensor->dtype));
  return nki_same_shape("src", src, dst, err) && nki_check_number("imm0", nki_value(c, "imm0"), dst, err) &&
         nki_check_number("imm1", nki_value(c, "imm1"), dst, err) &&
         nki_check_arith(p, "op0", nki_value(c, "op0"), err) && nki_check_registers(p, c, err);
}

/* The operand has dst's partitions, and between least and most elements in each. */
static bool check_row(const struct nki_call *c, const char *name, int64_t least, int64_t most, struct nki_error *err) {
  const struct nki_view *v = VIEW(name);
  const int64_t n = nki_free_elements(v);
  if (!nki_same_partitions(name, v, VIEW("dst"), err))
    return false;
  if (n >= least && n <= most)
    return true;
  return nki_refuse(err, DG_NKI_SHAPE_MISMATCH, NULL,
                    least == most ? "%s has %lld elements in each partition, but it must have %lld"
                                  : "%s has %lld elements in each partition, but it must have %lld to %lld",
                    name, (long long)n, (long long)least, (long long)most);
}

static bool check_floats(const struct nki_call *c, const char *name, struct nki_error *err) {
  const enum dtype t = VIEW(name)->tensor->dtype;
  return dtype_is_float(t) || nki_refuse(err, DG_NKI_DTYPE, "cast it with nisa.tensor_copy", "%s has the type %s", name,
                                         dtype_numpy_name(t));
}

static bool check_places(const struct nki_call *c, const char *name, struct nki_error *err) {
  const enum dtype t = VIEW(name)->tensor->dtype;
  if (t != DT_U16 && t != DT_U32)
    return nki_refuse(err, DG_NKI_DTYPE, "use uint16 or uint32", "%s has the type %s", name, dtype_numpy_name(t));
  return check_row(c, name, 8, 8, err);
}

enum { STATS_MOST = 512, EIGHT_MOST = 16384 };

static bool check_stats(const struct nki_call *c, struct nki_error *err) {
  if (c->kind == NKI_BN_STATS)
    return check_row(c, "dst", 6, 6, err) && check_row(c, "data", 1, STATS_MOST, err);
  if (nki_free_elements(VIEW("data")) % 3)
    return nki_refuse(err, DG_NKI_SHAPE_MISMATCH, "give it what bn_stats wrote",
                      "data has %lld elements in each partition, but it must have groups of 3",
                      (long long)nki_free_elements(VIEW("data")));
  return check_row(c, "dst", 2, 2, err) && nki_same_partitions("data", VIEW("data"), VIEW("dst"), err);
}

static bool check_eight(const struct nki_call *c, struct nki_error *err) {
  if (c->kind == NKI_MAX8)
    return check_row(c, "dst", 8, 8, err) && check_row(c, "src", 8, EIGHT_MOST, err);
  if (!check_row(c, "data", 8, EIGHT_MOST, err) || !check_row(c, "vals", 8, 8, err) || !check_floats(c, "data", err) ||
      !check_floats(c, "vals", err))
    return false;
  if (c->kind == NKI_NC_FIND_INDEX8)
    return check_places(c, "dst", err);
  return nki_same_shape("data", VIEW("data"), VIEW("dst"), err) && check_floats(c, "dst", err) &&
         (nki_value(c, "dst_idx")->kind != NKI_VIEW || check_places(c, "dst_idx", err));
}

bool nki_rules_more(const struct nki_program *p, const struct nki_call *c, struct nki_error *err) {
  switch (c->kind) {
  case NKI_NC_MATMUL_MX:
  case NKI_QUANTIZE_MX:
    return nki_rules_packed(p, c, err);
  case NKI_NC_MATMUL:
    return nki_rules_matmul(p, c, err);
  case NKI_DMA_TRANSPOSE:
  case NKI_DMA_COMPUTE:
    return nki_rules_dma(p, c, err);
  case NKI_NC_TRANSPOSE:
    return check_transpose(p, c, err);
  case NKI_SCALAR_TENSOR_TENSOR:
    return check_scalar_tensor(p, c, err);
  case NKI_TENSOR_SCALAR_REDUCE:
    return check_scalar_reduce(p, c, err);
  case NKI_SELECT_REDUCE:
    return check_select(p, c, err);
  case NKI_AFFINE_SELECT:
    return check_affine_select(c, err);
  case NKI_TENSOR_TENSOR_SCAN:
    return check_scan(p, c, err);
  case NKI_TENSOR_SCALAR_CUMULATIVE:
    return check_cumulative(p, c, err);
  case NKI_BN_STATS:
  case NKI_BN_AGGR:
    return check_stats(c, err);
  case NKI_MAX8:
  case NKI_NC_FIND_INDEX8:
  case NKI_NC_MATCH_REPLACE8:
    return check_eight(c, err);
  case NKI_RANGE_SELECT:
    return check_range_select(p, c, err);
  case NKI_EXPONENTIAL:
    return check_exponential(p, c, err);
  case NKI_ACTIVATE2:
    return check_activate2(p, c, err);
  case NKI_DROPOUT:
    return check_dropout(c, err);
  default:
    return nki_rules_gather(p, c, err);
  }
}
