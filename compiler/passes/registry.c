/* registry: finds passes by name, and holds what all passes use: remarks, failures, options. */
#include <assert.h>
#include <stdarg.h>
#include <string.h>

#include "ir/internal.h"
#include "ir/places.h"
#include "ir/snapshot.h"
#include "nisa/nisa.h"
#include "passes/pass.h"

#define PASS(name) extern const struct pass_def name;
#include "passes/passes.def"
#undef PASS

static const struct pass_def *const passes[] = {
#define PASS(name) &name,
#include "passes/passes.def"
#undef PASS
    NULL,
};

const struct pass_def *pass_find(const char *name) {
  for (int i = 0; passes[i]; i++)
    if (!strcmp(passes[i]->name, name))
      return passes[i];
  return NULL;
}

/* The place of a remark, in memory that lives as long as the job if there is one. */
static struct src_locs first_place(struct pass_run *run, MlirOperation op) {
  if (run->ir && run->ir->places)
    return ir_places_first(run->ir->places, op, run->arena);
  return src_locs_one(run->arena, ir_first_place(run->arena, mlirOperationGetLocation(op)));
}

struct remark *pass_remark(struct pass_run *run, MlirOperation op, enum rule rule, const char *fmt, ...) {
  struct remarks *rs = run->remarks;
  assert(run->def);
  if (!rs)
    return NULL;
  va_list ap;
  va_start(ap, fmt);
  const char *text = arena_vprintf(run->arena, fmt, ap);
  va_end(ap);
  MlirStringRef name = mlirIdentifierStr(mlirOperationGetName(op));
  struct remark r = {.pass = run->def->name,
                     .rule = rule,
                     .text = text,
                     .name = arena_strndup(run->arena, name.data, name.length),
                     .op = ir_op_id(mlirOperationGetLocation(op)),
                     .locs = first_place(run, op)};
  return remark_add(rs, run->arena, &r);
}

void pass_drop_remarks(struct pass_run *run, MlirOperation op, enum rule rule, const char *beginning) {
  const int id = ir_op_id(mlirOperationGetLocation(op));
  struct remark *before = NULL;

  if (!run->remarks || id < 0)
    return;
  for (struct remark *r = run->remarks->first; r; r = r->next) {
    if (r->op != id || r->rule != rule || strncmp(r->text, beginning, strlen(beginning))) {
      before = r;
      continue;
    }
    *(before ? &before->next : &run->remarks->first) = r->next;
    if (run->remarks->last == r)
      run->remarks->last = before;
    run->remarks->n--;
  }
}

enum status pass_fail(struct pass_run *run, MlirOperation op, const char *fmt, ...) {
  va_list ap;
  va_start(ap, fmt);
  const char *text = arena_vprintf(run->arena, fmt, ap);
  va_end(ap);
  diag_add(run->ds, DS_ERROR, DG_PASS_FAILED, ir_first_place(run->arena, mlirOperationGetLocation(op)), "%s", text)
      ->stage = run->def->name;
  return ST_INPUT;
}

enum status pass_target(struct pass_run *run, enum target *out) {
  const char *name = pass_option(run, "target");
  *out = run->target;
  if (name && !target_from_name(name, out))
    return pass_fail(run, run->module, "target=%s: expected " TARGET_NAMES, name);
  return ST_OK;
}

enum status pass_nisa_target(struct pass_run *run, enum target *out) {
  const enum status st = pass_target(run, out);
  if (!st && !pass_option(run, "target"))
    (void)nisa_module_target(run->module, out);
  return st;
}

const char *pass_option(struct pass_run *run, const char *key) {
  size_t n = strlen(key);
  for (const char *p = run->options; *p;) {
    size_t len = strcspn(p, " ,");
    if (len > n && !memcmp(p, key, n) && p[n] == '=')
      return arena_strndup(run->arena, p + n + 1, len - n - 1);
    p += len + strspn(p + len, " ,");
  }
  return NULL;
}
