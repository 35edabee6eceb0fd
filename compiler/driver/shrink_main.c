/* shrink_main: `nkx shrink KERNEL`: makes a kernel that is refused, crashes or fails its check as small as it can be.
 *
 * The candidates that are kept go to standard error as they are found; the small kernel goes to standard output.
 */
#include "driver/main.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "base/array.h"
#include "driver/run_here.h"
#include "driver/shrink.h"
#include "driver/terminal.h"
#include "ir/ir.h"

static const char usage[] =
    "usage: nkx shrink KERNEL [FILE.py…] [options]  (- reads standard input)\n"
    "  Finds a small kernel with the fault of this one: the same code, and the same failing pass. Statements, "
    "expressions,\n"
    "  parameters, files, shapes, types and options go as long as the fault stays.\n" //
    TERMINAL_HELP_FILES TERMINAL_HELP_INPUTS
    "  --check                    the fault may also be that a stage computes something else than NumPy\n"
    "  --simulate                 or that the last stage faults on the simulated machine\n"
    "  --seconds N                the search ends after N seconds (120)\n"
    "  --candidates N             or after N candidates (2000)\n"
    "  --write FILE               write the small kernel there\n"
    "  --quiet                    do not print the candidates that are kept\n"
    "Exit status: 0 done; 1 nothing is wrong with the kernel; 2 wrong usage; 3 a limit was hit.\n";

struct command {
  struct terminal t;
  const char *write_path;
  int seconds, candidates;
  bool is_quiet;
};

static enum status parse_options(void *command, int argc, char **argv) {
  static const struct option options[] = {
      TERMINAL_OPTIONS,
      {"check", no_argument, NULL, 'C'},
      {"simulate", no_argument, NULL, 'S'},
      {"seconds", required_argument, NULL, 's'},
      {"candidates", required_argument, NULL, 'c'},
      {"write", required_argument, NULL, 'w'},
      {"quiet", no_argument, NULL, 'q'},
      {"help", no_argument, NULL, 'h'},
      {NULL, 0, NULL, 0},
  };
  struct command *c = command;
  enum status st = ST_OK;
  int o;

  while (!st && (o = getopt_long(argc, argv, "h", options, NULL)) != -1) {
    switch (o) {
    case 'C':
      c->t.job.check = true;
      break;
    case 'S':
      c->t.job.simulate = true;
      break;
    case 's':
      st = terminal_read_int(&c->t, "--seconds", optarg, 1, SHRINK_SECONDS_MAX, &c->seconds);
      break;
    case 'c':
      st = terminal_read_int(&c->t, "--candidates", optarg, 1, SHRINK_CANDIDATES_MAX, &c->candidates);
      break;
    case 'w':
      c->write_path = optarg;
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
    st = fail(&c->t.err, ST_INPUT, "expected a KERNEL; see nkx shrink --help");
  return st;
}

static enum status read_kernel(void *command, char **paths, int n) {
  struct command *c = command;
  enum status st = terminal_read_sources(&c->t, paths, n);
  if (!st && (c->t.job.is_binary || c->t.job.package))
    st = fail(&c->t.err, ST_INPUT, "only a text can be made smaller");
  if (!st && c->t.job.resume.stage)
    st = fail(&c->t.err, ST_INPUT, "--resume: a kernel is made smaller from its source on");
  return st;
}

/* ---- showing ----------------------------------------------------------------------------------------------------- */

static void show_step(void *command, const struct shrink_step *s) {
  const struct command *c = command;
  if (s->is_kept && !c->is_quiet)
    fprintf(stderr, "%5d %5d lines  %s\n", s->number, s->lines, s->what ? s->what : "as it is");
}

/* A fault that needs more than the source says so: a comment is the only place that the source has for it. */
static void put_settings(struct buf *b, const struct job *j, const struct shrink_fault *f) {
  const char *mark = j->language == LANG_NKIPY ? "#" : "//";
  buf_printf(b, "%s %s", mark, f->code);
  if (f->stage[0])
    buf_printf(b, strcmp(f->code, "worker-died") ? " in %s" : " after %s", f->stage);
  if (j->check)
    buf_puts(b, ", with --check");
  for (int i = 0; i < j->n_by_hand; i++)
    buf_printf(b, ", with --pipeline \"%s\"", j->by_hand[i]);
  if (j->is_reference)
    buf_puts(b, ", with --pipeline reference");
  for (int i = 0; i < j->n_inputs; i++) {
    buf_printf(b, ", with --input %s=", j->inputs[i].name ? j->inputs[i].name : "?");
    for (int d = 0; d < j->inputs[i].rank; d++)
      buf_printf(b, d ? "x%lld" : "%lld", (long long)j->inputs[i].dims[d]);
    buf_printf(b, ":%s", dtype_numpy_name(j->inputs[i].dtype));
  }
  buf_putc(b, '\n');
}

static enum status write_result(struct command *c, const struct shrink_result *r) {
  const struct job *j = &r->job;
  struct buf b;
  buf_init(&b, 4 * JOB_SOURCE_MAX);
  buf_append(&b, j->source, j->source_len);
  for (int i = 0; i < j->n_files; i++)
    buf_printf(&b, "\n# ---- %s\n%.*s", j->files[i].name, (int)j->files[i].source_len, j->files[i].source);
  put_settings(&b, j, &r->fault);
  enum status st = buf_status(&b);
  if (!st)
    st = terminal_write(&c->t, c->write_path ? c->write_path : "-", buf_text(&b), b.len);
  buf_clear(&b);
  return st;
}

/* Names the kernel and its files as a request does: from the kernel's folder on. */
static void name_from_folder(struct terminal *t) {
  const char *slash = strrchr(t->job.filename, '/');
  const size_t n = slash ? (size_t)(slash + 1 - t->job.filename) : 0;
  for (int i = 0; i < t->files.n; i++)
    if (!strncmp(t->files.v[i].name, t->job.filename, n))
      t->files.v[i].name += n;
  t->job.filename += n;
}

static enum status run(void *command) {
  struct command *c = command;
  struct ir ir;
  struct shrink_result r;
  enum status st = terminal_start(&c->t, &ir);
  if (!st)
    name_from_folder(&c->t);
  const struct job_runner runner = run_alone(&ir);
  if (!st)
    st = shrink_search(&runner, c->t.arena, &c->t.job, c->seconds, c->candidates, show_step, c, &r, &c->t.err);
  if (st)
    return st;
  json_decref(r.changes);
  fprintf(stderr, "%s%s%s: %d candidates, %d of them kept; stopped: %s\n", r.fault.code, r.fault.stage[0] ? " in " : "",
          r.fault.stage, r.n_tried, r.n_kept, r.stopped);
  return write_result(c, &r);
}

int shrink_main(int argc, char **argv) {
  static const struct terminal_command def = {"shrink", parse_options, read_kernel, run};
  struct arena arena;
  struct command c = {.seconds = SHRINK_SECONDS, .candidates = SHRINK_CANDIDATES};

  arena_init(&arena);
  terminal_init(&c.t, &arena);
  const int code = terminal_main(&c.t, &def, &c, argc, argv);
  arena_clear(&arena);
  return code;
}
