/* POST /api/v1/snippets/ID/notes: replaces the notes on a link.
 *
 * They are the member "notes" of the view in a revision's document.  The kernel and the result of a revision never change; what
 * is said about them does.
 */
#include <stdlib.h>
#include <string.h>

#include "api/audit.h"
#include "api/compile.h"
#include "api/services.h"
#include "api/snippet.h"
#include "base/json.h"

/* ---- what a view may have -------------------------------------------------------------------------------------------- */

static enum status check_size(const json_t *v, const char *name, size_t max, struct error *err) {
  const size_t n = v ? json_dumpb(v, NULL, 0, JSON_COMPACT | JSON_ENCODE_ANY) : 0;
  return n > max ? fail(err, ST_LIMIT, "%s: %zu bytes; the limit is %zu", name, n, max) : ST_OK;
}

enum status snippet_check_notes(const json_t *notes, struct error *err) {
  return check_size(notes, "notes", NOTES_MAX, err);
}

enum status snippet_check_view(const json_t *view, struct error *err) {
  if (!json_is_object(view))
    return fail(err, ST_INPUT, "view: expected an object");
  const json_t *notes = json_object_get(view, "notes"), *recording = json_object_get(view, "recording");
  enum status st = snippet_check_notes(notes, err);
  if (!st)
    st = check_size(recording, "recording", RECORDING_MAX, err);
  json_t *rest = st ? NULL : json_copy((json_t *)(uintptr_t)view);
  if (st || !rest)
    return st ? st : fail(err, ST_NOMEM, "view");
  json_object_del(rest, "notes");
  json_object_del(rest, "recording");
  st = check_size(rest, "view", VIEW_MAX, err);
  json_decref(rest);
  return st;
}

/* ---- the change ------------------------------------------------------------------------------------------------------ */

/* The document with the request's notes, for who has the edit token. */
static enum status put_notes(void *user, const struct store_snippet *now, struct buf *out, struct error *err) {
  struct snippet_state *s = user;
  s->snippet.revision = now->revision;
  s->is_allowed = ident_hash_equal(&now->token, &s->token);
  if (!s->is_allowed)
    return ST_OK;
  json_t *root = json_loadb(buf_text(&now->doc), now->doc.len, JSON_ALLOW_NUL, NULL);
  json_t *notes = json_loads(s->more, JSON_ALLOW_NUL, NULL), *view = json_object_get(root, "view");
  char *text = NULL;
  if (root && !json_is_object(view) && !json_object_set_new(root, "view", json_object()))
    view = json_object_get(root, "view");
  if (root && notes && !json_object_set(view, "notes", notes))
    text = json_dumps(root, JSON_COMPACT);
  json_decref(notes);
  json_decref(root);
  if (!text)
    return fail(err, ST_IO, "the document of a link cannot be read");
  buf_puts(out, text);
  free(text);
  return ST_OK;
}

static enum status change(struct snippet_state *s, struct db *db) {
  return store_rewrite_doc(db, &s->id_hash, s->revision, put_notes, s, &s->snippet.packed, &s->found, &s->err);
}

static void write_notes(struct request *rq, struct db *db) {
  struct snippet_state *s = rq->state;
  snippet_store(rq, db, change);
  audit_link(rq, "link-noted", &s->id_hash);
  if (s->st || s->is_allowed) /* after a failure, too: it may have been written */
    kept_forget(services_of(rq)->kept);
  snippet_hide(s, db);
}

/* ---- the request ----------------------------------------------------------------------------------------------------- */

static enum status read_notes(struct request *rq, struct error *err) {
  struct snippet_state *s = rq->state;
  enum status st = compile_check_nesting(&rq->body, err);
  if (st)
    return st;
  json_t *root = json_loadb(buf_text(&rq->body), rq->body.len, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, NULL);
  const json_t *notes = json_object_get(root, "notes");
  buf_clear(&rq->body);
  if (!json_is_array(notes) || json_object_size(root) != 1)
    st = fail(err, ST_INPUT, "notes: expected a list, and nothing else");
  if (!st)
    st = snippet_check_notes(notes, err);
  if (!st && !(s->more = json_dumps(notes, JSON_COMPACT)))
    st = fail(err, ST_NOMEM, "notes");
  s->free_more = free;
  json_decref(root);
  return st;
}

static enum MHD_Result start(struct request *rq, size_t id_len) {
  enum MHD_Result answer;
  struct error err;
  struct snippet_state *s = snippet_begin(rq, id_len, &answer);
  if (!s)
    return answer;
  snippet_set_token(rq);
  if (!snippet_read_revision(rq, &s->revision))
    return snippet_bad_revision(rq);
  enum status st = read_notes(rq, &err);
  if (!st)
    st = snippet_count_notes(rq, &err);
  return st ? http_status_problem(rq, st, &err) : api_call_store(rq, STORE_WRITE, write_notes);
}

enum MHD_Result snippet_post_notes(struct request *rq, size_t id_len) {
  struct snippet_state *s = rq->state;
  enum MHD_Result answer;
  if (!s)
    return start(rq, id_len);
  if (snippet_store_failed(rq, &answer))
    return answer;
  if (!s->found)
    return snippet_not_found(rq);
  if (!s->is_allowed)
    return http_problem(rq, PB_DENIED, NULL, NULL);
  buf_putc(&s->answer, '{');
  json_put_field_str(&s->answer, "id", s->id);
  json_put_field_int(&s->answer, "revision", s->snippet.revision);
  buf_puts(&s->answer, "}\n");
  return http_json(rq, MHD_HTTP_OK, buf_text(&s->answer), s->answer.len, false);
}
