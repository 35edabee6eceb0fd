/* cost_dma: transfers: how they are cut into descriptors, and what these take. */
#include <assert.h>

#include "sim/cost.h"

static enum mem_space space_of(const struct sim_program *p, const struct sim_operand *o) {
  return o->kind == SIM_ACCESS && o->buffer >= 0 ? p->buffers[o->buffer].space : MEM_HBM;
}

static int64_t least(int64_t a, int64_t b) {
  return a < b ? a : b;
}

static int64_t most(int64_t a, int64_t b) {
  return a > b ? a : b;
}

static int64_t bytes_ps(int64_t bytes, int64_t mb_s) {
  return (bytes * 1000000 + mb_s / 2) / mb_s;
}

static int64_t descriptor_ps(int64_t bytes, enum target t) {
  const int64_t alone = sim_constant_ps(SIM_DMA_DESCRIPTOR, t) + bytes_ps(bytes, sim_constant(SIM_DMA_RATE, t));
  const int64_t shared = bytes_ps(bytes, sim_constant(SIM_DMA_CAP, t));
  return most(alone, shared) * (bytes < sim_constant(SIM_DMA_SMALL, t) ? 2 : 1);
}

/* A transfer of `elements`, cut into units that each engine moves in descriptors of `run` elements. */
static struct sim_dma_cost cut(int64_t elements, int64_t run, int64_t units, int64_t size, enum target t) {
  const int64_t per_unit = most(elements / most(units, 1), 1);
  run = most(least(run, per_unit), 1);
  struct sim_dma_cost d = {.bytes = elements * size, .descriptor_bytes = run * size, .units = units};
  const int64_t descriptors = (per_unit + run - 1) / run;
  d.descriptors = descriptors * units;
  d.unit_ps = descriptors * descriptor_ps(d.descriptor_bytes, t);
  d.ideal_ps = least(d.unit_ps, descriptor_ps(per_unit * size, t));
  return d;
}

/* Between HBM and HBM, units are pieces of equal size. */
static int64_t pieces(int64_t bytes, enum target t) {
  const int64_t engines = sim_constant(SIM_DMA_ENGINES, t);
  return most(least(engines, bytes / sim_constant(SIM_DMA_SPLIT, t)), 1);
}

static struct sim_dma_cost copy_cost(const struct sim_program *p, const struct sim_instr *i, enum target t) {
  const struct sim_operand *dst = &i->operand[0], *src = &i->operand[1];
  const int64_t size = most(sim_type_bytes(dst->type), sim_type_bytes(src->type));
  const int64_t elements = dst->partitions * dst->elements;
  const struct sim_operand *chip = mem_is_on_chip(space_of(p, dst))   ? dst
                                   : mem_is_on_chip(space_of(p, src)) ? src
                                                                      : NULL;
  int64_t run = least(sim_run_elements(p, dst), sim_run_elements(p, src));
  if (i->kind == NISA_DMA_TRANSPOSE) /* its own path reorders the elements: rows of src are read */
    run = sim_run_elements(p, src);
  return cut(elements, run, chip ? chip->partitions : pieces(elements * size, t), size, t);
}

static void slow_down(struct sim_dma_cost *d, int64_t percent) {
  d->unit_ps = d->unit_ps * 100 / percent;
  d->ideal_ps = d->ideal_ps * 100 / percent;
}

/* n - 1 steps around a ring; every device sends and receives (n - 1) / n of what each holds. */
static struct sim_dma_cost collective_cost(const struct sim_instr *i, enum target t) {
  const struct sim_operand *dst = &i->operand[0], *src = &i->operand[1];
  const int64_t size = sim_type_bytes(dst->type), n = most(i->devices, 1);
  const int64_t elements = most(dst->partitions * dst->elements, src->partitions * src->elements);
  const int64_t engines = sim_constant(SIM_DMA_ENGINES, t);
  const int64_t rounds = i->kind == NISA_ALL_REDUCE ? 2 : 1;
  struct sim_dma_cost d = cut(elements, elements, pieces(elements * size, t), size, t);
  const int64_t sent = i->kind == NISA_COLLECTIVE_PERMUTE ? d.bytes : d.bytes / n * (n - 1) * rounds;
  const int64_t link = bytes_ps(sent, sim_constant(SIM_LINK_RATE, t)) * engines / most(least(d.units, engines), 1);
  d.unit_ps = d.ideal_ps = most(d.unit_ps, d.units >= engines ? link : bytes_ps(sent, sim_constant(SIM_LINK_RATE, t)));
  d.latency_ps = (i->kind == NISA_COLLECTIVE_PERMUTE ? 1 : (n - 1) * rounds) * sim_constant_ps(SIM_LINK_START, t);
  return d;
}

struct sim_dma_cost sim_dma_cost_of(const struct sim_program *p, const struct sim_instr *i, enum target t,
                                    enum sim_cost_rule *rule) {
  struct sim_dma_cost d;
  switch (i->kind) {
  case NISA_DMA_TRANSPOSE:
    *rule = SIM_COST_DMA_TRANSPOSE;
    d = copy_cost(p, i, t);
    slow_down(&d,
              sim_constant(mem_is_on_chip(space_of(p, &i->operand[1])) ? SIM_TRANSPOSE_SBUF : SIM_TRANSPOSE_HBM, t));
    return d;
  case NISA_DMA_COPY_INDIRECT:
  case NISA_DMA_SCATTER:
    *rule = SIM_COST_DMA_INDIRECT;
    d = copy_cost(p, i, t);
    if (i->op[0]) /* dst is read, too */
      slow_down(&d, 50);
    return d;
  case NISA_DMA_COMPUTE:
    *rule = SIM_COST_DMA_COMPUTE;
    d = copy_cost(p, i, t);
    slow_down(&d, 50);
    return d;
  case NISA_SENDRECV:
    *rule = SIM_COST_EXCHANGE;
    return copy_cost(p, i, t);
  case NISA_DMA_COPY:
    *rule = SIM_COST_DMA;
    return copy_cost(p, i, t);
  default:
    *rule = SIM_COST_COLLECTIVE;
    return collective_cost(i, t);
  }
}

int64_t sim_dma_work(const struct sim_dma_cost *d, int e) {
  enum { ENGINES = 16 };
  return d->unit_ps * (d->units / ENGINES + (e < d->units % ENGINES));
}

static bool is_software(enum nisa_engine trigger) {
  return trigger == NISA_ENGINE_GPSIMD;
}

struct sim_trigger_cost sim_trigger_cost(const struct sim_dma_cost *d, enum nisa_engine trigger, enum target t) {
  if (is_software(trigger))
    return (struct sim_trigger_cost){d->descriptors * sim_constant_ps(SIM_TRIGGER_BUILD, t),
                                     sim_constant_ps(SIM_TRIGGER_SOFTWARE, t),
                                     sim_constant_ps(SIM_TRIGGER_START_SOFTWARE, t) + d->latency_ps};
  const enum sim_constant start = trigger == NISA_ENGINE_SYNC ? SIM_TRIGGER_START_SYNC : SIM_TRIGGER_START;
  const int64_t hold = sim_constant_ps(SIM_TRIGGER_HOLD, t) + d->descriptors * sim_constant_ps(SIM_TRIGGER_EACH, t);
  return (struct sim_trigger_cost){0, hold, sim_constant_ps(start, t) + d->latency_ps};
}

int64_t sim_dma_supply(const struct sim_dma_cost *d, enum nisa_engine trigger, enum target t) {
  return is_software(trigger) ? 0 : d->descriptors * sim_constant_ps(SIM_DMA_SUPPLY, t);
}

int64_t sim_dma_alone(const struct sim_dma_cost *d, enum nisa_engine trigger, enum target t) {
  return most(sim_dma_work(d, 0), sim_dma_supply(d, trigger, t)) + sim_constant_ps(SIM_DMA_END, t);
}
