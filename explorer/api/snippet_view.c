#include "api/snippet_view.h"

#include <string.h>

#include "api/html.h"
#include "job/export.h"

enum { OFFLINE_MAX = 1 << 20 };

/* ---- the head ---------------------------------------------------------------------------------------------------- */

/* Finds the last function that a Python source defines at its top level: mostly the kernel.  The others are its
 * helpers. */
static const char *last_function(const char *source, size_t *len) {
  const char *name = NULL;
  for (const char *p = source; p; p = strchr(p, '\n')) {
    p += *p == '\n';
    if (strncmp(p, "def ", 4) != 0)
      continue;
    name = p + 4;
    *len = strcspn(name, " (:\n\t");
  }
  return name;
}

void snippet_put_title(struct buf *out, const json_t *doc) {
  const json_t *request = json_object_get(doc, "request");
  const json_t *title = json_object_get(doc, "title"), *kernel = json_object_get(request, "kernel");
  const json_t *chosen = json_string_length(title) ? title : kernel;
  const char *source = json_string_value(json_object_get(request, "source"));
  const char *language = json_string_value(json_object_get(request, "language"));
  size_t len = 0;
  const bool is_python = !language || !strcmp(language, "nkipy");
  const char *name = source && is_python ? last_function(source, &len) : NULL;
  if (json_string_length(chosen))
    buf_append(out, json_string_value(chosen), json_string_length(chosen));
  else if (name)
    buf_append(out, name, len);
  else
    buf_puts(out, "A kernel");
}

static void put_title(struct buf *b, const json_t *doc) {
  struct buf title;
  buf_init(&title, b->max);
  snippet_put_title(&title, doc);
  html_put_text(b, buf_text(&title), title.len);
  buf_clear(&title);
}

static void put_description(struct buf *b, const json_t *doc) {
  const json_t *request = json_object_get(doc, "request");
  const char *target = json_string_value(json_object_get(request, "target"));
  const char *language = json_string_value(json_object_get(request, "language"));
  buf_puts(b, language && !strcmp(language, "hlo")    ? "An HLO module"
              : language && !strcmp(language, "mlir") ? "An MLIR program"
                                                      : "A NumPy kernel");
  if (target) {
    buf_puts(b, " for ");
    html_put(b, target);
  }
  buf_puts(b, ", with every stage on its way to instructions of AWS Trainium.");
}

void snippet_put_head(struct buf *out, const json_t *doc) {
  buf_puts(out, "<title>");
  put_title(out, doc);
  buf_puts(out, " · Neuron Kernel Explorer</title>\n<meta property=\"og:title\" content=\"");
  put_title(out, doc);
  buf_puts(out, "\">\n<meta property=\"og:description\" content=\"");
  put_description(out, doc);
  buf_puts(out, "\">\n<meta property=\"og:type\" content=\"website\">\n"
                "<meta property=\"og:site_name\" content=\"Neuron Kernel Explorer\">\n"
                "<meta name=\"twitter:card\" content=\"summary_large_image\">");
}

/* ---- texts; on a store thread ------------------------------------------------------------------------------------ */

void snippet_get_source(struct request *rq, struct db *db) {
  struct snippet_state *s = rq->state;
  snippet_load(s, db);
  if (s->st || !s->found)
    return;
  json_t *doc = json_loadb(buf_text(&s->snippet.doc), s->snippet.doc.len, JSON_ALLOW_NUL, NULL);
  const json_t *source = json_object_get(json_object_get(doc, "request"), "source");
  if (!json_is_string(source))
    s->st = fail(&s->err, ST_IO, "a snippet without a source");
  else if (buf_append(&s->answer, json_string_value(source), json_string_length(source)))
    s->st = fail(&s->err, ST_NOMEM, "snippet");
  json_decref(doc);
  snippet_keep(rq, &s->answer);
}

struct work *snippet_load_work(struct snippet_state *s, struct db *db) {
  struct work *w = NULL;
  snippet_load(s, db);
  if (!s->st && s->found)
    s->st = snippet_thaw(&s->snippet, &w, &s->err);
  return s->st ? NULL : w;
}

static void settle(struct snippet_state *s) {
  if (!s->st && buf_status(&s->answer))
    s->st = fail(&s->err, buf_status(&s->answer), "snippet");
}

void snippet_get_stage(struct request *rq, struct db *db) {
  struct snippet_state *s = rq->state;
  struct gather_stage which = {0};
  const char *kernel = http_argument(rq, "kernel");
  struct work *w = snippet_load_work(s, db);
  if (!w)
    return;
  const bool is_named =
      diff_read_stage(http_argument(rq, "stage"), &which) && (!kernel || diff_read_number(kernel, &which.kernel));
  if (!is_named || !export_stage_text(w, &which, &s->answer))
    s->diff_found = DIFF_NO_FROM;
  work_unref(w);
  settle(s);
}

/* ---- files; on a store thread ------------------------------------------------------------------------------------ */

void snippet_get_archive(struct request *rq, struct db *db) {
  struct snippet_state *s = rq->state;
  struct work *w = snippet_load_work(s, db);
  if (!w)
    return;
  if (!export_all(w, &s->answer) && !buf_status(&s->answer))
    s->st = fail(&s->err, ST_NOMEM, "snippet");
  work_unref(w);
  settle(s);
}

/* Appends JSON that is to stand in a script element, which its text must not end. */
static void put_script(struct buf *b, const char *json, size_t len) {
  size_t from = 0;
  for (size_t i = 0; i < len; i++) {
    if (json[i] != '<')
      continue;
    buf_append(b, json + from, i - from);
    buf_puts(b, "\\u003c"); /* in JSON, a "<" stands in strings only */
    from = i + 1;
  }
  buf_append(b, json + from, len - from);
}

void snippet_get_offline(struct request *rq, struct db *db) {
  static const char mark[] = "{{data}}";
  struct snippet_state *s = rq->state;
  struct buf template, json;
  buf_init(&template, OFFLINE_MAX);
  buf_init(&json, s->answer.max);
  snippet_load(s, db);
  const char *at =
      !s->st && s->found && static_read(rq, "offline.html", &template) ? strstr(buf_text(&template), mark) : NULL;
  if (at) {
    struct buf answer = s->answer;
    s->answer = json;
    s->st = snippet_put(s, db, &s->err);
    json = s->answer;
    s->answer = answer;
    buf_append(&s->answer, template.data, (size_t)(at - template.data));
    put_script(&s->answer, buf_text(&json), json.len);
    buf_puts(&s->answer, at + sizeof mark - 1);
  } else if (!s->st && s->found) {
    s->st = fail(&s->err, ST_IO, "offline.html cannot be read");
  }
  buf_clear(&template);
  buf_clear(&json);
  settle(s);
}
