/* advice: what costs time, in words.
 *
 * The critical path is summed by instruction and by what it waits for, equal instructions of a line together; each sum that
 * is worth a line becomes a sentence.
 * What a change would save is computed from the cost model, with everything else as it is, so it is a bound.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/index.h"
#include "sim/dma.h"
#include "sim/profile_internal.h"

enum { ADVICE_MAX = 24, GOOD_DESCRIPTOR = 2048, PERMILLE_MIN = 5 /* of the total: less is not worth a line */ };

struct sums {
  int64_t ps[SIM_WAIT_COUNT]; /* of the path */
  int64_t cause_ps, cause; /* of waits for data or memory: the instruction that caused most of one wait, and how long */
  int64_t executions, trigger_ps, build_ps, table_ps;
  int64_t half_ps;
};

struct advice_list {
  struct arena *arena;
  const struct sim_timeline *timeline;
  struct {
    struct sim_advice *v;
    int n, cap;
  } list;
};

static bool same_line(const struct src_loc *x, const struct src_loc *y) {
  if (!x || !y)
    return x == y;
  return x->range.line == y->range.line && !strcmp(x->range.file, y->range.file);
}

/* Transfers of one line may have different sizes and be several subjects; a sentence that does not speak of sizes is one
 * for all of them. */
static void add(struct advice_list *l, const struct sim_instr *i, int64_t cost, enum sim_confidence c,
                const char *text) {
  const struct src_loc *loc = i ? i->loc : NULL;
  for (int k = 0; cost > 0 && k < l->list.n; k++) {
    struct sim_advice *x = &l->list.v[k];
    if (strcmp(x->text, text) != 0 || !same_line(x->loc, loc))
      continue;
    x->cost_ps += cost;
    x->confidence = c < x->confidence ? c : x->confidence;
    return;
  }
  if (cost > 0)
    array_push(l->arena, &l->list, (struct sim_advice){text, loc, cost, c});
}

/* Drops what is not worth a line. */
static void drop_small(struct advice_list *l) {
  int n = 0;
  for (int k = 0; k < l->list.n; k++)
    if (l->list.v[k].cost_ps * 1000 >= l->timeline->total_ps * PERMILLE_MIN)
      l->list.v[n++] = l->list.v[k];
  l->list.n = n;
}

static double us(int64_t ps) {
  return (double)ps / 1e6;
}

static int line_of(const struct sim_instr *i) {
  return i->loc ? i->loc->range.line : 0;
}

/* "the tensor_reduce_arith of line 12" */
static const char *who(struct arena *a, const struct sim_instr *i) {
  return line_of(i) ? arena_printf(a, "%s of line %d", i->def->name, line_of(i)) : i->def->name;
}

/* A transfer's shortest time if its descriptors had GOOD_DESCRIPTOR bytes. */
static int64_t with_good_descriptors(const struct sim_timeline *t, const struct sim_dma_cost *d) {
  const int64_t per_kb = (int64_t)GOOD_DESCRIPTOR * 1000000 / sim_constant(SIM_DMA_CAP, t->target);
  const int64_t unit = d->bytes / (d->units ? d->units : 1) * per_kb / GOOD_DESCRIPTOR;
  struct sim_dma_cost good = *d;
  good.unit_ps = unit < d->unit_ps ? unit : d->unit_ps;
  return sim_dma_work(&good, 0);
}

static const char *bytes_text(struct arena *a, int64_t bytes) {
  return bytes % 1024 ? arena_printf(a, "%" PRId64 " bytes", bytes) : arena_printf(a, "%" PRId64 " KiB", bytes / 1024);
}

/* "the 3 products", "the product". */
static const char *counted(struct arena *a, int64_t n, const char *one, const char *many) {
  return n == 1 ? arena_printf(a, "the %s", one) : arena_printf(a, "the %" PRId64 " %s", n, many);
}

static void about_transfer(struct advice_list *l, const struct sim_instr *i, const struct sim_cost *c,
                           const struct sums *s) {
  const struct sim_dma_cost *d = &c->dma;
  const int64_t now = sim_dma_work(d, 0), good = with_good_descriptors(l->timeline, d);
  const char *transfers = counted(l->arena, s->executions, "DMA transfer moves", "DMA transfers move");
  if (d->descriptor_bytes < GOOD_DESCRIPTOR && good * 10 < now * 9) {
    const int64_t all = now * s->executions, path = s->ps[SIM_WAIT_WORK] + s->ps[SIM_WAIT_DMA_BUSY];
    const int64_t saved = (all < path ? all : path) / 1000 * ((now - good) * 1000 / now);
    add(l, i, saved, c->confidence,
        arena_printf(l->arena, "%s %s per descriptor: %.1f us; %s would take %.1f us", transfers,
                     bytes_text(l->arena, d->descriptor_bytes), us(all), bytes_text(l->arena, GOOD_DESCRIPTOR),
                     us(good * s->executions)));
  }
  if (d->units < SIM_DMA_RINGS)
    add(l, i, s->ps[SIM_WAIT_WORK] / SIM_DMA_RINGS * (SIM_DMA_RINGS - d->units), c->confidence,
        arena_printf(l->arena, "%s %s by %" PRId64 " of 16 DMA engines", transfers, bytes_text(l->arena, d->bytes),
                     d->units));
  add(l, i, s->ps[SIM_WAIT_WORK], c->confidence,
      arena_printf(l->arena, "%s %s%s", transfers, bytes_text(l->arena, d->bytes), s->executions == 1 ? "" : " each"));
  add(l, i, s->ps[SIM_WAIT_DMA_START], c->confidence,
      arena_printf(l->arena,
                   "the program waits until %s begins to move bytes; earlier triggers or fewer, larger "
                   "transfers would hide that",
                   who(l->arena, i)));
  add(l, i, s->ps[SIM_WAIT_DMA_BUSY], c->confidence,
      arena_printf(l->arena, "%s waits for the transfers before it in its queue", who(l->arena, i)));
  add(l, i, s->build_ps, c->confidence,
      arena_printf(l->arena, "GpSimd builds the descriptors of %s", who(l->arena, i)));
  add(l, i, s->trigger_ps, c->confidence,
      s->executions == 1 ? arena_printf(l->arena, "the trigger of %s takes time on its engine", who(l->arena, i))
                         : arena_printf(l->arena, "%" PRId64 " triggers of %s are issued one after another",
                                        s->executions, who(l->arena, i)));
}

static bool is_f32_product(const struct sim_instr *i) {
  return i->kind == NISA_MATMUL && i->operand[2].type == SIM_F32;
}

static void about_engine(struct advice_list *l, const struct sim_instr *i, const struct sim_cost *c,
                         const struct sums *s) {
  const char *engine = nisa_engine_name(i->engine);
  const int64_t work = s->ps[SIM_WAIT_WORK] + s->ps[SIM_WAIT_ENGINE];
  if (is_f32_product(i))
    add(l, i, work * 3 / 4, c->confidence,
        arena_printf(l->arena, "%s 4 times the time of bf16: %.1f us; bf16 would take %.1f us",
                     counted(l->arena, s->executions, "product in f32 takes", "products in f32 take"), us(work),
                     us(work / 4)));
  else if (c->rule == SIM_COST_VECTOR_TENSOR && c->confidence != SIM_CONFIDENCE_L && i->operand[0].type == SIM_F32)
    add(l, i, work, c->confidence,
        arena_printf(l->arena, "%s of %s on %s two operands; with one of them in PSUM, or in bf16, %s about half",
                     counted(l->arena, s->executions, "execution", "executions"), i->def->name,
                     arena_printf(l->arena, "%s read%s", engine, s->executions == 1 ? "s" : ""),
                     s->executions == 1 ? "it takes" : "they take"));
  else
    add(l, i, work, c->confidence,
        arena_printf(l->arena, "%s of %s on %s", counted(l->arena, s->executions, "execution", "executions"),
                     i->def->name, engine));
  add(l, i, s->table_ps, c->confidence,
      arena_printf(l->arena, "%s needs another table of functions than the activation before it", who(l->arena, i)));
  add(l, i, s->half_ps / 2, c->confidence,
      arena_printf(l->arena, "the products run at half clock, because the Tensor engine is idle too often"));
}

static void about_waits(struct advice_list *l, const struct sim_instr *i, const struct sim_cost *c,
                        const struct sums *s) {
  const char *cause = s->cause >= 0 ? who(l->arena, &l->timeline->program->instrs[s->cause]) : "another engine";
  add(l, i, s->ps[SIM_WAIT_DATA] + s->ps[SIM_WAIT_SEMAPHORE], c->confidence,
      arena_printf(l->arena, "%s starts after a signal of %s has travelled", who(l->arena, i), cause));
  add(l, i, s->ps[SIM_WAIT_REUSE], c->confidence,
      arena_printf(l->arena, "%s waits until %s no longer uses its memory; another copy of the buffer would help",
                   who(l->arena, i), cause));
}

static struct sums *sum_up(const struct sim_timeline *t, struct arena *a, const struct sim_profile *p,
                           int64_t *barriers) {
  struct sums *s = arena_new_array(a, struct sums, (size_t)t->program->n_instrs + 1);
  for (int k = 0; k < t->program->n_instrs; k++)
    s[k].cause = -1;
  for (int k = 0; k < t->n; k++) {
    const struct sim_exec *x = &t->execs[k];
    if (x->kind == SIM_EXEC_INSTR || x->kind == SIM_EXEC_TRANSFER)
      s[x->instr].executions++;
  }
  for (int k = 0; k < p->n_path; k++) {
    const struct sim_path_part *part = &p->path[k];
    const struct sim_exec *x = &t->execs[part->exec];
    const int64_t ps = part->to_ps - part->from_ps;
    if (x->instr < 0) {
      *barriers += ps;
      continue;
    }
    struct sums *m = &s[x->instr];
    if (part->wait == SIM_WAIT_WORK && x->kind == SIM_EXEC_TRIGGER)
      m->trigger_ps += ps;
    else if (part->wait == SIM_WAIT_WORK && x->kind == SIM_EXEC_BUILD)
      m->build_ps += ps;
    else if (part->wait == SIM_WAIT_WORK && x->kind == SIM_EXEC_TABLE)
      m->table_ps += ps;
    else
      m->ps[part->wait] += ps;
    if (part->wait == SIM_WAIT_WORK && x->is_half_clock)
      m->half_ps += ps;
    if (part->wait != SIM_WAIT_WORK && x->cause >= 0 && t->execs[x->cause].instr >= 0 && ps >= m->cause_ps) {
      m->cause_ps = ps;
      m->cause = t->execs[x->cause].instr;
    }
  }
  return s;
}

/* Instructions of one line that do the same at the same cost, such as those of an unrolled loop, are one subject. */
static bool same_subject(const struct sim_timeline *t, int x, int y) {
  const struct sim_instr *i = &t->program->instrs[x], *j = &t->program->instrs[y];
  const struct sim_cost *c = &t->costs[x], *d = &t->costs[y];
  return i->kind == j->kind && i->engine == j->engine && c->rule == d->rule && c->confidence == d->confidence &&
         c->dma.bytes == d->dma.bytes && c->dma.units == d->dma.units &&
         c->dma.descriptor_bytes == d->dma.descriptor_bytes && is_f32_product(i) == is_f32_product(j) &&
         i->operand[0].type == j->operand[0].type && same_line(i->loc, j->loc);
}

static void add_sums(struct sums *to, const struct sums *s) {
  for (int w = 0; w < SIM_WAIT_COUNT; w++)
    to->ps[w] += s->ps[w];
  to->executions += s->executions;
  to->trigger_ps += s->trigger_ps;
  to->build_ps += s->build_ps;
  to->table_ps += s->table_ps;
  to->half_ps += s->half_ps;
  if (s->cause >= 0 && s->cause_ps >= to->cause_ps) {
    to->cause_ps = s->cause_ps;
    to->cause = s->cause;
  }
}

/* Moves the sums of all instructions of one subject to the first of them. */
static void merge_subjects(const struct sim_timeline *t, struct arena *a, struct sums *s) {
  struct index subjects = {.arena = a};
  for (int k = 0; k < t->program->n_instrs; k++) {
    const struct sim_instr *i = &t->program->instrs[k];
    const uint32_t hash = (uint32_t)hash_mix(hash_mix((uint64_t)i->kind, (uint64_t)i->engine), (uint64_t)line_of(i));
    int first = -1;
    for (struct index_probe p = index_probe(&subjects, hash); first < 0 && index_next(&p);)
      if (same_subject(t, p.entry, k))
        first = p.entry;
    if (first < 0) {
      index_add(&subjects, hash, k);
      continue;
    }
    add_sums(&s[first], &s[k]);
    s[k] = (struct sums){.cause = -1};
  }
}

static int by_cost(const void *x, const void *y) {
  const struct sim_advice *a = x, *b = y;
  if (a->cost_ps != b->cost_ps)
    return a->cost_ps > b->cost_ps ? -1 : 1;
  return strcmp(a->text, b->text);
}

void sim_advice_make(const struct sim_timeline *t, struct arena *a, struct sim_profile *out) {
  struct advice_list l = {.arena = a, .timeline = t};
  int64_t barriers = 0;
  struct sums *s = sum_up(t, a, out, &barriers);
  merge_subjects(t, a, s);
  for (int k = 0; k < t->program->n_instrs; k++) {
    const struct sim_instr *i = &t->program->instrs[k];
    int64_t path = s[k].trigger_ps + s[k].build_ps + s[k].table_ps;
    for (int w = 0; w < SIM_WAIT_COUNT; w++)
      path += s[k].ps[w];
    if (path * 1000 < t->total_ps * PERMILLE_MIN)
      continue;
    if (i->engine == NISA_ENGINE_DMA)
      about_transfer(&l, i, &t->costs[k], &s[k]);
    else
      about_engine(&l, i, &t->costs[k], &s[k]);
    about_waits(&l, i, &t->costs[k], &s[k]);
  }
  add(&l, NULL, barriers, SIM_CONFIDENCE_L, "the engines meet at barriers, because control depends on data");
  drop_small(&l);
  if (l.list.n)
    qsort(l.list.v, (size_t)l.list.n, sizeof *l.list.v, by_cost);
  out->n_advice = l.list.n < ADVICE_MAX ? l.list.n : ADVICE_MAX;
  out->advice = l.list.v;
}
