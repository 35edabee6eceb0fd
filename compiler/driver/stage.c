#include "driver/stage.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "driver/by_hand.h"
#include "hlo/print.h"
#include "ir/structured.h"
#include "nisa/print.h"

/* ---- reading ----------------------------------------------------------------------------------------------------- */

static void take_text(struct stage *s, const struct buf *b, struct arena *a) {
  s->text = arena_strndup(a, buf_text(b), b->len);
  s->text_len = b->len;
}

enum status stage_read_hlo(struct stage *s, struct hlo_module *m, struct arena *a, struct error *err) {
  const struct hlo_print_options opt = {.metadata = false, .elide_above = s->elide_above};
  struct hlo_lines lines = {0};
  struct buf b;

  buf_init(&b, FRAME_MAX);
  enum status st = hlo_print(m, &opt, &b, a, &lines);
  if (st)
    return fail(err, st, "the text of this stage is longer than %d MiB, the most that a result can hold",
                FRAME_MAX >> 20);
  take_text(s, &b, a);
  buf_clear(&b);

  s->ops.n = lines.n;
  s->ops.ops = arena_new_array(a, struct ir_op, (size_t)lines.n);
  for (int i = 0; i < lines.n; i++) {
    const struct hlo_instr *in = lines.v[i].instr;
    s->ops.ops[i] = (struct ir_op){
        .id = in->id,
        .line = lines.v[i].line,
        .name = hlo_op_name(in->op),
        .n_from = in->n_from,
        .from = in->from,
        .locs = in->locs,
    };
  }
  return ST_OK;
}

enum status stage_read_nki(struct stage *s, const struct nki_program *p, int instance, struct arena *a,
                           struct error *err) {
  struct nki_line *lines;
  struct buf b;
  int n;
  buf_init(&b, FRAME_MAX);
  enum status st = nki_print(p, instance, &b, a, &lines, &n);
  if (st)
    return fail(err, st, "the text of this stage is longer than %d MiB, the most that a result can hold",
                FRAME_MAX >> 20);
  take_text(s, &b, a);
  buf_clear(&b);
  s->ops.n = n;
  s->ops.ops = arena_new_array(a, struct ir_op, (size_t)n);
  s->nki = p;
  s->instance = instance < p->instances.n ? instance : -1;
  s->nki_lines = lines;
  for (int i = 0; i < n; i++) {
    const struct nki_line *l = &lines[i];
    const struct nki_item *x = l->item;
    struct ir_op *o = &s->ops.ops[i];
    *o = (struct ir_op){.id = l->id, .line = l->line};
    if (l->written) {
      o->name = l->written->name;
      o->locs = l->written->locs;
    } else if (x) {
      o->name = x->call ? arena_printf(a, "nisa.%s", nki_def(x->call)->name) : x->loop ? "for" : "nl.ndarray";
      o->locs = x->locs;
      o->n_from = x->from.n;
      o->from = x->from.v;
    } else {
      o->name = l->kind == NKI_LINE_HEADER ? "def" : "return";
      o->locs = l->kind == NKI_LINE_HEADER ? p->locs : p->return_locs;
    }
  }
  return ST_OK;
}

enum status stage_read_ast(struct stage *s, const struct nki_ast *ast, struct arena *a, struct error *err) {
  if (ast->text_len > FRAME_MAX)
    return fail(err, ST_LIMIT, "the text of this stage is longer than %d MiB, the most that a result can hold",
                FRAME_MAX >> 20);
  s->text = ast->text;
  s->text_len = ast->text_len;
  s->ops.n = ast->n;
  s->ops.ops = arena_new_array(a, struct ir_op, (size_t)ast->n);
  for (int i = 0; i < ast->n; i++)
    s->ops.ops[i] =
        (struct ir_op){.id = i, .line = ast->v[i].line, .name = ast->v[i].name, .locs = src_locs_one(a, ast->v[i].loc)};
  return ST_OK;
}

/* Prints NISA after a line that marks the text as NISA, so that a saved stage can be read back. */
static enum status print_nisa(struct ir *ir, MlirOperation module, int64_t elide_above, struct buf *text,
                              struct arena *a, const int **lines, struct error *err) {
  const int *below;
  buf_puts(text, NISA_TEXT_MARKER "\n");
  enum status st = nisa_print(ir, module, elide_above, text, a, &below, err);
  if (st)
    return st;
  const int n = ir_collect(a, module, NULL, NULL).n;
  int *moved = arena_new_array(a, int, (size_t)n);
  for (int i = 0; i < n; i++)
    moved[i] = below[i] ? below[i] + 1 : 0;
  *lines = moved;
  return ST_OK;
}

static enum status print_hlo(const struct stage_program *program, struct buf *text, struct arena *a,
                             struct stage_printed *out) {
  const struct hlo_print_options opt = {.metadata = false, .elide_above = program->elide_above};
  struct hlo_lines lines = {0};
  const enum status st = hlo_print(program->hlo, &opt, text, a, &lines);
  const void **ops = arena_new_array(a, const void *, (size_t)lines.n);
  int *at = arena_new_array(a, int, (size_t)lines.n);
  for (int k = 0; k < lines.n; k++) {
    ops[k] = lines.v[k].instr;
    at[k] = lines.v[k].line;
  }
  *out = (struct stage_printed){lines.n, ops, at};
  return st;
}

enum status stage_print(const struct stage_def *def, const struct stage_program *program, struct buf *text,
                        struct arena *a, struct stage_printed *out, struct error *err) {
  if (program->hlo)
    return print_hlo(program, text, a, out);
  const struct ir_ops all = ir_collect(a, program->module, NULL, NULL);
  const void **ops = arena_new_array(a, const void *, (size_t)all.n);
  for (int k = 0; k < all.n; k++)
    ops[k] = all.v[k].ptr;
  *out = (struct stage_printed){.n = all.n, .ops = ops};
  return (stage_form(def) == FORM_NISA ? print_nisa : ir_print)(program->ir, program->module, program->elide_above,
                                                                text, a, &out->lines, err);
}

enum status stage_read_mlir(struct stage *s, struct ir *ir, MlirOperation module, struct arena *a, struct error *err) {
  struct buf b;
  buf_init(&b, FRAME_MAX);
  enum status st = stage_form(s->def) == FORM_NISA
                       ? ir_snapshot_with(ir, module, print_nisa, s->elide_above, &b, a, &s->ops, err)
                       : ir_snapshot(ir, module, s->elide_above, &b, a, &s->ops, err);
  if (!st)
    take_text(s, &b, a);
  else if (buf_status(&b) == ST_LIMIT)
    st = fail(err, ST_LIMIT, "the text of this stage is longer than %d MiB, the most that a result can hold",
              FRAME_MAX >> 20);
  buf_clear(&b);
  return st;
}

/* ---- writing ----------------------------------------------------------------------------------------------------- */

void stage_put_range(struct buf *b, const struct src_range *r) {
  json_put_field_str(b, "file", r->file ? r->file : "");
  json_put_field_int(b, "line", r->line);
  json_put_field_int(b, "col", r->col);
  json_put_field_int(b, "end_line", r->end_line);
  json_put_field_int(b, "end_col", r->end_col);
}

/* Appends "src", the number of the places, if there are any. */
static void put_src(struct buf *b, struct src_locs locs, struct sources *sources) {
  const int number = sources_number(sources, locs);
  if (number >= 0)
    json_put_field_int(b, "src", number);
}

static int count_lines(const char *text, size_t len) {
  int n = 0;
  for (const char *p = text; (p = memchr(p, '\n', len - (size_t)(p - text))); p++)
    n++;
  return n + (len && text[len - 1] != '\n');
}

static void put_lines(struct buf *b, const struct stage *s, struct sources *sources) {
  int n = count_lines(s->text, s->text_len), done = 0; /* done: the number of lines written so far */
  json_put_key(b, "lines");
  buf_putc(b, '[');
  for (int i = 0; i < s->ops.n; i++) {
    const struct ir_op *o = &s->ops.ops[i];
    if (o->line <= done || o->line > n) /* a second operation on the line, or one that was not printed */
      continue;
    for (; done < o->line - 1; done++)
      buf_puts(b, done ? ",{}" : "{}");
    json_put_comma(b);
    buf_putc(b, '{');
    json_put_field_int(b, "op", o->id);
    put_src(b, o->locs, sources);
    buf_putc(b, '}');
    done++;
  }
  for (; done < n; done++)
    buf_puts(b, done ? ",{}" : "{}");
  assert(done == n);
  buf_putc(b, ']');
}

static void put_from(struct buf *b, const struct stage *s) {
  json_put_key(b, "from");
  buf_putc(b, '{');
  for (int i = 0; i < s->ops.n; i++) {
    const struct ir_op *o = &s->ops.ops[i];
    if (!o->line || !o->n_from)
      continue;
    json_put_comma(b);
    buf_putc(b, '"');
    json_put_int(b, o->id);
    buf_puts(b, "\":[");
    for (int k = 0; k < o->n_from; k++) {
      json_put_comma(b);
      json_put_int(b, o->from[k]);
    }
    buf_putc(b, ']');
  }
  buf_putc(b, '}');
}

/* Finds for each remark the operation of this stage at whose line it is shown: the first operation that was made
 * from the remark's operation and has its kind, or else the first of any kind; NULL if none is left. */
static const struct ir_op **place_remarks(const struct stage *s, int n_lines, struct arena *a) {
  const struct ir_op **at = arena_new_array(a, const struct ir_op *, (size_t)s->remarks.n);
  int n_ids = 0, k = 0;
  for (const struct remark *r = s->remarks.first; r; r = r->next)
    n_ids = r->op >= n_ids ? r->op + 1 : n_ids;
  struct about {
    const struct remark *remark;
    int k;
    struct about *next;
  } **about = arena_new_array(a, struct about *, (size_t)n_ids);
  for (const struct remark *r = s->remarks.first; r; r = r->next, k++)
    if (r->op >= 0) {
      struct about *x = arena_new(a, struct about);
      *x = (struct about){r, k, about[r->op]};
      about[r->op] = x;
    }
  for (int i = 0; i < s->ops.n; i++) {
    const struct ir_op *o = &s->ops.ops[i];
    if (!o->line || o->line > n_lines)
      continue;
    for (int f = 0; f < o->n_from; f++)
      for (const struct about *x = o->from[f] < n_ids ? about[o->from[f]] : NULL; x; x = x->next)
        if (!at[x->k] || (!strcmp(o->name, x->remark->name) && strcmp(at[x->k]->name, o->name)))
          at[x->k] = o;
  }
  return at;
}

static void put_remarks(struct buf *b, const struct stage *s, struct sources *sources) {
  if (!s->remarks.n)
    return;
  struct arena scratch;
  arena_init(&scratch);
  const struct ir_op **at = place_remarks(s, count_lines(s->text, s->text_len), &scratch);
  json_put_key(b, "remarks");
  buf_putc(b, '[');
  int k = 0;
  for (const struct remark *r = s->remarks.first; r; r = r->next, k++) {
    struct src_locs locs = r->locs.n || !at[k] ? r->locs : at[k]->locs;
    json_put_comma(b);
    buf_putc(b, '{');
    json_put_field_str(b, "pass", r->pass);
    json_put_field_str(b, "text", r->text);
    if (at[k])
      json_put_field_int(b, "op", at[k]->id);
    if (r->op >= 0)
      json_put_field_int(b, "from", r->op);
    put_src(b, locs, sources);
    remark_put_reasons(b, r);
    buf_putc(b, '}');
  }
  buf_putc(b, ']');
  arena_clear(&scratch);
}

/* The item that a line shows, by its number in the record; -1: none. */
static int item_of(const struct stage *s, int line) {
  const struct nki_line *l = &s->nki_lines[line];
  return l->kind == NKI_LINE_ITEM ? (int)(l->item - s->nki->items.v) : -1;
}

/* The lines of an instance, from the lines of its items.  *at: the number of a line before them; set to one after them. */
static void put_instance_lines(struct buf *b, const struct stage *s, const struct nki_instance *x, int *at) {
  int first = 0, last = 0;
  for (; *at < s->ops.n && item_of(s, *at) < x->first + x->n; ++*at) {
    const struct nki_line *l = &s->nki_lines[*at];
    if (item_of(s, *at) < x->first)
      continue;
    first = first ? first : l->line;
    last = l->line;
  }
  if (first)
    buf_printf(b, ",\"lines\":[%d,%d]", first, last);
}

static void put_grid(struct buf *b, const struct stage *s) {
  const struct nki_program *p = s->nki;
  int at = 0;
  if (!p || !p->grid.rank || (s->def->runner != RUN_NKI_TRACE && s->def->runner != RUN_NKI_CANONICALIZE))
    return;
  json_put_key(b, "grid");
  buf_puts(b, "{\"shape\":[");
  for (int i = 0; i < p->grid.rank; i++)
    buf_printf(b, i ? ",%lld" : "%lld", (long long)p->grid.dims[i]);
  buf_printf(b, "],\"cores\":%d,", p->grid.cores);
  if (s->instance >= 0)
    buf_printf(b, "\"shown\":%d,", s->instance);
  buf_puts(b, "\"instances\":[");
  for (int i = 0; i < p->instances.n; i++) {
    const struct nki_instance *x = &p->instances.v[i];
    buf_puts(b, i ? ",{\"id\":[" : "{\"id\":[");
    for (int k = 0; k < p->grid.rank; k++)
      buf_printf(b, k ? ",%lld" : "%lld", (long long)x->id[k]);
    buf_printf(b, "],\"core\":%d", x->core);
    if (x->same_as >= 0)
      buf_printf(b, ",\"same_as\":%d", x->same_as);
    else if (s->instance < 0 || s->instance == i)
      put_instance_lines(b, s, x, &at);
    buf_putc(b, '}');
  }
  buf_puts(b, "]}");
}

struct op_count {
  const char *name;
  int n;
};

static int by_name(const void *x, const void *y) {
  return strcmp(((const struct op_count *)x)->name, ((const struct op_count *)y)->name);
}

/* Adds an operation to the counts of the n names.  Operations of one name mostly share its address. */
static void count_op(struct op_count *counts, int *n, const char *name) {
  int k = 0;
  while (k < *n && counts[k].name != name)
    k++;
  for (k = k < *n ? k : 0; k < *n && counts[k].name != name && strcmp(counts[k].name, name) != 0; k++) {
  }
  if (k == *n)
    counts[(*n)++] = (struct op_count){name, 0};
  counts[k].n++;
}

static void put_op_counts(struct buf *b, const struct stage *s) {
  struct op_count *counts = malloc((size_t)(s->ops.n + 1) * sizeof *counts);
  int n = 0;
  if (!counts)
    arena_oom((size_t)s->ops.n * sizeof *counts);
  for (int i = 0; i < s->ops.n; i++)
    if (s->ops.ops[i].line)
      count_op(counts, &n, s->ops.ops[i].name);
  qsort(counts, (size_t)n, sizeof *counts, by_name);
  json_put_key(b, "op_counts");
  buf_putc(b, '{');
  for (int i = 0; i < n; i++) {
    json_put_comma(b);
    json_put_cstr(b, counts[i].name);
    buf_putc(b, ':');
    json_put_int(b, counts[i].n);
  }
  buf_putc(b, '}');
  free(counts);
}

static void put_first_wrong(struct buf *b, const struct trace_tensor *output, const struct check_result *r) {
  int64_t step = hlo_shape_elements(&output->shape), at = r->wrong_index;
  json_put_key(b, "first_wrong");
  buf_putc(b, '{');
  json_put_field_str(b, "output", output->name);
  json_put_key(b, "index");
  buf_putc(b, '[');
  for (int d = 0; d < output->shape.rank; d++) {
    step /= output->shape.dims[d];
    json_put_comma(b);
    json_put_int(b, at / step);
    at %= step;
  }
  buf_putc(b, ']');
  json_put_field_double(b, "got", r->got);
  json_put_field_double(b, "expected", r->expected);
  buf_putc(b, '}');
}

static void put_check(struct buf *b, const struct stage_check *c) {
  json_put_key(b, "check");
  buf_putc(b, '{');
  json_put_field_str(b, "status", c->status);
  if (c->reason)
    json_put_field_str(b, "reason", c->reason);
  else {
    json_put_field_double(b, "max_abs_err", c->result.max_abs_err);
    json_put_field_double(b, "max_rel_err", c->result.max_rel_err);
  }
  if (c->note)
    json_put_field_str(b, "note", c->note);
  if (c->wrong)
    put_first_wrong(b, c->wrong, &c->result);
  buf_putc(b, '}');
}

static void put_patterns(struct buf *b, const struct pattern_result *r) {
  json_put_key(b, "patterns");
  buf_putc(b, '{');
  json_put_field_bool(b, "ok", r->ok);
  json_put_key(b, "found");
  buf_putc(b, '[');
  for (int i = 0; i < r->n; i++)
    buf_printf(b, i ? ",[%d,%d]" : "[%d,%d]", r->v[i].line, r->v[i].at);
  buf_putc(b, ']');
  if (!r->ok) {
    json_put_field_int(b, "line", r->fault.line);
    json_put_field_int(b, "at", r->at);
    json_put_field_str(b, "message", r->fault.message);
  }
  buf_putc(b, '}');
}

static void put_pass(struct buf *b, const struct stage_def *def) {
  static const char *const hands[] = {[HAND_OUT] = "left out", [HAND_IN] = "put in", [HAND_OPTIONS] = "options"};
  char text[BY_HAND_LEN_MAX + 80];
  snprintf(text, sizeof text, def->options ? "%s{%s}" : "%s", def->pass, def->options);
  json_put_field_str(b, "pass", text);
  if (def->hand)
    json_put_field_str(b, "by_hand", hands[def->hand]);
}

/* Appends what the frame says of the text, operations and lines. */
static void put_text(struct buf *b, const struct stage *s, struct sources *sources, struct stage_told *told) {
  if (told->text != s->text) {
    buf_clear(&told->json);
    put_op_counts(&told->json, s);
    json_put_key(&told->json, "text");
    json_put_string(&told->json, s->text, s->text_len);
    put_lines(&told->json, s, sources);
    told->text = s->text;
  }
  json_put_comma(b);
  if (buf_status(&told->json))
    (void)buf_reserve(b, b->max + 1); /* the frame fails like a part of it */
  buf_append(b, buf_text(&told->json), told->json.len);
}

void stage_put_frame(struct buf *b, const struct stage *s, int kernel, struct sources *sources,
                     struct stage_told *told) {
  assert(s->text && kernel >= 0);
  buf_printf(b, "{\"frame\":\"stage\",\"kernel\":%d,\"stage\":{", kernel);
  json_put_field_int(b, "index", s->index);
  json_put_field_str(b, "name", s->def->name);
  put_pass(b, s->def);
  json_put_field_str(b, "phase", s->def->phase);
  json_put_field_str(b, "dialect", s->def->dialect);
  json_put_field_bool(b, "changed", s->changed);
  if (s->partial)
    json_put_field_bool(b, "partial", true);
  if (s->edit)
    json_put_field_str(b, "edit", s->edit == EDIT_HERE ? "here" : "earlier");
  json_put_field_int(b, "time_us", s->time_us);
  put_text(b, s, sources, told);
  put_from(b, s);
  put_remarks(b, s, sources);
  put_grid(b, s);
  if (s->check.status)
    put_check(b, &s->check);
  if (s->patterns.is_set)
    put_patterns(b, &s->patterns);
  buf_puts(b, "}}");
}

void stage_put_diag_frame(struct buf *b, const struct diag *d, int kernel) {
  buf_puts(b, "{\"frame\":\"diagnostic\",\"diagnostic\":{");
  json_put_field_str(b, "severity", diag_severity_name(d->severity));
  json_put_field_str(b, "code", diag_code_name(d->code));
  json_put_field_str(b, "message", d->message);
  if (d->hint)
    json_put_field_str(b, "hint", d->hint);
  if (d->stage)
    json_put_field_str(b, "stage", d->stage);
  if (kernel >= 0)
    json_put_field_int(b, "kernel", kernel);
  if (d->loc) {
    json_put_key(b, "range");
    buf_putc(b, '{');
    stage_put_range(b, &d->loc->range);
    buf_putc(b, '}');
  }
  if (d->loc && d->loc->caller) {
    json_put_key(b, "calls");
    buf_putc(b, '[');
    for (const struct src_loc *p = d->loc->caller; p; p = p->caller) {
      json_put_comma(b);
      buf_putc(b, '{');
      stage_put_range(b, &p->range);
      if (p->func)
        json_put_field_str(b, "fn", p->func);
      buf_putc(b, '}');
    }
    buf_putc(b, ']');
  }
  buf_puts(b, "}}");
}
