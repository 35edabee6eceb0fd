/* read_linalg: structured operations of linalg: their loops, operands and bodies.
 *
 * A named operation has a body like linalg.generic, so all are read in the same way.
 */
#include <string.h>

#include "mlir-c/AffineExpr.h"
#include "mlir-c/AffineMap.h"
#include "mlir-c/BuiltinAttributes.h"
#include "mlir-c/BuiltinTypes.h"
#include "mlir-c/Dialect/Linalg.h"

#include "base/array.h"
#include "base/table.h"
#include "interp/internal.h"
#include "ir/query.h"

struct body {
  struct reader *r;
  struct structured *s;
  MlirBlock block;
  struct table numbers; /* a value's number + 1 */
  struct {
    struct body_value *v;
    int n, cap;
  } values;
};

static int add_value(struct body *b, MlirValue v, int outer) {
  const struct body_value x = {read_dtype(mlirValueGetType(v)), outer};
  if (x.t == DT_NONE)
    read_unknown(b->r, "a type in a body");
  array_push(reader_arena(b->r), &b->values, x);
  table_put(&b->numbers, v.ptr, (void *)(uintptr_t)b->values.n);
  return b->values.n - 1;
}

/* The number of a value that the body uses; values from outside get one at their first use. */
static int body_value(struct body *b, MlirValue v) {
  const uintptr_t known = (uintptr_t)table_get(&b->numbers, v.ptr);
  return known ? (int)known - 1 : add_value(b, v, reader_slot(b->r, v));
}

/* Reads an operand's indices and finds the loops whose extent it gives. */
static bool read_operand(struct body *b, MlirOperation op, int k, MlirAffineMap map, struct operand *out, int *operand,
                         int *dim) {
  struct arena *a = reader_arena(b->r);
  MlirValue v = mlirOperationGetOperand(op, k);
  *out = (struct operand){.slot = reader_slot(b->r, v), .init = -1, .rank = reader_rank(b->r, v)};
  if (k >= b->s->n_inputs && mlirOperationGetNumResults(op)) {
    out->init = out->slot;
    out->slot = reader_slot(b->r, mlirOperationGetResult(op, k - b->s->n_inputs));
  }
  out->t = read_dtype(out->rank < 0 ? mlirValueGetType(v) : mlirShapedTypeGetElementType(mlirValueGetType(v)));
  out->is_read = ir_is_used(mlirBlockGetArgument(b->block, k));
  if (out->rank < 0)
    return out->t != DT_NONE;
  if (mlirAffineMapGetNumResults(map) != out->rank || mlirAffineMapGetNumSymbols(map))
    return false;
  struct linear *at = arena_new_array(a, struct linear, (size_t)out->rank);
  for (int d = 0; d < out->rank; d++) {
    MlirAffineExpr e = mlirAffineMapGetResult(map, d);
    if (!read_linear(a, e, b->s->n_loops, b->s->n_loops, &at[d]))
      return false;
    if (!mlirAffineExprIsADim(e))
      continue;
    const int loop = (int)mlirAffineDimExprGetPosition(e);
    if (operand[loop] < 0)
      operand[loop] = k, dim[loop] = d;
  }
  out->at = at;
  return out->t != DT_NONE;
}

/* True if the operand's indices are different loops. */
static bool is_permutation(const struct operand *x, int n_loops) {
  for (int d = 0; d < x->rank; d++) {
    int n = 0;
    for (int l = 0; l < n_loops; l++) {
      n += x->at[d].by[l] == 1 ? 1 : x->at[d].by[l] ? 2 : 0;
      for (int e = 0; e < d && x->at[d].by[l]; e++)
        n += x->at[e].by[l] != 0;
    }
    if (n != 1 || x->at[d].constant)
      return false;
  }
  return true;
}

static bool read_operands(struct body *b, MlirOperation op) {
  struct arena *a = reader_arena(b->r);
  struct structured *s = b->s;
  MlirAttribute maps = mlirLinalgGetIndexingMapsAttribute(op);
  s->n_operands = (int)mlirBlockGetNumArguments(b->block);
  if (mlirAttributeIsNull(maps) || mlirArrayAttrGetNumElements(maps) != s->n_operands ||
      mlirOperationGetNumOperands(op) != s->n_operands || !s->n_operands)
    return false;
  s->n_loops = (int)mlirAffineMapGetNumDims(mlirAffineMapAttrGetValue(mlirArrayAttrGetElement(maps, 0)));
  if (s->n_loops > HLO_RANK_MAX)
    return false;
  int *operand = arena_new_array(a, int, (size_t)s->n_loops), *dim = arena_new_array(a, int, (size_t)s->n_loops);
  bool *is_parallel = arena_new_array(a, bool, (size_t)s->n_loops);
  struct operand *operands = arena_new_array(a, struct operand, (size_t)s->n_operands);
  for (int k = 0; k < s->n_loops; k++)
    operand[k] = -1, dim[k] = 0, is_parallel[k] = true;
  for (int k = 0; k < s->n_operands; k++)
    if (!read_operand(b, op, k, mlirAffineMapAttrGetValue(mlirArrayAttrGetElement(maps, k)), &operands[k], operand,
                      dim))
      return false;
  for (int k = s->n_inputs; k < s->n_operands; k++)
    for (int l = 0; l < s->n_loops; l++) {
      bool is_indexed = false;
      for (int d = 0; d < operands[k].rank; d++)
        is_indexed |= operands[k].at[d].by[l] != 0;
      is_parallel[l] &= is_indexed;
    }
  for (int k = 0; k < s->n_operands; k++)
    operands[k].is_all = is_permutation(&operands[k], s->n_loops);
  for (int k = 0; k < s->n_loops; k++)
    if (operand[k] < 0)
      return false;
  s->operands = operands;
  s->extent_operand = operand;
  s->extent_dim = dim;
  s->is_parallel = is_parallel;
  return true;
}

static bool read_body_operation(struct body *b, MlirOperation op) {
  struct arena *a = reader_arena(b->r);
  struct instr in = {.n_args = (int)mlirOperationGetNumOperands(op), .n_results = 1};
  MlirStringRef name = mlirIdentifierStr(mlirOperationGetName(op));
  if (mlirOperationGetNumResults(op) != 1)
    return read_unknown(b->r, name.data);
  if (ir_is(op, "linalg.index")) {
    in.op = OP_INDEX;
    in.index = ir_int_attr(op, "dim", 0);
  } else if (ir_is(op, "memref.load") || ir_is(op, "tensor.extract")) {
    in.op = OP_LOAD;
  } else if (ir_is(op, "affine.apply")) {
    if (!read_apply(b->r, op, &in))
      return false;
  } else if (read_constant(b->r, op, &in.bits)) {
    in.op = OP_CONSTANT;
  } else if (read_arith(b->r, op, &in.arith)) {
    in.op = OP_ARITH;
  } else {
    return read_unknown(b->r, name.data);
  }
  int *args = arena_new_array(a, int, (size_t)in.n_args + 1), *result = arena_new(a, int);
  for (int k = 0; k < in.n_args; k++) {
    MlirValue v = mlirOperationGetOperand(op, k);
    args[k] = in.op == OP_LOAD && k == 0 ? reader_slot(b->r, v) : body_value(b, v);
  }
  *result = add_value(b, mlirOperationGetResult(op, 0), -1);
  in.args = args;
  in.results = result;
  in.name = arena_strndup(a, name.data, name.length);
  array_push(a, &b->s->code, in);
  return true;
}

static bool read_body(struct body *b) {
  MlirOperation last = mlirBlockGetTerminator(b->block);
  for (int k = 0; k < b->s->n_operands; k++)
    add_value(b, mlirBlockGetArgument(b->block, k), -1);
  for (MlirOperation op = mlirBlockGetFirstOperation(b->block); !mlirOperationEqual(op, last);
       op = mlirOperationGetNextInBlock(op))
    if (!read_body_operation(b, op))
      return false;
  const int n = (int)mlirOperationGetNumOperands(last);
  int *yields = arena_new_array(reader_arena(b->r), int, (size_t)n);
  for (int k = 0; k < n; k++)
    yields[k] = body_value(b, mlirOperationGetOperand(last, k));
  b->s->yields = yields;
  return n == b->s->n_operands - b->s->n_inputs;
}

/* ---- special forms ----------------------------------------------------------------------------------------------- */

/* Finds out if the body only copies an element. */
static void find_copy(struct structured *s) {
  const int from = s->n_operands - s->n_inputs == 1 && !s->code.n ? s->yields[0] : -1;
  s->is_copy = from >= 0 && from < s->n_inputs && s->operands[from].rank >= 0 &&
               s->operands[from].t == s->operands[s->n_inputs].t;
  s->copied_from = from;
}

/* Finds out if the last instruction alone uses the output's element, as in a sum. */
static void find_fold(struct structured *s) {
  const int out = s->n_inputs;
  const struct instr *last = s->code.n ? &s->code.v[s->code.n - 1] : NULL;
  if (s->n_operands - s->n_inputs != 1 || !last || last->op != OP_ARITH || last->n_args != 2 ||
      s->yields[0] != last->results[0] || (last->args[0] == out) == (last->args[1] == out))
    return;
  for (int k = 0; k + 1 < s->code.n; k++)
    for (int i = s->code.v[k].op == OP_LOAD; i < s->code.v[k].n_args; i++)
      if (s->code.v[k].args[i] == out)
        return;
  s->is_fold = true;
}

/* The order of two loops in an operand: 0 for (batch, p, q), 1 for (batch, q, p), -1 for another one. */
static int order_of(const struct operand *x, int rank, int p, int q) {
  int at[3] = {0};
  if (x->rank != rank)
    return -1;
  for (int d = 0; d < rank; d++) {
    int found = -1;
    for (int l = 0; l <= rank; l++)
      if (x->at[d].by[l])
        found = found < 0 && x->at[d].by[l] == 1 && !x->at[d].constant ? l : rank + 1;
    at[d] = found;
  }
  if (rank == 3 && at[0] != 0)
    return -1;
  const int *last = at + rank - 2;
  return last[0] == p && last[1] == q ? 0 : last[0] == q && last[1] == p ? 1 : -1;
}

static void find_product(struct structured *s, MlirOperation op) {
  const int rank = ir_is(op, "linalg.matmul") ? 2 : ir_is(op, "linalg.batch_matmul") ? 3 : 0;
  const enum dtype t = s->operands[0].t;
  if (!rank || s->n_inputs != 2 || s->operands[1].t != t || s->operands[2].t != DT_F32 ||
      (t != DT_F32 && t != DT_F16 && t != DT_BF16))
    return;
  const int m = rank - 2, n = rank - 1, k = rank;
  const int a = order_of(&s->operands[0], rank, m, k), b = order_of(&s->operands[1], rank, k, n);
  if (a < 0 || b < 0 || order_of(&s->operands[2], rank, m, n) != 0)
    return;
  s->product = t;
  s->transposed[0] = a;
  s->transposed[1] = b;
}

bool read_structured(struct reader *r, MlirOperation op, struct instr *out) {
  struct arena *a = reader_arena(r);
  const char *name = mlirIdentifierStr(mlirOperationGetName(op)).data;
  MlirAttribute segments = ir_attr(op, "operandSegmentSizes");
  struct structured *s = arena_new(a, struct structured);
  *s = (struct structured){0};
  if (!mlirOperationGetNumRegions(op) || mlirBlockIsNull(ir_body(op)))
    return read_unknown(r, name);
  struct body b = {.r = r, .s = s, .block = ir_body(op), .numbers = {.arena = a}};
  const int n = (int)mlirOperationGetNumOperands(op);
  s->n_inputs = !mlirAttributeIsNull(segments) ? mlirDenseI32ArrayGetElement(segments, 0)
                : ir_is(op, "linalg.reduce")   ? n / 2
                                               : n - 1;
  const intptr_t n_results = mlirOperationGetNumResults(op); /* of tensors, as many as there are outputs */
  if (n_results && n_results != n - s->n_inputs)
    return read_unknown(r, name);
  if (!read_operands(&b, op) || !read_body(&b))
    return read_unknown(r, name);
  s->n_values = b.values.n;
  s->values = b.values.v;
  find_copy(s);
  find_fold(s);
  find_product(s, op);
  s->accumulates = ir_is(op, "linalg.matmul") || ir_is(op, "linalg.batch_matmul") || ir_is(op, "linalg.contract");
  reader_rows(r, s->n_values);
  out->op = OP_STRUCTURED;
  out->structured = s;
  return true;
}
