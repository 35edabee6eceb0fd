/* activations: see activations.h.  A search looks at no more than SEARCH_OPS operations for each of CANDIDATES values. */
#include "passes/lib/activations.h"

#include <math.h>
#include <string.h>

#include "mlir-c/BuiltinAttributes.h"
#include "mlir-c/BuiltinTypes.h"

#include "passes/lib/formula.h"

enum { SEARCH_OPS = 40, CANDIDATES = 32, SEARCH_DEPTH = 60 };

/* ---- from one operation to the next ----------------------------------------------------------------------------- */

bool activation_is_plain(MlirOperation op) {
  struct structured s;

  if (!structured_read(op, &s) || !structured_is_elementwise(&s) || s.n_inits != 1 ||
      mlirOperationGetNumResults(op) != 1 || !mlirAffineMapIsIdentity(s.maps[s.n_inputs]))
    return false;
  for (int k = 0; k < s.n_inputs; k++)
    if (mlirTypeIsATensor(mlirValueGetType(mlirOperationGetOperand(op, k))) && !mlirAffineMapIsIdentity(s.maps[k]))
      return false;
  return true;
}

/* True if a knob asks something for v, so that it must remain. */
static bool is_annotated(MlirValue v) {
  for (MlirOpOperand u = mlirValueGetFirstUse(v); !mlirOpOperandIsNull(u); u = mlirOpOperandGetNextUse(u))
    if (ir_is_of(mlirOpOperandGetOwner(u), "nkipy."))
      return true;
  return false;
}

struct walk {
  const struct activation_search *s;
  struct formulas fs;
  MlirValue x;
  int n; /* operations that were read, each once */
  struct {
    MlirOperation op;
    struct formula is;
  } known[SEARCH_OPS];
};

static MlirValue find_outside(MlirValue v) {
  MlirOperation owner = mlirBlockGetParentOperation(mlirBlockArgumentGetOwner(v));
  const intptr_t k = mlirBlockArgumentGetArgNumber(v);
  if (mlirOperationIsNull(owner) || !ir_is_of(owner, "linalg.") || !activation_is_plain(owner) ||
      k + 1 >= mlirOperationGetNumOperands(owner)) /* the last one is the destination */
    return v;
  return mlirOperationGetOperand(owner, k);
}

static MlirValue find_inside(MlirValue v) {
  MlirOperation op = ir_defining_op(v);
  if (mlirOperationIsNull(op) || !mlirTypeIsATensor(mlirValueGetType(v)) || is_annotated(v))
    return v;
  if (ir_is(op, "linalg.fill"))
    return mlirOperationGetOperand(op, 0);
  if (!ir_is_of(op, "linalg.") || !activation_is_plain(op))
    return v;
  return mlirOperationGetOperand(mlirBlockGetTerminator(ir_body(op)), 0);
}

/* One value is asked for by many candidates and searches, and to find its next one means to read an operation. */
static MlirValue next_of(const struct activation_search *s, MlirValue v) {
  MlirValue next = {table_get(s->through_tensors, v.ptr)};
  if (!mlirValueIsNull(next))
    return next;
  next = mlirValueIsABlockArgument(v) ? find_outside(v) : find_inside(v);
  table_put(s->through_tensors, v.ptr, (void *)(uintptr_t)next.ptr);
  return next;
}

/* The value of which an argument of a linalg body is an element; v itself if it is none, or the walk stays in one body. */
static MlirValue outside_of(const struct activation_search *s, MlirValue v) {
  return s->through_tensors && mlirValueIsABlockArgument(v) ? next_of(s, v) : v;
}

/* The scalar that a body yields for the tensor v; v itself if v is not computed by such a body. */
static MlirValue inside_of(const struct activation_search *s, MlirValue v) {
  return s->through_tensors && !mlirValueIsABlockArgument(v) ? next_of(s, v) : v;
}

static bool is_number(MlirValue v, double *out) {
  MlirAttribute a = ir_constant(v);
  if (mlirAttributeIsNull(a))
    return false;
  if (mlirAttributeIsADenseElements(a) && mlirDenseElementsAttrIsSplat(a))
    a = mlirDenseElementsAttrGetSplatValue(a);
  if (!mlirAttributeIsAFloat(a))
    return false;
  *out = mlirFloatAttrGetValueDouble(a);
  return true;
}

/* ---- reading a formula ------------------------------------------------------------------------------------------ */

static struct formula read(struct walk *w, MlirValue v, int depth);

static struct formula operand(struct walk *w, MlirOperation op, int k, int depth) {
  return read(w, mlirOperationGetOperand(op, k), depth);
}

static struct formula one_plus(struct walk *w, struct formula z) {
  return formula_add(&w->fs, z, formula_number(1));
}

/* 2 artanh(z / (2 + z)) by four terms of its series: what np.log1p is near 0 (trace/unary.c). */
static struct formula log1p_series(struct walk *w, struct formula z) {
  static const double terms[] = {1.0 / 5, 1.0 / 3, 1};
  struct formulas *fs = &w->fs;
  struct formula s = formula_mul(fs, z, formula_power(fs, formula_add(fs, z, formula_number(2)), -1));
  struct formula s2 = formula_mul(fs, s, s), sum = formula_number(1.0 / 7);
  for (int k = 0; k < 3; k++)
    sum = formula_add(fs, formula_mul(fs, sum, s2), formula_number(terms[k]));
  return formula_mul(fs, formula_add(fs, s, s), sum);
}

/* t where |z| < 1/4, f elsewhere: log1p of z. */
static bool is_log1p(struct walk *w, const struct formula *a, const struct formula *t, const struct formula *f) {
  const struct formula *abs = formula_arg(&w->fs, a, FORMULA_ABS);
  const struct formula z = abs ? *abs : *a;
  const struct formula far = formula_of(&w->fs, FORMULA_LOG, one_plus(w, z)), close = log1p_series(w, z);
  return formula_same(&w->fs, f, &far) && formula_same(&w->fs, t, &close);
}

/* t where y == 0, f elsewhere: logaddexp of 0 and something, of which f is the softplus and t is y + ln 2 or ln 2. */
static bool is_logaddexp(struct walk *w, const struct formula *y, const struct formula *t, const struct formula *f) {
  const struct formula ln2 = formula_number(log(2)), sum = formula_add(&w->fs, *y, ln2), minus = formula_scaled(*y, -1);
  const struct formula *of = formula_arg(&w->fs, f, FORMULA_SOFTPLUS);
  return of && (formula_same(&w->fs, of, y) || formula_same(&w->fs, of, &minus)) &&
         (formula_same(&w->fs, t, &sum) || formula_same(&w->fs, t, &ln2));
}

/* t where y >= 0, f elsewhere: t is sigmoid(|y|) and f is sigmoid(-|y|). */
static bool is_stable_sigmoid(struct walk *w, const struct formula *y, const struct formula *t,
                              const struct formula *f) {
  const struct formula abs = formula_of(&w->fs, FORMULA_ABS, *y), minus = formula_scaled(abs, -1);
  const struct formula *at = formula_arg(&w->fs, t, FORMULA_SIGMOID), *af = formula_arg(&w->fs, f, FORMULA_SIGMOID);
  return at && af && formula_same(&w->fs, at, &abs) && formula_same(&w->fs, af, &minus);
}

static struct formula read_select(struct walk *w, MlirOperation op, int depth) {
  struct formula t = operand(w, op, 1, depth), f = operand(w, op, 2, depth);
  if (formula_same(&w->fs, &t, &f))
    return t;
  MlirOperation cmp = ir_defining_op(inside_of(w->s, outside_of(w->s, mlirOperationGetOperand(op, 0))));
  if (t.is_none || f.is_none || mlirOperationIsNull(cmp) || !ir_is(cmp, "arith.cmpf"))
    return formula_none();
  struct formula a = operand(w, cmp, 0, depth), b = operand(w, cmp, 1, depth);
  struct formula y = formula_add(&w->fs, a, formula_scaled(b, -1)), minus = formula_scaled(y, -1);
  const struct formula quarter = formula_number(0.25);
  switch (mlirIntegerAttrGetValueInt(ir_attr(cmp, "predicate"))) {
  case IR_FLT_OGT:
  case IR_FLT_OGE:
    if (is_stable_sigmoid(w, &y, &t, &f))
      return formula_of(&w->fs, FORMULA_SIGMOID, y);
    break;
  case IR_FLT_OLT:
  case IR_FLT_OLE:
    if (formula_same(&w->fs, &b, &quarter) && is_log1p(w, &a, &t, &f))
      return f;
    if (is_stable_sigmoid(w, &y, &f, &t))
      return formula_of(&w->fs, FORMULA_SIGMOID, y);
    if (is_stable_sigmoid(w, &minus, &t, &f))
      return formula_of(&w->fs, FORMULA_SIGMOID, minus);
    break;
  case IR_FLT_OEQ:
    if (is_logaddexp(w, &y, &t, &f))
      return f;
    break;
  default:
    break;
  }
  return formula_none();
}

static struct formula read_max(struct walk *w, struct formula a, struct formula b) {
  if (!a.is_none && a.n == 0 && a.c == 0)
    return formula_of(&w->fs, FORMULA_POSITIVE, b);
  return !b.is_none && b.n == 0 && b.c == 0 ? formula_of(&w->fs, FORMULA_POSITIVE, a) : formula_none();
}

static struct formula read_power(struct walk *w, struct formula a, struct formula b) {
  if (a.is_none || b.is_none || b.n != 0)
    return formula_none();
  if (fabs(b.c) == 0.5) {
    struct formula root = formula_of(&w->fs, FORMULA_SQRT, a);
    return b.c > 0 ? root : formula_power(&w->fs, root, -1);
  }
  return b.c == floor(b.c) && fabs(b.c) <= 4 ? formula_power(&w->fs, a, (int)b.c) : formula_none();
}

static struct formula read_binary(struct walk *w, MlirOperation op, int depth) {
  struct formulas *fs = &w->fs;
  struct formula a = operand(w, op, 0, depth), b = a.is_none ? a : operand(w, op, 1, depth);
  if (ir_is(op, "arith.addf"))
    return formula_add(fs, a, b);
  if (ir_is(op, "arith.subf"))
    return formula_add(fs, a, formula_scaled(b, -1));
  if (ir_is(op, "arith.mulf"))
    return formula_mul(fs, a, b);
  if (ir_is(op, "arith.divf"))
    return formula_mul(fs, a, formula_power(fs, b, -1));
  if (ir_is(op, "math.powf"))
    return read_power(w, a, b);
  return ir_is(op, "arith.maximumf") ? read_max(w, a, b) : formula_none();
}

static struct formula read_unary(struct walk *w, MlirOperation op, int depth) {
  static const struct {
    const char *name;
    enum formula_kind kind;
  } table[] = {{"math.exp", FORMULA_EXP},    {"math.tanh", FORMULA_TANH}, {"math.erf", FORMULA_ERF},
               {"math.log", FORMULA_LOG},    {"math.sqrt", FORMULA_SQRT}, {"math.absf", FORMULA_ABS},
               {"math.rsqrt", FORMULA_RSQRT}};
  struct formula a = operand(w, op, 0, depth);
  if (ir_is(op, "arith.negf"))
    return formula_scaled(a, -1);
  if (ir_is(op, "arith.extf") || ir_is(op, "arith.truncf"))
    return a;
  if (ir_is(op, "math.log1p"))
    return formula_of(&w->fs, FORMULA_LOG, one_plus(w, a));
  for (size_t k = 0; k < sizeof table / sizeof *table; k++)
    if (ir_is(op, table[k].name))
      return formula_of(&w->fs, table[k].kind, a);
  return formula_none();
}

static struct formula read_operation(struct walk *w, MlirOperation op, int depth) {
  if (ir_is(op, "arith.select"))
    return read_select(w, op, depth);
  if (!ir_is_of(op, "arith.") && !ir_is_of(op, "math."))
    return formula_none();
  const intptr_t n = mlirOperationGetNumOperands(op);
  return n == 1 ? read_unary(w, op, depth) : n == 2 ? read_binary(w, op, depth) : formula_none();
}

/* Reads v as a formula of w->x; none if it depends on anything else. */
static struct formula read(struct walk *w, MlirValue v, int depth) {
  double c;

  for (; depth < SEARCH_DEPTH; depth++) { /* a body may pass an argument on */
    if (mlirValueEqual(v, w->x))
      return formula_x(&w->fs);
    MlirValue next = mlirValueIsABlockArgument(v) ? outside_of(w->s, v) : inside_of(w->s, v);
    if (mlirValueEqual(next, v))
      break;
    v = next;
  }
  if (is_number(v, &c))
    return formula_number(c);
  MlirOperation op = ir_defining_op(v);
  if (mlirOperationIsNull(op) || depth >= SEARCH_DEPTH)
    return formula_none();
  for (int k = 0; k < w->n; k++)
    if (mlirOperationEqual(w->known[k].op, op))
      return w->known[k].is;
  struct formula f = read_operation(w, op, depth + 1);
  if (w->n == SEARCH_OPS)
    return formula_none();
  w->known[w->n].op = op;
  w->known[w->n++].is = f;
  return f;
}

/* ---- the functions ---------------------------------------------------------------------------------------------- */

/* a is x times a function: its name, NULL if the Scalar engine has none. */
static const char *gated(struct formulas *fs, const struct formula_atom *gate) {
  const struct formula x = formula_x(fs), *arg = &gate->arg;
  const struct formula cube = formula_scaled(formula_power(fs, x, 3), 0.044715);
  const struct formula inner = formula_add(fs, formula_number(1), formula_scaled(formula_power(fs, x, 2), 0.044715));
  const struct formula tanh_arg = formula_scaled(formula_add(fs, x, cube), 2 * sqrt(2 / acos(-1)));
  const struct formula factored = formula_scaled(formula_mul(fs, x, inner), 2 * sqrt(2 / acos(-1)));
  const struct formula wide = formula_scaled(x, 1.702), softplus = formula_of(fs, FORMULA_SOFTPLUS, x);

  switch (gate->kind) {
  case FORMULA_SIGMOID:
    return formula_same(fs, arg, &x)          ? "silu"
           : formula_same(fs, arg, &wide)     ? "gelu_apprx_sigmoid"
           : formula_same(fs, arg, &tanh_arg) ? "gelu_apprx_tanh"
           : formula_same(fs, arg, &factored) ? "gelu_apprx_tanh"
                                              : NULL;
  case FORMULA_NORMAL:
    return formula_same(fs, arg, &x) ? "gelu" : NULL;
  case FORMULA_TANH:
    return formula_same(fs, arg, &softplus) ? "mish" : NULL;
  default:
    return NULL;
  }
}

static const char *name_of(struct formulas *fs, const struct formula *a, double *scale, double *bias) {
  static const struct {
    enum formula_kind kind;
    const char *name;
  } table[] = {{FORMULA_SIGMOID, "sigmoid"}, {FORMULA_SOFTPLUS, "softplus"}, {FORMULA_RSQRT, "rsqrt"}};

  *scale = 1;
  *bias = 0;
  for (size_t k = 0; k < sizeof table / sizeof *table; k++) {
    const struct formula *arg = formula_arg(fs, a, table[k].kind);
    if (arg && formula_is_linear(fs, arg, scale, bias))
      return table[k].name;
  }
  if (a->is_none || a->n != 2 || fabs(a->c - 1) > fs->tolerance || a->f[0].power != 1 || a->f[1].power != 1)
    return NULL;
  const int x = a->f[0].atom->kind == FORMULA_X ? 0 : 1;
  *scale = 1;
  *bias = 0;
  return a->f[x].atom->kind == FORMULA_X ? gated(fs, a->f[1 - x].atom) : NULL;
}

/* How far constants may be from the exact ones, which were rounded to the type; sqrt(2 / pi) is also written 0.79788. */
static double tolerance_of(MlirType t) {
  return mlirTypeIsABF16(t) ? 5e-3 : mlirTypeIsAF16(t) ? 1e-3 : 2e-5;
}

/* The type of v, or of its elements. */
static MlirType element(MlirValue v) {
  MlirType t = mlirValueGetType(v);
  return mlirTypeIsATensor(t) ? mlirShapedTypeGetElementType(t) : t;
}

/* ---- the search ------------------------------------------------------------------------------------------------- */

struct candidates {
  int n;
  MlirValue v[CANDIDATES];
  bool has_function; /* exp, tanh, erf or a root is among the operations */
};

static void add_candidate(struct candidates *c, MlirValue v) {
  if (!activation_has_type(element(v)))
    return;
  for (int k = 0; k < c->n; k++)
    if (mlirValueEqual(c->v[k], v))
      return;
  if (c->n < CANDIDATES)
    c->v[c->n++] = v;
}

/* Collects the values from which root is computed, the nearest first. */
static void collect(const struct activation_search *s, MlirValue root, struct candidates *c) {
  static const char *const functions[] = {"math.exp", "math.tanh", "math.erf", "math.sqrt", "math.powf"};
  add_candidate(c, root);
  for (int k = 0; k < c->n; k++) {
    double number;
    MlirValue v = inside_of(s, c->v[k]);
    MlirOperation op = ir_defining_op(v);
    if (mlirValueIsABlockArgument(v) && !mlirValueEqual(v, c->v[k]))
      add_candidate(c, outside_of(s, v));
    if (mlirOperationIsNull(op) || (!ir_is_of(op, "arith.") && !ir_is_of(op, "math.")))
      continue;
    for (size_t j = 0; j < sizeof functions / sizeof *functions; j++)
      c->has_function |= ir_is(op, functions[j]);
    for (intptr_t j = 0; j < mlirOperationGetNumOperands(op); j++)
      if (!is_number(mlirOperationGetOperand(op, j), &number))
        add_candidate(c, outside_of(s, mlirOperationGetOperand(op, j)));
  }
}

bool activation_has_type(MlirType t) {
  return mlirTypeIsAF32(t) || mlirTypeIsABF16(t) || mlirTypeIsAF16(t);
}

bool activation_may_end(MlirOperation op) {
  static const char *const names[] = {"arith.mulf", "arith.divf", "arith.addf", "arith.subf", "arith.select",
                                      "math.log",   "math.powf",  "math.log1p", "math.exp"};
  MlirType t = mlirOperationGetNumResults(op) == 1 ? mlirValueGetType(ir_result(op)) : (MlirType){NULL};
  if (mlirTypeIsNull(t) || !activation_has_type(t))
    return false;
  for (size_t k = 0; k < sizeof names / sizeof *names; k++)
    if (ir_is(op, names[k]))
      return true;
  return false;
}

bool activation_find(const struct activation_search *s, MlirValue v, struct activation *out) {
  struct candidates c = {.n = 0};
  bool found = false;

  collect(s, v, &c);
  if (!c.has_function)
    return false;
  for (int k = 1; k < c.n; k++) {
    struct walk w;
    w.s = s;
    w.fs = (struct formulas){s->arena, fmax(tolerance_of(element(v)), tolerance_of(element(c.v[k])))};
    w.x = c.v[k];
    w.n = 0;
    double scale, bias;
    struct formula f = read(&w, v, 0);
    const char *name = name_of(&w.fs, &f, &scale, &bias);
    if (!name)
      continue;
    const bool plain = scale == 1 && bias == 0;
    if (!found || plain)
      *out = (struct activation){.name = name, .x = c.v[k], .scale = scale, .bias = bias, .n_ops = w.n};
    found = true;
    if (plain)
      return true;
  }
  return found;
}

/* ---- writing a function ----------------------------------------------------------------------------------------- */

struct writer {
  struct ir_builder *b, *outside;
};

static MlirValue number(const struct writer *w, double v) {
  return ir_float(w->outside, mlirF32TypeGet(w->b->ctx), v);
}

static MlirValue times(const struct writer *w, MlirValue x, MlirValue y) {
  return ir_binary(w->b, "arith.mulf", x, y);
}

static MlirValue scaled(const struct writer *w, MlirValue x, double by) {
  return times(w, x, number(w, by));
}

static MlirValue plus(const struct writer *w, MlirValue x, double c) {
  return ir_binary(w->b, "arith.addf", x, number(w, c));
}

static MlirValue sigmoid(const struct writer *w, MlirValue x) {
  MlirValue e = ir_unary(w->b, "math.exp", ir_unary(w->b, "arith.negf", x));
  return ir_binary(w->b, "arith.divf", number(w, 1), plus(w, e, 1));
}

static MlirValue softplus(const struct writer *w, MlirValue x) {
  return ir_unary(w->b, "math.log", plus(w, ir_unary(w->b, "math.exp", x), 1));
}

static MlirValue write_function(const struct writer *w, const char *name, MlirValue x) {
  if (!strcmp(name, "sigmoid"))
    return sigmoid(w, x);
  if (!strcmp(name, "softplus"))
    return softplus(w, x);
  if (!strcmp(name, "rsqrt"))
    return ir_unary(w->b, "math.rsqrt", x);
  if (!strcmp(name, "silu"))
    return times(w, x, sigmoid(w, x));
  if (!strcmp(name, "gelu_apprx_sigmoid"))
    return times(w, x, sigmoid(w, scaled(w, x, 1.702)));
  if (!strcmp(name, "mish"))
    return times(w, x, ir_unary(w->b, "math.tanh", softplus(w, x)));
  if (!strcmp(name, "gelu"))
    return times(w, x, scaled(w, plus(w, ir_unary(w->b, "math.erf", scaled(w, x, sqrt(0.5))), 1), 0.5));
  MlirValue cube = scaled(w, times(w, times(w, x, x), x), 0.044715); /* gelu_apprx_tanh */
  MlirValue y = scaled(w, ir_binary(w->b, "arith.addf", x, cube), sqrt(2 / acos(-1)));
  return times(w, x, scaled(w, plus(w, ir_unary(w->b, "math.tanh", y), 1), 0.5));
}

MlirValue activation_build(struct ir_builder *b, struct ir_builder *outside, const struct activation *a, MlirValue x,
                           MlirType result) {
  const struct writer w = {b, outside};
  MlirType f32 = mlirF32TypeGet(b->ctx);

  if (!mlirTypeIsAF32(mlirValueGetType(x)))
    x = ir_op1(b, "arith.extf", f32, 1, &x);
  if (a->scale != 1)
    x = scaled(&w, x, a->scale);
  if (a->bias != 0)
    x = plus(&w, x, a->bias);
  MlirValue y = write_function(&w, a->name, x);
  return mlirTypeIsAF32(result) ? y : ir_op1(b, "arith.truncf", result, 1, &y);
}
