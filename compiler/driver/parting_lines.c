/* parting_lines: which lines of a stage compute the same (diff/counterpart.h), with the Python expressions of their places. */
#include <string.h>

#include "base/array.h"
#include "base/utf8.h"
#include "driver/parting_internal.h"

/* ---- Python expressions -------------------------------------------------------------------------------------------- */

static struct diff_text source_of(const struct parting_side *s, int file) {
  const char *name = json_string_value(json_array_get(json_object_get(s->result, "files"), (size_t)file));
  if (file == 0)
    return (struct diff_text){s->job->source, s->job->source_len};
  for (int i = 0; name && i < s->job->n_files; i++)
    if (!strcmp(s->job->files[i].name, name))
      return (struct diff_text){s->job->files[i].source, s->job->files[i].source_len};
  return (struct diff_text){"", 0};
}

/* The byte of a line and a column of code points, both from 1. */
static size_t byte_at(struct diff_text t, int line, int col) {
  size_t at = 0;
  while (--line > 0 && at < t.len) {
    const char *nl = memchr(t.data + at, '\n', t.len - at);
    at = nl ? (size_t)(nl - t.data) + 1 : t.len;
  }
  while (--col > 0 && at < t.len && t.data[at] != '\n')
    for (at++; at < t.len && utf8_is_continuation(t.data[at]);)
      at++;
  return at;
}

/* Appends the Python of a place: [file, line, col, end_line, end_col, …]. */
static void add_place(struct buf *b, const struct parting_side *s, const json_t *place) {
  int at[5];
  for (size_t k = 0; k < 5; k++)
    at[k] = (int)json_integer_value(json_array_get(place, k));
  const struct diff_text source = source_of(s, at[0]);
  const size_t begin = byte_at(source, at[1], at[2]), end = byte_at(source, at[3], at[4]);
  if (end > begin)
    buf_append(b, source.data + begin, end - begin);
  buf_putc(b, '\n');
}

/* The Python of each source, which lines share; NULL where there is none. */
static const char **read_sources(struct arena *a, const struct parting_side *s, int *n) {
  const json_t *sources = json_object_get(s->result, "sources"), *places = json_object_get(s->result, "places");
  *n = (int)json_array_size(sources);
  const char **out = arena_new_array(a, const char *, (size_t)*n);
  for (int i = 0; i < *n; i++) {
    const json_t *list = json_object_get(json_array_get(sources, (size_t)i), "places"), *place;
    size_t k;
    struct buf b;
    buf_init(&b, JOB_SOURCE_MAX);
    json_array_foreach(list, k, place) add_place(&b, s, json_array_get(places, (size_t)json_integer_value(place)));
    if (!b.failed)
      out[i] = arena_strdup(a, buf_text(&b));
    buf_clear(&b);
  }
  return out;
}

struct counterparts parting_pair_lines(const struct parting_finder *f, const struct parting_pair *p) {
  struct counterpart_side sides[2];
  for (int s = 0; s < 2; s++) {
    int n_sources;
    const char **sources = read_sources(f->arena, &f->sides[s], &n_sources);
    const char **expressions = arena_new_array(f->arena, const char *, (size_t)p->n_lines[s]);
    const json_t *kernel = json_array_get(json_object_get(f->sides[s].result, "kernels"), 0);
    const json_t *stage = json_array_get(json_object_get(kernel, "stages"), (size_t)p->at[s]);
    for (int i = 0; i < p->n_lines[s]; i++) {
      const json_t *line = json_array_get(json_object_get(stage, "lines"), (size_t)i);
      const json_t *src = json_object_get(line, "src");
      const json_int_t k = src ? json_integer_value(src) : -1;
      expressions[i] = k >= 0 && k < n_sources ? sources[k] : NULL;
    }
    sides[s] = (struct counterpart_side){p->text[s], p->n_lines[s], expressions};
  }
  return counterpart_find(f->arena, sides);
}

/* ---- results ------------------------------------------------------------------------------------------------------- */

/* The names in a text. */
static void add_names(struct arena *a, const char *s, size_t n, struct parting_returned *out) {
  struct {
    const char **v;
    int n, cap;
  } names = {0};
  for (size_t k = 0; k < n; k++) {
    if (s[k] != '%')
      continue;
    size_t end = k + 1;
    while (end < n && !strchr(" ,:()", s[end]))
      end++;
    array_push(a, &names, arena_strndup(a, s + k, end - k));
    k = end;
  }
  out->names = names.v;
  out->n = names.n;
}

/* "return %a, %b : types", or in HLO "ROOT %t = (…) tuple(%a, %b)" or "ROOT %a = …". */
static bool read_return(struct arena *a, const char *s, size_t n, struct parting_returned *out) {
  static const char tuple[] = " tuple(";
  while (n && *s == ' ') {
    s++;
    n--;
  }
  const bool is_root = n > 6 && !memcmp(s, "ROOT %", 6), is_return = n > 8 && !memcmp(s, "return %", 8);
  const char *of_tuple = is_root ? memmem(s, n, tuple, strlen(tuple)) : NULL;
  if (!is_root && !is_return)
    return false;
  const char *begin = of_tuple ? of_tuple : s;
  const size_t left = n - (size_t)(begin - s);
  const char *end = memchr(begin, of_tuple ? ')' : is_root ? '=' : ':', left);
  add_names(a, begin, end ? (size_t)(end - begin) : left, out);
  return out->n > 0;
}

struct parting_returned parting_returned(struct arena *a, struct diff_text text) {
  struct parting_returned out = {0};
  const char *p = text.data, *const end = text.data + text.len;
  bool is_entry = true; /* a computation of HLO that is applied has a ROOT, too: the last one counts */
  for (int line = 1; p < end && is_entry; line++) {
    const char *stop = memchr(p, '\n', (size_t)(end - p));
    stop = stop ? stop : end;
    if (read_return(a, p, (size_t)(stop - p), &out))
      out.line = line;
    p = stop < end ? stop + 1 : end;
  }
  return out;
}
