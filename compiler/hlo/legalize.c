/* legalize: replaces types that a NeuronCore does not have.
 *
 *     s64 add(x, y)  ==>  s32 add(x, y)        f64, u64 likewise, parameters and results included
 *
 * The engines compute with 8 to 32 bits.  Of the types that HLO text and protos can have, only the 64-bit ones are
 * missing.  They are narrowed, as NKIPy narrows arrays, with one warning per type.  Constants that do not fit become the
 * nearest value; they are mostly the limits that reductions start from.
 *
 * An instruction that works on the bits of a 64-bit value has another meaning in 32 bits (hashes, bit casts, custom
 * calls).  A module with one stays as it is, with a warning, and is refused when instructions are selected.  The
 * exception is a logical shift to the right of a value that is known to have 32 bits at most: JAX splits the counters of
 * its random numbers into halves with one.
 *
 * Runs first, so that no other pass meets 64-bit types.  Linear.
 */
#include <math.h>

#include "hlo/literal.h"
#include "hlo/passes.h"
#include "hlo/rewrite.h"

static bool is_wide(const struct hlo_shape *s) {
  if (s->dtype != DT_TUPLE)
    return dtype_narrow(s->dtype) != s->dtype;
  for (int k = 0; k < s->n_elems; k++)
    if (is_wide(&s->elems[k]))
      return true;
  return false;
}

static bool touches_wide(const struct hlo_instr *i) {
  bool wide = is_wide(&i->shape);
  for (int k = 0; k < i->n_operands; k++)
    wide |= is_wide(&i->operands[k]->shape);
  return wide;
}

enum { BOUND_DEPTH = 12 }; /* of the expressions that are examined */

static uint64_t bound_of_constant(const struct hlo_literal *l) {
  uint64_t most = 0;
  const size_t n = (size_t)hlo_shape_elements(&l->shape);
  for (size_t k = 0; k < n; k++) {
    const uint64_t v = (uint64_t)hlo_literal_int(l, k);
    most = v > most ? v : most;
  }
  return most;
}

/* An upper bound of the elements of the unsigned array i; UINT64_MAX if nothing is known. */
static uint64_t bound(const struct hlo_instr *i, int depth) {
  uint64_t x, y;
  if (dtype_kind(i->shape.dtype) != DK_UNSIGNED || depth > BOUND_DEPTH)
    return UINT64_MAX;
  switch (i->op) {
  case HLO_CONSTANT:
    return i->attrs->literal ? bound_of_constant(i->attrs->literal) : UINT64_MAX;
  case HLO_IOTA:
    return (uint64_t)i->shape.dims[i->attrs->dimensions.v[0]];
  case HLO_BROADCAST:
  case HLO_RESHAPE:
  case HLO_TRANSPOSE:
  case HLO_SLICE:
  case HLO_REVERSE:
  case HLO_COPY:
    return bound(i->operands[0], depth + 1);
  case HLO_ADD:
    x = bound(i->operands[0], depth + 1);
    return __builtin_add_overflow(x, bound(i->operands[1], depth + 1), &y) ? UINT64_MAX : y;
  case HLO_MULTIPLY:
    x = bound(i->operands[0], depth + 1);
    return __builtin_mul_overflow(x, bound(i->operands[1], depth + 1), &y) ? UINT64_MAX : y;
  case HLO_SHIFT_RIGHT_LOGICAL:
    return bound(i->operands[0], depth + 1);
  default:
    return UINT64_MAX;
  }
}

/* True if i has another meaning on fewer bits. */
static bool depends_on_width(const struct hlo_instr *i) {
  switch (i->op) {
  case HLO_SHIFT_RIGHT_LOGICAL: /* a shift by the width or more gives 0, in 32 bits as in 64 */
    return touches_wide(i) && (bound(i->operands[0], 0) > UINT32_MAX || bound(i->operands[1], 0) > UINT32_MAX);
  case HLO_BITCAST_CONVERT:
  case HLO_SHIFT_LEFT:
  case HLO_SHIFT_RIGHT_ARITHMETIC:
  case HLO_POPCNT:
  case HLO_CLZ:
    return touches_wide(i);
  case HLO_CUSTOM_CALL:
    return touches_wide(i) && !hlo_is_topk(i);
  default:
    return false;
  }
}

static struct hlo_shape narrow_shape(struct arena *a, const struct hlo_shape *s) {
  struct hlo_shape out = *s;
  if (s->dtype != DT_TUPLE) {
    out.dtype = dtype_narrow(s->dtype);
    return out;
  }
  struct hlo_shape *elems = arena_new_array(a, struct hlo_shape, (size_t)s->n_elems);
  for (int k = 0; k < s->n_elems; k++)
    elems[k] = narrow_shape(a, &s->elems[k]);
  out.elems = elems;
  return out;
}

/* Writes element k of l as the nearest value of t; false if that differs from the element. */
static bool narrow_element(const struct hlo_literal *l, size_t k, enum dtype t, void *out) {
  if (dtype_is_float(t)) {
    const double v = hlo_literal_double(l, k);
    hlo_literal_store(t, v, out);
    return isinf(v) || fabs(v) <= 0x1.fffffep127 || isnan(v);
  }
  const int64_t v = hlo_literal_int(l, k);
  const int64_t low = t == DT_I32 ? INT32_MIN : 0, high = t == DT_I32 ? INT32_MAX : UINT32_MAX;
  const bool is_above = t == DT_I32 ? v > high : (uint64_t)v > (uint64_t)high, is_below = t == DT_I32 && v < low;
  hlo_literal_store(t, (double)(is_above ? high : is_below ? low : v), out);
  return !is_above && !is_below;
}

static const struct hlo_literal *narrow_literal(struct arena *a, const struct hlo_literal *l, bool *fits) {
  const enum dtype t = dtype_narrow(l->shape.dtype);
  const size_t n = (size_t)hlo_shape_elements(&l->shape), size = dtype_size(t);
  char *data = arena_alloc(a, n * size + 1);
  struct hlo_literal *out = arena_new(a, struct hlo_literal);

  for (size_t k = 0; k < n; k++)
    *fits &= narrow_element(l, k, t, data + k * size);
  *out = (struct hlo_literal){narrow_shape(a, &l->shape), data, n * size};
  return out;
}

/* ---- the pass ---------------------------------------------------------------------------------------- */

struct wide {
  struct hlo_instr *instr;
  struct wide *next;
};

struct legalizer {
  struct hlo_module *m;
  struct diags *ds;
  bool is_said[DT_COUNT];
};

static const struct src_loc *place_of(const struct hlo_instr *i) {
  return i->locs.n ? i->locs.v[0] : NULL;
}

static void warn(struct legalizer *g, const struct hlo_instr *i, const struct hlo_shape *s) {
  for (int k = 0; s->dtype == DT_TUPLE && k < s->n_elems; k++)
    warn(g, i, &s->elems[k]);
  if (s->dtype == DT_TUPLE || !is_wide(s) || g->is_said[s->dtype] || !g->ds)
    return;
  g->is_said[s->dtype] = true;
  diag_add(g->ds, DS_WARNING, DG_DTYPE_NARROWED, place_of(i), "%s is computed in %s, from %s on",
           dtype_hlo_name(s->dtype), dtype_hlo_name(dtype_narrow(s->dtype)), i->name)
      ->hint = "the hardware has no 64-bit types; a module with 32-bit types gets no warning";
}

static void narrow(struct legalizer *g, struct hlo_instr *i) {
  bool fits = true;
  warn(g, i, &i->shape);
  if (i->attrs->literal)
    hlo_set_attrs(i, &(struct hlo_attrs){.literal = narrow_literal(g->m->arena, i->attrs->literal, &fits)});
  i->shape = narrow_shape(g->m->arena, &i->shape);
  if (!fits && g->ds)
    diag_add(g->ds, DS_WARNING, DG_DTYPE_NARROWED, place_of(i), "%s has values that do not fit in %s", i->name,
             dtype_hlo_name(i->shape.dtype))
        ->hint = "each is replaced by the nearest value that fits";
}

/* Collects all wide instructions in one walk.  False, with a warning, if the module has to keep its 64-bit types. */
static bool find_wide(struct arena *a, const struct hlo_module *m, struct diags *ds, struct wide **out) {
  for (struct hlo_computation *c = m->computations; c; c = c->next)
    hlo_for_each(i, c) {
      if (depends_on_width(i)) {
        if (ds)
          diag_add(ds, DS_WARNING, DG_DTYPE_NARROWED, place_of(i),
                   "the module keeps its 64-bit types, because the result of %s depends on their width", i->name)
              ->hint = "the hardware has no 64-bit types";
        return false;
      }
      if (!is_wide(&i->shape))
        continue;
      *out = arena_new(a, struct wide);
      (*out)->instr = i;
      out = &(*out)->next;
    }
  return true;
}

void hlo_convert_legalization(struct hlo_module *m, struct hlo_pass_result *r) {
  struct legalizer g = {.m = m, .ds = r->ds};
  struct wide *wide = NULL;
  struct arena scratch;
  arena_init(&scratch);
  if (find_wide(&scratch, m, r->ds, &wide))
    for (const struct wide *w = wide; w; w = w->next) {
      hlo_step(w->instr, "narrow-to-32-bits");
      narrow(&g, w->instr);
      r->changed = true;
    }
  arena_clear(&scratch);
}
