/* compile_vendor: compiles the kernel's HLO, as traced, with the vendor's compiler. */
#include "driver/compile_internal.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "hlo/passes.h"
#include "hlo/print.h"
#include "neff/vendor.h"
#include "driver/vendor_stage.h"
#include "base/clock.h"

enum { PROTO_MAX = 1 << 30 };

/* ---- the HLO ----------------------------------------------------------------------------------------------------- */

static bool calls_nki(const struct hlo_module *m) {
  for (const struct hlo_computation *c = m->computations; c; c = c->next)
    hlo_for_each(i, c) {
      const char *target = i->attrs->custom_call_target;
      if (target && !strncmp(target, HLO_NATIVE_PREFIX, sizeof HLO_NATIVE_PREFIX - 1))
        return true;
    }
  return false;
}

bool compile_is_for_vendor(const struct path *p) {
  return p->kernel->module && !calls_nki(p->kernel->module);
}

static enum status write_proto(struct path *p, struct buf *b) {
  struct run *r = p->run;
  const struct hlo_module *m = p->kernel->module;
  if (!compile_is_for_vendor(p)) {
    diag_add(&r->diags, DS_ERROR, DG_VENDOR_KERNEL, NULL,
             "%s is not HLO alone: neuronx-cc takes NKI kernels only as its own NKI compiled them", p->kernel->name);
    return ST_INPUT;
  }
  enum status st = hlo_verify(m, &r->diags);
  if (!st && hlo_write_proto(m, b)) {
    diag_add(&r->diags, DS_ERROR, DG_OUTPUT_LIMIT, NULL, "the HLO is too large");
    st = ST_LIMIT;
  }
  return st;
}

static const struct src_loc *find_place(void *user, const char *name) {
  const struct path *p = user;
  for (const struct hlo_computation *c = p->kernel->module->computations; c; c = c->next)
    hlo_for_each(i, c) {
      if (!strcmp(i->name, name) && i->locs.n)
        return i->locs.v[0];
    }
  return NULL;
}

static void take_names(struct path *p) {
  vendor_names_init(&p->vendor_names, p->run->arena);
  for (const struct hlo_computation *c = p->kernel->module->computations; c; c = c->next)
    hlo_for_each(i, c) {
      if (i->locs.n)
        vendor_names_add(&p->vendor_names, i->name, i->locs.v[0]);
    }
}

/* ---- compiling --------------------------------------------------------------------------------------------------- */

static enum status write_file(struct run *r, const char *path, const struct vendor_result *x) {
  FILE *f = fopen(path, "wbe");
  bool ok = f && fwrite(x->data, 1, x->size, f) == x->size;
  if (f)
    ok &= fclose(f) == 0;
  if (!ok)
    diag_add(&r->diags, DS_ERROR, DG_BAD_INPUTS, NULL, "%s: %s", path, strerror(errno));
  return ok ? ST_OK : ST_INPUT;
}

/* The log function of the job has another user than that of the places. */
static void pass_log(void *user, const char *line) {
  const struct job_vendor *v = ((const struct path *)user)->run->job->vendor;
  v->log(v->user, line);
}

static enum status make(struct path *p, enum vendor_product product, const char *path, const struct buf *proto,
                        struct vendor_result *out) {
  struct run *r = p->run;
  const struct vendor_request rq = {.options = r->job->vendor->options,
                                    .product = product,
                                    .target = r->job->target,
                                    .proto = proto->data,
                                    .proto_size = proto->len,
                                    .place = find_place,
                                    .log = r->job->vendor->log ? pass_log : NULL,
                                    .user = p};
  const enum status st = vendor_compile(r->arena, &rq, &r->diags, out);
  return st || !path ? st : write_file(r, path, out);
}

enum status compile_with_vendor(struct path *p) {
  struct run *r = p->run;
  const struct job_vendor *v = r->job->vendor;
  struct vendor_result neff = {0}, nki = {0};
  struct buf proto;
  buf_init(&proto, PROTO_MAX);
  enum status st = write_proto(p, &proto);
  if (!st && (v->neff_path || r->job->device))
    st = make(p, VENDOR_NEFF, v->neff_path, &proto, &neff);
  const int64_t began_us = clock_now_us();
  if (!st && (v->nki_path || v->nki_is_stage))
    st = make(p, VENDOR_NKI, v->nki_path, &proto, &nki);
  if (!st) {
    p->neff = neff.data;
    p->neff_size = neff.size;
    p->vendor_nki = v->nki_is_stage ? nki.data : NULL;
    p->vendor_nki_len = nki.size;
    p->vendor_nki_us = clock_now_us() - began_us;
    take_names(p);
  }
  buf_clear(&proto);
  r->has_failed |= st != ST_OK;
  return compile_send_diags(r, p->number);
}

/* ---- the stage --------------------------------------------------------------------------------------------------- */

/* The HLO that the compiler got has changed since: the names and places of the trace were taken before. */
enum status compile_send_vendor_stage(struct path *p) {
  struct run *r = p->run;
  const struct vendor_stage s = {
      .text = p->vendor_nki, .len = p->vendor_nki_len, .index = p->pipeline->n, .time_us = p->vendor_nki_us};
  struct buf b;
  buf_init(&b, FRAME_MAX);
  buf_printf(&b, "{\"frame\":\"stage\",\"kernel\":%d,\"stage\":", p->number);
  vendor_stage_put(&b, &s, &p->vendor_names, &r->sources);
  buf_putc(&b, '}');
  const enum status st = compile_send_stage_frame(r, &b, VENDOR_STAGE_NAME);
  return st == ST_INPUT ? compile_send_diags(r, p->number) : st;
}
