#include "api/whys.h"

#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "base/json.h"
#include "driver/result_stage.h"
#include "driver/why.h"
#include "job/export.h"

enum { TEXT_MAX = 16 << 20, DIGITS_MAX = 8 };

bool why_read_query(const struct request *rq, struct why_query *q, const char **field) {
  const char *line = http_argument(rq, "line");
  const size_t digits = line ? strspn(line, "0123456789") : 0;
  *q = (struct why_query){http_argument(rq, "stage"), http_argument(rq, "kernel"), 0};
  *field = "stage";
  if (!q->stage || !*q->stage)
    return false;
  *field = "line";
  if (!digits || digits > DIGITS_MAX || line[digits])
    return false;
  q->line = atoi(line);
  return q->line > 0;
}

static enum status put(const json_t *result, const struct why_query *q, struct buf *out, struct error *err) {
  const int kernel = result_kernel(result, q->kernel ? q->kernel : "0");
  struct arena a;
  struct buf text;
  if (kernel < 0)
    return fail(err, ST_INPUT, "the result has no such kernel");
  arena_init(&a);
  buf_init(&text, TEXT_MAX);
  enum status st = why_put(&a, &text, result, kernel, q->stage, q->line, err);
  if (!st)
    st = buf_status(&text);
  if (!st) {
    const json_t *name = json_object_get(json_array_get(json_object_get(result, "kernels"), (size_t)kernel), "name");
    buf_putc(out, '{');
    json_put_field_str(out, "kernel", json_string_value(name) ? json_string_value(name) : "");
    json_put_field_str(out, "stage", q->stage);
    json_put_field_int(out, "line", q->line);
    json_put_key(out, "text");
    json_put_string(out, buf_text(&text), text.len);
    buf_puts(out, "}\n");
    st = buf_status(out);
  }
  buf_clear(&text);
  arena_clear(&a);
  return st;
}

enum status why_build(struct work *w, const struct why_query *q, struct buf *out, bool *found, struct error *err) {
  struct buf json;
  buf_init(&json, WORK_BYTES_MAX);
  json_t *result = export_result(w, &json) ? json_loadb(buf_text(&json), json.len, JSON_ALLOW_NUL, NULL) : NULL;
  buf_clear(&json);
  if (!result)
    return fail(err, ST_NOMEM, "why");
  enum status st = put(result, q, out, err);
  json_decref(result);
  *found = !st;
  return st == ST_INPUT ? ST_OK : st;
}
