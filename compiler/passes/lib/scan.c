/* scan: see scan.h. */
#include "passes/lib/scan.h"

#include <assert.h>

#include "mlir-c/BuiltinAttributes.h"
#include "mlir-c/BuiltinTypes.h"

/* ---- reading ---------------------------------------------------------------------------------------------------- */

static bool has_loop(MlirAffineMap map, int loop) {
  for (int r = 0; r < mlirAffineMapGetNumResults(map); r++)
    if (structured_map_loop(map, r) == loop)
      return true;
  return false;
}

/* Sets the loop: the last one, which alone is a reduction and which the result before lacks. */
static bool read_loops(struct scan *sc) {
  const struct structured *s = &sc->s;

  sc->loop = s->n_loops - 1;
  if (sc->loop < 0 || !structured_has_simple_maps(s))
    return false;
  for (int l = 0; l < s->n_loops; l++)
    if (s->reduction[l] != (l == sc->loop) || !has_loop(s->maps[s->n_inputs], l) ||
        has_loop(s->maps[s->n_inputs + 1], l) != (l != sc->loop))
      return false;
  return true;
}

/* Sets first and last: the operations between the result before and the new one. */
static bool read_body(MlirOperation op, struct scan *sc) {
  MlirBlock body = ir_body(op);
  MlirOperation yield = mlirBlockGetTerminator(body);
  MlirValue next = mlirOperationGetOperand(yield, 0);

  sc->last = ir_defining_op(next);
  sc->first = ir_only_user(mlirBlockGetArgument(body, sc->s.n_inputs + 1));
  if (!mlirValueEqual(next, mlirOperationGetOperand(yield, 1)) || mlirOperationIsNull(sc->last) ||
      mlirOperationIsNull(sc->first) || ir_is_used(mlirBlockGetArgument(body, sc->s.n_inputs)))
    return false;
  if (mlirOperationGetNumOperands(sc->first) != 2 || mlirOperationGetNumOperands(sc->last) != 2)
    return false;
  return mlirOperationEqual(sc->first, sc->last) ||
         mlirOperationEqual(ir_only_user(mlirOperationGetResult(sc->first, 0)), sc->last);
}

bool scan_read(MlirOperation op, struct scan *out) {
  struct scan sc = {.loop = -1};

  if (!ir_is(op, "linalg.generic") || !structured_read(op, &sc.s) || sc.s.kind != SK_REDUCTION || sc.s.n_inits != 2 ||
      !sc.s.n_inputs || !read_loops(&sc) || !read_body(op, &sc))
    return false;
  *out = sc;
  return true;
}

/* ---- making ----------------------------------------------------------------------------------------------------- */

/* The loops of the state: a matrix of one column is a state with one dimension. */
static int state_rank(MlirValue first, int64_t dims[STRUCTURED_LOOPS_MAX]) {
  const int rank = ir_shape(first, STRUCTURED_LOOPS_MAX, dims);
  assert(rank >= 1 && rank < STRUCTURED_LOOPS_MAX);
  if (rank == 2 && dims[1] == 1)
    return 1;
  return rank;
}

MlirOperation scan_create(struct ir_builder *b, const struct scan_parts *parts) {
  int64_t dims[STRUCTURED_LOOPS_MAX], at[STRUCTURED_LOOPS_MAX];
  const int rank = state_rank(parts->first, dims), n = parts->n_inputs, loops = rank + 1;
  MlirType element = ir_value_element(parts->first), scalars[STRUCTURED_OPERANDS_MAX], results[2];
  MlirValue operands[STRUCTURED_OPERANDS_MAX], args[STRUCTURED_OPERANDS_MAX];
  MlirAttribute maps[STRUCTURED_OPERANDS_MAX], iterators[STRUCTURED_LOOPS_MAX];
  struct ir_builder body;

  assert(n >= 1 && n + 2 <= STRUCTURED_OPERANDS_MAX);
  for (int k = 0; k < n; k++) {
    operands[k] = parts->inputs[k];
    scalars[k] = ir_value_element(operands[k]);
    maps[k] = mlirAffineMapAttrGet(parts->maps[k]);
  }
  scalars[n] = scalars[n + 1] = element;
  const int of_state = ir_shape(parts->first, STRUCTURED_LOOPS_MAX, dims);
  dims[rank] = parts->along;
  operands[n] = ir_empty_of(b, ir_tensor_of(element, loops, dims));
  operands[n + 1] = parts->first;
  for (int k = 0; k < of_state; k++)
    at[k] = k < rank ? k : IR_CONST(0);
  maps[n] = mlirAffineMapAttrGet(ir_identity_map(b, loops));
  maps[n + 1] = mlirAffineMapAttrGet(ir_map(b, loops, of_state, at));
  for (int k = 0; k < 2; k++)
    results[k] = mlirValueGetType(operands[n + k]);
  for (int k = 0; k < loops; k++)
    iterators[k] = ir_iterator(b->ctx, k == rank);

  MlirRegion region = ir_region(b, n + 2, scalars, &body);
  for (int k = 0; k < n; k++)
    args[k] = mlirBlockGetArgument(body.block, k);
  MlirValue next = parts->body(&body, args, mlirBlockGetArgument(body.block, n + 1), parts->user);
  ir_op0(&body, "linalg.yield", 2, (MlirValue[]){next, next});
  MlirNamedAttribute attrs[] = {
      ir_named(b, "indexing_maps", mlirArrayAttrGet(b->ctx, n + 2, maps)),
      ir_named(b, "iterator_types", mlirArrayAttrGet(b->ctx, loops, iterators)),
      ir_segments(b, 2, (int32_t[]){n, 2}),
  };
  return ir_create(b, &(struct ir_parts){.name = "linalg.generic",
                                         .n_operands = n + 2,
                                         .operands = operands,
                                         .n_results = 2,
                                         .results = results,
                                         .n_attrs = 3,
                                         .attrs = attrs,
                                         .n_regions = 1,
                                         .regions = &region});
}

static MlirValue combine_with(struct ir_builder *b, MlirValue const *args, MlirValue before, void *user) {
  return ir_binary(b, user, before, args[0]);
}

MlirValue scan_build(struct ir_builder *b, MlirValue x, const char *combine, double initial) {
  enum { LOOPS = 2 };
  int64_t dims[LOOPS];
  const int rank = ir_shape(x, LOOPS, dims);
  MlirType element = ir_value_element(x);
  MlirAffineMap map = ir_identity_map(b, LOOPS);

  assert(rank == LOOPS);
  (void)rank;
  MlirValue column = ir_empty_of(b, ir_tensor_of(element, LOOPS, (int64_t[]){dims[0], 1}));
  MlirValue first = ir_fill(b, ir_float(b, element, initial), column);
  return ir_result(scan_create(b, &(struct scan_parts){.n_inputs = 1,
                                                       .inputs = &x,
                                                       .maps = &map,
                                                       .first = first,
                                                       .along = dims[1],
                                                       .body = combine_with,
                                                       .user = (void *)combine}));
}
