/* round_products: a product is rounded to its own type as it leaves PSUM.
 *
 *     %c = for … { for … {                                  %r = for … iter_args(%z = %empty_bf16) { for … {
 *       %sum = for k … { linalg.matmul } -> f32               %sum = for k … { linalg.matmul } -> f32
 *       insert_slice %sum into …                              %t = generic ins(%sum) outs(%sbuf) { truncf } -> bf16
 *     } } -> f32                                     ==>      insert_slice %t into …
 *     %r = for … { for … {                                  } } -> bf16
 *       generic ins(%c[…]) outs(…) { truncf }
 *     } } -> bf16
 *
 * The tensor engine sums in f32, and NumPy's product of two bf16 matrices is bf16.  So the tiler sees two operations, and
 * without this pass the sum goes to SBUF or HBM and back, in twice the bytes, to be rounded.  Every element is rounded
 * once, as before: the values do not change.
 *
 * The pass looks for loops that only round: all that read the product.  It narrows the tensor that the product's loops
 * carry, and puts the rounding after each accumulator.  Where the loops have another form it changes nothing; so a product
 * that something else reads, too, keeps its f32.  Linear in the operations.
 */
#include <assert.h>

#include "mlir-c/BuiltinAttributes.h"
#include "mlir-c/BuiltinTypes.h"

#include "base/array.h"
#include "base/memory.h"
#include "ir/build.h"
#include "ir/structured.h"
#include "passes/pass.h"
#include "passes/lib/price.h"

/* The parts of one rounding: one generic for the whole tiles and one for each remainder. */
struct rounding {
  struct pass_run *run;
  int64_t op_id;
  MlirOperation body; /* one of the generics */
  MlirType element;   /* of the result */
  MlirValue product;
  struct {
    MlirOperation *v; /* the outermost loop of each, in program order */
    int n, cap;
  } nests;
  bool is_kept_in_sbuf;
};

/* ---- finding them ------------------------------------------------------------------------------------------------ */

static int64_t id_of(MlirOperation op) {
  return ir_int_attr(op, "nkipy.op_id", -1);
}

/* A generic of one input that yields truncf of it. */
static bool is_rounding(MlirOperation op, void *user) {
  (void)user;
  struct structured s;
  if (!ir_is(op, "linalg.generic") || id_of(op) < 0 || !structured_read(op, &s) || !structured_is_elementwise(&s) ||
      s.n_inputs != 1 || s.n_inits != 1 || s.n_loops != 2)
    return false;
  for (int k = 0; k < 2; k++)
    if (!mlirAffineMapIsIdentity(s.maps[k]))
      return false;
  MlirOperation first = mlirBlockGetFirstOperation(ir_body(op)), yield = mlirOperationGetNextInBlock(first);
  return ir_is(first, "arith.truncf") &&
         mlirValueEqual(mlirOperationGetOperand(first, 0), mlirBlockGetArgument(ir_body(op), 0)) &&
         ir_is(yield, "linalg.yield") && mlirValueEqual(mlirOperationGetOperand(yield, 0), ir_result(first));
}

static MlirOperation outermost_loop(MlirOperation op) {
  MlirOperation loop = {NULL};
  for (op = mlirOperationGetParentOperation(op); ir_is(op, "scf.for"); op = mlirOperationGetParentOperation(op))
    loop = op;
  return loop;
}

/* The tensor that v is a slice of, or a copy of a slice. */
static MlirValue whole_of(MlirValue v) {
  for (MlirOperation def = ir_defining_op(v);
       !mlirOperationIsNull(def) &&
       (ir_is(def, "tensor.extract_slice") || ir_is(def, "bufferization.materialize_in_destination"));
       def = ir_defining_op(v))
    v = mlirOperationGetOperand(def, 0);
  return v;
}

static bool is_annotation(MlirOperation op) {
  return ir_is(op, "nkipy.layout") || ir_is(op, "nkipy.tile_op");
}

static bool is_computation(MlirOperation op, void *user) {
  (void)user;
  return ir_is_of(op, "linalg.") && !ir_is(op, "linalg.yield") && !ir_is(op, "linalg.index");
}

/* The loops compute one operation: not so those that fuse-row-tiles made. */
static bool is_alone(struct pass_run *run, MlirOperation nest) {
  return ir_collect(run->arena, nest, is_computation, NULL).n == 1;
}

/* Adds a generic, in a loop of its own; false if it reads another product, or in another form. */
static bool add_part(struct rounding *r, MlirOperation op) {
  MlirOperation nest = outermost_loop(op);
  MlirValue product = whole_of(mlirOperationGetOperand(op, 0));
  if (mlirOperationIsNull(nest) || mlirOperationGetNumResults(nest) != 1 || !is_alone(r->run, nest))
    return false;
  if (!r->nests.n) {
    r->body = op;
    r->product = product;
    r->element = mlirShapedTypeGetElementType(mlirValueGetType(ir_result(op)));
  }
  array_push(r->run->arena, &r->nests, nest);
  return mlirValueEqual(product, r->product);
}

/* The loops hand on one value, each to the next, and the first begins with nothing. */
static bool is_chain(const struct rounding *r) {
  MlirOperation first = ir_defining_op(mlirOperationGetOperand(r->nests.v[0], 3));
  if (mlirOperationIsNull(first) || !ir_is(first, "tensor.empty"))
    return false;
  for (int k = 1; k < r->nests.n; k++)
    if (!mlirValueEqual(mlirOperationGetOperand(r->nests.v[k], 3), ir_result(r->nests.v[k - 1])))
      return false;
  return true;
}

static bool is_in_nests(const struct rounding *r, MlirOperation op) {
  MlirOperation nest = outermost_loop(op);
  for (int k = 0; k < r->nests.n; k++)
    if (mlirOperationEqual(nest, r->nests.v[k]))
      return true;
  return false;
}

/* Besides annotations only the roundings read it. */
static bool is_read_by_these(const struct rounding *r) {
  for (MlirOpOperand u = mlirValueGetFirstUse(r->product); !mlirOpOperandIsNull(u); u = mlirOpOperandGetNextUse(u)) {
    MlirOperation op = mlirOpOperandGetOwner(u);
    if (!is_annotation(op) && !(ir_is(op, "tensor.extract_slice") && is_in_nests(r, op)))
      return false;
  }
  return true;
}

/* No fuse_op asks for these loops as they are; finds the memory of the result. */
static bool read_result(struct rounding *r) {
  MlirValue last = ir_result(r->nests.v[r->nests.n - 1]);
  for (MlirOpOperand u = mlirValueGetFirstUse(last); !mlirOpOperandIsNull(u); u = mlirOpOperandGetNextUse(u)) {
    MlirOperation op = mlirOpOperandGetOwner(u);
    if (ir_is(op, "nkipy.fuse_op"))
      return false;
    if (ir_is(op, "nkipy.layout"))
      r->is_kept_in_sbuf |= ir_int_attr(op, "mem_space", 0) == MEM_SBUF;
  }
  return true;
}

/* ---- the form of the product's loops ----------------------------------------------------------------------------- */

static MlirValue init_of(MlirOperation loop, MlirValue result) {
  return mlirOperationGetOperand(loop, 3 + mlirOpResultGetResultNumber(result));
}

static MlirValue yielded(MlirOperation loop, MlirValue result) {
  return mlirOperationGetOperand(mlirBlockGetTerminator(ir_body(loop)), mlirOpResultGetResultNumber(result));
}

/* The copy of nothing into PSUM with which an accumulator begins; null if v is no accumulator. */
static MlirOperation start_of_sum(MlirValue v) {
  MlirOperation def = ir_defining_op(v);
  for (; !mlirOperationIsNull(def) && ir_is(def, "scf.for"); def = ir_defining_op(v))
    v = init_of(def, v);
  if (mlirOperationIsNull(def) || !ir_is(def, "bufferization.materialize_in_destination"))
    return (MlirOperation){NULL};
  MlirOperation to = ir_defining_op(mlirOperationGetOperand(def, 1));
  return !mlirOperationIsNull(to) && ir_int_attr(to, "memory_space", 0) == MEM_PSUM ? def : (MlirOperation){NULL};
}

/* What reads a part of the carried tensor before it is written: only the start of a sum, which reads nothing. */
static bool is_only_carried(MlirValue v) {
  for (MlirOpOperand u = mlirValueGetFirstUse(v); !mlirOpOperandIsNull(u); u = mlirOpOperandGetNextUse(u)) {
    MlirOperation op = mlirOpOperandGetOwner(u);
    const intptr_t at = mlirOpOperandGetOperandNumber(u);
    const bool is_slice = ir_is(op, "tensor.extract_slice") && is_only_carried(ir_result(op));
    if (!is_slice && !(ir_is(op, "tensor.insert_slice") && at < 2) && !(ir_is(op, "scf.for") && at > 2) &&
        !(ir_is(op, "bufferization.materialize_in_destination") && at == 0) && !ir_is(op, "scf.yield"))
      return false;
  }
  return true;
}

static bool may_narrow(MlirValue v) {
  if (mlirValueIsABlockArgument(v))
    return ir_is(mlirBlockGetParentOperation(mlirBlockArgumentGetOwner(v)), "scf.for");
  MlirOperation def = ir_defining_op(v);
  if (ir_is(def, "tensor.empty"))
    return true;
  if (ir_is(def, "tensor.extract_slice"))
    return may_narrow(mlirOperationGetOperand(def, 0));
  if (ir_is(def, "tensor.insert_slice"))
    return may_narrow(mlirOperationGetOperand(def, 0)) && may_narrow(mlirOperationGetOperand(def, 1));
  if (!ir_is(def, "scf.for"))
    return false;
  if (!mlirOperationIsNull(start_of_sum(v)))
    return true;
  return is_only_carried(mlirBlockGetArgument(ir_body(def), 1 + mlirOpResultGetResultNumber(v))) &&
         may_narrow(init_of(def, v)) && may_narrow(yielded(def, v));
}

/* ---- narrowing --------------------------------------------------------------------------------------------------- */

static MlirType narrowed(const struct rounding *r, MlirType t) {
  int64_t dims[STRUCTURED_LOOPS_MAX];
  const intptr_t rank = mlirShapedTypeGetRank(t);
  assert(rank <= STRUCTURED_LOOPS_MAX);
  for (intptr_t d = 0; d < rank; d++)
    dims[d] = mlirShapedTypeGetDimSize(t, d);
  return ir_tensor_of(r->element, (int)rank, dims);
}

static struct ir_builder before(const struct rounding *r, MlirOperation op) {
  return (struct ir_builder){.ctx = r->run->ir->ctx,
                             .block = mlirOperationGetBlock(op),
                             .loc = mlirOperationGetLocation(op),
                             .arena = r->run->arena,
                             .before = op};
}

static MlirValue narrow(const struct rounding *r, MlirValue v);

/* Rounds a finished sum: into a tile of its own if the result is in HBM, otherwise in its place. */
static MlirValue round_sum(const struct rounding *r, MlirValue sum) {
  MlirOperation start = start_of_sum(sum), loop = ir_defining_op(sum);
  MlirValue place = narrow(r, mlirOperationGetOperand(start, 0)), to = place;
  struct ir_builder b = before(r, mlirOperationGetNextInBlock(loop));

  b.loc = mlirOperationGetLocation(r->body);
  mlirValueReplaceAllUsesOfWith(ir_result(start), mlirOperationGetOperand(start, 1));
  mlirOperationDestroy(start);
  if (!r->is_kept_in_sbuf) {
    const MlirNamedAttribute attrs[] = {ir_named(&b, "memory_space", ir_i32_attr(&b, MEM_SBUF)),
                                        ir_segments(&b, 3, (int32_t[]){0, 0, 0})};
    to = ir_op1_with(&b, "bufferization.alloc_tensor", mlirValueGetType(place), 0, NULL, 2, attrs);
  }
  MlirOperation op = mlirOperationClone(r->body);
  mlirOperationSetOperand(op, 0, sum);
  mlirOperationSetOperand(op, 1, to);
  mlirValueSetType(ir_result(op), mlirValueGetType(to));
  mlirBlockInsertOwnedOperationBefore(b.block, b.before, op);
  return ir_result(op);
}

/* Gives v, and what it is made from, the result's type.  Returns the value to use instead of v. */
static MlirValue narrow(const struct rounding *r, MlirValue v) {
  if (mlirTypeEqual(mlirShapedTypeGetElementType(mlirValueGetType(v)), r->element))
    return v;
  MlirOperation def = ir_defining_op(v);
  assert(!mlirOperationIsNull(def)); /* what a loop carries is narrowed before its body */
  if (ir_is(def, "tensor.empty")) {
    struct ir_builder b = before(r, def);
    return ir_empty_of(&b, narrowed(r, mlirValueGetType(v)));
  }
  if (ir_is(def, "scf.for") && !mlirOperationIsNull(start_of_sum(v)))
    return round_sum(r, v);
  const MlirType t = narrowed(r, mlirValueGetType(v));
  if (ir_is(def, "scf.for")) {
    const intptr_t k = mlirOpResultGetResultNumber(v);
    mlirOperationSetOperand(def, 3 + k, narrow(r, mlirOperationGetOperand(def, 3 + k)));
    mlirValueSetType(mlirBlockGetArgument(ir_body(def), 1 + k), t);
    MlirOperation yield = mlirBlockGetTerminator(ir_body(def));
    mlirOperationSetOperand(yield, k, narrow(r, mlirOperationGetOperand(yield, k)));
  } else {
    const intptr_t n = ir_is(def, "tensor.insert_slice") ? 2 : 1;
    for (intptr_t k = n - 1; k >= 0; k--)
      mlirOperationSetOperand(def, k, narrow(r, mlirOperationGetOperand(def, k)));
  }
  mlirValueSetType(v, t);
  return v;
}

static void erase_annotations(MlirValue v) {
  for (MlirOpOperand u = mlirValueGetFirstUse(v), next; !mlirOpOperandIsNull(u); u = next) {
    next = mlirOpOperandGetNextUse(u);
    if (is_annotation(mlirOpOperandGetOwner(u)))
      mlirOperationDestroy(mlirOpOperandGetOwner(u));
  }
}

static void merge(struct rounding *r) {
  struct remark *m =
      pass_remark(r->run, r->body, RULE_ROUND_PRODUCT, "the product leaves PSUM in the type of the result");
  const struct price_shape s = price_shape_of(r->product);
  price_chosen(m, 0);
  price_instead(m, "a product in f32", price_rows_ns(r->run->target, SIM_COST_VECTOR_COPY, s.rows, s.columns),
                "it would take twice the memory, and be read again to be rounded");
  erase_annotations(r->product);
  MlirValue result = narrow(r, r->product);
  mlirValueReplaceAllUsesOfWith(ir_result(r->nests.v[r->nests.n - 1]), result);
  while (r->nests.n--)
    mlirOperationDestroy(r->nests.v[r->nests.n]);
}

/* ---- the pass ---------------------------------------------------------------------------------------------------- */

/* Parts of one operation have one number, and follow each other. */
static enum status run_pass(struct pass_run *run) {
  struct ir_ops ops = ir_collect(run->arena, run->module, is_rounding, NULL);

  for (int k = 0, end; k < ops.n; k = end) {
    struct rounding r = {.run = run, .op_id = id_of(ops.v[k])};
    bool ok = true;
    for (end = k; end < ops.n && id_of(ops.v[end]) == r.op_id; end++)
      ok = ok && add_part(&r, ops.v[end]);
    ok = ok && !mlirValueIsABlockArgument(r.product) && ir_is(ir_defining_op(r.product), "scf.for");
    if (ok && is_chain(&r) && is_read_by_these(&r) && read_result(&r) && may_narrow(r.product)) {
      pass_step(run, ops.v[k], "round-in-tiles");
      merge(&r);
    }
  }
  return ST_OK;
}

const struct pass_def round_products = {
    .name = "round-products",
    .run = run_pass,
};
