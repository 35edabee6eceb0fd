/* job_value: reads and writes the member options.value of a compile request, and its form on the command line. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "driver/by_hand.h"
#include "driver/job_internal.h"
#include "driver/pipeline.h"

enum { NUMBER_MAX = 1 << 30 };

/* ---- reading ----------------------------------------------------------------------------------------------------- */

enum status job_read_stage(struct arena *a, const json_t *v, const char *field, const char **out, struct error *err) {
  enum status st = job_read_name(a, v, field, out, err);
  if (st)
    return st;
  /* a change of the pipeline can put more stages in (by_hand.h) */
  const bool is_number = strspn(*out, "0123456789") == strlen(*out) && strlen(*out) <= 4;
  const bool is_one = is_number ? atoi(*out) < pipeline_hlo.n + BY_HAND_MAX
                                : pipeline_stage(&pipeline_hlo, *out) >= 0 || pipeline_stage(&pipeline_nki, *out) >= 0;
  return is_one ? ST_OK : fail(err, ST_INPUT, "%s: no stage is called \"%.60s\"", field, *out);
}

static enum status read_number(const json_t *v, const char *field, int64_t *out, struct error *err) {
  if (!json_is_integer(v) || json_integer_value(v) < 1 || json_integer_value(v) > NUMBER_MAX)
    return fail(err, ST_INPUT, "%s: expected an integer from 1 to %d", field, NUMBER_MAX);
  *out = json_integer_value(v);
  return ST_OK;
}

static enum status read_slice(const json_t *v, int index, struct job_slice *out, struct error *err) {
  const char *key;
  json_t *field;
  *out = (struct job_slice){.stop = -1, .step = 1};
  if (!json_is_object(v))
    return fail(err, ST_INPUT, "options.value.slice[%d]: expected an object", index);
  json_object_foreach((json_t *)v, key, field) {
    int64_t *to = !strcmp(key, "start")  ? &out->start
                  : !strcmp(key, "stop") ? &out->stop
                  : !strcmp(key, "step") ? &out->step
                                         : NULL;
    const int least = to == &out->step;
    if (!to)
      return fail(err, ST_INPUT, "options.value.slice[%d].%.24s: there is no such field", index, key);
    if (!json_is_integer(field) || json_integer_value(field) < least || json_integer_value(field) > NUMBER_MAX)
      return fail(err, ST_INPUT, "options.value.slice[%d].%s: expected an integer from %d to %d", index, key, least,
                  NUMBER_MAX);
    *to = json_integer_value(field);
  }
  return out->stop >= 0 ? ST_OK : fail(err, ST_INPUT, "options.value.slice[%d].stop: missing", index);
}

static enum status read_slices(const json_t *v, struct job_value *out, struct error *err) {
  const size_t n = json_array_size(v), most = sizeof out->slices / sizeof *out->slices;
  if (!json_is_array(v) || n > most)
    return fail(err, ST_INPUT, "options.value.slice: expected an array of at most %zu dimensions", most);
  for (size_t k = 0; k < n; k++) {
    enum status st = read_slice(json_array_get(v, k), (int)k, &out->slices[k], err);
    if (st)
      return st;
  }
  out->n_slices = (int)n;
  return ST_OK;
}

static enum status read_member(struct arena *a, const char *key, const json_t *v, struct job_value *out,
                               struct error *err) {
  int64_t line = 0;
  enum status st;
  if (!strcmp(key, "stage"))
    return job_read_stage(a, v, "options.value.stage", &out->stage, err);
  if (!strcmp(key, "name"))
    return job_read_name(a, v, "options.value.name", &out->name, err);
  if (!strcmp(key, "operand"))
    return job_read_name(a, v, "options.value.operand", &out->operand, err);
  if (!strcmp(key, "execution"))
    return read_number(v, "options.value.execution", &out->nth, err);
  if (!strcmp(key, "slice"))
    return read_slices(v, out, err);
  if (strcmp(key, "line") != 0)
    return fail(err, ST_INPUT, "options.value.%.24s: there is no such field", key);
  st = read_number(v, "options.value.line", &line, err);
  if (!st)
    out->line = (int)line;
  return st;
}

enum status job_read_value(struct arena *a, const json_t *v, struct job_value *out, struct error *err) {
  const char *key;
  json_t *field;
  *out = (struct job_value){.is_set = true};
  if (!json_is_object(v))
    return fail(err, ST_INPUT, "options.value: expected an object");
  json_object_foreach((json_t *)v, key, field) {
    enum status st = read_member(a, key, field, out, err);
    if (st)
      return st;
  }
  if (!out->stage)
    return fail(err, ST_INPUT, "options.value.stage: missing");
  return out->line || out->name ? ST_OK : fail(err, ST_INPUT, "options.value.line: missing, and there is no name");
}

/* ---- the command line -------------------------------------------------------------------------------------------- */

/* Reads digits up to `end`. */
static bool parse_number(const char *text, const char *end, int64_t *out) {
  char *stop;
  errno = 0;
  *out = *text >= '1' && *text <= '9' ? strtol(text, &stop, 10) : 0;
  return *out > 0 && *out <= NUMBER_MAX && !errno && stop == end;
}

enum status job_parse_value(struct arena *a, const char *text, struct job_value *out, struct error *err) {
  const char *at = strrchr(text, '@'), *end = at ? at : text + strlen(text), *p = text;
  struct job_value v = {.is_set = true, .stage = out->stage};
  bool ok = !at || parse_number(at + 1, at + strlen(at), &v.nth);
  if (!strncmp(p, "line:", 5)) {
    const char *colon = memchr(p + 5, ':', (size_t)(end - p - 5));
    int64_t line = 0;
    ok = ok && parse_number(p + 5, colon ? colon : end, &line);
    v.line = (int)line;
    p = colon ? colon + 1 : end;
    ok = ok && (!colon || p < end);
  }
  if (ok && p < end)
    *(v.line && *p != '%' ? &v.operand : &v.name) = arena_strndup(a, p, (size_t)(end - p));
  if (!ok || (!v.line && !v.name))
    return fail(err, ST_INPUT, "--value %.60s: expected %%NAME, line:N, line:N:OPERAND or line:N:%%NAME, with @K",
                text);
  *out = v;
  return ST_OK;
}

/* ---- writing ----------------------------------------------------------------------------------------------------- */

static json_t *slices_json(const struct job_value *v) {
  json_t *all = json_array();
  bool failed = !all;
  for (int k = 0; k < v->n_slices; k++) {
    const struct job_slice *s = &v->slices[k];
    failed |= json_array_append_new(all, json_pack("{s:I,s:I,s:I}", "start", (json_int_t)s->start, "stop",
                                                   (json_int_t)s->stop, "step", (json_int_t)s->step)) != 0;
  }
  if (!failed)
    return all;
  json_decref(all);
  return NULL;
}

json_t *job_value_json(const struct job_value *v) {
  struct job_writer w = {.object = json_object()};
  job_put(&w, "stage", json_string(v->stage));
  if (v->line)
    job_put(&w, "line", json_integer(v->line));
  if (v->name)
    job_put(&w, "name", json_string(v->name));
  if (v->operand)
    job_put(&w, "operand", json_string(v->operand));
  if (v->nth)
    job_put(&w, "execution", json_integer(v->nth));
  if (v->n_slices)
    job_put(&w, "slice", slices_json(v));
  return job_written(&w);
}
