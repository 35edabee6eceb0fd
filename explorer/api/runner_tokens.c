/* /api/v1/runners/tokens: the operator makes, lists and revokes the tokens of runners.
 *
 * Who can read the store is the operator: each request proves that (store/operator.h).  The server learns a token's hash only.
 */
#include "api/runs_internal.h"

#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/log.h"
#include "store/operator.h"

/* Sets the state; false: *answer is set. */
static bool start(struct request *rq, enum MHD_Result *answer) {
  const char *proof = http_header(rq, OPERATOR_HEADER);
  const bool is_proven = proof && operator_is_proven(store_secret(services_of(rq)->store), store_now_ms(), rq->method,
                                                     rq->path, buf_text(&rq->body), rq->body.len, proof);
  if (!is_proven)
    *answer = http_problem(rq, PB_OPERATOR, NULL, NULL);
  else if (!run_state_new(rq))
    *answer = MHD_NO;
  return is_proven && rq->state;
}

/* Letters, digits and some signs, so that a name can be a part of a path. */
static bool set_name(struct run_state_of *s, const char *text, size_t len) {
  static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.";
  if (!text || !len || len >= sizeof s->name || strspn(text, letters) != len)
    return false;
  memcpy(s->name, text, len);
  s->name[len] = 0;
  return true;
}

static enum MHD_Result refuse_name(struct request *rq) {
  return http_problem(rq, PB_BAD_FIELD, "name: expected at most 63 letters, digits, \"-\", \"_\" or \".\"", "name");
}

/* ---- listing ------------------------------------------------------------------------------------------------------- */

static void put_token(void *user, const struct token_seen *t) {
  struct buf *b = user;
  json_put_comma(b);
  buf_putc(b, '{');
  json_put_field_str(b, "name", t->name);
  json_put_field_int(b, "created_ms", t->created_ms);
  if (t->revoked_ms)
    json_put_field_int(b, "revoked_ms", t->revoked_ms);
  buf_putc(b, '}');
}

static void list(struct request *rq, struct db *db) {
  struct run_state_of *s = rq->state;
  buf_puts(&s->answer, "{\"tokens\":[");
  s->st = store_each_token(db, put_token, &s->answer, &s->err);
  buf_puts(&s->answer, "]}\n");
}

enum MHD_Result api_tokens_get(struct request *rq) {
  const struct run_state_of *s = rq->state;
  enum MHD_Result answer;
  if (!s)
    return start(rq, &answer) ? api_call_store(rq, STORE_READ, list) : answer;
  return run_failed(rq, &answer) ? answer : http_json(rq, MHD_HTTP_OK, buf_text(&s->answer), s->answer.len, false);
}

/* ---- making -------------------------------------------------------------------------------------------------------- */

static void put(struct request *rq, struct db *db) {
  struct run_state_of *s = rq->state;
  s->st = store_put_token(db, s->name, &s->token, &s->err);
}

static enum MHD_Result start_post(struct request *rq) {
  enum MHD_Result answer;
  if (!start(rq, &answer) || !runner_read_body(rq, &answer))
    return answer;
  struct run_state_of *s = rq->state;
  const json_t *name = json_object_get(s->body, "name");
  const char *hash = json_string_value(json_object_get(s->body, "hash"));
  if (!set_name(s, json_string_value(name), json_string_length(name)))
    return refuse_name(rq);
  if (!hash || !run_read_hex(hash, strlen(hash), &s->token))
    return http_problem(rq, PB_BAD_FIELD, "hash: expected 64 hexadecimal digits", "hash");
  return api_call_store(rq, STORE_WRITE, put);
}

enum MHD_Result api_tokens_post(struct request *rq) {
  const struct run_state_of *s = rq->state;
  enum MHD_Result answer;
  if (!s)
    return start_post(rq);
  if (s->st == ST_DENIED)
    return http_problem(rq, PB_TAKEN, NULL, NULL);
  if (run_failed(rq, &answer))
    return answer;
  log_info("runner_token", "created=%s", s->name);
  return http_json(rq, MHD_HTTP_CREATED, "{}\n", 3, true);
}

/* ---- revoking ------------------------------------------------------------------------------------------------------ */

static void revoke_it(struct request *rq, struct db *db) {
  struct run_state_of *s = rq->state;
  s->st = store_revoke_token(db, s->name, &s->found, &s->err);
}

enum MHD_Result api_tokens_delete(struct request *rq) {
  struct run_state_of *s = rq->state;
  enum MHD_Result answer;
  if (!s) {
    if (!start(rq, &answer))
      return answer;
    s = rq->state;
    return set_name(s, rq->rest, strlen(rq->rest)) ? api_call_store(rq, STORE_WRITE, revoke_it) : refuse_name(rq);
  }
  if (run_failed(rq, &answer))
    return answer;
  if (!s->found)
    return http_problem(rq, PB_NOT_FOUND, "There is no valid token of this name.", NULL);
  log_info("runner_token", "revoked=%s", s->name);
  runs_wake(rq);
  return http_send(rq, MHD_HTTP_NO_CONTENT, MHD_create_response_from_buffer(0, (void *)"", MHD_RESPMEM_PERSISTENT));
}
