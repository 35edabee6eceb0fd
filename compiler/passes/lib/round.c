/* round: how long a round of a loop takes, when the rounds before and after it run at the same time.
 *
 * Each engine executes its instructions in the order of the program, round after round, as soon as their operands are
 * there.  An instruction waits for the writers of what it reads; and for the readers of what it overwrites, which with
 * several copies of a buffer are those of an earlier round.  In a loop of products Tensor is ahead of what moves them out of
 * PSUM.  Rounds are taken to use different parts of what is in HBM; in a single round what reads a buffer there waits for its
 * writers, and writers for nobody.  So an engine that has the first and the last step of a
 * round begins a round only after the one before has ended, however little it does in between.  Some rounds are played
 * through; the time between the ends of the last ones is the answer, at least that of the busiest engine. */
#include <string.h>

#include "base/array.h"
#include "ir/query.h"
#include "passes/lib/busy.h"
#include "passes/lib/round.h"

enum { ROUNDS = 6, SETTLED = 3, COPIES = 2, COPIES_DMA = 3, DEPTH_MAX = 3, LANES = NISA_ENGINE_COUNT + 1 };
/* A loop of products and of what moves them out of PSUM: in so many parts, of which Tensor is at most so many ahead. */
enum { PRODUCT_PARTS = 4, PRODUCT_AHEAD = 2 };
enum { LANE_STORES = NISA_ENGINE_COUNT }; /* stores have queues of their own */

double round_delay_ns(enum nisa_engine e) {
  switch (e) {
  case NISA_ENGINE_TENSOR:
    return 200;
  case NISA_ENGINE_DMA:
    return 2300;
  default:
    return 130;
  }
}

/* ---- the body ---------------------------------------------------------------------------------------------------- */

static struct round_step *add_step(struct round *r, enum nisa_engine e) {
  const struct round_step s = {.engine = e, .first_use = r->uses.n};
  array_push(r->arena, &r->steps, s);
  return &r->steps.v[r->steps.n - 1];
}

static int number_of(struct round *r, MlirValue v) {
  const char *known = table_get(&r->by_value, v.ptr);
  if (known)
    return (int)(known - (const char *)r) - 1;
  MlirOperation def = ir_defining_op(v);
  const struct round_buffer b = {.is_own = !mlirOperationIsNull(def) && ir_is(def, "nisa.alloc") &&
                                           mlirBlockEqual(mlirOperationGetBlock(def), r->block)};
  array_push(r->arena, &r->buffers, b);
  table_put(&r->by_value, v.ptr, (char *)r + r->buffers.n);
  return r->buffers.n - 1;
}

/* True if the access is to another place in each round: an index is the counter, or computed in the round. */
static bool goes_on(const struct round *r, const struct nisa_access *x) {
  for (int k = 0; k < x->n_indices; k++) {
    MlirOperation def = ir_defining_op(x->indices[k]);
    if (mlirOperationIsNull(def)
            ? mlirBlockEqual(mlirBlockArgumentGetOwner(x->indices[k]), r->block)
            : mlirBlockEqual(mlirOperationGetBlock(def), r->block) && !ir_is(def, "arith.constant"))
      return true;
  }
  return false;
}

/* Notes what an instruction, which is the last step or is inside of it, reads and writes. */
static void add_uses(struct round *r, const struct nisa_instr *in) {
  struct round_step *s = &r->steps.v[r->steps.n - 1];
  for (int k = 0; k < in->def->n_operands; k++) {
    const struct nisa_operand_def *d = &in->def->operand[k];
    if (nisa_is_absent(&in->operand[k]) || nisa_is_scalar(&in->operand[k]) || (!d->reads && !d->writes))
      continue;
    const bool is_far = !mem_is_on_chip(nisa_access_space(&in->operand[k]));
    if (is_far && r->trips > 1)
      continue;
    const struct round_use u = {number_of(r, in->operand[k].base), d->writes, is_far};
    r->buffers.v[u.buffer].engines |= 1u << in->engine;
    r->buffers.v[u.buffer].is_fixed |= !goes_on(r, &in->operand[k]);
    array_push(r->arena, &r->uses, u);
    s->n_uses++;
  }
}

struct round_load round_total(const struct round *r) {
  struct round_load sum = {{0}};
  for (int i = 0; i < r->steps.n; i++)
    for (int e = 0; e < NISA_ENGINE_COUNT; e++)
      sum.on[e] += r->steps.v[i].load.on[e];
  return sum;
}

int64_t round_trips(MlirOperation loop) {
  int64_t lower, upper, step;
  if (!ir_is(loop, "scf.for") || !ir_int_constant(mlirOperationGetOperand(loop, 0), &lower) ||
      !ir_int_constant(mlirOperationGetOperand(loop, 1), &upper) ||
      !ir_int_constant(mlirOperationGetOperand(loop, 2), &step) || step <= 0 || upper <= lower)
    return 1;
  return (upper - lower - 1) / step + 1;
}

/* How often the body runs in a row, 0 if it is in no loop: a loop that starts again overlaps with itself, too. */
static int64_t all_trips(MlirOperation op) {
  int64_t n = 0;
  for (int depth = 0; depth < DEPTH_MAX && !mlirOperationIsNull(op); depth++, op = mlirOperationGetParentOperation(op))
    if (ir_is(op, "scf.for"))
      n = (n ? n : 1) * round_trips(op);
  return n;
}

struct round round_of(struct arena *a, MlirOperation op, MlirBlock block) {
  return (struct round){
      .arena = a, .by_value = {.arena = a}, .block = block, .trips = ir_is(op, "func.func") ? 1 : all_trips(op)};
}

/* How long starting a load keeps the engine that starts it; 0 for other instructions. */
static double load_trigger_ns(const struct nisa_instr *in, enum target t) {
  if (in->engine != NISA_ENGINE_DMA || !mem_is_on_chip(nisa_access_space(&in->operand[0])))
    return 0;
  return busy_trigger_ns(NISA_ENGINE_SYNC, nisa_partitions(&in->operand[0]), t);
}

struct round_step *round_add_instruction(struct round *r, const struct nisa_instr *in, enum target t) {
  struct round_step *s = add_step(r, in->engine);
  s->load.on[in->engine] = busy_ns(in, in->engine, t);
  s->trigger[NISA_ENGINE_SYNC] = load_trigger_ns(in, t);
  if (in->engine == NISA_ENGINE_DMA && !mem_is_on_chip(nisa_access_space(&in->operand[0]))) {
    const int64_t descriptors = nisa_partitions(nisa_operand(in, "src")); /* at least */
    s->is_store = true;
    for (enum nisa_engine e = NISA_ENGINE_SCALAR; e <= NISA_ENGINE_GPSIMD; e++)
      s->trigger[e] = busy_trigger_ns(e, descriptors, t);
  }
  add_uses(r, in);
  return s;
}

static bool is_instruction(MlirOperation op, void *user) {
  (void)user;
  return nisa_op_of(op);
}

void round_add_inside(struct round *r, MlirOperation op, const struct round_load *inner, enum target t) {
  const double trips = (double)round_trips(op);
  struct round_step *s = add_step(r, NISA_ENGINE_NONE);
  struct nisa_instr in;

  for (int e = 0; e < NISA_ENGINE_COUNT; e++)
    s->load.on[e] = inner->on[e] * trips;
  const struct ir_ops all = ir_collect(r->arena, op, is_instruction, NULL);
  for (int k = 0; k < all.n; k++)
    if (nisa_read(all.v[k], &in, NULL)) {
      s->trigger[NISA_ENGINE_SYNC] += load_trigger_ns(&in, t) * trips;
      add_uses(r, &in);
    }
}

/* ---- playing rounds ---------------------------------------------------------------------------------------------- */

/* Of each buffer when it was written last, and when each of its copies was used last. */
struct play {
  const struct round *r;
  enum nisa_engine starts_stores;
  double share; /* of what starting a load takes: engines that compute nothing start some */
  double lanes[LANES];
  double *written, (*used)[COPIES_DMA];
};

/* True if each round has a place of its own: the buffer is made in it, or longer and every access goes on with the rounds. */
static bool is_apart(const struct round_buffer *b) {
  return b->is_own || !b->is_fixed;
}

static int copy_of(const struct round_buffer *b, int round) {
  return !is_apart(b) ? 0 : round % (b->engines & 1u << NISA_ENGINE_DMA ? COPIES_DMA : COPIES);
}

static double larger(double x, double y) {
  return x > y ? x : y;
}

/* When the step may begin.  The engine that starts a store waits for the data first. */
static double begin_of(struct play *p, const struct round_step *s, int round) {
  double at = 0;
  for (int k = s->first_use; k < s->first_use + s->n_uses; k++) {
    const struct round_use *u = &p->r->uses.v[k];
    if (!u->writes || !u->is_far)
      at = larger(at, p->written[u->buffer]);
    if (u->writes && !u->is_far)
      at = larger(at, p->used[u->buffer][copy_of(&p->r->buffers.v[u->buffer], round)]);
  }
  if (round_is_product(s))
    return at;
  for (int e = 0; e < NISA_ENGINE_COUNT; e++)
    if (s->load.on[e] > 0 && !s->is_store)
      at = larger(at, p->lanes[e]);
  if (p->r->trips == 1 && s->engine == NISA_ENGINE_DMA && !s->is_store)
    at = p->lanes[NISA_ENGINE_SYNC] = larger(at, p->lanes[NISA_ENGINE_SYNC]) + s->trigger[NISA_ENGINE_SYNC] * p->share;
  if (!s->is_store)
    return at;
  p->lanes[p->starts_stores] = larger(at, p->lanes[p->starts_stores]) + s->trigger[p->starts_stores];
  return larger(p->lanes[p->starts_stores], p->lanes[LANE_STORES]);
}

bool round_is_product(const struct round_step *s) {
  return s->engine == NISA_ENGINE_NONE && s->load.on[NISA_ENGINE_TENSOR] > 0;
}

double round_play_product(const struct round_step *s, double ready, double *lanes) {
  const double tensor = s->load.on[NISA_ENGINE_TENSOR], begin = larger(ready, lanes[NISA_ENGINE_TENSOR]);
  double last = begin + tensor;

  lanes[NISA_ENGINE_TENSOR] = last;
  for (int e = 0; e < NISA_ENGINE_COUNT; e++) {
    const double takes = s->load.on[e];
    if (e == NISA_ENGINE_TENSOR || takes <= 0)
      continue;
    /* the first part is there when a part of the products is, and the last part follows the last product */
    const double end =
        larger(larger(begin + tensor / PRODUCT_PARTS, lanes[e]) + takes, begin + tensor + takes / PRODUCT_PARTS);
    lanes[NISA_ENGINE_TENSOR] = larger(lanes[NISA_ENGINE_TENSOR], end - takes * PRODUCT_AHEAD / PRODUCT_PARTS);
    lanes[e] = end;
    last = larger(last, end);
  }
  return last;
}

/* Writes of own buffers begin a new round of them, so what was written in the round before does not count. */
static void play_step(struct play *p, const struct round_step *s, int round, double *end) {
  const double begin = begin_of(p, s, round);
  double done = begin;

  if (round_is_product(s))
    done = round_play_product(s, begin, p->lanes) + round_delay_ns(NISA_ENGINE_TENSOR);
  for (int e = 0; e < NISA_ENGINE_COUNT && !round_is_product(s); e++)
    if (s->load.on[e] > 0) {
      p->lanes[s->is_store ? LANE_STORES : e] = begin + s->load.on[e];
      done = larger(done, begin + s->load.on[e] + round_delay_ns((enum nisa_engine)e));
    }
  if (p->r->trips == 1 && s->engine == NISA_ENGINE_NONE && s->trigger[NISA_ENGINE_SYNC] > 0) {
    p->lanes[NISA_ENGINE_SYNC] += s->trigger[NISA_ENGINE_SYNC] * p->share;
    done = larger(done, p->lanes[NISA_ENGINE_SYNC] + round_delay_ns(NISA_ENGINE_DMA));
  }
  for (int k = s->first_use; k < s->first_use + s->n_uses; k++) {
    const struct round_use *u = &p->r->uses.v[k];
    double *used = &p->used[u->buffer][copy_of(&p->r->buffers.v[u->buffer], round)];
    *used = larger(*used, done);
    if (u->writes)
      p->written[u->buffer] = done;
  }
  *end = larger(*end, done);
}

/* As engine-programs chooses it: one that computes nothing, or else has less to do. */
static enum nisa_engine starter_of(const struct round *r, const struct round_load *l) {
  double scalar = l->on[NISA_ENGINE_SCALAR], build = 0;
  const double gpsimd = l->on[NISA_ENGINE_GPSIMD];
  if (gpsimd <= 0 || scalar <= 0)
    return gpsimd <= 0 ? NISA_ENGINE_GPSIMD : NISA_ENGINE_SCALAR;
  for (int i = 0; i < r->steps.n; i++) {
    scalar += r->steps.v[i].trigger[NISA_ENGINE_SCALAR];
    build += r->steps.v[i].trigger[NISA_ENGINE_GPSIMD];
  }
  return gpsimd > build && scalar < gpsimd + build ? NISA_ENGINE_SCALAR : NISA_ENGINE_GPSIMD;
}

double round_share_of_loads(const struct round_load *total) {
  return total->on[NISA_ENGINE_SCALAR] > 0 ? 1 : 0.5;
}

double round_ns(struct round *r) {
  const size_t n = (size_t)r->buffers.n;
  const struct round_load total = round_total(r);
  struct play p = {.r = r, .starts_stores = starter_of(r, &total), .share = round_share_of_loads(&total)};
  double end[ROUNDS] = {0}, least = 0;

  if (!r->times)
    r->times = arena_new_array(r->arena, double, n * (1 + COPIES_DMA) + 1);
  memset(r->times, 0, n * (1 + COPIES_DMA) * sizeof *r->times);
  p.written = r->times;
  p.used = (double (*)[COPIES_DMA])(r->times + n);
  const int rounds = r->trips < ROUNDS ? (int)r->trips : ROUNDS;
  for (int round = 0; round < rounds; round++) {
    for (int k = 0; k < r->buffers.n; k++)
      if (is_apart(&r->buffers.v[k]))
        p.written[k] = 0;
    for (int i = 0; i < r->steps.n; i++)
      play_step(&p, &r->steps.v[i], round, &end[round]);
  }
  if (rounds < ROUNDS)
    return end[rounds - 1] / rounds;
  for (int e = 0; e < NISA_ENGINE_COUNT; e++)
    least = larger(least, total.on[e]);
  return larger(least, (end[ROUNDS - 1] - end[ROUNDS - 1 - SETTLED]) / SETTLED);
}
