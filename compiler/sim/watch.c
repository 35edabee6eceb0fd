/* watch: keeps values of operands and of buffers while a program runs. */
#include <stdlib.h>
#include <string.h>

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
    if (w->is_buffer || m->instr != &m->program->instrs[w->instr])
      continue;
    w->n_executions++;
    if (w->nth && w->n_executions != w->nth)
      continue;
    const struct sim_fault before = *m->fault;
    w->state = keep(m, w) ? SIM_WATCH_KEPT : SIM_WATCH_UNWRITTEN;
    *m->fault = before; /* looking at memory is no fault of the program */
  }
}

/* Copies n elements of x, which begin `at` bytes after its first one; 0 for those that nothing has written. */
static void copy_row(struct sim_watch *w, char *to, const struct sim_memory *x, int64_t at, int64_t n, int size) {
  memcpy(to, x->data + at, (size_t)(n * size));
  if (sim_state_is_written(&x->state, at / size, 1, n))
    return;
  for (int64_t k = 0; k < n; k++)
    if (!sim_state_is_written(&x->state, at / size + k, 1, 1)) {
      memset(to + k * size, 0, (size_t)size);
      w->n_unwritten++;
    }
}

/* Keeps the copy that lies `offset` bytes after the buffer's memory. */
static bool keep_buffer(struct sim_watch *w, const struct sim_buffer *b, const struct sim_memory *x, int64_t offset) {
  const int size = sim_type_bytes(b->type);
  const int64_t rows = x->pitch && b->rank ? b->dims[0] : 1, row = rows ? b->bytes / rows : 0;
  char *data = realloc(w->data, (size_t)b->bytes + 1);
  if (!data)
    return false;
  w->data = data;
  w->n_unwritten = 0;
  for (int64_t r = 0; r < rows; r++)
    copy_row(w, data + r * row, x, r * x->pitch + offset, row / size, size);
  return true;
}

void sim_watch_end(struct sim_machine *m, int buffer) {
  const struct sim_buffer *b = &m->program->buffers[buffer];
  for (int k = 0; k < m->options->n_watches; k++) {
    struct sim_watch *w = &m->options->watches[k];
    if (!w->is_buffer || w->buffer != buffer)
      continue;
    const bool has_copies = m->program->has_engines && b->place.is_set && b->place.copies > 1;
    w->n_executions = has_copies ? b->place.copies : w->n_executions + 1;
    if (has_copies ? w->nth > b->place.copies : w->nth && w->n_executions != w->nth)
      continue;
    const int64_t copy = !has_copies ? 0 : w->nth ? w->nth - 1 : b->place.copies - 1;
    sim_settle_all(m); /* its bytes may be elsewhere */
    if (keep_buffer(w, b, &m->memories[buffer], copy * b->place.stride))
      w->state = SIM_WATCH_KEPT;
  }
}

void sim_watch_clear(struct sim_watch *w) {
  free(w->data);
  w->data = NULL;
}
