/* Reads a compile request in the three forms that clients send: JSON, raw source with a query, a form.
 *
 * Unknown members are ignored, and an absent value may be null, false, {} or []: the languages of some clients cannot
 * tell these apart.
 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "api/compile.h"
#include "ce/internal.h"

void ce_ask_init(struct ce_ask *q) {
  *q = (struct ce_ask){.source = "",
                       .words = json_array(),
                       .files = json_array(),
                       .left_out = json_array(),
                       .target = CE_DEFAULT_TARGET};
}

void ce_ask_clear(struct ce_ask *q) {
  json_decref(q->words);
  json_decref(q->files);
  json_decref(q->left_out);
  q->words = q->files = q->left_out = NULL;
}

void ce_ask_add_file(struct ce_ask *q, const char *name, const json_t *contents) {
  if (name && !strncmp(name, "./", 2))
    name += 2;
  if (!name || !json_is_string(contents) || json_array_size(q->left_out) >= JOB_FILES_MAX)
    return;
  if (job_file_name_fault(name, strlen(name)))
    json_array_append_new(q->left_out, json_string(name));
  else if (json_array_size(q->files) <= JOB_FILES_MAX) /* one too many is refused by the job */
    json_array_append_new(q->files, json_pack("{s:s,s:O}", "name", name, "source", contents));
}

/* True for true, "true" and a number that is not 0. */
static bool is_yes(const json_t *v) {
  const char *text = json_string_value(v);
  return json_is_true(v) || (json_is_integer(v) && json_integer_value(v)) || (text && !strcasecmp(text, "true"));
}

/* True for an object of settings, which asks for something even when it is empty. */
static bool is_asked(const json_t *v) {
  return json_is_object(v) || is_yes(v);
}

/* ---- JSON -------------------------------------------------------------------------------------------------------- */

static void read_backend(const json_t *o, struct ce_ask *q) {
  q->skip_asm = is_yes(json_object_get(o, "skipAsm"));
  q->is_executor = is_yes(json_object_get(o, "executorRequest"));
  q->wants_pipeline = is_asked(json_object_get(o, "produceOptPipeline"));
  q->wants_ir = is_asked(json_object_get(o, "produceIr"));
  q->wants_remarks = is_yes(json_object_get(o, "produceOptInfo"));
}

static void read_tools(const json_t *tools, struct ce_ask *q) {
  const json_t *t;
  size_t i;
  json_array_foreach(tools, i, t) {
    const char *id = json_string_value(json_object_get(t, "id"));
    q->has_numerics |= id && !strcmp(id, CE_TOOL);
    q->has_run |= id && !strcmp(id, CE_RUN_TOOL);
  }
}

static void read_files(const json_t *files, struct ce_ask *q) {
  const json_t *f;
  size_t i;
  json_array_foreach(files, i, f)
      ce_ask_add_file(q, json_string_value(json_object_get(f, "filename")), json_object_get(f, "contents"));
}

static void take_source(struct ce_ask *q, struct arena *a, const json_t *source) {
  q->source_len = json_string_length(source);
  q->source = arena_strndup(a, json_string_value(source), q->source_len);
}

/* Options are an object, or a string in an old form of this API. */
static void read_options(const json_t *root, const json_t *options, struct ce_ask *q) {
  const json_t *filters = json_object_get(json_is_string(options) ? root : options, "filters");
  ce_split(json_is_string(options) ? options : json_object_get(options, "userArguments"), q->words);
  read_backend(json_object_get(options, "compilerOptions"), q);
  read_tools(json_object_get(options, "tools"), q);
  q->executes = is_yes(json_object_get(filters, "execute"));
  q->wants_remarks |= is_yes(json_object_get(filters, "optOutput"));
  json_t *bypass = json_object_get(root, "bypassCache");
  q->is_fresh = is_yes(bypass);
  read_files(json_object_get(root, "files"), q);
}

static bool read_json(struct request *rq, struct arena *a, struct ce_ask *q, enum MHD_Result *answer) {
  const char *missing = NULL;
  struct error err;
  json_error_t jerr;
  if (compile_check_nesting(&rq->body, &err)) {
    *answer = http_status_problem(rq, ST_INPUT, &err);
    return false;
  }
  json_t *root = json_loadb(buf_text(&rq->body), rq->body.len, JSON_ALLOW_NUL, &jerr);
  const json_t *options = json_object_get(root, "options"), *source = json_object_get(root, "source");
  if (!json_is_object(root))
    *answer = http_problem(rq, PB_BAD_JSON, root ? "The body must be a JSON object." : jerr.text, NULL);
  else if (!options)
    missing = "Missing options property";
  else if (!source)
    missing = "Missing source property";
  else if (!json_is_string(source))
    missing = "The source property must be a string";
  if (missing)
    *answer = ce_refuse(rq, MHD_HTTP_BAD_REQUEST, missing);
  bool is_fine = json_is_object(root) && !missing;
  if (is_fine) {
    take_source(q, a, source);
    read_options(root, options, q);
  }
  json_decref(root);
  return is_fine;
}

/* ---- raw source -------------------------------------------------------------------------------------------------- */

static bool names(const struct request *rq, const char *argument, const char *name) {
  const char *list = http_argument(rq, argument);
  return list && ce_is_listed(list, name);
}

static bool says_true(const struct request *rq, const char *argument) {
  const char *v = http_argument(rq, argument);
  return v && !strcmp(v, "true");
}

static bool read_text(struct request *rq, struct arena *a, struct ce_ask *q, enum MHD_Result *answer) {
  json_t *source = json_stringn(buf_text(&rq->body), rq->body.len);
  const char *options = http_argument(rq, "options");
  json_t *text = options ? json_string(options) : NULL;
  bool is_fine = source && rq->body.len && (text || !options);
  if (is_fine) {
    take_source(q, a, source);
    ce_split(text, q->words);
  } else {
    *answer = http_problem(rq, PB_BAD_FIELD, rq->body.len ? "The source must be UTF-8." : "The body is empty.", NULL);
  }
  json_decref(source);
  json_decref(text);
  q->skip_asm = says_true(rq, "skipAsm");
  q->is_executor = says_true(rq, "executorRequest");
  q->filters_ansi = says_true(rq, "filterAnsi");
  q->executes =
      (names(rq, "filters", "execute") || names(rq, "addFilters", "execute")) && !names(rq, "removeFilters", "execute");
  return is_fine;
}

/* ---- a form ------------------------------------------------------------------------------------------------------ */

static int hex(char c) {
  return isdigit((unsigned char)c) ? c - '0' : isxdigit((unsigned char)c) ? (c | 32) - 'a' + 10 : -1;
}

/* The decoded value of `name` in a urlencoded body, in a; or NULL. */
static const char *form_value(const struct buf *body, struct arena *a, const char *name, size_t *len) {
  const char *p = buf_text(body), *end = p + body->len;
  size_t n = strlen(name);
  for (; p < end; p++) {
    const char *amp = memchr(p, '&', (size_t)(end - p)), *stop = amp ? amp : end;
    if ((size_t)(stop - p) > n && !memcmp(p, name, n) && p[n] == '=') {
      char *out = arena_strndup(a, p + n + 1, (size_t)(stop - p) - n - 1), *to = out;
      for (const char *from = p + n + 1; from < stop; from++) {
        bool is_code = *from == '%' && stop - from > 2 && hex(from[1]) >= 0 && hex(from[2]) >= 0;
        *to++ = is_code ? (char)(hex(from[1]) << 4 | hex(from[2])) : *from == '+' ? ' ' : *from;
        from += is_code ? 2 : 0;
      }
      *to = 0;
      *len = (size_t)(to - out);
      return out;
    }
    p = stop;
  }
  return NULL;
}

static bool form_true(const struct buf *body, struct arena *a, const char *name) {
  size_t len;
  const char *v = form_value(body, a, name, &len);
  return v && !strcmp(v, "true");
}

static bool read_form(struct request *rq, struct arena *a, struct ce_ask *q, enum MHD_Result *answer) {
  size_t len = 0, n = 0;
  const char *source = form_value(&rq->body, a, "source", &len),
             *arguments = form_value(&rq->body, a, "userArguments", &n);
  json_t *checked = source ? json_stringn(source, len) : NULL, *text = arguments ? json_stringn(arguments, n) : NULL;
  if (!source) {
    *answer = ce_refuse(rq, MHD_HTTP_BAD_REQUEST, "Missing source property");
  } else if (!checked || (arguments && !text)) {
    *answer = http_problem(rq, PB_BAD_FIELD, "The form must be UTF-8.", NULL);
  } else {
    take_source(q, a, checked);
    ce_split(text, q->words);
  }
  q->skip_asm = form_true(&rq->body, a, "skipAsm");
  q->filters_ansi = form_true(&rq->body, a, "filterAnsi");
  q->executes = form_true(&rq->body, a, "execute");
  const char *bypass = form_value(&rq->body, a, "bypassCache", &n);
  q->is_fresh = bypass && strcmp(bypass, "0") != 0 && strcmp(bypass, "false") != 0;
  bool is_fine = checked && (text || !arguments);
  json_decref(checked);
  json_decref(text);
  return is_fine;
}

/* ---- the path ---------------------------------------------------------------------------------------------------- */

static bool has_type(const struct request *rq, const char *type) {
  const char *t = http_header(rq, MHD_HTTP_HEADER_CONTENT_TYPE);
  size_t n = strlen(type);
  return t && !strncasecmp(t, type, n) && (!t[n] || t[n] == ';' || t[n] == ' ');
}

static bool refuse_build(struct request *rq, const char *system, enum MHD_Result *answer) {
  char text[120];
  snprintf(text, sizeof text,
           !strcmp(system, "cmake") ? "Build system '%.40s' is not available on this compiler"
                                    : "Unknown build system '%.40s'",
           system);
  *answer = ce_refuse(rq, MHD_HTTP_NOT_FOUND, text);
  return false;
}

/* Reads "ID/compile"; false, with the answer, for any other path and for unknown compilers. */
static bool read_path(struct request *rq, struct ce_ask *q, enum MHD_Result *answer) {
  size_t n = strcspn(rq->rest, "/");
  const char *what = rq->rest + n + (rq->rest[n] == '/');
  if (!ce_find_compiler(rq->rest, n, &q->target)) {
    *answer = http_problem(rq, PB_NOT_FOUND, "There is no such compiler; /api/compilers lists them.", NULL);
    return false;
  }
  if (!strcmp(what, "cmake"))
    return refuse_build(rq, what, answer);
  if (!strncmp(what, "build/", 6))
    return refuse_build(rq, what + 6, answer);
  if (!strcmp(what, "compile"))
    return true;
  *answer = http_problem(rq, PB_NOT_FOUND, NULL, NULL);
  return false;
}

bool ce_ask_read(struct request *rq, struct arena *a, struct ce_ask *q, enum MHD_Result *answer) {
  bool is_form = !*rq->rest; /* /api/noscript/compile */
  size_t len;
  if (is_form) {
    const char *id = form_value(&rq->body, a, "compiler", &len);
    if (id && !ce_find_compiler(id, len, &q->target)) {
      *answer = http_problem(rq, PB_NOT_FOUND, "There is no such compiler; /api/compilers lists them.", NULL);
      return false;
    }
  } else if (!read_path(rq, q, answer)) {
    return false;
  }
  bool is_fine = is_form                            ? read_form(rq, a, q, answer)
                 : has_type(rq, "application/json") ? read_json(rq, a, q, answer)
                                                    : read_text(rq, a, q, answer);
  if (is_fine)
    ce_args_parse(a, q->words, &q->args);
  return is_fine;
}

/* ---- the job ----------------------------------------------------------------------------------------------------- */

enum status ce_ask_job(struct ce_ask *q, struct arena *a, struct job *out, struct error *err) {
  enum target target = q->args.has_target ? q->args.target : q->target;
  bool check = q->args.check || q->is_executor || q->executes || q->has_numerics;
  json_t *options = json_pack("{s:b,s:b}", "check", check, "simulate", q->args.simulate || q->has_run);
  json_t *root = json_pack("{s:s%,s:s,s:s,s:O}", "source", q->source, q->source_len, "filename", CE_FILENAME, "target",
                           target_name(target), "options", options);
  if (json_array_size(q->files))
    json_object_set(root, "files", q->files);
  if (q->args.kernel)
    json_object_set_new(root, "kernel", json_string(q->args.kernel));
  if (q->args.stop_after)
    json_object_set_new(options, "stop_after", json_string(q->args.stop_after));
  enum status st = root ? job_read(a, root, out, err) : fail(err, ST_NOMEM, "request");
  json_decref(root);
  json_decref(options);
  if (st == ST_INPUT) { /* the source is a string, so an argument or a file's name is wrong: the user's fault */
    q->args.complaint = arena_strdup(a, err->text);
    return ST_OK;
  }
  if (!st) {
    out->inputs = q->args.inputs;
    out->n_inputs = q->args.n_inputs;
  }
  return st;
}
