/* GET /z/ID, /e/ID and what is below them: the page that shows a snippet, its text, and its files. */
#include <stdlib.h>
#include <string.h>

#include "api/html.h"
#include "api/snippet.h"
#include "api/snippet_view.h"
#include "api/snippets.h"
#include "base/index.h"
#include "preview/preview.h"

enum { PAGE_MAX = 1 << 20 };

/* ---- the page ---------------------------------------------------------------------------------------------------- */

/* On a store thread: the answer is the page's head. */
static void find(struct request *rq, struct db *db) {
  struct snippet_state *s = rq->state;
  snippet_fetch(s, db, STORE_DOC);
  if (!s->st && s->found) {
    json_t *doc = json_loadb(buf_text(&s->snippet.doc), s->snippet.doc.len, JSON_ALLOW_NUL, NULL);
    snippet_put_head(&s->answer, doc);
    json_decref(doc);
    s->st = buf_status(&s->answer) ? fail(&s->err, ST_NOMEM, "snippet") : ST_OK;
  }
  snippet_keep(rq, &s->answer);
}

/* Appends the template with `text` in place of what is from the text `from` up to and with the text `to`. */
static void put_replaced(struct buf *out, const char *template, const char *from, const char *to, const char *text,
                         size_t len) {
  const char *a = strstr(template, from), *b = a ? strstr(a, to) : NULL;
  if (!b) {
    buf_puts(out, template);
    return;
  }
  buf_append(out, template, (size_t)(a - template));
  buf_append(out, text, len);
  buf_puts(out, b + strlen(to));
}

/* Appends the address of the link's picture, as previews need it: with the name by which the client knows this server.
 * Nothing if the client has not said a name. */
static void put_image(struct buf *b, const struct request *rq, const struct snippet_state *s) {
  const char *host = http_header(rq, MHD_HTTP_HEADER_HOST);
  const char *scheme = rq->is_proxied ? http_header(rq, "X-Forwarded-Proto") : NULL;
  if (!host || !host[0])
    return;
  buf_printf(b, "\n<meta property=\"og:image\" content=\"%s://", scheme && !strcmp(scheme, "https") ? "https" : "http");
  html_put(b, host);
  buf_printf(b, "/z/%s/preview.png", s->id);
  if (s->revision)
    buf_printf(b, "?revision=%d", s->revision);
  buf_printf(
      b, "\">\n<meta property=\"og:image:width\" content=\"%d\">\n<meta property=\"og:image:height\" content=\"%d\">",
      PREVIEW_WIDTH, PREVIEW_HEIGHT);
}

/* The page says in its head what the link is about, for previews, and tells a browser without scripts where the link can
 * be read. */
static enum MHD_Result send_page(struct request *rq, unsigned status) {
  struct snippet_state *s = rq->state;
  const struct kept_answer *kept = s->kept;
  struct buf template, head, headed, page, note;
  buf_init(&template, PAGE_MAX);
  buf_init(&head, PAGE_MAX);
  buf_init(&headed, PAGE_MAX);
  buf_init(&page, PAGE_MAX);
  buf_init(&note, PAGE_MAX);
  bool ok = static_read(rq, "index.html", &template);
  if (ok) {
    buf_append(&head, kept ? kept->data : buf_text(&s->answer), kept ? kept->len : s->answer.len);
    put_image(&head, rq, s);
    put_replaced(&headed, buf_text(&template), "<title>", "</title>", buf_text(&head), head.len);
    buf_printf(
        &note,
        "<p class=\"noscript\">The explorer needs JavaScript. <a href=\"/z/%s?view=plain\">This link can be read "
        "without it</a>.</p>",
        s->id);
    put_replaced(&page, buf_text(&headed), "<p class=\"noscript\">", "</p>", buf_text(&note), note.len);
    ok = !buf_status(&head) && !buf_status(&headed) && !buf_status(&note) && !buf_status(&page);
  }
  buf_clear(&template);
  buf_clear(&head);
  buf_clear(&headed);
  buf_clear(&note);
  if (!ok) {
    buf_clear(&page);
    return static_page(rq, status);
  }
  return http_bytes(
      rq, status,
      &(struct http_bytes){
          .data = page.data, .len = page.len, .type = "text/html; charset=utf-8", .release = free, .user = page.data});
}

/* A page is sent in any case; it says itself that a link leads nowhere, or that the store cannot be reached.  send: sends
 * the page of a snippet that exists. */
static enum MHD_Result open_page(struct request *rq, enum MHD_Result (*send)(struct request *rq, unsigned status)) {
  enum MHD_Result answer;
  if (snippet_look_up_kept(rq, KEPT_PAGE, "", find, &answer))
    return answer;
  const struct snippet_state *s = rq->state;
  if (s->kept)
    return send(rq, MHD_HTTP_OK);
  if (api_part(rq)->call.is_lost || s->st)
    return static_page(rq, MHD_HTTP_SERVICE_UNAVAILABLE);
  if (s->found)
    return send(rq, MHD_HTTP_OK);
  snippet_count_miss(rq);
  return static_page(rq, MHD_HTTP_NOT_FOUND);
}

enum MHD_Result api_snippet_embed(struct request *rq) {
  rq->headers = HEADERS_FRAMED;
  return open_page(rq, static_page);
}

/* ---- texts and files --------------------------------------------------------------------------------------------- */

/* A view's answer does not depend on anything but the snippet if it is kept for the next requests. */
struct view {
  const char *suffix; /* of the path */
  bool is_kept;
  enum kept_kind kind; /* of the kept answer */
  void (*build)(struct request *rq, struct db *db);
  const char *type, *disposition;
  bool is_packed;
};

#define TEXT "text/plain; charset=utf-8"
#define HTML "text/html; charset=utf-8"

static const struct view
    raw = {"/raw", true, KEPT_SOURCE, snippet_get_source, TEXT, "inline; filename=\"kernel.py\"", false},
    raw_stage = {"/raw", false, 0, snippet_get_stage, TEXT, "inline; filename=\"stage.txt\"", false},
    plain = {"", false, 0, snippet_get_plain, HTML, NULL, false},
    offline = {"/page.html", false, 0, snippet_get_offline, HTML, "attachment; filename=\"kernel.html\"", false},
    preview = {"/preview.png", true, KEPT_PREVIEW, snippet_get_preview, "image/png", NULL, true},
    archive = {
        "/all.tar.gz", false, 0, snippet_get_archive, "application/gzip", "attachment; filename=\"kernel.tar.gz\"",
        true};

static bool ends_with(const char *text, const char *suffix) {
  const size_t n = strlen(text), k = strlen(suffix);
  return n >= k && !strcmp(text + n - k, suffix);
}

/* NULL: the page itself. */
static const struct view *view_of(const struct request *rq) {
  static const struct view *const files[] = {&offline, &archive, &preview};
  const char *view = http_argument(rq, "view");
  for (size_t i = 0; i < sizeof files / sizeof *files; i++)
    if (ends_with(rq->rest, files[i]->suffix))
      return files[i];
  if (ends_with(rq->rest, raw.suffix))
    return http_argument(rq, "stage") ? &raw_stage : &raw;
  return view && !strcmp(view, "plain") ? &plain : NULL;
}

/* Looks up the snippet of a view that is not kept, as snippet_look_up_kept does for those that are. */
static bool look_up(struct request *rq, const struct view *v, enum MHD_Result *answer) {
  if (v->is_kept)
    return snippet_look_up_kept(rq, v->kind, v->suffix, v->build, answer);
  if (api_part(rq)->call.state != CALL_NONE)
    return false;
  struct snippet_state *s = snippet_begin(rq, strlen(rq->rest) - strlen(v->suffix), answer);
  if (!s)
    return true;
  if (!snippet_read_revision(rq, &s->revision)) {
    *answer = snippet_bad_revision(rq);
    return true;
  }
  *answer = api_build(rq, v->build);
  return true;
}

/* The picture of a revision never changes; that of the newest does with the next revision.  Other sites may show it.  Nobody
 * keeps that of a private link: a cache before the server would give it to anybody. */
static enum MHD_Result send_preview(struct request *rq) {
  struct snippet_state *s = rq->state;
  const struct kept_answer *kept = s->kept;
  char etag[40];
  const char *data = kept ? kept->data : buf_text(&s->answer);
  const size_t len = kept ? kept->len : s->answer.len;
  snprintf(etag, sizeof etag, "\"%08x-%zx\"", hash_bytes(data, len), len);
  rq->headers = HEADERS_FRAMED;
  struct http_bytes b = {.type = preview.type, .is_packed = true};
  if (!s->is_private) {
    b.etag = etag;
    b.cache = s->revision ? "public, max-age=86400, immutable" : "no-cache";
  }
  return snippet_send(rq, &b);
}

enum MHD_Result api_snippet_open(struct request *rq) {
  const struct view *v = view_of(rq);
  enum MHD_Result answer;
  if (!v)
    return open_page(rq, send_page);
  if (look_up(rq, v, &answer))
    return answer;
  const struct snippet_state *s = rq->state;
  if (!s->kept && snippet_store_failed(rq, &answer))
    return answer;
  if (!s->kept && !s->found)
    return snippet_not_found(rq);
  if (s->diff_found != DIFF_FOUND)
    return http_problem(rq, PB_NOT_FOUND, "The result has no such stage.", "stage");
  if (v == &preview)
    return send_preview(rq);
  rq->headers = HEADERS_INERT;
  return snippet_send(rq,
                      &(struct http_bytes){.type = v->type, .disposition = v->disposition, .is_packed = v->is_packed});
}
