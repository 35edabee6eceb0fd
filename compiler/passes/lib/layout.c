/* layout: see layout.h. */
#include "passes/lib/layout.h"

#include "mlir-c/BuiltinAttributes.h"
#include "mlir-c/BuiltinTypes.h"

static const char layout_name[] = "nkipy.layout", tile_name[] = "nkipy.tile_op";

bool layout_is_annotation(MlirOperation op) {
  return ir_is(op, layout_name) || ir_is(op, tile_name);
}

const char *layout_space_name(int space) {
  static const char *const names[] = {"no memory", "HBM", "PSUM", "SBUF", "shared HBM", "constant memory"};
  return space >= 0 && space <= MEM_CONSTANT ? names[space] : "unknown memory";
}

const char *layout_ints(struct arena *a, int n, const int64_t *v) {
  const char *s = "[";
  for (int i = 0; i < n; i++)
    s = arena_printf(a, "%s%s%lld", s, i ? "," : "", (long long)v[i]);
  return arena_printf(a, "%s]", s);
}

/* ---- reading ---------------------------------------------------------------------------------------------------- */

static int read_ints(MlirOperation op, const char *name, int64_t *out) {
  MlirAttribute a = ir_attr(op, name);
  if (mlirAttributeIsNull(a) || !mlirAttributeIsADenseI64Array(a))
    return 0;
  intptr_t n = mlirDenseArrayGetNumElements(a);
  for (intptr_t i = 0; i < n && i < STRUCTURED_LOOPS_MAX; i++)
    out[i] = mlirDenseI64ArrayGetElement(a, i);
  return n < STRUCTURED_LOOPS_MAX ? (int)n : STRUCTURED_LOOPS_MAX;
}

static int read_int(MlirOperation op, const char *name, int missing) {
  MlirAttribute a = ir_attr(op, name);
  return mlirAttributeIsNull(a) || !mlirAttributeIsAInteger(a) ? missing : (int)mlirIntegerAttrGetValueInt(a);
}

/* Uses are listed from the last to the first, and earlier annotations win: later reads overwrite earlier ones. */
static void read_layout_op(MlirOperation op, struct layout *l) {
  int64_t tile[STRUCTURED_LOOPS_MAX];
  const int n = read_ints(op, "tile_size", tile);

  l->layout_op = op;
  l->space = read_int(op, "mem_space", l->space);
  l->partition_dim = read_int(op, "partition_dim", l->partition_dim);
  for (int i = 0; i < n; i++)
    l->tile[i] = tile[i];
  l->n_tile = n ? n : l->n_tile;
}

/* True if x stands before y, both in one block. */
static bool is_before(MlirOperation x, MlirOperation y) {
  for (MlirOperation o = x; !mlirOperationIsNull(o); o = mlirOperationGetNextInBlock(o))
    if (mlirOperationEqual(o, y))
      return true;
  return false;
}

enum { ANNOTATIONS_MAX = 16 };

/* The annotations of v called name, in program order. */
static int annotations(MlirValue v, const char *name, MlirOperation *out) {
  int n = 0;
  for (MlirOpOperand u = mlirValueGetFirstUse(v); !mlirOpOperandIsNull(u); u = mlirOpOperandGetNextUse(u)) {
    MlirOperation op = mlirOpOperandGetOwner(u);
    if (!ir_is(op, name) || n == ANNOTATIONS_MAX)
      continue;
    int at = n++;
    for (; at > 0 && is_before(op, out[at - 1]); at--)
      out[at] = out[at - 1];
    out[at] = op;
  }
  return n;
}

struct layout layout_read(MlirValue v) {
  struct layout l = {.space = MEM_NONE, .partition_dim = -1};
  MlirOperation ops[ANNOTATIONS_MAX];

  for (int i = annotations(v, layout_name, ops) - 1; i >= 0; i--)
    read_layout_op(ops[i], &l);
  if (annotations(v, tile_name, ops)) {
    l.tile_op = ops[0];
    l.n_loop = read_ints(ops[0], "loop_tile_size", l.loop);
  }
  return l;
}

/* ---- writing ---------------------------------------------------------------------------------------------------- */

void layout_insert_behind(MlirValue v, MlirOperation op) {
  if (mlirValueIsABlockArgument(v)) {
    mlirBlockInsertOwnedOperation(mlirBlockArgumentGetOwner(v), 0, op);
    return;
  }
  MlirOperation def = mlirOpResultGetOwner(v);
  mlirBlockInsertOwnedOperationAfter(mlirOperationGetBlock(def), def, op);
}

static void move_behind(MlirValue v, MlirOperation op) {
  if (mlirValueIsABlockArgument(v)) {
    MlirOperation first = mlirBlockGetFirstOperation(mlirBlockArgumentGetOwner(v));
    if (!mlirOperationEqual(first, op))
      mlirOperationMoveBefore(op, first);
    return;
  }
  mlirOperationMoveAfter(op, mlirOpResultGetOwner(v));
}

/* The first annotation called name, made if there is none, behind the definition; the others are erased. */
static MlirOperation only(MlirValue v, const char *name, MlirLocation loc, bool is_wanted) {
  MlirOperation ops[ANNOTATIONS_MAX];
  const int n = annotations(v, name, ops);

  for (int i = is_wanted ? 1 : 0; i < n; i++)
    mlirOperationDestroy(ops[i]);
  if (!is_wanted)
    return (MlirOperation){NULL};
  if (n) {
    move_behind(v, ops[0]);
    return ops[0];
  }
  MlirOperationState st = mlirOperationStateGet(ir_str(name), loc);
  mlirOperationStateAddOperands(&st, 1, &v);
  MlirOperation made = mlirOperationCreate(&st);
  layout_insert_behind(v, made);
  return made;
}

static void set_int(MlirOperation op, const char *name, int value) {
  MlirType i32 = mlirIntegerTypeGet(mlirOperationGetContext(op), 32);
  ir_set_attr(op, name, mlirIntegerAttrGet(i32, value));
}

static void unset(MlirOperation op, const char *name) {
  mlirOperationRemoveAttributeByName(op, ir_str(name));
}

static void set_ints(MlirOperation op, const char *name, int n, const int64_t *v) {
  ir_set_attr(op, name, mlirDenseI64ArrayGet(mlirOperationGetContext(op), n, v));
}

void layout_write(MlirValue v, const struct layout *l, MlirLocation loc) {
  MlirOperation tile = only(v, tile_name, loc, l->n_loop > 0);
  if (l->n_loop)
    set_ints(tile, "loop_tile_size", l->n_loop, l->loop);

  MlirOperation layout = only(v, layout_name, loc, true);
  if (l->space != MEM_NONE)
    set_int(layout, "mem_space", l->space);
  else
    unset(layout, "mem_space");
  if (l->partition_dim >= 0)
    set_int(layout, "partition_dim", l->partition_dim);
  else
    unset(layout, "partition_dim");
  if (l->n_tile)
    set_ints(layout, "tile_size", l->n_tile, l->tile);
  else
    unset(layout, "tile_size");
}
