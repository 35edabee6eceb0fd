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

static int count_stages(const struct gather *g, int kernel) {
  int n = 0;
  for (int i = 0; i < g->n; i++)
    n += g->parts[i].kind == FRAME_STAGE && g->parts[i].kernel == kernel;
  return n;
}

/* Whether f may come after the frames so far. */
static enum status check_order(const struct gather *g, const struct frame *f, struct error *err) {
  if (g->is_ended)
    return fail(err, ST_INPUT, "a frame after the end");
  if ((f->kind == FRAME_START) == g->is_started)
    return fail(err, ST_INPUT, g->is_started ? "a second start" : "a frame before the start");
  if (f->kind == FRAME_KERNEL && frame_int(f, "kernel") != g->n_kernels)
    return fail(err, ST_INPUT, "kernels out of order");
  if (f->kind == FRAME_STAGE && frame_int(f, "kernel") >= g->n_kernels)
    return fail(err, ST_INPUT, "a stage of an unknown kernel");
  return ST_OK;
}

static enum status check_count(const struct gather *g, const struct frame *f, struct error *err) {
  bool is_full = (f->kind == FRAME_KERNEL && g->n_kernels == GATHER_KERNELS_MAX) ||
                 (f->kind == FRAME_SOURCES && g->n_sources == GATHER_SOURCES_MAX) ||
                 (f->kind == FRAME_STAGE && count_stages(g, (int)frame_int(f, "kernel")) == GATHER_STAGES_MAX) ||
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
    st = check_count(g, f, err);
  if (!st && f->kind != FRAME_END)
    st = keep(g, f, at, len, err);
  if (st)
    return st;
  g->is_started |= f->kind == FRAME_START;
  g->n_kernels += f->kind == FRAME_KERNEL;
  g->n_sources += f->kind == FRAME_SOURCES;
  g->n_stages += f->kind == FRAME_STAGE;
  g->n_diags += f->kind == FRAME_DIAGNOSTIC;
  g->n_artifacts += f->kind == FRAME_ARTIFACT;
  if (f->kind == FRAME_END) {
    g->is_ended = true;
    g->is_ok = frame_has_string(f, "status", "ok", 2);
    g->time_us = frame_int(f, "time_us");
  }
  assert(g->n == g->is_started + g->n_kernels + g->n_sources + g->n_stages + g->n_diags + g->n_artifacts);
  assert(g->n == 0 || g->parts[0].kind == FRAME_START);
  return ST_OK;
}

/* ---- one stage --------------------------------------------------------------------------------------------------- */

/* The members of a part's frame.  It was scanned before it was noted, so it is a frame. */
static struct frame scan_again(const struct gather_part *p, const char *text) {
  struct frame f;
  enum status st = frame_scan(text + p->at, p->len, &f, NULL);
  assert(st == ST_OK && f.kind == p->kind);
  (void)st;
  return f;
}

static bool has_name(const struct frame_member *stage, const struct gather_stage *which) {
  struct frame f;
  return frame_scan_object(stage->value, stage->value_len, &f, NULL) == ST_OK &&
         frame_has_string(&f, "name", which->name, which->name_len);
}

const char *gather_find_stage(const struct gather *g, const char *text, const struct gather_stage *which, size_t *len) {
  int n = which->name ? 1 : 0;
  for (int i = 0; i < g->n; i++) {
    if (g->parts[i].kind != FRAME_STAGE || g->parts[i].kernel != which->kernel)
      continue;
    if (!which->name && n++ != which->nth)
      continue;
    struct frame f = scan_again(&g->parts[i], text);
    const struct frame_member *m = frame_get(&f, "stage");
    if (which->name && (!has_name(m, which) || n++ != which->nth))
      continue;
    *len = m->value_len;
    return m->value;
  }
  return NULL;
}

/* ---- the result -------------------------------------------------------------------------------------------------- */

static void put_value(struct buf *out, const struct gather_part *p, const char *text, const char *key) {
  struct frame f = scan_again(p, text);
  const struct frame_member *m = frame_get(&f, key);
  json_put_comma(out);
  buf_append(out, m->value, m->value_len);
}

/* The artifact's own object, with its data, if the frame has them, as one more member. */
static void put_artifact(struct buf *out, const struct gather_part *p, const char *text) {
  struct frame f = scan_again(p, text);
  const struct frame_member *m = frame_get(&f, "artifact"), *data = frame_get(&f, "data");
  json_put_comma(out);
  buf_append(out, m->value, m->value_len - 1);
  if (data) {
    json_put_key(out, "data");
    buf_append(out, data->value, data->value_len);
  }
  buf_putc(out, '}');
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

/* Everything that the kernel's frame says, and the kernel's stages. */
static void put_kernel(struct buf *out, const struct gather *g, const struct gather_part *p, const char *text) {
  struct frame f = scan_again(p, text);
  json_put_comma(out);
  buf_putc(out, '{');
  for (int i = 0; i < f.n; i++)
    if (!is_called(&f.members[i], "frame") && !is_called(&f.members[i], "kernel"))
      put_member(out, &f.members[i]);
  json_put_key(out, "stages");
  buf_putc(out, '[');
  for (int i = 0; i < g->n; i++)
    if (g->parts[i].kind == FRAME_STAGE && g->parts[i].kernel == p->kernel)
      put_value(out, &g->parts[i], text, "stage");
  buf_puts(out, "]}");
}

static void put_part(struct buf *out, const struct gather *g, const struct gather_part *p, const char *text) {
  if (p->kind == FRAME_KERNEL)
    put_kernel(out, g, p, text);
  else if (p->kind == FRAME_DIAGNOSTIC)
    put_value(out, p, text, "diagnostic");
  else
    put_artifact(out, p, text);
}

/* The parts of one kind as an array. */
static void put_list(struct buf *out, const struct gather *g, enum frame_kind kind, const char *key, const char *text) {
  json_put_key(out, key);
  buf_putc(out, '[');
  for (int i = 0; i < g->n; i++)
    if (g->parts[i].kind == kind)
      put_part(out, g, &g->parts[i], text);
  buf_putc(out, ']');
}

/* One member of all "sources" frames, which is an array in each, as one array. */
static void put_joined(struct buf *out, const struct gather *g, const char *key, const char *text) {
  json_put_key(out, key);
  buf_putc(out, '[');
  for (int i = 0; i < g->n; i++) {
    if (g->parts[i].kind != FRAME_SOURCES)
      continue;
    struct frame f = scan_again(&g->parts[i], text);
    const struct frame_member *m = frame_get(&f, key);
    size_t blank = 1;
    while (m->value[blank] == ' ' || m->value[blank] == '\t')
      blank++;
    if (m->value[blank] == ']')
      continue;
    json_put_comma(out);
    buf_append(out, m->value + 1, m->value_len - 2);
  }
  buf_putc(out, ']');
}

static void put_sources(struct buf *out, const struct gather *g, const char *text) {
  static const char *const keys[] = {"files", "places", "sources"};
  for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
    put_joined(out, g, keys[i], text);
}

void gather_sources(const struct gather *g, const char *text, struct buf *out) {
  buf_putc(out, '{');
  put_sources(out, g, text);
  buf_putc(out, '}');
}

/* What the start frame says about the job. */
static void put_identity(struct buf *out, const struct gather *g, const char *text) {
  static const char *const keys[] = {"key", "language", "target", "pipeline"};
  if (!g->is_started)
    return;
  struct frame f = scan_again(&g->parts[0], text);
  for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
    put_member(out, frame_get(&f, keys[i]));
}

void gather_result(const struct gather *g, const char *text, struct buf *out) {
  buf_puts(out, "{\"version\":1");
  json_put_field_str(out, "status", g->is_ended && g->is_ok ? "ok" : "error");
  put_sources(out, g, text);
  put_list(out, g, FRAME_KERNEL, "kernels", text);
  put_list(out, g, FRAME_DIAGNOSTIC, "diagnostics", text);
  put_list(out, g, FRAME_ARTIFACT, "artifacts", text);
  put_identity(out, g, text);
  json_put_field_int(out, "time_us", g->time_us);
  buf_putc(out, '}');
}
