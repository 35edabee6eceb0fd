/* tune_main: `nkx tune KERNEL`: searches for knobs that make a kernel faster on the simulated machine.
 *
 * Each candidate goes to standard error as it is tried; the knobs of the best one, and the other points of time and SBUF that
 * none beats, go to standard output.
 */
#include "driver/main.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "driver/compile.h"
#include "driver/result_file.h"
#include "driver/terminal.h"
#include "ir/ir.h"

static const char usage[] =
    "usage: nkx tune KERNEL [FILE.py…] [options]  (- reads standard input)\n"
    "  Compiles the kernel with knobs around the expressions that take the simulated time, or without the knobs that "
    "it\n"
    "  has, and keeps what is faster: tile sizes, memories, partition dimensions. Values are not computed.\n" //
    TERMINAL_HELP_FILES TERMINAL_HELP_INPUTS "  --seconds N                the search ends after N seconds (5)\n"
    "  --candidates N             or after N candidates (100)\n"
    "  --write FILE.py            write the kernel with the best knobs there\n"
    "  --json FILE|-              write the result as JSON, in the form of the API\n"
    "  --quiet                    do not print the candidates\n"
    "Exit status: 0 done; 1 the kernel was refused; 2 wrong usage; 3 a limit was hit.\n";

struct command {
  struct terminal t;
  struct result_file result;
  const char *json_path, *write_path;
  bool is_quiet;
};

/* ---- options ----------------------------------------------------------------------------------------------------- */

static enum status parse_options(void *command, int argc, char **argv) {
  static const struct option options[] = {
      TERMINAL_OPTIONS,
      {"seconds", required_argument, NULL, 's'},
      {"candidates", required_argument, NULL, 'c'},
      {"write", required_argument, NULL, 'w'},
      {"json", required_argument, NULL, 'j'},
      {"quiet", no_argument, NULL, 'q'},
      {"help", no_argument, NULL, 'h'},
      {NULL, 0, NULL, 0},
  };
  struct command *c = command;
  struct job_tune *tune = &c->t.job.tune;
  enum status st = ST_OK;
  int o;

  *tune = (struct job_tune){JOB_TUNE_SECONDS, JOB_TUNE_CANDIDATES};
  while (!st && (o = getopt_long(argc, argv, "h", options, NULL)) != -1) {
    switch (o) {
    case 's':
      st = terminal_read_int(&c->t, "--seconds", optarg, 1, JOB_TUNE_SECONDS_MAX, &tune->seconds);
      break;
    case 'c':
      st = terminal_read_int(&c->t, "--candidates", optarg, 1, JOB_TUNE_CANDIDATES_MAX, &tune->candidates);
      break;
    case 'w':
      c->write_path = optarg;
      break;
    case 'j':
      c->json_path = optarg;
      break;
    case 'q':
      c->is_quiet = true;
      break;
    case 'h':
      fputs(usage, stdout);
      exit(EXIT_DONE);
    default:
      st = terminal_option(&c->t, o, optarg);
    }
  }
  if (!st && optind >= argc)
    st = fail(&c->t.err, ST_INPUT, "expected a KERNEL; see nkx tune --help");
  return st;
}

/* ---- showing ----------------------------------------------------------------------------------------------------- */

static long long int_of(const json_t *o, const char *key) {
  return (long long)json_integer_value(json_object_get(o, key));
}

static double number_of(const json_t *o, const char *key) {
  return json_number_value(json_object_get(o, key));
}

static void show_knobs(FILE *f, const json_t *point, const char *before) {
  const json_t *knob;
  size_t i;
  json_array_foreach(json_object_get(point, "knobs"), i, knob)
      fprintf(f, "%s%lld:%lld %s", i ? ", " : before, int_of(knob, "line"), int_of(knob, "col"),
              json_string_value(json_object_get(knob, "writes")));
}

static void show_candidate(const struct command *c, const json_t *t) {
  fprintf(stderr, "%4lld ", int_of(t, "number"));
  if (json_is_true(json_object_get(t, "refused")))
    fputs("      refused", stderr);
  else
    fprintf(stderr, "%10.2f us %7lld bytes%s", number_of(t, "us"), int_of(t, "sbuf"),
            json_is_true(json_object_get(t, "best")) ? terminal_color(&c->t, "\033[1m") : "");
  show_knobs(stderr, t, "  ");
  fprintf(stderr, "%s\n", terminal_color(&c->t, "\033[0m"));
}

static enum status write_source(struct command *c, const json_t *best) {
  const json_t *source = json_object_get(best, "source");
  return terminal_write(&c->t, c->write_path, json_string_value(source), json_string_length(source));
}

static void show_result(const json_t *t) {
  const json_t *points = json_object_get(t, "points"), *point, *best = json_array_get(points, 0);
  const double start = number_of(t, "start_us");
  size_t i;
  printf("%s: %.2f us, as it is %.2f us (%.2f times faster); %lld candidates in %.1f s, %lld of them refused; stopped: "
         "%s\n",
         json_string_value(json_object_get(t, "kernel")), number_of(best, "us"), start, start / number_of(best, "us"),
         int_of(t, "tried"), number_of(t, "seconds"), int_of(t, "refusals"),
         json_string_value(json_object_get(t, "stopped")));
  json_array_foreach(points, i, point) {
    printf("%s %10.2f us %8lld bytes of SBUF per partition", i ? "or  " : "best", number_of(point, "us"),
           int_of(point, "sbuf"));
    show_knobs(stdout, point, "\n       ");
    printf("%s\n", json_array_size(json_object_get(point, "knobs")) ? "" : "\n       as it is");
  }
}

static enum status show_frame(struct command *c, const json_t *f) {
  const char *kind = json_string_value(json_object_get(f, "frame"));
  const json_t *t = json_object_get(f, "tune");
  if (!strcmp(kind, "diagnostic"))
    terminal_show_diag(&c->t, json_object_get(f, "diagnostic"));
  if (strcmp(kind, "tune") != 0)
    return ST_OK;
  const bool is_done = json_is_true(json_object_get(t, "done"));
  if (!is_done && !c->is_quiet)
    show_candidate(c, t);
  if (is_done && (!c->json_path || strcmp(c->json_path, "-") != 0))
    show_result(t);
  return is_done && c->write_path ? write_source(c, json_array_get(json_object_get(t, "points"), 0)) : ST_OK;
}

static enum status sink(void *user, const char *json, size_t len) {
  struct command *c = user;
  enum status st = c->json_path ? result_file_add(&c->result, json, len, &c->t.err) : ST_OK;
  json_t *f = st ? NULL : json_loadb(json, len, 0, NULL);
  if (!st)
    st = f ? show_frame(c, f) : ST_NOMEM;
  json_decref(f);
  return st;
}

static enum status run(void *command) {
  struct command *c = command;
  struct ir ir;
  enum status st = terminal_start(&c->t, &ir);
  if (st)
    return st;
  st = compile_run(&ir, &c->t.job, sink, c);
  const enum status written = c->json_path ? result_file_write(&c->result, c->json_path, &c->t.err) : ST_OK;
  return st ? st : written;
}

static enum status read_kernel(void *command, char **paths, int n) {
  struct command *c = command;
  enum status st = terminal_read_sources(&c->t, paths, n);
  if (!st && c->t.job.language != LANG_NKIPY)
    st = fail(&c->t.err, ST_INPUT, "only a kernel in Python has knobs");
  if (!st && c->t.job.resume.stage)
    st = fail(&c->t.err, ST_INPUT, "--resume: a kernel's knobs are searched for from its source on");
  return st;
}

int tune_main(int argc, char **argv) {
  static const struct terminal_command def = {"tune", parse_options, read_kernel, run};
  struct arena arena;
  struct command c = {.is_quiet = false};

  arena_init(&arena);
  terminal_init(&c.t, &arena);
  result_file_init(&c.result);
  const int code = terminal_main(&c.t, &def, &c, argc, argv);
  result_file_clear(&c.result);
  arena_clear(&arena);
  return code;
}
