/* compile_value: sends one value of a stage, beside what the trace has at the same place.
 *
 * The stages' operations name those that they were made from, so that a value can be followed back to instructions of the
 * trace.  The trace is run once more up to the last of these, and its value is the reference; if that is an output of the
 * kernel, NumPy's is.  There is none if another operation of the stage completes the same instruction.
 */
#include "driver/compile_internal.h"

#include <assert.h>
#include <string.h>

#include "base/json.h"
#include "driver/simulate.h"
#include "driver/value.h"
#include "driver/value_find.h"
#include "driver/value_put.h"
#include "hlo/print.h"
#include "hlo/read.h"

enum { PROTO_MAX = 64 << 20 };

/* What connects the stages so far with the trace. */
struct trail {
  int n;
  struct ir_snapshot *stages; /* of the first n stages, the trace first */
  const char *text;           /* of the trace */
  size_t text_len;
  void *proto; /* the trace's module; NULL: there is none */
  size_t proto_len;
};

static void keep_module(struct trail *t, const struct hlo_module *m, struct arena *a) {
  struct buf b;
  buf_init(&b, PROTO_MAX);
  if (!hlo_write_proto(m, &b)) {
    t->proto = arena_dup(a, b.data, b.len);
    t->proto_len = b.len;
  }
  buf_clear(&b);
}

void compile_note_stage(struct path *p) {
  struct arena *a = p->run->arena;
  if (p->before.def->runner == RUN_TRACE) {
    p->trail = arena_new(a, struct trail);
    *p->trail = (struct trail){.stages = arena_new_array(a, struct ir_snapshot, (size_t)p->pipeline->n),
                               .text = p->before.text,
                               .text_len = p->before.text_len};
    keep_module(p->trail, p->kernel->module, a);
  }
  if (p->trail)
    p->trail->stages[p->trail->n++] = p->before.ops;
}

/* ---- from the value to the trace --------------------------------------------------------------------------------- */

/* The places of a stage's operations by their ids, which are not those of MLIR's walk in HLO. */
struct places {
  int n;
  int *v; /* -1: no operation has this id */
};

static struct places find_places(const struct ir_snapshot *s, struct arena *a) {
  struct places p = {.n = 0};
  for (int k = 0; k < s->n; k++)
    p.n = s->ops[k].id >= p.n ? s->ops[k].id + 1 : p.n;
  p.v = arena_new_array(a, int, (size_t)p.n + 1);
  for (int k = 0; k < p.n; k++)
    p.v[k] = -1;
  for (int k = 0; k < s->n; k++)
    p.v[s->ops[k].id] = k;
  return p;
}

static int place_of(const struct places *p, int id) {
  return id >= 0 && id < p->n ? p->v[id] : -1;
}

static bool *no_marks(int n, struct arena *a) {
  bool *marks = arena_new_array(a, bool, (size_t)n + 1);
  memset(marks, 0, (size_t)n);
  return marks;
}

/* Marks the operations of the trace from which operation `at` of the last stage was made. */
static bool *find_ancestors(const struct trail *t, int at, struct arena *a) {
  bool *is_marked = no_marks(t->stages[t->n - 1].n, a);
  is_marked[at] = true;
  for (int k = t->n - 1; k > 0; k--) {
    const struct ir_snapshot *s = &t->stages[k], *before = &t->stages[k - 1];
    const struct places places = find_places(before, a);
    bool *next = no_marks(before->n, a);
    for (int i = 0; i < s->n; i++)
      for (int f = 0; is_marked[i] && f < s->ops[i].n_from; f++) {
        const int from = place_of(&places, s->ops[i].from[f]);
        if (from >= 0)
          next[from] = true;
      }
    is_marked = next;
  }
  return is_marked;
}

/* Marks the operations of the last stage that were made from operation `at` of the trace, among others. */
static bool *find_descendants(const struct trail *t, int at, struct arena *a) {
  bool *is_marked = no_marks(t->stages[0].n, a);
  is_marked[at] = true;
  for (int k = 1; k < t->n; k++) {
    const struct ir_snapshot *s = &t->stages[k], *before = &t->stages[k - 1];
    const struct places places = find_places(before, a);
    bool *next = no_marks(s->n, a);
    for (int i = 0; i < s->n; i++)
      for (int f = 0; f < s->ops[i].n_from; f++) {
        const int from = place_of(&places, s->ops[i].from[f]);
        next[i] |= from >= 0 && is_marked[from];
      }
    is_marked = next;
  }
  return is_marked;
}

/* True if operations of this name compute values of whole tensors. */
static bool is_computing(const struct stage *s, const struct ir_op *op) {
  return stage_form(s->def) == FORM_HLO || (!strncmp(op->name, "linalg.", 7) && strcmp(op->name, "linalg.yield") != 0);
}

/* True if operation `at` of the stage is the last one that computes a part of operation `of` of the trace. */
static bool completes(const struct trail *t, const struct stage *s, int at, int of, struct arena *a) {
  const bool *is_marked = find_descendants(t, of, a);
  for (int k = at + 1; k < s->ops.n; k++)
    if (is_marked[k] && is_computing(s, &s->ops.ops[k]))
      return false;
  return true;
}

/* An allocation has no value of its own: other instructions may use its memory, too.  A fill begins what other operations
 * complete, unless it is the whole instruction. */
static bool can_be(const struct ir_op *op, const struct hlo_instr *i) {
  static const char *const allocations[] = {"tensor.empty", "bufferization.alloc_tensor", "memref.alloc"};
  for (size_t k = 0; k < sizeof allocations / sizeof *allocations; k++)
    if (!strcmp(op->name, allocations[k]))
      return false;
  return strcmp(op->name, "linalg.fill") != 0 || i->op == HLO_BROADCAST || i->op == HLO_CONSTANT;
}

/* ---- comparing --------------------------------------------------------------------------------------------------- */

/* Dimensions other than 1; returns their number. */
static int squeeze(const struct hlo_shape *s, int64_t *dims) {
  int n = 0;
  for (int d = 0; d < s->rank; d++)
    if (s->dims[d] != 1)
      dims[n++] = s->dims[d];
  return n;
}

/* True if x has the elements of y in the same order, or (two dimensions, transposed) in the other one. */
static bool fits(const struct hlo_shape *x, const struct hlo_shape *y, bool transposed) {
  int64_t a[JOB_RANK_MAX + 1], b[JOB_RANK_MAX + 1];
  const int n = squeeze(x, a), m = squeeze(y, b);
  if (n != m || (transposed && n != 2))
    return false;
  for (int k = 0; k < n; k++)
    if (a[k] != b[transposed ? n - 1 - k : k])
      return false;
  return true;
}

/* x with its two dimensions exchanged, in the shape of the value. */
static struct trace_array transpose(struct arena *a, const struct trace_array *x, const struct hlo_shape *as) {
  int64_t dims[JOB_RANK_MAX + 1];
  const size_t size = dtype_size(x->shape.dtype), n = (size_t)hlo_shape_elements(&x->shape);
  squeeze(&x->shape, dims);
  char *to = arena_alloc(a, n * size + 1);
  const char *from = x->data;
  for (int64_t i = 0; i < dims[0]; i++)
    for (int64_t j = 0; j < dims[1]; j++)
      memcpy(to + (size_t)(j * dims[0] + i) * size, from + (size_t)(i * dims[1] + j) * size, size);
  return (struct trace_array){.shape = hlo_shape_array(a, x->shape.dtype, as->rank, as->dims), .data = to};
}

struct reference {
  const char *of, *name;
  int line;
  struct trace_array array;
};

/* Compares in one type: floats in the value's, because a stage may round more; integers in the wider one. */
static void compare(const struct value *v, struct trace_array want, struct arena *a, struct check_result *out) {
  const enum dtype t = v->array.shape.dtype, u = want.shape.dtype;
  const bool is_wider = !dtype_is_float(t) && !dtype_is_float(u) && dtype_size(u) > dtype_size(t);
  const struct trace_array got = is_wider ? check_convert_array(a, &v->array, u) : v->array;
  if (!is_wider)
    want = check_convert_array(a, &want, t);
  check_compare(1, &got, &want, out);
}

static void put_comparison(struct buf *b, const struct value *v, const struct reference *r, struct arena *a) {
  const struct hlo_shape *shape = &v->array.shape;
  const bool fits_plain = fits(shape, &r->array.shape, false), fits_other = fits(shape, &r->array.shape, true);
  struct trace_array want = r->array;
  struct check_result result = {.pass = false};
  bool is_transposed = false;
  if (fits_plain) {
    want.shape = hlo_shape_array(a, want.shape.dtype, shape->rank, shape->dims);
    compare(v, want, a, &result);
  }
  if (!result.pass && fits_other) {
    struct check_result other;
    compare(v, transpose(a, &r->array, shape), a, &other);
    is_transposed = other.pass || !fits_plain;
    result = is_transposed ? other : result;
  }
  json_put_key(b, "reference");
  buf_putc(b, '{');
  json_put_field_str(b, "of", r->of);
  json_put_field_str(b, "name", r->name);
  json_put_field_int(b, "line", r->line);
  json_put_field_bool(b, "pass", result.pass);
  json_put_field_double(b, "max_abs_err", result.max_abs_err);
  json_put_field_double(b, "max_rel_err", result.max_rel_err);
  if (is_transposed)
    json_put_field_str(b, "order", "transposed");
  if (!result.pass && result.wrong_index >= 0) {
    buf_puts(b, ",\"differs\":{\"index\":");
    check_put_index(b, shape, result.wrong_index);
    json_put_field_double(b, "got", result.got);
    json_put_field_double(b, "want", result.expected);
    buf_putc(b, '}');
  }
  buf_putc(b, '}');
}

/* ---- the reference ----------------------------------------------------------------------------------------------- */

static struct hlo_instr *find_instr(const struct hlo_module *m, const char *name) {
  hlo_for_each(i, m->entry) {
    if (!strcmp(i->name, name))
      return i;
  }
  return NULL;
}

/* The output of the kernel that the instruction is; -1 if it is none. */
static int output_of(const struct hlo_module *m, const struct hlo_instr *i) {
  const struct hlo_instr *root = m->entry->root;
  const bool is_tuple = root && root->op == HLO_TUPLE;
  const int n = !root ? 0 : is_tuple ? root->n_operands : 1;
  for (int k = 0; k < n; k++) {
    const struct hlo_instr *x = is_tuple ? root->operands[k] : root;
    while (x != i && x->op == HLO_COPY)
      x = x->operands[0];
    if (x == i)
      return k;
  }
  return -1;
}

/* Instruction `at` of the trace, if it can be the value's; NULL if it cannot. */
static struct hlo_instr *find_candidate(const struct trail *t, const struct hlo_module *m, const struct value *v,
                                        int at, struct arena *a, struct reference *out) {
  const char *name;
  size_t len;
  out->line = t->stages[0].ops[at].line;
  if (!value_name_on(t->text, t->text_len, out->line, &name, &len))
    return NULL;
  out->name = arena_strndup(a, name, len);
  struct hlo_instr *i = find_instr(m, out->name + 1);
  return i && (fits(&v->array.shape, &i->shape, false) || fits(&v->array.shape, &i->shape, true)) ? i : NULL;
}

/* Finds the value that the instruction has; false if it cannot be found.  m may be changed. */
static bool evaluate(struct path *p, struct hlo_module *m, struct hlo_instr *i, struct reference *out) {
  const int output = output_of(m, i);
  const bool is_output = output >= 0 && p->kernel->program && !p->checks.no_check;
  out->of = is_output ? "numpy" : "trace";
  if (is_output)
    out->array = p->checks.want[output];
  return is_output || (p->trail->n > 1 && !value_of_hlo(p->run->ir, m, i, p->checks.in, p->run->arena, &out->array));
}

/* Compares the value with the last instruction of the trace that it completes. */
static void compare_with_trace(struct path *p, const struct value *v, int at, struct buf *b) {
  struct arena *a = p->run->arena;
  const struct trail *t = p->trail;
  const bool *is_ancestor = find_ancestors(t, at, a);
  struct hlo_instr *i = NULL;
  struct reference r;
  struct diags ds;
  int k = t->stages[0].n;
  diags_init(&ds, a);
  struct hlo_module *m = hlo_read_proto(a, t->proto, t->proto_len, &ds);
  while (m && !i && k-- > 0)
    if (is_ancestor[k])
      i = find_candidate(t, m, v, k, a, &r);
  if (i && can_be(&p->before.ops.ops[at], i) && completes(t, &p->before, at, k, a) && evaluate(p, m, i, &r))
    put_comparison(b, v, &r, a);
}

static void put_reference(struct path *p, const struct value *v, struct buf *b) {
  const struct trail *t = p->trail;
  if (!t || !t->proto || v->unwritten || v->nth != v->executions ||
      /* a loop may complete it later */ p->before.ops.n != t->stages[t->n - 1].n)
    return;
  const struct places places = find_places(&p->before.ops, p->run->arena);
  const int at = place_of(&places, v->op_id);
  if (at >= 0)
    compare_with_trace(p, v, at, b);
}

/* ---- the frame --------------------------------------------------------------------------------------------------- */

static void put_value(struct path *p, const struct value *v, struct buf *b) {
  const struct job_value *want = &p->run->job->value;
  const char *name;
  size_t len;
  json_put_field_str(b, "stage", p->pipeline->stages[p->before.index].name);
  json_put_field_int(b, "index", p->before.index);
  if (v->line)
    json_put_field_int(b, "line", v->line);
  if (v->op)
    json_put_field_str(b, "op", v->op);
  if (want->name || (p->before.text && value_name_on(p->before.text, p->before.text_len, v->line, &name, &len)))
    json_put_field_str(b, "name", want->name ? want->name : arena_strndup(p->run->arena, name, len));
  if (v->operand)
    json_put_field_str(b, "operand", v->operand);
  if (v->reason) {
    json_put_field_str(b, "reason", v->reason);
    return;
  }
  json_put_field_int(b, "execution", v->nth);
  json_put_field_int(b, "executions", v->executions);
  value_put_array(b, v, want->n_slices, want->slices);
  if (v->unwritten)
    json_put_field_int(b, "unwritten", v->unwritten);
  put_reference(p, v, b);
}

/* The reason why the stage's program cannot be run; NULL if it can. */
static const char *why_not(struct path *p) {
  const int wanted = pipeline_stage(p->pipeline, p->run->job->value.stage);
  if (wanted < 0)
    return "the kernel has no such stage";
  if (p->before.index != wanted)
    return "the source begins at a later stage";
  const char *refusal = simulate_refusal(p->run->job, p->kernel, p->run->arena);
  if (refusal)
    return refusal;
  if (!p->checks.kernel)
    compile_begin_checks(p);
  return p->checks.has_inputs ? NULL : p->checks.no_check;
}

/* Sends the elements as a file; a longer one is left out. */
static enum status send_elements(struct path *p, const struct value *v) {
  const struct hlo_shape *s = &v->array.shape;
  const size_t size = (size_t)hlo_shape_elements(s) * dtype_size(s->dtype);
  struct buf b;
  if (size > VALUE_FILE_MAX)
    return ST_OK;
  buf_init(&b, VALUE_FILE_MAX);
  enum status st = buf_append(&b, v->array.data, size);
  if (!st)
    st = compile_send_artifact(p, arena_printf(p->run->arena, "%s/" VALUE_FILE_NAME, p->kernel->name),
                               "application/octet-stream", &b);
  buf_clear(&b);
  return st;
}

enum status compile_send_value(struct path *p) {
  struct run *r = p->run;
  struct value v = {.reason = why_not(p), .line = r->job->value.line};
  const struct value_request rq = {.ir = r->ir,
                                   .job = r->job,
                                   .kernel = p->kernel,
                                   .module = p->module,
                                   .stage = &p->before,
                                   .is_nisa = p->is_nisa,
                                   .in = p->checks.in,
                                   .arena = r->arena};
  struct buf b;
  if (!v.reason)
    value_evaluate(&rq, &v);
  if (!v.reason && r->job->artifacts && send_elements(p, &v) != ST_OK)
    return ST_LIMIT;
  buf_init(&b, FRAME_MAX);
  buf_printf(&b, "{\"frame\":\"value\",\"kernel\":%d,\"value\":{", p->number);
  put_value(p, &v, &b);
  buf_puts(&b, "}}");
  return compile_send(r, &b);
}
