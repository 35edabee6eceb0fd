#include "driver/sources.h"

#include <assert.h>
#include <string.h>

#include "base/array.h"
#include "base/json.h"

struct sources_place {
  int file, line, col, end_line, end_col;
  const char *func; /* "": unknown */
  int caller;       /* number of a place before this one; -1: none */
  int n_loops;
  const int *loops; /* numbers of places before this one: the headers of the loops of the function around it */
};

struct sources_list {
  int n, places[SRC_LOCS_SHOWN];
  int more;                                    /* the number of places that are not listed */
  const struct rounds *rounds[SRC_LOCS_SHOWN]; /* of each place; NULL: none */
};

void sources_init(struct sources *s, struct arena *a, const char *main_file) {
  *s = (struct sources){.arena = a, .by_place.arena = a, .by_list.arena = a};
  s->recent = arena_new_array(a, struct sources_recent, SOURCES_RECENT);
  array_push(a, &s->files, main_file);
}

/* ---- numbers ----------------------------------------------------------------------------------------------------- */

/* A linear search is fast enough, because a job has few files. */
static int number_file(struct sources *s, const char *file) {
  const char *name = file ? file : "";
  for (int i = 0; i < s->files.n; i++)
    if (s->files.v[i] == name || !strcmp(s->files.v[i], name))
      return i;
  array_push(s->arena, &s->files, name);
  return s->files.n - 1;
}

static void set_range(struct sources_place *p, const struct src_range *r) {
  p->line = r->line;
  p->col = r->col;
  p->end_line = r->end_line;
  p->end_col = r->end_col;
}

static uint32_t hash_place(const struct sources_place *p) {
  uint64_t h = hash_mix((uint64_t)p->file, (uint64_t)p->line << 32 | (unsigned)p->col);
  h = hash_mix(h, (uint64_t)p->end_line << 32 | (unsigned)p->end_col);
  h = hash_mix(h, (uint64_t)p->caller);
  return (uint32_t)hash_mix(h, (uint64_t)p->n_loops);
}

static bool same_place(const struct sources_place *x, const struct sources_place *y) {
  return x->file == y->file && x->line == y->line && x->col == y->col && x->end_line == y->end_line &&
         x->end_col == y->end_col && x->caller == y->caller && x->n_loops == y->n_loops &&
         (!x->n_loops || !memcmp(x->loops, y->loops, (size_t)x->n_loops * sizeof *x->loops)) &&
         !strcmp(x->func, y->func);
}

static int number_of(struct sources *s, const struct sources_place *p) {
  const uint32_t hash = hash_place(p);
  for (struct index_probe at = index_probe(&s->by_place, hash); index_next(&at);)
    if (same_place(&s->places.v[at.entry], p))
      return at.entry;
  index_add(&s->by_place, hash, s->places.n);
  array_push(s->arena, &s->places, *p);
  return s->places.n - 1;
}

/* A caller and the loops get their numbers before the places that they enclose. */
static int number_place(struct sources *s, const struct src_loc *loc) {
  const struct src_range *r = &loc->range;
  struct sources_place p = {
      .file = number_file(s, r->file),
      .func = loc->func ? loc->func : "",
      .caller = loc->caller ? number_place(s, loc->caller) : -1,
  };
  struct sources_place loop = p; /* the headers of loops are in the same function, called from the same place */
  int *loops = loc->n_loops ? arena_new_array(s->arena, int, (size_t)loc->n_loops) : NULL;
  for (int i = 0; i < loc->n_loops; i++) {
    set_range(&loop, &loc->loops[i]);
    loops[i] = number_of(s, &loop);
  }
  set_range(&p, r);
  p.n_loops = loc->n_loops;
  p.loops = loops;
  return number_of(s, &p);
}

static bool same_list(const struct sources_list *x, const struct sources_list *y) {
  if (x->n != y->n || x->more != y->more || memcmp(x->places, y->places, (size_t)x->n * sizeof *x->places) != 0)
    return false;
  for (int i = 0; i < x->n; i++)
    if (!rounds_equal(x->rounds[i], y->rounds[i]))
      return false;
  return true;
}

static int number_list(struct sources *s, struct src_locs locs) {
  struct sources_list l = {.n = src_locs_shown(locs), .more = src_locs_hidden(locs)};
  uint32_t hash = (uint32_t)l.more;
  for (int i = 0; i < l.n; i++) {
    const struct rounds *r = l.rounds[i] = locs.v[i]->rounds;
    l.places[i] = number_place(s, locs.v[i]);
    if (r)
      hash = (uint32_t)hash_mix(hash, hash_bytes(r->v, (size_t)(r->n * r->depth) * sizeof *r->v));
  }
  hash += hash_bytes(l.places, (size_t)l.n * sizeof *l.places);
  for (struct index_probe at = index_probe(&s->by_list, hash); index_next(&at);)
    if (same_list(&s->lists.v[at.entry], &l))
      return at.entry;
  index_add(&s->by_list, hash, s->lists.n);
  array_push(s->arena, &s->lists, l);
  return s->lists.n - 1;
}

int sources_number(struct sources *s, struct src_locs locs) {
  assert(s->arena);
  if (!locs.n)
    return -1;
  struct sources_recent *r = &s->recent[hash_pointer(locs.v) % SOURCES_RECENT];
  if (r->locs.v != locs.v || r->locs.n != locs.n || r->locs.more != locs.more)
    *r = (struct sources_recent){locs, number_list(s, locs)};
  return r->number;
}

/* ---- frames ------------------------------------------------------------------------------------------------------ */

bool sources_has_news(const struct sources *s) {
  return s->lists_sent < s->lists.n; /* new places and files exist only with a new list that refers to them */
}

static void put_place(struct buf *b, const struct sources_place *p) {
  json_put_comma(b);
  buf_printf(b, "[%d,%d,%d,%d,%d,", p->file, p->line, p->col, p->end_line, p->end_col);
  json_put_cstr(b, p->func);
  buf_putc(b, ',');
  json_put_int(b, p->caller);
  for (int i = 0; i < p->n_loops; i++)
    buf_printf(b, i ? ",%d" : ",[%d", p->loops[i]);
  buf_puts(b, p->n_loops ? "]]" : "]");
}

/* Appends the members "rounds" and "more_rounds" if a place has them. */
static void put_rounds(struct buf *b, const struct sources_list *l) {
  int most = 0;
  bool any = false;
  for (int i = 0; i < l->n; i++) {
    any |= l->rounds[i] != NULL;
    most = l->rounds[i] && l->rounds[i]->more > most ? l->rounds[i]->more : most;
  }
  if (!any)
    return;
  json_put_key(b, "rounds");
  for (int i = 0; i < l->n; i++) {
    buf_putc(b, i ? ',' : '[');
    if (l->rounds[i])
      rounds_put_json(b, l->rounds[i]);
    else
      buf_puts(b, "null");
  }
  buf_putc(b, ']');
  if (most)
    json_put_field_int(b, "more_rounds", most);
}

static void put_list(struct buf *b, const struct sources_list *l) {
  json_put_comma(b);
  buf_puts(b, "{\"places\":[");
  for (int i = 0; i < l->n; i++) {
    json_put_comma(b);
    json_put_int(b, l->places[i]);
  }
  buf_putc(b, ']');
  put_rounds(b, l);
  if (l->more)
    json_put_field_int(b, "more", l->more);
  buf_putc(b, '}');
}

void sources_put_members(struct buf *b, struct sources *s) {
  buf_puts(b, ",\"files\":[");
  for (; s->files_sent < s->files.n; s->files_sent++) {
    json_put_comma(b);
    json_put_cstr(b, s->files.v[s->files_sent]);
  }
  buf_puts(b, "],\"places\":[");
  for (; s->places_sent < s->places.n; s->places_sent++)
    put_place(b, &s->places.v[s->places_sent]);
  buf_puts(b, "],\"sources\":[");
  for (; s->lists_sent < s->lists.n; s->lists_sent++)
    put_list(b, &s->lists.v[s->lists_sent]);
  buf_putc(b, ']');
}

void sources_put_frame(struct buf *b, struct sources *s) {
  buf_puts(b, "{\"frame\":\"sources\"");
  sources_put_members(b, s);
  buf_putc(b, '}');
}
