/* expand_rng: rng-bit-generator as XLA defines it for the CPU, bit for bit, on 32-bit integers.
 *
 * The state u64[2] is a key and a counter.  Both generators compute random words from each counter independently:
 *
 *     Threefry   counter c + p for position p  ==>  2 words; they alternate along one dimension
 *     Philox     counter (key, c) + p          ==>  4 consecutive words
 *
 * The default is Philox.  JAX makes the state from u32[4] and converts it back afterwards.  So nothing is computed in 64
 * bits: the words are taken from the operand that the state was made from.  If they are not known, the instruction stays
 * and is refused later.
 */
#include "hlo/expand.h"

enum { KEY = 0, COUNTER = 2 }; /* of the state's words: low, high */

static hlo_val word(struct hlo_builder *b, hlo_val words, int k) {
  return hlo_reshape(b, hlo_expand_part(b, words, 0, k, k + 1), 0, NULL);
}

static hlo_val over(struct hlo_builder *b, hlo_val scalar, const struct hlo_shape *s) {
  return s->rank ? hlo_broadcast(b, scalar, s->rank, s->dims, NULL) : scalar;
}

/* The place of each element in row-major order. */
static hlo_val positions(struct hlo_builder *b, const struct hlo_shape *s) {
  hlo_val all = NULL;
  int64_t stride = 1;
  for (int d = s->rank - 1; d >= 0; d--) {
    if (s->dims[d] < 2)
      continue;
    hlo_val along = hlo_iota(b, DT_U32, s->rank, s->dims, d);
    if (stride > 1)
      along = hlo_expand_with(b, HLO_MULTIPLY, along, (double)stride);
    all = all ? hlo_binary(b, HLO_ADD, all, along) : along;
    stride *= s->dims[d];
  }
  return all ? all : hlo_full(b, DT_U32, s->rank, s->dims, 0);
}

/* words += p: n words, the lowest first. */
static void add_wide(struct hlo_builder *b, int n, hlo_val *words, hlo_val p) {
  for (int k = 0; k < n; k++) {
    words[k] = hlo_binary(b, HLO_ADD, words[k], p);
    hlo_val carry = hlo_compare(b, HLO_LT, words[k], p); /* the sum wrapped around */
    p = hlo_convert(b, carry, DT_U32);
  }
}

/* ---- Threefry 2x32, 20 rounds ------------------------------------------------------------------------------- */

static hlo_val rotate_left(struct hlo_builder *b, hlo_val x, int bits) {
  return hlo_binary(b, HLO_OR, hlo_expand_with(b, HLO_SHIFT_LEFT, x, bits),
                    hlo_expand_with(b, HLO_SHIFT_RIGHT_LOGICAL, x, 32 - bits));
}

static void threefry(struct hlo_builder *b, hlo_val x[2], hlo_val const key[2]) {
  static const int rotations[2][4] = {{13, 15, 26, 6}, {17, 29, 16, 24}};
  hlo_val third = hlo_expand_with(b, HLO_XOR, hlo_binary(b, HLO_XOR, key[0], key[1]), 0x1BD11BDA);
  hlo_val keys[] = {key[0], key[1], third};
  for (int k = 0; k < 2; k++)
    x[k] = hlo_binary(b, HLO_ADD, x[k], over(b, keys[k], &x[k]->shape));
  for (int group = 0; group < 5 && !b->err.code; group++) {
    for (int k = 0; k < 4; k++) {
      x[0] = hlo_binary(b, HLO_ADD, x[0], x[1]);
      x[1] = hlo_binary(b, HLO_XOR, rotate_left(b, x[1], rotations[group % 2][k]), x[0]);
    }
    hlo_val last = hlo_expand_with(b, HLO_ADD, keys[(group + 2) % 3], group + 1);
    x[0] = hlo_binary(b, HLO_ADD, x[0], over(b, keys[(group + 1) % 3], &x[0]->shape));
    x[1] = hlo_binary(b, HLO_ADD, x[1], over(b, last, &x[1]->shape));
  }
}

/* The dimension along which the two words alternate: the first even one, or else the longest. */
static int split_dimension(const struct hlo_shape *s) {
  int at = 0;
  for (int d = 0; d < s->rank; d++)
    if (s->dims[d] % 2 == 0)
      return d;
  for (int d = 1; d < s->rank; d++)
    if (s->dims[d] > s->dims[at])
      at = d;
  return at;
}

/* Random bits in s's shape; advances the counter. */
static hlo_val generate_threefry(struct hlo_builder *b, hlo_val const *state, const struct hlo_shape *s,
                                 hlo_val *counter) {
  int64_t half[HLO_RANK_MAX + 1] = {1, 1}, whole[HLO_RANK_MAX] = {2};
  const int at = split_dimension(s), rank = s->rank ? s->rank : 1;
  for (int d = 0, to = 0; d < s->rank; d++) {
    half[to++] = d == at ? (s->dims[d] + 1) / 2 : s->dims[d];
    whole[d] = d == at ? 2 * half[to - 1] : s->dims[d];
    if (d == at)
      half[to++] = 1;
  }
  const struct hlo_shape part = {.dtype = DT_U32, .rank = rank + 1, .dims = half};
  if (part.rank > HLO_RANK_MAX)
    return NULL;
  hlo_val x[] = {over(b, state[COUNTER], &part), over(b, state[COUNTER + 1], &part)};
  add_wide(b, 2, x, positions(b, &part));
  if (b->err.code)
    return NULL;
  threefry(b, x, state + KEY);
  add_wide(b, 2, counter, hlo_scalar(b, DT_U32, (double)hlo_shape_elements(&part)));
  hlo_val all = hlo_reshape(b, hlo_concatenate(b, 2, x, at + 1), rank, whole);
  if (s->rank)
    return hlo_expand_part(b, all, at, 0, s->dims[at]);
  return hlo_reshape(b, hlo_expand_part(b, all, 0, 0, 1), 0, NULL);
}

/* ---- Philox 4x32, 10 rounds ----------------------------------------------------------------------------------- */

enum { HALF_BITS = 16, HALF_MASK = 0xffff };

/* The 64 bits of x * m, computed from products of halves, which fit into 32 bits. */
static void multiply_wide(struct hlo_builder *b, hlo_val x, uint32_t m, hlo_val *high, hlo_val *low) {
  const double m0 = m & HALF_MASK, m1 = m >> HALF_BITS;
  hlo_val x0 = hlo_expand_with(b, HLO_AND, x, HALF_MASK),
          x1 = hlo_expand_with(b, HLO_SHIFT_RIGHT_LOGICAL, x, HALF_BITS);
  hlo_val p00 = hlo_expand_with(b, HLO_MULTIPLY, x0, m0), p01 = hlo_expand_with(b, HLO_MULTIPLY, x0, m1),
          p10 = hlo_expand_with(b, HLO_MULTIPLY, x1, m0), p11 = hlo_expand_with(b, HLO_MULTIPLY, x1, m1);
  hlo_val t = hlo_binary(b, HLO_ADD, p10, hlo_expand_with(b, HLO_SHIFT_RIGHT_LOGICAL, p00, HALF_BITS));
  hlo_val u = hlo_binary(b, HLO_ADD, p01, hlo_expand_with(b, HLO_AND, t, HALF_MASK));
  hlo_val carries = hlo_binary(b, HLO_ADD, hlo_expand_with(b, HLO_SHIFT_RIGHT_LOGICAL, t, HALF_BITS),
                               hlo_expand_with(b, HLO_SHIFT_RIGHT_LOGICAL, u, HALF_BITS));
  *high = hlo_binary(b, HLO_ADD, p11, carries);
  *low = hlo_expand_with(b, HLO_MULTIPLY, x, m);
}

static void philox(struct hlo_builder *b, hlo_val x[4], hlo_val const key[2]) {
  static const uint32_t factors[2] = {0xD2511F53, 0xCD9E8D57}, steps[2] = {0x9E3779B9, 0xBB67AE85};
  for (uint32_t round = 0; round < 10 && !b->err.code; round++) {
    hlo_val high[2], low[2], keys[2];
    for (int k = 0; k < 2; k++) {
      const uint32_t step = round * steps[k];
      multiply_wide(b, x[2 * k], factors[k], &high[k], &low[k]);
      keys[k] = over(b, step ? hlo_expand_with(b, HLO_ADD, key[k], step) : key[k], &x[0]->shape);
    }
    x[0] = hlo_binary(b, HLO_XOR, hlo_binary(b, HLO_XOR, high[1], x[1]), keys[0]);
    x[2] = hlo_binary(b, HLO_XOR, hlo_binary(b, HLO_XOR, high[0], x[3]), keys[1]);
    x[1] = low[1];
    x[3] = low[0];
  }
}

/* The counters are a matrix with a row for each partition, because a single row would use one partition only.  It may
 * have more counters than are needed. */
static hlo_val generate_philox(struct hlo_builder *b, hlo_val const *state, const struct hlo_shape *s,
                               hlo_val *counter) {
  enum { ROWS = 128 };
  const int64_t n = hlo_shape_elements(s), counters = (n + 3) / 4;
  const int64_t dims[] = {counters < ROWS ? counters : ROWS, (counters + ROWS - 1) / ROWS, 1};
  const struct hlo_shape part = {.dtype = DT_U32, .rank = 3, .dims = dims};
  hlo_val x[4];
  for (int k = 0; k < 4; k++)
    x[k] = over(b, state[(COUNTER + k) % 4], &part);
  add_wide(b, 4, x, positions(b, &part));
  if (b->err.code)
    return NULL;
  philox(b, x, state + KEY);
  add_wide(b, 2, counter, hlo_scalar(b, DT_U32, (double)counters));
  const int64_t all = dims[0] * dims[1] * 4;
  hlo_val words = hlo_reshape(b, hlo_concatenate(b, 4, x, 2), 1, &all);
  return hlo_reshape(b, hlo_expand_part(b, words, 0, 0, n), s->rank, s->dims);
}

/* ---- the instruction --------------------------------------------------------------------------------------------- */

/* The words as u32[2,2]; NULL if they are not known. */
static hlo_val words_of(hlo_val state) {
  hlo_val x = state->op == HLO_BITCAST_CONVERT ? state->operands[0] : NULL;
  return x && x->shape.dtype == DT_U32 && x->shape.rank == 2 && x->shape.dims[0] == 2 ? x : NULL;
}

/* The random words as elements of t, from their low bits. */
static hlo_val as_type(struct hlo_builder *b, hlo_val words, enum dtype t) {
  if (dtype_size(t) == 4)
    return hlo_bitcast_convert(b, words, t);
  const enum dtype bits = dtype_size(t) == 2 ? DT_U16 : DT_U8;
  words = hlo_expand_with(b, HLO_AND, words, dtype_size(t) == 2 ? 0xffff : 0xff);
  return hlo_bitcast_convert(b, hlo_convert(b, words, bits), t);
}

hlo_val hlo_expand_rng(struct hlo_builder *b, struct hlo_instr *i) {
  static const int64_t flat[] = {4}, pairs[] = {2, 2}, one[] = {1};
  const struct hlo_shape *out = &i->shape.elems[1];
  const int64_t n = hlo_shape_elements(out);
  hlo_val words = words_of(i->operands[0]), state[4], next[4];
  if (!words || n <= 0 || n > UINT32_MAX || dtype_size(out->dtype) > 4)
    return i;
  words = hlo_reshape(b, words, 1, flat);
  for (int k = 0; k < 4; k++)
    next[k] = state[k] = word(b, words, k);
  hlo_val bits = i->attrs->rng == HLO_RNG_THREE_FRY ? generate_threefry(b, state, out, next + COUNTER)
                                                    : generate_philox(b, state, out, next + COUNTER);
  for (int k = 0; k < 4; k++)
    next[k] = hlo_reshape(b, next[k], 1, one);
  hlo_val after = hlo_bitcast_convert(b, hlo_reshape(b, hlo_concatenate(b, 4, next, 0), 2, pairs), DT_U64);
  return bits ? hlo_tuple(b, 2, (hlo_val[]){after, as_type(b, bits, out->dtype)}) : NULL;
}
