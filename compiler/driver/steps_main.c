/* steps_main: `nkx steps KERNEL STAGE`: the rewrites inside one stage, each as the lines that it changes (steps.h). */
#include "driver/main.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "base/buf.h"
#include "driver/compile.h"
#include "driver/frame_scan.h"
#include "driver/frames.h"
#include "driver/pipeline.h"
#include "driver/source_table.h"
#include "driver/terminal.h"
#include "ir/ir.h"

static const char usage[] =
    "usage: nkx steps KERNEL STAGE [FILE.py…] [options]\n"
    "  Shows what the pass of STAGE did, one rewrite after the other: the rule, the operation that it was tried on, "
    "and the lines "
    "before and\n"
    "  after. STAGE counts stages of the same name from 1, canonicalize:2, or is a number.\n" TERMINAL_HELP_FILES
    "  --language nkipy|hlo|mlir  the language of KERNEL, as for nkx compile\n"
    "  --from N                   from this step on, counted from 0: an answer has at most 500\n"
    "  --json                     write the answer as JSON, in the form of the API\n" TERMINAL_HELP_INPUTS;

struct command {
  struct terminal t;
  struct source_table sources;
  bool is_json, has_any;
};

static enum status parse(void *command, int argc, char **argv) {
  static const struct option options[] = {TERMINAL_OPTIONS,
                                          {"from", required_argument, NULL, 'F'},
                                          {"json", no_argument, NULL, 'j'},
                                          {"help", no_argument, NULL, 'h'},
                                          {NULL, 0, NULL, 0}};
  struct command *c = command;
  enum status st = ST_OK;
  int o;
  while (!st && (o = getopt_long(argc, argv, "h", options, NULL)) != -1) {
    if (o == 'h') {
      fputs(usage, stdout);
      exit(EXIT_DONE);
    }
    if (o == 'j')
      c->is_json = true;
    else if (o == 'F')
      st = terminal_read_int(&c->t, "--from", optarg, 0, JOB_STEPS_FROM_MAX, &c->t.job.steps_from);
    else
      st = terminal_option(&c->t, o, optarg);
  }
  return !st && argc - optind < 2 ? fail(&c->t.err, ST_INPUT, "expected KERNEL STAGE; see nkx steps --help") : st;
}

/* KERNEL is followed by STAGE; files that it imports come after. */
static enum status read_kernel(void *command, char **paths, int n) {
  struct command *c = command;
  c->t.job.steps = c->t.job.stop_after = paths[1];
  if (!pipeline_has_stage(paths[1])) {
    c->t.job.stop_after = NULL;
    if (paths[1][strspn(paths[1], "0123456789")])
      return fail(&c->t.err, ST_INPUT, "there is no stage %.60s", paths[1]);
  }
  paths[1] = paths[0];
  return terminal_read_sources(&c->t, paths + 1, n - 1);
}

/* ---- showing ----------------------------------------------------------------------------------------------------- */

/* The line's first byte; NULL if the text has fewer. */
static const char *line_at(const char *text, long long line) {
  while (text && --line > 0) {
    text = strchr(text, '\n');
    text = text ? text + 1 : NULL;
  }
  return text;
}

static void show_lines(const struct command *c, const char *sign, const char *color, const char *text,
                       const json_t *run) {
  const char *p = line_at(text, json_integer_value(json_object_get(run, "line")));
  for (long long n = json_integer_value(json_object_get(run, "count")); p && *p && n > 0; n--) {
    const size_t len = strcspn(p, "\n");
    printf("%s%s ", terminal_color(&c->t, color), sign);
    terminal_put_text(p, len);
    printf("%s\n", terminal_color(&c->t, "\033[0m"));
    p += len + (p[len] == '\n');
  }
}

/* Puts the text after an edit in *out. */
static void edited(const char *text, const json_t *edit, struct buf *out) {
  const char *from = line_at(text, json_integer_value(json_object_get(edit, "line")));
  const char *to = from ? from : text + strlen(text);
  const json_t *by = json_object_get(edit, "text");
  buf_append(out, text, (size_t)(to - text));
  for (long long n = json_integer_value(json_object_get(edit, "removed")); n > 0 && *to; n--)
    to += strcspn(to, "\n") + (to[strcspn(to, "\n")] == '\n');
  buf_append(out, json_string_value(by), json_string_length(by));
  buf_puts(out, to);
}

static void show_step(const struct command *c, long long number, const json_t *step, const char *before,
                      const char *after) {
  const json_t *op = json_object_get(step, "op"), *hunk;
  const json_t *first = json_array_get(source_table_list(&c->sources, json_object_get(op, "src")), 0);
  struct source_place place;
  size_t i;
  printf("%s%lld %s%s", terminal_color(&c->t, "\033[1m"), number, json_string_value(json_object_get(step, "rule")),
         terminal_color(&c->t, "\033[0m"));
  if (op)
    printf(": %s", json_string_value(json_object_get(op, "name")));
  if (json_object_get(op, "line"))
    printf(", line %lld of the stage before", (long long)json_integer_value(json_object_get(op, "line")));
  if (first && source_table_place(&c->sources, json_integer_value(first), &place))
    printf(", %s:%d:%d", place.file, (int)place.line, (int)place.col);
  putchar('\n');
  json_array_foreach(json_object_get(json_object_get(step, "diff"), "hunks"), i, hunk) {
    printf("@@ line %lld @@\n", (long long)json_integer_value(json_object_get(json_object_get(hunk, "from"), "line")));
    show_lines(c, "-", "\033[31m", before, json_object_get(hunk, "from"));
    show_lines(c, "+", "\033[32m", after, json_object_get(hunk, "to"));
  }
}

static void show(struct command *c, const json_t *steps) {
  const char *reason = json_string_value(json_object_get(steps, "reason")), *begin;
  const json_t *step;
  long long number = json_integer_value(json_object_get(steps, "from"));
  size_t i;
  if (reason) {
    printf("no steps: %s\n", reason);
    return;
  }
  begin = json_string_value(json_object_get(steps, "begin"));
  if (!begin) {
    puts("no steps: the pass changed nothing");
    return;
  }
  struct buf text[2];
  buf_init(&text[0], FRAME_MAX);
  buf_init(&text[1], FRAME_MAX);
  buf_puts(&text[0], begin);
  json_array_foreach(json_object_get(steps, "steps"), i, step) {
    struct buf *before = &text[i % 2], *after = &text[1 - i % 2];
    buf_clear(after);
    edited(buf_text(before), json_object_get(step, "edit"), after);
    show_step(c, number++, step, buf_text(before), buf_text(after));
  }
  buf_clear(&text[0]);
  buf_clear(&text[1]);
  if (json_object_get(steps, "next"))
    printf("… --from %lld shows more\n", (long long)json_integer_value(json_object_get(steps, "next")));
}

static enum status sink(void *user, const char *json, size_t len) {
  struct command *c = user;
  struct frame f;
  if (frame_scan(json, len, &f, NULL) ||
      (f.kind != FRAME_SOURCES && f.kind != FRAME_STEPS && f.kind != FRAME_DIAGNOSTIC))
    return ST_OK;
  json_t *v = json_loadb(json, len, 0, NULL);
  if (!v)
    return ST_NOMEM;
  if (f.kind == FRAME_SOURCES) {
    source_table_add(&c->sources, v);
  } else if (f.kind == FRAME_DIAGNOSTIC) {
    terminal_show_diag(&c->t, json_object_get(v, "diagnostic"));
  } else {
    c->has_any = true;
    if (c->is_json)
      json_dumpf(json_object_get(v, "steps"), stdout, JSON_INDENT(1));
    else
      show(c, json_object_get(v, "steps"));
  }
  json_decref(v);
  return ST_OK;
}

static enum status run(void *command) {
  struct command *c = command;
  struct ir ir;
  enum status st = terminal_start(&c->t, &ir);
  if (!st)
    st = compile_run(&ir, &c->t.job, sink, c);
  return !st && !c->has_any ? fail(&c->t.err, ST_INPUT, "no kernel has the stage %.60s", c->t.job.steps) : st;
}

int steps_main(int argc, char **argv) {
  static const struct terminal_command def = {"steps", parse, read_kernel, run};
  struct arena arena;
  struct command c = {.is_json = false};
  arena_init(&arena);
  terminal_init(&c.t, &arena);
  const int code = terminal_main(&c.t, &def, &c, argc, argv);
  source_table_clear(&c.sources);
  arena_clear(&arena);
  return code;
}
