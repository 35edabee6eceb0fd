/* border: what is put into a larger tensor needs only the border of the other contents.
 *
 *     %z = linalg.fill ins(0) outs(empty 8x515x256)               %z = linalg.fill ins(0) outs(empty 8x3x256)
 *     %p = insert_slice %x into %z[0, 3, 0] [8, 512, 256]   ==>   %b = insert_slice %z into empty[0, 0, 0] [8, 3, 256]
 *                                                                 %p = insert_slice %x into %b[0, 3, 0] [8, 512, 256]
 *
 * Padding is made so, and so is a copy of which all but the edges is written over: there the boxes are slices of what was copied.
 * The border is at most two boxes for each dimension, which do not overlap.  Values are the same.  Whole contents are written where
 * they take less time than boxes: each box is a transfer, and one of a few columns has short runs.
 *
 * The contents stay where something else reads them, and with a knob on them.  Linear in ops.
 */
#include <inttypes.h>

#include "passes/lib/edit.h"
#include "passes/lib/price.h"
#include "passes/lib/slice.h"
#include "passes/prepare_arithmetic/prepare_arithmetic.h"

struct box {
  int64_t offset[STRUCTURED_LOOPS_MAX], size[STRUCTURED_LOOPS_MAX];
};

struct border {
  struct slice s;
  MlirOperation whole; /* the fill or the copy that s puts something into */
  bool is_fill;
  int64_t dims[STRUCTURED_LOOPS_MAX];
  int n;
  struct box boxes[2 * STRUCTURED_LOOPS_MAX];
};

/* Cuts what is around the slice into boxes: those of a dimension are as large as the slice in the dimensions before it. */
static void find_boxes(struct border *x) {
  for (int d = 0; d < x->s.rank; d++) {
    const int64_t ends[][2] = {{0, x->s.offset[d]}, {x->s.offset[d] + x->s.size[d], x->dims[d]}};
    for (int e = 0; e < 2; e++) {
      struct box *box = &x->boxes[x->n];
      if (ends[e][0] == ends[e][1])
        continue;
      for (int k = 0; k < x->s.rank; k++) {
        box->offset[k] = k < d ? x->s.offset[k] : 0;
        box->size[k] = k < d ? x->s.size[k] : x->dims[k];
      }
      box->offset[d] = ends[e][0];
      box->size[d] = ends[e][1] - ends[e][0];
      x->n++;
    }
  }
}

static bool read_border(MlirOperation insert, struct border *x) {
  *x = (struct border){0};
  if (!slice_read(insert, &x->s) || !x->s.is_insert)
    return false;
  MlirValue v = slice_of(&x->s);
  x->whole = ir_defining_op(v);
  if (mlirOperationIsNull(x->whole) || mlirOperationGetNumResults(x->whole) != 1 || !ir_has_one_use(v))
    return false;
  x->is_fill = ir_is(x->whole, "linalg.fill");
  MlirOperation init = x->is_fill || ir_is(x->whole, "linalg.copy")
                           ? ir_defining_op(mlirOperationGetOperand(x->whole, 1))
                           : (MlirOperation){NULL};
  if (mlirOperationIsNull(init) || !ir_is(init, "tensor.empty") ||
      !mlirBlockEqual(mlirOperationGetBlock(x->whole), mlirOperationGetBlock(insert)))
    return false;
  if (!x->is_fill && !mlirTypeEqual(ir_value_element(mlirOperationGetOperand(x->whole, 0)), ir_value_element(v)))
    return false; /* the copy converts */
  ir_shape(v, STRUCTURED_LOOPS_MAX, x->dims);
  for (int d = 0; d < x->s.rank; d++)
    if (x->s.offset[d] == SLICE_DYNAMIC || x->s.size[d] < 1 || x->dims[d] < 1)
      return false;
  find_boxes(x);
  return x->n > 0;
}

/* About how long it takes to write a box. */
static double box_ns(enum target t, const struct border *x, const struct box *box, int64_t element) {
  int64_t n = element, run = element;
  bool is_run = true;
  for (int d = x->s.rank - 1; d >= 0; d--) {
    n *= box->size[d];
    run *= is_run ? box->size[d] : 1;
    is_run &= box->size[d] == x->dims[d];
  }
  return price_transfer_ns(t, n, run);
}

static MlirValue box_contents(struct ir_builder *b, const struct border *x, const struct box *box) {
  MlirValue from = mlirOperationGetOperand(x->whole, 0);
  MlirType type = ir_tensor_of(ir_value_element(slice_of(&x->s)), x->s.rank, box->size);
  const struct ir_slice s = {.rank = x->s.rank, .offsets = box->offset, .sizes = box->size};
  return x->is_fill ? ir_fill(b, from, ir_empty_of(b, type)) : ir_extract_slice(b, from, &s, type);
}

static void write_border(struct pass_run *run, MlirOperation insert, struct border *x) {
  const enum target t = run->target;
  const struct price_shape shape = price_shape_of(slice_of(&x->s));
  const struct box all = {.size = {0}};
  struct box whole = all;
  double boxes = 0;

  for (int d = 0; d < x->s.rank; d++)
    whole.size[d] = x->dims[d];
  for (int k = 0; k < x->n; k++)
    boxes += box_ns(t, x, &x->boxes[k], shape.element_bytes);
  const double as_is = box_ns(t, x, &whole, shape.element_bytes) * (x->is_fill ? 1 : 2);
  if (boxes >= as_is)
    return;
  struct ir_builder b = edit_before(run, insert);
  MlirValue v = ir_empty_of(&b, mlirValueGetType(slice_of(&x->s)));
  for (int k = 0; k < x->n; k++) {
    const struct ir_slice at = {.rank = x->s.rank, .offsets = x->boxes[k].offset, .sizes = x->boxes[k].size};
    v = ir_insert_slice(&b, box_contents(&b, x, &x->boxes[k]), v, &at);
  }
  struct remark *r = pass_remark(run, insert, RULE_BORDER, "only the border of what it is put into is %s: %s",
                                 x->is_fill ? "filled" : "copied", price_count(run->arena, x->n, "part"));
  price_chosen(r, boxes);
  price_instead(r, x->is_fill ? "filling all of it" : "copying all of it", as_is, "the rest is written over");
  slice_set(&x->s, v);
  edit_erase_unused(run->arena, x->whole);
}

void prepare_border(struct pass_run *run) {
  const struct ir_ops all = ir_collect_named(run->arena, run->module, "tensor.insert_slice");

  for (int i = 0; i < all.n; i++) {
    struct border x;
    if (!read_border(all.v[i], &x) || prepare_has_knob(ir_result(x.whole)))
      continue;
    pass_step(run, all.v[i], "border-alone");
    write_border(run, all.v[i], &x);
  }
}
