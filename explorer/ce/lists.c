/* Languages, compilers, examples and tools: one language, a compiler for each target, one tool.
 *
 * An unknown language has empty lists and is no error: a client made for another language then shows an empty menu.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/services.h"
#include "ce/internal.h"
#include "driver/pipeline.h"

enum { TEXT_MAX = 64 << 10 };

static const char default_fields[] = "id,name,lang,compilerType,semver,extensions,monaco,instructionSet";

/* Removes the members that the client did not ask for; returns v. */
static json_t *pick(const struct request *rq, json_t *v) {
  const char *fields = http_argument(rq, "fields"), *key;
  void *tmp;
  json_t *member;
  if (!fields)
    fields = default_fields;
  if (strcmp(fields, "all") != 0)
    json_object_foreach_safe(v, tmp, key, member) if (!ce_is_listed(fields, key)) json_object_del(v, key);
  return v;
}

/* Sends "Id     | Name" and a line for each entry; the first column is as wide as the longest id. */
static enum MHD_Result send_table(struct request *rq, const char *title, json_t *list) {
  struct buf b;
  size_t i, width = strlen(title);
  const json_t *v;
  json_array_foreach(list, i, v) {
    size_t n = json_string_length(json_object_get(v, "id"));
    width = n > width ? n : width;
  }
  buf_init(&b, TEXT_MAX);
  buf_printf(&b, "%-*s | Name\n", (int)width, title);
  json_array_foreach(list, i, v)
      buf_printf(&b, "%s%-*s | %s", i ? "\n" : "", (int)width, json_string_value(json_object_get(v, "id")),
                 json_string_value(json_object_get(v, "name")));
  json_decref(list);
  return ce_send_text(rq, &b, CE_LISTED);
}

static enum MHD_Result send_list(struct request *rq, const char *title, json_t *list) {
  size_t i;
  json_t *v;
  if (!ce_wants_json(rq))
    return send_table(rq, title, list);
  json_array_foreach(list, i, v) pick(rq, v);
  return ce_send(rq, MHD_HTTP_OK, list, CE_LISTED);
}

/* ---- examples ---------------------------------------------------------------------------------------------------- */

/* The array in the answer of /api/v1/examples; a new reference. */
static json_t *examples(const struct request *rq) {
  const struct buf *b = &services_of(rq)->examples;
  json_t *root = json_loadb(buf_text(b), b->len, 0, NULL);
  json_t *list = json_incref(json_object_get(root, "examples"));
  json_decref(root);
  return list;
}

enum MHD_Result ce_examples(struct request *rq) {
  json_t *all = examples(rq), *out = json_array();
  const json_t *e;
  size_t i;
  json_array_foreach(all, i, e)
      json_array_append_new(out, json_pack("{s:s,s:O,s:O}", "lang", CE_LANGUAGE, "name", json_object_get(e, "title"),
                                           "file", json_object_get(e, "name")));
  json_decref(all);
  return ce_send(rq, MHD_HTTP_OK, out, CE_LISTED);
}

enum MHD_Result ce_example(struct request *rq) {
  static const char language[] = CE_LANGUAGE "/";
  json_t *all = examples(rq), *found = NULL;
  const json_t *e;
  size_t i, n = sizeof language - 1;
  if (!strncmp(rq->rest, language, n))
    json_array_foreach(all, i, e) if (!strcmp(rq->rest + n, json_string_value(json_object_get(e, "name")))) found =
        json_object_get(e, "source");
  json_t *answer = found ? json_pack("{s:O}", "file", found) : json_pack("{s:s}", "file", "There is no such example.");
  json_decref(all);
  return ce_send(rq, MHD_HTTP_OK, answer, CE_LISTED);
}

/* ---- languages and compilers ------------------------------------------------------------------------------------- */

enum MHD_Result ce_languages(struct request *rq) {
  char compiler[CE_ID_SIZE];
  json_t *all = examples(rq), *source = json_object_get(json_array_get(all, 0), "source");
  ce_compiler_id(CE_DEFAULT_TARGET, compiler);
  json_t *language = json_pack("{s:s,s:s,s:[s],s:s,s:s,s:[s,s],s:b,s:n,s:s,s:s,s:n,s:n,s:s}", "id", CE_LANGUAGE, "name",
                               "NumPy/NKI kernel", "extensions", ".py", "monaco", "python", "defaultCompiler", compiler,
                               "alias", "nkipy", "numpy", "supportsExecute", 1, "formatter", "defaultLibs", "",
                               "tooltip", "NumPy and NKI kernels for AWS Trainium", "logoFilename", "logoFilenameDark",
                               "monacoDisassembly", "mlir");
  if (source)
    json_object_set(language, "example", source);
  json_decref(all);
  return send_list(rq, "Id", json_pack("[o]", language));
}

/* "nkx for Trainium 2 (NeuronCore-v3)" */
static json_t *compiler_name(const struct request *rq, enum target t) {
  const struct buf *b = &services_of(rq)->targets;
  json_t *root = json_loadb(buf_text(b), b->len, 0, NULL), *name = NULL;
  const json_t *m;
  size_t i;
  json_array_foreach(json_object_get(root, "targets"), i,
                     m) if (!strcmp(json_string_value(json_object_get(m, "name")), target_name(t))) name =
      json_sprintf("nkx for %s (%s)", json_string_value(json_object_get(m, "title")),
                   json_string_value(json_object_get(m, "core")));
  json_decref(root);
  return name ? name : json_string(target_name(t));
}

/* The menu of the viewer that shows the passes. */
static json_t *pipeline_menu(void) {
  return json_pack("{s:s,s:[],s:[],s:{},s:{},s:s}", "groupName", "Kernel", "supportedOptions", "supportedFilters",
                   "initialOptionsState", "initialFiltersState", "monacoLanguage", "mlir");
}

static void add_flags(json_t *o) {
  static const char *const yes[] = {"supportsExecute", "supportsOptOutput", "supportsIrView", "supportsAsmDocs"};
  static const char *const no[] = {"supportsBinary",
                                   "supportsBinaryObject",
                                   "supportsLibraryCodeFilter",
                                   "supportsDemangle",
                                   "supportsIntel",
                                   "supportsPpView",
                                   "supportsAstView",
                                   "supportsCfg",
                                   "supportsDeviceAsmView",
                                   "supportsGccDump",
                                   "hidden",
                                   "isNightly",
                                   "isSemVer",
                                   "emulated",
                                   "interpreted",
                                   "supportsStackUsageOutput"};
  /* filters that would have no effect, because each stage is shown as it is */
  static const char *const filters[] = {"binary", "binaryObject", "demangle",    "intel", "commentOnly",
                                        "labels", "directives",   "libraryCode", "trim",  "debugCalls"};
  json_t *disabled = json_array();
  for (size_t i = 0; i < sizeof yes / sizeof *yes; i++)
    json_object_set_new(o, yes[i], json_true());
  for (size_t i = 0; i < sizeof no / sizeof *no; i++)
    json_object_set_new(o, no[i], json_false());
  for (size_t i = 0; i < sizeof filters / sizeof *filters; i++)
    json_array_append_new(disabled, json_string(filters[i]));
  json_object_set_new(o, "disabledFilters", disabled);
}

static json_t *compiler(const struct request *rq, enum target t) {
  char id[CE_ID_SIZE];
  ce_compiler_id(t, id);
  json_t *alias = json_pack("[s]", target_name(t));
  if (t == CE_DEFAULT_TARGET)
    json_array_append_new(alias, json_string(CE_LANGUAGE));
  json_t *o = json_pack("{s:s,s:o,s:s,s:s,s:s,s:s,s:o,s:s,s:s}", "id", id, "name", compiler_name(rq, t), "lang",
                        CE_LANGUAGE, "compilerType", "nkx", "semver", pipeline_version(), "instructionSet", "nisa",
                        "alias", alias, "group", "nkx", "groupName", "Neuron Kernel Explorer");
  json_t *more = json_pack("{s:s,s:[s],s:[],s:[ss],s:[],s:[],s:s,s:s,s:o,s:s,s:{s:s,s:s,s:s},s:o}", "releaseTrack",
                           "stable", "compilerCategories", CE_LANGUAGE, "libsArr", "tools", CE_TOOL, CE_RUN_TOOL,
                           "possibleOverrides", "possibleRuntimeTools", "options", "", "version", pipeline_version(),
                           "fullVersion", json_sprintf("nkx, pipeline %s", pipeline_version()), "notification", "",
                           "license", "name", "Apache-2.0", "link", "https://www.apache.org/licenses/LICENSE-2.0",
                           "preamble", "", "optPipeline", pipeline_menu());
  json_object_update(o, more);
  json_decref(more);
  add_flags(o);
  return o;
}

enum MHD_Result ce_compilers(struct request *rq) {
  json_t *list = json_array();
  if (!*rq->rest || !strcmp(rq->rest, CE_LANGUAGE))
    for (int i = 0; i < TARGET_COUNT; i++)
      json_array_append_new(list, compiler(rq, (enum target)i));
  return send_list(rq, "Compiler Name", list);
}

/* ---- the other lists --------------------------------------------------------------------------------------------- */

/* A kernel has NumPy and our own modules; there is nothing to choose. */
enum MHD_Result ce_libraries(struct request *rq) {
  return ce_send(rq, MHD_HTTP_OK, *rq->rest ? json_array() : json_pack("{s:{}}", CE_LANGUAGE), CE_LISTED);
}

enum MHD_Result ce_tools(struct request *rq) {
  json_t *list = json_array();
  static const char *const tools[][2] = {{CE_TOOL, "Each stage against NumPy"}, {CE_RUN_TOOL, "Simulated machine"}};
  for (size_t k = 0; k < sizeof tools / sizeof *tools && !strcmp(rq->rest, CE_LANGUAGE); k++)
    json_array_append_new(list, json_pack("{s:s,s:s,s:s,s:s,s:b}", "id", tools[k][0], "name", tools[k][1], "type",
                                          "postcompilation", "languageId", "plaintext", "allowStdin", 0));
  return ce_send(rq, MHD_HTTP_OK, list, CE_LISTED);
}

enum MHD_Result ce_formats(struct request *rq) {
  return ce_send(rq, MHD_HTTP_OK, json_array(), CE_LISTED);
}

/* There is no formatter; the answer says so in the form that clients decode. */
enum MHD_Result ce_format(struct request *rq) {
  const char *type = http_header(rq, MHD_HTTP_HEADER_CONTENT_TYPE);
  if (!type || strncasecmp(type, "application/json", 16) != 0)
    return ce_send(rq, MHD_HTTP_BAD_REQUEST, json_pack("{s:s}", "message", "The body must be application/json."),
                   CE_NO_STORE);
  json_t *body = json_loadb(buf_text(&rq->body), rq->body.len, 0, NULL);
  bool has_source = json_string_length(json_object_get(body, "source")) > 0;
  json_decref(body);
  if (!has_source)
    return ce_send(rq, MHD_HTTP_BAD_REQUEST, json_pack("{s:i,s:s}", "exit", 0, "answer", ""), CE_NO_STORE);
  json_t *answer = json_sprintf("Unknown format tool '%.80s'", rq->rest);
  if (!answer) /* the tool's name is not UTF-8 */
    answer = json_string("Unknown format tool");
  return ce_send(rq, MHD_HTTP_UNPROCESSABLE_CONTENT, json_pack("{s:i,s:o}", "exit", 2, "answer", answer), CE_NO_STORE);
}

enum MHD_Result ce_version(struct request *rq) {
  struct buf b;
  buf_init(&b, TEXT_MAX);
  buf_printf(&b, "nkx-%s", pipeline_version());
  return ce_send_text(rq, &b, CE_LISTED);
}

enum MHD_Result ce_arguments(struct request *rq) {
  enum target t;
  if (!ce_find_compiler(rq->rest, strlen(rq->rest), &t))
    return http_problem(rq, PB_NOT_FOUND, "There is no such compiler.", NULL);
  return ce_send(rq, MHD_HTTP_OK, ce_args_describe(), rq->body_seen ? CE_NO_STORE : CE_LISTED);
}

enum MHD_Result ce_templates(struct request *rq) {
  return ce_send(
      rq, MHD_HTTP_OK,
      json_pack("{s:{s:{s:i,s:i}},s:[]}", "meta", "screenshot_dimensions", "width", 1000, "height", 800, "templates"),
      CE_LISTED);
}
