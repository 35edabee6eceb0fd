/* counterpart: see the header.  The texts are read line by line: names are bound by region, and each line gets a number from what
 * it says.  The numbers of lines and of the names in them then take in those of their neighbours, as in the refinement of colours
 * that tells graphs apart. */
#include "diff/counterpart.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/index.h"

enum { ROUNDS = 12 };

struct name {
  const char *text; /* "%sbuf_3", "#map1"; borrowed */
  size_t len;
  int node; /* what it stands for on this line; -1: nothing */
};

/* A binding that a region's end undoes. */
struct binding {
  int name, before, depth;
};

/* What a name stands for. */
struct node {
  uint64_t said;   /* by its definition */
  uint64_t colour; /* of the round */
  int base;        /* the node whose colour it shares: views share that of their buffer */
  bool is_fixed;   /* what is said is all that counts: constants, indices, arguments */
};

struct line {
  const char *text; /* trimmed; borrowed */
  size_t len;
  uint64_t place, expression; /* 0: it has no expression */
  uint64_t colour[ROUNDS + 1];
  int first, n; /* its names, in reader.uses */
};

struct reader {
  struct arena *arena;
  struct {
    struct name *v;
    int n, cap;
  } names; /* each once */
  struct index by_text;
  struct {
    struct binding *v;
    int n, cap;
  } bindings;
  struct {
    struct node *v;
    int n, cap;
  } nodes;
  struct {
    int *v, n, cap;
  } uses;
  struct line *lines;
  int n_lines, depth;
};

/* ---- numbers ----------------------------------------------------------------------------------------------------- */

static uint64_t mix(uint64_t h, uint64_t x) {
  h ^= x + 0x9e3779b97f4a7c15U + (h << 6) + (h >> 2);
  h *= 0xff51afd7ed558ccdU;
  return h ^ h >> 32;
}

static uint64_t mix_text(uint64_t h, const char *s, size_t n) {
  for (size_t i = 0; i < n; i++)
    h = (h ^ (unsigned char)s[i]) * 0x100000001b3U;
  return mix(h, n);
}

/* ---- words ------------------------------------------------------------------------------------------------------- */

static bool is_name_char(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.' ||
         c == '$' || c == '-';
}

static bool begins(const char *s, size_t n, const char *with) {
  return n >= strlen(with) && !memcmp(s, with, strlen(with));
}

static bool is_among(const char *s, size_t n, const char *const *list, size_t count) {
  for (size_t i = 0; i < count; i++)
    if (begins(s, n, list[i]))
      return true;
  return false;
}
#define IS_AMONG(s, n, list) is_among(s, n, list, sizeof(list) / sizeof *(list))

/* The length of a name at s, which begins with % or #; 0: there is none. */
static size_t name_at(const char *s, size_t n) {
  size_t k = 1;
  if (n < 2 || (*s != '%' && *s != '#'))
    return 0;
  while (k < n && is_name_char(s[k]))
    k++;
  return k > 1 ? k : 0;
}

/* Where the operation begins: after "%x = ", "%x:2 = ", "ROOT %x = ". */
static size_t operation_at(const char *s, size_t n) {
  size_t k = begins(s, n, "ROOT ") ? 5 : 0;
  const size_t name = name_at(s + k, n - k);
  if (!name)
    return 0;
  k += name;
  while (k < n && (s[k] == ':' || (s[k] >= '0' && s[k] <= '9')))
    k++;
  return n - k > 3 && !memcmp(s + k, " = ", 3) ? k + 3 : 0;
}

/* The end of a type of HLO: "f32[2]{0}", "(f32[], f32[])". */
static size_t end_of_type(const char *s, size_t n) {
  int depth = 0;
  size_t k = 0;
  for (; k < n && (depth || s[k] != ' '); k++)
    depth += (s[k] == '(') - (s[k] == ')');
  return k;
}

struct part {
  const char *s;
  size_t n;
};

/* True for "f32[2]{0} tanh(…": HLO has the type before the operation. */
static bool is_hlo(const char *s, size_t n) {
  const size_t end = end_of_type(s, n);
  return memchr(s, '[', end) && !memchr(s, '.', end) && end < n &&
         (*s == '(' || memchr(s, '{', end) || s[end - 1] == ']');
}

/* The word that names the operation. */
static struct part kind_of(const char *s, size_t n) {
  size_t k = operation_at(s, n), end;
  if (k && is_hlo(s + k, n - k))
    k += end_of_type(s + k, n - k) + 1;
  k += k < n && s[k] == '"';
  for (end = k; end < n && is_name_char(s[end]);)
    end++;
  return end > k ? (struct part){s + k, end - k} : (struct part){s, 0};
}

/* What the operation writes: the operand dst of NISA, the outs of linalg, the type of a result. */
static struct part place_of(const char *s, size_t n) {
  const size_t k = operation_at(s, n);
  if (k && is_hlo(s + k, n - k))
    return (struct part){s + k, end_of_type(s + k, n - k)};
  for (size_t i = k; i + 5 < n; i++)
    if (!memcmp(s + i, "(dst<", 5) || !memcmp(s + i, "outs(", 5)) {
      const char until = s[i] == 'o' ? ')' : ']';
      bool in_type = false; /* of memref<…, strided<[…]>> */
      for (size_t j = i + 5, angle = 0; j < n; j++) {
        angle += s[j] == '<';
        angle -= s[j] == '>' && s[j - 1] != '-' && angle;
        in_type = angle > 0;
        if (s[j] == until && !in_type)
          return (struct part){s + i, j - i};
      }
    }
  for (size_t i = n; i > k + 3; i--)
    if (!memcmp(s + i - 3, " : ", 3) || !memcmp(s + i - 3, "-> ", 3))
      return (struct part){s + i, n - i};
  return (struct part){s, 0};
}

/* ---- reading ----------------------------------------------------------------------------------------------------- */

static int find_name(const struct reader *r, const char *s, size_t n) {
  for (struct index_probe p = index_probe(&r->by_text, (uint32_t)mix_text(0, s, n)); index_next(&p);)
    if (r->names.v[p.entry].len == n && !memcmp(r->names.v[p.entry].text, s, n))
      return p.entry;
  return -1;
}

/* The node that a name stands for; -1: none that is known. */
static int find(const struct reader *r, const char *s, size_t n) {
  const int name = find_name(r, s, n);
  return name >= 0 ? r->names.v[name].node : -1;
}

static void bind(struct reader *r, const char *s, size_t n, struct node node, int depth) {
  int name = find_name(r, s, n);
  if (name < 0) {
    const struct name new = {s, n, -1};
    name = r->names.n;
    array_push(r->arena, &r->names, new);
    index_add(&r->by_text, (uint32_t)mix_text(0, s, n), name);
  }
  const struct binding binding = {name, r->names.v[name].node, depth};
  array_push(r->arena, &r->bindings, binding);
  r->names.v[name].node = r->nodes.n;
  if (node.base < 0)
    node.base = r->nodes.n;
  array_push(r->arena, &r->nodes, node);
}

static void leave_regions(struct reader *r) {
  while (r->bindings.n && r->bindings.v[r->bindings.n - 1].depth > r->depth) {
    const struct binding *b = &r->bindings.v[--r->bindings.n];
    r->names.v[b->name].node = b->before;
  }
}

/* Attributes that say who executes an instruction and where a buffer lies: their length at s, or 0. */
static size_t placement_at(const char *s, size_t n) {
  static const char *const words[] = {" engine=", " signal", " at=[", " copies=", " stride=", " alignment="};
  if (!IS_AMONG(s, n, words))
    return 0;
  size_t k = 1;
  while (k < n && s[k] != ' ' && s[k] != ')')
    k += s[k] == '[' && memchr(s + k, ']', n - k) ? (size_t)((const char *)memchr(s + k, ']', n - k) - s) - k + 1 : 1;
  return k;
}

/* The number of a text: what names stand for is in their places. */
static uint64_t number_of(const struct reader *r, const char *s, size_t n, uint64_t h) {
  for (size_t k = 0; k < n;) {
    const size_t name = name_at(s + k, n - k), skipped = placement_at(s + k, n - k);
    if (skipped) {
      k += skipped;
    } else if (name) {
      const int node = find(r, s + k, name);
      h = node >= 0 ? mix(h, r->nodes.v[node].said) : s[k] == '%' ? mix(h, 1) : mix_text(h, s + k, name);
      k += name;
    } else {
      h = (h ^ (unsigned char)s[k++]) * 0x100000001b3U;
    }
  }
  return mix(h, 0);
}

/* What a result is, by the operation that defines it. */
static const char *const fixed[] = {"arith.", "affine.apply", "memref.dim"};
static const char *const views[] = {"memref.subview",        "memref.cast",         "memref.expand_shape",
                                    "memref.collapse_shape", "memref.memory_space", "memref.reinterpret",
                                    "nisa.rotate",           "memref.view"};
static const char *const buffers[] = {"memref.alloc", "nisa.alloc"};

/* Binds the result that a line defines. */
static void define_result(struct reader *r, const struct line *l) {
  const size_t at = operation_at(l->text, l->len), skip = begins(l->text, l->len, "ROOT ") ? 5 : 0;
  const char *s = l->text + at;
  const size_t n = l->len - at;
  struct node node = {.said = 2, .base = -1};
  if (!at)
    return;
  if (IS_AMONG(s, n, fixed) || *l->text == '#') {
    node.said = number_of(r, s, n, 3);
    node.is_fixed = true;
  } else if (IS_AMONG(s, n, views)) {
    const char *base = memchr(s, '%', n);
    const size_t len = base ? name_at(base, n - (size_t)(base - s)) : 0;
    const int of = len ? find(r, base, len) : -1;
    node.base = of >= 0 ? r->nodes.v[of].base : -1;
    node.said = begins(s, n, "nisa.rotate") && of >= 0 ? r->nodes.v[of].said : number_of(r, s, n, 4);
    node.is_fixed = of >= 0 && r->nodes.v[of].is_fixed;
  } else if (IS_AMONG(s, n, buffers)) {
    node.said = number_of(r, s, n, 5);
  }
  bind(r, l->text + skip, name_at(l->text + skip, l->len - skip), node, r->depth);
}

/* Binds what a region's header defines: a loop's index, the arguments of a function or block. */
static void define_arguments(struct reader *r, const struct line *l) {
  static const char *const headers[] = {"func.func", "ENTRY", "^bb", "%"};
  const bool is_loop = begins(l->text, l->len, "scf.for ");
  const bool is_header = IS_AMONG(l->text, l->len, headers) && !operation_at(l->text, l->len);
  const char *const end = l->text + l->len;
  int count = 0;
  if (is_loop) {
    const size_t n = name_at(l->text + 8, l->len - 8);
    const struct node index = {.said = number_of(r, l->text + 8 + n, l->len - 8 - n, 6), .base = -1, .is_fixed = true};
    bind(r, l->text + 8, n, index, r->depth + 1);
  }
  for (const char *s = l->text; is_header && s < end;) {
    const size_t n = name_at(s, (size_t)(end - s));
    if (n && *s == '%' && s + n < end && s[n] == ':') {
      const struct node argument = {.said = mix(7, (uint64_t)count++), .base = -1, .is_fixed = *l->text != '^'};
      bind(r, s, n, argument, r->depth + 1);
    }
    s += n ? n : 1;
  }
}

static void take_uses(struct reader *r, struct line *l) {
  l->first = r->uses.n;
  for (size_t k = 0; k < l->len;) {
    const size_t n = name_at(l->text + k, l->len - k);
    const int node = n ? find(r, l->text + k, n) : -1;
    if (node >= 0 && !r->nodes.v[node].is_fixed)
      array_push(r->arena, &r->uses, r->nodes.v[node].base);
    k += n ? n : 1;
  }
  l->n = r->uses.n - l->first;
}

static void read_line(struct reader *r, struct line *l, const char *expression) {
  const struct part kind = kind_of(l->text, l->len), place = place_of(l->text, l->len);
  const size_t at = operation_at(l->text, l->len);
  l->expression = expression ? mix_text(8, expression, strlen(expression)) : 0;
  l->place = number_of(r, place.s, place.n, mix_text(9, kind.s, kind.n));
  l->colour[0] = number_of(r, l->text + at, l->len - at, 11);
  define_result(r, l);
  define_arguments(r, l);
  take_uses(r, l);
  int opened = 0;
  for (size_t k = 0; k < l->len; k++) {
    opened += (l->text[k] == '{') - (l->text[k] == '}');
    if (opened < 0) {
      r->depth--;
      opened++;
      leave_regions(r);
    }
  }
  r->depth += opened;
}

static void read_side(struct reader *r, const struct counterpart_side *side) {
  const char *p = side->text.data, *const end = p + side->text.len;
  r->n_lines = side->n_lines;
  r->lines = arena_new_array(r->arena, struct line, (size_t)side->n_lines + 1);
  for (int i = 0; i < side->n_lines && p < end; i++) {
    const char *stop = memchr(p, '\n', (size_t)(end - p));
    const char *next = stop ? stop + 1 : end;
    stop = stop ? stop : end;
    while (p < stop && *p == ' ')
      p++;
    r->lines[i].text = p;
    r->lines[i].len = (size_t)(stop - p);
    read_line(r, &r->lines[i], side->expressions ? side->expressions[i] : NULL);
    p = next;
  }
}

/* Each line takes in its names, each name its lines. */
static void refine(struct reader *r) {
  uint64_t *sums = arena_new_array(r->arena, uint64_t, (size_t)r->nodes.n + 1);
  for (int k = 0; k < r->nodes.n; k++)
    r->nodes.v[k].colour = r->nodes.v[k].said;
  for (int round = 0; round < ROUNDS; round++) {
    memset(sums, 0, ((size_t)r->nodes.n + 1) * sizeof *sums);
    for (int i = 0; i < r->n_lines; i++) {
      struct line *l = &r->lines[i];
      uint64_t h = l->colour[round];
      for (int k = 0; k < l->n; k++) {
        const int node = r->uses.v[l->first + k];
        h = mix(h, r->nodes.v[node].colour);
        sums[node] += mix(l->colour[round], (uint64_t)k); /* in any order of lines */
      }
      l->colour[round + 1] = h;
    }
    for (int k = 0; k < r->nodes.n; k++)
      r->nodes.v[k].colour = mix(r->nodes.v[k].colour, sums[k]);
  }
}

/* ---- pairing ----------------------------------------------------------------------------------------------------- */

struct keyed {
  uint64_t key;
  int line; /* from 0 */
};

static int compare_keyed(const void *x, const void *y) {
  const struct keyed *p = x, *q = y;
  return p->key != q->key ? (p->key < q->key ? -1 : 1) : (p->line > q->line) - (p->line < q->line);
}

static int compare_key(const void *x, const void *y) {
  const struct keyed *p = x, *q = y;
  return (p->key > q->key) - (p->key < q->key);
}

struct pairing {
  const struct reader *sides;
  struct counterparts *out;
  bool *is_taken[2];
  struct keyed *list[2], *expressions[2];
};

enum { BY_PLACE = -1 }; /* after the rounds: whatever the attributes are */

static bool has_expression(const struct pairing *p, int side, uint64_t expression) {
  const struct keyed key = {expression, 0};
  return bsearch(&key, p->expressions[side], (size_t)p->sides[side].n_lines, sizeof key, compare_key);
}

/* True if both can be of one expression: it is the same, one is not known, or each was changed into the other. */
static bool can_be_one(const struct pairing *p, int a, int b) {
  const uint64_t x = p->sides[0].lines[a].expression, y = p->sides[1].lines[b].expression;
  return x == y || !x || !y || (!has_expression(p, 1, x) && !has_expression(p, 0, y));
}

static uint64_t key_of(const struct line *l, int level, bool with_expression) {
  return mix(level >= 0 ? l->colour[level] : l->place, with_expression ? l->expression : 0) | 1;
}

static int list_side(struct pairing *p, int side, int level, bool with_expression) {
  int n = 0;
  for (int i = 0; i < p->sides[side].n_lines; i++)
    if (!p->is_taken[side][i] && p->out->is_step[side][i])
      p->list[side][n++] = (struct keyed){key_of(&p->sides[side].lines[i], level, with_expression), i};
  qsort(p->list[side], (size_t)n, sizeof *p->list[side], compare_keyed);
  return n;
}

static int count_same(const struct keyed *list, int n) {
  int k = 1;
  while (k < n && list[k].key == list->key)
    k++;
  return k;
}

static void pair_group(struct pairing *p, const struct keyed *x, const struct keyed *y, int n, bool is_guess) {
  for (int k = 0; k < n; k++)
    if (!can_be_one(p, x[k].line, y[k].line))
      return;
  for (int k = 0; k < n; k++) {
    const int a = x[k].line, b = y[k].line;
    p->out->to[a] = b + 1;
    p->out->is_guess[a] = is_guess;
    p->out->group[0][a] = p->out->group[1][b] = x->key;
    p->is_taken[0][a] = p->is_taken[1][b] = true;
  }
}

/* Pairs groups of equally many lines. */
static void pair_level(struct pairing *p, int level, bool with_expression) {
  const int n = list_side(p, 0, level, with_expression), m = list_side(p, 1, level, with_expression);
  for (int i = 0, j = 0; i < n && j < m;) {
    const struct keyed *x = &p->list[0][i], *y = &p->list[1][j];
    const int nx = count_same(x, n - i), ny = count_same(y, m - j);
    if (x->key == y->key && nx == ny)
      pair_group(p, x, y, nx, level < ROUNDS && nx > 1);
    const bool is_less = x->key < y->key, is_more = y->key < x->key;
    i += is_more ? 0 : nx;
    j += is_less ? 0 : ny;
  }
}

/* True if a line computes or moves data. */
static bool is_step(const struct line *l) {
  static const char *const others[] = {
      "module",       "func.",          "return",       "arith.constant", "scf.for",      "scf.yield",
      "nisa.wait",    "nisa.program",   "nisa.queue",   "nisa.alloc",     "nisa.release", "nisa.dma_trigger",
      "memref.alloc", "memref.dealloc", "nkipy.",       "linalg.yield",   "parameter",    "constant",
      "HloModule",    "ENTRY",          "tensor.empty", "affine_map"};
  const struct part kind = kind_of(l->text, l->len);
  if (!kind.n || *l->text == '^' || *l->text == '}' || *l->text == '#' || *l->text == '/')
    return false;
  return !IS_AMONG(kind.s, kind.n, others) && !IS_AMONG(kind.s, kind.n, views) && !IS_AMONG(kind.s, kind.n, fixed);
}

static void begin_side(struct pairing *p, struct reader *r, int s, const struct counterpart_side *side) {
  const size_t n = (size_t)side->n_lines + 1;
  read_side(r, side);
  refine(r);
  p->out->group[s] = arena_new_array(r->arena, uint64_t, n);
  p->out->is_step[s] = arena_new_array(r->arena, bool, n);
  p->is_taken[s] = arena_new_array(r->arena, bool, n);
  p->list[s] = arena_new_array(r->arena, struct keyed, n);
  p->expressions[s] = arena_new_array(r->arena, struct keyed, n);
  for (int i = 0; i < side->n_lines; i++) {
    p->out->is_step[s][i] = is_step(&r->lines[i]);
    p->expressions[s][i] = (struct keyed){r->lines[i].expression, i};
  }
  qsort(p->expressions[s], (size_t)side->n_lines, sizeof(struct keyed), compare_keyed);
}

struct counterparts counterpart_find(struct arena *a, const struct counterpart_side sides[2]) {
  struct reader readers[2] = {{.arena = a, .by_text = {.arena = a}}, {.arena = a, .by_text = {.arena = a}}};
  struct counterparts out = {.to = arena_new_array(a, int, (size_t)sides[0].n_lines + 1),
                             .is_guess = arena_new_array(a, bool, (size_t)sides[0].n_lines + 1)};
  struct pairing p = {.sides = readers, .out = &out};
  for (int s = 0; s < 2; s++)
    begin_side(&p, &readers[s], s, &sides[s]);
  for (int with = 1; with >= 0; with--)
    for (int level = ROUNDS; level >= BY_PLACE; level--)
      pair_level(&p, level, with);
  return out;
}
