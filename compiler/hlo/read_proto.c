/* read_proto: makes a module from a serialized HloModuleProto.
 *
 * XLA writes computations and instructions after those that they refer to; any other order is refused.  protobuf-c parses
 * nested messages recursively without a limit, so the depth of the bytes is checked first.
 */
#include <assert.h>
#include <limits.h>
#include <stdarg.h>
#include <string.h>

#include "base/array.h"
#include "base/index.h"
#include "hlo/attrs.h"
#include "hlo/build.h"
#include "hlo/passes.h"

/* Computations, or the instructions of one computation, by the id in the proto. */
struct ids {
  struct index index;
  struct id_entry {
    int64_t id;
    void *made;
  } *v;
  int n, cap;
};

struct reader {
  struct hlo_proto_reader base;
  const Xla__HloModuleProto *p;
  struct hlo_module *m;
  struct ids comps;  /* those that were read, except the entry */
  struct ids instrs; /* of the computation that is being read */
  const struct src_loc **frames;
};

#define REFUSE(r, code, ...) hlo_proto_refuse(&(r)->base, code, __VA_ARGS__)

/* ---- ids ----------------------------------------------------------------------------------------------------------- */

static uint32_t hash_id(int64_t id) {
  return (uint32_t)hash_mix(0, (uint64_t)id);
}

static void *id_find(const struct ids *x, int64_t id) {
  for (struct index_probe p = index_probe(&x->index, hash_id(id)); index_next(&p);)
    if (x->v[p.entry].id == id)
      return x->v[p.entry].made;
  return NULL;
}

static void id_add(struct arena *a, struct ids *x, int64_t id, void *made) {
  assert(made);
  index_add(&x->index, hash_id(id), x->n);
  array_push(a, x, (struct id_entry){id, made});
}

/* ---- the bytes ----------------------------------------------------------------------------------------------------- */

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

/* Takes a field's tag and, except for a varint, which it skips, the length of what follows. */
static bool take_tag(const uint8_t **at, const uint8_t *end, uint64_t *tag, uint64_t *n) {
  enum { VARINT = 0, FIXED64 = 1, BYTES = 2, FIXED32 = 5 };
  uint64_t skipped;
  *n = 0;
  if (!take_varint(at, end, tag))
    return false;
  switch (*tag & 7) {
  case VARINT:
    return take_varint(at, end, &skipped);
  case FIXED64:
    *n = 8;
    break;
  case FIXED32:
    *n = 4;
    break;
  case BYTES:
    if (!take_varint(at, end, n))
      return false;
    break;
  default:
    return false;
  }
  return *n <= (uint64_t)(end - *at);
}

static bool is_bytes(uint64_t tag) {
  return (tag & 7) == 2;
}

/* True if the messages, according to the descriptor, are nested at most `depth` deep. */
static bool is_shallow(const ProtobufCMessageDescriptor *d, const uint8_t *at, const uint8_t *end, int depth) {
  uint64_t tag, n;
  if (!depth)
    return false;
  while (at < end) {
    if (!take_tag(&at, end, &tag, &n))
      return false;
    const ProtobufCFieldDescriptor *f =
        tag >> 3 <= UINT32_MAX ? protobuf_c_message_descriptor_get_field(d, (unsigned)(tag >> 3)) : NULL;
    if (is_bytes(tag) && f && f->type == PROTOBUF_C_TYPE_MESSAGE && !is_shallow(f->descriptor, at, at + n, depth - 1))
      return false;
    at += n;
  }
  return true;
}

static Xla__HloModuleProto *unpack(const uint8_t *bytes, size_t len) {
  if (!is_shallow(&xla__hlo_module_proto__descriptor, bytes, bytes + len, HLO_READ_NEST_MAX))
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
  const uint8_t *at = data, *end = at + len;
  uint64_t tag, n;
  if (len > INT_MAX) /* so that every count fits an int */
    return NULL;
  Xla__HloModuleProto *p = unpack(at, len);
  if (p || !take_tag(&at, end, &tag, &n) || tag >> 3 != 1 || !is_bytes(tag))
    return p;
  return unpack(at, (size_t)n);
}

/* ---- places -------------------------------------------------------------------------------------------------------- */

static const char *text(struct reader *r, const char *s) {
  return s ? arena_strdup(r->base.a, s) : "";
}

/* Drops a frame's parent if it comes later, so that chains have no cycles. */
static void read_frames(struct reader *r) {
  const Xla__StackFrameIndexProto *x = r->p->stack_frame_index;
  const size_t n = x ? x->n_stack_frames : 0;
  r->frames = arena_new_array(r->base.tmp, const struct src_loc *, n);
  for (size_t k = 0; k < n; k++) {
    const int64_t at = x->stack_frames[k]->file_location_id, parent = x->stack_frames[k]->parent_frame_id;
    if (at < 1 || (size_t)at > x->n_file_locations)
      continue;
    const Xla__StackFrameIndexProto__FileLocation *l = x->file_locations[at - 1];
    struct src_loc *s = arena_new(r->base.a, struct src_loc);
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

static struct src_locs places_of(struct reader *r, const Xla__OpMetadata *m) {
  const Xla__StackFrameIndexProto *x = r->p->stack_frame_index;
  if (m && x && m->stack_frame_id >= 1 && (size_t)m->stack_frame_id <= x->n_stack_frames &&
      r->frames[m->stack_frame_id - 1])
    return src_locs_one(r->base.a, r->frames[m->stack_frame_id - 1]);
  if (!m || !m->source_file || !*m->source_file || m->source_line < 1)
    return (struct src_locs){0};
  struct src_loc *s = arena_new(r->base.a, struct src_loc);
  s->range = (struct src_range){text(r, m->source_file), m->source_line, m->source_column, m->source_end_line,
                                m->source_end_column};
  return src_locs_one(r->base.a, s);
}

/* ---- instructions -------------------------------------------------------------------------------------------------- */

static bool remember(struct reader *r, int64_t id, struct hlo_instr *i) {
  if (id_find(&r->instrs, id))
    return REFUSE(r, DG_HLO_INVALID, "two instructions of one computation have the id %lld", (long long)id);
  id_add(r->base.tmp, &r->instrs, id, i);
  return true;
}

static bool read_calls(struct reader *r, const Xla__HloInstructionProto *p, struct hlo_instr *i) {
  i->called = arena_new_array(r->base.a, struct hlo_computation *, p->n_called_computation_ids);
  for (size_t k = 0; k < p->n_called_computation_ids; k++) {
    i->called[k] = id_find(&r->comps, p->called_computation_ids[k]);
    if (!i->called[k])
      return REFUSE(r, DG_HLO_INVALID, "it calls a computation that does not come before it");
  }
  i->n_called = (int)p->n_called_computation_ids;
  return true;
}

static bool read_instr(struct reader *r, struct hlo_computation *c, Xla__HloInstructionProto *p) {
  const int op = p->opcode ? hlo_op_from_name(p->opcode, strlen(p->opcode)) : -1;
  struct hlo_shape shape;
  if (op < 0)
    return REFUSE(r, DG_UNSUPPORTED_OP, "the opcode %.60s is not supported", p->opcode ? p->opcode : "");
  if (!hlo_proto_get_shape(&r->base, p->shape, &shape))
    return false;
  struct hlo_instr **operands = arena_new_array(r->base.tmp, struct hlo_instr *, p->n_operand_ids);
  for (size_t k = 0; k < p->n_operand_ids; k++) {
    operands[k] = id_find(&r->instrs, p->operand_ids[k]);
    if (!operands[k])
      return REFUSE(r, DG_HLO_INVALID, "operand %zu does not come before it", k);
  }
  const int arity = hlo_op_arity((enum hlo_op)op);
  if (arity >= 0 && (size_t)arity != p->n_operand_ids)
    return REFUSE(r, DG_HLO_INVALID, "%s takes %d operands, not %zu", hlo_op_name((enum hlo_op)op), arity,
                  p->n_operand_ids);
  struct hlo_instr *i = hlo_append(c, (enum hlo_op)op, p->name ? p->name : "", shape, (int)p->n_operand_ids, operands);
  i->locs = places_of(r, p->metadata);
  return read_calls(r, p, i) && hlo_attrs_from_proto(&r->base, p, i) && remember(r, p->id, i);
}

static bool is_parameter(const Xla__HloInstructionProto *p) {
  return p->opcode && !strcmp(p->opcode, "parameter");
}

static bool read_params(struct reader *r, const Xla__HloComputationProto *p, struct hlo_builder *b) {
  const Xla__HloInstructionProto **v =
      arena_new_array(r->base.tmp, const Xla__HloInstructionProto *, p->n_instructions);
  size_t n = 0;
  for (size_t k = 0; k < p->n_instructions; k++) {
    const Xla__HloInstructionProto *x = p->instructions[k];
    if (!is_parameter(x))
      continue;
    if (x->parameter_number < 0 || (size_t)x->parameter_number >= p->n_instructions || v[x->parameter_number])
      return REFUSE(r, DG_HLO_INVALID, "parameter numbers must count from 0 without gaps");
    v[x->parameter_number] = x;
    n++;
  }
  for (size_t k = 0; k < n; k++) {
    struct hlo_shape shape;
    if (!v[k])
      return REFUSE(r, DG_HLO_INVALID, "parameter numbers must count from 0 without gaps");
    r->base.where = v[k]->name;
    if (!hlo_proto_get_shape(&r->base, v[k]->shape, &shape))
      return false;
    b->locs = places_of(r, v[k]->metadata);
    struct hlo_instr *i = hlo_parameter(b, v[k]->name ? v[k]->name : "", shape);
    if (!i)
      return REFUSE(r, DG_HLO_INVALID, "%s", b->err.text);
    if (!remember(r, v[k]->id, i))
      return false;
  }
  return true;
}

static bool read_computation(struct reader *r, const Xla__HloComputationProto *p) {
  const bool is_entry = p->id == r->p->entry_computation_id;
  const char *name = p->name ? p->name : "";
  struct hlo_computation *c = is_entry ? r->m->entry : hlo_computation_new(r->m, name);
  struct hlo_builder b;

  if (!p->n_instructions)
    return REFUSE(r, DG_HLO_INVALID, "computation %.60s is empty", name);
  hlo_builder_init(&b, r->m);
  b.computation = c;
  index_restart(&r->instrs.index, p->n_instructions);
  r->instrs.n = 0;
  if (!read_params(r, p, &b))
    return false;
  for (size_t k = 0; k < p->n_instructions; k++) {
    r->base.where = p->instructions[k]->name;
    if (!is_parameter(p->instructions[k]) && !read_instr(r, c, p->instructions[k]))
      return false;
  }
  r->base.where = NULL;
  c->root = id_find(&r->instrs, p->root_id);
  if (!c->root)
    return REFUSE(r, DG_HLO_INVALID, "computation %.60s has no root", name);
  if (id_find(&r->comps, p->id))
    return REFUSE(r, DG_HLO_INVALID, "two computations have the id %lld", (long long)p->id);
  if (!is_entry)
    id_add(r->base.tmp, &r->comps, p->id, c);
  return true;
}

/* ---- the module ---------------------------------------------------------------------------------------------------- */

static bool read_aliases(struct reader *r) {
  const Xla__HloInputOutputAliasProto *p = r->p->input_output_alias;
  struct hlo_module *m = r->m;
  const size_t n = p ? p->n_entries : 0;
  m->aliases = arena_new_array(r->base.a, struct hlo_alias, n);
  for (size_t k = 0; k < n; k++) {
    const Xla__HloInputOutputAliasProto__AliasEntryProto *x = p->entries[k];
    const int64_t output = x->n_output_shape_index ? x->output_shape_index[0] : 0;
    if (x->n_output_shape_index > 1 || x->n_parameter_shape_index || x->parameter_number < 0 ||
        x->parameter_number >= m->entry->n_params || output < 0 || output >= m->n_outputs)
      return REFUSE(r, DG_HLO_INVALID, "an alias of the module names a parameter or an output that does not exist");
    hlo_read_add_alias(m, (int)output, (int)x->parameter_number);
  }
  return true;
}

static bool read_module(struct reader *r) {
  size_t n = 0;
  bool has_entry = false;
  for (size_t k = 0; k < r->p->n_computations; k++) {
    n += r->p->computations[k]->n_instructions;
    if (r->p->computations[k]->id == r->p->entry_computation_id) {
      if (has_entry)
        return REFUSE(r, DG_HLO_INVALID, "there are two entry computations");
      has_entry = true;
    }
  }
  if (!has_entry)
    return REFUSE(r, DG_HLO_INVALID, "the module has no entry computation");
  if (n > HLO_READ_INSTRS_MAX)
    return REFUSE(r, DG_TOO_MANY_OPS, "the module has more than %d instructions", HLO_READ_INSTRS_MAX);
  read_frames(r);
  for (size_t k = 0; k < r->p->n_computations; k++)
    if (!read_computation(r, r->p->computations[k]))
      return false;
  if (!hlo_read_set_outputs(r->m))
    return REFUSE(r, DG_HLO_INVALID, "a tuple within the result's tuple is not supported");
  return read_aliases(r);
}

struct hlo_module *hlo_read_proto(struct arena *a, const void *data, size_t len, struct diags *ds) {
  struct arena tmp;
  Xla__HloModuleProto *p = unpack_either(data, len);
  if (!p) {
    diag_add(ds, DS_ERROR, DG_HLO_INVALID, NULL, "these %zu bytes are not a HloModuleProto", len);
    return NULL;
  }
  arena_init(&tmp);
  struct reader r = {.base = {a, &tmp, ds, NULL}, .p = p, .comps.index.arena = &tmp, .instrs.index.arena = &tmp};
  r.m = hlo_module_new(a, p->name && *p->name ? p->name : "module");
  const bool ok = read_module(&r);
  xla__hlo_module_proto__free_unpacked(p, NULL);
  arena_clear(&tmp);
  return ok && hlo_verify(r.m, ds) == ST_OK ? r.m : NULL;
}
