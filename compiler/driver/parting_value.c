/* parting_value: two values, each taken by a job of its side (value.h), and compared within the check's tolerances. */
#include <stdio.h>
#include <string.h>

#include <openssl/evp.h>

#include "driver/check.h"
#include "driver/frame_scan.h"
#include "driver/parting_internal.h"

/* A value from the frames of its job: what it is, and its elements, which come first. */
struct taken {
  struct arena *arena;
  struct trace_array x;
  size_t size; /* of x.data */
  bool has_shape;
  int64_t execution, executions;
  const char *reason; /* why there is no value, or NULL */
};

/* The elements of an artifact, from its base64. */
static void take_elements(struct taken *t, const struct frame *f) {
  const struct frame_member *about = frame_get(f, "artifact"), *data = frame_get(f, "data");
  struct frame artifact;
  const struct frame_member *name = NULL;
  if (data && frame_scan_object(about->value, about->value_len, &artifact, NULL) == ST_OK)
    name = frame_get(&artifact, "name");
  const size_t tail = strlen("/" VALUE_FILE_NAME "\"");
  if (!name || name->value_len < tail || data->value_len < 2 ||
      memcmp(name->value + name->value_len - tail, "/" VALUE_FILE_NAME "\"", tail) != 0)
    return;
  const char *text = data->value + 1;
  const size_t len = data->value_len - 2;
  unsigned char *to = len <= INT_MAX ? arena_try_array(t->arena, len / 4 * 3 + 1, 1) : NULL;
  const int n = to ? EVP_DecodeBlock(to, (const unsigned char *)text, (int)len) : -1;
  if (n < 0)
    return;
  t->x.data = to;
  t->size = (size_t)n - (len && text[len - 1] == '=') - (len > 1 && text[len - 2] == '=');
}

/* What the value's frame says of it. */
static void take_about(struct taken *t, const struct frame *f) {
  const struct frame_member *m = frame_get(f, "value");
  json_t *v = json_loadb(m->value, m->value_len, 0, NULL);
  const json_t *shape = json_object_get(v, "shape");
  const char *dtype = json_string_value(json_object_get(v, "dtype"));
  int64_t dims[JOB_RANK_MAX + 1];
  const int rank = (int)json_array_size(shape);
  if (json_is_array(shape) && rank <= JOB_RANK_MAX && dtype && dtype_from_name(dtype) != DT_NONE) {
    for (int d = 0; d < rank; d++)
      dims[d] = json_integer_value(json_array_get(shape, (size_t)d));
    t->x.shape = hlo_shape_array(t->arena, dtype_from_name(dtype), rank, dims);
    t->has_shape = true;
  }
  t->execution = json_integer_value(json_object_get(v, "execution"));
  t->executions = json_integer_value(json_object_get(v, "executions"));
  const char *reason = json_string_value(json_object_get(v, "reason"));
  if (reason)
    t->reason = arena_strdup(t->arena, reason);
  json_decref(v);
}

static enum status take(void *user, const char *json, size_t len) {
  struct frame f;
  if (frame_scan(json, len, &f, NULL) != ST_OK)
    return ST_BUG;
  if (f.kind == FRAME_ARTIFACT)
    take_elements(user, &f);
  if (f.kind == FRAME_VALUE)
    take_about(user, &f);
  return ST_OK;
}

/* Takes a value; *has: there is one. */
static enum status take_value(const struct parting_finder *f, int s, const struct parting_want *want, struct taken *out,
                              bool *has, struct error *err) {
  struct job job = *f->sides[s].job;
  char stage[16];
  enum job_end end;
  snprintf(stage, sizeof stage, "%d", want->stage);
  job.value = (struct job_value){.is_set = true, .stage = stage, .line = want->line, .name = want->name};
  job.check = job.simulate = false;
  job.artifacts = true;
  job.patterns = NULL;
  job.stop_after = NULL;
  const enum status st = f->runner->run(f->runner->user, &job, 0, take, out, &end, err);
  *has = !st && end == JOB_ENDED && out->x.data && out->has_shape &&
         out->size == (size_t)hlo_shape_elements(&out->x.shape) * dtype_size(out->x.shape.dtype);
  return st;
}

static enum parting_verdict compare_arrays(struct parting_finder *f, const struct taken *x, const struct taken *y,
                                           bool same_shape, struct arena *a, struct parting_found *found) {
  struct check_result r = {.wrong_index = -1};
  struct buf b;
  const bool is_alike = hlo_shape_same_dims(&x->x.shape, &y->x.shape);
  *found = (struct parting_found){.index = NULL};
  if ((!is_alike && same_shape) || x->executions != y->executions)
    return PARTING_OTHER;
  f->out->n_values++;
  if (!is_alike)
    return PARTING_APART;
  const struct trace_array got = check_convert_array(a, &y->x, x->x.shape.dtype);
  check_compare(1, &got, &x->x, &r);
  found->max_abs_err = r.max_abs_err;
  if (r.pass)
    return PARTING_ALIKE;
  buf_init(&b, 1024);
  check_put_index(&b, &x->x.shape, r.wrong_index < 0 ? 0 : r.wrong_index);
  *found = (struct parting_found){arena_strdup(f->arena, buf_text(&b)), {r.expected, r.got}, r.max_abs_err};
  buf_clear(&b);
  return PARTING_APART;
}

enum status parting_compare(struct parting_finder *f, const struct parting_want want[2], bool same_shape,
                            enum parting_verdict *verdict, struct parting_found *found, const char **reason,
                            struct error *err) {
  struct arena a;
  bool has[2] = {false, false};
  enum status st = ST_OK;
  arena_init(&a);
  struct taken t[2] = {{.arena = &a}, {.arena = &a}};
  for (int s = 0; !st && s < 2 && (!s || has[0]); s++)
    st = take_value(f, s, &want[s], &t[s], &has[s], err);
  *verdict = !st && has[1] ? compare_arrays(f, &t[0], &t[1], same_shape, &a, found) : PARTING_NO_VALUE;
  const char *why = t[has[0]].reason;
  *reason = why ? arena_strdup(f->arena, why) : NULL;
  arena_clear(&a);
  if (!st && *verdict > PARTING_OTHER && f->progress)
    f->progress(f->user, want[1].label, want[1].line, f->out->n_values);
  return st;
}

bool parting_has_budget(struct parting_finder *f) {
  if (f->out->n_values < PARTING_VALUES_MAX)
    return true;
  f->out->note = "the limit of values was reached";
  return false;
}
