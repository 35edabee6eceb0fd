#include "sim/lifetime.h"

#include <stdlib.h>

static int *new_ints(int n, int value) {
  int *v = malloc((size_t)(n + 1) * sizeof *v);
  if (!v)
    arena_oom((size_t)n * sizeof *v);
  for (int k = 0; k < n; k++)
    v[k] = value;
  return v;
}

/* For each node the last one of the outermost loop around it, or itself.  A loop ends in a jump back; inner ones come
 * first. */
static int *find_ends(const struct sim_program *p) {
  int *ends = new_ints(p->n_nodes, 0);
  for (int k = 0; k < p->n_nodes; k++)
    ends[k] = k;
  for (int k = 0; k < p->n_nodes; k++)
    if (p->nodes[k].kind == SIM_NODE_GOTO && p->nodes[k].b <= k)
      for (int i = p->nodes[k].b; i <= k; i++)
        ends[i] = k;
  return ends;
}

/* Sets last[buffer] to the last node of an instruction that names it; false if one is named by a register. */
static bool find_last(const struct sim_program *p, int *last) {
  for (int k = 0; k < p->n_nodes; k++) {
    if (p->nodes[k].kind != SIM_NODE_INSTR)
      continue;
    const struct sim_instr *i = &p->instrs[p->nodes[k].a];
    for (int o = 0; o < i->def->n_operands; o++) {
      if (i->operand[o].kind != SIM_ACCESS)
        continue;
      if (i->operand[o].ref >= 0)
        return false;
      last[i->operand[o].buffer] = k;
    }
  }
  return true;
}

static bool find_results(const struct sim_program *p, int *last) {
  for (int k = 0; k < p->n_results; k++) {
    if (p->results[k].ref >= 0)
      return false;
    last[p->results[k].buffer] = -1;
  }
  return true;
}

/* The first node at or after this one that is no index arithmetic and no jump: those are not seen by the caller. */
static int next_seen(const struct sim_program *p, int node) {
  for (;; node++)
    switch (p->nodes[node].kind) {
    case SIM_NODE_INSTR:
    case SIM_NODE_ALLOC:
    case SIM_NODE_RELEASE:
    case SIM_NODE_END: /* the last one */
      return node;
    default:
      break;
    }
}

bool sim_lifetime_init(const struct sim_program *p, struct sim_lifetime *out) {
  *out = (struct sim_lifetime){NULL, NULL};
  if (p->n_streams)
    return false;
  int *last = new_ints(p->n_buffers, -1);
  const bool is_known = find_last(p, last) && find_results(p, last);
  if (is_known) {
    int *ends = find_ends(p);
    *out = (struct sim_lifetime){new_ints(p->n_nodes, -1), new_ints(p->n_buffers, -1)};
    for (int b = 0; b < p->n_buffers; b++) {
      if (last[b] < 0 || p->buffers[b].kind != SIM_ALLOC || mem_is_on_chip(p->buffers[b].space))
        continue;
      const int node = next_seen(p, ends[last[b]] + 1);
      out->next[b] = out->first[node];
      out->first[node] = b;
    }
    free(ends);
  }
  free(last);
  return is_known;
}

void sim_lifetime_clear(struct sim_lifetime *l) {
  free(l->first);
  free(l->next);
}
