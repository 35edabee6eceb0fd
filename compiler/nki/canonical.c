/* canonical: see canonical.h. */
#include "nki/canonical.h"

#include <string.h>

#include "base/array.h"

struct canon {
  struct arena *a;
  struct nki_notes *notes;
  struct index by_place; /* the notes */
};

/* Adds a note, unless there is one of the same rule about the same place of the source. */
static void add_note(struct canon *c, struct nki_note note) {
  if (!note.locs.n)
    return;
  const struct src_range *at = &note.locs.v[0]->range;
  const uint32_t hash = (uint32_t)hash_mix(hash_mix((uint64_t)at->line, (uint64_t)at->col), (uint64_t)note.rule);
  for (struct index_probe k = index_probe(&c->by_place, hash); index_next(&k);)
    if (c->notes->v[k.entry].rule == note.rule && src_loc_equal(c->notes->v[k.entry].locs.v[0], note.locs.v[0]))
      return;
  index_add(&c->by_place, hash, c->notes->n);
  array_push(c->a, c->notes, note);
}

/* ---- calls that consist of others -------------------------------------------------------------------------------- */

/* Of a rule that has no other choice. */
static struct nki_note note_of(enum rule rule, const char *name, const char *text, struct src_locs locs, int id) {
  return (struct nki_note){.rule = rule, .name = name, .text = text, .locs = locs, .id = id};
}

/* "dma_copy", "3 calls: iota, tensor_scalar, …" of the items that begin with items[first]. */
static void note_written(struct canon *c, const struct nki_items *items, int first) {
  const struct nki_written *w = items->v[first].written;
  const char *names = "", *name = NULL;
  int n = 0, id = w->id;
  for (int i = first; i < items->n && items->v[i].written == w; i++) {
    const struct nki_call *call = items->v[i].call;
    if (!call)
      continue;
    name = name ? name : nki_def(call)->name;
    if (n++ < 4)
      names = arena_printf(c->a, "%s%s%s", names, n > 1 ? ", " : "", nki_def(call)->name);
  }
  if (n > 4)
    names = arena_printf(c->a, "%s, …", names);
  if (w->note)
    add_note(c, note_of(RULE_RESOLVE_MASK, "", w->note, w->locs, id));
  if (w->takes)
    add_note(c, note_of(RULE_WRITE_OUT_CALL, "",
                        arena_printf(c->a, "%s writes to what it is assigned to: %s", w->takes->name, names),
                        w->takes->locs, w->takes->id));
  else if (n && strcmp(w->name, arena_printf(c->a, "nisa.%s", name)) != 0)
    add_note(c, note_of(RULE_WRITE_OUT_CALL, "",
                        n == 1 ? arena_printf(c->a, "%s is %s", w->name, names)
                               : arena_printf(c->a, "%s is %d calls: %s", w->name, n, names),
                        w->locs, id));
}

static void note_empty(struct canon *c, const struct nki_written *w) {
  for (; w; w = w->next)
    if (!w->is_taken)
      add_note(c, note_of(RULE_WRITE_OUT_CALL, "",
                          w->note ? w->note : arena_printf(c->a, "%s does nothing on the device", w->name), w->locs,
                          w->id));
}

/* ---- views ------------------------------------------------------------------------------------------------------- */

/* Says what a view is that methods made; rows that numbers select are an operand of their own. */
static void note_view(struct canon *c, const struct nki_item *x, const struct nki_view *v) {
  if (!v->written || !strchr(v->written, '('))
    return;
  const char *text = nki_view_text(c->a, v);
  if (strcmp(text, v->written) != 0)
    add_note(c, note_of(RULE_RESOLVE_VIEW, nki_def(x->call)->name, arena_printf(c->a, "%s is %s", v->written, text),
                        x->locs, x->written_id));
}

static bool is_selected_by(const struct nki_call *c, int k) {
  const char *index = nki_def(c)->param[k].kind == NKI_PARAM_DST ? "dst_index" : "src_index";
  for (int i = 0; i < nki_n_params(nki_def(c)); i++)
    if (!strcmp(nki_def(c)->param[i].name, index) && c->value[i].kind == NKI_VIEW)
      return true;
  return false;
}

static void note_views(struct canon *c, const struct nki_item *x) {
  for (int k = 0; k < nki_n_params(nki_def(x->call)); k++)
    if (x->call->value[k].kind == NKI_VIEW && !is_selected_by(x->call, k))
      note_view(c, x, x->call->value[k].view);
}

/* ---- programs ---------------------------------------------------------------------------------------------------- */

/* The lines of the record that an item comes from. */
static void set_from(struct canon *c, struct nki_item *x) {
  const struct nki_written *w = x->written;
  int *v = arena_new_array(c->a, int, 2), n = 0;
  if (!w)
    v[n++] = x->written_id;
  else if (w->takes)
    v[n++] = w->takes->id;
  if (w)
    v[n++] = w->id;
  x->from.v = v;
  x->from.n = n;
  x->from.cap = 2;
}

struct nki_program *nki_canonicalize(const struct nki_program *record, struct nki_notes *notes) {
  struct canon c = {.a = record->arena, .notes = notes, .by_place.arena = record->arena};
  struct nki_program *p = arena_dup(record->arena, record, sizeof *record);
  p->is_canonical = true;
  p->items.v = arena_dup(p->arena, record->items.v, (size_t)record->items.n * sizeof *record->items.v);
  p->items.cap = record->items.n;
  for (int i = 0; i < p->items.n; i++) {
    struct nki_item *x = &p->items.v[i];
    const bool begins = x->written && (!i || record->items.v[i - 1].written != x->written);
    note_empty(&c, x->before);
    if (begins)
      note_written(&c, &record->items, i);
    else if (!x->written && x->call)
      note_views(&c, x);
    set_from(&c, x);
    x->written = x->before = NULL;
  }
  for (int i = 0; i < p->instances.n; i++) {
    note_empty(&c, p->instances.v[i].after);
    p->instances.v[i].after = NULL;
  }
  return p;
}
