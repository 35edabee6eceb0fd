#include "sim/profile.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/index.h"
#include "sim/profile_internal.h"

const char *sim_wait_name(enum sim_wait w) {
  static const char *const names[] = {
      [SIM_WAIT_WORK] = "work",           [SIM_WAIT_ENGINE] = "engine busy",  [SIM_WAIT_DATA] = "data",
      [SIM_WAIT_REUSE] = "memory reused", [SIM_WAIT_SEMAPHORE] = "semaphore", [SIM_WAIT_DMA_START] = "DMA start",
      [SIM_WAIT_DMA_BUSY] = "DMA busy",   [SIM_WAIT_BARRIER] = "barrier",
  };
  assert(w >= 0 && w < SIM_WAIT_COUNT);
  return names[w];
}

/* ---- why an execution waited ------------------------------------------------------------------------------------- */

struct span {
  int64_t from, to;
};

/* The bytes of each partition that an allocation and its copies take; of PSUM counted over the banks. */
static struct span placed(const struct sim_program *p, const struct sim_buffer *b, enum target t) {
  const struct sim_place *x = &b->place;
  const int64_t bytes = b->rank && b->dims[0] > 0 ? b->bytes / b->dims[0] : b->bytes;
  const int64_t from = x->offset + x->bank * nisa_machine(t)->psum_bank_bytes;
  (void)p;
  return (struct span){from, from + bytes + (x->copies > 1 ? (x->copies - 1) * x->stride : 0)};
}

static bool shares_memory(const struct sim_timeline *t, int a, int b) {
  const struct sim_buffer *x = &t->program->buffers[a], *y = &t->program->buffers[b];
  if (a == b)
    return true;
  if (!x->place.is_set || !y->place.is_set || x->space != y->space)
    return false;
  const struct span u = placed(t->program, x, t->target), v = placed(t->program, y, t->target);
  return u.from < v.to && v.from < u.to;
}

/* True if `first` touches what `then` touches; first_writes and then_reads say which operands count. */
static bool meets(const struct sim_timeline *t, const struct sim_instr *first, bool only_writes,
                  const struct sim_instr *then, bool reads) {
  for (int i = 0; i < first->def->n_operands; i++) {
    const struct sim_operand *a = &first->operand[i];
    if (a->kind != SIM_ACCESS || a->buffer < 0 || (only_writes && !first->def->operand[i].writes))
      continue;
    for (int k = 0; k < then->def->n_operands; k++) {
      const struct sim_operand *b = &then->operand[k];
      if (b->kind == SIM_ACCESS && b->buffer >= 0 &&
          (reads ? then->def->operand[k].reads : then->def->operand[k].writes) &&
          (reads ? a->buffer == b->buffer : shares_memory(t, a->buffer, b->buffer)))
        return true;
    }
  }
  return false;
}

static enum sim_wait signal_wait(const struct sim_timeline *t, const struct sim_exec *x) {
  const int cause = t->execs[x->cause].instr;
  if (cause < 0 || x->instr < 0)
    return SIM_WAIT_SEMAPHORE;
  const struct sim_instr *first = &t->program->instrs[cause], *then = &t->program->instrs[x->instr];
  if (meets(t, first, true, then, true))
    return SIM_WAIT_DATA;
  return meets(t, first, false, then, false) ? SIM_WAIT_REUSE : SIM_WAIT_SEMAPHORE;
}

enum sim_wait sim_wait_of(const struct sim_timeline *t, const struct sim_exec *x) {
  switch ((enum sim_reason)x->reason) {
  case SIM_REASON_SIGNAL:
    return x->cause < 0 || x->kind == SIM_EXEC_BARRIER ? SIM_WAIT_BARRIER : signal_wait(t, x);
  case SIM_REASON_INTERLOCK:
    return SIM_WAIT_DATA;
  case SIM_REASON_TRIGGER:
    return SIM_WAIT_DMA_START;
  case SIM_REASON_QUEUE:
    return SIM_WAIT_DMA_BUSY;
  case SIM_REASON_BARRIER:
    return SIM_WAIT_BARRIER;
  default:
    return SIM_WAIT_ENGINE;
  }
}

/* ---- the critical path ------------------------------------------------------------------------------------------- */

/* Where an execution's own part of the path begins. */
static int64_t own_start(const struct sim_exec *x) {
  const bool loads = x->kind == SIM_EXEC_INSTR && x->ready < x->start &&
                     (x->reason == SIM_REASON_STATIONARY || x->reason == SIM_REASON_SIGNAL ||
                      x->reason == SIM_REASON_BARRIER || x->reason == SIM_REASON_START);
  return loads && x->is_matmul ? x->ready : x->start;
}

/* The moment of the cause that decided. */
static int64_t cause_moment(const struct sim_exec *x, const struct sim_exec *cause) {
  switch ((enum sim_reason)x->reason) {
  case SIM_REASON_SIGNAL:
  case SIM_REASON_INTERLOCK:
  case SIM_REASON_BUILD:
    return cause->end;
  case SIM_REASON_STATIONARY:
  case SIM_REASON_TRIGGER:
    return cause->start;
  case SIM_REASON_QUEUE:
    return cause->end < x->start ? cause->end : x->start;
  default:
    return cause->free;
  }
}

struct path {
  struct sim_path_part *v;
  int n, cap;
};

static void add_part(struct arena *a, struct path *path, int exec, enum sim_wait wait, int64_t from, int64_t to) {
  assert(from <= to);
  if (from < to)
    array_push(a, path, (struct sim_path_part){exec, wait, from, to});
}

static void find_path(const struct sim_timeline *t, struct arena *a, struct sim_profile *out) {
  struct path path = {0};
  int at = -1;
  for (int k = 0; k < t->n; k++)
    if (at < 0 || t->execs[k].end > t->execs[at].end)
      at = k;
  int64_t to = t->total_ps;
  while (at >= 0) {
    const struct sim_exec *x = &t->execs[at];
    const int64_t from = own_start(x) < to ? own_start(x) : to;
    const int64_t before = x->cause < 0 ? 0 : cause_moment(x, &t->execs[x->cause]);
    add_part(a, &path, at, x->kind == SIM_EXEC_BARRIER ? SIM_WAIT_BARRIER : SIM_WAIT_WORK, from, to);
    to = before < from ? before : from;
    add_part(a, &path, at, sim_wait_of(t, x), to, from);
    at = x->cause;
  }
  for (int k = 0; k < path.n / 2; k++) {
    const struct sim_path_part last = path.v[path.n - 1 - k];
    path.v[path.n - 1 - k] = path.v[k];
    path.v[k] = last;
  }
  out->n_path = path.n;
  out->path = path.v;
  for (int k = 0; k < path.n; k++) {
    const struct sim_path_part *part = &path.v[k];
    const int instr = t->execs[part->exec].instr;
    out->path_waits_ps[part->wait] += part->to_ps - part->from_ps;
    if (part->wait == SIM_WAIT_WORK && instr >= 0 && t->costs[instr].confidence == SIM_CONFIDENCE_L)
      out->low_ps += part->to_ps - part->from_ps;
  }
}

/* ---- totals ------------------------------------------------------------------------------------------------------ */

int64_t sim_dma_total(const struct sim_dma_cost *d) {
  return d->units * d->unit_ps;
}

static void count_bytes(const struct sim_timeline *t, const struct sim_instr *i, struct sim_profile *out) {
  for (int k = 0; k < i->def->n_operands; k++) {
    const struct sim_operand *o = &i->operand[k];
    if (o->kind != SIM_ACCESS || (o->buffer >= 0 && mem_is_on_chip(t->program->buffers[o->buffer].space)))
      continue;
    const int64_t bytes = o->partitions * o->elements * sim_type_bytes(o->type);
    *(i->def->operand[k].writes ? &out->hbm_written : &out->hbm_read) += bytes;
  }
}

static void count_lanes(const struct sim_timeline *t, struct arena *a, struct sim_profile *out) {
  out->lanes = arena_new_array(a, struct sim_lane_use, (size_t)t->n_lanes + 1);
  int64_t *last = arena_new_array(a, int64_t, (size_t)t->n_lanes + 1);
  for (int k = 0; k < t->n; k++) {
    const struct sim_exec *x = &t->execs[k];
    struct sim_lane_use *u = &out->lanes[x->lane];
    const int64_t from = x->start > last[x->lane] ? x->start : last[x->lane];
    u->executions += x->kind == SIM_EXEC_INSTR || x->kind == SIM_EXEC_TRANSFER;
    u->busy_ps += x->free > from && x->kind != SIM_EXEC_BARRIER ? x->free - from : 0;
    u->waits_ps[x->kind == SIM_EXEC_BARRIER ? SIM_WAIT_BARRIER : sim_wait_of(t, x)] +=
        from - last[x->lane] + (x->kind == SIM_EXEC_BARRIER ? x->free - from : 0);
    last[x->lane] = x->free > last[x->lane] ? x->free : last[x->lane];
    if (x->kind == SIM_EXEC_TRANSFER) {
      const struct sim_dma_cost *d = &t->costs[x->instr].dma;
      u->bytes += d->bytes;
      out->dma_bytes += d->bytes;
      out->dma_engine_ps += sim_dma_total(d);
      count_bytes(t, &t->program->instrs[x->instr], out);
    } else if (x->kind == SIM_EXEC_INSTR) {
      const int64_t operations = sim_instr_operations(&t->program->instrs[x->instr]);
      u->operations += operations;
      *(x->is_matmul ? &out->matmul_operations : &out->operations) += operations;
      out->half_clock_ps += x->is_half_clock ? x->free - x->start : 0;
    }
  }
}

/* The peak of the type in which most products are. */
static int64_t peak_operations(const struct sim_timeline *t) {
  int64_t in_f32 = 0, all = 0;
  for (int k = 0; k < t->n; k++) {
    const struct sim_exec *x = &t->execs[k];
    if (!x->is_matmul)
      continue;
    const struct sim_instr *i = &t->program->instrs[x->instr];
    const int64_t operations = sim_instr_operations(i);
    all += operations;
    in_f32 += i->operand[2].type == SIM_F32 ? operations : 0;
  }
  return sim_constant(2 * in_f32 > all ? SIM_PEAK_F32 : SIM_PEAK_BF16, t->target) * (int64_t)1000000000000 *
         t->program->n_cores;
}

int64_t sim_dma_engines(const struct sim_timeline *t) {
  return sim_constant(SIM_DMA_ENGINES, t->target) * t->program->n_cores;
}

int64_t sim_peak_gb_s(const struct sim_timeline *t) {
  const int64_t cores = sim_constant(SIM_PEAK_HBM, t->target) * t->program->n_cores,
                stack = sim_constant(SIM_HBM_STACK, t->target) / 1000;
  return cores < stack ? cores : stack;
}

/* What is busy for most of the time, if anything is. */
static const char *bound(const struct sim_timeline *t, const struct sim_profile *p) {
  const int64_t dma = p->dma_engine_ps / sim_dma_engines(t);
  const char *name = "memory";
  int64_t most = dma;
  for (int k = 0; k < t->n_lanes; k++)
    if (t->lanes[k].trigger < 0 && p->lanes[k].busy_ps > most) {
      most = p->lanes[k].busy_ps;
      name = t->lanes[k].engine == NISA_ENGINE_TENSOR ? "compute"
             : t->program->n_cores > 1                ? nisa_engine_name(t->lanes[k].engine)
                                                      : t->lanes[k].name;
    }
  return most * 10 >= t->total_ps * 6 ? name : "latency";
}

/* ---- lines ------------------------------------------------------------------------------------------------------- */

static int by_critical(const void *x, const void *y) {
  const struct sim_line *a = x, *b = y;
  if (a->critical_ps != b->critical_ps)
    return a->critical_ps > b->critical_ps ? -1 : 1;
  return a->line != b->line ? (a->line > b->line) - (a->line < b->line) : strcmp(a->file, b->file);
}

/* The line of each instruction, as a number. */
static int *number_lines(const struct sim_timeline *t, struct arena *a, struct sim_profile *out) {
  struct {
    struct sim_line *v;
    int n, cap;
  } lines = {0};
  struct index by_place = {.arena = a};
  int *of = arena_new_array(a, int, (size_t)t->program->n_instrs + 1);
  for (int k = 0; k <= t->program->n_instrs; k++) { /* the last one stands for barriers */
    const struct src_loc *loc = k < t->program->n_instrs ? t->program->instrs[k].loc : NULL;
    const char *file = loc && loc->range.file ? loc->range.file : "";
    const int line = loc ? loc->range.line : 0;
    const uint32_t hash = (uint32_t)hash_mix(hash_text(file), (uint64_t)line);
    int found = -1;
    for (struct index_probe p = index_probe(&by_place, hash); found < 0 && index_next(&p);)
      if (lines.v[p.entry].line == line && !strcmp(lines.v[p.entry].file, file))
        found = p.entry;
    if (found < 0) {
      found = lines.n;
      index_add(&by_place, hash, found);
      array_push(a, &lines, (struct sim_line){.file = file, .line = line, .loc = loc});
    }
    of[k] = found;
  }
  out->lines = lines.v;
  out->n_lines = lines.n;
  return of;
}

static void count_lines(const struct sim_timeline *t, struct arena *a, struct sim_profile *out) {
  const int *of = number_lines(t, a, out), n = t->program->n_instrs;
  for (int k = 0; k < t->n; k++) {
    const struct sim_exec *x = &t->execs[k];
    struct sim_line *line = &out->lines[of[x->instr < 0 ? n : x->instr]];
    if (x->kind == SIM_EXEC_TRANSFER) {
      const struct sim_dma_cost *d = &t->costs[x->instr].dma;
      line->bytes += d->bytes;
      line->busy_ps[NISA_ENGINE_DMA] += sim_dma_total(d) / sim_constant(SIM_DMA_ENGINES, t->target);
      line->executions++;
    } else {
      line->busy_ps[t->lanes[x->lane].engine] += x->free - x->start;
      line->executions += x->kind == SIM_EXEC_INSTR;
      line->operations += x->kind == SIM_EXEC_INSTR ? sim_instr_operations(&t->program->instrs[x->instr]) : 0;
    }
  }
  for (int k = 0; k < out->n_path; k++) {
    const struct sim_path_part *part = &out->path[k];
    const int instr = t->execs[part->exec].instr;
    struct sim_line *line = &out->lines[of[instr < 0 ? n : instr]];
    line->critical_ps += part->to_ps - part->from_ps;
    line->waits_ps[part->wait] += part->to_ps - part->from_ps;
  }
  int used = 0;
  for (int k = 0; k < out->n_lines; k++)
    if (out->lines[k].executions || out->lines[k].critical_ps)
      out->lines[used++] = out->lines[k];
  out->n_lines = used;
  if (used)
    qsort(out->lines, (size_t)used, sizeof *out->lines, by_critical);
}

void sim_profile_make(const struct sim_timeline *t, struct arena *a, struct sim_profile *out) {
  *out = (struct sim_profile){.timeline = t};
  count_lanes(t, a, out);
  out->peak_operations = peak_operations(t);
  out->bound = bound(t, out);
  find_path(t, a, out);
  count_lines(t, a, out);
  for (int core = 0; core < t->program->n_cores; core++) {
    sim_occupancy_make(t, MEM_SBUF, core, a, &out->sbuf[core]);
    sim_occupancy_make(t, MEM_PSUM, core, a, &out->psum[core]);
  }
  sim_advice_make(t, a, out);
}
