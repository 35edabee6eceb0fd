/* steps: see steps.h. */
#include "driver/steps.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/table.h"
#include "diff/diff.h"
#include "hlo/print.h"
#include "ir/internal.h"
#include "ir/query.h"

/* A text of the program, and the lines of its operations. */
struct state {
  struct buf text;
  struct arena arena;
  struct table line_of; /* an operation's pointer -> its line */
};

/* What the pass has said that it does. */
struct attempt {
  const char *rule; /* NULL: nothing yet */
  const char *name; /* of the operation; NULL: there is none */
  int id, line;     /* of the operation: in the stage before, -1: none; in the state before, 0: none */
};

struct steps {
  struct step_listener listener;
  struct path *p;
  const struct stage_def *def;
  int index;
  const char *how, *reason;
  struct state *now;
  uint64_t mark; /* of the program that `now` shows */
  bool is_open;  /* the program has changed since, and is not valid */
  struct attempt attempt;
  struct buf begin; /* the text that the first edit changes */
  const struct ir_op **before; /* [id]: the operation of the stage before, NULL: none */
  int n_ids;
  MlirOperation copy; /* of the program, for a pass that is run again */
  struct buf out;
  int n, n_put;
  bool is_full;
};

/* ---- the program ------------------------------------------------------------------------------------------------- */

static bool is_hlo(const struct steps *s) {
  return stage_form(s->def) == FORM_HLO;
}

/* Null for HLO. */
static MlirOperation program_of(const struct steps *s) {
  return is_hlo(s) ? (MlirOperation){NULL} : mlirModuleGetOperation(s->p->module);
}

static uint64_t hash_hlo(const struct hlo_module *m) {
  uint64_t h = 0;
  for (const struct hlo_computation *c = m->computations; c; c = c->next) {
    h = hash_mix(h, (uintptr_t)c->root);
    for (const struct hlo_instr *i = c->first; i; i = i->next) {
      h = hash_mix(h, (uint64_t)i->id << 16 | (uint64_t)i->op);
      h = hash_mix(hash_mix(h, (uintptr_t)i->attrs), (uintptr_t)i->knob);
      h = hash_mix(hash_mix(h, (uintptr_t)i->shape.dims), (uint64_t)i->shape.dtype << 8 | (uint64_t)i->shape.rank);
      for (int k = 0; k < i->n_operands; k++)
        h = hash_mix(h, (uintptr_t)i->operands[k]);
      for (int k = 0; k < i->n_called; k++)
        h = hash_mix(h, (uintptr_t)i->called[k]);
    }
  }
  return h;
}

static uint64_t mark_of(const struct steps *s) {
  return is_hlo(s) ? hash_hlo(s->p->kernel->module) : ir_fingerprint(program_of(s));
}

static bool is_valid(const struct steps *s) {
  struct ir *ir = s->p->run->ir;
  struct ir_capture c;
  struct diags ds;
  struct arena a;
  if (is_hlo(s)) /* what a removed instruction's readers see is printed for it */
    return true;
  arena_init(&a);
  diags_init(&ds, &a);
  ir_capture_begin(ir, &c, &ds, DG_PASS_FAILED, &a);
  const bool ok = mlirOperationVerify(program_of(s));
  ir_capture_end(ir, &c);
  arena_clear(&a);
  return ok;
}

static struct state *state_new(void) {
  struct state *x = calloc(1, sizeof *x);
  if (!x)
    arena_oom(sizeof *x);
  arena_init(&x->arena);
  buf_init(&x->text, FRAME_MAX);
  x->line_of.arena = &x->arena;
  return x;
}

static void state_free(struct state *x) {
  buf_clear(&x->text);
  arena_clear(&x->arena);
  free(x);
}

/* The program as it is; NULL if its text is too long.  module: for a stage of MLIR. */
static struct state *read_state(const struct steps *s, MlirOperation module) {
  struct state *x = state_new();
  struct stage_printed lines;
  struct error err = {0};
  const struct stage_program program = {s->p->run->ir, is_hlo(s) ? s->p->kernel->module : NULL, module};
  if (stage_print(s->def, &program, &x->text, &x->arena, &lines, &err)) {
    state_free(x);
    return NULL;
  }
  for (int k = 0; k < lines.n; k++)
    if (lines.lines[k])
      table_put(&x->line_of, lines.ops[k], (void *)(uintptr_t)lines.lines[k]);
  return x;
}

static void replace_state(struct steps *s, struct state *by) {
  state_free(s->now);
  s->now = by;
}

static bool is_text_of(const struct state *x, const char *text, size_t len) {
  return x->text.len == len && !memcmp(buf_text(&x->text), text, len);
}

/* ---- writing ----------------------------------------------------------------------------------------------------- */

struct edit_span {
  size_t from, end[2]; /* bytes: of both texts; of each */
  int line, n_from;    /* lines of the first */
};

/* The smallest run of whole lines of a that is replaced to make it b. */
static struct edit_span edit_between(const char *a, size_t na, const char *b, size_t nb) {
  struct edit_span e = {.from = 0, .end = {na, nb}, .line = 1};
  size_t same = 0;
  while (same < na && same < nb && a[same] == b[same]) {
    if (a[same++] != '\n')
      continue;
    e.from = same;
    e.line++;
  }
  while (e.end[0] > e.from && e.end[1] > e.from && a[e.end[0] - 1] == b[e.end[1] - 1]) {
    e.end[0]--;
    e.end[1]--;
  }
  while (e.end[0] > e.from && e.end[0] < na && a[e.end[0] - 1] != '\n') { /* a line is replaced as a whole */
    e.end[0]++;
    e.end[1]++;
  }
  while (e.end[1] > e.from && e.end[1] < nb && b[e.end[1] - 1] != '\n') {
    e.end[0]++;
    e.end[1]++;
  }
  for (size_t k = e.from; k < e.end[0]; k++)
    e.n_from += a[k] == '\n' || k + 1 == na;
  return e;
}

static void put_edit(struct buf *out, const char *a, size_t na, const char *b, size_t nb) {
  const struct edit_span e = edit_between(a, na, b, nb);
  json_put_key(out, "edit");
  buf_putc(out, '{');
  json_put_field_int(out, "line", e.line);
  json_put_field_int(out, "removed", e.n_from);
  json_put_key(out, "text");
  json_put_string(out, b + e.from, e.end[1] - e.from);
  buf_putc(out, '}');
}

static void put_attempt(struct steps *s) {
  struct buf *out = &s->out;
  const struct attempt *t = &s->attempt;
  json_put_field_str(out, "rule", t->rule ? t->rule : s->def->name);
  if (t->name) {
    json_put_key(out, "op");
    buf_putc(out, '{');
    json_put_field_str(out, "name", t->name);
    const struct ir_op *before = t->id >= 0 && t->id < s->n_ids ? s->before[t->id] : NULL;
    if (before && before->line) {
      const int src = sources_number(&s->p->run->sources, before->locs); /* the stage before has numbered it */
      json_put_field_int(out, "id", t->id);
      json_put_field_int(out, "line", before->line);
      if (src >= 0)
        json_put_field_int(out, "src", src);
    }
    buf_putc(out, '}');
  }
  if (t->line)
    json_put_field_int(out, "at", t->line);
}

/* Adds the step from `now` to a text. */
static void add_step(struct steps *s, const char *text, size_t len) {
  const struct diff_text from = {buf_text(&s->now->text), s->now->text.len}, to = {text, len};
  struct diff d;
  struct error err = {0};
  if (s->n++ < s->p->run->job->steps_from)
    return;
  if (s->n_put == STEPS_MAX || s->out.len > STEPS_BYTES_MAX || diff_make(from, to, &d, &err)) {
    s->is_full = true;
    return;
  }
  if (!s->n_put)
    buf_append(&s->begin, from.data, from.len);
  s->n_put++;
  json_put_comma(&s->out);
  buf_putc(&s->out, '{');
  put_attempt(s);
  json_put_key(&s->out, "diff");
  diff_json(&d, from, to, &s->out);
  put_edit(&s->out, from.data, from.len, text, len);
  buf_putc(&s->out, '}');
  diff_clear(&d);
}

/* Ends the step that is open, if the program has changed and is valid. */
static void close_step(struct steps *s) {
  const uint64_t mark = mark_of(s);
  if (mark == s->mark && !s->is_open)
    return;
  s->is_open = !is_valid(s);
  struct state *after = s->is_open ? NULL : read_state(s, program_of(s));
  if (!after)
    return;
  s->mark = mark;
  if (!is_text_of(s->now, buf_text(&after->text), after->text.len))
    add_step(s, buf_text(&after->text), after->text.len);
  replace_state(s, after);
}

/* ---- what the pass tries ----------------------------------------------------------------------------------------- */

/* The first id in a location of one operation or of several. */
static int first_id(struct arena *a, MlirLocation loc) {
  if (!mlirLocationIsAFused(loc))
    return ir_op_id(loc);
  const unsigned n = mlirLocationFusedGetNumLocations(loc);
  MlirLocation *v = arena_new_array(a, MlirLocation, n + 1);
  mlirLocationFusedGetLocations(loc, v);
  for (unsigned k = 0; k < n; k++)
    if (ir_op_id(v[k]) >= 0)
      return ir_op_id(v[k]);
  return -1;
}

static struct attempt read_attempt(struct steps *s, void *op, const char *rule) {
  struct attempt t = {.rule = rule, .id = -1, .line = (int)(uintptr_t)table_get(&s->now->line_of, op)};
  if (is_hlo(s)) {
    const struct hlo_instr *i = op;
    t.name = hlo_op_name(i->op);
    t.id = i->n_from ? i->from[0] : i->id;
    return t;
  }
  const MlirOperation m = {op};
  if (mlirOperationEqual(m, program_of(s)))
    return t;
  t.name = mlirIdentifierStr(mlirOperationGetName(m)).data; /* the context keeps it, with its NUL */
  t.id = first_id(s->p->run->arena, mlirOperationGetLocation(m));
  return t;
}

static void hear(struct step_listener *l, void *op, const char *rule) {
  struct steps *s = (struct steps *)l;
  if (s->is_full)
    return;
  close_step(s);
  if (!s->is_open)
    s->attempt = read_attempt(s, op, rule);
}

/* ---- lowerings --------------------------------------------------------------------------------------------------- */

/* Of each line of a stage, the operation of the stage before, by its place there, that it was made from: the first of several.  A
 * line of no operation belongs to the one above; -1: to the frame that is there from the start. */
static int *owners(const struct steps *s, const struct stage *made, int n_lines) {
  struct arena *a = s->p->run->arena;
  const struct ir_snapshot *before = &s->p->before.ops;
  int *place = arena_new_array(a, int, (size_t)s->n_ids + 1), *owner = arena_new_array(a, int, (size_t)n_lines + 1);
  int last = 0;
  for (int k = before->n - 1; k >= 0; k--)
    place[before->ops[k].id] = k;
  for (int i = 0; i < n_lines; i++)
    owner[i] = -2;
  for (int k = made->ops.n - 1; k >= 0; k--) { /* the first of a line is written last */
    const struct ir_op *o = &made->ops.ops[k];
    if (!o->line || o->line > n_lines)
      continue;
    owner[o->line - 1] = -1;
    for (int f = 0; f < o->n_from; f++)
      if (o->from[f] < s->n_ids && (owner[o->line - 1] < 0 || place[o->from[f]] < owner[o->line - 1]))
        owner[o->line - 1] = place[o->from[f]];
    last = o->line > last ? o->line : last;
  }
  for (int i = 0; i < n_lines; i++)
    if (owner[i] == -2)
      owner[i] = i && i < last ? owner[i - 1] : -1;
  return owner;
}

static void text_until(const struct stage *made, const int *owner, int k, struct buf *out) {
  const char *p = made->text, *end = p + made->text_len;
  for (int i = 0; p < end; i++) {
    const char *nl = memchr(p, '\n', (size_t)(end - p)), *next = nl ? nl + 1 : end;
    if (owner[i] <= k)
      buf_append(out, p, (size_t)(next - p));
    p = next;
  }
}

static void derive(struct steps *s, const struct stage *made) {
  const struct ir_snapshot *before = &s->p->before.ops;
  int n_lines = 0;
  for (size_t k = 0; k < made->text_len; k++)
    n_lines += made->text[k] == '\n' || k + 1 == made->text_len;
  const int *owner = owners(s, made, n_lines);
  bool *has_lines = arena_new_array(s->p->run->arena, bool, (size_t)before->n + 1);
  for (int i = 0; i < n_lines; i++)
    if (owner[i] >= 0)
      has_lines[owner[i]] = true;
  text_until(made, owner, -1, &s->now->text);
  for (int k = 0; k < before->n && !s->is_full; k++) {
    struct buf after;
    const struct ir_op *o = &before->ops[k];
    if (!has_lines[k])
      continue;
    buf_init(&after, FRAME_MAX);
    text_until(made, owner, k, &after);
    s->attempt = (struct attempt){.rule = "lower-operation", .name = o->name, .id = o->id};
    add_step(s, buf_text(&after), after.len);
    buf_clear(&s->now->text);
    s->now->text = after;
  }
}

/* ---- MLIR's canonicalizer ---------------------------------------------------------------------------------------- */

#define CANONICALIZE "builtin.module(canonicalize)"
#define CANONICALIZE_ONCE "builtin.module(canonicalize{max-iterations=1 max-num-rewrites=1})"

struct found {
  const struct state *state;
  int line;
  MlirOperation op;
};

static MlirWalkResult find_line(MlirOperation op, void *user) {
  struct found *f = user;
  if ((int)(uintptr_t)table_get(&f->state->line_of, op.ptr) != f->line)
    return MlirWalkResultAdvance;
  f->op = op;
  return MlirWalkResultInterrupt;
}

/* The operation on this line of the state. */
static MlirOperation op_on(const struct steps *s, int line) {
  struct found f = {s->now, line, {NULL}};
  mlirOperationWalk(s->copy, find_line, &f, MlirWalkPreOrder);
  return f.op;
}

/* Makes one rewrite in a copy of s->copy, so that what it was made of can still be told, and takes that copy.  False if there is no
 * further one. */
static bool rewrite_once(struct steps *s) {
  struct arena scratch;
  struct diags ds;
  MlirOperation next = mlirOperationClone(s->copy);
  arena_init(&scratch);
  diags_init(&ds, &scratch);
  const enum status st = ir_run_pipeline(s->p->run->ir, next, CANONICALIZE_ONCE, &scratch, &ds);
  struct state *after = st ? NULL : read_state(s, next);
  arena_clear(&scratch);
  if (!after || is_text_of(s->now, buf_text(&after->text), after->text.len)) {
    mlirOperationDestroy(next);
    if (after)
      state_free(after);
    return false;
  }
  const struct buf *was = &s->now->text, *is = &after->text;
  const struct edit_span e = edit_between(buf_text(was), was->len, buf_text(is), is->len);
  const MlirOperation op = op_on(s, e.line);
  s->attempt = mlirOperationIsNull(op) ? (struct attempt){.rule = "canonicalize", .id = -1}
                                       : read_attempt(s, op.ptr, "canonicalize");
  add_step(s, buf_text(is), is->len);
  replace_state(s, after);
  mlirOperationDestroy(s->copy);
  s->copy = next;
  return true;
}

/* ---- all --------------------------------------------------------------------------------------------------------- */

static const char *why_none(const struct steps *s) {
  if (s->index == s->p->first_stage)
    return "it is the first stage";
  if (stage_form(s->def) == FORM_NKI || stage_form(s->p->before.def) == FORM_NKI)
    return "the stages of an NKI kernel are made anew from its record, not rewritten";
  return s->def->hand == HAND_OUT ? "its pass was left out" : NULL;
}

static const char *how(const struct stage_def *def) {
  if (def->runner == RUN_TO_LINALG)
    return "operations";
  if (def->runner != RUN_UPSTREAM)
    return "rewrites";
  return strcmp(def->pass, CANONICALIZE) != 0 ? "whole" : "again";
}

static void read_ids(struct steps *s) {
  const struct ir_snapshot *before = &s->p->before.ops;
  for (int k = 0; k < before->n; k++)
    s->n_ids = before->ops[k].id >= s->n_ids ? before->ops[k].id + 1 : s->n_ids;
  s->before = arena_new_array(s->p->run->arena, const struct ir_op *, (size_t)s->n_ids + 1);
  for (int k = 0; k < before->n; k++)
    s->before[before->ops[k].id] = &before->ops[k];
}

struct steps *steps_begin(struct path *p, int index) {
  const char *wanted = p->run->job->steps;
  if (!wanted || pipeline_stage(p->pipeline, wanted) != index)
    return NULL;
  struct steps *s = arena_new(p->run->arena, struct steps);
  s->listener.next = hear;
  s->p = p;
  s->index = index;
  s->def = &p->pipeline->stages[index];
  s->how = how(s->def);
  s->attempt.id = -1;
  buf_init(&s->out, FRAME_MAX);
  buf_init(&s->begin, FRAME_MAX);
  s->now = state_new();
  s->reason = why_none(s);
  if (s->reason)
    return s;
  read_ids(s);
  if (s->def->runner == RUN_TO_LINALG)
    return s;
  if (s->def->runner == RUN_UPSTREAM && !strcmp(s->how, "again"))
    s->copy = mlirOperationClone(mlirModuleGetOperation(p->module));
  struct state *first = read_state(s, program_of(s));
  if (!first) {
    s->reason = "its text is too long";
    return s;
  }
  replace_state(s, first);
  s->mark = mark_of(s);
  return s;
}

struct step_listener *steps_listener(struct steps *s) {
  return s && !s->reason && !strcmp(s->how, "rewrites") ? &s->listener : NULL;
}

/* Adds what is left between the last state and the stage's text: a pass that reports nothing changes all here. */
static void finish(struct steps *s, const struct stage *made) {
  if (s->is_full || is_text_of(s->now, made->text, made->text_len))
    return;
  if (!strcmp(s->how, "again"))
    s->attempt = (struct attempt){.rule = "rest", .id = -1};
  add_step(s, made->text, made->text_len);
}

static void put_frame(struct buf *b, struct steps *s) {
  buf_puts(b, "{\"frame\":\"steps\"");
  json_put_field_int(b, "kernel", s->p->number);
  json_put_key(b, "steps");
  buf_putc(b, '{');
  json_put_field_int(b, "index", s->index);
  json_put_field_str(b, "stage", s->def->name);
  json_put_field_str(b, "pass", s->def->pass);
  if (s->reason) {
    json_put_field_str(b, "reason", s->reason);
    buf_puts(b, "}}");
    return;
  }
  json_put_field_str(b, "how", s->how);
  json_put_field_int(b, "from", s->p->run->job->steps_from);
  if (s->n_put) {
    json_put_key(b, "begin");
    json_put_string(b, buf_text(&s->begin), s->begin.len);
  }
  json_put_key(b, "steps");
  buf_putc(b, '[');
  buf_append(b, buf_text(&s->out), s->out.len);
  buf_putc(b, ']');
  if (s->is_full)
    json_put_field_int(b, "next", s->p->run->job->steps_from + s->n_put);
  buf_puts(b, "}}");
}

enum status steps_send(struct steps *s, const struct stage *made) {
  struct buf b;
  if (s->reason)
    ;
  else if (!strcmp(s->how, "operations") && made)
    derive(s, made);
  else if (!strcmp(s->how, "again") && made)
    while (!s->is_full && rewrite_once(s))
      ;
  if (!s->reason && made)
    finish(s, made);
  buf_init(&b, FRAME_MAX);
  put_frame(&b, s);
  return compile_send_stage_frame(s->p->run, &b, s->def->name);
}

void steps_free(struct steps *s) {
  if (!s)
    return;
  if (!mlirOperationIsNull(s->copy))
    mlirOperationDestroy(s->copy);
  state_free(s->now);
  buf_clear(&s->begin);
  buf_clear(&s->out);
}
