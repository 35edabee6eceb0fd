/* parts: copies of matrices into a block of memory that were put off.
 *
 *     memref.copy %weights[0, 512], %tile       nothing is copied: the tile's block has a part
 *     linalg.matmul ins(%x, %tile)              reads the weights where they are
 *     linalg.exp ins(%tile)                     the part is copied before
 *
 * The stages of a kernel move its weights from memory to memory, tile by tile, only to multiply them, and mostly the
 * product is one that an earlier stage computed (products.c).  The source of a part does not change as long as the
 * products are used: it is an argument that no stage writes, or the result of an earlier product.  Parts are copied
 * in the order in which the program wrote them, so they may overlap.
 */
#include <stdlib.h>
#include <string.h>

#include "interp/internal.h"

bool parts_rows(const struct view *v, int rank, size_t size, struct rows *out) {
  if (rank != 2 || (v->strides[1] != 1 && v->dims[1] != 1) || v->strides[0] < 0 || !v->dims[0] || !v->dims[1])
    return false;
  *out = (struct rows){v->data, v->dims[0], v->dims[1] * (int64_t)size, v->strides[0] * (int64_t)size};
  return true;
}

static bool are_same(const struct rows *x, const struct rows *y) {
  return x->data == y->data && x->n == y->n && x->length == y->length && (x->step == y->step || x->n == 1);
}

static const char *end_of(const struct rows *x) {
  return x->data + (x->n - 1) * x->step + x->length;
}

/* False only if no byte belongs to both: one lies before the other, or they are different columns of one matrix. */
static bool may_overlap(const struct rows *x, const struct rows *y) {
  if (end_of(x) <= y->data || end_of(y) <= x->data)
    return false;
  if (x->step != y->step || x->step <= 0)
    return true;
  const int64_t apart = y->data - x->data, column = (apart % x->step + x->step) % x->step;
  return column < x->length || column + y->length > x->step;
}

/* True if the part writes all of the rows; *from: where they are in its source. */
static bool has_rows(const struct part *x, const struct rows *rows, struct rows *from) {
  const int64_t apart = rows->data - x->to.data;
  const bool has_gaps = x->to.n > 1 && (x->to.step != x->to.length || x->from_step != x->to.length);
  if (!has_gaps) {
    *from = (struct rows){(char *)(uintptr_t)x->from + apart, rows->n, rows->length, rows->step};
    return apart >= 0 && apart + (rows->n - 1) * rows->step + rows->length <= x->to.n * x->to.length;
  }
  const int64_t step = x->to.step > 0 ? x->to.step : x->to.length;
  const int64_t row = apart / step, column = apart % step;
  if (apart < 0 || row + rows->n > x->to.n || column + rows->length > x->to.length ||
      (rows->n > 1 && rows->step != x->to.step))
    return false;
  *from = (struct rows){(char *)(uintptr_t)x->from + row * x->from_step + column, rows->n, rows->length, x->from_step};
  return true;
}

bool parts_find(const struct parts *p, const struct rows *rows, struct rows *from) {
  for (int k = p->n; k--;) {
    if (has_rows(&p->v[k], rows, from))
      return true;
    if (may_overlap(&p->v[k].to, rows))
      return false;
  }
  return false;
}

bool parts_add(struct parts *p, const struct part *x) {
  int n = 0;
  for (int k = 0; k < p->n; k++) /* what the new one writes again is not needed */
    if (!are_same(&p->v[k].to, &x->to))
      p->v[n++] = p->v[k];
  p->n = n;
  if (n == PARTS_MAX)
    return false;
  if (n == p->cap) {
    p->cap = p->cap ? 2 * p->cap : 8;
    p->v = realloc(p->v, (size_t)p->cap * sizeof *p->v);
    if (!p->v)
      arena_oom((size_t)p->cap * sizeof *p->v);
  }
  p->v[p->n++] = *x;
  return true;
}

void parts_copy(struct parts *p) {
  for (int k = 0; k < p->n; k++) {
    const struct part *x = &p->v[k];
    for (int64_t r = 0; r < x->to.n; r++)
      memcpy(x->to.data + r * x->to.step, x->from + r * x->from_step, (size_t)x->to.length);
  }
  p->n = 0;
}
