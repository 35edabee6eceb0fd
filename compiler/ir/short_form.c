/* short_form: rewrites nkigen's short form of annotations to the generic form that every MLIR parser reads.
 *
 *     nkipy.layout(%x : tensor<4xf32>) {mem_space = 3 : i32}
 *     "nkipy.layout"(%x) {mem_space = 3 : i32} : (tensor<4xf32>) -> ()
 *
 * Operations that are defined by IRDL have no assembly format of their own, so the text is rewritten before it is
 * parsed.  The line numbers do not change, nor do the columns of other operations, because each operation has its own
 * line in a dump.  Strings and comments are not changed.
 */
#include <ctype.h>
#include <string.h>

#include "ir/internal.h"

static const char *const names[] = {"nkipy.layout", "nkipy.tile_op", "nkipy.fuse_op"};

struct scan {
  const char *text;
  size_t len, at;
};

/* Returns the end of the string or comment that begins at `at`; `at` itself if none begins there. */
static size_t skip_quiet(const struct scan *s, size_t at) {
  if (s->text[at] == '"') {
    for (at++; at < s->len && s->text[at] != '"'; at++)
      at += s->text[at] == '\\' && at + 1 < s->len;
    return at < s->len ? at + 1 : at;
  }
  if (s->text[at] == '/' && at + 1 < s->len && s->text[at + 1] == '/')
    while (at < s->len && s->text[at] != '\n')
      at++;
  return at;
}

static size_t skip_blank(const struct scan *s, size_t at) {
  while (at < s->len && isspace((unsigned char)s->text[at]))
    at++;
  return at;
}

/* Returns the name of the annotation whose short form begins at `at`, or NULL.  *open: its parenthesis. */
static const char *name_at(const struct scan *s, size_t at, size_t *open) {
  if (at && (isalnum((unsigned char)s->text[at - 1]) || strchr("_.$!#%@\"", s->text[at - 1])))
    return NULL;
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    const size_t n = strlen(names[i]);
    if (s->len - at <= n || memcmp(s->text + at, names[i], n) != 0)
      continue;
    *open = skip_blank(s, at + n);
    return *open < s->len && s->text[*open] == '(' ? names[i] : NULL;
  }
  return NULL;
}

/* Returns the bracket that closes the one at `open`; 0 if it is not closed.  *colon: the first colon directly
 * inside, or 0. */
static size_t closing(const struct scan *s, size_t open, size_t *colon) {
  int depth = 0;
  *colon = 0;
  for (size_t at = open; at < s->len; at++) {
    const size_t after = skip_quiet(s, at);
    if (after != at) {
      at = after - 1;
      continue;
    }
    const char c = s->text[at];
    if (c == '-' && at + 1 < s->len && s->text[at + 1] == '>')
      at++;
    else if (strchr("([{<", c) && c)
      depth++;
    else if (strchr(")]}>", c) && c && --depth == 0)
      return at;
    else if (c == ':' && depth == 1 && !*colon)
      *colon = at;
  }
  return 0;
}

static void put(struct buf *out, const struct scan *s, size_t from, size_t to) {
  buf_append(out, s->text + from, to - from);
}

/* Writes one annotation in its generic form and moves past it; false if its form is not known. */
static bool rewrite(struct scan *s, const char *name, size_t open, struct buf *out) {
  size_t colon, ignored;
  const size_t close = closing(s, open, &colon);
  if (!close || !colon)
    return false;
  const size_t dict = skip_blank(s, close + 1), is_dict = dict < s->len && s->text[dict] == '{';
  const size_t end = is_dict ? closing(s, dict, &ignored) : close;
  if (!end)
    return false;
  buf_printf(out, "\"%s\"", name);
  put(out, s, open, colon);
  buf_puts(out, ")");
  put(out, s, close + 1, end + 1);
  buf_puts(out, " : (");
  put(out, s, colon + 1, close);
  buf_puts(out, ") -> ()");
  s->at = end + 1;
  return true;
}

enum status ir_long_form(const char *text, size_t len, struct buf *out, size_t *wrong) {
  struct scan s = {text, len, 0};
  size_t copied = 0, open;
  while (s.at < len) {
    const size_t after = skip_quiet(&s, s.at);
    const char *name = after == s.at && text[s.at] == 'n' ? name_at(&s, s.at, &open) : NULL;
    if (!name) {
      s.at = after == s.at ? s.at + 1 : after;
      continue;
    }
    put(out, &s, copied, s.at);
    *wrong = s.at;
    if (!rewrite(&s, name, open, out))
      return ST_INPUT;
    copied = s.at;
  }
  put(out, &s, copied, len);
  return buf_status(out);
}
