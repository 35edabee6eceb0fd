#include "driver/gather.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/json.h"

void gather_clear(struct gather *g) {
  free(g->parts);
  *g = (struct gather){0};
}

/* Returns the number of a kernel's frames of one kind. */
static int count(const struct gather *g, enum frame_kind kind, int kernel) {
  int n = 0;
  for (int i = 0; i < g->n; i++)
    n += g->parts[i].kind == kind && g->parts[i].kernel == kernel;
  return n;
}

/* A kernel has at most one frame of such a kind. */
static bool is_run(enum frame_kind k) {
  return k == FRAME_SIMULATION || k == FRAME_PROFILE || k == FRAME_DEVICE || k == FRAME_VALUE || k == FRAME_STEPS;
}

/* A job has at most one frame of such a kind. */
static bool is_alone(enum frame_kind k) {
  return k == FRAME_UPGRADE || k == FRAME_NEFF || k == FRAME_SHRINK;
}

/* Such frames say how far a search is. */
static bool is_progress(enum frame_kind k) {
  return k == FRAME_TUNE || k == FRAME_SHRUNK || k == FRAME_PARTING;
}

/* Returns ST_OK if f may come after the frames so far. */
static enum status check_order(const struct gather *g, const struct frame *f, struct error *err) {
  if (g->is_ended)
    return fail(err, ST_INPUT, "a frame after the end");
  if ((f->kind == FRAME_START) == g->is_started)
    return fail(err, ST_INPUT, g->is_started ? "a second start" : "a frame before the start");
  if (f->kind == FRAME_KERNEL && frame_int(f, "kernel") != g->n_kernels)
    return fail(err, ST_INPUT, "kernels out of order");
  const bool is_of_kernel = f->kind == FRAME_STAGE || is_run(f->kind);
  if (is_of_kernel && frame_int(f, "kernel") >= g->n_kernels)
    return fail(err, ST_INPUT, "a frame of an unknown kernel");
  if (is_run(f->kind) && count(g, f->kind, (int)frame_int(f, "kernel")))
    return fail(err, ST_INPUT, "a second simulation, profile, run on a device, value or list of steps of a kernel");
  if (is_alone(f->kind) && g->n_alone)
    return fail(err, ST_INPUT, "a second upgrade, NEFF or answer of the reducer");
  return ST_OK;
}

/* The members that are added to a frame's own in the result must not be there already. */
static enum status check_members(const struct frame *f, struct error *err) {
  static const char *const added[] = {"stages", "simulation", "profile", "device", "value", "steps"};
  struct frame artifact;
  for (size_t i = 0; f->kind == FRAME_KERNEL && i < sizeof added / sizeof *added; i++)
    if (frame_get(f, added[i]))
      return fail(err, ST_INPUT, "a kernel frame with %s", added[i]);
  if (f->kind != FRAME_ARTIFACT)
    return ST_OK;
  const struct frame_member *m = frame_get(f, "artifact");
  if (frame_scan_object(m->value, m->value_len, &artifact, err))
    return ST_INPUT;
  return frame_get(&artifact, "data") ? fail(err, ST_INPUT, "an artifact with data of its own") : ST_OK;
}

static enum status check_count(const struct gather *g, const struct frame *f, struct error *err) {
  bool is_full = (f->kind == FRAME_KERNEL && g->n_kernels == GATHER_KERNELS_MAX) ||
                 (f->kind == FRAME_SOURCES && g->n_sources == GATHER_SOURCES_MAX) ||
                 (f->kind == FRAME_STAGE && count(g, FRAME_STAGE, (int)frame_int(f, "kernel")) == GATHER_STAGES_MAX) ||
                 (is_progress(f->kind) && g->n_tunes == GATHER_TUNES_MAX) ||
                 (f->kind == FRAME_DIAGNOSTIC && g->n_diags == GATHER_DIAGS_MAX) ||
                 (f->kind == FRAME_ARTIFACT && g->n_artifacts == GATHER_ARTIFACTS_MAX);
  return is_full ? fail(err, ST_LIMIT, "too many frames of one kind") : ST_OK;
}

static enum status keep(struct gather *g, const struct frame *f, size_t at, size_t len, struct error *err) {
  void *parts = g->parts;
  if (g->n == g->cap && !array_grow_heap(&parts, &g->cap, sizeof *g->parts))
    return fail(err, ST_NOMEM, "frames");
  g->parts = parts;
  g->parts[g->n++] = (struct gather_part){f->kind, (int)frame_int(f, "kernel"), at, len};
  return ST_OK;
}

enum status gather_add(struct gather *g, const struct frame *f, size_t at, size_t len, struct error *err) {
  enum status st = check_order(g, f, err);
  if (!st)
    st = check_members(f, err);
  if (!st)
    st = check_count(g, f, err);
  if (!st && f->kind != FRAME_END)
    st = keep(g, f, at, len, err);
  if (st)
    return st;
  g->is_started |= f->kind == FRAME_START;
  g->n_kernels += f->kind == FRAME_KERNEL;
  g->n_sources += f->kind == FRAME_SOURCES;
  g->n_stages += f->kind == FRAME_STAGE;
  g->n_runs += is_run(f->kind);
  g->n_alone += is_alone(f->kind);
  g->n_tunes += is_progress(f->kind);
  g->n_diags += f->kind == FRAME_DIAGNOSTIC;
  g->n_artifacts += f->kind == FRAME_ARTIFACT;
  if (f->kind == FRAME_END) {
    g->is_ended = true;
    g->is_ok = frame_has_string(f, "status", "ok", 2);
    g->time_us = frame_int(f, "time_us");
  }
  assert(g->n == g->is_started + g->n_kernels + g->n_sources + g->n_stages + g->n_runs + g->n_alone + g->n_tunes +
                     g->n_diags + g->n_artifacts);
  assert(g->n == 0 || g->parts[0].kind == FRAME_START);
  return ST_OK;
}

/* ---- one stage --------------------------------------------------------------------------------------------------- */

/* Scans a part's frame again.  The members are borrowed, like its text.  The frame was scanned before it was
 * recorded, so it is valid; false if its text is not available. */
static bool scan_again(const struct gather_part *p, const struct gather_text *text, struct frame *f) {
  const char *json = text->frame(text->user, p->at, p->len);
  if (!json)
    return false;
  enum status st = frame_scan(json, p->len, f, NULL);
  assert(st == ST_OK && f->kind == p->kind);
  return st == ST_OK;
}

static bool has_name(const struct frame_member *stage, const struct gather_stage *which) {
  struct frame f;
  return frame_scan_object(stage->value, stage->value_len, &f, NULL) == ST_OK &&
         frame_has_string(&f, "name", which->name, which->name_len);
}

const char *gather_find_stage(const struct gather *g, const struct gather_text *text, const struct gather_stage *which,
                              size_t *len) {
  int n = which->name ? 1 : 0;
  for (int i = 0; i < g->n; i++) {
    struct frame f;
    if (g->parts[i].kind != FRAME_STAGE || g->parts[i].kernel != which->kernel)
      continue;
    if (!which->name && n++ != which->nth)
      continue;
    if (!scan_again(&g->parts[i], text, &f))
      return NULL;
    const struct frame_member *m = frame_get(&f, "stage");
    if (which->name && (!has_name(m, which) || n++ != which->nth))
      continue;
    *len = m->value_len;
    return m->value;
  }
  return NULL;
}

/* ---- the result -------------------------------------------------------------------------------------------------- */

/* The state of writing the result. */
struct writer {
  const struct gather *g;
  const struct gather_text *text;
  struct buf *out;
  gather_drain drain;
  void *user;
};

static bool scan_part(const struct writer *w, const struct gather_part *p, struct frame *f) {
  if (w->drain)
    w->drain(w->user, w->out);
  if (scan_again(p, w->text, f))
    return true;
  buf_clear(w->out);
  w->out->failed = ST_NOMEM;
  return false;
}

static void put_value(const struct writer *w, const struct gather_part *p, const char *key) {
  struct frame f;
  if (!scan_part(w, p, &f))
    return;
  const struct frame_member *m = frame_get(&f, key);
  json_put_comma(w->out);
  buf_append(w->out, m->value, m->value_len);
}

/* Writes the artifact's own object.  If the frame has the artifact's data, they are added as a member. */
static void put_artifact(const struct writer *w, const struct gather_part *p) {
  struct frame f;
  if (!scan_part(w, p, &f))
    return;
  const struct frame_member *m = frame_get(&f, "artifact"), *data = frame_get(&f, "data");
  size_t len = m->value_len - 1; /* without its closing brace, and the space before that */
  while (m->value[len - 1] == ' ' || m->value[len - 1] == '\t')
    len--;
  json_put_comma(w->out);
  buf_append(w->out, m->value, len);
  if (data) {
    json_put_key(w->out, "data");
    buf_append(w->out, data->value, data->value_len);
  }
  buf_putc(w->out, '}');
}

static void put_member(struct buf *out, const struct frame_member *m) {
  json_put_comma(out);
  buf_append(out, m->key - 1, m->key_len + 2);
  buf_putc(out, ':');
  buf_append(out, m->value, m->value_len);
}

static bool is_called(const struct frame_member *m, const char *key) {
  return m->key_len == strlen(key) && !memcmp(m->key, key, m->key_len);
}

/* Writes the values of the kernel's frames of one kind, which all have them as the member `key`. */
static void put_parts(const struct writer *w, enum frame_kind kind, int kernel, const char *key) {
  for (int i = 0; i < w->g->n; i++)
    if (w->g->parts[i].kind == kind && w->g->parts[i].kernel == kernel)
      put_value(w, &w->g->parts[i], key);
}

/* Writes the value of the kernel's frame of this kind, if there is one, as the member `key`.  kernel: -1 for a frame that
 * belongs to no kernel. */
static void put_run(const struct writer *w, enum frame_kind kind, int kernel, const char *key) {
  struct frame f;
  for (int i = 0; i < w->g->n; i++) {
    const struct gather_part *p = &w->g->parts[i];
    if (p->kind == kind && p->kernel == kernel && scan_part(w, p, &f))
      put_member(w->out, frame_get(&f, key));
  }
}

static int count_all(const struct gather *g, enum frame_kind kind) {
  int n = 0;
  for (int i = 0; i < g->n; i++)
    n += g->parts[i].kind == kind;
  return n;
}

/* Writes the value of the last frame of this kind, if there is one, as the member `key`. */
static void put_last(const struct writer *w, enum frame_kind kind, const char *key) {
  struct frame f;
  int i = w->g->n;
  while (i-- > 0)
    if (w->g->parts[i].kind == kind) {
      if (scan_part(w, &w->g->parts[i], &f))
        put_member(w->out, frame_get(&f, key));
      return;
    }
}

/* Writes the members of the kernel's frame, the kernel's stages and its runs. */
static void put_kernel(const struct writer *w, const struct gather_part *p) {
  struct frame f;
  if (!scan_part(w, p, &f))
    return;
  json_put_comma(w->out);
  buf_putc(w->out, '{');
  for (int i = 0; i < f.n; i++)
    if (!is_called(&f.members[i], "frame") && !is_called(&f.members[i], "kernel"))
      put_member(w->out, &f.members[i]);
  json_put_key(w->out, "stages");
  buf_putc(w->out, '[');
  put_parts(w, FRAME_STAGE, p->kernel, "stage");
  buf_putc(w->out, ']');
  put_run(w, FRAME_SIMULATION, p->kernel, "simulation");
  put_run(w, FRAME_PROFILE, p->kernel, "profile");
  put_run(w, FRAME_DEVICE, p->kernel, "device");
  put_run(w, FRAME_VALUE, p->kernel, "value");
  put_run(w, FRAME_STEPS, p->kernel, "steps");
  buf_putc(w->out, '}');
}

static void put_part(const struct writer *w, const struct gather_part *p) {
  if (p->kind == FRAME_KERNEL)
    put_kernel(w, p);
  else if (p->kind == FRAME_DIAGNOSTIC)
    put_value(w, p, "diagnostic");
  else if (p->kind == FRAME_TUNE)
    put_value(w, p, "tune");
  else
    put_artifact(w, p);
}

/* Writes the parts of one kind as an array. */
static void put_list(const struct writer *w, enum frame_kind kind, const char *key) {
  json_put_key(w->out, key);
  buf_putc(w->out, '[');
  for (int i = 0; i < w->g->n; i++)
    if (w->g->parts[i].kind == kind)
      put_part(w, &w->g->parts[i]);
  buf_putc(w->out, ']');
}

/* Writes a member that is an array in each "sources" frame, as one array for all of them. */
static void put_joined(const struct writer *w, const char *key) {
  json_put_key(w->out, key);
  buf_putc(w->out, '[');
  for (int i = 0; i < w->g->n; i++) {
    struct frame f;
    if (w->g->parts[i].kind != FRAME_SOURCES || !scan_part(w, &w->g->parts[i], &f))
      continue;
    const struct frame_member *m = frame_get(&f, key);
    size_t blank = 1;
    while (m->value[blank] == ' ' || m->value[blank] == '\t')
      blank++;
    if (m->value[blank] == ']')
      continue;
    json_put_comma(w->out);
    buf_append(w->out, m->value + 1, m->value_len - 2);
  }
  buf_putc(w->out, ']');
}

static void put_sources(const struct writer *w) {
  static const char *const keys[] = {"files", "places", "sources"};
  for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
    put_joined(w, keys[i]);
}

void gather_sources(const struct gather *g, const struct gather_text *text, struct buf *out) {
  const struct writer w = {.g = g, .text = text, .out = out};
  buf_putc(out, '{');
  put_sources(&w);
  buf_putc(out, '}');
}

/* Writes the members of the start frame that describe the job. */
static void put_identity(const struct writer *w) {
  static const char *const keys[] = {"key", "language", "target", "pipeline"};
  struct frame f;
  if (!w->g->is_started || !scan_part(w, &w->g->parts[0], &f))
    return;
  for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
    put_member(w->out, frame_get(&f, keys[i]));
}

void gather_result(const struct gather *g, const struct gather_text *text, struct buf *out, gather_drain drain,
                   void *user) {
  const struct writer w = {.g = g, .text = text, .out = out, .drain = drain, .user = user};
  buf_puts(out, "{\"version\":1");
  json_put_field_str(out, "status", g->is_ended && g->is_ok ? "ok" : "error");
  put_sources(&w);
  put_list(&w, FRAME_KERNEL, "kernels");
  put_run(&w, FRAME_UPGRADE, -1, "upgrade");
  put_run(&w, FRAME_NEFF, -1, "neff");
  put_run(&w, FRAME_SHRINK, -1, "shrink");
  if (count_all(g, FRAME_TUNE))
    put_list(&w, FRAME_TUNE, "tune");
  put_last(&w, FRAME_SHRUNK, "shrunk");
  put_last(&w, FRAME_PARTING, "parting");
  put_list(&w, FRAME_DIAGNOSTIC, "diagnostics");
  put_list(&w, FRAME_ARTIFACT, "artifacts");
  put_identity(&w);
  json_put_field_int(out, "time_us", g->time_us);
  buf_putc(out, '}');
}
