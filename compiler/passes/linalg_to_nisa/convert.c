/* convert: compiles conversions in a body.
 *
 *     truncf, sitofp, …        tensor_copy, which converts
 *     fptosi, fptoui           activation trunc: the conversion of an engine would round; tensor_copy of a whole number
 *     extf, uitofp of a bool   no instruction: the one that reads the value converts it
 *     trunci to a bool         bitwise_and with 1, then tensor_copy
 *     bitcast                  bitwise_or with 0, which reads the bits as one type and writes them as another
 */
#include <assert.h>

#include "mlir-c/BuiltinAttributes.h"
#include "mlir-c/BuiltinTypes.h"

#include "passes/lib/edit.h"
#include "passes/linalg_to_nisa/linalg_to_nisa.h"

static bool is_bool(MlirType t) {
  return mlirTypeIsAInteger(t) && mlirIntegerTypeGetWidth(t) == 1;
}

bool ln_is_conversion(MlirOperation op) {
  static const char *const names[] = {"arith.extf",   "arith.truncf",     "arith.sitofp",      "arith.uitofp",
                                      "arith.fptosi", "arith.fptoui",     "arith.extsi",       "arith.extui",
                                      "arith.trunci", "arith.index_cast", "arith.index_castui"};
  for (size_t k = 0; k < sizeof names / sizeof *names; k++)
    if (ir_is(op, names[k]))
      return true;
  return false;
}

/* True if the instruction that reads the value converts it, so that no conversion is needed. */
static bool is_free(MlirOperation op, MlirType from, MlirType to) {
  if (mlirTypeEqual(from, to) || ir_is(op, "arith.extf"))
    return true;
  return ir_is(op, "arith.uitofp") && is_bool(from);
}

static enum status truncate_to_bool(struct ln_body *b, const struct ln_view *dst, const struct ln_view *src) {
  struct ln_view *bit = ln_temp_like(b, src->element, ln_view_atoms(src));
  enum status st = ln_arith(b->w, b->par, "bitwise_and", bit, ln_data(src), ln_number_arg(b, src->element, 1), false);
  if (!st)
    st = ln_move(b->w, dst, bit, false);
  ln_release(b->w->ln, bit);
  return st;
}

/* True if v is the result of a function that gives whole numbers, which every conversion to an integer keeps. */
static bool is_whole(MlirValue v) {
  static const char *const names[] = {"math.floor", "math.ceil", "math.round", "math.roundeven", "math.trunc"};
  MlirOperation def = ir_defining_op(v);
  for (size_t k = 0; !mlirOperationIsNull(def) && k < sizeof names / sizeof *names; k++)
    if (ir_is(def, names[k]))
      return true;
  return false;
}

enum status ln_convert(struct ln_body *b, MlirOperation op) {
  MlirValue r = mlirOperationGetResult(op, 0);
  MlirType from = ln_storage(mlirValueGetType(mlirOperationGetOperand(op, 0))), to = ln_storage(mlirValueGetType(r));
  struct ln_value *x = ln_value_of(b, mlirOperationGetOperand(op, 0));
  const bool is_sink = !mlirValueIsNull(b->sink) && mlirValueEqual(r, b->sink);
  struct ln_view *dst, *src;
  enum status st;

  assert(x->kind != LN_ONE);        /* compile_op hoists operations on scalars */
  if (x->kind == LN_POSITION) {     /* materialized as data of the new type */
    struct ln_form f = x->position; /* ln_target may move x */
    st = ln_target(b, r, ln_form_atoms(&f), &dst);
    return st ? st : ln_iota(b->w, b->par, dst, &f);
  }
  if (!is_sink && !mlirTypeIsNull(from) && !mlirTypeIsNull(to) && is_free(op, from, to)) {
    ln_define(b, (struct ln_value){.v = r, .kind = LN_MANY, .at = x->at});
    return ST_OK;
  }
  st = ln_materialize(b, x, &src);
  if (!st)
    st = ln_target(b, r, ln_view_atoms(src), &dst);
  if (st)
    return st;
  if (is_bool(src->element) && (ir_is(op, "arith.sitofp") || ir_is(op, "arith.extsi")))
    return ln_arith(b->w, b->par, "multiply", dst, ln_data(src), ln_number_arg(b, dst->element, -1), false);
  if (is_bool(dst->element) && mlirTypeIsAInteger(src->element) && !is_bool(src->element))
    return truncate_to_bool(b, dst, src);
  const bool is_unsigned = (ir_is(op, "arith.uitofp") || ir_is(op, "arith.fptoui") || ir_is(op, "arith.extui") ||
                            ir_is(op, "arith.index_castui")) &&
                           !is_bool(src->element);
  const bool cuts = ir_is(op, "arith.fptosi") || ir_is(op, "arith.fptoui");
  if (cuts && !is_whole(mlirOperationGetOperand(op, 0)))
    return ln_activate(b->w, b->par, "trunc", dst, src, is_unsigned);
  return ln_move(b->w, dst, src, is_unsigned);
}

enum status ln_bitcast(struct ln_body *b, MlirOperation op) {
  struct ln_arg x;
  struct ln_view *dst;
  enum status st = ln_arg_of(b, mlirOperationGetOperand(op, 0), &x);
  if (!st)
    st = ln_target(b, mlirOperationGetResult(op, 0), ln_arg_atoms(&x), &dst);
  if (st)
    return st;
  const unsigned bits = (unsigned)(8 * nisa_element_bytes(dst->element));
  MlirType t = mlirIntegerTypeGet(b->w->ln->b.ctx, bits);
  if (8 * nisa_element_bytes(x.view->element) != bits) /* the value is stored in a wider type than its own */
    return ln_fail(b->w->ln, "the bits of this value are not in memory");
  return ln_arith(b->w, b->par, "bitwise_or", dst, x, ln_number_arg(b, t, 0), false);
}
