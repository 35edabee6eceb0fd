/* Two texts, divided by the first NUL: the hunks account for every line of both, and a text equals itself. */
#include <string.h>

#include <jansson.h>

#include "diff/diff.h"
#include "fuzz.h"

enum { JSON_ROOM = 64 << 20 };

static void check_words(const struct diff_words *w, int n) {
  for (int i = 0; i < n; i++)
    FUZZ_CHECK(w[i].start < w[i].end && w[i].start >= (i ? w[i - 1].end : 0));
}

static void check_hunk(const struct diff_hunk *h) {
  int from = h->from, to = h->to;
  FUZZ_CHECK(h->n_from >= 0 && h->n_to >= 0 && h->n_from + h->n_to > 0);
  for (int i = 0; i < h->n_pairs; i++) {
    const struct diff_pair *p = &h->pairs[i];
    FUZZ_CHECK(p->from >= from && p->from < h->from + h->n_from && p->to >= to && p->to < h->to + h->n_to);
    from = p->from + 1, to = p->to + 1;
    check_words(p->words_from, p->n_from);
    check_words(p->words_to, p->n_to);
  }
}

/* Between hunks both sides go on together, line for line. */
static void check_hunks(const struct diff *d) {
  int from = 1, to = 1, changed = 0, removed = 0, added = 0;
  for (int i = 0; i < d->n; i++) {
    const struct diff_hunk *h = &d->hunks[i];
    FUZZ_CHECK(h->from >= from && h->from - from == h->to - to);
    FUZZ_CHECK(i == 0 || h->from > from || h->to > to);
    check_hunk(h);
    from = h->from + h->n_from, to = h->to + h->n_to;
    changed += h->n_pairs, removed += h->n_from - h->n_pairs, added += h->n_to - h->n_pairs;
  }
  FUZZ_CHECK(d->lines_from - from == d->lines_to - to);
  FUZZ_CHECK(changed == d->n_changed && removed == d->n_removed && added == d->n_added);
}

static void check_json(const struct diff *d, struct diff_text from, struct diff_text to) {
  struct buf b;
  buf_init(&b, JSON_ROOM);
  diff_json(d, from, to, &b);
  FUZZ_CHECK(buf_status(&b) == ST_OK);
  json_t *parsed = json_loadb(buf_text(&b), b.len, JSON_REJECT_DUPLICATES, NULL);
  FUZZ_CHECK(parsed && json_array_size(json_object_get(parsed, "hunks")) == (size_t)d->n);
  json_decref(parsed);
  buf_clear(&b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  const uint8_t *nul = size ? memchr(data, 0, size) : NULL;
  size_t n = nul ? (size_t)(nul - data) : size;
  struct diff_text from = {(const char *)data, n}, to = {(const char *)data + n + !!nul, size - n - !!nul};
  struct diff d;
  struct error err;

  FUZZ_CHECK(diff_make(from, to, &d, &err) == ST_OK);
  check_hunks(&d);
  check_json(&d, from, to);
  diff_clear(&d);
  FUZZ_CHECK(diff_make(from, from, &d, &err) == ST_OK);
  FUZZ_CHECK(d.n == 0);
  diff_clear(&d);
  return 0;
}
