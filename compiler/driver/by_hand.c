#include "driver/by_hand.h"

#include <assert.h>
#include <string.h>

#include "base/json.h"

struct upstream_pass {
  const char *name, *where, *options, *summary;
};

#define UPSTREAM(name, where, options, summary) {name, where, options, summary},
#define OWN(name, options)
#define STAYS(name)
static const struct upstream_pass upstream[] = {
#include "driver/by_hand.def"
};
#undef UPSTREAM
#undef OWN
#define UPSTREAM(name, where, options, summary)
#define OWN(name, options) {name, "", options, ""},
static const struct upstream_pass own[] = {
#include "driver/by_hand.def"
};
#undef STAYS
#undef OWN
#define OWN(name, options)
#define STAYS(name) name,
static const char *const staying[] = {
#include "driver/by_hand.def"
};
#undef STAYS
#undef OWN
#undef UPSTREAM

enum { N_UPSTREAM = sizeof upstream / sizeof *upstream, N_OWN = sizeof own / sizeof *own };
enum { N_STAYING = sizeof staying / sizeof *staying };

/* ---- words ------------------------------------------------------------------------------------------------------- */

struct word {
  const char *p;
  size_t n;
};

static bool is(struct word w, const char *text) {
  return strlen(text) == w.n && !memcmp(w.p, text, w.n);
}

static struct word trim(struct word w) {
  for (; w.n && strchr(" \t\n", w.p[0]); w.p++, w.n--) {
  }
  while (w.n && strchr(" \t\n", w.p[w.n - 1]))
    w.n--;
  return w;
}

/* Takes the text before the first space or brace off *rest. */
static struct word next(struct word *rest) {
  *rest = trim(*rest);
  struct word w = {rest->p, 0};
  while (w.n < rest->n && !strchr(" \t\n{}", w.p[w.n]))
    w.n++;
  rest->p += w.n;
  rest->n -= w.n;
  *rest = trim(*rest);
  return w;
}

/* A change in its parts.  options.p is NULL where there are none. */
struct change {
  enum stage_hand hand;
  struct word stage, pass, options;
};

static bool is_option_text(struct word w) {
  static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-=,.:+ ";
  for (size_t i = 0; i < w.n; i++)
    if (!strchr(allowed, w.p[i]))
      return false;
  return true;
}

/* Takes "{OPTIONS}" off *rest, if that is there. */
static bool take_options(struct word *rest, struct word *out) {
  if (!rest->n)
    return true;
  if (rest->p[0] != '{' || rest->p[rest->n - 1] != '}' || rest->n < 2)
    return false;
  *out = trim((struct word){rest->p + 1, rest->n - 2});
  rest->n = 0;
  return out->n && is_option_text(*out);
}

static bool parse(const char *text, struct change *out) {
  struct word rest = {text, strlen(text)};
  const struct word verb = next(&rest);
  *out = (struct change){.hand = is(verb, "without") ? HAND_OUT
                                 : is(verb, "after") ? HAND_IN
                                 : is(verb, "with")  ? HAND_OPTIONS
                                                     : HAND_NONE};
  out->stage = next(&rest);
  if (out->hand == HAND_IN)
    out->pass = next(&rest);
  if (out->hand != HAND_OUT && !take_options(&rest, &out->options))
    return false;
  return out->hand && !rest.n && out->stage.n && (out->hand != HAND_IN || out->pass.n) &&
         (out->hand != HAND_OPTIONS || out->options.n);
}

/* ---- passes ------------------------------------------------------------------------------------------------------ */

static const struct upstream_pass *find(const struct upstream_pass *v, int n, struct word name) {
  for (int i = 0; i < n; i++)
    if (is(name, v[i].name))
      return &v[i];
  return NULL;
}

/* A stage whose pass may run at another place, too; NULL: none.  A pass that takes a program from one form to another may
 * not, nor one that is the last word on the machine's memories and programs. */
static const struct stage_def *find_own(const struct pipeline *p, struct word name, enum stage_form form) {
  for (int i = 0; i < p->n; i++) {
    const struct stage_def *s = &p->stages[i];
    const bool is_free = s->runner == RUN_HLO || s->runner == RUN_PASS || (s->runner == RUN_TO_NISA && s->is_own);
    if (is_free && is(name, s->name) && stage_form(s) == form)
      return s;
  }
  return NULL;
}

/* The options that a stage's own pass takes, names with spaces between them. */
static const char *options_of(const struct stage_def *s) {
  const struct word name = {s->name, strlen(s->name)};
  const struct upstream_pass *x = s->runner == RUN_UPSTREAM ? find(upstream, N_UPSTREAM, name) : find(own, N_OWN, name);
  return x ? x->options : "";
}

static bool has_name(const char *names, struct word name) {
  for (const char *p = names; *p; p += strspn(p, " ")) {
    const size_t n = strcspn(p, " ");
    if (n == name.n && !memcmp(p, name.p, n))
      return true;
    p += n;
  }
  return false;
}

/* Checks that each option is "NAME=VALUE" with a name that the pass knows. */
static enum status check_options(struct word options, struct word pass, const char *known, struct error *err) {
  if (!options.p)
    return ST_OK;
  if (!*known)
    return fail(err, ST_INPUT, "%.*s has no options", (int)pass.n, pass.p);
  for (struct word rest = options; rest.n;) {
    const struct word option = next(&rest);
    const char *equals = memchr(option.p, '=', option.n);
    const struct word name = {option.p, equals ? (size_t)(equals - option.p) : option.n};
    if (!equals || !has_name(known, name))
      return fail(err, ST_INPUT, "%.*s has no option %.*s=…; it has: %s", (int)pass.n, pass.p,
                  name.n < 60 ? (int)name.n : 60, name.p, known);
  }
  return ST_OK;
}

static bool stays(const struct stage_def *s) {
  for (int i = 0; i < N_STAYING; i++)
    if (!strcmp(staying[i], s->name))
      return true;
  return false;
}

static int index_of(const struct pipeline *p, struct word stage) {
  char name[BY_HAND_LEN_MAX + 1];
  assert(stage.n <= BY_HAND_LEN_MAX);
  memcpy(name, stage.p, stage.n);
  name[stage.n] = 0;
  return pipeline_stage(p, name);
}

/* Checks a change of stage `index`. */
static enum status check(const struct pipeline *p, int index, const struct change *c, struct error *err) {
  const struct stage_def *s = &p->stages[index];
  const enum stage_form form = stage_form(s);
  if (c->hand == HAND_OUT)
    return stays(s) ? fail(err, ST_INPUT, "%s cannot be left out: the stages after it need what it makes", s->name)
                    : ST_OK;
  if (c->hand == HAND_OPTIONS)
    return check_options(c->options, (struct word){s->name, strlen(s->name)}, options_of(s), err);
  if (form == FORM_NKI)
    return fail(err, ST_INPUT, "no pass can run after %s: what it shows is not MLIR", s->name);
  const struct upstream_pass *up = form == FORM_MLIR ? find(upstream, N_UPSTREAM, c->pass) : NULL;
  const struct stage_def *again = up ? NULL : find_own(&pipeline_hlo, c->pass, form);
  if (!up && !again)
    return fail(err, ST_INPUT, "after %s no pass %.*s can run; `nkx compile --pipeline list` prints those that can",
                s->name, (int)c->pass.n, c->pass.p);
  return check_options(c->options, c->pass, up ? up->options : options_of(again), err);
}

enum status by_hand_check(const char *text, struct error *err) {
  const struct pipeline *const all[] = {&pipeline_hlo, &pipeline_nki};
  struct change c;
  if (strlen(text) > BY_HAND_LEN_MAX)
    return fail(err, ST_LIMIT, "a change of the pipeline has at most %d bytes", BY_HAND_LEN_MAX);
  if (!parse(text, &c))
    return fail(err, ST_INPUT,
                "\"%.80s\": expected \"without STAGE\", \"after STAGE PASS\", \"after STAGE PASS{OPTIONS}\" or \"with "
                "STAGE{OPTIONS}\"",
                text);
  bool is_there = false;
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
    const int index = index_of(all[i], c.stage);
    const enum status st = index < 0 ? ST_OK : check(all[i], index, &c, err);
    if (st)
      return st;
    is_there |= index >= 0;
  }
  return is_there ? ST_OK : fail(err, ST_INPUT, "no stage is called \"%.*s\"", (int)c.stage.n, c.stage.p);
}

/* ---- the changed pipeline ---------------------------------------------------------------------------------------- */

static const char *text_of(struct arena *a, struct word w) {
  return w.p ? arena_strndup(a, w.p, w.n) : NULL;
}

/* The text of a pipeline of one pass of MLIR. */
static const char *upstream_text(struct arena *a, const struct upstream_pass *up, const char *options) {
  const char *pass = options ? arena_printf(a, "%s{%s}", up->name, options) : up->name;
  return !strcmp(up->where, "func.func") ? arena_printf(a, "builtin.module(func.func(%s))", pass)
                                         : arena_printf(a, "builtin.module(%s)", pass);
}

/* The stage that runs a pass after stage s. */
static struct stage_def put_in(struct arena *a, const struct stage_def *s, const struct change *c) {
  const struct upstream_pass *up = stage_form(s) == FORM_MLIR ? find(upstream, N_UPSTREAM, c->pass) : NULL;
  const char *options = text_of(a, c->options);
  struct stage_def x = up ? (struct stage_def){.runner = RUN_UPSTREAM, .name = up->name, .summary = up->summary}
                          : *find_own(&pipeline_hlo, c->pass, stage_form(s));
  x.phase = s->phase;
  x.dialect = s->dialect;
  x.pass = up ? upstream_text(a, up, options) : x.pass;
  x.options = up ? NULL : options;
  x.hand = HAND_IN;
  return x;
}

static void set_options(struct arena *a, struct stage_def *s, const struct change *c) {
  const char *options = text_of(a, c->options);
  if (s->runner == RUN_UPSTREAM)
    s->pass = upstream_text(a, find(upstream, N_UPSTREAM, (struct word){s->name, strlen(s->name)}), options);
  else
    s->options = options;
  s->hand = HAND_OPTIONS;
}

void by_hand_apply(struct arena *a, const struct pipeline *p, int n, const char *const *texts,
                   const struct pipeline **out, int *n_unused) {
  struct change *changes = arena_new_array(a, struct change, (size_t)n);
  int *at = arena_new_array(a, int, (size_t)n);
  *out = p;
  *n_unused = 0;
  for (int i = 0; i < n; i++) {
    const bool ok = parse(texts[i], &changes[i]);
    assert(ok);
    (void)ok;
    at[i] = index_of(p, changes[i].stage);
    *n_unused += at[i] < 0;
  }
  if (*n_unused == n)
    return;
  struct stage_def *stages = arena_new_array(a, struct stage_def, (size_t)(p->n + n));
  int n_stages = 0;
  for (int k = 0; k < p->n; k++) {
    struct stage_def *s = &stages[n_stages++];
    *s = p->stages[k];
    for (int i = 0; i < n; i++)
      if (at[i] == k && changes[i].hand == HAND_OUT)
        s->hand = HAND_OUT;
      else if (at[i] == k && changes[i].hand == HAND_OPTIONS)
        set_options(a, s, &changes[i]);
    for (int i = 0; i < n; i++)
      if (at[i] == k && changes[i].hand == HAND_IN)
        stages[n_stages++] = put_in(a, &p->stages[k], &changes[i]);
  }
  struct pipeline *x = arena_new(a, struct pipeline);
  *x = (struct pipeline){p->name, stages, n_stages, .base = p};
  *out = x;
}

int by_hand_split(struct arena *a, const char *text, const char **out) {
  int n = 0;
  for (const char *p = text; *p; p += *p == ';') {
    const struct word w = trim((struct word){p, strcspn(p, ";\n")});
    p += strcspn(p, ";\n");
    p += *p == '\n';
    if (!w.n)
      continue;
    if (n == BY_HAND_MAX)
      return -1;
    out[n++] = arena_strndup(a, w.p, w.n);
  }
  return n;
}

/* ---- the list ---------------------------------------------------------------------------------------------------- */

static const char *const forms[] = {[FORM_HLO] = "hlo", [FORM_MLIR] = "mlir", [FORM_NISA] = "nisa"};

static bool can_run_again(const struct stage_def *s) {
  return find_own(&pipeline_hlo, (struct word){s->name, strlen(s->name)}, stage_form(s)) == s;
}

static void print_pass(FILE *to, const char *name, const char *form, const char *options, const char *summary) {
  fprintf(to, "%-32s %-5s %s%s%s%s\n", name, form, summary, *options ? "  Options: " : "", options,
          *options ? "." : "");
}

void by_hand_print(FILE *to) {
  for (int i = 0; i < N_UPSTREAM; i++)
    print_pass(to, upstream[i].name, "mlir", upstream[i].options, upstream[i].summary);
  for (int k = 0; k < pipeline_hlo.n; k++) {
    const struct stage_def *s = &pipeline_hlo.stages[k];
    if (can_run_again(s))
      print_pass(to, s->name, forms[stage_form(s)], options_of(s), s->summary);
  }
}

static void put_pass(struct buf *b, const char *name, const char *form, const char *options, const char *summary) {
  json_put_comma(b);
  buf_putc(b, '{');
  json_put_field_str(b, "name", name);
  json_put_field_str(b, "form", form);
  json_put_field_str(b, "options", options);
  json_put_field_str(b, "summary", summary);
  buf_putc(b, '}');
}

void by_hand_describe(struct buf *b) {
  buf_putc(b, '[');
  for (int i = 0; i < N_UPSTREAM; i++)
    put_pass(b, upstream[i].name, "mlir", upstream[i].options, upstream[i].summary);
  for (int k = 0; k < pipeline_hlo.n; k++) {
    const struct stage_def *s = &pipeline_hlo.stages[k];
    if (can_run_again(s))
      put_pass(b, s->name, forms[stage_form(s)], options_of(s), s->summary);
  }
  buf_putc(b, ']');
}
