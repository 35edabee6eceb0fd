/* GET /api/v1/snippets/ID and /api/v1/snippets/ID/diff. */
#include <stdlib.h>
#include <string.h>

#include "api/access.h"
#include "api/snippet_view.h"
#include "api/snippets.h"
#include "base/json.h"
#include "driver/pipeline.h"

/* ---- the snippet; on a store thread ------------------------------------------------------------------------------ */

static json_t *parse_doc(const struct store_snippet *s) {
  return json_loadb(buf_text(&s->doc), s->doc.len, JSON_ALLOW_NUL, NULL);
}

static void put_title(struct buf *b, const struct store_snippet *s) {
  json_t *doc = parse_doc(s);
  const json_t *title = json_object_get(doc, "title");
  if (title) {
    json_put_key(b, "title");
    json_put_string(b, json_string_value(title), json_string_length(title));
  }
  json_decref(doc);
}

/* Adds the ancestor *id and moves on to its parent; *more is false if there is none, or it does not exist any more. */
static enum status put_ancestor(struct snippet_state *s, struct db *db, struct ident_hash *id, bool *more,
                                struct error *err) {
  struct buf *b = &s->answer;
  struct store_snippet a;
  store_snippet_init(&a);
  enum status st = store_get_snippet(db, id, STORE_DOC, &a, more, err);
  if (!st && *more) {
    json_put_comma(b);
    buf_putc(b, '{');
    json_put_field_str(b, "visibility", snippet_visibility(&a, access_is_private(&a.doc)));
    json_put_field_int(b, "created_ms", a.created_ms);
    if (a.public_id[0]) {
      json_put_field_str(b, "id", a.public_id);
      put_title(b, &a);
    }
    buf_putc(b, '}');
    if (a.expires_ms && (!s->expires_ms || a.expires_ms < s->expires_ms))
      s->expires_ms = a.expires_ms;
    *more = a.has_parent;
    *id = a.parent;
  }
  store_snippet_clear(&a);
  return st;
}

static enum status put_ancestry(struct snippet_state *s, struct db *db, struct error *err) {
  struct buf *b = &s->answer;
  struct ident_hash id = s->snippet.parent;
  bool more = s->snippet.has_parent;
  enum status st = ST_OK;
  json_put_key(b, "ancestry");
  buf_putc(b, '[');
  for (int i = 0; !st && more && i < STORE_ANCESTORS_MAX; i++)
    st = put_ancestor(s, db, &id, &more, err);
  buf_putc(b, ']');
  return st;
}

static enum status put_result(struct buf *b, const struct store_snippet *s, struct error *err) {
  struct work *w;
  size_t len;
  enum status st = snippet_thaw(s, &w, err);
  if (st)
    return st;
  char *text = work_result(w, &len);
  if (text) {
    json_put_key(b, "result");
    buf_append(b, text, len);
  }
  free(text);
  work_unref(w);
  return text ? ST_OK : fail(err, ST_NOMEM, "snippet");
}

/* The members of the document, and whether today's pipeline made the result. */
static enum status put_doc(struct buf *b, const struct store_snippet *s, struct error *err) {
  json_t *doc = parse_doc(s);
  const char *pipeline = json_string_value(json_object_get(doc, "pipeline"));
  const bool is_current = pipeline && !strcmp(pipeline, pipeline_version());
  const bool is_sound = json_is_object(doc) && s->doc.len > 2;
  json_decref(doc);
  if (!is_sound)
    return fail(err, ST_IO, "a damaged snippet");
  json_put_comma(b);
  buf_append(b, s->doc.data + 1, s->doc.len - 2); /* without its braces, which our own text begins and ends with */
  json_put_field_bool(b, "is_current", is_current);
  return ST_OK;
}

/* Adds the revision's number, and when each of them was made. */
static enum status put_revisions(struct snippet_state *s, struct db *db, struct error *err) {
  struct buf *b = &s->answer;
  enum status st = ST_OK;
  json_put_field_int(b, "revision", s->snippet.revision);
  json_put_key(b, "revisions");
  buf_putc(b, '[');
  for (int i = 1; !st && i <= s->snippet.n_revisions; i++) {
    struct store_snippet r;
    bool found;
    store_snippet_init(&r);
    st = store_get_revision(db, &s->id_hash, i, STORE_ROW, &r, &found, err);
    json_put_comma(b);
    buf_putc(b, '{');
    json_put_field_int(b, "revision", i);
    json_put_field_int(b, "created_ms", r.created_ms);
    buf_putc(b, '}');
    store_snippet_clear(&r);
  }
  buf_putc(b, ']');
  return st;
}

static void put_report_url(struct snippet_state *s) {
  struct buf url;
  if (!s->report_url)
    return;
  buf_init(&url, REPORT_URL_MAX);
  snippet_put_report_url(&url, s);
  json_put_field_str(&s->answer, "report_url", buf_text(&url));
  if (buf_status(&url))
    s->answer.failed = buf_status(&url);
  buf_clear(&url);
}

enum status snippet_put(struct snippet_state *s, struct db *db, struct error *err) {
  struct buf *b = &s->answer;
  buf_putc(b, '{');
  json_put_field_str(b, "id", s->id);
  json_put_field_str(b, "visibility", snippet_visibility(&s->snippet, s->is_private));
  json_put_field_int(b, "created_ms", s->snippet.created_ms);
  snippet_put_time(b, "expires_ms", s->snippet.expires_ms);
  put_report_url(s);
  enum status st = put_revisions(s, db, err);
  if (!st)
    st = put_doc(b, &s->snippet, err);
  if (!st)
    st = put_ancestry(s, db, err);
  if (!st)
    st = put_result(b, &s->snippet, err);
  buf_puts(b, "}\n");
  return st ? st : buf_status(b) ? fail(err, buf_status(b), "snippet") : ST_OK;
}

static void get(struct request *rq, struct db *db) {
  struct snippet_state *s = rq->state;
  snippet_load(s, db);
  if (!s->st && s->found)
    s->st = snippet_put(s, db, &s->err);
  snippet_keep(rq, &s->answer);
}

/* ---- the diff ---------------------------------------------------------------------------------------------------- */

/* On a store thread. */
static void get_diff(struct request *rq, struct db *db) {
  struct snippet_state *s = rq->state;
  struct diff_query query;
  const char *field;
  struct work *w;
  snippet_load(s, db);
  if (s->st || !s->found || !diff_read_query(rq, &query, &field))
    return;
  s->st = snippet_thaw(&s->snippet, &w, &s->err);
  if (s->st)
    return;
  s->st = diff_build(w, w, &query, &s->answer, &s->diff_found, &s->err);
  work_unref(w);
}

static enum MHD_Result start_diff(struct request *rq, size_t id_len) {
  enum MHD_Result answer;
  struct snippet_state *s = snippet_begin(rq, id_len, &answer);
  if (!s)
    return answer;
  if (!snippet_read_revision(rq, &s->revision))
    return snippet_bad_revision(rq);
  return api_build(rq, get_diff);
}

static enum MHD_Result answer_diff(struct request *rq, size_t id_len) {
  struct diff_query query;
  const char *field;
  const struct snippet_state *s = rq->state;
  enum MHD_Result answer;
  if (!diff_read_query(rq, &query, &field))
    return diff_bad_query(rq, field);
  if (api_part(rq)->call.state == CALL_NONE)
    return start_diff(rq, id_len);
  if (snippet_store_failed(rq, &answer))
    return answer;
  if (!s->found)
    return snippet_not_found(rq);
  if (s->diff_found != DIFF_FOUND)
    return diff_not_found(rq, s->diff_found);
  return snippet_send(rq, &(struct http_bytes){.type = "application/json"});
}

/* ---- the route --------------------------------------------------------------------------------------------------- */

enum MHD_Result api_snippet_get(struct request *rq) {
  static const char diff[] = "/diff";
  const size_t n = strlen(rq->rest), k = sizeof diff - 1;
  enum MHD_Result answer;
  if (n >= k && !strcmp(rq->rest + n - k, diff))
    return answer_diff(rq, n - k);
  if (snippet_look_up_kept(rq, KEPT_JSON, "", get, &answer))
    return answer;
  const struct snippet_state *s = rq->state;
  if (!s->kept && snippet_store_failed(rq, &answer))
    return answer;
  return s->kept || s->found ? snippet_send(rq, &(struct http_bytes){.type = "application/json"})
                             : snippet_not_found(rq);
}
