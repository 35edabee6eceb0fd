/* nisa: attributes and types of the dialect, and the names of operations.  See nisa.h. */
#include "nisa/nisa.h"

#include <assert.h>
#include <string.h>

#include "mlir-c/AffineExpr.h"
#include "mlir-c/BuiltinAttributes.h"
#include "mlir-c/BuiltinTypes.h"

#include "ir/query.h"

/* ---- names ------------------------------------------------------------------------------------------------------ */

enum nisa_engine nisa_engine_from_name(MlirStringRef name) {
  for (int e = 1; e < NISA_ENGINE_COUNT; e++) {
    const char *known = nisa_engine_name((enum nisa_engine)e);
    if (strlen(known) == name.length && !memcmp(name.data, known, name.length))
      return (enum nisa_engine)e;
  }
  return NISA_ENGINE_NONE;
}

/* An attribute that IRDL declares has no accessors in C; it is identified by its text. */
static MlirAttribute named_attr(MlirContext ctx, const char *kind, const char *value) {
  char text[64] = "#nisa.";
  assert(strlen(text) + strlen(kind) + strlen(value) + sizeof "<\"\">" <= sizeof text);
  strcat(strcat(strcat(strcat(text, kind), "<\""), value), "\">");
  return mlirAttributeParseGet(ctx, ir_str(text));
}

/* Returns the attributes of all spaces.  They are cached, because parsing one takes as long as a pass over a small
 * function. */
static const MlirAttribute *spaces(MlirContext ctx) {
  static _Thread_local struct {
    const void *context; /* the context that they belong to */
    unsigned made;       /* detects another context at the same address */
    MlirAttribute v[NISA_SPACES];
  } known;
  if (known.context != ctx.ptr || known.made != ir_contexts_made()) {
    for (int s = 1; s < NISA_SPACES; s++)
      known.v[s] = named_attr(ctx, "mem", nisa_space_name((enum mem_space)s));
    known.context = ctx.ptr;
    known.made = ir_contexts_made();
  }
  return known.v;
}

MlirAttribute nisa_space_attr(MlirContext ctx, enum mem_space s) {
  assert(s > MEM_NONE && (int)s < NISA_SPACES);
  return spaces(ctx)[s];
}

enum mem_space nisa_type_space(MlirType memref) {
  if (!mlirTypeIsAMemRef(memref))
    return MEM_NONE;
  MlirAttribute space = mlirMemRefTypeGetMemorySpace(memref);
  const MlirAttribute *known = spaces(mlirTypeGetContext(memref));
  for (int s = 1; s < NISA_SPACES; s++)
    if (mlirAttributeEqual(space, known[s]))
      return (enum mem_space)s;
  return MEM_NONE;
}

MlirAttribute nisa_target_attr(MlirContext ctx, enum target t) {
  return named_attr(ctx, "target", target_name(t));
}

bool nisa_module_target(MlirOperation module, enum target *out) {
  MlirAttribute a = ir_attr(module, "nisa.target");
  for (int t = TARGET_TRN1; t < TARGET_COUNT && !mlirAttributeIsNull(a); t++)
    if (mlirAttributeEqual(a, nisa_target_attr(mlirOperationGetContext(module), (enum target)t))) {
      *out = (enum target)t;
      return true;
    }
  return false;
}

/* ---- operations ------------------------------------------------------------------------------------------------- */

bool nisa_keeps_order(MlirOperation op) {
  return !mlirAttributeIsNull(ir_attr(op, "label")) || !mlirAttributeIsNull(ir_attr(op, "after")) ||
         !mlirAttributeIsNull(ir_attr(op, "in_order"));
}

const struct nisa_op_def *nisa_op_of(MlirOperation op) {
  const MlirStringRef name = mlirIdentifierStr(mlirOperationGetName(op));
  return nisa_op_named(name.data, name.length);
}

const char *nisa_text_attr(MlirOperation op, const char *name) {
  MlirAttribute a = ir_attr(op, name);
  return !mlirAttributeIsNull(a) && mlirAttributeIsAString(a) ? mlirStringAttrGetValue(a).data : "";
}

/* ---- places ----------------------------------------------------------------------------------------------------- */

static const char *const place_attrs[] = {"partition", "bank", "offset", "copies", "stride"};
enum { PLACE_ATTRS = sizeof place_attrs / sizeof *place_attrs };

/* The i64 attribute of this name; false if it has another type, or if it is missing and must not be. */
static bool read_i64(MlirOperation op, const char *name, bool is_optional, int64_t *out) {
  MlirAttribute v = ir_attr(op, name);
  if (mlirAttributeIsNull(v))
    return is_optional;
  if (!mlirAttributeIsAInteger(v) || !mlirTypeIsAInteger(mlirAttributeGetType(v)) ||
      !mlirIntegerTypeIsSignless(mlirAttributeGetType(v)) || mlirIntegerTypeGetWidth(mlirAttributeGetType(v)) != 64)
    return false;
  *out = mlirIntegerAttrGetValueInt(v);
  return true;
}

bool nisa_has_place_attr(MlirOperation alloc) {
  for (int k = 0; k < PLACE_ATTRS; k++)
    if (!mlirAttributeIsNull(ir_attr(alloc, place_attrs[k])))
      return true;
  return false;
}

bool nisa_place_of(MlirOperation alloc, struct nisa_place *out) {
  const enum mem_space s = nisa_type_space(mlirValueGetType(mlirOperationGetResult(alloc, 0)));
  *out = (struct nisa_place){.copies = 1};
  return (s != MEM_SBUF || read_i64(alloc, "partition", false, &out->partition)) &&
         (s != MEM_PSUM || read_i64(alloc, "bank", false, &out->bank)) &&
         read_i64(alloc, "offset", false, &out->offset) && read_i64(alloc, "copies", true, &out->copies) &&
         read_i64(alloc, "stride", true, &out->stride);
}

void nisa_set_place(MlirOperation alloc, const struct nisa_place *p) {
  const enum mem_space s = nisa_type_space(mlirValueGetType(mlirOperationGetResult(alloc, 0)));
  const int64_t values[PLACE_ATTRS] = {p->partition, p->bank, p->offset, p->copies, p->stride};
  const bool is_used[PLACE_ATTRS] = {s == MEM_SBUF, s == MEM_PSUM, true, p->copies > 1, p->copies > 1};
  MlirType i64 = mlirIntegerTypeGet(mlirOperationGetContext(alloc), 64);
  for (int k = 0; k < PLACE_ATTRS; k++)
    if (is_used[k])
      ir_set_attr(alloc, place_attrs[k], mlirIntegerAttrGet(i64, values[k]));
}

bool nisa_address_of(MlirOperation alloc, struct nisa_place *out) {
  const enum mem_space s = nisa_type_space(mlirValueGetType(mlirOperationGetResult(alloc, 0)));
  MlirAttribute a = ir_attr(alloc, "address");
  if (mlirAttributeIsNull(a) || !mlirAttributeIsADenseI64Array(a) || mlirDenseArrayGetNumElements(a) != 2 ||
      !mem_is_on_chip(s))
    return false;
  *out = (struct nisa_place){.offset = mlirDenseI64ArrayGetElement(a, 1), .copies = 1};
  *(s == MEM_SBUF ? &out->partition : &out->bank) = mlirDenseI64ArrayGetElement(a, 0);
  return true;
}

struct box {
  int64_t from, to, first, last; /* bytes, over the banks of PSUM; partitions */
};

static bool read_box(MlirOperation alloc, const struct nisa_machine *m, struct box *out) {
  MlirType t = mlirValueGetType(mlirOperationGetResult(alloc, 0));
  struct nisa_place p;
  if (!nisa_address_of(alloc, &p))
    return false;
  out->from = p.bank * m->psum_bank_bytes + p.offset;
  out->to = out->from + nisa_type_bytes(t);
  out->first = p.partition;
  out->last = p.partition + mlirShapedTypeGetDimSize(t, 0) - 1;
  return true;
}

bool nisa_addresses_meet(MlirOperation x, MlirOperation y, const struct nisa_machine *m) {
  struct box a, b;
  return nisa_type_space(mlirValueGetType(mlirOperationGetResult(x, 0))) ==
             nisa_type_space(mlirValueGetType(mlirOperationGetResult(y, 0))) &&
         read_box(x, m, &a) && read_box(y, m, &b) && a.from < b.to && b.from < a.to && a.first <= b.last &&
         b.first <= a.last;
}

void nisa_set_address(MlirOperation alloc, const struct nisa_place *p) {
  const enum mem_space s = nisa_type_space(mlirValueGetType(mlirOperationGetResult(alloc, 0)));
  const int64_t at[] = {s == MEM_SBUF ? p->partition : p->bank, p->offset};
  ir_set_attr(alloc, "address", mlirDenseI64ArrayGet(mlirOperationGetContext(alloc), 2, at));
}

/* ---- the machine ------------------------------------------------------------------------------------------------ */

int64_t nisa_element_bytes(MlirType t) {
  if (mlirTypeIsAInteger(t)) {
    unsigned bits = mlirIntegerTypeGetWidth(t);
    return bits == 1 ? 1 : bits % 8 ? 0 : bits / 8;
  }
  if (mlirTypeIsAFloat(t))
    return mlirFloatTypeGetWidth(t) / 8;
  return 0;
}

int64_t nisa_type_bytes(MlirType memref) {
  int64_t n = nisa_element_bytes(mlirShapedTypeGetElementType(memref));
  const bool on_chip = mem_is_on_chip(nisa_type_space(memref));

  for (intptr_t d = on_chip ? 1 : 0; d < mlirShapedTypeGetRank(memref); d++)
    if (mlirShapedTypeIsDynamicDim(memref, d) || __builtin_mul_overflow(n, mlirShapedTypeGetDimSize(memref, d), &n))
      return -1;
  return n;
}
