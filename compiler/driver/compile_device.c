/* compile_device: runs the kernel's NEFF on a Neuron device beside the simulated run, and sends what came out. */
#include "driver/compile_internal.h"

#include "base/json.h"
#include "driver/check.h"
#include "driver/device_run.h"
#include "driver/simulate_internal.h"
#include "driver/summary.h"

/* of: what it was compared with; NULL if the key says it. */
static void put_comparison(struct buf *b, const char *key, const char *of, const struct check_result *r) {
  json_put_key(b, key);
  buf_putc(b, '{');
  if (of)
    json_put_field_str(b, "of", of);
  json_put_field_bool(b, "pass", r->pass);
  json_put_field_double(b, "max_abs_err", r->max_abs_err);
  json_put_field_double(b, "max_rel_err", r->max_rel_err);
  buf_putc(b, '}');
}

/* Reports an output that is not what it is compared with. */
static void report(const struct path *p, int k, const char *what, const struct check_result *r) {
  if (!r->pass)
    diag_add(&p->run->diags, DS_ERROR, DG_CHECK_FAILED, NULL, "the device's output %s differs from %s by %g",
             p->kernel->outputs[k].name, what, r->max_abs_err);
}

/* What the simulator computed, as the kernel's type: a pass may have narrowed it.  Rounding matters as much as for the
 * reference. */
static struct trace_array simulated(const struct simulation *s, int k, struct arena *a) {
  struct trace_array x = check_convert_array(a, &s->out[k], s->rq->kernel->outputs[k].shape.dtype);
  x.spread = s->rq->reference ? s->rq->want[k].spread : NULL;
  return x;
}

static void put_output(struct path *p, const struct simulation *s, int k, const struct trace_array *got,
                       struct buf *b) {
  struct check_result r;
  json_put_comma(b);
  buf_putc(b, '{');
  json_put_field_str(b, "name", p->kernel->outputs[k].name);
  summary_put(b, got);
  if (s->rq->reference) {
    check_compare(1, got, &s->rq->want[k], &r);
    put_comparison(b, "reference", s->rq->reference, &r);
    report(p, k, "the reference", &r);
  }
  if (s->has_record) {
    const struct trace_array want = simulated(s, k, p->run->arena);
    check_compare(1, got, &want, &r);
    put_comparison(b, "simulator", NULL, &r);
    report(p, k, "the simulated one", &r);
  }
  buf_putc(b, '}');
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
