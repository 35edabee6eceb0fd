/* actions: what an editor can do with a document: write a knob that a decision offers, open the explorer. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "base/array.h"
#include "driver/knob_edit.h"
#include "driver/link.h"
#include "driver/tune_edit.h"
#include "lsp/lsp.h"

enum { TEXT_MAX = 4 << 20 };

static const char *text_of(const json_t *o, const char *key) {
  const char *s = json_string_value(json_object_get(o, key));
  return s ? s : "";
}

/* ---- knobs ------------------------------------------------------------------------------------------------------- */

static const char *dump(struct arena *a, const json_t *v) {
  char *text = json_dumps(v, JSON_ENCODE_ANY);
  const char *copy = text ? arena_strdup(a, text) : "";
  free(text);
  return copy;
}

/* The remark as a pass made it, as far as a knob is written from it. */
static struct remark *read_remark(struct arena *a, const struct document *d, const json_t *json,
                                  const struct span *at) {
  const json_t *knob = json_object_get(json, "knob"), *dims = json_object_get(knob, "dims"), *x;
  struct remark *r = arena_new(a, struct remark);
  struct remark_knob *k = arena_new(a, struct remark_knob);
  struct src_loc *loc = arena_new(a, struct src_loc);
  const struct src_loc **v = arena_new_array(a, const struct src_loc *, 1);
  int *entries = arena_new_array(a, int, json_array_size(dims));
  size_t i;
  loc->range = (struct src_range){d->path, at->from.line, at->from.col, at->to.line, at->to.col};
  v[0] = loc;
  r->locs.n = 1;
  r->locs.v = v;
  json_array_foreach(dims, i, x) entries[i] = (int)json_integer_value(x);
  *k = (struct remark_knob){text_of(knob, "call"), text_of(knob, "argument"), dump(a, json_object_get(knob, "value")),
                            (int)json_array_size(dims), entries};
  r->knob = k;
  r->arena = a;
  r->cost = json_string_value(json_object_get(json, "cost"));
  json_array_foreach(json_object_get(json, "rejected"), i, x) {
    const json_t *value = json_object_get(x, "value");
    if (value)
      remark_reject_for(r, text_of(x, "choice"), dump(a, value), json_string_value(json_object_get(x, "cost")),
                        text_of(x, "reason"));
  }
  return r;
}

/* One edit that makes the present text the new one, without what both begin and end with. */
static json_t *edit_of(const struct document *d, const char *text) {
  const char *old = d->text;
  size_t n = strlen(old), m = strlen(text), same = 0;
  struct place from = {1, 1}, to = {1, 1};
  while (same < n && same < m && old[same] == text[same])
    same++;
  while (same && old[same - 1] != '\n') /* whole lines, so that no character is cut */
    same--;
  while (n > same && m > same && old[n - 1] == text[m - 1]) {
    n--;
    m--;
  }
  while (old[n] && (n == same || old[n - 1] != '\n')) {
    n++;
    m++;
  }
  for (size_t i = 0; i < n; i++) {
    from.line += i < same && old[i] == '\n';
    to.line += old[i] == '\n';
  }
  return json_pack("{s:o,s:o}", "range", range_write(old, from, to), "newText", json_stringn(text + same, m - same));
}

/* Adds an action for each choice of a remark that a knob takes. */
static void add_knobs(json_t *list, const struct document *d, const json_t *json, const struct span *at) {
  struct tune_sites sites = {0};
  struct arena a;
  arena_init(&a);
  const struct remark *r = read_remark(&a, d, json, at);
  tune_add_remark(&sites, &a, d->text, d->path, r);
  const struct remark_rejected *x = r->rejected;
  const struct tune_site *site = sites.v;
  if (sites.n && knob_text_read(&a, d->text, site->from, site->to, &sites.written))
    sites.n = 0;
  for (int i = 0; sites.n && i < site->n_offers && x; i++, x = x->next) {
    const struct tune_value *chosen = &site->offers[i];
    struct buf text, title, call;
    buf_init(&text, TEXT_MAX);
    buf_init(&title, TEXT_MAX);
    buf_init(&call, TEXT_MAX);
    const enum knob_edit edited =
        knob_edit_existing(&a, d->text, &sites.written, site, chosen, r->knob->call, &text, &call);
    if (edited == KNOB_EDIT_NONE) {
      tune_put_text(&text, d->text, &sites, &chosen);
      tune_put_call(&call, &sites, &chosen, 0);
    }
    buf_printf(&title, edited == KNOB_EDIT_NONE ? "Write %s" : "Change the knob to %s", buf_text(&call));
    if (x->cost && r->cost)
      buf_printf(&title, " (%s; now %s)", x->cost, r->cost);
    buf_printf(&title, ": %s", x->reason);
    json_t *edits = json_pack("{s:[o]}", d->uri, edit_of(d, buf_text(&text)));
    json_t *action =
        json_pack("{s:s,s:s,s:{s:o}}", "title", buf_text(&title), "kind", "refactor.rewrite", "edit", "changes", edits);
    if (!buf_status(&text) && action && edited != KNOB_EDIT_CANNOT)
      json_array_append(list, action);
    json_decref(action);
    buf_clear(&text);
    buf_clear(&title);
    buf_clear(&call);
  }
  arena_clear(&a);
}

static bool is_known(const json_t *list, const json_t *remark) {
  const json_t *r;
  size_t i;
  json_array_foreach(list, i, r) if (json_equal(json_object_get(r, "knob"), json_object_get(remark, "knob")) &&
                                     json_equal(json_object_get(r, "src"), json_object_get(remark, "src"))) return true;
  return false;
}

/* Two ranges touch. */
static bool touches(const struct span *s, const struct span *t) {
  return span_has(s, t->from) || span_has(s, t->to) || span_has(t, s->from);
}

json_t *lsp_actions(const struct document *d, const json_t *range) {
  const struct span asked = {place_read(d->text, json_object_get(range, "start")),
                             place_read(d->text, json_object_get(range, "end"))};
  const bool is_present = d->good.result && !strcmp(d->good.text, d->text);
  const json_t *kernel, *stage, *remark;
  json_t *list = json_array(), *known = json_array();
  struct span at;
  size_t i, k, m;
  if (is_present)
    json_array_foreach(json_object_get(d->good.result, "kernels"), i, kernel)
        json_array_foreach(json_object_get(kernel, "stages"), k, stage)
            json_array_foreach(json_object_get(stage, "remarks"), m, remark) {
      if (!json_object_get(remark, "knob") || !lsp_own_span(d, remark, &at) || !touches(&asked, &at) ||
          is_known(known, remark))
        continue;
      json_array_append(known, (json_t *)remark);
      add_knobs(list, d, remark, &at);
    }
  json_decref(known);
  json_array_append_new(list, json_pack("{s:s,s:s,s:[{s:s,s:O}]}", "title", "Open in the explorer", "command", LSP_OPEN,
                                        "arguments", "uri", d->uri, "range", range));
  return list;
}

/* ---- links ------------------------------------------------------------------------------------------------------- */

void lsp_job(const struct document *d, const struct lsp_settings *cfg, struct job *out) {
  job_init(out);
  out->source = d->text;
  out->source_len = strlen(d->text);
  out->filename = d->path;
  out->target = cfg->target;
  out->simulate = true;
}

enum status lsp_link(const struct document *d, const struct lsp_settings *cfg, const json_t *range, struct buf *out,
                     struct error *err) {
  const char *slash = strrchr(d->path, '/');
  char selection[80];
  struct job job;
  lsp_job(d, cfg, &job);
  job.simulate = false;
  job.filename = slash && slash[1] ? slash + 1 : d->path;
  const struct place from = place_read(d->text, json_object_get(range, "start"));
  const struct place to = place_read(d->text, json_object_get(range, "end"));
  snprintf(selection, sizeof selection, "%d:%d-%d:%d", from.line, from.col, to.line, to.col);
  const struct link_view view = {.selection = range ? selection : NULL};
  return link_put(out, cfg->server, &job, &view, err);
}
