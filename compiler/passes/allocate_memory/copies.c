/* copies: decides how many copies of an allocation in a loop pay.
 *
 * With one copy an engine that fills the memory waits until the readers of the last iteration are done.  With two it
 * fills one while the other is read.  A DMA transfer takes longer to start than to move a tile, so with eight several are under
 * way.  The signals between the Tensor engine and the readers of PSUM take as long as a product, so with four the engines do not
 * wait for those.  If the readers do other work between two runs of the loop, the Tensor engine has eight, all banks, to fill meanwhile.
 * What does not fit is left out (place.c).  More than one does not pay where one engine does everything, because it
 * works in order; where each iteration waits for the last one because data decide what runs (nisa.h, "Control flow"); and beyond the
 * number of iterations, counted through all loops around.
 */
#include <string.h>

#include "ir/build.h"
#include "passes/allocate_memory/allocate_memory.h"
#include "passes/lib/buffers.h"

enum { DEPTH_MAX = 16 };
enum { OF_TRANSFERS = 8, OF_PRODUCTS = 4, OF_BANKS = 8, OF_ENGINES = 2 };

/* ---- engines ----------------------------------------------------------------------------------------------------- */

/* Bits 1 << nisa_engine.  An engine that adds to what is there counts as a writer. */
struct engines {
  unsigned readers, writers;
};

static void add_use(struct engines *e, MlirOperation op, MlirValue v) {
  struct nisa_instr in;
  const char *why;
  if (!nisa_read(op, &in, &why))
    return;
  for (int k = 0; k < in.def->n_operands; k++) {
    const struct nisa_operand_def *d = &in.def->operand[k];
    if ((d->reads || d->writes) && mlirValueEqual(in.operand[k].base, v))
      *(d->writes ? &e->writers : &e->readers) |= 1u << in.engine;
  }
}

static struct engines engines_of(struct arena *a, MlirValue memory) {
  const struct buffer_uses uses = buffer_find_uses(a, memory);
  struct engines e = {0};
  for (int k = 0; k < uses.n; k++)
    add_use(&e, uses.v[k].op, mlirOperationGetOperand(uses.v[k].op, uses.v[k].operand));
  return e;
}

/* "vector and scalar" */
static const char *names_of(struct arena *a, unsigned engines) {
  const char *names = NULL;
  for (int e = NISA_ENGINE_COUNT - 1; e > 0; e--)
    if (engines & 1u << e) {
      const char *name = nisa_engine_name((enum nisa_engine)e);
      engines &= ~(1u << e);
      names = !names ? name : arena_printf(a, "%s%s%s", name, strchr(names, ' ') ? ", " : " and ", names);
    }
  return names;
}

/* ---- loops ------------------------------------------------------------------------------------------------------- */

/* True if v may come from memory. */
static bool depends_on_data(MlirValue v, int depth) {
  MlirOperation def = ir_defining_op(v);
  if (mlirOperationIsNull(def))
    return mlirBlockArgumentGetArgNumber(v) != 0; /* argument 0 is the counter of a loop; others are carried */
  if (ir_is(def, "arith.constant"))
    return false;
  if (!ir_is_of(def, "arith.") || depth == DEPTH_MAX)
    return true;
  for (intptr_t k = 0; k < mlirOperationGetNumOperands(def); k++)
    if (depends_on_data(mlirOperationGetOperand(def, k), depth + 1))
      return true;
  return false;
}

static bool decides_by_data(MlirOperation op, void *user) {
  (void)user;
  return ir_is(op, "scf.while") || (ir_is(op, "scf.if") && depends_on_data(mlirOperationGetOperand(op, 0), 0));
}

/* The iterations of a loop; INT64_MAX if its bounds are not constants. */
static int64_t trips_of_one(MlirOperation loop) {
  int64_t lower, upper, step;
  if (!ir_int_constant(mlirOperationGetOperand(loop, 0), &lower) ||
      !ir_int_constant(mlirOperationGetOperand(loop, 1), &upper) ||
      !ir_int_constant(mlirOperationGetOperand(loop, 2), &step) || step <= 0)
    return INT64_MAX;
  return upper > lower ? (upper - lower - 1) / step + 1 : 0;
}

/* How often the body of a loop runs, through the loops around it; INT64_MAX if their bounds are not constants. */
static int64_t trips_of(MlirOperation loop) {
  int64_t all = 1;
  for (MlirOperation op = loop; !ir_is(op, "func.func"); op = mlirOperationGetParentOperation(op))
    if (ir_is(op, "scf.for") && __builtin_mul_overflow(all, trips_of_one(op), &all))
      return INT64_MAX;
  return all;
}

static bool is_psum(MlirOperation op, void *user) {
  (void)user;
  return ir_is(op, "nisa.alloc") && nisa_type_space(mlirValueGetType(ir_result(op))) == MEM_PSUM;
}

/* True if the loop is a step of another one, in which one of the engines has other work, and nothing else there uses PSUM. */
static bool has_work_beside(struct arena *a, MlirOperation loop, unsigned engines) {
  MlirOperation around = mlirOperationGetParentOperation(loop);
  struct nisa_instr in;
  if (!ir_is(around, "scf.for") || ir_collect(a, around, is_psum, NULL).n > 1)
    return false;
  for (MlirOperation op = mlirBlockGetFirstOperation(ir_body(around)); !mlirOperationIsNull(op);
       op = mlirOperationGetNextInBlock(op))
    if (nisa_op_of(op) && nisa_read(op, &in, NULL) && (engines & 1u << in.engine))
      return true;
  return false;
}

/* True if loops in the loop fill banks of their own. */
static bool has_products_inside(struct arena *a, MlirOperation loop) {
  const struct ir_ops all = ir_collect(a, loop, is_psum, NULL);
  for (int k = 0; k < all.n; k++)
    if (!mlirBlockEqual(mlirOperationGetBlock(all.v[k]), ir_body(loop)))
      return true;
  return false;
}

/* ---- all together ------------------------------------------------------------------------------------------------ */

static struct copies copies_for(const struct engines e, int wanted, const char *why) {
  return (struct copies){.wanted = wanted, .readers = e.readers, .writers = e.writers, .why = why};
}

static struct copies choose(struct pass_run *run, const struct nisa_lifetime *x, const struct engines e) {
  const unsigned dma = 1u << NISA_ENGINE_DMA;
  struct arena *a = run->arena;

  const unsigned all = e.readers | e.writers;
  if (!e.readers || !e.writers)
    return copies_for(e, 1, e.writers ? "nothing reads it" : "nothing writes it");
  /* of DMA, transfers that load and those that store are in different queues */
  if (all != dma && (all & (all - 1)) == 0)
    return copies_for(e, 1, arena_printf(a, "only the %s engine uses it, in order", names_of(a, all)));
  if (ir_collect(a, x->loop, decides_by_data, NULL).n)
    return copies_for(e, 1, "data decide what its loop runs, so that each iteration waits for the last one");
  if (x->space == MEM_PSUM && has_products_inside(a, x->loop))
    return copies_for(e, 1, "loops in its loop fill banks meanwhile, so that its reader has time");
  const bool waits =
      x->space == MEM_PSUM && trips_of_one(x->loop) > OF_PRODUCTS && has_work_beside(a, x->loop, e.readers);
  const int wanted = all & dma ? OF_TRANSFERS : waits ? OF_BANKS : x->space == MEM_PSUM ? OF_PRODUCTS : OF_ENGINES;
  const int64_t trips = trips_of(x->loop);
  if (trips < wanted)
    return copies_for(e, trips > 1 ? (int)trips : 1,
                      arena_printf(a, "its loop runs %lld time%s", (long long)trips, trips == 1 ? "" : "s"));
  return copies_for(e, wanted,
                    arena_printf(a, "filled by %s, read by %s", names_of(a, e.writers), names_of(a, e.readers)));
}

struct copies copies_of(struct pass_run *run, const struct nisa_lifetime *x) {
  if (mlirOperationIsNull(x->loop))
    return copies_for((struct engines){0}, 1, NULL);
  return choose(run, x, engines_of(run->arena, mlirOperationGetResult(x->alloc, 0)));
}
