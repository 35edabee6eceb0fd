/* steps_other: the steps of what reports none; see steps.h. */
#include "driver/steps_internal.h"

#include <string.h>

#include "ir/query.h"

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

void steps_of_lowering(struct steps *s, const struct stage *made) {
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
    steps_add(s, buf_text(&after), after.len);
    buf_clear(&s->now->text);
    s->now->text = after;
  }
}

/* ---- MLIR's canonicalizer ---------------------------------------------------------------------------------------- */

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
  struct state *after = st ? NULL : steps_read(s, next);
  arena_clear(&scratch);
  if (!after || steps_is_text(s->now, buf_text(&after->text), after->text.len)) {
    mlirOperationDestroy(next);
    if (after)
      steps_state_free(after);
    return false;
  }
  const struct buf *was = &s->now->text, *is = &after->text;
  const struct steps_span e = steps_between(was, buf_text(is), is->len);
  const MlirOperation op = op_on(s, e.line);
  s->attempt = mlirOperationIsNull(op) ? (struct attempt){.rule = "canonicalize", .id = -1}
                                       : steps_attempt(s, op.ptr, "canonicalize");
  steps_add(s, buf_text(is), is->len);
  steps_replace(s, after);
  mlirOperationDestroy(s->copy);
  s->copy = next;
  return true;
}

void steps_of_canonicalizer(struct steps *s) {
  while (!s->is_full && rewrite_once(s))
    ;
}
