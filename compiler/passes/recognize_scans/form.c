/* form: operations without their dimensions of one element.  See unrolled.h. */
#include <string.h>

#include "mlir-c/BuiltinAttributes.h"
#include "mlir-c/BuiltinTypes.h"

#include "passes/recognize_scans/unrolled.h"

int form_dims(MlirValue v, int64_t dims[STRUCTURED_LOOPS_MAX]) {
  int64_t all[STRUCTURED_LOOPS_MAX];
  const int rank = ir_shape(v, STRUCTURED_LOOPS_MAX, all);
  int n = 0;

  if (rank < 0 || rank > STRUCTURED_LOOPS_MAX || !mlirTypeIsARankedTensor(mlirValueGetType(v)))
    return -1;
  for (int d = 0; d < rank; d++) {
    if (all[d] < 1)
      return -1;
    if (all[d] > 1)
      dims[n++] = all[d];
  }
  return n;
}

MlirValue form_source(MlirValue v) {
  int64_t dims[STRUCTURED_LOOPS_MAX], from[STRUCTURED_LOOPS_MAX];
  const int rank = form_dims(v, dims);

  for (;;) {
    MlirOperation def = ir_defining_op(v);
    if (rank < 0 || mlirOperationIsNull(def) ||
        (!ir_is(def, "tensor.collapse_shape") && !ir_is(def, "tensor.expand_shape")))
      return v;
    MlirValue source = mlirOperationGetOperand(def, 0);
    if (form_is_annotated(v) || form_dims(source, from) != rank ||
        (rank && memcmp(dims, from, (size_t)rank * sizeof *dims) != 0))
      return v;
    v = source;
  }
}

bool form_is_annotated(MlirValue v) {
  for (MlirOpOperand u = mlirValueGetFirstUse(v); !mlirOpOperandIsNull(u); u = mlirOpOperandGetNextUse(u))
    if (ir_is_of(mlirOpOperandGetOwner(u), "nkipy."))
      return true;
  return false;
}

MlirOperation form_only_operation(MlirOperation op) {
  MlirBlock body = ir_body(op);
  MlirOperation first = mlirBlockGetFirstOperation(body), end = mlirBlockGetTerminator(body);
  const bool is_one = !mlirOperationEqual(first, end) && mlirOperationEqual(mlirOperationGetNextInBlock(first), end) &&
                      mlirOperationGetNumResults(first) == 1 &&
                      mlirValueEqual(mlirOperationGetOperand(end, 0), ir_result(first));
  return is_one ? first : (MlirOperation){NULL};
}

/* ---- reading -------------------------------------------------------------------------------------------------------- */

/* Sets the dimensions of operand o.  `at` is the number that each loop has without those of one element, -1 for these. */
static bool read_operand(MlirOperation op, const struct structured *s, int o, const int *at, struct form *f) {
  int64_t dims[STRUCTURED_LOOPS_MAX];
  const int rank = ir_shape(mlirOperationGetOperand(op, o), STRUCTURED_LOOPS_MAX, dims);
  bool is_known[STRUCTURED_LOOPS_MAX] = {false};

  if (rank != mlirAffineMapGetNumResults(s->maps[o]))
    return false;
  for (int r = 0; r < rank; r++) {
    const int loop = structured_map_loop(s->maps[o], r);
    if (dims[r] != (loop < 0 ? 1 : s->extents[loop]))
      return false;
    if (loop < 0 || at[loop] < 0)
      continue;
    if (is_known[loop])
      return false;
    is_known[loop] = true;
    f->loop[o][f->rank[o]++] = at[loop];
  }
  return true;
}

/* True if the body needs the numbers of the loops. */
static bool has_index(MlirOperation op) {
  MlirBlock body = ir_body(op);
  for (MlirOperation o = mlirBlockGetFirstOperation(body); !mlirOperationIsNull(o); o = mlirOperationGetNextInBlock(o))
    if (ir_is(o, "linalg.index"))
      return true;
  return false;
}

bool form_read(MlirOperation op, struct form *out) {
  struct structured s;
  struct form f = {0};
  int at[STRUCTURED_LOOPS_MAX];

  if (mlirOperationIsNull(op) || !structured_read(op, &s) || s.n_inits != 1 || !s.n_inputs ||
      (!structured_is_elementwise(&s) && s.kind != SK_REDUCTION) || mlirOperationGetNumResults(op) != 1 ||
      !mlirTypeIsARankedTensor(mlirValueGetType(ir_result(op))) || !structured_has_simple_maps(&s) || has_index(op))
    return false;
  for (int l = 0; l < s.n_loops; l++) {
    if (s.extents[l] < 1 || (s.extents[l] == 1 && s.reduction[l]))
      return false;
    at[l] = s.extents[l] == 1 ? -1 : f.n_loops;
    if (at[l] < 0)
      continue;
    f.reduction[f.n_loops] = s.reduction[l];
    f.extents[f.n_loops++] = s.extents[l];
  }
  f.n_inputs = s.n_inputs;
  for (int o = 0; o <= s.n_inputs; o++)
    if (!read_operand(op, &s, o, at, &f))
      return false;
  f.reads_init = ir_is_used(mlirBlockGetArgument(ir_body(op), s.n_inputs));
  *out = f;
  return true;
}

/* ---- comparing ------------------------------------------------------------------------------------------------------ */

/* The place of v among the arguments and results of a body; -1 if it is defined outside. */
static int place_in(MlirBlock body, MlirValue v) {
  const int n = (int)mlirBlockGetNumArguments(body);
  if (mlirValueIsABlockArgument(v))
    return mlirBlockEqual(mlirBlockArgumentGetOwner(v), body) ? (int)mlirBlockArgumentGetArgNumber(v) : -1;
  MlirOperation def = ir_defining_op(v);
  int k = n;
  for (MlirOperation o = mlirBlockGetFirstOperation(body); !mlirOperationIsNull(o);
       o = mlirOperationGetNextInBlock(o), k++)
    if (mlirOperationEqual(o, def))
      return k;
  return -1;
}

static bool is_same_operand(MlirBlock bx, MlirValue x, MlirBlock by, MlirValue y) {
  const int px = place_in(bx, x), py = place_in(by, y);
  if (px != py)
    return false;
  if (px >= 0 || mlirValueEqual(x, y))
    return true;
  MlirAttribute cx = ir_constant(x), cy = ir_constant(y);
  return !mlirAttributeIsNull(cx) && !mlirAttributeIsNull(cy) && mlirAttributeEqual(cx, cy);
}

/* True if the attributes are the same, apart from those that form_read reads. */
static bool has_same_attributes(MlirOperation x, MlirOperation y) {
  static const char *const own[] = {"indexing_maps", "iterator_types", "operandSegmentSizes"};
  if (mlirOperationGetNumAttributes(x) != mlirOperationGetNumAttributes(y))
    return false;
  for (intptr_t k = 0; k < mlirOperationGetNumAttributes(x); k++) {
    MlirNamedAttribute a = mlirOperationGetAttribute(x, k);
    MlirStringRef name = mlirIdentifierStr(a.name);
    bool is_own = false;
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
      is_own |= mlirStringRefEqual(name, ir_str(own[i]));
    if (!is_own && !mlirAttributeEqual(a.attribute, mlirOperationGetAttributeByName(y, name)))
      return false;
  }
  return true;
}

static bool is_same_operation(MlirBlock bx, MlirOperation x, MlirBlock by, MlirOperation y) {
  const intptr_t n = mlirOperationGetNumOperands(x), m = mlirOperationGetNumResults(x);
  if (!mlirIdentifierEqual(mlirOperationGetName(x), mlirOperationGetName(y)) || mlirOperationGetNumRegions(x) ||
      n != mlirOperationGetNumOperands(y) || m > 1 || m != mlirOperationGetNumResults(y) || !has_same_attributes(x, y))
    return false;
  for (intptr_t k = 0; k < n; k++)
    if (!is_same_operand(bx, mlirOperationGetOperand(x, k), by, mlirOperationGetOperand(y, k)))
      return false;
  return !m || mlirTypeEqual(mlirValueGetType(ir_result(x)), mlirValueGetType(ir_result(y)));
}

static bool has_same_body(MlirOperation x, MlirOperation y) {
  MlirBlock bx = ir_body(x), by = ir_body(y);
  const intptr_t n = mlirBlockGetNumArguments(bx);

  if (n != mlirBlockGetNumArguments(by))
    return false;
  for (intptr_t k = 0; k < n; k++)
    if (!mlirTypeEqual(mlirValueGetType(mlirBlockGetArgument(bx, k)), mlirValueGetType(mlirBlockGetArgument(by, k))))
      return false;
  MlirOperation ox = mlirBlockGetFirstOperation(bx), oy = mlirBlockGetFirstOperation(by);
  for (; !mlirOperationIsNull(ox) && !mlirOperationIsNull(oy);
       ox = mlirOperationGetNextInBlock(ox), oy = mlirOperationGetNextInBlock(oy))
    if (!is_same_operation(bx, ox, by, oy))
      return false;
  return mlirOperationIsNull(ox) && mlirOperationIsNull(oy);
}

bool form_is_same(MlirOperation x, const struct form *fx, MlirOperation y, const struct form *fy) {
  if (fx->n_loops != fy->n_loops || fx->n_inputs != fy->n_inputs || fx->reads_init != fy->reads_init)
    return false;
  for (int l = 0; l < fx->n_loops; l++)
    if (fx->extents[l] != fy->extents[l] || fx->reduction[l] != fy->reduction[l])
      return false;
  for (int o = 0; o <= fx->n_inputs; o++)
    if (fx->rank[o] != fy->rank[o] || memcmp(fx->loop[o], fy->loop[o], (size_t)fx->rank[o] * sizeof *fx->loop[o]) != 0)
      return false;
  return mlirIdentifierEqual(mlirOperationGetName(x), mlirOperationGetName(y)) && has_same_attributes(x, y) &&
         has_same_body(x, y);
}
