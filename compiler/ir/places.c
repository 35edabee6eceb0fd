/* places: reads the locations of operations: the ids of the stage before and the Python places.
 *
 * Locations are unique in their context and most operations keep theirs, or the places in it, from stage to stage, so what a
 * location was read as is kept for the whole job: a later stage reads it by its address.
 */
#include "ir/places.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/index.h"
#include "ir/internal.h"

enum { LOC_DEPTH_MAX = 256 }; /* nesting of locations (call chains of recursive helpers); deeper callers are dropped */

/* ---- from an MLIR location to places ---------------------------------------------------------------------------- */

struct ids {
  int *v;
  int n, cap;
};

/* The contents of the location of one operation. */
struct gather {
  struct arena *a;         /* of the places */
  struct arena *scratch;   /* of what is needed only meanwhile */
  struct ir_places *known; /* or NULL */
  struct ids from;         /* of the previous stage, each once */
  int n_names;             /* locations with ids, also those that repeat an id */
  struct index by_id;      /* of `from`, if there are many */
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

/* A place, the address of the MLIR location that it was read from, and of that location without rounds. */
struct known_place {
  const void *loc, *base;
  const struct src_loc *place;
};

/* The places of an operation, which were read from the location at an address that has no ids, and an equal location. */
struct known_list {
  const void *loc;
  MlirLocation place; /* null: there are no places */
  struct src_locs locs;
};

struct ir_places {
  struct arena *a;
  struct index by_loc, by_list_loc;
  struct {
    struct known_place *v;
    int n, cap;
  } places;
  struct {
    struct known_list *v;
    int n, cap;
  } lists;
  struct ids few; /* memory for the ids of one operation after the other */
};

struct ir_places *ir_places_new(struct arena *a) {
  struct ir_places *p = arena_new(a, struct ir_places);
  p->a = p->by_loc.arena = p->by_list_loc.arena = a;
  return p;
}

struct arena *ir_places_arena(const struct ir_places *k) {
  return k->a;
}

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
  array_push(g->scratch, &g->hidden, base);
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
    array_push(g->known ? g->known->a : g->a, &g->from, id);
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

static const struct known_place *find_place(const struct ir_places *k, const void *loc) {
  for (struct index_probe p = index_probe(&k->by_loc, hash_pointer(loc)); index_next(&p);)
    if (k->places.v[p.entry].loc == loc)
      return &k->places.v[p.entry];
  return NULL;
}

static void read_chain(struct gather *g, MlirLocation loc, int depth) {
  struct ir_places *k = g->known;
  const struct known_place *seen = k ? find_place(k, loc.ptr) : NULL;
  if (seen) {
    add_place(g, seen->place, seen->base, loc);
    return;
  }
  MlirLocation base = loc;
  MlirStringRef rounds = take_rounds(&base);
  const struct src_loc *p = read_with_rounds(g, base, rounds, depth);
  if (k) {
    index_add(&k->by_loc, hash_pointer(loc.ptr), k->places.n);
    array_push(k->a, &k->places, (struct known_place){loc.ptr, base.ptr, p});
  }
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
    g->n_names++;
    add_from(g, id);
    const int more = more_of_name(loc);
    g->more = more > g->more ? more : g->more;
    collect(g, mlirLocationNameGetChildLoc(loc), depth + 1);
  } else if (mlirLocationIsAFused(loc)) {
    unsigned n = mlirLocationFusedGetNumLocations(loc);
    MlirLocation *v = arena_new_array(g->scratch, MlirLocation, n);
    mlirLocationFusedGetLocations(loc, v);
    for (unsigned i = 0; i < n; i++)
      collect(g, v[i], depth + 1);
  } else if (mlirLocationIsAFileLineColRange(loc) || mlirLocationIsACallSite(loc)) {
    read_chain(g, loc, depth);
  }
}

static struct gather gather_begin(struct arena *a, struct arena *scratch, struct ir_places *known) {
  return (struct gather){
      .a = a, .scratch = scratch, .known = known, .by_id.arena = scratch, .by_hidden.arena = scratch};
}

const struct src_loc *ir_first_place(struct arena *a, MlirLocation loc) {
  struct gather g = gather_begin(a, a, NULL);
  collect(&g, loc, 0);
  return g.n_places ? g.places[0] : NULL;
}

int ir_op_id(MlirLocation loc) {
  return mlirLocationIsAName(loc) ? id_of_name(loc) : -1;
}

/* ---- operations -------------------------------------------------------------------------------------------------- */

static const struct known_list *find_list(const struct ir_places *k, const void *loc) {
  for (struct index_probe p = index_probe(&k->by_list_loc, hash_pointer(loc)); index_next(&p);)
    if (k->lists.v[p.entry].loc == loc)
      return &k->lists.v[p.entry];
  return NULL;
}

static const struct known_list *add_list(struct ir_places *k, const void *loc, MlirLocation place,
                                         struct src_locs locs) {
  index_add(&k->by_list_loc, hash_pointer(loc), k->lists.n);
  return array_push(k->a, &k->lists, (struct known_list){loc, place, locs});
}

/* The location of the places that were gathered; null if there are none. */
static MlirLocation location_of(MlirContext ctx, struct gather *g) {
  if (!g->n_places)
    return (MlirLocation){NULL};
  for (int i = 0; i < g->n_places; i++)
    if (!g->locs[i].ptr)
      g->locs[i] = ir_loc_of_place(ctx, g->places[i]);
  return g->n_places == 1 ? g->locs[0] : mlirLocationFusedGet(ctx, g->n_places, g->locs, (MlirAttribute){NULL});
}

/* The places that were gathered, whose location is `place`.  Operations with the same places share one list. */
static struct src_locs list_of(struct ir_places *k, const struct gather *g, MlirLocation place) {
  const struct known_list *same = place.ptr ? find_list(k, place.ptr) : NULL;
  if (same && same->locs.n == g->n_places)
    return (struct src_locs){.n = same->locs.n, .v = same->locs.v, .more = g->hidden.n};
  return (struct src_locs){
      .n = g->n_places, .v = arena_dup(k->a, g->places, (size_t)g->n_places * sizeof *g->places), .more = g->hidden.n};
}

struct ir_read ir_places_read(struct ir_places *k, MlirOperation op, struct arena *scratch) {
  const MlirLocation loc = mlirOperationGetLocation(op);
  const int id = ir_op_id(loc);
  const void *inner = id >= 0 ? mlirLocationNameGetChildLoc(loc).ptr : loc.ptr;
  const struct known_list *seen = find_list(k, inner);
  if (seen) {
    const int more = id >= 0 ? more_of_name(loc) : 0;
    struct ir_read r = {.n_from = id >= 0, .first = id, .locs = seen->locs, .place = seen->place};
    r.is_tagged = id >= 0 && seen->place.ptr == inner && !seen->locs.more;
    r.locs.more += more;
    return r;
  }
  struct gather g = gather_begin(k->a, scratch, k);
  g.from = k->few;
  g.from.n = 0;
  collect(&g, loc, 0);
  k->few = g.from;
  struct ir_read r = {.n_from = g.from.n, .first = g.from.n ? g.from.v[0] : -1, .from = g.from.v};
  r.place = location_of(mlirOperationGetContext(op), &g);
  r.locs = list_of(k, &g, r.place);
  if (g.n_names == (id >= 0)) /* no ids below: the inner location says the same for every operation */
    add_list(k, inner, r.place, r.locs);
  r.locs.more += g.more;
  return r;
}

struct src_locs ir_places_first(struct ir_places *k, MlirOperation op, struct arena *scratch) {
  const struct src_locs all = ir_places_read(k, op, scratch).locs;
  return (struct src_locs){.n = all.n > 0, .v = all.n ? all.v : NULL};
}
