/* verify_registers: how many registers a sequencer needs at a time.
 *
 * A register is needed for each counter of a loop that runs, and for each number that register_load has read, from there to
 * its last use; a use inside of a loop that the number comes from outside of lasts to that loop's end.  What arith computes
 * from them is not counted: it can be computed again where it is used. */
#include "base/table.h"
#include "ir/query.h"
#include "nisa/verify.h"

/* The operations of the module, an operation before those inside of it. */
struct order {
  struct ir_ops ops;
  struct table place; /* operation -> one more than its number */
  int *end;           /* the number of the last operation inside of each, or its own */
};

static int place_of(const struct order *o, MlirOperation op) {
  return (int)(intptr_t)table_get(&o->place, op.ptr) - 1;
}

static void number(struct order *o, struct arena *a) {
  o->place.arena = a;
  o->end = arena_new_array(a, int, (size_t)o->ops.n + 1);
  for (int k = 0; k < o->ops.n; k++)
    table_put(&o->place, o->ops.v[k].ptr, (void *)(intptr_t)(k + 1));
  for (int k = o->ops.n - 1; k >= 0; k--) {
    if (o->end[k] < k)
      o->end[k] = k;
    MlirOperation parent = mlirOperationGetParentOperation(o->ops.v[k]);
    const int p = mlirOperationIsNull(parent) ? -1 : place_of(o, parent);
    if (p >= 0 && o->end[p] < o->end[k])
      o->end[p] = o->end[k];
  }
}

/* The last use of a value that is defined in the block; what arith makes of it has uses of its own. */
static int last_use(const struct order *o, MlirValue v, MlirBlock block) {
  int last = -1;
  for (MlirOpOperand u = mlirValueGetFirstUse(v); !mlirOpOperandIsNull(u); u = mlirOpOperandGetNextUse(u)) {
    MlirOperation op = mlirOpOperandGetOwner(u);
    if (ir_is_of(op, "arith.")) {
      const int later = last_use(o, mlirOperationGetResult(op, 0), block);
      last = later > last ? later : last;
    }
    while (!mlirBlockEqual(mlirOperationGetBlock(op), block))
      op = mlirOperationGetParentOperation(op);
    const int end = o->end[place_of(o, op)];
    last = end > last ? end : last;
  }
  return last;
}

static bool has_register(MlirOperation op, void *user) {
  (void)user;
  return ir_is(op, "scf.for") || ir_is(op, "nisa.register_load");
}

void nisa_check_registers(struct nisa_check *c, MlirOperation module) {
  struct ir_ops used = ir_collect(c->arena, module, has_register, NULL);
  if (used.n <= NISA_REGISTERS_MAX)
    return;
  struct order o = {.ops = ir_collect(c->arena, module, NULL, NULL)};
  number(&o, c->arena);
  int *change = arena_new_array(c->arena, int, (size_t)o.ops.n + 2), n = 0;
  for (int k = 0; k < used.n; k++) {
    const int at = place_of(&o, used.v[k]);
    const int last = ir_is(used.v[k], "scf.for")
                         ? o.end[at]
                         : last_use(&o, mlirOperationGetResult(used.v[k], 0), mlirOperationGetBlock(used.v[k]));
    if (last < at)
      continue;
    change[at]++;
    change[last + 1]--;
  }
  for (int k = 0; k < o.ops.n; k++) {
    n += change[k];
    if (n <= NISA_REGISTERS_MAX)
      continue;
    nisa_complain(c, o.ops.v[k], "it is register %d in use here; a sequencer has %d", n, NISA_REGISTERS_MAX);
    return;
  }
}
