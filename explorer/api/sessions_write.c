/* What participants send: who they are, updates, snapshots, presence, and what who leads decides. */
#include <string.h>

#include "api/sessions.h"
#include "api/sessions_internal.h"
#include "base/json.h"

enum {
  PRESENCE_NEST_MAX = 8,
  UPDATE_MAX = 256 << 10, /* bytes of the updates of one request */
};

/* Reads the body the first time; true if the handler goes on. */
static bool begin(struct request *rq, bool needs_person, enum MHD_Result *answer) {
  if (!session_begin(rq, needs_person, answer))
    return false;
  const struct session_state *s = rq->state;
  return s->step != STEP_READY || session_read_body(rq, answer);
}

static enum MHD_Result send_empty(struct request *rq) {
  return http_json(rq, MHD_HTTP_OK, "{}\n", 3, true);
}

/* ---- joining --------------------------------------------------------------------------------------------------------- */

static enum MHD_Result send_person(struct request *rq, int person) {
  struct session_state *s = rq->state;
  buf_putc(&s->answer, '{');
  json_put_field_int(&s->answer, "person", person);
  if (*s->token)
    json_put_field_str(&s->answer, "token", s->token);
  buf_puts(&s->answer, "}\n");
  return session_send(rq, MHD_HTTP_OK);
}

static enum MHD_Result join(struct request *rq) {
  struct session_state *s = rq->state;
  enum MHD_Result answer;
  const enum room_refusal refusal = room_may_enter(s->room, s->person);
  if (refusal)
    return session_refuse(rq, refusal);
  if (s->person)
    return send_person(rq, s->person);
  if (!session_read_name(rq, &answer))
    return answer;
  s->st = ident_new(s->token, &s->err);
  if (s->st)
    return http_status_problem(rq, s->st, &s->err);
  ident_hash(s->token, IDENT_LEN, &s->write.w.token);
  s->write.w.text = s->name;
  return session_make(rq, SESSION_JOIN);
}

enum MHD_Result api_session_join(struct request *rq) {
  enum MHD_Result answer;
  if (!begin(rq, SESSION_PERSON_MAYBE, &answer))
    return answer;
  const struct session_state *s = rq->state;
  if (s->step == STEP_READY)
    return join(rq);
  return session_failed(rq, &answer) ? answer : send_person(rq, s->write.w.person);
}

/* ---- updates --------------------------------------------------------------------------------------------------------- */

static enum MHD_Result update(struct request *rq) {
  struct session_state *s = rq->state;
  const json_t *list = json_object_get(s->body, "updates");
  const size_t n = json_array_size(list);
  size_t lengths[SESSION_UPDATES_MAX], at = 0;
  if (!n || n > SESSION_UPDATES_MAX)
    return session_bad_field(rq, "updates", "updates: expected from 1 to 64 texts");
  for (size_t i = 0; i < n; i++) {
    const size_t before = s->bytes.len;
    if (!session_take_base64(s, json_array_get(list, i), UPDATE_MAX) || s->bytes.len > UPDATE_MAX)
      return session_bad_field(rq, "updates", "updates: expected bytes in base64, at most 256 KiB together");
    lengths[i] = s->bytes.len - before;
  }
  const enum room_refusal refusal = room_may_send(s->room, s->person, s->bytes.len);
  if (refusal)
    return session_refuse(rq, refusal);
  for (size_t i = 0; i < n; at += lengths[i++])
    s->write.w.pieces[i] = (struct session_piece){s->bytes.data + at, lengths[i]};
  s->write.w.n_pieces = (int)n;
  return session_make(rq, SESSION_UPDATE);
}

enum MHD_Result api_session_updates(struct request *rq) {
  enum MHD_Result answer;
  if (!begin(rq, SESSION_PERSON_NEEDED, &answer))
    return answer;
  struct session_state *s = rq->state;
  if (s->step == STEP_READY)
    return update(rq);
  if (session_failed(rq, &answer))
    return answer;
  buf_putc(&s->answer, '{');
  json_put_field_int(&s->answer, "seq", s->write.w.seq + s->write.w.n_pieces - 1);
  buf_puts(&s->answer, "}\n");
  return session_send(rq, MHD_HTTP_OK);
}

/* ---- the snapshot ---------------------------------------------------------------------------------------------------- */

static enum MHD_Result snapshot(struct request *rq) {
  struct session_state *s = rq->state;
  const json_t *seq = json_object_get(s->body, "seq");
  enum MHD_Result answer;
  if (!room_may_compact(s->room, s->person))
    return http_problem(rq, PB_SESSION_LEADER, NULL, NULL);
  if (!json_is_integer(seq) || json_integer_value(seq) < 0)
    return session_bad_field(rq, "seq", "seq: expected the number of an update");
  if (!session_take_base64(s, json_object_get(s->body, "data"), SESSION_SNAPSHOT_MAX))
    return session_bad_field(rq, "data", "data: expected bytes in base64, at most 2 MiB");
  if (!session_read_request(rq, &answer))
    return answer;
  const enum room_refusal refusal = room_may_send(s->room, s->person, s->bytes.len / 4);
  if (refusal)
    return session_refuse(rq, refusal);
  s->write.w.number = json_integer_value(seq);
  s->write.w.pieces[0] = (struct session_piece){s->bytes.data, s->bytes.len};
  s->write.w.n_pieces = 1;
  s->write.w.text = buf_text(&s->request);
  return session_make(rq, SESSION_SNAPSHOT);
}

enum MHD_Result api_session_snapshot(struct request *rq) {
  enum MHD_Result answer;
  if (!begin(rq, SESSION_PERSON_NEEDED, &answer))
    return answer;
  if (session_state_of(rq)->step == STEP_READY)
    return snapshot(rq);
  return session_failed(rq, &answer) ? answer : send_empty(rq);
}

/* ---- presence -------------------------------------------------------------------------------------------------------- */

/* It is written anew, so that it is one line. */
enum MHD_Result api_session_presence(struct request *rq) {
  enum MHD_Result answer;
  if (!begin(rq, SESSION_PERSON_NEEDED, &answer))
    return answer;
  const struct session_state *s = rq->state;
  char text[ROOM_PRESENCE_MAX];
  const size_t n = json_dumpb(s->body, text, sizeof text, JSON_COMPACT);
  if (!n || n > sizeof text)
    return http_problem(rq, PB_TOO_LARGE, "A presence has at most 4096 bytes.", NULL);
  const enum room_refusal refusal = (enum room_refusal)hub_show(s->hub, s->room, s->person, text, n);
  return refusal ? session_refuse(rq, refusal) : send_empty(rq);
}

/* ---- leading --------------------------------------------------------------------------------------------------------- */

static const struct {
  const char *name;
  enum session_act act;
} acts[] = {{"offer", SESSION_OFFER}, {"accept", SESSION_ACCEPT},       {"decline", SESSION_DECLINE},
            {"claim", SESSION_CLAIM}, {"read-only", SESSION_READ_ONLY}, {"end", SESSION_END}};

static enum MHD_Result claim(struct request *rq) {
  struct session_state *s = rq->state;
  int leader;
  const enum room_refusal refusal = room_may_claim(s->room, s->person, &leader);
  s->write.w.number = leader;
  return refusal ? session_refuse(rq, refusal) : session_make(rq, SESSION_CLAIM);
}

static enum MHD_Result act(struct request *rq, enum session_act act) {
  struct session_state *s = rq->state;
  const json_t *to = json_object_get(s->body, "to"), *on = json_object_get(s->body, "on");
  const char *snippet = json_string_value(json_object_get(s->body, "snippet"));
  const enum room_refusal refusal = room_may_send(s->room, s->person, 1);
  if (refusal)
    return session_refuse(rq, refusal);
  if (act == SESSION_OFFER && !json_is_integer(to))
    return session_bad_field(rq, "to", "to: expected the number of a person, or 0");
  if (act == SESSION_READ_ONLY && !json_is_boolean(on))
    return session_bad_field(rq, "on", "on: expected true or false");
  if (act == SESSION_END && snippet && !ident_is_valid(snippet, strlen(snippet)))
    return session_bad_field(rq, "snippet", "snippet: expected the id of a link");
  if (act == SESSION_CLAIM)
    return claim(rq);
  s->write.w.number = act == SESSION_OFFER ? json_integer_value(to) : json_is_true(on);
  s->write.w.text = act == SESSION_END ? snippet : NULL;
  return session_make(rq, act);
}

enum MHD_Result api_session_lead(struct request *rq) {
  enum MHD_Result answer;
  if (!begin(rq, SESSION_PERSON_NEEDED, &answer))
    return answer;
  const struct session_state *s = rq->state;
  const char *name = json_string_value(json_object_get(s->body, "act"));
  if (s->step != STEP_READY)
    return session_failed(rq, &answer) ? answer : send_empty(rq);
  for (size_t i = 0; name && i < sizeof acts / sizeof *acts; i++)
    if (!strcmp(acts[i].name, name))
      return act(rq, acts[i].act);
  return session_bad_field(rq, "act",
                           "act: expected \"offer\", \"accept\", \"decline\", \"claim\", \"read-only\" or \"end\"");
}
