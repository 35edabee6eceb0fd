/* run: `nkx runner run`: asks a server for a run of a kernel on a Neuron host, and shows it.
 *
 * The source goes to the server, which compiles it; the host gets HLO and inputs.  A signal takes the run back.
 */
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <jansson.h>

#include "driver/job.h"
#include "driver/run_show.h"
#include "runner/runner.h"
#include "runner/wire.h"

enum {
  EXIT_DONE,
  EXIT_REFUSED,
  EXIT_USAGE,
  EXIT_FAULT = 4,
  ASK_MS = 120000,
  FOLLOW_MS = 60000,
  AGAIN_MS = 1000,
  TRIES = 60,
  ANSWER_MAX = 16 << 20,
  FILES_MAX = 64,
  INPUTS_MAX = 64,
  OPTIONS_MAX = 32,
};

static const char usage[] =
    "usage: nkx runner run KERNEL [FILE.py…] --server URL [options]\n"
    "  Runs a kernel on a Neuron host that is connected to a server, and compares its outputs with NumPy's and the "
    "simulator's.\n"
    "  --server URL               https://HOST[:PORT]\n"
    "  --target trn1|trn2|trn3, --kernel NAME, --input x=128x256:f32   as of nkx run\n"
    "  --run compile|execute|profile|nki   what the host does (execute); nki: only the kernel as NKI\n"
    "  --lnc 1|2, --cc-option=OPTION   for the vendor's compiler; the second is repeatable\n"
    "  -o DIR                     write the files there: outputs.safetensors, kernel.neff, kernel.nki.py, "
    "profile.ntff\n"
    "  --json FILE|-              write the run as JSON\n"
    "  --ca-file FILE, --allow-http    as of nkx runner\n"
    "Exit status: 0 it ran, and all outputs are equal; 1 not so, or it was refused; 2 wrong usage; 4 the server cannot "
    "be reached.\n";

struct command {
  struct wire_config wire;
  struct wire *connection;
  const char *target, *kernel, *what, *dir, *json, *lnc;
  int n_files, n_inputs, n_options;
  const char *files[FILES_MAX + 1], *inputs[INPUTS_MAX], *options[OPTIONS_MAX];
  char id[64], mark[64];
  size_t shown;   /* bytes of the log */
  char said[300]; /* the last line about the state */
};

/* ---- the request --------------------------------------------------------------------------------------------------- */

static enum status read_source(const char *path, struct buf *b, struct error *err) {
  char piece[64 << 10];
  size_t n;
  FILE *f = fopen(path, "rbe");
  if (!f)
    return fail(err, ST_INPUT, "%.160s: %m", path);
  while ((n = fread(piece, 1, sizeof piece, f)) > 0 && !buf_append(b, piece, n)) {
  }
  const bool ok = !ferror(f);
  fclose(f);
  return ok && !buf_status(b) ? ST_OK : fail(err, ST_INPUT, "%.160s cannot be read, or is too large", path);
}

static json_t *text_of(const char *path, struct error *err) {
  struct buf b;
  buf_init(&b, JOB_SOURCE_MAX);
  json_t *v = NULL;
  if (!read_source(path, &b, err)) {
    v = json_stringn(buf_text(&b), b.len);
    if (!v)
      (void)fail(err, ST_INPUT, "%.160s is no UTF-8", path);
  }
  buf_clear(&b);
  return v;
}

static const char *base_name(const char *path) {
  const char *slash = strrchr(path, '/');
  return slash ? slash + 1 : path;
}

static enum status add_files(const struct command *c, json_t *o, struct error *err) {
  json_t *source = text_of(c->files[0], err), *list = json_array();
  json_object_set_new(o, "source", source);
  json_object_set_new(o, "filename", json_string(base_name(c->files[0])));
  bool ok = source != NULL;
  for (int i = 1; i < c->n_files && ok; i++) {
    json_t *text = text_of(c->files[i], err);
    ok = text && !json_array_append_new(list, json_pack("{s:s,s:o}", "name", base_name(c->files[i]), "source", text));
  }
  if (ok && c->n_files > 1)
    json_object_set(o, "files", list);
  json_decref(list);
  return ok ? ST_OK : ST_INPUT;
}

static enum status add_inputs(const struct command *c, json_t *o, struct error *err) {
  struct arena a;
  struct job job;
  struct job_input inputs[INPUTS_MAX];
  enum status st = ST_OK;
  if (!c->n_inputs)
    return ST_OK;
  arena_init(&a);
  job_init(&job);
  for (int i = 0; i < c->n_inputs && !st; i++)
    st = job_parse_input(&a, c->inputs[i], &inputs[i], err);
  job.inputs = inputs;
  job.n_inputs = c->n_inputs;
  char *text = st ? NULL : job_dump_inputs(&job);
  if (text)
    json_object_set_new(o, "inputs", json_loads(text, 0, NULL));
  free(text);
  arena_clear(&a);
  return st;
}

/* The server checks them. */
static void add_compiler(const struct command *c, json_t *o) {
  json_t *compiler = json_object(), *list = json_array();
  for (int i = 0; i < c->n_options; i++)
    json_array_append_new(list, json_string(c->options[i]));
  if (c->n_options)
    json_object_set(compiler, "options", list);
  if (c->lnc)
    json_object_set_new(compiler, "lnc", json_integer(strtol(c->lnc, NULL, 10)));
  if (json_object_size(compiler))
    json_object_set(o, "compiler", compiler);
  json_decref(list);
  json_decref(compiler);
}

static char *make_request(const struct command *c, struct error *err) {
  json_t *o = json_pack("{s:s}", "run", c->what);
  enum status st = add_files(c, o, err);
  if (!st)
    st = add_inputs(c, o, err);
  add_compiler(c, o);
  if (c->target)
    json_object_set_new(o, "target", json_string(c->target));
  if (c->kernel)
    json_object_set_new(o, "kernel", json_string(c->kernel));
  char *text = st ? NULL : json_dumps(o, JSON_COMPACT);
  json_decref(o);
  return text;
}

/* ---- the server ---------------------------------------------------------------------------------------------------- */

static enum status send(struct command *c, const char *method, const char *path, const char *body, int ms,
                        struct wire_answer *out, struct error *err) {
  const struct wire_ask ask = {.method = method,
                               .path = path,
                               .type = body ? "application/json" : NULL,
                               .body = body,
                               .len = body ? strlen(body) : 0,
                               .timeout_ms = ms,
                               .is_last = !strcmp(method, "DELETE"),
                               .max = ANSWER_MAX};
  const enum status st = wire_send(c->connection, &ask, out, err);
  if (st || out->status < 400)
    return st;
  return fail(err, out->status >= 500 ? ST_BUSY : ST_INPUT, "%.200s [%s]", out->message, out->code);
}

static enum status begin(struct command *c, struct error *err) {
  struct wire_answer a = {0};
  char *body = make_request(c, err);
  if (!body)
    return ST_INPUT;
  const enum status st = send(c, "POST", "/api/v1/runs", body, ASK_MS, &a, err);
  json_t *o = st ? NULL : json_loadb(buf_text(&a.body), a.body.len, 0, NULL);
  snprintf(c->id, sizeof c->id, "%s", run_text_of(o, "id"));
  json_decref(o);
  buf_clear(&a.body);
  free(body);
  return st || *c->id ? st : fail(err, ST_BUSY, "the server's answer is no run");
}

static void say(struct command *c, const char *text) {
  if (!strcmp(c->said, text))
    return;
  snprintf(c->said, sizeof c->said, "%s", text);
  fprintf(stderr, "%s\n", text);
}

static void show_state(struct command *c, const json_t *run) {
  const char *log = run_text_of(run, "log"), *missing = run_text_of(run, "missing");
  char text[300];
  if (strlen(log) > c->shown) {
    fputs(log + c->shown, stderr);
    c->shown = strlen(log);
  }
  if (strcmp(run_text_of(run, "state"), "waiting") != 0)
    return;
  if (*missing)
    say(c, missing);
  else {
    snprintf(text, sizeof text, "waiting: place %lld in the queue", run_int_of(run, "position"));
    say(c, text);
  }
}

/* A server that cannot be reached for a while is asked again. */
static enum status follow(struct command *c, json_t **out, struct error *err) {
  char path[200];
  int failures = 0;
  for (;;) {
    struct wire_answer a;
    snprintf(path, sizeof path, "/api/v1/runs/%s?after=%s", c->id, c->mark);
    const enum status st = send(c, "GET", path, NULL, FOLLOW_MS, &a, err);
    json_t *run = st ? NULL : json_loadb(buf_text(&a.body), a.body.len, 0, NULL);
    buf_clear(&a.body);
    if (st == ST_INPUT || *c->wire.stop || (!run && ++failures > TRIES)) {
      json_decref(run);
      return st ? st : fail(err, ST_BUSY, "it was stopped, or the server's answer is no run");
    }
    if (!run) {
      poll(NULL, 0, AGAIN_MS);
      continue;
    }
    failures = 0;
    show_state(c, run);
    snprintf(c->mark, sizeof c->mark, "%s", run_text_of(run, "mark"));
    const char *state = run_text_of(run, "state");
    if (strcmp(state, "waiting") != 0 && strcmp(state, "running") != 0) {
      *out = run;
      return ST_OK;
    }
    json_decref(run);
  }
}

/* ---- the end ------------------------------------------------------------------------------------------------------- */

static enum status save_file(struct command *c, const char *name, struct error *err) {
  struct wire_answer a;
  char path[200], to[PATH_MAX];
  snprintf(path, sizeof path, "/api/v1/runs/%s/files/%s", c->id, name);
  enum status st = send(c, "GET", path, NULL, ASK_MS, &a, err);
  snprintf(to, sizeof to, "%s/%s", c->dir, name);
  FILE *f = st ? NULL : fopen(to, "wbe");
  bool ok = f && fwrite(buf_text(&a.body), 1, a.body.len, f) == a.body.len;
  if (f)
    ok &= fclose(f) == 0;
  if (!st && !ok)
    st = fail(err, ST_INPUT, "%.160s: %m", to);
  buf_clear(&a.body);
  return st;
}

/* The names are the server's: one with a slash would lead elsewhere. */
static enum status save_files(struct command *c, const json_t *run, struct error *err) {
  enum status st = ST_OK;
  size_t i;
  json_t *f;
  if (mkdir(c->dir, 0777) && errno != EEXIST)
    return fail(err, ST_INPUT, "%.160s: %m", c->dir);
  json_array_foreach(json_object_get(run, "files"), i, f) {
    const char *name = run_text_of(f, "name");
    if (!st && json_is_true(json_object_get(f, "is_output")) && *name && *name != '.' && !strchr(name, '/'))
      st = save_file(c, name, err);
  }
  return st;
}

static bool all_pass(const json_t *device) {
  size_t i;
  json_t *o;
  json_array_foreach(json_object_get(device, "outputs"), i, o) {
    if (json_is_false(json_object_get(json_object_get(o, "reference"), "pass")) ||
        json_is_false(json_object_get(json_object_get(o, "simulator"), "pass")))
      return false;
  }
  return true;
}

static enum status write_json(const struct command *c, const json_t *run, struct error *err) {
  char *text = json_dumps(run, JSON_INDENT(1));
  FILE *f = strcmp(c->json, "-") ? fopen(c->json, "we") : stdout;
  bool ok = text && f && fprintf(f, "%s\n", text) > 0;
  if (f)
    ok &= (f == stdout ? fflush(f) : fclose(f)) == 0;
  free(text);
  return ok ? ST_OK : fail(err, ST_INPUT, "%.160s: %m", c->json);
}

static enum status show_end(struct command *c, const json_t *run, struct error *err) {
  const json_t *outcome = json_object_get(run, "outcome"), *device = json_object_get(outcome, "device");
  const bool is_done = !strcmp(run_text_of(run, "state"), "done");
  enum status st = c->json ? write_json(c, run, err) : ST_OK;
  if (!st && c->dir)
    st = save_files(c, run, err);
  if (st)
    return st;
  const json_t *range = json_object_get(outcome, "range");
  if (!is_done && range)
    fprintf(stderr, "%s:%lld:%lld: here is what the compiler's error is about\n", run_text_of(range, "file"),
            run_int_of(range, "line"), run_int_of(range, "col"));
  if (!is_done)
    return fail(err, ST_INPUT, "the run has %s: %.150s [%.40s]", run_text_of(run, "state"),
                run_text_of(outcome, "message"), run_text_of(outcome, "code"));
  if (!c->json || strcmp(c->json, "-") != 0)
    run_show_device(device);
  return all_pass(device) ? ST_OK : fail(err, ST_INPUT, "the host's outputs differ from what is expected");
}

static enum status run(struct command *c, struct error *err) {
  struct wire_answer a = {0};
  struct error ignored;
  json_t *o = NULL;
  char path[200];
  enum status st = wire_open(&c->wire, &c->connection, err);
  if (!st)
    st = begin(c, err);
  if (!st)
    st = follow(c, &o, err);
  if (!st) {
    st = show_end(c, o, err);
  } else if (*c->id && *c->wire.stop) {
    snprintf(path, sizeof path, "/api/v1/runs/%s", c->id);
    if (!send(c, "DELETE", path, NULL, ASK_MS, &a, &ignored))
      fprintf(stderr, "the run was taken back\n");
    buf_clear(&a.body);
  }
  json_decref(o);
  wire_close(c->connection);
  return st;
}

/* ---- options ------------------------------------------------------------------------------------------------------- */

static const char **option_of(struct command *c, const char *name) {
  return !strcmp(name, "--server")                                    ? &c->wire.url
         : !strcmp(name, "--ca-file")                                 ? &c->wire.ca_file
         : !strcmp(name, "--target")                                  ? &c->target
         : !strcmp(name, "--kernel")                                  ? &c->kernel
         : !strcmp(name, "--run")                                     ? &c->what
         : !strcmp(name, "--lnc")                                     ? &c->lnc
         : !strcmp(name, "-o")                                        ? &c->dir
         : !strcmp(name, "--json")                                    ? &c->json
         : !strcmp(name, "--input") && c->n_inputs < INPUTS_MAX       ? &c->inputs[c->n_inputs++]
         : !strcmp(name, "--cc-option") && c->n_options < OPTIONS_MAX ? &c->options[c->n_options++]
                                                                      : NULL;
}

/* False: wrong usage. */
static bool read_arguments(struct command *c, int argc, char **argv) {
  for (int i = 1; i < argc; i++) {
    if (!strcmp(argv[i], "--allow-http")) {
      c->wire.allows_plain = true;
    } else if (!strncmp(argv[i], "--cc-option=", 12) && c->n_options < OPTIONS_MAX) {
      c->options[c->n_options++] = argv[i] + 12;
    } else if (argv[i][0] != '-' || !argv[i][1]) {
      if (c->n_files > FILES_MAX)
        return false;
      c->files[c->n_files++] = argv[i];
    } else {
      const char **to = i + 1 < argc ? option_of(c, argv[i]) : NULL;
      if (!to)
        return false;
      *to = argv[++i];
    }
  }
  return c->n_files > 0 && c->wire.url;
}

int runner_run_main(int argc, char **argv, const volatile sig_atomic_t *stop) {
  struct command c = {.what = "execute", .wire = {.stop = stop}};
  struct error err = {0};
  for (int i = 1; i < argc; i++)
    if (!strcmp(argv[i], "--help") || !strcmp(argv[i], "-h")) {
      fputs(usage, stdout);
      return EXIT_DONE;
    }
  if (!read_arguments(&c, argc, argv)) {
    fputs(usage, stderr);
    return EXIT_USAGE;
  }
  const enum status st = run(&c, &err);
  if (!st)
    return EXIT_DONE;
  fprintf(stderr, "nkx: %s\n", err.text);
  return st == ST_INPUT ? EXIT_REFUSED : EXIT_FAULT;
}
