/* compile_tensors: the inputs and the expected outputs of the kernel for a run on a Neuron host, as artifacts of a job that wants
 * them. */
#include "driver/compile_internal.h"

#include <assert.h>
#include <stdio.h>

#include "driver/simulate_internal.h"
#include "neff/tensors.h"

static_assert((int)TENSOR_RANK_MAX >= (int)HLO_RANK_MAX, "a file has the shapes that kernels have");

static struct tensor as_tensor(const char *name, const struct trace_array *x) {
  struct tensor t = {.name = name, .dtype = x->shape.dtype, .rank = x->shape.rank, .data = x->data};
  for (int d = 0; d < t.rank; d++)
    t.dims[d] = x->shape.dims[d];
  t.size = (size_t)hlo_shape_elements(&x->shape) * dtype_size(t.dtype);
  return t;
}

static struct tensors inputs(const struct path *p, const struct simulation *s) {
  const struct trace_kernel *k = p->kernel;
  struct tensors t = {.v = arena_new_array(p->run->arena, struct tensor, (size_t)k->n_inputs + 1)};
  for (; t.n < k->n_inputs; t.n++)
    t.v[t.n] = as_tensor(k->inputs[t.n].name, &s->rq->in[t.n]);
  return t;
}

/* Of every output: simulated/NAME, reference/NAME if there is one, and spread/NAME, by how much the reference depends on
 * rounding, if that is known. */
static void add_expected(const struct path *p, const struct simulation *s, int k, struct tensors *t) {
  struct arena *a = p->run->arena;
  const char *name = p->kernel->outputs[k].name;
  const struct trace_array *want = s->rq->reference ? &s->rq->want[k] : NULL;
  const struct trace_array simulated = compile_simulated_output(s, k, a);
  t->v[t->n++] = as_tensor(arena_printf(a, "simulated/%s", name), &simulated);
  if (want)
    t->v[t->n++] = as_tensor(arena_printf(a, "reference/%s", name), want);
  if (want && want->spread) {
    struct trace_array spread = {.shape = want->shape, .data = (void *)want->spread};
    spread.shape.dtype = DT_F32;
    t->v[t->n++] = as_tensor(arena_printf(a, "spread/%s", name), &spread);
  }
}

static struct tensors expected(const struct path *p, const struct simulation *s) {
  const int n = p->kernel->n_outputs;
  struct tensors t = {.v = arena_new_array(p->run->arena, struct tensor, (size_t)(3 * n) + 1)};
  for (int k = 0; k < n; k++)
    add_expected(p, s, k, &t);
  if (s->rq->reference)
    t.meta[t.n_meta++] = (struct tensors_meta){"reference", s->rq->reference};
  if (s->timeline.total_ps > 0)
    t.meta[t.n_meta++] =
        (struct tensors_meta){"simulated_us", arena_printf(p->run->arena, "%.6f", (double)s->timeline.total_ps / 1e6)};
  return t;
}

static enum status send(struct path *p, const char *name, const struct tensors *t, bool *is_sent) {
  struct run *r = p->run;
  struct error err;
  struct buf b;
  buf_init(&b, ARTIFACT_MAX);
  enum status st = tensors_write(&b, t, &err);
  *is_sent = !st;
  if (!st)
    st = compile_send_artifact(p, arena_printf(r->arena, "%s/%s", p->kernel->name, name), "application/octet-stream",
                               &b);
  else {
    diag_add(&r->diags, DS_WARNING, DG_OUTPUT_LIMIT, NULL, "%s cannot be run on a device here: %s", p->kernel->name,
             st == ST_LIMIT ? "its inputs, or what is expected of it, have more than 8 MiB" : err.text);
    st = ST_OK;
  }
  buf_clear(&b);
  return st;
}

enum status compile_send_tensors(struct path *p, const struct simulation *s) {
  struct run *r = p->run;
  bool is_sent;
  static_assert(ARTIFACT_MAX == 8 << 20, "the warning states it");
  if (!compile_is_for_vendor(p)) {
    diag_add(&r->diags, DS_WARNING, DG_VENDOR_KERNEL, NULL,
             "%s is not HLO alone: neuronx-cc takes NKI kernels only as its own NKI compiled them", p->kernel->name);
    return ST_OK;
  }
  if (!s->has_record)
    return ST_OK; /* the simulation has said why it did not come to its end */
  const struct tensors in = inputs(p, s), out = expected(p, s);
  enum status st = send(p, "inputs.safetensors", &in, &is_sent);
  return st || !is_sent ? st : send(p, "expected.safetensors", &out, &is_sent);
}
