/* POST /api/v1/runs: compiles and simulates the kernel, or finds its result, and queues a run of it on a Neuron host. */
#include "api/runs_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/compile.h"
#include "base/json.h"
#include "driver/frame_scan.h"
#include "job/export.h"
#include "neff/tensors.h"
#include "neff/vendor.h"

enum { COMPILER_OPTIONS_MAX = 32 };

/* ---- the request --------------------------------------------------------------------------------------------------- */

/* Takes the member "run" out of the request: what is to be done with the kernel.  "nki" makes no NEFF. */
static enum status take_wants(json_t *root, int *wants, struct error *err) {
  const json_t *v = json_object_get(root, "run");
  const char *text = v ? json_string_value(v) : "execute";
  *wants = !text                      ? 0
           : !strcmp(text, "compile") ? RUN_COMPILE
           : !strcmp(text, "execute") ? RUN_COMPILE | RUN_EXECUTE
           : !strcmp(text, "profile") ? RUN_COMPILE | RUN_EXECUTE | RUN_PROFILE
           : !strcmp(text, "nki")     ? RUN_NKI
                                      : 0;
  json_object_del(root, "run");
  return *wants ? ST_OK : fail(err, ST_INPUT, "run: expected \"compile\", \"execute\", \"profile\" or \"nki\"");
}

/* Checks what is passed on to the vendor's compiler; the runner does so again. */
static enum status check_compiler(const json_t *o, struct error *err) {
  const char *extra[COMPILER_OPTIONS_MAX];
  const json_t *list = json_object_get(o, "options"), *lnc = json_object_get(o, "lnc"), *v;
  const char *key;
  size_t i;
  if (!json_is_object(o))
    return fail(err, ST_INPUT, "compiler: expected an object with \"options\" and \"lnc\"");
  json_object_foreach((json_t *)o, key, v) {
    if (strcmp(key, "options") != 0 && strcmp(key, "lnc") != 0)
      return fail(err, ST_INPUT, "compiler.%.40s: there is no such field", key);
  }
  if (lnc && (!json_is_integer(lnc) || json_integer_value(lnc) < 1 || json_integer_value(lnc) > 2))
    return fail(err, ST_INPUT, "compiler.lnc: expected 1 or 2");
  if (list && (!json_is_array(list) || json_array_size(list) > COMPILER_OPTIONS_MAX))
    return fail(err, ST_INPUT, "compiler.options: expected at most %d texts", COMPILER_OPTIONS_MAX);
  json_array_foreach((json_t *)list, i, v) {
    extra[i] = json_string_value(v);
    if (!extra[i])
      return fail(err, ST_INPUT, "compiler.options: expected texts");
  }
  struct error why;
  return vendor_check_options((int)json_array_size(list), extra, &why)
             ? fail(err, ST_INPUT, "compiler.options: %.160s", why.text)
             : ST_OK;
}

/* Takes the member "compiler" out of the request. */
static enum status take_compiler(struct run_state_of *s, struct error *err) {
  s->compiler = json_incref(json_object_get(s->body, "compiler"));
  json_object_del(s->body, "compiler");
  return s->compiler ? check_compiler(s->compiler, err) : ST_OK;
}

static enum status read_job(struct arena *a, const json_t *root, struct job *job, struct error *err) {
  const enum status st = job_read(a, root, job, err);
  if (st)
    return st;
  if (job->value.is_set || job->tune.seconds || job->upgrade || job->shrink.is_set || job->stop_after)
    return fail(err, ST_INPUT,
                "options: a run takes a kernel through all stages; value, tune, shrink, upgrade and stop_after "
                "are not for it");
  if (job->version)
    return fail(err, ST_INPUT, "version: a run is made by today's compiler");
  if (job->language == LANG_NEFF || job->language == LANG_MLIR)
    return fail(err, ST_INPUT,
                "language: a runner gets HLO, and there is no way for %s into the vendor's compiler; a simulation "
                "package of it runs on the simulated machine (nkx neff pack, nkx run)",
                job->language == LANG_NEFF ? "a NEFF" : "MLIR or NISA text");
  job->simulate = job->artifacts = job->for_device = true;
  return ST_OK;
}

static enum status parse(struct request *rq, struct error *err) {
  struct run_state_of *s = rq->state;
  json_error_t jerr;
  struct arena a;
  struct job job;
  enum status st = compile_check_nesting(&rq->body, err);
  if (st)
    return st;
  s->body = json_loadb(buf_text(&rq->body), rq->body.len, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &jerr);
  if (!s->body)
    return fail(err, ST_INPUT, "line %d column %d: %s", jerr.line, jerr.column, jerr.text);
  if (!json_is_object(s->body))
    return fail(err, ST_INPUT, "expected a JSON object");
  st = take_wants(s->body, &s->ask.wants, err);
  if (!st)
    st = take_compiler(s, err);
  if (!st)
    st = compile_arena(&a, rq->body.len, err);
  if (st)
    return st;
  st = read_job(&a, s->body, &job, err);
  if (!st)
    s->ask.target = target_name(job.target);
  arena_clear(&a);
  return st;
}

/* ---- whether a runner is there ------------------------------------------------------------------------------------- */

static int can_of(const json_t *list) {
  int can = 0;
  size_t i;
  json_t *v;
  json_array_foreach((json_t *)list, i, v) {
    const char *name = json_string_value(v);
    can |= !name                      ? 0
           : !strcmp(name, "compile") ? RUN_COMPILE
           : !strcmp(name, "execute") ? RUN_EXECUTE
           : !strcmp(name, "profile") ? RUN_PROFILE
           : !strcmp(name, "nki")     ? RUN_NKI
                                      : 0;
  }
  return can;
}

static void see_runner(void *user, const struct runner_seen *r) {
  struct run_state_of *s = user;
  json_t *about = r->is_connected ? json_loads(r->about, 0, NULL) : NULL;
  const char *target = json_string_value(json_object_get(about, "target"));
  const int can = can_of(json_object_get(about, "can"));
  s->found |= about && (!target || !strcmp(target, s->ask.target)) && (can & s->ask.wants) == s->ask.wants;
  json_decref(about);
}

static void look_for_runner(struct request *rq, struct db *db) {
  struct run_state_of *s = rq->state;
  s->st = store_each_runner(db, see_runner, s, &s->err);
}

/* ---- what the run takes -------------------------------------------------------------------------------------------- */

struct gathering {
  json_t *kernel;
  int n_kernels;
  char why[200]; /* of the first error, else of the last warning */
  bool is_error;
};

static void note_diagnostic(struct gathering *g, const json_t *d) {
  const char *severity = json_string_value(json_object_get(d, "severity"));
  const char *message = json_string_value(json_object_get(d, "message"));
  const bool is_error = severity && !strcmp(severity, "error");
  if (g->is_error || !message || (!is_error && (!severity || strcmp(severity, "warning") != 0)))
    return;
  g->is_error = is_error;
  snprintf(g->why, sizeof g->why, "%s", message);
}

static bool see_frame(void *user, const char *json, size_t len) {
  struct gathering *g = user;
  struct frame f;
  if (frame_scan(json, len, &f, NULL) || (f.kind != FRAME_KERNEL && f.kind != FRAME_DIAGNOSTIC))
    return true;
  json_t *o = json_loadb(json, len, 0, NULL);
  if (!o)
    return false;
  if (f.kind == FRAME_DIAGNOSTIC)
    note_diagnostic(g, json_object_get(o, "diagnostic"));
  else if (!g->n_kernels++)
    g->kernel = json_incref(o);
  json_decref(o);
  return true;
}

/* {"kernel", "inputs", "outputs", "compiler"?}: what readers and runners are told. */
static enum status put_about(struct run_state_of *s, const json_t *kernel, const char *key) {
  json_t *o = json_pack("{s:O,s:O,s:O,s:s}", "kernel", json_object_get(kernel, "name"), "inputs",
                        json_object_get(kernel, "inputs"), "outputs", json_object_get(kernel, "outputs"), "key", key);
  if (o && s->compiler)
    json_object_set(o, "compiler", s->compiler);
  char *text = o ? json_dumps(o, JSON_COMPACT) : NULL;
  json_decref(o);
  if (text)
    buf_puts(&s->ask_about, text);
  free(text);
  return !text                       ? fail(&s->err, ST_NOMEM, "a run")
         : buf_status(&s->ask_about) ? fail(&s->err, ST_INPUT, "the kernel has too many inputs and outputs")
                                     : ST_OK;
}

static bool add_file(struct request *rq, const char *kernel, const char *name) {
  struct run_state_of *s = rq->state;
  const int n = s->ask.n_files;
  char path[600];
  const char *type;
  snprintf(path, sizeof path, "%.500s/%s", kernel, name);
  if (!export_file(api_part(rq)->work, path, &s->files[n], &type))
    return false;
  s->ask.files[s->ask.n_files++] = (struct run_file){name, buf_text(&s->files[n]), s->files[n].len};
  return true;
}

/* The process that ran the kernel's Python has made the files: they may be anything. */
static bool are_arrays(const struct run_state_of *s) {
  bool ok = true;
  for (int i = 0; i < s->ask.n_files && ok; i++) {
    const char *dot = strrchr(s->ask.files[i].name, '.');
    struct tensors t;
    struct arena a;
    if (!dot || strcmp(dot, ".safetensors") != 0)
      continue; /* the HLO, and the places */
    arena_init(&a);
    ok = !tensors_read(&a, s->ask.files[i].data, s->ask.files[i].len, &t, NULL);
    arena_clear(&a);
  }
  return ok;
}

static enum status add_files(struct request *rq, const struct gathering *g) {
  struct run_state_of *s = rq->state;
  const char *name = json_string_value(json_object_get(g->kernel, "name"));
  bool ok = name && add_file(rq, name, "hlo.pb");
  if (name && !ok && !g->is_error)
    return fail(&s->err, ST_INPUT,
                "%.60s is an NKI kernel, and a runner gets HLO: only the vendor's own NKI compiler embeds it there. "
                "Its simulation "
                "package, of the menu Download, runs on the simulated machine.",
                name);
  if (ok && s->ask.wants & RUN_EXECUTE)
    ok = add_file(rq, name, "inputs.safetensors") && add_file(rq, name, "expected.safetensors");
  if (ok)
    (void)!add_file(rq, name, RUN_PLACES); /* a kernel that is HLO already has none */
  return ok && are_arrays(s) ? ST_OK
                             : fail(&s->err, ST_INPUT, "This kernel cannot be run on a Neuron host: %s.",
                                    *g->why ? g->why : "it has no HLO, or no inputs");
}

/* On a store thread for what takes long. */
static void gather(struct request *rq, struct db *db) {
  struct run_state_of *s = rq->state;
  struct work *w = api_part(rq)->work;
  struct gathering g = {.n_kernels = 0};
  (void)db;
  const bool has_all = work_each_frame(w, see_frame, &g);
  if (!has_all)
    s->st = fail(&s->err, ST_NOMEM, "a run");
  else if (g.n_kernels != 1)
    s->st = fail(&s->err, ST_INPUT,
                 g.n_kernels ? "The source has several kernels: name one in \"kernel\"."
                             : "This kernel cannot be run on a Neuron host: %s.",
                 *g.why ? g.why : "the source has none");
  else
    s->st = add_files(rq, &g);
  if (!s->st)
    s->st = put_about(s, g.kernel, work_key(w));
  s->ask.about = buf_text(&s->ask_about);
  json_decref(g.kernel);
}

/* ---- the queue ----------------------------------------------------------------------------------------------------- */

static void put(struct request *rq, struct db *db) {
  struct run_state_of *s = rq->state;
  const struct services *services = services_of(rq);
  const struct runs_config *cfg = &services->runs->cfg;
  char address[ADDRESS_TEXT_SIZE], owner[IDENT_LEN + 1];
  http_client_key(rq, address);
  ident_derive(store_secret(services->store), STORE_SECRET_SIZE, address, strlen(address), owner);
  ident_hash(owner, IDENT_LEN, &s->ask.owner);
  s->st = ident_new(s->id, &s->err);
  if (s->st)
    return;
  ident_hash(s->id, IDENT_LEN, &s->ask.id);
  s->st = store_put_run(db, &s->ask, cfg->most, cfg->most_own, &s->put, &s->err);
}

static enum MHD_Result send_created(struct request *rq) {
  struct run_state_of *s = rq->state;
  if (s->put == RUN_QUEUE_FULL)
    return http_problem(rq, PB_BUSY, "Too many runs wait for Neuron hosts. Try again in a moment.", NULL);
  if (s->put == RUN_OWNER_FULL)
    return http_problem(rq, PB_RUNS, NULL, NULL);
  runs_note(rq, RUNS_ASKED);
  runs_wake(rq);
  buf_putc(&s->answer, '{');
  json_put_field_str(&s->answer, "id", s->id);
  json_put_key(&s->answer, "url");
  buf_printf(&s->answer, "\"/api/v1/runs/%s\"", s->id);
  json_put_field_str(&s->answer, "key", work_key(api_part(rq)->work));
  buf_puts(&s->answer, "}\n");
  return http_json(rq, MHD_HTTP_CREATED, buf_text(&s->answer), s->answer.len, false);
}

/* ---- the handler, which is called again after each of its steps ---------------------------------------------------- */

static enum MHD_Result start(struct request *rq) {
  struct error err;
  if (!services_of(rq)->runs->cfg.most)
    return http_problem(rq, PB_NO_RUNNER, "This server gives no runs to Neuron hosts (--runs 0).", NULL);
  if (!run_state_new(rq))
    return MHD_NO;
  const enum status st = parse(rq, &err);
  return st ? http_status_problem(rq, st, &err) : api_call_store(rq, STORE_READ, look_for_runner);
}

static enum MHD_Result compile(struct request *rq) {
  struct run_state_of *s = rq->state;
  struct arena a;
  struct job job;
  struct error err;
  enum MHD_Result answer;
  if (run_failed(rq, &answer))
    return answer;
  if (!s->found)
    return http_problem(rq, PB_NO_RUNNER, NULL, NULL);
  enum status st = compile_arena(&a, rq->body.len, &err);
  if (!st) {
    st = read_job(&a, s->body, &job, &err);
    if (!st)
      st = compile_start(rq, &job, &err);
    arena_clear(&a);
  }
  buf_clear(&rq->body);
  api_part(rq)->call.state = CALL_NONE;
  return st ? http_status_problem(rq, st, &err) : api_runs_post(rq);
}

enum MHD_Result api_runs_post(struct request *rq) {
  const struct run_state_of *s = rq->state;
  struct api_part *part = api_part(rq);
  enum MHD_Result answer;
  if (!s)
    return start(rq);
  if (!part->work)
    return compile(rq);
  if (part->call.state == CALL_NONE) {
    if (!api_wait(rq))
      return MHD_YES;
    return work_look(part->work, NULL, NULL) == WORK_REFUSED ? compile_refused(rq)
                                                             : api_call_store(rq, STORE_BUILD, gather);
  }
  if (s->st == ST_INPUT)
    return http_problem(rq, PB_NO_RUN, s->err.text, NULL);
  if (run_failed(rq, &answer))
    return answer;
  return *s->id ? send_created(rq) : api_call_store(rq, STORE_WRITE, put);
}
