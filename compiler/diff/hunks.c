/* hunks: from matching lines to the hunks that are shown.
 *
 * Names are followed in the order of the texts: two names are the same value when the lines that define them match, or
 * form a pair.  A matching line whose operands are not the same values has changed after all.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "diff/internal.h"

enum { LCS_MAX = 512 };

/* The longest common subsequence of two short lists, by dynamic programming: fills `pairs` in order and returns their
 * number.  `equal` compares element i of the one list with element j of the other; n and m are at most LCS_MAX; len has
 * (n + 1) * (m + 1) elements. */
static int find_common(int n, int m, bool (*equal)(void *user, int i, int j), void *user, int (*pairs)[2],
                       unsigned short *len) {
#define LEN(i, j) len[(i) * (m + 1) + (j)]
  for (int i = n; i >= 0; i--)
    for (int j = m; j >= 0; j--) {
      if (i == n || j == m)
        LEN(i, j) = 0;
      else if (equal(user, i, j))
        LEN(i, j) = (unsigned short)(LEN(i + 1, j + 1) + 1);
      else
        LEN(i, j) = LEN(i + 1, j) >= LEN(i, j + 1) ? LEN(i + 1, j) : LEN(i, j + 1);
    }
  int k = 0;
  assert(n <= LCS_MAX && m <= LCS_MAX);
  for (int i = 0, j = 0; i < n && j < m;) {
    if (equal(user, i, j)) {
      pairs[k][0] = i++;
      pairs[k++][1] = j++;
    } else if (LEN(i + 1, j) >= LEN(i, j + 1)) {
      i++;
    } else {
      j++;
    }
  }
  return k;
#undef LEN
}

struct maker {
  struct arena *arena;
  struct side *from, *to;
  struct diff *d;
  struct int_map values_from, values_to; /* name -> value */
  struct int_map constants;              /* weak hash of a constant's line -> value */
  int next_value;
  unsigned short *scratch; /* (LCS_MAX + 1)^2 */
  int (*lcs)[2];
  struct token *tokens_from, *tokens_to;
  struct diff_pair *pairs; /* of all hunks, in order */
  int n_pairs;
  bool is_out_of_memory;
};

/* ---- names ------------------------------------------------------------------------------------------------------- */

static void use_names(struct side *s, const struct line *l, const struct int_map *values) {
  for (int k = 0; k < l->n_names; k++) {
    struct name *nm = &s->names[l->names + k];
    if (!nm->is_def)
      nm->value = int_map_get(values, nm->hash, 0);
  }
}

/* The line's next definition from its k-th name on, or NULL. */
static struct name *definition(struct side *s, const struct line *l, int *k) {
  for (; *k < l->n_names; ++*k)
    if (s->names[l->names + *k].is_def)
      return &s->names[l->names + (*k)++];
  return NULL;
}

static bool is_free_constant(const struct side *s, const struct line *l) {
  return l->is_constant && !memchr(s->text.data + l->start, '(', (size_t)l->len);
}

/* Equal constants are the same value, wherever they are defined. */
static bool define_constant(struct maker *g, struct side *s, struct int_map *values, const struct line *l) {
  int k = 0;
  struct name *x = is_free_constant(s, l) ? definition(s, l, &k) : NULL;
  if (!x)
    return false;
  int *v = int_map_put(&g->constants, l->weak, 0);
  if (!*v)
    *v = ++g->next_value;
  *int_map_put(values, x->hash, 0) = x->value = *v;
  return true;
}

/* The definitions of two lines become the same values, one by one.  If one line is NULL, the other's become values of
 * their own. */
static void define_names(struct maker *g, const struct line *a, const struct line *b) {
  if (a && define_constant(g, g->from, &g->values_from, a))
    a = NULL;
  if (b && define_constant(g, g->to, &g->values_to, b))
    b = NULL;
  bool is_shared = a && b;
  for (int i = 0, j = 0;;) {
    struct name *x = a ? definition(g->from, a, &i) : NULL, *y = b ? definition(g->to, b, &j) : NULL;
    if (!x && !y)
      return;
    int v = ++g->next_value;
    if (x)
      *int_map_put(&g->values_from, x->hash, 0) = x->value = is_shared ? v : -v;
    if (y)
      *int_map_put(&g->values_to, y->hash, 0) = y->value = is_shared ? v : -v;
  }
}

/* Values of lines that were removed or added are negative.  An operand that moves from a removed line to an added one
 * is no change here, because the hunk of those two lines shows it already. */
static bool same_value(struct maker *g, struct name *x, struct name *y) {
  if (x->value == y->value && x->value)
    return true;
  if (x->value > 0 || y->value > 0)
    return false;
  int v = ++g->next_value;
  *int_map_put(&g->values_from, x->hash, 0) = x->value = v;
  *int_map_put(&g->values_to, y->hash, 0) = y->value = v;
  return true;
}

static bool same_operands(struct maker *g, const struct line *a, const struct line *b) {
  if (a->n_names != b->n_names)
    return false;
  bool same = true;
  for (int k = 0; k < a->n_names; k++) {
    struct name *x = &g->from->names[a->names + k], *y = &g->to->names[b->names + k];
    if (!x->is_def && !y->is_def && !same_value(g, x, y))
      same = false;
  }
  return same;
}

/* Follows the names through two lines that belong together: their uses, then their definitions.  False if their
 * operands differ. */
static bool follow(struct maker *g, const struct line *a, const struct line *b) {
  use_names(g->from, a, &g->values_from);
  use_names(g->to, b, &g->values_to);
  bool same = same_operands(g, a, b);
  define_names(g, a, b);
  return same;
}

/* ---- words ------------------------------------------------------------------------------------------------------- */

struct words {
  const char *a, *b;
  const struct token *ta, *tb;
  const struct name *na, *nb; /* the names of the lines, in order */
  const int *name_a, *name_b; /* by token: the index of its name */
};

static bool word_equal(void *user, int i, int j) {
  const struct words *w = user;
  if (w->ta[i].kind != w->tb[j].kind)
    return false;
  if (w->ta[i].kind == TOKEN_NAME) {
    int x = w->na[w->name_a[i]].value, y = w->nb[w->name_b[j]].value;
    return x == y && x;
  }
  if (w->ta[i].kind == TOKEN_BLOCK)
    return true;
  return w->ta[i].hash == w->tb[j].hash;
}

/* For each token the index of its name, -1 for other tokens; NULL when out of memory. */
static int *count_names(struct arena *arena, const struct token *t, int n) {
  int *v = arena_try_array(arena, (size_t)n + 1, sizeof *v), k = 0;
  for (int i = 0; v && i < n; i++)
    v[i] = t[i].kind == TOKEN_NAME ? k++ : -1;
  return v;
}

/* The tokens that are in no pair; neighbouring ones are joined. */
static const struct diff_words *left_over(struct maker *g, const struct token *t, int n, int side, int n_pairs,
                                          int *out) {
  struct diff_words *v = arena_try_array(g->arena, (size_t)n + 1, sizeof *v);
  int k = 0, p = 0;
  bool is_open = false;
  for (int i = 0; v && i < n; i++) {
    if (p < n_pairs && g->lcs[p][side] == i) {
      p++;
      is_open = false;
      continue;
    }
    if (!is_open)
      v[k++].start = t[i].start;
    v[k - 1].end = t[i].end;
    is_open = true;
  }
  *out = v ? k : 0;
  g->is_out_of_memory |= !v;
  return v;
}

static void mark_words(struct maker *g, struct diff_pair *p) {
  const struct line *a = &g->from->lines[p->from - 1], *b = &g->to->lines[p->to - 1];
  struct words w = {.a = g->from->text.data + a->start,
                    .b = g->to->text.data + b->start,
                    .ta = g->tokens_from,
                    .tb = g->tokens_to,
                    .na = g->from->names + a->names,
                    .nb = g->to->names + b->names};
  int n = diff_tokens(w.a, a->len, g->tokens_from), m = diff_tokens(w.b, b->len, g->tokens_to);
  w.name_a = count_names(g->arena, w.ta, n);
  w.name_b = count_names(g->arena, w.tb, m);
  if (!w.name_a || !w.name_b) {
    g->is_out_of_memory = true;
    return;
  }
  int k = 0, head = 0;
  while (head < n && head < m && word_equal(&w, head, head)) {
    g->lcs[k][0] = g->lcs[k][1] = head;
    head++;
    k++;
  }
  int tail = 0;
  while (tail < n - head && tail < m - head && word_equal(&w, n - 1 - tail, m - 1 - tail))
    tail++;
  int in_a = n - head - tail, in_b = m - head - tail;
  if (in_a && in_b && in_a <= LCS_MAX && in_b <= LCS_MAX) {
    struct words inner = w;
    inner.ta += head;
    inner.tb += head;
    inner.name_a += head;
    inner.name_b += head;
    int found = find_common(in_a, in_b, word_equal, &inner, g->lcs + k, g->scratch);
    for (int i = 0; i < found; i++, k++) {
      g->lcs[k][0] += head;
      g->lcs[k][1] += head;
    }
  }
  for (int i = tail; i > 0; i--, k++) {
    g->lcs[k][0] = n - i;
    g->lcs[k][1] = m - i;
  }
  p->words_from = left_over(g, g->tokens_from, n, 0, k, &p->n_from);
  p->words_to = left_over(g, g->tokens_to, m, 1, k, &p->n_to);
}

/* ---- hunks ------------------------------------------------------------------------------------------------------- */

struct heads {
  const uint64_t *a, *b;
};

static bool head_equal(void *user, int i, int j) {
  const struct heads *h = user;
  return h->a[i] == h->b[j];
}

/* A hash of the line's kind: of the operation's name, or of the first word. */
static uint64_t head_of(struct maker *g, const struct side *s, int i) {
  const struct line *l = &s->lines[i];
  struct token *t = g->tokens_from;
  const char *text = s->text.data + l->start;
  int n = diff_tokens(text, l->len, t), at = 0;
  for (int k = 0; k < n && k < 64; k++)
    if (t[k].kind == TOKEN_PUNCT && text[t[k].start] == '=') {
      at = k + 1;
      break;
    } else if (t[k].kind == TOKEN_PUNCT && text[t[k].start] != ',' && text[t[k].start] != ':') {
      break;
    }
  return at < n ? t[at].hash : 0;
}

static struct diff_pair *add_pair(struct maker *g, int from, int to) {
  assert(from < g->from->n && to < g->to->n);
  struct diff_pair *p = &g->pairs[g->n_pairs++];
  *p = (struct diff_pair){.from = from + 1, .to = to + 1};
  return p;
}

/* Pairs the lines of two stretches one by one if there are as many on both sides. */
static void pair_rest(struct maker *g, int x0, int x1, int y0, int y1) {
  if (x1 - x0 == y1 - y0)
    for (; x0 < x1; x0++, y0++)
      add_pair(g, x0, y0);
}

/* Pairs lines of [x0,x1) with lines of [y0,y1): first those of the same kind, in order, then those between them. */
static void pair_lines(struct maker *g, int x0, int x1, int y0, int y1) {
  int n = x1 - x0, m = y1 - y0, found = 0;
  if (n && m && n <= LCS_MAX && m <= LCS_MAX && n + m > 2) {
    uint64_t *heads = arena_try_array(g->arena, (size_t)(n + m), sizeof *heads);
    if (!heads) {
      g->is_out_of_memory = true;
      return;
    }
    for (int i = 0; i < n; i++)
      heads[i] = head_of(g, g->from, x0 + i);
    for (int j = 0; j < m; j++)
      heads[n + j] = head_of(g, g->to, y0 + j);
    struct heads h = {heads, heads + n};
    found = find_common(n, m, head_equal, &h, g->lcs, g->scratch);
  }
  int x = x0, y = y0;
  for (int i = 0; i < found; i++) {
    pair_rest(g, x, x0 + g->lcs[i][0], y, y0 + g->lcs[i][1]);
    x = x0 + g->lcs[i][0];
    y = y0 + g->lcs[i][1];
    add_pair(g, x++, y++);
  }
  pair_rest(g, x, x1, y, y1);
}

/* Pairs the lines of one gap, and follows the names through it. */
static void walk_gap(struct maker *g, int x0, int x1, int y0, int y1) {
  int first = g->n_pairs;
  pair_lines(g, x0, x1, y0, y1);
  int x = x0, y = y0;
  for (int i = first; i <= g->n_pairs; i++) {
    int px = i < g->n_pairs ? g->pairs[i].from - 1 : x1, py = i < g->n_pairs ? g->pairs[i].to - 1 : y1;
    for (; x < px; x++) {
      use_names(g->from, &g->from->lines[x], &g->values_from);
      define_names(g, &g->from->lines[x], NULL);
    }
    for (; y < py; y++) {
      use_names(g->to, &g->to->lines[y], &g->values_to);
      define_names(g, NULL, &g->to->lines[y]);
    }
    if (i < g->n_pairs) {
      follow(g, &g->from->lines[x++], &g->to->lines[y++]);
      mark_words(g, &g->pairs[i]);
    }
  }
}

/* The last hunk if it ends at these lines, else a new one. */
static struct diff_hunk *last_hunk(struct maker *g, int x, int y) {
  struct diff *d = g->d;
  struct diff_hunk *h = d->n ? &d->hunks[d->n - 1] : NULL;
  if (h && h->from - 1 + h->n_from == x && h->to - 1 + h->n_to == y)
    return h;
  h = &d->hunks[d->n++];
  *h = (struct diff_hunk){.from = x + 1, .to = y + 1, .pairs = g->pairs + g->n_pairs};
  return h;
}

static void add_hunk(struct maker *g, int x0, int x1, int y0, int y1) {
  if (x0 == x1 && y0 == y1)
    return;
  struct diff_hunk *h = last_hunk(g, x0, y0);
  int before = g->n_pairs;
  walk_gap(g, x0, x1, y0, y1);
  h->n_from += x1 - x0;
  h->n_to += y1 - y0;
  h->n_pairs += g->n_pairs - before;
  g->d->n_removed += x1 - x0 - (g->n_pairs - before);
  g->d->n_added += y1 - y0 - (g->n_pairs - before);
}

/* Adds a matching line whose operands changed. */
static void add_rewired(struct maker *g, int x, int y) {
  struct diff_hunk *h = last_hunk(g, x, y);
  mark_words(g, add_pair(g, x, y));
  h->n_from++;
  h->n_to++;
  h->n_pairs++;
}

enum status diff_hunks(struct arena *arena, struct side *from, struct side *to, int *match, struct diff *d,
                       struct error *err) {
  size_t lines = (size_t)from->n + (size_t)to->n + 2;
  struct maker g = {.arena = arena, .from = from, .to = to, .d = d};
  g.scratch = arena_try_array(arena, (LCS_MAX + 1) * (LCS_MAX + 1), sizeof *g.scratch);
  g.lcs = arena_try_array(arena, TOKENS_MAX, sizeof *g.lcs);
  g.tokens_from = arena_try_array(arena, TOKENS_MAX, sizeof *g.tokens_from);
  g.tokens_to = arena_try_array(arena, TOKENS_MAX, sizeof *g.tokens_to);
  g.pairs = arena_try_array(arena, lines, sizeof *g.pairs);
  d->hunks = arena_try_array(arena, lines, sizeof *d->hunks);
  if (!g.scratch || !g.lcs || !g.tokens_from || !g.tokens_to || !g.pairs || !d->hunks ||
      !int_map_init(arena, &g.values_from, (size_t)from->n_names + 1) ||
      !int_map_init(arena, &g.values_to, (size_t)to->n_names + 1) || !int_map_init(arena, &g.constants, lines))
    return diff_no_memory(err);
  int x = 0, y = 0;
  for (int i = 0; i < from->n; i++) {
    int j = match[i];
    if (j < 0)
      continue;
    add_hunk(&g, x, i, y, j);
    if (!follow(&g, &from->lines[i], &to->lines[j]))
      add_rewired(&g, i, j);
    x = i + 1;
    y = j + 1;
  }
  add_hunk(&g, x, from->n, y, to->n);
  d->n_changed = g.n_pairs;
  return g.is_out_of_memory ? diff_no_memory(err) : ST_OK;
}
