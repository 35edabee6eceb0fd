/* conditions: what a lesson says of a result, read and judged. */
#include "lesson/lesson.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

/* ---- reading ----------------------------------------------------------------------------------------------------- */

static const char *const relations[] = {"<", "<=", "==", "!=", ">=", ">"};
static const char *const figures[] = {"time_us", "instructions", "matmuls", "dma_bytes", "sbuf", "psum"};

/* How the words after the first are read. */
enum form { FORM_STAGE_WORD_NUMBER, FORM_STAGE_NUMBER, FORM_WORD_NUMBER, FORM_STAGE_TEXT, FORM_STAGE, FORM_WORD };

static const struct {
  const char *word;
  enum lesson_kind kind;
  enum form form;
} kinds[] = {
    {"count", COND_COUNT, FORM_STAGE_WORD_NUMBER},
    {"lines", COND_LINES, FORM_STAGE_NUMBER},
    {"share", COND_SHARE, FORM_WORD_NUMBER},
    {"has", COND_HAS, FORM_STAGE_TEXT},
    {"lacks", COND_LACKS, FORM_STAGE_TEXT},
    {"changed", COND_CHANGED, FORM_STAGE},
    {"unchanged", COND_UNCHANGED, FORM_STAGE},
    {"decided", COND_DECIDED, FORM_STAGE_TEXT},
    {"equals", COND_EQUALS, FORM_WORD},
    {"differs", COND_DIFFERS, FORM_STAGE},
    {"refused", COND_REFUSED, FORM_WORD},
};

/* Cuts the next word off; "" at the end. */
static const char *next_word(struct arena *a, const char **p) {
  *p += strspn(*p, " ");
  const size_t n = strcspn(*p, " ");
  const char *word = arena_strndup(a, *p, n);
  *p += n;
  *p += strspn(*p, " ");
  return word;
}

static bool read_number(struct arena *a, const char **p, struct lesson_condition *c) {
  const char *sign = next_word(a, p);
  const char *text = next_word(a, p);
  char *end;
  c->number = strtod(text, &end);
  if (!*text || *end)
    return false;
  for (size_t i = 0; i < sizeof relations / sizeof *relations; i++)
    if (!strcmp(sign, relations[i]))
      return c->relation = (enum lesson_relation)i, true;
  return false;
}

static bool read_rest(struct arena *a, const char **p, enum form form, struct lesson_condition *c) {
  if (form != FORM_WORD && form != FORM_WORD_NUMBER)
    c->stage = next_word(a, p);
  if (form == FORM_STAGE_WORD_NUMBER || form == FORM_WORD_NUMBER || form == FORM_WORD)
    c->what = next_word(a, p);
  if (form == FORM_STAGE_TEXT)
    c->what = arena_strdup(a, *p), *p += strlen(*p);
  const bool has_number = form == FORM_STAGE_WORD_NUMBER || form == FORM_STAGE_NUMBER || form == FORM_WORD_NUMBER;
  return (!c->stage || *c->stage) && (!c->what || *c->what) && (!has_number || read_number(a, p, c)) && !**p;
}

enum status lesson_read_condition(struct arena *a, const char *text, int line, struct lesson_condition *out,
                                  struct error *err) {
  const char *p = text;
  const char *first = next_word(a, &p);
  bool ok = false;
  *out = (struct lesson_condition){.line = line, .text = arena_strdup(a, text)};
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
    if (!strcmp(first, kinds[i].word)) {
      out->kind = kinds[i].kind;
      ok = read_rest(a, &p, kinds[i].form, out);
    }
  for (size_t i = 0; i < sizeof figures / sizeof *figures; i++)
    if (!strcmp(first, figures[i])) {
      out->kind = COND_FIGURE;
      out->what = figures[i];
      ok = read_number(a, &p, out) && !*p;
    }
  if (ok && out->kind == COND_EQUALS)
    ok = !strcmp(out->what, "numpy");
  return ok ? ST_OK : fail(err, ST_INPUT, "\"%.120s\" is not a condition", text);
}

bool lesson_needs_check(const struct lesson_condition *c) {
  return c->kind == COND_EQUALS || c->kind == COND_DIFFERS;
}

bool lesson_needs_run(const struct lesson_condition *c) {
  return c->kind == COND_FIGURE || c->kind == COND_SHARE;
}

/* ---- judging ----------------------------------------------------------------------------------------------------- */

static const json_t *kernel_of(const json_t *result) {
  return json_array_get(json_object_get(result, "kernels"), 0);
}

static const char *text_of(const json_t *o, const char *key) {
  const char *s = json_string_value(json_object_get(o, key));
  return s ? s : "";
}

const struct json_t *lesson_stage(const json_t *result, const char *key) {
  const json_t *stages = json_object_get(kernel_of(result), "stages"), *stage;
  const char *colon = strrchr(key, ':');
  const size_t len = colon ? (size_t)(colon - key) : strlen(key);
  long nth = colon ? strtol(colon + 1, NULL, 10) : 1;
  size_t i;
  if (!strcmp(key, "last"))
    return json_array_size(stages) ? json_array_get(stages, json_array_size(stages) - 1) : NULL;
  json_array_foreach(stages, i, stage) {
    const char *name = text_of(stage, "name");
    if (strlen(name) == len && !memcmp(name, key, len) && --nth == 0)
      return stage;
  }
  return NULL;
}

static bool is_word_char(char c) {
  return c == '_' || c == '.' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* Counts a word that stands alone: letters, digits, '_' and '.' beside it make another word of it. */
static int count_words(const char *text, const char *word) {
  const size_t n = strlen(word);
  int found = 0;
  for (const char *p = text; (p = strstr(p, word)); p += n)
    found += (p == text || !is_word_char(p[-1])) && !is_word_char(p[n]);
  return found;
}

static int count_lines(const char *text) {
  int n = 0;
  for (const char *p = text; *p; p++)
    n += *p == '\n' || !p[1];
  return n;
}

static bool compare(double x, enum lesson_relation r, double y) {
  switch (r) {
  case IS_LESS:
    return x < y;
  case IS_AT_MOST:
    return x <= y;
  case IS_EQUAL:
    return x == y;
  case IS_NOT:
    return x != y;
  case IS_AT_LEAST:
    return x >= y;
  case IS_MORE:
    return x > y;
  }
  assert(false);
  return false;
}

/* Returns a figure of the simulated run; NULL if there is none. */
static const json_t *figure(const json_t *kernel, const char *what) {
  const json_t *profile = json_object_get(kernel, "profile");
  if (!strcmp(what, "time_us"))
    return json_object_get(profile, "total_us");
  if (!strcmp(what, "sbuf") || !strcmp(what, "psum"))
    return json_object_get(json_object_get(json_object_get(profile, "memory"), what), "peak");
  return json_object_get(json_object_get(kernel, "simulation"), what);
}

/* Returns the percentage for which a lane was busy: 0 for one that had nothing to do; negative without a run. */
static double share(const json_t *kernel, const char *lane) {
  const json_t *profile = json_object_get(kernel, "profile"), *l;
  size_t i;
  json_array_foreach(json_object_get(profile, "lanes"), i, l) if (!strcmp(text_of(l, "name"), lane)) return 100 *
      json_number_value(json_object_get(l, "share"));
  return profile ? 0 : -1;
}

/* The status of the first stage whose check failed, or NULL; *n_passed counts those that passed. */
static const json_t *first_failed(const json_t *result, int *n_passed) {
  const json_t *stage;
  size_t i;
  *n_passed = 0;
  json_array_foreach(json_object_get(kernel_of(result), "stages"), i, stage) {
    const char *status = text_of(json_object_get(stage, "check"), "status");
    *n_passed += !strcmp(status, "pass");
    if (!strcmp(status, "fail"))
      return stage;
  }
  return NULL;
}

static bool is_refused(const json_t *result, const char *code, const char **found) {
  const json_t *d;
  size_t i;
  *found = "it is not refused";
  json_array_foreach(json_object_get(result, "diagnostics"), i, d) {
    if (strcmp(text_of(d, "severity"), "error") != 0)
      continue;
    if (!strcmp(text_of(d, "code"), code))
      return true;
    *found = text_of(d, "code");
  }
  return false;
}

static bool has_remark(const json_t *stage, const char *rule) {
  const json_t *r;
  size_t i;
  json_array_foreach(json_object_get(stage, "remarks"), i, r) if (!strcmp(text_of(r, "rule"), rule)) return true;
  return false;
}

/* A condition on the text of a stage, or of the source. */
static bool holds_of_stage(struct arena *a, const struct lesson_condition *c, const json_t *stage, const char *text,
                           const char **found) {
  double n;
  switch (c->kind) {
  case COND_COUNT:
    n = count_words(text, c->what);
    break;
  case COND_LINES:
    n = count_lines(text);
    break;
  case COND_HAS:
    return strstr(text, c->what) != NULL;
  case COND_LACKS:
    return strstr(text, c->what) == NULL;
  case COND_CHANGED:
    return json_is_true(json_object_get(stage, "changed"));
  case COND_UNCHANGED:
    return json_is_false(json_object_get(stage, "changed"));
  default:
    return has_remark(stage, c->what);
  }
  *found = arena_printf(a, "%g", n);
  return compare(n, c->relation, c->number);
}

static bool holds_of_run(struct arena *a, const struct lesson_condition *c, const json_t *kernel, const char **found) {
  const json_t *f = c->kind == COND_FIGURE ? figure(kernel, c->what) : NULL;
  const double n = c->kind == COND_SHARE ? share(kernel, c->what) : f ? json_number_value(f) : -1;
  if (n < 0)
    return *found = "it did not run", false;
  *found = arena_printf(a, "%.4g", n);
  return compare(n, c->relation, c->number);
}

bool lesson_holds(struct arena *a, const struct lesson_condition *c, const json_t *result, const char *source,
                  const char **found) {
  const char *ignored = NULL;
  int n_passed;
  found = found ? found : &ignored;
  *found = "";
  if (c->kind == COND_REFUSED)
    return is_refused(result, c->what, found);
  if (lesson_needs_run(c))
    return holds_of_run(a, c, kernel_of(result), found);
  if (lesson_needs_check(c)) {
    const json_t *failed = first_failed(result, &n_passed);
    *found = failed ? text_of(failed, "name") : n_passed ? "all equal" : "nothing was checked";
    if (c->kind == COND_DIFFERS)
      return failed && failed == lesson_stage(result, c->stage);
    return !failed && n_passed && !strcmp(text_of(result, "status"), "ok");
  }
  const bool is_source = !strcmp(c->stage, "kernel");
  const json_t *stage = is_source ? NULL : lesson_stage(result, c->stage);
  if (!is_source && !stage)
    return *found = "the kernel does not reach that stage", false;
  return holds_of_stage(a, c, stage, is_source ? source : text_of(stage, "text"), found);
}
