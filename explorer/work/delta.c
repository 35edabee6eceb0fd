#include "work/delta.h"

#include <string.h>

#include "base/arena.h"
#include "base/index.h"
#include "base/json.h"

/* ---- lines of a JSON string -------------------------------------------------------------------------------------- */

/* Lines stay escaped: equal lines have equal escapes, because one printer has written both texts. */
struct line {
  const char *p;
  size_t len;
  uint32_t hash;
};

struct lines {
  struct line *at;
  int n;
};

/* Returns the end of the line that begins at p: the next escaped newline, or end. */
static const char *line_end(const char *p, const char *end) {
  for (; p < end; p++) {
    p = memchr(p, '\\', (size_t)(end - p));
    if (!p)
      return end;
    if (p[1] == 'n')
      return p;
    p++; /* the character that the backslash escapes */
  }
  return end;
}

/* Splits a JSON string; false when out of memory. */
static bool split(struct arena *a, const struct frame_member *m, struct lines *out) {
  const char *p = m->value + 1, *end = m->value + m->value_len - 1;
  size_t n = 1;
  for (const char *q = p; (q = line_end(q, end)) < end; q += 2)
    n++;
  out->n = 0;
  out->at = arena_try_array(a, n, sizeof *out->at);
  if (!out->at)
    return false;
  for (;; p += 2) {
    const char *q = line_end(p, end);
    out->at[out->n++] = (struct line){p, (size_t)(q - p), hash_bytes(p, (size_t)(q - p))};
    p = q;
    if (p == end)
      return true;
  }
}

static bool is_equal(const struct line *a, const struct line *b) {
  return a->hash == b->hash && a->len == b->len && !memcmp(a->p, b->p, a->len);
}

/* ---- the text ---------------------------------------------------------------------------------------------------- */

/* Lines of the base by their hashes.  The first line of each hash is enough: a run of copied lines goes on in order, so
 * the index is asked only where a run begins. */
static bool index_lines(struct index *x, const struct lines *l) {
  if (!index_reserve(x, (size_t)l->n))
    return false;
  for (int i = 0; i < l->n; i++) {
    struct index_probe p = index_probe(x, l->at[i].hash);
    if (!index_next(&p))
      index_add(x, l->at[i].hash, i);
  }
  return true;
}

/* Returns the line of the base that `line` equals, or -1; the places in `expected` are tried first. */
static int find(const struct index *x, const struct lines *base, const struct line *line, const int expected[2]) {
  for (int i = 0; i < 2; i++)
    if (expected[i] < base->n && is_equal(&base->at[expected[i]], line))
      return expected[i];
  for (struct index_probe p = index_probe(x, line->hash); index_next(&p);)
    if (is_equal(&base->at[p.entry], line))
      return p.entry;
  return -1;
}

static void put_run(struct buf *out, int first, int count) {
  if (!count)
    return;
  json_put_comma(out);
  buf_printf(out, "[%d,%d]", first + 1, count);
}

static void put_line(struct buf *out, const struct line *l) {
  json_put_comma(out);
  buf_putc(out, '"');
  buf_append(out, l->p, l->len);
  buf_putc(out, '"');
}

/* After new lines, the next run is expected where the base goes on if they took the place of as many lines, or else if
 * they were inserted. */
static void put_lines(struct buf *out, const struct lines *text, const struct lines *base, const struct index *x) {
  int first = 0, count = 0, n_new = 0; /* the run of copied lines; new lines after it */
  buf_putc(out, '[');
  for (int i = 0; i < text->n; i++) {
    const int expected[2] = {first + count + n_new, first + count};
    const int at = find(x, base, &text->at[i], expected);
    if (at >= 0 && at == first + count && !n_new) {
      count++;
      continue;
    }
    if (!n_new)
      put_run(out, first, count);
    if (at < 0) {
      put_line(out, &text->at[i]);
      n_new++;
      continue;
    }
    first = at;
    count = 1;
    n_new = 0;
  }
  if (!n_new)
    put_run(out, first, count);
  buf_putc(out, ']');
}

/* Appends the value of the member "text"; as it is, if memory runs out. */
static void put_text(struct buf *out, const struct frame_member *text, const struct frame_member *base) {
  struct arena a;
  struct lines mine, theirs;
  struct index x = {.arena = &a};
  arena_init(&a);
  if (*text->value == '"' && *base->value == '"' && split(&a, text, &mine) && split(&a, base, &theirs) &&
      index_lines(&x, &theirs))
    put_lines(out, &mine, &theirs, &x);
  else
    buf_append(out, text->value, text->value_len);
  arena_clear(&a);
}

/* ---- the frame --------------------------------------------------------------------------------------------------- */

static bool is_member(const struct frame_member *m, const char *key) {
  return m->key_len == strlen(key) && !memcmp(m->key, key, m->key_len);
}

static const struct frame_member *twin(const struct frame *base, const struct frame_member *m) {
  for (int i = 0; i < base->n; i++)
    if (base->members[i].key_len == m->key_len && !memcmp(base->members[i].key, m->key, m->key_len))
      return &base->members[i];
  return NULL;
}

/* The index says which stage the base is, so it is always sent. */
static bool is_same(const struct frame_member *m, const struct frame_member *b) {
  return b && m->value_len == b->value_len && !memcmp(m->value, b->value, m->value_len) && !is_member(m, "index");
}

static void put_key(struct buf *out, const struct frame_member *m) {
  json_put_comma(out);
  buf_putc(out, '"');
  buf_append(out, m->key, m->key_len);
  buf_puts(out, "\":");
}

static void put_delta(struct buf *out, int kernel, const struct frame *stage, const struct frame *base) {
  buf_printf(out, "{\"frame\":\"stage\",\"kernel\":%d,\"same\":[", kernel);
  for (int i = 0; i < stage->n; i++) {
    const struct frame_member *m = &stage->members[i];
    if (!is_same(m, twin(base, m)))
      continue;
    json_put_comma(out);
    buf_putc(out, '"');
    buf_append(out, m->key, m->key_len);
    buf_putc(out, '"');
  }
  buf_puts(out, "],\"stage\":{");
  for (int i = 0; i < stage->n; i++) {
    const struct frame_member *m = &stage->members[i], *b = twin(base, m);
    if (is_same(m, b))
      continue;
    put_key(out, m);
    if (b && is_member(m, "text"))
      put_text(out, m, b);
    else
      buf_append(out, m->value, m->value_len);
  }
  buf_puts(out, "}}");
}

bool delta_read(struct delta *d, const char *frame, size_t len) {
  struct frame f;
  if (frame_scan(frame, len, &f, NULL) || f.kind != FRAME_STAGE)
    return false;
  const struct frame_member *m = frame_get(&f, "stage");
  if (frame_scan_object(m->value, m->value_len, &d->stage, NULL))
    return false;
  d->which = (struct gather_stage){.kernel = (int)frame_int(&f, "kernel"), .nth = (int)frame_int(&d->stage, "index")};
  d->len = len;
  return d->which.nth >= 0;
}

bool delta_put(const struct delta *d, const char *base, size_t base_len, struct buf *out) {
  struct frame before;
  const size_t at = out->len;
  if (frame_scan_object(base, base_len, &before, NULL))
    return false;
  put_delta(out, d->which.kernel, &d->stage, &before);
  if (!buf_status(out) && out->len - at < d->len)
    return true;
  if (!buf_status(out))
    out->len = at;
  return false;
}
