/* nisa: names, attributes and the table of operations.  See nisa.h. */
#include "nisa/nisa.h"

#include <assert.h>
#include <string.h>

#include "mlir-c/AffineExpr.h"
#include "mlir-c/BuiltinAttributes.h"
#include "mlir-c/BuiltinTypes.h"

#include "ir/query.h"

/* ---- names ------------------------------------------------------------------------------------------------------ */

/* Spaces that an instruction can use: MEM_HBM … MEM_SHARED_HBM. */
enum { N_SPACES = MEM_SHARED_HBM + 1 };
static const char *const space_names[N_SPACES] = {"", "hbm", "psum", "sbuf", "shared_hbm"};
static const char *const engine_names[NISA_ENGINE_COUNT] = {"", "tensor", "vector", "scalar", "gpsimd", "dma", "sync"};

const char *nisa_space_name(enum mem_space s) {
  assert((int)s < N_SPACES);
  return space_names[s];
}

const char *nisa_engine_name(enum nisa_engine e) {
  assert(e < NISA_ENGINE_COUNT);
  return engine_names[e];
}

enum nisa_engine nisa_engine_from_name(MlirStringRef name) {
  for (int e = 1; e < NISA_ENGINE_COUNT; e++)
    if (mlirStringRefEqual(name, ir_str(engine_names[e])))
      return (enum nisa_engine)e;
  return NISA_ENGINE_NONE;
}

/* An attribute that IRDL declares has no accessors in C; its text is its identity. */
static MlirAttribute named_attr(MlirContext ctx, const char *kind, const char *value) {
  char text[64] = "#nisa.";
  assert(strlen(text) + strlen(kind) + strlen(value) + sizeof "<\"\">" <= sizeof text);
  strcat(strcat(strcat(strcat(text, kind), "<\""), value), "\">");
  return mlirAttributeParseGet(ctx, ir_str(text));
}

/* The attributes of all spaces: to parse one takes as long as a pass over a small function. */
static const MlirAttribute *spaces(MlirContext ctx) {
  static _Thread_local struct {
    const void *context; /* of which they are */
    unsigned made;       /* another one may have come to stand where it stood */
    MlirAttribute v[N_SPACES];
  } known;
  if (known.context != ctx.ptr || known.made != ir_contexts_made()) {
    for (int s = 1; s < N_SPACES; s++)
      known.v[s] = named_attr(ctx, "mem", space_names[s]);
    known.context = ctx.ptr;
    known.made = ir_contexts_made();
  }
  return known.v;
}

MlirAttribute nisa_space_attr(MlirContext ctx, enum mem_space s) {
  assert(s > MEM_NONE && (int)s < N_SPACES);
  return spaces(ctx)[s];
}

enum mem_space nisa_type_space(MlirType memref) {
  if (!mlirTypeIsAMemRef(memref))
    return MEM_NONE;
  MlirAttribute space = mlirMemRefTypeGetMemorySpace(memref);
  const MlirAttribute *known = spaces(mlirTypeGetContext(memref));
  for (int s = 1; s < N_SPACES; s++)
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

#define NONE 0
#define TENSOR (1u << NISA_ENGINE_TENSOR)
#define VECTOR (1u << NISA_ENGINE_VECTOR)
#define SCALAR (1u << NISA_ENGINE_SCALAR)
#define GPSIMD (1u << NISA_ENGINE_GPSIMD)
#define DMA (1u << NISA_ENGINE_DMA)
#define SYNC (1u << NISA_ENGINE_SYNC)

#define R(n) {.name = n, .reads = true, .may_be_access = true}
#define W(n) {.name = n, .writes = true, .may_be_access = true}
#define U(n) {.name = n, .reads = true, .writes = true, .may_be_access = true}
#define X(n) {.name = n}
#define S(n) {.name = n, .reads = true, .may_be_scalar = true}
#define E(n) {.name = n, .reads = true, .may_be_access = true, .may_be_scalar = true}
/* OPT(E("x")) is OPT_E("x") */
#define OPT(x) OPT_##x
#define OPT_E(n) {.name = n, .reads = true, .may_be_access = true, .may_be_scalar = true, .is_optional = true}
#define OPT_S(n) {.name = n, .reads = true, .may_be_scalar = true, .is_optional = true}
#define OPT_W(n) {.name = n, .writes = true, .may_be_access = true, .is_optional = true}

/* Engines as a list of bits, of which the first is the usual one. */
#define ENGINES(...) {__VA_ARGS__}
#define OPERANDS(...) {__VA_ARGS__}
static const struct {
  enum nisa_kind kind;
  const char *name, *full_name;
  unsigned engines[3];
  struct nisa_operand_def operand[NISA_OPERANDS_MAX];
} table[NISA_KIND_COUNT] = {
#define NISA_OP(e, n, engine_list, operand_list) {e, n, "nisa." n, engine_list, operand_list},
#include "nisa/ops.def"
#undef NISA_OP
};

static struct nisa_op_def defs[NISA_KIND_COUNT];

static enum nisa_engine engine_of_bit(unsigned bit) {
  for (int e = 1; e < NISA_ENGINE_COUNT; e++)
    if (bit == 1u << e)
      return (enum nisa_engine)e;
  return NISA_ENGINE_NONE;
}

const struct nisa_op_def *nisa_op_def(enum nisa_kind k) {
  struct nisa_op_def *d = &defs[k];
  if (d->name)
    return d;
  assert(table[k].kind == k); /* ops.def is in the order of the enum, which it also makes */
  for (int i = 0; i < NISA_OPERANDS_MAX && table[k].operand[i].name; i++)
    d->operand[d->n_operands++] = table[k].operand[i];
  for (int i = 0; i < 3; i++)
    d->engines |= table[k].engines[i];
  d->usual_engine = engine_of_bit(table[k].engines[0]);
  d->kind = table[k].kind;
  d->full_name = table[k].full_name;
  d->name = table[k].name;
  return d;
}

const struct nisa_op_def *nisa_op_of(MlirOperation op) {
  for (int k = 0; k < NISA_KIND_COUNT; k++)
    if (ir_is(op, table[k].full_name))
      return nisa_op_def((enum nisa_kind)k);
  return NULL;
}

const char *nisa_text_attr(MlirOperation op, const char *name) {
  MlirAttribute a = ir_attr(op, name);
  return !mlirAttributeIsNull(a) && mlirAttributeIsAString(a) ? mlirStringAttrGetValue(a).data : "";
}

/* ---- the machine ------------------------------------------------------------------------------------------------ */

const struct nisa_machine *nisa_machine(enum target t) {
  /* A result of v4 may use all banks: 4096 f32 or 8192 bf16. */
  static const struct nisa_machine machines[] = {
      [TARGET_TRN1] = {NISA_PARTITIONS, 180224, 16384, 2048, 128, 128, 512, true, false, 4},
      [TARGET_TRN2] = {NISA_PARTITIONS, 212984, 16384, 2048, 128, 128, 512, true, false, 4},
      [TARGET_TRN3] = {NISA_PARTITIONS, 245752, 16384, 2048, 128, 128, 8192, false, true, 4},
  };
  assert(t < sizeof machines / sizeof *machines && machines[t].partitions);
  return &machines[t];
}

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
