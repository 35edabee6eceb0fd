#include "sim/run.h"

#include <assert.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sim/control.h"
#include "sim/engines.h"
#include "sim/machine.h"

enum { LOOK_EVERY = 16 }; /* instructions between looks at the clock */
static const int64_t MEMORY_MAX = (int64_t)2 << 30;

const char *sim_fault_name(enum sim_fault_kind k) {
  static const char *const names[] = {
      [SIM_FAULT_NONE] = "none",
      [SIM_FAULT_UNWRITTEN] = "unwritten-read",
      [SIM_FAULT_BOUNDS] = "out-of-bounds",
      [SIM_FAULT_RELEASED] = "use-after-release",
      [SIM_FAULT_ACCUMULATION] = "bad-accumulation",
      [SIM_FAULT_RESULT] = "unwritten-result",
      [SIM_FAULT_MEMORY] = "memory-limit",
      [SIM_FAULT_TIME] = "time-limit",
      [SIM_FAULT_INSTRUCTION] = "bad-instruction",
      [SIM_FAULT_DEADLOCK] = "deadlock",
      [SIM_FAULT_RACE] = "race",
  };
  assert(k >= 0 && k < SIM_FAULT_KINDS);
  return names[k];
}

/* ---- buffers ----------------------------------------------------------------------------------------------------- */

/* The bytes of all copies. */
static int64_t bytes_of(const struct sim_buffer *b) {
  return b->place.copies > 1 ? b->place.copies * b->bytes : b->bytes;
}

static void drop(struct sim_machine *m, int buffer) {
  struct sim_memory *x = &m->memories[buffer];
  if (x->data)
    m->used -= bytes_of(&m->program->buffers[buffer]);
  free(x->data);
  free(x->shadow);
  x->data = NULL;
  x->shadow = NULL;
}

/* Zeroed, so that runs are alike whatever the allocator gives. */
static bool allocate(struct sim_machine *m, int buffer, enum sim_shadow shadow) {
  const struct sim_buffer *b = &m->program->buffers[buffer];
  struct sim_memory *x = &m->memories[buffer];
  const int64_t bytes = bytes_of(b);
  const size_t elements = (size_t)(bytes / sim_type_bytes(b->type));

  drop(m, buffer);
  m->used += bytes;
  m->most = m->used > m->most ? m->used : m->most;
  if (m->used > (m->options->memory_max ? m->options->memory_max : MEMORY_MAX))
    return sim_fail(m, SIM_FAULT_MEMORY, "its data needs more than %lld MiB",
                    (long long)((m->options->memory_max ? m->options->memory_max : MEMORY_MAX) >> 20));
  x->data = calloc((size_t)bytes + 1, 1);
  x->shadow = malloc(elements + 1);
  x->is_released = false;
  if (!x->data || !x->shadow)
    return sim_fail(m, SIM_FAULT_MEMORY, "out of memory");
  memset(x->shadow, shadow, elements);
  return true;
}

static bool give_globals(struct sim_machine *m) {
  for (int k = 0; k < m->program->n_buffers; k++) {
    const struct sim_buffer *b = &m->program->buffers[k];
    if (b->kind != SIM_GLOBAL)
      continue;
    if (!allocate(m, k, b->initial ? SIM_WRITTEN : SIM_UNWRITTEN))
      return false;
    const int64_t unit = b->initial_repeat ? b->initial_repeat : b->bytes;
    for (int64_t at = 0; b->initial && at < b->bytes; at += unit)
      memcpy(m->memories[k].data + at, b->initial, (size_t)unit);
  }
  return true;
}

static bool give_arguments(struct sim_machine *m, const void *const *args) {
  for (int k = 0; k < m->program->n_args; k++) {
    const struct sim_value *v = &m->program->args[k];
    if (!allocate(m, v->buffer, SIM_WRITTEN))
      return false;
    memcpy(m->memories[v->buffer].data, args[k], (size_t)v->bytes);
  }
  return true;
}

/* ---- results ----------------------------------------------------------------------------------------------------- */

static const struct sim_memory *memory_of(const struct sim_machine *m, const struct sim_value *v) {
  return &m->memories[v->ref >= 0 ? (int)m->regs[v->ref] : v->buffer];
}

static bool take_dim(struct sim_machine *m, const struct sim_value *v, int dim, int64_t at, int size, char **to) {
  const struct sim_memory *x = memory_of(m, v);
  if (dim == v->rank) {
    if (x->shadow[at / size] == SIM_UNWRITTEN)
      return sim_fail(m, SIM_FAULT_RESULT, "an element of a result is never written");
    memcpy(*to, x->data + at, (size_t)size);
    *to += size;
    return true;
  }
  const int64_t n = v->dims[dim];
  if (dim + 1 == v->rank && v->steps[dim] == size) {
    if (memchr(x->shadow + at / size, SIM_UNWRITTEN, (size_t)n))
      return sim_fail(m, SIM_FAULT_RESULT, "an element of a result is never written");
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
    if (!take_dim(m, v, 0, sim_linear_value(&v->start, m->regs), sim_type_bytes(v->type), &to))
      return false;
  }
  return true;
}

/* ---- code -------------------------------------------------------------------------------------------------------- */

bool sim_execute(struct sim_machine *m, const struct sim_instr *i) {
  m->instr = i;
  m->counts.instrs++;
  switch (i->kind) {
  case NISA_DMA_COPY:
  case NISA_TENSOR_COPY:
    return sim_exec_copy(m);
  case NISA_DMA_TRANSPOSE:
    return sim_exec_transpose(m);
  case NISA_DMA_COPY_INDIRECT:
    return sim_exec_gather(m);
  case NISA_ALL_GATHER:
  case NISA_ALL_REDUCE:
  case NISA_REDUCE_SCATTER:
  case NISA_ALL_TO_ALL:
  case NISA_COLLECTIVE_PERMUTE:
    return sim_exec_collective(m);
  case NISA_MATMUL:
    m->counts.matmuls++;
    return sim_exec_matmul(m);
  case NISA_TENSOR_COPY_PREDICATED:
    return sim_exec_predicated(m);
  case NISA_TENSOR_TENSOR_ARITH:
  case NISA_TENSOR_TENSOR_POWER:
  case NISA_TENSOR_SCALAR_ARITH:
  case NISA_ACTIVATION:
  case NISA_RECIPROCAL:
    return sim_exec_elementwise(m);
  case NISA_TENSOR_REDUCE_ARITH:
    return sim_exec_reduce(m);
  case NISA_CROSS_LANE_REDUCE_ARITH:
    return sim_exec_cross_lane(m);
  case NISA_MEMSET:
    return sim_exec_memset(m);
  case NISA_IOTA:
    return sim_exec_iota(m);
  case NISA_REGISTER_LOAD:
    return sim_exec_register_load(m);
  default:
    return sim_fail(m, SIM_FAULT_INSTRUCTION, "the simulator does not know this instruction");
  }
}

/* Runs the function's own code. */
static bool run_code(struct sim_machine *m) {
  struct sim_control control = {m->program, m->regs, 0};
  const struct sim_node *n;
  for (int64_t count = 0;; count++) {
    const enum sim_control_result r = sim_control_next(&control, &n);
    if (r == SIM_CONTROL_DIVISION)
      return sim_fail(m, SIM_FAULT_INSTRUCTION, "a division by zero in index arithmetic");
    if ((r == SIM_CONTROL_LOOK || count % LOOK_EVERY == 0) && sim_is_late(m))
      return sim_fail(m, SIM_FAULT_TIME, "its time was up");
    if (r == SIM_CONTROL_LOOK)
      continue;
    if (n->kind == SIM_NODE_END)
      return true;
    if (!m->memories)
      continue;
    if (n->kind == SIM_NODE_INSTR && !sim_execute(m, &m->program->instrs[n->a]))
      return false;
    if (n->kind == SIM_NODE_ALLOC && !allocate(m, n->a, SIM_UNWRITTEN))
      return false;
    if (n->kind == SIM_NODE_RELEASE) {
      drop(m, n->a);
      m->memories[n->a].is_released = true;
    }
  }
}

/* Runs the function's own code, and then its streams, if it has any. */
static bool run_all(struct sim_machine *m) {
  if (!run_code(m))
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
  *fault = (struct sim_fault){SIM_FAULT_NONE};
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
  *fault = (struct sim_fault){SIM_FAULT_NONE};
  const bool is_ok = give_globals(&m) && give_arguments(&m, args) && run_all(&m) && take_results(&m, results);
  assert(is_ok == !fault->kind);
  if (!is_ok)
    prefer_race(p, options, fault);
  for (int k = 0; k < p->n_buffers; k++)
    drop(&m, k);
  free(m.memories);
  free(m.regs);
  free(m.scratch);
  if (counts)
    *counts = m.counts;
  return is_ok ? ST_OK : ST_INPUT;
}
