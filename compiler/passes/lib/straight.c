/* straight: see the header. */
#include "passes/lib/straight.h"

#include <math.h>
#include <string.h>

#include "base/array.h"
#include "base/buf.h"
#include "base/index.h"
#include "base/table.h"
#include "ir/query.h"
#include "passes/lib/box.h"
#include "passes/lib/buffers.h"
#include "passes/lib/busy.h"
#include "passes/lib/descriptors.h"
#include "passes/lib/round.h"
#include "sim/cost.h"

enum { SWEEPS = 3 };
static const double LATER = 1e-3; /* how much the mean end counts beside the last one */

/* ---- reading ----------------------------------------------------------------------------------------------------- */

/* What a step reads or writes. */
struct part {
  struct box box;
  bool writes;
  enum mem_space space;
  int64_t from, to; /* its bytes in each partition, of a buffer that has a place; else both are 0 */
};

struct reader {
  struct arena *arena;
  struct straight *out;
  struct {
    struct part *v;
    int n, cap;
  } parts;
  int first[STRAIGHT_MAX + 1]; /* parts of each step */
  struct roots {
    uint64_t used,
        written; /* a bit for each buffer, by its hash; all bits if one has a place, which others may have, too */
  } roots[STRAIGHT_MAX]; /* of each step */
  struct table written;  /* root in HBM -> itself */
};

static struct part part_of(const struct nisa_access *x, bool writes, enum target t) {
  struct part p = {.box = box_of(x), .writes = writes, .space = nisa_access_space(x)};
  MlirValue root = buffer_root(x->base);
  MlirOperation alloc = ir_defining_op(root);
  struct nisa_place place;
  if (mem_is_on_chip(p.space) && !mlirOperationIsNull(alloc) && ir_is(alloc, "nisa.alloc") &&
      nisa_place_of(alloc, &place)) {
    p.from = place.bank * nisa_machine(t)->psum_bank_bytes + place.offset;
    p.to = p.from + nisa_type_bytes(mlirValueGetType(root));
  }
  return p;
}

/* Two buffers at the same place are one. */
static bool parts_meet(const struct part *x, const struct part *y) {
  if (!x->writes && !y->writes)
    return false;
  return x->box.root == y->box.root ? box_meets(&x->box, &y->box)
                                    : x->space == y->space && x->from < y->to && y->from < x->to;
}

static bool is_on_chip(const struct nisa_access *x) {
  return mem_is_on_chip(nisa_access_space(x));
}

/* The shortest time of a transfer's bytes, on all DMA engines. */
static double work_of(const struct nisa_instr *in, int64_t descriptors, enum target t) {
  const struct nisa_access *dst = &in->operand[0];
  const double engines = (double)sim_constant(SIM_DMA_ENGINES, t);
  const double bytes =
      (double)(nisa_partitions(dst) * nisa_free_elements(dst)) * (double)nisa_element_bytes(nisa_access_element(dst));
  const double each = (double)sim_constant_ps(SIM_DMA_DESCRIPTOR, t) / 1e3,
               rate = (double)sim_constant(SIM_DMA_RATE, t);
  const double alone = (double)descriptors * each / engines + bytes / engines * 1e3 / rate;
  const double shared = bytes / (double)sim_constant(SIM_PEAK_HBM, t);
  const double ns = alone > shared ? alone : shared;
  return in->def->kind == NISA_DMA_TRANSPOSE ? ns * 100 / (double)sim_constant(SIM_TRANSPOSE_HBM, t) : ns;
}

/* Every step is played a thousand times, so what the table of costs says of a transfer is read once. */
static const struct straight_start *starts_of(struct arena *a, int64_t descriptors, enum target t) {
  static const enum nisa_engine engines[] = {NISA_ENGINE_SYNC, NISA_ENGINE_SCALAR, NISA_ENGINE_GPSIMD};
  struct straight_start *all = arena_new_array(a, struct straight_start, NISA_ENGINE_COUNT);
  const struct sim_dma_cost d = {.descriptors = descriptors};
  for (size_t k = 0; k < sizeof engines / sizeof *engines; k++) {
    const struct sim_trigger_cost c = sim_trigger_cost(&d, engines[k], t);
    all[engines[k]] = (struct straight_start){(double)c.build / 1e3, (double)c.hold / 1e3, (double)c.start / 1e3};
  }
  return all;
}

static bool read_transfer(struct reader *r, const struct nisa_instr *in, struct straight_step *s) {
  const struct nisa_access *dst = &in->operand[0], *src = nisa_operand(in, "src");
  const enum target t = r->out->target;

  if ((in->def->kind != NISA_DMA_COPY && in->def->kind != NISA_DMA_TRANSPOSE) || is_on_chip(dst) == is_on_chip(src))
    return false;
  s->is_transfer = true;
  s->is_load = is_on_chip(dst);
  s->engine = s->is_load ? NISA_ENGINE_SYNC : NISA_ENGINE_GPSIMD;
  s->descriptors =
      in->def->kind == NISA_DMA_TRANSPOSE && s->is_load ? descriptors_of_transpose(dst, src) : descriptors_of(dst, src);
  s->work = work_of(in, s->descriptors, t);
  s->supply = (double)(s->descriptors * sim_constant_ps(SIM_DMA_SUPPLY, t)) / 1e3;
  s->start = starts_of(r->arena, s->descriptors, t);
  r->out->n_transfers++;
  return true;
}

/* Adds a step with its parts; false if the model does not know it. */
static bool read_step(struct reader *r, MlirOperation op) {
  struct straight *out = r->out;
  struct nisa_instr in;

  if (out->n == STRAIGHT_MAX || !nisa_read(op, &in, NULL) || nisa_keeps_order(op) || mlirOperationGetNumResults(op))
    return false;
  struct straight_step *s = &out->steps[out->n];
  *s = (struct straight_step){.op = op, .engine = in.engine};
  for (int e = 0; e < NISA_ENGINE_COUNT; e++)
    s->on[e] = -1;
  if (in.engine == NISA_ENGINE_DMA) {
    if (!read_transfer(r, &in, s))
      return false;
  } else if (in.engine == NISA_ENGINE_NONE || in.engine == NISA_ENGINE_SYNC) {
    return false;
  } else {
    s->on[in.engine] = busy_ns(&in, in.engine, out->target);
    s->needs_table = in.def->kind == NISA_ACTIVATION;
  }
  struct roots *roots = &r->roots[out->n];
  r->first[out->n++] = r->parts.n;
  for (int k = 0; k < in.def->n_operands; k++) {
    const struct nisa_operand_def *d = &in.def->operand[k];
    const struct nisa_access *x = &in.operand[k];
    if (!nisa_is_data(x) || (!d->reads && !d->writes))
      continue;
    const struct part p = part_of(x, d->writes, out->target);
    array_push(r->arena, &r->parts, p);
    const uint64_t bits = p.from < p.to ? UINT64_MAX : (uint64_t)1 << hash_pointer(p.box.root) % 64;
    roots->used |= bits;
    roots->written |= d->writes ? bits : 0;
    if (d->writes && !is_on_chip(x))
      table_put(&r->written, p.box.root, r);
  }
  r->first[out->n] = r->parts.n;
  return true;
}

static bool steps_meet(const struct reader *r, int x, int y) {
  if (!(r->roots[x].used & r->roots[y].written) && !(r->roots[x].written & r->roots[y].used))
    return false;
  for (int i = r->first[x]; i < r->first[x + 1]; i++)
    for (int k = r->first[y]; k < r->first[y + 1]; k++)
      if (parts_meet(&r->parts.v[i], &r->parts.v[k]))
        return true;
  return false;
}

enum { WORDS = STRAIGHT_MAX / 64 };

/* The steps that a step waits for, but not those that these wait for anyway. */
static void find_waits(struct reader *r) {
  struct straight *out = r->out;
  uint64_t after[STRAIGHT_MAX][WORDS] = {{0}};

  out->waits = arena_new_array(r->arena, int, (size_t)out->n *(size_t)out->n / 2 + 1);
  for (int x = 0; x < out->n; x++) {
    out->steps[x].first_wait = out->n_waits;
    for (int y = x - 1; y >= 0; y--) {
      if (after[x][y / 64] >> y % 64 & 1 || !steps_meet(r, x, y))
        continue;
      out->waits[out->n_waits++] = y;
      after[x][y / 64] |= (uint64_t)1 << y % 64;
      for (int w = 0; w < WORDS; w++)
        after[x][w] |= after[y][w];
    }
    out->steps[x].n_waits = out->n_waits - out->steps[x].first_wait;
  }
}

/* A load of what the block writes is no load that may begin at any time. */
static bool loads_are_free(const struct reader *r) {
  for (int s = 0; s < r->out->n; s++)
    for (int k = r->first[s]; r->out->steps[s].is_load && k < r->first[s + 1]; k++)
      if (!r->parts.v[k].writes && table_get(&r->written, r->parts.v[k].box.root))
        return false;
  return true;
}

bool straight_read(struct arena *a, MlirBlock block, enum target t, struct straight *out) {
  struct reader r = {.arena = a, .out = out, .written = {.arena = a}};
  *out = (struct straight){.target = t, .steps = arena_new_array(a, struct straight_step, STRAIGHT_MAX)};
  for (MlirOperation op = mlirBlockGetFirstOperation(block); !mlirOperationIsNull(op);
       op = mlirOperationGetNextInBlock(op)) {
    const struct nisa_op_def *def = nisa_op_of(op);
    if (mlirOperationGetNumRegions(op))
      return false;
    if (def && def->kind != NISA_ALLOC && def->kind != NISA_RELEASE && !read_step(&r, op))
      return false;
  }
  find_waits(&r);
  return loads_are_free(&r);
}

/* ---- playing ------------------------------------------------------------------------------------------------------ */

struct machine {
  double free[NISA_ENGINE_COUNT];     /* when each engine can go on */
  double queue[NISA_ENGINE_COUNT][2]; /* the end of the last load and store that each engine has started */
  double dma, built, computed;        /* the DMA engines; descriptors; the last that GpSimd computed */
  double last, sum;                   /* of all ends */
  double busy;                        /* of the Tensor engine, in the first window of its clock */
  bool has_table;
};

/* Constants of the target, in ns. */
struct times {
  double dma_end, signal_dma, table_load;
  double window, window_busy;      /* of the Tensor engine's clock, and how much of one brings it to its full clock */
  double delay[NISA_ENGINE_COUNT]; /* from the end of what an engine computes to what waits for it */
};

static double ns_of(enum sim_constant c, enum target t) {
  return (double)sim_constant_ps(c, t) / 1e3;
}

static struct times times_of(enum target t) {
  struct times out = {
      .dma_end = ns_of(SIM_DMA_END, t),
      .signal_dma = ns_of(SIM_SIGNAL_DMA, t),
      .table_load = ns_of(SIM_TABLE_LOAD, t),
      .window = ns_of(SIM_TENSOR_WINDOW, t),
      .window_busy = ns_of(SIM_TENSOR_WINDOW, t) * (double)sim_constant(SIM_TENSOR_UP, t) / 100,
  };
  for (int e = 0; e < NISA_ENGINE_COUNT; e++)
    out.delay[e] = round_delay_ns((enum nisa_engine)e);
  return out;
}

static double latest(double x, double y) {
  return x > y ? x : y;
}

static void play_transfer(const struct times *t, struct machine *m, struct straight_step *x, double ready) {
  const struct straight_start *c = &x->start[x->engine];
  const bool is_built = x->engine == NISA_ENGINE_GPSIMD;
  double at = latest(m->free[x->engine], ready);

  if (is_built) {
    m->built = latest(m->built, m->computed) + c->build;
    at = latest(at, m->built);
  }
  m->free[x->engine] = at + c->hold;
  const double first = at + c->first;
  m->dma = latest(m->dma, first) + x->work;
  const double last = latest(m->dma, is_built ? 0 : first + x->supply) + t->dma_end;
  double *queue = &m->queue[x->engine][x->is_load];
  *queue = latest(*queue, last);
  x->end = *queue + (x->is_load ? t->signal_dma : 0);
}

/* When a product is done that takes `work` at the full clock.  The Tensor engine has half of it in the first window of its clock, and in the
 * second one if it was not busy for most of the first. */
static double play_product(const struct times *t, struct machine *m, double at, double work) {
  const double half = at + 2 * work;

  if (at < t->window) {
    m->busy += (half < t->window ? half : t->window) - at;
    if (half <= t->window)
      return half;
    work -= (t->window - at) / 2;
    at = t->window;
  }
  return at + (at < 2 * t->window && m->busy < t->window_busy ? 2 * work : work);
}

static void play_instruction(const struct times *t, struct machine *m, struct straight_step *x, double ready) {
  if (x->needs_table && !m->has_table) {
    m->has_table = true;
    m->free[x->engine] += t->table_load;
  }
  const double at = latest(m->free[x->engine], ready), hold = x->on[x->engine];
  m->free[x->engine] = x->engine == NISA_ENGINE_TENSOR ? play_product(t, m, at, hold) : at + hold;
  x->end = m->free[x->engine] + t->delay[x->engine];
  if (x->engine == NISA_ENGINE_GPSIMD)
    m->computed = m->free[x->engine];
}

/* Plays step k; the machine is as the steps before leave it. */
static void play_step(struct straight *s, const struct times *t, struct machine *m, int k) {
  struct straight_step *x = &s->steps[k];
  double ready = 0;
  for (const int *w = s->waits + x->first_wait, *end = w + x->n_waits; w < end; w++)
    ready = latest(ready, s->steps[*w].end);
  if (x->is_transfer)
    play_transfer(t, m, x, ready);
  else
    play_instruction(t, m, x, ready);
  m->last = latest(m->last, x->end);
  m->sum += x->end;
}

/* Plays the steps from `first` on.  Returns at least `best` as soon as it cannot be less. */
static double play_from(struct straight *s, const struct times *t, struct machine m, int first, double best) {
  for (int k = first; k < s->n && m.last < best; k++)
    play_step(s, t, &m, k);
  return m.last + m.sum / s->n * LATER;
}

double straight_play(struct straight *s) {
  const struct times t = times_of(s->target);
  return s->n ? play_from(s, &t, (struct machine){.last = 0}, 0, INFINITY) : 0;
}

/* ---- choosing ----------------------------------------------------------------------------------------------------- */

static bool may_be_on(const struct straight_step *x, enum nisa_engine e) {
  return x->is_transfer ? e == NISA_ENGINE_SYNC || e == NISA_ENGINE_SCALAR || e == NISA_ENGINE_GPSIMD : x->on[e] >= 0;
}

/* Moves steps one by one to another engine while the program ends earlier then. */
static double descend(struct straight *s, bool computes) {
  const struct times t = times_of(s->target);
  double best = straight_play(s);
  bool is_better = true;
  int changed = s->n; /* the last step that was moved; those after it were tried with the engines that all have now */

  for (int sweep = 0; sweep < SWEEPS && is_better; sweep++) {
    struct machine m = {.last = 0};
    const int tried = changed;
    is_better = false;
    for (int k = 0; k < s->n && (is_better || k <= tried); k++) {
      struct straight_step *x = &s->steps[k];
      for (enum nisa_engine e = NISA_ENGINE_NONE + 1; e < NISA_ENGINE_COUNT; e++) {
        const enum nisa_engine was = x->engine;
        if (e == was || !may_be_on(x, e) || (!computes && !x->is_transfer))
          continue;
        x->engine = e;
        const double ns = play_from(s, &t, m, k, best);
        if (ns < best) {
          best = ns;
          is_better = true;
          changed = k;
        } else {
          x->engine = was;
        }
      }
      play_step(s, &t, &m, k);
    }
  }
  return best;
}

/* ---- what was chosen before --------------------------------------------------------------------------------------- */

/* The stages after a program was timed choose for it again, and find the same: what the choice depends on, and the engines. */
struct chosen {
  struct buf key;
  enum nisa_engine engines[STRAIGHT_MAX];
};
enum { CHOSEN_KEPT = 4, KEY_MAX = 1 << 20 };

/* Writes all that a choice depends on; what the engines take to start a transfer follows from its descriptors. */
static void put_key(struct buf *key, const struct straight *s, bool computes) {
  buf_printf(key, "%d %d", (int)s->target, computes);
  for (int k = 0; k < s->n; k++) {
    const struct straight_step *x = &s->steps[k];
    const int64_t of[] = {x->engine, x->is_transfer, x->is_load, x->needs_table, x->descriptors, x->n_waits};
    buf_append(key, of, sizeof of);
    buf_append(key, x->on, sizeof x->on);
    buf_append(key, &x->work, sizeof x->work);
    buf_append(key, &x->supply, sizeof x->supply);
    buf_append(key, s->waits + x->first_wait, (size_t)x->n_waits * sizeof *s->waits);
  }
}

static bool is_same(const struct buf *x, const struct buf *y) {
  return x->len == y->len && !memcmp(buf_text(x), buf_text(y), x->len);
}

/* Descends from how it is, and from where one engine starts all loads and another one all stores. */
static void search(struct straight *s, bool computes) {
  static const enum nisa_engine starts[][2] = {{NISA_ENGINE_SYNC, NISA_ENGINE_SCALAR},
                                               {NISA_ENGINE_SYNC, NISA_ENGINE_GPSIMD}};
  enum nisa_engine first[STRAIGHT_MAX], chosen[STRAIGHT_MAX] = {NISA_ENGINE_NONE};
  double best = -1;

  for (int k = 0; k < s->n; k++)
    first[k] = s->steps[k].engine;
  for (int start = -1; start < (int)(sizeof starts / sizeof *starts); start++) {
    bool is_new = start < 0;
    for (int k = 0; k < s->n; k++) {
      const bool is_store = !s->steps[k].is_load;
      s->steps[k].engine = start >= 0 && s->steps[k].is_transfer ? starts[start][is_store] : first[k];
      is_new |= s->steps[k].engine != first[k];
    }
    if (!is_new) /* it is how it was */
      continue;
    const double ns = descend(s, computes);
    if (best >= 0 && ns >= best)
      continue;
    best = ns;
    for (int k = 0; k < s->n; k++)
      chosen[k] = s->steps[k].engine;
  }
  for (int k = 0; k < s->n; k++)
    s->steps[k].engine = chosen[k];
}

static double choose(struct straight *s, bool computes) {
  static _Thread_local struct chosen kept[CHOSEN_KEPT];
  static _Thread_local int next;
  struct buf key;

  buf_init(&key, KEY_MAX);
  put_key(&key, s, computes);
  int k = 0;
  while (k < CHOSEN_KEPT && !is_same(&kept[k].key, &key))
    k++;
  if (k < CHOSEN_KEPT && key.len) {
    for (int i = 0; i < s->n; i++)
      s->steps[i].engine = kept[k].engines[i];
    buf_clear(&key);
    return straight_play(s);
  }
  search(s, computes);
  buf_clear(&kept[next].key);
  kept[next].key = key;
  for (int i = 0; i < s->n; i++)
    kept[next].engines[i] = s->steps[i].engine;
  next = (next + 1) % CHOSEN_KEPT;
  return straight_play(s);
}

double straight_choose(struct straight *s) {
  return choose(s, true);
}

double straight_choose_starters(struct straight *s) {
  return choose(s, false);
}
