/* print: the module as HLO text.
 *
 * XLA's syntax with '%' before names (so that a parameter called `f32` is a name), layouts on shapes (always row-major)
 * and one instruction per line.  Strings are C-escaped, so each line break in the text is written by the printer, which
 * counts lines as it goes.
 */
#include "hlo/print.h"

#include <inttypes.h>
#include <string.h>

#include "hlo/attrs.h"
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
  hlo_put_list(out, s->dims, s->rank);
  buf_putc(out, ']');
  if (!with_layout || !s->rank)
    return;
  for (int k = s->rank - 1; k >= 0; k--) {
    buf_putc(out, k == s->rank - 1 ? '{' : ',');
    buf_put_int(out, k);
  }
  buf_putc(out, '}');
}

static void put_metadata(struct printer *p, const struct hlo_instr *i) {
  const struct src_range *r = &i->locs.v[0]->range;
  struct buf *out = p->out;
  buf_printf(out, ", metadata={op_type=\"NKIPy_Op\" op_name=\"hlo__%s\"", hlo_op_name(i->op));
  if (r->file && *r->file) {
    buf_puts(out, " source_file=");
    hlo_put_string(out, r->file);
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
    hlo_put_string(p->out, v[k].value);
  }
  if (n)
    buf_putc(p->out, '}');
}

static void put_instruction(struct printer *p, const struct hlo_instr *i) {
  struct buf *out = p->out;
  buf_printf(out, "  %s%%%s = ", i == i->parent->root ? "ROOT " : "", hlo_export_name(&p->emit, i));
  put_shape(out, &i->shape, true);
  put_operands(p, i);
  hlo_attrs_print(out, i);
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
    hlo_put_string(p->out, v[k]);
    end_line(p);
  }
}

/* In the text only, a frame without a parent has the parent number 1, and all other parent numbers are one higher. */
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
