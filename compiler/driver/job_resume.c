/* job_resume: reads and writes the member options.resume of a compile request. */
#include <string.h>

#include "driver/job_internal.h"

enum { KERNEL_MAX = 1 << 20 };

static enum status read_text(struct arena *a, const json_t *v, struct job_resume *out, struct error *err) {
  if (!json_is_string(v))
    return fail(err, ST_INPUT, "options.resume.text: expected a string");
  out->len = json_string_length(v);
  if (out->len > JOB_RESUME_MAX)
    return fail(err, ST_LIMIT, "options.resume.text: %zu bytes; the limit is %d", out->len, JOB_RESUME_MAX);
  if (strlen(json_string_value(v)) != out->len)
    return fail(err, ST_INPUT, "options.resume.text: has a NUL character");
  out->text = arena_strndup(a, json_string_value(v), out->len);
  return ST_OK;
}

static enum status read_kernel(const json_t *v, struct job_resume *out, struct error *err) {
  if (!json_is_integer(v) || json_integer_value(v) < 0 || json_integer_value(v) > KERNEL_MAX)
    return fail(err, ST_INPUT, "options.resume.kernel: expected an integer from 0 to %d", KERNEL_MAX);
  out->kernel = (int)json_integer_value(v);
  return ST_OK;
}

static enum status read_member(struct arena *a, const char *key, const json_t *v, struct job_resume *out,
                               struct error *err) {
  if (!strcmp(key, "stage"))
    return job_read_stage(a, v, "options.resume.stage", &out->stage, err);
  if (!strcmp(key, "text"))
    return read_text(a, v, out, err);
  if (!strcmp(key, "kernel"))
    return read_kernel(v, out, err);
  return fail(err, ST_INPUT, "options.resume.%.24s: there is no such field", key);
}

enum status job_read_resume(struct arena *a, const json_t *v, struct job_resume *out, struct error *err) {
  const char *key;
  json_t *field;
  *out = (struct job_resume){0};
  if (!json_is_object(v))
    return fail(err, ST_INPUT, "options.resume: expected an object");
  json_object_foreach((json_t *)v, key, field) {
    enum status st = read_member(a, key, field, out, err);
    if (st)
      return st;
  }
  if (!out->stage || !out->text)
    return fail(err, ST_INPUT, "options.resume.%s: missing", out->stage ? "text" : "stage");
  return ST_OK;
}

json_t *job_resume_json(const struct job_resume *r) {
  struct job_writer w = {.object = json_object()};
  job_put(&w, "stage", json_string(r->stage));
  job_put(&w, "text", json_stringn(r->text, r->len));
  if (r->kernel)
    job_put(&w, "kernel", json_integer(r->kernel));
  return job_written(&w);
}
