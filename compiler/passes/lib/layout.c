/* layout: see layout.h. */
#include "passes/lib/layout.h"

#include <assert.h>

#include "mlir-c/BuiltinAttributes.h"
#include "mlir-c/BuiltinTypes.h"

#include "ir/build.h"

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

/* Returns the number of entries, at most LAYOUT_ENTRIES_MAX. */
static int read_ints(MlirOperation op, const char *name, int64_t *out) {
  MlirAttribute a = ir_attr(op, name);
  if (mlirAttributeIsNull(a) || !mlirAttributeIsADenseI64Array(a))
    return 0;
  const intptr_t all = mlirDenseArrayGetNumElements(a);
  const int n = all < LAYOUT_ENTRIES_MAX ? (int)all : LAYOUT_ENTRIES_MAX;
  for (int i = 0; i < n; i++)
    out[i] = mlirDenseI64ArrayGetElement(a, i);
  return n;
}

static int read_int(MlirOperation op, const char *name, int missing) {
  MlirAttribute a = ir_attr(op, name);
  return mlirAttributeIsNull(a) || !mlirAttributeIsAInteger(a) ? missing : (int)mlirIntegerAttrGetValueInt(a);
}

/* True if x comes before y in their block.  Annotations in different blocks have no order. */
static bool is_before(MlirOperation x, MlirOperation y) {
  return mlirBlockEqual(mlirOperationGetBlock(x), mlirOperationGetBlock(y)) && !mlirOperationEqual(x, y) &&
         mlirOperationIsBeforeInBlock(x, y);
}

/* Returns the first annotation of v called `name` that has the attribute `attr` (NULL: any); null if there is none. */
static MlirOperation first_annotation(MlirValue v, const char *name, const char *attr) {
  MlirOperation first = {NULL};

  for (MlirOpOperand u = mlirValueGetFirstUse(v); !mlirOpOperandIsNull(u); u = mlirOpOperandGetNextUse(u)) {
    MlirOperation op = mlirOpOperandGetOwner(u);
    if (ir_is(op, name) && (!attr || !mlirAttributeIsNull(ir_attr(op, attr))) &&
        (mlirOperationIsNull(first) || is_before(op, first)))
      first = op;
  }
  return first;
}

struct layout layout_read(MlirValue v) {
  struct layout l = {.space = MEM_NONE, .partition_dim = -1};

  l.layout_op = first_annotation(v, layout_name, NULL);
  if (!mlirOperationIsNull(l.layout_op)) {
    MlirOperation space = first_annotation(v, layout_name, "mem_space");
    MlirOperation partition = first_annotation(v, layout_name, "partition_dim");
    MlirOperation tile = first_annotation(v, layout_name, "tile_size");
    if (!mlirOperationIsNull(space))
      l.space = read_int(space, "mem_space", MEM_NONE);
    if (!mlirOperationIsNull(partition))
      l.partition_dim = read_int(partition, "partition_dim", -1);
    if (!mlirOperationIsNull(tile))
      l.n_tile = read_ints(tile, "tile_size", l.tile);
  }
  l.tile_op = first_annotation(v, tile_name, NULL);
  if (!mlirOperationIsNull(l.tile_op))
    l.n_loop = read_ints(l.tile_op, "loop_tile_size", l.loop);
  return l;
}

/* ---- writing ---------------------------------------------------------------------------------------------------- */

/* Returns a builder that inserts directly after v's definition. */
static struct ir_builder after_definition(MlirValue v, MlirLocation loc) {
  struct ir_builder b = {.ctx = mlirLocationGetContext(loc), .loc = loc};

  if (mlirValueIsABlockArgument(v)) {
    b.block = mlirBlockArgumentGetOwner(v);
    b.before = mlirBlockGetFirstOperation(b.block);
  } else {
    b.block = mlirOperationGetBlock(mlirOpResultGetOwner(v));
    b.before = mlirOperationGetNextInBlock(mlirOpResultGetOwner(v));
  }
  return b;
}

static void move_after(MlirValue v, MlirOperation op) {
  if (mlirValueIsABlockArgument(v)) {
    MlirOperation first = mlirBlockGetFirstOperation(mlirBlockArgumentGetOwner(v));
    if (!mlirOperationEqual(first, op))
      mlirOperationMoveBefore(op, first);
    return;
  }
  mlirOperationMoveAfter(op, mlirOpResultGetOwner(v));
}

/* Erases the annotations of v called `name`, except `kept` (may be null). */
static void erase_annotations(MlirValue v, const char *name, MlirOperation kept) {
  MlirOpOperand next;

  for (MlirOpOperand u = mlirValueGetFirstUse(v); !mlirOpOperandIsNull(u); u = next) {
    MlirOperation op = mlirOpOperandGetOwner(u);
    next = mlirOpOperandGetNextUse(u);
    if (ir_is(op, name) && !mlirOperationEqual(op, kept))
      mlirOperationDestroy(op);
  }
}

/* Returns the first annotation of v called `name`, directly after the definition; makes one if there is none.
 * Erases the others. */
static MlirOperation only_annotation(MlirValue v, const char *name, MlirLocation loc) {
  MlirOperation op = first_annotation(v, name, NULL);

  if (!mlirOperationIsNull(op)) {
    erase_annotations(v, name, op);
    move_after(v, op);
    return op;
  }
  struct ir_builder b = after_definition(v, loc);
  return ir_op0(&b, name, 1, &v);
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
  assert(l->n_loop <= LAYOUT_ENTRIES_MAX && l->n_tile <= LAYOUT_ENTRIES_MAX);
  if (l->n_loop)
    set_ints(only_annotation(v, tile_name, loc), "loop_tile_size", l->n_loop, l->loop);
  else
    erase_annotations(v, tile_name, (MlirOperation){NULL});

  MlirOperation layout = only_annotation(v, layout_name, loc);
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
