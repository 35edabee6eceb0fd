/* read_proto: a serialized HloModuleProto to a module.
 *
 * XLA writes computations and instructions with what they refer to first; nothing else is read.  The bytes are walked
 * once before protobuf-c sees them, because it follows nested messages without a limit.
 */
#include <stdarg.h>
#include <string.h>

#include "hlo.pb-c.h"
#include "hlo/build.h"
#include "hlo/passes.h"
#include "hlo/read_text.h"

/* Computations, or one computation's instructions, by id. */
struct id_slot {
  int64_t id;
  void *made;
};
struct id_map {
  struct id_slot *v;
  size_t cap;
};

struct proto_reader {
  struct arena *a;
  struct diags *ds;
  const Xla__HloModuleProto *p;
  struct hlo_module *m;
  struct id_map comps; /* those that have been read, but the entry */
  const struct src_loc **frames;
  const char *where; /* the instruction that is being read, for errors */
};

static PRINTF(3, 4) bool refuse(struct proto_reader *r, enum diag_code code, const char *fmt, ...) {
  va_list ap;
  va_start(ap, fmt);
  const char *text = arena_vprintf(r->a, fmt, ap);
  va_end(ap);
  if (r->where)
    diag_add(r->ds, DS_ERROR, code, NULL, "%%%s: %s", r->where, text);
  else
    diag_add(r->ds, DS_ERROR, code, NULL, "%s", text);
  return false;
}

/* ---- the bytes ---------------------------------------------------------------------------------------------------- */

static bool take_varint(const uint8_t **at, const uint8_t *end, uint64_t *out) {
  *out = 0;
  for (int shift = 0; *at < end && shift < 64; shift += 7) {
    const uint8_t byte = *(*at)++;
    *out |= (uint64_t)(byte & 0x7f) << shift;
    if (!(byte & 0x80))
      return true;
  }
  return false;
}

/* Whether the messages are nested at most `depth` deep, as the descriptor reads them. */
static bool is_shallow(const ProtobufCMessageDescriptor *d, const uint8_t *at, const uint8_t *end, int depth) {
  uint64_t tag, n;
  if (!depth)
    return false;
  while (at < end) {
    if (!take_varint(&at, end, &tag))
      return false;
    switch (tag & 7) {
    case 0:
      if (!take_varint(&at, end, &n))
        return false;
      continue;
    case 1:
    case 5:
      n = (tag & 7) == 1 ? 8 : 4;
      break;
    case 2:
      if (!take_varint(&at, end, &n))
        return false;
      break;
    default:
      return false;
    }
    if (n > (uint64_t)(end - at))
      return false;
    const ProtobufCFieldDescriptor *f =
        tag >> 3 <= UINT32_MAX ? protobuf_c_message_descriptor_get_field(d, (unsigned)(tag >> 3)) : NULL;
    if ((tag & 7) == 2 && f && f->type == PROTOBUF_C_TYPE_MESSAGE && !is_shallow(f->descriptor, at, at + n, depth - 1))
      return false;
    at += n;
  }
  return true;
}

static Xla__HloModuleProto *unpack(const void *data, size_t len) {
  const uint8_t *bytes = data, *end = bytes + len;
  if (!is_shallow(&xla__hlo_module_proto__descriptor, bytes, end, HLO_READ_NEST_MAX))
    return NULL;
  Xla__HloModuleProto *p = xla__hlo_module_proto__unpack(NULL, len, bytes);
  if (p && p->n_computations)
    return p;
  if (p)
    xla__hlo_module_proto__free_unpacked(p, NULL);
  return NULL;
}

/* In a HloProto the module is field 1, a message; in a HloModuleProto field 1 is the name. */
static Xla__HloModuleProto *unpack_either(const void *data, size_t len) {
  Xla__HloModuleProto *p = unpack(data, len);
  const uint8_t *at = data, *end = at + len;
  uint64_t tag, n;
  if (p || !take_varint(&at, end, &tag) || tag != (1 << 3 | 2) || !take_varint(&at, end, &n) ||
      n > (uint64_t)(end - at))
    return p;
  return unpack(at, (size_t)n);
}

bool hlo_is_text(const char *data, size_t len) {
  for (size_t k = 0; k < len && k < 64; k++)
    if ((unsigned char)data[k] < 0x20 && !strchr("\t\n\r", data[k]))
      return false;
  return !memchr(data, 0, len);
}

/* ---- values ------------------------------------------------------------------------------------------------------- */

static struct hlo_ints ints(struct proto_reader *r, size_t n, const int64_t *v) {
  return hlo_ints_dup(r->a, (int)n, v);
}

static const char *text(struct proto_reader *r, const char *s) {
  return s ? arena_strdup(r->a, s) : "";
}

static bool read_proto_shape(struct proto_reader *r, const Xla__ShapeProto *p, struct hlo_shape *out) {
  if (!p)
    return refuse(r, DG_HLO_INVALID, "there is no shape");
  const enum dtype t = p->element_type == 13 ? DT_TUPLE : dtype_from_xla_number(p->element_type);
  if (t == DT_NONE)
    return refuse(r, DG_UNSUPPORTED_DTYPE, "the element type number %d has no form here", p->element_type);
  if (t == DT_TUPLE) {
    struct hlo_shape *elems = arena_new_array(r->a, struct hlo_shape, p->n_tuple_shapes);
    for (size_t k = 0; k < p->n_tuple_shapes; k++)
      if (!read_proto_shape(r, p->tuple_shapes[k], &elems[k]))
        return false;
    *out = (struct hlo_shape){.dtype = DT_TUPLE, .n_elems = (int)p->n_tuple_shapes, .elems = elems};
    return true;
  }
  if (p->n_dimensions > HLO_RANK_MAX)
    return refuse(r, DG_HLO_INVALID, "%zu dimensions; at most %d are possible", p->n_dimensions, HLO_RANK_MAX);
  for (size_t k = 0; k < p->n_dimensions; k++)
    if (p->dimensions[k] < 0 || (k < p->n_is_dynamic_dimension && p->is_dynamic_dimension[k]))
      return refuse(r, DG_HLO_INVALID, "a dimension is negative or dynamic");
  *out = hlo_shape_array(r->a, t, (int)p->n_dimensions, p->dimensions);
  if (hlo_shape_elements(out) < 0)
    return refuse(r, DG_HLO_INVALID, "the shape has too many elements");
  return true;
}

/* The values' bytes; *n how many there are. */
static const void *literal_data(const Xla__LiteralProto *p, enum dtype t, size_t *size) {
  switch (t) {
#define LITERAL_REPEATED(dt, field) \
  case dt: \
    *size = p->n_##field * sizeof *p->field; \
    return p->field;
#define LITERAL_BYTES(dt, field) \
  case dt: \
    *size = p->field.len; \
    return p->field.data;
#include "hlo/literal_fields.def"
#undef LITERAL_REPEATED
#undef LITERAL_BYTES
  default:
    *size = 0;
    return NULL;
  }
}

static bool read_proto_literal(struct proto_reader *r, const Xla__LiteralProto *p, const struct hlo_literal **out) {
  struct hlo_literal *l = arena_new(r->a, struct hlo_literal);
  size_t want;
  if (!p || !read_proto_shape(r, p->shape, &l->shape))
    return p ? false : refuse(r, DG_HLO_INVALID, "there is no literal");
  const enum dtype t = l->shape.dtype;
  const bool fits =
      t != DT_TUPLE && !__builtin_mul_overflow((size_t)hlo_shape_elements(&l->shape), dtype_size(t), &want);
  if (fits && t == DT_BOOL) {
    uint8_t *v = arena_new_array(r->a, uint8_t, p->n_preds);
    for (size_t k = 0; k < p->n_preds; k++)
      v[k] = p->preds[k] != 0;
    l->data = v;
    l->size = p->n_preds;
  } else if (fits) {
    const void *data = literal_data(p, t, &l->size);
    l->data = l->size == want ? arena_dup(r->a, data ? data : "", l->size) : NULL;
  }
  *out = l;
  return (fits && l->size == want) || refuse(r, DG_HLO_INVALID, "the literal has not the elements of its shape");
}

/* ---- attributes --------------------------------------------------------------------------------------------------- */

static void read_proto_window(struct proto_reader *r, const Xla__Window *p, struct hlo_attrs *at) {
  const size_t n = p ? p->n_dimensions : 0;
  struct hlo_window_dim *v = arena_new_array(r->a, struct hlo_window_dim, n);
  for (size_t k = 0; k < n; k++) {
    const Xla__WindowDimension *d = p->dimensions[k];
    v[k] = (struct hlo_window_dim){
        d->size, d->stride, d->padding_low, d->padding_high, d->window_dilation, d->base_dilation, d->window_reversal};
  }
  at->window = arena_dup(r->a, &(struct hlo_window){(int)n, v}, sizeof(struct hlo_window));
}

static bool read_proto_convolution(struct proto_reader *r, const Xla__HloInstructionProto *p, struct hlo_attrs *at) {
  const Xla__ConvolutionDimensionNumbers *n = p->convolution_dimension_numbers;
  if (!n)
    return refuse(r, DG_HLO_INVALID, "there are no dimension numbers");
  const struct hlo_conv_dims c = {
      .input_batch = n->input_batch_dimension,
      .input_feature = n->input_feature_dimension,
      .kernel_input_feature = n->kernel_input_feature_dimension,
      .kernel_output_feature = n->kernel_output_feature_dimension,
      .output_batch = n->output_batch_dimension,
      .output_feature = n->output_feature_dimension,
      .input_spatial = ints(r, n->n_input_spatial_dimensions, n->input_spatial_dimensions),
      .kernel_spatial = ints(r, n->n_kernel_spatial_dimensions, n->kernel_spatial_dimensions),
      .output_spatial = ints(r, n->n_output_spatial_dimensions, n->output_spatial_dimensions),
      .feature_group_count = p->feature_group_count ? p->feature_group_count : 1,
      .batch_group_count = p->batch_group_count ? p->batch_group_count : 1,
  };
  at->conv = arena_dup(r->a, &c, sizeof c);
  return true;
}

static bool read_proto_groups(struct proto_reader *r, const Xla__HloInstructionProto *p, const struct hlo_instr *i,
                              struct hlo_attrs *at) {
  const Xla__CollectiveDeviceListProto *list = p->collective_device_list;
  const bool is_listed = !p->n_replica_groups && list;
  size_t n = is_listed ? list->n_replica_groups : p->n_replica_groups;
  Xla__ReplicaGroup **groups = is_listed ? list->replica_groups : p->replica_groups;
  if (is_listed && list->iota_replica_group_list)
    return refuse(r, DG_UNSUPPORTED_OP, "groups of devices given by counting have no form in the proto here");
  if (i->op == HLO_COLLECTIVE_PERMUTE)
    n = p->n_source_target_pairs;
  if (!n)
    return true;
  struct hlo_ints *v = arena_new_array(r->a, struct hlo_ints, n);
  for (size_t k = 0; k < n; k++) {
    if (i->op != HLO_COLLECTIVE_PERMUTE) {
      v[k] = ints(r, groups[k]->n_replica_ids, groups[k]->replica_ids);
      continue;
    }
    const int64_t pair[] = {p->source_target_pairs[k]->source, p->source_target_pairs[k]->target};
    v[k] = hlo_ints_dup(r->a, 2, pair);
  }
  at->groups = arena_dup(r->a, &(struct hlo_groups){(int)n, v}, sizeof(struct hlo_groups));
  return true;
}

static bool read_proto_dot(struct proto_reader *r, const Xla__DotDimensionNumbers *n, struct hlo_attrs *at) {
  if (!n)
    return refuse(r, DG_HLO_INVALID, "there are no dimension numbers");
  const struct hlo_dot_dims d = {
      .lhs_contracting = ints(r, n->n_lhs_contracting_dimensions, n->lhs_contracting_dimensions),
      .rhs_contracting = ints(r, n->n_rhs_contracting_dimensions, n->rhs_contracting_dimensions),
      .lhs_batch = ints(r, n->n_lhs_batch_dimensions, n->lhs_batch_dimensions),
      .rhs_batch = ints(r, n->n_rhs_batch_dimensions, n->rhs_batch_dimensions),
  };
  at->dot = arena_dup(r->a, &d, sizeof d);
  return true;
}

static bool read_proto_gather(struct proto_reader *r, const Xla__HloInstructionProto *p, struct hlo_attrs *at) {
  const Xla__GatherDimensionNumbers *n = p->gather_dimension_numbers;
  if (!n)
    return refuse(r, DG_HLO_INVALID, "there are no dimension numbers");
  const struct hlo_gather_dims g = {
      .offset_dims = ints(r, n->n_offset_dims, n->offset_dims),
      .collapsed_slice_dims = ints(r, n->n_collapsed_slice_dims, n->collapsed_slice_dims),
      .start_index_map = ints(r, n->n_start_index_map, n->start_index_map),
      .slice_sizes = ints(r, p->n_gather_slice_sizes, p->gather_slice_sizes),
      .operand_batching_dims = ints(r, n->n_operand_batching_dims, n->operand_batching_dims),
      .start_indices_batching_dims = ints(r, n->n_start_indices_batching_dims, n->start_indices_batching_dims),
      .index_vector_dim = n->index_vector_dim,
      .indices_are_sorted = p->indices_are_sorted,
  };
  at->gather = arena_dup(r->a, &g, sizeof g);
  return true;
}

static bool read_proto_scatter(struct proto_reader *r, const Xla__HloInstructionProto *p, struct hlo_attrs *at) {
  const Xla__ScatterDimensionNumbers *n = p->scatter_dimension_numbers;
  if (!n)
    return refuse(r, DG_HLO_INVALID, "there are no dimension numbers");
  const struct hlo_scatter_dims s = {
      .update_window_dims = ints(r, n->n_update_window_dims, n->update_window_dims),
      .inserted_window_dims = ints(r, n->n_inserted_window_dims, n->inserted_window_dims),
      .scatter_dims_to_operand_dims = ints(r, n->n_scatter_dims_to_operand_dims, n->scatter_dims_to_operand_dims),
      .input_batching_dims = ints(r, n->n_input_batching_dims, n->input_batching_dims),
      .scatter_indices_batching_dims = ints(r, n->n_scatter_indices_batching_dims, n->scatter_indices_batching_dims),
      .index_vector_dim = n->index_vector_dim,
      .indices_are_sorted = p->indices_are_sorted,
      .unique_indices = p->unique_indices,
  };
  at->scatter = arena_dup(r->a, &s, sizeof s);
  return true;
}

static bool read_proto_slice(struct proto_reader *r, const Xla__HloInstructionProto *p, const struct hlo_instr *i,
                             struct hlo_attrs *at) {
  const int rank = i->operands[0]->shape.rank;
  struct hlo_slice_dim *v = arena_new_array(r->a, struct hlo_slice_dim, (size_t)rank + 1);
  if (p->n_slice_dimensions != (size_t)rank)
    return refuse(r, DG_HLO_INVALID, "%zu ranges for %d dimensions", p->n_slice_dimensions, rank);
  for (int k = 0; k < rank; k++)
    v[k] = (struct hlo_slice_dim){p->slice_dimensions[k]->start, p->slice_dimensions[k]->limit,
                                  p->slice_dimensions[k]->stride};
  at->slice = v;
  return true;
}

static bool read_proto_padding(struct proto_reader *r, const Xla__HloInstructionProto *p, const struct hlo_instr *i,
                               struct hlo_attrs *at) {
  const int rank = i->operands[0]->shape.rank;
  const size_t n = p->padding_config ? p->padding_config->n_dimensions : 0;
  struct hlo_pad_dim *v = arena_new_array(r->a, struct hlo_pad_dim, (size_t)rank + 1);
  if (n != (size_t)rank)
    return refuse(r, DG_HLO_INVALID, "padding of %zu dimensions for %d", n, rank);
  for (int k = 0; k < rank; k++)
    v[k] = (struct hlo_pad_dim){p->padding_config->dimensions[k]->edge_padding_low,
                                p->padding_config->dimensions[k]->edge_padding_high,
                                p->padding_config->dimensions[k]->interior_padding};
  at->padding = v;
  return true;
}

static bool read_proto_custom_call(struct proto_reader *r, const Xla__HloInstructionProto *p, struct hlo_attrs *at) {
  struct hlo_operand_alias *v = arena_new_array(r->a, struct hlo_operand_alias, p->n_output_operand_aliasing);
  at->custom_call_target = text(r, p->custom_call_target);
  at->backend_config =
      arena_strndup(r->a, p->backend_config.data ? (const char *)p->backend_config.data : "", p->backend_config.len);
  for (size_t k = 0; k < p->n_output_operand_aliasing; k++) {
    const Xla__OutputOperandAliasing *x = p->output_operand_aliasing[k];
    if (x->n_operand_shape_index)
      return refuse(r, DG_HLO_INVALID, "an alias of a tuple's element has no form here");
    v[k] = (struct hlo_operand_alias){ints(r, x->n_output_shape_index, x->output_shape_index), x->operand_index};
  }
  at->n_operand_aliases = (int)p->n_output_operand_aliasing;
  at->operand_aliases = v;
  for (size_t k = 0; p->frontend_attributes && k < p->frontend_attributes->n_map; k++) {
    const Xla__FrontendAttributes__MapEntry *x = p->frontend_attributes->map[k];
    at->has_collectives |= x->key && x->value && !strcmp(x->key, "has_collectives") && !strcmp(x->value, "1");
  }
  return true;
}

static bool read_proto_direction(struct proto_reader *r, const Xla__HloInstructionProto *p, const struct hlo_instr *i,
                                 struct hlo_attrs *at) {
  at->is_total_order = p->comparison_type && !strcmp(p->comparison_type, "TOTALORDER") && i->n_operands &&
                       dtype_is_float(i->operands[0]->shape.dtype);
  for (int d = HLO_EQ; d <= HLO_LT; d++)
    if (p->comparison_direction && !strcmp(p->comparison_direction, hlo_direction_name((enum hlo_direction)d))) {
      at->direction = (enum hlo_direction)d;
      return true;
    }
  return refuse(r, DG_HLO_INVALID, "the direction is not EQ, NE, GE, GT, LE or LT");
}

static bool read_proto_attributes(struct proto_reader *r, const Xla__HloInstructionProto *p, const struct hlo_instr *i,
                                  struct hlo_attrs *at) {
  at->dimensions = i->op == HLO_DYNAMIC_SLICE ? ints(r, p->n_dynamic_slice_sizes, p->dynamic_slice_sizes)
                                              : ints(r, p->n_dimensions, p->dimensions);
  at->tuple_index = p->tuple_index;
  at->is_stable = p->is_stable;
  at->k = p->k;
  at->is_smallest = i->op == HLO_TOPK && !p->largest;
  at->channel_id = hlo_op_is_collective(i->op) ? p->channel_id : 0;
  switch (i->op) {
  case HLO_CONSTANT:
    return read_proto_literal(r, p->literal, &at->literal);
  case HLO_COMPARE:
    return read_proto_direction(r, p, i, at);
  case HLO_SLICE:
    return read_proto_slice(r, p, i, at);
  case HLO_PAD:
    return read_proto_padding(r, p, i, at);
  case HLO_DOT:
    return read_proto_dot(r, p->dot_dimension_numbers, at);
  case HLO_GATHER:
    return read_proto_gather(r, p, at);
  case HLO_SCATTER:
    return read_proto_scatter(r, p, at);
  case HLO_CUSTOM_CALL:
    return read_proto_custom_call(r, p, at);
  case HLO_REDUCE_WINDOW:
  case HLO_SELECT_AND_SCATTER:
    read_proto_window(r, p->window, at);
    return true;
  case HLO_CONVOLUTION:
    read_proto_window(r, p->window, at);
    return read_proto_convolution(r, p, at);
  default:
    return !hlo_op_is_collective(i->op) || read_proto_groups(r, p, i, at);
  }
}

/* ---- places ------------------------------------------------------------------------------------------------------- */

static void read_frames(struct proto_reader *r) {
  const Xla__StackFrameIndexProto *x = r->p->stack_frame_index;
  const size_t n = x ? x->n_stack_frames : 0;
  r->frames = arena_new_array(r->a, const struct src_loc *, n);
  for (size_t k = 0; k < n; k++) {
    const int64_t at = x->stack_frames[k]->file_location_id, parent = x->stack_frames[k]->parent_frame_id;
    if (at < 1 || (size_t)at > x->n_file_locations)
      continue;
    const Xla__StackFrameIndexProto__FileLocation *l = x->file_locations[at - 1];
    struct src_loc *s = arena_new(r->a, struct src_loc);
    const bool has_file = l->file_name_id >= 1 && (size_t)l->file_name_id <= x->n_file_names;
    s->range = (struct src_range){has_file ? text(r, x->file_names[l->file_name_id - 1]) : "?", l->line, l->column,
                                  l->end_line, l->end_column};
    if (l->function_name_id >= 1 && (size_t)l->function_name_id <= x->n_function_names)
      s->func = text(r, x->function_names[l->function_name_id - 1]);
    if (parent >= 1 && (size_t)parent <= k)
      s->caller = r->frames[parent - 1];
    r->frames[k] = s;
  }
}

static struct src_locs proto_places(struct proto_reader *r, const Xla__OpMetadata *m) {
  const Xla__StackFrameIndexProto *x = r->p->stack_frame_index;
  if (m && x && m->stack_frame_id >= 1 && (size_t)m->stack_frame_id <= x->n_stack_frames &&
      r->frames[m->stack_frame_id - 1])
    return src_locs_one(r->a, r->frames[m->stack_frame_id - 1]);
  if (!m || !m->source_file || !*m->source_file || m->source_line < 1)
    return (struct src_locs){0};
  struct src_loc *s = arena_new(r->a, struct src_loc);
  s->range = (struct src_range){text(r, m->source_file), m->source_line, m->source_column, m->source_end_line,
                                m->source_end_column};
  return src_locs_one(r->a, s);
}

/* ---- instructions ------------------------------------------------------------------------------------------------- */

static struct id_slot *id_slot(const struct id_map *m, int64_t id) {
  uint64_t h = (uint64_t)id * 0x9e3779b97f4a7c15u;
  size_t at = (size_t)(h ^ h >> 32) & (m->cap - 1);
  while (m->v[at].made && m->v[at].id != id)
    at = (at + 1) & (m->cap - 1);
  return &m->v[at];
}

static struct id_map id_map_new(struct arena *a, size_t n) {
  struct id_map m = {.cap = 16};
  while (m.cap < 2 * n)
    m.cap *= 2;
  m.v = arena_new_array(a, struct id_slot, m.cap);
  return m;
}

static bool remember(struct proto_reader *r, struct id_map *m, int64_t id, struct hlo_instr *i) {
  struct id_slot *s = id_slot(m, id);
  if (s->made)
    return refuse(r, DG_HLO_INVALID, "two instructions of one computation have the id %lld", (long long)id);
  *s = (struct id_slot){id, i};
  return true;
}

static bool read_calls(struct proto_reader *r, const Xla__HloInstructionProto *p, struct hlo_instr *i) {
  i->called = arena_new_array(r->a, struct hlo_computation *, p->n_called_computation_ids);
  for (size_t k = 0; k < p->n_called_computation_ids; k++) {
    i->called[k] = id_slot(&r->comps, p->called_computation_ids[k])->made;
    if (!i->called[k])
      return refuse(r, DG_HLO_INVALID, "it calls a computation that does not come before it");
  }
  i->n_called = (int)p->n_called_computation_ids;
  return true;
}

static bool read_proto_instr(struct proto_reader *r, struct hlo_computation *c, struct id_map *ids,
                             const Xla__HloInstructionProto *p) {
  const int op = p->opcode ? hlo_op_from_name(p->opcode, strlen(p->opcode)) : -1;
  struct hlo_shape shape;
  if (op < 0)
    return refuse(r, DG_UNSUPPORTED_OP, "the opcode %.60s has no form here", p->opcode ? p->opcode : "");
  if (!read_proto_shape(r, p->shape, &shape))
    return false;
  struct hlo_instr **operands = arena_new_array(r->a, struct hlo_instr *, p->n_operand_ids);
  for (size_t k = 0; k < p->n_operand_ids; k++) {
    operands[k] = id_slot(ids, p->operand_ids[k])->made;
    if (!operands[k])
      return refuse(r, DG_HLO_INVALID, "operand %zu does not come before it", k);
  }
  const int arity = hlo_op_arity((enum hlo_op)op);
  if (arity >= 0 && (size_t)arity != p->n_operand_ids)
    return refuse(r, DG_HLO_INVALID, "%s takes %d operands, not %zu", hlo_op_name((enum hlo_op)op), arity,
                  p->n_operand_ids);
  struct hlo_instr *i = hlo_append(c, (enum hlo_op)op, text(r, p->name), shape, (int)p->n_operand_ids, operands);
  i->locs = proto_places(r, p->metadata);
  struct hlo_attrs at = {0};
  if (!read_calls(r, p, i) || !read_proto_attributes(r, p, i, &at))
    return false;
  hlo_set_attrs(i, &at);
  return remember(r, ids, p->id, i);
}

static bool is_parameter(const Xla__HloInstructionProto *p) {
  return p->opcode && !strcmp(p->opcode, "parameter");
}

static bool read_params(struct proto_reader *r, const Xla__HloComputationProto *p, struct hlo_builder *b,
                        struct id_map *ids) {
  const Xla__HloInstructionProto **v = arena_new_array(r->a, const Xla__HloInstructionProto *, p->n_instructions);
  size_t n = 0;
  for (size_t k = 0; k < p->n_instructions; k++) {
    const Xla__HloInstructionProto *x = p->instructions[k];
    if (!is_parameter(x))
      continue;
    if (x->parameter_number < 0 || (size_t)x->parameter_number >= p->n_instructions || v[x->parameter_number])
      return refuse(r, DG_HLO_INVALID, "parameter numbers must count from 0 without gaps");
    v[x->parameter_number] = x;
    n++;
  }
  for (size_t k = 0; k < n; k++) {
    struct hlo_shape shape;
    if (!v[k])
      return refuse(r, DG_HLO_INVALID, "parameter numbers must count from 0 without gaps");
    r->where = v[k]->name;
    if (!read_proto_shape(r, v[k]->shape, &shape))
      return false;
    b->locs = proto_places(r, v[k]->metadata);
    struct hlo_instr *i = hlo_parameter(b, text(r, v[k]->name), shape);
    if (!i)
      return refuse(r, DG_HLO_INVALID, "%s", b->err.text);
    if (!remember(r, ids, v[k]->id, i))
      return false;
  }
  return true;
}

static bool read_proto_computation(struct proto_reader *r, size_t at) {
  const Xla__HloComputationProto *p = r->p->computations[at];
  const bool is_entry = p->id == r->p->entry_computation_id;
  struct hlo_computation *c = is_entry ? r->m->entry : hlo_computation_new(r->m, text(r, p->name));
  struct id_map ids = id_map_new(r->a, p->n_instructions);
  struct hlo_builder b;

  if (!p->n_instructions)
    return refuse(r, DG_HLO_INVALID, "computation %.60s is empty", p->name ? p->name : "");
  hlo_builder_init(&b, r->m);
  b.computation = c;
  if (!read_params(r, p, &b, &ids))
    return false;
  for (size_t k = 0; k < p->n_instructions; k++) {
    r->where = p->instructions[k]->name;
    if (!is_parameter(p->instructions[k]) && !read_proto_instr(r, c, &ids, p->instructions[k]))
      return false;
  }
  r->where = NULL;
  c->root = id_slot(&ids, p->root_id)->made;
  if (!c->root)
    return refuse(r, DG_HLO_INVALID, "computation %.60s has no root", p->name ? p->name : "");
  struct id_slot *s = id_slot(&r->comps, p->id);
  if (s->made)
    return refuse(r, DG_HLO_INVALID, "two computations have the id %lld", (long long)p->id);
  if (!is_entry)
    *s = (struct id_slot){p->id, c};
  return true;
}

/* ---- the module --------------------------------------------------------------------------------------------------- */

static bool read_proto_aliases(struct proto_reader *r) {
  const Xla__HloInputOutputAliasProto *p = r->p->input_output_alias;
  struct hlo_module *m = r->m;
  const size_t n = p ? p->n_entries : 0;
  m->aliases = arena_new_array(r->a, struct hlo_alias, n);
  for (size_t k = 0; k < n; k++) {
    const Xla__HloInputOutputAliasProto__AliasEntryProto *x = p->entries[k];
    if (x->n_output_shape_index > 1 || x->n_parameter_shape_index || x->parameter_number < 0 ||
        x->parameter_number >= m->entry->n_params ||
        (x->n_output_shape_index && (x->output_shape_index[0] < 0 || x->output_shape_index[0] > INT32_MAX)))
      return refuse(r, DG_HLO_INVALID, "an alias of the module names something that is not there");
    hlo_read_add_alias(m, x->n_output_shape_index ? (int)x->output_shape_index[0] : 0, (int)x->parameter_number);
  }
  return true;
}

static bool read_all(struct proto_reader *r) {
  size_t n = 0;
  bool has_entry = false;
  for (size_t k = 0; k < r->p->n_computations; k++) {
    n += r->p->computations[k]->n_instructions;
    if (r->p->computations[k]->id == r->p->entry_computation_id) {
      if (has_entry)
        return refuse(r, DG_HLO_INVALID, "there are two entry computations");
      has_entry = true;
    }
  }
  if (!has_entry)
    return refuse(r, DG_HLO_INVALID, "the module has no entry computation");
  if (n > HLO_READ_INSTRS_MAX)
    return refuse(r, DG_TOO_MANY_OPS, "the module has more than %d instructions", HLO_READ_INSTRS_MAX);
  read_frames(r);
  r->comps = id_map_new(r->a, r->p->n_computations);
  for (size_t k = 0; k < r->p->n_computations; k++)
    if (!read_proto_computation(r, k))
      return false;
  if (!hlo_read_set_outputs(r->m))
    return refuse(r, DG_HLO_INVALID, "a tuple within the result's tuple has no form here");
  return read_proto_aliases(r);
}

struct hlo_module *hlo_read_proto(struct arena *a, const void *data, size_t len, struct diags *ds) {
  struct proto_reader r = {.a = a, .ds = ds};
  Xla__HloModuleProto *p = unpack_either(data, len);
  if (!p) {
    diag_add(ds, DS_ERROR, DG_HLO_INVALID, NULL, "these %zu bytes are not a HloModuleProto", len);
    return NULL;
  }
  r.p = p;
  r.m = hlo_module_new(a, p->name && *p->name ? text(&r, p->name) : "module");
  bool ok = read_all(&r);
  xla__hlo_module_proto__free_unpacked(p, NULL);
  return ok && hlo_verify(r.m, ds) == ST_OK ? r.m : NULL;
}
