#include "driver/run_device.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "base/json.h"
#include "driver/device_run.h"
#include "driver/entry.h"
#include "driver/frames.h"
#include "driver/neff_file.h"
#include "driver/run_show.h"
#include "driver/stage.h"
#include "driver/summary.h"
#include "neff/neff.h"

/* ---- options ----------------------------------------------------------------------------------------------------- */

enum { REPEATS = 10, REPEATS_MAX = 1000000 };

void run_device_init(struct run_device *d, struct arena *a) {
  *d = (struct run_device){.job = {.repeats = REPEATS}};
  vendor_command_init(&d->vendor, a);
}

bool run_device_option(struct run_device *d, int c, const char *value, struct terminal *t, enum status *st) {
  if (vendor_command_option(&d->vendor, c, value, &t->err, st))
    return d->has_options = true;
  if (c < RUN_DEVICE || c > RUN_DEVICE_PROFILE)
    return false;
  d->has_options |= c != RUN_DEVICE;
  if (c == RUN_DEVICE)
    d->device = value;
  else if (c == RUN_DEVICE_NEFF)
    d->neff_path = value;
  else if (c == RUN_DEVICE_LIBRARY)
    d->job.library = value;
  else if (c == RUN_DEVICE_CORES)
    d->job.cores = value;
  else if (c == RUN_DEVICE_PROFILE)
    d->job.profile_path = value;
  else
    *st = terminal_read_int(t, "--repeat", value, 0, REPEATS_MAX, &d->job.repeats);
  if (c == RUN_DEVICE && strcmp(value, "neuron") != 0)
    *st = fail(
        &t->err, ST_INPUT,
        "--device %.40s: expected neuron; nkx runner run runs a kernel on a Neuron host that is connected to a server",
        value);
  return true;
}

enum status run_device_read(struct run_device *d, struct terminal *t, const char *path, bool *is_alone) {
  struct neff_header h;
  struct error why = {0};
  *is_alone = false;
  if (!d->device)
    return d->has_options ? fail(&t->err, ST_INPUT,
                                 "--neff, --libnrt, --cores, --repeat and --device-profile are for "
                                 "--device neuron")
                          : ST_OK;
  t->job.device = &d->job;
  if (!d->neff_path && !neff_file_is(path))
    return vendor_command_use(&d->vendor, t);
  const char *neff = d->neff_path ? d->neff_path : path;
  enum status st = neff_file_bytes(t->arena, neff, &d->job.neff, &d->job.neff_size, &t->err);
  if (!st && neff_header_get(d->job.neff, d->job.neff_size, &h, &why))
    st = fail(&t->err, ST_INPUT, "%.80s: %.150s", neff, why.text);
  if (st)
    return st;
  *is_alone = !d->neff_path && !(h.features & NEFF_FEATURE_SIMULATION);
  if (*is_alone)
    t->job.language = LANG_MLIR; /* no Python is looked for beside it */
  return ST_OK;
}

/* ---- a NEFF alone ------------------------------------------------------------------------------------------------ */

/* The arrays of --inputs, else values drawn with the seed. */
static enum status make_inputs(const struct terminal *t, const struct device_run *r, struct diags *ds,
                               struct trace_array *in) {
  const struct trace_kernel k = {.n_inputs = r->n_inputs, .inputs = r->inputs};
  if (t->job.inputs_npz)
    return trace_npz_read(t->arena, t->job.inputs_npz, r->n_inputs, r->inputs, ds, in);
  enum status st = entry_make_inputs(t->arena, &k, t->job.seed, in);
  if (st)
    diag_add(ds, DS_ERROR, DG_MEMORY_LIMIT, NULL, "the NEFF's inputs are too large to draw: give them with --inputs");
  return st;
}

static void put_outputs(struct buf *b, const struct device_run *r, const struct trace_array *out) {
  json_put_key(b, "outputs");
  buf_putc(b, '[');
  for (int k = 0; k < r->n_outputs; k++) {
    json_put_comma(b);
    buf_putc(b, '{');
    json_put_field_str(b, "name", r->outputs[k].name);
    summary_put(b, &out[k]);
    buf_putc(b, '}');
  }
  buf_putc(b, ']');
}

static enum status run_alone(struct terminal *t, const struct job_device *job, struct buf *b, struct diags *ds) {
  struct device_run r;
  struct device_times times;
  enum status st = device_run_open(job, t->arena, ds, &r);
  struct trace_array *in = NULL, *out = NULL;
  if (!st) {
    in = arena_new_array(t->arena, struct trace_array, (size_t)r.n_inputs + 1);
    out = arena_new_array(t->arena, struct trace_array, (size_t)r.n_outputs + 1);
    st = make_inputs(t, &r, ds, in);
  }
  if (!st)
    st = device_run_execute(&r, r.n_inputs, r.inputs, in, r.n_outputs, r.outputs, out, ds, &times);
  if (!st) {
    buf_puts(b, "{\"status\":\"ok\"");
    device_run_put_about(b, &r);
    put_outputs(b, &r, out);
    device_run_put_times(b, &r, &times);
    buf_putc(b, '}');
  }
  if (!st && t->job.outputs_npz)
    st = trace_npz_write(t->arena, t->job.outputs_npz, r.n_outputs, r.outputs, out, ds);
  const enum status closed = device_run_close(&r, ds);
  return st ? st : closed;
}

static void show_diags(const struct terminal *t, const struct diags *ds) {
  for (int i = 0; i < ds->n; i++) {
    json_t *d = json_pack("{s:s, s:s, s:s}", "severity", diag_severity_name(ds->v[i].severity), "code",
                          diag_code_name(ds->v[i].code), "message", ds->v[i].message);
    if (ds->v[i].hint)
      json_object_set_new(d, "hint", json_string(ds->v[i].hint));
    terminal_show_diag(t, d);
    json_decref(d);
  }
}

enum status run_device_alone(struct run_device *d, struct terminal *t, const char *json_path) {
  struct diags ds;
  struct buf b;
  diags_init(&ds, t->arena);
  buf_init(&b, FRAME_MAX);
  enum status st = run_alone(t, &d->job, &b, &ds);
  show_diags(t, &ds);
  buf_putc(&b, '\n');
  if (!st && json_path)
    st = terminal_write(t, json_path, b.data, b.len);
  json_t *o = st || (json_path && !strcmp(json_path, "-")) ? NULL : json_loadb(buf_text(&b), b.len, 0, NULL);
  if (o)
    run_show_device(o);
  json_decref(o);
  buf_clear(&b);
  return st;
}
