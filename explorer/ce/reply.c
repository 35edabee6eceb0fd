/* From the frames of a work to Compiler Explorer's answer.
 *
 * Only what the client asked for is parsed: usually the last stage of each kernel, and the diagnostics.  An ordinary
 * answer stays below a megabyte, because clients refuse more; lines beyond are left out and counted.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ce/internal.h"
#include "base/diag.h"
#include "driver/frame_scan.h"

enum {
  STAGES_MAX = 8192,      /* above what one job may send */
  ASM_BYTES_MAX = 850000, /* of the lines of `asm` as JSON */
  LINE_BYTES = 70,        /* what a line takes besides its text */
  SEVERITY_NOTE = 1,
  SEVERITY_WARNING,
  SEVERITY_ERROR,
};

/* One stage, unparsed. */
struct piece {
  const char *text;
  size_t len;
  int kernel;
};

struct reply {
  const struct ce_ask *ask;
  struct piece *stages;
  int n_stages, n_kernels;
  json_t *names;   /* of the kernels */
  json_t *kernels; /* their frames */
  json_t *parsed;  /* the stages that were parsed: by index, null otherwise */
  json_t *out_lines, *err_lines;
  bool is_ok, build_failed, check_failed, hit_limit, is_ours, is_cut;
  long time_ms;
};

/* ---- lines ---------------------------------------------------------------------------------------------------------
 */

static void add_line(json_t *to, const char *text, size_t len) {
  json_array_append_new(to, json_pack("{s:o}", "text", ce_text(text, len)));
}

/* Each line of the text as one of `to`. */
static void add_lines(json_t *to, const char *text, size_t len) {
  for (const char *p = text, *end = text + len; p < end;) {
    const char *newline = memchr(p, '\n', (size_t)(end - p));
    size_t n = newline ? (size_t)(newline - p) : (size_t)(end - p);
    add_line(to, p, n);
    p += n + 1;
  }
}

static void add_formatted(json_t *to, const char *fmt, ...) PRINTF(2, 3);
static void add_formatted(json_t *to, const char *fmt, ...) {
  va_list ap;
  va_start(ap, fmt);
  json_array_append_new(to, json_pack("{s:o}", "text", json_vsprintf(fmt, ap)));
  va_end(ap);
}

static const char *string_of(const json_t *o, const char *key) {
  const char *s = json_string_value(json_object_get(o, key));
  return s ? s : "";
}

static bool is_users(const json_t *range) {
  return !strcmp(string_of(range, "file"), CE_FILENAME);
}

static json_int_t at_least_one(const json_t *v) {
  json_int_t n = json_integer_value(v);
  return n < 1 ? 1 : n;
}

/* ---- diagnostics ---------------------------------------------------------------------------------------------------
 */

/* "<source>:L:C: error: message" with the same as a tag, or without place and tag.  The tag's text has the word in front,
 * too: a client cuts off everything up to the first ": ". */
static void add_message(json_t *to, const json_t *range, const char *word, int severity, const char *text) {
  size_t n = strcspn(text, "\n");
  json_t *first = ce_text(text, n), *line = json_object();
  json_t *said = json_sprintf("%s: %s", word, json_string_value(first));
  json_decref(first);
  if (range && is_users(range)) {
    json_int_t l = at_least_one(json_object_get(range, "line")), c = at_least_one(json_object_get(range, "col"));
    json_object_set_new(line, "text",
                        json_sprintf("<source>:%lld:%lld: %s", (long long)l, (long long)c, json_string_value(said)));
    json_object_set_new(line, "tag",
                        json_pack("{s:I,s:I,s:O,s:i}", "line", l, "column", c, "text", said, "severity", severity));
    json_object_set_new(json_object_get(line, "tag"), "endline",
                        json_integer(at_least_one(json_object_get(range, "end_line"))));
    json_object_set_new(json_object_get(line, "tag"), "endcolumn",
                        json_integer(at_least_one(json_object_get(range, "end_col"))));
  } else {
    json_object_set(line, "text", said);
  }
  json_decref(said);
  json_array_append_new(to, line);
  if (text[n])
    add_lines(to, text + n + 1, strlen(text + n + 1));
}

static void add_diagnostic(struct reply *r, const json_t *d) {
  const char *word = string_of(d, "severity"), *code = string_of(d, "code"), *message = string_of(d, "message");
  const json_t *range = json_object_get(d, "range"), *call;
  bool is_error = !strcmp(word, "error");
  size_t i;
  if (!strcmp(code, diag_code_name(DG_KERNEL_OUTPUT))) {
    add_lines(r->out_lines, message, strlen(message));
    return;
  }
  r->check_failed |= !strcmp(code, diag_code_name(DG_CHECK_FAILED));
  r->build_failed |= is_error && strcmp(code, diag_code_name(DG_CHECK_FAILED)) != 0;
  r->hit_limit |= !strcmp(code, diag_code_name(DG_TIME_LIMIT));
  r->is_ours |= !strcmp(code, diag_code_name(DG_WORKER_DIED)) || !strcmp(code, diag_code_name(DG_INTERNAL));
  add_message(r->err_lines, range, *word ? word : "note",
              is_error                   ? SEVERITY_ERROR
              : !strcmp(word, "warning") ? SEVERITY_WARNING
                                         : SEVERITY_NOTE,
              message);
  json_array_foreach(json_object_get(d, "calls"), i, call)
      add_message(r->err_lines, call, "note", SEVERITY_NOTE, "called from here");
  if (*string_of(d, "hint"))
    add_message(r->err_lines, range, "note", SEVERITY_NOTE, string_of(d, "hint"));
}

/* ---- frames --------------------------------------------------------------------------------------------------------
 */

static void take_frame(struct reply *r, const struct frame *f, const char *line, size_t len) {
  const struct frame_member *m;
  json_t *v;
  switch (f->kind) {
  case FRAME_KERNEL:
    v = json_loadb(line, len, JSON_ALLOW_NUL, NULL);
    json_array_append(r->names, json_object_get(v, "name"));
    json_array_append_new(r->kernels, v);
    r->n_kernels++;
    break;
  case FRAME_STAGE:
    m = frame_get(f, "stage");
    if (r->n_stages < STAGES_MAX)
      r->stages[r->n_stages++] = (struct piece){m->value, m->value_len, (int)frame_int(f, "kernel")};
    break;
  case FRAME_DIAGNOSTIC:
    m = frame_get(f, "diagnostic");
    v = json_loadb(m->value, m->value_len, JSON_ALLOW_NUL, NULL);
    add_diagnostic(r, v);
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

static void take_frames(struct reply *r, const char *frames, size_t len) {
  struct frame f;
  for (const char *p = frames, *end = frames + len; p < end;) {
    const char *newline = memchr(p, '\n', (size_t)(end - p));
    size_t n = newline ? (size_t)(newline - p) : (size_t)(end - p);
    if (!frame_scan(p, n, &f, NULL))
      take_frame(r, &f, p, n);
    p += n + 1;
  }
}

/* The stage as JSON, parsed once; borrowed. */
static const json_t *stage(struct reply *r, int i) {
  json_t *v = json_array_get(r->parsed, (size_t)i);
  if (json_is_null(v)) {
    v = json_loadb(r->stages[i].text, r->stages[i].len, JSON_ALLOW_NUL, NULL);
    json_array_set_new(r->parsed, (size_t)i, v ? v : json_object());
    v = json_array_get(r->parsed, (size_t)i);
  }
  return v;
}

/* The last stage of kernel k, or -1. */
static int last_stage(const struct reply *r, int k) {
  for (int i = r->n_stages - 1; i >= 0; i--)
    if (r->stages[i].kernel == k)
      return i;
  return -1;
}

static const char *kernel_name(const struct reply *r, int k) {
  const char *name = json_string_value(json_array_get(r->names, (size_t)k));
  return name ? name : "kernel";
}

/* ---- asm -----------------------------------------------------------------------------------------------------------
 */

/* The place in the user's source that a line of IR came from, innermost first; else the first place there is; null for
 * none.  file: null means the user's source to every client. */
static json_t *source_of(const json_t *line) {
  const json_t *src = json_object_get(line, "src"), *range, *best = json_array_get(src, 0);
  size_t i;
  json_array_foreach(src, i, range) {
    if (is_users(range)) {
      best = range;
      break;
    }
  }
  if (!best)
    return json_null();
  json_t *file = is_users(best) ? json_null() : json_incref(json_object_get(best, "file"));
  return json_pack("{s:o,s:I,s:I}", "file", file, "line", at_least_one(json_object_get(best, "line")), "column",
                   at_least_one(json_object_get(best, "col")));
}

/* The name in `func.func @NAME(`, in NISA and the other stages; false if the line defines nothing. */
static bool defines(const char *text, size_t n, const char **name, size_t *name_len) {
  const char *def = memmem(text, n, "func.func ", 10), *at = def ? memchr(def, '@', n - (size_t)(def - text)) : NULL;
  if (!at)
    return false;
  *name = at + 1;
  *name_len = strcspn(at + 1, "( ");
  return true;
}

struct listing {
  json_t *lines, *labels;
  size_t bytes, text_bytes, n_left_out;
};

static void list_line(struct listing *l, const char *text, size_t n, json_t *source) {
  const char *name;
  size_t name_len;
  l->text_bytes += n + 1;
  if (l->bytes + n + LINE_BYTES > ASM_BYTES_MAX) {
    l->bytes = ASM_BYTES_MAX;
    l->n_left_out++;
    json_decref(source);
    return;
  }
  l->bytes += n + LINE_BYTES;
  json_array_append_new(l->lines, json_pack("{s:o,s:o}", "text", json_stringn(text, n), "source", source));
  if (l->labels && defines(text, n, &name, &name_len)) {
    char key[200];
    snprintf(key, sizeof key, "%.*s", (int)name_len, name);
    json_object_set_new(l->labels, key, json_integer((json_int_t)json_array_size(l->lines)));
  }
}

static void list_stage(struct listing *l, const json_t *stage) {
  const json_t *text = json_object_get(stage, "text"), *lines = json_object_get(stage, "lines");
  const char *p = json_string_value(text), *end = p ? p + json_string_length(text) : NULL;
  for (size_t i = 0; p && p < end; i++) {
    const char *newline = memchr(p, '\n', (size_t)(end - p));
    size_t n = newline ? (size_t)(newline - p) : (size_t)(end - p);
    list_line(l, p, n, source_of(json_array_get(lines, i)));
    p += n + 1;
  }
}

static void list_note(struct listing *l, const char *fmt, ...) PRINTF(2, 3);
static void list_note(struct listing *l, const char *fmt, ...) {
  va_list ap;
  va_start(ap, fmt);
  json_array_append_new(l->lines, json_pack("{s:o,s:n}", "text", json_vsprintf(fmt, ap), "source"));
  va_end(ap);
}

static json_t *failed_listing(void) {
  return json_pack("[{s:s,s:n,s:[]}]", "text", "<Compilation failed>", "source", "labels");
}

static void put_asm(struct reply *r, json_t *out) {
  struct listing l = {.lines = json_array(), .labels = json_object()};
  for (int k = 0; k < r->n_kernels && !r->build_failed; k++) {
    int i = last_stage(r, k);
    if (r->n_kernels > 1)
      list_note(&l, "// kernel %s", kernel_name(r, k));
    if (i >= 0)
      list_stage(&l, stage(r, i));
  }
  if (l.n_left_out)
    list_note(&l, "// [Truncated] %zu lines more", l.n_left_out);
  r->is_cut = l.n_left_out > 0;
  if (r->build_failed) {
    json_decref(l.lines);
    l.lines = failed_listing();
  }
  json_object_set_new(out, "asm", l.lines);
  json_object_set_new(out, "labelDefinitions", l.labels);
  json_object_set_new(out, "asmSize", json_integer((json_int_t)l.text_bytes));
}

/* ---- the stages before ---------------------------------------------------------------------------------------------
 */

static json_t *text_lines(const json_t *stage) {
  json_t *lines = json_array();
  const json_t *text = json_object_get(stage, "text");
  if (json_is_string(text))
    add_lines(lines, json_string_value(text), json_string_length(text));
  return lines;
}

/* The passes of kernel k: what each got and what it made of it. */
static json_t *passes(struct reply *r, int k) {
  json_t *list = json_array(), *before = json_array();
  for (int i = 0; i < r->n_stages; i++) {
    if (r->stages[i].kernel != k)
      continue;
    const json_t *s = stage(r, i);
    bool is_machine = !strcmp(string_of(s, "dialect"), "nisa");
    json_t *after = text_lines(s);
    json_t *pass = json_pack("{s:s,s:b,s:b,s:o,s:O}", "name", string_of(s, "name"), "machine", is_machine, "irChanged",
                             json_is_true(json_object_get(s, "changed")), "before", before, "after", after);
    json_object_set(pass, "index", json_object_get(s, "index"));
    json_object_set(pass, "group", json_object_get(s, "phase"));
    json_object_set(pass, "stage", json_object_get(s, "dialect"));
    json_object_set_new(pass, "timeMs", json_integer(json_integer_value(json_object_get(s, "time_us")) / 1000));
    json_array_append_new(list, pass);
    before = after;
  }
  json_decref(before);
  return list;
}

static json_t *pipeline(struct reply *r) {
  json_t *results = json_object();
  for (int k = 0; k < r->n_kernels; k++)
    json_object_set_new(results, kernel_name(r, k), passes(r, k));
  return json_pack("{s:o,s:i}", "results", results, "compileTime", (int)r->time_ms);
}

/* The linalg as lowered; before that was reached, the last stage there is. */
static json_t *ir(struct reply *r) {
  struct listing l = {.lines = json_array()};
  for (int k = 0; k < r->n_kernels; k++) {
    int shown = last_stage(r, k);
    for (int i = 0; i < r->n_stages; i++)
      if (r->stages[i].kernel == k && !strcmp(string_of(stage(r, i), "name"), "hlo-to-linalg"))
        shown = i;
    if (shown >= 0)
      list_stage(&l, stage(r, shown));
  }
  return json_pack("{s:o}", "asm", l.lines);
}

static json_t *remark(const json_t *m, const char *function) {
  const json_t *src = json_array_get(json_object_get(m, "src"), 0);
  const char *text = string_of(m, "text");
  json_t *o = json_pack("{s:s,s:s,s:s,s:s,s:[{s:s}]}", "Pass", "Analysis", "Name", string_of(m, "pass"), "Function",
                        function, "displayString", text, "Args", "String", text);
  if (src)
    json_object_set_new(o, "DebugLoc",
                        json_pack("{s:s,s:I,s:I}", "File", is_users(src) ? "<source>" : string_of(src, "file"), "Line",
                                  at_least_one(json_object_get(src, "line")), "Column",
                                  at_least_one(json_object_get(src, "col"))));
  return o;
}

static json_t *remarks(struct reply *r) {
  json_t *list = json_array();
  for (int i = 0; i < r->n_stages; i++) {
    const json_t *m;
    size_t k;
    json_array_foreach(json_object_get(stage(r, i), "remarks"), k, m)
        json_array_append_new(list, remark(m, kernel_name(r, r->stages[i].kernel)));
  }
  return list;
}

/* ---- execution: the check -------------------------------------------------------------------------------------------
 */

static void tell_value(json_t *to, const char *role, const json_t *v) {
  char *shape = json_dumps(json_object_get(v, "shape"), JSON_COMPACT);
  add_formatted(to, "  %s %s: %s %s", role, string_of(v, "name"), string_of(v, "dtype"), shape ? shape : "");
  free(shape);
}

static void tell_check(json_t *to, const json_t *s) {
  const json_t *c = json_object_get(s, "check"), *reason = json_object_get(c, "reason");
  if (!c)
    return;
  if (json_is_string(reason))
    add_formatted(to, "  %s: %s, %s", string_of(s, "name"), string_of(c, "status"), json_string_value(reason));
  else
    add_formatted(to, "  %s: %s, max abs error %g, max rel error %g", string_of(s, "name"), string_of(c, "status"),
                  json_number_value(json_object_get(c, "max_abs_err")),
                  json_number_value(json_object_get(c, "max_rel_err")));
}

/* Shapes, and how far each stage is from NumPy. */
static json_t *numerics(struct reply *r) {
  json_t *lines = json_array();
  for (int k = 0; k < r->n_kernels; k++) {
    const json_t *kernel = json_array_get(r->kernels, (size_t)k), *v;
    size_t i;
    add_formatted(lines, "%s, each stage against NumPy", kernel_name(r, k));
    json_array_foreach(json_object_get(kernel, "inputs"), i, v) tell_value(lines, "input", v);
    json_array_foreach(json_object_get(kernel, "outputs"), i, v) tell_value(lines, "output", v);
    for (int s = 0; s < r->n_stages; s++)
      if (r->stages[s].kernel == k)
        tell_check(lines, stage(r, s));
  }
  return lines;
}

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

/* "--target=trn2" and what the user wrote: the command line. */
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

/* What a program's run is for a C compiler. */
static json_t *execution(struct reply *r) {
  bool did = !r->build_failed;
  json_t *o = json_pack("{s:b,s:o,s:[],s:o}", "didExecute", did, "stdout", did ? numerics(r) : json_array(), "stderr",
                        "buildResult", build_result(r));
  put_usual(r, o, did ? r->check_failed : -1);
  return o;
}

/* ---- the answer ----------------------------------------------------------------------------------------------------
 */

static void put_tools(struct reply *r, json_t *out) {
  json_t *tools = json_array();
  if (r->ask->has_numerics)
    json_array_append_new(tools,
                          json_pack("{s:s,s:s,s:i,s:o,s:[]}", "id", CE_TOOL, "name", "Each stage against NumPy", "code",
                                    r->build_failed || r->check_failed, "stdout", numerics(r), "stderr"));
  json_object_set_new(out, "tools", tools);
}

static json_t *compilation(struct reply *r) {
  const struct ce_ask *q = r->ask;
  json_t *out =
      json_pack("{s:O,s:O,s:s,s:o,s:s,s:s}", "stdout", r->out_lines, "stderr", r->err_lines, "inputFilename",
                CE_FILENAME, "compilationOptions", command_line(q), "languageId", "mlir", "instructionSet", "nisa");
  if (!q->skip_asm)
    put_asm(r, out);
  put_usual(r, out, build_code(r));
  put_tools(r, out);
  if (q->wants_pipeline)
    json_object_set_new(out, "optPipelineOutput", pipeline(r));
  if (q->wants_ir)
    json_object_set_new(out, "irOutput", ir(r));
  if (q->wants_remarks)
    json_object_set_new(out, "optOutput", remarks(r));
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
                      .err_lines = json_array()};
  r->stages = calloc(STAGES_MAX, sizeof *r->stages);
  return r->stages != NULL;
}

static void close_reply(struct reply *r) {
  free(r->stages);
  json_decref(r->names);
  json_decref(r->kernels);
  json_decref(r->parsed);
  json_decref(r->out_lines);
  json_decref(r->err_lines);
}

json_t *ce_reply(const struct ce_ask *q, struct work *w, bool was_cached) {
  struct reply r;
  size_t len;
  json_t *out = NULL;
  char *frames = work_frames(w, &len);
  if (frames && open_reply(&r, q)) {
    take_frames(&r, frames, len);
    for (int i = 0; i < r.n_stages; i++)
      json_array_append_new(r.parsed, json_null());
    r.build_failed |= !r.is_ok && !r.check_failed;
    if (q->has_files)
      add_line(r.err_lines, "note: a kernel is one file; the other files were not used",
               strlen("note: a kernel is one file; the other files were not used"));
    out = q->is_executor ? execution(&r) : compilation(&r);
    if (was_cached) { /* as it is spelt on the wire, and as it is spelt */
      json_object_set_new(out, "retreivedFromCache", json_true());
      json_object_set_new(out, "retrievedFromCache", json_true());
    }
    close_reply(&r);
  }
  free(frames);
  return out;
}

json_t *ce_reply_complaint(const struct ce_ask *q) {
  struct reply r;
  if (!open_reply(&r, q))
    return NULL;
  r.build_failed = true;
  add_message(r.err_lines, NULL, "error", SEVERITY_ERROR, q->args.complaint);
  json_t *out = q->is_executor ? execution(&r) : compilation(&r);
  close_reply(&r);
  return out;
}
