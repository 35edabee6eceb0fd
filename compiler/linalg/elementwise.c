/* elementwise: lowers unary, binary, compare, select, convert and map; broadcast and iota.
 *
 * An operand that is a broadcast is not materialised if the operands together span the result.  It is then read through
 * an indexing map, in which dimensions of size 1 are the constant 0.  A splat constant becomes a scalar in the body.
 * Later passes match this form:
 *
 *     %s = reshape(%m), %b = broadcast(%s), %d = subtract(%x, %b)
 *       ==>  linalg.generic [(d0, d1) -> (d0, d1), (d0, d1) -> (d0, 0), (d0, d1) -> (d0, d1)] ins(%x, %m)
 *
 * If nothing is folded and linalg has a named operation with the same meaning, the named operation is used.
 */
#include <assert.h>
#include <string.h>

#include "linalg/impl.h"

enum { OPERANDS_MAX = 3 }; /* select and clamp have three */

/* Describes how one operand is read. */
struct operand {
  const struct hlo_instr *src; /* the instruction that is read */
  struct hlo_shape shape;      /* the shape that is read: src's shape, or kept_shape of a reduce */
  bool is_scalar;              /* true for a splat constant or a loop's scalar, which the body uses directly */
  bool is_full;                /* true if it has the result's shape and is read without a map */
  int64_t map[HLO_RANK_MAX];   /* for each dimension of shape: a loop or IR_CONST(0) */
};

/* ---- looking through broadcasts ---------------------------------------------------------------------- */

/* Lists the dimensions of s whose size is not 1, in order.  Returns their number. */
static int big_dims(const struct hlo_shape *s, int at[HLO_RANK_MAX]) {
  int n = 0;
  for (int k = 0; k < s->rank; k++)
    if (s->dims[k] != 1)
      at[n++] = k;
  return n;
}

bool lower_is_unit_reshape(const struct hlo_instr *r) {
  const struct hlo_shape *to = &r->shape, *from = &r->operands[0]->shape;
  int a[HLO_RANK_MAX], b[HLO_RANK_MAX], n = big_dims(to, a);

  if (n != big_dims(from, b))
    return false;
  for (int k = 0; k < n; k++)
    if (to->dims[a[k]] != from->dims[b[k]])
      return false;
  return true;
}

/* Turns a map that reads r's result into a map that reads r's operand. */
static void through_reshape(const struct hlo_instr *r, int64_t *map) {
  const struct hlo_shape *to = &r->shape, *from = &r->operands[0]->shape;
  int a[HLO_RANK_MAX], b[HLO_RANK_MAX], n = big_dims(to, a);
  int64_t old[HLO_RANK_MAX];

  big_dims(from, b);
  memcpy(old, map, sizeof old);
  for (int k = 0; k < from->rank; k++)
    map[k] = IR_CONST(0);
  for (int k = 0; k < n; k++)
    map[b[k]] = old[a[k]];
}

/* Turns a map that reads the reduce's result into a map that reads the value with the reduced axes kept. */
static void keep_axes(const struct hlo_instr *reduce, const struct hlo_shape *kept, int64_t *map) {
  int64_t old[HLO_RANK_MAX];

  memcpy(old, map, sizeof old);
  for (int d = 0, k = 0; d < kept->rank; d++)
    map[d] = reduce_has_axis(reduce, d) ? IR_CONST(0) : old[k++];
}

/* True if the body of a reader uses x as a scalar. */
static bool is_scalar(struct lower *l, const struct hlo_instr *x) {
  return lower_is_splat(x) || node_of(l, x)->scalar_kind;
}

/* Folds unit reshapes and broadcasts from x upwards into o's map, and sets o to read the value before them. */
static void look_through(struct lower *l, const struct hlo_instr *x, struct operand *o) {
  for (;;) {
    if (x->op == HLO_BROADCAST && !x->knob) {
      const struct hlo_shape *from = &x->operands[0]->shape;
      int64_t old[HLO_RANK_MAX];
      memcpy(old, o->map, sizeof old);
      for (int k = 0; k < from->rank; k++)
        o->map[k] = from->dims[k] == 1 ? IR_CONST(0) : old[x->attrs->dimensions.v[k]];
    } else if (x->op == HLO_RESHAPE && !x->knob && lower_is_unit_reshape(x)) {
      through_reshape(x, o->map);
    } else {
      break;
    }
    x = x->operands[0];
  }
  o->src = x;
  o->shape = x->shape;
  o->is_scalar = is_scalar(l, x);
  if (x->op == HLO_REDUCE && node_of(l, x)->keeps_dims) {
    o->shape = node_of(l, x)->kept_shape;
    keep_axes(x, &o->shape, o->map);
  }
}

/* In each dimension where the operand and the result both have size 1, makes the map use the loop instead of 0. */
static void align_unit_dims(const struct hlo_shape *result, struct operand *o) {
  const struct hlo_shape *s = &o->shape;
  if (s->rank != result->rank)
    return;
  for (int k = 0; k < s->rank; k++)
    if (s->dims[k] == 1 && result->dims[k] == 1)
      o->map[k] = k;
}

static void read_full(const struct hlo_instr *x, struct operand *o) {
  *o = (struct operand){.src = x, .shape = x->shape, .is_full = true};
  for (int k = 0; k < x->shape.rank; k++)
    o->map[k] = k;
}

static void read_operand(struct lower *l, const struct hlo_instr *x, int rank, struct operand *o) {
  read_full(x, o);
  o->is_full = x->shape.rank == rank; /* clamp's bounds may be 0-d */
  if (is_scalar(l, x)) {
    o->is_scalar = true;
    o->is_full = false;
  } else if (x->op == HLO_BROADCAST && !x->knob) {
    o->is_full = false;
    look_through(l, x, o);
    align_unit_dims(&x->shape, o);
  }
}

/* True if every loop longer than 1 occurs in the map of a tensor operand. */
static bool spans(const struct hlo_shape *s, int n, const struct operand *o) {
  bool seen[HLO_RANK_MAX] = {false};

  for (int k = 0; k < n; k++) {
    if (o[k].is_scalar)
      continue;
    for (int d = 0; d < o[k].shape.rank; d++)
      if (o[k].map[d] >= 0)
        seen[o[k].map[d]] = true;
  }
  for (int d = 0; d < s->rank; d++)
    if (!seen[d] && s->dims[d] != 1)
      return false;
  return true;
}

/* Materialises one operand if the operands do not span the result: the first that has the result's rank, and tensors
 * are preferred to scalars. */
static void ensure_span(const struct hlo_instr *i, struct operand *o) {
  int first = 0;
  bool tensor = false;

  for (int k = 0; k < i->n_operands; k++)
    tensor |= !o[k].is_scalar;
  if (tensor && spans(&i->shape, i->n_operands, o))
    return;
  while (first < i->n_operands && ((tensor && o[first].is_scalar) || i->operands[first]->shape.rank != i->shape.rank))
    first++;
  for (int k = 0; first == i->n_operands && k < i->n_operands; k++) /* the only tensors are 0-d bounds */
    if (i->operands[k]->shape.rank == i->shape.rank)
      first = k;
  assert(first < i->n_operands);
  read_full(i->operands[first], &o[first]);
}

/* ---- emission ---------------------------------------------------------------------------------------- */

static const char *named_operation(const struct hlo_instr *i) {
  static const char *const flt[HLO_OP_COUNT] = {
      [HLO_EXP] = "linalg.exp",      [HLO_LOG] = "linalg.log",      [HLO_SQRT] = "linalg.sqrt",
      [HLO_TANH] = "linalg.tanh",    [HLO_NEGATE] = "linalg.negf",  [HLO_ABS] = "linalg.abs",
      [HLO_CEIL] = "linalg.ceil",    [HLO_FLOOR] = "linalg.floor",  [HLO_ADD] = "linalg.add",
      [HLO_SUBTRACT] = "linalg.sub", [HLO_MULTIPLY] = "linalg.mul", [HLO_DIVIDE] = "linalg.div",
      [HLO_MAXIMUM] = "linalg.max",  [HLO_MINIMUM] = "linalg.min",  [HLO_RSQRT] = "linalg.rsqrt",
      [HLO_ERF] = "linalg.erf",
  };
  /* linalg.max and min compare as signed; division needs the checks of scalar.c */
  static const char *const sgn[HLO_OP_COUNT] = {
      [HLO_ADD] = "linalg.add",     [HLO_SUBTRACT] = "linalg.sub", [HLO_MULTIPLY] = "linalg.mul",
      [HLO_MAXIMUM] = "linalg.max", [HLO_MINIMUM] = "linalg.min",
  };
  static const char *const uns[HLO_OP_COUNT] = {
      [HLO_ADD] = "linalg.add", [HLO_SUBTRACT] = "linalg.sub", [HLO_MULTIPLY] = "linalg.mul"};

  if (i->op == HLO_COMPARE || i->op == HLO_SELECT || i->op == HLO_CONVERT || i->op == HLO_CLAMP ||
      i->op == HLO_IS_FINITE || i->op == HLO_BITCAST_CONVERT)
    return NULL;
  switch (dtype_kind(i->shape.dtype)) {
  case DK_FLOAT:
    return flt[i->op];
  case DK_SIGNED:
    return sgn[i->op];
  case DK_UNSIGNED:
    return uns[i->op];
  default:
    return NULL;
  }
}

struct body {
  const struct hlo_instr *instr;
  MlirValue scalars[OPERANDS_MAX]; /* null if the operand is an argument of the body */
};

static MlirValue write_body(struct ir_builder *b, MlirValue const *args, void *user) {
  const struct body *body = user;
  MlirValue x[OPERANDS_MAX];

  for (int k = 0; k < body->instr->n_operands; k++)
    x[k] = mlirValueIsNull(body->scalars[k]) ? *args++ : body->scalars[k];
  return scalar_apply(b, body->instr, x);
}

static MlirValue operand_value(struct lower *l, const struct operand *o) {
  const struct node *n = node_of(l, o->src);
  return n->keeps_dims ? n->kept : lower_value(l, o->src);
}

/* Sets the location of a generic, which includes the first broadcast that was folded into it. */
static void locate(struct lower *l, const struct hlo_instr *i, const struct operand *o) {
  for (int k = 0; k < i->n_operands; k++)
    if (i->operands[k] != o[k].src && i->operands[k]->op == HLO_BROADCAST) {
      l->b.loc = lower_location(l, i, i->operands[k]);
      return;
    }
}

static MlirOperation make_folded(struct lower *l, const struct hlo_instr *i, const struct operand *o) {
  struct body body = {.instr = i};
  MlirValue inputs[OPERANDS_MAX];
  MlirAffineMap maps[OPERANDS_MAX + 1];
  int n = 0;

  locate(l, i, o);
  for (int k = 0; k < i->n_operands; k++) {
    if (o[k].is_scalar) {
      body.scalars[k] = scalar_of(l, o[k].src);
      continue;
    }
    inputs[n] = operand_value(l, &o[k]);
    maps[n++] = ir_map(&l->b, i->shape.rank, o[k].shape.rank, o[k].map);
  }
  maps[n] = ir_identity_map(&l->b, i->shape.rank);
  return ir_linalg_generic(&l->b, &(struct ir_generic){.n_loops = i->shape.rank,
                                                       .n_inputs = n,
                                                       .inputs = inputs,
                                                       .maps = maps,
                                                       .output = lower_empty(l, &i->shape),
                                                       .body = write_body,
                                                       .user = &body});
}

enum status lower_elementwise(struct lower *l, const struct hlo_instr *i) {
  struct operand o[OPERANDS_MAX];
  MlirValue inputs[OPERANDS_MAX];
  bool all_full = true;

  assert(i->n_operands <= OPERANDS_MAX);
  if (!scalar_is_supported(i))
    return lower_refuse(l, i, "it is not defined for %s", dtype_numpy_name(i->operands[0]->shape.dtype));
  for (int k = 0; k < i->n_operands; k++)
    read_operand(l, i->operands[k], i->shape.rank, &o[k]);
  ensure_span(i, o);
  for (int k = 0; k < i->n_operands; k++)
    all_full &= o[k].is_full;

  const char *name = named_operation(i);
  MlirOperation op;
  if (all_full && name) {
    for (int k = 0; k < i->n_operands; k++)
      inputs[k] = lower_value(l, o[k].src);
    op = ir_linalg_named(&l->b, name, i->n_operands, inputs, lower_empty(l, &i->shape), 0, NULL);
  } else {
    op = make_folded(l, i, o);
  }
  lower_set(l, i, ir_result(op), op);
  return ST_OK;
}

/* ---- conversion of a whole tensor -------------------------------------------------------------------- */

struct conversion {
  enum dtype from, to;
};

static MlirValue write_conversion(struct ir_builder *b, MlirValue const *args, void *user) {
  const struct conversion *c = user;
  return scalar_convert(b, args[0], c->from, c->to);
}

MlirValue lower_convert_tensor(struct lower *l, MlirValue x, const struct hlo_shape *shape, enum dtype to) {
  struct conversion c = {shape->dtype, to};
  MlirAffineMap id = ir_identity_map(&l->b, shape->rank);

  if (c.from == c.to)
    return x;
  return ir_result(
      ir_linalg_generic(&l->b, &(struct ir_generic){.n_loops = shape->rank,
                                                    .n_inputs = 1,
                                                    .inputs = &x,
                                                    .maps = (MlirAffineMap[]){id, id},
                                                    .output = ir_empty(&l->b, to, shape->rank, shape->dims),
                                                    .body = write_conversion,
                                                    .user = &c}));
}

/* ---- broadcast, iota --------------------------------------------------------------------------------- */

static MlirValue write_identity(struct ir_builder *b, MlirValue const *args, void *user) {
  (void)b, (void)user;
  return args[0];
}

/* Emits the broadcast as a tensor: a fill with a scalar, or a generic that reads its input through a map. */
enum status lower_broadcast(struct lower *l, const struct hlo_instr *i) {
  struct operand o;
  read_full(i, &o);
  o.is_full = false;

  const struct hlo_instr *x = i->operands[0];
  for (int k = 0; k < x->shape.rank; k++)
    o.map[k] = x->shape.dims[k] == 1 ? IR_CONST(0) : i->attrs->dimensions.v[k];
  look_through(l, x, &o);
  align_unit_dims(&i->shape, &o);

  if (o.is_scalar || o.shape.rank == 0) {
    MlirValue v = o.is_scalar ? scalar_of(l, o.src) : ir_extract(&l->b, lower_value(l, o.src), 0, NULL);
    MlirValue filled = ir_fill(&l->b, v, lower_empty(l, &i->shape));
    lower_set(l, i, filled, mlirOpResultGetOwner(filled));
    return ST_OK;
  }
  MlirValue input = operand_value(l, &o);
  MlirAffineMap maps[] = {ir_map(&l->b, i->shape.rank, o.shape.rank, o.map), ir_identity_map(&l->b, i->shape.rank)};
  MlirOperation op = ir_linalg_generic(&l->b, &(struct ir_generic){.n_loops = i->shape.rank,
                                                                   .n_inputs = 1,
                                                                   .inputs = &input,
                                                                   .maps = maps,
                                                                   .output = lower_empty(l, &i->shape),
                                                                   .body = write_identity});
  lower_set(l, i, ir_result(op), op);
  return ST_OK;
}

struct iota {
  enum dtype dtype;
  int dim;
};

static MlirValue write_iota(struct ir_builder *b, MlirValue const *args, void *user) {
  const struct iota *i = user;
  MlirValue at = ir_linalg_index(b, i->dim);
  const enum dtype t = i->dtype;

  (void)args;
  if (!dtype_is_float(t))
    return ir_op1(b, "arith.index_cast", ir_element_type(b, t), 1, &at);
  MlirValue wide = ir_op1(b, "arith.index_cast", mlirIntegerTypeGet(b->ctx, 64), 1, &at);
  return scalar_convert(b, wide, DT_I64, t);
}

MlirOperation lower_iota_tensor(struct lower *l, const struct hlo_shape *s, int64_t dim) {
  MlirAffineMap id = ir_identity_map(&l->b, s->rank);
  struct iota iota = {s->dtype, (int)dim};
  return ir_linalg_generic(
      &l->b, &(struct ir_generic){
                 .n_loops = s->rank, .maps = &id, .output = lower_empty(l, s), .body = write_iota, .user = &iota});
}

enum status lower_iota(struct lower *l, const struct hlo_instr *i) {
  MlirOperation op = lower_iota_tensor(l, &i->shape, i->attrs->dimensions.v[0]);
  lower_set(l, i, ir_result(op), op);
  return ST_OK;
}

/* ---- map --------------------------------------------------------------------------------------------- */

struct mapping {
  struct lower *l;
  const struct hlo_computation *computation;
};

static MlirValue write_map(struct ir_builder *b, MlirValue const *args, void *user) {
  const struct mapping *m = user;
  MlirValue result;
  body_write(m->l, b, m->computation, args, &result);
  return result;
}

enum status lower_map(struct lower *l, const struct hlo_instr *i) {
  struct mapping m = {l, i->called[0]};
  MlirValue *inputs = arena_new_array(&l->arena, MlirValue, (size_t)i->n_operands);
  MlirAffineMap *maps = arena_new_array(&l->arena, MlirAffineMap, (size_t)i->n_operands + 1);
  enum status st = body_check(l, i, i->called[0]);

  if (st)
    return st;
  for (int k = 0; k <= i->n_operands; k++)
    maps[k] = ir_identity_map(&l->b, i->shape.rank);
  for (int k = 0; k < i->n_operands; k++)
    inputs[k] = lower_value(l, i->operands[k]);
  MlirOperation op = ir_linalg_generic(&l->b, &(struct ir_generic){.n_loops = i->shape.rank,
                                                                   .n_inputs = i->n_operands,
                                                                   .inputs = inputs,
                                                                   .maps = maps,
                                                                   .output = lower_empty(l, &i->shape),
                                                                   .body = write_map,
                                                                   .user = &m});
  lower_set(l, i, ir_result(op), op);
  return ST_OK;
}
