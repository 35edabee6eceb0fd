/* verify: checks NISA against the rules of the hardware.  This file visits all operations and checks each operand
 * separately.
 *
 * The checks of an operand (from the architecture guides of trn1 and trn2) are: the engine reaches its memory; the engine
 * computes on its type; its range is inside the buffer.  More checks apply to engines, but not to DMA, for which a partition is an address
 * like any other: partitions are consecutive, at most 128, and start at a partition that the hardware allows (more
 * than 64 at 0, more than 32 at 0 or 64, otherwise at a multiple of 32); there are at most four free dimensions
 * after merging those that are contiguous in memory, and extents and strides fit their fields.
 *
 * The bounds of an index follow from constants, loops and arith.  An index without bounds is accepted, except where
 * the hardware must know it (start partitions).
 */
#include "nisa/verify.h"

#include <stdarg.h>
#include <string.h>

#include "mlir-c/BuiltinAttributes.h"
#include "mlir-c/BuiltinTypes.h"

#include "ir/internal.h"
#include "ir/structured.h"
#include "nisa/cores.h"
#include "nisa/range.h"

enum { EXTENT_MAX = 65535, STRIDE_MAX = 32767 };

struct diag *nisa_complain(struct nisa_check *c, MlirOperation op, const char *fmt, ...) {
  va_list ap;
  va_start(ap, fmt);
  const char *text = arena_vprintf(c->arena, fmt, ap);
  va_end(ap);
  struct diag *d = diag_add(c->ds, DS_ERROR, DG_IR_INVALID, ir_first_place(c->arena, mlirOperationGetLocation(op)),
                            "%s: %s", mlirIdentifierStr(mlirOperationGetName(op)).data, text);
  d->stage = c->stage;
  c->n_errors++;
  return d;
}

/* ---- memories and types ----------------------------------------------------------------------------------------- */

#define BIT(s) (1u << (s))

static void check_memory(struct nisa_check *c, const struct nisa_instr *in, const struct nisa_operand_def *d,
                         enum mem_space s) {
  const char *engine = nisa_engine_name(in->engine);

  if (in->def->kind == NISA_REGISTER_LOAD) { /* every engine's sequencer loads registers as sync does */
    if (!(nisa_reach(NISA_ENGINE_SYNC, false) & BIT(s)))
      nisa_complain(c, in->op, "%s is in %s, from which no register is loaded", d->name, nisa_space_name(s));
    return;
  }
  if (d->writes && !(nisa_reach(in->engine, true) & BIT(s)))
    nisa_complain(c, in->op, "%s is in %s, which the %s engine does not write", d->name, nisa_space_name(s), engine);
  /* dst of the tensor engine is not read by the engine: PSUM adds to it */
  else if (d->reads && !d->writes && !(nisa_reach(in->engine, false) & BIT(s)))
    nisa_complain(c, in->op, "%s is in %s, which the %s engine does not read", d->name, nisa_space_name(s), engine);
}

static void check_type(struct nisa_check *c, const struct nisa_instr *in, const struct nisa_operand_def *d,
                       MlirType t) {
  const bool wide = nisa_element_bytes(t) == 0 || nisa_element_bytes(t) > 4;

  if (wide && in->engine != NISA_ENGINE_DMA)
    nisa_complain(c, in->op, "the elements of %s have a type that the %s engine does not have", d->name,
                  nisa_engine_name(in->engine));
  if (mlirTypeIsAFloat8E4M3FN(t) && c->target != TARGET_TRN3 && in->engine != NISA_ENGINE_DMA) {
    struct diag *e = nisa_complain(c, in->op, "%s has elements of f8E4M3FN, which only trn3 computes on", d->name);
    e->code = DG_UNSUPPORTED_DTYPE; /* the kernel is valid on another machine */
    e->hint = "compile for trn3, or use float8_e4m3";
  }
}

/* ---- index ranges ----------------------------------------------------------------------------------------------- */

/* Computes the smallest and the largest value of an index; false if a symbol is not bounded. */
static bool index_range(const struct nisa_access *x, const struct nisa_index *i, int64_t *low, int64_t *high) {
  *low = *high = i->constant;
  for (int k = 0; k < x->n_dims; k++)
    *high += i->dim[k] * (x->tile[k] - 1);
  for (int k = 0; k < x->n_indices; k++) {
    int64_t a, b;
    if (!i->sym[k])
      continue;
    if (!nisa_bounds(x->indices[k], &a, &b) || __builtin_mul_overflow(i->sym[k], a, &a) ||
        __builtin_mul_overflow(i->sym[k], b, &b) || __builtin_add_overflow(*low, a < b ? a : b, low) ||
        __builtin_add_overflow(*high, a < b ? b : a, high))
      return false;
  }
  return true;
}

/* True if the tile reaches over more than `extent` values of an index, whatever the symbols are. */
static bool is_too_wide(const struct nisa_access *x, const struct nisa_index *i, int64_t extent) {
  int64_t span = 0;
  for (int k = 0; k < x->n_dims; k++)
    span += i->dim[k] * (x->tile[k] - 1);
  return span >= extent;
}

static bool has_negative(const struct nisa_access *x, const struct nisa_index *i) {
  for (int k = 0; k < x->n_dims; k++)
    if (i->dim[k] < 0)
      return true;
  return false;
}

/* ---- partitions ------------------------------------------------------------------------------------------------- */

/* True if the partition dimensions count consecutive partitions in row-major order, or if no dimension does and one
 * partition serves for all (*repeats). */
static bool counts_partitions(const struct nisa_access *x, const struct nisa_index *i, bool *repeats) {
  int64_t expected = 1, sum = 0;

  for (int k = x->par_dims; k < x->n_dims; k++)
    if (i->dim[k] && x->tile[k] > 1)
      return false;
  for (int k = 0; k < x->par_dims; k++)
    sum += x->tile[k] > 1 ? i->dim[k] : 0;
  *repeats = sum == 0 && nisa_partitions(x) > 1;
  if (sum == 0)
    return true;
  for (int k = x->par_dims - 1; k >= 0; k--) {
    if (x->tile[k] > 1 && i->dim[k] != expected)
      return false;
    expected *= x->tile[k];
  }
  return true;
}

static void check_start(struct nisa_check *c, const struct nisa_instr *in, const char *name,
                        const struct nisa_access *x, const struct nisa_index *i) {
  int64_t n = nisa_partitions(x), unit = n > 64 ? 128 : n > 32 ? 64 : 32, start = i->constant;
  bool legal = start % unit == 0;

  for (int k = 0; k < x->n_indices; k++) {
    int64_t low, high;
    if (!i->sym[k] || (nisa_bounds(x->indices[k], &low, &high) && low == 0 && high == 0))
      continue;
    legal &= i->sym[k] % unit * (nisa_divisor(x->indices[k]) % unit) % unit == 0;
  }
  if (!legal)
    nisa_complain(c, in->op, "%s takes %lld partitions, which must start at %s", name, (long long)n,
                  n > 64   ? "partition 0"
                  : n > 32 ? "partition 0 or 64"
                           : "partition 0, 32, 64 or 96");
}

static void check_partitions(struct nisa_check *c, const struct nisa_instr *in, const struct nisa_operand_def *d,
                             const struct nisa_access *x, const struct nisa_index *i) {
  bool repeats;

  if (nisa_partitions(x) > c->machine->partitions)
    nisa_complain(c, in->op, "%s takes %lld partitions; there are %lld", d->name, (long long)nisa_partitions(x),
                  (long long)c->machine->partitions);
  if (!counts_partitions(x, i, &repeats))
    nisa_complain(c, in->op, "%s does not take consecutive partitions", d->name);
  else if (repeats)
    nisa_complain(c, in->op, "%s repeats one partition, which only DMA can read", d->name);
  else if (in->engine != NISA_ENGINE_SYNC && in->def->kind != NISA_REGISTER_LOAD)
    check_start(c, in, d->name, x, i);
}

/* ---- free dimensions -------------------------------------------------------------------------------------------- */

/* Returns the distance, in elements, between neighbours along tile dimension k, inside a partition. */
static int64_t free_stride(const struct nisa_access *x, const struct nisa_index *i, int k) {
  MlirType t = mlirValueGetType(x->base);
  int64_t unit = 1, stride = 0;

  for (int r = (int)mlirShapedTypeGetRank(t) - 1; r >= 1; r--) {
    stride += i[r].dim[k] * unit;
    unit *= nisa_access_extent(x, r);
  }
  return stride;
}

static void check_pattern(struct nisa_check *c, const struct nisa_instr *in, const struct nisa_operand_def *d,
                          const struct nisa_access *x, const struct nisa_index *i) {
  int64_t extent = 1, stride = 0;
  int n = 0;

  for (int k = x->par_dims; k < x->n_dims; k++) {
    if (x->tile[k] == 1)
      continue;
    int64_t s = free_stride(x, i, k);
    if (n && stride == s * x->tile[k]) {
      extent *= x->tile[k];
    } else {
      extent = x->tile[k];
      n++;
    }
    stride = s;
    if (extent > EXTENT_MAX)
      nisa_complain(c, in->op, "%s has a dimension of %lld elements; a pattern counts to %d", d->name,
                    (long long)extent, EXTENT_MAX);
    if (stride > STRIDE_MAX)
      nisa_complain(c, in->op, "%s has a stride of %lld elements; a pattern has at most %d", d->name, (long long)stride,
                    STRIDE_MAX);
  }
  if (n > c->machine->free_dims)
    nisa_complain(c, in->op, "%s needs %d free dimensions; an access pattern has %d", d->name, n,
                  c->machine->free_dims);
}

/* Checks that every partition has the same access pattern. */
static void check_uniform(struct nisa_check *c, const struct nisa_instr *in, const struct nisa_operand_def *d,
                          const struct nisa_access *x, const struct nisa_index *i) {
  for (int k = 0; k < x->par_dims; k++)
    if (x->tile[k] > 1 && free_stride(x, i, k)) {
      nisa_complain(c, in->op, "%s is addressed differently in every partition", d->name);
      return;
    }
}

/* Checks that no element of a destination is written several times because a dimension repeats.  The partitions of a scatter
 * go where its indices say. */
static void check_written_once(struct nisa_check *c, const struct nisa_instr *in, const struct nisa_operand_def *d,
                               const struct nisa_access *x, const struct nisa_index *i) {
  for (int k = 0; k < x->n_dims; k++) {
    int64_t sum = 0;
    for (int r = 0; r < mlirShapedTypeGetRank(mlirValueGetType(x->base)); r++)
      sum += i[r].dim[k];
    if (x->tile[k] > 1 && !sum && !(k < x->par_dims && nisa_indirect_operand(in->def->kind) == 0))
      nisa_complain(c, in->op, "%s is written several times: no index depends on d%d", d->name, k);
  }
}

/* ---- an operand ------------------------------------------------------------------------------------------------- */

/* Checks operand k: memory, types, partitions, access pattern. */
static void check_access(struct nisa_check *c, const struct nisa_instr *in, int k) {
  const struct nisa_operand_def *d = &in->def->operand[k];
  const struct nisa_access *x = &in->operand[k];
  MlirType t = mlirValueGetType(x->base);
  enum mem_space s = nisa_access_space(x);
  struct nisa_index i[NISA_RANK_MAX];
  int64_t low, high;

  if (s == MEM_NONE) {
    nisa_complain(c, in->op, "%s has no memory space", d->name);
    return;
  }
  if (!mlirShapedTypeHasStaticShape(t) || mlirShapedTypeGetRank(t) > NISA_RANK_MAX) {
    nisa_complain(c, in->op, "the shape of %s is not static, or has too many dimensions", d->name);
    return;
  }
  check_memory(c, in, d, s);
  check_type(c, in, d, nisa_access_element(x));
  for (int r = 0; r < mlirShapedTypeGetRank(t); r++) {
    if (!nisa_access_index(x, r, &i[r]) || has_negative(x, &i[r])) {
      nisa_complain(c, in->op, "index %d of %s is no sum of coordinates and indices", r, d->name);
      return;
    }
    if (!index_range(x, &i[r], &low, &high)) {
      if (is_too_wide(x, &i[r], nisa_access_extent(x, r)))
        nisa_complain(c, in->op, "the tile of %s is larger than dimension %d, which has %lld", d->name, r,
                      (long long)nisa_access_extent(x, r));
    } else if (low < 0 || high >= nisa_access_extent(x, r))
      nisa_complain(c, in->op, "index %d of %s goes from %lld to %lld; the dimension has %lld", r, d->name,
                    (long long)low, (long long)high, (long long)nisa_access_extent(x, r));
  }
  if (d->writes)
    check_written_once(c, in, d, x, i);
  /* for DMA a partition is an address like any other */
  if (!mem_is_on_chip(s) || mlirShapedTypeGetRank(t) < 2 || in->engine == NISA_ENGINE_DMA)
    return;
  check_partitions(c, in, d, x, &i[0]);
  check_uniform(c, in, d, x, i);
  check_pattern(c, in, d, x, i);
}

/* ---- the module ------------------------------------------------------------------------------------------------- */

static bool is_allowed(MlirOperation op) {
  static const char *const names[] = {"builtin.module",
                                      "func.func",
                                      "func.return",
                                      "scf.for",
                                      "scf.while",
                                      "scf.condition",
                                      "scf.if",
                                      "scf.yield",
                                      "memref.global",
                                      "memref.get_global",
                                      "memref.collapse_shape",
                                      "memref.expand_shape",
                                      "memref.subview",
                                      "memref.cast",
                                      "memref.reinterpret_cast",
                                      "memref.transpose"};
  if (ir_is_of(op, "arith."))
    return true;
  for (size_t k = 0; k < sizeof names / sizeof *names; k++)
    if (ir_is(op, names[k]))
      return true;
  return false;
}

/* Checks that a while carries no values: registers do not keep data from one iteration to the next. */
static void check_while(struct nisa_check *c, MlirOperation loop) {
  if (mlirOperationGetNumOperands(loop) || mlirOperationGetNumResults(loop))
    nisa_complain(c, loop, "what it carries must be in memory: it may have no operands and no results");
}

static void check_op(struct nisa_check *c, MlirOperation op) {
  struct nisa_instr in;
  const char *why;

  if (!nisa_op_of(op)) {
    if (ir_is(op, "scf.while"))
      check_while(c, op);
    if (!is_allowed(op) && !nisa_sync_of(op) && !nisa_is_stream(op) && !nisa_is_core(op))
      nisa_complain(c, op, "it is not a NISA operation, and it may not stand beside them");
    for (intptr_t k = 0; k < mlirOperationGetNumResults(op) && !nisa_sync_of(op); k++)
      if (mem_is_on_chip(nisa_type_space(mlirValueGetType(mlirOperationGetResult(op, k)))))
        nisa_complain(c, op, "only nisa.alloc makes buffers on chip");
    return;
  }
  if (!nisa_read(op, &in, &why)) {
    nisa_complain(c, op, "%s", why);
    return;
  }
  if (in.def->kind == NISA_ALLOC || in.def->kind == NISA_RELEASE)
    return;
  if (!(in.def->engines & BIT(in.engine))) {
    nisa_complain(c, op, "no such instruction on this engine");
    return;
  }
  int before = c->n_errors;
  for (int k = 0; k < in.def->n_operands; k++)
    if (!nisa_is_absent(&in.operand[k]) && !nisa_is_scalar(&in.operand[k]))
      check_access(c, &in, k);
  if (c->n_errors == before)
    nisa_check_instr(c, &in);
}

/* The stage whose form the module has: stages add places, and then streams. */
static const char *stage_of(const struct ir_ops *all) {
  const char *stage = "linalg-to-nisa";
  for (int k = 0; k < all->n; k++) {
    if (nisa_is_stream(all->v[k]))
      return "engine-programs";
    if (ir_is(all->v[k], "nisa.alloc") && !mlirAttributeIsNull(ir_attr(all->v[k], "offset")))
      stage = "allocate-memory";
  }
  return stage;
}

enum status nisa_verify(MlirOperation module, enum target target, struct arena *a, struct diags *ds) {
  struct ir_ops all = ir_collect(a, module, NULL, NULL);
  struct nisa_check c = {
      .machine = nisa_machine(target), .target = target, .stage = stage_of(&all), .arena = a, .ds = ds};

  for (int k = 0; k < all.n; k++)
    check_op(&c, all.v[k]);
  nisa_check_memory(&c, module);
  nisa_check_streams(&c, module);
  nisa_check_registers(&c, module);
  nisa_check_cores(&c, module);
  return c.n_errors ? ST_INPUT : ST_OK;
}
