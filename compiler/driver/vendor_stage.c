#include "driver/vendor_stage.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/json.h"

struct vendor_name {
  const char *name;
  const struct src_loc *loc;
};

/* ---- names ------------------------------------------------------------------------------------------------------- */

void vendor_names_init(struct vendor_names *x, struct arena *a) {
  *x = (struct vendor_names){.arena = a, .by_name = {.arena = a}};
}

static const struct src_loc *find(const struct vendor_names *x, const char *name, size_t n) {
  for (struct index_probe p = index_probe(&x->by_name, hash_bytes(name, n)); index_next(&p);) {
    const struct vendor_name *known = &x->all.v[p.entry];
    if (strlen(known->name) == n && !memcmp(known->name, name, n))
      return known->loc;
  }
  return NULL;
}

static void add(struct vendor_names *x, const char *name, const struct src_loc *loc) {
  const size_t n = strlen(name);
  if (!n || find(x, name, n))
    return;
  array_push(x->arena, &x->all, ((struct vendor_name){name, loc}));
  index_add(&x->by_name, hash_bytes(name, n), x->all.n - 1);
}

void vendor_names_add(struct vendor_names *x, const char *name, const struct src_loc *loc) {
  char *identifier = arena_strdup(x->arena, name);
  for (char *p = identifier; *p; p++)
    *p = *p == '.' || *p == '-' ? '_' : *p;
  add(x, name, loc);
  add(x, identifier, loc);
  const char *file = loc->range.file ? loc->range.file : "", *slash = strrchr(file, '/');
  if (*file)
    add(x, arena_printf(x->arena, "%s:%d", file, loc->range.line), loc);
  if (slash)
    add(x, arena_printf(x->arena, "%s:%d", slash + 1, loc->range.line), loc);
}

/* ---- lines ------------------------------------------------------------------------------------------------------- */

static bool is_part(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.' ||
         c == '-' || c == '/';
}

static bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

/* The length of the word at p, without the full stops after it; with is_place it includes ":LINE", if that follows. */
static size_t word_at(const char *p, const char *end, bool is_place) {
  size_t n = 0, digits = 0;
  while (p + n < end && is_part(p[n]))
    n++;
  if (is_place && p + n < end && p[n] == ':')
    while (p + n + 1 + digits < end && is_digit(p[n + 1 + digits]))
      digits++;
  if (digits)
    return n + 1 + digits;
  while (n > 1 && p[n - 1] == '.')
    n--;
  return n;
}

/* The Python identifier that the word begins with: `x` of `x.T` and of `a-b`. */
static size_t identifier_at(const char *p, size_t n) {
  size_t k = 0;
  while (k < n && (p[k] == '_' || (is_part(p[k]) && p[k] != '.' && p[k] != '-' && p[k] != '/')))
    k++;
  return k;
}

static const struct src_loc *place_of(const struct vendor_names *names, const char *p, const char *end, size_t *took) {
  const size_t place = word_at(p, end, true), word = word_at(p, end, false), id = identifier_at(p, word);
  const struct src_loc *loc = find(names, p, place);
  *took = place;
  if (!loc)
    loc = find(names, p, word);
  return loc || !id ? loc : find(names, p, id);
}

/* The places of what the line from p to end names, each once. */
static struct src_locs places_of(const struct vendor_names *names, const char *p, const char *end) {
  struct src_locs locs = {0};
  for (size_t n = 0; p < end; p += n ? n : 1) {
    const struct src_loc *loc = place_of(names, p, end, &n);
    if (loc)
      locs = src_locs_union(names->arena, locs, src_locs_one(names->arena, loc));
  }
  return locs;
}

/* ---- the stage --------------------------------------------------------------------------------------------------- */

/* What a line does: the function that it calls first, or its first word; length 0: it is empty, or a comment. */
static const char *name_of(const char *p, const char *end, size_t *n) {
  *n = 0;
  while (p < end && (*p == ' ' || *p == '\t' || *p == '\r'))
    p++;
  if (p == end || *p == '#')
    return p;
  for (const char *q = memchr(p, '(', (size_t)(end - p)); q; q = NULL) {
    const char *from = q;
    while (from > p && is_part(from[-1]) && from[-1] != '-' && from[-1] != '/')
      from--;
    *n = (size_t)(q - from);
    if (*n && memchr(from, '.', *n)) /* a function of a module, such as nl.load */
      return from;
  }
  *n = identifier_at(p, (size_t)(end - p));
  *n = *n ? *n : 1; /* a bracket */
  return p;
}

struct count {
  const char *name;
  size_t n;
  int times;
};

static int by_name(const void *x, const void *y) {
  const struct count *a = x, *b = y;
  const int order = memcmp(a->name, b->name, a->n < b->n ? a->n : b->n);
  return order ? order : (a->n > b->n) - (a->n < b->n);
}

/* The operations of the text, one for each line that does something. */
struct operations {
  struct arena *arena;
  struct {
    struct count *v;
    int n, cap;
  } kinds;
  struct index by_name;
};

static void count(struct operations *o, const char *name, size_t n) {
  const uint32_t hash = hash_bytes(name, n);
  for (struct index_probe p = index_probe(&o->by_name, hash); index_next(&p);) {
    struct count *c = &o->kinds.v[p.entry];
    if (c->n == n && !memcmp(c->name, name, n)) {
      c->times++;
      return;
    }
  }
  array_push(o->arena, &o->kinds, ((struct count){name, n, 1}));
  index_add(&o->by_name, hash, o->kinds.n - 1);
}

/* Appends "lines", and counts what they do. */
static void put_lines(struct buf *b, const struct vendor_stage *s, const struct vendor_names *names,
                      struct sources *sources, struct operations *o) {
  const char *end = s->text + s->len;
  int id = 0;
  json_put_key(b, "lines");
  buf_putc(b, '[');
  for (const char *p = s->text; p < end;) {
    const char *nl = memchr(p, '\n', (size_t)(end - p)), *eol = nl ? nl : end;
    size_t n;
    const char *name = name_of(p, eol, &n);
    json_put_comma(b);
    buf_putc(b, '{');
    const int src = sources_number(sources, places_of(names, p, eol));
    if (n)
      count(o, name, n);
    if (n || src >= 0)
      json_put_field_int(b, "op", id++);
    if (src >= 0)
      json_put_field_int(b, "src", src);
    buf_putc(b, '}');
    p = eol + 1;
  }
  buf_putc(b, ']');
}

static void put_counts(struct buf *b, struct operations *o) {
  if (o->kinds.n)
    qsort(o->kinds.v, (size_t)o->kinds.n, sizeof *o->kinds.v, by_name);
  json_put_key(b, "op_counts");
  buf_putc(b, '{');
  for (int i = 0; i < o->kinds.n; i++) {
    json_put_comma(b);
    json_put_string(b, o->kinds.v[i].name, o->kinds.v[i].n);
    buf_putc(b, ':');
    json_put_int(b, o->kinds.v[i].times);
  }
  buf_putc(b, '}');
}

void vendor_stage_put(struct buf *b, const struct vendor_stage *s, const struct vendor_names *names,
                      struct sources *sources) {
  struct operations o = {.arena = names->arena, .by_name = {.arena = names->arena}};
  buf_putc(b, '{');
  json_put_field_int(b, "index", s->index);
  json_put_field_str(b, "name", VENDOR_STAGE_NAME);
  json_put_field_str(b, "pass", "neuronx-cc --pipeline tensorize --tensorizer-options=--print-nki");
  json_put_field_str(b, "phase", "Vendor");
  json_put_field_str(b, "dialect", "nki");
  json_put_field_bool(b, "changed", true);
  json_put_field_int(b, "time_us", s->time_us);
  json_put_key(b, "text");
  json_put_string(b, s->text, s->len);
  put_lines(b, s, names, sources, &o);
  put_counts(b, &o);
  buf_puts(b, ",\"from\":{}}");
}
