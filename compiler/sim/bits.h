/* bits: ranges of a row of bits, 64 in a word. */
#ifndef SIM_BITS_H
#define SIM_BITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

static inline size_t sim_bits_bytes(size_t n) {
  return (n + 63) / 64 * 8;
}

static inline bool sim_bit_get(const uint64_t *bits, int64_t k) {
  return bits[k >> 6] >> (k & 63) & 1;
}

static inline void sim_bit_set(uint64_t *bits, int64_t k) {
  bits[k >> 6] |= UINT64_C(1) << (k & 63);
}

/* The bits of the range first … last in the first and in the last of its words. */
static inline uint64_t sim_bits_from(int64_t first) {
  return ~UINT64_C(0) << (first & 63);
}
static inline uint64_t sim_bits_up_to(int64_t last) {
  return ~UINT64_C(0) >> (63 - (last & 63));
}

/* True if the n bits from `first` on are all set. */
static inline bool sim_bits_all(const uint64_t *bits, int64_t first, int64_t n) {
  if (n <= 0)
    return true;
  const int64_t last = first + n - 1, a = first >> 6, b = last >> 6;
  if (a == b)
    return !(~bits[a] & sim_bits_from(first) & sim_bits_up_to(last));
  uint64_t missing = (~bits[a] & sim_bits_from(first)) | (~bits[b] & sim_bits_up_to(last));
  for (int64_t w = a + 1; w < b; w++)
    missing |= ~bits[w];
  return !missing;
}

/* Sets the n bits from `first` on to v. */
static inline void sim_bits_fill(uint64_t *bits, int64_t first, int64_t n, bool v) {
  if (n <= 0)
    return;
  const int64_t last = first + n - 1, a = first >> 6, b = last >> 6;
  const uint64_t head = a == b ? sim_bits_from(first) & sim_bits_up_to(last) : sim_bits_from(first);
  bits[a] = v ? bits[a] | head : bits[a] & ~head;
  if (a == b)
    return;
  for (int64_t w = a + 1; w < b; w++)
    bits[w] = v ? ~UINT64_C(0) : 0;
  bits[b] = v ? bits[b] | sim_bits_up_to(last) : bits[b] & ~sim_bits_up_to(last);
}

#endif
