#include "driver/comparison.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "base/json.h"

static const char *text_of(const json_t *o, const char *key) {
  const char *s = json_string_value(json_object_get(o, key));
  return s ? s : "";
}

static double number_of(const json_t *o, const char *key) {
  return json_number_value(json_object_get(o, key));
}

static void put_times(struct buf *b, double x, double y) {
  json_put_field_double(b, "a_us", x);
  json_put_field_double(b, "b_us", y);
}

/* ---- lanes ------------------------------------------------------------------------------------------------------- */

static const json_t *find_named(const json_t *list, const char *name) {
  const json_t *o;
  size_t i;
  json_array_foreach(list, i, o) {
    if (!strcmp(text_of(o, "name"), name))
      return o;
  }
  return NULL;
}

/* {"name": "vector", …the times of both}; key: "name" or another member that says whose times they are. */
static void put_pair(struct buf *b, const char *key, const char *name, double x, double y) {
  json_put_comma(b);
  buf_putc(b, '{');
  json_put_field_str(b, key, name);
  put_times(b, x, y);
  buf_putc(b, '}');
}

static void put_lanes(struct buf *b, const json_t *x, const json_t *y) {
  const json_t *o;
  size_t i;
  json_put_key(b, "lanes");
  buf_putc(b, '[');
  json_array_foreach(x, i, o) put_pair(b, "name", text_of(o, "name"), number_of(o, "busy_us"),
                                       number_of(find_named(y, text_of(o, "name")), "busy_us"));
  json_array_foreach(y, i, o) {
    if (!find_named(x, text_of(o, "name")))
      put_pair(b, "name", text_of(o, "name"), 0, number_of(o, "busy_us"));
  }
  buf_putc(b, ']');
}

/* ---- waits ------------------------------------------------------------------------------------------------------- */

static void put_waits(struct buf *b, const json_t *x, const json_t *y) {
  const char *key;
  json_t *v;
  json_put_key(b, "waits");
  buf_putc(b, '[');
  json_object_foreach((json_t *)x, key, v) put_pair(b, "for", key, json_number_value(v), number_of(y, key));
  json_object_foreach((json_t *)y, key, v) {
    if (!json_object_get(x, key))
      put_pair(b, "for", key, 0, json_number_value(v));
  }
  buf_putc(b, ']');
}

/* ---- lines ------------------------------------------------------------------------------------------------------- */

struct line {
  const char *file;
  long long number;
  double x, y;
};

static int by_place(const void *p, const void *q) {
  const struct line *a = p, *b = q;
  const int files = strcmp(a->file, b->file);
  return files ? files : (a->number > b->number) - (a->number < b->number);
}

static int by_change(const void *p, const void *q) {
  const struct line *a = p, *b = q;
  const double x = fabs(a->x - a->y), y = fabs(b->x - b->y);
  return x != y ? (x < y ? 1 : -1) : by_place(p, q);
}

static size_t read_lines(struct line *out, const json_t *lines, bool is_y) {
  const json_t *o;
  size_t i;
  json_array_foreach(lines, i, o) {
    const double us = number_of(o, "critical_us");
    out[i] =
        (struct line){text_of(o, "file"), json_integer_value(json_object_get(o, "line")), is_y ? 0 : us, is_y ? us : 0};
  }
  return json_array_size(lines);
}

/* Merges neighbours of one place; returns the number that remains. */
static size_t merge(struct line *v, size_t n) {
  size_t k = 0;
  qsort(v, n, sizeof *v, by_place);
  for (size_t i = 0; i < n; i++) {
    if (k && !by_place(&v[k - 1], &v[i])) {
      v[k - 1].x += v[i].x;
      v[k - 1].y += v[i].y;
    } else {
      v[k++] = v[i];
    }
  }
  return k;
}

static void put_lines(struct buf *b, const json_t *x, const json_t *y) {
  struct line *v = calloc(json_array_size(x) + json_array_size(y) + 1, sizeof *v);
  json_put_key(b, "lines");
  buf_putc(b, '[');
  size_t n = 0;
  if (v) {
    n = read_lines(v, x, false);
    n = merge(v, n + read_lines(v + n, y, true));
    qsort(v, n, sizeof *v, by_change);
  } else {
    b->failed = ST_NOMEM;
  }
  for (size_t i = 0; i < n; i++) {
    json_put_comma(b);
    buf_putc(b, '{');
    json_put_field_str(b, "file", v[i].file);
    json_put_field_int(b, "line", v[i].number);
    put_times(b, v[i].x, v[i].y);
    buf_putc(b, '}');
  }
  free(v);
  buf_putc(b, ']');
}

/* ---- outputs ----------------------------------------------------------------------------------------------------- */

static void put_object(struct buf *b, const char *key, const json_t *o) {
  char *text = json_dumps(o, JSON_COMPACT);
  json_put_key(b, key);
  if (text)
    buf_puts(b, text);
  else
    b->failed = ST_NOMEM;
  free(text);
}

/* By position: another version of a kernel may call them otherwise. */
static void put_outputs(struct buf *b, const json_t *x, const json_t *y) {
  json_put_key(b, "outputs");
  buf_putc(b, '[');
  for (size_t i = 0; i < json_array_size(x) && i < json_array_size(y); i++) {
    json_put_comma(b);
    buf_putc(b, '{');
    json_put_field_str(b, "name", text_of(json_array_get(x, i), "name"));
    put_object(b, "a", json_array_get(x, i));
    put_object(b, "b", json_array_get(y, i));
    buf_putc(b, '}');
  }
  buf_putc(b, ']');
}

/* ---- all of it --------------------------------------------------------------------------------------------------- */

static void put_profiles(struct buf *b, const json_t *x, const json_t *y) {
  const double a_us = number_of(x, "total_us"), b_us = number_of(y, "total_us");
  put_times(b, a_us, b_us);
  json_put_field_double(b, "ratio", a_us > 0 ? b_us / a_us : NAN);
  put_lanes(b, json_object_get(x, "lanes"), json_object_get(y, "lanes"));
  put_waits(b, json_object_get(json_object_get(x, "path"), "waits_us"),
            json_object_get(json_object_get(y, "path"), "waits_us"));
  put_lines(b, json_object_get(x, "lines"), json_object_get(y, "lines"));
}

void comparison_put(struct buf *b, const json_t *kernel_a, const json_t *kernel_b) {
  const json_t *x = json_object_get(kernel_a, "profile"), *y = json_object_get(kernel_b, "profile");
  const json_t *out_x = json_object_get(json_object_get(kernel_a, "simulation"), "outputs");
  const json_t *out_y = json_object_get(json_object_get(kernel_b, "simulation"), "outputs");
  buf_putc(b, '{');
  json_put_field_str(b, "name", text_of(kernel_a, "name"));
  if (x && y)
    put_profiles(b, x, y);
  if (out_x && out_y)
    put_outputs(b, out_x, out_y);
  buf_putc(b, '}');
}
