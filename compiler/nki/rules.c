/* rules: the operands together of calls that move data in other shapes, or that become several instructions. */
#include "nki/rules.h"

#include <string.h>

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

static bool check_dma_transpose(const struct nki_call *c, struct nki_error *err) {
  const struct nki_view *dst = VIEW("dst"), *src = VIEW("src");
  const struct nki_value *axes = nki_value(c, "axes");
  const size_t bytes = dtype_size(src->tensor->dtype);
  if (src->rank != 2 || dst->rank != 2 || (axes->n && (axes->n != 2 || axes->ints[0] != 1 || axes->ints[1] != 0)))
    return nki_refuse(err, DG_NKI_UNSUPPORTED, "transpose parts of two dimensions",
                      "dma_transpose of other axes than (1, 0) is not compiled here yet");
  if (bytes != 2 && bytes != 4)
    return nki_refuse(err, DG_NKI_DTYPE, NULL, "DMA transposes elements of 2 or 4 bytes, not %s",
                      dtype_numpy_name(src->tensor->dtype));
  return check_transposed("src", src, dst, err);
}

static bool check_transpose(const struct nki_program *p, const struct nki_call *c, struct nki_error *err) {
  const struct nki_view *dst = VIEW("dst"), *data = VIEW("data");
  const int64_t columns = nki_free_elements(data), most = nisa_machine(p->target)->matmul_m;
  if (columns > most)
    return nki_refuse(err, DG_NKI_SIZE_LIMIT, "transpose parts of 128 by 128",
                      "data has %lld elements in each partition, but at most %lld fit", (long long)columns,
                      (long long)most);
  if (!dtype_is_float(data->tensor->dtype))
    return nki_refuse(err, DG_NKI_DTYPE, "cast it with nisa.tensor_copy, or use nisa.dma_transpose",
                      "the Tensor engine transposes floats, not %s", dtype_numpy_name(data->tensor->dtype));
  return check_transposed("data", data, dst, err);
}

/* The operator computes with numbers, and the Vector engine has it. */
static bool check_arith(const char *name, const struct nki_value *v, struct nki_error *err) {
  if (v->op->is == NKI_ARITH && strcmp(v->op->nisa, "pow") != 0)
    return true;
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

/* reduce_res has one element in each partition, and starts anew. */
static bool check_result(const struct nki_call *c, bool is_usual, struct nki_error *err) {
  const struct nki_value *res = nki_value(c, "reduce_res"), *cmd = nki_value(c, "reduce_cmd");
  if (res->kind != NKI_VIEW)
    return true;
  if (cmd->kind == NKI_ABSENT ? !is_usual : strcmp(cmd->word, "reset_reduce") != 0)
    return nki_refuse(err, DG_NKI_UNSUPPORTED, "use reduce_cmd=nisa.reduce_cmd.reset_reduce",
                      "a reduce_cmd other than reset_reduce is not compiled here yet");
  return nki_is_column("reduce_res", res->view, VIEW("dst"), err);
}

static bool check_number(const char *name, const struct nki_value *v, const struct nki_view *dst,
                         struct nki_error *err) {
  return v->kind != NKI_VIEW || nki_is_column(name, v->view, dst, err);
}

static bool check_scalar_tensor(const struct nki_call *c, struct nki_error *err) {
  const struct nki_view *dst = VIEW("dst"), *data = VIEW("data"), *other = VIEW("operand1");
  return nki_same_shape("data", data, dst, err) && nki_same_shape("operand1", other, dst, err) &&
         check_number("operand0", nki_value(c, "operand0"), dst, err) && check_arith("op0", nki_value(c, "op0"), err) &&
         check_arith("op1", nki_value(c, "op1"), err) && nki_not_both_in_psum("data", data, "operand1", other, err);
}

static bool check_scalar_reduce(const struct nki_call *c, struct nki_error *err) {
  const struct nki_view *dst = VIEW("dst");
  if (nki_value(c, "reduce_init")->kind != NKI_ABSENT || nki_value(c, "reduce_res_negate")->integer)
    return nki_refuse(err, DG_NKI_UNSUPPORTED, NULL,
                      "reduce_init and reduce_res_negate of tensor_scalar_reduce are not compiled here yet");
  return nki_same_shape("data", VIEW("data"), dst, err) &&
         check_number("operand0", nki_value(c, "operand0"), dst, err) && check_arith("op0", nki_value(c, "op0"), err) &&
         check_reducing("reduce_op", nki_value(c, "reduce_op"), err) && check_result(c, true, err);
}

static bool check_predicate(const struct nki_call *c, struct nki_error *err) {
  const struct nki_view *predicate = VIEW("predicate"), *dst = VIEW("dst");
  if (!dtype_is_int(predicate->tensor->dtype) || dtype_size(predicate->tensor->dtype) > 2)
    return nki_refuse(err, DG_NKI_DTYPE, "use uint8 or uint16", "the predicate has the type %s",
                      dtype_numpy_name(predicate->tensor->dtype));
  if (predicate->tensor == dst->tensor)
    return nki_refuse(err, DG_NKI_UNSUPPORTED, "write to another tensor",
                      "dst and predicate are parts of one tensor; that is not compiled here yet");
  return nki_same_shape("predicate", predicate, dst, err);
}

static bool check_select(const struct nki_call *c, struct nki_error *err) {
  static const char *const names[] = {"on_true", "on_false"};
  const struct nki_view *dst = VIEW("dst"), *predicate = VIEW("predicate");
  const struct nki_value *op = nki_value(c, "reduce_op");
  int in_dst = 0;
  if (!check_predicate(c, err) || !check_result(c, false, err))
    return false;
  for (int k = 0; k < 2; k++) {
    const struct nki_value *v = nki_value(c, names[k]);
    if (v->kind != NKI_VIEW)
      continue;
    in_dst += v->view->tensor == dst->tensor;
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

/* ---- along a partition ------------------------------------------------------------------------------------------- */

static bool check_scan(const struct nki_call *c, struct nki_error *err) {
  const struct nki_view *dst = VIEW("dst"), *x = VIEW("data0"), *y = VIEW("data1");
  return nki_same_shape("data0", x, dst, err) && nki_same_shape("data1", y, dst, err) &&
         check_number("initial", nki_value(c, "initial"), dst, err) && check_arith("op0", nki_value(c, "op0"), err) &&
         check_arith("op1", nki_value(c, "op1"), err) && nki_not_both_in_psum("data0", x, "data1", y, err);
}

static bool check_cumulative(const struct nki_call *c, struct nki_error *err) {
  const struct nki_view *dst = VIEW("dst"), *src = VIEW("src");
  const struct nki_value *op1 = nki_value(c, "op1"), *cmd = nki_value(c, "reduce_cmd");
  const bool loads = cmd->kind == NKI_WORD && !strcmp(cmd->word, "load_reduce");
  if (cmd->kind == NKI_WORD && !loads && strcmp(cmd->word, "reset_reduce") != 0)
    return nki_refuse(err, DG_NKI_UNSUPPORTED, "use reset_reduce or load_reduce",
                      "the reduce_cmd %s is not compiled here yet", cmd->word);
  if (loads != (nki_value(c, "imm1")->kind != NKI_ABSENT))
    return nki_refuse(err, DG_NKI_CALL, NULL, "imm1 and the reduce_cmd load_reduce go together");
  if (strcmp(op1->op->nisa, "subtract") != 0 && !check_reducing("op1", op1, err))
    return false;
  if (dtype_is_int(src->tensor->dtype) && dtype_size(src->tensor->dtype) == 4)
    return nki_refuse(err, DG_NKI_DTYPE, "cast it with nisa.tensor_copy", "src has the type %s",
                      dtype_numpy_name(src->tensor->dtype));
  return nki_same_shape("src", src, dst, err) && check_number("imm0", nki_value(c, "imm0"), dst, err) &&
         check_number("imm1", nki_value(c, "imm1"), dst, err) && check_arith("op0", nki_value(c, "op0"), err);
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
  case NKI_DMA_TRANSPOSE:
    return check_dma_transpose(c, err);
  case NKI_NC_TRANSPOSE:
    return check_transpose(p, c, err);
  case NKI_SCALAR_TENSOR_TENSOR:
    return check_scalar_tensor(c, err);
  case NKI_TENSOR_SCALAR_REDUCE:
    return check_scalar_reduce(c, err);
  case NKI_SELECT_REDUCE:
    return check_select(c, err);
  case NKI_AFFINE_SELECT:
    return check_affine_select(c, err);
  case NKI_TENSOR_TENSOR_SCAN:
    return check_scan(c, err);
  case NKI_TENSOR_SCALAR_CUMULATIVE:
    return check_cumulative(c, err);
  case NKI_BN_STATS:
  case NKI_BN_AGGR:
    return check_stats(c, err);
  case NKI_MAX8:
  case NKI_NC_FIND_INDEX8:
  case NKI_NC_MATCH_REPLACE8:
    return check_eight(c, err);
  default:
    return nki_refuse(err, DG_INTERNAL, NULL, "a call has no rules");
  }
}
