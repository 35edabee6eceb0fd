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
#include "driver/run_device.h"
#include "driver/run_show.h"
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
    "  --watch [KERNEL.py:]LINE[:OPERAND][@N]\n"
    "                             show the values of an operand of the instruction on a line of the last stage, or of\n"
    "                             KERNEL if that is NISA, after its Nth execution or the last, by default of what it\n"
    "                             writes, and of those that do the same for other parts; of a line of the source all\n"
    "                             instructions: with KERNEL.py:, or if the stage has none on LINE; repeatable\n"
    "  --stage NAME --value WHAT  do not run the last stage, but show a value of this one (as for --stop-after): the\n"
    "                             value called %NAME, or what the operation on a line computes: line:N, or an operand\n"
    "                             there: line:N:src, line:N:%NAME; after its Kth execution: %NAME@K\n"
    "  --profile FILE.json        write the timeline there: open it in ui.perfetto.dev\n"
    "  --compare KERNEL2          run this one, too, and show both side by side\n"
    "  --compare-target TARGET    run KERNEL2, or the same kernel, on this machine\n" RUN_DEVICE_HELP
    "  --json FILE|-              write the result as JSON, in the form of the API; with --compare the comparison\n"
    "Exit status: 0 done; 1 the kernel was refused, has a fault or wrong outputs; 2 wrong usage; 3 a limit was hit.\n";

struct command {
  struct terminal t;
  struct run_device device;
  bool is_neff_alone; /* KERNEL is one that only a device can run */
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
  v->stage = c->stage;
  return !c->stage || pipeline_has_stage(c->stage)
             ? ST_OK
             : fail(&c->t.err, ST_INPUT, "--stage %.60s: no stage is called that", c->stage);
}

static enum status parse_options(void *command, int argc, char **argv) {
  static const struct option options[] = {
      TERMINAL_OPTIONS,
      RUN_DEVICE_OPTIONS,
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
  struct command *c = command;
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
      if (!run_device_option(&c->device, o, optarg, &c->t, &st))
        st = terminal_option(&c->t, o, optarg);
    }
  }
  if (!st)
    st = find_stage(c);
  if (!st && optind >= argc)
    st = fail(&c->t.err, ST_INPUT, "expected a KERNEL; see nkx run --help");
  return st;
}

/* ---- running ----------------------------------------------------------------------------------------------------- */

/* Standard output may be the JSON. */
static bool is_quiet(const struct command *c) {
  return c->json_path && !strcmp(c->json_path, "-");
}

/* Keeps what a comparison needs. */
static void keep(struct command *c, const json_t *f, const char *kind) {
  json_t *kernel = json_array_get(c->kernels, (size_t)run_int_of(f, "kernel"));
  if (!strcmp(kind, "kernel"))
    json_array_append_new(c->kernels, json_pack("{s:O}", "name", json_object_get(f, "name")));
  else if (kernel && (!strcmp(kind, "simulation") || !strcmp(kind, "profile")))
    json_object_set(kernel, kind, json_object_get(f, kind));
}

static void show_frame(struct command *c, const json_t *f) {
  const char *kind = run_text_of(f, "frame");
  const json_t *s = json_object_get(f, "simulation");
  keep(c, f, kind);
  c->has_reached_limit |= !strcmp(run_text_of(s, "status"), "limit");
  if (!strcmp(kind, "diagnostic"))
    terminal_show_diag(&c->t, json_object_get(f, "diagnostic"));
  else if (is_quiet(c))
    return;
  else if (!strcmp(kind, "kernel"))
    printf("%s on %s\n", run_text_of(f, "name"), target_name(c->t.job.target));
  else if (s)
    run_show_simulation(s);
  else if (!strcmp(kind, "device"))
    run_show_device(json_object_get(f, "device"));
  else if (!strcmp(kind, "value"))
    run_show_value(json_object_get(f, "value"));
  else if (!strcmp(kind, "profile"))
    fputs(run_text_of(f, "text"), stdout);
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

static const size_t comparison_max = (size_t)256 << 20;

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
  buf_puts(&b, "]}\n");
  enum status st = buf_status(&b);
  if (st)
    st = fail(&c->t.err, st, "the comparison is too large");
  else if (c->json_path)
    st = terminal_write(&c->t, c->json_path, b.data, b.len);
  json_t *o = st ? NULL : json_loadb(buf_text(&b), b.len, 0, NULL), *k;
  size_t i;
  if (!is_quiet(c))
    json_array_foreach(json_object_get(o, "kernels"), i, k) run_show_comparison(k);
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

static enum status run(void *command) {
  struct command *c = command;
  const bool compares = c->compared_path || c->compared_target;
  struct ir ir;
  enum status st = terminal_start(&c->t, &ir);
  if (st)
    return st;
  if (c->is_neff_alone)
    return run_device_alone(&c->device, &c->t, c->json_path);
  st = run_job(c, &ir);
  const enum status second = compares ? run_other(c, &ir) : ST_OK;
  const enum status written =
      c->json_path && !compares ? result_file_write(&c->result, c->json_path, &c->t.err) : ST_OK;
  return st ? st : second ? second : written;
}

static enum status read_kernel(void *command, char **paths, int n) {
  struct command *c = command;
  const enum status st = run_device_read(&c->device, &c->t, paths[0], &c->is_neff_alone);
  return st || c->is_neff_alone ? st : terminal_read_sources(&c->t, paths, n);
}

int run_main(int argc, char **argv) {
  static const struct terminal_command def = {"run", parse_options, read_kernel, run};
  struct arena arena;
  struct command c = {.json_path = NULL};

  arena_init(&arena);
  terminal_init(&c.t, &arena);
  run_device_init(&c.device, &arena);
  result_file_init(&c.result);
  const int code = terminal_main(&c.t, &def, &c, argc, argv);
  json_decref(c.kernels);
  result_file_clear(&c.result);
  arena_clear(&arena);
  return code;
}
