/* compile_main: `nkx compile KERNEL.py [FILE.py…]`: the whole pipeline for the terminal.
 *
 * The command runs in this process, without a jail, because the kernel is the user's own.  It reads the frames like
 * any client: the last stage's text goes to standard output; a table of stages and the diagnostics, with a caret
 * under the Python range, go to standard error.  --json writes the result object of the API.
 */
#include "driver/main.h"

#include <assert.h>
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <jansson.h>
#include <openssl/evp.h>

#include "base/buf.h"
#include "base/rule.h"
#include "driver/compile.h"
#include "driver/pipeline.h"
#include "driver/result_file.h"
#include "driver/source_table.h"
#include "driver/terminal.h"
#include "driver/vendor_options.h"
#include "driver/vendor_stage.h"
#include "ir/ir.h"

static const char usage[] =
    "usage: nkx compile KERNEL [FILE.py…] [options]  (- reads standard input)\n" TERMINAL_HELP_FILES
    "  --language nkipy|hlo|mlir  the language of KERNEL: Python, HLO (text or HloModuleProto) or MLIR (on tensors "
    "or NISA);\n"
    "                             by default its name (.py .hlo .pb .mlir) and its first line decide\n"
    "  --stop-after STAGE[:N]     the last stage to run; N counts stages of the same name from 1\n" TERMINAL_HELP_INPUTS
    "  --check                    run every stage and compare its outputs with NumPy\n"
    "  --simulate                 run the last stage on the simulated machine, for --json and --dump-dir; nkx run "
    "shows it\n"
    "  --steps STAGE              with --json: also the rewrites inside this stage; nkx steps shows them\n"
    "  --check-file FILE          FILE has lines \"STAGE: name\" and, below each, FileCheck's lines (CHECK:, "
    "CHECK-NEXT: …)\n"
    "                             that the stage's text should have\n"
    "  --reproducer FILE          with --check: write the first failing stage there, for nkx reproduce: the program "
    "before\n"
    "                             the pass, the pass, inputs and NumPy's results\n"
    "  --dump-dir DIR             write each stage's text, hlo.pb and hlo.txt there\n"
    "  --json FILE|-              write the result as JSON, in the form of the API\n"
    "  --version NAME             compile with another version, which NKX_WORKER_VERSION lists as NAME=DIR,…\n"
    "  --quiet                    print neither the table of stages nor the last text\n"
    "  --vendor-nki               let neuronx-cc, the vendor's compiler, print the kernel as NKI: one more "
    "stage, " VENDOR_STAGE_NAME "\n" VENDOR_HELP
    "  --remarks[=why]            print below each stage what its pass decided: tiles, memories, fusions, spills; "
    "with\n"
    "                             why, also the rule, the limits, the cost, what was rejected,\n"
    "                             and the knob\n";

struct command {
  struct terminal t;
  struct result_file result; /* of a run with --json */
  struct source_table sources;
  const char *dump_dir, *json_path, *reproducer_path;
  bool is_quiet, has_remarks, has_reasons;
  struct vendor_command vendor;
  char *last_text; /* of the newest stage, as JSON; on the heap */
};

/* ---- options ----------------------------------------------------------------------------------------------------- */

static enum status parse_options(void *command, int argc, char **argv) {
  static const struct option options[] = {
      TERMINAL_OPTIONS,
      VENDOR_OPTIONS,
      {"vendor-nki", no_argument, NULL, 'V'},
      {"stop-after", required_argument, NULL, 's'},
      {"check", no_argument, NULL, 'c'},
      {"check-file", required_argument, NULL, 'p'},
      {"simulate", no_argument, NULL, 'S'},
      {"steps", required_argument, NULL, 'T'},
      {"reproducer", required_argument, NULL, 'R'},
      {"dump-dir", required_argument, NULL, 'd'},
      {"json", required_argument, NULL, 'j'},
      {"quiet", no_argument, NULL, 'q'},
      {"remarks", optional_argument, NULL, 'r'},
      {"help", no_argument, NULL, 'h'},
      {NULL, 0, NULL, 0},
  };
  struct command *c = command;
  enum status st = ST_OK;
  int o;

  while (!st && (o = getopt_long(argc, argv, "h", options, NULL)) != -1) {
    switch (o) {
    case 's':
      c->t.job.stop_after = optarg;
      if (!pipeline_has_stage(optarg))
        st = fail(&c->t.err, ST_INPUT, "--stop-after %.60s: there is no such stage", optarg);
      break;
    case 'c':
      c->t.job.check = true;
      break;
    case 'S':
      c->t.job.simulate = true;
      break;
    case 'T':
      c->t.job.steps = optarg;
      if (!pipeline_has_stage(optarg) && optarg[strspn(optarg, "0123456789")])
        st = fail(&c->t.err, ST_INPUT, "--steps %.60s: there is no such stage", optarg);
      break;
    case 'p':
      st = terminal_read_patterns(&c->t, optarg);
      break;
    case 'R':
      c->reproducer_path = optarg;
      c->t.job.check = true;
      break;
    case 'd':
      c->dump_dir = optarg;
      c->t.job.artifacts = true;
      break;
    case 'j':
      c->json_path = optarg;
      break;
    case 'q':
      c->is_quiet = true;
      break;
    case 'r':
      c->has_remarks = true;
      c->has_reasons = optarg && !strcmp(optarg, "why");
      if (optarg && !c->has_reasons)
        st = fail(&c->t.err, ST_INPUT, "--remarks=%.60s: expected --remarks or --remarks=why", optarg);
      break;
    case 'V':
      c->vendor.job.nki_is_stage = true;
      break;
    case 'h':
      fputs(usage, stdout);
      exit(EXIT_DONE);
    default:
      if (!vendor_command_option(&c->vendor, o, optarg, &c->t.err, &st))
        st = terminal_option(&c->t, o, optarg);
    }
  }
  if (!st && optind >= argc)
    st = fail(&c->t.err, ST_INPUT, "expected a KERNEL; see nkx compile --help");
  return st || !c->vendor.job.nki_is_stage ? st : vendor_command_use(&c->vendor, &c->t);
}

/* ---- showing ----------------------------------------------------------------------------------------------------- */

static void show_stage(const struct command *c, const json_t *s) {
  const json_t *check = json_object_get(s, "check"), *count;
  long long ops = 0;
  const char *key;
  bool is_changed = json_is_true(json_object_get(s, "changed"));

  json_object_foreach(json_object_get((json_t *)s, "op_counts"), key, count) ops += json_integer_value(count);
  fprintf(stderr, "%s%3d %s %-28s %5lld ops %8.2f ms", terminal_color(&c->t, is_changed ? "" : "\033[2m"),
          (int)json_integer_value(json_object_get(s, "index")), is_changed ? "●" : "○",
          json_string_value(json_object_get(s, "name")), ops,
          (double)json_integer_value(json_object_get(s, "time_us")) / 1000);
  if (json_is_true(json_object_get(s, "partial")))
    fputs("  partial: up to the refusal", stderr);
  if (check) {
    const char *status = json_string_value(json_object_get(check, "status"));
    const json_t *reason = json_object_get(check, "reason");
    fprintf(stderr, "  %s", status);
    if (reason)
      fprintf(stderr, " (%s)", json_string_value(reason));
    else
      fprintf(stderr, " (max abs %.2g, rel %.2g)", json_number_value(json_object_get(check, "max_abs_err")),
              json_number_value(json_object_get(check, "max_rel_err")));
  }
  fprintf(stderr, "%s\n", terminal_color(&c->t, "\033[0m"));
}

/* What the decision is based on, in words: one line each for the rule, the limits, the rejected choices and the knob. */
static void show_reasons(const json_t *r) {
  const char *name = json_string_value(json_object_get(r, "rule"));
  const struct rule_def *rule = name ? rule_find(name) : NULL;
  const json_t *x, *knob = json_object_get(r, "knob");
  size_t i;
  if (rule)
    fprintf(stderr, "          rule %s: %s\n          because: %s\n", rule->name, rule->says, rule->because);
  const char *forced = rule && *rule->forced ? rule->forced : json_string_value(json_object_get(r, "forced"));
  if (forced)
    fprintf(stderr, "          no other choice: %s\n", forced);
  if (json_object_get(r, "cost"))
    fprintf(stderr, "          this: %s\n", json_string_value(json_object_get(r, "cost")));
  json_array_foreach(json_object_get(r, "limits"), i, x) fprintf(
      stderr, "          limit: %s: %lld of %lld %s\n", json_string_value(json_object_get(x, "name")),
      (long long)json_integer_value(json_object_get(x, "used")),
      (long long)json_integer_value(json_object_get(x, "available")), json_string_value(json_object_get(x, "unit")));
  json_array_foreach(json_object_get(r, "rejected"), i, x) {
    const char *cost = json_string_value(json_object_get(x, "cost"));
    char *value = json_dumps(json_object_get(x, "value"), JSON_ENCODE_ANY | JSON_COMPACT);
    fprintf(stderr, "          instead %s: %s%s%s", json_string_value(json_object_get(x, "choice")), cost ? cost : "",
            cost ? "; " : "", json_string_value(json_object_get(x, "reason")));
    if (value && knob)
      fprintf(stderr, "; %s(%s=%s) takes it", json_string_value(json_object_get(knob, "call")),
              json_string_value(json_object_get(knob, "argument")), value);
    fputc('\n', stderr);
    free(value);
  }
  if (knob || !rule)
    return;
  if (strncmp(rule->knob, "No knob", 7))
    fprintf(stderr, "          no knob here: the operation computes a part of an expression, or its place is fixed\n");
  else
    fprintf(stderr, "          %s\n", rule->knob);
}

static void show_remarks(const struct command *c, const json_t *stage) {
  const json_t *r;
  size_t i;
  json_array_foreach(json_object_get(stage, "remarks"), i, r) {
    const json_t *first = json_array_get(source_table_list(&c->sources, json_object_get(r, "src")), 0);
    struct source_place place;
    fprintf(stderr, "%s      ", terminal_color(&c->t, "\033[36m"));
    if (first && source_table_place(&c->sources, json_integer_value(first), &place))
      fprintf(stderr, "%s:%d:%d: ", place.file, (int)place.line, (int)place.col);
    fprintf(stderr, "%s%s\n", json_string_value(json_object_get(r, "text")), terminal_color(&c->t, "\033[0m"));
    if (c->has_reasons)
      show_reasons(r);
  }
}

/* ---- dump -------------------------------------------------------------------------------------------------------- */

/* Creates the directories in `path` from byte `from` on, up to its last slash. */
static enum status make_directories(struct command *c, char *path, size_t from) {
  for (char *p = path + from; (p = strchr(p, '/')); *p++ = '/') {
    *p = 0;
    if (*path && mkdir(path, 0777) && errno != EEXIST)
      return terminal_refuse_path(&c->t, path);
  }
  return ST_OK;
}

/* Creates the directories in `path` from byte `from` on. */
static enum status write_file(struct command *c, char *path, size_t from, const void *data, size_t len) {
  enum status st = make_directories(c, path, from);
  return st ? st : terminal_write(&c->t, path, data, len);
}

static enum status dump_stage(struct command *c, const json_t *frame, const json_t *s) {
  const json_t *text = json_object_get(s, "text");
  const char *dialect = json_string_value(json_object_get(s, "dialect"));
  const char *suffix = !strcmp(dialect, "hlo")                                                     ? "hlo"
                       : !strcmp(json_string_value(json_object_get(s, "name")), VENDOR_STAGE_NAME) ? "py"
                                                                                                   : "mlir";
  char *path = arena_printf(
      c->t.arena, "%s/kernel%d/%02d-%s.%s", c->dump_dir, (int)json_integer_value(json_object_get(frame, "kernel")),
      (int)json_integer_value(json_object_get(s, "index")), json_string_value(json_object_get(s, "name")), suffix);
  return write_file(c, path, strlen(c->dump_dir) + 1, json_string_value(text), json_string_length(text));
}

/* Writes an artifact to the dump directory, and the first reproducer to the file that the user named. */
static enum status write_artifact(struct command *c, const json_t *frame) {
  const json_t *data = json_object_get(frame, "data"), *artifact = json_object_get(frame, "artifact");
  size_t n = json_string_length(data), size = (size_t)json_integer_value(json_object_get(artifact, "size"));
  const char *name = json_string_value(json_object_get(artifact, "name")), *base = strrchr(name, '/');
  base = base ? base + 1 : name;
  const bool is_reproducer = c->reproducer_path && !strcmp(base, "reproducer.json");
  unsigned char *bytes = c->dump_dir || is_reproducer ? malloc(n / 4 * 3 + 1) : NULL;
  enum status st = ST_OK;

  if (!c->dump_dir && !is_reproducer)
    return ST_OK;
  if (!bytes)
    return fail(&c->t.err, ST_NOMEM, "artifact");
  EVP_DecodeBlock(bytes, (const unsigned char *)json_string_value(data), (int)n);
  if (c->dump_dir)
    st = write_file(c,
                    arena_printf(c->t.arena, "%s/kernel%d/%s", c->dump_dir,
                                 (int)json_integer_value(json_object_get(artifact, "kernel")), base),
                    strlen(c->dump_dir) + 1, bytes, size);
  if (!st && is_reproducer) {
    st = write_file(c, arena_strdup(c->t.arena, c->reproducer_path), strlen(c->reproducer_path), bytes, size);
    c->reproducer_path = NULL;
  }
  free(bytes);
  return st;
}

/* ---- running ----------------------------------------------------------------------------------------------------- */

static enum status show_frame(struct command *c, const json_t *f) {
  const char *kind = json_string_value(json_object_get(f, "frame"));
  const json_t *s = json_object_get(f, "stage");
  enum status st = ST_OK;

  if (!strcmp(kind, "sources")) {
    source_table_add(&c->sources, f);
  } else if (!strcmp(kind, "stage")) {
    if (!c->is_quiet)
      show_stage(c, s);
    if (c->has_remarks)
      show_remarks(c, s);
    if (c->dump_dir)
      st = dump_stage(c, f, s);
  } else if (!strcmp(kind, "diagnostic")) {
    terminal_show_diag(&c->t, json_object_get(f, "diagnostic"));
  } else if (!strcmp(kind, "kernel") && !c->is_quiet) {
    fprintf(stderr, "%s%s%s\n", terminal_color(&c->t, "\033[1m"), json_string_value(json_object_get(f, "name")),
            terminal_color(&c->t, "\033[0m"));
  } else if (!strcmp(kind, "artifact")) {
    st = write_artifact(c, f);
  }
  return st;
}

static bool is_called(const struct frame_member *m, const char *key) {
  return m->key_len == strlen(key) && !memcmp(m->key, key, m->key_len);
}

/* True if the terminal needs this member of a stage.  The text and the maps are most of a frame; the terminal shows
 * only the last stage's text, and no maps. */
static bool is_parsed(const struct command *c, const struct frame_member *m) {
  return !is_called(m, "lines") && !is_called(m, "from") && (c->dump_dir || !is_called(m, "text"));
}

/* Parses the stage of a frame, without the members that are never shown; NULL when out of memory. */
static json_t *parse_stage(struct command *c, const struct frame_member *stage) {
  struct frame f;
  json_t *o = json_object();
  bool ok = o && !frame_scan_object(stage->value, stage->value_len, &f, NULL);
  for (int i = 0; ok && i < f.n; i++) {
    const struct frame_member *m = &f.members[i];
    if (is_called(m, "text") && !c->is_quiet) {
      free(c->last_text);
      c->last_text = strndup(m->value, m->value_len);
    }
    if (is_parsed(c, m))
      ok = !json_object_setn_new(o, m->key, m->key_len, json_loadb(m->value, m->value_len, JSON_DECODE_ANY, NULL));
  }
  if (ok)
    return o;
  json_decref(o);
  return NULL;
}

/* Parses a frame that this process made; NULL when out of memory. */
static json_t *parse_frame(struct command *c, const struct frame *f, const char *json, size_t len) {
  if (f->kind != FRAME_STAGE)
    return json_loadb(json, len, 0, NULL);
  return json_pack("{s:s,s:I,s:o}", "frame", "stage", "kernel", (json_int_t)frame_int(f, "kernel"), "stage",
                   parse_stage(c, frame_get(f, "stage")));
}

/* False if nothing is shown of such a frame. */
static bool is_shown(const struct command *c, const struct frame *f) {
  return (f->kind != FRAME_STAGE && f->kind != FRAME_SOURCES) || !c->is_quiet || c->has_remarks || c->dump_dir;
}

static enum status sink(void *user, const char *json, size_t len) {
  struct command *c = user;
  struct frame f;
  assert(!memchr(json, '\n', len));
  if (frame_scan(json, len, &f, &c->t.err))
    return ST_BUG; /* this process made the frame */
  enum status st = c->json_path ? result_file_keep(&c->result, &f, json, len, &c->t.err) : ST_OK;
  if (st || !is_shown(c, &f))
    return st;
  json_t *parsed = parse_frame(c, &f, json, len);
  st = parsed ? show_frame(c, parsed) : ST_NOMEM;
  json_decref(parsed);
  return st;
}

static void show_last_text(const struct command *c) {
  json_t *v = json_loads(c->last_text, JSON_DECODE_ANY, NULL);
  const char *text = json_string_value(v);
  if (text) {
    terminal_put_text(text, strlen(text));
    fputs(*text && text[strlen(text) - 1] != '\n' ? "\n" : "", stdout);
  }
  json_decref(v);
}

static enum status run(void *command) {
  struct command *c = command;
  struct ir ir;

  enum status st = c->dump_dir ? make_directories(c, arena_printf(c->t.arena, "%s/", c->dump_dir), 0) : ST_OK;
  if (!st)
    st = terminal_start(&c->t, &ir);
  if (st)
    return st;
  st = compile_run(&ir, &c->t.job, sink, c);
  enum status written = c->json_path ? result_file_write(&c->result, c->json_path, &c->t.err) : ST_OK;
  bool is_text_wanted = !c->json_path || strcmp(c->json_path, "-");
  if (is_text_wanted && c->last_text && !c->is_quiet)
    show_last_text(c);
  return st ? st : written;
}

int compile_main(int argc, char **argv) {
  static const struct terminal_command def = {"compile", parse_options, NULL, run};
  struct arena arena;
  struct command c = {.is_quiet = false};

  arena_init(&arena);
  terminal_init(&c.t, &arena);
  vendor_command_init(&c.vendor, &arena);
  result_file_init(&c.result);
  const int code = terminal_main(&c.t, &def, &c, argc, argv);
  free(c.last_text);
  source_table_clear(&c.sources);
  result_file_clear(&c.result);
  arena_clear(&arena);
  return code;
}
