#include "diff/diff.h"

#include <assert.h>

#include "base/utf8.h"
#include "diff/internal.h"

/* Room that suffices for most diffs.  An arena's block of at least 4 MiB comes zeroed from the system, page by page as
 * it is used, which takes less time than zeroing each of our large and sparsely used arrays. */
enum { ROOM = 4 << 20, ROOM_PER_BYTE = 8 };

static enum status make(struct diff_text from, struct diff_text to, struct diff *out, struct error *err) {
  struct side a, b;
  if (from.len > DIFF_TEXT_MAX || to.len > DIFF_TEXT_MAX)
    return fail(err, ST_LIMIT, "the text is longer than %d MiB", DIFF_TEXT_MAX >> 20);
  if (from.len + to.len > 8192 && !arena_reserve(&out->arena, ROOM + ROOM_PER_BYTE * (from.len + to.len)))
    return diff_no_memory(err);
  enum status st = diff_read(&out->arena, from, &a, err);
  if (!st)
    st = diff_read(&out->arena, to, &b, err);
  if (st)
    return st;
  out->lines_from = a.n;
  out->lines_to = b.n;
  int *match = arena_try_array(&out->arena, (size_t)a.n + 1, sizeof *match);
  if (!match)
    return diff_no_memory(err);
  st = diff_align(&out->arena, &a, &b, match, err);
  return st ? st : diff_hunks(&out->arena, &a, &b, match, out, err);
}

enum status diff_make(struct diff_text from, struct diff_text to, struct diff *out, struct error *err) {
  *out = (struct diff){0};
  arena_init(&out->arena);
  enum status st = make(from, to, out, err);
  if (st)
    diff_clear(out);
  return st;
}

void diff_clear(struct diff *d) {
  arena_clear(&d->arena);
  *d = (struct diff){0};
}

/* ---- JSON -------------------------------------------------------------------------------------------------------- */

/* A place in a text; it only moves forward. */
struct cursor {
  struct diff_text text;
  size_t at;
  int line; /* 1-based, of `at` */
};

static const char *line_at(struct cursor *c, int line) {
  assert(line >= c->line);
  while (c->line < line && c->at < c->text.len)
    if (c->text.data[c->at++] == '\n')
      c->line++;
  return c->text.data + c->at;
}

/* The column of a byte of the line; the text may be any bytes, so utf8_count, which wants valid ones, does not
 * serve. */
static int column(const char *line, int byte) {
  int n = 1;
  for (int i = 0; i < byte; i++)
    n += !utf8_is_continuation(line[i]);
  return n;
}

static void put_words(struct buf *out, const char *key, const char *line, const struct diff_words *w, int n) {
  buf_printf(out, ",\"%s\":[", key);
  for (int i = 0; i < n; i++)
    buf_printf(out, "%s[%d,%d]", i ? "," : "", column(line, w[i].start), column(line, w[i].end));
  buf_puts(out, "]");
}

void diff_json(const struct diff *d, struct diff_text from, struct diff_text to, struct buf *out) {
  struct cursor a = {from, 0, 1}, b = {to, 0, 1};
  buf_printf(out, "{\"lines_from\":%d,\"lines_to\":%d,\"changed\":%d,\"removed\":%d,\"added\":%d,\"hunks\":[",
             d->lines_from, d->lines_to, d->n_changed, d->n_removed, d->n_added);
  for (int i = 0; i < d->n; i++) {
    const struct diff_hunk *h = &d->hunks[i];
    buf_printf(out, "%s{\"from\":{\"line\":%d,\"count\":%d},\"to\":{\"line\":%d,\"count\":%d},\"pairs\":[",
               i ? "," : "", h->from, h->n_from, h->to, h->n_to);
    for (int k = 0; k < h->n_pairs; k++) {
      const struct diff_pair *p = &h->pairs[k];
      buf_printf(out, "%s{\"from\":%d,\"to\":%d", k ? "," : "", p->from, p->to);
      put_words(out, "words_from", line_at(&a, p->from), p->words_from, p->n_from);
      put_words(out, "words_to", line_at(&b, p->to), p->words_to, p->n_to);
      buf_puts(out, "}");
    }
    buf_puts(out, "]}");
  }
  buf_puts(out, "]}");
}
