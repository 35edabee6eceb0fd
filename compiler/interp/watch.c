/* watch: keeps a value while a program runs. */
#include <stdlib.h>

#include "mlir-c/BuiltinAttributes.h"

#include "interp/internal.h"
#include "ir/query.h"

bool read_watch(MlirOperation op, struct instr *out) {
  if (!ir_is(op, "func.call") || mlirOperationGetNumOperands(op) != 1 ||
      !mlirStringRefEqual(mlirFlatSymbolRefAttrGetValue(ir_attr(op, "callee")), ir_str(INTERP_WATCH)))
    return false;
  out->op = OP_WATCH;
  return true;
}

/* Gives w room for its elements. */
static char *make_room(struct interp_watch *w) {
  int64_t bytes = (int64_t)dtype_size(w->dtype);
  for (int d = 0; d < w->rank; d++)
    if (__builtin_mul_overflow(bytes, w->dims[d], &bytes))
      arena_oom(SIZE_MAX);
  char *data = realloc(w->data, (size_t)bytes + 1);
  if (!data)
    arena_oom((size_t)bytes);
  return w->data = data;
}

static void keep_view(struct interp_watch *w, const struct view *v) {
  int64_t packed[IR_MEMREF_RANK_MAX], step = 1;
  for (int d = w->rank - 1; d >= 0; d--) {
    w->dims[d] = v->dims[d];
    packed[d] = step;
    step *= v->dims[d];
  }
  char *data = make_room(w);
  if (step)
    interp_copy(dtype_size(w->dtype), w->rank, w->dims, data, packed, v->data, v->strides);
}

bool run_watch(struct machine *m, const struct instr *in) {
  struct interp_watch *w = m->watch;
  const struct slot *s = &m->p->slots[in->args[0]];
  if (!w || (w->n_executions++, w->nth && w->n_executions != w->nth))
    return true;
  if (s->view >= 0 && !machine_may_use(m, in, in->args[0]))
    return false;
  w->is_kept = true;
  w->dtype = s->t;
  w->rank = s->view < 0 ? 0 : m->p->ranks[s->view];
  if (s->view < 0)
    row_store(s->t, make_room(w), 1, 1, &m->scalars[in->args[0]]);
  else
    keep_view(w, &m->views[s->view]);
  return true;
}

void interp_watch_clear(struct interp_watch *w) {
  free(w->data);
  w->data = NULL;
}
