/* apply_and_strip_transforms: runs the transform script of knob-driven-tiling and removes it.
 *
 * The pass interprets @__transform_main on the module, if there is one.  Then it erases all transform operations and
 * the attribute that announces them.
 *
 * A split operation leaves its parts as slices around their loops.  The pass moves these slices into the loops.  The
 * result is one loop nest over the whole tiles and, after it, one over the rest, both on the whole value:
 *
 *     %s = extract_slice %init[128, 0] [2, 64]
 *     %r = scf.for %i = 0 to 2 step 2 iter_args(%a = %s)            %r = scf.for %i = 128 to 130 step 2
 *       extract_slice %x2[%i, 0], … %a[%i, 0]                ==>          iter_args(%a = %init)
 *     %o = insert_slice %r into %init[128, 0]                           extract_slice %x[%i, 0], … %a[%i, 0]
 *
 * Fusion and the passes on buffers expect this form: every offset is a multiple of the tile, and no view of a part is
 * between a loop and its buffer.  slices.c does this; it changes nothing where the pattern is incomplete.
 *
 * A product that continues the sum of another one has the same loops.  sums.c makes one nest of both, in which one accumulator goes
 * through the steps over K of the one and then of the other.
 */
#include <string.h>

#include "mlir-c/BuiltinAttributes.h"
#include "mlir-c/Dialect/Transform/Interpreter.h"

#include "base/array.h"
#include "base/index.h"
#include "ir/build.h"
#include "ir/structured.h"
#include "passes/pass.h"
#include "passes/apply_and_strip_transforms/slices.h"
#include "passes/apply_and_strip_transforms/sums.h"

static bool is_transform(MlirOperation op, void *user) {
  (void)user;
  MlirStringRef n = mlirIdentifierStr(mlirOperationGetName(op));
  return n.length > 10 && !memcmp(n.data, "transform.", 10);
}

static bool is_entry(MlirOperation op, void *user) {
  (void)user;
  if (!ir_is(op, "transform.named_sequence"))
    return false;
  MlirAttribute name = ir_attr(op, "sym_name");
  return mlirStringRefEqual(mlirStringAttrGetValue(name), ir_str("__transform_main"));
}

/* ---- finding what the script works on ---------------------------------------------------------------- */

/* Each step of the script looks for one operation by its kind and number:
 *
 *     %h = transform.structured.match ops{["linalg.add"]} attributes {nkipy.op_id = 7 : i64} in %arg0
 *
 * and walks the whole function for that.  So all these steps are replaced by one search for all operations of these
 * kinds, and the result is split into one handle for each operation:
 *
 *     %all = transform.structured.match ops{["linalg.add", "linalg.exp"]} in %arg0
 *     %h:5000 = transform.split_handle %all
 *
 * The handles stay valid until their steps run, because no step changes the operations of another step.  Operations of
 * these kinds are not nested in one another, so every walk visits them in the same order. */
struct match {
  MlirOperation op;
  MlirIdentifier kind;
  int64_t number;
};

struct search {
  struct pass_run *run;
  MlirBlock body; /* body of the script */
  struct {
    struct match *v;
    int n, cap;
  } matches;
  struct {
    MlirAttribute *v; /* names as string attributes */
    int n, cap;
  } kinds;
  struct ir_ops ops; /* operations of the payload of these kinds */
  struct index by_number;
};

static uint32_t hash_number(int64_t number) {
  return (uint32_t)hash_mix(0, (uint64_t)number);
}

/* Reads a step.  Returns false if it has another form. */
static bool read_match(const struct search *s, MlirOperation op, struct match *m, MlirAttribute *kind) {
  MlirAttribute kinds = ir_attr(op, "ops"), attrs = ir_attr(op, "op_attrs");
  if (!mlirBlockEqual(mlirOperationGetBlock(op), s->body) ||
      !mlirValueEqual(mlirOperationGetOperand(op, 0), mlirBlockGetArgument(s->body, 0)) || mlirAttributeIsNull(kinds) ||
      mlirArrayAttrGetNumElements(kinds) != 1 || mlirAttributeIsNull(attrs) ||
      mlirDictionaryAttrGetNumElements(attrs) != 1)
    return false;
  MlirAttribute number = mlirDictionaryAttrGetElementByName(attrs, ir_str("nkipy.op_id"));
  if (mlirAttributeIsNull(number))
    return false;
  *kind = mlirArrayAttrGetElement(kinds, 0);
  *m = (struct match){op, mlirIdentifierGet(s->run->ir->ctx, mlirStringAttrGetValue(*kind)),
                      mlirIntegerAttrGetValueInt(number)};
  return true;
}

static void add_kind(struct search *s, MlirAttribute kind) {
  for (int k = 0; k < s->kinds.n; k++)
    if (mlirAttributeEqual(s->kinds.v[k], kind))
      return;
  array_push(s->run->arena, &s->kinds, kind);
}

static void read_matches(struct search *s, MlirOperation entry) {
  struct ir_ops steps = ir_collect_named(s->run->arena, entry, "transform.structured.match");
  for (int k = 0; k < steps.n; k++) {
    struct match m;
    MlirAttribute kind;
    if (!read_match(s, steps.v[k], &m, &kind))
      continue;
    array_push(s->run->arena, &s->matches, m);
    add_kind(s, kind);
  }
}

static bool is_of_kinds(MlirOperation op, void *user) {
  const struct search *s = user;
  MlirStringRef name = mlirIdentifierStr(mlirOperationGetName(op));
  for (int k = 0; k < s->kinds.n; k++)
    if (mlirStringRefEqual(mlirStringAttrGetValue(s->kinds.v[k]), name))
      return true;
  return false;
}

static int64_t number_of(MlirOperation op) {
  MlirAttribute number = ir_attr(op, "nkipy.op_id");
  return mlirAttributeIsNull(number) ? -1 : mlirIntegerAttrGetValueInt(number);
}

/* Returns the index in s->ops of the operation that m looks for, or -1 if there is none or more than one. */
static int find_op(const struct search *s, const struct match *m) {
  int found = -1;
  for (struct index_probe p = index_probe(&s->by_number, hash_number(m->number)); index_next(&p);) {
    MlirOperation op = s->ops.v[p.entry];
    if (number_of(op) != m->number || !mlirIdentifierEqual(mlirOperationGetName(op), m->kind))
      continue;
    if (found >= 0)
      return -1;
    found = p.entry;
  }
  return found;
}

/* Builds the search and the split at the beginning of the script.  Returns the split, which has one result per
 * operation. */
static MlirOperation build_search(struct search *s) {
  MlirContext ctx = s->run->ir->ctx;
  struct ir_builder b = {.ctx = ctx,
                         .block = s->body,
                         .loc = mlirOperationGetLocation(s->run->module),
                         .arena = s->run->arena,
                         .before = mlirBlockGetFirstOperation(s->body)};
  MlirType handle = mlirValueGetType(mlirBlockGetArgument(s->body, 0));
  MlirType *handles = arena_new_array(s->run->arena, MlirType, (size_t)s->ops.n);
  for (int k = 0; k < s->ops.n; k++)
    handles[k] = handle;
  const MlirValue root = mlirBlockGetArgument(s->body, 0);
  const MlirNamedAttribute kinds = ir_named(&b, "ops", mlirArrayAttrGet(ctx, s->kinds.n, s->kinds.v));
  const MlirValue all = ir_op1_with(&b, "transform.structured.match", handle, 1, &root, 1, &kinds);
  const struct ir_parts split = {
      .name = "transform.split_handle", .n_operands = 1, .operands = &all, .n_results = s->ops.n, .results = handles};
  return ir_create(&b, &split);
}

static void match_first(struct pass_run *run, MlirOperation entry, MlirOperation payload) {
  struct search s = {.run = run, .body = ir_body(entry), .by_number.arena = run->arena};
  read_matches(&s, entry);
  s.ops = ir_collect(run->arena, payload, is_of_kinds, &s);
  if (!s.ops.n)
    return;
  for (int k = 0; k < s.ops.n; k++)
    index_add(&s.by_number, hash_number(number_of(s.ops.v[k])), k);
  MlirOperation split = build_search(&s);
  for (int k = 0; k < s.matches.n; k++) {
    const int at = find_op(&s, &s.matches.v[k]);
    if (at < 0)
      continue; /* this step stays and reports the error */
    mlirValueReplaceAllUsesOfWith(mlirOperationGetResult(s.matches.v[k].op, 0), mlirOperationGetResult(split, at));
    mlirOperationDestroy(s.matches.v[k].op);
  }
}

/* Returns the operation that the script works on: the only function, so that the script itself is not searched, or
 * else the module. */
static MlirOperation payload_of(struct pass_run *run) {
  struct ir_ops functions = ir_collect_named(run->arena, run->module, "func.func");
  return functions.n == 1 ? functions.v[0] : run->module;
}

static enum status apply(struct pass_run *run, MlirOperation entry) {
  struct ir_capture c;
  MlirTransformOptions options = mlirTransformOptionsCreate();

  mlirTransformOptionsEnableExpensiveChecks(options, false); /* they look at all handles at each step */

  ir_capture_begin(run->ir, &c, run->ds, DG_PASS_FAILED, run->arena);
  MlirOperation payload = payload_of(run);
  match_first(run, entry, payload);
  MlirLogicalResult done = mlirTransformApplyNamedSequence(payload, entry, run->module, options);
  ir_capture_end(run->ir, &c);
  mlirTransformOptionsDestroy(options);
  if (mlirLogicalResultIsSuccess(done) && !c.errors)
    return ST_OK;
  return pass_fail(run, run->module, "transform interpretation failed");
}

static void strip(struct pass_run *run) {
  MlirBlock body = mlirModuleGetBody(mlirModuleFromOperation(run->module));
  MlirOperation next;

  for (MlirOperation op = mlirBlockGetFirstOperation(body); !mlirOperationIsNull(op); op = next) {
    next = mlirOperationGetNextInBlock(op);
    if (is_transform(op, NULL))
      mlirOperationDestroy(op);
  }
  mlirOperationRemoveAttributeByName(run->module, ir_str("transform.with_named_sequence"));
}

static enum status run_pass(struct pass_run *run) {
  struct ir_ops entries = ir_collect(run->arena, run->module, is_entry, NULL);

  if (entries.n)
    pass_step(run, entries.v[0], "run-script");
  enum status st = entries.n ? apply(run, entries.v[0]) : ST_OK;
  if (st)
    return st;
  pass_step(run, run->module, "remove-script");
  strip(run);
  slices_move_into_loops(run);
  return sums_merge_loops(run);
}

const struct pass_def apply_and_strip_transforms = {
    .name = "apply-and-strip-transforms",
    .run = run_pass,
};
