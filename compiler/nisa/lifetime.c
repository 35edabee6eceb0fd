/* lifetime: see the header. */
#include "nisa/lifetime.h"

#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "mlir-c/BuiltinTypes.h"

#include "base/array.h"
#include "base/buf.h"
#include "base/table.h"
#include "ir/internal.h"
#include "ir/query.h"

/* ---- lifetimes -------------------------------------------------------------------------------------------------- */

struct finder {
  const struct nisa_machine *machine;
  struct arena *arena;
  struct nisa_lifetimes found;
  int next; /* number of the next operation */
};

static bool add_alloc(struct finder *f, MlirOperation op, MlirOperation loop, int loop_from) {
  MlirType t = mlirValueGetType(mlirOperationGetResult(op, 0));
  struct nisa_lifetime x = {.alloc = op,
                            .space = nisa_type_space(t),
                            .exact = nisa_type_bytes(t),
                            .from = f->next,
                            .to = INT_MAX,
                            .loop = loop,
                            .loop_from = loop_from,
                            .loop_to = INT_MAX};
  const int64_t unit = x.space == MEM_PSUM ? f->machine->psum_bank_bytes : 1;

  if (x.exact < 0 || __builtin_add_overflow(x.exact, unit - 1, &x.bytes))
    return false;
  x.bytes -= x.bytes % unit;
  array_push(f->arena, &f->found, x);
  return true;
}

/* `loop` is the scf.for whose body the block is, or null. */
static void visit_block(struct finder *f, MlirBlock block, MlirOperation loop, int loop_from) {
  struct table own = {.arena = f->arena}; /* allocations of the block: 1 + the index in found */
  const int begin = f->found.n;

  for (MlirOperation op = mlirBlockGetFirstOperation(block); !mlirOperationIsNull(op);
       op = mlirOperationGetNextInBlock(op)) {
    const int here = f->next;
    if (ir_is(op, "nisa.alloc") && add_alloc(f, op, loop, loop_from)) {
      table_put(&own, op.ptr, (void *)(intptr_t)f->found.n);
    } else if (ir_is(op, "nisa.release")) {
      MlirOperation alloc = ir_defining_op(mlirOperationGetOperand(op, 0));
      const intptr_t k = mlirOperationIsNull(alloc) ? 0 : (intptr_t)table_get(&own, alloc.ptr);
      if (k)
        f->found.v[k - 1].to = here;
    }
    f->next++;
    MlirOperation inside = ir_is(op, "scf.for") ? op : (MlirOperation){NULL};
    for (intptr_t r = 0; r < mlirOperationGetNumRegions(op); r++)
      for (MlirBlock b = mlirRegionGetFirstBlock(mlirOperationGetRegion(op, r)); !mlirBlockIsNull(b);
           b = mlirBlockGetNextInRegion(b))
        visit_block(f, b, inside, here);
  }
  for (int k = begin; k < f->found.n && !mlirOperationIsNull(loop); k++)
    if (mlirOperationEqual(f->found.v[k].loop, loop))
      f->found.v[k].loop_to = f->next;
}

struct nisa_lifetimes nisa_find_lifetimes(struct arena *a, MlirOperation root, const struct nisa_machine *m) {
  struct finder f = {.machine = m, .arena = a};
  for (intptr_t r = 0; r < mlirOperationGetNumRegions(root); r++)
    for (MlirBlock b = mlirRegionGetFirstBlock(mlirOperationGetRegion(root, r)); !mlirBlockIsNull(b);
         b = mlirBlockGetNextInRegion(b))
      visit_block(&f, b, (MlirOperation){NULL}, 0);
  return f.found;
}

/* ---- what is alive ---------------------------------------------------------------------------------------------- */

static bool is_alive(const struct nisa_lifetime *x, enum mem_space s, int at) {
  return x->space == s && x->from <= at && at < x->to;
}

/* A change of the memory in use. */
struct change {
  int at;
  int64_t bytes;
  const struct nisa_lifetime *of;
};

static int by_number(const void *p, const void *q) {
  const struct change *x = p, *y = q;
  return (x->at > y->at) - (x->at < y->at);
}

int64_t nisa_live_peak(struct arena *a, const struct nisa_lifetimes *l, enum mem_space s,
                       const struct nisa_lifetime **at) {
  struct change *changes = arena_new_array(a, struct change, (size_t)l->n * 2);
  int64_t peak = 0, live = 0;
  int n = 0;

  *at = NULL;
  for (int k = 0; k < l->n; k++)
    if (l->v[k].space == s) {
      changes[n++] = (struct change){l->v[k].from, l->v[k].bytes, &l->v[k]};
      changes[n++] = (struct change){l->v[k].to, -l->v[k].bytes, &l->v[k]};
    }
  qsort(changes, (size_t)n, sizeof *changes, by_number); /* an operation is an allocation or a release, not both */
  for (int k = 0; k < n; k++)
    if ((live += changes[k].bytes) > peak) {
      peak = live;
      *at = changes[k].of;
    }
  return peak;
}

static int by_size(const void *p, const void *q) {
  const struct nisa_lifetime *x = *(const struct nisa_lifetime *const *)p, *y = *(const struct nisa_lifetime *const *)q;
  return x->bytes != y->bytes ? (x->bytes < y->bytes) - (x->bytes > y->bytes)
                              : (x->from > y->from) - (x->from < y->from);
}

static void append(MlirStringRef s, void *user) {
  buf_append(user, s.data, s.length);
}

static void describe(struct buf *b, struct arena *a, const struct nisa_lifetime *x) {
  const struct src_loc *place = ir_first_place(a, mlirOperationGetLocation(x->alloc));
  buf_printf(b, "%" PRId64 " bytes ", x->bytes);
  if (place && place->range.line) {
    const char *path = place->range.file ? place->range.file : "line", *slash = strrchr(path, '/');
    buf_printf(b, "of %s:%d:%d", slash ? slash + 1 : path, place->range.line, place->range.col);
    return;
  }
  buf_puts(b, "as ");
  mlirTypePrint(mlirValueGetType(mlirOperationGetResult(x->alloc, 0)), append, b);
}

const char *nisa_describe_live(struct arena *a, const struct nisa_lifetimes *l, enum mem_space s, int at) {
  enum { SHOWN_MAX = 6, TEXT_MAX = 8 << 10 };
  const struct nisa_lifetime **alive = arena_new_array(a, const struct nisa_lifetime *, (size_t)l->n);
  struct buf b;
  int n = 0;

  for (int k = 0; k < l->n; k++)
    if (is_alive(&l->v[k], s, at))
      alive[n++] = &l->v[k];
  qsort(alive, (size_t)n, sizeof *alive, by_size);
  buf_init(&b, TEXT_MAX);
  for (int k = 0; k < n && k < SHOWN_MAX; k++) {
    buf_puts(&b, k ? ", " : "");
    describe(&b, a, alive[k]);
  }
  if (n > SHOWN_MAX)
    buf_printf(&b, " and %d more", n - SHOWN_MAX);
  const char *text = arena_strdup(a, buf_text(&b));
  buf_clear(&b);
  return text;
}
