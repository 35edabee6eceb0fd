#include "api/audit.h"

#include "base/log.h"

static const char *outcome(const struct snippet_state *s) {
  return s->st ? status_name(s->st) : !s->found ? "not-found" : s->is_allowed ? "ok" : "denied";
}

void audit_link(const struct request *rq, const char *what, const struct ident_hash *link) {
  const struct snippet_state *s = rq->state;
  char name[IDENT_NAME_SIZE], client[CLIENT_NAME_SIZE];
  ident_name(link, name);
  http_client_name(rq, client);
  log_info("audit", "what=%s outcome=%s link=%s bytes=%lld client=%s request=%s", what, outcome(s), name,
           (long long)s->snippet.packed, client, rq->id);
}
