/* run_main: `nkx run KERNEL`: runs a kernel on the simulated machine.
 *
 * The kernel is compiled to its last stage, like `nkx compile` does, and the simulator executes that.  A summary of the
 * outputs and of the watched values goes to standard output, diagnostics to standard error.  The program may be NISA
 * text, ours or of another compiler (nisa/other.h); it has no reference, so that only values and faults are reported.
 */
#include "driver/main.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "base/array.h"
#include "driver/compile.h"
#include "driver/result_file.h"
#include "driver/terminal.h"
#include "ir/ir.h"

static const char usage[] =
    "usage: nkx run KERNEL [FILE.py…] [options]  (- reads standard input)\n"
    "  Compiles the kernel, runs its last stage on the simulated machine, compares the outputs with NumPy,\n"
    "  and shows where the time would go.\n"                                                           //
    TERMINAL_HELP_FILES                                                                                //
    "  --language nkipy|hlo|mlir  the language of KERNEL, as for nkx compile; MLIR may be NISA text\n" //
    TERMINAL_HELP_INPUTS "                             other inputs are drawn with a seed\n"
    "  --seed N                   the seed (42)\n"
    "  --save-outputs FILE.npz    write the outputs there\n"
    "  --watch LINE[:OPERAND][@N] show the values of an operand of the instruction on a line of the last stage, or of\n"
    "                             KERNEL if that is NISA, after its Nth execution or the last; by default of what it\n"
    "                             writes; repeatable\n"
    "  --profile FILE.json        write the timeline there: open it in ui.perfetto.dev\n"
    "  --json FILE|-              write the result as JSON, in the form of the API\n"
    "Exit status: 0 done; 1 the kernel was refused, has a fault or wrong outputs; 2 wrong usage; 3 a limit was hit.\n";

struct command {
  struct terminal t;
  struct result_file result;
  const char *json_path;
  struct {
    struct job_watch *v;
    int n, cap;
  } watches;
  bool has_reached_limit;
};

/* ---- options ----------------------------------------------------------------------------------------------------- */

static enum status add_watch(struct command *c, const char *text) {
  struct job_watch w;
  enum status st = job_parse_watch(c->t.arena, text, &w, &c->t.err);
  if (st)
    return st;
  if (c->watches.n == JOB_WATCHES_MAX)
    return fail(&c->t.err, ST_INPUT, "--watch: at most %d times", JOB_WATCHES_MAX);
  array_push(c->t.arena, &c->watches, w);
  c->t.job.watches = c->watches.v;
  c->t.job.n_watches = c->watches.n;
  return ST_OK;
}

static enum status read_seed(struct command *c, const char *text) {
  char *end;
  c->t.job.seed = strtoull(text, &end, 10);
  return *text >= '0' && *text <= '9' && !*end ? ST_OK
                                               : fail(&c->t.err, ST_INPUT, "--seed %.60s: expected a number", text);
}

static enum status parse_options(struct command *c, int argc, char **argv) {
  static const struct option options[] = {
      TERMINAL_OPTIONS,
      {"seed", required_argument, NULL, 's'},
      {"save-outputs", required_argument, NULL, 'o'},
      {"watch", required_argument, NULL, 'w'},
      {"profile", required_argument, NULL, 'p'},
      {"json", required_argument, NULL, 'j'},
      {"help", no_argument, NULL, 'h'},
      {NULL, 0, NULL, 0},
  };
  enum status st = ST_OK;
  int o;

  while (!st && (o = getopt_long(argc, argv, "h", options, NULL)) != -1) {
    switch (o) {
    case 's':
      st = read_seed(c, optarg);
      break;
    case 'o':
      c->t.job.outputs_npz = optarg;
      break;
    case 'w':
      st = add_watch(c, optarg);
      break;
    case 'p':
      c->t.job.trace_path = optarg;
      break;
    case 'j':
      c->json_path = optarg;
      break;
    case 'h':
      fputs(usage, stdout);
      exit(EXIT_DONE);
    default:
      st = terminal_option(&c->t, o, optarg);
    }
  }
  if (!st && optind >= argc)
    st = fail(&c->t.err, ST_INPUT, "expected a KERNEL; see nkx run --help");
  return st;
}

/* ---- showing ----------------------------------------------------------------------------------------------------- */

static const char *text_of(const json_t *o, const char *key) {
  const char *s = json_string_value(json_object_get(o, key));
  return s ? s : "";
}

static long long int_of(const json_t *o, const char *key) {
  return (long long)json_integer_value(json_object_get(o, key));
}

static void show_number(const char *label, const json_t *v) {
  if (json_is_number(v))
    printf("  %s %.6g", label, json_number_value(v));
}

/* "float32[128, 512]  min … max … mean …", and how many elements are not finite. */
static void show_summary(const json_t *o) {
  const json_t *d;
  size_t i;
  printf("%s[", text_of(o, "dtype"));
  json_array_foreach(json_object_get(o, "shape"), i, d)
      printf("%s%lld", i ? ", " : "", (long long)json_integer_value(d));
  printf("]");
  show_number("min", json_object_get(o, "min"));
  show_number("max", json_object_get(o, "max"));
  show_number("mean", json_object_get(o, "mean"));
  printf("  NaN %lld", int_of(o, "nan"));
  if (int_of(o, "inf"))
    printf("  infinite %lld", int_of(o, "inf"));
}

static void show_output(const json_t *o) {
  const json_t *pass = json_object_get(o, "pass"), *abs_err = json_object_get(o, "max_abs_err");
  printf("  %-10s ", text_of(o, "name"));
  show_summary(o);
  if (pass) {
    printf("\n             ");
    show_number(json_is_number(abs_err) ? "largest error" : "", abs_err);
    show_number("relative", json_object_get(o, "max_rel_err"));
    printf("  %s", json_is_true(pass) ? "pass" : "FAIL");
  }
  putchar('\n');
}

static void show_rows(const json_t *rows) {
  const json_t *row, *v;
  size_t i, k;
  json_array_foreach(rows, i, row) {
    printf("   ");
    json_array_foreach(row, k, v) {
      if (json_is_string(v))
        printf(" %12s", json_string_value(v));
      else
        printf(" %12.6g", json_number_value(v));
    }
    putchar('\n');
  }
}

/* One digit for each bin, 9 for the fullest, and '.' for an empty one. */
static void show_histogram(const json_t *h) {
  const json_t *counts = json_object_get(h, "counts"), *n;
  json_int_t most = 1;
  size_t i;
  if (!h)
    return;
  json_array_foreach(counts, i, n) most = json_integer_value(n) > most ? json_integer_value(n) : most;
  printf("    histogram %.6g [", json_number_value(json_object_get(h, "from")));
  json_array_foreach(counts, i, n) {
    const json_int_t v = json_integer_value(n);
    putchar(v ? '0' + (int)((double)v / (double)most * 9) : '.');
  }
  printf("] %.6g\n", json_number_value(json_object_get(h, "to")));
}

static void show_watched(const json_t *v) {
  printf("  line %lld", int_of(v, "line"));
  if (json_object_get(v, "instruction"))
    printf(": %s of %s", text_of(v, "operand"), text_of(v, "instruction"));
  if (json_object_get(v, "reason")) {
    printf(": %s (%lld executions)\n", text_of(v, "reason"), int_of(v, "executions"));
    return;
  }
  printf(" after execution %lld of %lld\n    ", int_of(v, "nth"), int_of(v, "executions"));
  show_summary(v);
  putchar('\n');
  show_histogram(json_object_get(v, "histogram"));
  show_rows(json_object_get(v, "slice"));
}

static void show_fault(const json_t *f) {
  printf("  %s", text_of(f, "kind"));
  if (json_object_get(f, "instruction"))
    printf(": %s on %s", text_of(f, "instruction"), text_of(f, "engine"));
  if (json_object_get(f, "line"))
    printf(", line %lld", int_of(f, "line"));
  printf(": %s\n", text_of(f, "message"));
}

static void show_simulation(struct command *c, const json_t *s) {
  const char *status = text_of(s, "status");
  const json_t *o;
  size_t i;

  c->has_reached_limit |= !strcmp(status, "limit");
  if (json_object_get(s, "reason")) {
    printf("  not run: %s\n", text_of(s, "reason"));
    return;
  }
  printf("  %lld instructions (%lld matmuls) of %s in %.2f ms of this processor\n", int_of(s, "instructions"),
         int_of(s, "matmuls"), text_of(s, "stage"), (double)int_of(s, "time_us") / 1000);
  if (json_object_get(s, "fault"))
    show_fault(json_object_get(s, "fault"));
  json_array_foreach(json_object_get(s, "outputs"), i, o) show_output(o);
  json_array_foreach(json_object_get(s, "values"), i, o) show_watched(o);
}

/* ---- running ----------------------------------------------------------------------------------------------------- */

static void show_frame(struct command *c, const json_t *f) {
  const char *kind = text_of(f, "frame");
  /* standard output may be the JSON */
  const bool is_shown = !c->json_path || strcmp(c->json_path, "-");
  if (!strcmp(kind, "kernel") && is_shown)
    printf("%s on %s\n", text_of(f, "name"), target_name(c->t.job.target));
  else if (!strcmp(kind, "simulation") && is_shown)
    show_simulation(c, json_object_get(f, "simulation"));
  else if (!strcmp(kind, "profile") && is_shown)
    fputs(text_of(f, "text"), stdout);
  else if (!strcmp(kind, "simulation"))
    c->has_reached_limit |= !strcmp(text_of(json_object_get(f, "simulation"), "status"), "limit");
  else if (!strcmp(kind, "diagnostic"))
    terminal_show_diag(&c->t, json_object_get(f, "diagnostic"));
  fflush(stdout);
}

/* Stages and their sources are large, and are not shown. */
static bool is_shown(const char *json, size_t len) {
  struct frame f;
  return frame_scan(json, len, &f, NULL) || (f.kind != FRAME_STAGE && f.kind != FRAME_SOURCES);
}

static enum status sink(void *user, const char *json, size_t len) {
  struct command *c = user;
  enum status st = c->json_path ? result_file_add(&c->result, json, len, &c->t.err) : ST_OK;
  if (st || !is_shown(json, len))
    return st;
  json_t *f = json_loadb(json, len, 0, NULL);
  if (f)
    show_frame(c, f);
  json_decref(f);
  return f ? ST_OK : ST_NOMEM;
}

static enum status run(struct command *c) {
  struct ir ir;
  enum status st = terminal_start(&c->t, &ir);
  if (st)
    return st;
  c->t.job.simulate = true;
  st = compile_run(&ir, &c->t.job, sink, c);
  enum status written = c->json_path ? result_file_write(&c->result, c->json_path, &c->t) : ST_OK;
  return st ? st : written ? written : c->has_reached_limit ? ST_LIMIT : ST_OK;
}

int run_main(int argc, char **argv) {
  struct arena arena;
  struct command c = {.json_path = NULL};
  int code;

  arena_init(&arena);
  terminal_init(&c.t, &arena);
  c.t.command = "run";
  result_file_init(&c.result);
  enum status st = parse_options(&c, argc, argv);
  if (!st)
    st = terminal_read_sources(&c.t, argv + optind, argc - optind);
  if (st) {
    code = st == ST_LIMIT ? EXIT_LIMIT : EXIT_USAGE;
  } else {
    st = run(&c);
    code = terminal_exit_status(st);
  }
  if (c.t.err.text[0])
    fprintf(stderr, "nkx run: %s\n", c.t.err.text);
  result_file_clear(&c.result);
  arena_clear(&arena);
  return code;
}
