/* diff_main: `nkx diff A B`: the first stage and operation where two results part. */
#include "driver/main.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/utf8.h"
#include "driver/parting.h"
#include "driver/run_here.h"
#include "driver/terminal.h"
#include "ir/ir.h"

static const char usage[] =
    "usage: nkx diff A [B] [options]\n"
    "  Compiles two kernels, or one in two ways, and prints the first stage and operation where they part: in text, "
    "and in\n"
    "  values, which are compared element by element on the inputs of a check.\n"
    "  --b-target TARGET          the machine of B\n"
    "  --b-pipeline CHANGES       the pipeline of B; --pipeline is that of both\n"
    "  --no-values                compare the texts alone\n" //
    TERMINAL_HELP_FILES TERMINAL_HELP_INPUTS
    "Exit status: 0 they are the same; 1 they part, or one has no stages; 2 wrong usage; 3 a limit was hit.\n";

struct command {
  struct terminal t;
  const char *other, *target;
  struct {
    const char **v;
    int n, cap;
  } changes;
  bool is_text_alone;
};

static enum status parse_options(void *command, int argc, char **argv) {
  static const struct option options[] = {
      TERMINAL_OPTIONS,
      {"b-target", required_argument, NULL, 'T'},
      {"b-pipeline", required_argument, NULL, 'B'},
      {"no-values", no_argument, NULL, 'V'},
      {"help", no_argument, NULL, 'h'},
      {NULL, 0, NULL, 0},
  };
  struct command *c = command;
  enum status st = ST_OK;
  int o;

  while (!st && (o = getopt_long(argc, argv, "h", options, NULL)) != -1) {
    switch (o) {
    case 'T':
      c->target = optarg;
      break;
    case 'B':
      array_push(c->t.arena, &c->changes, optarg);
      break;
    case 'V':
      c->is_text_alone = true;
      break;
    case 'h':
      fputs(usage, stdout);
      exit(EXIT_DONE);
    default:
      st = terminal_option(&c->t, o, optarg);
    }
  }
  const int n = argc - optind;
  if (!st && (n < 1 || n > 2))
    st = fail(&c->t.err, ST_INPUT, "expected A, or A and B; see nkx diff --help");
  if (!st && n == 1 && !c->target && !c->changes.n)
    st = fail(&c->t.err, ST_INPUT, "expected B, or what is different about it: --b-target, --b-pipeline");
  return st;
}

static enum status read_kernel(void *command, char **paths, int n) {
  struct command *c = command;
  c->other = n > 1 ? paths[1] : NULL;
  return terminal_read_sources(&c->t, paths, 1);
}

/* Makes the second job from the first, whose files stay. */
static enum status set_other(struct command *c) {
  enum status st = c->target ? terminal_option(&c->t, 't', c->target) : ST_OK;
  for (int i = 0; !st && i < c->changes.n; i++)
    st = terminal_option(&c->t, 'P', c->changes.v[i]);
  return st;
}

static void show_place(const struct parting_place *p, const char *what) {
  printf("%s: %s\n", what, p->stage);
  for (int s = 0; s < 2; s++)
    if (p->line[s]) {
      printf("  %c line %d: ", "AB"[s], p->line[s]);
      utf8_print(stdout, p->text[s], strlen(p->text[s]));
      putchar('\n');
    } else
      printf("  %c has no such line\n", "AB"[s]);
}

static void show_results(const struct parting_results *r) {
  if (!r->is_known)
    printf("results: not compared: %s\n", r->reason ? r->reason : "the time was up");
  else if (r->is_same && r->max_abs_err > 0)
    printf("results: the same within the check's tolerances: they differ by up to %g\n", r->max_abs_err);
  else if (r->is_same)
    printf("results: the same\n");
  else if (!r->index)
    printf("results: the shapes of %s differ\n", r->name ? r->name : "a result");
  else
    printf("results: %s differs\n  first at %s: A has %g, B has %g; they differ by up to %g\n",
           r->name ? r->name : "a result", r->index, r->got[0], r->got[1], r->max_abs_err);
}

static void show(const struct parting *r, bool with_values) {
  if (!r->text.stage)
    printf("the texts of the %d stages that both have are the same\n", r->n_stages);
  else
    show_place(&r->text, "text");
  if (r->n_alone)
    printf("%d stages are of one side only\n", r->n_alone);
  if (!r->text.stage || !with_values)
    return;
  show_results(&r->results);
  if (r->value.stage)
    show_place(&r->value, "values");
  else
    printf("values: none of the %d that were compared differ\n", r->n_values);
  if (r->value.stage && r->index)
    printf("  first at %s: A has %g, B has %g; they differ by up to %g\n", r->index, r->got[0], r->got[1],
           r->max_abs_err);
  else if (r->value.stage)
    printf("  their shapes differ\n");
  if (r->alone_stage && (r->n_lines_alone[0] || r->n_lines_alone[1]))
    printf("  of %s, %d lines of A and %d of B have no counterpart\n", r->alone_stage, r->n_lines_alone[0],
           r->n_lines_alone[1]);
  if (r->note)
    printf("  %s\n", r->note);
}

static enum status run(void *command) {
  struct command *c = command;
  struct ir ir;
  struct job jobs[2];
  struct parting r;
  enum status st = terminal_start(&c->t, &ir);
  if (st)
    return st;
  const struct job_runner runner = run_here(&ir);
  jobs[0] = c->t.job;
  jobs[0].files = arena_dup(c->t.arena, jobs[0].files, (size_t)jobs[0].n_files * sizeof *jobs[0].files);
  st = c->other ? terminal_read_other(&c->t, c->other) : ST_OK;
  if (!st)
    st = set_other(c);
  jobs[1] = c->t.job;
  if (!st)
    st = parting_find(&runner, c->t.arena, jobs, !c->is_text_alone, NULL, NULL, &r, &c->t.err);
  if (st)
    return st;
  show(&r, !c->is_text_alone);
  return r.text.stage || r.n_alone ? ST_INPUT : ST_OK;
}

int diff_main(int argc, char **argv) {
  static const struct terminal_command def = {"diff", parse_options, read_kernel, run};
  struct arena arena;
  struct command c = {.other = NULL};

  arena_init(&arena);
  terminal_init(&c.t, &arena);
  const int code = terminal_main(&c.t, &def, &c, argc, argv);
  arena_clear(&arena);
  return code;
}
