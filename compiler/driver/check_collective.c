/* check_collective: gives bodies to collectives, which linalg and memref stages call (linalg/collective.c).
 *
 * One processor takes the place of all devices, as if they held the same data.  all_gather then repeats the data,
 * all_reduce combines it with itself, reduce_scatter returns the first part of that, and all_to_all and
 * collective_permute return the data.  A body is a loop over the elements of the result; for an all_gather along
 * dimension 0, and an all_reduce of two:
 *
 *     affine.parallel (%d0, %d1) = (0, 0) to (8, 6) {          affine.parallel (%d0, %d1) = (0, 0) to (4, 6) {
 *       %x = affine.load %in[%d0 mod 4, %d1]                     %x = affine.load %in[%d0, %d1]
 *       affine.store %x, %out[%d0, %d1]                          %r = scf.for … iter_args(%a = %x) { arith.addf %a, %x }
 *     }                                                          affine.store %r, %out[%d0, %d1]
 */
#include <inttypes.h>
#include <string.h>

#include "mlir-c/BuiltinAttributes.h"
#include "mlir-c/BuiltinTypes.h"

#include "base/buf.h"
#include "driver/check_internal.h"
#include "ir/structured.h"

enum { BODY_MAX = 1 << 20 };

struct body {
  struct buf *out;
  MlirAttribute what; /* nkipy.collective */
  MlirType from, to;  /* memrefs */
  int64_t n_devices;
};

static MlirAttribute entry(const struct body *b, const char *name) {
  return mlirDictionaryAttrGetElementByName(b->what, ir_str(name));
}

static const char *text_entry(const struct body *b, const char *name) {
  MlirAttribute a = entry(b, name);
  return mlirAttributeIsNull(a) || !mlirAttributeIsAString(a) ? "" : mlirStringAttrGetValue(a).data;
}

/* Returns the dimension that the collective works along, -1 if there is none. */
static int64_t dimension(const struct body *b) {
  MlirAttribute a = entry(b, "dim");
  return mlirAttributeIsNull(a) || !mlirAttributeIsAInteger(a) ? -1 : mlirIntegerAttrGetValueInt(a);
}

static int64_t extent(MlirType t, int64_t dim) {
  return dim >= 0 && dim < mlirShapedTypeGetRank(t) ? mlirShapedTypeGetDimSize(t, dim) : 0;
}

/* Returns the number of devices in a group: the number of listed devices, or else the ratio of the two shapes. */
static int64_t group_size(const struct body *b) {
  MlirAttribute groups = entry(b, "replica_groups");
  const int64_t in = extent(b->from, dimension(b)), out = extent(b->to, dimension(b));
  if (!mlirAttributeIsNull(groups) && mlirShapedTypeGetRank(mlirAttributeGetType(groups)) == 2)
    return mlirShapedTypeGetDimSize(mlirAttributeGetType(groups), 1);
  return in && out ? (in > out ? in / out : out / in) : 1;
}

static void append(MlirStringRef s, void *user) {
  buf_append(user, s.data, s.length);
}

static void put_type(const struct body *b, MlirType t) {
  mlirTypePrint(t, append, b->out);
}

/* Appends "%d0, %d1", an index for each dimension of the result; the index of dimension `wraps` is modulo n. */
static void put_indices(const struct body *b, int64_t wraps, int64_t n) {
  for (intptr_t d = 0; d < mlirShapedTypeGetRank(b->to); d++) {
    buf_printf(b->out, "%s%%d%d", d ? ", " : "", (int)d);
    if (d == wraps)
      buf_printf(b->out, " mod %" PRId64, n);
  }
}

/* Returns the operation of arith for op; NULL if there is none. */
static const char *operation(const struct body *b, MlirType element) {
  static const struct {
    const char *op, *flt, *sgn, *uns;
  } known[] = {{"add", "addf", "addi", "addi"},       {"multiply", "mulf", "muli", "muli"},
               {"max", "maximumf", "maxsi", "maxui"}, {"min", "minimumf", "minsi", "minui"},
               {"bitwise_and", NULL, "andi", "andi"}, {"bitwise_or", NULL, "ori", "ori"}};
  const char *op = text_entry(b, "op");
  const bool is_unsigned = !mlirAttributeIsNull(entry(b, "unsigned"));
  for (size_t k = 0; k < sizeof known / sizeof *known; k++)
    if (!strcmp(op, known[k].op))
      return mlirTypeIsAFloat(element) ? known[k].flt : is_unsigned ? known[k].uns : known[k].sgn;
  return NULL;
}

/* Appends a loop that combines %x with itself into %r. */
static void put_combination(const struct body *b, const char *op, MlirType element) {
  buf_printf(b->out,
             "%%one = arith.constant 1 : index\n%%n = arith.constant %" PRId64 " : index\n"
             "%%r = scf.for %%k = %%one to %%n step %%one iter_args(%%a = %%x) -> (",
             b->n_devices);
  put_type(b, element);
  buf_printf(b->out, ") {\n%%s = arith.%s %%a, %%x : ", op);
  put_type(b, element);
  buf_puts(b->out, "\nscf.yield %s : ");
  put_type(b, element);
  buf_puts(b->out, "\n}\n");
}

static void put_element(const struct body *b) {
  const bool gathers = !strcmp(text_entry(b, "kind"), "all_gather");
  MlirType element = mlirShapedTypeGetElementType(b->to);
  const char *op = operation(b, element);

  buf_puts(b->out, "%x = affine.load %in[");
  put_indices(b, gathers ? dimension(b) : -1, extent(b->from, dimension(b)));
  buf_puts(b->out, "] : ");
  put_type(b, b->from);
  buf_puts(b->out, "\n");
  if (op)
    put_combination(b, op, element);
  buf_printf(b->out, "affine.store %s, %%out[", op ? "%r" : "%x");
  put_indices(b, -1, 0);
}

/* Returns the contiguous memref of t's shape, such as memref<4x6xf32>. */
static MlirType packed(MlirType t) {
  int64_t dims[HLO_RANK_MAX];
  const intptr_t rank = mlirShapedTypeGetRank(t);
  for (intptr_t d = 0; d < rank && d < HLO_RANK_MAX; d++)
    dims[d] = mlirShapedTypeGetDimSize(t, d);
  return mlirMemRefTypeContiguousGet(mlirShapedTypeGetElementType(t), rank, dims, mlirAttributeGetNull());
}

static void put_loops(const struct body *b) {
  const int rank = (int)mlirShapedTypeGetRank(b->to);
  if (!rank)
    return;
  buf_puts(b->out, "affine.parallel (");
  put_indices(b, -1, 0);
  for (int end = 0; end < 2; end++) {
    buf_puts(b->out, end ? ") to (" : ") = (");
    for (int d = 0; d < rank; d++)
      buf_printf(b->out, "%s%" PRId64, d ? ", " : "", end ? mlirShapedTypeGetDimSize(b->to, d) : 0);
  }
  buf_puts(b->out, ") {\n");
}

static void put_function(const struct body *b) {
  MlirType out = packed(b->to);
  const bool same = mlirTypeEqual(out, b->to);

  buf_puts(b->out, "func.func private @f(%in: ");
  put_type(b, b->from);
  buf_puts(b->out, ") -> ");
  put_type(b, b->to);
  buf_puts(b->out, " {\n%out = memref.alloc() : ");
  put_type(b, out);
  buf_puts(b->out, "\n");
  put_loops(b);
  put_element(b);
  buf_puts(b->out, "] : ");
  put_type(b, out);
  buf_puts(b->out, mlirShapedTypeGetRank(b->to) ? "\n}\n" : "\n");
  if (!same) {
    buf_puts(b->out, "%cast = memref.cast %out : ");
    put_type(b, out);
    buf_puts(b->out, " to ");
    put_type(b, b->to);
  }
  buf_printf(b->out, "\nreturn %s : ", same ? "%out" : "%cast");
  put_type(b, b->to);
  buf_puts(b->out, "\n}\n");
}

/* Moves the body of the only function of `text` into f. */
static enum status take_body(struct ir *ir, MlirOperation f, const struct buf *text, struct arena *a,
                             struct diags *ds) {
  MlirModule m;
  enum status st =
      buf_status(text) ? buf_status(text) : ir_parse(ir, buf_text(text), text->len, "collective", a, ds, &m);
  if (st)
    return st;
  MlirOperation made = mlirBlockGetFirstOperation(mlirModuleGetBody(m));
  mlirRegionTakeBody(mlirOperationGetRegion(f, 0), mlirOperationGetRegion(made, 0));
  mlirModuleDestroy(m);
  return ST_OK;
}

MlirAttribute check_collective_of(MlirOperation function) {
  MlirAttribute a = mlirOperationGetAttributeByName(function, ir_str(CHECK_COLLECTIVE));
  return mlirAttributeIsNull(a) || !mlirAttributeIsADictionary(a) ? mlirAttributeGetNull() : a;
}

static enum status give_body(struct ir *ir, MlirOperation f, struct arena *a, struct diags *ds) {
  MlirType t = mlirTypeAttrGetValue(mlirOperationGetAttributeByName(f, ir_str("function_type")));
  if (mlirFunctionTypeGetNumInputs(t) != 1 || mlirFunctionTypeGetNumResults(t) != 1)
    return check_refuse(ds, "a collective takes and returns one array");
  struct buf text;
  struct body b = {.out = &text,
                   .what = check_collective_of(f),
                   .from = mlirFunctionTypeGetInput(t, 0),
                   .to = mlirFunctionTypeGetResult(t, 0)};
  b.n_devices = group_size(&b);
  buf_init(&text, BODY_MAX);
  put_function(&b);
  enum status st = take_body(ir, f, &text, a, ds);
  buf_clear(&text);
  mlirOperationRemoveDiscardableAttributeByName(f, ir_str(CHECK_COLLECTIVE));
  return st;
}

enum status check_give_bodies(struct ir *ir, MlirOperation module, struct arena *a, struct diags *ds) {
  struct ir_ops functions = ir_collect_named(a, module, "func.func");
  enum status st = ST_OK;
  for (int k = 0; !st && k < functions.n; k++)
    if (!mlirAttributeIsNull(check_collective_of(functions.v[k])))
      st = give_body(ir, functions.v[k], a, ds);
  return st;
}
