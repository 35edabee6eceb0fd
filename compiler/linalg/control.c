/* control: lowers while, conditional and call, and the tuples that carry values into and out of them.
 *
 *     while with a counter (constant first, step and limit)  ==>  scf.for, carried values as iter_args
 *     any other while                                        ==>  scf.while
 *     conditional                                            ==>  scf.if
 *     call                                                   ==>  the called computation's body
 *
 * A tuple has no MLIR value; only its elements have.  Elements that a while passes on unchanged are read from outside
 * the loop, and its counter is the loop's induction variable (counter.c), so neither becomes an iter_arg.  The loop
 * writes carried values in place, so an initial value that is an argument of the caller is copied first.
 */
#include <assert.h>

#include "hlo/literal.h"
#include "linalg/impl.h"

static int n_parts(const struct hlo_shape *s) {
  return s->dtype == DT_TUPLE ? s->n_elems : 1;
}
static const struct hlo_shape *part_shape(const struct hlo_shape *s, int k) {
  return s->dtype == DT_TUPLE ? &s->elems[k] : s;
}
static MlirType part_type(struct lower *l, const struct hlo_shape *s, int k) {
  const struct hlo_shape *p = part_shape(s, k);
  return ir_tensor_type(&l->b, p->dtype, p->rank, p->dims);
}

static bool is_flat(const struct hlo_shape *s) {
  for (int k = 0; s->dtype == DT_TUPLE && k < s->n_elems; k++)
    if (s->elems[k].dtype == DT_TUPLE)
      return false;
  return true;
}

/* ---- tuples -------------------------------------------------------------------------------------------- */

void lower_set_parts(struct lower *l, const struct hlo_instr *t, MlirValue const *parts) {
  struct node *n = node_of(l, t);
  if (t->shape.dtype == DT_TUPLE)
    n->parts = arena_dup(&l->arena, parts, (size_t)t->shape.n_elems * sizeof *parts);
  else
    n->value = parts[0];
  n->is_done = true;
}

MlirValue lower_part(struct lower *l, const struct hlo_instr *t, int k) {
  struct node *n = node_of(l, t);
  if (t->shape.dtype != DT_TUPLE)
    return lower_value(l, t);
  if (t->op == HLO_TUPLE)
    return lower_value(l, t->operands[k]);
  if (n->origins && n->origins[k])
    return lower_value(l, n->origins[k]);
  if (n->counter.at == k && mlirValueIsNull(n->parts[k]))
    n->parts[k] = counter_tensor(l, &n->counter, t->shape.elems[k].dtype);
  return n->parts[k];
}

enum status lower_tuple(struct lower *l, const struct hlo_instr *i) {
  return is_flat(&i->shape) ? ST_OK : lower_refuse(l, i, "tuples in tuples are not possible");
}

enum status lower_get_tuple_element(struct lower *l, const struct hlo_instr *i) {
  const struct hlo_instr *t = i->operands[0];
  lower_set(l, i, lower_part(l, t, (int)i->attrs->tuple_index), lower_no_op());
  return ST_OK;
}

void lower_copy_tuple(struct lower *l, const struct hlo_instr *i) {
  MlirValue *parts = arena_new_array(&l->arena, MlirValue, (size_t)i->shape.n_elems);
  for (int k = 0; k < i->shape.n_elems; k++)
    parts[k] = lower_part(l, i->operands[0], k);
  lower_set_parts(l, i, parts);
}

/* ---- regions ------------------------------------------------------------------------------------------- */

/* Emits x now, so that its value dominates the regions that are opened next. */
static void prepare(struct lower *l, const struct hlo_instr *x) {
  if (x->shape.dtype == DT_TUPLE && x->op == HLO_TUPLE)
    for (int k = 0; k < x->n_operands; k++)
      prepare(l, x->operands[k]);
  else if (x->shape.dtype != DT_TUPLE && !node_of(l, x)->scalar_kind)
    lower_value(l, x);
  scalar_prepare(l, x);
}

/* Gives the parameter of a called computation the value of x, which prepare has emitted. */
static void bind(struct lower *l, const struct hlo_instr *param, const struct hlo_instr *x) {
  struct node *n = node_of(l, param);
  n->is_done = true;
  if (x->shape.dtype != DT_TUPLE) {
    if (!scalar_inherit(l, param, x) || mlirValueIsNull(n->value))
      n->value = node_of(l, x)->value;
  } else if (x->op == HLO_TUPLE) {
    n->origins = arena_dup(&l->arena, x->operands, (size_t)x->n_operands * sizeof *n->origins);
  } else {
    n->parts = node_of(l, x)->parts;
    n->origins = node_of(l, x)->origins;
    n->counter = node_of(l, x)->counter;
  }
}

static MlirValue *all_parts(struct lower *l, const struct hlo_instr *x) {
  const int n = n_parts(&x->shape);
  MlirValue *parts = arena_new_array(&l->arena, MlirValue, (size_t)n);
  for (int k = 0; k < n; k++)
    parts[k] = lower_part(l, x, k);
  return parts;
}

/* Ends a region with a yield of the parts of `root` that `keep` selects (NULL: all). */
static void yield_parts(struct lower *l, const struct hlo_instr *root, const bool *keep) {
  MlirValue *v = arena_new_array(&l->arena, MlirValue, (size_t)n_parts(&root->shape));
  int n = 0;
  for (int k = 0; k < n_parts(&root->shape); k++)
    if (!keep || keep[k])
      v[n++] = lower_part(l, root, k);
  ir_yield(&l->b, n, v);
}

/* ---- call ---------------------------------------------------------------------------------------------- */

enum status lower_call(struct lower *l, const struct hlo_instr *i) {
  const struct hlo_computation *c = i->called[0];
  if (!is_flat(&i->shape))
    return lower_refuse(l, i, "tuples in tuples are not possible");
  lower_forget(l, c);
  for (int k = 0; k < i->n_operands; k++) {
    prepare(l, i->operands[k]);
    bind(l, c->params[k], i->operands[k]);
  }
  enum status st = lower_computation(l, c);
  if (!st)
    lower_set_parts(l, i, all_parts(l, c->root));
  return st;
}

/* ---- while --------------------------------------------------------------------------------------------- */

struct loop {
  const struct hlo_instr *instr;
  const struct hlo_instr *init;     /* the operand of instr: the initial state */
  int n;                            /* parts of the state */
  MlirValue *outside;               /* by part: its value before the loop; null for a counter and if origins is set */
  const struct hlo_instr **origins; /* by part: the instruction that is passed on unchanged, or NULL */
  bool *carried;                    /* by part: true if an iteration may change it and it is not the counter */
  struct counter counter;
  int n_types;     /* number of carried parts */
  MlirType *types; /* types of the carried parts */
};

static const struct hlo_instr *body_next(const struct hlo_instr *w, int k) {
  const struct hlo_instr *root = w->called[0]->root;
  return root->op == HLO_TUPLE ? root->operands[k] : NULL;
}

static bool is_part_of(const struct hlo_instr *x, const struct hlo_instr *param, int k) {
  return x && x->op == HLO_GET_TUPLE_ELEMENT && x->operands[0] == param && x->attrs->tuple_index == k;
}

/* Returns a fill with the value of a splat constant that the loop overwrites; a constant cannot be written to. */
static MlirValue filled(struct lower *l, const struct hlo_instr *x) {
  return ir_fill(&l->b, lower_splat(l, x), lower_empty(l, &x->shape));
}

static void read_loop(struct lower *l, const struct hlo_instr *w, bool counts, struct loop *p) {
  *p = (struct loop){.instr = w, .init = w->operands[0], .n = n_parts(&w->shape), .counter.at = -1};
  p->outside = arena_new_array(&l->arena, MlirValue, (size_t)p->n);
  p->origins = arena_new_array(&l->arena, const struct hlo_instr *, (size_t)p->n);
  p->carried = arena_new_array(&l->arena, bool, (size_t)p->n);
  p->types = arena_new_array(&l->arena, MlirType, (size_t)p->n + 1);
  if (counts)
    counter_find(w, &p->counter);
  for (int k = 0; k < p->n; k++) {
    if (k == p->counter.at)
      continue;
    p->carried[k] = !is_part_of(body_next(w, k), w->called[0]->params[0], k);
    const struct hlo_instr *x = p->init->op == HLO_TUPLE ? p->init->operands[k] : NULL;
    if (x && !p->carried[k]) {
      prepare(l, x);
      p->origins[k] = x;
      continue;
    }
    MlirValue v = x && lower_is_splat(x) ? filled(l, x) : lower_part(l, p->init, k);
    p->outside[k] = p->carried[k] ? lower_writable_value(l, v) : v;
    if (p->carried[k])
      p->types[p->n_types++] = part_type(l, &w->shape, k);
  }
}

/* Returns the state's parts inside a region.  The carried parts are the block's arguments from `first` on. */
static MlirValue *inner_parts(struct lower *l, const struct loop *p, MlirBlock block, int first) {
  MlirValue *parts = arena_dup(&l->arena, p->outside, (size_t)p->n * sizeof *parts);
  for (int k = 0; k < p->n; k++)
    if (p->carried[k])
      parts[k] = mlirBlockGetArgument(block, first++);
  return parts;
}

/* Returns the initial values of the carried parts. */
static MlirValue *initial_values(struct lower *l, const struct loop *p) {
  MlirValue *v = arena_new_array(&l->arena, MlirValue, (size_t)p->n_types);
  for (int k = 0, at = 0; k < p->n; k++)
    if (p->carried[k])
      v[at++] = p->outside[k];
  return v;
}

static void set_results(struct lower *l, const struct loop *p, MlirOperation op) {
  assert(mlirOperationGetNumResults(op) == p->n_types);
  MlirValue *parts = arena_dup(&l->arena, p->outside, (size_t)p->n * sizeof *parts);
  for (int k = 0, at = 0; k < p->n; k++)
    if (p->carried[k])
      parts[k] = mlirOperationGetResult(op, at++);
  lower_set_parts(l, p->instr, parts);
  node_of(l, p->instr)->origins = p->origins;
}

/* Lowers c into one region of the loop, and leaves l->b in that region. */
static enum status lower_region(struct lower *l, const struct loop *p, const struct hlo_computation *c, MlirBlock block,
                                int first, const struct counter *counter) {
  l->b.block = block;
  lower_forget(l, c);
  lower_set_parts(l, c->params[0], inner_parts(l, p, block, first));
  node_of(l, c->params[0])->origins = p->origins;
  if (counter)
    node_of(l, c->params[0])->counter = *counter;
  return lower_computation(l, c);
}

static enum status lower_for(struct lower *l, struct loop *p) {
  const struct hlo_computation *body = p->instr->called[0];
  MlirValue *init = initial_values(l, p);
  struct ir_builder outer = l->b, inside;
  struct counter counter = p->counter;

  MlirValue bounds[] = {ir_index(&l->b, counter_lower(&counter)), ir_index(&l->b, counter_upper(&counter)),
                        ir_index(&l->b, counter_step(&counter))};
  MlirRegion region = ir_loop_region(&l->b, p->n_types, init, &inside);
  counter.iv = mlirBlockGetArgument(inside.block, 0);
  enum status st = lower_region(l, p, body, inside.block, 1, &counter);
  if (!st)
    yield_parts(l, body->root, p->carried);
  l->b = outer;
  if (st) {
    mlirRegionDestroy(region);
    return st;
  }
  set_results(l, p, ir_for(&l->b, bounds, p->n_types, init, region));
  counter_after(&p->counter);
  node_of(l, p->instr)->counter = p->counter;
  return ST_OK;
}

/* Lowers the condition's region, which passes its arguments on to the body. */
static enum status lower_condition(struct lower *l, const struct loop *p, MlirBlock block) {
  const struct hlo_computation *c = p->instr->called[1];
  enum status st = lower_region(l, p, c, block, 0, NULL);
  if (st)
    return st;
  MlirValue *v = arena_new_array(&l->arena, MlirValue, (size_t)p->n_types + 1);
  v[0] = scalar_of(l, c->root);
  for (int k = 0; k < p->n_types; k++)
    v[1 + k] = mlirBlockGetArgument(block, k);
  ir_op0(&l->b, "scf.condition", 1 + p->n_types, v);
  return ST_OK;
}

static enum status lower_general_while(struct lower *l, struct loop *p) {
  const struct hlo_computation *body = p->instr->called[0];
  MlirValue *init = initial_values(l, p);
  struct ir_builder outer = l->b, before, after;
  MlirRegion regions[] = {ir_region(&l->b, p->n_types, p->types, &before),
                          ir_region(&l->b, p->n_types, p->types, &after)};

  enum status st = lower_condition(l, p, before.block);
  if (!st)
    st = lower_region(l, p, body, after.block, 0, NULL);
  if (!st)
    yield_parts(l, body->root, p->carried);
  l->b = outer;
  if (st) {
    mlirRegionDestroy(regions[0]);
    mlirRegionDestroy(regions[1]);
    return st;
  }
  set_results(l, p,
              ir_create(&l->b, &(struct ir_parts){.name = "scf.while",
                                                  .n_operands = p->n_types,
                                                  .operands = init,
                                                  .n_results = p->n_types,
                                                  .results = p->types,
                                                  .n_regions = 2,
                                                  .regions = regions}));
  return ST_OK;
}

enum status lower_while(struct lower *l, const struct hlo_instr *i) {
  struct loop p;
  if (!is_flat(&i->shape))
    return lower_refuse(l, i, "tuples in tuples are not possible");
  read_loop(l, i, true, &p);
  return p.counter.at >= 0 ? lower_for(l, &p) : lower_general_while(l, &p);
}

/* ---- conditional --------------------------------------------------------------------------------------- */

static enum status lower_branches(struct lower *l, const struct hlo_instr *i, MlirValue index, int k);

/* Lowers one region of an scf.if.  If is_rest is set and branch k is not the last, that is the choice between branch k
 * and those after it; otherwise it is branch k. */
static enum status lower_branch(struct lower *l, const struct hlo_instr *i, MlirValue index, int k, bool is_rest) {
  const struct hlo_computation *c = i->called[k];
  if (is_rest && k + 1 < i->n_called)
    return lower_branches(l, i, index, k);
  lower_forget(l, c);
  bind(l, c->params[0], i->operands[1 + k]);
  enum status st = lower_computation(l, c);
  if (!st)
    lower_set_parts(l, i, all_parts(l, c->root));
  return st;
}

/* Sets i's parts to the results of the scf.if that chooses between branch k and those after it. */
static enum status lower_branches(struct lower *l, const struct hlo_instr *i, MlirValue index, int k) {
  const int n = n_parts(&i->shape);
  struct ir_builder outer = l->b, inside[2];
  MlirRegion regions[] = {ir_region(&l->b, 0, NULL, &inside[0]), ir_region(&l->b, 0, NULL, &inside[1])};
  MlirType *types = arena_new_array(&l->arena, MlirType, (size_t)n);
  MlirValue *parts = arena_new_array(&l->arena, MlirValue, (size_t)n), is_this = index;
  enum status st = ST_OK;

  if (i->operands[0]->shape.dtype != DT_BOOL)
    is_this = ir_cmpi(&l->b, IR_INT_EQ, index, ir_int(&l->b, mlirValueGetType(index), k));
  for (int j = 0; j < 2 && !st; j++) {
    l->b = inside[j];
    st = lower_branch(l, i, index, k + j, j);
    if (!st)
      yield_parts(l, i, NULL);
  }
  l->b = outer;
  if (st) {
    mlirRegionDestroy(regions[0]);
    mlirRegionDestroy(regions[1]);
    return st;
  }
  for (int j = 0; j < n; j++)
    types[j] = part_type(l, &i->shape, j);
  MlirOperation op = ir_if(&l->b, is_this, n, types, regions);
  for (int j = 0; j < n; j++)
    parts[j] = mlirOperationGetResult(op, j);
  lower_set_parts(l, i, parts);
  return ST_OK;
}

enum status lower_conditional(struct lower *l, const struct hlo_instr *i) {
  if (!is_flat(&i->shape))
    return lower_refuse(l, i, "tuples in tuples are not possible");
  for (int k = 0; k < i->n_called; k++) /* emitted outside the branches, because only one of them runs */
    prepare(l, i->operands[1 + k]);
  if (i->n_called == 1)
    return lower_branch(l, i, (MlirValue){NULL}, 0, false);
  return lower_branches(l, i, scalar_of(l, i->operands[0]), 0);
}
