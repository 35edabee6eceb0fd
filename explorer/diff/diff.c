/* diff: see the header. */
#include "diff/internal.h"

enum status diff_make(struct diff_text from, struct diff_text to, struct diff *out, struct error *err) {
  *out = (struct diff){.memory = diff_memory_new()};
  struct side a, b;
  enum status st = out->memory ? ST_OK : fail(err, ST_NOMEM, "out of memory while comparing two texts");
  if (st == ST_OK)
    st = diff_read(out->memory, from, &a, err);
  if (st == ST_OK)
    st = diff_read(out->memory, to, &b, err);
  if (st == ST_OK) {
    int *match = diff_alloc(out->memory, (size_t)a.n + 1, sizeof *match);
    out->lines_from = a.n;
    out->lines_to = b.n;
    st = match ? diff_align(out->memory, &a, &b, match, err)
               : fail(err, ST_NOMEM, "out of memory while comparing two texts");
    if (st == ST_OK)
      st = diff_hunks(out->memory, &a, &b, match, out, err);
  }
  if (st != ST_OK)
    diff_clear(out);
  return st;
}

void diff_clear(struct diff *d) {
  diff_memory_free(d->memory);
  *d = (struct diff){0};
}

/* ---- JSON --------------------------------------------------------------------------------------------------------- */

/* A place in a text that only moves forward. */
struct cursor {
  struct diff_text text;
  size_t at;
  int line; /* 1-based, of `at` */
};

static const char *line_at(struct cursor *c, int line) {
  while (c->line < line && c->at < c->text.len)
    if (c->text.data[c->at++] == '\n')
      c->line++;
  return c->text.data + c->at;
}

static int column(const char *line, int byte) {
  int n = 1;
  for (int i = 0; i < byte; i++)
    n += ((unsigned char)line[i] & 0xc0) != 0x80;
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
