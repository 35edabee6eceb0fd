/* read_literal: shapes and constants in HLO text. */
#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "hlo/literal.h"
#include "hlo/read_text.h"

/* ---- shapes -------------------------------------------------------------------------------------------------------- */

/* Skips {1,0:T(8,128)}, the layout in memory, which has no effect on values. */
static bool skip_layout(struct hlo_cursor *c) {
  if (c->at >= c->end || *c->at != '{')
    return true;
  int depth = 0;
  for (; c->at < c->end; c->at++) {
    depth += (*c->at == '{') - (*c->at == '}');
    if (!depth) {
      c->at++;
      return true;
    }
  }
  return hlo_cur_refuse_here(c, "'}'");
}

static bool read_dims(struct hlo_cursor *c, struct hlo_shape *out, enum dtype t) {
  int64_t dims[HLO_RANK_MAX];
  int n = 0;
  if (!hlo_cur_need(c, '['))
    return false;
  if (!hlo_cur_peek(c, ']'))
    do {
      if (n == HLO_RANK_MAX)
        return hlo_cur_refuse_here(c, "at most 16 dimensions");
      if (hlo_cur_take(c, '<'))
        return hlo_cur_fail(c, (struct hlo_span){c->at, 1}, DG_HLO_INVALID, "dynamic dimensions are not supported");
      if (!hlo_cur_int(c, &dims[n++]))
        return false;
      if (dims[n - 1] < 0)
        return hlo_cur_refuse_here(c, "a dimension that is not negative");
    } while (hlo_cur_take(c, ','));
  if (!hlo_cur_need(c, ']'))
    return false;
  *out = hlo_shape_array(c->a, t, n, dims);
  if (hlo_shape_elements(out) < 0)
    return hlo_cur_refuse_here(c, "a shape whose size fits 64 bits");
  return skip_layout(c);
}

static bool read_shape_at(struct hlo_cursor *c, struct hlo_shape *out, int depth);

/* The elements of a tuple's shape, after its opening parenthesis. */
static bool read_elements_of_tuple(struct hlo_cursor *c, struct hlo_shape *out, int depth) {
  struct {
    struct hlo_shape *v;
    int n, cap;
  } elems = {0};
  if (depth == HLO_READ_NEST_MAX)
    return hlo_cur_refuse_here(c, "tuples nested less deeply");
  if (!hlo_cur_peek(c, ')'))
    do {
      struct hlo_shape elem;
      if (!read_shape_at(c, &elem, depth + 1))
        return false;
      array_push(c->tmp, &elems, elem);
    } while (hlo_cur_take(c, ','));
  *out = (struct hlo_shape){
      .dtype = DT_TUPLE, .n_elems = elems.n, .elems = arena_dup(c->a, elems.v, (size_t)elems.n * sizeof *elems.v)};
  return hlo_cur_need(c, ')');
}

static bool read_shape_at(struct hlo_cursor *c, struct hlo_shape *out, int depth) {
  struct hlo_span word;
  char name[24] = "";
  if (hlo_cur_take(c, '('))
    return read_elements_of_tuple(c, out, depth);
  if (!hlo_cur_word(c, &word, "a shape"))
    return false;
  if (word.len < sizeof name) /* no data type has a longer name */
    memcpy(name, word.at, word.len);
  const enum dtype t = dtype_from_hlo_name(name);
  if (t == DT_NONE)
    return hlo_cur_fail(c, word, DG_UNSUPPORTED_DTYPE, "the data type %.*s is not supported", (int)word.len, word.at);
  return read_dims(c, out, t);
}

bool hlo_read_shape(struct hlo_cursor *c, struct hlo_shape *out) {
  return read_shape_at(c, out, 0);
}

/* ---- constants ----------------------------------------------------------------------------------------------------- */

/* Takes "nan", or "nan(0x…)" with the bits of its mantissa. */
static bool read_nan(struct hlo_cursor *c, enum dtype t, bool is_negative, char *out) {
  hlo_literal_store(t, is_negative ? -NAN : NAN, out);
  if (c->at >= c->end || *c->at != '(')
    return true;
  char *end;
  const uint64_t payload = strtoull(c->at + 1, &end, 16);
  if (end > c->end)
    return hlo_cur_refuse_here(c, "the bits of a NaN");
  c->at = end;
  const uint64_t mask = ((uint64_t)1 << hlo_literal_nan_bits(t)) - 1;
  uint64_t bits = 0;
  memcpy(&bits, out, dtype_size(t));
  bits = (bits & ~mask) | (payload & mask);
  memcpy(out, &bits, dtype_size(t));
  return hlo_cur_need(c, ')');
}

static bool read_float(struct hlo_cursor *c, enum dtype t, char *out) {
  const char *body = c->at + (*c->at == '-');
  if (c->end - body >= 3 && !memcmp(body, "nan", 3)) {
    const bool is_negative = *c->at == '-';
    c->at = body + 3;
    return read_nan(c, t, is_negative, out);
  }
  char *end;
  const double v = strtod(c->at, &end);
  if (end == c->at || end > c->end)
    return hlo_cur_refuse_here(c, "a number");
  hlo_literal_store(t, v, out);
  c->at = end;
  return true;
}

/* (real, imaginary) */
static bool read_complex(struct hlo_cursor *c, char *out) {
  for (int k = 0; k < 2; k++) {
    if (!hlo_cur_need(c, k ? ',' : '('))
      return false;
    if (!hlo_cur_number_starts(c))
      return hlo_cur_refuse_here(c, "a number");
    if (!read_float(c, DT_F32, out + k * (int)dtype_size(DT_F32)))
      return false;
  }
  return hlo_cur_need(c, ')');
}

static bool read_element(struct hlo_cursor *c, enum dtype t, char *out) {
  if (dtype_is_complex(t))
    return read_complex(c, out);
  if (hlo_cur_take_word(c, "true") || hlo_cur_take_word(c, "false")) {
    if (t != DT_BOOL)
      return hlo_cur_refuse_here(c, "a number");
    *out = c->at[-2] == 'u';
    return true;
  }
  if (!hlo_cur_number_starts(c))
    return hlo_cur_refuse_here(c, "an element");
  if (dtype_is_float(t))
    return read_float(c, t, out);
  char *end;
  errno = 0;
  const int64_t v = *c->at == '-' ? strtoll(c->at, &end, 10) : (int64_t)strtoull(c->at, &end, 10);
  if (end == c->at || end > c->end || errno)
    return hlo_cur_refuse_here(c, "an integer");
  c->at = end;
  if (t == DT_BOOL)
    *out = v != 0;
  else
    memcpy(out, &v, dtype_size(t)); /* little-endian: the low bytes */
  return true;
}

struct literal_reader {
  struct hlo_cursor *c;
  const struct hlo_shape *shape;
  char *data;
  int64_t at, n; /* elements read so far, and in all */
};

static bool read_elements(struct literal_reader *r, int dim) {
  struct hlo_cursor *c = r->c;
  if (dim == r->shape->rank) {
    assert(r->at < r->n);
    return read_element(c, r->shape->dtype, r->data + (size_t)r->at++ * dtype_size(r->shape->dtype));
  }
  if (!hlo_cur_need(c, '{'))
    return false;
  if (hlo_cur_take_word(c, "..."))
    return hlo_cur_refuse_here(c, "all elements: the constant was shortened when it was printed");
  for (int64_t k = 0; k < r->shape->dims[dim]; k++) {
    if (k && !hlo_cur_need(c, ','))
      return false;
    if (!read_elements(r, dim + 1))
      return false;
  }
  return hlo_cur_need(c, '}');
}

/* Skips {} or { { }, … }, the braces of an array without elements. */
static bool skip_empty(struct hlo_cursor *c) {
  int depth = 1;
  while (depth && (hlo_cur_take(c, ',') || hlo_cur_take(c, '{') || hlo_cur_take(c, '}')))
    depth += c->at[-1] == '{' ? 1 : c->at[-1] == '}' ? -1 : 0;
  return !depth || hlo_cur_refuse_here(c, "'}'");
}

bool hlo_read_literal(struct hlo_cursor *c, const struct hlo_shape *shape, const struct hlo_literal **out) {
  if (shape->dtype == DT_TUPLE)
    return hlo_cur_refuse_here(c, "an array constant");
  struct literal_reader r = {.c = c, .shape = shape, .n = hlo_shape_elements(shape)};
  const size_t size = dtype_size(shape->dtype);
  if (r.n > (c->end - c->at)) /* each element takes a character at least */
    return hlo_cur_refuse_here(c, "as many elements as the shape has");
  r.data = arena_array(c->a, (size_t)r.n, size);
  if (!(r.n == 0 && hlo_cur_take(c, '{') ? skip_empty(c) : read_elements(&r, 0)))
    return false;
  assert(r.at == r.n);
  struct hlo_literal *l = arena_new(c->a, struct hlo_literal);
  *l = (struct hlo_literal){*shape, r.data, (size_t)r.n * size};
  *out = l;
  return true;
}
