/* infer: shape rules of element-wise and structural instructions, and the rule of each opcode.
 *
 * The rules are XLA's (shape_inference.cc as observed through its parser and verifier), except that select wants a
 * predicate of the full shape: the only form that is ever built.
 */
#include "hlo/infer.h"

#include <string.h>

#define REFUSE(...) return fail(err, ST_INPUT, __VA_ARGS__)
#define TEXT(x) hlo_shape_text(a, &(x)->shape)
#define OP(i, k) ((i)->operands[k])

bool hlo_infer_contains(struct hlo_ints v, int64_t x) {
  for (int k = 0; k < v.n; k++)
    if (v.v[k] == x)
      return true;
  return false;
}

bool hlo_infer_is_ascending(struct hlo_ints v) {
  for (int k = 1; k < v.n; k++)
    if (v.v[k] <= v.v[k - 1])
      return false;
  return true;
}

bool hlo_infer_is_distinct_below(struct hlo_ints v, int64_t limit) {
  for (int k = 0; k < v.n; k++)
    if (v.v[k] < 0 || v.v[k] >= limit || hlo_infer_contains((struct hlo_ints){k, v.v}, v.v[k]))
      return false;
  return true;
}

const char *hlo_infer_ints_text(struct arena *a, struct hlo_ints v) {
  struct hlo_shape s = {.dtype = DT_NONE, .rank = v.n < HLO_RANK_MAX ? v.n : HLO_RANK_MAX, .dims = v.v};
  char *text = arena_strdup(a, hlo_shape_text(a, &s)); /* "[0,1]" */
  text[0] = '{';
  text[strlen(text) - 1] = '}';
  return text;
}

/* ---- element-wise ------------------------------------------------------------------------------------ */

static enum status infer_unary(struct arena *a, const struct hlo_instr *i, struct hlo_shape *out, struct error *err) {
  const struct hlo_instr *x = OP(i, 0);
  enum dtype_kind k = dtype_kind(x->shape.dtype);
  const char *wanted = NULL;

  if (k == DK_COMPLEX) { /* hlo_infer_is_complex_op has seen it */
    *out = x->shape;
    out->dtype = i->op == HLO_ABS ? DT_F32 : DT_C64;
    return ST_OK;
  }

  switch (i->op) {
  case HLO_COPY:
    break;
  case HLO_POPCNT:
  case HLO_CLZ:
    if (k != DK_SIGNED && k != DK_UNSIGNED)
      wanted = "integer";
    break;
  case HLO_ABS:
  case HLO_SIGN:
    if (k != DK_FLOAT && k != DK_SIGNED)
      wanted = "signed or floating-point";
    break;
  case HLO_NEGATE:
    if (k == DK_BOOL)
      wanted = "integer or floating-point";
    break;
  case HLO_NOT:
    if (k == DK_FLOAT)
      wanted = "boolean or integer";
    break;
  default:
    if (k != DK_FLOAT)
      wanted = "floating-point";
  }
  if (wanted)
    REFUSE("%s: operand %s must be %s", hlo_op_name(i->op), TEXT(x), wanted);
  *out = x->shape;
  return ST_OK;
}

static enum status infer_binary(struct arena *a, const struct hlo_instr *i, struct hlo_shape *out, struct error *err) {
  const struct hlo_instr *x = OP(i, 0), *y = OP(i, 1);
  enum dtype_kind k = dtype_kind(x->shape.dtype);
  const char *wanted = NULL;

  if (!hlo_shape_equal(&x->shape, &y->shape))
    REFUSE("%s: operands %s and %s must have the same shape and data type", hlo_op_name(i->op), TEXT(x), TEXT(y));
  switch (i->op) {
  case HLO_SUBTRACT:
  case HLO_DIVIDE:
  case HLO_REMAINDER:
  case HLO_POWER:
    if (k == DK_BOOL)
      wanted = "numbers";
    break;
  case HLO_ATAN2:
    if (k != DK_FLOAT)
      wanted = "floating-point";
    break;
  case HLO_SHIFT_LEFT:
  case HLO_SHIFT_RIGHT_ARITHMETIC:
  case HLO_SHIFT_RIGHT_LOGICAL:
    if (k != DK_SIGNED && k != DK_UNSIGNED)
      wanted = "integer";
    break;
  case HLO_AND:
  case HLO_OR:
  case HLO_XOR:
    if (k == DK_FLOAT)
      wanted = "boolean or integer";
    break;
  default:
    break;
  }
  if (wanted)
    REFUSE("%s: operands %s must be %s", hlo_op_name(i->op), TEXT(x), wanted);
  *out = x->shape;
  return ST_OK;
}

static enum status infer_compare(struct arena *a, const struct hlo_instr *i, struct hlo_shape *out, struct error *err) {
  const struct hlo_instr *x = OP(i, 0), *y = OP(i, 1);
  if (!hlo_shape_equal(&x->shape, &y->shape))
    REFUSE("compare: operands %s and %s must have the same shape and data type", TEXT(x), TEXT(y));
  if ((unsigned)i->attrs->direction > HLO_LT)
    REFUSE("compare: unknown direction %d", (int)i->attrs->direction);
  if (i->attrs->is_total_order && !dtype_is_float(x->shape.dtype))
    REFUSE("compare: only floats have a total order of their own, not %s", TEXT(x));
  *out = x->shape;
  out->dtype = DT_BOOL;
  return ST_OK;
}

static enum status infer_select(struct arena *a, const struct hlo_instr *i, struct hlo_shape *out, struct error *err) {
  const struct hlo_instr *p = OP(i, 0), *x = OP(i, 1), *y = OP(i, 2);
  if (p->shape.dtype != DT_BOOL)
    REFUSE("select: predicate %s must be boolean", TEXT(p));
  if (!hlo_shape_equal(&x->shape, &y->shape))
    REFUSE("select: branches %s and %s must have the same shape and data type", TEXT(x), TEXT(y));
  if (!hlo_shape_same_dims(&p->shape, &x->shape))
    REFUSE("select: predicate %s must have the dimensions of the branches %s", TEXT(p), TEXT(x));
  *out = x->shape;
  return ST_OK;
}

/* The bounds have the operand's shape, or are 0-d. */
static enum status infer_clamp(struct arena *a, const struct hlo_instr *i, struct hlo_shape *out, struct error *err) {
  const struct hlo_instr *x = OP(i, 1);
  for (int k = 0; k < 3; k += 2) {
    const struct hlo_shape *s = &OP(i, k)->shape;
    if (s->dtype != x->shape.dtype || (s->rank && !hlo_shape_same_dims(s, &x->shape)))
      REFUSE("clamp: the bound %s does not fit %s", hlo_shape_text(a, s), TEXT(x));
  }
  if (x->shape.dtype == DT_BOOL)
    REFUSE("clamp: operand %s must be numbers", TEXT(x));
  *out = x->shape;
  return ST_OK;
}

static enum status infer_is_finite(struct arena *a, const struct hlo_instr *i, struct hlo_shape *out,
                                   struct error *err) {
  if (!dtype_is_float(OP(i, 0)->shape.dtype))
    REFUSE("is-finite: operand %s must be floating-point", TEXT(OP(i, 0)));
  *out = OP(i, 0)->shape;
  out->dtype = DT_BOOL;
  return ST_OK;
}

/* The parts of a wider element are a dimension of their own, the last: u64[3] is u32[3,2]. */
static enum status infer_bitcast_convert(struct arena *a, const struct hlo_instr *i, struct hlo_shape *out,
                                         struct error *err) {
  const struct hlo_shape *x = &OP(i, 0)->shape;
  const size_t from = dtype_size(x->dtype), to = dtype_size(i->shape.dtype);
  int64_t dims[HLO_RANK_MAX + 1];
  int rank = x->rank;
  bool fits = from && to && (i->shape.dtype == DT_BOOL) == (x->dtype == DT_BOOL);
  hlo_dims_copy(x->rank, dims, x->dims);
  if (fits && from > to)
    dims[rank++] = (int64_t)(from / to);
  else if (fits && from < to)
    fits = rank && dims[--rank] == (int64_t)(to / from);
  if (!fits || rank > HLO_RANK_MAX)
    REFUSE("bitcast-convert: %s cannot be read as %s", TEXT(OP(i, 0)), dtype_hlo_name(i->shape.dtype));
  *out = hlo_shape_array(a, i->shape.dtype, rank, dims);
  return ST_OK;
}

/* ---- leaves ------------------------------------------------------------------------------------------ */

static enum status infer_constant(struct arena *a, const struct hlo_instr *i, struct hlo_shape *out,
                                  struct error *err) {
  const struct hlo_literal *l = i->attrs->literal;
  if (!l)
    REFUSE("constant: no value");
  int64_t n = hlo_shape_elements(&l->shape);
  if (n < 0 || (size_t)n > SIZE_MAX / 8 || l->size != (size_t)n * dtype_size(l->shape.dtype))
    REFUSE("constant: %zu bytes are not the value of %s", l->size, hlo_shape_text(a, &l->shape));
  *out = l->shape;
  return ST_OK;
}

static enum status infer_iota(struct arena *a, const struct hlo_instr *i, struct hlo_shape *out, struct error *err) {
  if (i->shape.dtype == DT_BOOL)
    REFUSE("iota: %s cannot count", TEXT(i));
  if (i->attrs->dimensions.n != 1 || !hlo_infer_is_distinct_below(i->attrs->dimensions, i->shape.rank))
    REFUSE("iota: dimension %s of %s does not exist", hlo_infer_ints_text(a, i->attrs->dimensions), TEXT(i));
  *out = i->shape;
  return ST_OK;
}

/* ---- structure --------------------------------------------------------------------------------------- */

static enum status infer_tuple(struct arena *a, const struct hlo_instr *i, struct hlo_shape *out) {
  struct hlo_shape *elems = arena_new_array(a, struct hlo_shape, (size_t)i->n_operands);
  for (int k = 0; k < i->n_operands; k++)
    elems[k] = OP(i, k)->shape;
  *out = (struct hlo_shape){.dtype = DT_TUPLE, .n_elems = i->n_operands, .elems = elems};
  return ST_OK;
}

static enum status infer_get_tuple_element(struct arena *a, const struct hlo_instr *i, struct hlo_shape *out,
                                           struct error *err) {
  const struct hlo_shape *s = &OP(i, 0)->shape;
  if (s->dtype != DT_TUPLE || i->attrs->tuple_index < 0 || i->attrs->tuple_index >= s->n_elems)
    REFUSE("get-tuple-element: %s has no element %lld", hlo_shape_text(a, s), (long long)i->attrs->tuple_index);
  *out = s->elems[i->attrs->tuple_index];
  return ST_OK;
}

/* The shape is whatever it says; an alias has to name something that is there. */
static enum status infer_custom_call(const struct hlo_instr *i, struct hlo_shape *out, struct error *err) {
  *out = i->shape;
  for (int k = 0; k < i->attrs->operand_aliases.n; k++) {
    const struct hlo_operand_alias *x = &i->attrs->operand_aliases.v[k];
    bool fits = x->operand >= 0 && x->operand < i->n_operands && x->output_index.n <= 1;
    if (fits && x->output_index.n)
      fits = i->shape.dtype == DT_TUPLE && x->output_index.v[0] >= 0 && x->output_index.v[0] < i->shape.n_elems;
    const struct hlo_shape *to = fits && x->output_index.n ? &i->shape.elems[x->output_index.v[0]] : &i->shape;
    if (!fits || !hlo_shape_equal(to, &OP(i, x->operand)->shape))
      REFUSE("custom-call: alias %d does not fit an operand and an output of one shape", k);
  }
  return ST_OK;
}

static enum status infer_by_op(struct arena *a, const struct hlo_instr *i, struct hlo_shape *out, struct error *err) {
  switch (hlo_op_class(i->op)) {
  case HC_UNARY:
    return infer_unary(a, i, out, err);
  case HC_BINARY:
    return infer_binary(a, i, out, err);
  default:
    break;
  }
  switch (i->op) {
  case HLO_CONSTANT:
    return infer_constant(a, i, out, err);
  case HLO_IOTA:
    return infer_iota(a, i, out, err);
  case HLO_CONVERT:
    *out = OP(i, 0)->shape;
    out->dtype = i->shape.dtype;
    return ST_OK;
  case HLO_COMPARE:
    return infer_compare(a, i, out, err);
  case HLO_SELECT:
    return infer_select(a, i, out, err);
  case HLO_BROADCAST:
    return hlo_infer_broadcast(a, i, out, err);
  case HLO_RESHAPE:
    return hlo_infer_reshape(a, i, out, err);
  case HLO_TRANSPOSE:
    return hlo_infer_transpose(a, i, out, err);
  case HLO_SLICE:
    return hlo_infer_slice(a, i, out, err);
  case HLO_PAD:
    return hlo_infer_pad(a, i, out, err);
  case HLO_CONCATENATE:
    return hlo_infer_concatenate(a, i, out, err);
  case HLO_CLAMP:
    return infer_clamp(a, i, out, err);
  case HLO_IS_FINITE:
    return infer_is_finite(a, i, out, err);
  case HLO_BITCAST_CONVERT:
    return infer_bitcast_convert(a, i, out, err);
  case HLO_REDUCE_PRECISION:
    return hlo_infer_reduce_precision(a, i, out, err);
  case HLO_COMPLEX:
  case HLO_REAL:
  case HLO_IMAG:
    return hlo_infer_complex_part(a, i, out, err);
  case HLO_FFT:
    return hlo_infer_fft(a, i, out, err);
  case HLO_RNG_BIT_GENERATOR:
    return hlo_infer_rng(a, i, out, err);
  case HLO_CHOLESKY:
    return hlo_infer_cholesky(a, i, out, err);
  case HLO_TRIANGULAR_SOLVE:
    return hlo_infer_triangular_solve(a, i, out, err);
  case HLO_OPT_BARRIER:
    *out = OP(i, 0)->shape;
    return ST_OK;
  case HLO_MAP:
    return hlo_infer_map(i, out, err);
  case HLO_REVERSE:
    return hlo_infer_reverse(a, i, out, err);
  case HLO_REDUCE:
    return hlo_infer_reduce(a, i, out, err);
  case HLO_REDUCE_WINDOW:
    return hlo_infer_reduce_window(a, i, out, err);
  case HLO_SELECT_AND_SCATTER:
    return hlo_infer_select_and_scatter(a, i, out, err);
  case HLO_SORT:
    return hlo_infer_sort(a, i, out, err);
  case HLO_TOPK:
    return hlo_infer_topk(a, i, out, err);
  case HLO_CONVOLUTION:
    return hlo_infer_convolution(a, i, out, err);
  case HLO_ALL_GATHER:
  case HLO_ALL_REDUCE:
  case HLO_REDUCE_SCATTER:
  case HLO_ALL_TO_ALL:
  case HLO_COLLECTIVE_PERMUTE:
    return hlo_infer_collective(a, i, out, err);
  case HLO_DOT:
    return hlo_infer_dot(a, i, out, err);
  case HLO_GATHER:
    return hlo_infer_gather(a, i, out, err);
  case HLO_SCATTER:
    return hlo_infer_scatter(a, i, out, err);
  case HLO_DYNAMIC_SLICE:
    return hlo_infer_dynamic_slice(a, i, out, err);
  case HLO_DYNAMIC_UPDATE_SLICE:
    return hlo_infer_dynamic_update_slice(a, i, out, err);
  case HLO_TUPLE:
    return infer_tuple(a, i, out);
  case HLO_GET_TUPLE_ELEMENT:
    return infer_get_tuple_element(a, i, out, err);
  case HLO_CALL:
    return hlo_infer_call(a, i, out, err);
  case HLO_CONDITIONAL:
    return hlo_infer_conditional(a, i, out, err);
  case HLO_WHILE:
    return hlo_infer_while(a, i, out, err);
  case HLO_CUSTOM_CALL:
    return infer_custom_call(i, out, err);
  default: /* parameter: whatever it says */
    *out = i->shape;
    return ST_OK;
  }
}

/* A shape that can exist: a known dtype, a rank within limits, sizes that are not negative and can be counted. */
static enum status check_shape(struct arena *a, const char *op, const struct hlo_shape *s, int depth,
                               struct error *err) {
  enum { NEST_MAX = 8 };
  if (s->dtype == DT_TUPLE) {
    if (depth >= NEST_MAX)
      REFUSE("%s: tuples nested too deeply", op);
    for (int k = 0; k < s->n_elems; k++) {
      enum status st = check_shape(a, op, &s->elems[k], depth + 1, err);
      if (st)
        return st;
    }
    return ST_OK;
  }
  if (dtype_kind(s->dtype) == DK_NONE)
    REFUSE("%s: unknown data type", op);
  const int most = HLO_RANK_MAX - dtype_is_complex(s->dtype); /* pairs have one more */
  if (s->rank < 0 || s->rank > most)
    REFUSE("%s: %d dimensions; at most %d are possible", op, s->rank, most);
  for (int k = 0; k < s->rank; k++)
    if (s->dims[k] < 0)
      REFUSE("%s: %s has a negative dimension", op, hlo_shape_text(a, s));
  int64_t n = hlo_shape_elements(s), bytes;
  if (n < 0 || __builtin_mul_overflow(n, (int64_t)dtype_size(s->dtype), &bytes))
    REFUSE("%s: %s has too many elements", op, hlo_shape_text(a, s));
  return ST_OK;
}

static bool has_complex(const struct hlo_shape *s) {
  for (int k = 0; s->dtype == DT_TUPLE && k < s->n_elems; k++)
    if (has_complex(&s->elems[k]))
      return true;
  return dtype_is_complex(s->dtype);
}

/* Only these may have tuples as operands. */
static bool takes_tuples(enum hlo_op op) {
  return hlo_op_hands_on(op) || op == HLO_CUSTOM_CALL || op == HLO_COPY;
}

enum status hlo_infer_shape(struct arena *a, const struct hlo_instr *i, struct hlo_shape *out, struct error *err) {
  const char *op = hlo_op_name(i->op);
  struct hlo_shape s = {0};
  enum status st;
  bool is_complex = false;

  if ((unsigned)i->op >= HLO_OP_COUNT)
    REFUSE("unknown opcode %d", (int)i->op);
  if (hlo_op_arity(i->op) >= 0 && i->n_operands != hlo_op_arity(i->op))
    REFUSE("%s: takes %d operands, not %d", op, hlo_op_arity(i->op), i->n_operands);
  for (int k = 0; k < i->n_operands; k++)
    is_complex |= dtype_is_complex(OP(i, k)->shape.dtype);
  if (is_complex ? !hlo_infer_is_complex_op(i) : !hlo_infer_may_make_complex(i) && has_complex(&i->shape))
    REFUSE("%s: complex numbers are not supported", op);
  for (int k = 0; k < i->n_operands; k++)
    if (OP(i, k)->shape.dtype == DT_TUPLE && !takes_tuples(i->op))
      REFUSE("%s: operand %s must be an array", op, TEXT(OP(i, k)));
  if (i->shape.dtype != DT_NONE) { /* what the instruction claims is read below, so it has to make sense first */
    st = check_shape(a, op, &i->shape, 0, err);
    if (st)
      return st;
  }
  st = infer_by_op(a, i, &s, err);
  if (!st)
    st = check_shape(a, op, &s, 0, err);
  if (!st)
    *out = s;
  return st;
}
