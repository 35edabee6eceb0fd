/* hlo_eval: what an HLO module means, in plain loops over doubles, for tests to compare with.
 *
 * Every instruction's elements are kept as doubles rounded to its dtype, so results are exact for everything but
 * 64-bit integers beyond 2^53.  Written from XLA's operation semantics, without sharing any code with the lowering.
 */
#ifndef HLO_EVAL_H
#define HLO_EVAL_H

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "hlo/hlo.h"
#include "hlo/literal.h"
#include "trace/trace.h"

struct ev {
  struct arena *a;
  double **v; /* by instruction id */
};

static inline double ev_round(enum dtype t, double x) {
  uint64_t bits = 0;
  hlo_literal_store(t, x, &bits);
  struct hlo_literal l = {.shape = {.dtype = t}, .data = &bits, .size = dtype_size(t)};
  return hlo_literal_double(&l, 0);
}

/* Integers wrap at their width. */
static inline double ev_wrap(enum dtype t, double x) {
  if (dtype_is_float(t) || t == DT_BOOL)
    return ev_round(t, x);
  const bool is_signed = dtype_kind(t) == DK_SIGNED;
  double m = ldexp(1, 8 * (int)dtype_size(t)), low = is_signed ? -m / 2 : 0, r = trunc(x);
  if (r >= low && r < low + m) /* no rounding for what needs no wrapping */
    return r;
  r = fmod(r, m);
  return r < low ? r + m : r >= low + m ? r - m : r;
}

static inline int64_t ev_count(const struct hlo_instr *i) {
  return hlo_shape_elements(&i->shape);
}
static inline double *ev_new(struct ev *e, const struct hlo_instr *i) {
  return arena_new_array(e->a, double, (size_t)ev_count(i) + 1);
}

/* Multi-index of element k of s, and back. */
static inline void ev_unravel(const struct hlo_shape *s, int64_t k, int64_t *at) {
  for (int d = s->rank - 1; d >= 0; d--) {
    at[d] = k % s->dims[d];
    k /= s->dims[d];
  }
}
static inline int64_t ev_ravel(const struct hlo_shape *s, const int64_t *at) {
  int64_t k = 0;
  for (int d = 0; d < s->rank; d++)
    k = k * s->dims[d] + at[d];
  return k;
}
static inline bool ev_in(struct hlo_ints v, int64_t x) {
  for (int k = 0; k < v.n; k++)
    if (v.v[k] == x)
      return true;
  return false;
}

static inline double ev_unary(enum hlo_op op, enum dtype t, double x) {
  switch (op) {
  case HLO_ABS:
    return fabs(x);
  case HLO_NEGATE:
    return -x;
  case HLO_EXP:
    return exp(x);
  case HLO_LOG:
    return log(x);
  case HLO_SQRT:
    return sqrt(x);
  case HLO_SIN:
    return sin(x);
  case HLO_COS:
    return cos(x);
  case HLO_TANH:
    return tanh(x);
  case HLO_CEIL:
    return ceil(x);
  case HLO_FLOOR:
    return floor(x);
  case HLO_SIGN:
    return isnan(x) || x == 0 ? x : x > 0 ? 1 : -1;
  case HLO_NOT:
    return t == DT_BOOL ? !x : dtype_kind(t) == DK_SIGNED ? -x - 1 : ldexp(1, 8 * (int)dtype_size(t)) - 1 - x;
  default:
    return x;
  }
}

static inline double ev_int_pow(enum dtype t, double x, double y) {
  if (y < 0)
    return x == 1 ? 1 : x == -1 ? (fmod(y, 2) ? -1 : 1) : 0;
  double r = 1;
  for (int64_t k = 0; k < (int64_t)y && k < 64; k++)
    r = ev_wrap(t, r * x);
  return r;
}

static inline double ev_binary(enum hlo_op op, enum dtype t, double x, double y) {
  const bool f = dtype_is_float(t);
  if (t == DT_BOOL) {
    int a = x != 0, b = y != 0;
    switch (op) {
    case HLO_ADD:
    case HLO_OR:
    case HLO_MAXIMUM:
      return a | b;
    case HLO_SUBTRACT:
    case HLO_XOR:
      return a ^ b;
    default:
      return a & b;
    }
  }
  switch (op) {
  case HLO_ADD:
    return x + y;
  case HLO_SUBTRACT:
    return x - y;
  case HLO_MULTIPLY:
    return x * y;
  case HLO_DIVIDE:
    if (f)
      return x / y;
    return y == 0 ? (dtype_kind(t) == DK_SIGNED ? -1 : ldexp(1, 8 * (int)dtype_size(t)) - 1) : trunc(x / y);
  case HLO_REMAINDER:
    return f ? fmod(x, y) : y == 0 ? x : fmod(x, y);
  case HLO_POWER:
    return f ? pow(x, y) : ev_int_pow(t, x, y);
  case HLO_MAXIMUM:
    return isnan(x) ? x : isnan(y) ? y : x > y ? x : y;
  case HLO_MINIMUM:
    return isnan(x) ? x : isnan(y) ? y : x < y ? x : y;
  case HLO_ATAN2:
    return atan2(x, y);
  case HLO_AND:
    return (double)((int64_t)x & (int64_t)y);
  case HLO_OR:
    return (double)((int64_t)x | (int64_t)y);
  case HLO_XOR:
    return (double)((int64_t)x ^ (int64_t)y);
  default:
    abort();
  }
}

static inline bool ev_compare(enum hlo_direction d, double x, double y) {
  switch (d) {
  case HLO_EQ:
    return x == y;
  case HLO_NE:
    return x != y;
  case HLO_GE:
    return x >= y;
  case HLO_GT:
    return x > y;
  case HLO_LE:
    return x <= y;
  default:
    return x < y;
  }
}

static inline void ev_reduce(struct ev *e, const struct hlo_instr *i, double *out) {
  const struct hlo_instr *x = i->operands[0];
  const double *xv = e->v[x->id];
  int64_t at[HLO_RANK_MAX], to[HLO_RANK_MAX];
  for (int64_t k = 0; k < ev_count(i); k++)
    out[k] = e->v[i->operands[1]->id][0];
  for (int64_t k = 0; k < ev_count(x); k++) {
    int n = 0;
    ev_unravel(&x->shape, k, at);
    for (int d = 0; d < x->shape.rank; d++)
      if (!ev_in(i->attrs->dimensions, d))
        to[n++] = at[d];
    double *o = &out[ev_ravel(&i->shape, to)];
    double r = ev_binary(i->called[0]->root->op, i->shape.dtype, *o, xv[k]);
    *o = dtype_is_float(i->shape.dtype) ? r : ev_wrap(i->shape.dtype, r);
  }
}

static inline void ev_dot(struct ev *e, const struct hlo_instr *i, double *out) {
  const struct hlo_instr *l = i->operands[0], *r = i->operands[1];
  const struct hlo_dot_dims *d = i->attrs->dot;
  const bool logical = i->shape.dtype == DT_BOOL;
  int64_t nk = 1, at[2 * HLO_RANK_MAX], la[HLO_RANK_MAX], ra[HLO_RANK_MAX];
  for (int k = 0; k < d->lhs_contracting.n; k++)
    nk *= l->shape.dims[d->lhs_contracting.v[k]];
  for (int64_t k = 0; k < ev_count(i); k++) {
    int n = 0;
    ev_unravel(&i->shape, k, at);
    for (int b = 0; b < d->lhs_batch.n; b++, n++)
      la[d->lhs_batch.v[b]] = ra[d->rhs_batch.v[b]] = at[n];
    for (int q = 0; q < l->shape.rank; q++)
      if (!ev_in(d->lhs_batch, q) && !ev_in(d->lhs_contracting, q))
        la[q] = at[n++];
    for (int q = 0; q < r->shape.rank; q++)
      if (!ev_in(d->rhs_batch, q) && !ev_in(d->rhs_contracting, q))
        ra[q] = at[n++];
    double sum = 0;
    for (int64_t c = 0; c < nk; c++) {
      int64_t rest = c;
      for (int q = d->lhs_contracting.n - 1; q >= 0; q--) {
        int64_t size = l->shape.dims[d->lhs_contracting.v[q]];
        la[d->lhs_contracting.v[q]] = ra[d->rhs_contracting.v[q]] = rest % size;
        rest /= size;
      }
      double p = e->v[l->id][ev_ravel(&l->shape, la)] * e->v[r->id][ev_ravel(&r->shape, ra)];
      sum = logical ? (sum != 0 || p != 0) : sum + p;
    }
    out[k] = sum;
  }
}

static inline int64_t ev_clamp(double x, int64_t limit) {
  return x<0 ? 0 : x>(double) limit ? limit : (int64_t)x;
}

/* Element c of the index vector that the batch position at (n entries) names. */
static inline double ev_index(struct ev *e, const struct hlo_instr *idx, int64_t vector_dim, const int64_t *at, int c) {
  int64_t p[HLO_RANK_MAX];
  for (int d = 0, b = 0; d < idx->shape.rank; d++)
    p[d] = d == vector_dim ? c : at[b++];
  return e->v[idx->id][ev_ravel(&idx->shape, p)];
}

static inline void ev_gather(struct ev *e, const struct hlo_instr *i, double *out) {
  const struct hlo_instr *x = i->operands[0];
  const struct hlo_gather_dims *g = i->attrs->gather;
  int64_t at[HLO_RANK_MAX], batch[HLO_RANK_MAX], from[HLO_RANK_MAX], off[HLO_RANK_MAX];
  for (int64_t k = 0; k < ev_count(i); k++) {
    int nb = 0, no = 0, o = 0;
    ev_unravel(&i->shape, k, at);
    for (int d = 0; d < i->shape.rank; d++)
      if (ev_in(g->offset_dims, d))
        off[no++] = at[d];
      else
        batch[nb++] = at[d];
    for (int d = 0; d < x->shape.rank; d++)
      from[d] = ev_in(g->collapsed_slice_dims, d) ? 0 : off[o++];
    for (int c = 0; c < g->start_index_map.n; c++) {
      int64_t d = g->start_index_map.v[c];
      from[d] +=
          ev_clamp(ev_index(e, i->operands[1], g->index_vector_dim, batch, c), x->shape.dims[d] - g->slice_sizes.v[d]);
    }
    out[k] = e->v[x->id][ev_ravel(&x->shape, from)];
  }
}

static inline void ev_scatter(struct ev *e, const struct hlo_instr *i, double *out) {
  const struct hlo_instr *x = i->operands[0], *u = i->operands[2];
  const struct hlo_scatter_dims *s = i->attrs->scatter;
  int64_t at[HLO_RANK_MAX], batch[HLO_RANK_MAX], win[HLO_RANK_MAX], to[HLO_RANK_MAX];
  memcpy(out, e->v[x->id], (size_t)ev_count(i) * sizeof *out);
  for (int64_t k = 0; k < ev_count(u); k++) {
    int nb = 0, nw = 0, w = 0;
    bool fits = true;
    ev_unravel(&u->shape, k, at);
    for (int d = 0; d < u->shape.rank; d++)
      if (ev_in(s->update_window_dims, d))
        win[nw++] = d;
      else
        batch[nb++] = at[d];
    for (int d = 0; d < x->shape.rank; d++)
      to[d] = ev_in(s->inserted_window_dims, d) ? 0 : at[win[w++]];
    for (int c = 0; c < s->scatter_dims_to_operand_dims.n; c++) {
      int64_t d = s->scatter_dims_to_operand_dims.v[c], size = 1;
      for (int q = 0, n = 0; q < x->shape.rank; q++)
        if (!ev_in(s->inserted_window_dims, q)) {
          if (q == d)
            size = u->shape.dims[win[n]];
          n++;
        }
      double start = ev_index(e, i->operands[1], s->index_vector_dim, batch, c);
      fits &= start >= 0 && start <= (double)(x->shape.dims[d] - size);
      to[d] += (int64_t)start;
    }
    if (fits)
      out[ev_ravel(&x->shape, to)] = e->v[u->id][k];
  }
}

static inline void ev_moves(struct ev *e, const struct hlo_instr *i, double *out) {
  const struct hlo_instr *x = i->n_operands ? i->operands[0] : NULL;
  const int64_t n = ev_count(i);
  int64_t at[HLO_RANK_MAX], from[HLO_RANK_MAX], start[HLO_RANK_MAX];

  for (int64_t k = 0; k < n; k++) {
    ev_unravel(&i->shape, k, at);
    switch (i->op) {
    case HLO_IOTA:
      out[k] = (double)at[i->attrs->dimensions.v[0]];
      break;
    case HLO_BROADCAST:
      for (int d = 0; d < x->shape.rank; d++)
        from[d] = at[i->attrs->dimensions.v[d]];
      out[k] = e->v[x->id][ev_ravel(&x->shape, from)];
      break;
    case HLO_RESHAPE:
      out[k] = e->v[x->id][k];
      break;
    case HLO_TRANSPOSE:
      for (int d = 0; d < i->shape.rank; d++)
        from[i->attrs->dimensions.v[d]] = at[d];
      out[k] = e->v[x->id][ev_ravel(&x->shape, from)];
      break;
    case HLO_SLICE:
      for (int d = 0; d < i->shape.rank; d++)
        from[d] = i->attrs->slice[d].start + at[d] * i->attrs->slice[d].stride;
      out[k] = e->v[x->id][ev_ravel(&x->shape, from)];
      break;
    case HLO_DYNAMIC_SLICE:
      for (int d = 0; d < i->shape.rank; d++)
        from[d] = at[d] + ev_clamp(e->v[i->operands[1 + d]->id][0], x->shape.dims[d] - i->shape.dims[d]);
      out[k] = e->v[x->id][ev_ravel(&x->shape, from)];
      break;
    case HLO_PAD: {
      bool inside = true;
      for (int d = 0; d < i->shape.rank; d++) {
        int64_t p = at[d] - i->attrs->padding[d].low, step = i->attrs->padding[d].interior + 1;
        inside &= p >= 0 && p % step == 0 && p / step < x->shape.dims[d];
        from[d] = p / step;
      }
      out[k] = inside ? e->v[x->id][ev_ravel(&x->shape, from)] : e->v[i->operands[1]->id][0];
      break;
    }
    case HLO_CONCATENATE: {
      int64_t axis = i->attrs->dimensions.v[0], p = at[axis];
      int o = 0;
      while (p >= i->operands[o]->shape.dims[axis])
        p -= i->operands[o++]->shape.dims[axis];
      at[axis] = p;
      out[k] = e->v[i->operands[o]->id][ev_ravel(&i->operands[o]->shape, at)];
      break;
    }
    case HLO_DYNAMIC_UPDATE_SLICE: {
      const struct hlo_instr *u = i->operands[1];
      bool inside = true;
      for (int d = 0; d < i->shape.rank; d++) {
        start[d] = ev_clamp(e->v[i->operands[2 + d]->id][0], x->shape.dims[d] - u->shape.dims[d]);
        from[d] = at[d] - start[d];
        inside &= from[d] >= 0 && from[d] < u->shape.dims[d];
      }
      out[k] = inside ? e->v[u->id][ev_ravel(&u->shape, from)] : e->v[x->id][k];
      break;
    }
    default:
      abort();
    }
  }
}

static inline void ev_instr(struct ev *e, const struct hlo_instr *i, const struct trace_array *in) {
  double *out = e->v[i->id] = ev_new(e, i);
  const int64_t n = ev_count(i);
  const enum dtype t = i->n_operands ? i->operands[0]->shape.dtype : DT_NONE;
  double *x[3] = {NULL};
  for (int k = 0; k < i->n_operands && k < 3; k++)
    x[k] = e->v[i->operands[k]->id];

  if (i->op == HLO_PARAMETER || i->op == HLO_CONSTANT) {
    struct hlo_literal l = {.shape = i->shape};
    l.data = i->op == HLO_PARAMETER ? in[i->attrs->parameter_number].data : i->attrs->literal->data;
    for (int64_t k = 0; k < n; k++)
      out[k] = hlo_literal_double(&l, (size_t)k);
    return;
  }
  if (i->op == HLO_REDUCE || i->op == HLO_DOT || i->op == HLO_GATHER || i->op == HLO_SCATTER) {
    (i->op == HLO_REDUCE   ? ev_reduce
     : i->op == HLO_DOT    ? ev_dot
     : i->op == HLO_GATHER ? ev_gather
                           : ev_scatter)(e, i, out);
  } else if (i->op == HLO_COMPARE) {
    for (int64_t k = 0; k < n; k++)
      out[k] = ev_compare(i->attrs->direction, x[0][k], x[1][k]);
  } else if (i->op == HLO_SELECT) {
    for (int64_t k = 0; k < n; k++)
      out[k] = x[0][k] != 0 ? x[1][k] : x[2][k];
  } else if (i->op == HLO_CONVERT) {
    for (int64_t k = 0; k < n; k++)
      out[k] = i->shape.dtype == DT_BOOL ? x[0][k] != 0 : x[0][k];
  } else if (hlo_op_class(i->op) == HC_UNARY) {
    for (int64_t k = 0; k < n; k++)
      out[k] = ev_unary(i->op, t, x[0][k]);
  } else if (hlo_op_class(i->op) == HC_BINARY) {
    for (int64_t k = 0; k < n; k++)
      out[k] = ev_binary(i->op, t, x[0][k], x[1][k]);
  } else {
    ev_moves(e, i, out);
  }
  for (int64_t k = 0; k < n; k++)
    out[k] = ev_wrap(i->shape.dtype, out[k]);
}

/* Evaluates the entry computation on `in`; out[k] is result k, allocated in a. */
static inline void hlo_eval(struct arena *a, const struct hlo_module *m, const struct trace_array *in,
                            struct trace_array *out) {
  struct ev e = {a, arena_new_array(a, double *, (size_t)m->next_id)};
  const struct hlo_instr *root = m->entry->root;

  hlo_for_each(i, m->entry) {
    if (i->op != HLO_TUPLE)
      ev_instr(&e, i, in);
  }
  int n = !root ? 0 : root->op == HLO_TUPLE ? root->n_operands : 1;
  for (int k = 0; k < n; k++) {
    const struct hlo_instr *r = root->op == HLO_TUPLE ? root->operands[k] : root;
    size_t size = dtype_size(r->shape.dtype), count = (size_t)ev_count(r);
    out[k].shape = r->shape;
    out[k].data = arena_alloc(a, size * count);
    for (size_t q = 0; q < count; q++)
      hlo_literal_store(r->shape.dtype, e.v[r->id][q], (char *)out[k].data + q * size);
  }
}

#endif
