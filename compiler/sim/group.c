/* group: the accumulation groups of engine programs.
 *
 * In a program that is one sequence an allocation begins a group, and its state says which elements a matmul has
 * written.  In engine programs the allocations stand before the streams, and a group begins at a rotate, or with the first
 * matmul of a buffer that is not rotated.  What the last group left in the same memory may still be read elsewhere, so it
 * keeps its state; the state tells groups apart by their numbers.  When these run out, what belongs to no group that
 * is current becomes SIM_ENDED.
 */
#include <stdlib.h>
#include <string.h>

#include "sim/area.h"
#include "sim/machine.h"

/* The last group of a copy of a buffer. */
struct group {
  const struct sim_operand *from; /* NULL: none yet */
  int reg;                        /* of the rotate, and how often it had been executed */
  int64_t count;
  uint8_t number;
  int64_t used; /* when a matmul used it last */
};

struct sim_groups {
  struct group *v; /* per copy of each buffer */
  int *first;      /* per buffer */
  int n;
  int64_t time;
  int next;                     /* the number to try first */
  bool is_taken[SIM_GROUP_END]; /* since the numbers ran out, or current */
};

static struct sim_groups *new_groups(const struct sim_program *p) {
  struct sim_groups *g = calloc(1, sizeof *g);
  int *first = calloc((size_t)p->n_buffers + 1, sizeof *first);
  if (!g || !first)
    arena_oom(sizeof *g);
  for (int b = 0; b < p->n_buffers; b++) {
    first[b] = g->n;
    if (p->buffers[b].space == MEM_PSUM)
      g->n += p->buffers[b].place.copies > 1 ? p->buffers[b].place.copies : 1;
  }
  g->first = first;
  g->next = SIM_STARTED;
  g->v = calloc((size_t)g->n + 1, sizeof *g->v);
  if (!g->v)
    arena_oom((size_t)g->n * sizeof *g->v);
  return g;
}

void sim_free_groups(struct sim_machine *m) {
  if (!m->groups)
    return;
  free(m->groups->v);
  free(m->groups->first);
  free(m->groups);
}

/* ---- numbers ----------------------------------------------------------------------------------------------------- */

static void end_groups(uint8_t *groups, size_t n, const bool *is_current) {
  for (size_t k = 0; k < n; k++)
    if (groups[k] >= SIM_STARTED && groups[k] < SIM_GROUP_END && !is_current[groups[k]])
      groups[k] = SIM_ENDED;
}

/* Frees the numbers of groups that are not current.  If all are, the one that has rested longest ends: memory has not
 * room for so many. */
static void sweep(struct sim_machine *m, struct sim_groups *g) {
  struct group *oldest = NULL;
  int n = 0;
  memset(g->is_taken, 0, sizeof g->is_taken);
  for (int k = 0; k < g->n; k++)
    if (g->v[k].from) {
      g->is_taken[g->v[k].number] = true;
      oldest = !oldest || g->v[k].used < oldest->used ? &g->v[k] : oldest;
      n++;
    }
  if (n == SIM_GROUP_END - SIM_STARTED) {
    g->is_taken[oldest->number] = false;
    oldest->from = NULL;
  }
  for (int core = 0; core < m->program->n_cores; core++) {
    struct sim_space *psum = sim_space_of(m, MEM_PSUM, core);
    for (int k = 0; psum->data && k < SIM_SIZES; k++)
      end_groups(psum->state[k].groups, (size_t)(NISA_PARTITIONS * psum->pitch) >> k, g->is_taken);
  }
  for (int b = 0; b < m->program->n_buffers; b++) {
    const struct sim_buffer *x = &m->program->buffers[b];
    if (x->space == MEM_PSUM && !x->place.is_set && m->memories[b].state.groups)
      end_groups(m->memories[b].state.groups,
                 (size_t)((x->place.copies > 1 ? x->place.copies : 1) * x->bytes / sim_type_bytes(x->type)),
                 g->is_taken);
  }
}

static uint8_t new_number(struct sim_machine *m, struct sim_groups *g) {
  for (;;) {
    for (int k = SIM_STARTED; k < SIM_GROUP_END; k++) {
      const int number = g->next;
      g->next = number + 1 < SIM_GROUP_END ? number + 1 : SIM_STARTED;
      if (!g->is_taken[number]) {
        g->is_taken[number] = true;
        return (uint8_t)number;
      }
    }
    sweep(m, g);
  }
}

uint8_t sim_group_of(struct sim_machine *m, const struct sim_access *dst) {
  if (!m->program->has_engines)
    return SIM_STARTED;
  if (!m->groups)
    m->groups = new_groups(m->program);
  struct sim_groups *g = m->groups;
  struct group *x = &g->v[g->first[dst->buffer] + sim_area_copy(m->program, dst->o, m->regs)];
  const int64_t count = dst->o->group < 0 ? 0 : m->regs[dst->o->group];
  if (!x->from || x->reg != dst->o->group || x->count != count) {
    x->from = NULL; /* its number is not current any more */
    const uint8_t number = new_number(m, g);
    *x = (struct group){.from = dst->o, .reg = dst->o->group, .count = count, .number = number};
  }
  x->used = ++g->time;
  return x->number;
}
