/* Compiler Explorer's links, stored as our own snippets.
 *
 * A stored state gets an unlisted id that is derived from it and the store's secret: equal states share a link, and
 * nobody without the secret can find out which states are stored.  Its kernel is compiled when it is stored, as for
 * every snippet, so that the link shows frozen stages; reading a link runs nothing.  The document is that of a snippet,
 * with the state as it was posted in "ce".
 */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "api/audit.h"
#include "api/compile.h"
#include "api/services.h"
#include "api/snippet.h"
#include "ce/internal.h"

/* ---- POST /api/shortener ----------------------------------------------------------------------------------------- */

static bool derive_id(struct request *rq, const json_t *posted, char id[IDENT_LEN + 1]) {
  char *text = json_dumps(posted, JSON_COMPACT | JSON_SORT_KEYS); /* the order of members makes no difference */
  if (text)
    ident_derive(store_secret(services_of(rq)->store), STORE_SECRET_SIZE, text, strlen(text), id);
  free(text);
  return text != NULL;
}

/* The job for what the state shows first.  A stage or kernel that does not exist is left out with all other
 * arguments. */
static enum status read_job(const json_t *state, struct arena *a, struct job *job, struct error *err) {
  struct ce_ask q;
  ce_ask_init(&q);
  ce_state_ask(state, a, &q);
  enum status st = ce_ask_job(&q, a, job, err);
  if (!st && q.args.complaint) {
    q.args = (struct ce_args){0};
    st = ce_ask_job(&q, a, job, err);
  }
  ce_ask_clear(&q);
  return st;
}

static enum status start_compile(struct request *rq, json_t *posted, const json_t *state, struct error *err) {
  const struct snippet_extra extra = {.ce = posted};
  struct arena a;
  struct job job;
  enum status st = compile_arena(&a, rq->body.len, err);
  if (st)
    return st;
  st = read_job(state, &a, &job, err);
  if (!st)
    st = snippet_count_link(rq, err);
  if (!st)
    st = snippet_write_doc(&snippet_state_of(rq)->snippet.doc, &job, &extra, err);
  if (!st)
    st = compile_start(rq, &job, err);
  arena_clear(&a);
  return st;
}

/* Reads the request and sets its work, or answers. */
static enum MHD_Result start(struct request *rq) {
  struct error err;
  json_error_t jerr;
  struct snippet_state *s = snippet_state_new(rq);
  enum MHD_Result answer;
  if (!s)
    return MHD_NO;
  if (compile_check_nesting(&rq->body, &err))
    return http_status_problem(rq, ST_INPUT, &err);
  json_t *root = json_loadb(buf_text(&rq->body), rq->body.len, JSON_ALLOW_NUL, &jerr);
  json_t *posted = json_object_get(root, "config") ? json_object_get(root, "config") : root;
  json_t *state = ce_state_of(posted);
  if (!root) {
    answer = http_problem(rq, PB_BAD_JSON, jerr.text, NULL);
  } else if (!state) {
    answer = http_problem(rq, PB_BAD_FIELD, "There is no state: neither \"sessions\" nor \"content\".", NULL);
  } else {
    s->snippet.created_ms = store_now_ms();
    enum status st =
        derive_id(rq, posted, s->id) ? start_compile(rq, posted, state, &err) : fail(&err, ST_NOMEM, "link");
    answer = st ? http_status_problem(rq, st, &err) : MHD_YES;
  }
  json_decref(state);
  json_decref(root);
  buf_clear(&rq->body);
  return answer;
}

/* An id that is taken is that of an equal state, so it is no failure: s->found. */
static enum status put_state(struct snippet_state *s, struct db *db) {
  ident_hash(s->id, IDENT_LEN, &s->snippet.id);
  enum status st = ident_new(s->edit_token, &s->err);
  if (st)
    return st;
  ident_hash(s->edit_token, IDENT_LEN, &s->snippet.token);
  st = store_put_snippet(db, &s->snippet, &s->err);
  s->found = st == ST_DENIED;
  if (s->found)
    s->snippet.packed = 0;
  return s->found ? ST_OK : st;
}

/* On the store's writing thread. */
static void put(struct request *rq, struct db *db) {
  struct snippet_state *s = rq->state;
  snippet_store(rq, db, put_state);
  const bool is_known = s->found;
  s->found = s->is_allowed = true;
  audit_link(rq, is_known ? "link-known" : "link-stored", &s->snippet.id);
  s->found = is_known;
}

/* Only the client that stored the state first is told the token. */
static enum MHD_Result send_link(struct request *rq, const struct snippet_state *s) {
  char address[OWN_ADDRESS_SIZE];
  http_own_address(rq, address);
  json_t *url = json_sprintf("%s/z/%s", address, s->id);
  json_t *o = json_pack("{s:o,s:s}", "url", url, "id", s->id);
  if (!s->found)
    json_object_set_new(o, "edit_token", json_string(s->edit_token));
  return ce_send(rq, MHD_HTTP_OK, o, CE_NO_STORE);
}

enum MHD_Result ce_shorten(struct request *rq) {
  const struct api_part *part = api_part(rq);
  enum MHD_Result answer;
  if (!rq->state) {
    answer = start(rq);
    if (!part->work)
      return answer;
  }
  if (part->call.state == CALL_DONE)
    return snippet_store_failed(rq, &answer) ? answer : send_link(rq, rq->state);
  if (!api_wait(rq))
    return MHD_YES;
  if (work_look(part->work, NULL, NULL) == WORK_REFUSED)
    return compile_refused(rq);
  return snippet_take_frames(rq) ? http_problem(rq, PB_INTERNAL, NULL, NULL) : api_call_store(rq, STORE_WRITE, put);
}

/* ---- GET /api/shortlinkinfo/ID ----------------------------------------------------------------------------------- */

/* On a store thread. */
static void get(struct request *rq, struct db *db) {
  snippet_load(rq->state, db);
}

static enum MHD_Result send_state(struct request *rq, const struct snippet_state *s) {
  const struct buf *doc = &s->snippet.doc;
  json_t *root = json_loadb(buf_text(doc), doc->len, JSON_ALLOW_NUL, NULL), *stored = json_object_get(root, "ce");
  json_t *state = stored ? ce_state_of(stored) : ce_state_of_request(json_object_get(root, "request"));
  char *text = state ? json_dumps(state, JSON_COMPACT) : NULL, date[40];
  time_t t = (time_t)(s->snippet.created_ms / 1000);
  struct tm tm;
  json_decref(state);
  json_decref(root);
  if (!text)
    return http_problem(rq, PB_INTERNAL, NULL, NULL);
  struct MHD_Response *r = MHD_create_response_from_buffer(strlen(text), text, MHD_RESPMEM_MUST_FREE);
  if (!r) {
    free(text);
    return MHD_NO;
  }
  strftime(date, sizeof date, "%a, %d %b %Y %H:%M:%S GMT", gmtime_r(&t, &tm));
  MHD_add_response_header(r, MHD_HTTP_HEADER_CONTENT_TYPE, "application/json");
  MHD_add_response_header(r, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store");
  MHD_add_response_header(r, "Link-Created", date);
  return http_send(rq, MHD_HTTP_OK, r);
}

enum MHD_Result ce_link_info(struct request *rq) {
  enum MHD_Result answer;
  if (api_part(rq)->call.state == CALL_NONE) {
    const bool may = snippet_begin(rq, strlen(rq->rest), &answer);
    return may ? api_call_store(rq, STORE_READ, get) : answer;
  }
  if (snippet_store_failed(rq, &answer))
    return answer;
  return snippet_state_of(rq)->found ? send_state(rq, rq->state) : snippet_not_found(rq);
}
