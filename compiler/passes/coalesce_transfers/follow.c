/* follow: a loop that reads what the loop before it writes goes round with it.  See coalesce_transfers.c.
 *
 *     scf.for %i = 0 to 32 {                        scf.for %k = 0 to 8 {
 *       load; products                                scf.for %j = 0 to 4 {
 *       nisa.tensor_copy(%b[d0, %i, d1], …)             load; products
 *     }                                       ==>       nisa.tensor_copy(%b[d0, %k*4 + %j, d1], …)
 *     scf.for %k = 0 to 8 {                           }
 *       nisa.activation(…, %b[d0, %k*4 + d1, d2])     nisa.activation(…, %b[d0, %k*4 + d1, d2])
 *     }                                             }
 *
 * Engines execute their instructions in order.  One that works for both loops does not begin with the second one before the loads
 * of the first one have all arrived, although its first round needs only some of them.
 *
 * So it is done where the loops keep different engines busy: if the busiest one of both together, and one round that does not overlap,
 * take less time than the busiest one of each, one after the other.
 *
 * Safe because a round of the second loop reads only what the rounds of the first one have written that now come before it, and
 * writes nothing that the first one uses.  The pairs of accesses of the two loops are compared.
 */
#include <inttypes.h>

#include "base/array.h"
#include "passes/coalesce_transfers/coalesce_transfers.h"
#include "passes/lib/buffers.h"
#include "passes/lib/busy.h"
#include "passes/lib/edit.h"

enum { INSTRS_MOST = 128, SAVING_LEAST = 8 /* percent */ };

struct instrs {
  struct nisa_instr *v;
  int n, cap;
};

struct pair {
  struct pass_run *run;
  struct repeated first, second;
  struct instrs of_first, of_second;
  int64_t each; /* rounds of the first one for a round of the second */
};

/* ---- reading ---------------------------------------------------------------------------------------------------- */

/* What may change places with instructions that touch other memory. */
static bool is_simple(enum nisa_kind k) {
  switch (k) {
  case NISA_DMA_COPY:
  case NISA_DMA_TRANSPOSE:
  case NISA_MATMUL:
  case NISA_TENSOR_COPY:
  case NISA_TENSOR_COPY_PREDICATED:
  case NISA_TENSOR_TENSOR_ARITH:
  case NISA_TENSOR_SCALAR_ARITH:
  case NISA_SCALAR_TENSOR_TENSOR:
  case NISA_TENSOR_REDUCE_ARITH:
  case NISA_ACTIVATION:
  case NISA_RECIPROCAL:
  case NISA_MEMSET:
  case NISA_BN_STATS:
  case NISA_BN_AGGR:
  case NISA_MAX8:
  case NISA_FIND_INDEX8:
  case NISA_MATCH_REPLACE8:
  case NISA_TENSOR_TENSOR_SCAN:
    return true;
  default:
    return false;
  }
}

/* False if there is one in the loop that has to stay where it is. */
static bool read_instrs(struct pass_run *run, MlirOperation loop, struct instrs *out) {
  struct ir_ops ops = ir_collect(run->arena, loop, NULL, NULL);
  for (int k = 0; k < ops.n; k++) {
    struct nisa_instr in;
    MlirOperation op = ops.v[k];
    if (mlirOperationEqual(op, loop) || ir_is_of(op, "arith.") || ir_is(op, "scf.yield") || ir_is(op, "scf.for") ||
        ir_is(op, "nisa.alloc") || ir_is(op, "nisa.release"))
      continue;
    if (out->n == INSTRS_MOST || !nisa_op_of(op) || nisa_keeps_order(op) || !nisa_read(op, &in, NULL) ||
        !is_simple(in.def->kind))
      return false;
    array_push(run->arena, out, in);
  }
  return out->n > 0;
}

/* Index d of the access as a multiple of the counter; false if something else is in it. */
static bool read_index(const struct repeated *r, const struct nisa_access *x, int d, int64_t *per_counter,
                       int64_t *from, int64_t *width) {
  struct nisa_index index;
  struct linear sum = {0};
  if (!nisa_access_index(x, d, &index))
    return false;
  for (int k = 0; k < x->n_indices; k++)
    if (index.sym[k] && !linear_add(&sum, x->indices[k], index.sym[k]))
      return false;
  *per_counter = 0;
  for (int k = 0; k < sum.n; k++)
    if (mlirValueEqual(sum.term[k].v, r->counter))
      *per_counter += sum.term[k].factor;
    else if (sum.term[k].factor)
      return false;
  *from = index.constant + sum.constant;
  *width = 1;
  for (int k = 0; k < x->n_dims; k++)
    *width += index.dim[k] * (x->tile[k] - 1);
  return true;
}

/* True if y, in a round of the second loop, reads nothing that later rounds of the first one write as x. */
static bool is_written_before(const struct pair *p, const struct nisa_access *x, const struct nisa_access *y) {
  if (!mlirValueEqual(x->base, y->base) || !mlirTypeIsNull(x->type) || !mlirTypeIsNull(y->type))
    return false;
  for (int d = 0; d < (int)mlirAffineMapGetNumResults(x->map); d++) {
    int64_t write, read, write_from, read_from, write_width, read_width;
    if (read_index(&p->first, x, d, &write, &write_from, &write_width) &&
        read_index(&p->second, y, d, &read, &read_from, &read_width) && write > 0 && read == write * p->each &&
        write_from >= 0 && read_from + read_width <= read)
      return true;
  }
  return false;
}

static bool is_safe(const struct pair *p) {
  for (int i = 0; i < p->of_first.n; i++)
    for (int k = 0; k < p->of_first.v[i].def->n_operands; k++) {
      const struct nisa_access *x = &p->of_first.v[i].operand[k];
      for (int j = 0; nisa_is_data(x) && j < p->of_second.n; j++)
        for (int l = 0; l < p->of_second.v[j].def->n_operands; l++) {
          const struct nisa_access *y = &p->of_second.v[j].operand[l];
          if (!nisa_is_data(y) || !mlirValueEqual(buffer_root(x->base), buffer_root(y->base)))
            continue;
          if (p->of_second.v[j].def->operand[l].writes ||
              (p->of_first.v[i].def->operand[k].writes && !is_written_before(p, x, y)))
            return false;
        }
    }
  return true;
}

static bool has_products(const struct instrs *of) {
  for (int k = 0; k < of->n; k++)
    if (of->v[k].engine == NISA_ENGINE_TENSOR)
      return true;
  return false;
}

/* True if the second loop reads what the first one writes. */
static bool is_reader(const struct pair *p) {
  for (int i = 0; i < p->of_first.n; i++)
    for (int k = 0; k < p->of_first.v[i].def->n_operands; k++)
      for (int j = 0; p->of_first.v[i].def->operand[k].writes && j < p->of_second.n; j++)
        for (int l = 0; l < p->of_second.v[j].def->n_operands; l++)
          if (nisa_is_data(&p->of_first.v[i].operand[k]) && nisa_is_data(&p->of_second.v[j].operand[l]) &&
              mlirValueEqual(p->of_first.v[i].operand[k].base, p->of_second.v[j].operand[l].base))
            return true;
  return false;
}

/* True if a transfer uses no memory that the first loop uses, so that it may come before that loop. */
static bool is_apart(const struct pair *p, MlirOperation op) {
  struct nisa_instr in;

  if (!nisa_read(op, &in, NULL) || in.def->kind != NISA_DMA_COPY || nisa_keeps_order(op))
    return false;
  for (int l = 0; l < in.def->n_operands; l++)
    for (int i = 0; i < p->of_first.n; i++)
      for (int k = 0; k < p->of_first.v[i].def->n_operands; k++) {
        const struct nisa_access *x = &p->of_first.v[i].operand[k], *y = &in.operand[l];
        const bool writes = in.def->operand[l].writes || p->of_first.v[i].def->operand[k].writes;
        if (writes && nisa_is_data(x) && nisa_is_data(y) && mlirValueEqual(buffer_root(x->base), buffer_root(y->base)))
          return false;
      }
  return true;
}

/* Nothing between the loops but memory, numbers, and transfers that may come before both. */
static bool is_beside(const struct pair *p) {
  for (MlirOperation op = mlirOperationGetNextInBlock(p->first.loop); !mlirOperationEqual(op, p->second.loop);
       op = mlirOperationGetNextInBlock(op))
    if (mlirOperationIsNull(op) ||
        !(ir_is_of(op, "arith.") || ir_is(op, "nisa.alloc") || ir_is(op, "nisa.release") || is_apart(p, op)))
      return false;
  return true;
}

/* ---- the choice -------------------------------------------------------------------------------------------------- */

/* How often an instruction of the loop is executed. */
static double times_of(MlirOperation op, MlirOperation loop) {
  double n = 1;
  struct repeated r;
  for (MlirOperation at = op; !mlirOperationEqual(at, loop);) {
    at = mlirOperationGetParentOperation(at);
    n *= ir_is(at, "scf.for") && coalesce_read_bounds(at, &r) ? (double)r.trips : 1;
  }
  return n;
}

static int64_t descriptors_of(const struct nisa_instr *in) {
  const struct nisa_access *dst = &in->operand[0];
  return in->def->kind == NISA_DMA_TRANSPOSE ? nisa_partitions(dst) * nisa_free_elements(dst) / NISA_PARTITIONS
                                             : nisa_partitions(dst);
}

static void add_up(const struct pair *p, const struct instrs *of, MlirOperation loop, double *busy) {
  for (int k = 0; k < of->n; k++) {
    const struct nisa_instr *in = &of->v[k];
    double ns = busy_ns(in, in->engine, p->run->target);
    if (in->engine == NISA_ENGINE_DMA) {
      const double start = busy_trigger_ns(NISA_ENGINE_SYNC, descriptors_of(in), p->run->target);
      ns = ns > start ? ns : start;
    }
    busy[in->engine] += ns * times_of(in->op, loop);
  }
}

static double most_of(const double *x, const double *y) {
  double most = 0;
  for (int e = 0; e < NISA_ENGINE_COUNT; e++)
    most = x[e] + (y ? y[e] : 0) > most ? x[e] + (y ? y[e] : 0) : most;
  return most;
}

static double sum_of(const double *x) {
  double sum = 0;
  for (int e = 0; e < NISA_ENGINE_COUNT; e++)
    sum += x[e];
  return sum;
}

/* Nanoseconds of both one after the other, and together. */
static void times(const struct pair *p, double *apart, double *together) {
  double first[NISA_ENGINE_COUNT] = {0}, second[NISA_ENGINE_COUNT] = {0};
  add_up(p, &p->of_first, p->first.loop, first);
  add_up(p, &p->of_second, p->second.loop, second);
  *apart = most_of(first, NULL) + most_of(second, NULL);
  *together = most_of(first, second) + sum_of(second) / (double)p->second.trips;
}

/* ---- joining them ------------------------------------------------------------------------------------------------ */

static void join(struct pair *p) {
  MlirBlock body = ir_body(p->second.loop);
  struct ir_builder b = edit_before(p->run, mlirBlockGetFirstOperation(body)), inside;
  b.loc = mlirOperationGetLocation(p->first.loop);
  MlirOperation after = mlirOperationGetNextInBlock(p->second.loop);

  MlirValue number = p->second.counter;
  inside = b;
  if (p->each > 1) {
    MlirValue round = ir_count_loop(&b, p->each, &inside), first = ir_index(&inside, p->each);
    number = ir_binary(&inside, "arith.addi", ir_binary(&inside, "arith.muli", number, first), round);
  }
  for (MlirOperation next, op = mlirBlockGetFirstOperation(ir_body(p->first.loop)); !ir_is(op, "scf.yield");
       op = next) {
    next = mlirOperationGetNextInBlock(op);
    mlirOperationMoveBefore(op, inside.before);
  }
  mlirValueReplaceAllUsesOfWith(p->first.counter, number);
  for (MlirOperation next, op = mlirOperationGetNextInBlock(p->first.loop); !mlirOperationEqual(op, p->second.loop);
       op = next) {
    next = mlirOperationGetNextInBlock(op);
    if (ir_is(op, "nisa.release"))
      mlirOperationMoveBefore(op, after);
  }
  mlirOperationDestroy(p->first.loop);
}

void coalesce_follow(struct pass_run *run, MlirOperation loop) {
  struct pair *p = arena_new(run->arena, struct pair);
  double apart, together;

  *p = (struct pair){.run = run};
  MlirOperation next = mlirOperationGetNextInBlock(loop);
  while (!mlirOperationIsNull(next) && !ir_is(next, "scf.for") && (ir_is_of(next, "arith.") || ir_is_of(next, "nisa.")))
    next = mlirOperationGetNextInBlock(next);
  if (mlirOperationIsNull(next) || !ir_is(next, "scf.for") || !coalesce_read_bounds(loop, &p->first) ||
      !coalesce_read_bounds(next, &p->second) || p->first.lower || p->first.step != 1 || p->second.lower ||
      p->second.step != 1 || p->second.trips < 2 || p->first.trips % p->second.trips ||
      !read_instrs(run, loop, &p->of_first) || !read_instrs(run, next, &p->of_second) || !is_beside(p))
    return;
  p->each = p->first.trips / p->second.trips;
  if (has_products(&p->of_second) || !is_reader(p) || !is_safe(p))
    return;
  times(p, &apart, &together);
  if (together * 100 > apart * (100 - SAVING_LEAST))
    return;
  struct remark *m =
      pass_remark(run, next, RULE_FOLLOW,
                  "%" PRId64 " rounds of the loop before, which writes what this one reads, come in each round: about "
                  "%.1f us instead of %.1f",
                  p->each, together / 1000, apart / 1000);
  remark_cost(m, "about %.1f us", together / 1000);
  remark_reject_for(m, "one loop after the other", NULL, arena_printf(run->arena, "about %.1f us", apart / 1000),
                    "the second one would wait until the first one has ended");
  join(p);
}
