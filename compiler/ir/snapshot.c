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

enum { LOC_DEPTH_MAX = 256 }; /* nesting of locations (call chains of recursive helpers); deeper callers are dropped */

/* ---- from an MLIR location to places ---------------------------------------------------------------------------- */

struct ids {
  int *v;
  int n, cap;
};

/* The contents of the location of one operation. */
struct gather {
  struct arena *a;
  struct walk *walk;  /* or NULL */
  struct ids from;    /* of the previous stage, each once */
  struct index by_id; /* of `from`, if there are many */
  const struct src_loc *places[SRC_LOCS_SHOWN];
  const void *bases[SRC_LOCS_SHOWN]; /* the addresses of their locations without rounds */
  MlirLocation locs[SRC_LOCS_SHOWN]; /* the same places as MLIR locations; null: with rounds of several locations */
  int n_places;
  struct {
    const void **v;
    int n, cap;
  } hidden;               /* further places, each once, by the addresses of their locations without rounds */
  struct index by_hidden; /* of `hidden` */
  int more;               /* the largest number in the location of an operation */
};

/* A cache of places, because many operations share a few places.  A slot has the address of an MLIR location and the
 * place that it was read as (locations are unique in their context). */
enum { KNOWN_SLOTS = 1024 };
struct known {
  const void *loc;
  const struct src_loc *place;
  const void *base; /* the location without rounds */
};

struct walk {
  struct arena *a;
  MlirContext ctx;
  struct ir_ops handles;
  struct {
    struct ir_op *v;
    int n, cap;
  } ops;
  struct {
    MlirLocation *v;
    int n, cap;
  } places;       /* for each operation; null: it has no location of its own */
  struct ids few; /* memory for the ids of one operation after the other */
  struct known known[KNOWN_SLOTS];
};

static const char *dup_ref(struct arena *a, MlirStringRef s) {
  return arena_strndup(a, s.data, s.length);
}

/* func: the name of the function and its loops, or an empty string. */
static const struct src_loc *read_place(struct arena *a, MlirLocation loc, MlirStringRef func) {
  struct src_loc *p = arena_new(a, struct src_loc);
  size_t func_len;
  p->range.file = dup_ref(a, mlirIdentifierStr(mlirLocationFileLineColRangeGetFilename(loc)));
  p->range.line = mlirLocationFileLineColRangeGetStartLine(loc);
  p->range.col = mlirLocationFileLineColRangeGetStartColumn(loc);
  p->range.end_line = mlirLocationFileLineColRangeGetEndLine(loc);
  p->range.end_col = mlirLocationFileLineColRangeGetEndColumn(loc);
  p->n_loops = ir_loc_loops(a, func, &func_len, &p->loops);
  p->func = func_len ? arena_strndup(a, func.data, func_len) : NULL;
  return p;
}

/* Counts a location once.  Locations are unique in their context, so equal addresses are equal places. */
static void count_hidden(struct gather *g, const void *base) {
  const uint32_t hash = hash_pointer(base);
  for (struct index_probe p = index_probe(&g->by_hidden, hash); index_next(&p);)
    if (g->hidden.v[p.entry] == base)
      return;
  index_add(&g->by_hidden, hash, g->hidden.n);
  array_push(g->a, &g->hidden, base);
}

/* Adds a place that was read from loc; base: the address of the location without rounds. */
static void add_place(struct gather *g, const struct src_loc *p, const void *base, MlirLocation loc) {
  if (!p || !p->range.line) /* the module that MLIR adds around bare functions has no line */
    return;
  for (int i = 0; i < g->n_places; i++) {
    if (g->bases[i] != base && !src_loc_equal(g->places[i], p))
      continue;
    const struct src_loc *both = src_loc_join(g->a, g->places[i], p);
    if (both != g->places[i])
      g->locs[i] = both == p ? loc : (MlirLocation){NULL};
    g->places[i] = both;
    return;
  }
  if (g->n_places < SRC_LOCS_SHOWN) {
    g->bases[g->n_places] = base;
    g->locs[g->n_places] = loc;
    g->places[g->n_places++] = p;
  } else {
    count_hidden(g, base);
  }
}

static uint32_t hash_id(int id) {
  return (uint32_t)hash_mix(0, (uint64_t)id);
}

static bool has_id(struct gather *g, int id) {
  enum { FEW = 16 }; /* below this number, a linear search is used instead of an index */
  if (g->from.n < FEW) {
    for (int i = 0; i < g->from.n; i++)
      if (g->from.v[i] == id)
        return true;
    return false;
  }
  for (; (int)g->by_id.n < g->from.n;) {
    const int next = (int)g->by_id.n;
    index_add(&g->by_id, hash_id(g->from.v[next]), next);
  }
  for (struct index_probe p = index_probe(&g->by_id, hash_id(id)); index_next(&p);)
    if (g->from.v[p.entry] == id)
      return true;
  return false;
}

static void add_from(struct gather *g, int id) {
  if (!has_id(g, id))
    array_push(g->a, &g->from, id);
}

/* Returns the first place in loc, with its callers. */
static const struct src_loc *chain(struct arena *a, MlirLocation loc, MlirStringRef func, int depth) {
  if (depth > LOC_DEPTH_MAX)
    return NULL;
  if (mlirLocationIsAFileLineColRange(loc))
    return read_place(a, loc, func);
  if (mlirLocationIsAName(loc))
    return chain(a, mlirLocationNameGetChildLoc(loc), mlirIdentifierStr(mlirLocationNameGetName(loc)), depth + 1);
  if (mlirLocationIsACallSite(loc)) {
    const struct src_loc *callee = chain(a, mlirLocationCallSiteGetCallee(loc), func, depth + 1);
    if (!callee)
      return NULL;
    struct src_loc *p = arena_dup(a, callee, sizeof *callee);
    p->caller = chain(a, mlirLocationCallSiteGetCaller(loc), mlirStringRefCreate("", 0), depth + 1);
    return p;
  }
  return NULL;
}

/* If loc has rounds, returns its text and replaces loc by the place's location; or else an empty string. */
static MlirStringRef take_rounds(MlirLocation *loc) {
  MlirStringRef name = mlirLocationIsAName(*loc) ? mlirIdentifierStr(mlirLocationNameGetName(*loc)) : ir_str("");
  if (!name.length || name.data[0] != '@')
    return ir_str("");
  *loc = mlirLocationNameGetChildLoc(*loc);
  return mlirStringRefCreate(name.data + 1, name.length - 1);
}

static const struct src_loc *read_with_rounds(struct gather *g, MlirLocation base, MlirStringRef rounds, int depth) {
  const struct src_loc *p = chain(g->a, base, ir_str(""), depth);
  if (!p || !rounds.length)
    return p;
  struct src_loc *in_rounds = arena_dup(g->a, p, sizeof *p);
  in_rounds->rounds = rounds_read(g->a, rounds.data, rounds.length);
  return in_rounds;
}

static void read_chain(struct gather *g, MlirLocation loc, int depth) {
  struct known *k = g->walk ? &g->walk->known[((uintptr_t)loc.ptr >> 4) % KNOWN_SLOTS] : NULL;
  if (k && k->loc == loc.ptr) {
    add_place(g, k->place, k->base, loc);
    return;
  }
  MlirLocation base = loc;
  MlirStringRef rounds = take_rounds(&base);
  const struct src_loc *p = read_with_rounds(g, base, rounds, depth);
  if (k)
    *k = (struct known){loc.ptr, p, base.ptr};
  add_place(g, p, base.ptr, loc);
}

/* Returns the id in a location's name, "#<id>" or "#<id>+<more>"; -1 if the name is that of a function. */
static int id_of_name(MlirLocation loc) {
  MlirStringRef n = mlirIdentifierStr(mlirLocationNameGetName(loc));
  return n.length && n.data[0] == '#' ? atoi(n.data + 1) : -1;
}

static int more_of_name(MlirLocation loc) {
  MlirStringRef n = mlirIdentifierStr(mlirLocationNameGetName(loc));
  const char *plus = memchr(n.data, '+', n.length);
  return plus ? atoi(plus + 1) : 0;
}

static void collect(struct gather *g, MlirLocation loc, int depth) {
  if (depth > LOC_DEPTH_MAX)
    return;
  if (mlirLocationIsAName(loc)) {
    const int id = id_of_name(loc);
    if (id < 0) {
      read_chain(g, loc, depth);
      return;
    }
    add_from(g, id);
    const int more = more_of_name(loc);
    g->more = more > g->more ? more : g->more;
    collect(g, mlirLocationNameGetChildLoc(loc), depth + 1);
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
  struct gather g = {.a = a, .by_id.arena = a, .by_hidden.arena = a};
  collect(&g, loc, 0);
  return g.n_places ? g.places[0] : NULL;
}

int ir_op_id(MlirLocation loc) {
  return mlirLocationIsAName(loc) ? id_of_name(loc) : -1;
}

/* ---- the walk --------------------------------------------------------------------------------------------------- */

static MlirWalkResult read_op(MlirOperation op, void *user) {
  struct walk *w = user;
  struct gather g = {.a = w->a, .walk = w, .from = w->few, .by_id.arena = w->a, .by_hidden.arena = w->a};
  MlirLocation place = {NULL};

  g.from.n = 0;
  collect(&g, mlirOperationGetLocation(op), 0);
  w->few = g.from;
  for (int i = 0; i < g.n_places; i++)
    if (!g.locs[i].ptr)
      g.locs[i] = ir_loc_of_place(w->ctx, g.places[i]);
  if (g.n_places)
    place = g.n_places == 1 ? g.locs[0] : mlirLocationFusedGet(w->ctx, g.n_places, g.locs, (MlirAttribute){NULL});
  array_push(w->a, &w->handles, op);
  array_push(w->a, &w->places, place);
  array_push(w->a, &w->ops,
             (struct ir_op){
                 .id = w->ops.n,
                 .name = mlirIdentifierStr(mlirOperationGetName(op)).data, /* the context keeps it, with its NUL */
                 .n_from = g.from.n,
                 .from = arena_dup(w->a, g.from.v, (size_t)g.from.n * sizeof *g.from.v),
                 .locs = {.n = g.n_places,
                          .v = arena_dup(w->a, g.places, (size_t)g.n_places * sizeof *g.places),
                          .more = g.hidden.n + g.more},
             });
  assert(w->ops.n == w->handles.n && w->ops.n == w->places.n);
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
  for (int i = w->ops.n - 1; i >= 0; i--) {
    struct ir_op *o = &w->ops.v[i];
    MlirOperation op = w->handles.v[i];
    if (o->locs.n || !mlirOperationGetNumResults(op))
      continue;
    if (!x.arena)
      x = index_ops(w);
    for (intptr_t r = 0; r < mlirOperationGetNumResults(op); r++) {
      MlirOpOperand use = mlirValueGetFirstUse(mlirOperationGetResult(op, r));
      for (; !mlirOpOperandIsNull(use); use = mlirOpOperandGetNextUse(use)) {
        int u = find_op(w, &x, mlirOpOperandGetOwner(use));
        if (u >= 0)
          o->locs = src_locs_union(w->a, o->locs, w->ops.v[u].locs);
      }
    }
  }
}

/* Returns the location that operation i gets for the next pass: ir_loc_tagged, made from its present location. */
static MlirLocation tagged(const struct walk *w, int i) {
  const struct src_locs locs = w->ops.v[i].locs;
  if (mlirLocationIsNull(w->places.v[i]))
    return ir_loc_tagged(w->ctx, i, locs);
  return ir_loc_of_op(w->ctx, i, locs.more, w->places.v[i]);
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
  mlirOperationWalk(module, read_op, w, MlirWalkPreOrder);
  adopt_from_users(w);
  for (int i = 0; i < w->ops.n; i++)
    mlirOperationSetLocation(w->handles.v[i], tagged(w, i));
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

static uint64_t hash_of(MlirOperation op) {
  uint64_t h = mlirOperationHashValue(op);
  h = hash_mix(h, (uintptr_t)op.ptr);
  h = hash_mix(h, (uintptr_t)mlirOperationGetBlock(op).ptr);
  for (intptr_t r = 0; r < mlirOperationGetNumRegions(op); r++)
    for (MlirBlock b = mlirRegionGetFirstBlock(mlirOperationGetRegion(op, r)); !mlirBlockIsNull(b);
         b = mlirBlockGetNextInRegion(b))
      for (intptr_t k = 0; k < mlirBlockGetNumArguments(b); k++)
        h = hash_mix(h, (uintptr_t)mlirValueGetType(mlirBlockGetArgument(b, k)).ptr);
  return h;
}

static MlirWalkResult hash_op(MlirOperation op, void *user) {
  *(uint64_t *)user = hash_mix(*(uint64_t *)user, hash_of(op));
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
  array_push(p->a, p->v, hash_of(op));
  return MlirWalkResultAdvance;
}

void ir_prints_take(MlirOperation root, struct arena *a, struct ir_prints *out) {
  struct prints p = {.a = a, .v = out};
  out->n = 0;
  mlirOperationWalk(root, keep_print, &p, MlirWalkPreOrder);
}

static MlirWalkResult compare_print(MlirOperation op, void *user) {
  struct prints *p = user;
  p->is_same = p->at < p->v->n && p->v->v[p->at++] == hash_of(op);
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
