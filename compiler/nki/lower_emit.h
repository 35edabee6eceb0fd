/* lower_emit: what the files that make instructions have in common. */
#ifndef NKI_LOWER_EMIT_H
#define NKI_LOWER_EMIT_H

#include <assert.h>
#include <string.h>

#include "nki/lower_internal.h"

#define VIEW(name) (nki_value(c, name)->view)

/* ---- operands ---------------------------------------------------------------------------------------------------- */

static inline struct nisa_access scalar(MlirValue v) {
  return (struct nisa_access){.base = v};
}

static inline MlirType f32(struct nki_lower *l) {
  return mlirF32TypeGet(l->b.ctx);
}

/* A number or a column; `bits`: an integer of dst's type. */
static inline struct nisa_access number_or_column(struct nki_lower *l, const struct nki_value *v, double missing,
                                                  enum dtype bits) {
  if (v->kind == NKI_VIEW)
    return nki_access_on_chip(l, v->view);
  if (bits != DT_NONE)
    return scalar(ir_int(&l->b, ir_element_type(&l->b, bits), v->integer));
  return scalar(ir_float(&l->b, f32(l), v->kind == NKI_ABSENT ? missing : v->number));
}

/* Whether integers of the call have no sign; a predicate is only compared with 0. */
static inline bool is_unsigned(const struct nki_call *c) {
  const struct nki_value *predicate = c->kind == NKI_TENSOR_COPY_PREDICATED ? nki_value(c, "predicate") : NULL;
  for (int k = 0; k < nki_n_params(nki_def(c)); k++)
    if (&c->value[k] != predicate && c->value[k].kind == NKI_VIEW &&
        dtype_kind(c->value[k].view->tensor->dtype) == DK_UNSIGNED)
      return true;
  return false;
}

/* ---- instructions ------------------------------------------------------------------------------------------------ */

enum { ATTRS_MAX = 7 };
struct attrs {
  int n;
  MlirNamedAttribute v[ATTRS_MAX];
};
static inline void add_attr(struct nki_lower *l, struct attrs *x, const char *name, MlirAttribute value) {
  assert(x->n < ATTRS_MAX);
  x->v[x->n++] = ir_named(&l->b, name, value);
}
static inline void add_text(struct nki_lower *l, struct attrs *x, const char *name, const char *text) {
  add_attr(l, x, name, mlirStringAttrGet(l->b.ctx, ir_str(text)));
}
static inline void add_bool(struct nki_lower *l, struct attrs *x, const char *name, bool v) {
  add_attr(l, x, name, mlirBoolAttrGet(l->b.ctx, v));
}

static inline void emit(struct nki_lower *l, enum nisa_kind kind, enum nisa_engine engine, const struct nki_call *c,
                        const struct nisa_access *operands, struct attrs *attrs) {
  struct nisa_instr in = {.def = nisa_op_def(kind), .engine = engine};
  struct attrs none = {0};
  attrs = attrs ? attrs : &none;
  memcpy(in.operand, operands, (size_t)in.def->n_operands * sizeof *operands);
  if (c->in_order)
    add_attr(l, attrs, "in_order", mlirUnitAttrGet(l->b.ctx));
  if (is_unsigned(c))
    add_attr(l, attrs, "unsigned", mlirUnitAttrGet(l->b.ctx));
  mlirBlockAppendOwnedOperation(l->b.block, nisa_create(&in, l->b.loc, attrs->n, attrs->v));
}

#endif
