/* read: splits a text into lines, each with hashes of what it says and the names in it. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "diff/internal.h"

enum {
  NEST_MAX = 128,   /* deeper brackets are compared in order, as other tokens are */
  ALIAS_MAX = 4096, /* printers make a few dozen */
  NAMES_FIRST = 1024,
};

static uint64_t hash_bytes(const char *s, int n) {
  uint64_t h = 0xcbf29ce484222325u;
  for (int i = 0; i < n; i++)
    h = (h ^ (unsigned char)s[i]) * 0x100000001b3u;
  return h ^ h >> 31;
}

static bool is_word(char c) {
  static const bool word[256] = {
      ['a' ... 'z'] = true, ['A' ... 'Z'] = true, ['0' ... '9'] = true,   ['_'] = true,
      ['.'] = true,         ['$'] = true,         [0x80 ... 0xff] = true,
  };
  return word[(unsigned char)c];
}

static int string_end(const char *s, int at, int len) {
  for (int i = at + 1; i < len; i++) {
    if (s[i] == '\\')
      i++;
    else if (s[i] == '"')
      return i + 1;
  }
  return len;
}

/* The end of the group that the bracket at `at` opens. */
static int group_end(const char *s, int at, int len) {
  char open = s[at], close = open == '(' ? ')' : '}';
  int depth = 0;
  for (int i = at; i < len; i++) {
    if (s[i] == '"')
      i = string_end(s, i, len) - 1;
    else if (s[i] == open)
      depth++;
    else if (s[i] == close && !--depth)
      return i + 1;
  }
  return len;
}

static bool starts(const char *s, int at, int len, const char *word) {
  int n = (int)strlen(word);
  return len - at >= n && !memcmp(s + at, word, (size_t)n) && (!at || !is_word(s[at - 1]));
}

/* The end of a location or metadata that begins at `at`; `at` if none does. */
static int skip_place(const char *s, int at, int len) {
  if (s[at] != 'l' && s[at] != 'm')
    return at;
  if (starts(s, at, len, "loc(") && (!at || s[at - 1] != '@'))
    return group_end(s, at + 3, len);
  if (starts(s, at, len, "metadata={"))
    return group_end(s, at + 9, len);
  return at;
}

int diff_tokens(const char *s, int len, struct token *out) {
  int n = 0;
  for (int i = 0; i < len;) {
    char c = s[i];
    if (c == ' ' || c == '\t' || c == '\r') {
      i++;
      continue;
    }
    int end = skip_place(s, i, len);
    if (end > i) {
      if (n && out[n - 1].kind == TOKEN_PUNCT && s[out[n - 1].start] == ',' && s[i] == 'm')
        n--; /* the comma before metadata */
      i = end;
      continue;
    }
    enum token_kind kind = TOKEN_PUNCT;
    end = i + 1;
    if (n == TOKENS_MAX - 1) {
      kind = TOKEN_WORD;
      end = len;
    } else if (c == '"') {
      kind = TOKEN_STRING;
      end = string_end(s, i, len);
    } else if (is_word(c) ||
               ((c == '%' || c == '#' || c == '!' || c == '^' || c == '@') && i + 1 < len && is_word(s[i + 1]))) {
      kind = c == '%' ? TOKEN_NAME : c == '^' ? TOKEN_BLOCK : TOKEN_WORD;
      while (end < len && (is_word(s[end]) || (s[end] == '-' && end + 1 < len && is_word(s[end + 1]) && c != '%')))
        end++;
      if ((c == '#' || c == '!') && !(s[i + 1] >= '0' && s[i + 1] <= '9') && !memchr(s + i, '.', (size_t)(end - i)))
        kind = TOKEN_ALIAS;
    }
    out[n++] = (struct token){i, end, kind, hash_bytes(s + i, end - i)};
    i = end;
  }
  return n;
}

/* ---- what a line says -------------------------------------------------------------------------------------------- */

struct reader {
  struct arena *arena;
  struct side *side;
  struct token *tokens;
  struct int_map alias; /* hash of "#map1" -> index into meaning */
  uint64_t *meaning;
  int n_alias;
};

static bool is_punct(const char *s, const struct token *t, char c) {
  return t->kind == TOKEN_PUNCT && s[t->start] == c;
}

static uint64_t token_value(const struct reader *r, const struct token *t) {
  switch (t->kind) {
  case TOKEN_NAME:
    return 1;
  case TOKEN_BLOCK:
    return 2;
  case TOKEN_ALIAS: {
    int i = int_map_get(&r->alias, t->hash, -1);
    return i < 0 ? t->hash : r->meaning[i];
  }
  default:
    return t->hash;
  }
}

/* One bracket, or the whole line, while it is read: entries between commas.  Entries that begin with  word =  may come
 * in any order, so their hashes are added up; for other entries the place counts. */
struct level {
  uint64_t ordered, named, entry;
  int at; /* tokens of the entry so far */
  bool is_named;
};

static void end_entry(struct level *v) {
  if (v->is_named)
    v->named += diff_mix(3, v->entry);
  else
    v->ordered = diff_mix(v->ordered, v->entry);
  v->entry = 0;
  v->at = 0;
  v->is_named = false;
}

static uint64_t level_value(struct level *v) {
  end_entry(v);
  return diff_mix(v->ordered, v->named);
}

static uint64_t weak_hash(const struct reader *r, const char *s, const struct token *t, int n) {
  struct level stack[NEST_MAX];
  int depth = 0;
  stack[0] = (struct level){0};
  for (int i = 0; i < n; i++) {
    struct level *v = &stack[depth];
    char c = t[i].kind == TOKEN_PUNCT ? s[t[i].start] : 0;
    if (c == ',') {
      end_entry(v);
      continue;
    }
    if ((c == '{' || c == '(' || c == '[' || c == '<') && depth + 1 < NEST_MAX) {
      v->entry = diff_mix(v->entry, t[i].hash);
      v->at++;
      stack[++depth] = (struct level){0};
      continue;
    }
    if ((c == '}' || c == ')' || c == ']' || (c == '>' && !(i && is_punct(s, &t[i - 1], '-')))) && depth) {
      uint64_t inner = level_value(v);
      v = &stack[--depth];
      v->entry = diff_mix(diff_mix(v->entry, inner), t[i].hash);
      v->at++;
      continue;
    }
    if (c == '=' && v->at == 1 && i && t[i - 1].kind == TOKEN_WORD)
      v->is_named = true;
    v->entry = diff_mix(v->entry, token_value(r, &t[i]));
    v->at++;
  }
  while (depth) {
    uint64_t inner = level_value(&stack[depth--]);
    stack[depth].entry = diff_mix(stack[depth].entry, inner);
  }
  return level_value(&stack[0]);
}

/* ---- names ------------------------------------------------------------------------------------------------------- */

/* The number of tokens before the "=" of a line that begins with its results (%a, %b:2 = …); 0 if it does not. */
static int results_end(const char *s, const struct token *t, int n) {
  int i = 0;
  if (n && t[0].kind == TOKEN_WORD && t[0].end - t[0].start == 4 && !memcmp(s + t[0].start, "ROOT", 4))
    i++;
  while (i < n && t[i].kind == TOKEN_NAME) {
    i++;
    if (i + 1 < n && is_punct(s, &t[i], ':') && t[i + 1].kind == TOKEN_WORD)
      i += 2;
    if (i < n && is_punct(s, &t[i], '='))
      return i;
    if (i >= n || !is_punct(s, &t[i], ','))
      break;
    i++;
  }
  return 0;
}

static bool is_definition(const char *s, const struct token *t, int n, int i, int results) {
  if (i < results)
    return true;
  if (i + 1 >= n)
    return false;
  return is_punct(s, &t[i + 1], '=') || /* %i = %c0 to …, iter_args(%a = %b) */
         (is_punct(s, &t[i + 1], ':') && t[i + 1].start == t[i].end && i &&
          (is_punct(s, &t[i - 1], '(') || is_punct(s, &t[i - 1], ','))); /* (%arg0: type) */
}

/* Adds one name to the side; false when out of memory. */
static bool add_name(struct reader *r, struct name name) {
  struct side *side = r->side;
  if (side->n_names == side->cap_names) {
    const int cap = side->cap_names ? side->cap_names * 2 : NAMES_FIRST;
    const size_t size = (size_t)side->cap_names * sizeof name;
    if (!side->names || !arena_extend(r->arena, side->names, size, (size_t)cap * sizeof name - size)) {
      struct name *v = arena_try_array(r->arena, (size_t)cap, sizeof *v);
      if (!v)
        return false;
      if (side->n_names)
        memcpy(v, side->names, size);
      side->names = v;
    }
    side->cap_names = cap;
  }
  side->names[side->n_names++] = name;
  return true;
}

static bool add_names(struct reader *r, struct line *line, const char *s, const struct token *t, int n) {
  struct side *side = r->side;
  int results = results_end(s, t, n);
  line->names = side->n_names;
  for (int i = 0; i < n; i++)
    if (t[i].kind == TOKEN_NAME && !add_name(r, (struct name){t[i].hash, is_definition(s, t, n, i, results), 0}))
      return false;
  line->n_names = side->n_names - line->names;
  if (results && results + 1 < n) {
    const struct token *op = &t[results + 1];
    int len = op->end - op->start;
    line->is_constant = len >= 8 && !memcmp(s + op->end - 8, "constant", 8);
  }
  return true;
}

/* A line that begins with `#map1 = …` gives the alias its meaning. */
static void note_alias(struct reader *r, struct line *l, const char *s, const struct token *t, int n) {
  if (n < 3 || t[0].kind != TOKEN_ALIAS || !is_punct(s, &t[1], '=') || r->n_alias == ALIAS_MAX)
    return;
  uint64_t meaning = weak_hash(r, s, t + 2, n - 2);
  *int_map_put(&r->alias, t[0].hash, 0) = r->n_alias;
  r->meaning[r->n_alias++] = meaning;
  l->weak = diff_mix(7, meaning);
}

static int count_lines(struct diff_text t) {
  int n = 0;
  for (const char *p = t.data, *end = t.data + t.len; p < end && n <= DIFF_LINES_MAX; n++) {
    const char *nl = memchr(p, '\n', (size_t)(end - p));
    p = nl ? nl + 1 : end;
  }
  return n;
}

/* Sets the strong hashes: each covers the text of a line and of the lines that define its operands. */
static bool add_strong(struct reader *r) {
  struct side *side = r->side;
  struct int_map defs;
  if (!int_map_init(r->arena, &defs, (size_t)side->n_names + 1))
    return false;
  for (int i = 0; i < side->n; i++) {
    struct line *l = &side->lines[i];
    l->strong = l->weak;
    for (int k = 0; k < l->n_names; k++) {
      const struct name *nm = &side->names[l->names + k];
      if (nm->is_def)
        continue;
      int at = int_map_get(&defs, nm->hash, -1);
      l->strong = diff_mix(l->strong, at < 0 ? 5 : side->lines[at].weak);
    }
    for (int k = 0; k < l->n_names; k++)
      if (side->names[l->names + k].is_def)
        *int_map_put(&defs, side->names[l->names + k].hash, i) = i;
  }
  return true;
}

enum status diff_read(struct arena *arena, struct diff_text text, struct side *out, struct error *err) {
  assert(text.len <= DIFF_TEXT_MAX);
  int n = count_lines(text);
  if (n > DIFF_LINES_MAX)
    return fail(err, ST_LIMIT, "the text has more than %d lines", DIFF_LINES_MAX);
  *out = (struct side){.text = text, .n = n, .lines = arena_try_array(arena, (size_t)n + 1, sizeof *out->lines)};
  struct reader r = {.arena = arena,
                     .side = out,
                     .tokens = arena_try_array(arena, TOKENS_MAX, sizeof *r.tokens),
                     .meaning = arena_try_array(arena, ALIAS_MAX, sizeof *r.meaning)};
  if (!out->lines || !r.tokens || !r.meaning || !int_map_init(arena, &r.alias, ALIAS_MAX))
    return diff_no_memory(err);
  const char *p = text.data, *end = text.data + text.len;
  for (int i = 0; i < n; i++) {
    const char *nl = memchr(p, '\n', (size_t)(end - p));
    struct line *l = &out->lines[i];
    assert(p < end);
    l->start = (int)(p - text.data);
    l->len = (int)((nl ? nl : end) - p);
    int k = diff_tokens(p, l->len, r.tokens);
    l->weak = weak_hash(&r, p, r.tokens, k);
    note_alias(&r, l, p, r.tokens, k);
    if (!add_names(&r, l, p, r.tokens, k))
      return diff_no_memory(err);
    p = nl ? nl + 1 : end;
  }
  return add_strong(&r) ? ST_OK : diff_no_memory(err);
}
