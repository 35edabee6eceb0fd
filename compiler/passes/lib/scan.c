/* scan: see scan.h. */
#include "passes/lib/scan.h"

#include <assert.h>

#include "mlir-c/BuiltinAttributes.h"
#include "mlir-c/BuiltinTypes.h"

/* ---- reading ---------------------------------------------------------------------------------------------------- */

/* The only user of v; null if there is none, or several. */
static MlirOperation only_user(MlirValue v) {
  MlirOpOperand u = mlirValueGetFirstUse(v);
  if (mlirOpOperandIsNull(u) || !mlirOpOperandIsNull(mlirOpOperandGetNextUse(u)))
    return (MlirOperation){NULL};
  return mlirOpOperandGetOwner(u);
}

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
  sc->first = only_user(mlirBlockGetArgument(body, sc->s.n_inputs + 1));
  if (!mlirValueEqual(next, mlirOperationGetOperand(yield, 1)) || mlirOperationIsNull(sc->last) ||
      mlirOperationIsNull(sc->first) || ir_is_used(mlirBlockGetArgument(body, sc->s.n_inputs)))
    return false;
  if (mlirOperationGetNumOperands(sc->first) != 2 || mlirOperationGetNumOperands(sc->last) != 2)
    return false;
  return mlirOperationEqual(sc->first, sc->last) ||
         mlirOperationEqual(only_user(mlirOperationGetResult(sc->first, 0)), sc->last);
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

MlirValue scan_build(struct ir_builder *b, MlirValue x, const char *combine, double initial) {
  enum { LOOPS = 2, OPERANDS = 3 };
  int64_t dims[LOOPS];
  const int rank = ir_shape(x, LOOPS, dims);
  MlirType element = ir_value_element(x);
  struct ir_builder body;

  assert(rank == LOOPS);
  (void)rank;
  MlirValue column = ir_empty_of(b, ir_tensor_of(element, LOOPS, (int64_t[]){dims[0], 1}));
  MlirValue operands[OPERANDS] = {x, ir_empty_of(b, mlirValueGetType(x)),
                                  ir_fill(b, ir_float(b, element, initial), column)};
  MlirType scalars[OPERANDS] = {element, element, element}, results[2];
  for (int k = 0; k < 2; k++)
    results[k] = mlirValueGetType(operands[1 + k]);
  MlirRegion region = ir_region(b, OPERANDS, scalars, &body);
  MlirValue next = ir_binary(&body, combine, mlirBlockGetArgument(body.block, 2), mlirBlockGetArgument(body.block, 0));
  ir_op0(&body, "linalg.yield", 2, (MlirValue[]){next, next});

  MlirAttribute maps[OPERANDS], iterators[LOOPS] = {ir_iterator(b->ctx, false), ir_iterator(b->ctx, true)};
  maps[0] = maps[1] = mlirAffineMapAttrGet(ir_identity_map(b, LOOPS));
  maps[2] = mlirAffineMapAttrGet(ir_map(b, LOOPS, LOOPS, (int64_t[]){0, IR_CONST(0)}));
  MlirNamedAttribute attrs[] = {
      ir_named(b, "indexing_maps", mlirArrayAttrGet(b->ctx, OPERANDS, maps)),
      ir_named(b, "iterator_types", mlirArrayAttrGet(b->ctx, LOOPS, iterators)),
      ir_segments(b, 2, (int32_t[]){1, 2}),
  };
  MlirOperation op = ir_create(b, &(struct ir_parts){.name = "linalg.generic",
                                                     .n_operands = OPERANDS,
                                                     .operands = operands,
                                                     .n_results = 2,
                                                     .results = results,
                                                     .n_attrs = 3,
                                                     .attrs = attrs,
                                                     .n_regions = 1,
                                                     .regions = &region});
  return mlirOperationGetResult(op, 0);
}
