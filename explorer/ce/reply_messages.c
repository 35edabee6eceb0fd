#include "ce/reply.h"

#include <stdarg.h>
#include <string.h>

#include "base/diag.h"

enum { SEVERITY_NOTE = 1, SEVERITY_WARNING, SEVERITY_ERROR };

/* ---- members and lines ------------------------------------------------------------------------------------------- */

const char *reply_string(const json_t *o, const char *key) {
  const char *s = json_string_value(json_object_get(o, key));
  return s ? s : "";
}

bool reply_is_users(const json_t *range) {
  return !strcmp(reply_string(range, "file"), CE_FILENAME);
}

json_int_t reply_at_least_one(const json_t *v) {
  json_int_t n = json_integer_value(v);
  return n < 1 ? 1 : n;
}

void reply_add_line(json_t *to, const char *text, size_t len) {
  json_array_append_new(to, json_pack("{s:o}", "text", ce_text(text, len)));
}

void reply_add_lines(json_t *to, const char *text, size_t len) {
  for (const char *p = text, *end = text + len; p < end;) {
    const char *newline = memchr(p, '\n', (size_t)(end - p));
    size_t n = newline ? (size_t)(newline - p) : (size_t)(end - p);
    reply_add_line(to, p, n);
    p += n + 1;
  }
}

void reply_add_formatted(json_t *to, const char *fmt, ...) {
  va_list ap;
  va_start(ap, fmt);
  json_array_append_new(to, json_pack("{s:o}", "text", json_vsprintf(fmt, ap)));
  va_end(ap);
}

/* ---- diagnostics ------------------------------------------------------------------------------------------------- */

/* Appends "<source>:L:C: error: message", or with the name of another file, and the same as a tag; or the message alone,
 * if it has no place.  The tag's text begins with the word too, because a client cuts off everything up to the first ":
 * ". */
static void add_message(json_t *to, const json_t *range, const char *word, int severity, const char *text) {
  size_t n = strcspn(text, "\n");
  json_t *first = ce_text(text, n), *line = json_object();
  json_t *said = json_sprintf("%s: %s", word, json_string_value(first));
  json_decref(first);
  if (range) {
    const bool is_main = reply_is_users(range);
    json_int_t l = reply_at_least_one(json_object_get(range, "line")),
               c = reply_at_least_one(json_object_get(range, "col"));
    json_object_set_new(line, "text",
                        json_sprintf("%s:%lld:%lld: %s", is_main ? "<source>" : reply_string(range, "file"),
                                     (long long)l, (long long)c, json_string_value(said)));
    json_object_set_new(line, "tag",
                        json_pack("{s:I,s:I,s:O,s:i}", "line", l, "column", c, "text", said, "severity", severity));
    json_object_set_new(json_object_get(line, "tag"), "endline",
                        json_integer(reply_at_least_one(json_object_get(range, "end_line"))));
    json_object_set_new(json_object_get(line, "tag"), "endcolumn",
                        json_integer(reply_at_least_one(json_object_get(range, "end_col"))));
    if (!is_main)
      json_object_set(json_object_get(line, "tag"), "file", json_object_get(range, "file"));
  } else {
    json_object_set(line, "text", said);
  }
  json_decref(said);
  json_array_append_new(to, line);
  if (text[n])
    reply_add_lines(to, text + n + 1, strlen(text + n + 1));
}

void reply_add_error(json_t *to, const char *text) {
  add_message(to, NULL, "error", SEVERITY_ERROR, text);
}

void reply_add_diagnostic(struct reply *r, const json_t *d) {
  const char *word = reply_string(d, "severity"), *code = reply_string(d, "code"),
             *message = reply_string(d, "message");
  const json_t *range = json_object_get(d, "range"), *call;
  bool is_error = !strcmp(word, "error");
  size_t i;
  if (!strcmp(code, diag_code_name(DG_KERNEL_OUTPUT))) {
    reply_add_lines(r->out_lines, message, strlen(message));
    return;
  }
  const bool is_of_run =
      !strcmp(code, diag_code_name(DG_CHECK_FAILED)) || !strcmp(code, diag_code_name(DG_SIMULATION_FAULT));
  r->check_failed |= is_error && is_of_run;
  r->build_failed |= is_error && !is_of_run;
  r->hit_limit |= !strcmp(code, diag_code_name(DG_TIME_LIMIT));
  r->is_ours |= !strcmp(code, diag_code_name(DG_WORKER_DIED)) || !strcmp(code, diag_code_name(DG_INTERNAL));
  add_message(r->err_lines, range, *word ? word : "note",
              is_error                   ? SEVERITY_ERROR
              : !strcmp(word, "warning") ? SEVERITY_WARNING
                                         : SEVERITY_NOTE,
              message);
  json_array_foreach(json_object_get(d, "calls"), i, call)
      add_message(r->err_lines, call, "note", SEVERITY_NOTE, "called from here");
  if (*reply_string(d, "hint"))
    add_message(r->err_lines, range, "note", SEVERITY_NOTE, reply_string(d, "hint"));
}
