/* lesson_main: `nkx lesson check FILE…`: proves that lessons are right on what the pipeline does today.
 *
 * Every step's kernel compiles, unless a fact says that it is refused; every stage, selection and line that a step opens is there;
 * every fact holds; and every task is done by its listed solution, and not without it.  All lessons are checked by
 * one process: Python and MLIR start once.
 */
#include "driver/main.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "base/array.h"
#include "base/json.h"
#include "driver/compile.h"
#include "driver/result_file.h"
#include "driver/terminal.h"
#include "ir/ir.h"
#include "lesson/lesson.h"

static const char usage[] = "usage: nkx lesson check FILE…   proves that each lesson is right\n"
                            "       nkx lesson json FILE     writes the lesson as JSON, as the page takes it\n"
                            "  A lesson is a Markdown file; docs/lessons.md has its form. check compiles the kernel of "
                            "each step, finds what\n"
                            "  the step opens, and solves each task with its listed solution, which must not be solved "
                            "without it.\n"
                            "Exit status: 0 all are right; 1 one is not; 2 wrong usage; 3 a limit was reached.\n";

/* What is compiled, and its result. */
struct run {
  const char *source, *target, *edit_stage, *edit_text;
  bool check, simulate;
  json_t *result; /* the object of the API */
};

struct command {
  struct terminal t;
  bool writes_json;
  const char **paths;
  int n_paths;
  struct ir ir;
  /* of the lesson in progress */
  const char *path;
  struct {
    struct run *v;
    int n, cap;
  } runs;
  int n_faults;
};

static void say_fault(struct command *c, int line, const char *fmt, ...) PRINTF(3, 4);
static void say_fault(struct command *c, int line, const char *fmt, ...) {
  va_list ap;
  va_start(ap, fmt);
  fprintf(stderr, "%s:%d: ", c->path, line);
  vfprintf(stderr, fmt, ap);
  fputc('\n', stderr);
  va_end(ap);
  c->n_faults++;
}

/* ---- compiling --------------------------------------------------------------------------------------------------- */

struct collector {
  struct result_file file;
  struct error *err;
};

static enum status collect(void *user, const char *json, size_t len) {
  struct collector *c = user;
  return result_file_add(&c->file, json, len, c->err);
}

static enum status compile(struct command *c, struct run *r) {
  struct collector to = {.err = &c->t.err};
  struct job *job = &c->t.job;
  job_init(job);
  job->source = r->source;
  job->source_len = strlen(r->source);
  job->filename = "kernel.py";
  job->check = r->check;
  job->simulate = r->simulate;
  job->resume =
      (struct job_resume){.stage = r->edit_stage, .text = r->edit_text, .len = r->edit_text ? strlen(r->edit_text) : 0};
  enum status st = ST_OK;
  if (r->target && !target_from_name(r->target, &job->target))
    return fail(&c->t.err, ST_INPUT, "there is no target %.60s", r->target);
  result_file_init(&to.file);
  st = compile_run(&c->ir, job, collect, &to);
  if (st == ST_OK || st == ST_INPUT)
    st = result_file_parse(&to.file, &r->result, &c->t.err);
  result_file_clear(&to.file);
  return st;
}

static bool same_text(const char *a, const char *b) {
  return a == b || (a && b && !strcmp(a, b));
}

/* Compiles, unless the lesson has compiled the same already. */
static enum status result_of(struct command *c, const struct run *wanted, const json_t **out) {
  for (int i = 0; i < c->runs.n; i++) {
    const struct run *r = &c->runs.v[i];
    if (same_text(r->source, wanted->source) && same_text(r->target, wanted->target) &&
        same_text(r->edit_text, wanted->edit_text) && r->check >= wanted->check && r->simulate >= wanted->simulate)
      return *out = r->result, ST_OK;
  }
  struct run r = *wanted;
  r.result = NULL;
  const enum status st = compile(c, &r);
  if (st)
    return st;
  array_push(c->t.arena, &c->runs, r);
  *out = r.result;
  return ST_OK;
}

static void forget_runs(struct command *c) {
  for (int i = 0; i < c->runs.n; i++)
    json_decref(c->runs.v[i].result);
  c->runs.n = 0;
}

/* ---- checking ---------------------------------------------------------------------------------------------------- */

static const char *text_of(const json_t *o, const char *key) {
  const char *s = json_string_value(json_object_get(o, key));
  return s ? s : "";
}

static bool is_ok(const json_t *result) {
  return !strcmp(text_of(result, "status"), "ok");
}

/* The first error of a result, for a message. */
static const char *first_error(const json_t *result) {
  const json_t *d;
  size_t i;
  json_array_foreach(json_object_get(result, "diagnostics"), i,
                     d) if (!strcmp(text_of(d, "severity"), "error")) return text_of(d, "message");
  return "it did not end well";
}

/* True if the place is this range of the kernel's file. */
static bool is_range(const json_t *place, const int r[4]) {
  if (json_integer_value(json_array_get(place, 0)) != 0)
    return false;
  for (int i = 0; i < 4; i++)
    if (json_integer_value(json_array_get(place, (size_t)i + 1)) != r[i])
      return false;
  return true;
}

/* True if a line of the stage comes from the range of the source. */
static bool is_linked(const json_t *result, const json_t *stage, const char *range) {
  const json_t *places = json_object_get(result, "places"), *sources = json_object_get(result, "sources"), *line, *n;
  int r[4];
  size_t i, k;
  if (sscanf(range, "%d:%d-%d:%d", &r[0], &r[1], &r[2], &r[3]) != 4)
    return false;
  json_array_foreach(json_object_get(stage, "lines"), i, line) {
    const json_t *src = json_object_get(line, "src");
    const json_t *source = src ? json_array_get(sources, (size_t)json_integer_value(src)) : NULL;
    json_array_foreach(json_object_get(source, "places"), k,
                       n) if (is_range(json_array_get(places, (size_t)json_integer_value(n)), r)) return true;
  }
  return false;
}

static void check_stage(struct command *c, const struct lesson_step *s, const json_t *result, const char *key) {
  if (key && !lesson_stage(result, key))
    say_fault(c, s->line, "\"%s\": the kernel has no stage %s", s->title, key);
}

static void check_view(struct command *c, const struct lesson_step *s, const json_t *result) {
  const struct lesson_view *v = &s->view;
  const json_t *stage = lesson_stage(result, v->stage ? v->stage : "last");
  check_stage(c, s, result, v->stage);
  check_stage(c, s, result, v->beside);
  check_stage(c, s, result, v->compared && strcmp(v->compared, "source") != 0 ? v->compared : NULL);
  check_stage(c, s, result, v->diff && strcmp(v->diff, "previous") != 0 ? v->diff : NULL);
  if (v->select && stage && !is_linked(result, stage, v->selected))
    say_fault(c, s->line, "\"%s\": no line of the stage comes from the selection \"%s\"", s->title, v->select);
  if (v->line && stage && !strstr(text_of(stage, "text"), v->line))
    say_fault(c, s->line, "\"%s\": no line of the stage has \"%s\"", s->title, v->line);
  if (v->inspect && !v->line)
    say_fault(c, s->line, "\"%s\": inspect needs a line", s->title);
  if (v->mode && !strcmp(v->mode, "compare") && !s->before)
    say_fault(c, s->line, "\"%s\": a comparison needs ```python before", s->title);
}

static void check_conditions(struct command *c, const struct lesson_conditions *list, const json_t *result,
                             const char *source, const char *where) {
  for (int i = 0; i < list->n; i++) {
    const char *found;
    if (!lesson_holds(c->t.arena, &list->v[i], result, source, &found))
      say_fault(c, list->v[i].line, "%s does not hold: %s%s%s", where, list->v[i].text, *found ? "; there is " : "",
                found);
  }
}

static void add_needs(struct run *run, const struct lesson_conditions *list) {
  for (int i = 0; i < list->n; i++) {
    run->check |= lesson_needs_check(&list->v[i]);
    run->simulate |= lesson_needs_run(&list->v[i]);
  }
}

/* True if the kernel as it is meets all goals.  Checks and runs take most of the time, so they are made only if no other goal
 * fails. */
static enum status is_solved(struct command *c, const struct lesson_step *s, const struct run *run, bool *out) {
  const struct lesson_conditions *goals = &s->task.goals;
  struct run with = *run;
  const json_t *result;
  *out = false;
  for (int costly = 0; costly < 2; costly++) {
    if (costly)
      add_needs(&with, goals);
    const enum status st = result_of(c, &with, &result);
    if (st)
      return st;
    for (int i = 0; i < goals->n; i++) {
      const bool needs_more = lesson_needs_check(&goals->v[i]) || lesson_needs_run(&goals->v[i]);
      if (needs_more == costly && !lesson_holds(c->t.arena, &goals->v[i], result, s->kernel, NULL))
        return ST_OK;
    }
  }
  *out = true;
  return ST_OK;
}

static enum status check_task(struct command *c, const struct lesson_step *s, const struct run *run,
                              const json_t *result) {
  const struct lesson_task *t = &s->task;
  const json_t *solved;
  check_conditions(c, &t->proofs, result, s->kernel, "the proof");
  if (t->kind == TASK_CLICK) {
    const json_t *stage = lesson_stage(result, t->stage);
    check_stage(c, s, result, t->stage);
    if (s->view.stage && stage && stage == lesson_stage(result, s->view.stage) && !t->clicked)
      say_fault(c, t->line, "the task is solved before anything is clicked: the step opens %s", t->stage);
    if (t->clicked && stage && !strstr(text_of(stage, "text"), t->clicked))
      say_fault(c, t->line, "no line of %s has \"%s\"", t->stage, t->clicked);
  }
  if (t->kind != TASK_CHANGE)
    return ST_OK;
  bool solved_before;
  enum status st = is_solved(c, s, run, &solved_before);
  if (!st && solved_before)
    say_fault(c, t->line, "the task is solved by the kernel as it is");
  struct run with = {.source = t->solution, .target = run->target};
  add_needs(&with, &t->goals);
  if (!st)
    st = result_of(c, &with, &solved);
  if (st)
    return st;
  if (!is_ok(solved))
    say_fault(c, t->line, "the solution is refused: %s", first_error(solved));
  check_conditions(c, &t->goals, solved, t->solution, "with the solution, a goal");
  return ST_OK;
}

/* Puts the changed text of the step's edit into the run. */
static enum status apply_edit(struct command *c, const struct lesson_step *s, struct run *run) {
  const json_t *plain;
  const struct run unedited = {.source = run->source, .target = run->target};
  const enum status st = result_of(c, &unedited, &plain);
  if (st)
    return st;
  const json_t *stage = lesson_stage(plain, s->edit_stage);
  const char *text = text_of(stage, "text"), *at = strstr(text, s->edit_old);
  if (!at) {
    say_fault(c, s->line, "\"%s\": stage %s has no \"%s\" to change", s->title, s->edit_stage, s->edit_old);
    return ST_OK;
  }
  run->edit_stage = s->edit_stage;
  run->edit_text = arena_printf(c->t.arena, "%.*s%s%s", (int)(at - text), text, s->edit_new, at + strlen(s->edit_old));
  return ST_OK;
}

static enum status check_step(struct command *c, const struct lesson_step *s) {
  struct run run = {.source = s->kernel, .target = s->view.target, .check = s->view.has_check};
  const json_t *result, *before;
  bool is_refused = false;
  add_needs(&run, &s->facts);
  add_needs(&run, &s->task.proofs);
  for (int i = 0; i < s->facts.n; i++)
    is_refused |= s->facts.v[i].kind == COND_REFUSED;
  enum status st = s->edit_stage ? apply_edit(c, s, &run) : ST_OK;
  if (!st)
    st = result_of(c, &run, &result);
  if (st)
    return st;
  /* an edit may make a stage differ from NumPy, which the result reports as an error */
  if (!is_ok(result) && !is_refused && !s->edit_stage)
    say_fault(c, s->line, "\"%s\": the kernel is refused: %s", s->title, first_error(result));
  if (s->before) {
    const struct run a = {.source = s->before, .target = s->view.target};
    st = result_of(c, &a, &before);
    if (!st && !is_ok(before))
      say_fault(c, s->line, "\"%s\": the kernel before is refused: %s", s->title, first_error(before));
  }
  check_view(c, s, result);
  check_conditions(c, &s->facts, result, s->kernel, "the fact");
  return st ? st : check_task(c, s, &run, result);
}

/* ---- the command ------------------------------------------------------------------------------------------------- */

static enum status read_lesson(struct command *c, const char *path, struct lesson *l) {
  const char *text;
  size_t len;
  int line;
  enum status st = terminal_read_text(&c->t, path, &text, &len);
  c->path = path;
  if (st)
    return st;
  struct error err = {0};
  st = lesson_read(c->t.arena, text, len, l, &line, &err);
  if (st == ST_INPUT || st == ST_LIMIT) {
    say_fault(c, line, "%s", err.text);
    *l = (struct lesson){.title = NULL};
  } else if (st)
    c->t.err = err;
  return st == ST_INPUT || st == ST_LIMIT ? ST_OK : st;
}

static enum status check_lesson(struct command *c, const char *path) {
  struct lesson l;
  const int before = c->n_faults;
  enum status st = read_lesson(c, path, &l);
  int n_tasks = 0;
  for (int i = 0; !st && i < l.steps.n; i++) {
    st = check_step(c, &l.steps.v[i]);
    n_tasks += l.steps.v[i].task.kind != TASK_NONE;
  }
  forget_runs(c);
  if (!st && c->n_faults == before)
    printf("%s: %d steps, %d tasks: right\n", path, l.steps.n, n_tasks);
  fflush(stdout);
  return st;
}

static enum status write_json(struct command *c) {
  enum { JSON_MAX = 4 << 20 };
  struct lesson l;
  struct buf b;
  enum status st = read_lesson(c, c->paths[0], &l);
  if (st || c->n_faults)
    return st ? st : ST_INPUT;
  buf_init(&b, JSON_MAX);
  lesson_put(&b, &l);
  buf_putc(&b, '\n');
  st = buf_status(&b) ? fail(&c->t.err, buf_status(&b), "the lesson is too large")
                      : terminal_write(&c->t, "-", b.data, b.len);
  buf_clear(&b);
  return st;
}

static enum status run(void *command) {
  struct command *c = command;
  if (c->writes_json)
    return write_json(c);
  enum status st = terminal_start(&c->t, &c->ir);
  for (int i = 0; !st && i < c->n_paths; i++)
    st = check_lesson(c, c->paths[i]);
  return st ? st : c->n_faults ? ST_INPUT : ST_OK;
}

static enum status parse(void *command, int argc, char **argv) {
  struct command *c = command;
  for (int i = 1; i < argc; i++)
    if (!strcmp(argv[i], "--help") || !strcmp(argv[i], "-h")) {
      fputs(usage, stdout);
      exit(EXIT_DONE);
    }
  c->writes_json = argc >= 2 && !strcmp(argv[1], "json");
  if (argc < 3 || (!c->writes_json && strcmp(argv[1], "check") != 0) || (c->writes_json && argc != 3))
    return fail(&c->t.err, ST_INPUT, "expected check FILE… or json FILE; see nkx lesson --help");
  optind = 2;
  return ST_OK;
}

static enum status take_paths(void *command, char **paths, int n) {
  struct command *c = command;
  c->paths = (const char **)paths;
  c->n_paths = n;
  c->t.job.source = "";
  c->t.job.filename = "kernel.py";
  return ST_OK;
}

int lesson_main(int argc, char **argv) {
  static const struct terminal_command def = {"lesson", parse, take_paths, run};
  struct arena arena;
  struct command c = {.path = NULL};

  arena_init(&arena);
  terminal_init(&c.t, &arena);
  const int code = terminal_main(&c.t, &def, &c, argc, argv);
  arena_clear(&arena);
  return code;
}
