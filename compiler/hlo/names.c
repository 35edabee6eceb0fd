/* names: a set of taken names, and XLA's spelling rules.
 *
 * XLA refuses a module in which two instructions share a name, and Python's identifiers may have letters that XLA's may
 * not, so every name passes through here once.  The table uses open addressing and a power of two of slots in the arena;
 * all tables that it outgrew take less memory than the last one.
 */
#include "hlo/names.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/dtype.h"

struct slot {
  const char *name;
  uint32_t hash; /* of name: saves most comparisons of the texts, which are far apart in memory */
  int n_tried;   /* suffixes tried so far: thousands of instructions may ask for one name */
};

/* An instruction without a name is called "op<id>".  Such names are in the table only if a caller asked for one: ids are
 * never reused, so the others need no look-up. */
struct hlo_names {
  struct slot *v;
  size_t n, cap;
  bool asked_automatic; /* for a name of that kind */
  int n_automatic;      /* ids below may have such a name */
};

static uint32_t hash_text(const char *s) {
  uint64_t h = 1469598103934665603u; /* FNV-1a */
  for (; *s; s++)
    h = (h ^ (unsigned char)*s) * 1099511628211u;
  return (uint32_t)(h ^ h >> 29);
}

/* The slot that holds name, or the empty one where it belongs. */
static size_t find_slot(const struct hlo_names *s, const char *name, uint32_t hash) {
  size_t i = hash & (s->cap - 1);
  while (s->v[i].name && (s->v[i].hash != hash || strcmp(s->v[i].name, name) != 0))
    i = (i + 1) & (s->cap - 1);
  return i;
}

struct hlo_names *hlo_names_new(struct arena *a) {
  struct hlo_names *s = arena_new(a, struct hlo_names);
  s->cap = 64;
  s->v = arena_new_array(a, struct slot, s->cap);
  return s;
}

static void grow(struct arena *a, struct hlo_names *s) {
  const struct slot *old = s->v;
  const size_t n = s->cap;
  s->cap *= 2;
  s->v = arena_new_array(a, struct slot, s->cap);
  for (size_t i = 0; i < n; i++) {
    size_t at = old[i].hash & (s->cap - 1);
    while (old[i].name && s->v[at].name)
      at = (at + 1) & (s->cap - 1);
    if (old[i].name)
      s->v[at] = old[i];
  }
}

/* The id in "op<id>", or -1. */
static int automatic_id(const char *name) {
  int64_t id = 0;
  if (name[0] != 'o' || name[1] != 'p' || !name[2] || (name[2] == '0' && name[3]))
    return -1;
  for (const char *p = name + 2; *p; p++) {
    if (*p < '0' || *p > '9')
      return -1;
    id = id * 10 + (*p - '0');
    if (id > INT32_MAX)
      return -1;
  }
  return (int)id;
}

static void put(struct hlo_names *s, size_t slot, const char *name, uint32_t hash) {
  s->v[slot] = (struct slot){.name = name, .hash = hash};
  s->n++;
}

/* A caller asks for `name`.  If it is an automatic name that an instruction may have, it is taken; if it is one that may
 * still be given, automatic names are looked up from now on. */
static void note_asked(struct arena *a, struct hlo_names *s, const char *name) {
  const int id = automatic_id(name);
  if (id < 0)
    return;
  if (id >= s->n_automatic) {
    s->asked_automatic = true;
    return;
  }
  const uint32_t hash = hash_text(name);
  const size_t slot = find_slot(s, name, hash);
  if (!s->v[slot].name)
    put(s, slot, arena_strdup(a, name), hash);
}

const char *hlo_names_take(struct arena *a, struct hlo_names *s, const char *wanted) {
  if (s->n * 4 >= s->cap * 3)
    grow(a, s);
  const char *name = wanted;
  uint32_t hash = hash_text(name);
  size_t first = find_slot(s, name, hash);
  if (!s->v[first].name) { /* names in the table need no change */
    name = hlo_sanitize_name(a, wanted);
    note_asked(a, s, name);
    hash = hash_text(name);
    first = find_slot(s, name, hash);
  }
  const char *base = name;
  size_t slot = first;
  while (s->v[slot].name) {
    name = arena_printf(a, "%s.%d", base, ++s->v[first].n_tried);
    hash = hash_text(name);
    slot = find_slot(s, name, hash);
  }
  if (name == wanted)
    name = arena_strdup(a, wanted);
  put(s, slot, name, hash);
  return name;
}

const char *hlo_names_take_automatic(struct arena *a, struct hlo_names *s, int id) {
  const char *name = arena_printf(a, "op%d", id);
  if (s->asked_automatic)
    return hlo_names_take(a, s, name);
  s->n_automatic = id + 1;
  return name;
}

void hlo_names_inherit(struct arena *a, struct hlo_names *s, const struct hlo_names *older) {
  for (size_t i = 0; i < older->cap; i++) {
    const struct slot *x = &older->v[i];
    if (!x->name)
      continue;
    if (s->n * 4 >= s->cap * 3)
      grow(a, s);
    const size_t slot = find_slot(s, x->name, x->hash);
    if (!s->v[slot].name)
      put(s, slot, arena_strdup(a, x->name), x->hash);
    if (s->v[slot].n_tried < x->n_tried)
      s->v[slot].n_tried = x->n_tried;
  }
}

static bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}
static bool is_name_char(char c) {
  return is_letter(c) || (c >= '0' && c <= '9') || c == '.' || c == '-';
}

/* Words that XLA's lexer does not read as a name without a '%' before them (as in a module's name). */
static bool is_reserved(const char *s) {
  static const char *const words[] = {"HloModule", "ENTRY",      "ROOT",     "true",           "false",
                                      "maximal",   "replicated", "manual",   "unknown",        "inf",
                                      "nan",       "unreduced",  "shard_as", "last_tile_dims", "shard_like"};
  for (size_t i = 0; i < sizeof words / sizeof *words; i++)
    if (!strcmp(words[i], s))
      return true;
  static const char *const types[] = {
      "c64",        "c128",       "opaque",    "token",   "s1",     "s2",       "s4",     "u1",
      "u2",         "u4",         "buffer",    "f8e5m2",  "f8e4m3", "f8e4m3fn", "f8e3m4", "f8e4m3b11fnuz",
      "f8e5m2fnuz", "f8e4m3fnuz", "f8e8m0fnu", "f4e2m1fn"};
  for (size_t i = 0; i < sizeof types / sizeof *types; i++)
    if (!strcmp(types[i], s))
      return true;
  return dtype_from_hlo_name(s) != DT_NONE;
}

const char *hlo_sanitize_name(struct arena *a, const char *name) {
  bool good = is_letter(*name);
  for (const char *p = name; *p && good; p++)
    good = is_name_char(*p);
  if (!good) {
    /* one '_' per byte, so that the length stays what the user sees in bytes */
    char *out = arena_printf(a, "%s%s", is_name_char(*name) && !is_letter(*name) ? "_" : "", *name ? name : "_");
    for (char *p = out; *p; p++)
      if (!is_name_char(*p))
        *p = '_';
    name = out;
  }
  return is_reserved(name) ? arena_printf(a, "%s_", name) : name;
}
