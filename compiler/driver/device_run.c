#include "driver/device_run.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/json.h"
#include "neff/nrt.h"

#define ALIASED ".must_alias_input"

/* ---- opening ----------------------------------------------------------------------------------------------------- */

/* The parameter's name without what marks an input that is written. */
static const char *plain_name(struct arena *a, const char *name) {
  const size_t n = strlen(name), k = sizeof ALIASED - 1;
  return n > k && !strcmp(name + n - k, ALIASED) ? arena_strndup(a, name, n - k) : arena_strdup(a, name);
}

static enum status read_tensor(struct device_run *r, const struct device_io *io, struct diags *ds) {
  const enum dtype t = nrt_dtype_to(io->type);
  if (io->rank > HLO_RANK_MAX || t == DT_NONE) {
    diag_add(ds, DS_ERROR, DG_NEURON_NEFF, NULL, "the NEFF's tensor %s has a type or a rank that there is not here",
             io->name);
    return ST_INPUT;
  }
  struct trace_tensor *to = io->is_output ? &r->outputs[r->n_outputs++] : &r->inputs[r->n_inputs++];
  *to = (struct trace_tensor){plain_name(r->arena, io->name), hlo_shape_array(r->arena, t, io->rank, io->dims), -1,
                              false};
  return ST_OK;
}

enum status device_run_open(const struct job_device *job, struct arena *a, struct diags *ds, struct device_run *out) {
  const struct device_options options = {job->library, job->cores};
  const struct device_io *ios;
  *out = (struct device_run){.job = job, .arena = a};
  enum status st = device_open(&options, ds, &out->device);
  if (!st)
    st = device_load(out->device, job->neff, job->neff_size, 0, NULL, ds, &out->model);
  if (st)
    return st;
  const int n = device_ios(out->model, &ios);
  out->inputs = arena_new_array(a, struct trace_tensor, (size_t)n + 1);
  out->outputs = arena_new_array(a, struct trace_tensor, (size_t)n + 1);
  for (int k = 0; k < n && !st; k++)
    st = read_tensor(out, &ios[k], ds);
  return st;
}

enum status device_run_close(struct device_run *r, struct diags *ds) {
  const enum status st = device_close(r->device, ds);
  r->device = NULL;
  r->model = NULL;
  return st;
}

/* ---- executing --------------------------------------------------------------------------------------------------- */

/* The tensors of one execution. */
struct bound {
  int n_in, n_out;
  struct device_argument *in, *out;
  size_t *in_bytes, *out_bytes;
};

static const struct device_io *find_io(const struct device_run *r, const char *name, bool is_output) {
  const struct device_io *ios;
  const int n = device_ios(r->model, &ios);
  for (int k = 0; k < n; k++)
    if (ios[k].is_output == is_output && !strcmp(plain_name(r->arena, ios[k].name), name))
      return &ios[k];
  return NULL;
}

/* Finds the NEFF's tensor, which must have the bytes of the kernel's. */
static enum status find_argument(struct device_run *r, const struct trace_tensor *t, bool is_output,
                                 struct device_argument *out, size_t *bytes, struct diags *ds) {
  const char *what = is_output ? "output" : "input";
  const struct device_io *io = find_io(r, t->name, is_output);
  *bytes = (size_t)hlo_shape_elements(&t->shape) * dtype_size(t->shape.dtype);
  if (io && io->size == *bytes) {
    out->name = io->name;
    return ST_OK;
  }
  if (io)
    diag_add(ds, DS_ERROR, DG_NEURON_NEFF, NULL, "the %s %s has %zu bytes in the NEFF, and %zu in the kernel", what,
             t->name, io->size, *bytes);
  else
    diag_add(ds, DS_ERROR, DG_NEURON_NEFF, NULL, "the NEFF has no %s %s: it is of another kernel", what, t->name);
  return ST_INPUT;
}

/* Allocates the tensors.  An output that an input's name says to be in place has the input's tensor. */
static enum status allocate(struct device_run *r, const struct trace_tensor *outputs, struct bound *b,
                            struct diags *ds) {
  const int core = device_core(r->model);
  enum status st = ST_OK;
  for (int k = 0; k < b->n_in && !st; k++)
    st = device_tensor_new(r->device, core, b->in_bytes[k], b->in[k].name, ds, &b->in[k].tensor);
  for (int k = 0; k < b->n_out && !st; k++) {
    const char *written = arena_printf(r->arena, "%s" ALIASED, outputs[k].name);
    for (int i = 0; i < b->n_in; i++)
      if (!strcmp(b->in[i].name, written))
        b->out[k].tensor = b->in[i].tensor;
    if (!b->out[k].tensor)
      st = device_tensor_new(r->device, core, b->out_bytes[k], b->out[k].name, ds, &b->out[k].tensor);
  }
  return st;
}

static enum status bind(struct device_run *r, const struct trace_tensor *inputs, const struct trace_tensor *outputs,
                        struct bound *b, struct diags *ds) {
  enum status st = ST_OK;
  b->in = arena_new_array(r->arena, struct device_argument, (size_t)b->n_in + 1);
  b->out = arena_new_array(r->arena, struct device_argument, (size_t)b->n_out + 1);
  memset(b->in, 0, (size_t)b->n_in * sizeof *b->in);
  memset(b->out, 0, (size_t)b->n_out * sizeof *b->out);
  b->in_bytes = arena_new_array(r->arena, size_t, (size_t)b->n_in + 1);
  b->out_bytes = arena_new_array(r->arena, size_t, (size_t)b->n_out + 1);
  for (int k = 0; k < b->n_in && !st; k++)
    st = find_argument(r, &inputs[k], false, &b->in[k], &b->in_bytes[k], ds);
  for (int k = 0; k < b->n_out && !st; k++)
    st = find_argument(r, &outputs[k], true, &b->out[k], &b->out_bytes[k], ds);
  if (!st && (b->n_in != r->n_inputs || b->n_out != r->n_outputs)) {
    diag_add(ds, DS_ERROR, DG_NEURON_NEFF, NULL, "the NEFF has %d inputs and %d outputs, the kernel %d and %d",
             r->n_inputs, r->n_outputs, b->n_in, b->n_out);
    st = ST_INPUT;
  }
  return st ? st : allocate(r, outputs, b, ds);
}

/* The inputs are written each time, because the kernel may write them. */
static enum status execute(struct device_run *r, const struct bound *b, const struct trace_array *in, struct diags *ds,
                           int64_t *ns) {
  enum status st = ST_OK;
  for (int k = 0; k < b->n_in && !st; k++)
    st = device_tensor_write(b->in[k].tensor, 0, in[k].data, b->in_bytes[k], ds);
  return st ? st : device_execute(r->model, b->n_in, b->in, b->n_out, b->out, ds, ns);
}

static enum status read_outputs(struct device_run *r, const struct bound *b, const struct trace_tensor *outputs,
                                struct trace_array *out, struct diags *ds) {
  enum status st = ST_OK;
  for (int k = 0; k < b->n_out && !st; k++) {
    out[k] = (struct trace_array){.shape = outputs[k].shape, .data = arena_alloc(r->arena, b->out_bytes[k] + 1)};
    st = device_tensor_read(b->out[k].tensor, 0, out[k].data, b->out_bytes[k], ds);
  }
  return st;
}

static int by_size(const void *a, const void *b) {
  const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
  return (x > y) - (x < y);
}

static enum status repeat(struct device_run *r, const struct bound *b, const struct trace_array *in, struct diags *ds,
                          struct device_times *times) {
  const int n = r->job->repeats;
  int64_t *ns = arena_new_array(r->arena, int64_t, (size_t)n + 1);
  enum status st = ST_OK;
  for (int k = 0; k < n && !st; k++)
    st = execute(r, b, in, ds, &ns[k]);
  if (st || !n)
    return st;
  qsort(ns, (size_t)n, sizeof *ns, by_size);
  times->least_ns = ns[0];
  times->median_ns = ns[n / 2];
  return ST_OK;
}

enum status device_run_execute(struct device_run *r, int n_in, const struct trace_tensor *inputs,
                               const struct trace_array *in, int n_out, const struct trace_tensor *outputs,
                               struct trace_array *out, struct diags *ds, struct device_times *times) {
  const char *profile = r->job->profile_path;
  struct bound b = {.n_in = n_in, .n_out = n_out};
  *times = (struct device_times){-1, -1, -1};
  enum status st = bind(r, inputs, outputs, &b, ds);
  if (!st && profile)
    st = device_profile_start(r->model, profile, ds);
  if (!st) {
    st = execute(r, &b, in, ds, &times->first_ns);
    const enum status stopped = profile ? device_profile_stop(r->model, profile, ds) : ST_OK;
    st = st ? st : stopped;
  }
  if (!st)
    st = read_outputs(r, &b, outputs, out, ds);
  return st ? st : repeat(r, &b, in, ds, times);
}

/* ---- reporting --------------------------------------------------------------------------------------------------- */

void device_run_put_about(struct buf *b, const struct device_run *r) {
  const struct device_about *about = device_about(r->device);
  json_put_field_str(b, "library", about->path);
  json_put_field_str(b, "version", about->version);
  json_put_field_bool(b, "stand_in", about->is_stand_in);
  if (about->cores >= 0)
    json_put_field_int(b, "cores", about->cores);
}

void device_run_put_times(struct buf *b, const struct device_run *r, const struct device_times *times) {
  json_put_key(b, "measured");
  buf_putc(b, '{');
  json_put_field_int(b, "executions", 1 + r->job->repeats);
  json_put_field_double(b, "first_us", (double)times->first_ns / 1e3);
  if (times->least_ns >= 0) {
    json_put_field_double(b, "least_us", (double)times->least_ns / 1e3);
    json_put_field_double(b, "median_us", (double)times->median_ns / 1e3);
  }
  buf_putc(b, '}');
}
