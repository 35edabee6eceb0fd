/* interleave: every second element of rows, or every third, is read and written in rows.
 *
 *     %a = extract_slice %x[0, 0] [n, m] [1, 2] : nx2m           %t = transpose %x : nxmx2 -> nx2xm
 *     %b = extract_slice %x[0, 1] [n, m] [1, 2]            ==>   %a = extract_slice %t[0, 0, 0] [n, 1, m]
 *                                                                %b = extract_slice %t[0, 1, 0] [n, 1, m]
 *
 *     %p = insert_slice %a into %e[0, 0, 0] [n, m, 1]            %p = insert_slice %a into %f[0, 0, 0] [n, 1, m]
 *     %q = insert_slice %b into %p[0, 0, 1] [n, m, 1]      ==>   %q = insert_slice %b into %p[0, 1, 0] [n, 1, m]
 *                                                                transpose %q : nx2xm -> nxmx2
 *
 * Rotary embeddings, complex numbers and images are read and made so.  By DMA each element would be a transfer of its own, because it has no
 * neighbour that comes along; an instruction reads and writes elements of a row at any distance.  turns.c makes the transpose a copy of
 * rows.  Where a slice has the elements of a last dimension that is short, it is the same.
 */
#include <inttypes.h>

#include "mlir-c/BuiltinAttributes.h"
#include "mlir-c/BuiltinTypes.h"

#include "base/array.h"
#include "base/index.h"
#include "nisa/nisa.h"
#include "passes/lib/edit.h"
#include "passes/lib/price.h"
#include "passes/lib/slice.h"
#include "passes/prepare_arithmetic/prepare_arithmetic.h"

enum {
  APART_MAX =
      8, /* elements from one that is read to the next one; with more the copy moves too much that is not wanted */
  ELEMENTS_MIN = 4096 /* fewer are moved by DMA in the time that a transfer takes to start */
};

/* Elements `at`, at + apart, at + 2 apart, … of rows; the other dimensions are sliced as they were. */
struct comb {
  int rank; /* of the sliced tensor with the last dimension as two: how many groups, and how long a group is */
  int64_t dims[STRUCTURED_LOOPS_MAX];
  int64_t offset[STRUCTURED_LOOPS_MAX], size[STRUCTURED_LOOPS_MAX]; /* of the dimensions before the last two */
  int64_t apart, at;
  int64_t
      start; /* of the first group in the last dimension of the sliced tensor, which may have more elements before and after */
  bool is_part; /* it has */
};

static bool read_static(MlirOperation op, const char *name, int d, int64_t *out) {
  *out = mlirDenseI64ArrayGetElement(ir_attr(op, name), d);
  return *out != mlirShapedTypeGetDynamicStrideOrOffset() && *out != mlirShapedTypeGetDynamicSize();
}

static int64_t rows_of(const struct comb *c) {
  int64_t n = 1;
  for (int d = 0; d < c->rank - 2; d++)
    n *= c->dims[d];
  return n;
}

bool prepare_comb_pays(int64_t rows, int64_t groups, int64_t apart) {
  return apart <= APART_MAX && rows * groups >= ELEMENTS_MIN &&
         (rows + NISA_PARTITIONS - 1) / NISA_PARTITIONS * groups * apart < rows * groups / 2;
}

/* Reads an extract_slice or an insert_slice whose elements have neighbours that are not in it. */
static bool read_comb(MlirOperation op, MlirValue whole, struct comb *c) {
  int64_t dims[STRUCTURED_LOOPS_MAX], offset[STRUCTURED_LOOPS_MAX], size[STRUCTURED_LOOPS_MAX], stride = 1;
  const int rank = ir_shape(whole, STRUCTURED_LOOPS_MAX, dims), last = rank - 1;

  if (rank < 2 || rank >= STRUCTURED_LOOPS_MAX)
    return false;
  for (int d = 0; d < rank; d++)
    if (dims[d] < 1 || !read_static(op, "static_offsets", d, &offset[d]) ||
        !read_static(op, "static_sizes", d, &size[d]) || !read_static(op, "static_strides", d, &stride) ||
        (d < last && stride != 1))
      return false;
  *c = (struct comb){0};
  c->at = offset[last];
  if (stride > 1 && size[last] * stride <= dims[last]) {
    const int64_t latest = dims[last] - size[last] * stride, first = offset[last] - offset[last] % stride;
    c->start = first < latest ? first : latest;
    c->is_part = size[last] * stride < dims[last];
    c->at = offset[last] - c->start;
    c->rank = rank + 1;
    c->apart = stride;
    dims[rank] = stride;
    dims[last] = size[last];
  } else if (stride == 1 && rank > 2 && size[last] == 1 && dims[last] > 1 && size[last - 1] == dims[last - 1]) {
    c->rank = rank;
    c->apart = dims[last];
  } else {
    return false;
  }
  for (int d = 0; d < c->rank; d++)
    c->dims[d] = dims[d];
  for (int d = 0; d < c->rank - 2; d++) {
    c->offset[d] = offset[d];
    c->size[d] = size[d];
  }
  return prepare_comb_pays(rows_of(c), c->dims[c->rank - 2], c->apart);
}

/* Exchanges the last two dimensions. */
static MlirValue turn(struct ir_builder *b, MlirValue v) {
  int64_t dims[STRUCTURED_LOOPS_MAX], order[STRUCTURED_LOOPS_MAX];
  const int rank = ir_shape(v, STRUCTURED_LOOPS_MAX, dims);

  for (int d = 0; d < rank; d++)
    order[d] = d < rank - 2 ? d : 2 * rank - 3 - d;
  return ir_result(ir_transpose(b, v, rank, order));
}

static void explain(struct pass_run *run, MlirOperation op, const struct comb *c, const char *verb) {
  const int64_t bytes = price_shape_of(ir_result(op)).element_bytes, row = c->dims[c->rank - 2] * c->apart;
  const int64_t rows = rows_of(c);
  struct remark *r =
      pass_remark(run, op, RULE_INTERLEAVE, "%s %" PRId64 " elements apart: in rows on the chip", verb, c->apart);
  price_chosen(r, 2 * price_transfer_ns(run->target, rows * row * bytes, row * bytes) +
                      price_rows_ns(run->target, SIM_COST_VECTOR_COPY, rows, row));
  price_instead(r, "by DMA", c->apart * price_transfer_ns(run->target, rows * row / c->apart * bytes, bytes),
                "each element is a descriptor of its own");
}

/* ---- what is read ------------------------------------------------------------------------------------------------ */

/* A tensor that was turned, for the slices of one block. */
struct turned {
  MlirValue of, value;
  int64_t apart, start, groups;
  MlirBlock block;
};
struct all_turned {
  struct turned *v;
  int n, cap;
  struct index by_tensor;
};

/* The part of the tensor that has the groups. */
static MlirValue groups_of(struct ir_builder *b, MlirValue of, const struct comb *c) {
  int64_t offsets[STRUCTURED_LOOPS_MAX] = {0}, sizes[STRUCTURED_LOOPS_MAX];
  const int rank = ir_shape(of, STRUCTURED_LOOPS_MAX, sizes);

  if (!c->is_part)
    return of;
  offsets[rank - 1] = c->start;
  sizes[rank - 1] = c->dims[c->rank - 2] * c->apart;
  const struct ir_slice part = {.rank = rank, .offsets = offsets, .sizes = sizes};
  return ir_extract_slice(b, of, &part, ir_tensor_of(ir_value_element(of), rank, sizes));
}

static MlirValue turned_whole(struct pass_run *run, struct ir_builder *b, MlirOperation slice, const struct comb *c,
                              struct all_turned *all) {
  MlirValue of = mlirOperationGetOperand(slice, 0);
  MlirBlock block = mlirOperationGetBlock(slice);
  for (struct index_probe p = index_probe(&all->by_tensor, hash_pointer(of.ptr)); index_next(&p);) {
    const struct turned *t = &all->v[p.entry];
    if (mlirValueEqual(t->of, of) && t->apart == c->apart && t->start == c->start &&
        t->groups == c->dims[c->rank - 2] && mlirBlockEqual(t->block, block))
      return t->value;
  }
  explain(run, slice, c, "read");
  MlirValue value = turn(b, edit_reshape(b, groups_of(b, of, c), c->rank, c->dims));
  index_add(&all->by_tensor, hash_pointer(of.ptr), all->n);
  array_push(run->arena, all, ((struct turned){of, value, c->apart, c->start, c->dims[c->rank - 2], block}));
  return value;
}

static void read_in_rows(struct pass_run *run, MlirOperation slice, struct all_turned *all) {
  struct comb c;
  int64_t dims[STRUCTURED_LOOPS_MAX], offsets[STRUCTURED_LOOPS_MAX] = {0}, sizes[STRUCTURED_LOOPS_MAX];
  MlirValue result = ir_result(slice);

  if (!read_comb(slice, mlirOperationGetOperand(slice, 0), &c) || prepare_has_knob(result))
    return;
  struct ir_builder b = edit_before(run, slice);
  pass_step(run, slice, "read-in-rows");
  MlirValue whole = turned_whole(run, &b, slice, &c, all);
  for (int d = 0; d < c.rank - 2; d++) {
    offsets[d] = c.offset[d];
    sizes[d] = c.size[d];
  }
  offsets[c.rank - 2] = c.at;
  sizes[c.rank - 2] = 1;
  sizes[c.rank - 1] = c.dims[c.rank - 2];
  const struct ir_slice part = {.rank = c.rank, .offsets = offsets, .sizes = sizes};
  MlirValue v = ir_extract_slice(&b, whole, &part, ir_tensor_of(ir_value_element(result), c.rank, sizes));
  const int rank = ir_shape(result, STRUCTURED_LOOPS_MAX, dims);
  edit_replace_data_uses(run->arena, result, edit_reshape(&b, v, rank, dims), (MlirOperation){NULL});
  edit_erase_unused(run->arena, slice);
}

/* ---- what is written --------------------------------------------------------------------------------------------- */

static bool is_whole(const struct comb *c) {
  if (c->is_part)
    return false;
  for (int d = 0; d < c->rank - 2; d++)
    if (c->offset[d] || c->size[d] != c->dims[d])
      return false;
  return true;
}

/* True if the only use of v is as the tensor that an insert_slice changes. */
static bool is_inserted_into(MlirValue v) {
  MlirOpOperand use = mlirValueGetFirstUse(v);
  return ir_has_one_use(v) && ir_is(mlirOpOperandGetOwner(use), "tensor.insert_slice") &&
         mlirOpOperandGetOperandNumber(use) == 1;
}

/* Insertions one after the other: parts[k] is what has the places k of all groups. */
struct chain {
  struct comb c;
  MlirOperation ops[APART_MAX]; /* the last one first */
  MlirValue parts[APART_MAX];
};

/* Reads the chain that ends with `last`.  True if it has a part for each place. */
static bool read_chain(MlirOperation last, struct chain *x) {
  MlirOperation op = last;

  *x = (struct chain){0};
  for (int n = 0;; n++) {
    struct comb here;
    if (mlirOperationIsNull(op) || !ir_is(op, "tensor.insert_slice") ||
        !mlirBlockEqual(mlirOperationGetBlock(op), mlirOperationGetBlock(last)) ||
        !read_comb(op, ir_result(op), &here) || !is_whole(&here) || (n && here.apart != x->c.apart) ||
        x->parts[here.at].ptr || (n && !is_inserted_into(ir_result(op))) || prepare_has_knob(ir_result(op)))
      return false;
    x->c = here;
    x->ops[n] = op;
    x->parts[here.at] = mlirOperationGetOperand(op, 0);
    if (n + 1 == here.apart)
      return true;
    op = ir_defining_op(mlirOperationGetOperand(op, 1));
  }
}

/* Returns true if it rewrote the chain that ends with `last`; its operations are unused then. */
static bool write_in_rows(struct pass_run *run, MlirOperation last, struct chain *x) {
  int64_t dims[STRUCTURED_LOOPS_MAX], sizes[STRUCTURED_LOOPS_MAX], offsets[STRUCTURED_LOOPS_MAX] = {0};
  MlirValue result = ir_result(last);

  if (is_inserted_into(result) || !read_chain(last, x))
    return false;
  const struct comb c = x->c;
  struct ir_builder b = edit_before(run, last);
  const int rank = ir_shape(result, STRUCTURED_LOOPS_MAX, dims);
  explain(run, last, &c, "written");
  pass_step(run, last, "write-in-rows");
  for (int d = 0; d < c.rank; d++)
    sizes[d] = c.dims[d];
  sizes[c.rank - 2] = c.apart;
  sizes[c.rank - 1] = c.dims[c.rank - 2];
  MlirValue rows = ir_empty_of(&b, ir_tensor_of(ir_value_element(result), c.rank, sizes));
  sizes[c.rank - 2] = 1;
  for (int k = 0; k < c.apart; k++) {
    offsets[c.rank - 2] = k;
    const struct ir_slice at = {.rank = c.rank, .offsets = offsets, .sizes = sizes};
    rows = ir_insert_slice(&b, edit_reshape(&b, x->parts[k], c.rank, sizes), rows, &at);
  }
  edit_replace_data_uses(run->arena, result, edit_reshape(&b, turn(&b, rows), rank, dims), (MlirOperation){NULL});
  return true;
}

void prepare_interleave(struct pass_run *run) {
  struct all_turned all = {.by_tensor.arena = run->arena};
  struct {
    struct chain *v;
    int n, cap;
  } unused = {0};

  const struct ir_ops reads = ir_collect_named(run->arena, run->module, "tensor.extract_slice");
  for (int i = 0; i < reads.n; i++)
    read_in_rows(run, reads.v[i], &all);
  const struct ir_ops writes = ir_collect_named(run->arena, run->module, "tensor.insert_slice");
  for (int i = writes.n - 1; i >= 0; i--) {
    struct chain x;
    if (write_in_rows(run, writes.v[i], &x))
      array_push(run->arena, &unused, x);
  }
  for (int i = 0; i < unused.n; i++)
    for (int k = 0; k < unused.v[i].c.apart; k++)
      mlirOperationDestroy(unused.v[i].ops[k]);
}
