#include "api/sessions_internal.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/evp.h>

#include "api/compile.h"
#include "api/snippet.h"
#include "base/json.h"
#include "driver/job.h"

enum { ANSWER_MAX = SESSION_REQUEST_MAX + (1 << 20) };

static void free_state(void *user) {
  struct session_state *s = user;
  if (s->room)
    hub_leave(s->hub, s->room);
  json_decref(s->body);
  buf_clear(&s->bytes);
  buf_clear(&s->request);
  buf_clear(&s->answer);
  free(s);
}

struct session_state *session_state_new(struct request *rq) {
  struct session_state *s = calloc(1, sizeof *s);
  if (!s)
    return NULL;
  s->hub = services_of(rq)->sessions;
  buf_init(&s->bytes, SESSION_SNAPSHOT_MAX);
  buf_init(&s->request, SESSION_REQUEST_MAX);
  buf_init(&s->answer, ANSWER_MAX);
  rq->state = s;
  rq->free_state = free_state;
  rq->is_private = true;
  return s;
}

enum MHD_Result session_bad_field(struct request *rq, const char *field, const char *message) {
  return http_problem(rq, PB_BAD_FIELD, message, field);
}

enum MHD_Result session_send(struct request *rq, unsigned status) {
  const struct session_state *s = rq->state;
  return buf_status(&s->answer) ? http_problem(rq, PB_INTERNAL, NULL, NULL)
                                : http_json(rq, status, buf_text(&s->answer), s->answer.len, false);
}

/* ---- the room and the person ------------------------------------------------------------------------------------------- */

static void read_room(struct request *rq, struct db *db) {
  struct session_state *s = rq->state;
  s->st = room_read_store(s->room, db, &s->found, &s->err);
}

/* What cannot be an id is looked up like one that no session has. */
static void take_ids(struct request *rq, struct session_state *s) {
  const char *token = http_header(rq, SESSION_TOKEN_HEADER);
  const bool is_id = strlen(rq->rest) == IDENT_LEN && ident_is_valid(rq->rest, IDENT_LEN);
  const bool is_token = token && strlen(token) == IDENT_LEN && ident_is_valid(token, IDENT_LEN);
  ident_hash(is_id ? rq->rest : "", is_id ? IDENT_LEN : 0, &s->id_hash);
  s->has_token = token != NULL;
  ident_hash(is_token ? token : "", is_token ? IDENT_LEN : 0, &s->token_hash);
}

bool session_has_read(struct request *rq, enum MHD_Result *answer) {
  const struct session_state *s = rq->state;
  if (api_part(rq)->call.is_lost || s->st == ST_BUSY)
    *answer = http_problem(rq, PB_STORE, NULL, NULL);
  else if (s->st)
    *answer = http_status_problem(rq, s->st, &s->err);
  else if (!s->found)
    *answer = snippet_not_found(rq);
  return !api_part(rq)->call.is_lost && !s->st && s->found;
}

/* A person who has joined at another server is found once the store was read again. */
static bool find_person(struct request *rq, bool is_needed, enum MHD_Result *answer) {
  struct session_state *s = rq->state;
  s->person = s->has_token ? room_find_person(s->room, &s->token_hash) : 0;
  if (s->person || (!s->has_token && !is_needed))
    return true;
  if (s->has_token && !s->was_read_again && store_is_shared(services_of(rq)->store)) {
    s->was_read_again = true;
    s->step = STEP_READING;
    *answer = api_call_store(rq, STORE_READ, read_room);
    return false;
  }
  *answer = http_problem(rq, PB_SESSION_TOKEN, NULL, NULL);
  return false;
}

static bool enter(struct request *rq, enum MHD_Result *answer) {
  if (!snippet_may_ask(rq, answer)) /* an id could be guessed */
    return false;
  struct session_state *s = session_state_new(rq);
  *answer = MHD_NO;
  if (!s)
    return false;
  take_ids(rq, s);
  s->room = hub_enter(s->hub, &s->id_hash);
  if (!s->room) {
    *answer = http_problem(rq, PB_BUSY, "Too many sessions are open. Try again in a moment.", NULL);
    return false;
  }
  s->step = STEP_READY;
  if (room_is_known(s->room))
    return true;
  s->step = STEP_READING;
  *answer = api_call_store(rq, STORE_READ, read_room);
  return false;
}

bool session_begin(struct request *rq, bool needs_person, enum MHD_Result *answer) {
  struct session_state *s = rq->state;
  if (s && s->step > STEP_READY)
    return true;
  if (!s && !enter(rq, answer))
    return false;
  s = rq->state;
  if (s->step == STEP_READING && !session_has_read(rq, answer))
    return false;
  s->step = STEP_READY;
  return find_person(rq, needs_person, answer);
}

/* ---- bodies ------------------------------------------------------------------------------------------------------------ */

bool session_read_body(struct request *rq, enum MHD_Result *answer) {
  struct session_state *s = rq->state;
  struct error err;
  const enum status st = compile_check_nesting(&rq->body, &err);
  if (!st)
    s->body = json_loadb(buf_text(&rq->body), rq->body.len, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, NULL);
  buf_clear(&rq->body);
  if (json_is_object(s->body))
    return true;
  *answer = http_problem(rq, PB_BAD_JSON, NULL, NULL);
  return false;
}

/* No control characters, and none that change the direction of the text after them. */
static bool is_plain(const char *s) {
  for (const unsigned char *p = (const unsigned char *)s; *p; p++) {
    if (*p < 0x20 || *p == 0x7f || (*p == 0xc2 && p[1] < 0xa0))
      return false;
    if (*p == 0xe2 && ((p[1] == 0x80 && (p[2] >= 0xaa && p[2] <= 0xae)) || (p[1] == 0x80 && (p[2] & 0xfe) == 0xa8) ||
                       (p[1] == 0x81 && p[2] >= 0xa6 && p[2] <= 0xa9)))
      return false;
  }
  return true;
}

bool session_read_name(struct request *rq, enum MHD_Result *answer) {
  struct session_state *s = rq->state;
  const json_t *v = json_object_get(s->body, "name");
  const char *text = json_string_value(v);
  const size_t n = json_string_length(v);
  if (text && n && n <= SESSION_NAME_MAX && strlen(text) == n && is_plain(text) && strspn(text, " ") != n) {
    memcpy(s->name, text, n + 1);
    return true;
  }
  *answer = session_bad_field(rq, "name", "name: expected at most 64 bytes of text without control characters");
  return false;
}

/* The request must be one that can be compiled and stored, because the session becomes a link. */
static enum status check_request(const json_t *request, struct error *err) {
  struct arena a;
  struct job job;
  enum status st = compile_arena(&a, JOB_JSON_MAX, err);
  if (st)
    return st;
  st = job_read(&a, request, &job, err);
  arena_clear(&a);
  return st;
}

bool session_read_request(struct request *rq, enum MHD_Result *answer) {
  struct session_state *s = rq->state;
  json_t *request = json_object_get(s->body, "request"), *view = json_object_get(s->body, "view");
  struct error err;
  if (!json_is_object(request)) {
    *answer = session_bad_field(rq, "request", "request: expected what POST /api/v1/compile takes");
    return false;
  }
  enum status st = view ? snippet_check_view(view, &err) : ST_OK;
  if (!st)
    st = check_request(request, &err);
  if (st) {
    *answer = http_status_problem(rq, st, &err);
    return false;
  }
  json_t *both =
      view ? json_pack("{s:O,s:O}", "request", request, "view", view) : json_pack("{s:O}", "request", request);
  char *text = both ? json_dumps(both, JSON_COMPACT) : NULL;
  json_decref(both);
  if (text)
    buf_puts(&s->request, text);
  free(text);
  if (!text || buf_status(&s->request)) {
    *answer = http_problem(rq, text ? PB_TOO_LARGE : PB_INTERNAL, NULL, text ? "request" : NULL);
    return false;
  }
  return true;
}

bool session_take_base64(struct session_state *s, const json_t *text, size_t max) {
  static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  const char *at = json_string_value(text);
  const size_t n = json_string_length(text), body = at ? strspn(at, letters) : 0;
  if (!n || n % 4 || n - body > 2 || strspn(at + body, "=") != n - body || n / 4 * 3 > max)
    return false;
  if (buf_reserve(&s->bytes, n / 4 * 3 + 1))
    return false;
  const int got = EVP_DecodeBlock((unsigned char *)s->bytes.data + s->bytes.len, (const unsigned char *)at, (int)n);
  if (got < 0)
    return false;
  s->bytes.len += (size_t)got - (n - body); /* the padding is decoded, too */
  return true;
}

/* ---- writes ------------------------------------------------------------------------------------------------------------ */

enum MHD_Result session_make(struct request *rq, enum session_act act) {
  struct session_state *s = rq->state;
  assert(s->step == STEP_READY);
  s->write.w.act = act;
  s->write.w.session = s->id_hash;
  if (act != SESSION_JOIN)
    s->write.w.person = s->person;
  if (!s->write.w.text)
    s->write.w.text = "";
  s->write.room = s->room;
  s->write.resume = http_resume;
  s->write.user = rq->connection;
  s->step = STEP_WRITTEN;
  http_park(rq->connection);
  hub_make(s->hub, &s->write);
  return MHD_YES;
}

bool session_failed(struct request *rq, enum MHD_Result *answer) {
  static const enum problem problems[] = {
      [SESSION_UNKNOWN] = PB_NOT_FOUND,         [SESSION_HAS_ENDED] = PB_SESSION_ENDED,
      [SESSION_NOT_LEADER] = PB_SESSION_LEADER, [SESSION_NOT_OFFERED] = PB_SESSION_OFFER,
      [SESSION_NO_PERSON] = PB_SESSION_PERSON,  [SESSION_IS_READ_ONLY] = PB_SESSION_READ_ONLY,
      [SESSION_LOG_FULL] = PB_SESSION_LOG,      [SESSION_CROWDED] = PB_SESSION_CROWDED,
      [SESSION_OLD] = PB_SESSION_OLD,
  };
  const struct session_state *s = rq->state;
  const struct hub_write *w = &s->write;
  if (w->st == ST_BUSY)
    *answer = http_problem(rq, PB_STORE, NULL, NULL);
  else if (w->st)
    *answer = http_status_problem(rq, w->st, &w->err);
  else if (w->w.verdict)
    *answer = http_problem(rq, problems[w->w.verdict], NULL, NULL);
  return w->st || w->w.verdict;
}

enum MHD_Result session_refuse(struct request *rq, enum room_refusal refusal) {
  static const enum problem problems[] = {[ROOM_ENDED] = PB_SESSION_ENDED,
                                          [ROOM_CROWDED] = PB_SESSION_CROWDED,
                                          [ROOM_RATE] = PB_SESSION_RATE,
                                          [ROOM_LEADER_IS_HERE] = PB_SESSION_OFFER};
  return http_problem(rq, problems[refusal], NULL, NULL);
}
