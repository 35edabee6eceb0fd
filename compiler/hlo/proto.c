/* proto: the module as a serialized HloModuleProto.
 *
 * Field by field as XLA's hlo.proto has it; see hlo.proto for the part that we write.  Instruction and computation
 * ids are renumbered from 0 in emission order (callees first).  Message objects live in an arena for the duration of
 * the call and point into the module, so that constants are not copied.
 */
#include "hlo/print.h"

#include <string.h>

#include "hlo.pb-c.h"
#include "hlo/export.h"

struct writer {
  struct hlo_export emit;
  struct arena *arena;
  int *ids; /* by hlo_instr.id */
};

/* An array of n pointers to fresh messages, each initialised. */
#define MESSAGES(a, n, type, init, out) \
  do { \
    (out) = arena_new_array((a), type *, (size_t)(n)); \
    for (int msg_ = 0; msg_ < (n); msg_++) { \
      (out)[msg_] = arena_new((a), type); \
      init((out)[msg_]); \
    } \
  } while (0)

/* protobuf-c's structs are not const-correct; packing only reads. */
static char *text_of(const char *s) {
  return (char *)(uintptr_t)s;
}

static int64_t *ints_of(struct hlo_ints v, size_t *n) {
  *n = (size_t)v.n;
  return (int64_t *)(uintptr_t)v.v;
}

/* ---- shapes ------------------------------------------------------------------------------------------ */

static Xla__LayoutProto *make_layout(struct arena *a, int rank) {
  Xla__LayoutProto *l = arena_new(a, Xla__LayoutProto);
  xla__layout_proto__init(l);
  l->n_minor_to_major = (size_t)rank;
  l->minor_to_major = arena_new_array(a, int64_t, (size_t)rank);
  for (int k = 0; k < rank; k++)
    l->minor_to_major[k] = rank - 1 - k;
  l->tail_padding_alignment_in_elements = 1;
  return l;
}

/* Every shape says its (row-major) layout, those of the program too: the text form cannot leave them out, and text and
 * proto have to be the same module. */
static Xla__ShapeProto *make_shape(struct arena *a, const struct hlo_shape *s) {
  Xla__ShapeProto *p = arena_new(a, Xla__ShapeProto);
  xla__shape_proto__init(p);
  p->element_type = dtype_xla_number(s->dtype);
  if (s->dtype == DT_TUPLE) {
    p->n_tuple_shapes = (size_t)s->n_elems;
    p->tuple_shapes = arena_new_array(a, Xla__ShapeProto *, (size_t)s->n_elems);
    for (int k = 0; k < s->n_elems; k++)
      p->tuple_shapes[k] = make_shape(a, &s->elems[k]);
    return p;
  }
  p->dimensions = ints_of((struct hlo_ints){s->rank, s->dims}, &p->n_dimensions);
  p->n_is_dynamic_dimension = (size_t)s->rank;
  p->is_dynamic_dimension = arena_new_array(a, protobuf_c_boolean, (size_t)s->rank);
  p->layout = make_layout(a, s->rank);
  return p;
}

static Xla__ProgramShapeProto *make_program_shape(struct writer *w, const struct hlo_computation *c) {
  struct arena *a = w->arena;
  Xla__ProgramShapeProto *p = arena_new(a, Xla__ProgramShapeProto);
  const struct hlo_instr *root = hlo_export_root(c);
  xla__program_shape_proto__init(p);
  p->n_parameters = p->n_parameter_names = (size_t)c->n_params;
  p->parameters = arena_new_array(a, Xla__ShapeProto *, (size_t)c->n_params);
  p->parameter_names = arena_new_array(a, char *, (size_t)c->n_params);
  for (int k = 0; k < c->n_params; k++) {
    p->parameters[k] = make_shape(a, &c->params[k]->shape);
    p->parameter_names[k] = text_of(c == w->emit.module->entry ? hlo_export_name(&w->emit, c->params[k]) : "param");
  }
  if (root)
    p->result = make_shape(a, &root->shape);
  return p;
}

/* ---- constants --------------------------------------------------------------------------------------- */

static ProtobufCBinaryData bytes_of(const struct hlo_literal *l) {
  return (ProtobufCBinaryData){l->size, (uint8_t *)(uintptr_t)l->data};
}

static Xla__LiteralProto *make_literal(struct arena *a, const struct hlo_literal *l) {
  Xla__LiteralProto *p = arena_new(a, Xla__LiteralProto);
  size_t n = l->size / dtype_size(l->shape.dtype);
  void *data = (void *)(uintptr_t)l->data;

  xla__literal_proto__init(p);
  p->shape = make_shape(a, &l->shape);
  switch (l->shape.dtype) {
#define LITERAL_REPEATED(dt, field) \
  case dt: \
    p->n_##field = n; \
    p->field = data; \
    break;
#define LITERAL_BYTES(dt, field) \
  case dt: \
    p->field = bytes_of(l); \
    break;
#include "hlo/literal_fields.def"
#undef LITERAL_REPEATED
#undef LITERAL_BYTES
  case DT_BOOL:
    p->n_preds = n;
    p->preds = arena_new_array(a, protobuf_c_boolean, n);
    for (size_t k = 0; k < n; k++)
      p->preds[k] = ((const uint8_t *)l->data)[k] != 0;
    break;
  case DT_NONE:
  case DT_TUPLE:
  case DT_COUNT:
    break;
  }
  return p;
}

/* ---- instructions ------------------------------------------------------------------------------------ */

static void add_slices(struct arena *a, const struct hlo_instr *i, Xla__HloInstructionProto *p) {
  int n = i->operands[0]->shape.rank;
  p->n_slice_dimensions = (size_t)n;
  MESSAGES(a, n, Xla__HloInstructionProto__SliceDimensions, xla__hlo_instruction_proto__slice_dimensions__init,
           p->slice_dimensions);
  for (int k = 0; k < n; k++) {
    p->slice_dimensions[k]->start = i->attrs->slice[k].start;
    p->slice_dimensions[k]->limit = i->attrs->slice[k].limit;
    p->slice_dimensions[k]->stride = i->attrs->slice[k].stride;
  }
}

static void add_padding(struct arena *a, const struct hlo_instr *i, Xla__HloInstructionProto *p) {
  int n = i->operands[0]->shape.rank;
  Xla__PaddingConfig *c = p->padding_config = arena_new(a, Xla__PaddingConfig);
  xla__padding_config__init(c);
  c->n_dimensions = (size_t)n;
  MESSAGES(a, n, Xla__PaddingConfig__PaddingConfigDimension, xla__padding_config__padding_config_dimension__init,
           c->dimensions);
  for (int k = 0; k < n; k++) {
    c->dimensions[k]->edge_padding_low = i->attrs->padding[k].low;
    c->dimensions[k]->edge_padding_high = i->attrs->padding[k].high;
    c->dimensions[k]->interior_padding = i->attrs->padding[k].interior;
  }
}

static void add_dot(struct arena *a, const struct hlo_dot_dims *d, Xla__HloInstructionProto *p) {
  Xla__DotDimensionNumbers *n = p->dot_dimension_numbers = arena_new(a, Xla__DotDimensionNumbers);
  xla__dot_dimension_numbers__init(n);
  n->lhs_contracting_dimensions = ints_of(d->lhs_contracting, &n->n_lhs_contracting_dimensions);
  n->rhs_contracting_dimensions = ints_of(d->rhs_contracting, &n->n_rhs_contracting_dimensions);
  n->lhs_batch_dimensions = ints_of(d->lhs_batch, &n->n_lhs_batch_dimensions);
  n->rhs_batch_dimensions = ints_of(d->rhs_batch, &n->n_rhs_batch_dimensions);
}

static void add_gather(struct arena *a, const struct hlo_gather_dims *g, Xla__HloInstructionProto *p) {
  Xla__GatherDimensionNumbers *n = p->gather_dimension_numbers = arena_new(a, Xla__GatherDimensionNumbers);
  xla__gather_dimension_numbers__init(n);
  n->offset_dims = ints_of(g->offset_dims, &n->n_offset_dims);
  n->collapsed_slice_dims = ints_of(g->collapsed_slice_dims, &n->n_collapsed_slice_dims);
  n->start_index_map = ints_of(g->start_index_map, &n->n_start_index_map);
  n->operand_batching_dims = ints_of(g->operand_batching_dims, &n->n_operand_batching_dims);
  n->start_indices_batching_dims = ints_of(g->start_indices_batching_dims, &n->n_start_indices_batching_dims);
  n->index_vector_dim = g->index_vector_dim;
  p->gather_slice_sizes = ints_of(g->slice_sizes, &p->n_gather_slice_sizes);
  p->indices_are_sorted = g->indices_are_sorted;
}

static void add_scatter(struct arena *a, const struct hlo_scatter_dims *s, Xla__HloInstructionProto *p) {
  Xla__ScatterDimensionNumbers *n = p->scatter_dimension_numbers = arena_new(a, Xla__ScatterDimensionNumbers);
  xla__scatter_dimension_numbers__init(n);
  n->update_window_dims = ints_of(s->update_window_dims, &n->n_update_window_dims);
  n->inserted_window_dims = ints_of(s->inserted_window_dims, &n->n_inserted_window_dims);
  n->scatter_dims_to_operand_dims = ints_of(s->scatter_dims_to_operand_dims, &n->n_scatter_dims_to_operand_dims);
  n->input_batching_dims = ints_of(s->input_batching_dims, &n->n_input_batching_dims);
  n->scatter_indices_batching_dims = ints_of(s->scatter_indices_batching_dims, &n->n_scatter_indices_batching_dims);
  n->index_vector_dim = s->index_vector_dim;
  p->indices_are_sorted = s->indices_are_sorted;
  p->unique_indices = s->unique_indices;
}

static void add_window(struct arena *a, const struct hlo_window *w, Xla__HloInstructionProto *p) {
  p->window = arena_new(a, Xla__Window);
  xla__window__init(p->window);
  p->window->n_dimensions = (size_t)w->n;
  MESSAGES(a, w->n, Xla__WindowDimension, xla__window_dimension__init, p->window->dimensions);
  for (int k = 0; k < w->n; k++) {
    Xla__WindowDimension *d = p->window->dimensions[k];
    d->size = w->v[k].size;
    d->stride = w->v[k].stride;
    d->padding_low = w->v[k].low;
    d->padding_high = w->v[k].high;
    d->window_dilation = w->v[k].window_dilation;
    d->base_dilation = w->v[k].base_dilation;
    d->window_reversal = w->v[k].is_reversed;
  }
}

static void add_convolution(struct arena *a, const struct hlo_conv_dims *c, Xla__HloInstructionProto *p) {
  Xla__ConvolutionDimensionNumbers *n = p->convolution_dimension_numbers =
      arena_new(a, Xla__ConvolutionDimensionNumbers);
  xla__convolution_dimension_numbers__init(n);
  n->input_batch_dimension = c->input_batch;
  n->input_feature_dimension = c->input_feature;
  n->kernel_input_feature_dimension = c->kernel_input_feature;
  n->kernel_output_feature_dimension = c->kernel_output_feature;
  n->output_batch_dimension = c->output_batch;
  n->output_feature_dimension = c->output_feature;
  n->input_spatial_dimensions = ints_of(c->input_spatial, &n->n_input_spatial_dimensions);
  n->kernel_spatial_dimensions = ints_of(c->kernel_spatial, &n->n_kernel_spatial_dimensions);
  n->output_spatial_dimensions = ints_of(c->output_spatial, &n->n_output_spatial_dimensions);
  p->feature_group_count = c->feature_group_count;
  p->batch_group_count = c->batch_group_count;
}

static void add_groups(struct arena *a, const struct hlo_instr *i, Xla__HloInstructionProto *p) {
  const struct hlo_groups *g = i->attrs->groups;
  if (i->op == HLO_COLLECTIVE_PERMUTE) {
    p->n_source_target_pairs = (size_t)g->n;
    MESSAGES(a, g->n, Xla__SourceTarget, xla__source_target__init, p->source_target_pairs);
    for (int k = 0; k < g->n; k++) {
      p->source_target_pairs[k]->source = g->v[k].v[0];
      p->source_target_pairs[k]->target = g->v[k].v[1];
    }
    return;
  }
  p->n_replica_groups = (size_t)g->n;
  MESSAGES(a, g->n, Xla__ReplicaGroup, xla__replica_group__init, p->replica_groups);
  for (int k = 0; k < g->n; k++)
    p->replica_groups[k]->replica_ids = ints_of(g->v[k], &p->replica_groups[k]->n_replica_ids);
}

static void add_operand_aliases(struct arena *a, const struct hlo_instr *i, Xla__HloInstructionProto *p) {
  p->n_output_operand_aliasing = (size_t)i->attrs->n_operand_aliases;
  MESSAGES(a, i->attrs->n_operand_aliases, Xla__OutputOperandAliasing, xla__output_operand_aliasing__init,
           p->output_operand_aliasing);
  for (int k = 0; k < i->attrs->n_operand_aliases; k++) {
    Xla__OutputOperandAliasing *x = p->output_operand_aliasing[k];
    x->output_shape_index = ints_of(i->attrs->operand_aliases[k].output_index, &x->n_output_shape_index);
    x->operand_index = i->attrs->operand_aliases[k].operand;
  }
}

static void add_attributes(struct arena *a, const struct hlo_instr *i, Xla__HloInstructionProto *p) {
  if (i->op == HLO_DYNAMIC_SLICE)
    p->dynamic_slice_sizes = ints_of(i->attrs->dimensions, &p->n_dynamic_slice_sizes);
  else
    p->dimensions = ints_of(i->attrs->dimensions, &p->n_dimensions);
  if (i->op == HLO_SLICE)
    add_slices(a, i, p);
  if (i->op == HLO_PAD)
    add_padding(a, i, p);
  if (i->attrs->dot)
    add_dot(a, i->attrs->dot, p);
  if (i->attrs->gather)
    add_gather(a, i->attrs->gather, p);
  if (i->attrs->scatter)
    add_scatter(a, i->attrs->scatter, p);
  if (i->attrs->window)
    add_window(a, i->attrs->window, p);
  if (i->attrs->conv)
    add_convolution(a, i->attrs->conv, p);
  if (i->attrs->groups)
    add_groups(a, i, p);
  if (i->op == HLO_CUSTOM_CALL)
    p->custom_call_api_version = 1; /* what the text form means when it says nothing */
  add_operand_aliases(a, i, p);
  if (i->op == HLO_COMPARE)
    p->comparison_direction = text_of(hlo_direction_name(i->attrs->direction));
  if (i->attrs->is_total_order)
    p->comparison_type = text_of("TOTALORDER");
  p->is_stable = i->attrs->is_stable;
  p->k = i->attrs->k;
  p->largest = i->op == HLO_TOPK && !i->attrs->is_smallest;
  p->channel_id = i->attrs->channel_id;
  if (i->attrs->literal)
    p->literal = make_literal(a, i->attrs->literal);
  p->parameter_number = i->attrs->parameter_number;
  p->tuple_index = i->attrs->tuple_index;
  if (i->attrs->custom_call_target)
    p->custom_call_target = text_of(i->attrs->custom_call_target);
  if (i->attrs->backend_config)
    p->backend_config = (ProtobufCBinaryData){strlen(i->attrs->backend_config),
                                              (uint8_t *)(uintptr_t)text_of(i->attrs->backend_config)};
}

static Xla__OpMetadata *make_metadata(struct writer *w, const struct hlo_instr *i) {
  const struct src_range *r = &i->locs.v[0]->range;
  Xla__OpMetadata *m = arena_new(w->arena, Xla__OpMetadata);
  xla__op_metadata__init(m);
  m->op_type = text_of("NKIPy_Op");
  m->op_name = arena_printf(w->arena, "hlo__%s", hlo_op_name(i->op));
  m->source_file = text_of(r->file ? r->file : "");
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
  MESSAGES(a, n, Xla__FrontendAttributes__MapEntry, xla__frontend_attributes__map_entry__init, f->map);
  for (int k = 0; k < n; k++) {
    f->map[k]->key = text_of(v[k].key);
    f->map[k]->value = text_of(v[k].value);
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

  p->name = text_of(hlo_export_name(&w->emit, i));
  p->opcode = text_of(hlo_op_name(i->op));
  p->shape = make_shape(a, &i->shape);
  p->id = w->ids[i->id];
  p->n_operand_ids = (size_t)i->n_operands;
  p->operand_ids = arena_new_array(a, int64_t, (size_t)i->n_operands);
  for (int k = 0; k < i->n_operands; k++)
    p->operand_ids[k] = w->ids[i->operands[k]->id];
  p->n_called_computation_ids = (size_t)i->n_called;
  p->called_computation_ids = arena_new_array(a, int64_t, (size_t)i->n_called);
  for (int k = 0; k < i->n_called; k++)
    p->called_computation_ids[k] = computation_number(w->emit.module, i->called[k]);
  add_attributes(a, i, p);
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
  p->name = text_of(c->name);
  p->id = computation_number(w->emit.module, c);
  p->root_id = root ? w->ids[root->id] : 0;
  p->program_shape = make_program_shape(w, c);
  p->n_instructions = (size_t)c->n_instrs;
  MESSAGES(w->arena, c->n_instrs, Xla__HloInstructionProto, xla__hlo_instruction_proto__init, p->instructions);
  hlo_for_each(i, c) fill_instruction(w, i, p->instructions[n++]);
}

static Xla__HloInputOutputAliasProto *make_aliases(struct arena *a, const struct hlo_module *m) {
  Xla__HloInputOutputAliasProto *p = arena_new(a, Xla__HloInputOutputAliasProto);
  xla__hlo_input_output_alias_proto__init(p);
  p->n_entries = (size_t)m->n_aliases;
  MESSAGES(a, m->n_aliases, Xla__HloInputOutputAliasProto__AliasEntryProto,
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
  MESSAGES(a, f->n_locations, Xla__StackFrameIndexProto__FileLocation,
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
  MESSAGES(a, f->n_frames, Xla__StackFrameIndexProto__StackFrame, xla__stack_frame_index_proto__stack_frame__init,
           p->stack_frames);
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
  p->name = text_of(w->emit.module_name);
  p->entry_computation_name = text_of(m->entry->name);
  p->entry_computation_id = computation_number(m, m->entry);
  p->n_computations = (size_t)m->n_computations;
  MESSAGES(w->arena, m->n_computations, Xla__HloComputationProto, xla__hlo_computation_proto__init, p->computations);
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
