/* compile_package: the simulation package of a kernel (neff/package.h), an artifact of a job that wants artifacts. */
#include <assert.h>

#include "driver/compile_internal.h"
#include "driver/simulate_internal.h"
#include "neff/package.h"

static_assert((int)NEFF_PACKAGE_RANK_MAX == (int)HLO_RANK_MAX, "a package has the shapes that kernels have");

static struct neff_io *ios(struct arena *a, int n, const struct trace_tensor *v) {
  struct neff_io *out = arena_new_array(a, struct neff_io, (size_t)n);
  for (int k = 0; k < n; k++) {
    out[k] = (struct neff_io){
        .name = v[k].name, .dtype = v[k].shape.dtype, .rank = v[k].shape.rank, .alias_of = v[k].alias_of};
    for (int d = 0; d < out[k].rank; d++)
      out[k].dims[d] = v[k].shape.dims[d];
  }
  return out;
}

static enum status send(struct path *p, struct simulation *s, struct arena *a) {
  struct run *r = p->run;
  const struct trace_kernel *k = p->kernel;
  struct neff_package package = {.kernel = k->name,
                                 .release = release_version(),
                                 .pipeline = pipeline_version(),
                                 .target = r->job->target,
                                 .n_inputs = k->n_inputs,
                                 .n_outputs = k->n_outputs,
                                 .inputs = ios(a, k->n_inputs, k->inputs),
                                 .outputs = ios(a, k->n_outputs, k->outputs),
                                 .text = p->before.text,
                                 .text_len = p->before.text_len,
                                 .program = &s->program,
                                 .time_ps = simulate_time(s, a) ? s->timeline.total_ps : -1};
  struct neff x;
  struct error err;
  struct buf b;
  buf_init(&b, ARTIFACT_MAX);
  enum status st = neff_package_make(a, &package, &x, &err);
  if (!st)
    st = neff_write(&x, &b, &err);
  if (!st)
    st = compile_send_described_artifact(p, arena_printf(r->arena, "%s/" NEFF_PACKAGE_NAME, k->name), NEFF_MEDIA_TYPE,
                                         NEFF_SIMULATION_WHAT, &b);
  else if (st == ST_INPUT || st == ST_LIMIT) {
    diag_add(&r->diags, DS_WARNING, DG_OUTPUT_LIMIT, NULL, "there is no simulation package: %s", err.text);
    st = ST_OK;
  } else
    diag_add(&r->diags, DS_ERROR, DG_INTERNAL, NULL, "there is no simulation package");
  buf_clear(&b);
  return st;
}

enum status compile_send_package(struct path *p) {
  struct run *r = p->run;
  const struct simulate_request rq = compile_simulate_request(p);
  struct simulation *s;
  struct arena scratch;
  if (!p->before.def || p->before.index != p->pipeline->n - 1 || p->before.def->hand == HAND_OUT)
    return ST_OK; /* the kernel was not taken to the last stage */
  if (simulate_open(&rq, &r->diags, &s))
    return compile_send_diags(r, p->number);
  arena_init(&scratch);
  enum status st = send(p, s, &scratch);
  arena_clear(&scratch);
  return st ? st : compile_send_diags(r, p->number);
}
