/* snapshot: see the header.  The module is printed once; lines.c finds the line of every operation in the text. */
#include "ir/snapshot.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/index.h"
#include "ir/internal.h"
#include "ir/lines.h"
#include "ir/query.h"

/* ---- the walk --------------------------------------------------------------------------------------------------- */

struct walk {
  struct arena *a;
  MlirContext ctx;
  struct ir_places *known;
  struct ir_ops handles;
  struct {
    struct ir_op *v;
    int n, cap;
  } ops;
  struct ids {
    int *v;
    int n, cap;
  } first;             /* of each operation the first id in `from` */
  struct ids unplaced; /* operations without a location of their own, in pre-order */
};

static MlirWalkResult read_op(MlirOperation op, void *user) {
  struct walk *w = user;
  const struct ir_read r = ir_places_read(w->known, op, w->a);
  const int id = w->ops.n;
  array_push(w->a, &w->handles, op);
  array_push(w->a, &w->first, r.first);
  array_push(w->a, &w->ops,
             (struct ir_op){
                 .id = id,
                 .name = mlirIdentifierStr(mlirOperationGetName(op)).data, /* the context keeps it, with its NUL */
                 .n_from = r.n_from,
                 .from = r.n_from > 1 ? arena_dup(w->a, r.from, (size_t)r.n_from * sizeof *r.from) : NULL,
                 .locs = r.locs,
             });
  if (mlirLocationIsNull(r.place))
    array_push(w->a, &w->unplaced, id);
  else if (!r.is_tagged || r.first != id)
    mlirOperationSetLocation(op, ir_loc_of_op(w->ctx, id, r.locs.more, r.place));
  assert(w->ops.n == w->handles.n);
  return MlirWalkResultAdvance;
}

static struct index index_ops(const struct walk *w) {
  struct index x = {.arena = w->a};
  for (int i = 0; i < w->ops.n; i++)
    index_add(&x, hash_pointer(w->handles.v[i].ptr), i);
  return x;
}

/* Returns the number of op; -1 if it is not in the module. */
static int find_op(const struct walk *w, const struct index *x, MlirOperation op) {
  for (struct index_probe p = index_probe(x, hash_pointer(op.ptr)); index_next(&p);)
    if (w->handles.v[p.entry].ptr == op.ptr)
      return p.entry;
  return -1;
}

/* Folding creates constants without a location: they get the places of their users.  Users come later in the list,
 * so the list is traversed backwards, and chains of such operations get their places, too. */
static void adopt_from_users(struct walk *w) {
  struct index x = {0};
  for (int k = w->unplaced.n - 1; k >= 0; k--) {
    const int i = w->unplaced.v[k];
    struct ir_op *o = &w->ops.v[i];
    MlirOperation op = w->handles.v[i];
    if (!mlirOperationGetNumResults(op))
      continue;
    if (!x.arena)
      x = index_ops(w);
    for (intptr_t r = 0; r < mlirOperationGetNumResults(op); r++) {
      MlirOpOperand use = mlirValueGetFirstUse(mlirOperationGetResult(op, r));
      for (; !mlirOpOperandIsNull(use); use = mlirOpOperandGetNextUse(use)) {
        int u = find_op(w, &x, mlirOpOperandGetOwner(use));
        if (u >= 0)
          o->locs = src_locs_union(ir_places_arena(w->known), o->locs, w->ops.v[u].locs);
      }
    }
  }
}

static void append(MlirStringRef s, void *user) {
  buf_append(user, s.data, s.length);
}

static void print(MlirOperation module, int64_t elide_above, struct buf *text) {
  MlirOpPrintingFlags flags = mlirOpPrintingFlagsCreate();
  mlirOpPrintingFlagsAssumeVerified(flags); /* the pass's output was verified */
  if (elide_above)
    mlirOpPrintingFlagsElideLargeElementsAttrs(flags, elide_above);
  mlirOperationPrintWithFlags(module, flags, append, text);
  mlirOpPrintingFlagsDestroy(flags);
}

/* Reads every operation and gives it its id.  The result is allocated in a. */
static struct walk *take_ops(struct ir *ir, MlirOperation module, struct arena *a) {
  struct walk *w = arena_new(a, struct walk);
  w->a = a;
  w->ctx = ir->ctx;
  w->known = ir->places ? ir->places : ir_places_new(a);
  mlirOperationWalk(module, read_op, w, MlirWalkPreOrder);
  adopt_from_users(w);
  for (int k = 0; k < w->unplaced.n; k++) {
    const int i = w->unplaced.v[k];
    mlirOperationSetLocation(w->handles.v[i], ir_loc_tagged(w->ctx, i, w->ops.v[i].locs));
  }
  for (int i = 0; i < w->ops.n; i++)
    if (w->ops.v[i].n_from == 1)
      w->ops.v[i].from = &w->first.v[i];
  return w;
}

static struct ir_snapshot with_lines(const struct walk *w, const int *lines) {
  for (int i = 0; i < w->ops.n; i++)
    w->ops.v[i].line = lines[i];
  return (struct ir_snapshot){w->ops.n, w->ops.v};
}

enum status ir_snapshot(struct ir *ir, MlirOperation module, int64_t elide_above, struct buf *text, struct arena *a,
                        struct ir_snapshot *out, struct error *err) {
  const size_t before = text->len;
  const int *lines;
  struct walk *w = take_ops(ir, module, a);
  print(module, elide_above, text);
  if (buf_status(text))
    return fail(err, buf_status(text), "the stage's text exceeds its limit");
  const struct ir_printed p = {
      .n = w->ops.n, .ops = w->handles.v, .text = text->data + before, .len = text->len - before};
  enum status st = ir_lines(ir, &p, a, &lines, err);
  if (!st)
    *out = with_lines(w, lines);
  return st;
}

enum status ir_print(struct ir *ir, MlirOperation module, int64_t elide_above, struct buf *text, struct arena *a,
                     const int **lines, struct error *err) {
  const size_t before = text->len;
  const struct ir_ops all = ir_collect(a, module, NULL, NULL);
  int *at = arena_new_array(a, int, (size_t)all.n);
  (void)ir;
  print(module, elide_above, text);
  if (buf_status(text))
    return fail(err, buf_status(text), "the text exceeds its limit");
  const struct ir_printed p = {.n = all.n, .ops = all.v, .text = text->data + before, .len = text->len - before};
  if (!ir_lines_read(&p, a, at))
    memset(at, 0, (size_t)all.n * sizeof *at);
  *lines = at;
  return ST_OK;
}

enum status ir_snapshot_with(struct ir *ir, MlirOperation module, ir_printer *printer, int64_t elide_above,
                             struct buf *text, struct arena *a, struct ir_snapshot *out, struct error *err) {
  const int *lines = NULL;
  struct walk *w = take_ops(ir, module, a);
  enum status st = printer(ir, module, elide_above, text, a, &lines, err);
  if (!st)
    *out = with_lines(w, lines);
  return st;
}

/* ---- unchanged stages ------------------------------------------------------------------------------------------- */

uint64_t ir_print_of(MlirOperation op) {
  uint64_t h = mlirOperationHashValue(op);
  h = hash_mix(h, (uintptr_t)op.ptr);
  h = hash_mix(h, (uintptr_t)mlirOperationGetBlock(op).ptr);
  h = hash_mix(h, (uintptr_t)mlirOperationGetNextInBlock(op).ptr);
  for (intptr_t k = 0; k < mlirOperationGetNumOperands(op); k++)
    h = hash_mix(h, (uintptr_t)mlirValueGetType(mlirOperationGetOperand(op, k)).ptr);
  for (intptr_t r = 0; r < mlirOperationGetNumRegions(op); r++)
    for (MlirBlock b = mlirRegionGetFirstBlock(mlirOperationGetRegion(op, r)); !mlirBlockIsNull(b);
         b = mlirBlockGetNextInRegion(b)) {
      h = hash_mix(h, (uintptr_t)mlirBlockGetTerminator(b).ptr);
      for (intptr_t k = 0; k < mlirBlockGetNumArguments(b); k++)
        h = hash_mix(h, (uintptr_t)mlirValueGetType(mlirBlockGetArgument(b, k)).ptr);
    }
  return h;
}

static MlirWalkResult hash_op(MlirOperation op, void *user) {
  *(uint64_t *)user = hash_mix(*(uint64_t *)user, ir_print_of(op));
  return MlirWalkResultAdvance;
}

uint64_t ir_fingerprint(MlirOperation root) {
  uint64_t h = 0;
  mlirOperationWalk(root, hash_op, &h, MlirWalkPreOrder);
  return h;
}

struct prints {
  struct arena *a;
  struct ir_prints *v;
  int at;
  bool is_same;
};

static MlirWalkResult keep_print(MlirOperation op, void *user) {
  struct prints *p = user;
  array_push(p->a, p->v, ir_print_of(op));
  return MlirWalkResultAdvance;
}

void ir_prints_take(MlirOperation root, struct arena *a, struct ir_prints *out) {
  struct prints p = {.a = a, .v = out};
  out->n = 0;
  mlirOperationWalk(root, keep_print, &p, MlirWalkPreOrder);
}

static MlirWalkResult compare_print(MlirOperation op, void *user) {
  struct prints *p = user;
  p->is_same = p->at < p->v->n && p->v->v[p->at++] == ir_print_of(op);
  return p->is_same ? MlirWalkResultAdvance : MlirWalkResultInterrupt;
}

bool ir_prints_match(MlirOperation root, const struct ir_prints *before) {
  struct prints p = {.v = (struct ir_prints *)before};
  mlirOperationWalk(root, compare_print, &p, MlirWalkPreOrder);
  return p.is_same && p.at == before->n;
}

struct ir_snapshot ir_snapshot_again(const struct ir_snapshot *before, struct arena *a) {
  struct ir_snapshot s = {before->n, arena_dup(a, before->ops, (size_t)before->n * sizeof *before->ops)};
  int *ids = arena_new_array(a, int, (size_t)before->n);
  for (int i = 0; i < s.n; i++) {
    ids[i] = s.ops[i].id;
    s.ops[i].n_from = 1;
    s.ops[i].from = &ids[i];
  }
  return s;
}
