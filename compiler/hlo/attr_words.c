/* attr_words: attributes that are one word of a list, which protos number, and numbers that protos keep in 32 bits. */
#include <assert.h>
#include <string.h>

#include "hlo/attrs.h"

/* ---- words: the place of a word in its list is its number ------------------------------------------------------------ */

struct words {
  const char *what; /* for the message: "an algorithm" */
  int n;
  const char *v[6]; /* NULL: a number without a word */
};

static bool word_read(struct hlo_cursor *c, const struct words *w, void *v) {
  struct hlo_span word;
  if (!hlo_cur_word(c, &word, w->what))
    return false;
  for (int k = 0; k < w->n; k++)
    if (w->v[k] && hlo_span_is(word, w->v[k])) {
      memcpy(v, &k, sizeof k);
      return true;
    }
  return hlo_cur_fail(c, word, DG_HLO_INVALID, "%.*s is not %s", (int)word.len, word.at, w->what);
}

static void word_put(struct buf *out, const struct words *w, const void *v) {
  int k;
  memcpy(&k, v, sizeof k);
  assert(k >= 0 && k < w->n && w->v[k]);
  buf_puts(out, w->v[k]);
}

static void word_to_proto(struct arena *a, const struct hlo_instr *i, const void *v, struct hlo_proto_place to) {
  (void)a, (void)i;
  memcpy(to.field, v, sizeof(int32_t));
}

static bool word_from_proto(struct hlo_proto_reader *r, const struct words *w, struct hlo_proto_place from, void *v) {
  int32_t k;
  memcpy(&k, from.field, sizeof k);
  if (k < 0 || k >= w->n || !w->v[k])
    return hlo_proto_refuse(r, DG_HLO_INVALID, "%d is not the number of %s", k, w->what);
  memcpy(v, &k, sizeof k);
  return true;
}

/* The functions of a kind of words; `given` is the number that the text omits and that 0 means in a proto. */
#define WORDS(name, given, ...) \
  static const struct words name##_words = {__VA_ARGS__}; \
  static void name##_start(void *v) { \
    memcpy(v, &(int){given}, sizeof(int)); \
  } \
  static bool name##_is_none(const void *v) { \
    return !memcmp(v, &(int){given}, sizeof(int)); \
  } \
  static void name##_put(struct buf *out, const struct hlo_instr *i, const void *v) { \
    (void)i; \
    word_put(out, &name##_words, v); \
  } \
  static bool name##_read(struct hlo_cursor *c, const struct hlo_instr *i, void *v) { \
    (void)i; \
    return word_read(c, &name##_words, v); \
  } \
  static bool name##_from_proto(struct hlo_proto_reader *r, const struct hlo_instr *i, struct hlo_proto_place from, \
                                void *v) { \
    (void)i; \
    if (*(const int32_t *)from.field) \
      return word_from_proto(r, &name##_words, from, v); \
    name##_start(v); \
    return true; \
  } \
  const struct hlo_attr_kind hlo_kind_##name = {.start = name##_start, \
                                                .is_none = name##_is_none, \
                                                .put = name##_put, \
                                                .read = name##_read, \
                                                .to_proto = word_to_proto, \
                                                .from_proto = name##_from_proto};

WORDS(rng, HLO_RNG_DEFAULT, "an algorithm", 3, {"rng_default", "rng_three_fry", "rng_philox"})
WORDS(fft_type, HLO_FFT_FORWARD, "a kind of Fourier transform", 4, {"FFT", "IFFT", "RFFT", "IRFFT"})
WORDS(transpose, HLO_TRANSPOSE_NO, "a transposition", 4, {NULL, "NO_TRANSPOSE", "TRANSPOSE", "ADJOINT"})
WORDS(call_api, HLO_API_ORIGINAL, "a version of the interface", 5,
      {NULL, "API_VERSION_ORIGINAL", "API_VERSION_STATUS_RETURNING", "API_VERSION_STATUS_RETURNING_UNIFIED",
       "API_VERSION_TYPED_FFI"})

/* ---- numbers of 32 bits ------------------------------------------------------------------------------------------------ */

static void small_number_put(struct buf *out, const struct hlo_instr *i, const void *v) {
  (void)i;
  buf_put_int(out, *(const int64_t *)v);
}

static bool small_number_read(struct hlo_cursor *c, const struct hlo_instr *i, void *v) {
  int64_t n;
  (void)i;
  if (!hlo_cur_int(c, &n))
    return false;
  if (n != (int32_t)n)
    return hlo_cur_refuse_here(c, "a number of 32 bits");
  *(int64_t *)v = n;
  return true;
}

static void small_number_to_proto(struct arena *a, const struct hlo_instr *i, const void *v,
                                  struct hlo_proto_place to) {
  (void)a, (void)i;
  *(int32_t *)to.field = (int32_t)*(const int64_t *)v;
}

static bool small_number_from_proto(struct hlo_proto_reader *r, const struct hlo_instr *i, struct hlo_proto_place from,
                                    void *v) {
  (void)r, (void)i;
  *(int64_t *)v = *(const int32_t *)from.field;
  return true;
}

const struct hlo_attr_kind hlo_kind_small_number = {.put = small_number_put,
                                                    .read = small_number_read,
                                                    .to_proto = small_number_to_proto,
                                                    .from_proto = small_number_from_proto};
