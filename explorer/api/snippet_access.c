/* POST /api/v1/snippets/ID/access: who may open a link from now on. */
#include <stdlib.h>
#include <string.h>

#include "api/access.h"
#include "api/audit.h"
#include "api/compile.h"
#include "api/services.h"
#include "api/snippet.h"
#include "api/snippets.h"
#include "base/json.h"

/* What is asked for, and the document that it led to. */
struct change {
  bool is_private;
  json_t *access; /* NULL: nobody but the owner */
  struct buf doc;
};

static struct change *change_of(const struct request *rq) {
  return snippet_state_of(rq)->more;
}

static void free_change(void *user) {
  struct change *c = user;
  json_decref(c->access);
  buf_clear(&c->doc);
  free(c);
}

/* ---- the request ------------------------------------------------------------------------------------------------- */

static enum status read_members(const json_t *root, struct change *c, struct error *err) {
  const char *key, *visibility = json_string_value(json_object_get(root, "visibility"));
  json_t *value;
  if (!json_is_object(root))
    return fail(err, ST_INPUT, "expected a JSON object");
  json_object_foreach((json_t *)(uintptr_t)root, key,
                      value) if (strcmp(key, "visibility") &&
                                 strcmp(key, "access")) return fail(err, ST_INPUT, "there is no member \"%.40s\"", key);
  if (!visibility || (strcmp(visibility, "unlisted") && strcmp(visibility, "private")))
    return fail(err, ST_INPUT, "visibility: expected \"unlisted\" or \"private\"");
  c->is_private = !strcmp(visibility, "private");
  c->access = json_incref(json_object_get(root, "access"));
  if (c->access && !c->is_private)
    return fail(err, ST_INPUT, "access: of a private link only; say \"visibility\": \"private\", too");
  return ST_OK;
}

static enum status read_change(struct request *rq, struct change *c, struct error *err) {
  json_error_t jerr;
  enum status st = compile_check_nesting(&rq->body, err);
  if (st)
    return st;
  json_t *root = json_loadb(buf_text(&rq->body), rq->body.len, JSON_REJECT_DUPLICATES, &jerr);
  st = root ? read_members(root, c, err)
            : fail(err, ST_INPUT, "line %d column %d: %s", jerr.line, jerr.column, jerr.text);
  json_decref(root);
  return st;
}

/* ---- the store's writing thread ---------------------------------------------------------------------------------- */

/* Who may change it: who has the edit token, its owner, an operator. */
static enum status rewrite(void *user, const struct store_snippet *now, struct buf *out, struct error *err) {
  const struct request *rq = user;
  struct snippet_state *s = rq->state;
  struct change *c = change_of(rq);
  s->is_allowed =
      ident_hash_equal(&now->token, &s->token) || s->who->role == ROLE_OPERATOR || access_is_owner(&now->doc, s->who);
  if (!s->is_allowed)
    return ST_OK;
  if (now->public_id[0])
    return fail(err, ST_INPUT, "visibility: a public link stays public, because its id can be guessed");
  enum status st = access_change(&now->doc, s->who, c->is_private, c->access, out, err);
  c->doc.len = 0;
  return st ? st : buf_append(&c->doc, buf_text(out), out->len);
}

static void change(struct request *rq, struct db *db) {
  struct snippet_state *s = rq->state;
  s->st = store_rewrite_doc(db, &s->id_hash, 1, rewrite, rq, &s->snippet.packed, &s->found, &s->err);
  if (s->st || s->is_allowed) /* after a failure, too: it may have been changed */
    kept_forget(services_of(rq)->kept);
  audit_link(rq, "link-access", &s->id_hash);
  snippet_hide(s, db);
}

/* ---- the answer -------------------------------------------------------------------------------------------------- */

static enum MHD_Result send_changed(struct request *rq) {
  const struct change *c = change_of(rq);
  struct buf *b = &snippet_state_of(rq)->answer;
  buf_putc(b, '{');
  json_put_field_str(b, "visibility", c->is_private ? "private" : "unlisted");
  access_put(b, &c->doc);
  buf_puts(b, "}\n");
  return http_json(rq, MHD_HTTP_OK, buf_text(b), b->len, false);
}

static enum MHD_Result start(struct request *rq, size_t id_len) {
  enum MHD_Result answer;
  struct error err;
  struct snippet_state *s = snippet_begin(rq, id_len, &answer);
  if (!s)
    return answer;
  struct change *c = calloc(1, sizeof *c);
  if (!c)
    return MHD_NO;
  buf_init(&c->doc, STORE_BLOB_MAX);
  s->more = c;
  s->free_more = free_change;
  snippet_set_token(rq);
  enum status st = read_change(rq, c, &err);
  if (!st)
    st = snippet_count_change(rq, &err);
  return st ? http_status_problem(rq, st, &err) : api_call_store(rq, STORE_WRITE, change);
}

enum MHD_Result snippet_change_access(struct request *rq, size_t id_len) {
  const struct snippet_state *s = rq->state;
  enum MHD_Result answer;
  if (api_part(rq)->call.state == CALL_NONE)
    return start(rq, id_len);
  if (snippet_store_failed(rq, &answer))
    return answer;
  if (!s->found)
    return snippet_not_found(rq);
  return s->is_allowed ? send_changed(rq) : http_problem(rq, PB_DENIED, NULL, NULL);
}
