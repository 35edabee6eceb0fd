#include "sim/run.h"

#include <assert.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sim/control.h"
#include "sim/engines.h"
#include "sim/lifetime.h"
#include "sim/machine.h"

enum { LOOK_EVERY = 16 }; /* instructions between looks at the clock */

/* ---- inputs ------------------------------------------------------------------------------------------------------ */

/* For each buffer, whether an instruction may write to it. */
static bool *find_written(const struct sim_program *p) {
  bool *is_written = calloc((size_t)p->n_buffers + 1, sizeof *is_written);
  if (!is_written)
    arena_oom((size_t)p->n_buffers);
  for (int i = 0; i < p->n_instrs; i++)
    for (int k = 0; k < p->instrs[i].def->n_operands; k++) {
      const struct sim_operand *o = &p->instrs[i].operand[k];
      if (o->kind != SIM_ACCESS || !p->instrs[i].def->operand[k].writes)
        continue;
      if (o->ref < 0)
        is_written[o->buffer] = true;
      else /* it may be any */
        memset(is_written, true, (size_t)p->n_buffers);
    }
  return is_written;
}

/* A buffer with this data: the data itself if nothing writes to it, else a copy. */
static bool give(struct sim_machine *m, int buffer, const void *data, bool is_written) {
  struct sim_memory *x = &m->memories[buffer];
  if (!is_written && data) {
    x->data = (char *)(uintptr_t)data;
    return true;
  }
  if (!sim_allocate(m, buffer, 0, true))
    return false;
  if (m->program->buffers[buffer].bytes)
    memcpy(x->data, data, (size_t)m->program->buffers[buffer].bytes);
  return true;
}

static bool give_global(struct sim_machine *m, int k, bool is_written) {
  const struct sim_buffer *b = &m->program->buffers[k];
  if (b->initial && !b->initial_repeat)
    return give(m, k, b->initial, is_written);
  if (!sim_allocate(m, k, 0, b->initial != NULL))
    return false;
  for (int64_t at = 0; b->initial && at < b->bytes; at += b->initial_repeat)
    memcpy(m->memories[k].data + at, b->initial, (size_t)b->initial_repeat);
  return true;
}

static bool give_inputs(struct sim_machine *m, const void *const *args) {
  bool *is_written = find_written(m->program), is_ok = true;
  for (int k = 0; is_ok && k < m->program->n_buffers; k++)
    if (m->program->buffers[k].kind == SIM_GLOBAL)
      is_ok = give_global(m, k, is_written[k]);
  for (int k = 0; is_ok && k < m->program->n_args; k++)
    is_ok = give(m, m->program->args[k].buffer, args[k], is_written[m->program->args[k].buffer]);
  free(is_written);
  return is_ok;
}

/* True if the caller's memory for result k can be the buffer's: the result is all of it, and the memory is used for
 * nothing else. */
static bool is_whole(const struct sim_program *p, int k, const void *const *args, void *const *results) {
  const struct sim_value *v = &p->results[k];
  if (v->ref >= 0 || v->start.n || v->start.constant || !v->bytes || !results[k])
    return false;
  const struct sim_buffer *b = &p->buffers[v->buffer];
  int64_t step = sim_type_bytes(v->type);
  for (int d = v->rank - 1; d >= 0; step *= v->dims[d--])
    if (v->dims[d] != 1 && v->steps[d] != step)
      return false;
  if (b->kind != SIM_ALLOC || b->place.is_set || b->place.copies > 1 || v->bytes != b->bytes)
    return false;
  const char *begin = results[k], *end = begin + v->bytes;
  for (int i = 0; i < p->n_args; i++)
    if ((const char *)args[i] < end && begin < (const char *)args[i] + p->args[i].bytes)
      return false;
  for (int i = 0; i < p->n_results; i++)
    if (i != k &&
        (p->results[i].ref >= 0 || p->results[i].buffer == v->buffer ||
         (results[i] && (const char *)results[i] < end && begin < (const char *)results[i] + p->results[i].bytes)))
      return false;
  return true;
}

static void give_outputs(struct sim_machine *m, const void *const *args, void *const *results) {
  for (int k = 0; k < m->program->n_results; k++)
    if (is_whole(m->program, k, args, results))
      m->memories[m->program->results[k].buffer].given = results[k];
}

/* ---- results ----------------------------------------------------------------------------------------------------- */

static int number_of(const struct sim_machine *m, const struct sim_value *v) {
  return v->ref >= 0 ? (int)m->regs[v->ref] : v->buffer;
}

static const struct sim_memory *memory_of(const struct sim_machine *m, const struct sim_value *v) {
  return &m->memories[number_of(m, v)];
}

static bool take_dim(struct sim_machine *m, const struct sim_value *v, int dim, int64_t at, int size, char **to) {
  const struct sim_memory *x = memory_of(m, v);
  if (dim == v->rank) {
    if (!sim_state_is_written(&x->state, at / size, 1, 1))
      return sim_fail(m, SIM_FAULT_RESULT, "an element of a result is never written");
    if (*to != x->data + at)
      memcpy(*to, x->data + at, (size_t)size);
    *to += size;
    return true;
  }
  const int64_t n = v->dims[dim];
  if (dim + 1 == v->rank && v->steps[dim] == size) {
    if (!sim_state_is_written(&x->state, at / size, 1, n))
      return sim_fail(m, SIM_FAULT_RESULT, "an element of a result is never written");
    if (*to != x->data + at)
      memcpy(*to, x->data + at, (size_t)(n * size));
    *to += n * size;
    return true;
  }
  for (int64_t k = 0; k < n; k++)
    if (!take_dim(m, v, dim + 1, at + k * v->steps[dim], size, to))
      return false;
  return true;
}

static bool take_results(struct sim_machine *m, void *const *results) {
  m->instr = NULL;
  for (int k = 0; k < m->program->n_results; k++) {
    const struct sim_value *v = &m->program->results[k];
    char *to = results[k];
    if (!to || !v->bytes)
      continue;
    if (!memory_of(m, v)->data)
      return sim_fail(m, SIM_FAULT_RESULT, "the memory of a result has been released");
    if (mem_is_on_chip(m->program->buffers[number_of(m, v)].space))
      sim_settle_all(m);
    if (!take_dim(m, v, 0, sim_linear_value(&v->start, m->regs), sim_type_bytes(v->type), &to))
      return false;
  }
  return true;
}

/* ---- code -------------------------------------------------------------------------------------------------------- */

static bool execute(struct sim_machine *m, const struct sim_instr *i) {
  m->counts.instrs++;
  switch (i->kind) {
  case NISA_DMA_COPY:
  case NISA_TENSOR_COPY:
    return sim_exec_copy(m);
  case NISA_DMA_TRANSPOSE:
    return sim_exec_transpose(m);
  case NISA_DMA_COPY_INDIRECT:
  case NISA_DMA_SCATTER:
    return sim_exec_gather(m);
  case NISA_DMA_COMPUTE:
    return sim_exec_dma_compute(m);
  case NISA_SENDRECV:
    return sim_exec_exchange(m);
  case NISA_ALL_GATHER:
  case NISA_ALL_REDUCE:
  case NISA_REDUCE_SCATTER:
  case NISA_ALL_TO_ALL:
  case NISA_COLLECTIVE_PERMUTE:
    return sim_exec_collective(m);
  case NISA_QUANTIZE_MX:
    return sim_exec_quantize(m);
  case NISA_MATMUL:
  case NISA_MATMUL_MX:
    m->counts.matmuls += !i->is_for_clock;
    return sim_exec_matmul(m);
  case NISA_TENSOR_COPY_PREDICATED:
    return sim_exec_predicated(m);
  case NISA_TENSOR_TENSOR_ARITH:
  case NISA_TENSOR_TENSOR_POWER:
  case NISA_TENSOR_SCALAR_ARITH:
  case NISA_SCALAR_TENSOR_TENSOR:
  case NISA_ACTIVATION:
  case NISA_RECIPROCAL:
    return sim_exec_elementwise(m);
  case NISA_TENSOR_REDUCE_ARITH:
    return sim_exec_reduce(m);
  case NISA_CROSS_LANE_REDUCE_ARITH:
    return sim_exec_cross_lane(m);
  case NISA_TENSOR_TENSOR_SCAN:
  case NISA_TENSOR_SCALAR_CUMULATIVE:
    return sim_exec_scan(m);
  case NISA_BN_STATS:
  case NISA_BN_AGGR:
    return sim_exec_stats(m);
  case NISA_MAX8:
  case NISA_FIND_INDEX8:
  case NISA_MATCH_REPLACE8:
    return sim_exec_eight(m);
  case NISA_STREAM_SHUFFLE:
    return sim_exec_shuffle(m);
  case NISA_TRANSPOSE:
    return sim_exec_square(m);
  case NISA_GATHER:
    return sim_exec_row_gather(m);
  case NISA_LOCAL_GATHER:
    return sim_exec_local_gather(m);
  case NISA_SEQUENCE_BOUNDS:
    return sim_exec_bounds(m);
  case NISA_NONZERO_WITH_COUNT:
    return sim_exec_nonzero(m);
  case NISA_TOPK:
    return sim_exec_topk(m);
  case NISA_RANDOM:
    return sim_exec_random(m);
  case NISA_RANDOM_SEED:
    return sim_exec_random_seed(m);
  case NISA_RANDOM_SET_STATE:
  case NISA_RANDOM_GET_STATE:
    return sim_exec_random_state(m);
  case NISA_MEMSET:
    return sim_exec_memset(m);
  case NISA_IOTA:
    return sim_exec_iota(m);
  case NISA_REGISTER_LOAD:
    return sim_exec_register_load(m);
  case NISA_REGISTER_STORE:
    return sim_exec_register_store(m);
  default:
    return sim_fail(m, SIM_FAULT_INSTRUCTION, "the simulator does not know this instruction");
  }
}

bool sim_execute(struct sim_machine *m, const struct sim_instr *i) {
  m->instr = i;
  if (!execute(m, i))
    return false;
  if (m->options->n_watches)
    sim_watch_now(m);
  return true;
}

/* Drops what is not used from this node on. */
static void drop_unused(struct sim_machine *m, const struct sim_lifetime *l, const struct sim_node *n) {
  for (int b = l->first[n - m->program->nodes]; b >= 0; b = l->next[b])
    sim_drop(m, b);
}

/* Runs the function's own code.  l->first may be NULL. */
static bool run_code(struct sim_machine *m, const struct sim_lifetime *l) {
  struct sim_control control = {.program = m->program, .regs = m->regs};
  const struct sim_node *n;
  for (int64_t count = 0;; count++) {
    const enum sim_control_result r = sim_control_next(&control, &n);
    if (r == SIM_CONTROL_DIVISION) {
      m->instr = NULL;
      return sim_fail(m, SIM_FAULT_INSTRUCTION, "a division by zero in index arithmetic");
    }
    if ((r == SIM_CONTROL_LOOK || count % LOOK_EVERY == 0) && sim_is_late(m))
      return sim_fail(m, SIM_FAULT_TIME, "its time was up");
    if (r == SIM_CONTROL_LOOK)
      continue;
    if (n->kind == SIM_NODE_END)
      return true;
    if (!m->memories)
      continue;
    if (l->first)
      drop_unused(m, l, n);
    if (n->kind == SIM_NODE_INSTR && !sim_execute(m, &m->program->instrs[n->a]))
      return false;
    if (n->kind == SIM_NODE_ALLOC && !sim_allocate(m, n->a, n->b >= 0 ? m->regs[n->b] : 0, false))
      return false;
    if (n->kind == SIM_NODE_RELEASE) {
      sim_drop(m, n->a);
      m->memories[n->a].is_released = true;
    }
  }
}

/* Runs the function's own code, and then its streams, if it has any. */
static bool run_all(struct sim_machine *m) {
  struct sim_lifetime l = {NULL, NULL};
  if (m->memories)
    (void)sim_lifetime_init(m->program, &l);
  const bool is_run = run_code(m, &l);
  sim_lifetime_clear(&l);
  if (!is_run)
    return false;
  if (!m->program->n_streams)
    return true;
  struct sim_order *order = sim_order_new(m->program);
  const bool is_ok = sim_run_streams(m, order);
  sim_order_free(order);
  return is_ok;
}

static int64_t *first_registers(const struct sim_program *p) {
  int64_t *regs = malloc((size_t)(p->n_regs + 1) * sizeof *regs);
  if (!regs)
    arena_oom((size_t)p->n_regs * sizeof *regs);
  for (int k = 0; k < p->n_regs; k++)
    regs[k] = p->initial[k];
  return regs;
}

enum status sim_check_order(const struct sim_program *p, const struct sim_options *options, struct sim_fault *fault) {
  *fault = (struct sim_fault){.kind = SIM_FAULT_NONE};
  for (int k = 0; k < p->n_instrs; k++)
    if (p->instrs[k].kind == NISA_REGISTER_LOAD)
      return ST_LIMIT;
  struct sim_machine m = {.program = p, .regs = first_registers(p), .options = options, .fault = fault};
  const bool is_ok = run_all(&m);
  free(m.regs);
  return is_ok ? ST_OK : ST_INPUT;
}

/* In some orders a race shows first as something else, such as data that is not there yet: then the race is the fault
 * that helps. */
static void prefer_race(const struct sim_program *p, const struct sim_options *options, struct sim_fault *fault) {
  struct sim_fault other;
  if (p->n_streams && fault->kind != SIM_FAULT_RACE && fault->kind != SIM_FAULT_TIME &&
      sim_check_order(p, options, &other) == ST_INPUT && other.kind == SIM_FAULT_RACE)
    *fault = other;
}

enum status sim_run(const struct sim_program *p, const void *const *args, void *const *results,
                    const struct sim_options *options, struct sim_counts *counts, struct sim_fault *fault) {
  struct sim_machine m = {.program = p,
                          .regs = first_registers(p),
                          .memories = calloc((size_t)p->n_buffers + 1, sizeof *m.memories),
                          .options = options,
                          .fault = fault};
  if (!m.memories)
    arena_oom((size_t)p->n_buffers * sizeof *m.memories);
  *fault = (struct sim_fault){.kind = SIM_FAULT_NONE};
  give_outputs(&m, args, results);
  const bool is_ok = give_inputs(&m, args) && run_all(&m) && take_results(&m, results);
  assert(is_ok == !fault->kind);
  if (!is_ok)
    prefer_race(p, options, fault);
  sim_free_groups(&m);
  sim_free_memories(&m);
  free(m.regs);
  free(m.scratch);
  for (int core = 0; core < NISA_CORES; core++)
    free(m.generators[core]);
  if (counts)
    *counts = m.counts;
  return is_ok ? ST_OK : ST_INPUT;
}
