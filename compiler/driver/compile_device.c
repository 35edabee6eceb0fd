/* compile_device: runs the kernel's NEFF on a Neuron device beside the simulated run, and sends what came out. */
#include "driver/compile_internal.h"

#include "base/json.h"
#include "driver/check.h"
#include "driver/device_report.h"
#include "driver/device_run.h"
#include "driver/simulate_internal.h"

/* Reports an output that is not what it is compared with. */
static void report(const struct path *p, int k, const char *what, const struct check_result *r) {
  if (!r->pass)
    diag_add(&p->run->diags, DS_ERROR, DG_CHECK_FAILED, NULL, "the device's output %s differs from %s by %g",
             p->kernel->outputs[k].name, what, r->max_abs_err);
}

struct trace_array compile_simulated_output(const struct simulation *s, int k, struct arena *a) {
  struct trace_array x = check_convert_array(a, &s->out[k], s->rq->kernel->outputs[k].shape.dtype);
  x.spread = s->rq->reference ? s->rq->want[k].spread : NULL;
  return x;
}

static void put_output(struct path *p, const struct simulation *s, int k, const struct trace_array *got,
                       struct buf *b) {
  struct check_result reference, simulator;
  const struct trace_array other = s->has_record ? compile_simulated_output(s, k, p->run->arena) : *got;
  const struct device_expected e = {
      .reference = s->rq->reference, .want = &s->rq->want[k], .simulated = s->has_record ? &other : NULL};
  device_report_put_output(b, p->kernel->outputs[k].name, got, &e, &reference, &simulator);
  if (e.reference)
    report(p, k, "the reference", &reference);
  if (e.simulated)
    report(p, k, "the simulated one", &simulator);
}

static enum status run_on_device(struct path *p, const struct simulation *s, struct device_run *d, struct buf *b) {
  struct run *r = p->run;
  struct job_device *job = arena_dup(r->arena, r->job->device, sizeof *job);
  const struct trace_kernel *k = p->kernel;
  struct trace_array *out = arena_new_array(r->arena, struct trace_array, (size_t)k->n_outputs + 1);
  struct device_times times;
  if (!job->neff) {
    job->neff = p->neff;
    job->neff_size = p->neff_size;
  }
  enum status st = device_run_open(job, r->arena, &r->diags, d);
  if (!st)
    st = device_run_execute(d, k->n_inputs, k->inputs, s->rq->in, k->n_outputs, k->outputs, out, &r->diags, &times);
  if (d->device)
    device_run_put_about(b, d);
  if (st)
    return st;
  json_put_key(b, "outputs");
  buf_putc(b, '[');
  for (int i = 0; i < k->n_outputs; i++)
    put_output(p, s, i, &out[i], b);
  buf_putc(b, ']');
  device_run_put_times(b, d, &times);
  if (s->timeline.total_ps > 0)
    json_put_field_double(b, "simulated_us", (double)s->timeline.total_ps / 1e6);
  return ST_OK;
}

enum status compile_send_device(struct path *p, const struct simulation *s) {
  struct device_run d = {.device = NULL};
  struct buf b, members;
  buf_init(&b, FRAME_MAX);
  buf_init(&members, FRAME_MAX);
  buf_putc(&members, '{');
  enum status st = run_on_device(p, s, &d, &members);
  const enum status closed = device_run_close(&d, &p->run->diags);
  st = st ? st : closed;
  buf_printf(&b, "{\"frame\":\"device\",\"kernel\":%d,\"device\":{", p->number);
  json_put_field_str(&b, "status", st ? "error" : "ok");
  if (members.len > 1)
    buf_putc(&b, ',');
  buf_append(&b, members.data + 1, members.len - 1);
  buf_puts(&b, "}}");
  buf_clear(&members);
  return compile_send(p->run, &b);
}
