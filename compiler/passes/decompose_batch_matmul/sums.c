/* sums: see sums.h. */
#include "passes/decompose_batch_matmul/sums.h"

#include <math.h>

#include "mlir-c/BuiltinAttributes.h"
#include "mlir-c/BuiltinTypes.h"

#include "base/array.h"
#include "nisa/nisa.h"
#include "passes/lib/blocks.h"
#include "passes/lib/edit.h"
#include "passes/lib/price.h"

/* ---- products ---------------------------------------------------------------------------------------------------- */

static bool is_f32(MlirValue v) {
  return mlirTypeIsARankedTensor(mlirValueGetType(v)) && mlirTypeIsAF32(ir_value_element(v));
}

static bool starts_from_zero(MlirOperation product) {
  MlirOperation init = ir_defining_op(mlirOperationGetOperand(product, 2));
  return !mlirOperationIsNull(init) &&
         (ir_is(init, "tensor.empty") || (ir_is(init, "linalg.fill") && ir_is_zero(mlirOperationGetOperand(init, 0))));
}

/* A product of floats with an f32 result and static dimensions, in a form that the tiler takes. */
static bool read_product(MlirOperation op, struct product *p) {
  if (mlirOperationIsNull(op) || !(ir_is(op, "linalg.matmul") || ir_is(op, "linalg.batch_matmul")) ||
      !product_read(op, p) || !is_f32(ir_result(op)) || !mlirAttributeIsNull(ir_attr(op, "cast")) ||
      product_dim(p, 1, p->k) > product_dim(p, 1, p->n))
    return false;
  for (int l = 0; l < p->s.n_loops; l++)
    if (p->s.extents[l] < 1)
      return false;
  return mlirTypeIsAFloat(ir_value_element(mlirOperationGetOperand(op, 0))) &&
         mlirTypeIsAFloat(ir_value_element(mlirOperationGetOperand(op, 1)));
}

MlirOperation sums_before(MlirOperation op) {
  struct product p;
  MlirOperation before = ir_defining_op(mlirOperationGetOperand(op, 2));
  return read_product(before, &p) && ir_has_one_use(ir_result(before)) ? before : (MlirOperation){NULL};
}

/* ---- finding them in a sum --------------------------------------------------------------------------------------- */

/* An element-wise operation with one result, which has all loops in order. */
static bool read_elementwise(MlirOperation op, int n_inputs, struct structured *s) {
  return !mlirOperationIsNull(op) && structured_read(op, s) && structured_is_elementwise(s) &&
         s->n_inputs == n_inputs && s->n_inits == 1 && mlirOperationGetNumResults(op) == 1 &&
         mlirAffineMapIsIdentity(s->maps[n_inputs]);
}

/* A sum of two floats. */
static bool read_sum(MlirOperation op, struct structured *s) {
  if (!read_elementwise(op, 2, s) || !mlirTypeIsAFloat(ir_value_element(ir_result(op))))
    return false;
  if (!ir_is(op, "linalg.generic"))
    return ir_is(op, "linalg.add");
  MlirOperation add = mlirBlockGetFirstOperation(ir_body(op)), end = mlirBlockGetTerminator(ir_body(op));
  if (!ir_is(add, "arith.addf") || !mlirOperationEqual(mlirOperationGetNextInBlock(add), end) ||
      !mlirValueEqual(mlirOperationGetOperand(end, 0), ir_result(add)))
    return false;
  unsigned args = 0;
  for (int k = 0; k < 2; k++) {
    MlirValue v = mlirOperationGetOperand(add, k);
    if (!mlirValueIsABlockArgument(v))
      return false;
    args |= 1u << mlirBlockArgumentGetArgNumber(v);
  }
  return args == 3; /* both inputs, and not what was in the destination */
}

/* A product in one operand of a sum, and the sums in between. */
struct term {
  MlirOperation product;
  struct product read;
  struct {
    MlirOperation *v; /* from the outermost sum to the one that reads the product */
    int n, cap;
  } sums;
  int at;                 /* the operand of the last of them that is the product */
  MlirOperation rounding; /* of the product, if what is added up is rounded; then there are no other sums */
};

enum { SUMS_MOST = 16 }; /* between a sum and a product in it */

static bool find_term(struct pass_run *run, MlirValue v, MlirBlock block, struct term *t) {
  struct structured s;
  MlirOperation op = ir_defining_op(v);

  if (mlirOperationIsNull(op) || !ir_has_one_use(v) || !mlirBlockEqual(mlirOperationGetBlock(op), block))
    return false;
  if (read_product(op, &t->read)) {
    t->product = op;
    return true;
  }
  if (!read_sum(op, &s) || !is_f32(v) || t->sums.n == SUMS_MOST)
    return false;
  array_push(run->arena, &t->sums, op);
  const int depth = t->sums.n;
  for (int o = 0; o < 2; o++)
    if (mlirAffineMapIsIdentity(s.maps[o]) && find_term(run, mlirOperationGetOperand(op, o), block, t)) {
      t->at = t->sums.n == depth ? o : t->at;
      return true;
    }
  t->sums.n = depth - 1;
  return false;
}

/* A product that is only read to be rounded, and that by the sum alone.  The sum of rounded products is rounded once instead. */
static bool find_rounded(MlirValue v, MlirBlock block, struct term *t) {
  MlirOperation op = ir_defining_op(v);
  struct structured s;

  if (!read_elementwise(op, 1, &s) || !ir_is(op, "linalg.generic") || !ir_has_one_use(v) ||
      !mlirBlockEqual(mlirOperationGetBlock(op), block) || !mlirAffineMapIsIdentity(s.maps[0]))
    return false;
  MlirOperation round = mlirBlockGetFirstOperation(ir_body(op)), end = mlirBlockGetTerminator(ir_body(op));
  MlirValue product = mlirOperationGetOperand(op, 0);
  t->rounding = op;
  t->product = ir_defining_op(product);
  return ir_is(round, "arith.truncf") && mlirOperationEqual(mlirOperationGetNextInBlock(round), end) &&
         mlirValueEqual(mlirOperationGetOperand(end, 0), ir_result(round)) &&
         mlirValueEqual(mlirOperationGetOperand(round, 0), mlirBlockGetArgument(ir_body(op), 0)) &&
         ir_has_one_use(product) && read_product(t->product, &t->read) &&
         mlirBlockEqual(mlirOperationGetBlock(t->product), block);
}

static bool find(struct pass_run *run, MlirOperation sum, int o, struct term *t) {
  MlirValue v = mlirOperationGetOperand(sum, o);
  MlirBlock block = mlirOperationGetBlock(sum);
  return is_f32(ir_result(sum)) ? find_term(run, v, block, t) : find_rounded(v, block, t);
}

/* ---- what it costs ----------------------------------------------------------------------------------------------- */

static int64_t least(int64_t x, int64_t y) {
  return x < y ? x : y;
}

/* The product with the tiles that it has without knobs. */
static struct multiplied *shape_of(struct pass_run *run, const struct product *p) {
  struct multiplied *m = arena_new(run->arena, struct multiplied);
  const int64_t extent[] = {p->s.extents[p->m], p->s.extents[p->n], p->s.extents[p->k]},
                most[] = {NISA_PARTITIONS, NISA_BANK_F32, NISA_PARTITIONS};

  *m = (struct multiplied){.sbuf = nisa_machine(run->target)->sbuf_bytes};
  for (int l = 0; l < 3; l++) {
    m->extent[l] = extent[l];
    m->tile[l] = least(extent[l], most[l]);
  }
  for (int o = 0; o < 2; o++)
    m->factor[o] = (struct factor){.bytes = nisa_element_bytes(ir_value_element(mlirOperationGetOperand(p->op, o))),
                                   .is_turned = o == 0 && product_dim(p, 0, p->m) < product_dim(p, 0, p->k)};
  return m;
}

/* The product and those that it adds to, the last one first. */
static struct multiplied *shapes_of(struct pass_run *run, MlirOperation op) {
  struct multiplied *first = NULL, *last = NULL;
  for (; !mlirOperationIsNull(op); op = sums_before(op)) {
    struct product p;
    if (!read_product(op, &p))
      break;
    struct multiplied *m = shape_of(run, &p);
    if (last)
      last->next = m;
    else
      first = m;
    last = m;
  }
  return first;
}

enum { RUN = 2048 }; /* bytes: the rows of a block of the right operand */

/* How long so many bytes take to move, without the start of the first transfer. */
static double moved_ns(struct pass_run *run, int64_t bytes) {
  return price_transfer_ns(run->target, bytes, RUN) - price_transfer_ns(run->target, 1, RUN);
}

/* The time of the loads; negative if the blocks do not fit. */
static double loads_ns(struct pass_run *run, const struct multiplied *m) {
  const struct blocks b = blocks_choose(m);
  return b.m ? moved_ns(run, blocks_traffic(m, &b)) : -1;
}

static double products_ns(struct pass_run *run, const struct multiplied *m) {
  double ns = 0;
  for (; m; m = m->next)
    ns += price_product_ns(run->target, m->extent[0], m->extent[2], m->extent[1], m->factor[0].bytes);
  return ns;
}

/* How long the loads are that another product makes for an operand of this one. */
static double made_ns(struct pass_run *run, MlirOperation product) {
  double ns = 0;
  for (int o = 0; o < 2; o++) {
    MlirOperation def = ir_defining_op(mlirOperationGetOperand(product, o));
    struct product p;
    if (read_product(def, &p))
      ns = fmax(ns, loads_ns(run, shapes_of(run, def)));
  }
  return ns;
}

/* How much later the Tensor engine begins if the products of y are added to those of x tile by tile.  The block that is loaded before
 * the loop over the other operand must be there of both, and so must be what else is computed for y; on its own, y's would be
 * loaded beside the products of x. */
static double begins_later_ns(struct pass_run *run, const struct multiplied *x, const struct multiplied *y,
                              const struct blocks *b, MlirOperation product) {
  const int outside = b->n_outside, inside = !outside;
  const int64_t columns = (outside ? b->n : b->m) * x->tile[outside], rows = (outside ? b->m : b->n) * x->tile[inside];
  int64_t bytes = 0;

  for (const struct multiplied *m = y; m && rows < x->extent[inside]; m = m->next)
    bytes += least(x->extent[outside], columns) * m->extent[2] * m->factor[outside].bytes;
  return (bytes ? moved_ns(run, bytes) : 0) + made_ns(run, product);
}

enum { SAVING_LEAST = 5 }; /* percent: prices are round figures */

struct costs {
  double together, apart; /* negative: does not fit */
};

/* The time of Vector for so many rows: each product but the last is copied, and added. */
static double sums_ns(struct pass_run *run, int64_t rows, int64_t columns) {
  return price_rows_ns(run->target, SIM_COST_VECTOR_COPY, rows, columns) +
         price_rows_ns(run->target, SIM_COST_VECTOR_TENSOR, rows, columns);
}

enum { LAST_TILES = 2 }; /* of a sum: Vector adds them up after the Tensor engine has finished */

/* The engines and DMA work beside each other. */
static struct costs costs_of(struct pass_run *run, const struct term *x, const struct term *y) {
  struct multiplied *a = shapes_of(run, x->product), *b = shapes_of(run, y->product), *end = a;
  const double one = loads_ns(run, a), other = loads_ns(run, b);
  const struct price_shape s = price_shape_of(ir_result(x->product));
  const double batch = (double)(s.rows / a->extent[0]);

  while (end->next)
    end = (struct multiplied *)end->next;
  end->next = b;
  const struct blocks blocks = blocks_choose(a);
  if (!blocks.m)
    return (struct costs){-1, -1};
  const double products = batch * products_ns(run, a);
  const double last = sums_ns(run, least(s.rows, LAST_TILES * a->tile[0]), a->tile[1]);
  double sum = sums_ns(run, s.rows, s.columns);
  if (x->read.n_batch || price_bytes(&s) / NISA_PARTITIONS > a->sbuf / 2)
    sum += price_away_ns(run->target, ir_result(x->product));
  return (struct costs){.together = fmax(products, batch * moved_ns(run, blocks_traffic(a, &blocks))) +
                                    begins_later_ns(run, a, b, &blocks, y->product),
                        .apart = fmax(products, batch * (one + other) + sum) + last};
}

/* ---- the rewrite ------------------------------------------------------------------------------------------------- */

/* Moves the sums before op, in their order, and lets the innermost read v instead of the product.  Returns what the outermost computes;
 * v if there are none. */
static MlirValue add_later(const struct term *t, MlirValue v, MlirOperation op) {
  if (!t->sums.n)
    return v;
  mlirOperationSetOperand(t->sums.v[t->sums.n - 1], t->at, v);
  for (int k = t->sums.n - 1; k >= 0; k--)
    mlirOperationMoveBefore(t->sums.v[k], op);
  return ir_result(t->sums.v[0]);
}

static MlirOperation first_of(MlirOperation op) {
  for (MlirOperation before = sums_before(op); !mlirOperationIsNull(before); before = sums_before(op))
    op = before;
  return op;
}

static void accumulate(struct pass_run *run, MlirOperation sum, const struct term *x, const struct term *y) {
  struct {
    MlirOperation *v;
    int n, cap;
  } chain = {0};
  MlirOperation first = first_of(y->product);

  for (MlirOperation op = y->product; !mlirOperationIsNull(op); op = sums_before(op))
    array_push(run->arena, &chain, op);
  for (int k = chain.n - 1; k >= 0; k--)
    mlirOperationMoveBefore(chain.v[k], sum);
  mlirOperationSetOperand(first, 2, ir_result(x->product));
  MlirValue v = add_later(x, ir_result(y->product), sum);
  v = add_later(y, v, sum);
  if (!mlirOperationIsNull(y->rounding)) {
    mlirOperationMoveBefore(y->rounding, sum);
    v = ir_result(y->rounding);
  }
  mlirValueReplaceAllUsesOfWith(ir_result(sum), v);
  mlirOperationDestroy(sum);
  if (!mlirOperationIsNull(x->rounding))
    mlirOperationDestroy(x->rounding);
}

static bool is_annotated(MlirValue v) {
  for (MlirOpOperand u = mlirValueGetFirstUse(v); !mlirOpOperandIsNull(u); u = mlirOpOperandGetNextUse(u))
    if (ir_is_of(mlirOpOperandGetOwner(u), "nkipy."))
      return true;
  return false;
}

static bool is_same_batch(const struct term *x, const struct term *y) {
  return x->read.rank == y->read.rank &&
         mlirTypeEqual(mlirValueGetType(ir_result(x->product)), mlirValueGetType(ir_result(y->product)));
}

static void try_sum(struct pass_run *run, MlirOperation op) {
  struct structured s;
  struct term x = {0}, y = {0};

  if (!read_sum(op, &s) || is_annotated(ir_result(op)) || !mlirAffineMapIsIdentity(s.maps[0]) ||
      !mlirAffineMapIsIdentity(s.maps[1]) || !find(run, op, 0, &x) || !find(run, op, 1, &y) || !is_same_batch(&x, &y) ||
      !starts_from_zero(first_of(x.product)) || !starts_from_zero(first_of(y.product)))
    return;
  const struct costs c = costs_of(run, &x, &y);
  if (c.together < 0 || c.together * 100 > c.apart * (100 - SAVING_LEAST))
    return;
  pass_step(run, op, "accumulate-products");
  struct remark *r = pass_remark(run, op, RULE_ACCUMULATE_PRODUCTS, "the products are added up in one accumulator%s",
                                 mlirOperationIsNull(x.rounding) ? "" : ", and their sum is rounded");
  price_chosen(r, c.together);
  price_instead(r, "a sum of products", c.apart, "each product would be copied out of PSUM, to be added by Vector");
  accumulate(run, op, &x, &y);
}

static bool may_be_sum(MlirOperation op, void *user) {
  struct structured s;
  (void)user;
  return read_sum(op, &s);
}

void sums_accumulate(struct pass_run *run) {
  const struct ir_ops ops = ir_collect(run->arena, run->module, may_be_sum, NULL);

  for (int i = 0; i < ops.n; i++)
    try_sum(run, ops.v[i]);
}
