/* access: reads and writes the operands of NISA operations.  See nisa.h. */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "mlir-c/AffineExpr.h"
#include "mlir-c/BuiltinAttributes.h"
#include "mlir-c/BuiltinTypes.h"

#include "ir/query.h"
#include "nisa/nisa.h"

/* The length of an operand's name with "_par_dims"; four attributes for each operand, the segments and the engine. */
enum { NAME_MAX_LEN = 48, OWN_ATTRS_MAX = 4 * NISA_OPERANDS_MAX + 2 };

static int64_t product(int n, const int64_t *v) {
  int64_t p = 1;
  while (n--)
    p *= v[n];
  return p;
}

int64_t nisa_partitions(const struct nisa_access *x) {
  return product(x->par_dims, x->tile);
}

int64_t nisa_free_elements(const struct nisa_access *x) {
  return product(x->n_dims - x->par_dims, x->tile + x->par_dims);
}

enum mem_space nisa_access_space(const struct nisa_access *x) {
  return nisa_is_absent(x) ? MEM_NONE : nisa_type_space(mlirValueGetType(x->base));
}

MlirType nisa_access_element(const struct nisa_access *x) {
  return mlirTypeIsNull(x->type) ? mlirShapedTypeGetElementType(mlirValueGetType(x->base)) : x->type;
}

int64_t nisa_access_extent(const struct nisa_access *x, int r) {
  MlirType t = mlirValueGetType(x->base);
  const int64_t n = mlirShapedTypeGetDimSize(t, r);
  if (mlirTypeIsNull(x->type) || r + 1 < mlirShapedTypeGetRank(t))
    return n;
  return n * nisa_element_bytes(mlirShapedTypeGetElementType(t)) / nisa_element_bytes(x->type);
}

/* A tile's elements, and the constants and factors of its indices, are at most so large that sums of their products fit
 * into 63 bits. */
static const int64_t elements_max = (int64_t)1 << 40, factor_max = (int64_t)1 << 30, constant_max = (int64_t)1 << 48;

/* ---- index expressions ------------------------------------------------------------------------------------------ */

static bool add_expr(MlirAffineExpr e, int64_t factor, struct nisa_index *out) {
  int64_t scaled;

  if (mlirAffineExprIsADim(e)) {
    intptr_t k = mlirAffineDimExprGetPosition(e);
    return k < NISA_TILE_MAX && !__builtin_add_overflow(out->dim[k], factor, &out->dim[k]);
  }
  if (mlirAffineExprIsASymbol(e)) {
    intptr_t k = mlirAffineSymbolExprGetPosition(e);
    return k < NISA_RANK_MAX && !__builtin_add_overflow(out->sym[k], factor, &out->sym[k]);
  }
  if (mlirAffineExprIsAConstant(e)) {
    return !__builtin_mul_overflow(factor, mlirAffineConstantExprGetValue(e), &scaled) &&
           !__builtin_add_overflow(out->constant, scaled, &out->constant);
  }
  MlirAffineExpr l = mlirAffineBinaryOpExprGetLHS(e), r = mlirAffineBinaryOpExprGetRHS(e);
  if (mlirAffineExprIsAAdd(e))
    return add_expr(l, factor, out) && add_expr(r, factor, out);
  if (mlirAffineExprIsAMul(e) && mlirAffineExprIsAConstant(r))
    return !__builtin_mul_overflow(factor, mlirAffineConstantExprGetValue(r), &scaled) && add_expr(l, scaled, out);
  return false;
}

static bool are_small(int n, const int64_t *factors) {
  for (int k = 0; k < n; k++)
    if (factors[k] > factor_max || factors[k] < -factor_max)
      return false;
  return true;
}

bool nisa_access_index(const struct nisa_access *x, int r, struct nisa_index *out) {
  *out = (struct nisa_index){0};
  return add_expr(mlirAffineMapGetResult(x->map, r), 1, out) && are_small(NISA_TILE_MAX, out->dim) &&
         are_small(NISA_RANK_MAX, out->sym) && out->constant <= constant_max && out->constant >= -constant_max;
}

/* ---- types ------------------------------------------------------------------------------------------------------ */

/* Says why the memref cannot be accessed as elements of this type; NULL if it can. */
static const char *type_refusal(MlirType memref, MlirType type) {
  const int64_t from = nisa_element_bytes(mlirShapedTypeGetElementType(memref)), to = nisa_element_bytes(type);
  const int rank = (int)mlirShapedTypeGetRank(memref);
  if (!from || !to)
    return "the type of an operand has no size in memory";
  if (!rank || !mlirShapedTypeHasStaticShape(memref) || mlirShapedTypeGetDimSize(memref, rank - 1) * from % to)
    return "the last dimension is no whole number of elements of the operand's type";
  if (!mem_is_on_chip(nisa_type_space(memref)) && !mlirAffineMapIsIdentity(mlirMemRefTypeGetAffineMap(memref)))
    return "a memref with strides is accessed as another type";
  return nisa_type_space(memref) == MEM_PSUM && from != to ? "PSUM is accessed as elements of another size" : NULL;
}

static const char *read_type(MlirAttribute type, struct nisa_access *x) {
  if (mlirAttributeIsNull(type))
    return NULL;
  if (!mlirAttributeIsAType(type))
    return "the _type of an operand is no type";
  x->type = mlirTypeAttrGetValue(type);
  return type_refusal(mlirValueGetType(x->base), x->type);
}

/* ---- names of attributes ---------------------------------------------------------------------------------------- */

/* What an attribute says of an operand. */
enum part { AP, PAR_DIMS, TILE, TYPE, PARTS };
static const struct {
  const char *text;
  size_t len;
} suffixes[PARTS] = {{"_ap", 3}, {"_par_dims", 9}, {"_tile", 5}, {"_type", 5}};

static MlirStringRef key_of(char *out, const struct nisa_operand_def *d, enum part p) {
  assert(d->name_len + suffixes[p].len < NAME_MAX_LEN);
  memcpy(out, d->name, d->name_len);
  memcpy(out + d->name_len, suffixes[p].text, suffixes[p].len);
  return mlirStringRefCreate(out, d->name_len + suffixes[p].len);
}

int nisa_operand_of_attr(const struct nisa_op_def *def, MlirStringRef name) {
  for (int p = 0; p < PARTS; p++) {
    const size_t n = suffixes[p].len;
    if (name.length <= n || memcmp(name.data + name.length - n, suffixes[p].text, n) != 0)
      continue;
    for (int k = 0; k < def->n_operands; k++)
      if (def->operand[k].name_len == name.length - n && !memcmp(name.data, def->operand[k].name, name.length - n))
        return k;
  }
  return -1;
}

/* The names of the attributes that nisa_create makes: the parts of each operand, the engine, and the segments. */
struct keys {
  int n;
  MlirIdentifier v[OWN_ATTRS_MAX];
};

static int engine_key(const struct nisa_op_def *def) {
  return def->n_operands * PARTS;
}
static int segments_key(const struct nisa_op_def *def) {
  return engine_key(def) + 1;
}

static void fill_keys(MlirContext ctx, const struct nisa_op_def *def, struct keys *out) {
  char key[NAME_MAX_LEN];
  for (int k = 0; k < def->n_operands; k++)
    for (int p = 0; p < PARTS; p++)
      out->v[k * PARTS + p] = mlirIdentifierGet(ctx, key_of(key, &def->operand[k], (enum part)p));
  out->v[engine_key(def)] = mlirIdentifierGet(ctx, ir_str("engine"));
  out->v[segments_key(def)] = mlirIdentifierGet(ctx, ir_str("operandSegmentSizes"));
  out->n = segments_key(def) + 1;
}

/* Names are unique in their context, so they are compared by their addresses. */
static const struct keys *keys_of(MlirContext ctx, const struct nisa_op_def *def) {
  static _Thread_local struct {
    const void *context; /* the context that they belong to */
    unsigned made;       /* detects another context at the same address */
    struct keys of[NISA_KIND_COUNT];
  } known;
  if (known.context != ctx.ptr || known.made != ir_contexts_made()) {
    memset(known.of, 0, sizeof known.of);
    known.context = ctx.ptr;
    known.made = ir_contexts_made();
  }
  struct keys *keys = &known.of[def->kind];
  if (!keys->n)
    fill_keys(ctx, def, keys);
  return keys;
}

/* ---- reading ---------------------------------------------------------------------------------------------------- */

/* Finds the attributes of these names; null if there is none.  Passes read each operation many times, so this is one walk over its
 * attributes, which mostly are in the order of the names, and no search for each. */
static void find_attrs(MlirOperation op, const struct keys *keys, MlirAttribute *out) {
  const intptr_t n = mlirOperationGetNumAttributes(op);
  int at = 0;
  memset(out, 0, (size_t)keys->n * sizeof *out);
  for (intptr_t i = 0; i < n; i++) {
    const MlirNamedAttribute a = mlirOperationGetAttribute(op, i);
    int k = at;
    while (k < keys->n && keys->v[k].ptr != a.name.ptr)
      k++;
    if (k == keys->n)
      for (k = 0; k < at && keys->v[k].ptr != a.name.ptr;)
        k++;
    if (keys->v[k].ptr != a.name.ptr)
      continue;
    out[k] = a.attribute;
    at = k + 1 < keys->n ? k + 1 : 0;
  }
}

static const char *read_access(const MlirAttribute *of, struct nisa_access *x) {
  const MlirAttribute map = of[AP], tile = of[TILE], par = of[PAR_DIMS];

  if (mlirAttributeIsNull(map) || !mlirAttributeIsAAffineMap(map) || mlirAttributeIsNull(tile) ||
      !mlirAttributeIsADenseI64Array(tile) || mlirAttributeIsNull(par) || !mlirAttributeIsAInteger(par))
    return "an operand lacks its _ap, _tile or _par_dims";
  if (!mlirTypeIsAMemRef(mlirValueGetType(x->base)))
    return "an operand with an access is not a memref";
  x->map = mlirAffineMapAttrGetValue(map);
  intptr_t n = mlirDenseArrayGetNumElements(tile);
  int64_t par_dims = mlirIntegerAttrGetValueInt(par);
  if (n > NISA_TILE_MAX || mlirAffineMapGetNumDims(x->map) != n)
    return "a tile has another number of dimensions than its map";
  if (mlirAffineMapGetNumSymbols(x->map) != x->n_indices)
    return "a map has another number of symbols than the operand has indices";
  if (mlirAffineMapGetNumResults(x->map) != mlirShapedTypeGetRank(mlirValueGetType(x->base)))
    return "a map has another number of results than the memref has dimensions";
  if (par_dims < 1 || par_dims >= n)
    return "a tile needs at least one partition and one free dimension";
  int64_t elements = 1;
  x->n_dims = (int)n;
  x->par_dims = (int)par_dims;
  for (int k = 0; k < x->n_dims; k++) {
    x->tile[k] = mlirDenseI64ArrayGetElement(tile, k);
    if (x->tile[k] < 1 || x->tile[k] > INT32_MAX)
      return "a tile dimension is not positive";
    if (__builtin_mul_overflow(elements, x->tile[k], &elements) || elements > elements_max)
      return "a tile has too many elements";
  }
  return read_type(of[TYPE], x);
}

static const char *read_operand(MlirOperation op, const struct nisa_operand_def *d, MlirAttribute segments,
                                const MlirAttribute *of, int k, intptr_t *next, struct nisa_access *x) {
  int n_base = mlirDenseI32ArrayGetElement(segments, 2 * k), n_index = mlirDenseI32ArrayGetElement(segments, 2 * k + 1);

  x->n_indices = n_index; /* all else is zero */
  if (n_base == 0)
    return d->is_optional && n_index == 0 ? NULL : "an operand is missing";
  if (n_base != 1 || n_index < 0 || n_index > NISA_RANK_MAX || *next + 1 + n_index > mlirOperationGetNumOperands(op))
    return "an operand has too many indices";
  x->base = mlirOperationGetOperand(op, (*next)++);
  for (int i = 0; i < n_index; i++)
    x->indices[i] = mlirOperationGetOperand(op, (*next)++);
  if (d->may_be_scalar && !mlirTypeIsAMemRef(mlirValueGetType(x->base)))
    return n_index ? "a scalar operand has indices" : NULL;
  return d->may_be_access ? read_access(of, x) : "a scalar operand is a memref";
}

bool nisa_read(MlirOperation op, struct nisa_instr *out, const char **why) {
  const char *ignored = NULL;
  const char **text = why ? why : &ignored;

  *out = (struct nisa_instr){.def = nisa_op_of(op), .op = op};
  *text = "it is not a NISA operation";
  if (!out->def)
    return false;
  *text = NULL;
  if (out->def->kind == NISA_ALLOC)
    return true;
  if (out->def->kind == NISA_RELEASE) {
    out->operand[0].base = mlirOperationGetOperand(op, 0);
    return true;
  }
  MlirAttribute found[OWN_ATTRS_MAX];
  find_attrs(op, keys_of(mlirOperationGetContext(op), out->def), found);
  const MlirAttribute segments = found[segments_key(out->def)], engine = found[engine_key(out->def)];
  *text = "its operandSegmentSizes do not fit";
  if (mlirAttributeIsNull(segments) || !mlirAttributeIsADenseI32Array(segments) ||
      mlirDenseArrayGetNumElements(segments) != 2 * out->def->n_operands)
    return false;
  intptr_t next = 0;
  *text = NULL;
  for (int k = 0; k < out->def->n_operands && !*text; k++)
    *text = read_operand(op, &out->def->operand[k], segments, &found[k * PARTS], k, &next, &out->operand[k]);
  if (!mlirAttributeIsNull(engine) && mlirAttributeIsAString(engine))
    out->engine = nisa_engine_from_name(mlirStringAttrGetValue(engine));
  return !*text;
}

const struct nisa_access *nisa_operand(const struct nisa_instr *in, const char *name) {
  for (int k = 0; k < in->def->n_operands; k++)
    if (!strcmp(in->def->operand[k].name, name))
      return nisa_is_absent(&in->operand[k]) ? NULL : &in->operand[k];
  return NULL;
}

/* ---- making ----------------------------------------------------------------------------------------------------- */

struct making {
  MlirContext ctx;
  const struct keys *keys;
  int n_values, n_attrs;
  MlirValue values[NISA_OPERANDS_MAX * (NISA_RANK_MAX + 1)];
  MlirNamedAttribute attrs[OWN_ATTRS_MAX];
  int32_t segments[2 * NISA_OPERANDS_MAX];
};

static void add_attr(struct making *m, int key, MlirAttribute v) {
  assert(m->n_attrs < OWN_ATTRS_MAX);
  m->attrs[m->n_attrs++] = mlirNamedAttributeGet(m->keys->v[key], v);
}

static void add_operand(struct making *m, int k, const struct nisa_access *x) {
  if (nisa_is_absent(x))
    return;
  m->values[m->n_values++] = x->base;
  for (int i = 0; i < x->n_indices; i++)
    m->values[m->n_values++] = x->indices[i];
  if (nisa_is_scalar(x))
    return;
  add_attr(m, k * PARTS + AP, mlirAffineMapAttrGet(x->map));
  add_attr(m, k * PARTS + TILE, mlirDenseI64ArrayGet(m->ctx, x->n_dims, x->tile));
  add_attr(m, k * PARTS + PAR_DIMS, mlirIntegerAttrGet(mlirIntegerTypeGet(m->ctx, 32), x->par_dims));
  if (!mlirTypeIsNull(x->type))
    add_attr(m, k * PARTS + TYPE, mlirTypeAttrGet(x->type));
}

MlirOperation nisa_create(const struct nisa_instr *in, MlirLocation loc, int n_attrs, MlirNamedAttribute const *attrs) {
  struct making m = {.ctx = mlirLocationGetContext(loc)};
  m.keys = keys_of(m.ctx, in->def);
  MlirOperationState st = mlirOperationStateGet(ir_str(in->def->full_name), loc);

  for (int k = 0; k < in->def->n_operands; k++) {
    add_operand(&m, k, &in->operand[k]);
    m.segments[2 * k] = !nisa_is_absent(&in->operand[k]);
    m.segments[2 * k + 1] = in->operand[k].n_indices;
  }
  if (in->def->kind != NISA_RELEASE) {
    add_attr(&m, segments_key(in->def), mlirDenseI32ArrayGet(m.ctx, 2 * in->def->n_operands, m.segments));
    add_attr(&m, engine_key(in->def), mlirStringAttrGet(m.ctx, ir_str(nisa_engine_name(in->engine))));
  }
  mlirOperationStateAddOperands(&st, m.n_values, m.values);
  mlirOperationStateAddAttributes(&st, m.n_attrs, m.attrs);
  mlirOperationStateAddAttributes(&st, n_attrs, attrs);
  if (in->def->kind == NISA_REGISTER_LOAD) {
    MlirType t = nisa_access_element(&in->operand[0]);
    mlirOperationStateAddResults(&st, 1, &t);
  }
  return mlirOperationCreate(&st);
}

bool nisa_is_own_attr(const struct nisa_op_def *def, MlirStringRef name) {
  return nisa_operand_of_attr(def, name) < 0 && !mlirStringRefEqual(name, ir_str("engine")) &&
         !mlirStringRefEqual(name, ir_str("operandSegmentSizes"));
}

MlirOperation nisa_create_like(struct arena *a, const struct nisa_instr *in, MlirOperation like) {
  const intptr_t n = mlirOperationGetNumAttributes(like);
  MlirNamedAttribute *kept = arena_new_array(a, MlirNamedAttribute, (size_t)n);
  int n_kept = 0;
  for (intptr_t k = 0; k < n; k++) {
    MlirNamedAttribute attr = mlirOperationGetAttribute(like, k);
    if (nisa_is_own_attr(in->def, mlirIdentifierStr(attr.name)))
      kept[n_kept++] = attr;
  }
  return nisa_create(in, mlirOperationGetLocation(like), n_kept, kept);
}

MlirOperation nisa_create_alloc(MlirLocation loc, MlirType memref, int64_t alignment) {
  MlirContext ctx = mlirLocationGetContext(loc);
  MlirOperationState st = mlirOperationStateGet(ir_str("nisa.alloc"), loc);

  mlirOperationStateAddResults(&st, 1, &memref);
  if (alignment) {
    MlirAttribute v = mlirIntegerAttrGet(mlirIntegerTypeGet(ctx, 64), alignment);
    MlirNamedAttribute a = mlirNamedAttributeGet(mlirIdentifierGet(ctx, ir_str("alignment")), v);
    mlirOperationStateAddAttributes(&st, 1, &a);
  }
  return mlirOperationCreate(&st);
}

MlirOperation nisa_create_release(MlirLocation loc, MlirValue buffer) {
  const struct nisa_instr in = {.def = nisa_op_def(NISA_RELEASE), .operand = {{.base = buffer}}};
  return nisa_create(&in, loc, 0, NULL);
}

/* ---- making accesses -------------------------------------------------------------------------------------------- */

bool nisa_add_index(struct nisa_access *x, int first, int64_t *sym, MlirValue v, int64_t factor) {
  int k = first;
  while (k < x->n_indices && !mlirValueEqual(x->indices[k], v))
    k++;
  if (k == NISA_RANK_MAX)
    return false;
  if (k == x->n_indices)
    x->indices[x->n_indices++] = v;
  sym[k] += factor;
  return true;
}

static MlirAffineExpr scaled(MlirContext ctx, MlirAffineExpr x, int64_t factor) {
  return factor == 1 ? x : mlirAffineMulExprGet(x, mlirAffineConstantExprGet(ctx, factor));
}

static MlirAffineExpr plus(MlirAffineExpr sum, MlirAffineExpr x) {
  return mlirAffineExprIsNull(sum) ? x : mlirAffineAddExprGet(sum, x);
}

MlirAffineExpr nisa_index_expr(MlirContext ctx, const struct nisa_access *x, const struct nisa_index *i) {
  MlirAffineExpr e = {NULL};
  for (int k = 0; k < x->n_dims; k++)
    if (i->dim[k])
      e = plus(e, scaled(ctx, mlirAffineDimExprGet(ctx, k), i->dim[k]));
  for (int k = 0; k < x->n_indices; k++)
    if (i->sym[k])
      e = plus(e, scaled(ctx, mlirAffineSymbolExprGet(ctx, k), i->sym[k]));
  return i->constant || mlirAffineExprIsNull(e) ? plus(e, mlirAffineConstantExprGet(ctx, i->constant)) : e;
}

struct nisa_access nisa_matrix(MlirContext ctx, MlirValue base, int64_t rows, int64_t columns) {
  return (struct nisa_access){.base = base,
                              .map = mlirAffineMapMultiDimIdentityGet(ctx, 2),
                              .n_dims = 2,
                              .tile = {rows, columns},
                              .par_dims = 1};
}
