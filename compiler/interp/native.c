/* native: calls of functions that a module only declares, and that the caller of interp_run computes. */
#include <string.h>

#include "mlir-c/BuiltinAttributes.h"
#include "mlir-c/BuiltinTypes.h"

#include "interp/internal.h"
#include "ir/query.h"

struct native {
  const char *name;
  const int64_t *const *dims; /* of each result */
};

bool read_native(struct reader *r, MlirOperation op, struct instr *out) {
  MlirStringRef name;
  if (!ir_is(op, "func.call"))
    return false;
  name = mlirFlatSymbolRefAttrGetValue(ir_attr(op, "callee"));
  if (!ir_begins_with(name, HLO_NATIVE_PREFIX))
    return false;
  struct arena *a = reader_arena(r);
  struct native *n = arena_new(a, struct native);
  const int64_t **dims = arena_new_array(a, const int64_t *, (size_t)out->n_results);
  for (int k = 0; k < out->n_results; k++) {
    MlirType t = mlirValueGetType(mlirOperationGetResult(op, k));
    const int rank = (int)mlirShapedTypeGetRank(t);
    int64_t *v = arena_new_array(a, int64_t, (size_t)rank);
    for (int d = 0; d < rank; d++)
      v[d] = mlirShapedTypeGetDimSize(t, d); /* static: the code has one shape */
    dims[k] = v;
  }
  *n = (struct native){arena_strndup(a, name.data, name.length), dims};
  out->op = OP_NATIVE;
  out->native = n;
  out->name = n->name;
  return true;
}

static int64_t count(const int64_t *dims, int rank) {
  int64_t n = 1;
  for (int k = 0; k < rank; k++)
    n *= dims[k];
  return n;
}

/* Returns the operand's elements in row-major order: a copy. */
static void *pack(struct machine *m, int slot, struct arena *a) {
  const struct view *v = view_of(m, slot);
  const int rank = rank_of(m, slot);
  const size_t size = dtype_size(m->p->slots[slot].t), n = (size_t)count(v->dims, rank);
  int64_t strides[HLO_RANK_MAX];
  struct view packed = {.dims = v->dims, .strides = strides};
  void *data = arena_alloc(a, n * size + 1);
  machine_row_major(&packed, rank);
  if (n)
    interp_copy(size, rank, v->dims, data, strides, v->data, v->strides);
  return data;
}

bool run_native(struct machine *m, const struct instr *in) {
  const void *args[HLO_RANK_MAX * 4];
  void *results[HLO_RANK_MAX * 4];
  struct arena scratch;
  bool ok = true;
  if (!m->native || in->n_args > HLO_RANK_MAX * 4 || in->n_results > HLO_RANK_MAX * 4)
    return machine_fault(m, in, "cannot be run here");
  for (int k = 0; k < in->n_args; k++)
    if (!machine_may_use(m, in, in->args[k]))
      return false;
  arena_init(&scratch);
  for (int k = 0; k < in->n_args; k++)
    args[k] = pack(m, in->args[k], &scratch);
  for (int k = 0; ok && k < in->n_results; k++) {
    struct view *v = view_of(m, in->results[k]);
    const int rank = rank_of(m, in->results[k]);
    memcpy(v->dims, in->native->dims[k], (size_t)rank * sizeof *v->dims);
    machine_row_major(v, rank);
    ok = machine_allocate(m, in, v, (size_t)count(v->dims, rank) * dtype_size(m->p->slots[in->results[k]].t)) &&
         machine_will_fill(m, in, in->results[k]);
    results[k] = v->data;
  }
  ok = ok && !m->native->run(m->native->user, in->native->name, in->n_args, args, in->n_results, results, m->err);
  arena_clear(&scratch);
  return ok;
}
