/* reroll: see reroll.h.  The rounds of the record become a tree, and the loops are made from the inside out. */
#include "nki/reroll.h"

#include <assert.h>
#include <string.h>

#include "base/array.h"
#include "nki/reroll_internal.h"

enum {
  RUN_MIN = 3,    /* rounds of a part of a loop that become a loop */
  BODY_FIRST = 6, /* nodes for which a body has room at first: there are many small ones */
};

/* ---- the tree ---------------------------------------------------------------------------------------------------- */

static void make_bodies(struct roll *r) {
  const struct nki_program *p = r->record;
  r->bodies = arena_new_array(r->arena, struct roll_body, (size_t)p->rounds.n + 1);
  r->bodies[0] = (struct roll_body){.outer = -1, .is_placed = true};
  for (int i = 0; i < p->rounds.n; i++) {
    const int outer = p->rounds.v[i].outer + 1;
    r->bodies[i + 1] = (struct roll_body){.outer = outer, .depth = r->bodies[outer].depth + 1};
  }
}

/* Puts a body and those around it into the tree. */
static void place_body(struct roll *r, int body) {
  struct roll_body *b = &r->bodies[body];
  if (b->is_placed)
    return;
  b->is_placed = true;
  place_body(r, b->outer); /* at most NKI_LOOPS_MAX deep */
  struct roll_body *outer = &r->bodies[b->outer];
  const uint64_t loop = r->record->rounds.v[body - 1].loop;
  struct roll_node *last = outer->nodes.n ? &outer->nodes.v[outer->nodes.n - 1] : NULL;
  if (!last || !last->rounds || last->rounds->loop != loop) {
    struct roll_rounds *rounds = arena_new(r->arena, struct roll_rounds);
    *rounds = (struct roll_rounds){.loop = loop, .depth = outer->depth};
    last = array_push(r->arena, &outer->nodes, (struct roll_node){.rounds = rounds});
  }
  array_push(r->arena, &last->rounds->bodies, body);
  b->nodes.cap = BODY_FIRST;
  b->nodes.v = arena_new_array(r->arena, struct roll_node, BODY_FIRST);
}

/* Makes a tensor in its home, before the node that uses it first, if it is not made yet.  `here` uses it. */
static void place_tensor(struct roll *r, struct nki_tensor *t, int here) {
  struct roll_tensor *x = roll_tensor_of(r, t);
  if (x->is_placed || t->input >= 0 || t->reg == NKI_RESULT)
    return;
  x->is_placed = true;
  struct roll_body *home = &r->bodies[x->home];
  const struct nki_item item = {.tensor = t, .round = -1, .core = t->core, .id = x->line, .locs = t->locs};
  array_push(r->arena, &home->nodes, (struct roll_node){.item = item});
  if (x->home != here && home->nodes.n > 1) { /* the last node is the loop with the use */
    struct roll_node *v = &home->nodes.v[home->nodes.n - 2], loop = v[0];
    v[0] = v[1];
    v[1] = loop;
  }
}

/* The record makes a tensor here.  What is in HBM and is made outside of loops keeps its place. */
static void note_made(struct roll *r, const struct nki_item *x) {
  struct nki_tensor *whole = roll_whole(r, x->tensor);
  const struct roll_tensor *t = roll_tensor_of(r, whole);
  if (mem_is_dram(whole->space) && whole == x->tensor && t->home == 0 && t->made == 0)
    place_tensor(r, whole, 0);
}

struct placing {
  struct roll *r;
  int body;
};

static void place_used(void *user, struct nki_tensor *t, bool is_written) {
  const struct placing *x = user;
  (void)is_written;
  place_tensor(x->r, roll_whole(x->r, t), x->body);
}

static void make_tree(struct roll *r) {
  const struct nki_program *p = r->record;
  for (int i = 0; i < p->items.n; i++) {
    struct nki_call *c = r->calls[i];
    const int body = roll_body_of(r, i);
    if (p->items.v[i].tensor)
      note_made(r, &p->items.v[i]);
    if (!c)
      continue;
    place_body(r, body);
    for (const struct roll_carried *x = r->carried[i]; x; x = x->next)
      place_tensor(r, roll_whole(r, x->tensor), body);
    struct placing placing = {r, body};
    nki_each_tensor(c, place_used, &placing);
    const struct nki_item item = {
        .call = c, .round = -1, .core = p->items.v[i].core, .id = p->items.v[i].id, .locs = c->locs};
    array_push(r->arena, &r->bodies[body].nodes, (struct roll_node){.item = item});
  }
}

/* ---- notes ------------------------------------------------------------------------------------------------------- */

/* The header of the loop number `depth` around the place of an item. */
static struct src_locs header_of(struct roll *r, struct src_locs locs, int depth) {
  int inner = 0; /* loops of the functions that the place's function called */
  for (const struct src_loc *l = locs.n ? locs.v[0] : NULL; l; l = l->caller)
    inner += l->n_loops;
  for (const struct src_loc *l = locs.n ? locs.v[0] : NULL; l; l = l->caller) {
    inner -= l->n_loops;
    if (depth < inner || depth >= inner + l->n_loops)
      continue;
    struct src_loc *header = arena_new(r->arena, struct src_loc);
    *header = (struct src_loc){.range = l->loops[depth - inner], .func = l->func, .caller = l->caller};
    return src_locs_one(r->arena, header);
  }
  return (struct src_locs){0};
}

static const struct nki_item *first_call(const struct nki_items *x) {
  for (int i = 0; i < x->n; i++) {
    const struct nki_item *c = x->v[i].loop ? first_call(&x->v[i].loop->items) : &x->v[i];
    if (c && c->call)
      return c;
  }
  return NULL;
}

/* Adds a note about a loop, unless there is one of this kind about the same loop of the source. */
static void add_note(struct roll *r, struct nki_note note, const struct nki_items *round, int depth) {
  const enum rule rule = note.rule;
  const struct nki_item *c = first_call(round);
  const struct src_locs locs = c ? header_of(r, c->call->locs, depth) : (struct src_locs){0};
  if (!locs.n)
    return;
  const struct src_range *at = &locs.v[0]->range;
  const uint32_t hash = (uint32_t)hash_mix(hash_mix((uint64_t)at->line, (uint64_t)at->col), (uint64_t)rule);
  for (struct index_probe k = index_probe(&r->notes_of, hash); index_next(&k);)
    if (r->notes->v[k.entry].rule == rule && src_loc_equal(r->notes->v[k.entry].locs.v[0], locs.v[0]))
      return;
  index_add(&r->notes_of, hash, r->notes->n);
  note.name = rule == RULE_ROLL_ROUNDS ? "for" : "";
  note.locs = locs;
  note.id = c->id;
  array_push(r->arena, r->notes, note);
}

/* ---- loops ------------------------------------------------------------------------------------------------------- */

static void append(struct roll *r, struct nki_items *to, const struct nki_items *from) {
  for (int i = 0; i < from->n; i++)
    array_push(r->arena, to, from->v[i]);
}

/* Rounds of a loop, one after another, that match. */
struct run {
  struct nki_items first, second; /* the second's places are not merged yet while n is 2 */
  int n;
};

static void end_run(struct roll *r, struct run *x, const struct roll_rounds *all, struct nki_items *out) {
  if (x->n < RUN_MIN && x->n < all->bodies.n) {
    append(r, out, &x->first);
    if (x->n == 2) {
      roll_forget(r, &x->second);
      append(r, out, &x->second);
    }
  } else if (x->n == 1) {
    append(r, out, &x->first);
  } else {
    struct nki_loop *loop = arena_new(r->arena, struct nki_loop);
    const struct nki_item *c = first_call(&x->first);
    add_note(r,
             (struct nki_note){
                 .rule = RULE_ROLL_ROUNDS,
                 .text = arena_printf(
                     r->arena, x->n == all->bodies.n ? "its %d rounds are a loop" : "%d of its %d rounds are a loop",
                     x->n, all->bodies.n),
                 .cost = arena_printf(r->arena, "%d call%s", x->first.n, x->first.n == 1 ? "" : "s"),
                 .rejected = "the rounds one after another",
                 .rejected_cost = arena_printf(r->arena, "%d calls", x->n * x->first.n),
                 .reason = "they are the same but for their places, and every pass would work on each of them"},
             &x->first, all->depth);
    roll_make_affine(r, loop, &x->first, &x->second);
    if (x->n == 2)
      roll_merge(r, &x->first, &x->second);
    *loop = (struct nki_loop){.trips = x->n, .depth = all->depth, .items = x->first};
    loop->locs = c ? header_of(r, c->call->locs, all->depth) : (struct src_locs){0};
    array_push(
        r->arena, out,
        (struct nki_item){.loop = loop, .round = -1, .core = c ? c->core : 0, .id = c ? c->id : 0, .locs = loop->locs});
  }
  *x = (struct run){.n = 0};
}

/* Adds a round to the run, or ends the run and begins another. */
static void add_round(struct roll *r, struct run *x, struct nki_items round, const struct roll_rounds *all,
                      struct nki_items *out) {
  while (x->n) {
    if (!r->keep_rounds && roll_matches(r, &x->first, x->n > 1 ? &x->second : NULL, &round, x->n)) {
      if (x->n == 1)
        x->second = round;
      if (x->n == 2)
        roll_merge(r, &x->first, &x->second);
      if (x->n >= 2)
        roll_merge(r, &x->first, &round);
      x->n++;
      return;
    }
    roll_forget(r, &round);
    if (!r->keep_rounds)
      add_note(r, (struct nki_note){.rule = RULE_KEEP_ROUNDS, .text = r->why}, &round, all->depth);
    if (x->n != 2) {
      end_run(r, x, all, out);
    } else { /* perhaps another run begins with the second */
      roll_forget(r, &x->second);
      append(r, out, &x->first);
      *x = (struct run){.first = x->second, .n = 1};
    }
  }
  *x = (struct run){.first = round, .n = 1};
}

static struct nki_items items_of(struct roll *r, int body) {
  const int n = r->bodies[body].nodes.n;
  struct nki_items out = {.v = arena_new_array(r->arena, struct nki_item, (size_t)n), .cap = n};
  for (int i = 0; i < n; i++) {
    const struct roll_node *x = &r->bodies[body].nodes.v[i];
    if (!x->rounds) {
      array_push(r->arena, &out, x->item);
      continue;
    }
    struct run run = {.n = 0};
    for (int k = 0; k < x->rounds->bodies.n; k++)
      add_round(r, &run, items_of(r, x->rounds->bodies.v[k]), x->rounds, &out);
    end_run(r, &run, x->rounds, &out);
  }
  return out;
}

/* ---- the result -------------------------------------------------------------------------------------------------- */

/* A copy of the tensor in the result. */
static struct nki_tensor *final_tensor(struct roll *r, struct nki_program *p, const struct nki_tensor *t) {
  struct nki_tensor *out = arena_dup(r->arena, t, sizeof *t);
  out->number = p->tensors.n;
  out->retyped = NULL;
  out->n_alike = 0;
  out->name = nki_unique_name(p, t->called, t->space);
  p->names.arena = r->arena;
  index_add(&p->names, hash_text(out->name), p->tensors.n);
  array_push(r->arena, &p->tensors, out);
  roll_tensor_of(r, t)->final = out;
  return out;
}

static const char *loop_name(const struct nki_program *p, int nesting) {
  static const char letters[] = "ijklmnopqrstuvw";
  assert(nesting < (int)sizeof letters - 1 || nesting < NKI_LOOPS_MAX);
  const char *name = arena_printf(p->arena, "%c", letters[nesting % (int)(sizeof letters - 1)]);
  bool taken = true;
  while (taken) {
    taken = false;
    for (struct index_probe k = index_probe(&p->names, hash_text(name)); index_next(&k);)
      taken |= !strcmp(p->tensors.v[k.entry]->name, name);
    name = taken ? arena_printf(p->arena, "%s_", name) : name;
  }
  return name;
}

static void name_loops(struct nki_program *p, struct nki_items *x, int nesting) {
  for (int i = 0; i < x->n; i++)
    if (x->v[i].loop) {
      x->v[i].loop->name = loop_name(p, nesting);
      name_loops(p, &x->v[i].loop->items, nesting + 1);
    }
}

static struct nki_tensor *settled(struct roll *r, struct nki_program *p, struct nki_tensor *t) {
  struct roll_tensor *x =
      roll_tensor_of(r, t->reg && roll_tensor_of(r, t)->same_as ? roll_tensor_of(r, t)->same_as : t);
  return x->final ? x->final : final_tensor(r, p, x->tensor); /* the result of this call is a register */
}

static void settle_view(struct roll *r, struct nki_program *p, struct nki_view *v) {
  struct nki_term *terms = v->n_terms ? arena_dup(r->arena, v->terms, (size_t)v->n_terms * sizeof *terms) : NULL;
  v->tensor = nki_retyped(r->arena, settled(r, p, nki_storage(v->tensor)), v->tensor->dtype, v->tensor->packed);
  for (int i = 0; i < v->n_terms; i++)
    if (terms[i].reg)
      terms[i].reg = settled(r, p, terms[i].reg);
  v->terms = terms;
}

/* Gives the items their final tensors and their numbers. */
static void settle(struct roll *r, struct nki_program *p, struct nki_items *x, int *id) {
  for (int i = 0; i < x->n; i++) {
    struct nki_item *item = &x->v[i];
    if (!item->from.n && item->id)
      array_push(r->arena, &item->from, item->id);
    item->id = ++*id;
    if (item->tensor)
      item->tensor = final_tensor(r, p, item->tensor);
    if (item->loop)
      settle(r, p, &item->loop->items, id);
    if (!item->call)
      continue;
    item->call = roll_settled(r, item->call);
    item->call->locs = item->locs;
    for (int k = 0; k < nki_n_params(nki_def(item->call)); k++)
      if (item->call->value[k].kind == NKI_VIEW)
        settle_view(r, p, item->call->value[k].view);
  }
}

static struct nki_program *make_program(struct roll *r, struct nki_items items) {
  const struct nki_program *from = r->record;
  struct nki_program *p = arena_new(r->arena, struct nki_program);
  int id = 0;
  *p = (struct nki_program){.arena = r->arena,
                            .name = from->name,
                            .target = from->target,
                            .items = items,
                            .is_rerolled = true,
                            .n_outputs = from->n_outputs,
                            .locs = from->locs,
                            .return_locs = from->return_locs};
  for (int i = 0; i < from->tensors.n; i++)
    if (from->tensors.v[i]->input >= 0)
      final_tensor(r, p, from->tensors.v[i]);
  settle(r, p, &p->items, &id);
  name_loops(p, &p->items, 0);
  p->outputs = arena_new_array(r->arena, struct nki_tensor *, (size_t)from->n_outputs);
  for (int i = 0; i < from->n_outputs; i++) {
    struct nki_tensor *t = roll_tensor_of(r, from->outputs[i])->final;
    p->outputs[i] = t ? t : final_tensor(r, p, from->outputs[i]);
  }
  return p;
}

enum status nki_reroll(const struct nki_program *record, bool keep_rounds, struct diags *ds, struct nki_program **out,
                       struct nki_notes *notes) {
  struct nki_plan plan;
  struct roll r = {.arena = record->arena, .record = record, .keep_rounds = keep_rounds, .notes = notes};
  r.notes_of.arena = r.arena;
  if (!nki_plan_make(record, r.arena, ds, &plan))
    return ST_INPUT;
  make_bodies(&r);
  roll_tensors(&r, &plan);
  make_tree(&r);
  struct nki_items items = items_of(&r, 0);
  roll_sink(&r, &items);
  *out = make_program(&r, items);
  return ST_OK;
}
