/* simulate_value: one value of a stage of NISA: an operand of an instruction, or a buffer at the end of its life. */
#include <string.h>

#include "driver/simulate_internal.h"
#include "driver/value_find.h"

/* The operand that the words of the line give the name. */
static int find_operand_of_name(const struct simulation *s, const struct sim_instr *i, int line, const char *name) {
  const struct stage *stage = s->rq->stage;
  for (int k = 0; k < i->def->n_operands; k++)
    if (i->operand[k].kind != SIM_ABSENT && i->operand[k].type &&
        value_is_operand(stage->text, stage->text_len, line, name, i->def->operand[k].name))
      return k;
  return -1;
}

/* The allocation on a line; -1 if there is none. */
static int find_allocation(const struct simulation *s, int line) {
  for (int k = 0; line && k < s->program.n_buffers; k++)
    if (s->buffer_lines[k] == line)
      return k;
  return -1;
}

/* What a name stands for in the whole stage: an allocation or an argument. */
static const char *find_buffer(const struct simulation *s, const char *name, int line, struct sim_watch *w) {
  const struct stage *stage = s->rq->stage;
  struct value_place place;
  if (!value_find(stage->text, stage->text_len, name, line, &place))
    return "the stage defines no value of this name";
  w->is_buffer = true;
  w->buffer = place.kind != VALUE_ARGUMENT      ? find_allocation(s, place.line)
              : place.index < s->program.n_args ? s->program.args[place.index].buffer
                                                : -1;
  return w->buffer >= 0 ? NULL : "the name is no buffer: ask for an operand of an instruction";
}

/* The stage's own lines count, also for a source in NISA. */
static const char *find_value(struct simulation *s, const struct job_value *want, struct sim_watch *w) {
  *w = (struct sim_watch){.instr = -1, .operand = -1, .nth = want->nth};
  for (int k = 0; k < s->program.n_instrs && w->instr < 0; k++)
    if (want->line && s->lines[k] == want->line)
      w->instr = k;
  if (w->instr >= 0)
    w->operand = want->name ? find_operand_of_name(s, &s->program.instrs[w->instr], want->line, want->name)
                            : simulate_find_operand(&s->program.instrs[w->instr], want->operand);
  if (w->operand >= 0)
    return NULL;
  if (want->name)
    return find_buffer(s, want->name, want->line, w);
  w->is_buffer = true;
  w->buffer = w->instr < 0 ? find_allocation(s, want->line) : -1;
  return w->buffer >= 0  ? NULL
         : w->instr >= 0 ? "the instruction has no such operand"
                         : "there is no instruction and no allocation on this line";
}

static void take_buffer(const struct simulation *s, const struct sim_watch *w, struct simulated_value *out) {
  const struct sim_buffer *b = &s->program.buffers[w->buffer];
  out->array.shape = hlo_shape_array(s->rq->arena, simulate_dtype(b->type), b->rank, b->dims);
  out->unwritten = w->n_unwritten;
  out->is_on_chip = mem_is_on_chip(b->space);
  out->array.data = arena_dup(s->rq->arena, w->data, (size_t)b->bytes);
}

static void take_operand(const struct simulation *s, const struct sim_watch *w, struct simulated_value *out) {
  const struct sim_operand *o = &s->program.instrs[w->instr].operand[w->operand];
  int64_t dims[NISA_TILE_MAX];
  for (int k = 0; k < o->n_dims; k++)
    dims[k] = o->dim[k].n;
  out->is_on_chip = o->buffer >= 0 && mem_is_on_chip(s->program.buffers[o->buffer].space);
  out->operand = s->program.instrs[w->instr].def->operand[w->operand].name;
  out->array.shape = hlo_shape_array(s->rq->arena, simulate_dtype(o->type), o->n_dims, dims);
  out->array.data =
      arena_dup(s->rq->arena, w->data, (size_t)hlo_shape_elements(&out->array.shape) * (size_t)sim_type_bytes(o->type));
}

static const char *take_watch(const struct simulation *s, const struct sim_watch *w, struct simulated_value *out) {
  out->executions = w->n_executions;
  if (w->state == SIM_WATCH_UNWRITTEN)
    return "a part of it has never been written";
  if (w->state != SIM_WATCH_KEPT)
    return s->fault.kind ? arena_printf(s->rq->arena, "%s: %s", sim_fault_name(s->fault.kind), s->fault.text)
           : !w->n_executions
               ? "it is not executed"
               : arena_printf(s->rq->arena, "it is executed only %lld times", (long long)w->n_executions);
  out->nth = w->nth ? w->nth : w->n_executions;
  (w->is_buffer ? take_buffer : take_operand)(s, w, out);
  return NULL;
}

const char *simulate_value(const struct simulate_request *rq, struct simulated_value *out) {
  struct simulate_request own = *rq;
  struct simulation *s;
  struct sim_watch w;
  struct diags ds;
  diags_init(&ds, rq->arena);
  own.is_nisa = false;
  if (simulate_open(&own, &ds, &s))
    return ds.n ? ds.v[0].message : "the simulator cannot run the stage";
  const char *reason = find_value(s, &rq->job->value, &w);
  if (reason)
    return reason;
  s->n_watches = 1;
  s->watches = &w;
  if (simulate_run(s) && !s->fault.kind)
    reason = ds.n ? ds.v[0].message : "the simulator cannot run the stage";
  if (!reason)
    reason = take_watch(s, &w, out);
  sim_watch_clear(&w);
  return reason;
}
