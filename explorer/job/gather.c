#include "job/gather.h"

#include <stdlib.h>
#include <string.h>

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

/* May f come now? */
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
                 (f->kind == FRAME_STAGE && count_stages(g, (int)frame_int(f, "kernel")) == GATHER_STAGES_MAX) ||
                 (f->kind == FRAME_DIAGNOSTIC && g->n_diags == GATHER_DIAGS_MAX) ||
                 (f->kind == FRAME_ARTIFACT && g->n_artifacts == GATHER_ARTIFACTS_MAX);
  return is_full ? fail(err, ST_LIMIT, "too many frames of one kind") : ST_OK;
}

static enum status keep(struct gather *g, const struct frame *f, size_t at, size_t len, struct error *err) {
  if (g->n == g->cap) {
    int cap = g->cap ? 2 * g->cap : 32;
    struct gather_part *p = realloc(g->parts, (size_t)cap * sizeof *p);
    if (!p)
      return fail(err, ST_NOMEM, "frames");
    g->parts = p;
    g->cap = cap;
  }
  g->parts[g->n++] = (struct gather_part){f->kind, (int)frame_int(f, "kernel"), at, len};
  return ST_OK;
}

enum status gather_add(struct gather *g, const struct frame *f, size_t at, size_t len, struct error *err) {
  const struct frame_member *status = frame_get(f, "status");
  enum status st = check_order(g, f, err);
  if (!st)
    st = check_count(g, f, err);
  if (!st && f->kind != FRAME_START && f->kind != FRAME_END)
    st = keep(g, f, at, len, err);
  if (st)
    return st;
  g->is_started |= f->kind == FRAME_START;
  g->n_kernels += f->kind == FRAME_KERNEL;
  g->n_stages += f->kind == FRAME_STAGE;
  g->n_diags += f->kind == FRAME_DIAGNOSTIC;
  g->n_artifacts += f->kind == FRAME_ARTIFACT;
  if (f->kind == FRAME_END) {
    g->is_ended = true;
    g->is_ok = status->value_len == 4 && !memcmp(status->value, "\"ok\"", 4);
    g->time_us = frame_int(f, "time_us");
  }
  return ST_OK;
}

/* ---- the result ---------------------------------------------------------------------------------------------------
 */

/* The members of a part's frame; it was scanned before, so it scans. */
static struct frame scan_again(const struct gather_part *p, const char *text) {
  struct frame f;
  if (frame_scan(text + p->at, p->len, &f, NULL))
    f.n = 0;
  return f;
}

static void put_value(struct buf *out, const struct gather_part *p, const char *text, const char *key) {
  struct frame f = scan_again(p, text);
  const struct frame_member *m = frame_get(&f, key);
  json_put_comma(out);
  buf_append(out, m->value, m->value_len);
}

/* The artifact's own object, with its data as one member more. */
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

/* Everything the kernel's frame says, and its stages. */
static void put_kernel(struct buf *out, const struct gather *g, const struct gather_part *p, int index,
                       const char *text) {
  struct frame f = scan_again(p, text);
  json_put_comma(out);
  buf_putc(out, '{');
  for (int i = 0; i < f.n; i++) {
    const struct frame_member *m = &f.members[i];
    if ((m->key_len == 5 && !memcmp(m->key, "frame", 5)) || (m->key_len == 6 && !memcmp(m->key, "kernel", 6)))
      continue;
    json_put_comma(out);
    buf_append(out, m->key - 1, (size_t)(m->key_len + 2));
    buf_putc(out, ':');
    buf_append(out, m->value, m->value_len);
  }
  json_put_key(out, "stages");
  buf_putc(out, '[');
  for (int i = 0; i < g->n; i++)
    if (g->parts[i].kind == FRAME_STAGE && g->parts[i].kernel == index)
      put_value(out, &g->parts[i], text, "stage");
  buf_puts(out, "]}");
}

static bool has_name(const struct frame_member *stage, const struct gather_stage *which) {
  struct frame f;
  if (frame_scan_object(stage->value, stage->value_len, &f, NULL))
    return false;
  const struct frame_member *m = frame_get(&f, "name");
  return m && m->value_len == which->name_len + 2 && !memcmp(m->value + 1, which->name, which->name_len);
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
    if (!m || (which->name && (!has_name(m, which) || n++ != which->nth)))
      continue;
    *len = m->value_len;
    return m->value;
  }
  return NULL;
}

void gather_result(const struct gather *g, const char *text, const char *head, struct buf *out) {
  int kernel = 0;
  buf_printf(out, "{\"version\":1,%s", head);
  json_put_field_str(out, "status", g->is_ended && g->is_ok ? "ok" : "error");
  json_put_field_int(out, "time_us", g->time_us);
  json_put_key(out, "kernels");
  buf_putc(out, '[');
  for (int i = 0; i < g->n; i++)
    if (g->parts[i].kind == FRAME_KERNEL)
      put_kernel(out, g, &g->parts[i], kernel++, text);
  buf_putc(out, ']');
  json_put_key(out, "diagnostics");
  buf_putc(out, '[');
  for (int i = 0; i < g->n; i++)
    if (g->parts[i].kind == FRAME_DIAGNOSTIC)
      put_value(out, &g->parts[i], text, "diagnostic");
  buf_putc(out, ']');
  json_put_key(out, "artifacts");
  buf_putc(out, '[');
  for (int i = 0; i < g->n; i++)
    if (g->parts[i].kind == FRAME_ARTIFACT)
      put_artifact(out, &g->parts[i], text);
  buf_puts(out, "]}");
}
