/* why_main: `nkx why KERNEL STAGE:LINE`: why an operation of a stage is as it is (why.h). */
#include "driver/main.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "driver/compile.h"
#include "driver/result_file.h"
#include "driver/result_stage.h"
#include "driver/terminal.h"
#include "driver/why.h"
#include "ir/ir.h"

static const char usage[] =
    "usage: nkx why KERNEL STAGE LINE [options]\n"
    "  Compiles KERNEL and tells what led to the operation on a line of a stage: what it was in the stages before, and "
    "what\n"
    "  each pass decided about it, with rule, reason and knob. LINE is a number, from 1, or a text that the line has: "
    "the "
    "first\n"
    "  such line is meant. STAGE counts stages of the same name from 1: canonicalize:2.\n" TERMINAL_HELP_FILES
    "  --language nkipy|hlo|mlir  the language of KERNEL, as for nkx compile\n" TERMINAL_HELP_INPUTS;

struct command {
  struct terminal t;
  const char *stage, *line;
  struct result_file file;
};

static enum status collect(void *user, const char *json, size_t len) {
  struct command *c = user;
  return result_file_add(&c->file, json, len, &c->t.err);
}

static enum status parse(void *command, int argc, char **argv) {
  static const struct option options[] = {TERMINAL_OPTIONS, {"help", no_argument, NULL, 'h'}, {NULL, 0, NULL, 0}};
  struct command *c = command;
  enum status st = ST_OK;
  int o;
  while (!st && (o = getopt_long(argc, argv, "h", options, NULL)) != -1) {
    if (o == 'h') {
      fputs(usage, stdout);
      exit(EXIT_DONE);
    }
    st = terminal_option(&c->t, o, optarg);
  }
  return !st && argc - optind < 3 ? fail(&c->t.err, ST_INPUT, "expected KERNEL STAGE LINE; see nkx why --help") : st;
}

/* KERNEL is followed by STAGE and LINE; files that it imports come after them. */
static enum status read_kernel(void *command, char **paths, int n) {
  struct command *c = command;
  c->stage = paths[1];
  c->line = paths[2];
  paths[2] = paths[0];
  return terminal_read_sources(&c->t, paths + 2, n - 2);
}

/* The number of the line: as it is given, or of the first line with that text; 0 if there is none. */
static int find_line(const struct command *c, const json_t *result) {
  char *end;
  const long n = strtol(c->line, &end, 10);
  if (end != c->line && !*end)
    return n > 0 && n < 1 << 30 ? (int)n : 0;
  const json_t *stage = result_stage(result, 0, c->stage);
  const char *text = json_string_value(json_object_get(stage, "text"));
  const char *at = text ? strstr(text, c->line) : NULL;
  int line = 1;
  for (const char *p = text; at && p < at; p++)
    line += *p == '\n';
  return at ? line : 0;
}

static void show_diags(const struct command *c, const json_t *result) {
  const json_t *d;
  size_t i;
  json_array_foreach(json_object_get(result, "diagnostics"), i, d) terminal_show_diag(&c->t, d);
}

static enum status run(void *command) {
  enum { TEXT_MAX = 16 << 20 };
  struct command *c = command;
  struct ir ir;
  struct buf b;
  json_t *result = NULL;
  enum status st = terminal_start(&c->t, &ir);
  if (st)
    return st;
  st = compile_run(&ir, &c->t.job, collect, c);
  if (st != ST_OK && st != ST_INPUT)
    return st;
  st = result_file_parse(&c->file, &result, &c->t.err);
  if (st)
    return st;
  buf_init(&b, TEXT_MAX);
  show_diags(c, result);
  const int line = find_line(c, result);
  st = !line && strcmp(c->line, "0") != 0 && result_stage(result, 0, c->stage)
           ? fail(&c->t.err, ST_INPUT, "no line of %.60s has \"%.80s\"", c->stage, c->line)
           : why_put(c->t.arena, &b, result, 0, c->stage, line, &c->t.err);
  if (!st)
    st = terminal_write(&c->t, "-", buf_text(&b), b.len);
  buf_clear(&b);
  json_decref(result);
  return st;
}

int why_main(int argc, char **argv) {
  static const struct terminal_command def = {"why", parse, read_kernel, run};
  struct arena arena;
  struct command c = {.stage = NULL};

  arena_init(&arena);
  terminal_init(&c.t, &arena);
  result_file_init(&c.file);
  const int code = terminal_main(&c.t, &def, &c, argc, argv);
  result_file_clear(&c.file);
  arena_clear(&arena);
  return code;
}
