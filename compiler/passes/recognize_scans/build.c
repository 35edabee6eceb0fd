/* build: makes the values that were planned.  See unrolled.h. */
#include <assert.h>
#include <string.h>

#include "mlir-c/BuiltinAttributes.h"
#include "mlir-c/BuiltinTypes.h"

#include "passes/lib/edit.h"
#include "passes/lib/scan.h"
#include "passes/recognize_scans/unrolled.h"

MlirLocation unrolled_location(struct unrolled *u, int n, MlirValue const *v) {
  MlirLocation *at = arena_new_array(u->run->arena, MlirLocation, (size_t)n);
  int k = 0;

  for (int t = 0; t < n; t++) {
    MlirOperation def = ir_defining_op(v[t]);
    if (!mlirOperationIsNull(def))
      at[k++] = mlirOperationGetLocation(def);
  }
  return k ? mlirLocationFusedGet(u->run->ir->ctx, k, at, mlirAttributeGetNull())
           : mlirLocationUnknownGet(u->run->ir->ctx);
}

static struct ir_builder builder_of(struct unrolled *u, const struct pack *p) {
  struct ir_builder b = edit_before(u->run, p->before);
  b.loc = unrolled_location(u, p->n, p->v);
  return b;
}

/* Turns v so that its dimension k is the one that was at[k]. */
static MlirValue turn(struct ir_builder *b, MlirValue v, int rank, const int64_t *at) {
  for (int k = 0; k < rank; k++)
    if (at[k] != k)
      return ir_result(ir_transpose(b, v, rank, at));
  return v;
}

/* The extents of a packed value, with those of p->order and then n. */
static void packed_dims(const struct pack *p, int64_t n, int64_t *dims) {
  for (int k = 0; k < p->rank; k++)
    dims[k] = p->dims[p->order[k]];
  dims[p->rank] = n;
}

/* ---- the same value, and slices ------------------------------------------------------------------------------------- */

static MlirValue build_same(struct unrolled *u, struct pack *p) {
  struct ir_builder b = builder_of(u, p);
  return edit_reshape(&b, p->v[0], p->rank, p->dims);
}

static MlirValue build_slices(struct unrolled *u, struct pack *p) {
  struct ir_builder b = builder_of(u, p);
  MlirOperation slice = ir_defining_op(p->v[0]);
  MlirValue source = mlirOperationGetOperand(slice, 0);
  int64_t from[STRUCTURED_LOOPS_MAX], sizes[STRUCTURED_LOOPS_MAX], strides[STRUCTURED_LOOPS_MAX],
      dims[STRUCTURED_LOOPS_MAX], all[STRUCTURED_LOOPS_MAX], at[STRUCTURED_LOOPS_MAX];
  const int rank = ir_shape(source, STRUCTURED_LOOPS_MAX, all);
  int n = 0, steps = 0;
  bool is_whole = true;

  for (int d = 0; d < rank; d++) {
    from[d] = mlirDenseI64ArrayGetElement(ir_attr(slice, "static_offsets"), d);
    sizes[d] = d == p->axis ? p->n : mlirDenseI64ArrayGetElement(ir_attr(slice, "static_sizes"), d);
    strides[d] = d == p->axis ? p->stride : mlirDenseI64ArrayGetElement(ir_attr(slice, "static_strides"), d);
    is_whole &= sizes[d] == all[d];
    if (d == p->axis)
      steps = n;
    if (d == p->axis || sizes[d] > 1)
      dims[n++] = sizes[d];
  }
  assert(n == p->rank + 1);
  const struct ir_slice cut = {.rank = rank, .offsets = from, .sizes = sizes, .strides = strides};
  if (!is_whole)
    source = ir_extract_slice(&b, source, &cut, ir_tensor_of(ir_value_element(source), rank, sizes));
  source = edit_reshape(&b, source, n, dims);
  for (int k = 0; k < p->rank; k++)
    at[k] = p->order[k] < steps ? p->order[k] : p->order[k] + 1;
  at[p->rank] = steps;
  return turn(&b, source, n, at);
}

/* ---- operations ----------------------------------------------------------------------------------------------------- */

/* The map of a pack whose dimensions are these loops; `steps` is the loop of the steps. */
static MlirAffineMap map_of(struct ir_builder *b, const struct pack *p, int n_loops, const int *loop, int steps) {
  int64_t at[STRUCTURED_LOOPS_MAX];
  for (int k = 0; k < p->rank; k++)
    at[k] = loop[p->order[k]];
  at[p->rank] = steps;
  return ir_map(b, n_loops, p->rank + (p->kind != PACK_SAME), at);
}

/* Numbers the loops: the result's first dimension first, the steps last. */
static void number_loops(const struct pack *p, int *number) {
  const struct form *f = &p->form;
  const int first = p->rank ? f->loop[f->n_inputs][p->order[0]] : -1;
  int n = 0;

  if (first >= 0)
    number[first] = n++;
  for (int l = 0; l < f->n_loops; l++)
    if (l != first)
      number[l] = n++;
}

/* Where the operation's result is written to. */
static MlirValue destination(struct ir_builder *b, const struct pack *p) {
  int64_t dims[STRUCTURED_LOOPS_MAX];
  packed_dims(p, p->n, dims);
  MlirValue to = ir_empty_of(b, ir_tensor_of(ir_value_element(p->v[0]), p->rank + 1, dims));
  return p->form.reads_init ? ir_fill(b, p->fill, to) : to;
}

/* A generic with the body of op. */
static MlirValue create(struct ir_builder *b, MlirOperation op, const struct pack *p, MlirValue const *operands,
                        MlirAffineMap const *maps, const bool *reduction) {
  const int n = p->form.n_inputs + 1, loops = p->form.n_loops + 1;
  MlirAttribute of_maps[STRUCTURED_OPERANDS_MAX], iterators[STRUCTURED_LOOPS_MAX];
  MlirType result = mlirValueGetType(operands[n - 1]);

  for (int k = 0; k < n; k++)
    of_maps[k] = mlirAffineMapAttrGet(maps[k]);
  for (int l = 0; l < loops; l++)
    iterators[l] = ir_iterator(b->ctx, reduction[l]);
  MlirNamedAttribute attrs[] = {
      ir_named(b, "indexing_maps", mlirArrayAttrGet(b->ctx, n, of_maps)),
      ir_named(b, "iterator_types", mlirArrayAttrGet(b->ctx, loops, iterators)),
      ir_segments(b, 2, (int32_t[]){n - 1, 1}),
  };
  MlirOperation copy = mlirOperationClone(op);
  MlirRegion region = mlirRegionCreate();
  mlirRegionTakeBody(region, mlirOperationGetRegion(copy, 0));
  mlirOperationDestroy(copy);
  return ir_result(ir_create(b, &(struct ir_parts){.name = "linalg.generic",
                                                   .n_operands = n,
                                                   .operands = operands,
                                                   .n_results = 1,
                                                   .results = &result,
                                                   .n_attrs = 3,
                                                   .attrs = attrs,
                                                   .n_regions = 1,
                                                   .regions = &region}));
}

static MlirValue build_operations(struct unrolled *u, struct pack *p) {
  const struct form *f = &p->form;
  const int n = f->n_inputs, loops = f->n_loops + 1;
  int number[STRUCTURED_LOOPS_MAX], loop[STRUCTURED_LOOPS_MAX];
  bool reduction[STRUCTURED_LOOPS_MAX] = {false};
  MlirValue operands[STRUCTURED_OPERANDS_MAX];
  MlirAffineMap maps[STRUCTURED_OPERANDS_MAX];
  MlirOperation op = ir_defining_op(p->v[0]);

  for (int k = 0; k < n; k++)
    operands[k] = unrolled_build(u, p->in[k]);
  struct ir_builder b = builder_of(u, p);
  number_loops(p, number);
  for (int l = 0; l < f->n_loops; l++)
    reduction[number[l]] = f->reduction[l];
  bool is_plain = !ir_is(op, "linalg.generic") && !f->reads_init;
  for (int k = 0; k <= n; k++) {
    for (int d = 0; d < f->rank[k]; d++)
      loop[d] = number[f->loop[k][d]];
    maps[k] = map_of(&b, k < n ? p->in[k] : p, loops, loop, loops - 1);
    is_plain &= mlirAffineMapIsIdentity(maps[k]);
  }
  operands[n] = destination(&b, p);
  if (is_plain)
    return ir_result(
        ir_linalg_named(&b, mlirIdentifierStr(mlirOperationGetName(op)).data, n, operands, operands[n], 0, NULL));
  return create(&b, op, p, operands, maps, reduction);
}

/* ---- steps ---------------------------------------------------------------------------------------------------------- */

/* The links in order, each with the next argument or with its scalar. */
static MlirValue write_step(struct ir_builder *b, MlirValue const *args, MlirValue state, void *user) {
  const struct steps *s = user;
  for (int k = 0; k < s->n_links; k++) {
    const struct link *l = &s->links[k][1];
    MlirValue other = s->other[k] ? *args++ : l->scalar;
    state = l->is_left ? ir_binary(b, l->name, state, other) : ir_binary(b, l->name, other, state);
  }
  return state;
}

/* The state before the first step, in the order of p; a state of fewer than two dimensions as a column. */
static MlirValue first_state(struct ir_builder *b, const struct pack *p) {
  const struct steps *s = p->steps;
  MlirType element = ir_value_element(p->v[0]);
  int64_t dims[STRUCTURED_LOOPS_MAX], at[STRUCTURED_LOOPS_MAX];
  int rank = p->rank;

  packed_dims(p, 1, dims);
  MlirValue first = s->from ? p->v[0] : s->first;
  if (!mlirValueIsNull(first)) {
    for (int k = 0; k < rank; k++)
      at[k] = p->order[k];
    first = turn(b, edit_reshape(b, first, rank, p->dims), rank, at);
  }
  if (!rank)
    dims[rank++] = 1;
  if (rank == 1)
    dims[rank++] = 1;
  return mlirValueIsNull(first) ? ir_fill(b, s->first_scalar, ir_empty_of(b, ir_tensor_of(element, rank, dims)))
                                : edit_reshape(b, first, rank, dims);
}

/* `first`, and then n - 1 of the states. */
static MlirValue with_first(struct ir_builder *b, const struct pack *p, MlirValue states, MlirValue first) {
  int64_t dims[STRUCTURED_LOOPS_MAX], from[STRUCTURED_LOOPS_MAX] = {0}, sizes[STRUCTURED_LOOPS_MAX];
  const int rank = p->rank + 1;

  packed_dims(p, 1, sizes);
  packed_dims(p, p->n, dims);
  MlirValue all = ir_empty_of(b, ir_tensor_of(ir_value_element(states), rank, dims));
  all = ir_insert_slice(b, edit_reshape(b, first, rank, sizes), all,
                        &(struct ir_slice){.rank = rank, .offsets = from, .sizes = sizes});
  from[p->rank] = 1;
  sizes[p->rank] = p->n - 1;
  return ir_insert_slice(b, states, all, &(struct ir_slice){.rank = rank, .offsets = from, .sizes = sizes});
}

/* The n states from `begin` on. */
static MlirValue some_states(struct ir_builder *b, const struct pack *p, int64_t begin, int64_t n) {
  int64_t from[STRUCTURED_LOOPS_MAX] = {0}, sizes[STRUCTURED_LOOPS_MAX];

  packed_dims(p, n, sizes);
  from[p->rank] = begin;
  return n == p->n
             ? p->made
             : ir_extract_slice(b, p->made, &(struct ir_slice){.rank = p->rank + 1, .offsets = from, .sizes = sizes},
                                ir_tensor_of(ir_value_element(p->made), p->rank + 1, sizes));
}

static MlirValue build_steps(struct unrolled *u, struct pack *p) {
  struct steps *s = p->steps;
  const int rank = p->rank ? p->rank : 1; /* of the state in the scan */
  int64_t at[STRUCTURED_LOOPS_MAX], dims[STRUCTURED_LOOPS_MAX];
  MlirValue inputs[2];
  MlirAffineMap maps[2];
  int n = 0, place[STRUCTURED_LOOPS_MAX] = {0};

  for (int k = 0; k < s->n_links; k++)
    if (s->other[k])
      inputs[n++] = unrolled_build(u, s->other[k]);
  struct ir_builder b = builder_of(u, p);
  for (int k = 0; k < p->rank; k++)
    place[p->order[k]] = k;
  n = 0;
  for (int k = 0; k < s->n_links; k++) {
    const struct pack *o = s->other[k];
    if (!o)
      continue;
    for (int d = 0; d < o->rank; d++)
      at[d] = place[s->links[k][1].loop[o->order[d]]];
    at[o->rank] = rank;
    maps[n++] = ir_map(&b, rank + 1, o->rank + (o->kind != PACK_SAME), at);
  }
  MlirValue first = first_state(&b, p);
  MlirOperation scan = scan_create(&b, &(struct scan_parts){.n_inputs = n,
                                                            .inputs = inputs,
                                                            .maps = maps,
                                                            .first = first,
                                                            .along = p->n - s->from,
                                                            .body = write_step,
                                                            .user = s});
  p->last = mlirOperationGetResult(scan, 1);
  packed_dims(p, p->n - s->from, dims);
  MlirValue states = edit_reshape(&b, ir_result(scan), p->rank + 1, dims);
  return s->from ? with_first(&b, p, states, first) : states;
}

static MlirValue build_part(struct unrolled *u, struct pack *p) {
  unrolled_build(u, p->whole);
  struct ir_builder b = builder_of(u, p);
  if (p->begin >= 0)
    return some_states(&b, p->whole, p->begin, p->n);
  return with_first(&b, p, some_states(&b, p->whole, 0, p->n - 1), first_state(&b, p->whole));
}

/* ---- all of them ---------------------------------------------------------------------------------------------------- */

MlirValue unrolled_build(struct unrolled *u, struct pack *p) {
  if (!mlirValueIsNull(p->made))
    return p->made;
  assert(p->kind != PACK_REFUSED);
  p->made = p->kind == PACK_SAME     ? build_same(u, p)
            : p->kind == PACK_SLICES ? build_slices(u, p)
            : p->kind == PACK_STEPS  ? build_steps(u, p)
            : p->kind == PACK_PART   ? build_part(u, p)
                                     : build_operations(u, p);
  return p->made;
}

MlirValue unrolled_element(struct ir_builder *b, struct pack *p, int at) {
  int64_t dims[STRUCTURED_LOOPS_MAX], back[STRUCTURED_LOOPS_MAX];
  MlirValue v = at == p->n - 1 ? p->last : some_states(b, p, at, 1);

  packed_dims(p, 1, dims);
  for (int k = 0; k < p->rank; k++)
    back[p->order[k]] = k;
  v = turn(b, edit_reshape(b, v, p->rank, dims), p->rank, back);
  return edit_reshape(b, v, ir_shape(p->v[at], STRUCTURED_LOOPS_MAX, dims), dims);
}
