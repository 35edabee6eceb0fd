/* cursor: walks the nodes of a stream and evaluates its registers, without values of memory.
 *
 * A step of the walk is an item: the next instruction, trigger or barrier, and the waits before it.
 */
#ifndef SIM_CURSOR_H
#define SIM_CURSOR_H

#include "sim/control.h"
#include "sim/fault.h"
#include "sim/record.h"

/* The memory that an operand covers: rows are the first dimension of its buffer, columns are bytes in each row. */
struct sim_region {
  int buffer;
  bool writes;
  int64_t instance;                     /* of the buffer; see sim_life */
  int64_t row0, row1, column0, column1; /* row1 and column1 are exclusive */
};
/* True if both touch the same memory.  An instance is in copy `instance` modulo `copies`. */
static inline bool sim_region_overlaps(const struct sim_region *x, const struct sim_region *y, int64_t copies) {
  return x->row0 < y->row1 && y->row0 < x->row1 && x->column0 < y->column1 && y->column0 < x->column1 &&
         x->buffer == y->buffer && (x->instance - y->instance) % copies == 0;
}

enum sim_item_kind { SIM_ITEM_INSTR, SIM_ITEM_TRIGGER, SIM_ITEM_BARRIER, SIM_ITEM_END };
enum { SIM_WAITS_MAX = 16 };
struct sim_item {
  enum sim_item_kind kind;
  int instr; /* of SIM_ITEM_INSTR */
  int queue; /* of SIM_ITEM_TRIGGER: its stream */
  int n_waits;
  struct {
    int stream, count;
  } waits[SIM_WAITS_MAX];
  int n_branches;    /* on loaded data, before the item */
  bool of_all_cores; /* of SIM_ITEM_BARRIER */
  int n_regions;
  struct sim_region regions[NISA_OPERANDS_MAX];
};

struct sim_cursor {
  struct sim_control control;
  int64_t *instances;    /* per buffer: how often it has been allocated, less one */
  const bool *is_loaded; /* per register: it may depend on a register load */
  bool *was_taken;       /* per node: a condition that is not known counted as true at the last visit */
  struct sim_loads loads;
  int next_load;
  bool has_record;
  int *n_assumed;
};

/* Which registers may depend on a register load: one array for all cursors of a program. */
const bool *sim_cursor_loaded(const struct sim_program *p, struct arena *a);
/* Begins at node `first` with a copy of regs.  loads: NULL if no run was recorded. */
void sim_cursor_init(struct sim_cursor *c, const struct sim_program *p, int first, const int64_t *regs,
                     const bool *is_loaded, const struct sim_loads *loads, int *n_assumed, struct arena *a);
/* False with a fault: more waits than an item holds, a division by zero, too many nodes without an item. */
MUST_USE bool sim_cursor_next(struct sim_cursor *c, struct sim_item *item, struct sim_fault *fault);

#endif
