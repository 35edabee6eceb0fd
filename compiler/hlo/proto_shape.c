/* proto_shape: conversion of shapes and literals to messages and back.
 *
 * Every shape states its (row-major) layout, also the shapes of the program: the text form cannot omit it, and text and
 * proto must describe the same module.  A literal's message points to the module's data, so that constants are not
 * copied.
 */
#include <assert.h>
#include <stdarg.h>

#include "hlo/proto.h"

bool hlo_proto_refuse(struct hlo_proto_reader *r, enum diag_code code, const char *fmt, ...) {
  va_list ap;
  va_start(ap, fmt);
  const char *text = arena_vprintf(r->a, fmt, ap);
  va_end(ap);
  if (r->where)
    diag_add(r->ds, DS_ERROR, code, NULL, "%%%s: %s", r->where, text);
  else
    diag_add(r->ds, DS_ERROR, code, NULL, "%s", text);
  return false;
}

/* ---- shapes ------------------------------------------------------------------------------------------------------ */

static Xla__LayoutProto *put_layout(struct arena *a, int rank) {
  Xla__LayoutProto *l = arena_new(a, Xla__LayoutProto);
  xla__layout_proto__init(l);
  l->n_minor_to_major = (size_t)rank;
  l->minor_to_major = arena_new_array(a, int64_t, (size_t)rank);
  for (int k = 0; k < rank; k++)
    l->minor_to_major[k] = rank - 1 - k;
  l->tail_padding_alignment_in_elements = 1;
  return l;
}

Xla__ShapeProto *hlo_proto_put_shape(struct arena *a, const struct hlo_shape *s) {
  Xla__ShapeProto *p = arena_new(a, Xla__ShapeProto);
  assert(s->dtype != DT_NONE);
  xla__shape_proto__init(p);
  p->element_type = dtype_xla_number(s->dtype);
  if (s->dtype == DT_TUPLE) {
    p->n_tuple_shapes = (size_t)s->n_elems;
    p->tuple_shapes = arena_new_array(a, Xla__ShapeProto *, (size_t)s->n_elems);
    for (int k = 0; k < s->n_elems; k++)
      p->tuple_shapes[k] = hlo_proto_put_shape(a, &s->elems[k]);
    return p;
  }
  p->n_dimensions = p->n_is_dynamic_dimension = (size_t)s->rank;
  p->dimensions = hlo_proto_borrow(s->dims);
  p->is_dynamic_dimension = arena_new_array(a, protobuf_c_boolean, (size_t)s->rank);
  p->layout = put_layout(a, s->rank);
  return p;
}

/* The recursion is bounded, because hlo_read_proto refuses bytes that are nested deeply. */
bool hlo_proto_get_shape(struct hlo_proto_reader *r, const Xla__ShapeProto *p, struct hlo_shape *out) {
  if (!p)
    return hlo_proto_refuse(r, DG_HLO_INVALID, "there is no shape");
  const enum dtype t = dtype_from_xla_number(p->element_type);
  if (t == DT_NONE)
    return hlo_proto_refuse(r, DG_UNSUPPORTED_DTYPE, "the element type number %d is not supported", p->element_type);
  if (t == DT_TUPLE) {
    struct hlo_shape *elems = arena_new_array(r->a, struct hlo_shape, p->n_tuple_shapes);
    for (size_t k = 0; k < p->n_tuple_shapes; k++)
      if (!hlo_proto_get_shape(r, p->tuple_shapes[k], &elems[k]))
        return false;
    *out = (struct hlo_shape){.dtype = DT_TUPLE, .n_elems = (int)p->n_tuple_shapes, .elems = elems};
    return true;
  }
  if (p->n_dimensions > HLO_RANK_MAX)
    return hlo_proto_refuse(r, DG_HLO_INVALID, "%zu dimensions; at most %d are possible", p->n_dimensions,
                            HLO_RANK_MAX);
  for (size_t k = 0; k < p->n_dimensions; k++)
    if (p->dimensions[k] < 0 || (k < p->n_is_dynamic_dimension && p->is_dynamic_dimension[k]))
      return hlo_proto_refuse(r, DG_HLO_INVALID, "a dimension is negative or dynamic");
  *out = hlo_shape_array(r->a, t, (int)p->n_dimensions, p->dimensions);
  if (hlo_shape_elements(out) < 0)
    return hlo_proto_refuse(r, DG_HLO_INVALID, "the shape has too many elements");
  return true;
}

/* ---- literals ---------------------------------------------------------------------------------------------------- */

Xla__LiteralProto *hlo_proto_put_literal(struct arena *a, const struct hlo_literal *l) {
  Xla__LiteralProto *p = arena_new(a, Xla__LiteralProto);
  void *data = hlo_proto_borrow(l->data);

  assert(dtype_size(l->shape.dtype) && l->size % dtype_size(l->shape.dtype) == 0);
  const size_t n = l->size / dtype_size(l->shape.dtype);
  xla__literal_proto__init(p);
  p->shape = hlo_proto_put_shape(a, &l->shape);
  switch (l->shape.dtype) {
#define LITERAL_REPEATED(dt, field) \
  case dt: \
    p->n_##field = n; \
    p->field = data; \
    break;
#define LITERAL_BYTES(dt, field) \
  case dt: \
    p->field = (ProtobufCBinaryData){l->size, data}; \
    break;
#include "hlo/literal_fields.def"
#undef LITERAL_REPEATED
#undef LITERAL_BYTES
  case DT_BOOL:
    p->n_preds = n;
    p->preds = arena_new_array(a, protobuf_c_boolean, n);
    for (size_t k = 0; k < n; k++)
      p->preds[k] = ((const uint8_t *)l->data)[k] != 0;
    break;
  case DT_C64:
    p->n_c64s = 2 * n;
    p->c64s = data;
    break;
  case DT_NONE:
  case DT_C128: /* narrowed before there is HLO */
  case DT_TUPLE:
  case DT_COUNT:
    break;
  }
  return p;
}

/* The bytes of p's elements of type t, and how many bytes there are. */
static const void *literal_bytes(struct arena *a, const Xla__LiteralProto *p, enum dtype t, size_t *size) {
  switch (t) {
#define LITERAL_REPEATED(dt, field) \
  case dt: \
    *size = p->n_##field * sizeof *p->field; \
    return p->field;
#define LITERAL_BYTES(dt, field) \
  case dt: \
    *size = p->field.len; \
    return p->field.data;
#include "hlo/literal_fields.def"
#undef LITERAL_REPEATED
#undef LITERAL_BYTES
  case DT_C64:
    *size = p->n_c64s * sizeof *p->c64s;
    return p->c64s;
  case DT_BOOL: {
    uint8_t *v = arena_new_array(a, uint8_t, p->n_preds);
    for (size_t k = 0; k < p->n_preds; k++)
      v[k] = p->preds[k] != 0;
    *size = p->n_preds;
    return v;
  }
  default:
    *size = 0;
    return NULL;
  }
}

bool hlo_proto_get_literal(struct hlo_proto_reader *r, const Xla__LiteralProto *p, const struct hlo_literal **out) {
  struct hlo_literal *l = arena_new(r->a, struct hlo_literal);
  size_t want;
  if (!p)
    return hlo_proto_refuse(r, DG_HLO_INVALID, "there is no literal");
  if (!hlo_proto_get_shape(r, p->shape, &l->shape))
    return false;
  const enum dtype t = l->shape.dtype;
  const void *data = literal_bytes(r->tmp, p, t, &l->size);
  if (t == DT_TUPLE || __builtin_mul_overflow((size_t)hlo_shape_elements(&l->shape), dtype_size(t), &want) ||
      l->size != want)
    return hlo_proto_refuse(r, DG_HLO_INVALID, "the literal does not have the elements of its shape");
  l->data = arena_dup(r->a, data ? data : "", l->size);
  *out = l;
  return true;
}
