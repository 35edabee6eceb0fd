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
#include "driver/comparison.h"
#include "driver/compile.h"
#include "driver/pipeline.h"
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
    "  --stage NAME --value WHAT  do not run the last stage, but show a value of this one (as for --stop-after): the\n"
    "                             value called %NAME, or what the operation on a line computes: line:N, or an operand\n"
    "                             there: line:N:src, line:N:%NAME; after its Kth execution: %NAME@K\n"
    "  --profile FILE.json        write the timeline there: open it in ui.perfetto.dev\n"
    "  --compare KERNEL2          run this one, too, and show both side by side\n"
    "  --compare-target TARGET    run KERNEL2, or the same kernel, on this machine\n"
    "  --json FILE|-              write the result as JSON, in the form of the API; with --compare the comparison\n"
    "Exit status: 0 done; 1 the kernel was refused, has a fault or wrong outputs; 2 wrong usage; 3 a limit was hit.\n";

struct command {
  struct terminal t;
  struct result_file result;
  const char *json_path, *compared_path, *compared_target;
  const char *stage; /* of the value */
  json_t *kernels;   /* an array of {"name", "simulation", "profile"} of the run in progress */
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

/* --stage and --value belong together. */
static enum status find_stage(struct command *c) {
  struct job_value *v = &c->t.job.value;
  if (!v->is_set != !c->stage)
    return fail(&c->t.err, ST_INPUT, "--stage and --value are given together");
  v->stage = c->stage ? pipeline_find(c->stage) : 0;
  return v->stage >= 0 ? ST_OK : fail(&c->t.err, ST_INPUT, "--stage %.60s: no stage is called that", c->stage);
}

static enum status parse_options(struct command *c, int argc, char **argv) {
  static const struct option options[] = {
      TERMINAL_OPTIONS,
      {"seed", required_argument, NULL, 's'},
      {"save-outputs", required_argument, NULL, 'o'},
      {"watch", required_argument, NULL, 'w'},
      {"stage", required_argument, NULL, 'S'},
      {"value", required_argument, NULL, 'v'},
      {"profile", required_argument, NULL, 'p'},
      {"compare", required_argument, NULL, 'c'},
      {"compare-target", required_argument, NULL, 'C'},
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
    case 'S':
      c->stage = optarg;
      break;
    case 'v':
      st = job_parse_value(c->t.arena, optarg, &c->t.job.value, &c->t.err);
      break;
    case 'c':
      c->compared_path = optarg;
      break;
    case 'C':
      c->compared_target = optarg;
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
  if (!st)
    st = find_stage(c);
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

static void show_reference(const json_t *r) {
  const json_t *d = json_object_get(r, "differs"), *n;
  size_t i;
  if (!r)
    return;
  printf("    %s beside %s of the trace, line %lld%s", json_is_true(json_object_get(r, "pass")) ? "pass" : "DIFFERS",
         text_of(r, "name"), int_of(r, "line"), !strcmp(text_of(r, "of"), "numpy") ? ", in NumPy" : "");
  show_number("largest error", json_object_get(r, "max_abs_err"));
  if (d) {
    printf("  first at [");
    json_array_foreach(json_object_get(d, "index"), i, n)
        printf("%s%lld", i ? ", " : "", (long long)json_integer_value(n));
    printf("]: %.6g instead of %.6g", json_number_value(json_object_get(d, "got")),
           json_number_value(json_object_get(d, "want")));
  }
  putchar('\n');
}

/* The slice, with each row of its last dimension on a line. */
static void show_slice(const json_t *s) {
  enum { SHOWN = 8 };
  const json_t *shape = json_object_get(s, "shape"), *data = json_object_get(s, "data");
  const size_t rank = json_array_size(shape);
  const size_t columns = rank ? (size_t)json_integer_value(json_array_get(shape, rank - 1)) : 1;
  const size_t rows = columns ? json_array_size(data) / columns : 0;
  for (size_t r = 0; r < rows && r < SHOWN; r++) {
    printf("   ");
    for (size_t k = 0; k < columns && k < SHOWN; k++) {
      const json_t *v = json_array_get(data, r * columns + k);
      if (json_is_string(v))
        printf(" %12s", json_string_value(v));
      else
        printf(" %12.6g", json_number_value(v));
    }
    putchar('\n');
  }
}

static void show_value(const json_t *v) {
  printf("  %s", text_of(v, "stage"));
  if (json_object_get(v, "line"))
    printf(" line %lld", int_of(v, "line"));
  if (json_object_get(v, "name"))
    printf(": %s", text_of(v, "name"));
  if (json_object_get(v, "operand"))
    printf(": %s", text_of(v, "operand"));
  if (json_object_get(v, "op"))
    printf(" of %s", text_of(v, "op"));
  if (json_object_get(v, "reason")) {
    printf(": no value: %s\n", text_of(v, "reason"));
    return;
  }
  printf(", execution %lld of %lld\n    ", int_of(v, "execution"), int_of(v, "executions"));
  show_summary(v);
  show_number("std", json_object_get(v, "std"));
  printf("  zero %lld", int_of(v, "zero"));
  if (json_object_get(v, "unwritten"))
    printf("  never written %lld", int_of(v, "unwritten"));
  putchar('\n');
  show_histogram(json_object_get(v, "histogram"));
  show_reference(json_object_get(v, "reference"));
  show_slice(json_object_get(v, "slice"));
}

static void show_fault(const json_t *f) {
  printf("  %s", text_of(f, "kind"));
  if (json_object_get(f, "instruction"))
    printf(": %s on %s", text_of(f, "instruction"), text_of(f, "engine"));
  if (json_object_get(f, "line"))
    printf(", line %lld", int_of(f, "line"));
  printf(": %s\n", text_of(f, "message"));
}

static void show_simulation(const json_t *s) {
  const json_t *o;
  size_t i;

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

/* Standard output may be the JSON. */
static bool is_quiet(const struct command *c) {
  return c->json_path && !strcmp(c->json_path, "-");
}

/* Keeps what a comparison needs. */
static void keep(struct command *c, const json_t *f, const char *kind) {
  json_t *kernel = json_array_get(c->kernels, (size_t)int_of(f, "kernel"));
  if (!strcmp(kind, "kernel"))
    json_array_append_new(c->kernels, json_pack("{s:O}", "name", json_object_get(f, "name")));
  else if (kernel && (!strcmp(kind, "simulation") || !strcmp(kind, "profile")))
    json_object_set(kernel, kind, json_object_get(f, kind));
}

static void show_frame(struct command *c, const json_t *f) {
  const char *kind = text_of(f, "frame");
  const json_t *s = json_object_get(f, "simulation");
  keep(c, f, kind);
  c->has_reached_limit |= !strcmp(text_of(s, "status"), "limit");
  if (!strcmp(kind, "diagnostic"))
    terminal_show_diag(&c->t, json_object_get(f, "diagnostic"));
  else if (is_quiet(c))
    return;
  else if (!strcmp(kind, "kernel"))
    printf("%s on %s\n", text_of(f, "name"), target_name(c->t.job.target));
  else if (s)
    show_simulation(s);
  else if (!strcmp(kind, "value"))
    show_value(json_object_get(f, "value"));
  else if (!strcmp(kind, "profile"))
    fputs(text_of(f, "text"), stdout);
  fflush(stdout);
}

/* Stages and their sources are large, and are not shown. */
static bool is_shown(const char *json, size_t len) {
  struct frame f;
  return frame_scan(json, len, &f, NULL) || (f.kind != FRAME_STAGE && f.kind != FRAME_SOURCES);
}

static enum status sink(void *user, const char *json, size_t len) {
  struct command *c = user;
  enum status st = c->json_path && !c->compared_path && !c->compared_target
                       ? result_file_add(&c->result, json, len, &c->t.err)
                       : ST_OK;
  if (st || !is_shown(json, len))
    return st;
  json_t *f = json_loadb(json, len, 0, NULL);
  if (f)
    show_frame(c, f);
  json_decref(f);
  return f ? ST_OK : ST_NOMEM;
}

/* ---- comparing --------------------------------------------------------------------------------------------------- */

enum { LINES_SHOWN = 8 };
static const size_t comparison_max = (size_t)256 << 20;

static void show_pair(const char *what, const char *name, const json_t *o) {
  const double x = json_number_value(json_object_get(o, "a_us")), y = json_number_value(json_object_get(o, "b_us"));
  printf("  %-6s %-24s %12.2f us %12.2f us %+12.2f us\n", what, name, x, y, y - x);
}

static void show_comparison(const json_t *k) {
  const json_t *o;
  size_t i;
  printf("\n%s: a and b\n", text_of(k, "name"));
  json_array_foreach(json_object_get(k, "outputs"), i, o) {
    printf("  %-10s a ", text_of(o, "name"));
    show_summary(json_object_get(o, "a"));
    printf("\n             b ");
    show_summary(json_object_get(o, "b"));
    putchar('\n');
  }
  if (!json_object_get(k, "a_us"))
    return;
  show_pair("", "total", k);
  json_array_foreach(json_object_get(k, "lanes"), i, o) show_pair("busy", text_of(o, "name"), o);
  json_array_foreach(json_object_get(k, "waits"), i, o) show_pair("path", text_of(o, "for"), o);
  json_array_foreach(json_object_get(k, "lines"), i, o) {
    char place[32];
    snprintf(place, sizeof place, "%lld", int_of(o, "line"));
    if (i < LINES_SHOWN)
      show_pair("line", place, o);
  }
}

static enum status write_comparison(struct command *c, const struct buf *b) {
  FILE *f = is_quiet(c) ? stdout : fopen(c->json_path, "we");
  if (!f)
    return terminal_refuse_path(&c->t, c->json_path);
  bool ok = fprintf(f, "%s\n", buf_text(b)) > 0;
  ok &= (f == stdout ? fflush(f) : fclose(f)) == 0;
  return ok ? ST_OK : fail(&c->t.err, ST_IO, "%.160s: %m", c->json_path);
}

/* Compares the kernels of both runs by position. */
static enum status compare(struct command *c, const json_t *kernels_a) {
  struct buf b;
  buf_init(&b, comparison_max);
  buf_puts(&b, "{\"kernels\":[");
  for (size_t i = 0; i < json_array_size(kernels_a) && i < json_array_size(c->kernels); i++) {
    if (i)
      buf_putc(&b, ',');
    comparison_put(&b, json_array_get(kernels_a, i), json_array_get(c->kernels, i));
  }
  buf_puts(&b, "]}");
  enum status st = buf_status(&b);
  if (st)
    st = fail(&c->t.err, st, "the comparison is too large");
  else if (c->json_path)
    st = write_comparison(c, &b);
  json_t *o = st ? NULL : json_loadb(buf_text(&b), b.len, 0, NULL), *k;
  size_t i;
  if (!is_quiet(c))
    json_array_foreach(json_object_get(o, "kernels"), i, k) show_comparison(k);
  json_decref(o);
  buf_clear(&b);
  return st;
}

/* ---- running ----------------------------------------------------------------------------------------------------- */

/* Runs the job; the kernels are c->kernels then. */
static enum status run_job(struct command *c, struct ir *ir) {
  json_decref(c->kernels);
  c->kernels = json_array();
  c->t.job.simulate = true;
  const enum status st = compile_run(ir, &c->t.job, sink, c);
  return st ? st : c->has_reached_limit ? ST_LIMIT : ST_OK;
}

/* Runs the other kernel, or the same one, on the other target. */
static enum status run_other(struct command *c, struct ir *ir) {
  json_t *kernels_a = json_incref(c->kernels);
  c->t.job.outputs_npz = c->t.job.trace_path = NULL;
  enum status st = c->compared_target ? terminal_option(&c->t, 't', c->compared_target) : ST_OK;
  if (!st && c->compared_path)
    st = terminal_read_other(&c->t, c->compared_path);
  if (!st)
    st = run_job(c, ir);
  const enum status compared = compare(c, kernels_a);
  json_decref(kernels_a);
  return st ? st : compared;
}

static enum status run(struct command *c) {
  const bool compares = c->compared_path || c->compared_target;
  struct ir ir;
  enum status st = terminal_start(&c->t, &ir);
  if (st)
    return st;
  st = run_job(c, &ir);
  const enum status second = compares ? run_other(c, &ir) : ST_OK;
  const enum status written = c->json_path && !compares ? result_file_write(&c->result, c->json_path, &c->t) : ST_OK;
  return st ? st : second ? second : written;
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
  json_decref(c.kernels);
  result_file_clear(&c.result);
  arena_clear(&arena);
  return code;
}
