/* read_cursor: the small parts of HLO text: words, numbers, strings, shapes, literals. */
#include "hlo/read_text.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hlo/literal.h"

/* ---- places and errors -------------------------------------------------------------------------------------------- */

static bool is_continuation(char ch) {
  return ((unsigned char)ch & 0xc0) == 0x80;
}

static void locate(const struct hlo_cursor *c, const char *at, int *line, int *col) {
  size_t offset = (size_t)(at - c->text);
  int lo = 0, hi = c->n_lines - 1;
  while (lo < hi) {
    int mid = (lo + hi + 1) / 2;
    if (c->line_starts[mid] <= offset)
      lo = mid;
    else
      hi = mid - 1;
  }
  *line = lo + 1;
  *col = 1;
  for (const char *s = c->text + c->line_starts[lo]; s < at; s++)
    *col += !is_continuation(*s);
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

static bool fail_here(struct hlo_cursor *c, const char *wanted) {
  hlo_cur_space(c);
  size_t n = c->at < c->end;
  if (!n)
    return hlo_cur_fail(c, (struct hlo_span){c->at, 0}, DG_HLO_INVALID, "expected %s, found the end", wanted);
  return hlo_cur_fail(c, (struct hlo_span){c->at, n}, DG_HLO_INVALID, "expected %s, found '%c'", wanted,
                      *c->at >= 0x20 && *c->at < 0x7f ? *c->at : '?');
}

/* ---- words -------------------------------------------------------------------------------------------------------- */

void hlo_cur_space(struct hlo_cursor *c) {
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
  char wanted[] = {'\'', ch, '\'', 0};
  return hlo_cur_take(c, ch) || fail_here(c, wanted);
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
    return fail_here(c, what);
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
  size_t n = strlen(word);
  if (c->is_bad || (size_t)(c->end - c->at) < n || memcmp(c->at, word, n) != 0 ||
      ((size_t)(c->end - c->at) > n && is_word(c->at[n])))
    return false;
  c->at += n;
  return true;
}

/* A number's text in a buffer of its own, so that it ends. */
static bool number_text(struct hlo_cursor *c, char *out, size_t size) {
  hlo_cur_space(c);
  size_t n = 0;
  while (c->at + n < c->end && n + 1 < size && (is_word(c->at[n]) || c->at[n] == '+'))
    n++;
  memcpy(out, c->at, n);
  out[n] = 0;
  return n > 0;
}

bool hlo_cur_int(struct hlo_cursor *c, int64_t *out) {
  char text[32], *end;
  if (c->is_bad || !number_text(c, text, sizeof text))
    return fail_here(c, "a number");
  errno = 0;
  *out = strtoll(text, &end, 10);
  if (end == text || errno)
    return fail_here(c, "a number of 64 bits");
  c->at += end - text;
  return true;
}

static bool put_escape(struct hlo_cursor *c, char *to, size_t *n) {
  char ch = *c->at++;
  if (ch >= '0' && ch <= '7') {
    int v = ch - '0';
    for (int k = 0; k < 2 && c->at < c->end && *c->at >= '0' && *c->at <= '7'; k++)
      v = v * 8 + (*c->at++ - '0');
    to[(*n)++] = (char)v;
    return true;
  }
  static const char from[] = "nrt\"'\\", is[] = "\n\r\t\"'\\";
  const char *k = strchr(from, ch);
  to[(*n)++] = k && ch ? is[k - from] : ch;
  return true;
}

bool hlo_cur_string(struct hlo_cursor *c, const char **out) {
  if (!hlo_cur_need(c, '"'))
    return false;
  char *to = arena_alloc(c->a, (size_t)(c->end - c->at) < 4096 ? (size_t)(c->end - c->at) + 1 : 4096);
  size_t n = 0, cap = (size_t)(c->end - c->at) < 4096 ? (size_t)(c->end - c->at) + 1 : 4096;
  while (c->at < c->end && *c->at != '"') {
    if (n + 2 > cap) {
      char *more = arena_alloc(c->a, cap * 2);
      memcpy(more, to, n);
      to = more;
      cap *= 2;
    }
    if (*c->at == '\\' && c->at + 1 < c->end) {
      c->at++;
      put_escape(c, to, &n);
    } else {
      to[n++] = *c->at++;
    }
  }
  to[n] = 0;
  *out = to;
  return hlo_cur_need(c, '"');
}

bool hlo_cur_ints(struct hlo_cursor *c, struct hlo_ints *out) {
  int64_t v[256];
  int n = 0;
  if (!hlo_cur_need(c, '{'))
    return false;
  if (!hlo_cur_peek(c, '}'))
    do {
      if (n == 256)
        return fail_here(c, "at most 256 numbers");
      if (!hlo_cur_int(c, &v[n++]))
        return false;
    } while (hlo_cur_take(c, ','));
  *out = hlo_ints_dup(c->a, n, v);
  return hlo_cur_need(c, '}');
}

static const char *string_end(const char *p, const char *end) {
  for (p++; p < end && *p != '"'; p++)
    if (*p == '\\' && p + 1 < end)
      p++;
  return p < end ? p + 1 : end;
}

bool hlo_cur_value(struct hlo_cursor *c, struct hlo_span *out) {
  hlo_cur_space(c);
  const char *p = c->at;
  int depth = 0;
  while (p < c->end) {
    if (*p == '"') {
      p = string_end(p, c->end);
      continue;
    }
    if (*p == '{' || *p == '(' || *p == '[')
      depth++;
    if ((*p == '}' || *p == ')' || *p == ']') && --depth < 0)
      break;
    if (!depth && (*p == ',' || *p == '\n'))
      break;
    p++;
  }
  if (c->is_bad || p == c->at)
    return fail_here(c, "a value");
  *out = (struct hlo_span){c->at, (size_t)(p - c->at)};
  c->at = p;
  return true;
}

struct hlo_cursor hlo_cur_within(const struct hlo_cursor *c, struct hlo_span s) {
  struct hlo_cursor in = *c;
  in.at = s.at;
  in.end = s.at + s.len;
  return in;
}

bool hlo_span_is(struct hlo_span s, const char *word) {
  return s.len == strlen(word) && !memcmp(s.at, word, s.len);
}

bool hlo_span_equal(struct hlo_span x, struct hlo_span y) {
  return x.len == y.len && !memcmp(x.at, y.at, x.len);
}

/* ---- shapes ------------------------------------------------------------------------------------------------------- */

/* {1,0:T(8,128)}: the order in memory is XLA's business; values are addressed by index here. */
static bool skip_layout(struct hlo_cursor *c) {
  if (c->at >= c->end || *c->at != '{')
    return true;
  int depth = 0;
  for (; c->at < c->end; c->at++) {
    depth += (*c->at == '{') - (*c->at == '}');
    if (!depth) {
      c->at++;
      return true;
    }
  }
  return fail_here(c, "'}'");
}

static bool read_dims(struct hlo_cursor *c, struct hlo_shape *out, enum dtype t) {
  int64_t dims[HLO_RANK_MAX];
  int n = 0;
  if (!hlo_cur_need(c, '['))
    return false;
  if (!hlo_cur_peek(c, ']'))
    do {
      if (n == HLO_RANK_MAX)
        return fail_here(c, "at most 16 dimensions");
      if (hlo_cur_take(c, '<'))
        return hlo_cur_fail(c, (struct hlo_span){c->at, 1}, DG_HLO_INVALID, "dynamic dimensions have no form here");
      if (!hlo_cur_int(c, &dims[n++]))
        return false;
      if (dims[n - 1] < 0)
        return fail_here(c, "a dimension that is not negative");
    } while (hlo_cur_take(c, ','));
  if (!hlo_cur_need(c, ']'))
    return false;
  *out = hlo_shape_array(c->a, t, n, dims);
  if (hlo_shape_elements(out) < 0)
    return fail_here(c, "a shape whose size fits 64 bits");
  return skip_layout(c);
}

static bool read_shape_at(struct hlo_cursor *c, struct hlo_shape *out, int depth) {
  if (hlo_cur_take(c, '(')) {
    struct hlo_shape *elems = NULL;
    int n = 0, cap = 0;
    if (depth == HLO_READ_NEST_MAX)
      return fail_here(c, "tuples nested less deeply");
    if (!hlo_cur_peek(c, ')'))
      do {
        if (n == cap) {
          struct hlo_shape *more = arena_new_array(c->a, struct hlo_shape, (size_t)(cap ? cap * 2 : 8));
          if (n)
            memcpy(more, elems, (size_t)n * sizeof *more);
          elems = more;
          cap = cap ? cap * 2 : 8;
        }
        if (!read_shape_at(c, &elems[n++], depth + 1))
          return false;
      } while (hlo_cur_take(c, ','));
    *out = (struct hlo_shape){.dtype = DT_TUPLE, .n_elems = n, .elems = elems};
    return hlo_cur_need(c, ')');
  }
  struct hlo_span word;
  if (!hlo_cur_word(c, &word, "a shape"))
    return false;
  char name[24];
  snprintf(name, sizeof name, "%.*s", (int)(word.len < 23 ? word.len : 23), word.at);
  enum dtype t = dtype_from_hlo_name(name);
  if (t == DT_NONE)
    return hlo_cur_fail(c, word, DG_UNSUPPORTED_DTYPE, "the data type %s has no form here", name);
  return read_dims(c, out, t);
}

bool hlo_read_shape(struct hlo_cursor *c, struct hlo_shape *out) {
  return read_shape_at(c, out, 0);
}

/* ---- literals ----------------------------------------------------------------------------------------------------- */

static void store_nan(enum dtype t, uint64_t payload, bool has_payload, bool is_negative, char *out) {
  hlo_literal_store(t, is_negative ? -NAN : NAN, out);
  if (!has_payload)
    return;
  int mantissa = t == DT_F64      ? 52
                 : t == DT_F32    ? 23
                 : t == DT_F16    ? 10
                 : t == DT_BF16   ? 7
                 : t == DT_F8E4M3 ? 3
                 : t == DT_F8E5M2 ? 2
                                  : 0;
  uint64_t bits = 0, mask = ((uint64_t)1 << mantissa) - 1;
  memcpy(&bits, out, dtype_size(t));
  bits = (bits & ~mask) | (payload & mask);
  memcpy(out, &bits, dtype_size(t));
}

static bool store_float(struct hlo_cursor *c, enum dtype t, const char *text, char *out) {
  const char *body = text + (*text == '-');
  if (!strncmp(body, "nan", 3)) {
    c->at += body - text + 3;
    uint64_t payload = 0;
    bool has = false;
    if (c->at < c->end && *c->at == '(') {
      char *end;
      char hex[24];
      snprintf(hex, sizeof hex, "%.*s", (int)(c->end - c->at - 1 < 20 ? c->end - c->at - 1 : 20), c->at + 1);
      payload = strtoull(hex, &end, 16);
      c->at += 1 + (end - hex);
      has = true;
      if (!hlo_cur_need(c, ')'))
        return false;
    }
    store_nan(t, payload, has, *text == '-', out);
    return true;
  }
  char *end;
  double v = strtod(text, &end);
  if (end == text)
    return fail_here(c, "a number");
  hlo_literal_store(t, v, out);
  c->at += end - text;
  return true;
}

static bool read_element(struct hlo_cursor *c, enum dtype t, char *out) {
  char text[64], *end;
  if (c->is_bad)
    return false;
  if (hlo_cur_take_word(c, "true") || hlo_cur_take_word(c, "false")) {
    if (t != DT_BOOL)
      return fail_here(c, "a number");
    *out = c->at[-2] == 'u';
    return true;
  }
  if (!number_text(c, text, sizeof text))
    return fail_here(c, "an element");
  if (dtype_is_float(t))
    return store_float(c, t, text, out);
  errno = 0;
  int64_t v = *text == '-' ? strtoll(text, &end, 10) : (int64_t)strtoull(text, &end, 10);
  if (end == text || errno)
    return fail_here(c, "an integer");
  c->at += end - text;
  if (t == DT_BOOL)
    *out = v != 0;
  else
    memcpy(out, &v, dtype_size(t)); /* little-endian: the low bytes */
  return true;
}

struct literal_reader {
  struct hlo_cursor *c;
  const struct hlo_shape *shape;
  char *data;
  int64_t at, n;
};

static bool read_elements(struct literal_reader *r, int dim) {
  struct hlo_cursor *c = r->c;
  if (dim == r->shape->rank) {
    if (r->at == r->n)
      return fail_here(c, "no more elements");
    return read_element(c, r->shape->dtype, r->data + (size_t)r->at++ * dtype_size(r->shape->dtype));
  }
  if (!hlo_cur_need(c, '{'))
    return false;
  if (hlo_cur_take_word(c, "..."))
    return fail_here(c, "all elements: the constant was cut short when it was printed");
  for (int64_t k = 0; k < r->shape->dims[dim]; k++) {
    if (k && !hlo_cur_need(c, ','))
      return false;
    if (!read_elements(r, dim + 1))
      return false;
  }
  return hlo_cur_need(c, '}');
}

bool hlo_read_literal(struct hlo_cursor *c, const struct hlo_shape *shape, const struct hlo_literal **out) {
  if (shape->dtype == DT_TUPLE)
    return fail_here(c, "an array constant");
  struct literal_reader r = {.c = c, .shape = shape, .n = hlo_shape_elements(shape)};
  size_t size = dtype_size(shape->dtype);
  if (r.n > (c->end - c->at)) /* each element takes a character at least */
    return fail_here(c, "as many elements as the shape has");
  r.data = arena_array(c->a, (size_t)r.n, size);
  if (r.n == 0 && hlo_cur_take(c, '{')) { /* {} or { { }, … } */
    int depth = 1;
    while (depth && (hlo_cur_take(c, ',') || hlo_cur_take(c, '{') || hlo_cur_take(c, '}')))
      depth += c->at[-1] == '{' ? 1 : c->at[-1] == '}' ? -1 : 0;
    if (depth)
      return fail_here(c, "'}'");
  } else if (!read_elements(&r, 0)) {
    return false;
  }
  struct hlo_literal *l = arena_new(c->a, struct hlo_literal);
  *l = (struct hlo_literal){*shape, r.data, (size_t)r.n * size};
  *out = l;
  return true;
}
