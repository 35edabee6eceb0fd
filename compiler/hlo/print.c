/* print: the module as HLO text.
 *
 * XLA's syntax with '%' before names (so that a parameter called `f32` is a name), layouts on shapes (always row-major)
 * and one instruction per line.  Strings are C-escaped, so a line break in the text is always one of ours and lines can
 * be counted as they are written.
 */
#include "hlo/print.h"

#include <inttypes.h>
#include <string.h>

#include "hlo/export.h"
#include "hlo/print_literal.h"

struct printer {
  struct hlo_export emit;
  const struct hlo_print_options *opt;
  struct buf *out;
  int line; /* being written */
};

static void end_line(struct printer *p) {
  buf_putc(p->out, '\n');
  p->line++;
}

/* ---- small things ------------------------------------------------------------------------------------ */

/* In quotes, escaped as absl's CEscape does. */
static void put_string(struct buf *out, const char *s) {
  buf_putc(out, '"');
  for (; *s; s++) {
    unsigned char c = (unsigned char)*s;
    if (c == '\n')
      buf_puts(out, "\\n");
    else if (c == '\r')
      buf_puts(out, "\\r");
    else if (c == '\t')
      buf_puts(out, "\\t");
    else if (c == '"' || c == '\'' || c == '\\')
      buf_printf(out, "\\%c", c);
    else if (c < 0x20 || c >= 0x7f)
      buf_printf(out, "\\%03o", c);
    else
      buf_putc(out, (char)c);
  }
  buf_putc(out, '"');
}

static void put_list(struct buf *out, const int64_t *v, int n) {
  for (int k = 0; k < n; k++) {
    if (k)
      buf_putc(out, ',');
    buf_put_int(out, v[k]);
  }
}

static void put_ints(struct buf *out, struct hlo_ints v) {
  buf_putc(out, '{');
  put_list(out, v.v, v.n);
  buf_putc(out, '}');
}

static void put_named_ints(struct buf *out, const char *name, struct hlo_ints v) {
  buf_puts(out, ", ");
  buf_puts(out, name);
  buf_putc(out, '=');
  put_ints(out, v);
}

static void put_shape(struct buf *out, const struct hlo_shape *s, bool with_layout) {
  if (s->dtype == DT_TUPLE) {
    buf_putc(out, '(');
    for (int k = 0; k < s->n_elems; k++) {
      buf_puts(out, k ? ", " : "");
      put_shape(out, &s->elems[k], with_layout);
    }
    buf_putc(out, ')');
    return;
  }
  buf_puts(out, dtype_hlo_name(s->dtype));
  buf_putc(out, '[');
  put_list(out, s->dims, s->rank);
  buf_putc(out, ']');
  if (!with_layout || !s->rank)
    return;
  for (int k = s->rank - 1; k >= 0; k--) {
    buf_putc(out, k == s->rank - 1 ? '{' : ',');
    buf_put_int(out, k);
  }
  buf_putc(out, '}');
}

/* ---- attributes -------------------------------------------------------------------------------------- */

static void put_slice(struct buf *out, const struct hlo_instr *i) {
  buf_puts(out, ", slice={");
  for (int k = 0; k < i->operands[0]->shape.rank; k++) {
    const struct hlo_slice_dim *s = &i->attrs->slice[k];
    buf_printf(out, "%s[%" PRId64 ":%" PRId64, k ? ", " : "", s->start, s->limit);
    if (s->stride != 1)
      buf_printf(out, ":%" PRId64, s->stride);
    buf_putc(out, ']');
  }
  buf_putc(out, '}');
}

static void put_padding(struct buf *out, const struct hlo_instr *i) {
  int rank = i->operands[0]->shape.rank;
  bool has_interior = false;
  for (int k = 0; k < rank; k++)
    has_interior |= i->attrs->padding[k].interior != 0;
  if (rank)
    buf_puts(out, ", padding=");
  for (int k = 0; k < rank; k++) {
    const struct hlo_pad_dim *d = &i->attrs->padding[k];
    buf_printf(out, "%s%" PRId64 "_%" PRId64, k ? "x" : "", d->low, d->high);
    if (has_interior)
      buf_printf(out, "_%" PRId64, d->interior);
  }
}

static void put_dot(struct buf *out, const struct hlo_dot_dims *d) {
  if (d->lhs_batch.n)
    put_named_ints(out, "lhs_batch_dims", d->lhs_batch);
  put_named_ints(out, "lhs_contracting_dims", d->lhs_contracting);
  if (d->rhs_batch.n)
    put_named_ints(out, "rhs_batch_dims", d->rhs_batch);
  put_named_ints(out, "rhs_contracting_dims", d->rhs_contracting);
}

static void put_gather(struct buf *out, const struct hlo_gather_dims *g) {
  put_named_ints(out, "offset_dims", g->offset_dims);
  put_named_ints(out, "collapsed_slice_dims", g->collapsed_slice_dims);
  put_named_ints(out, "start_index_map", g->start_index_map);
  if (g->operand_batching_dims.n) {
    put_named_ints(out, "operand_batching_dims", g->operand_batching_dims);
    put_named_ints(out, "start_indices_batching_dims", g->start_indices_batching_dims);
  }
  buf_printf(out, ", index_vector_dim=%" PRId64, g->index_vector_dim);
  put_named_ints(out, "slice_sizes", g->slice_sizes);
  if (g->indices_are_sorted)
    buf_puts(out, ", indices_are_sorted=true");
}

static void put_scatter(struct buf *out, const struct hlo_scatter_dims *s) {
  put_named_ints(out, "update_window_dims", s->update_window_dims);
  put_named_ints(out, "inserted_window_dims", s->inserted_window_dims);
  put_named_ints(out, "scatter_dims_to_operand_dims", s->scatter_dims_to_operand_dims);
  if (s->input_batching_dims.n) {
    put_named_ints(out, "input_batching_dims", s->input_batching_dims);
    put_named_ints(out, "scatter_indices_batching_dims", s->scatter_indices_batching_dims);
  }
  buf_printf(out, ", index_vector_dim=%" PRId64, s->index_vector_dim);
  if (s->indices_are_sorted)
    buf_puts(out, ", indices_are_sorted=true");
  if (s->unique_indices)
    buf_puts(out, ", unique_indices=true");
}

/* pad=1_2x0_0: a pair per dimension */
static void put_window_field(struct buf *out, const struct hlo_window *w, const char *name,
                             int64_t (*value)(const struct hlo_window_dim *), int64_t neutral) {
  bool is_said = false;
  for (int k = 0; k < w->n; k++)
    is_said |= value(&w->v[k]) != neutral;
  if (!is_said)
    return;
  buf_printf(out, " %s=", name);
  for (int k = 0; k < w->n; k++)
    buf_printf(out, "%s%" PRId64, k ? "x" : "", value(&w->v[k]));
}

static int64_t window_stride(const struct hlo_window_dim *d) {
  return d->stride;
}
static int64_t window_base_dilation(const struct hlo_window_dim *d) {
  return d->base_dilation;
}
static int64_t window_dilation(const struct hlo_window_dim *d) {
  return d->window_dilation;
}
static int64_t window_reversal(const struct hlo_window_dim *d) {
  return d->is_reversed;
}

static void put_window(struct buf *out, const struct hlo_window *w) {
  bool is_padded = false;
  if (!w->n)
    return;
  buf_puts(out, ", window={size=");
  for (int k = 0; k < w->n; k++) {
    buf_printf(out, "%s%" PRId64, k ? "x" : "", w->v[k].size);
    is_padded |= w->v[k].low || w->v[k].high;
  }
  put_window_field(out, w, "stride", window_stride, 1);
  if (is_padded)
    buf_puts(out, " pad=");
  for (int k = 0; is_padded && k < w->n; k++)
    buf_printf(out, "%s%" PRId64 "_%" PRId64, k ? "x" : "", w->v[k].low, w->v[k].high);
  put_window_field(out, w, "lhs_dilate", window_base_dilation, 1);
  put_window_field(out, w, "rhs_dilate", window_dilation, 1);
  put_window_field(out, w, "rhs_reversal", window_reversal, 0);
  buf_putc(out, '}');
}

/* b01f: the role of each dimension; spatial dimensions by number */
static void put_roles(struct buf *out, int64_t x, char x_name, int64_t y, char y_name, struct hlo_ints spatial) {
  char text[HLO_RANK_MAX + 1] = {0};
  text[x] = x_name;
  text[y] = y_name;
  for (int k = 0; k < spatial.n; k++)
    text[spatial.v[k]] = (char)('0' + k); /* at most HLO_SPATIAL_MAX */
  buf_puts(out, text);
}

static void put_convolution(struct buf *out, const struct hlo_conv_dims *c) {
  buf_puts(out, ", dim_labels=");
  put_roles(out, c->input_batch, 'b', c->input_feature, 'f', c->input_spatial);
  buf_putc(out, '_');
  put_roles(out, c->kernel_input_feature, 'i', c->kernel_output_feature, 'o', c->kernel_spatial);
  buf_puts(out, "->");
  put_roles(out, c->output_batch, 'b', c->output_feature, 'f', c->output_spatial);
  if (c->feature_group_count != 1)
    buf_printf(out, ", feature_group_count=%" PRId64, c->feature_group_count);
  if (c->batch_group_count != 1)
    buf_printf(out, ", batch_group_count=%" PRId64, c->batch_group_count);
}

static void put_collective(struct buf *out, const struct hlo_instr *i) {
  if (i->attrs->channel_id)
    buf_printf(out, ", channel_id=%" PRId64, i->attrs->channel_id);
  buf_printf(out, ", %s={", i->op == HLO_COLLECTIVE_PERMUTE ? "source_target_pairs" : "replica_groups");
  for (int k = 0; i->attrs->groups && k < i->attrs->groups->n; k++) {
    buf_puts(out, k ? "," : "");
    put_ints(out, i->attrs->groups->v[k]);
  }
  buf_putc(out, '}');
  if (i->op != HLO_ALL_REDUCE && i->op != HLO_COLLECTIVE_PERMUTE)
    put_named_ints(out, "dimensions", i->attrs->dimensions);
}

static void put_operand_aliases(struct buf *out, const struct hlo_instr *i) {
  buf_puts(out, ", output_to_operand_aliasing={");
  for (int k = 0; k < i->attrs->n_operand_aliases; k++) {
    buf_puts(out, k ? ", " : "");
    put_ints(out, i->attrs->operand_aliases[k].output_index);
    buf_printf(out, ": (%" PRId64 ", {})", i->attrs->operand_aliases[k].operand);
  }
  buf_putc(out, '}');
}

static void put_custom_call(struct buf *out, const struct hlo_instr *i) {
  if (i->attrs->custom_call_target) {
    buf_puts(out, ", custom_call_target=");
    put_string(out, i->attrs->custom_call_target);
  }
  if (i->attrs->backend_config && *i->attrs->backend_config) {
    buf_puts(out, ", backend_config=");
    put_string(out, i->attrs->backend_config);
  }
  if (i->attrs->n_operand_aliases)
    put_operand_aliases(out, i);
}

/* A conditional on a truth value is written with names for its branches, as XLA does. */
static void put_called(struct buf *out, const struct hlo_instr *i) {
  static const char *const of_while[] = {"body", "condition"},
                           *const of_pred[] = {"true_computation", "false_computation"},
                           *const of_select[] = {"select", "scatter"};
  const char *const *names = i->op == HLO_WHILE ? of_while : i->op == HLO_SELECT_AND_SCATTER ? of_select : NULL;
  if (i->op == HLO_CONDITIONAL && i->operands[0]->shape.dtype == DT_BOOL)
    names = of_pred;
  if (i->op == HLO_CONDITIONAL && !names)
    buf_puts(out, ", branch_computations={");
  for (int k = 0; k < i->n_called; k++) {
    if (names)
      buf_printf(out, ", %s=%%%s", names[k], i->called[k]->name);
    else if (i->op == HLO_CONDITIONAL)
      buf_printf(out, "%s%%%s", k ? ", " : "", i->called[k]->name);
    else
      buf_printf(out, ", to_apply=%%%s", i->called[k]->name);
  }
  if (i->op == HLO_CONDITIONAL && !names)
    buf_putc(out, '}');
}

static void put_attributes(struct buf *out, const struct hlo_instr *i) {
  switch (i->op) {
  case HLO_BROADCAST:
  case HLO_TRANSPOSE:
  case HLO_CONCATENATE:
  case HLO_REDUCE:
  case HLO_REVERSE:
  case HLO_MAP:
    put_named_ints(out, "dimensions", i->attrs->dimensions);
    break;
  case HLO_SORT:
    put_named_ints(out, "dimensions", i->attrs->dimensions);
    if (i->attrs->is_stable)
      buf_puts(out, ", is_stable=true");
    break;
  case HLO_TOPK:
    buf_printf(out, ", k=%" PRId64 ", largest=%s", i->attrs->k, i->attrs->is_smallest ? "false" : "true");
    break;
  case HLO_REDUCE_WINDOW:
  case HLO_SELECT_AND_SCATTER:
    put_window(out, i->attrs->window);
    break;
  case HLO_CONVOLUTION:
    put_window(out, i->attrs->window);
    put_convolution(out, i->attrs->conv);
    break;
  case HLO_ALL_GATHER:
  case HLO_ALL_REDUCE:
  case HLO_REDUCE_SCATTER:
  case HLO_ALL_TO_ALL:
  case HLO_COLLECTIVE_PERMUTE:
    put_collective(out, i);
    break;
  case HLO_IOTA:
    buf_printf(out, ", iota_dimension=%" PRId64, i->attrs->dimensions.v[0]);
    break;
  case HLO_DYNAMIC_SLICE:
    put_named_ints(out, "dynamic_slice_sizes", i->attrs->dimensions);
    break;
  case HLO_COMPARE:
    buf_printf(out, ", direction=%s", hlo_direction_name(i->attrs->direction));
    if (i->attrs->is_total_order)
      buf_puts(out, ", type=TOTALORDER");
    break;
  case HLO_SLICE:
    put_slice(out, i);
    break;
  case HLO_PAD:
    put_padding(out, i);
    break;
  case HLO_DOT:
    put_dot(out, i->attrs->dot);
    break;
  case HLO_GATHER:
    put_gather(out, i->attrs->gather);
    break;
  case HLO_SCATTER:
    put_scatter(out, i->attrs->scatter);
    break;
  case HLO_GET_TUPLE_ELEMENT:
    buf_printf(out, ", index=%" PRId64, i->attrs->tuple_index);
    break;
  case HLO_CUSTOM_CALL:
    put_custom_call(out, i);
    break;
  default:
    break;
  }
  put_called(out, i);
}

static void put_metadata(struct printer *p, const struct hlo_instr *i) {
  const struct src_range *r = &i->locs.v[0]->range;
  struct buf *out = p->out;
  buf_printf(out, ", metadata={op_type=\"NKIPy_Op\" op_name=\"hlo__%s\"", hlo_op_name(i->op));
  if (r->file && *r->file) {
    buf_puts(out, " source_file=");
    put_string(out, r->file);
  }
  buf_printf(out, " source_line=%d source_end_line=%d source_column=%d source_end_column=%d", r->line, r->end_line,
             r->col, r->end_col);
  int frame = hlo_export_frame(&p->emit, i);
  if (frame)
    buf_printf(out, " stack_frame_id=%d", frame);
  buf_putc(out, '}');
}

/* ---- instructions and computations ------------------------------------------------------------------- */

static void put_operands(struct printer *p, const struct hlo_instr *i) {
  struct buf *out = p->out;
  buf_printf(out, " %s(", hlo_op_name(i->op));
  if (i->op == HLO_PARAMETER)
    buf_printf(out, "%" PRId64, i->attrs->parameter_number);
  if (i->op == HLO_CONSTANT)
    hlo_print_literal(out, i->attrs->literal, p->opt->elide_above);
  for (int k = 0; k < i->n_operands; k++)
    buf_printf(out, "%s%%%s", k ? ", " : "", hlo_export_name(&p->emit, i->operands[k]));
  buf_putc(out, ')');
}

static void put_frontend_attributes(struct printer *p, const struct hlo_instr *i) {
  struct hlo_export_pair v[HLO_EXPORT_PAIRS_MAX];
  const int n = hlo_export_frontend_attributes(&p->emit, i, v);
  for (int k = 0; k < n; k++) {
    buf_printf(p->out, "%s%s=", k ? "," : ", frontend_attributes={", v[k].key);
    put_string(p->out, v[k].value);
  }
  if (n)
    buf_putc(p->out, '}');
}

static void put_instruction(struct printer *p, const struct hlo_instr *i) {
  struct buf *out = p->out;
  buf_printf(out, "  %s%%%s = ", i == i->parent->root ? "ROOT " : "", hlo_export_name(&p->emit, i));
  put_shape(out, &i->shape, true);
  put_operands(p, i);
  put_attributes(out, i);
  put_frontend_attributes(p, i);
  if (p->opt->metadata && i->locs.n)
    put_metadata(p, i);
  end_line(p);
}

static void put_computation(struct printer *p, const struct hlo_computation *c, struct hlo_lines *lines) {
  struct buf *out = p->out;
  const struct hlo_instr *root = hlo_export_root(c);
  end_line(p);
  buf_printf(out, "%s%%%s (", c == p->emit.module->entry ? "ENTRY " : "", c->name);
  for (int k = 0; k < c->n_params; k++) {
    buf_printf(out, "%s%s: ", k ? ", " : "", hlo_export_name(&p->emit, c->params[k]));
    put_shape(out, &c->params[k]->shape, false);
  }
  buf_puts(out, ") -> ");
  if (root)
    put_shape(out, &root->shape, false);
  else
    buf_puts(out, "()");
  buf_puts(out, " {");
  end_line(p);
  hlo_for_each(i, c) {
    if (lines)
      lines->v[lines->n++] = (struct hlo_line){i, p->line};
    put_instruction(p, i);
  }
  buf_putc(out, '}');
  end_line(p);
}

/* ---- the module -------------------------------------------------------------------------------------- */

static void put_aliases(struct buf *out, const struct hlo_module *m) {
  buf_puts(out, ", input_output_alias={ ");
  for (int k = 0; k < m->n_aliases; k++) {
    buf_puts(out, k ? ", " : "");
    if (m->entry->root && m->entry->root->shape.dtype == DT_TUPLE)
      buf_printf(out, "{%d}", m->aliases[k].output_index);
    else
      buf_puts(out, "{}");
    buf_printf(out, ": (%d, {}, must-alias)", m->aliases[k].param_index);
  }
  buf_puts(out, " }");
}

static void put_header(struct printer *p) {
  const struct hlo_module *m = p->emit.module;
  const struct hlo_instr *root = hlo_export_root(m->entry);
  struct buf *out = p->out;
  buf_printf(out, "HloModule %s", p->emit.module_name);
  if (m->n_aliases)
    put_aliases(out, m);
  buf_puts(out, ", entry_computation_layout={(");
  for (int k = 0; k < m->entry->n_params; k++) {
    buf_puts(out, k ? ", " : "");
    put_shape(out, &m->entry->params[k]->shape, true);
  }
  buf_puts(out, ")->");
  if (root)
    put_shape(out, &root->shape, true);
  else
    buf_puts(out, "()");
  buf_puts(out, "}");
  end_line(p);
}

static void put_texts(struct printer *p, const char *title, int n, const char **v) {
  end_line(p);
  buf_puts(p->out, title);
  end_line(p);
  for (int k = 0; k < n; k++) {
    buf_printf(p->out, "%d ", k + 1);
    put_string(p->out, v[k]);
    end_line(p);
  }
}

/* In the text, and only there, a frame without a parent says 1 and every other parent one more than its number. */
static void put_stack_frames(struct printer *p) {
  const struct hlo_frames *f = &p->emit.frames;
  if (!f->n_frames)
    return;
  put_texts(p, "FileNames", f->n_files, f->files);
  put_texts(p, "FunctionNames", f->n_functions, f->functions);
  end_line(p);
  buf_puts(p->out, "FileLocations");
  end_line(p);
  for (int k = 0; k < f->n_locations; k++) {
    const struct hlo_frame_file_location *l = &f->locations[k];
    buf_printf(p->out, "%d {file_name_id=%d function_name_id=%d line=%d end_line=%d column=%d end_column=%d}", k + 1,
               l->file, l->function, l->range.line, l->range.end_line, l->range.col, l->range.end_col);
    end_line(p);
  }
  end_line(p);
  buf_puts(p->out, "StackFrames");
  end_line(p);
  for (int k = 0; k < f->n_frames; k++) {
    buf_printf(p->out, "%d {file_location_id=%d parent_frame_id=%d}", k + 1, f->frames[k].location,
               f->frames[k].parent + 1);
    end_line(p);
  }
}

enum status hlo_print(const struct hlo_module *m, const struct hlo_print_options *opt, struct buf *out, struct arena *a,
                      struct hlo_lines *lines) {
  struct printer p = {.opt = opt, .out = out, .line = 1};
  struct arena scratch;
  int n = 0;

  arena_init(&scratch);
  hlo_export_init(&p.emit, &scratch, m, opt->metadata);
  for (const struct hlo_computation *c = m->computations; c; c = c->next)
    n += c->n_instrs;
  if (lines)
    *lines = (struct hlo_lines){0, arena_new_array(a, struct hlo_line, (size_t)n)};
  put_header(&p);
  put_stack_frames(&p);
  for (const struct hlo_computation *c = m->computations; c && !buf_status(out); c = c->next)
    put_computation(&p, c, lines);
  arena_clear(&scratch);
  return buf_status(out);
}
