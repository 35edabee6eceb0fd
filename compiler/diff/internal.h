/* What the parts of diff share. */
#ifndef DIFF_INTERNAL_H
#define DIFF_INTERNAL_H

#include <stdint.h>

#include "diff/diff.h"

/* Everything of one diff lives in its arena.  Memory is taken with arena_try_array only, because this runs in the
 * server, where running out of memory is an answer. */
static inline enum status diff_no_memory(struct error *err) {
  return fail(err, ST_NOMEM, "out of memory while comparing two texts");
}

enum token_kind {
  TOKEN_WORD,
  TOKEN_NAME,  /* %x */
  TOKEN_ALIAS, /* #map1, !t */
  TOKEN_BLOCK, /* ^bb1 */
  TOKEN_STRING,
  TOKEN_PUNCT,
};

struct token {
  int start, end; /* bytes in the line */
  enum token_kind kind;
  uint64_t hash; /* of its text */
};

enum { TOKENS_MAX = 4096 }; /* of one line; the rest of a longer one is one word */
/* Splits a line; leaves out white space, loc(…) and metadata={…}.  Returns the number of tokens. */
int diff_tokens(const char *line, int len, struct token *out);

/* An SSA name in a line. */
struct name {
  uint64_t hash;
  bool is_def;
  int value; /* equal on both sides for the same SSA value; 0: unknown */
};

struct line {
  int start, len;  /* bytes in the text */
  uint64_t weak;   /* hash of what the line says, without names */
  uint64_t strong; /* hash of that, and of what the lines that define its operands say */
  int names, n_names;
  bool is_constant; /* it defines a constant, which is the same wherever it is defined */
};

struct side {
  struct diff_text text;
  struct line *lines;
  int n;
  struct name *names;
  int n_names, cap_names;
};

MUST_USE enum status diff_read(struct arena *arena, struct diff_text text, struct side *out, struct error *err);

/* match_from[i]: the line of `to` that matches line i of `from`, or -1.  Matches keep their order. */
MUST_USE enum status diff_align(struct arena *arena, const struct side *from, const struct side *to, int *match_from,
                                struct error *err);

/* Fills d->hunks from the lines without a match and from those whose operands changed. */
MUST_USE enum status diff_hunks(struct arena *arena, struct side *from, struct side *to, int *match_from,
                                struct diff *d, struct error *err);

static inline uint64_t diff_mix(uint64_t h, uint64_t v) {
  h ^= v + 0x9e3779b97f4a7c15u + (h << 6) + (h >> 2);
  h *= 0xff51afd7ed558ccdu;
  return h ^ h >> 32;
}

/* A map from 64-bit keys to ints, with open addressing (map.c). */
struct int_map {
  uint64_t *keys; /* 0: free */
  int *values;
  size_t cap, n; /* cap: slots, a power of two */
};
/* False when out of memory.  At most `expected` keys may be put. */
MUST_USE bool int_map_init(struct arena *arena, struct int_map *t, size_t expected);
/* The value of the key, which is `fresh` if the key is new. */
int *int_map_put(struct int_map *t, uint64_t key, int fresh);
int int_map_get(const struct int_map *t, uint64_t key, int missing);

#endif
