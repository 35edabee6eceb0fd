/* carry: removes unneeded elements from the tuples that loops carry and conditionals return.
 *
 *     (i, x, n=8) = while …, n unchanged   ==>  the constant 8 inside the loop
 *     (…, x, …)   = while …, x unchanged   ==>  after the loop, the x from before it
 *     (i, y, z)   = while …, z unused      ==>  (i, y) = while …, unless i or y come from z
 *     (y, z)      = conditional …, z unused  ==>  (y) = conditional …
 *
 * Callers come before callees, because an element that an outer loop no longer carries need not be computed by an inner
 * one.  Each computation is walked forward, to replace unchanged elements, and then backward.  The backward walk knows
 * of each instruction whether it is needed; it removes those that are not, and shrinks the tuples.  A tuple is shrunk
 * only if all its uses read single elements and the called computations have one caller.  Each loop's computations are
 * walked a constant number of times, so the pass is linear.
 */
#include "hlo/carry.h"

#include "hlo/rewrite.h"

/* Which elements of a tuple are read after the instruction that returns it; kept in that instruction's scratch. */
struct uses {
  bool is_whole; /* the tuple is used as a whole */
  bool *reads;   /* by element */
  struct gte {
    struct hlo_instr *instr;
    struct gte *next;
  } *gtes;
};

struct shrinker {
  struct arena *scratch;
  struct hlo_module *m;
  enum hlo_op op;
  int *n_callers; /* by computation id */
  struct hlo_instr **stack;
  bool changed;
};

/* A computation, and which instructions with opcode `op` it has that return tuples. */
struct found {
  struct hlo_computation *c;
  bool any;
  bool unchanged; /* a loop may carry an element unchanged: only its body can tell */
};

static char needed; /* only its address is used */

/* ---- what can be shrunk ------------------------------------------------------------------------------ */

static bool is_part(const struct hlo_instr *x, const struct hlo_instr *tuple) {
  return x->op == HLO_GET_TUPLE_ELEMENT && x->operands[0] == tuple;
}

static bool is_read_by_element(const struct hlo_computation *c) {
  const struct hlo_instr *param = c->params[0];
  for (const struct hlo_instr *i = c->first; i; i = i->next)
    for (int k = 0; k < i->n_operands; k++)
      if (i->operands[k] == param && !is_part(i, param))
        return false;
  return c->root != param;
}

static bool calls_its_own(const struct shrinker *s, const struct hlo_instr *i) {
  for (int k = 0; k < i->n_called; k++)
    if (s->n_callers[i->called[k]->id] != 1 || !i->called[k]->root)
      return false;
  return true;
}

static bool is_loop(const struct shrinker *s, const struct hlo_instr *w) {
  return w->op == HLO_WHILE && w->shape.dtype == DT_TUPLE && !hlo_rewrite_is_pinned(w) && calls_its_own(s, w) &&
         w->called[0]->root->op == HLO_TUPLE;
}

static bool is_choice(const struct shrinker *s, const struct hlo_instr *i) {
  if (i->op != HLO_CONDITIONAL || i->shape.dtype != DT_TUPLE || hlo_rewrite_is_pinned(i) || !calls_its_own(s, i))
    return false;
  for (int k = 0; k < i->n_called; k++)
    if (i->called[k]->root->op != HLO_TUPLE)
      return false;
  return true;
}

/* ---- elements that stay as they are ------------------------------------------------------------------ */

static bool is_unchanged(const struct hlo_instr *w, int64_t k) {
  const struct hlo_instr *next = w->called[0]->root->operands[k];
  return is_part(next, w->called[0]->params[0]) && next->attrs->tuple_index == k;
}

/* Puts a constant before every reader of an element that is always this constant; the root still passes it on. */
static void sink_constants(struct shrinker *s, const struct hlo_instr *w, struct hlo_computation *c) {
  const struct hlo_instr *init = w->operands[0];
  bool any = false;
  hlo_for_each(i, c) {
    if (!is_part(i, c->params[0]) || !is_unchanged(w, i->attrs->tuple_index))
      continue;
    struct hlo_instr *v = init->operands[i->attrs->tuple_index];
    if (v->op != HLO_CONSTANT || v->shape.rank || hlo_rewrite_is_pinned(i) || i == c->root)
      continue;
    struct hlo_instr *constant = hlo_insert(i, HLO_CONSTANT, v->name, v->shape, 0, NULL);
    constant->attrs = v->attrs;
    hlo_rewrite_inherit_places(constant, v);
    hlo_rewrite_inherit_places(constant, i);
    i->scratch = constant;
    any = true;
  }
  if (!any)
    return;
  hlo_for_each(i, c) {
    bool hands_around = i == c->root && i->op == HLO_TUPLE;
    for (int k = 0; k < i->n_operands && !hands_around; k++)
      if (i->operands[k]->scratch) {
        i->operands[k] = i->operands[k]->scratch;
        s->changed = true;
      }
  }
  hlo_for_each(i, c) i->scratch = NULL;
}

static void replace_unchanged(struct shrinker *s, struct hlo_computation *c) {
  hlo_for_each(i, c) {
    hlo_rewrite_forward_operands(i);
    if (is_loop(s, i) && i->operands[0]->op == HLO_TUPLE)
      for (int k = 0; k < 2; k++)
        sink_constants(s, i, i->called[k]);
    if (i->op != HLO_GET_TUPLE_ELEMENT || i == c->root || hlo_rewrite_is_pinned(i) || !is_loop(s, i->operands[0]))
      continue;
    const struct hlo_instr *w = i->operands[0];
    if (w->operands[0]->op != HLO_TUPLE || !is_unchanged(w, i->attrs->tuple_index))
      continue;
    struct hlo_instr *before = w->operands[0]->operands[i->attrs->tuple_index];
    hlo_rewrite_inherit_places(before, i);
    hlo_rewrite_remove(i, before);
    s->changed = true;
  }
}

/* ---- smaller tuples ---------------------------------------------------------------------------------- */

static struct hlo_shape keep_elements(struct arena *a, const struct hlo_shape *s, const bool *keep) {
  struct hlo_shape *elems = arena_new_array(a, struct hlo_shape, (size_t)s->n_elems);
  int n = 0;
  for (int k = 0; k < s->n_elems; k++)
    if (keep[k])
      elems[n++] = s->elems[k];
  return (struct hlo_shape){.dtype = DT_TUPLE, .n_elems = n, .elems = elems};
}

static void keep_operands(struct hlo_instr *tuple, struct hlo_shape shape, const bool *keep) {
  int n = 0;
  for (int k = 0; k < tuple->n_operands; k++)
    if (keep[k])
      tuple->operands[n++] = tuple->operands[k];
  tuple->n_operands = n;
  tuple->shape = shape;
}

static int64_t *new_numbers(struct arena *a, int n, const bool *keep) {
  int64_t *to = arena_new_array(a, int64_t, (size_t)n);
  int64_t at = 0;
  for (int k = 0; k < n; k++)
    to[k] = keep[k] ? at++ : -1;
  return to;
}

static void drop_unneeded(struct hlo_computation *c) {
  for (struct hlo_instr *i = c->last, *prev; i; i = prev) {
    prev = i->prev;
    if (!i->scratch && i->op != HLO_PARAMETER && i != c->root)
      hlo_remove(i);
  }
}

/* Marks everything that x depends on; elements of parameters are marked in live. */
static void need(struct shrinker *s, struct hlo_instr *x, const struct hlo_instr *param, bool *live) {
  int n = 0;
  if (!x->scratch)
    s->stack[n++] = x;
  x->scratch = &needed;
  while (n) {
    x = s->stack[--n];
    if (is_part(x, param))
      live[x->attrs->tuple_index] = true;
    for (int k = 0; k < x->n_operands; k++)
      if (!x->operands[k]->scratch) {
        x->operands[k]->scratch = &needed;
        s->stack[n++] = x->operands[k];
      }
  }
}

/* Which elements are needed after the loop, by its condition, or for such an element in the next iteration. */
static bool find_live(struct shrinker *s, const struct hlo_instr *w, bool *live) {
  struct hlo_computation *body = w->called[0], *condition = w->called[1];
  const int n = w->shape.n_elems;
  bool *done = arena_new_array(s->scratch, bool, (size_t)n), more = true;
  int n_live = 0;

  need(s, condition->root, condition->params[0], live);
  int *queue = arena_new_array(s->scratch, int, (size_t)n), at = 0, end = 0;
  while (more) {
    more = false;
    for (int k = 0; k < n; k++)
      if (live[k] && !done[k]) {
        done[k] = true;
        queue[end++] = k;
      }
    for (; at < end; at++) {
      need(s, body->root->operands[queue[at]], body->params[0], live);
      more = true;
    }
  }
  for (int k = 0; k < n; k++)
    n_live += live[k];
  if (!n_live)
    return false;
  return n_live < n;
}

static void shrink_computation(struct hlo_computation *c, struct hlo_shape shape, const bool *keep,
                               const int64_t *number) {
  struct hlo_instr *param = c->params[0];
  drop_unneeded(c);
  hlo_for_each(i, c) if (is_part(i, param))
      hlo_set_attrs(i, &(struct hlo_attrs){.tuple_index = number[i->attrs->tuple_index]});
  param->shape = shape;
  if (c->root->op == HLO_TUPLE && c->root->shape.dtype == DT_TUPLE)
    keep_operands(c->root, shape, keep);
}

static struct hlo_instr *smaller_init(struct hlo_instr *w, struct hlo_shape shape, const bool *keep,
                                      struct arena *scratch) {
  struct hlo_instr *init = w->operands[0];
  struct hlo_instr **v = arena_new_array(scratch, struct hlo_instr *, (size_t)w->shape.n_elems);
  int n = 0;
  for (int k = 0; k < w->shape.n_elems; k++) {
    if (!keep[k])
      continue;
    if (init->op == HLO_TUPLE) {
      v[n++] = init->operands[k];
      continue;
    }
    v[n] = hlo_insert(w, HLO_GET_TUPLE_ELEMENT, NULL, init->shape.elems[k], 1, &init);
    hlo_set_attrs(v[n], &(struct hlo_attrs){.tuple_index = k});
    hlo_rewrite_inherit_places(v[n++], init);
  }
  struct hlo_instr *t = hlo_insert(w, HLO_TUPLE, NULL, shape, n, v);
  hlo_rewrite_inherit_places(t, init);
  return t;
}

static void renumber_uses(const struct uses *u, const int64_t *number) {
  for (const struct gte *g = u->gtes; g; g = g->next)
    hlo_set_attrs(g->instr, &(struct hlo_attrs){.tuple_index = number[g->instr->attrs->tuple_index]});
}

static void forget_needed(struct hlo_computation *c) {
  hlo_for_each(i, c) i->scratch = NULL;
}

static void shrink_loop(struct shrinker *s, struct hlo_instr *w, const struct uses *u) {
  struct hlo_computation *body = w->called[0], *condition = w->called[1];
  if (u->is_whole || !is_read_by_element(body) || !is_read_by_element(condition))
    return;
  if (find_live(s, w, u->reads)) {
    struct hlo_shape shape = keep_elements(s->m->arena, &w->shape, u->reads);
    const int64_t *number = new_numbers(s->scratch, w->shape.n_elems, u->reads);
    w->operands[0] = smaller_init(w, shape, u->reads, s->scratch);
    shrink_computation(body, shape, u->reads, number);
    shrink_computation(condition, shape, u->reads, number);
    w->shape = shape;
    renumber_uses(u, number);
    s->changed = true;
  }
  forget_needed(body);
  forget_needed(condition);
}

static void shrink_choice(struct shrinker *s, struct hlo_instr *i, const struct uses *u) {
  int n_live = 0;
  for (int k = 0; k < i->shape.n_elems; k++)
    n_live += u->reads[k];
  if (u->is_whole || !n_live || n_live == i->shape.n_elems)
    return;
  struct hlo_shape shape = keep_elements(s->m->arena, &i->shape, u->reads);
  for (int k = 0; k < i->n_called; k++)
    keep_operands(i->called[k]->root, shape, u->reads);
  renumber_uses(u, new_numbers(s->scratch, i->shape.n_elems, u->reads));
  i->shape = shape;
  s->changed = true;
}

/* ---- the walk ---------------------------------------------------------------------------------------- */

static void note_use(struct shrinker *s, struct hlo_instr *user, struct hlo_instr *x) {
  if (x->op != s->op || x->shape.dtype != DT_TUPLE) {
    x->scratch = &needed;
    return;
  }
  struct uses *u = x->scratch;
  if (!u) {
    u = x->scratch = arena_new(s->scratch, struct uses);
    u->reads = arena_new_array(s->scratch, bool, (size_t)x->shape.n_elems);
  }
  if (user && user->op == HLO_GET_TUPLE_ELEMENT) {
    struct gte *g = arena_new(s->scratch, struct gte);
    *g = (struct gte){user, u->gtes};
    u->gtes = g;
    u->reads[user->attrs->tuple_index] = true;
  } else {
    u->is_whole = true;
  }
}

static void walk_back(struct shrinker *s, struct hlo_computation *c) {
  note_use(s, NULL, c->root);
  for (struct hlo_instr *i = c->last, *prev; i; i = prev) {
    hlo_prefetch(i, -1);
    if (!i->scratch && i->op != HLO_PARAMETER) {
      prev = i->prev;
      hlo_step(i, "remove-unused");
      hlo_remove(i);
      s->changed = true;
      continue;
    }
    hlo_step(i, "carry-less");
    if (s->op == HLO_WHILE && is_loop(s, i))
      shrink_loop(s, i, i->scratch);
    if (s->op == HLO_CONDITIONAL && is_choice(s, i))
      shrink_choice(s, i, i->scratch);
    for (int k = 0; k < i->n_operands; k++)
      note_use(s, i, i->operands[k]);
    i->scratch = NULL;
    prev = i->prev; /* the loop's operand was made just before it */
  }
}

static bool has_unchanged(const struct hlo_instr *w) {
  const struct hlo_instr *root = w->called[0]->root;
  bool any = false;
  for (int k = 0; root && root->op == HLO_TUPLE && k < w->shape.n_elems && !any; k++)
    any = is_unchanged(w, k);
  return any;
}

/* Counts the callers of the computations that c calls. */
static struct found look_through(struct shrinker *s, struct hlo_computation *c) {
  struct found f = {.c = c};
  if (!c->may_call)
    return f;
  hlo_for_each(i, c) {
    if (i->op == s->op && i->shape.dtype == DT_TUPLE) {
      f.any = true;
      f.unchanged = f.unchanged || (s->op == HLO_WHILE && has_unchanged(i));
    }
    for (int k = 0; k < i->n_called; k++)
      s->n_callers[i->called[k]->id]++;
  }
  return f;
}

void hlo_carry_shrink(struct hlo_module *m, struct hlo_pass_result *r, enum hlo_op op) {
  struct arena scratch;
  struct shrinker s = {.scratch = &scratch, .m = m, .op = op};
  int n = 0, most = 0;

  arena_init(&scratch);
  struct found *order = arena_new_array(&scratch, struct found, (size_t)m->n_computations);
  s.n_callers = arena_new_array(&scratch, int, (size_t)m->next_computation_id);
  hlo_rewrite_begin(m);
  for (struct hlo_computation *c = m->computations; c; c = c->next) {
    order[n] = look_through(&s, c);
    n += order[n].any && c->root;
    if (c != m->entry && c->n_instrs > most)
      most = c->n_instrs;
  }
  /* for called computations, with the constants that sink into them: at most one per element */
  s.stack = arena_new_array(&scratch, struct hlo_instr *, 2 * (size_t)most + 1);
  while (n-- > 0) {
    if (order[n].unchanged && order[n].c->first)
      hlo_step(order[n].c->first, "take-unchanged-outside");
    if (order[n].unchanged)
      replace_unchanged(&s, order[n].c);
    walk_back(&s, order[n].c);
  }
  hlo_rewrite_end(m);
  r->changed |= s.changed;
  arena_clear(&scratch);
}
