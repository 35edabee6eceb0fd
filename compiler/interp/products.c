/* products: results of matrix products, kept by the contents of their operands.
 *
 * The stages of one kernel compute mostly the same products of the same numbers.  A product whose operands have the same
 * elements as those of an earlier one has the same result, bit by bit, so that it is copied.  Operands are recognised by
 * 128 bits of their contents and layout; to compute those takes a fifth of the product's time or less.  When the memory
 * for results is used up, further ones are not kept.
 */
#include <string.h>

#include "base/array.h"
#include "base/index.h"
#include "interp/internal.h"
#include "sim/simd.h"

enum {
  LANES = 8,
  STRIPE = LANES * sizeof(uint64_t),
  LEAST = 64 /* elements; products with a shorter side are computed */
};

struct digest {
  uint64_t lanes[LANES];
  uint64_t n; /* stripes */
};

struct key {
  uint64_t low, high;
};

struct interp_products {
  struct arena *arena;
  size_t left; /* bytes that results may still take */
  struct index index;
  struct {
    struct kept {
      struct key key;
      float *data; /* the result, row-major */
    } *v;
    int n, cap;
  } kept;
};

struct interp_products *interp_products_new(struct arena *a, size_t bytes_max) {
  struct interp_products *p = arena_new(a, struct interp_products);
  *p = (struct interp_products){.arena = a, .left = bytes_max, .index = {.arena = a}};
  return p;
}

/* ---- digests ----------------------------------------------------------------------------------------------------- */

typedef uint64_t words __attribute__((vector_size(STRIPE), aligned(8), may_alias));

/* Mixes in n stripes of each of so many rows, which are `step` bytes apart.  Each stripe adds to every lane the product of
 * the halves of a word that depends on its position, and the neighbour's word, so that no word is lost where the product
 * is 0. */
SIM_PER_MACHINE static void add_stripes(struct digest *d, const char *from, int64_t rows, int64_t step, int64_t n) {
  const words swapped = {1, 0, 3, 2, 5, 4, 7, 6};
  words lanes, next = {0}, secret;
  memcpy(&lanes, d->lanes, sizeof lanes);
  for (int k = 0; k < LANES; k++)
    secret[k] = 0x9e3779b97f4a7c15u * (d->n * LANES + (uint64_t)k + 1);
  next += 0x9e3779b97f4a7c15u * LANES;
  for (int64_t r = 0; r < rows; r++, from += step)
    for (int64_t k = 0; k < n; k++, secret += next) {
      words x;
      memcpy(&x, from + k * (int64_t)STRIPE, sizeof x);
      const words keyed = x ^ secret;
      lanes += (keyed & 0xffffffffu) * (keyed >> 32) + __builtin_shuffle(x, swapped);
    }
  memcpy(d->lanes, &lanes, sizeof lanes);
  d->n += (uint64_t)(rows * n);
}

static void add_bytes(struct digest *d, const char *from, size_t n) {
  char last[STRIPE] = {0};
  add_stripes(d, from, 1, 0, (int64_t)(n / STRIPE));
  if (n % STRIPE) {
    memcpy(last, from + n / STRIPE * STRIPE, n % STRIPE);
    add_stripes(d, last, 1, 0, 1);
  }
}

static void add_rows(struct digest *d, const char *from, int64_t rows, int64_t step, size_t length) {
  if (length % STRIPE == 0)
    add_stripes(d, from, rows, step, (int64_t)(length / STRIPE));
  else
    for (int64_t k = 0; k < rows; k++)
      add_bytes(d, from + k * step, length);
}

/* Adds the matrix in the order in which it lies in memory; false if neither its rows nor its columns are adjacent. */
static bool add_matrix(struct digest *d, const struct sim_matrix *x, size_t size) {
  const bool by_rows = x->col_stride == 1;
  const int64_t n = by_rows ? x->rows : x->cols, step = (by_rows ? x->row_stride : x->col_stride) * (int64_t)size;
  const size_t length = (size_t)(by_rows ? x->cols : x->rows) * size;
  const int64_t layout[] = {x->rows, x->cols, by_rows};
  if (!by_rows && x->row_stride != 1)
    return false;
  add_bytes(d, (const char *)layout, sizeof layout);
  if (step == (int64_t)length)
    add_bytes(d, x->data, (size_t)n * length);
  else
    add_rows(d, x->data, n, step, length);
  return true;
}

static struct key key_of(const struct digest *d) {
  struct key k = {d->n, ~d->n};
  for (int i = 0; i < LANES; i++) {
    k.low = hash_mix(k.low, d->lanes[i]);
    k.high = hash_mix(k.high, d->lanes[LANES - 1 - i] + 0x632be59bd9b4e019u);
  }
  return k;
}

/* ---- products ---------------------------------------------------------------------------------------------------- */

static struct kept *find(struct interp_products *p, struct key key) {
  for (struct index_probe i = index_probe(&p->index, (uint32_t)key.low); index_next(&i);) {
    struct kept *k = &p->kept.v[i.entry];
    if (k->key.low == key.low && k->key.high == key.high)
      return k;
  }
  return NULL;
}

static void keep(struct interp_products *p, struct key key, const struct sim_matrix *c) {
  const size_t row = (size_t)c->cols * sizeof(float), bytes = (size_t)c->rows * row;
  if (bytes > p->left)
    return;
  p->left -= bytes;
  const struct kept k = {key, arena_alloc(p->arena, bytes)};
  for (int64_t i = 0; i < c->rows; i++)
    memcpy(k.data + i * c->cols, c->data + i * c->row_stride * (int64_t)sizeof(float), row);
  index_add(&p->index, (uint32_t)key.low, p->kept.n);
  array_push(p->arena, &p->kept, k);
}

static void give(const struct kept *k, const struct sim_matrix *c) {
  const size_t row = (size_t)c->cols * sizeof(float);
  for (int64_t i = 0; i < c->rows; i++)
    memcpy(c->data + i * c->row_stride * (int64_t)sizeof(float), k->data + i * c->cols, row);
}

void interp_multiply(struct interp_products *p, const struct sim_matrix *a, const struct sim_matrix *b,
                     const struct sim_matrix *c, enum dtype t) {
  const int64_t type = t;
  struct digest d = {.n = 0};
  if (!p || c->col_stride != 1 || a->rows < LEAST || a->cols < LEAST || b->cols < LEAST ||
      !add_matrix(&d, a, dtype_size(t)) || !add_matrix(&d, b, dtype_size(t)) || !add_matrix(&d, c, sizeof(float))) {
    sim_multiply(a, b, c, t);
    return;
  }
  add_bytes(&d, (const char *)&type, sizeof type);
  const struct key key = key_of(&d);
  const struct kept *known = find(p, key);
  if (known) {
    give(known, c);
    return;
  }
  sim_multiply(a, b, c, t);
  keep(p, key, c);
}
