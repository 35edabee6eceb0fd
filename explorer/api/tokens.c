#include "api/tokens.h"

#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "api/admit.h"
#include "api/part.h"
#include "api/runs_internal.h"
#include "api/services.h"
#include "base/json.h"
#include "base/log.h"
#include "store/operator.h"
#include "store/tokens.h"

enum { TOKENS_MAX = 16 << 20 };

struct tokens_state {
  char name[ACCESS_NAME_MAX + 1];
  enum role role;
  struct buf groups;
  struct ident_hash hash;
  /* the outcome */
  enum status st;
  struct error err;
  bool found;
  struct buf answer;
};

static void free_state(void *user) {
  struct tokens_state *s = user;
  buf_clear(&s->groups);
  buf_clear(&s->answer);
  free(s);
}

/* The request's state; NULL: *answer is set. */
static struct tokens_state *start(struct request *rq, enum MHD_Result *answer) {
  const char *proof = http_header(rq, OPERATOR_HEADER);
  const bool is_proven = proof && operator_is_proven(store_secret(services_of(rq)->store), store_now_ms(), rq->method,
                                                     rq->path, buf_text(&rq->body), rq->body.len, proof);
  if (!is_proven && identity_of(rq)->role < ROLE_OPERATOR) {
    *answer = http_problem(rq, PB_OPERATOR, NULL, NULL);
    return NULL;
  }
  struct tokens_state *s = calloc(1, sizeof *s);
  *answer = MHD_NO;
  if (!s)
    return NULL;
  buf_init(&s->groups, ACCESS_GROUPS_MAX);
  buf_init(&s->answer, TOKENS_MAX);
  rq->state = s;
  rq->free_state = free_state;
  rq->is_private = true;
  return s;
}

/* Letters, digits and some signs, so that a name can be a part of a path. */
static bool set_name(struct tokens_state *s, const char *text) {
  static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.";
  const size_t len = text ? strlen(text) : 0;
  if (!len || len > ACCESS_NAME_MAX || strspn(text, letters) != len)
    return false;
  memcpy(s->name, text, len + 1);
  return true;
}

static enum MHD_Result refuse(struct request *rq, const char *message, const char *field) {
  return http_problem(rq, PB_BAD_FIELD, message, field);
}

static enum MHD_Result refuse_name(struct request *rq) {
  return refuse(rq, "name: expected at most 63 letters, digits, \"-\", \"_\" or \".\"", "name");
}

/* True: the store has failed, and *answer is set. */
static bool failed(struct request *rq, enum MHD_Result *answer) {
  const struct tokens_state *s = rq->state;
  const bool is_lost = api_part(rq)->call.is_lost || s->st == ST_BUSY;
  if (is_lost)
    *answer = http_problem(rq, PB_STORE, NULL, NULL);
  else if (s->st == ST_DENIED)
    *answer = http_problem(rq, PB_TAKEN, NULL, NULL);
  else if (s->st)
    *answer = http_status_problem(rq, s->st, &s->err);
  return is_lost || s->st;
}

static void log_change(const struct request *rq, const char *what) {
  const struct tokens_state *s = rq->state;
  char client[CLIENT_NAME_SIZE];
  http_client_name(rq, client);
  log_info("audit", "what=%s outcome=ok token=%s role=%s client=%s request=%s", what, s->name,
           s->role ? role_name(s->role) : "-", client, rq->id);
}

/* ---- listing ----------------------------------------------------------------------------------------------------- */

static void put_token(void *user, const struct access_token *t) {
  struct buf *b = user;
  json_put_comma(b);
  buf_putc(b, '{');
  json_put_field_str(b, "name", t->name);
  json_put_field_str(b, "role", t->role);
  json_put_key(b, "groups");
  buf_putc(b, '[');
  for (const char *p = t->groups; *p; p = strchr(p, '\n') + 1) {
    json_put_comma(b);
    json_put_string(b, p, strcspn(p, "\n"));
  }
  buf_putc(b, ']');
  json_put_field_int(b, "created_ms", t->created_ms);
  if (t->revoked_ms)
    json_put_field_int(b, "revoked_ms", t->revoked_ms);
  buf_putc(b, '}');
}

static void list(struct request *rq, struct db *db) {
  struct tokens_state *s = rq->state;
  buf_puts(&s->answer, "{\"tokens\":[");
  s->st = store_each_access_token(db, put_token, &s->answer, &s->err);
  buf_puts(&s->answer, "]}\n");
  if (!s->st && buf_status(&s->answer))
    s->st = fail(&s->err, buf_status(&s->answer), "tokens");
}

enum MHD_Result api_access_tokens_get(struct request *rq) {
  const struct tokens_state *s = rq->state;
  enum MHD_Result answer;
  if (!s)
    return start(rq, &answer) ? api_call_store(rq, STORE_READ, list) : answer;
  return failed(rq, &answer) ? answer : http_json(rq, MHD_HTTP_OK, buf_text(&s->answer), s->answer.len, false);
}

/* ---- making ------------------------------------------------------------------------------------------------------ */

static void put(struct request *rq, struct db *db) {
  struct tokens_state *s = rq->state;
  const struct access_token t = {.name = s->name, .role = role_name(s->role), .groups = buf_text(&s->groups)};
  s->st = store_put_access_token(db, &s->hash, &t, &s->err);
}

static bool read_groups(struct tokens_state *s, const json_t *groups) {
  json_t *one;
  size_t i;
  json_array_foreach(groups, i, one) {
    const char *text = json_string_value(one);
    if (!text || !*text || strlen(text) != json_string_length(one) || strpbrk(text, "\n,"))
      return false;
    buf_puts(&s->groups, text);
    buf_putc(&s->groups, '\n');
  }
  return (!groups || json_is_array(groups)) && !buf_status(&s->groups);
}

static enum MHD_Result read_body(struct request *rq, struct tokens_state *s, const json_t *body) {
  const char *hash = json_string_value(json_object_get(body, "hash"));
  s->role = role_find(json_string_value(json_object_get(body, "role")));
  if (!json_is_object(body))
    return http_problem(rq, PB_BAD_JSON, NULL, NULL);
  if (!set_name(s, json_string_value(json_object_get(body, "name"))))
    return refuse_name(rq);
  if (!s->role)
    return refuse(rq, "role: expected \"reader\", \"author\" or \"operator\"", "role");
  if (!hash || !run_read_hex(hash, strlen(hash), &s->hash))
    return refuse(rq, "hash: expected 64 hexadecimal digits", "hash");
  if (!read_groups(s, json_object_get(body, "groups")))
    return refuse(rq, "groups: expected names without commas, of at most 4096 bytes together", "groups");
  return api_call_store(rq, STORE_WRITE, put);
}

enum MHD_Result api_access_tokens_post(struct request *rq) {
  struct tokens_state *s = rq->state;
  enum MHD_Result answer;
  if (!s) {
    s = start(rq, &answer);
    if (!s)
      return answer;
    json_t *body = json_loadb(buf_text(&rq->body), rq->body.len, JSON_REJECT_DUPLICATES, NULL);
    answer = read_body(rq, s, body);
    json_decref(body);
    return answer;
  }
  if (failed(rq, &answer))
    return answer;
  log_change(rq, "token-created");
  return http_json(rq, MHD_HTTP_CREATED, "{}\n", 3, true);
}

/* ---- revoking ---------------------------------------------------------------------------------------------------- */

static void revoke_it(struct request *rq, struct db *db) {
  struct tokens_state *s = rq->state;
  s->st = store_revoke_access_token(db, s->name, &s->found, &s->err);
}

enum MHD_Result api_access_tokens_delete(struct request *rq) {
  struct tokens_state *s = rq->state;
  enum MHD_Result answer;
  if (!s) {
    s = start(rq, &answer);
    if (!s)
      return answer;
    return set_name(s, rq->rest) ? api_call_store(rq, STORE_WRITE, revoke_it) : refuse_name(rq);
  }
  if (failed(rq, &answer))
    return answer;
  if (!s->found)
    return http_problem(rq, PB_NOT_FOUND, "There is no valid token of this name.", NULL);
  log_change(rq, "token-revoked");
  return http_send(rq, MHD_HTTP_NO_CONTENT, MHD_create_response_from_buffer(0, (void *)"", MHD_RESPMEM_PERSISTENT));
}
