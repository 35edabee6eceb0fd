/* From the frames of a work to Compiler Explorer's answer.
 *
 * Only what the client asked for is parsed: usually the last stage of each kernel, and the diagnostics.  An ordinary
 * answer stays below a megabyte, because clients refuse larger ones; lines beyond that are left out and counted.
 */
#include "ce/reply.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "driver/frame_scan.h"
#include "work/work.h"

enum { STAGES_MAX = GATHER_KERNELS_MAX * GATHER_STAGES_MAX }; /* of one job */

/* ---- frames ------------------------------------------------------------------------------------------------------ */

static void take_frame(struct reply *r, const struct frame *f, const char *line, size_t len) {
  const struct frame_member *m;
  int kernel;
  json_t *v;
  switch (f->kind) {
  case FRAME_KERNEL:
    v = json_loadb(line, len, JSON_ALLOW_NUL, NULL);
    json_array_append(r->names, json_object_get(v, "name"));
    json_array_append_new(r->kernels, v);
    r->n_kernels++;
    break;
  case FRAME_SOURCES:
    v = json_loadb(line, len, JSON_ALLOW_NUL, NULL);
    source_table_add(&r->sources, v);
    json_decref(v);
    break;
  case FRAME_STAGE:
    kernel = (int)frame_int(f, "kernel");
    assert(r->n_stages < STAGES_MAX && kernel < GATHER_KERNELS_MAX);
    r->stages[r->n_stages++] = (struct piece){kernel, r->n_of_kernel[kernel]++};
    break;
  case FRAME_SIMULATION:
    m = frame_get(f, "simulation");
    v = json_loadb(m->value, m->value_len, JSON_ALLOW_NUL, NULL);
    reply_take_simulation(r, (int)frame_int(f, "kernel"), v);
    json_decref(v);
    break;
  case FRAME_PROFILE:
    m = frame_get(f, "text");
    v = m ? json_loadb(m->value, m->value_len, JSON_ALLOW_NUL | JSON_DECODE_ANY, NULL) : NULL;
    reply_take_profile(r, v);
    json_decref(v);
    break;
  case FRAME_DIAGNOSTIC:
    m = frame_get(f, "diagnostic");
    v = json_loadb(m->value, m->value_len, JSON_ALLOW_NUL, NULL);
    reply_add_diagnostic(r, v);
    json_decref(v);
    break;
  case FRAME_END:
    m = frame_get(f, "status");
    r->is_ok = m->value_len == 4 && !memcmp(m->value, "\"ok\"", 4);
    r->time_ms = frame_int(f, "time_us") / 1000;
    break;
  default:
    break;
  }
}

static bool take_line(void *user, const char *line, size_t len) {
  struct frame f;
  if (!frame_scan(line, len, &f, NULL))
    take_frame(user, &f, line, len);
  return true;
}

/* ---- parts of the answer ----------------------------------------------------------------------------------------- */

static int build_code(const struct reply *r) {
  return r->is_ours ? -1 : r->build_failed;
}

static void put_usual(const struct reply *r, json_t *o, int code) {
  json_object_set_new(o, "code", json_integer(code));
  json_object_set_new(o, "okToCache", json_boolean(!r->hit_limit && !r->is_ours));
  json_object_set_new(o, "timedOut", json_boolean(r->hit_limit));
  json_object_set_new(o, "truncated", json_boolean(r->is_cut));
  json_object_set_new(o, "execTime", json_integer(r->time_ms));
}

/* The command line: "--target=trn2", and what the user wrote. */
static json_t *command_line(const struct ce_ask *q) {
  json_t *list = json_array();
  if (!q->args.has_target)
    json_array_append_new(list, json_sprintf("--target=%s", target_name(q->target)));
  json_array_extend(list, q->words);
  return list;
}

static json_t *build_result(const struct reply *r) {
  json_t *o = json_pack("{s:O,s:O,s:s,s:o,s:[]}", "stdout", r->out_lines, "stderr", r->err_lines, "inputFilename",
                        CE_FILENAME, "compilationOptions", command_line(r->ask), "downloads");
  put_usual(r, o, build_code(r));
  return o;
}

/* The check and the simulated run, as far as they were asked for. */
static json_t *output_of_runs(struct reply *r, bool is_checked) {
  json_t *lines = is_checked ? reply_numerics(r) : json_array();
  if (r->ask->args.simulate)
    json_array_extend(lines, r->run_lines);
  return lines;
}

/* The check, and the simulated run if it is asked for, in the form of a program's run. */
static json_t *execution(struct reply *r) {
  bool did = !r->build_failed;
  json_t *o = json_pack("{s:b,s:o,s:[],s:o}", "didExecute", did, "stdout", did ? output_of_runs(r, true) : json_array(),
                        "stderr", "buildResult", build_result(r));
  put_usual(r, o, did ? r->check_failed : -1);
  return o;
}

/* ---- the answer -------------------------------------------------------------------------------------------------- */

static void put_tools(struct reply *r, json_t *out) {
  json_t *tools = json_array();
  if (r->ask->has_numerics)
    json_array_append_new(tools,
                          json_pack("{s:s,s:s,s:i,s:o,s:[]}", "id", CE_TOOL, "name", "Each stage against NumPy", "code",
                                    r->build_failed || r->check_failed, "stdout", reply_numerics(r), "stderr"));
  if (r->ask->has_run)
    json_array_append_new(tools,
                          json_pack("{s:s,s:s,s:i,s:O,s:[]}", "id", CE_RUN_TOOL, "name", "Simulated machine", "code",
                                    r->build_failed || r->check_failed, "stdout", r->run_lines, "stderr"));
  json_object_set_new(out, "tools", tools);
}

static json_t *compilation(struct reply *r) {
  const struct ce_ask *q = r->ask;
  if (!q->executes && !r->build_failed) { /* clients show it below the listing */
    json_t *lines = output_of_runs(r, q->args.check);
    json_array_extend(r->out_lines, lines);
    json_decref(lines);
  }
  json_t *out =
      json_pack("{s:O,s:O,s:s,s:o,s:s,s:s}", "stdout", r->out_lines, "stderr", r->err_lines, "inputFilename",
                CE_FILENAME, "compilationOptions", command_line(q), "languageId", "mlir", "instructionSet", "nisa");
  if (!q->skip_asm)
    reply_put_asm(r, out);
  put_usual(r, out, build_code(r));
  put_tools(r, out);
  if (q->wants_pipeline)
    json_object_set_new(out, "optPipelineOutput", reply_pipeline(r));
  if (q->wants_ir)
    json_object_set_new(out, "irOutput", reply_ir(r));
  if (q->wants_remarks)
    json_object_set_new(out, "optOutput", reply_remarks(r));
  if (q->executes && !r->build_failed)
    json_object_set_new(out, "execResult", execution(r));
  return out;
}

static bool open_reply(struct reply *r, const struct ce_ask *q) {
  *r = (struct reply){.ask = q,
                      .names = json_array(),
                      .kernels = json_array(),
                      .parsed = json_array(),
                      .out_lines = json_array(),
                      .err_lines = json_array(),
                      .run_lines = json_array()};
  r->stages = calloc(STAGES_MAX, sizeof *r->stages);
  return r->stages != NULL;
}

static void close_reply(struct reply *r) {
  free(r->stages);
  source_table_clear(&r->sources);
  json_decref(r->names);
  json_decref(r->kernels);
  json_decref(r->parsed);
  json_decref(r->out_lines);
  json_decref(r->err_lines);
  json_decref(r->run_lines);
}

json_t *ce_reply(const struct ce_ask *q, struct work *w, bool was_cached) {
  struct reply r;
  const json_t *name;
  size_t i;
  json_t *out = NULL;
  if (!open_reply(&r, q))
    return NULL;
  r.work = w;
  if (work_each_frame(w, take_line, &r)) {
    for (int k = 0; k < r.n_stages; k++)
      json_array_append_new(r.parsed, json_null());
    r.build_failed |= !r.is_ok && !r.check_failed;
    json_array_foreach(q->left_out, i, name) reply_add_formatted(
        r.err_lines, "note: %.200s was left out: the name of a Python file is a path like pkg/util.py",
        json_string_value(name));
    out = q->is_executor ? execution(&r) : compilation(&r);
    if (was_cached) { /* the clients read the misspelt name */
      json_object_set_new(out, "retreivedFromCache", json_true());
      json_object_set_new(out, "retrievedFromCache", json_true());
    }
  }
  close_reply(&r);
  return out;
}

json_t *ce_reply_complaint(const struct ce_ask *q) {
  struct reply r;
  if (!open_reply(&r, q))
    return NULL;
  r.build_failed = true;
  reply_add_error(r.err_lines, q->args.complaint);
  json_t *out = q->is_executor ? execution(&r) : compilation(&r);
  close_reply(&r);
  return out;
}
