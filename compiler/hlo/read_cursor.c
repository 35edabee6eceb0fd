/* read_cursor: the small parts of HLO text: words, numbers, strings and lists. */
#include "hlo/read_text.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/utf8.h"

/* ---- places and errors --------------------------------------------------------------------------------------------- */

static void locate(const struct hlo_cursor *c, const char *at, int *line, int *col) {
  assert(at >= c->text);
  const size_t offset = (size_t)(at - c->text);
  int lo = 0, hi = c->n_lines - 1;
  while (lo < hi) {
    int mid = (lo + hi + 1) / 2;
    if (c->line_starts[mid] <= offset)
      lo = mid;
    else
      hi = mid - 1;
  }
  const char *start = c->text + c->line_starts[lo];
  *line = lo + 1;
  *col = 1 + (int)utf8_count(start, (size_t)(at - start));
}

struct src_loc *hlo_cur_place(struct hlo_cursor *c, struct hlo_span where) {
  struct src_loc *p = arena_new(c->a, struct src_loc);
  p->range.file = c->file;
  locate(c, where.at, &p->range.line, &p->range.col);
  locate(c, where.at + where.len, &p->range.end_line, &p->range.end_col);
  return p;
}

void hlo_cur_start(struct hlo_cursor *c, struct arena *a, struct arena *tmp, const char *text, size_t len,
                   const char *file, struct diags *ds) {
  assert(!text[len]);
  size_t n = 1;
  for (size_t i = 0; i < len; i++)
    n += text[i] == '\n';
  size_t *starts = arena_new_array(tmp, size_t, n);
  n = 1;
  for (size_t i = 0; i < len; i++)
    if (text[i] == '\n')
      starts[n++] = i + 1;
  *c = (struct hlo_cursor){.at = text,
                           .end = text + len,
                           .text = text,
                           .file = file,
                           .a = a,
                           .tmp = tmp,
                           .ds = ds,
                           .line_starts = starts,
                           .n_lines = (int)n};
}

struct hlo_cursor hlo_cur_within(const struct hlo_cursor *c, struct hlo_span s) {
  struct hlo_cursor in = *c;
  assert(s.at >= c->text);
  in.at = s.at;
  in.end = s.at + s.len;
  return in;
}

bool hlo_cur_fail(struct hlo_cursor *c, struct hlo_span where, enum diag_code code, const char *fmt, ...) {
  if (c->is_bad)
    return false;
  c->is_bad = true;
  va_list ap;
  va_start(ap, fmt);
  const char *text = arena_vprintf(c->a, fmt, ap);
  va_end(ap);
  diag_add(c->ds, DS_ERROR, code, hlo_cur_place(c, where), "%s", text);
  return false;
}

bool hlo_cur_refuse_here(struct hlo_cursor *c, const char *wanted) {
  hlo_cur_space(c);
  const size_t n = c->at < c->end;
  if (!n)
    return hlo_cur_fail(c, (struct hlo_span){c->at, 0}, DG_HLO_INVALID, "expected %s, found the end", wanted);
  return hlo_cur_fail(c, (struct hlo_span){c->at, n}, DG_HLO_INVALID, "expected %s, found '%c'", wanted,
                      *c->at >= 0x20 && *c->at < 0x7f ? *c->at : '?');
}

/* ---- words --------------------------------------------------------------------------------------------------------- */

bool hlo_span_is(struct hlo_span s, const char *word) {
  return s.len == strlen(word) && !memcmp(s.at, word, s.len);
}

bool hlo_span_equal(struct hlo_span x, struct hlo_span y) {
  return x.len == y.len && !memcmp(x.at, y.at, x.len);
}

void hlo_cur_space(struct hlo_cursor *c) {
  assert(c->at <= c->end);
  while (c->at < c->end) {
    if (*c->at == ' ' || *c->at == '\t' || *c->at == '\n' || *c->at == '\r') {
      c->at++;
    } else if (c->end - c->at >= 2 && c->at[0] == '/' && c->at[1] == '*') {
      const char *close = memmem(c->at + 2, (size_t)(c->end - c->at - 2), "*/", 2);
      c->at = close ? close + 2 : c->end;
    } else if (c->end - c->at >= 2 && c->at[0] == '/' && c->at[1] == '/') {
      const char *nl = memchr(c->at, '\n', (size_t)(c->end - c->at));
      c->at = nl ? nl : c->end;
    } else {
      return;
    }
  }
}

bool hlo_cur_peek(struct hlo_cursor *c, char ch) {
  hlo_cur_space(c);
  return !c->is_bad && c->at < c->end && *c->at == ch;
}

bool hlo_cur_take(struct hlo_cursor *c, char ch) {
  if (!hlo_cur_peek(c, ch))
    return false;
  c->at++;
  return true;
}

bool hlo_cur_need(struct hlo_cursor *c, char ch) {
  const char wanted[] = {'\'', ch, '\'', 0};
  return hlo_cur_take(c, ch) || hlo_cur_refuse_here(c, wanted);
}

static bool is_word(char ch) {
  return (ch >= 'a' && ch <= 'z') || (ch >= 'A' && ch <= 'Z') || (ch >= '0' && ch <= '9') || ch == '_' || ch == '.' ||
         ch == '-';
}

bool hlo_cur_word(struct hlo_cursor *c, struct hlo_span *out, const char *what) {
  hlo_cur_space(c);
  const char *p = c->at;
  while (p < c->end && is_word(*p) && !(*p == '-' && p + 1 < c->end && p[1] == '>'))
    p++;
  if (c->is_bad || p == c->at)
    return hlo_cur_refuse_here(c, what);
  *out = (struct hlo_span){c->at, (size_t)(p - c->at)};
  c->at = p;
  return true;
}

bool hlo_cur_name(struct hlo_cursor *c, struct hlo_span *out) {
  hlo_cur_take(c, '%');
  return hlo_cur_word(c, out, "a name");
}

bool hlo_cur_take_word(struct hlo_cursor *c, const char *word) {
  hlo_cur_space(c);
  const size_t n = strlen(word), left = (size_t)(c->end - c->at);
  if (c->is_bad || left < n || memcmp(c->at, word, n) != 0 || (left > n && is_word(c->at[n])))
    return false;
  c->at += n;
  return true;
}

/* ---- numbers ------------------------------------------------------------------------------------------------------- */

/* Numbers are read in place: strtoll and similar functions stop at the NUL after the text at the latest. */
bool hlo_cur_number_starts(struct hlo_cursor *c) {
  hlo_cur_space(c);
  return !c->is_bad && c->at < c->end && (is_word(*c->at) || *c->at == '+');
}

bool hlo_cur_int(struct hlo_cursor *c, int64_t *out) {
  char *end;
  if (!hlo_cur_number_starts(c))
    return hlo_cur_refuse_here(c, "a number");
  errno = 0;
  *out = strtoll(c->at, &end, 10);
  if (end == c->at || end > c->end || errno)
    return hlo_cur_refuse_here(c, "a number of 64 bits");
  c->at = end;
  return true;
}

bool hlo_cur_ints(struct hlo_cursor *c, struct hlo_ints *out) {
  enum { FEW = 16 };
  int64_t few[FEW]; /* most lists are short */
  struct {
    int64_t *v;
    int n, cap;
  } list = {few, 0, FEW};
  if (!hlo_cur_need(c, '{'))
    return false;
  if (!hlo_cur_peek(c, '}'))
    do {
      if (!hlo_cur_int(c, array_push(c->tmp, &list, 0)))
        return false;
    } while (hlo_cur_take(c, ','));
  *out = hlo_ints_dup(c->a, list.n, list.v);
  return hlo_cur_need(c, '}');
}

/* ---- strings ------------------------------------------------------------------------------------------------------- */

/* The end of the string that starts with the quote at p, after its closing quote if there is one. */
static const char *string_end(const char *p, const char *end) {
  for (p++; p < end && *p != '"'; p++)
    if (*p == '\\' && p + 1 < end)
      p++;
  return p < end ? p + 1 : end;
}

/* The character of the escape at the cursor, which is after its backslash. */
static char take_escape(struct hlo_cursor *c) {
  static const char from[] = "nrt\"'\\", to[] = "\n\r\t\"'\\";
  const char ch = *c->at++;
  if (ch >= '0' && ch <= '7') {
    int v = ch - '0';
    for (int k = 0; k < 2 && c->at < c->end && *c->at >= '0' && *c->at <= '7'; k++)
      v = v * 8 + (*c->at++ - '0');
    return (char)v;
  }
  const char *k = ch ? strchr(from, ch) : NULL;
  return k ? to[k - from] : ch;
}

bool hlo_cur_string(struct hlo_cursor *c, const char **out) {
  if (!hlo_cur_need(c, '"'))
    return false;
  const size_t room = (size_t)(string_end(c->at - 1, c->end) - c->at) + 1; /* escapes only make it shorter */
  char *text = arena_alloc(c->a, room);
  size_t n = 0;
  while (c->at < c->end && *c->at != '"') {
    if (*c->at == '\\' && c->at + 1 < c->end) {
      c->at++;
      text[n++] = take_escape(c);
    } else {
      text[n++] = *c->at++;
    }
  }
  assert(n < room);
  *out = text;
  return hlo_cur_need(c, '"');
}

/* ---- values of attributes ------------------------------------------------------------------------------------------ */

/* The first character from p on, outside all brackets and quotes, that is one of `stops` or a closing bracket. */
static const char *value_end(const char *p, const char *end, const char *stops) {
  int depth = 0;
  while (p < end) {
    if (*p == '"') {
      p = string_end(p, end);
      continue;
    }
    if (*p == '{' || *p == '(' || *p == '[')
      depth++;
    if ((*p == '}' || *p == ')' || *p == ']') && --depth < 0)
      break;
    if (!depth && *p && strchr(stops, *p))
      break;
    p++;
  }
  return p;
}

bool hlo_cur_value(struct hlo_cursor *c, struct hlo_span *out) {
  hlo_cur_space(c);
  const char *end = value_end(c->at, c->end, ",\n");
  if (c->is_bad || end == c->at)
    return hlo_cur_refuse_here(c, "a value");
  *out = (struct hlo_span){c->at, (size_t)(end - c->at)};
  c->at = end;
  return true;
}

void hlo_cur_skip_item(struct hlo_cursor *c) {
  hlo_cur_space(c);
  c->at = value_end(c->at, c->end, ", \t\n");
}
