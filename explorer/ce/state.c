/* The two forms in which Compiler Explorer keeps a session, ClientState and the older GoldenLayout, and our requests in
 * them.
 *
 * A GoldenLayout is a tree of panes, in which editors and compilers refer to each other by number.  The editors, with
 * their compilers and executors, are converted; a ClientState has no place for other panes.
 */
#include <stdlib.h>
#include <string.h>

#include <openssl/evp.h>
#include <zlib.h>

#include "base/buf.h"
#include "ce/internal.h"

enum { LAYOUT_NEST_MAX = 60, SESSIONS_MAX = 100, INFLATED_MAX = JOB_JSON_MAX };

/* ---- GoldenLayout ------------------------------------------------------------------------------------------------ */

/* Calls fn for each component below the node. */
static void walk(const json_t *node, int depth, void (*fn)(const char *name, const json_t *state, json_t *sessions),
                 json_t *sessions) {
  const json_t *child;
  const char *name = json_string_value(json_object_get(node, "componentName"));
  size_t i;
  if (name)
    fn(name, json_object_get(node, "componentState"), sessions);
  if (depth < LAYOUT_NEST_MAX)
    json_array_foreach(json_object_get(node, "content"), i, child) walk(child, depth + 1, fn, sessions);
}

static json_t *or_empty(const json_t *v, json_type type) {
  if (v && json_typeof(v) == type)
    return json_incref((json_t *)v);
  return type == JSON_STRING ? json_string("") : type == JSON_ARRAY ? json_array() : json_object();
}

static void take_editor(const char *name, const json_t *state, json_t *sessions) {
  if (strcmp(name, "codeEditor") != 0 || json_array_size(sessions) >= SESSIONS_MAX)
    return;
  json_t *session = json_pack("{s:I,s:o,s:o,s:b,s:[],s:[]}", "id", json_integer_value(json_object_get(state, "id")),
                              "language", or_empty(json_object_get(state, "lang"), JSON_STRING), "source",
                              or_empty(json_object_get(state, "source"), JSON_STRING), "conformanceview", 0,
                              "compilers", "executors");
  if (json_is_string(json_object_get(state, "filename")))
    json_object_set(session, "filename", json_object_get(state, "filename"));
  json_array_append_new(sessions, session);
}

/* The session of the editor with this number, or NULL. */
static json_t *session_of(json_t *sessions, const json_t *id) {
  json_t *s;
  size_t i;
  json_array_foreach(sessions, i, s) if (json_equal(json_object_get(s, "id"), id)) return s;
  return NULL;
}

/* The default filters, with those that the layout sets. */
static json_t *filters_of(const json_t *state) {
  static const char *const on[] = {"commentOnly", "demangle", "directives", "intel", "labels"};
  static const char *const off[] = {"binary", "binaryObject", "execute", "libraryCode", "trim", "debugCalls"};
  json_t *f = json_object(), *given = json_object_get(state, "filters");
  for (size_t i = 0; i < sizeof on / sizeof *on; i++)
    json_object_set_new(f, on[i], json_true());
  for (size_t i = 0; i < sizeof off / sizeof *off; i++)
    json_object_set_new(f, off[i], json_false());
  if (json_is_object(given))
    json_object_update(f, given);
  return f;
}

static json_t *compiler_of(const json_t *state) {
  return json_pack("{s:o,s:o,s:o,s:o,s:[],s:[],s:[]}", "id", or_empty(json_object_get(state, "compiler"), JSON_STRING),
                   "options", or_empty(json_object_get(state, "options"), JSON_STRING), "filters", filters_of(state),
                   "libs", or_empty(json_object_get(state, "libs"), JSON_ARRAY), "specialoutputs", "tools",
                   "overrides");
}

static bool is_no(const json_t *v) {
  return json_is_false(v);
}

static json_t *executor_of(const json_t *state) {
  return json_pack(
      "{s:b,s:b,s:o,s:b,s:o,s:b,s:[],s:o}", "compilerVisible", !is_no(json_object_get(state, "compilationPanelShown")),
      "compilerOutputVisible", !is_no(json_object_get(state, "compilerOutShown")), "arguments",
      or_empty(json_object_get(state, "execArgs"), JSON_STRING), "argumentsVisible",
      json_is_true(json_object_get(state, "argsPanelShown")), "stdin",
      or_empty(json_object_get(state, "execStdin"), JSON_STRING), "stdinVisible",
      json_is_true(json_object_get(state, "stdinPanelShown")), "runtimeTools", "compiler", compiler_of(state));
}

static void take_pane(const char *name, const json_t *state, json_t *sessions) {
  json_t *session = session_of(sessions, json_object_get(state, "source"));
  bool has_compiler = json_string_length(json_object_get(state, "compiler")) > 0;
  if (session && has_compiler && !strcmp(name, "compiler"))
    json_array_append_new(json_object_get(session, "compilers"), compiler_of(state));
  if (session && has_compiler && !strcmp(name, "executor"))
    json_array_append_new(json_object_get(session, "executors"), executor_of(state));
}

json_t *ce_state_of(json_t *stored) {
  if (json_is_array(json_object_get(stored, "sessions")))
    return json_incref(stored);
  if (!json_is_array(json_object_get(stored, "content")))
    return NULL;
  json_t *sessions = json_array();
  walk(stored, 0, take_editor, sessions);
  walk(stored, 0, take_pane, sessions);
  return json_pack("{s:o,s:[]}", "sessions", sessions, "trees");
}

/* ---- files ------------------------------------------------------------------------------------------------------- */

/* A tree's files are {"filename","content","isIncluded","isMainSource","editorId"}; the text of one that is open in an
 * editor is that of the session with its number. */
static const json_t *text_of(const json_t *state, const json_t *file) {
  json_t *session = session_of(json_object_get(state, "sessions"), json_object_get(file, "editorId"));
  const json_t *own = json_object_get(session, "source");
  return json_is_string(own) ? own : json_object_get(file, "content");
}

static void take_tree(const json_t *state, const json_t *tree, struct arena *a, struct ce_ask *q) {
  const json_t *f;
  size_t i;
  json_array_foreach(json_object_get(tree, "files"), i, f) {
    const json_t *text = text_of(state, f);
    const char *name = json_string_value(json_object_get(f, "filename"));
    if (is_no(json_object_get(f, "isIncluded")) || !json_is_string(text)) {
      continue;
    } else if (json_is_true(json_object_get(f, "isMainSource"))) {
      q->source_len = json_string_length(text);
      q->source = arena_strndup(a, json_string_value(text), q->source_len);
    } else {
      ce_ask_add_file(q, name, text);
    }
  }
}

/* The trees of a request with several files: one, whose main file is in the first session's editor. */
static json_t *trees_of(const json_t *request) {
  json_t *files = json_array();
  const json_t *f;
  size_t i;
  if (!json_array_size(json_object_get(request, "files")))
    return files;
  json_array_append_new(files, json_pack("{s:i,s:b,s:b,s:b,s:s,s:s,s:i,s:s}", "fileId", 1, "isIncluded", 1, "isOpen", 1,
                                         "isMainSource", 1, "filename", CE_FILENAME, "content", "", "editorId", 1,
                                         "langId", CE_LANGUAGE));
  json_array_foreach(json_object_get(request, "files"), i, f) json_array_append_new(
      files, json_pack("{s:i,s:b,s:b,s:b,s:O,s:O,s:i,s:s}", "fileId", (int)i + 2, "isIncluded", 1, "isOpen", 0,
                       "isMainSource", 0, "filename", json_object_get(f, "name"), "content",
                       json_object_get(f, "source"), "editorId", -1, "langId", CE_LANGUAGE));
  return json_pack("[{s:i,s:s,s:s,s:b,s:s,s:i,s:o,s:[],s:[]}]", "id", 1, "cmakeArgs", "", "customOutputFilename", "",
                   "isCMakeProject", 0, "compilerLanguageId", CE_LANGUAGE, "newFileId", (int)json_array_size(files) + 1,
                   "files", files, "compilers", "executors");
}

/* ---- to and from our own requests -------------------------------------------------------------------------------- */

void ce_state_ask(const json_t *state, struct arena *a, struct ce_ask *q) {
  const json_t *session = json_array_get(json_object_get(state, "sessions"), 0);
  const json_t *source = json_object_get(session, "source");
  const json_t *compiler = json_array_get(json_object_get(session, "compilers"), 0);
  const char *id = json_string_value(json_object_get(compiler, "id"));
  if (json_is_string(source)) {
    q->source_len = json_string_length(source);
    q->source = arena_strndup(a, json_string_value(source), q->source_len);
  }
  take_tree(state, json_array_get(json_object_get(state, "trees"), 0), a, q);
  if (id)
    ce_find_compiler(id, strlen(id), &q->target); /* the id of a compiler that is not here leaves the default target */
  ce_split(json_object_get(compiler, "options"), q->words);
  ce_args_parse(a, q->words, &q->args);
  if (q->args.complaint) /* they were meant for another compiler: show the kernel without them */
    q->args = (struct ce_args){0};
}

static void put_word(struct buf *b, const char *flag, const char *value) {
  const char *quote = strpbrk(value, " \t'") ? "\"" : "";
  buf_printf(b, "%s%s%s%s%s", b->len ? " " : "", quote, flag, value, quote);
}

static void put_input(struct buf *b, const json_t *in) {
  const json_t *name = json_object_get(in, "name"), *dtype = json_object_get(in, "dtype"), *d;
  struct buf text;
  size_t i;
  if (!json_is_string(name) || !json_is_string(dtype))
    return;
  buf_init(&text, 1 << 10);
  buf_printf(&text, "%s=", json_string_value(name));
  json_array_foreach(json_object_get(in, "shape"), i, d)
      buf_printf(&text, "%s%lld", i ? "x" : "", (long long)json_integer_value(d));
  buf_printf(&text, ":%s", json_string_value(dtype));
  put_word(b, "--input=", buf_text(&text));
  buf_clear(&text);
}

json_t *ce_state_of_request(const json_t *request) {
  const json_t *options = json_object_get(request, "options"), *in;
  const char *kernel = json_string_value(json_object_get(request, "kernel"));
  const char *stop = json_string_value(json_object_get(options, "stop_after"));
  const char *target = json_string_value(json_object_get(request, "target"));
  struct buf words;
  size_t i;
  buf_init(&words, 64 << 10);
  if (kernel)
    put_word(&words, "--kernel=", kernel);
  if (stop)
    put_word(&words, "--stop=", stop);
  json_array_foreach(json_object_get(request, "inputs"), i, in) put_input(&words, in);
  if (json_is_true(json_object_get(options, "check")))
    put_word(&words, "--check", "");
  json_t *compiler = json_pack("{s:o,s:s,s:o,s:[],s:[],s:[],s:[]}", "id",
                               json_sprintf(CE_LANGUAGE "-%s", target ? target : "trn2"), "options", buf_text(&words),
                               "filters", filters_of(NULL), "libs", "specialoutputs", "tools", "overrides");
  buf_clear(&words);
  return json_pack("{s:[{s:i,s:s,s:o,s:b,s:[o],s:[]}],s:o}", "sessions", "id", 1, "language", CE_LANGUAGE, "source",
                   or_empty(json_object_get(request, "source"), JSON_STRING), "conformanceview", 0, "compilers",
                   compiler, "executors", "trees", trees_of(request));
}

/* ---- base64 ------------------------------------------------------------------------------------------------------ */

/* Unpacks a zlib stream; false if it is not one, or is larger than any state. */
static bool inflate_all(const unsigned char *in, size_t n, struct buf *out) {
  z_stream z = {.next_in = (Bytef *)in, .avail_in = (uInt)n};
  bool is_done = false;
  if (inflateInit(&z) != Z_OK)
    return false;
  while (!is_done && !buf_reserve(out, 16 << 10)) {
    z.next_out = (Bytef *)out->data + out->len;
    z.avail_out = 16 << 10;
    int e = inflate(&z, Z_NO_FLUSH);
    out->len += (16 << 10) - z.avail_out;
    is_done = e == Z_STREAM_END;
    if (e != Z_OK)
      break;
  }
  inflateEnd(&z);
  return is_done;
}

/* Decodes the standard alphabet or the one for addresses, padded or not; heap, or NULL. */
static unsigned char *decode_base64(const char *text, size_t len, size_t *n) {
  size_t bare = len;
  while (bare && text[bare - 1] == '=')
    bare--;
  size_t padded = (bare + 3) / 4 * 4;
  if (bare % 4 == 1 || padded > INFLATED_MAX)
    return NULL;
  unsigned char *in = malloc(padded + 1), *out = malloc(padded / 4 * 3 + 1);
  for (size_t i = 0; in && i < padded; i++)
    in[i] = i >= bare        ? '='
            : text[i] == '-' ? '+'
            : text[i] == '_' ? '/'
            : text[i] == ' ' ? '+'
                             : (unsigned char)text[i];
  int k = in && out ? EVP_DecodeBlock(out, in, (int)padded) : -1;
  free(in);
  if (k <= 0) {
    free(out);
    return NULL;
  }
  *n = (size_t)k - (padded - bare);
  return out;
}

json_t *ce_state_decode(const char *text, size_t len) {
  size_t n;
  struct buf plain;
  json_t *stored = NULL, *state;
  unsigned char *bytes = decode_base64(text, len, &n);
  if (!bytes)
    return NULL;
  buf_init(&plain, INFLATED_MAX);
  if ((bytes[0] & 15) == 8 ? inflate_all(bytes, n, &plain) : !buf_append(&plain, bytes, n))
    stored = json_loadb(buf_text(&plain), plain.len, JSON_ALLOW_NUL, NULL);
  free(bytes);
  buf_clear(&plain);
  state = ce_state_of(stored);
  json_decref(stored);
  return state;
}
