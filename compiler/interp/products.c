/* products: results of matrix products, kept by the contents of their operands.
 *
 * The stages of one kernel compute mostly the same products of the same numbers.  A product whose operands have the same
 * elements as those of an earlier one has the same result, bit by bit, so that it is copied.  Operands are recognised by
 * 128 bits of their contents and layout; to compute those takes a fifth of the product's time or less, and for memory
 * that does not change they are computed once.  When the memory for results is used up, further ones are not kept.
 * Results lie on the heap, in memory that the process has used before: it is not cleared again.
 */
#include <stdlib.h>
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

struct interp_products {
  struct arena arena; /* of the indexes and the lists */
  size_t left;        /* bytes that results may still take */
  struct index index, fixed_index;
  struct {
    struct kept {
      struct key key;
      char *data; /* the result, row-major; on the heap */
    } *v;
    int n, cap;
  } kept;
  struct memo *memo;
  struct {
    struct fixed {
      struct rows rows; /* in memory that does not change; data NULL: all zeros */
      struct key key;
    } *v;
    int n, cap;
  } fixed;
};

struct interp_products *interp_products_new(size_t bytes_max) {
  struct interp_products *p = malloc(sizeof *p);
  if (!p)
    arena_oom(sizeof *p);
  *p = (struct interp_products){
      .memo = NULL, .left = bytes_max, .index = {.arena = &p->arena}, .fixed_index = {.arena = &p->arena}};
  arena_init(&p->arena);
  p->memo = memo_new(&p->arena);
  return p;
}

void interp_products_free(struct interp_products *p) {
  if (!p)
    return;
  for (int k = 0; k < p->kept.n; k++)
    free(p->kept.v[k].data);
  arena_clear(&p->arena);
  free(p);
}

/* ---- digests ----------------------------------------------------------------------------------------------------- */

typedef uint64_t words __attribute__((vector_size(STRIPE), aligned(8), may_alias));

/* Mixes in n stripes of each of so many rows, which are `step` bytes apart.  Each stripe adds to every lane the product of
 * the halves of a word that depends on its position, and the neighbour's word, so that no word is lost where the product
 * is 0. */
SIM_PER_MACHINE static void add_stripes(struct digest *d, const char *from, int64_t rows, int64_t step, int64_t n) {
  const words swapped = {1, 0, 3, 2, 5, 4, 7, 6};
  words lanes, next = {0}, secret = {0};
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

static void add_matrix(struct digest *d, const struct rows *x) {
  if (x->step == x->length)
    add_bytes(d, x->data, (size_t)(x->n * x->length));
  else
    add_rows(d, x->data, x->n, x->step, (size_t)x->length);
}

static void add_zeros(struct digest *d, const struct rows *x) {
  char *zeros = calloc((size_t)x->n, (size_t)x->length);
  if (!zeros)
    arena_oom((size_t)(x->n * x->length));
  add_bytes(d, zeros, (size_t)(x->n * x->length));
  free(zeros);
}

static struct key key_of(const struct digest *d) {
  struct key k = {d->n, ~d->n};
  for (int i = 0; i < LANES; i++) {
    k.low = hash_mix(k.low, d->lanes[i]);
    k.high = hash_mix(k.high, d->lanes[LANES - 1 - i] + 0x632be59bd9b4e019u);
  }
  return k;
}

static struct key digest(const struct rows *x) {
  struct digest d = {.n = 0};
  if (x->data)
    add_matrix(&d, x);
  else
    add_zeros(&d, x);
  return key_of(&d);
}

static uint32_t hash_rows(const struct rows *x) {
  const uint64_t where = hash_mix((uint64_t)(uintptr_t)x->data, (uint64_t)x->n);
  return (uint32_t)hash_mix(hash_mix(where, (uint64_t)x->length), (uint64_t)x->step);
}

/* The digest of memory that does not change. */
static struct key digest_once(struct interp_products *p, const struct rows *x) {
  const uint32_t hash = hash_rows(x);
  for (struct index_probe i = index_probe(&p->fixed_index, hash); index_next(&i);) {
    const struct fixed *f = &p->fixed.v[i.entry];
    if (f->rows.data == x->data && f->rows.n == x->n && f->rows.length == x->length && f->rows.step == x->step)
      return f->key;
  }
  const struct fixed f = {*x, digest(x)};
  index_add(&p->fixed_index, hash, p->fixed.n);
  array_push(&p->arena, &p->fixed, f);
  return f.key;
}

struct key products_digest(struct interp_products *p, const struct rows *x, bool is_fixed) {
  return is_fixed ? digest_once(p, x) : digest(x);
}

struct memo *products_memo(struct interp_products *p) {
  return p->memo;
}

/* Adds the factor's elements and layout to the key, in the order in which they lie in memory; false if neither its rows
 * nor its columns are adjacent. */
static bool add_factor(struct interp_products *p, struct key *key, const struct factor *f, size_t size) {
  const struct sim_matrix *x = &f->x;
  const bool by_rows = x->col_stride == 1;
  const struct rows rows = {x->data, by_rows ? x->rows : x->cols, (by_rows ? x->cols : x->rows) * (int64_t)size,
                            (by_rows ? x->row_stride : x->col_stride) * (int64_t)size};
  if (!by_rows && x->row_stride != 1)
    return false;
  const struct key k = f->is_fixed || !x->data ? digest_once(p, &rows) : digest(&rows);
  const uint64_t layout = hash_mix(hash_mix(by_rows, (uint64_t)x->rows), (uint64_t)x->cols);
  key->low = hash_mix(hash_mix(key->low, k.low), layout);
  key->high = hash_mix(hash_mix(key->high, k.high), layout);
  return true;
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

/* Sets the key of c + a b; false for products that are not kept. */
static bool recognise(struct interp_products *p, const struct factor *a, const struct factor *b, const struct factor *c,
                      enum dtype t, struct key *key) {
  *key = (struct key){(uint64_t)t, ~(uint64_t)t};
  return p && c->x.col_stride == 1 && a->x.rows >= LEAST && a->x.cols >= LEAST && b->x.cols >= LEAST &&
         add_factor(p, key, a, dtype_size(t)) && add_factor(p, key, b, dtype_size(t)) &&
         add_factor(p, key, c, sizeof(float));
}

/* Returns memory for a result that is kept; NULL if there is no room. */
static char *keep(struct interp_products *p, struct key key, size_t bytes) {
  if (bytes > p->left)
    return NULL;
  const struct kept k = {key, malloc(bytes)};
  if (!k.data)
    arena_oom(bytes);
  p->left -= bytes;
  index_add(&p->index, (uint32_t)key.low, p->kept.n);
  array_push(&p->arena, &p->kept, k);
  return k.data;
}

const char *products_keep_bytes(struct interp_products *p, const char *data, size_t bytes, struct key digest) {
  key_mix(&digest, bytes);
  const struct kept *known = find(p, digest);
  if (known)
    return known->data;
  char *copy = keep(p, digest, bytes);
  if (copy)
    memcpy(copy, data, bytes);
  return copy;
}

static void copy_rows(const struct sim_matrix *to, const struct sim_matrix *from) {
  const size_t row = (size_t)to->cols * sizeof(float);
  for (int64_t i = 0; i < to->rows; i++)
    memcpy(to->data + i * to->row_stride * (int64_t)sizeof(float),
           from->data + i * from->row_stride * (int64_t)sizeof(float), row);
}

static struct sim_matrix row_major(char *data, const struct sim_matrix *like) {
  return (struct sim_matrix){data, like->rows, like->cols, like->cols, 1};
}

void interp_multiply(struct interp_products *p, const struct factor *a, const struct factor *b,
                     const struct sim_matrix *c, enum dtype t) {
  struct key key;
  if (!recognise(p, a, b, &(struct factor){.x = *c}, t, &key)) {
    sim_multiply(&a->x, &b->x, c, t);
    return;
  }
  const struct kept *known = find(p, key);
  if (known) {
    const struct sim_matrix result = row_major(known->data, c);
    copy_rows(c, &result);
    return;
  }
  sim_multiply(&a->x, &b->x, c, t);
  char *data = keep(p, key, (size_t)(c->rows * c->cols) * sizeof(float));
  if (data) {
    const struct sim_matrix result = row_major(data, c);
    copy_rows(&result, c);
  }
}

char *interp_product(struct interp_products *p, const struct factor *a, const struct factor *b, const struct factor *c,
                     enum dtype t) {
  const size_t bytes = (size_t)(c->x.rows * c->x.cols) * sizeof(float);
  struct key key;
  if (!recognise(p, a, b, c, t, &key))
    return NULL;
  const struct kept *known = find(p, key);
  if (known)
    return known->data;
  char *data = keep(p, key, bytes);
  if (!data)
    return NULL;
  const struct sim_matrix result = row_major(data, &c->x);
  if (c->x.data)
    copy_rows(&result, &c->x);
  else
    memset(data, 0, bytes);
  sim_multiply(&a->x, &b->x, &result, t);
  return data;
}
