#include "driver/patterns.h"

#include <assert.h>
#include <ctype.h>
#include <regex.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/buf.h"

enum { NAME_MAX_LEN = 60, GROUPS_MAX = 64, COUNT_MAX = 10000 };

/* ---- reading ----------------------------------------------------------------------------------------------------- */

/* A copy of the line's n bytes in which each run of spaces and tabs is one space, without those at its ends. */
static char *squeezed(struct arena *a, const char *p, size_t n) {
  char *out = arena_alloc(a, n + 1);
  size_t k = 0;
  for (size_t i = 0; i < n; i++) {
    const bool is_space = p[i] == ' ' || p[i] == '\t' || p[i] == '\r';
    if (!is_space)
      out[k++] = p[i];
    else if (k && out[k - 1] != ' ')
      out[k++] = ' ';
  }
  while (k && out[k - 1] == ' ')
    k--;
  out[k] = 0;
  return out;
}

static bool set_fault(struct pattern_fault *f, int line, const char *message) {
  *f = (struct pattern_fault){line, message};
  return false;
}

/* The place after `word` in a line, if it stands there by itself; NULL: it does not. */
static const char *after_word(const char *line, const char *word) {
  const char *p = strstr(line, word);
  return p && (p == line || (!isalnum((unsigned char)p[-1]) && p[-1] != '-' && p[-1] != '_')) ? p + strlen(word) : NULL;
}

static bool read_stage(struct arena *a, const char *rest, int line, struct patterns *out, struct pattern_fault *fault) {
  const char *text = squeezed(a, rest, strlen(rest)), *in = strstr(text, " IN ");
  const size_t n = in ? (size_t)(in - text) : strlen(text);
  if (!n || n > NAME_MAX_LEN || memchr(text, ' ', n) || (in && !in[4]))
    return set_fault(fault, line, "expected \"STAGE: name\", or \"STAGE: name IN kernel\"");
  array_push(a, out, ((struct pattern_section){arena_strndup(a, text, n), in ? in + 4 : NULL, .line = line}));
  return true;
}

static bool add(struct arena *a, struct pattern_section *s, enum pattern_kind kind, int line, const char *text, int n) {
  for (int i = 0; i < n; i++)
    array_push(a, s, ((struct pattern){kind, line, text}));
  return true;
}

/* True if a line has been found before the next one, whatever the order of what is found. */
static bool has_place(const struct pattern_section *s) {
  for (int i = 0; i < s->n; i++)
    if (s->v[i].kind != PATTERN_NOT && s->v[i].kind != PATTERN_DAG)
      return true;
  return false;
}

static bool read_check(struct arena *a, const char *rest, int line, struct pattern_section *s,
                       struct pattern_fault *fault) {
  static const struct {
    const char *word;
    enum pattern_kind kind;
  } kinds[] = {{":", PATTERN_PLAIN},   {"-NEXT:", PATTERN_NEXT}, {"-SAME:", PATTERN_SAME},  {"-EMPTY:", PATTERN_EMPTY},
               {"-NOT:", PATTERN_NOT}, {"-DAG:", PATTERN_DAG},   {"-LABEL:", PATTERN_LABEL}};
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
    const size_t n = strlen(kinds[i].word);
    if (strncmp(rest, kinds[i].word, n) != 0)
      continue;
    const char *text = squeezed(a, rest + n, strlen(rest + n));
    const enum pattern_kind kind = kinds[i].kind;
    const bool is_empty = kind == PATTERN_EMPTY, is_relative = is_empty || kind == PATTERN_NEXT || kind == PATTERN_SAME;
    if (is_relative && !has_place(s))
      return set_fault(fault, line, "it needs a line CHECK: before it, from whose place it counts");
    if (kind == PATTERN_LABEL && strstr(text, "[["))
      return set_fault(fault, line, "a label has no names: it is looked for before the other lines");
    if (!*text != is_empty)
      return set_fault(fault, line, is_empty ? "nothing may stand after CHECK-EMPTY:" : "there is nothing to find");
    return add(a, s, kind, line, text, 1);
  }
  char *end;
  const long count = strncmp(rest, "-COUNT-", 7) ? 0 : strtol(rest + 7, &end, 10);
  if (count < 1 || count > COUNT_MAX || *end != ':')
    return set_fault(fault, line, "expected CHECK:, -NEXT:, -SAME:, -EMPTY:, -NOT:, -DAG:, -LABEL: or -COUNT-n:");
  const char *text = squeezed(a, end + 1, strlen(end + 1));
  return *text ? add(a, s, PATTERN_PLAIN, line, text, (int)count) : set_fault(fault, line, "there is nothing to find");
}

bool patterns_read(struct arena *a, const char *text, size_t len, struct patterns *out, struct pattern_fault *fault) {
  int line = 1;
  *out = (struct patterns){0};
  assert(len <= PATTERNS_LEN_MAX);
  for (const char *p = text, *end = text + len; p < end; line++) {
    const char *nl = memchr(p, '\n', (size_t)(end - p));
    const char *one = arena_strndup(a, p, (size_t)((nl ? nl : end) - p));
    const char *stage = after_word(one, "STAGE:"), *check = after_word(one, "CHECK");
    p = nl ? nl + 1 : end;
    if (stage && !read_stage(a, stage, line, out, fault))
      return false;
    if (stage || !check || (*check != ':' && *check != '-'))
      continue;
    if (!out->n)
      return set_fault(fault, line, "a line \"STAGE: name\" has to come first: it says which stage is meant");
    if (!read_check(a, check, line, &out->v[out->n - 1], fault))
      return false;
  }
  return true;
}

/* ---- regular expressions ----------------------------------------------------------------------------------------- */

struct variable {
  const char *name, *value;
};

/* A run over one text. */
struct search {
  struct arena *a;
  char **lines; /* squeezed */
  int n_lines;
  struct {
    struct variable *v;
    int n, cap;
  } variables;
  struct pattern_result *out;
};

/* A pattern as a regular expression. */
struct compiled {
  regex_t re;
  int n_groups;
  struct {
    const char *name;
    int group;
  } named[GROUPS_MAX];
  int n_named;
};

struct place {
  int line, col; /* of the text, from 0 */
};

static const char *value_of(const struct search *s, const char *name, size_t n) {
  for (int i = s->variables.n - 1; i >= 0; i--)
    if (strlen(s->variables.v[i].name) == n && !memcmp(s->variables.v[i].name, name, n))
      return s->variables.v[i].value;
  return NULL;
}

static void put_literal(struct buf *b, const char *p, size_t n) {
  for (size_t i = 0; i < n; i++) {
    if (strchr(".[]()*+?{}|^$\\", p[i]))
      buf_putc(b, '\\');
    buf_putc(b, p[i]);
  }
}

/* The number of groups that a regular expression opens. */
static int count_groups(const char *p, size_t n) {
  int groups = 0;
  bool in_set = false;
  for (size_t i = 0; i < n; i++) {
    if (p[i] == '\\')
      i++;
    else if (in_set)
      in_set = p[i] != ']';
    else if (p[i] == '[')
      in_set = true, i += i + 1 < n && p[i + 1] == ']';
    else
      groups += p[i] == '(';
  }
  return groups;
}

static int group_of(const struct compiled *c, const char *name, size_t n) {
  for (int i = 0; i < c->n_named; i++)
    if (strlen(c->named[i].name) == n && !memcmp(c->named[i].name, name, n))
      return c->named[i].group;
  return 0;
}

static const char *put_regex(struct buf *b, struct compiled *c, const char *p, size_t n) {
  if (n > PATTERNS_REGEX_MAX)
    return "the regular expression is too long";
  buf_putc(b, '(');
  buf_append(b, p, n);
  buf_putc(b, ')');
  c->n_groups += 1 + count_groups(p, n);
  return NULL;
}

/* [[NAME]] or [[NAME:regex]], without its brackets. */
static const char *put_variable(struct search *s, struct buf *b, struct compiled *c, const char *p, size_t n) {
  size_t len = 0;
  while (len < n && (isalnum((unsigned char)p[len]) || p[len] == '_'))
    len++;
  if (!len || (len < n && p[len] != ':'))
    return "expected [[NAME]] or [[NAME:regular expression]]; numeric variables are not known";
  if (len < n) {
    if (c->n_named == GROUPS_MAX)
      return "the line has too many names";
    c->named[c->n_named].name = arena_strndup(s->a, p, len);
    c->named[c->n_named++].group = c->n_groups + 1;
    return put_regex(b, c, p + len + 1, n - len - 1);
  }
  const int group = group_of(c, p, len);
  const char *value = value_of(s, p, len);
  if (group > 9)
    return "a name of this line can be used again in it only if it is among the first nine groups";
  if (group)
    buf_printf(b, "\\%d", group);
  else if (value)
    put_literal(b, value, strlen(value));
  else
    return arena_printf(s->a, "[[%.*s]] has no text yet: no line before has [[%.*s:…]]", (int)len, p, (int)len, p);
  return NULL;
}

/* Returns what is wrong with the pattern; NULL: it is compiled, and regfree is due. */
static const char *compile(struct search *s, const char *text, struct compiled *c) {
  struct buf b;
  const char *why = NULL;
  *c = (struct compiled){0};
  buf_init(&b, 1 << 20);
  for (const char *p = text; *p && !why;) {
    const char *re = strstr(p, "{{"), *var = strstr(p, "[["), *at = re && (!var || re < var) ? re : var;
    const bool is_re = at == re;
    put_literal(&b, p, at ? (size_t)(at - p) : strlen(p));
    if (!at)
      break;
    const char *end = strstr(at + 2, is_re ? "}}" : "]]");
    while (end && end[2] == (is_re ? '}' : ']')) /* {{a{2}}}: the last of them ends it */
      end++;
    if (!end) {
      why = is_re ? "{{ has no }}" : "[[ has no ]]";
      break;
    }
    why = is_re ? put_regex(&b, c, at + 2, (size_t)(end - at - 2))
                : put_variable(s, &b, c, at + 2, (size_t)(end - at - 2));
    p = end + 2;
  }
  if (!why && (buf_status(&b) || c->n_groups >= GROUPS_MAX))
    why = "the line is too long, or has too many groups";
  if (!why && regcomp(&c->re, buf_text(&b), REG_EXTENDED))
    why = "the regular expression is not a valid one";
  buf_clear(&b);
  return why;
}

/* ---- searching --------------------------------------------------------------------------------------------------- */

struct match {
  struct place begin, end;
  regmatch_t groups[GROUPS_MAX];
};

/* Finds the first match between two places. */
static bool find(const struct search *s, const struct compiled *c, struct place from, struct place to,
                 struct match *m) {
  for (int i = from.line; i < s->n_lines && i <= to.line; i++) {
    const int col = i == from.line ? from.col : 0;
    const char *line = s->lines[i];
    if (i == to.line && to.col < col)
      return false;
    if (i == to.line)
      line = arena_strndup(s->a, line, (size_t)to.col);
    if (regexec(&c->re, line + col, GROUPS_MAX, m->groups, col ? REG_NOTBOL : 0))
      continue;
    m->begin = (struct place){i, col + (int)m->groups[0].rm_so};
    m->end = (struct place){i, col + (int)m->groups[0].rm_eo};
    for (int g = 0; g < GROUPS_MAX; g++)
      if (m->groups[g].rm_so >= 0)
        m->groups[g].rm_so += col, m->groups[g].rm_eo += col;
    return true;
  }
  return false;
}

static void keep_names(struct search *s, const struct compiled *c, const struct match *m) {
  for (int i = 0; i < c->n_named; i++) {
    const regmatch_t *g = &m->groups[c->named[i].group];
    const char *value =
        g->rm_so < 0 ? "" : arena_strndup(s->a, s->lines[m->begin.line] + g->rm_so, (size_t)(g->rm_eo - g->rm_so));
    array_push(s->a, &s->variables, ((struct variable){c->named[i].name, value}));
  }
}

static bool fails(struct search *s, const struct pattern *p, int at, const char *message) {
  s->out->fault = (struct pattern_fault){p->line, message};
  s->out->at = at + 1;
  return false;
}

static void hit(struct search *s, const struct pattern *p, int at) {
  array_push(s->a, s->out, ((struct pattern_hit){p->line, at + 1}));
}

/* The lines [first, n) are CHECK-NOT: none may match between two places. */
static bool check_nots(struct search *s, const struct pattern *first, int n, struct place from, struct place to) {
  for (int i = 0; i < n; i++) {
    struct compiled c;
    struct match m;
    const char *why = compile(s, first[i].text, &c);
    if (why)
      return fails(s, &first[i], from.line, why);
    const bool is_there = find(s, &c, from, to, &m);
    regfree(&c.re);
    if (is_there)
      return fails(s, &first[i], m.begin.line, arena_printf(s->a, "it is there, in line %d", m.begin.line + 1));
  }
  return true;
}

static bool not_found(struct search *s, const struct pattern *p, struct place from, struct place to) {
  return fails(s, p, from.line,
               to.line < s->n_lines ? arena_printf(s->a, "it is not in lines %d to %d", from.line + 1, to.line + 1)
                                    : arena_printf(s->a, "it is not there, from line %d on", from.line + 1));
}

/* Finds one pattern after `from`; *begin and *end are its place. */
static bool one(struct search *s, const struct pattern *p, struct place from, struct place to, struct place *begin,
                struct place *end) {
  struct compiled c;
  struct match m;
  if (p->kind == PATTERN_EMPTY) {
    const int next = from.line + 1;
    if (next >= s->n_lines || next > to.line || *s->lines[next])
      return fails(s, p, from.line, "the next line is not empty");
    *begin = *end = (struct place){next, 0};
    hit(s, p, next);
    return true;
  }
  const char *why = compile(s, p->text, &c);
  if (why)
    return fails(s, p, from.line, why);
  bool ok = find(s, &c, from, to, &m);
  if (ok)
    keep_names(s, &c, &m);
  regfree(&c.re);
  if (!ok)
    return not_found(s, p, from, to);
  const int lines = m.begin.line - from.line;
  if (p->kind == PATTERN_NEXT && lines != 1)
    return fails(s, p, m.begin.line,
                 lines ? arena_printf(s->a, "it is in line %d, not in the next one", m.begin.line + 1)
                       : "it is in the same line, not in the next one");
  if (p->kind == PATTERN_SAME && lines)
    return fails(s, p, m.begin.line, arena_printf(s->a, "it is in line %d, not in the same one", m.begin.line + 1));
  *begin = m.begin;
  *end = m.end;
  hit(s, p, m.begin.line);
  return true;
}

static bool is_before(struct place x, struct place y) {
  return x.line < y.line || (x.line == y.line && x.col < y.col);
}

/* A run of CHECK-DAG: each from the same place on, in any order, and none within another. */
static bool dags(struct search *s, const struct pattern *first, int n, struct place from, struct place to,
                 struct place *begin, struct place *end) {
  struct match *taken = arena_new_array(s->a, struct match, (size_t)n);
  for (int i = 0; i < n; i++) {
    struct compiled c;
    const char *why = compile(s, first[i].text, &c);
    if (why)
      return fails(s, &first[i], from.line, why);
    struct place at = from;
    bool ok, overlaps = true;
    while ((ok = find(s, &c, at, to, &taken[i])) && overlaps) {
      overlaps = false;
      for (int k = 0; k < i && !overlaps; k++)
        overlaps = is_before(taken[k].begin, taken[i].end) && is_before(taken[i].begin, taken[k].end);
      if (overlaps)
        at = taken[i].end;
    }
    if (ok)
      keep_names(s, &c, &taken[i]);
    regfree(&c.re);
    if (!ok)
      return not_found(s, &first[i], from, to);
    hit(s, &first[i], taken[i].begin.line);
    if (!i || is_before(taken[i].begin, *begin))
      *begin = taken[i].begin;
    if (!i || is_before(*end, taken[i].end))
      *end = taken[i].end;
  }
  return true;
}

static int run_of(const struct pattern_section *s, int i, int to, enum pattern_kind kind) {
  int n = 0;
  while (i + n < to && s->v[i + n].kind == kind)
    n++;
  return n;
}

/* The patterns [i, to), between two places. */
static bool block(struct search *s, const struct pattern_section *p, int i, int to, struct place from,
                  struct place end) {
  while (i < to) {
    const int nots = run_of(p, i, to, PATTERN_NOT), first = i + nots, n = run_of(p, first, to, PATTERN_DAG);
    struct place begin = end, after = end;
    if (first < to &&
        !(n ? dags(s, &p->v[first], n, from, end, &begin, &after) : one(s, &p->v[first], from, end, &begin, &after)))
      return false;
    if (!check_nots(s, &p->v[i], nots, from, begin))
      return false;
    from = after;
    i = first + (n ? n : first < to);
  }
  return true;
}

static bool find_label(struct search *s, const struct pattern *p, struct place from, struct match *m) {
  const struct place end = {s->n_lines, 0};
  struct compiled c;
  const char *why = compile(s, p->text, &c);
  if (why)
    return fails(s, p, from.line, why);
  const bool ok = find(s, &c, from, end, m);
  regfree(&c.re);
  return ok || not_found(s, p, from, end);
}

/* Labels divide the text, before anything else is looked for: what stands above one is found before its end. */
static bool run(struct search *s, const struct pattern_section *p) {
  struct place from = {0, 0};
  for (int i = 0, label = 0; label <= p->n; label++) {
    struct match m = {.end = {s->n_lines, 0}};
    if (label < p->n && p->v[label].kind != PATTERN_LABEL)
      continue;
    if (label < p->n && !find_label(s, &p->v[label], from, &m))
      return false;
    const int to = label < p->n ? label + 1 : p->n;
    if (!block(s, p, i, to, from, m.end))
      return false;
    from = m.end;
    i = to;
  }
  return true;
}

void patterns_try(struct arena *a, const struct pattern_section *p, const char *text, size_t len,
                  struct pattern_result *out) {
  struct search s = {.a = a, .out = out};
  int n = 1;
  *out = (struct pattern_result){.is_set = true};
  for (const char *q = text; (q = memchr(q, '\n', (size_t)(text + len - q))); q++)
    n++;
  s.lines = arena_new_array(a, char *, (size_t)n);
  for (const char *q = text, *end = text + len; q < end;) {
    const char *nl = memchr(q, '\n', (size_t)(end - q));
    s.lines[s.n_lines++] = squeezed(a, q, (size_t)((nl ? nl : end) - q));
    q = nl ? nl + 1 : end;
  }
  out->ok = run(&s, p);
}
