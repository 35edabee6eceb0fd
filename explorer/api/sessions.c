#include "api/sessions.h"

#include "api/sessions_internal.h"
#include "api/snippet.h"
#include "base/json.h"

/* ---- a new session ------------------------------------------------------------------------------------------------------- */

static void put(struct request *rq, struct db *db) {
  struct session_state *s = rq->state;
  const struct session_new new = {.id = s->id_hash,
                                  .token = s->token_hash,
                                  .name = s->name,
                                  .request = buf_text(&s->request),
                                  .snapshot = s->bytes.data,
                                  .snapshot_len = s->bytes.len};
  s->st = store_put_session(db, &new, &s->err);
  if (!s->st)
    store_took(services_of(rq)->store, (int64_t)(s->bytes.len + s->request.len));
}

static enum MHD_Result begin(struct request *rq) {
  struct session_state *s = session_state_new(rq);
  enum MHD_Result answer;
  if (!s)
    return MHD_NO;
  if (!session_read_body(rq, &answer) || !session_read_name(rq, &answer) || !session_read_request(rq, &answer))
    return answer;
  if (!session_take_base64(s, json_object_get(s->body, "snapshot"), SESSION_SNAPSHOT_MAX))
    return session_bad_field(rq, "snapshot", "snapshot: expected bytes in base64, at most 2 MiB");
  s->st = snippet_count_link(rq, &s->err); /* it takes room in the store, and becomes a link */
  if (!s->st)
    s->st = ident_new(s->id, &s->err);
  if (!s->st)
    s->st = ident_new(s->token, &s->err);
  if (s->st)
    return http_status_problem(rq, s->st, &s->err);
  ident_hash(s->id, IDENT_LEN, &s->id_hash);
  ident_hash(s->token, IDENT_LEN, &s->token_hash);
  return api_call_store(rq, STORE_WRITE, put);
}

enum MHD_Result api_session_post(struct request *rq) {
  struct session_state *s = rq->state;
  if (!s)
    return begin(rq);
  if (api_part(rq)->call.is_lost || s->st == ST_BUSY)
    return http_problem(rq, PB_STORE, NULL, NULL);
  if (s->st)
    return http_status_problem(rq, s->st, &s->err);
  buf_putc(&s->answer, '{');
  json_put_field_str(&s->answer, "id", s->id);
  json_put_key(&s->answer, "url");
  buf_printf(&s->answer, "\"/s/%s\"", s->id);
  json_put_field_int(&s->answer, "person", 1);
  json_put_field_str(&s->answer, "token", s->token);
  buf_puts(&s->answer, "}\n");
  return session_send(rq, MHD_HTTP_CREATED);
}

/* ---- its state ----------------------------------------------------------------------------------------------------------- */

static void ignore_row(void *user, const struct session_row *row) {
  struct session_state *s = user;
  buf_clear(&s->request);
  buf_puts(&s->request, row->request);
}
static void ignore_person(void *user, int person, const struct ident_hash *token, const char *name) {
  (void)user, (void)person, (void)token, (void)name;
}
static void ignore_snapshot(void *user, int64_t seq, const void *data, size_t len) {
  (void)user, (void)seq, (void)data, (void)len;
}
static void ignore_update(void *user, int64_t seq, int person, const void *data, size_t len) {
  (void)user, (void)seq, (void)person, (void)data, (void)len;
}

static void read_request(struct request *rq, struct db *db) {
  struct session_state *s = rq->state;
  const struct session_reader reader = {s, ignore_row, ignore_person, ignore_snapshot, ignore_update};
  s->st = store_read_session(db, &s->id_hash, INT64_MAX, INT64_MAX, &reader, &s->found, &s->err);
  s->step = STEP_WRITTEN;
}

enum MHD_Result api_session_get(struct request *rq) {
  enum MHD_Result answer;
  if (!session_begin(rq, SESSION_PERSON_MAYBE, &answer))
    return answer;
  struct session_state *s = rq->state;
  if (s->step == STEP_READY)
    return api_call_store(rq, STORE_READ, read_request);
  if (!session_has_read(rq, &answer))
    return answer;
  buf_putc(&s->answer, '{');
  room_lock(s->room);
  room_put_state(s->room, &s->answer, s->person);
  room_unlock(s->room);
  json_put_key(&s->answer, "kernel");
  buf_append(&s->answer, buf_text(&s->request), s->request.len);
  buf_puts(&s->answer, "}\n");
  return session_send(rq, MHD_HTTP_OK);
}

/* The page itself says that a link leads nowhere. */
enum MHD_Result api_session_page(struct request *rq) {
  rq->is_private = true;
  return static_page(rq, MHD_HTTP_OK);
}
