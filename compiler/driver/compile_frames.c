/* compile_frames: the frames of a job, and its artifacts. */
#include "driver/compile_internal.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/evp.h>
#include <openssl/sha.h>

#include "base/clock.h"
#include "base/json.h"
#include "hlo/print.h"

enum status compile_send(struct run *r, struct buf *b) {
  enum status st = buf_status(b);
  if (!st)
    st = r->sink(r->user, b->data, b->len);
  buf_clear(b);
  return st;
}

/* True if an earlier diagnostic, which is not an error, has the same text and the same place. */
static bool is_repeated(const struct diags *ds, int at) {
  const struct diag *d = &ds->v[at];
  for (int i = 0; i < at && d->severity != DS_ERROR; i++) {
    const struct diag *e = &ds->v[i];
    if (e->severity == d->severity && e->code == d->code && src_loc_equal(e->loc, d->loc) &&
        !strcmp(e->message, d->message))
      return true;
  }
  return false;
}

/* Sends the diagnostics that were added since the last call; repeated warnings and notes are sent once. */
enum status compile_send_diags(struct run *r, int kernel) {
  enum status st = ST_OK;
  for (; !st && r->n_diags_sent < r->diags.n; r->n_diags_sent++) {
    struct buf b;
    if (is_repeated(&r->diags, r->n_diags_sent))
      continue;
    buf_init(&b, FRAME_MAX);
    stage_put_diag_frame(&b, &r->diags.v[r->n_diags_sent], kernel);
    st = compile_send(r, &b);
  }
  return st;
}

/* Ends the job because a frame would exceed FRAME_MAX. */
static enum status refuse_frame(struct run *r, const char *stage) {
  struct diag *d =
      diag_add(&r->diags, DS_ERROR, DG_OUTPUT_LIMIT, NULL,
               "this stage is larger than %d MiB with its maps, the most that a result can hold", FRAME_MAX >> 20);
  d->stage = stage;
  d->hint = "stop after an earlier stage, or compile parts of the kernel";
  return ST_INPUT;
}

enum status compile_send_stage_frame(struct run *r, struct buf *stage, const char *name) {
  struct buf sources;
  enum status st = ST_OK;
  if (sources_has_news(&r->sources)) {
    buf_init(&sources, FRAME_MAX);
    sources_put_frame(&sources, &r->sources);
    st = compile_send(r, &sources);
  }
  if (!st && buf_status(stage) == ST_LIMIT)
    st = refuse_frame(r, name);
  if (!st)
    return compile_send(r, stage);
  buf_clear(stage);
  return st;
}

enum status compile_send_stage(struct run *r, const struct stage *s, int kernel) {
  struct buf b;
  buf_init(&b, FRAME_MAX);
  stage_put_frame(&b, s, kernel, &r->sources, &r->told);
  return compile_send_stage_frame(r, &b, s->def->name);
}

static const char *find_key(struct run *r) {
  size_t len;
  char *key, *text;
  if (r->job->key)
    return r->job->key;
  text = job_dump(r->job, &len);
  if (!text)
    arena_oom(r->job->source_len);
  key = arena_alloc(r->arena, JOB_KEY_SIZE);
  job_key(text, len, key);
  free(text);
  return key;
}

enum status compile_send_start(struct run *r) {
  struct buf b;
  buf_init(&b, FRAME_MAX);
  frames_put_start(&b, find_key(r), language_name(r->job->language), target_name(r->job->target), pipeline_version());
  return compile_send(r, &b);
}

static void put_tensors(struct buf *b, const char *key, const struct trace_tensor *v, int n) {
  json_put_key(b, key);
  buf_putc(b, '[');
  for (int i = 0; i < n; i++) {
    json_put_comma(b);
    buf_putc(b, '{');
    json_put_field_str(b, "name", v[i].name);
    json_put_key(b, "shape");
    buf_putc(b, '[');
    for (int d = 0; d < v[i].shape.rank; d++)
      buf_printf(b, d ? ",%lld" : "%lld", (long long)v[i].shape.dims[d]);
    buf_putc(b, ']');
    json_put_field_str(b, "dtype", dtype_numpy_name(v[i].shape.dtype));
    if (v[i].alias_of >= 0)
      json_put_field_int(b, "alias_of", v[i].alias_of);
    buf_putc(b, '}');
  }
  buf_putc(b, ']');
}

enum status compile_send_kernel(struct path *p) {
  struct buf b;
  buf_init(&b, FRAME_MAX);
  buf_printf(&b, "{\"frame\":\"kernel\",\"kernel\":%d", p->number);
  json_put_field_str(&b, "name", p->kernel->name);
  json_put_field_str(&b, "pipeline", p->pipeline->name);
  put_tensors(&b, "inputs", p->kernel->inputs, p->kernel->n_inputs);
  put_tensors(&b, "outputs", p->kernel->outputs, p->kernel->n_outputs);
  buf_putc(&b, '}');
  return compile_send(p->run, &b);
}

enum status compile_send_end(struct run *r, int64_t started_us) {
  struct buf b;
  buf_init(&b, FRAME_MAX);
  buf_puts(&b, "{\"frame\":\"end\"");
  json_put_field_str(&b, "status", r->has_failed ? "error" : "ok");
  json_put_field_int(&b, "time_us", clock_now_us() - started_us);
  buf_putc(&b, '}');
  return compile_send(r, &b);
}

static void put_upgraded(struct buf *b, const struct nki_upgraded *f) {
  json_put_comma(b);
  buf_putc(b, '{');
  json_put_field_str(b, "name", f->name);
  json_put_field_str(b, "source", f->text);
  json_put_key(b, "marks");
  buf_putc(b, '[');
  for (int i = 0; i < f->n_marks; i++) {
    json_put_comma(b);
    buf_putc(b, '{');
    json_put_field_int(b, "line", f->marks[i].line);
    json_put_field_str(b, "reason", f->marks[i].reason);
    buf_putc(b, '}');
  }
  buf_puts(b, "]}");
}

enum status compile_send_upgrade(struct run *r, int n, const struct nki_upgraded *files) {
  struct buf b;
  buf_init(&b, FRAME_MAX);
  buf_puts(&b, "{\"frame\":\"upgrade\",\"upgrade\":{\"files\":[");
  for (int i = 0; i < n; i++)
    put_upgraded(&b, &files[i]);
  buf_puts(&b, "]}}");
  return compile_send(r, &b);
}

enum status compile_send_shrink(struct run *r, const char *answer) {
  struct buf b;
  buf_init(&b, FRAME_MAX);
  buf_printf(&b, "{\"frame\":\"shrink\",\"shrink\":%s}", answer);
  return compile_send(r, &b);
}

/* ---- artifacts --------------------------------------------------------------------------------------------------- */

enum status compile_send_artifact(struct path *p, const char *name, const char *type, const struct buf *data) {
  return compile_send_described_artifact(p, name, type, NULL, data);
}

enum status compile_send_described_artifact(struct path *p, const char *name, const char *type, const char *what,
                                            const struct buf *data) {
  unsigned char digest[SHA256_DIGEST_LENGTH];
  char hex[2 * SHA256_DIGEST_LENGTH + 1];
  struct buf b;

  SHA256((const unsigned char *)buf_text(data), data->len, digest);
  for (int i = 0; i < SHA256_DIGEST_LENGTH; i++)
    snprintf(hex + 2 * i, 3, "%02x", digest[i]);
  buf_init(&b, FRAME_MAX);
  buf_puts(&b, "{\"frame\":\"artifact\",\"artifact\":{");
  json_put_field_str(&b, "name", name);
  json_put_field_int(&b, "kernel", p->number);
  json_put_field_str(&b, "media_type", type);
  if (what)
    json_put_field_str(&b, "what", what);
  json_put_field_int(&b, "size", (long long)data->len);
  json_put_field_str(&b, "sha256", hex);
  buf_puts(&b, "},\"data\":\"");
  size_t n = (data->len + 2) / 3 * 4;
  if (buf_reserve(&b, n) == ST_OK) {
    EVP_EncodeBlock((unsigned char *)b.data + b.len, (const unsigned char *)buf_text(data), (int)data->len);
    b.len += n;
  }
  buf_puts(&b, "\"}");
  return compile_send(p->run, &b);
}

static void put_place(struct buf *b, const struct hlo_instr *i) {
  json_put_key(b, i->name);
  buf_putc(b, '{');
  stage_put_range(b, &i->locs.v[0]->range);
  buf_putc(b, '}');
}

/* Sends where each HLO instruction comes from, for the errors of a compiler that gets the HLO without the source. */
static enum status send_places(struct path *p) {
  struct buf b;
  buf_init(&b, ARTIFACT_MAX);
  buf_putc(&b, '{');
  for (const struct hlo_computation *c = p->kernel->module->computations; c; c = c->next)
    hlo_for_each(i, c) {
      if (i->locs.n && i->locs.v[0]->range.line > 0)
        put_place(&b, i);
    }
  buf_putc(&b, '}');
  const enum status st =
      compile_send_artifact(p, arena_printf(p->run->arena, "%s/places.json", p->kernel->name), "application/json", &b);
  buf_clear(&b);
  return st;
}

/* Sends the HLO as traced, which is what NKIPy would pass to the vendor's compiler. */
enum status compile_send_artifacts(struct path *p) {
  const struct hlo_print_options opt = {.metadata = true};
  const char *name = p->kernel->name;
  struct arena *a = p->run->arena;
  struct buf b;

  buf_init(&b, ARTIFACT_MAX);
  enum status st = hlo_write_proto(p->kernel->module, &b);
  if (!st)
    st = compile_send_artifact(p, arena_printf(a, "%s/hlo.pb", name), "application/x-protobuf", &b);
  buf_clear(&b);
  if (!st)
    st = hlo_print(p->kernel->module, &opt, &b, a, NULL);
  if (!st)
    st = compile_send_artifact(p, arena_printf(a, "%s/hlo.txt", name), "text/plain", &b);
  buf_clear(&b);
  if (!st && p->run->job->for_device)
    st = send_places(p);
  if (st == ST_LIMIT) {
    diag_add(&p->run->diags, DS_WARNING, DG_OUTPUT_LIMIT, NULL, "the HLO artifacts exceed %d MiB and are left out",
             ARTIFACT_MAX >> 20);
    return ST_OK;
  }
  return st;
}
