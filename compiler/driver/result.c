#include "driver/result.h"

#include <stdlib.h>
#include <string.h>

#include <jansson.h>

struct result {
  json_t *root, *kernels, *diagnostics, *artifacts;
  int n_stages;
  bool is_started, is_ended, is_ok;
};

struct result *result_new(void) {
  struct result *r = calloc(1, sizeof *r);
  if (!r)
    return NULL;
  r->root = json_pack("{s:i, s:s}", "version", 1, "status", "error");
  r->kernels = json_array();
  r->diagnostics = json_array();
  r->artifacts = json_array();
  if (!r->root || !r->kernels || !r->diagnostics || !r->artifacts || json_object_set(r->root, "kernels", r->kernels) ||
      json_object_set(r->root, "diagnostics", r->diagnostics) || json_object_set(r->root, "artifacts", r->artifacts)) {
    result_free(r);
    return NULL;
  }
  return r;
}

void result_free(struct result *r) {
  if (!r)
    return;
  json_decref(r->root);
  json_decref(r->kernels);
  json_decref(r->diagnostics);
  json_decref(r->artifacts);
  free(r);
}

bool result_is_ended(const struct result *r) {
  return r->is_ended;
}

int result_n_stages(const struct result *r) {
  return r->n_stages;
}

const char *result_status(const struct result *r) {
  return r->is_ended && r->is_ok ? "ok" : "error";
}

static enum status append(json_t *list, json_t *item, size_t max, struct error *err) {
  if (!json_is_object(item))
    return fail(err, ST_INPUT, "frame without its object");
  if (json_array_size(list) >= max)
    return fail(err, ST_LIMIT, "more than %zu entries", max);
  return json_array_append(list, item) ? fail(err, ST_NOMEM, "result") : ST_OK;
}

static enum status add_start(struct result *r, json_t *f, struct error *err) {
  static const char *const fields[] = {"key", "language", "target", "pipeline"};
  if (r->is_started)
    return fail(err, ST_INPUT, "second start frame");
  r->is_started = true;
  for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
    json_t *v = json_object_get(f, fields[i]);
    if (!json_is_string(v))
      return fail(err, ST_INPUT, "start frame without %s", fields[i]);
    if (json_object_set(r->root, fields[i], v))
      return fail(err, ST_NOMEM, "result");
  }
  return ST_OK;
}

static enum status add_kernel(struct result *r, json_t *f, struct error *err) {
  json_t *k = json_object();
  enum status st = ST_OK;
  if (!k || json_object_set(k, "name", json_object_get(f, "name")) ||
      json_object_set(k, "inputs", json_object_get(f, "inputs")) ||
      json_object_set(k, "outputs", json_object_get(f, "outputs")) || json_object_set_new(k, "stages", json_array()))
    st = fail(err, ST_INPUT, "kernel frame without its fields");
  else if (json_integer_value(json_object_get(f, "kernel")) != (json_int_t)json_array_size(r->kernels))
    st = fail(err, ST_INPUT, "kernel frames out of order");
  else
    st = append(r->kernels, k, RESULT_KERNELS_MAX, err);
  json_decref(k);
  return st;
}

static enum status add_stage(struct result *r, json_t *f, struct error *err) {
  json_int_t i = json_integer_value(json_object_get(f, "kernel"));
  json_t *k = i >= 0 ? json_array_get(r->kernels, (size_t)i) : NULL;
  if (!k)
    return fail(err, ST_INPUT, "stage frame of an unknown kernel");
  enum status st = append(json_object_get(k, "stages"), json_object_get(f, "stage"), RESULT_STAGES_MAX, err);
  r->n_stages += !st;
  return st;
}

static enum status add_end(struct result *r, json_t *f, struct error *err) {
  const char *status = json_string_value(json_object_get(f, "status"));
  if (!status)
    return fail(err, ST_INPUT, "end frame without status");
  r->is_ended = true;
  r->is_ok = !strcmp(status, "ok");
  json_t *time = json_object_get(f, "time_us");
  if (json_is_integer(time) && json_object_set(r->root, "time_us", time))
    return fail(err, ST_NOMEM, "result");
  return ST_OK;
}

static enum status add(struct result *r, json_t *f, struct error *err) {
  const char *kind = json_string_value(json_object_get(f, "frame"));
  if (!kind)
    return fail(err, ST_INPUT, "not a frame");
  if (r->is_ended)
    return fail(err, ST_INPUT, "frame after the end");
  if (!strcmp(kind, "start"))
    return add_start(r, f, err);
  if (!strcmp(kind, "kernel"))
    return add_kernel(r, f, err);
  if (!strcmp(kind, "stage"))
    return add_stage(r, f, err);
  if (!strcmp(kind, "diagnostic"))
    return append(r->diagnostics, json_object_get(f, "diagnostic"), RESULT_DIAGS_MAX, err);
  if (!strcmp(kind, "artifact"))
    return append(r->artifacts, json_object_get(f, "artifact"), RESULT_ARTIFACTS_MAX, err);
  if (!strcmp(kind, "end"))
    return add_end(r, f, err);
  return fail(err, ST_INPUT, "frame of an unknown kind");
}

enum status result_add(struct result *r, const char *frame, size_t len, struct error *err) {
  json_error_t jerr;
  json_t *f = json_loadb(frame, len, JSON_REJECT_DUPLICATES, &jerr);
  if (!f)
    return fail(err, ST_INPUT, "frame is not JSON: %s", jerr.text);
  enum status st = add(r, f, err);
  json_decref(f);
  return st;
}

enum status result_add_error(struct result *r, const char *code, const char *message, const char *hint) {
  json_t *d = json_pack("{s:s, s:s, s:s, s:s*}", "severity", "error", "code", code, "message", message, "hint", hint);
  if (!d)
    return ST_NOMEM;
  r->is_ok = false;
  return json_array_append_new(r->diagnostics, d) ? ST_NOMEM : ST_OK;
}

char *result_dump(const struct result *r, size_t *len) {
  if (json_object_set_new(r->root, "status", json_string(result_status(r))))
    return NULL;
  char *text = json_dumps(r->root, JSON_COMPACT);
  *len = text ? strlen(text) : 0;
  return text;
}
