/* resume_text: see the header.
 *
 * Long constants are printed without their elements, as "{...}" in HLO and "dense_resource<__elided__>" in MLIR.  The whole
 * text has the same lines, so the elements of a constant are what the whole line has between the parts of the shown one:
 *
 *     shown    %c = f32[9000] constant({...})
 *     whole    %c = f32[9000] constant({1, 2, …})
 */
#include "driver/resume_text.h"

#include <assert.h>
#include <string.h>

#include "diff/diff.h"

static const char *const marks[] = {"{...}", "dense_resource<__elided__>"};

struct piece {
  const char *at;
  size_t len;
};

/* The first mark in a piece; {NULL, 0} if there is none. */
static struct piece find_mark(struct piece in) {
  struct piece first = {NULL, 0};
  for (size_t i = 0; i < sizeof marks / sizeof *marks; i++) {
    const char *at = memmem(in.at, in.len, marks[i], strlen(marks[i]));
    if (at && (!first.at || at < first.at))
      first = (struct piece){at, strlen(marks[i])};
  }
  return first;
}

size_t resume_elided_at(const char *text, size_t len) {
  const struct piece mark = find_mark((struct piece){text, len});
  return mark.at ? (size_t)(mark.at - text) : len;
}

static struct piece after(struct piece all, struct piece part) {
  const char *from = part.at + part.len;
  return (struct piece){from, all.len - (size_t)(from - all.at)};
}

static int count(const char *text, size_t len) {
  int n = 1;
  for (size_t i = 0; i < len; i++)
    n += text[i] == '\n';
  return n;
}

/* ---- matching ---------------------------------------------------------------------------------------------------- */

/* Pairs lines up to line `from` of the stage and line `to` of the changed text, which are not in a hunk. */
static void pair_equal(struct resume_lines *out, int *old, int *new, int to) {
  for (; *new < to; ++*old, ++*new)
    out->old[*new - 1] = *old;
}

enum status resume_match(struct arena *a, const struct resume_text *t, struct resume_lines *out, struct error *err) {
  struct diff d;
  int old = 1, new = 1;
  enum status st =
      diff_make((struct diff_text){t->shown, t->shown_len}, (struct diff_text){t->changed, t->changed_len}, &d, err);
  if (st)
    return st;
  out->n_old = count(t->shown, t->shown_len);
  out->n = d.lines_to;
  out->old = arena_new_array(a, int, (size_t)d.lines_to);
  for (int i = 0; i < d.n; i++) {
    const struct diff_hunk *h = &d.hunks[i];
    pair_equal(out, &old, &new, h->to);
    assert(old == h->from);
    for (int k = 0; k < h->n_pairs; k++)
      out->old[h->pairs[k].to - 1] = h->pairs[k].from;
    old += h->n_from;
    new += h->n_to;
  }
  pair_equal(out, &old, &new, d.lines_to + 1);
  diff_clear(&d);
  return ST_OK;
}

/* ---- restoring --------------------------------------------------------------------------------------------------- */

/* Takes the next line of a text. */
static struct piece next_line(struct piece *rest) {
  const char *end = memchr(rest->at, '\n', rest->len);
  const struct piece line = {rest->at, end ? (size_t)(end - rest->at) : rest->len};
  *rest = (struct piece){line.at + line.len + (end != NULL), rest->len - line.len - (end != NULL)};
  return line;
}

static struct piece *split(struct arena *a, const char *text, size_t len, int n) {
  struct piece rest = {text, len}, *lines = arena_new_array(a, struct piece, (size_t)n);
  for (int k = 0; k < n; k++)
    lines[k] = next_line(&rest);
  return lines;
}

/* Appends a changed line with the elements that the stage's line has at each mark.  False if it has more marks. */
static bool put_line(struct buf *out, struct piece changed, struct piece shown, struct piece whole) {
  for (;;) {
    const struct piece mark = find_mark(changed);
    if (!mark.at) {
      buf_append(out, changed.at, changed.len);
      return true;
    }
    const struct piece known = shown.len ? find_mark(shown) : (struct piece){NULL, 0};
    if (!known.at)
      return false;
    /* the whole line goes on as the shown one does, up to the next mark */
    const size_t before = (size_t)(known.at - shown.at);
    const struct piece rest = after(shown, known), next = find_mark(rest);
    const struct piece tail = {rest.at, next.at ? (size_t)(next.at - rest.at) : rest.len};
    if (whole.len < before + tail.len)
      return false;
    const struct piece data = {whole.at + before, whole.len - before};
    const char *end = next.at ? memmem(data.at, data.len, tail.at, tail.len) : data.at + data.len - tail.len;
    if (!end)
      return false;
    buf_append(out, changed.at, (size_t)(mark.at - changed.at));
    buf_append(out, data.at, (size_t)(end - data.at));
    whole = (struct piece){end, data.len - (size_t)(end - data.at)};
    shown = rest;
    changed = after(changed, mark);
  }
}

enum status resume_restore(const struct resume_text *t, const struct resume_lines *lines, struct buf *out, int *bad) {
  struct arena a;
  const int n = lines->n_old, n_changed = count(t->changed, t->changed_len);
  enum status st = ST_OK;
  assert(n == count(t->whole, t->whole_len));
  arena_init(&a);
  const struct piece *shown = split(&a, t->shown, t->shown_len, n), *whole = split(&a, t->whole, t->whole_len, n);
  struct piece rest = {t->changed, t->changed_len};
  for (int k = 0; !st && k < n_changed; k++) {
    const int old = k < lines->n ? lines->old[k] : 0;
    const struct piece line = next_line(&rest), none = {"", 0};
    *bad = k + 1;
    if (!put_line(out, line, old ? shown[old - 1] : none, old ? whole[old - 1] : none))
      st = ST_INPUT;
    else if (k + 1 < n_changed)
      buf_putc(out, '\n');
  }
  arena_clear(&a);
  return st ? st : buf_status(out);
}
