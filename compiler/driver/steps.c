/* steps: see steps.h. */
#include "driver/steps.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "diff/diff.h"
#include "driver/steps_internal.h"
#include "hlo/print.h"
#include "ir/internal.h"
#include "ir/query.h"

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

void steps_state_free(struct state *x) {
  buf_clear(&x->text);
  arena_clear(&x->arena);
  free(x);
}

struct state *steps_read(const struct steps *s, MlirOperation module) {
  struct state *x = state_new();
  struct stage_printed lines;
  struct error err = {0};
  const struct stage_program program = {
      .ir = s->p->run->ir,
      .hlo = is_hlo(s) ? s->p->kernel->module : NULL,
      .module = module,
      .elide_above = s->p->run->job->constants,
  };
  if (stage_print(s->def, &program, &x->text, &x->arena, &lines, &err)) {
    steps_state_free(x);
    return NULL;
  }
  for (int k = 0; k < lines.n; k++)
    if (lines.lines[k])
      table_put(&x->line_of, lines.ops[k], (void *)(uintptr_t)lines.lines[k]);
  return x;
}

void steps_replace(struct steps *s, struct state *by) {
  steps_state_free(s->now);
  s->now = by;
}

bool steps_is_text(const struct state *x, const char *text, size_t len) {
  return x->text.len == len && !memcmp(buf_text(&x->text), text, len);
}

/* ---- writing ----------------------------------------------------------------------------------------------------- */

struct steps_span steps_between(const struct buf *was, const char *b, size_t nb) {
  const char *a = buf_text(was);
  const size_t na = was->len;
  struct steps_span e = {.from = 0, .end = {na, nb}, .line = 1};
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

static void put_edit(struct buf *out, const struct buf *a, const char *b, size_t nb) {
  const struct steps_span e = steps_between(a, b, nb);
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

void steps_add(struct steps *s, const char *text, size_t len) {
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
  put_edit(&s->out, &s->now->text, text, len);
  buf_putc(&s->out, '}');
  diff_clear(&d);
}

/* Ends the step that is open, if the program has changed and is valid. */
static void close_step(struct steps *s) {
  const uint64_t mark = mark_of(s);
  if (mark == s->mark && !s->is_open)
    return;
  s->is_open = !is_valid(s);
  struct state *after = s->is_open ? NULL : steps_read(s, program_of(s));
  if (!after)
    return;
  s->mark = mark;
  if (!steps_is_text(s->now, buf_text(&after->text), after->text.len))
    steps_add(s, buf_text(&after->text), after->text.len);
  steps_replace(s, after);
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

struct attempt steps_attempt(struct steps *s, void *op, const char *rule) {
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
    s->attempt = steps_attempt(s, op, rule);
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
  return strcmp(def->pass, STEPS_CANONICALIZE) != 0 ? "whole" : "again";
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
  struct state *first = steps_read(s, program_of(s));
  if (!first) {
    s->reason = "its text is too long";
    return s;
  }
  steps_replace(s, first);
  s->mark = mark_of(s);
  return s;
}

struct step_listener *steps_listener(struct steps *s) {
  return s && !s->reason && !strcmp(s->how, "rewrites") ? &s->listener : NULL;
}

/* Adds what is left between the last state and the stage's text: a pass that reports nothing changes all here. */
static void finish(struct steps *s, const struct stage *made) {
  if (s->is_full || steps_is_text(s->now, made->text, made->text_len))
    return;
  if (!strcmp(s->how, "again"))
    s->attempt = (struct attempt){.rule = "rest", .id = -1};
  steps_add(s, made->text, made->text_len);
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
    steps_of_lowering(s, made);
  else if (!strcmp(s->how, "again") && made)
    steps_of_canonicalizer(s);
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
  steps_state_free(s->now);
  buf_clear(&s->begin);
  buf_clear(&s->out);
}
