/* topk: calls of functions with nkipy.topk (linalg/topk.c): the largest or smallest elements of each row of a matrix, and their
 * places.  The order is NumPy's: NaN is above all numbers, and zeros of both signs are equal; or the total order of floats. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "mlir-c/BuiltinAttributes.h"
#include "mlir-c/BuiltinTypes.h"

#include "hlo/literal.h"
#include "interp/internal.h"
#include "ir/query.h"

struct topk {
  int64_t rows, n, k;
  bool is_smallest, is_backwards, is_total;
};

static MlirAttribute attribute_of(MlirOperation call) {
  MlirOperation module = call, f;
  while (!mlirOperationIsNull(mlirOperationGetParentOperation(module)))
    module = mlirOperationGetParentOperation(module);
  f = ir_find_symbol(module, "func.func", mlirFlatSymbolRefAttrGetValue(ir_attr(call, "callee")));
  return mlirOperationIsNull(f) ? mlirAttributeGetNull() : ir_attr(f, INTERP_TOPK);
}

bool read_topk(struct reader *r, MlirOperation op, struct instr *out) {
  MlirAttribute what = ir_is(op, "func.call") ? attribute_of(op) : mlirAttributeGetNull();
  if (mlirAttributeIsNull(what) || !mlirAttributeIsADictionary(what) || out->n_args != 1 || out->n_results != 2)
    return false;
  MlirAttribute k = mlirDictionaryAttrGetElementByName(what, ir_str("k"));
  MlirType t = mlirValueGetType(mlirOperationGetOperand(op, 0));
  if (mlirAttributeIsNull(k) || !mlirAttributeIsAInteger(k) || mlirShapedTypeGetRank(t) != 2 ||
      !mlirShapedTypeHasStaticShape(t))
    return false;
  struct topk *n = arena_new(reader_arena(r), struct topk);
  *n = (struct topk){
      .rows = mlirShapedTypeGetDimSize(t, 0),
      .n = mlirShapedTypeGetDimSize(t, 1),
      .k = mlirIntegerAttrGetValueInt(k),
      .is_smallest = !mlirAttributeIsNull(mlirDictionaryAttrGetElementByName(what, ir_str("smallest"))),
      .is_backwards = !mlirAttributeIsNull(mlirDictionaryAttrGetElementByName(what, ir_str("backwards"))),
      .is_total = !mlirAttributeIsNull(mlirDictionaryAttrGetElementByName(what, ir_str("total"))),
  };
  if (n->k < 1 || n->k > n->n)
    return false;
  out->op = OP_TOPK;
  out->topk = n;
  return true;
}

/* kind: -1 of a NaN below all numbers, 1 of one above, else 0; sign: of zeros that are kept apart. */
struct element {
  int kind, sign;
  double v;
  int64_t at;
};

static struct element element_of(const struct topk *t, double v, int64_t at) {
  struct element e = {.at = at};
  if (isnan(v))
    e.kind = t->is_total && signbit(v) ? -1 : 1;
  else
    e.v = v;
  e.sign = t->is_total && v == 0 && signbit(v) ? -1 : 0;
  return e;
}

static int compare(const void *a, const void *b) {
  const struct element *x = a, *y = b;
  if (x->kind != y->kind)
    return x->kind > y->kind ? 1 : -1;
  if (x->v != y->v)
    return x->v > y->v ? 1 : -1;
  if (x->sign != y->sign)
    return x->sign > y->sign ? 1 : -1;
  return (x->at > y->at) - (x->at < y->at);
}

/* Sorts a row and writes its results.  Of equal elements the earlier ones are taken, with is_backwards the later ones: in the
 * ascending order they are the last ones if the largest elements are taken. */
static void take_row(const struct topk *t, enum dtype type, const struct hlo_literal *x, int64_t row,
                     struct element *all, char *values, int32_t *places) {
  const bool is_turned = t->is_smallest == t->is_backwards;
  const size_t size = dtype_size(type);
  for (int64_t i = 0; i < t->n; i++)
    all[i] = element_of(t, hlo_literal_double(x, (size_t)(row * t->n + i)), is_turned ? t->n - 1 - i : i);
  qsort(all, (size_t)t->n, sizeof *all, compare);
  for (int64_t j = 0; j < t->k; j++) {
    const struct element *e = &all[t->is_smallest ? j : t->n - 1 - j];
    const int64_t at = is_turned ? t->n - 1 - e->at : e->at, to = row * t->k + (t->is_backwards ? t->k - 1 - j : j);
    memcpy(values + (size_t)to * size, (const char *)x->data + (size_t)(row * t->n + at) * size, size);
    places[to] = (int32_t)at;
  }
}

bool run_topk(struct machine *m, const struct instr *in) {
  const struct topk *t = in->topk;
  const enum dtype type = m->p->slots[in->args[0]].t;
  const int64_t from[] = {t->rows, t->n}, to[] = {t->rows, t->k};
  void *results[2];
  struct arena scratch;

  if (!machine_may_use(m, in, in->args[0]))
    return false;
  for (int k = 0; k < 2; k++) {
    struct view *v = view_of(m, in->results[k]);
    memcpy(v->dims, to, sizeof to);
    machine_row_major(v, 2);
    if (!machine_allocate(m, in, v, (size_t)(t->rows * t->k) * (k ? sizeof(int32_t) : dtype_size(type))) ||
        !machine_will_fill(m, in, in->results[k]))
      return false;
    results[k] = v->data;
  }
  arena_init(&scratch);
  const struct view *x = view_of(m, in->args[0]);
  int64_t strides[HLO_RANK_MAX];
  struct view packed = {.dims = x->dims, .strides = strides};
  char *data = arena_alloc(&scratch, (size_t)(t->rows * t->n) * dtype_size(type) + 1);
  machine_row_major(&packed, 2);
  interp_copy(dtype_size(type), 2, x->dims, data, strides, x->data, x->strides);
  const struct hlo_literal all = {.shape = {.dtype = type, .rank = 2, .dims = from},
                                  .data = data,
                                  .size = (size_t)(t->rows * t->n) * dtype_size(type)};
  struct element *row = arena_new_array(&scratch, struct element, (size_t)t->n);
  for (int64_t r = 0; r < t->rows; r++)
    take_row(t, type, &all, r, row, results[0], results[1]);
  arena_clear(&scratch);
  return true;
}
