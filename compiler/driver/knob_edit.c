/* knob_edit: see the header. */
#include "driver/knob_edit.h"

#include <string.h>

enum { CHANGES_MAX = 16 };

struct change {
  struct knob_part old;
  const char *text;
};

struct editor {
  struct arena *arena;
  const char *text;
  const struct knob_text *written;
  const struct tune_site *site;
  const struct tune_value *value;
  const char *method, *argument;
  int n;
  struct change changes[CHANGES_MAX];
  bool is_impossible;
  const char *what;
};

/* ---- writing ----------------------------------------------------------------------------------------------------- */

static void change(struct editor *e, struct knob_part old, const char *text) {
  if (e->n < CHANGES_MAX)
    e->changes[e->n++] = (struct change){old, text};
}

static const char *list_text(struct editor *e, const bool *wanted, bool is) {
  const struct tune_value *v = e->value;
  struct buf b;
  int n = 0;
  buf_init(&b, 1024);
  for (int k = 0; k < v->n; k++)
    if (!wanted || wanted[k] == is)
      buf_printf(&b, n++ ? ", %lld" : "[%lld", (long long)v->entry[k]);
  buf_puts(&b, n ? "]" : "");
  const char *text = arena_strdup(e->arena, buf_text(&b));
  buf_clear(&b);
  return text;
}

/* The argument's value as a builder takes it. */
static const char *value_text(struct editor *e) {
  return e->value->text               ? e->value->text
         : e->site->what == TUNE_TILE ? list_text(e, NULL, true)
                                      : arena_printf(e->arena, "%lld", (long long)e->value->entry[0]);
}

static void add_argument(struct editor *e, const struct knob_brackets *b, const char *name, const char *value) {
  change(e, (struct knob_part){b->put, b->put}, arena_printf(e->arena, "%s%s=%s", b->separator, name, value));
}

/* knob.knob(x, …) takes a tile in two arguments. */
static void change_base(struct editor *e, const struct knob_brackets *b) {
  static const char *const names[] = {"tile_size", "reduction_tile"};
  bool is_parallel[TUNE_ENTRIES_MAX] = {false};
  if (e->site->what != TUNE_TILE) {
    const struct knob_part *old = knob_argument(b, e->argument);
    if (old)
      change(e, *old, value_text(e));
    else
      add_argument(e, b, e->argument, value_text(e));
    return;
  }
  for (int k = 0; k < e->site->n_dims; k++)
    if (e->site->dims[k] >= 0)
      is_parallel[e->site->dims[k]] = true;
  for (int k = 0; k < 2; k++) {
    const struct knob_part *old = knob_argument(b, names[k]);
    const char *text = list_text(e, is_parallel, k == 0);
    if (old)
      change(e, *old, text);
    else if (*text)
      add_argument(e, b, names[k], text);
  }
}

/* A tile of layout(…) has an entry for each dimension of the value, and must fit that of tile_op(…). */
static void fit_layouts(struct editor *e) {
  for (int i = 0; i < e->written->n_calls; i++)
    for (int k = 0; k < e->written->calls[i].n; k++) {
      const struct knob_brackets *m = &e->written->calls[i].methods[k];
      const struct knob_part *old = strcmp(m->method, "layout") ? NULL : knob_argument(m, "tile_size");
      struct buf b;
      if (!old)
        continue;
      e->is_impossible |= !e->site->n_dims;
      buf_init(&b, 1024);
      for (int d = 0; d < e->site->n_dims; d++)
        buf_printf(&b, d ? ", %lld" : "[%lld",
                   (long long)(e->site->dims[d] < 0 ? 1 : e->value->entry[e->site->dims[d]]));
      buf_putc(&b, ']');
      change(e, *old, arena_strdup(e->arena, buf_text(&b)));
      buf_clear(&b);
    }
}

/* Gives the argument to the last call that has it, or else to the last one that can take it. */
static void edit(struct editor *e) {
  const struct knob_call *builder = NULL, *base = NULL;
  const struct knob_brackets *open = NULL;
  const struct knob_part *old = NULL;
  if (e->site->what == TUNE_TILE)
    fit_layouts(e);
  for (int i = e->written->n_calls - 1; i >= 0; i--) {
    const struct knob_call *c = &e->written->calls[i];
    for (int k = c->n - 1; k >= 0 && !old; k--)
      if (!strcmp(c->methods[k].method, e->method)) {
        old = knob_argument(&c->methods[k], e->argument);
        open = open ? open : &c->methods[k];
      }
    const bool has = knob_argument(&c->knob, e->argument) ||
                     (e->site->what == TUNE_TILE && knob_argument(&c->knob, "reduction_tile"));
    base = base || !has ? base : c;
    builder = builder || (c->is_around && !c->n) || (!c->n && c->knob.n) ? builder : c;
  }
  const char *value = value_text(e);
  e->what = arena_printf(e->arena, ".%s(%s=%s)", e->method, e->argument, value);
  if (old)
    change(e, *old, value);
  else if (base)
    change_base(e, &base->knob);
  else if (open)
    add_argument(e, open, e->argument, value);
  else if (builder)
    change(e, (struct knob_part){builder->end, builder->end}, e->what);
  else
    change_base(e, &e->written->calls[e->written->n_calls - 1].knob);
}

/* Appends the text with the changes, which do not overlap. */
static void put_changed(struct buf *out, const struct editor *e) {
  size_t at = 0;
  bool is_done[CHANGES_MAX] = {false};
  for (;;) {
    int next = -1;
    for (int k = 0; k < e->n; k++)
      if (!is_done[k] && (next < 0 || e->changes[k].old.from < e->changes[next].old.from))
        next = k;
    if (next < 0)
      break;
    is_done[next] = true;
    buf_append(out, e->text + at, e->changes[next].old.from - at);
    buf_puts(out, e->changes[next].text);
    at = e->changes[next].old.to;
  }
  buf_puts(out, e->text + at);
}

enum knob_edit knob_edit_existing(struct arena *a, const char *text, const struct knob_text *written,
                                  const struct tune_site *site, const struct tune_value *value, const char *method,
                                  struct buf *out, struct buf *what) {
  static const char *const arguments[] = {
      [TUNE_TILE] = "tile_size", [TUNE_SPACE] = "mem_space", [TUNE_DIM] = "partition_dim"};
  struct editor e = {.arena = a, .text = text, .written = written, .site = site, .value = value, .method = method};
  if (site->what == TUNE_DROP || !written->n_calls)
    return KNOB_EDIT_NONE;
  e.argument = arguments[site->what];
  edit(&e);
  if (e.is_impossible || !e.n)
    return KNOB_EDIT_CANNOT;
  put_changed(out, &e);
  buf_puts(what, e.what);
  return KNOB_EDIT_DONE;
}
