/* knob_edit: see the header. */
#include "driver/knob_edit.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/array.h"

enum { METHODS_MAX = 8, CHANGES_MAX = 16, ALIAS_MAX = 64 };

/* Bytes from … to of the text. */
struct part {
  const char *from, *to;
};

struct method {
  struct part name, args; /* args: between the brackets */
};

/* knob.knob(x, …).tile_op(…).layout(…) */
struct call {
  const char *end;
  struct part args; /* of knob.knob, after the value */
  bool is_around;   /* it stands around the value's expression */
  int n;
  struct method methods[METHODS_MAX];
};

struct change {
  struct part old;
  const char *text;
};

struct editor {
  struct arena *arena;
  const char *text;
  const struct tune_site *site;
  const struct tune_value *value;
  const char *method, *argument;
  struct {
    struct call *v;
    int n, cap;
  } calls;
  int n;
  struct change changes[CHANGES_MAX];
  bool is_impossible;
  const char *what;
};

/* ---- reading Python ---------------------------------------------------------------------------------------------- */

static bool is_word(char c) {
  return isalnum((unsigned char)c) || c == '_' || (unsigned char)c >= 0x80;
}

/* p is at a quote: returns what follows the string. */
static const char *after_string(const char *p) {
  const char quote = *p;
  const int n = p[1] == quote && p[2] == quote ? 3 : 1;
  for (p += n; *p; p++) {
    if (*p == '\\' && p[1])
      p++;
    else if (n == 1 && (*p == quote || *p == '\n'))
      return p + 1;
    else if (n == 3 && *p == quote && p[1] == quote && p[2] == quote)
      return p + 3;
  }
  return p;
}

/* What follows the thing at p: a string, a comment, or one character. */
static const char *after_one(const char *p) {
  if (*p == '"' || *p == '\'')
    return after_string(p);
  if (*p == '#')
    return p + strcspn(p, "\n");
  return p + 1;
}

/* p is after an opening bracket: returns its closing one; NULL: there is none. */
static const char *closing(const char *p) {
  for (int depth = 0; *p; p = after_one(p)) {
    if (strchr(")]}", *p) && depth-- == 0)
      return p;
    depth += strchr("([{", *p) != NULL;
  }
  return NULL;
}

static const char *skip_space(const char *p) {
  while (*p && strchr(" \t\r\n\\", *p))
    p++;
  return p;
}

/* The end of the argument at p: its comma, or `end`. */
static const char *argument_end(const char *p, const char *end) {
  int depth = 0;
  for (; p < end && (*p != ',' || depth); p = after_one(p))
    depth += (strchr("([{", *p) != NULL) - (strchr(")]}", *p) != NULL);
  return p < end ? p : end;
}

/* The value of the argument of this name; from is NULL if there is none. */
static struct part find_argument(struct part args, const char *name) {
  const size_t n = strlen(name);
  for (const char *p = args.from; p < args.to;) {
    const char *end = argument_end(p, args.to), *at = skip_space(p), *equals = skip_space(at + n);
    if (end - at > (long)n && !strncmp(at, name, n) && !is_word(at[n]) && *equals == '=' && equals < end) {
      const char *from = skip_space(equals + 1), *to = end;
      while (to > from && isspace((unsigned char)to[-1]))
        to--;
      return (struct part){from, to};
    }
    p = end + 1;
  }
  return (struct part){NULL, NULL};
}

/* ---- knobs ------------------------------------------------------------------------------------------------------- */

/* True if a call that ends before `to` calls a knob: knob(, knob.knob( or, after "import knob as NAME", NAME( and NAME.knob(. */
static bool is_knob(const char *text, const char *to) {
  const char *from = to;
  char alias[ALIAS_MAX + 24];
  while (from > text && (is_word(from[-1]) || from[-1] == '.'))
    from--;
  const size_t n = (size_t)(to - from);
  if (n >= 4 && !strncmp(to - 4, "knob", 4) && (n == 4 || to[-5] == '.'))
    return true;
  if (!n || n > ALIAS_MAX)
    return false;
  snprintf(alias, sizeof alias, "knob as %.*s", (int)n, from);
  const char *found = strstr(text, alias);
  return found && !is_word(found[strlen(alias)]);
}

/* Reads the call whose bracket opens before `args`; `after` is what follows the value in it.  False if it is damaged. */
static bool read_call(const char *args, const char *after, struct call *out) {
  const char *close = closing(args);
  *out = (struct call){.args = {after, close}};
  if (!close || after > close)
    return false;
  out->end = close + 1;
  for (const char *p = skip_space(out->end); *p == '.' && out->n < METHODS_MAX; p = skip_space(out->end)) {
    const char *name = p + 1, *end = name;
    while (is_word(*end))
      end++;
    const char *inner_end = *end == '(' ? closing(end + 1) : NULL;
    if (!inner_end)
      break;
    out->methods[out->n++] = (struct method){{name, end}, {end + 1, inner_end}};
    out->end = inner_end + 1;
  }
  return true;
}

/* The knob around the expression from … to. */
static void find_around(struct editor *e, const char *from, const char *to) {
  struct call c;
  const char *open = from;
  while (open > e->text && isspace((unsigned char)open[-1]))
    open--;
  if (open == e->text || open[-1] != '(' || !is_knob(e->text, open - 1) || !read_call(open, to, &c))
    return;
  c.is_around = true;
  array_push(e->arena, &e->calls, c);
}

static const char *line_of(const char *text, const char *p) {
  while (p > text && p[-1] != '\n')
    p--;
  return p;
}

/* The variable that the statement of the expression sets: "NAME = " is all before it on its line, and nothing comes after. */
static bool find_name(const struct editor *e, const char *from, const char *to, struct part *name) {
  const char *p = line_of(e->text, from);
  p += strspn(p, " \t");
  name->from = p;
  while (is_word(*p))
    p++;
  name->to = p;
  p += strspn(p, " \t");
  if (name->to == name->from || *p != '=' || p[1] == '=')
    return false;
  p++;
  p += strspn(p, " \t");
  while (p < from && *p == '(') /* brackets around the expression */
    p++;
  to += strspn(to, " \t)");
  return p == from && (!*to || *to == '\n' || *to == '#' || *to == '\r');
}

static bool is_name(const char *p, struct part name) {
  const size_t n = (size_t)(name.to - name.from);
  return !strncmp(p, name.from, n) && !is_word(p[n]);
}

/* The knobs of the variable, up to the next statement that sets it or the end of its block. */
static void find_after(struct editor *e, const char *to, struct part name) {
  const long indent = name.from - line_of(e->text, name.from);
  struct call c;
  for (const char *p = to; *p; p = after_one(p)) {
    if (p > e->text && p[-1] == '\n') {
      const char *first = p + strspn(p, " \t");
      const char *next = first + (name.to - name.from);
      if (*first && *first != '\n' && *first != '#' && first - p < indent)
        return;
      if (is_name(first, name) && next[strspn(next, " \t")] == '=' && next[strspn(next, " \t") + 1] != '=' &&
          !strstr(next, "knob("))
        return;
    }
    const char *value = p[0] == '(' ? skip_space(p + 1) : NULL;
    const char *end = value && is_name(value, name) ? skip_space(value + (name.to - name.from)) : NULL;
    if (end && (*end == ',' || *end == ')') && is_knob(e->text, p) && read_call(p + 1, end, &c))
      array_push(e->arena, &e->calls, c);
  }
}

/* ---- writing ----------------------------------------------------------------------------------------------------- */

static void change(struct editor *e, struct part old, const char *text) {
  if (e->n < CHANGES_MAX)
    e->changes[e->n++] = (struct change){old, text};
}

static const char *list_text(struct editor *e, const bool *wanted, bool is) {
  const struct tune_value *v = e->value;
  struct buf b;
  int n = 0;
  buf_init(&b, 1024);
  for (int k = 0; k < v->n; k++)
    if (!wanted || wanted[k] == is)
      buf_printf(&b, n++ ? ", %lld" : "[%lld", (long long)v->entry[k]);
  buf_puts(&b, n ? "]" : "");
  const char *text = arena_strdup(e->arena, buf_text(&b));
  buf_clear(&b);
  return text;
}

/* The argument's value as a builder takes it. */
static const char *value_text(struct editor *e) {
  return e->value->text               ? e->value->text
         : e->site->what == TUNE_TILE ? list_text(e, NULL, true)
                                      : arena_printf(e->arena, "%lld", (long long)e->value->entry[0]);
}

static void add_argument(struct editor *e, struct part args, bool is_first, const char *name, const char *value) {
  const char *to = args.to;
  while (to > args.from && isspace((unsigned char)to[-1]))
    to--;
  const bool has_comma = to > args.from && to[-1] == ',';
  const char *before = has_comma ? " " : is_first && to == args.from ? "" : ", ";
  change(e, (struct part){to, to}, arena_printf(e->arena, "%s%s=%s", before, name, value));
}

/* knob.knob(x, …) takes a tile in two arguments. */
static void change_base(struct editor *e, const struct call *c) {
  static const char *const names[] = {"tile_size", "reduction_tile"};
  bool is_parallel[TUNE_ENTRIES_MAX] = {false};
  if (e->site->what != TUNE_TILE) {
    const struct part old = find_argument(c->args, e->argument);
    if (old.from)
      change(e, old, value_text(e));
    else
      add_argument(e, c->args, false, e->argument, value_text(e));
    return;
  }
  for (int k = 0; k < e->site->n_dims; k++)
    if (e->site->dims[k] >= 0)
      is_parallel[e->site->dims[k]] = true;
  for (int k = 0; k < 2; k++) {
    const struct part old = find_argument(c->args, names[k]);
    const char *text = list_text(e, is_parallel, k == 0);
    if (old.from)
      change(e, old, text);
    else if (*text)
      add_argument(e, c->args, false, names[k], text);
  }
}

static bool is_called(const struct method *m, const char *name) {
  return (size_t)(m->name.to - m->name.from) == strlen(name) && !strncmp(m->name.from, name, strlen(name));
}

/* A tile of layout(…) has an entry for each dimension of the value, and must fit that of tile_op(…). */
static void fit_layouts(struct editor *e) {
  for (int i = 0; i < e->calls.n; i++)
    for (int k = 0; k < e->calls.v[i].n; k++) {
      const struct method *m = &e->calls.v[i].methods[k];
      const struct part old = is_called(m, "layout") ? find_argument(m->args, "tile_size") : (struct part){NULL, NULL};
      struct buf b;
      if (!old.from)
        continue;
      e->is_impossible |= !e->site->n_dims;
      buf_init(&b, 1024);
      for (int d = 0; d < e->site->n_dims; d++)
        buf_printf(&b, d ? ", %lld" : "[%lld",
                   (long long)(e->site->dims[d] < 0 ? 1 : e->value->entry[e->site->dims[d]]));
      buf_putc(&b, ']');
      change(e, old, arena_strdup(e->arena, buf_text(&b)));
      buf_clear(&b);
    }
}

/* Gives the argument to the last call that has it, or else to the last one that can take it. */
static void edit(struct editor *e) {
  const struct call *builder = NULL, *base = NULL;
  const struct method *open = NULL;
  struct part old = {NULL, NULL};
  if (e->site->what == TUNE_TILE)
    fit_layouts(e);
  for (int i = e->calls.n - 1; i >= 0; i--) {
    const struct call *c = &e->calls.v[i];
    for (int k = c->n - 1; k >= 0 && !old.from; k--)
      if (is_called(&c->methods[k], e->method)) {
        old = find_argument(c->methods[k].args, e->argument);
        open = open ? open : &c->methods[k];
      }
    const bool has = find_argument(c->args, e->argument).from ||
                     (e->site->what == TUNE_TILE && find_argument(c->args, "reduction_tile").from);
    base = base || !has ? base : c;
    builder = builder || (c->is_around && !c->n) || !(c->n || c->args.from == c->args.to) ? builder : c;
  }
  const char *value = value_text(e);
  e->what = arena_printf(e->arena, ".%s(%s=%s)", e->method, e->argument, value);
  if (old.from)
    change(e, old, value);
  else if (base)
    change_base(e, base);
  else if (open)
    add_argument(e, open->args, true, e->argument, value);
  else if (builder)
    change(e, (struct part){builder->end, builder->end}, e->what);
  else
    change_base(e, &e->calls.v[e->calls.n - 1]);
}

/* Appends the text with the changes, which do not overlap. */
static void put_changed(struct buf *out, const struct editor *e) {
  const char *p = e->text;
  for (;;) {
    const struct change *next = NULL;
    for (int k = 0; k < e->n; k++)
      if (e->changes[k].old.from >= p && (!next || e->changes[k].old.from < next->old.from))
        next = &e->changes[k];
    if (!next)
      break;
    buf_append(out, p, (size_t)(next->old.from - p));
    for (int k = 0; k < e->n; k++) /* several may be put in at one place */
      if (e->changes[k].old.from == next->old.from)
        buf_puts(out, e->changes[k].text);
    p = next->old.to > next->old.from ? next->old.to : next->old.from;
    if (next->old.to == next->old.from) { /* what is put in stands before the next byte */
      if (!*p)
        break;
      buf_putc(out, *p++);
    }
  }
  buf_puts(out, p);
}

enum knob_edit knob_edit_existing(struct arena *a, const char *text, const struct tune_site *site,
                                  const struct tune_value *value, const char *method, struct buf *out,
                                  struct buf *what) {
  static const char *const arguments[] = {
      [TUNE_TILE] = "tile_size", [TUNE_SPACE] = "mem_space", [TUNE_DIM] = "partition_dim"};
  struct editor e = {.arena = a, .text = text, .site = site, .value = value, .method = method};
  const char *from = text + site->from, *to = text + site->to;
  struct part name;
  if (site->what == TUNE_DROP)
    return KNOB_EDIT_NONE;
  e.argument = arguments[site->what];
  find_around(&e, from, to);
  if (!e.calls.n && find_name(&e, from, to, &name))
    find_after(&e, to, name);
  if (!e.calls.n)
    return KNOB_EDIT_NONE;
  edit(&e);
  if (e.is_impossible || !e.n)
    return KNOB_EDIT_CANNOT;
  put_changed(out, &e);
  buf_puts(what, e.what);
  return KNOB_EDIT_DONE;
}
