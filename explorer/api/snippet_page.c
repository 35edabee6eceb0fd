/* GET /z/ID, /e/ID and /z/ID/raw: the page that shows a snippet, and its source. */
#include <string.h>

#include "api/snippet.h"
#include "api/snippets.h"

/* ---- the page ---------------------------------------------------------------------------------------------------- */

/* On a store thread. */
static void find(struct request *rq, struct db *db) {
  struct snippet_state *s = rq->state;
  s->st = store_get_snippet(db, &s->id_hash, false, &s->snippet, &s->found, &s->err);
  snippet_keep(rq, NULL);
}

/* The page is sent in any case; it says itself that a link leads nowhere, or that the store cannot be reached. */
static enum MHD_Result open_page(struct request *rq) {
  enum MHD_Result answer;
  if (snippet_look_up_kept(rq, KEPT_PAGE, "", find, &answer))
    return answer;
  const struct snippet_state *s = rq->state;
  if (s->kept)
    return static_page(rq, MHD_HTTP_OK);
  if (api_part(rq)->call.is_lost || s->st)
    return static_page(rq, MHD_HTTP_SERVICE_UNAVAILABLE);
  if (s->found)
    return static_page(rq, MHD_HTTP_OK);
  snippet_count_miss(rq);
  return static_page(rq, MHD_HTTP_NOT_FOUND);
}

enum MHD_Result api_snippet_embed(struct request *rq) {
  rq->is_framed = true;
  return open_page(rq);
}

/* ---- the source -------------------------------------------------------------------------------------------------- */

/* On a store thread. */
static void get_source(struct request *rq, struct db *db) {
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

static enum MHD_Result send_source(struct request *rq) {
  return snippet_send(rq, &(struct http_bytes){.type = "text/plain; charset=utf-8",
                                               .disposition = "attachment; filename=\"kernel.py\""});
}

enum MHD_Result api_snippet_open(struct request *rq) {
  static const char raw[] = "/raw";
  const size_t n = strlen(rq->rest), k = sizeof raw - 1;
  enum MHD_Result answer;
  if (n < k || strcmp(rq->rest + n - k, raw) != 0)
    return open_page(rq);
  if (snippet_look_up_kept(rq, KEPT_SOURCE, raw, get_source, &answer))
    return answer;
  const struct snippet_state *s = rq->state;
  if (s->kept)
    return send_source(rq);
  if (snippet_store_failed(rq, &answer))
    return answer;
  return s->found ? send_source(rq) : snippet_not_found(rq);
}
