/* watch_part: see the header. */
#include "driver/watch_part.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"

enum { TILE_MAX = 16, PART_BYTES_MAX = 4096, NUMBER_MAX = 1 << 28 /* of which some products and sums fit */ };

struct span {
  const char *at, *end;
};

static struct span line_of(const char *text, size_t len, int line) {
  const char *end = text + len, *at = text, *stop = NULL;
  for (int k = 1; at < end; k++, at = stop + 1) {
    stop = memchr(at, '\n', (size_t)(end - at));
    if (k == line || !stop)
      return (struct span){at, k == line && stop ? stop : end};
  }
  return (struct span){end, end};
}

/* What comes after "operand<" in the line; empty if it is not there. */
static struct span find_operand(struct span s, const char *operand) {
  const size_t n = strlen(operand);
  for (const char *p = s.at; p + n < s.end; p++)
    if (p > s.at && (p[-1] == '(' || p[-1] == ' ') && !memcmp(p, operand, n) && p[n] == '<')
      return (struct span){p + n + 1, s.end};
  return (struct span){s.end, s.end};
}

/* Reads a number of the range that an index can have. */
static bool read_number(struct span *s, int64_t *out) {
  const char *begin = s->at;
  for (*out = 0; s->at < s->end && isdigit((unsigned char)*s->at) && *out <= NUMBER_MAX; s->at++)
    *out = *out * 10 + (*s->at - '0');
  return s->at > begin && *out <= NUMBER_MAX;
}

/* Reads "128| 2, 128>", and moves after it: the sizes of d0, d1, …; returns how many there are, -1 if it is something else. */
static int read_tile(struct span *s, int64_t *sizes) {
  int n = 0;
  while (s->at < s->end && *s->at != '>') {
    if (n == TILE_MAX || !read_number(s, &sizes[n]))
      return -1;
    n++;
    while (s->at < s->end && strchr("|, ", *s->at))
      s->at++;
  }
  s->at += s->at < s->end;
  return n;
}

/* Moves s to the name that is accessed: after the type, whose angles and brackets are balanced.  False: there is none. */
static bool find_name(struct span *s) {
  int depth = 0;
  for (; s->at < s->end; s->at++) {
    depth += strchr("<[(", *s->at) != NULL;
    depth -= strchr(">])", *s->at) != NULL && s->at[-1] != '-';
    if (!depth && *s->at == '%')
      return true;
    if (!depth && *s->at == ',')
      return false;
  }
  return false;
}

/* Adds a term of an index: "d1", "d0*128", "256".  False: it has another form. */
static bool add_term(struct span t, int n, const int64_t *sizes, int64_t *first, int64_t *last, int64_t *step,
                     int *n_dims) {
  int64_t number, by = 1;
  const bool is_dim = t.at < t.end && *t.at == 'd';
  t.at += is_dim;
  if (!read_number(&t, &number))
    return false;
  if (!is_dim) {
    *first += number;
    *last += number;
    return t.at == t.end;
  }
  if (t.at < t.end && *t.at == '*') {
    t.at++;
    if (!read_number(&t, &by))
      return false;
  }
  if (t.at != t.end || number >= n)
    return false;
  *last += (sizes[number] - 1) * by;
  *step = *n_dims ? (by < *step ? by : *step) : by;
  ++*n_dims;
  return true;
}

/* Appends an index: "0:128" with the sizes, "0:256:2" with a step; what a loop moves as it is written. */
static void put_index(struct buf *b, struct span s, int n, const int64_t *sizes) {
  int64_t first = 0, last = 0, step = 1;
  int n_dims = 0;
  bool is_known = true;
  for (struct span t = s; is_known && t.at <= s.end; t.at = t.end + 3) {
    for (t.end = t.at; t.end < s.end && (s.end - t.end < 3 || memcmp(t.end, " + ", 3) != 0);)
      t.end++;
    is_known = add_term(t, n, sizes, &first, &last, &step, &n_dims);
  }
  if (!is_known)
    buf_append(b, s.at, (size_t)(s.end - s.at));
  else if (!n_dims)
    buf_printf(b, "%lld", (long long)first);
  else if (n_dims == 1 && step > 1)
    buf_printf(b, "%lld:%lld:%lld", (long long)first, (long long)last + 1, (long long)step);
  else
    buf_printf(b, "%lld:%lld", (long long)first, (long long)last + 1);
}

const char *watch_part(struct arena *a, const char *text, size_t len, int line, const char *operand) {
  struct span s = find_operand(line_of(text, len, line), operand);
  int64_t sizes[TILE_MAX];
  const int n = read_tile(&s, sizes);
  if (n < 0 || s.at == s.end || !find_name(&s))
    return NULL;
  const char *open = memchr(s.at, '[', (size_t)(s.end - s.at));
  const char *close = open ? memchr(open, ']', (size_t)(s.end - open)) : NULL;
  struct buf b;
  if (!close)
    return NULL;
  buf_init(&b, PART_BYTES_MAX);
  buf_append(&b, s.at, (size_t)(open + 1 - s.at));
  for (struct span x = {open + 1, open}; x.at < close; x.at = x.end + 2) {
    for (x.end = x.at; x.end < close && *x.end != ',';)
      x.end++;
    put_index(&b, x, n, sizes);
    buf_puts(&b, x.end < close ? ", " : "]");
  }
  const char *out = b.failed ? NULL : arena_strdup(a, buf_text(&b));
  buf_clear(&b);
  return out;
}
