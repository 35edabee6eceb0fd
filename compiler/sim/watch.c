/* watch: keeps values of operands while a program runs. */
#include <stdlib.h>

#include "sim/machine.h"

/* Reads the whole operand; false if memory that nothing wrote is in it. */
static bool keep(struct sim_machine *m, struct sim_watch *w) {
  struct sim_access x;
  if (!sim_look(m, w->operand, &x))
    return false;
  const int64_t row = x.o->elements * x.size;
  char *data = realloc(w->data, (size_t)(x.o->partitions * row) + 1);
  if (!data)
    return false;
  w->data = data;
  for (int64_t p = 0; p < x.o->partitions; p++)
    if (!sim_read_bits(m, &x, p, 0, x.o->elements, data + p * row))
      return false;
  return true;
}

void sim_watch_now(struct sim_machine *m) {
  for (int k = 0; k < m->options->n_watches; k++) {
    struct sim_watch *w = &m->options->watches[k];
    if (m->instr != &m->program->instrs[w->instr])
      continue;
    w->n_executions++;
    if (w->nth && w->n_executions != w->nth)
      continue;
    const struct sim_fault before = *m->fault;
    w->state = keep(m, w) ? SIM_WATCH_KEPT : SIM_WATCH_UNWRITTEN;
    *m->fault = before; /* looking at memory is no fault of the program */
  }
}

void sim_watch_clear(struct sim_watch *w) {
  free(w->data);
  w->data = NULL;
}
