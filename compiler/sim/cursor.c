#include "sim/cursor.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

enum { LOOKS_MAX = 10000 }; /* at an endless loop, before it is one: thousands of nodes each */

/* ---- which registers depend on loads ----------------------------------------------------------------------------- */

static bool linear_depends(const struct sim_linear *x, const bool *is_loaded) {
  for (int k = 0; x && k < x->n; k++)
    if (is_loaded[x->terms[k].reg])
      return true;
  return false;
}

static bool node_depends(const struct sim_node *n, const bool *is_loaded) {
  switch (n->kind) {
  case SIM_NODE_STEP:
    return is_loaded[n->b] || (n->c >= 0 && is_loaded[n->c]) || (n->d >= 0 && is_loaded[n->d]);
  case SIM_NODE_MOVE:
    return is_loaded[n->b];
  case SIM_NODE_LESS:
    return is_loaded[n->b] || is_loaded[n->c];
  case SIM_NODE_LINEAR:
    return linear_depends(n->linear, is_loaded);
  default:
    return false;
  }
}

const bool *sim_cursor_loaded(const struct sim_program *p, struct arena *a) {
  bool *is_loaded = arena_new_array(a, bool, (size_t)p->n_regs + 1);
  bool grows = false;
  for (int k = 0; k < p->n_instrs; k++)
    if (p->instrs[k].result >= 0)
      grows = is_loaded[p->instrs[k].result] = true;
  while (grows) {
    grows = false;
    for (int k = 0; k < p->n_nodes; k++) {
      const struct sim_node *n = &p->nodes[k];
      if (node_depends(n, is_loaded) && !is_loaded[n->a])
        grows = is_loaded[n->a] = true;
    }
  }
  return is_loaded;
}

void sim_cursor_init(struct sim_cursor *c, const struct sim_program *p, int first, const int64_t *regs,
                     const bool *is_loaded, const struct sim_loads *loads, int *n_assumed, struct arena *a) {
  *c = (struct sim_cursor){.control = {p, arena_new_array(a, int64_t, (size_t)p->n_regs + 1), first, is_loaded},
                           .instances = arena_new_array(a, int64_t, (size_t)p->n_buffers + 1),
                           .is_loaded = is_loaded,
                           .was_taken = arena_new_array(a, bool, (size_t)p->n_nodes + 1),
                           .has_record = loads,
                           .n_assumed = n_assumed};
  if (p->n_regs)
    memcpy(c->control.regs, regs, (size_t)p->n_regs * sizeof *c->control.regs);
  for (int k = 0; k < p->n_buffers; k++)
    c->instances[k] = -1;
  if (loads)
    c->loads = *loads;
}

/* ---- regions ----------------------------------------------------------------------------------------------------- */

static void find_region(const struct sim_cursor *c, const struct sim_operand *o, bool writes, struct sim_region *r) {
  int64_t buffer = o->ref >= 0 ? c->control.regs[o->ref] : o->buffer;
  if (buffer < 0 || buffer >= c->control.program->n_buffers)
    buffer = 0; /* chosen by data that is not known */
  const struct sim_buffer *b = &c->control.program->buffers[buffer];
  const int64_t pitch = b->rank && b->dims[0] > 0 && b->bytes > 0 ? b->bytes / b->dims[0] : b->bytes + 1;
  const int64_t start = sim_linear_value(&o->start, c->control.regs);
  int64_t rows = 0, columns = sim_type_bytes(o->type), all = columns;

  for (int k = 0; k < o->n_dims; k++) {
    const int64_t step = o->dim[k].step < 0 ? 0 : o->dim[k].step, span = (o->dim[k].n - 1) * step;
    all += span;
    if (step % pitch == 0)
      rows += span / pitch;
    else
      columns += span;
  }
  *r = (struct sim_region){.buffer = (int)buffer,
                           .writes = writes,
                           .instance = sim_linear_value(&o->copy, c->control.regs) +
                                       (c->instances[buffer] > 0 ? c->instances[buffer] : 0),
                           .row0 = start / pitch,
                           .row1 = start / pitch + rows + 1,
                           .column0 = start % pitch,
                           .column1 = start % pitch + columns};
  if (r->column1 > pitch) { /* a row does not hold it: all that lies between its first and last byte */
    r->row1 = (start + all - 1) / pitch + 1;
    r->column0 = 0;
    r->column1 = pitch;
  }
}

static void find_regions(const struct sim_cursor *c, const struct sim_instr *i, struct sim_item *item) {
  for (int k = 0; k < i->def->n_operands; k++)
    if (i->operand[k].kind == SIM_ACCESS)
      find_region(c, &i->operand[k], i->def->operand[k].writes, &item->regions[item->n_regions++]);
}

/* ---- walking ----------------------------------------------------------------------------------------------------- */

static bool give_up(struct sim_fault *fault, enum sim_fault_kind kind, const char *what) {
  *fault = (struct sim_fault){.kind = kind};
  snprintf(fault->text, sizeof fault->text, "%s", what);
  return false;
}

/* Follows a branch on loaded data, which is taken if the register is 0. */
static void branch(struct sim_cursor *c, const struct sim_node *n) {
  bool *was_taken = &c->was_taken[n - c->control.program->nodes];
  bool is_zero = !c->control.regs[n->a];
  if (!c->has_record) {
    ++*c->n_assumed;
    is_zero = *was_taken;
    *was_taken = !*was_taken;
  }
  if (is_zero)
    c->control.at = n->b;
}

static int as_count(int64_t v) {
  return v > INT_MAX ? INT_MAX : v < 0 ? 0 : (int)v;
}

static void load(struct sim_cursor *c, const struct sim_instr *i) {
  if (i->result >= 0)
    c->control.regs[i->result] = c->next_load < c->loads.n ? c->loads.v[c->next_load++] : 0;
}

/* The next instance, in the copy that the iteration of the loop says: node register b, if there is one. */
static void allocate(struct sim_cursor *c, const struct sim_node *n) {
  const int copies = c->control.program->buffers[n->a].place.copies;
  int64_t *instance = &c->instances[n->a];
  ++*instance;
  if (n->b >= 0 && copies > 1)
    *instance += ((c->control.regs[n->b] - *instance) % copies + copies) % copies;
}

/* Adds what a node says to the item; true if it is complete. */
static bool add_node(struct sim_cursor *c, const struct sim_node *n, struct sim_item *item) {
  switch (n->kind) {
  case SIM_NODE_INSTR:
    item->kind = SIM_ITEM_INSTR;
    item->instr = n->a;
    find_regions(c, &c->control.program->instrs[n->a], item);
    load(c, &c->control.program->instrs[n->a]);
    return true;
  case SIM_NODE_TRIGGER:
    item->kind = SIM_ITEM_TRIGGER;
    item->queue = n->a;
    return true;
  case SIM_NODE_BARRIER:
    item->kind = SIM_ITEM_BARRIER;
    item->of_all_cores = n->a;
    return true;
  case SIM_NODE_WAIT:
    item->waits[item->n_waits].stream = n->a;
    item->waits[item->n_waits++].count = as_count(sim_linear_value(n->linear, c->control.regs));
    return false;
  case SIM_NODE_ALLOC:
    allocate(c, n);
    return false;
  case SIM_NODE_UNLESS:
    item->n_branches++;
    branch(c, n);
    return false;
  default:
    return n->kind == SIM_NODE_END;
  }
}

bool sim_cursor_next(struct sim_cursor *c, struct sim_item *item, struct sim_fault *fault) {
  *item = (struct sim_item){.kind = SIM_ITEM_END, .instr = -1, .queue = -1};
  for (int looks = 0; looks < LOOKS_MAX;) {
    const struct sim_node *n;
    switch (sim_control_next(&c->control, &n)) {
    case SIM_CONTROL_NODE:
      if (n->kind == SIM_NODE_WAIT && item->n_waits == SIM_WAITS_MAX)
        return give_up(fault, SIM_FAULT_INSTRUCTION, "too many waits before one instruction");
      if (add_node(c, n, item))
        return true;
      looks += n->kind == SIM_NODE_UNLESS;
      break;
    case SIM_CONTROL_LOOK:
      looks++;
      break;
    case SIM_CONTROL_DIVISION: /* by a value that is not known, perhaps */
      if (!c->is_loaded[c->control.program->nodes[c->control.at - 1].a])
        return give_up(fault, SIM_FAULT_INSTRUCTION, "a division by zero in index arithmetic");
      break;
    }
  }
  return give_up(fault, SIM_FAULT_TIME, "a loop that does nothing does not end");
}
