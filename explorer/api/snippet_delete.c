/* DELETE /api/v1/snippets/ID: now, or after some time. */
#include <stdlib.h>
#include <string.h>

#include "api/audit.h"
#include "api/services.h"
#include "api/snippet.h"
#include "api/snippets.h"

/* On the store's writing thread. */
static void remove_it(struct request *rq, struct db *db) {
  struct snippet_state *s = rq->state;
  const struct ident_hash *token = s->who->role == ROLE_OPERATOR ? NULL : &s->token; /* an operator needs none */
  if (s->after_ms < 0)
    s->st = store_delete_snippet(db, &s->id_hash, token, &s->found, &s->is_allowed, &s->err);
  else
    s->st =
        store_expire_snippet(db, &s->id_hash, token, store_now_ms() + s->after_ms, &s->found, &s->is_allowed, &s->err);
  if (s->st || s->is_allowed) /* after a failure, too: it may have been deleted */
    kept_forget(services_of(rq)->kept);
  audit_link(rq, s->after_ms < 0 ? "link-deleted" : "link-expires", &s->id_hash);
  snippet_hide(s, db);
}

/* The argument `after` in milliseconds; -1 if there is none.  False if it is not a number of seconds. */
static bool read_after(struct request *rq, int64_t *ms) {
  const char *text = http_argument(rq, "after");
  char *end;
  *ms = -1;
  if (!text)
    return true;
  long n = strtol(text, &end, 10);
  *ms = (int64_t)n * 1000;
  return end != text && !*end && n >= 0 && n <= SNIPPET_EXPIRES_MAX_S;
}

static enum MHD_Result start(struct request *rq) {
  int64_t after_ms;
  enum MHD_Result answer;
  if (!read_after(rq, &after_ms))
    return http_problem(rq, PB_BAD_FIELD, "after: expected seconds", "after");
  struct snippet_state *s = snippet_begin(rq, strlen(rq->rest), &answer);
  if (!s)
    return answer;
  s->after_ms = after_ms;
  snippet_set_token(rq);
  return api_call_store(rq, STORE_WRITE, remove_it);
}

enum MHD_Result api_snippet_delete(struct request *rq) {
  const struct snippet_state *s = rq->state;
  enum MHD_Result answer;
  if (api_part(rq)->call.state == CALL_NONE)
    return start(rq);
  if (snippet_store_failed(rq, &answer))
    return answer;
  if (!s->found)
    return snippet_not_found(rq);
  if (!s->is_allowed)
    return http_problem(rq, PB_DENIED, NULL, NULL);
  return http_send(rq, MHD_HTTP_NO_CONTENT, MHD_create_response_from_buffer(0, (void *)"", MHD_RESPMEM_PERSISTENT));
}
