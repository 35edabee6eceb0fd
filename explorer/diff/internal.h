/* What the parts of diff share. */
#ifndef DIFF_INTERNAL_H
#define DIFF_INTERNAL_H

#include <stdint.h>

#include "diff/diff.h"

/* Everything of one diff lives until diff_clear.  Unlike base/arena.h, running out of memory is an answer: this runs in
 * the server. */
struct diff_memory *diff_memory_new(void);
void diff_memory_free(struct diff_memory *m);
/* n zeroed elements, NULL when out of memory. */
void *diff_alloc(struct diff_memory *m, size_t n, size_t size);

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
/* Splits a line; white space, loc(…) and metadata={…} are left out.  Returns the number of tokens. */
int diff_tokens(const char *line, int len, struct token *out);

/* An SSA name in a line. */
struct name {
  uint64_t hash;
  bool is_def;
  int value; /* what it stands for: equal on both sides for the same value; 0 unknown */
};

struct line {
  int start, len;  /* bytes in the text */
  uint64_t weak;   /* what the line says, without names */
  uint64_t strong; /* and what the lines that define its operands say */
  int names, n_names;
  bool is_constant; /* it defines a constant: the same wherever it stands */
};

struct side {
  struct diff_text text;
  struct line *lines;
  int n;
  struct name *names;
  int n_names, cap_names;
};

MUST_USE enum status diff_read(struct diff_memory *m, struct diff_text text, struct side *out, struct error *err);

/* match_from[i] = the line of `to` that line i of `from` equals, or -1; increasing. */
MUST_USE enum status diff_align(struct diff_memory *m, const struct side *from, const struct side *to, int *match_from,
                                struct error *err);

/* Longest common subsequence of two short lists by dynamic programming: pairs in order; returns their number.  `equal`
 * compares element i of one with j of the other. n and m at most DIFF_LCS_MAX. */
enum { DIFF_LCS_MAX = 512 };
int diff_lcs(int n, int m, bool (*equal)(void *user, int i, int j), void *user, int (*pairs)[2],
             unsigned short *scratch);

/* Unmatches lines whose operands changed, and fills d->hunks from what is left. */
MUST_USE enum status diff_hunks(struct diff_memory *m, struct side *from, struct side *to, int *match_from,
                                struct diff *d, struct error *err);

static inline uint64_t diff_mix(uint64_t h, uint64_t v) {
  h ^= v + 0x9e3779b97f4a7c15u + (h << 6) + (h >> 2);
  h *= 0xff51afd7ed558ccdu;
  return h ^ h >> 32;
}

/* A table from 64-bit keys to ints, open addressing; get gives `missing` for unknown keys. */
struct int_map {
  uint64_t *keys; /* 0: free */
  int *values;
  size_t cap, n;
};
MUST_USE bool int_map_init(struct diff_memory *m, struct int_map *t, size_t expected);
/* The slot of the key, made with value `fresh` if it is new.  At most the expected number of keys may be put. */
int *int_map_put(struct int_map *t, uint64_t key, int fresh);
int int_map_get(const struct int_map *t, uint64_t key, int missing);

#endif
