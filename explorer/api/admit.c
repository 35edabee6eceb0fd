#include "api/admit.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "api/part.h"
#include "api/services.h"
#include "base/json.h"
#include "http/framing.h"
#include "http/route.h"
#include "store/tokens.h"

#define TOKEN_PREFIX "nkx_" /* of its text */
#define TOKEN_NAME "token:" /* of its name as an identity */

const struct identity *identity_of(const struct request *rq) {
  return &api_part(rq)->identity;
}

/* ---- who asks ---------------------------------------------------------------------------------------------------- */

static void read_person(struct request *rq, struct identity *id) {
  const struct identity_config *cfg = services_of(rq)->identity;
  const struct http_config *http = &rq->cfg->http;
  const char *email = http_header_once(rq, http->email_header), *groups = http_header_once(rq, http->groups_header);
  id->role = (enum role)cfg->anonymous;
  if (!strncmp(rq->user, TOKEN_NAME, sizeof TOKEN_NAME - 1)) /* no person is named like a token */
    rq->user[0] = 0;
  if (!rq->user[0])
    return;
  id->kind = IDENTITY_PERSON;
  snprintf(id->name, sizeof id->name, "%s", rq->user);
  if (email && strlen(email) < sizeof id->email)
    strcpy(id->email, email);
  id->groups = groups ? identity_read_groups(groups) : NULL;
  enum role own = cfg->author_groups ? ROLE_READER : ROLE_AUTHOR;
  if (identity_has_any_group(id, cfg->author_groups))
    own = ROLE_AUTHOR;
  if (identity_has_any_group(id, cfg->operator_groups))
    own = ROLE_OPERATOR;
  id->role = own > id->role ? own : id->role;
}

/* The token that the request shows, or NULL; what other programs put into the header is not ours to judge. */
static const char *token_of(const struct request *rq) {
  static const char bearer[] = "Bearer " TOKEN_PREFIX;
  const char *h = http_header(rq, MHD_HTTP_HEADER_AUTHORIZATION);
  return h && !strncasecmp(h, bearer, sizeof bearer - 1) ? h + sizeof bearer - 1 : NULL;
}

static void take_token(void *user, const struct access_token *t) {
  struct request *rq = user;
  struct identity *id = &api_part(rq)->identity;
  id->kind = IDENTITY_TOKEN;
  id->role = role_find(t->role);
  snprintf(id->name, sizeof id->name, TOKEN_NAME "%s", t->name);
  id->groups = t->groups[0] ? strdup(t->groups) : NULL;
  memcpy(rq->user, id->name, sizeof rq->user); /* it has shares of its own */
}

static void find_token(struct request *rq, struct db *db) {
  const char *token = token_of(rq);
  struct ident_hash hash;
  struct error err;
  const bool is_token = strlen(token) == IDENT_LEN && ident_is_valid(token, IDENT_LEN);
  ident_hash(is_token ? token : "", is_token ? IDENT_LEN : 0, &hash);
  api_part(rq)->identity.st = store_find_access_token(db, &hash, take_token, rq, &err);
}

/* False: *answer is set. */
static bool find_out(struct request *rq, enum MHD_Result *answer) {
  struct api_part *part = api_part(rq);
  struct identity *id = &part->identity;
  if (!token_of(rq)) {
    read_person(rq, id);
    return true;
  }
  if (part->call.state == CALL_NONE) {
    *answer = api_call_store(rq, STORE_READ, find_token);
    return false;
  }
  const bool is_lost = part->call.is_lost || id->st;
  part->call = (struct store_call){0}; /* the handler's own call begins anew */
  if (is_lost)
    *answer = http_problem(rq, PB_STORE, NULL, NULL);
  else if (id->kind != IDENTITY_TOKEN)
    *answer = http_problem(rq, PB_BAD_TOKEN, NULL, NULL);
  return !is_lost && id->kind == IDENTITY_TOKEN;
}

/* ---- what they may do -------------------------------------------------------------------------------------------- */

static enum role needed(const struct request *rq) {
  if (!rq->route || rq->route->who != ROUTE_USERS || rq->route->is_open)
    return ROLE_NONE;
  const bool changes = rq->route->is_change || rq->route->is_kept;
  return changes && !route_is_get(rq->method) ? ROLE_AUTHOR : ROLE_READER;
}

bool identity_admit(struct request *rq, enum MHD_Result *answer) {
  struct identity *id = &api_part(rq)->identity;
  if (id->is_admitted)
    return true;
  if (!id->is_known && !find_out(rq, answer))
    return false;
  id->is_known = true;
  id->is_admitted = id->role >= needed(rq);
  if (!id->is_admitted)
    *answer = http_problem(rq, id->kind == IDENTITY_ANONYMOUS ? PB_SIGN_IN : PB_ROLE, NULL, NULL);
  return id->is_admitted;
}

enum MHD_Result api_me(struct request *rq) {
  enum { ME_MAX = 4 * FRAMING_HEAD_MAX };
  const struct identity *id = identity_of(rq);
  struct buf b;
  buf_init(&b, ME_MAX);
  buf_putc(&b, '{');
  json_put_key(&b, "name");
  if (id->name[0])
    json_put_string(&b, id->name, strlen(id->name));
  else
    buf_puts(&b, "null");
  if (id->email[0])
    json_put_field_str(&b, "email", id->email);
  json_put_key(&b, "groups");
  buf_putc(&b, '[');
  for (const char *p = id->groups; p && *p; p = strchr(p, '\n') + 1) {
    json_put_comma(&b);
    json_put_string(&b, p, strcspn(p, "\n"));
  }
  buf_putc(&b, ']');
  json_put_field_str(&b, "kind", identity_kind_name(id->kind));
  json_put_field_str(&b, "role", role_name(id->role));
  json_put_field_bool(&b, "has_sign_in", rq->cfg->http.user_header != NULL);
  buf_puts(&b, "}\n");
  const enum MHD_Result r = http_json(rq, MHD_HTTP_OK, buf_text(&b), b.len, false);
  buf_clear(&b);
  return r;
}
