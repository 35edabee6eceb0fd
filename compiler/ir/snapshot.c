/* snapshot: see the header.  The module is printed once; where each operation stands is lines.c's to find. */
#include "ir/snapshot.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ir/internal.h"
#include "ir/lines.h"

enum {
  FROM_MAX = 64,       /* ancestors kept per operation: after tiling and CSE a few dozen can meet in one */
  LOC_DEPTH_MAX = 256, /* nesting of locations: callsite chains of recursive helpers */
};

/* ---- from an MLIR location to places ---------------------------------------------------------------------------- */

struct gather {
  struct arena *a;
  int from[FROM_MAX], n_from;
  const struct src_loc *places[SRC_LOCS_MAX];
  MlirLocation locs[SRC_LOCS_MAX]; /* the same places as MLIR has them */
  int n_places;
  struct known *known; /* KNOWN_SLOTS entries, or NULL */
};

/* Many operations share a few places: what an MLIR location was read as, by its address (locations are unique in their
 * context), one entry per slot. */
enum { KNOWN_SLOTS = 256 };
struct known {
  const void *loc;
  const struct src_loc *place;
};

static const char *dup_ref(struct arena *a, MlirStringRef s) {
  return arena_strndup(a, s.data, s.length);
}

static const struct src_loc *read_place(struct arena *a, MlirLocation loc, const char *func,
                                        const struct src_loc *caller) {
  struct src_loc *p = arena_new(a, struct src_loc);
  p->range.file = dup_ref(a, mlirIdentifierStr(mlirLocationFileLineColRangeGetFilename(loc)));
  p->range.line = mlirLocationFileLineColRangeGetStartLine(loc);
  p->range.col = mlirLocationFileLineColRangeGetStartColumn(loc);
  p->range.end_line = mlirLocationFileLineColRangeGetEndLine(loc);
  p->range.end_col = mlirLocationFileLineColRangeGetEndColumn(loc);
  p->func = func;
  p->caller = caller;
  return p;
}

static void add_place(struct gather *g, const struct src_loc *p, MlirLocation loc) {
  if (!p || !p->range.line) /* the module of a text that MLIR wrapped has such a place */
    return;
  for (int i = 0; i < g->n_places; i++)
    if (src_loc_equal(g->places[i], p))
      return;
  if (g->n_places < SRC_LOCS_MAX) {
    g->locs[g->n_places] = loc;
    g->places[g->n_places++] = p;
  }
}

static void add_from(struct gather *g, int id) {
  for (int i = 0; i < g->n_from; i++)
    if (g->from[i] == id)
      return;
  if (g->n_from < FROM_MAX)
    g->from[g->n_from++] = id;
}

/* The chain for a callsite's caller side: the first place in it, with its own callers. */
static const struct src_loc *chain(struct arena *a, MlirLocation loc, const char *func, int depth) {
  if (depth > LOC_DEPTH_MAX)
    return NULL;
  if (mlirLocationIsAFileLineColRange(loc))
    return read_place(a, loc, func, NULL);
  if (mlirLocationIsAName(loc))
    return chain(a, mlirLocationNameGetChildLoc(loc), dup_ref(a, mlirIdentifierStr(mlirLocationNameGetName(loc))),
                 depth + 1);
  if (mlirLocationIsACallSite(loc)) {
    const struct src_loc *callee = chain(a, mlirLocationCallSiteGetCallee(loc), func, depth + 1);
    if (!callee)
      return NULL;
    struct src_loc *p = arena_dup(a, callee, sizeof *callee);
    p->caller = chain(a, mlirLocationCallSiteGetCaller(loc), NULL, depth + 1);
    return p;
  }
  return NULL;
}

static void read_chain(struct gather *g, MlirLocation loc, int depth) {
  struct known *k = g->known ? &g->known[((uintptr_t)loc.ptr >> 4) % KNOWN_SLOTS] : NULL;
  if (k && k->loc == loc.ptr) {
    add_place(g, k->place, loc);
    return;
  }
  const struct src_loc *p = chain(g->a, loc, NULL, depth);
  if (k)
    *k = (struct known){loc.ptr, p};
  add_place(g, p, loc);
}

static void collect(struct gather *g, MlirLocation loc, int depth) {
  if (depth > LOC_DEPTH_MAX)
    return;
  if (mlirLocationIsAName(loc)) {
    MlirStringRef n = mlirIdentifierStr(mlirLocationNameGetName(loc));
    MlirLocation child = mlirLocationNameGetChildLoc(loc);
    if (n.length && n.data[0] == '#') {
      add_from(g, atoi(n.data + 1));
      collect(g, child, depth + 1);
    } else {
      read_chain(g, loc, depth);
    }
  } else if (mlirLocationIsAFused(loc)) {
    unsigned n = mlirLocationFusedGetNumLocations(loc);
    MlirLocation *v = arena_new_array(g->a, MlirLocation, n);
    mlirLocationFusedGetLocations(loc, v);
    for (unsigned i = 0; i < n; i++)
      collect(g, v[i], depth + 1);
  } else if (mlirLocationIsAFileLineColRange(loc) || mlirLocationIsACallSite(loc)) {
    read_chain(g, loc, depth);
  }
}

const struct src_loc *ir_first_place(struct arena *a, MlirLocation loc) {
  struct gather g = {.a = a};
  collect(&g, loc, 0);
  return g.n_places ? g.places[0] : NULL;
}

int ir_op_id(MlirLocation loc) {
  if (mlirLocationIsAName(loc)) {
    MlirStringRef n = mlirIdentifierStr(mlirLocationNameGetName(loc));
    if (n.length && n.data[0] == '#')
      return atoi(n.data + 1);
  }
  return -1;
}

/* ---- the walk --------------------------------------------------------------------------------------------------- */

struct walk {
  struct arena *a;
  MlirContext ctx;
  struct ir_op *ops;
  MlirOperation *handles;
  MlirLocation *places; /* per operation, null: it has none of its own */
  int n, cap;
  struct known *known;
};

static void *grown(struct arena *a, const void *old, int n, int cap, size_t size) {
  void *v = arena_array(a, (size_t)cap, size);
  if (n)
    memcpy(v, old, (size_t)n * size);
  return v;
}

static MlirWalkResult read_op(MlirOperation op, void *user) {
  struct walk *w = user;
  if (w->n == w->cap) {
    int cap = w->cap ? w->cap * 2 : 64;
    w->ops = grown(w->a, w->ops, w->n, cap, sizeof *w->ops);
    w->handles = grown(w->a, w->handles, w->n, cap, sizeof *w->handles);
    w->places = grown(w->a, w->places, w->n, cap, sizeof *w->places);
    w->cap = cap;
  }
  struct gather g = {.a = w->a, .known = w->known};
  collect(&g, mlirOperationGetLocation(op), 0);
  w->handles[w->n] = op;
  if (g.n_places)
    w->places[w->n] =
        g.n_places == 1 ? g.locs[0] : mlirLocationFusedGet(w->ctx, g.n_places, g.locs, (MlirAttribute){NULL});
  w->ops[w->n] = (struct ir_op){
      .id = w->n,
      .name = dup_ref(w->a, mlirIdentifierStr(mlirOperationGetName(op))),
      .n_from = g.n_from,
      .from = arena_dup(w->a, g.from, (size_t)g.n_from * sizeof *g.from),
      .locs = {g.n_places, arena_dup(w->a, g.places, (size_t)g.n_places * sizeof *g.places)},
  };
  w->n++;
  return MlirWalkResultAdvance;
}

/* id of an operation: its index, found by the hash of its pointer. */
struct index {
  int *slot;
  unsigned mask;
};

static unsigned hash(const void *p) {
  return (unsigned)(((uintptr_t)p >> 4) * 2654435761u);
}

static struct index index_ops(const struct walk *w) {
  unsigned size = 16;
  while (size < (unsigned)w->n * 2)
    size *= 2;
  struct index x = {arena_new_array(w->a, int, size), size - 1};
  for (int i = 0; i < w->n; i++) {
    unsigned h = hash(w->handles[i].ptr) & x.mask;
    while (x.slot[h])
      h = (h + 1) & x.mask;
    x.slot[h] = i + 1;
  }
  return x;
}

static int find_op(const struct walk *w, struct index x, MlirOperation op) {
  for (unsigned h = hash(op.ptr) & x.mask; x.slot[h]; h = (h + 1) & x.mask)
    if (w->handles[x.slot[h] - 1].ptr == op.ptr)
      return x.slot[h] - 1;
  return -1;
}

/* Folding materialises constants anew, without a location: they stand for what their users stand for.  Users come
 * later in the list, so going backwards gives chains of such operations their places too. */
static void adopt_from_users(struct walk *w) {
  struct index x = {0};
  for (int i = w->n - 1; i >= 0; i--) {
    struct ir_op *o = &w->ops[i];
    if (o->locs.n || !mlirOperationGetNumResults(w->handles[i]))
      continue;
    if (!x.slot)
      x = index_ops(w);
    for (intptr_t r = 0; r < mlirOperationGetNumResults(w->handles[i]); r++) {
      MlirOpOperand use = mlirValueGetFirstUse(mlirOperationGetResult(w->handles[i], r));
      for (; !mlirOpOperandIsNull(use); use = mlirOpOperandGetNextUse(use)) {
        int u = find_op(w, x, mlirOpOperandGetOwner(use));
        if (u >= 0)
          o->locs = src_locs_union(w->a, o->locs, w->ops[u].locs);
      }
    }
  }
}

/* The location that operation i gets for the next pass: ir_loc_tagged, from what is there already. */
static MlirLocation tagged(const struct walk *w, int i) {
  char name[16];
  if (mlirLocationIsNull(w->places[i]))
    return ir_loc_tagged(w->ctx, i, w->ops[i].locs);
  snprintf(name, sizeof name, "#%d", i);
  return mlirLocationNameGet(w->ctx, ir_str(name), w->places[i]);
}

static void append(MlirStringRef s, void *user) {
  buf_append(user, s.data, s.length);
}

static void print(MlirOperation module, int64_t elide_above, struct buf *text) {
  MlirOpPrintingFlags flags = mlirOpPrintingFlagsCreate();
  mlirOpPrintingFlagsAssumeVerified(flags); /* what a pass leaves was verified */
  if (elide_above)
    mlirOpPrintingFlagsElideLargeElementsAttrs(flags, elide_above);
  mlirOperationPrintWithFlags(module, flags, append, text);
  mlirOpPrintingFlagsDestroy(flags);
}

/* Reads every operation and gives it its id. */
static struct walk take_ops(struct ir *ir, MlirOperation module, struct arena *a) {
  struct known known[KNOWN_SLOTS] = {{NULL, NULL}};
  struct walk w = {.a = a, .ctx = ir->ctx, .known = known};
  mlirOperationWalk(module, read_op, &w, MlirWalkPreOrder);
  w.known = NULL;
  adopt_from_users(&w);
  for (int i = 0; i < w.n; i++)
    mlirOperationSetLocation(w.handles[i], tagged(&w, i));
  return w;
}

static void set_lines(struct walk *w, const int *lines) {
  for (int i = 0; i < w->n; i++)
    w->ops[i].line = lines[i];
}

enum status ir_snapshot(struct ir *ir, MlirOperation module, int64_t elide_above, struct buf *text, struct arena *a,
                        struct ir_snapshot *out, struct error *err) {
  const size_t before = text->len;
  const int *lines;
  struct walk w = take_ops(ir, module, a);
  print(module, elide_above, text);
  if (buf_status(text))
    return fail(err, buf_status(text), "the stage's text exceeds its limit");
  const struct ir_printed p = {.n = w.n, .ops = w.handles, .text = text->data + before, .len = text->len - before};
  enum status st = ir_lines(ir, &p, a, &lines, err);
  if (st)
    return st;
  set_lines(&w, lines);
  *out = (struct ir_snapshot){w.n, w.ops};
  return ST_OK;
}

enum status ir_snapshot_with(struct ir *ir, MlirOperation module, ir_printer *printer, int64_t elide_above,
                             struct buf *text, struct arena *a, struct ir_snapshot *out, struct error *err) {
  const int *lines = NULL;
  struct walk w = take_ops(ir, module, a);
  enum status st = printer(ir, module, elide_above, text, a, &lines, err);
  if (st)
    return st;
  set_lines(&w, lines);
  *out = (struct ir_snapshot){w.n, w.ops};
  return ST_OK;
}

/* ---- nothing changed -------------------------------------------------------------------------------------------- */

static uint64_t mix(uint64_t h, uint64_t v) { /* splitmix64's finaliser over a running sum */
  h += v + 0x9e3779b97f4a7c15u;
  h = (h ^ h >> 30) * 0xbf58476d1ce4e5b9u;
  h = (h ^ h >> 27) * 0x94d049bb133111ebu;
  return h ^ h >> 31;
}

static MlirWalkResult hash_op(MlirOperation op, void *user) {
  uint64_t h = mix(*(uint64_t *)user, mlirOperationHashValue(op));
  h = mix(h, (uintptr_t)op.ptr);
  h = mix(h, (uintptr_t)mlirOperationGetBlock(op).ptr);
  for (intptr_t r = 0; r < mlirOperationGetNumRegions(op); r++)
    for (MlirBlock b = mlirRegionGetFirstBlock(mlirOperationGetRegion(op, r)); !mlirBlockIsNull(b);
         b = mlirBlockGetNextInRegion(b))
      for (intptr_t k = 0; k < mlirBlockGetNumArguments(b); k++)
        h = mix(h, (uintptr_t)mlirValueGetType(mlirBlockGetArgument(b, k)).ptr);
  *(uint64_t *)user = h;
  return MlirWalkResultAdvance;
}

uint64_t ir_fingerprint(MlirOperation root) {
  uint64_t h = 0;
  mlirOperationWalk(root, hash_op, &h, MlirWalkPreOrder);
  return h;
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
