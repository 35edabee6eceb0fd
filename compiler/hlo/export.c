/* export: names of inputs and outputs, and stack frames, for print.c and proto.c.
 *
 * A call chain becomes a chain of frames; chains share their outer frames.  Strings are numbered first.  Then each entry
 * is a kind and up to six integers, and one hash table finds equal entries, so a kernel with 100,000 instructions takes
 * 100,000 look-ups.
 */
#include "hlo/export.h"

#include <string.h>

#include "hlo/names.h"

/* ---- stack frames ------------------------------------------------------------------------------------ */

enum frame_kind { FK_NONE, FK_FILE, FK_FUNCTION, FK_LOCATION, FK_FRAME };
struct frame_key {
  enum frame_kind kind;
  const char *text; /* files and functions */
  int v[6];
};
struct hlo_frame_index {
  size_t n, cap;
  struct frame_slot {
    struct frame_key key;
    int id;
  } *slots;
};

static bool key_equal(const struct frame_key *x, const struct frame_key *y) {
  if (x->kind != y->kind || memcmp(x->v, y->v, sizeof x->v) != 0)
    return false;
  return x->text == y->text || (x->text && y->text && !strcmp(x->text, y->text));
}

static size_t key_hash(const struct frame_key *k) {
  uint64_t h = 1469598103934665603u ^ (uint64_t)k->kind;
  for (const char *s = k->text; s && *s; s++)
    h = (h ^ (unsigned char)*s) * 1099511628211u;
  for (int i = 0; i < 6; i++)
    h = (h ^ (uint32_t)k->v[i]) * 1099511628211u;
  return (size_t)(h ^ h >> 31);
}

static struct frame_slot *find_slot(const struct hlo_frame_index *x, const struct frame_key *key) {
  size_t at = key_hash(key) & (x->cap - 1);
  while (x->slots[at].id && !key_equal(&x->slots[at].key, key))
    at = (at + 1) & (x->cap - 1);
  return &x->slots[at];
}

static void grow_index(struct arena *a, struct hlo_frame_index *x) {
  struct hlo_frame_index bigger = {.n = x->n, .cap = x->cap ? 2 * x->cap : 64};
  bigger.slots = arena_new_array(a, struct frame_slot, bigger.cap);
  for (size_t i = 0; i < x->cap; i++)
    if (x->slots[i].id)
      *find_slot(&bigger, &x->slots[i].key) = x->slots[i];
  *x = bigger;
}

/* Returns the list with room for one more entry; its storage is the next power of two of n. */
static void *grow_list(struct arena *a, void *v, int n, size_t size) {
  if (n & (n - 1))
    return v;
  void *bigger = arena_array(a, n ? 2 * (size_t)n : 1, size);
  if (n)
    memcpy(bigger, v, (size_t)n * size);
  return bigger;
}

/* The number of key; *is_new is true when the caller must append the entry. */
static int number_of(struct arena *a, struct hlo_frame_index *x, const struct frame_key *key, int n, bool *is_new) {
  if (x->n * 4 >= x->cap * 3)
    grow_index(a, x);
  struct frame_slot *s = find_slot(x, key);
  *is_new = !s->id;
  if (*is_new) {
    *s = (struct frame_slot){*key, n + 1};
    x->n++;
  }
  return s->id;
}

static int number_text(struct arena *a, struct hlo_frames *f, enum frame_kind kind, const char *text) {
  bool is_file = kind == FK_FILE, is_new;
  int *n = is_file ? &f->n_files : &f->n_functions;
  const char ***list = is_file ? &f->files : &f->functions;
  int id = number_of(a, f->index, &(struct frame_key){.kind = kind, .text = text}, *n, &is_new);
  if (is_new) {
    *list = grow_list(a, *list, *n, sizeof **list);
    (*list)[(*n)++] = text;
  }
  return id;
}

static int number_location(struct arena *a, struct hlo_frames *f, const struct src_loc *loc) {
  const struct src_range *r = &loc->range;
  int file = number_text(a, f, FK_FILE, r->file ? r->file : "");
  int function = number_text(a, f, FK_FUNCTION, loc->func ? loc->func : "<unknown>");
  struct frame_key key = {FK_LOCATION, NULL, {file, function, r->line, r->col, r->end_line, r->end_col}};
  bool is_new;
  int id = number_of(a, f->index, &key, f->n_locations, &is_new);
  if (is_new) {
    f->locations = grow_list(a, f->locations, f->n_locations, sizeof *f->locations);
    f->locations[f->n_locations++] = (struct hlo_frame_file_location){file, function, *r};
  }
  return id;
}

/* A deeper chain is written without its outermost calls; Python's own limit is lower. */
enum { CHAIN_MAX = 4096 };

static int number_frame(struct arena *a, struct hlo_frames *f, const struct src_loc *loc) {
  const struct src_loc *chain[CHAIN_MAX];
  int n = 0, id = 0;
  for (; loc && n < CHAIN_MAX; loc = loc->caller)
    chain[n++] = loc;
  while (n-- > 0) {
    int location = number_location(a, f, chain[n]);
    bool is_new;
    int next = number_of(a, f->index, &(struct frame_key){FK_FRAME, NULL, {location, id}}, f->n_frames, &is_new);
    if (is_new) {
      f->frames = grow_list(a, f->frames, f->n_frames, sizeof *f->frames);
      f->frames[f->n_frames++] = (struct hlo_frame){location, id};
    }
    id = next;
  }
  return id;
}

int hlo_export_frame(const struct hlo_export *e, const struct hlo_instr *i) {
  return e->frames.index && i->locs.n ? i->mark : 0;
}

/* ---- names ------------------------------------------------------------------------------------------- */

static bool has_suffix(const char *s) {
  size_t n = strlen(s), k = sizeof HLO_ALIAS_SUFFIX - 1;
  return n >= k && !strcmp(s + n - k, HLO_ALIAS_SUFFIX);
}

void hlo_export_init(struct hlo_export *e, struct arena *a, const struct hlo_module *m, bool with_frames) {
  const struct hlo_computation *entry = m->entry;
  *e = (struct hlo_export){.module = m, .arena = a};
  e->module_name = hlo_sanitize_name(a, m->name);
  e->param_names = arena_new_array(a, const char *, (size_t)entry->n_params);
  for (int k = 0; k < entry->n_params; k++)
    e->param_names[k] = entry->params[k]->name;
  for (int k = 0; k < m->n_aliases; k++) {
    int p = m->aliases[k].param_index;
    if (p >= 0 && p < entry->n_params && !has_suffix(e->param_names[p]))
      e->param_names[p] = arena_printf(a, "%s%s", e->param_names[p], HLO_ALIAS_SUFFIX);
  }
  if (!with_frames)
    return;
  e->frames.index = arena_new(a, struct hlo_frame_index);
  for (struct hlo_computation *c = m->computations; c; c = c->next)
    hlo_for_each(i, c) i->mark = i->locs.n ? number_frame(a, &e->frames, i->locs.v[0]) : 0;
}

static bool is_entry_param(const struct hlo_export *e, const struct hlo_instr *i) {
  return i->op == HLO_PARAMETER && i->parent == e->module->entry && i->attrs->parameter_number >= 0 &&
         i->attrs->parameter_number < e->module->entry->n_params;
}

const char *hlo_export_name(const struct hlo_export *e, const struct hlo_instr *i) {
  while (!i->parent && i->scratch) /* in the middle of a pass: what replaces a removed operand */
    i = i->scratch;
  return is_entry_param(e, i) ? e->param_names[i->attrs->parameter_number] : i->name;
}

static const char *joined_outputs(const struct hlo_export *e) {
  const struct hlo_module *m = e->module;
  size_t n = 0;
  for (int k = 0; k < m->n_outputs; k++)
    n += strlen(m->output_names[k]) + 1;
  char *text = arena_alloc(e->arena, n), *at = text;
  for (int k = 0; k < m->n_outputs; k++) {
    at = stpcpy(at, m->output_names[k]);
    *at++ = k + 1 < m->n_outputs ? ',' : 0;
  }
  return text;
}

int hlo_export_frontend_attributes(const struct hlo_export *e, const struct hlo_instr *i,
                                   struct hlo_export_pair out[HLO_EXPORT_PAIRS_MAX]) {
  int n = 0;
  if (i->attrs->has_collectives)
    out[n++] = (struct hlo_export_pair){"has_collectives", "1"};
  if (is_entry_param(e, i))
    out[n++] = (struct hlo_export_pair){"neff_input_names", e->param_names[i->attrs->parameter_number]};
  else if (i == e->module->entry->root && e->module->n_outputs)
    out[n++] = (struct hlo_export_pair){"neff_output_names", joined_outputs(e)};
  return n;
}

const struct hlo_instr *hlo_export_root(const struct hlo_computation *c) {
  return c->root ? c->root : c->last;
}
