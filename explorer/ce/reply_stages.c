#include "ce/reply.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "driver/frames.h"
#include "work/work.h"

enum {
  ASM_BYTES_MAX = 850000, /* of the lines of `asm` as JSON */
  LINE_BYTES = 70,        /* what a line takes besides its text */
};

/* NULL when out of memory. */
static json_t *load_stage(struct work *w, const struct piece *p) {
  const struct gather_stage which = {.kernel = p->kernel, .nth = p->nth};
  struct buf text;
  buf_init(&text, FRAME_MAX);
  json_t *v = work_stage(w, &which, &text) ? json_loadb(buf_text(&text), text.len, JSON_ALLOW_NUL, NULL) : NULL;
  buf_clear(&text);
  return v;
}

const json_t *reply_stage(struct reply *r, int i) {
  json_t *v = json_array_get(r->parsed, (size_t)i);
  if (json_is_null(v)) {
    v = load_stage(r->work, &r->stages[i]);
    json_array_set_new(r->parsed, (size_t)i, v ? v : json_object());
    v = json_array_get(r->parsed, (size_t)i);
  }
  return v;
}

/* The index of the last stage of kernel k, or -1. */
static int last_stage(const struct reply *r, int k) {
  assert(k >= 0 && k < GATHER_KERNELS_MAX);
  for (int i = r->n_stages - 1; i >= 0; i--)
    if (r->stages[i].kernel == k)
      return i;
  return -1;
}

const char *reply_kernel_name(const struct reply *r, int k) {
  const char *name = json_string_value(json_array_get(r->names, (size_t)k));
  return name ? name : "kernel";
}

/* ---- asm --------------------------------------------------------------------------------------------------------- */

static bool is_users(const struct source_place *p) {
  return !strcmp(p->file, CE_FILENAME);
}

/* The place that a source stands for: the innermost one in the user's own text, else the first one; false if it has
 * none. */
static bool find_place(const struct reply *r, const json_t *src, struct source_place *out) {
  const json_t *list = source_table_list(&r->sources, src), *number;
  struct source_place p;
  size_t i;
  json_array_foreach((json_t *)list, i, number) {
    for (json_int_t at = json_integer_value(number); source_table_place(&r->sources, at, &p); at = p.caller)
      if (is_users(&p)) {
        *out = p;
        return true;
      }
  }
  const json_t *first = json_array_get(list, 0);
  return first && source_table_place(&r->sources, json_integer_value(first), out);
}

static json_int_t at_least_one(json_int_t n) {
  return n < 1 ? 1 : n;
}

/* The place that a line of IR came from, or null.  A file of null means the user's source to every client. */
static json_t *source_of(const struct reply *r, const json_t *line) {
  struct source_place p;
  if (!find_place(r, json_object_get(line, "src"), &p))
    return json_null();
  json_t *file = is_users(&p) ? json_null() : json_string(p.file);
  return json_pack("{s:o,s:I,s:I}", "file", file, "line", at_least_one(p.line), "column", at_least_one(p.col));
}

/* Finds the name in `func.func @NAME(`; false if the line defines no function. */
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
  bool is_raw; /* lines have no places */
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

static void list_stage(struct listing *l, const struct reply *r, const json_t *stage) {
  const json_t *text = json_object_get(stage, "text"), *lines = json_object_get(stage, "lines");
  const char *p = json_string_value(text), *end = p ? p + json_string_length(text) : NULL;
  for (size_t i = 0; p && p < end; i++) {
    const char *newline = memchr(p, '\n', (size_t)(end - p));
    size_t n = newline ? (size_t)(newline - p) : (size_t)(end - p);
    list_line(l, p, n, l->is_raw ? json_null() : source_of(r, json_array_get(lines, i)));
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

void reply_put_asm(struct reply *r, json_t *out) {
  struct listing l = {.lines = json_array(), .labels = json_object(), .is_raw = r->ask->args.is_raw};
  for (int k = 0; k < r->n_kernels && !r->build_failed; k++) {
    int i = last_stage(r, k);
    if (r->n_kernels > 1)
      list_note(&l, "// kernel %s", reply_kernel_name(r, k));
    if (i >= 0)
      list_stage(&l, r, reply_stage(r, i));
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

/* ---- passes, IR and remarks -------------------------------------------------------------------------------------- */

static json_t *text_lines(const json_t *stage) {
  json_t *lines = json_array();
  const json_t *text = json_object_get(stage, "text");
  if (json_is_string(text))
    reply_add_lines(lines, json_string_value(text), json_string_length(text));
  return lines;
}

/* The passes of kernel k, each with the text before and after it. */
static json_t *passes(struct reply *r, int k) {
  json_t *list = json_array(), *before = json_array();
  for (int i = 0; i < r->n_stages; i++) {
    if (r->stages[i].kernel != k)
      continue;
    const json_t *s = reply_stage(r, i);
    bool is_machine = !strcmp(reply_string(s, "dialect"), "nisa");
    json_t *after = text_lines(s);
    json_t *pass =
        json_pack("{s:s,s:b,s:b,s:o,s:O}", "name", reply_string(s, "name"), "machine", is_machine, "irChanged",
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

json_t *reply_pipeline(struct reply *r) {
  json_t *results = json_object();
  for (int k = 0; k < r->n_kernels; k++)
    json_object_set_new(results, reply_kernel_name(r, k), passes(r, k));
  return json_pack("{s:o,s:i}", "results", results, "compileTime", (int)r->time_ms);
}

/* The linalg as lowered, or the last stage if that was not reached. */
json_t *reply_ir(struct reply *r) {
  struct listing l = {.lines = json_array(), .is_raw = r->ask->args.is_raw};
  for (int k = 0; k < r->n_kernels; k++) {
    int shown = last_stage(r, k);
    for (int i = 0; i < r->n_stages; i++)
      if (r->stages[i].kernel == k && !strcmp(reply_string(reply_stage(r, i), "name"), "hlo-to-linalg"))
        shown = i;
    if (shown >= 0)
      list_stage(&l, r, reply_stage(r, shown));
  }
  return json_pack("{s:o}", "asm", l.lines);
}

static json_t *remark(const struct reply *r, const json_t *m, const char *function) {
  const json_t *first = json_array_get(source_table_list(&r->sources, json_object_get(m, "src")), 0);
  const char *text = reply_string(m, "text");
  struct source_place p;
  json_t *o = json_pack("{s:s,s:s,s:s,s:s,s:[{s:s}]}", "Pass", "Analysis", "Name", reply_string(m, "pass"), "Function",
                        function, "displayString", text, "Args", "String", text);
  if (first && source_table_place(&r->sources, json_integer_value(first), &p))
    json_object_set_new(o, "DebugLoc",
                        json_pack("{s:s,s:I,s:I}", "File", is_users(&p) ? "<source>" : p.file, "Line",
                                  at_least_one(p.line), "Column", at_least_one(p.col)));
  return o;
}

json_t *reply_remarks(struct reply *r) {
  json_t *list = json_array();
  for (int i = 0; i < r->n_stages; i++) {
    const json_t *m;
    size_t k;
    json_array_foreach(json_object_get(reply_stage(r, i), "remarks"), k, m)
        json_array_append_new(list, remark(r, m, reply_kernel_name(r, r->stages[i].kernel)));
  }
  return list;
}
