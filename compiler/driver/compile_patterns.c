/* compile_patterns: the job's patterns on the stages that they are about (patterns.h). */
#include <string.h>

#include "base/array.h"
#include "driver/compile_internal.h"

static void refuse(struct run *r, int line, const char *stage, const char *text) {
  struct src_loc *l = arena_new(r->arena, struct src_loc);
  l->range = (struct src_range){PATTERNS_FILE, line, 1, line + 1, 1};
  diag_add(&r->diags, DS_ERROR, DG_PATTERN_FAILED, l, "%s", text)->stage = stage;
}

void compile_read_patterns(struct run *r) {
  struct pattern_fault fault;
  if (!r->job->patterns || patterns_read(r->arena, r->job->patterns, r->job->patterns_len, &r->patterns, &fault))
    return;
  r->patterns = (struct patterns){0};
  refuse(r, fault.line, NULL, fault.message);
}

static bool is_about(const struct path *p, const struct pattern_section *x, const struct stage *s) {
  if (pipeline_stage(p->pipeline, x->stage) != s->index)
    return false;
  return x->kernel ? !strcmp(x->kernel, p->kernel->name) : p->number == 0;
}

void compile_try_patterns(struct path *p, struct stage *s) {
  struct run *r = p->run;
  for (int i = 0; i < r->patterns.n; i++) {
    struct pattern_section *x = &r->patterns.v[i];
    struct pattern_result one;
    if (!is_about(p, x, s))
      continue;
    x->is_used = true;
    if (s->patterns.is_set && !s->patterns.ok) /* an earlier section of this stage has failed */
      return;
    patterns_try(r->arena, x, s->text, s->text_len, &one);
    for (int k = 0; k < s->patterns.n; k++)
      array_push(r->arena, &one, s->patterns.v[k]);
    s->patterns = one;
    if (!one.ok)
      refuse(r, one.fault.line, s->def->name, one.fault.message);
  }
}

void compile_end_patterns(struct run *r) {
  if (r->has_failed) /* that says why */
    return;
  for (int i = 0; i < r->patterns.n; i++) {
    const struct pattern_section *x = &r->patterns.v[i];
    if (!x->is_used && x->n)
      refuse(r, x->line, NULL,
             x->kernel ? arena_printf(r->arena, "no kernel %s has reached a stage %s", x->kernel, x->stage)
                       : arena_printf(r->arena, "the kernel has reached no stage %s", x->stage));
  }
}
