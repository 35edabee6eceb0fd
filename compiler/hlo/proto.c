/* proto: the module as a serialized HloModuleProto.
 *
 * Field by field as XLA's hlo.proto has it; see hlo.proto for the part that we write.  Instruction and computation
 * ids are renumbered from 0 in emission order (callees first).  Message objects live in an arena for the duration of
 * the call and point into the module, so that constants are not copied.
 */
#include "hlo/print.h"

#include <string.h>

#include "hlo/attrs.h"
#include "hlo/export.h"

struct writer {
  struct hlo_export emit;
  struct arena *arena;
  int *ids; /* by hlo_instr.id */
};

/* ---- shapes ------------------------------------------------------------------------------------------ */

static Xla__ProgramShapeProto *make_program_shape(struct writer *w, const struct hlo_computation *c) {
  struct arena *a = w->arena;
  Xla__ProgramShapeProto *p = arena_new(a, Xla__ProgramShapeProto);
  const struct hlo_instr *root = hlo_export_root(c);
  xla__program_shape_proto__init(p);
  p->n_parameters = p->n_parameter_names = (size_t)c->n_params;
  p->parameters = arena_new_array(a, Xla__ShapeProto *, (size_t)c->n_params);
  p->parameter_names = arena_new_array(a, char *, (size_t)c->n_params);
  for (int k = 0; k < c->n_params; k++) {
    p->parameters[k] = hlo_proto_put_shape(a, &c->params[k]->shape);
    p->parameter_names[k] =
        hlo_proto_borrow(c == w->emit.module->entry ? hlo_export_name(&w->emit, c->params[k]) : "param");
  }
  if (root)
    p->result = hlo_proto_put_shape(a, &root->shape);
  return p;
}

static Xla__OpMetadata *make_metadata(struct writer *w, const struct hlo_instr *i) {
  const struct src_range *r = &i->locs.v[0]->range;
  Xla__OpMetadata *m = arena_new(w->arena, Xla__OpMetadata);
  xla__op_metadata__init(m);
  m->op_type = hlo_proto_borrow("NKIPy_Op");
  m->op_name = arena_printf(w->arena, "hlo__%s", hlo_op_name(i->op));
  m->source_file = hlo_proto_borrow(r->file ? r->file : "");
  m->source_line = r->line;
  m->source_end_line = r->end_line;
  m->source_column = r->col;
  m->source_end_column = r->end_col;
  m->stack_frame_id = hlo_export_frame(&w->emit, i);
  return m;
}

static Xla__FrontendAttributes *make_frontend_attributes(struct arena *a, int n, const struct hlo_export_pair *v) {
  Xla__FrontendAttributes *f = arena_new(a, Xla__FrontendAttributes);
  xla__frontend_attributes__init(f);
  f->n_map = (size_t)n;
  HLO_PROTO_MESSAGES(a, n, Xla__FrontendAttributes__MapEntry, xla__frontend_attributes__map_entry__init, f->map);
  for (int k = 0; k < n; k++) {
    f->map[k]->key = hlo_proto_borrow(v[k].key);
    f->map[k]->value = hlo_proto_borrow(v[k].value);
  }
  return f;
}

static int64_t computation_number(const struct hlo_module *m, const struct hlo_computation *c) {
  int64_t n = 0;
  for (const struct hlo_computation *at = m->computations; at && at != c; at = at->next)
    n++;
  return n;
}

static void fill_instruction(struct writer *w, const struct hlo_instr *i, Xla__HloInstructionProto *p) {
  struct arena *a = w->arena;
  struct hlo_export_pair pairs[HLO_EXPORT_PAIRS_MAX];

  p->name = hlo_proto_borrow(hlo_export_name(&w->emit, i));
  p->opcode = hlo_proto_borrow(hlo_op_name(i->op));
  p->shape = hlo_proto_put_shape(a, &i->shape);
  p->id = w->ids[i->id];
  p->n_operand_ids = (size_t)i->n_operands;
  p->operand_ids = arena_new_array(a, int64_t, (size_t)i->n_operands);
  for (int k = 0; k < i->n_operands; k++)
    p->operand_ids[k] = w->ids[i->operands[k]->id];
  p->n_called_computation_ids = (size_t)i->n_called;
  p->called_computation_ids = arena_new_array(a, int64_t, (size_t)i->n_called);
  for (int k = 0; k < i->n_called; k++)
    p->called_computation_ids[k] = computation_number(w->emit.module, i->called[k]);
  hlo_attrs_to_proto(a, i, p);
  if (i->locs.n)
    p->metadata = make_metadata(w, i);
  const int n_pairs = hlo_export_frontend_attributes(&w->emit, i, pairs);
  if (n_pairs)
    p->frontend_attributes = make_frontend_attributes(a, n_pairs, pairs);
}

/* ---- the module -------------------------------------------------------------------------------------- */

static void fill_computation(struct writer *w, const struct hlo_computation *c, Xla__HloComputationProto *p) {
  const struct hlo_instr *root = hlo_export_root(c);
  int n = 0;
  p->name = hlo_proto_borrow(c->name);
  p->id = computation_number(w->emit.module, c);
  p->root_id = root ? w->ids[root->id] : 0;
  p->program_shape = make_program_shape(w, c);
  p->n_instructions = (size_t)c->n_instrs;
  HLO_PROTO_MESSAGES(w->arena, c->n_instrs, Xla__HloInstructionProto, xla__hlo_instruction_proto__init,
                     p->instructions);
  hlo_for_each(i, c) fill_instruction(w, i, p->instructions[n++]);
}

static Xla__HloInputOutputAliasProto *make_aliases(struct arena *a, const struct hlo_module *m) {
  Xla__HloInputOutputAliasProto *p = arena_new(a, Xla__HloInputOutputAliasProto);
  xla__hlo_input_output_alias_proto__init(p);
  p->n_entries = (size_t)m->n_aliases;
  HLO_PROTO_MESSAGES(a, m->n_aliases, Xla__HloInputOutputAliasProto__AliasEntryProto,
                     xla__hlo_input_output_alias_proto__alias_entry_proto__init, p->entries);
  for (int k = 0; k < m->n_aliases; k++) {
    p->entries[k]->parameter_number = m->aliases[k].param_index;
    if (m->entry->root && m->entry->root->shape.dtype == DT_TUPLE) {
      p->entries[k]->n_output_shape_index = 1;
      p->entries[k]->output_shape_index = arena_new(a, int64_t);
      p->entries[k]->output_shape_index[0] = m->aliases[k].output_index;
    }
  }
  return p;
}

static Xla__StackFrameIndexProto *make_stack_frames(struct arena *a, const struct hlo_frames *f) {
  Xla__StackFrameIndexProto *p = arena_new(a, Xla__StackFrameIndexProto);
  xla__stack_frame_index_proto__init(p);
  p->n_file_names = (size_t)f->n_files;
  p->file_names = (char **)(uintptr_t)f->files;
  p->n_function_names = (size_t)f->n_functions;
  p->function_names = (char **)(uintptr_t)f->functions;
  p->n_file_locations = (size_t)f->n_locations;
  HLO_PROTO_MESSAGES(a, f->n_locations, Xla__StackFrameIndexProto__FileLocation,
                     xla__stack_frame_index_proto__file_location__init, p->file_locations);
  for (int k = 0; k < f->n_locations; k++) {
    const struct hlo_frame_file_location *l = &f->locations[k];
    p->file_locations[k]->file_name_id = l->file;
    p->file_locations[k]->function_name_id = l->function;
    p->file_locations[k]->line = l->range.line;
    p->file_locations[k]->column = l->range.col;
    p->file_locations[k]->end_line = l->range.end_line;
    p->file_locations[k]->end_column = l->range.end_col;
  }
  p->n_stack_frames = (size_t)f->n_frames;
  HLO_PROTO_MESSAGES(a, f->n_frames, Xla__StackFrameIndexProto__StackFrame,
                     xla__stack_frame_index_proto__stack_frame__init, p->stack_frames);
  for (int k = 0; k < f->n_frames; k++) {
    p->stack_frames[k]->file_location_id = f->frames[k].location;
    p->stack_frames[k]->parent_frame_id = f->frames[k].parent;
  }
  return p;
}

static void number_instructions(struct writer *w, const struct hlo_module *m) {
  int n = 0;
  w->ids = arena_new_array(w->arena, int, (size_t)m->next_id);
  for (const struct hlo_computation *c = m->computations; c; c = c->next)
    hlo_for_each(i, c) w->ids[i->id] = n++;
}

static void fill_module(struct writer *w, const struct hlo_module *m, Xla__HloModuleProto *p) {
  int n = 0;
  p->name = hlo_proto_borrow(w->emit.module_name);
  p->entry_computation_name = hlo_proto_borrow(m->entry->name);
  p->entry_computation_id = computation_number(m, m->entry);
  p->n_computations = (size_t)m->n_computations;
  HLO_PROTO_MESSAGES(w->arena, m->n_computations, Xla__HloComputationProto, xla__hlo_computation_proto__init,
                     p->computations);
  for (const struct hlo_computation *c = m->computations; c; c = c->next)
    fill_computation(w, c, p->computations[n++]);
  p->host_program_shape = p->computations[n - 1]->program_shape;
  if (m->n_aliases)
    p->input_output_alias = make_aliases(w->arena, m);
  if (w->emit.frames.n_frames)
    p->stack_frame_index = make_stack_frames(w->arena, &w->emit.frames);
}

enum status hlo_write_proto(const struct hlo_module *m, struct buf *out) {
  struct arena a;
  struct writer w = {.arena = &a};
  Xla__HloModuleProto p = XLA__HLO_MODULE_PROTO__INIT;

  arena_init(&a);
  hlo_export_init(&w.emit, &a, m, true);
  number_instructions(&w, m);
  fill_module(&w, m, &p);
  size_t size = xla__hlo_module_proto__get_packed_size(&p);
  enum status st = buf_reserve(out, size);
  if (!st) {
    out->len += xla__hlo_module_proto__pack(&p, (uint8_t *)out->data + out->len);
    out->data[out->len] = 0;
  }
  arena_clear(&a);
  return st;
}
