/* read_attr: the attributes behind an instruction, opcode by opcode.
 *
 * Every attribute is either understood, known not to change what is computed, or refused by name.
 */
#include <string.h>

#include "hlo/read_text.h"

/* Scheduling, placement, precision hints and notes of other tools. */
static const char *const ignored[] = {
    "metadata",
    "sharding",
    "frontend_attributes",
    "operand_precision",
    "backend_config",
    "control-predecessors",
    "origin",
    "statistics",
    "use_global_device_ids",
    "algorithm",
    "api_version",
    "schedule",
    "custom_call_has_side_effect",
    "operand_layout_constraints",
    "execution_threads",
    "async_execution_thread",
    "result_accuracy",
};

/* Says so a value of frontend_attributes, {has_collectives="1"}?  The rest of it is ignored, and so is its syntax. */
static bool has_collectives(const struct hlo_cursor *c) {
  static const char wanted[] = "has_collectives=\"1\"";
  const char *p = c->at;
  while ((p = memmem(p, (size_t)(c->end - p), wanted, sizeof wanted - 1))) {
    if (p > c->at && memchr("{, ", p[-1], 3))
      return true;
    p++;
  }
  return false;
}

static bool is_ignored(struct hlo_span key) {
  for (size_t k = 0; k < sizeof ignored / sizeof *ignored; k++)
    if (hlo_span_is(key, ignored[k]))
      return true;
  return false;
}

/* ---- called computations ------------------------------------------------------------------------------------------ */

static bool one_name(struct hlo_cursor *c, const struct hlo_text_instr *t, const char *key, struct hlo_span *out) {
  const struct hlo_text_attr *x = hlo_text_attr(t, key);
  if (!x)
    return hlo_cur_fail(c, t->whole, DG_HLO_INVALID, "%.*s needs the attribute %s", (int)t->opcode.len, t->opcode.at,
                        key);
  struct hlo_cursor in = hlo_cur_within(c, x->value);
  if (hlo_cur_name(&in, out))
    return true;
  c->is_bad = true;
  return false;
}

static bool many_names(struct hlo_cursor *c, const struct hlo_text_attr *x, int *n, struct hlo_span **out) {
  struct hlo_cursor in = hlo_cur_within(c, x->value);
  struct hlo_span v[256];
  *n = 0;
  if (!hlo_cur_need(&in, '{'))
    c->is_bad = true;
  while (!c->is_bad && !hlo_cur_take(&in, '}')) {
    if (*n == 256 || !hlo_cur_name(&in, &v[*n]))
      return !(c->is_bad = true);
    ++*n;
    hlo_cur_take(&in, ',');
  }
  *out = arena_dup(c->tmp, v, (size_t)*n * sizeof *v);
  return !c->is_bad;
}

bool hlo_read_called(struct hlo_cursor *c, const struct hlo_text_instr *t, int *n, struct hlo_span **out) {
  struct hlo_span v[2];
  *n = 0;
  if (t->op == HLO_WHILE) {
    *n = 2;
    if (!one_name(c, t, "body", &v[0]) || !one_name(c, t, "condition", &v[1]))
      return false;
  } else if (t->op == HLO_SELECT_AND_SCATTER) {
    *n = 2;
    if (!one_name(c, t, "select", &v[0]) || !one_name(c, t, "scatter", &v[1]))
      return false;
  } else if (t->op == HLO_CUSTOM_CALL && hlo_text_attr(t, "called_computations")) {
    return many_names(c, hlo_text_attr(t, "called_computations"), n, out);
  } else if (t->op == HLO_CONDITIONAL && hlo_text_attr(t, "branch_computations")) {
    return many_names(c, hlo_text_attr(t, "branch_computations"), n, out);
  } else if (t->op == HLO_CONDITIONAL) {
    *n = 2;
    if (!one_name(c, t, "true_computation", &v[0]) || !one_name(c, t, "false_computation", &v[1]))
      return false;
  } else if (hlo_text_attr(t, "to_apply")) {
    if (!hlo_op_calls((enum hlo_op)t->op))
      return hlo_cur_fail(c, hlo_text_attr(t, "to_apply")->key, DG_HLO_INVALID, "%.*s calls no computation",
                          (int)t->opcode.len, t->opcode.at);
    *n = 1;
    if (!one_name(c, t, "to_apply", &v[0]))
      return false;
  }
  *out = arena_dup(c->tmp, v, (size_t)*n * sizeof *v);
  return true;
}

static bool set_called(struct attr_reader *r, struct hlo_instr *out) {
  struct hlo_span *names;
  if (!hlo_read_called(r->c, r->t, &out->n_called, &names))
    return false;
  out->called = arena_new_array(r->c->a, struct hlo_computation *, (size_t)out->n_called);
  for (int k = 0; k < out->n_called; k++)
    out->called[k] = r->find(r->user, names[k]);
  return true;
}

/* ---- values ------------------------------------------------------------------------------------------------------- */

/* {[0:4], [1:9:2]} */
static bool in_slice(struct hlo_cursor *c, int rank, const struct hlo_slice_dim **out) {
  struct hlo_slice_dim *v = arena_new_array(c->a, struct hlo_slice_dim, (size_t)rank);
  if (!hlo_cur_need(c, '{'))
    return false;
  for (int k = 0; k < rank; k++) {
    v[k].stride = 1;
    if ((k && !hlo_cur_need(c, ',')) || !hlo_cur_need(c, '[') || !hlo_cur_int(c, &v[k].start) ||
        !hlo_cur_need(c, ':') || !hlo_cur_int(c, &v[k].limit) ||
        (hlo_cur_take(c, ':') && !hlo_cur_int(c, &v[k].stride)) || !hlo_cur_need(c, ']'))
      return false;
  }
  *out = v;
  return hlo_cur_need(c, '}');
}

/* 0_1x2_3_1: low, high and perhaps interior padding of each dimension */
static bool in_padding(struct hlo_cursor *c, int rank, const struct hlo_pad_dim **out) {
  struct hlo_pad_dim *v = arena_new_array(c->a, struct hlo_pad_dim, (size_t)rank);
  for (int k = 0; k < rank; k++) {
    if ((k && !hlo_cur_need(c, 'x')) || !hlo_cur_int(c, &v[k].low) || !hlo_cur_need(c, '_') ||
        !hlo_cur_int(c, &v[k].high) || (hlo_cur_take(c, '_') && !hlo_cur_int(c, &v[k].interior)))
      return false;
  }
  *out = v;
  return true;
}

static bool in_direction(struct hlo_cursor *c, enum hlo_direction *out) {
  struct hlo_span word;
  if (!hlo_cur_word(c, &word, "a direction"))
    return false;
  for (int d = HLO_EQ; d <= HLO_LT; d++)
    if (hlo_span_is(word, hlo_direction_name((enum hlo_direction)d))) {
      *out = (enum hlo_direction)d;
      return true;
    }
  return hlo_cur_fail(c, word, DG_HLO_INVALID, "a comparison's direction is EQ, NE, GE, GT, LE or LT");
}

static bool in_bool(struct hlo_cursor *c, bool *out) {
  *out = hlo_cur_take_word(c, "true");
  return *out || hlo_cur_take_word(c, "false") || hlo_cur_need(c, 't');
}

static bool one_int(struct hlo_cursor *c, struct hlo_ints *out) {
  int64_t v;
  if (!hlo_cur_int(c, &v))
    return false;
  *out = hlo_ints_dup(c->a, 1, &v);
  return true;
}

/* ---- opcode by opcode --------------------------------------------------------------------------------------------- */

/* What the attributes of dot, gather and scatter are gathered in. */
struct parts {
  struct hlo_attrs own; /* without those below */
  struct hlo_dot_dims dot;
  struct hlo_gather_dims gather;
  struct hlo_scatter_dims scatter;
  struct hlo_conv_dims conv;
};

static bool dot_attribute(struct hlo_cursor *c, struct hlo_span key, struct hlo_dot_dims *d, bool *known) {
  *known = true;
  if (hlo_span_is(key, "lhs_contracting_dims"))
    return hlo_cur_ints(c, &d->lhs_contracting);
  if (hlo_span_is(key, "rhs_contracting_dims"))
    return hlo_cur_ints(c, &d->rhs_contracting);
  if (hlo_span_is(key, "lhs_batch_dims"))
    return hlo_cur_ints(c, &d->lhs_batch);
  if (hlo_span_is(key, "rhs_batch_dims"))
    return hlo_cur_ints(c, &d->rhs_batch);
  *known = false;
  return true;
}

static bool gather_attribute(struct hlo_cursor *c, struct hlo_span key, struct hlo_gather_dims *g, bool *known) {
  *known = true;
  if (hlo_span_is(key, "offset_dims"))
    return hlo_cur_ints(c, &g->offset_dims);
  if (hlo_span_is(key, "collapsed_slice_dims"))
    return hlo_cur_ints(c, &g->collapsed_slice_dims);
  if (hlo_span_is(key, "start_index_map"))
    return hlo_cur_ints(c, &g->start_index_map);
  if (hlo_span_is(key, "slice_sizes"))
    return hlo_cur_ints(c, &g->slice_sizes);
  if (hlo_span_is(key, "operand_batching_dims"))
    return hlo_cur_ints(c, &g->operand_batching_dims);
  if (hlo_span_is(key, "start_indices_batching_dims"))
    return hlo_cur_ints(c, &g->start_indices_batching_dims);
  if (hlo_span_is(key, "index_vector_dim"))
    return hlo_cur_int(c, &g->index_vector_dim);
  if (hlo_span_is(key, "indices_are_sorted"))
    return in_bool(c, &g->indices_are_sorted);
  *known = false;
  return true;
}

static bool scatter_attribute(struct hlo_cursor *c, struct hlo_span key, struct hlo_scatter_dims *s, bool *known) {
  *known = true;
  if (hlo_span_is(key, "update_window_dims"))
    return hlo_cur_ints(c, &s->update_window_dims);
  if (hlo_span_is(key, "inserted_window_dims"))
    return hlo_cur_ints(c, &s->inserted_window_dims);
  if (hlo_span_is(key, "scatter_dims_to_operand_dims"))
    return hlo_cur_ints(c, &s->scatter_dims_to_operand_dims);
  if (hlo_span_is(key, "input_batching_dims"))
    return hlo_cur_ints(c, &s->input_batching_dims);
  if (hlo_span_is(key, "scatter_indices_batching_dims"))
    return hlo_cur_ints(c, &s->scatter_indices_batching_dims);
  if (hlo_span_is(key, "index_vector_dim"))
    return hlo_cur_int(c, &s->index_vector_dim);
  if (hlo_span_is(key, "indices_are_sorted"))
    return in_bool(c, &s->indices_are_sorted);
  if (hlo_span_is(key, "unique_indices"))
    return in_bool(c, &s->unique_indices);
  *known = false;
  return true;
}

static bool in_compare_type(struct hlo_cursor *c, const struct hlo_instr *i, struct parts *p) {
  struct hlo_span word;
  if (!hlo_cur_word(c, &word, "a type"))
    return false;
  p->own.is_total_order = hlo_span_is(word, "TOTALORDER") && dtype_is_float(i->operands[0]->shape.dtype);
  return true;
}

static bool own_attribute(struct hlo_cursor *c, struct hlo_span key, const struct hlo_instr *i, struct parts *p,
                          bool *known) {
  int rank = i->n_operands ? i->operands[0]->shape.rank : 0;
  *known = true;
  switch (i->op) {
  case HLO_BROADCAST:
  case HLO_TRANSPOSE:
  case HLO_CONCATENATE:
  case HLO_REDUCE:
  case HLO_REVERSE:
  case HLO_MAP:
    if (hlo_span_is(key, "dimensions"))
      return hlo_cur_ints(c, &p->own.dimensions);
    break;
  case HLO_IOTA:
    if (hlo_span_is(key, "iota_dimension"))
      return one_int(c, &p->own.dimensions);
    break;
  case HLO_DYNAMIC_SLICE:
    if (hlo_span_is(key, "dynamic_slice_sizes"))
      return hlo_cur_ints(c, &p->own.dimensions);
    break;
  case HLO_COMPARE:
    if (hlo_span_is(key, "direction"))
      return in_direction(c, &p->own.direction);
    if (hlo_span_is(key, "type")) /* FLOAT, SIGNED, UNSIGNED: as the operands say */
      return in_compare_type(c, i, p);
    break;
  case HLO_SLICE:
    if (hlo_span_is(key, "slice"))
      return in_slice(c, rank, &p->own.slice);
    break;
  case HLO_PAD:
    if (hlo_span_is(key, "padding"))
      return in_padding(c, rank, &p->own.padding);
    break;
  case HLO_GET_TUPLE_ELEMENT:
    if (hlo_span_is(key, "index"))
      return hlo_cur_int(c, &p->own.tuple_index);
    break;
  case HLO_SORT:
    if (hlo_span_is(key, "dimensions"))
      return hlo_cur_ints(c, &p->own.dimensions);
    if (hlo_span_is(key, "is_stable"))
      return in_bool(c, &p->own.is_stable);
    break;
  case HLO_TOPK:
    if (hlo_span_is(key, "k"))
      return hlo_cur_int(c, &p->own.k);
    if (hlo_span_is(key, "largest")) {
      bool is_largest = false;
      bool ok = in_bool(c, &is_largest);
      p->own.is_smallest = !is_largest;
      return ok;
    }
    break;
  case HLO_REDUCE_WINDOW:
  case HLO_SELECT_AND_SCATTER:
    if (hlo_span_is(key, "window"))
      return hlo_read_window(c, &p->own.window);
    break;
  case HLO_CONVOLUTION:
    if (hlo_span_is(key, "window"))
      return hlo_read_window(c, &p->own.window);
    if (hlo_span_is(key, "dim_labels"))
      return hlo_read_dim_labels(c, &p->conv);
    if (hlo_span_is(key, "feature_group_count"))
      return hlo_cur_int(c, &p->conv.feature_group_count);
    if (hlo_span_is(key, "batch_group_count"))
      return hlo_cur_int(c, &p->conv.batch_group_count);
    break;
  case HLO_ALL_GATHER:
  case HLO_ALL_REDUCE:
  case HLO_REDUCE_SCATTER:
  case HLO_ALL_TO_ALL:
  case HLO_COLLECTIVE_PERMUTE:
    if (hlo_span_is(key, "dimensions"))
      return hlo_cur_ints(c, &p->own.dimensions);
    if (hlo_span_is(key, "channel_id"))
      return hlo_cur_int(c, &p->own.channel_id);
    if (hlo_span_is(key, "replica_groups") || hlo_span_is(key, "source_target_pairs"))
      return hlo_read_groups(c, &p->own.groups);
    break;
  case HLO_DOT:
    return dot_attribute(c, key, &p->dot, known);
  case HLO_GATHER:
    return gather_attribute(c, key, &p->gather, known);
  case HLO_SCATTER:
    return scatter_attribute(c, key, &p->scatter, known);
  case HLO_CUSTOM_CALL:
    if (hlo_span_is(key, "output_to_operand_aliasing"))
      return hlo_read_operand_aliases(c, &p->own);
    if (hlo_span_is(key, "custom_call_target"))
      return hlo_cur_string(c, &p->own.custom_call_target);
    if (hlo_span_is(key, "backend_config") && hlo_cur_peek(c, '"'))
      return hlo_cur_string(c, &p->own.backend_config);
    if (hlo_span_is(key, "frontend_attributes"))
      p->own.has_collectives = has_collectives(c);
    break;
  default:
    break;
  }
  *known = false;
  return true;
}

static bool is_call_attribute(struct hlo_span key) {
  static const char *const keys[] = {
      "to_apply",          "body",   "condition", "branch_computations", "true_computation",
      "false_computation", "select", "scatter",   "called_computations"};
  for (size_t k = 0; k < sizeof keys / sizeof *keys; k++)
    if (hlo_span_is(key, keys[k]))
      return true;
  return false;
}

/* An attribute that must be there; its absence would leave the instruction without a meaning. */
static bool check_needed(struct attr_reader *r, const struct hlo_instr *i) {
  static const struct {
    enum hlo_op op;
    const char *key;
  } needed[] = {
      {HLO_TRANSPOSE, "dimensions"},
      {HLO_CONCATENATE, "dimensions"},
      {HLO_REDUCE, "dimensions"},
      {HLO_SORT, "dimensions"},
      {HLO_REVERSE, "dimensions"},
      {HLO_MAP, "dimensions"},
      {HLO_TOPK, "k"},
      {HLO_CONVOLUTION, "dim_labels"},
      {HLO_IOTA, "iota_dimension"},
      {HLO_COMPARE, "direction"},
      {HLO_SLICE, "slice"},
      {HLO_GET_TUPLE_ELEMENT, "index"},
      {HLO_DYNAMIC_SLICE, "dynamic_slice_sizes"},
      {HLO_CUSTOM_CALL, "custom_call_target"},
  };
  for (size_t k = 0; k < sizeof needed / sizeof *needed; k++)
    if (needed[k].op == i->op && !hlo_text_attr(r->t, needed[k].key))
      return hlo_cur_fail(r->c, r->t->whole, DG_HLO_INVALID, "%s needs the attribute %s", hlo_op_name(i->op),
                          needed[k].key);
  if (i->op == HLO_PAD && i->operands[0]->shape.rank && !hlo_text_attr(r->t, "padding"))
    return hlo_cur_fail(r->c, r->t->whole, DG_HLO_INVALID, "pad needs the attribute padding");
  return true;
}

bool hlo_read_attributes(struct attr_reader *r, struct hlo_instr *out) {
  struct arena *a = r->c->a;
  struct parts p = {.own = {.literal = r->t->literal}, .conv = {.feature_group_count = 1, .batch_group_count = 1}};
  for (const struct hlo_text_attr *x = r->t->attrs; x; x = x->next) {
    struct hlo_cursor c = hlo_cur_within(r->c, x->value);
    bool known;
    bool ok = own_attribute(&c, x->key, out, &p, &known);
    if (ok && known) {
      hlo_cur_space(&c);
      ok = c.at == c.end || hlo_cur_fail(&c, x->value, DG_HLO_INVALID, "the value of %.*s does not end where it should",
                                         (int)x->key.len, x->key.at);
    }
    if (!ok || c.is_bad) {
      r->c->is_bad = true;
      return false;
    }
    if (!known && !is_ignored(x->key) && !is_call_attribute(x->key))
      return hlo_cur_fail(r->c, x->key, DG_HLO_INVALID, "%s with the attribute %.*s has no form here",
                          hlo_op_name(out->op), (int)x->key.len, x->key.at);
  }
  if (out->op == HLO_DOT)
    p.own.dot = arena_dup(a, &p.dot, sizeof p.dot);
  if (out->op == HLO_GATHER)
    p.own.gather = arena_dup(a, &p.gather, sizeof p.gather);
  if (out->op == HLO_SCATTER)
    p.own.scatter = arena_dup(a, &p.scatter, sizeof p.scatter);
  if (out->op == HLO_CONVOLUTION)
    p.own.conv = arena_dup(a, &p.conv, sizeof p.conv);
  if ((out->op == HLO_CONVOLUTION || out->op == HLO_REDUCE_WINDOW || out->op == HLO_SELECT_AND_SCATTER) &&
      !p.own.window)
    p.own.window = arena_new(a, struct hlo_window); /* XLA leaves out a window without dimensions */
  if (out->op == HLO_SLICE && !p.own.slice)
    p.own.slice = arena_new_array(a, struct hlo_slice_dim, 1);
  if (out->op == HLO_PAD && !p.own.padding)
    p.own.padding = arena_new_array(a, struct hlo_pad_dim, 1);
  hlo_set_attrs(out, &p.own);
  return check_needed(r, out) && set_called(r, out);
}
