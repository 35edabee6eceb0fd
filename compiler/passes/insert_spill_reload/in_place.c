/* in_place: handles operations whose operands and result do not fit into SBUF together.
 *
 *     %c = memref.alloc() : …, 3 : i32                   memref.copy %a, %s           (%s : memref<…, 1 : i32>)
 *     linalg.mul ins(%a, %b) outs(%c)             ==>    linalg.mul ins(%a, %b) outs(%a)
 *     … uses %c, then %a …                               … uses %a …
 *                                                        %d = memref.alloc() : …, 3 : i32
 *                                                        memref.copy %s, %d
 *                                                        … uses %d …
 *
 * Spilling helps between operations, but not within one.  An element-wise operation reads each element before it writes
 * the element at the same place, so its result can take the buffer of an operand.  If the operand is read later, it is
 * stored in HBM first, and the later readers get it in another buffer.  The first operand that is not read later is
 * chosen, otherwise the first one.
 *
 * This applies only to whole buffers that the operation's own block allocates, not to views of them.  large.c handles
 * loops over tiles.  See insert_spill_reload.c.
 */
#include <assert.h>
#include <inttypes.h>

#include "base/array.h"
#include "ir/structured.h"
#include "passes/insert_spill_reload/insert_spill_reload.h"
#include "passes/lib/buffers.h"
#include "passes/lib/edit.h"
#include "passes/lib/memrefs.h"
#include "passes/lib/price.h"

/* An element-wise operation and the operand whose buffer its result can take. */
struct in_place {
  struct pass_run *run;
  MlirBlock block;
  MlirOperation op;
  struct structured s;
  MlirValue in, out;
  struct ir_ops later; /* users of `in` after op, one entry per use */
};

static MlirOperation place_of(const struct in_place *p, MlirOperation user) {
  return ir_ancestor_in(user, p->block);
}

static bool is_own_buffer(const struct in_place *p, MlirValue v) {
  MlirOperation def = ir_defining_op(v);
  return !mlirOperationIsNull(def) && spill_is_sbuf_alloc(def) && mlirBlockEqual(mlirOperationGetBlock(def), p->block);
}

/* Returns the bytes per partition of the block's buffers that op uses. */
static int64_t needed(const struct in_place *p) {
  const intptr_t n = mlirOperationGetNumOperands(p->op);
  int64_t sum = 0;

  for (intptr_t k = 0; k < n; k++) {
    MlirValue v = buffer_root(mlirOperationGetOperand(p->op, k));
    bool is_new = is_own_buffer(p, v);
    for (intptr_t j = 0; j < k; j++)
      is_new &= !mlirValueEqual(buffer_root(mlirOperationGetOperand(p->op, j)), v);
    sum += is_new ? spill_bytes(v) : 0;
  }
  return sum;
}

/* The uses of a buffer of the block before op, by op and after op. */
struct around {
  int before, at;
  bool is_direct;      /* op and the users after it use the buffer itself and not a view of it */
  struct ir_ops later; /* users after op, one entry per use */
};

/* Collects the uses.  Returns false if the buffer is carried by a loop, handed on or freed: then its later users are
 * unknown, or cannot get another buffer. */
static bool look_around(const struct in_place *p, MlirValue v, struct around *out) {
  struct buffer_uses uses = buffer_find_uses(p->run->arena, v);

  *out = (struct around){.is_direct = true};
  for (int k = 0; k < uses.n; k++) {
    const struct buffer_use *u = &uses.v[k];
    MlirOperation here = place_of(p, u->op);
    if (mlirOperationIsNull(here) || ir_is(u->op, "memref.dealloc") || spill_is_handed_on(u->op) ||
        !mlirValueIsNull(buffer_passed_on(u->op, u->operand)))
      return false;
    if (buffer_is_before(here, p->op)) {
      out->before++;
      continue;
    }
    out->is_direct &= mlirValueEqual(mlirOperationGetOperand(u->op, u->operand), v);
    if (mlirOperationEqual(here, p->op))
      out->at++;
    else
      array_push(p->run->arena, &out->later, u->op);
  }
  return true;
}

/* Reads the result.  Returns true if op writes all of a buffer of the block and does not read its old contents. */
static bool read_result(struct in_place *p) {
  const int out = p->s.n_inputs;
  struct around a;

  p->out = mlirOperationGetOperand(p->op, out);
  if (p->s.n_inits != 1 || !is_own_buffer(p, p->out) || !mlirAffineMapIsIdentity(p->s.maps[out]) ||
      (buffer_access(p->op, out) & BUFFER_READS))
    return false;
  return look_around(p, p->out, &a) && a.at == 1 && (a.is_direct || !a.before);
}

/* Reads operand o.  Returns true if it is a whole buffer of the block and op reads it at the same places that op
 * writes. */
static bool read_operand(struct in_place *p, int o) {
  struct around a;

  p->in = mlirOperationGetOperand(p->op, o);
  if (!is_own_buffer(p, p->in) || !mlirTypeEqual(mlirValueGetType(p->in), mlirValueGetType(p->out)) ||
      !look_around(p, p->in, &a) || !a.is_direct)
    return false;
  for (int k = 0; k < p->s.n_inputs; k++)
    if (mlirValueEqual(mlirOperationGetOperand(p->op, k), p->in) && !mlirAffineMapIsIdentity(p->s.maps[k]))
      return false;
  p->later = a.later;
  return true;
}

static bool choose_operand(struct in_place *p) {
  int first = -1;

  for (int o = 0; o < p->s.n_inputs; o++) {
    if (!read_operand(p, o))
      continue;
    if (!p->later.n)
      return true;
    first = first < 0 ? o : first;
  }
  return first >= 0 && read_operand(p, first);
}

static void replace_in(const struct ir_ops *ops, MlirValue v, MlirValue by) {
  for (int k = 0; k < ops->n; k++)
    for (intptr_t o = 0; o < mlirOperationGetNumOperands(ops->v[k]); o++)
      if (mlirValueEqual(mlirOperationGetOperand(ops->v[k], o), v))
        mlirOperationSetOperand(ops->v[k], o, by);
}

/* Stores `in` before op and gives its later users another buffer, which is loaded before the first of them. */
static void store(struct in_place *p, MlirBlock entry, int64_t capacity) {
  MlirOperation first = place_of(p, p->later.v[0]);
  struct ir_builder b = edit_before(p->run, ir_ancestor_in(p->op, entry));
  int64_t dims[IR_MEMREF_RANK_MAX];
  const int rank = ir_shape(p->in, IR_MEMREF_RANK_MAX, dims);

  for (int k = 1; k < p->later.n; k++)
    if (buffer_is_before(place_of(p, p->later.v[k]), first))
      first = place_of(p, p->later.v[k]);
  b.loc = mlirOperationGetLocation(ir_defining_op(p->in));
  MlirValue slot = memrefs_alloc(&b, memrefs_type(b.ctx, memrefs_element(p->in), rank, dims, MEM_HBM));
  b.block = p->block;
  b.before = p->op;
  memrefs_copy(&b, p->in, slot);
  b.before = first;
  MlirValue again = memrefs_alloc(&b, mlirValueGetType(p->in));
  memrefs_copy(&b, slot, again);
  replace_in(&p->later, p->in, again);
  struct remark *r = pass_remark(p->run, ir_defining_op(p->in), RULE_SPILL,
                                 "spilled to HBM, %" PRId64 " bytes per partition", spill_bytes(p->in));
  remark_limit(r, "SBUF", "bytes per partition", needed(p), capacity);
  price_chosen(r, price_away_ns(p->run->target, p->in));
  price_instead(r, "staying in SBUF", 0, "the result of the operation takes its place");
  pass_remark(p->run, ir_defining_op(p->in), RULE_RELOAD, "reloaded from HBM, %" PRId64 " bytes per partition",
              spill_bytes(p->in));
}

/* Makes op and the later users of its result use `in` instead of the result's buffer. */
static void merge(struct in_place *p) {
  MlirOperation alloc = ir_defining_op(p->out);
  struct around a;

  const bool is_known = look_around(p, p->out, &a);
  assert(is_known);
  if (!a.before) {
    mlirValueReplaceAllUsesOfWith(p->out, p->in);
    mlirOperationDestroy(alloc);
    return;
  }
  replace_in(&a.later, p->out, p->in);
  mlirOperationSetOperand(p->op, p->s.n_inputs, p->in);
}

void spill_compute_in_place(struct pass_run *run, MlirBlock block, MlirBlock entry, int64_t capacity) {
  int n;
  MlirOperation *ops = spill_operations(run->arena, block, &n);

  for (int k = 0; k < n; k++) { /* only an allocation before ops[k] is destroyed, which the loop has already passed */
    struct in_place p = {.run = run, .block = block, .op = ops[k]};
    if (!structured_read(ops[k], &p.s) || !structured_is_elementwise(&p.s) || needed(&p) <= capacity ||
        !read_result(&p) || !choose_operand(&p))
      continue;
    pass_step(run, ops[k], "write-over-operand");
    if (p.later.n)
      store(&p, entry, capacity);
    struct remark *r = pass_remark(run, ops[k], RULE_WRITE_OVER_OPERAND,
                                   "its result takes the place of an operand: together they do not fit into SBUF");
    remark_limit(r, "SBUF", "bytes per partition", needed(&p), capacity);
    price_chosen(r, 0);
    price_instead(r, "a buffer of its own", price_away_ns(run->target, p.out),
                  "other buffers would go to HBM and back: the operation needs its operands and its result at once");
    merge(&p);
  }
}
