/* The compiler's flags, as users of Compiler Explorer write them beside the source. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "ce/internal.h"
#include "driver/pipeline.h"

/* More are refused.  One more is read, so that ce_args_parse sees it. */
enum { WORDS_MAX = 1000 };

/* ---- words ------------------------------------------------------------------------------------------------------- */

/* Appends the next word of a shell-like text to `words`; returns where to go on, or NULL at the end.  Quotes and
 * backslashes work as in a shell; nothing else of a shell does.  `room` has as many bytes as the text. */
static const char *take_word(const char *p, const char *end, char *room, json_t *words) {
  size_t n = 0;
  char quote = 0;
  assert(p <= end && json_is_array(words));
  while (p < end && strchr(" \t\r\n", *p))
    p++;
  if (p == end)
    return NULL;
  for (; p < end && (quote || !strchr(" \t\r\n", *p)); p++) {
    if (quote ? *p == quote : *p == '"' || *p == '\'')
      quote = quote ? 0 : *p;
    else if (*p == '\\' && quote != '\'' && p + 1 < end)
      room[n++] = *++p;
    else
      room[n++] = *p;
  }
  json_array_append_new(words, json_stringn(room, n));
  return p;
}

void ce_split(const json_t *v, json_t *words) {
  const json_t *word;
  size_t i;
  if (json_is_string(v)) {
    const char *p = json_string_value(v), *end = p + json_string_length(v);
    char *room = malloc((size_t)(end - p) + 1);
    while (room && p && json_array_size(words) <= WORDS_MAX)
      p = take_word(p, end, room, words);
    free(room);
  }
  json_array_foreach(v, i, word) if (json_is_string(word) && json_string_length(word) &&
                                     json_array_size(words) <= WORDS_MAX) json_array_append(words, (json_t *)word);
}

/* ---- meaning ----------------------------------------------------------------------------------------------------- */

/* One flag that is being read into ce_args; value is NULL for flags without one. */
struct setting {
  struct arena *a;
  struct ce_args *args;
  const char *value;
};

static void set_target(struct setting *s) {
  s->args->has_target = ce_find_compiler(s->value, strlen(s->value), &s->args->target);
  if (!s->args->has_target)
    s->args->complaint = arena_printf(s->a, "--target=%.60s: expected " TARGET_NAMES, s->value);
}

static void set_kernel(struct setting *s) {
  s->args->kernel = s->value;
}

/* The passes as the script numbers them that old links to Compiler Explorer were made with: 0 is the linalg before all of
 * them, 1 is remove-redundant-zero-fill, and passes that did not exist then have no number.  Returns the stage's
 * index, or -1; *last is the largest number. */
static int numbered_stage(long number, long *last) {
  int found = -1;
  *last = -1;
  for (int i = 0; i < pipeline_hlo.n; i++) {
    const char *name = pipeline_hlo.stages[i].name;
    if (pipeline_hlo.stages[i].is_own)
      continue;
    const bool is_first =
        *last < 0 && i + 1 < pipeline_hlo.n && !strcmp(pipeline_hlo.stages[i + 1].name, "remove-redundant-zero-fill");
    if (!is_first && (*last < 0 || !strcmp(name, "decompose-batch-matmul") || !strcmp(name, "knob-driven-fusion")))
      continue;
    if (++*last == number)
      found = i;
  }
  assert(*last >= 0 && *last < pipeline_hlo.n && found < pipeline_hlo.n);
  return found;
}

/* The value is a stage's name, such as "cse:2", or the number of a pass. */
static void set_stop(struct setting *s) {
  char *end;
  long n = strtol(s->value, &end, 10), last;
  s->args->stop_after = s->value;
  if (end == s->value || *end)
    return;
  const int stage = numbered_stage(n, &last);
  if (stage < 0) {
    s->args->complaint = arena_printf(
        s->a, "--stop=%.20s: passes are numbered from 1 to %ld, and 0 is the linalg before them", s->value, last);
    return;
  }
  int nth = 1;
  for (int i = 0; i < stage; i++)
    nth += !strcmp(pipeline_hlo.stages[i].name, pipeline_hlo.stages[stage].name);
  s->args->stop_after = arena_printf(s->a, "%s:%d", pipeline_hlo.stages[stage].name, nth);
}

static void set_raw(struct setting *s) {
  s->args->is_raw = true;
}

static void set_input(struct setting *s) {
  struct ce_args *args = s->args;
  struct error err;
  if (args->n_inputs == JOB_INPUTS_MAX) {
    args->complaint = "--input: too many of them";
    return;
  }
  if (!args->inputs)
    args->inputs = arena_new_array(s->a, struct job_input, JOB_INPUTS_MAX);
  if (job_parse_input(s->a, s->value, &args->inputs[args->n_inputs], &err))
    args->complaint = arena_strdup(s->a, err.text);
  else
    args->n_inputs++;
}

static void set_check(struct setting *s) {
  s->args->check = true;
}

static void set_simulate(struct setting *s) {
  s->args->simulate = true;
}

static void refuse_hardware(struct setting *s) {
  s->args->complaint = "--hw: this server has no Neuron device; --check runs the stages on the CPU";
}

static const struct flag {
  const char *name;
  bool takes_value;
  void (*set)(struct setting *s);
  const char *what; /* for ce_args_describe; NULL: another spelling of the flag before */
} flags[] = {
    {"--target", true, set_target, "the machine: trn1, trn2 or trn3"},
    {"--kernel", true, set_kernel, "only this function of the source"},
    {"--input", true, set_input, "shape of a parameter of a plain function: --input=x=128x256:f32; repeatable"},
    {"--stop", true, set_stop,
     "the stage to stop after: a name, name:N for the N-th of that name, or the number of a pass (0: none)"},
    {"--stop-after", true, set_stop, NULL},
    {"--check", false, set_check, "runs every stage and compares it with NumPy"},
    {"--sim", false, set_check, NULL},
    {"--simulate", false, set_simulate,
     "runs the last stage on the simulated machine: outputs, time and what it is spent on"},
    {"--raw", false, set_raw, "the text alone, not tied to lines of the source"},
    {"--hw", false, refuse_hardware, NULL},
};
enum { N_FLAGS = sizeof flags / sizeof *flags };

static const struct flag *find_flag(const char *word, size_t len) {
  for (int i = 0; i < N_FLAGS; i++)
    if (strlen(flags[i].name) == len && !memcmp(flags[i].name, word, len))
      return &flags[i];
  return NULL;
}

void ce_args_parse(struct arena *a, const json_t *words, struct ce_args *out) {
  size_t n = json_array_size(words);
  *out = (struct ce_args){0};
  if (n > WORDS_MAX)
    out->complaint = arena_printf(a, "there are more than %d arguments", WORDS_MAX);
  for (size_t i = 0; i < n && !out->complaint; i++) {
    const char *word = json_string_value(json_array_get(words, i));
    size_t len = strcspn(word, "=");
    const struct flag *f = find_flag(word, len);
    struct setting s = {.a = a, .args = out};
    if (f && f->takes_value)
      s.value = word[len] ? word + len + 1 : i + 1 < n ? json_string_value(json_array_get(words, ++i)) : NULL;
    if (!f || (!f->takes_value && word[len]))
      out->complaint = arena_printf(a, "unknown argument: '%.80s'", word);
    else if (f->takes_value && (!s.value || !*s.value))
      out->complaint = arena_printf(a, "%s: needs a value", f->name);
    else
      f->set(&s);
  }
}

json_t *ce_args_describe(void) {
  json_t *o = json_object();
  for (int i = 0; i < N_FLAGS; i++) {
    if (!flags[i].what)
      continue;
    json_t *key = json_sprintf("%s%s", flags[i].name, flags[i].takes_value ? "=" : "");
    json_object_set_new(o, json_string_value(key),
                        json_pack("{s:s,s:i}", "description", flags[i].what, "timesused", 0));
    json_decref(key);
  }
  return o;
}
