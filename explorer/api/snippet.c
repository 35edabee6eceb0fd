#include "api/snippet.h"
#include "api/told.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "api/access.h"
#include "api/admit.h"
#include "api/misses.h"
#include "api/services.h"
#include "base/json.h"
#include "work/quota.h"
#include "driver/pipeline.h"

enum { ANSWER_ROOM = 64 << 10 }; /* of an answer, besides the snippet's own texts */

/* ---- the state --------------------------------------------------------------------------------------------------- */

static void free_state(void *user) {
  struct snippet_state *s = user;
  store_snippet_clear(&s->snippet);
  buf_clear(&s->answer);
  kept_release(s->kept);
  if (s->more)
    s->free_more(s->more);
  free(s);
}

struct snippet_state *snippet_state_new(struct request *rq) {
  struct snippet_state *s = calloc(1, sizeof *s);
  if (!s)
    return NULL;
  assert(!rq->state);
  store_snippet_init(&s->snippet);
  buf_init(&s->answer, (size_t)WORK_BYTES_MAX + STORE_BLOB_MAX + ANSWER_ROOM);
  s->after_ms = -1;
  s->report_url = services_of(rq)->report_url;
  s->who = identity_of(rq);
  rq->state = s;
  rq->free_state = free_state;
  rq->is_private = true;
  return s;
}

void snippet_set_id(struct snippet_state *s, const char *text, size_t len) {
  if (ident_is_valid(text, len)) {
    memcpy(s->id, text, len);
    s->id[len] = 0;
  }
  ident_hash(s->id, strlen(s->id), &s->id_hash);
}

void snippet_set_token(struct request *rq) {
  const char *token = http_header(rq, "X-Nkx-Edit-Token");
  const bool is_token = token && strlen(token) == IDENT_LEN && ident_is_valid(token, IDENT_LEN);
  ident_hash(is_token ? token : "", is_token ? IDENT_LEN : 0, &snippet_state_of(rq)->token);
}

/* ---- answers ----------------------------------------------------------------------------------------------------- */

bool snippet_may_ask(struct request *rq, enum MHD_Result *answer) {
  char address[ADDRESS_TEXT_SIZE];
  http_client_key(rq, address);
  if (misses_allow(services_of(rq)->misses, address))
    return true;
  rq->is_private = true;
  *answer = http_problem(rq, PB_MISSES, NULL, NULL);
  return false;
}

struct snippet_state *snippet_begin(struct request *rq, size_t id_len, enum MHD_Result *answer) {
  assert(id_len <= strlen(rq->rest));
  if (!snippet_may_ask(rq, answer))
    return NULL;
  struct snippet_state *s = snippet_state_new(rq);
  *answer = MHD_NO;
  if (s)
    snippet_set_id(s, rq->rest, id_len);
  return s;
}

static struct client *client_of(struct request *rq) {
  char address[ADDRESS_TEXT_SIZE];
  http_client_key(rq, address);
  return quota_client(services_of(rq)->quota, address);
}

/* Of what the client has just used of a share. */
static void tell_used(struct request *rq, enum quota_use what, int64_t n) {
  char address[ADDRESS_TEXT_SIZE];
  http_client_key(rq, address);
  told_say_used(services_of(rq), address, what, n);
}

static enum status over_quota(struct request *rq, enum problem which, int retry_s, struct error *err) {
  rq->refusal = which;
  rq->retry_s = retry_s;
  return fail(err, ST_QUOTA, "too many links");
}

static enum status has_room(struct request *rq, struct client *c, struct error *err) {
  int retry_s;
  if (!store_has_room(services_of(rq)->store))
    return fail(err, ST_FULL, "the store has reached --store-max-mib");
  return client_has_link_bytes(c, &retry_s) == QUOTA_OK ? ST_OK : over_quota(rq, PB_LINK_BYTES, retry_s, err);
}

static enum status count_link(struct request *rq, struct client *c, struct error *err) {
  int retry_s;
  if (client_store_link(c, &retry_s) != QUOTA_OK)
    return over_quota(rq, PB_LINKS, retry_s, err);
  tell_used(rq, QUOTA_USE_LINK, 1);
  return ST_OK;
}

enum status snippet_count_link(struct request *rq, struct error *err) {
  struct client *c = client_of(rq);
  enum status st = has_room(rq, c, err);
  st = st ? st : count_link(rq, c, err);
  client_let_go(c);
  return st;
}

enum status snippet_count_change(struct request *rq, struct error *err) {
  struct client *c = client_of(rq);
  enum status st = count_link(rq, c, err);
  client_let_go(c);
  return st;
}

enum status snippet_count_notes(struct request *rq, struct error *err) {
  struct client *c = client_of(rq);
  int retry_s;
  enum status st = has_room(rq, c, err);
  if (!st && client_write_notes(c, &retry_s) != QUOTA_OK)
    st = over_quota(rq, PB_LINKS, retry_s, err);
  client_let_go(c);
  return st;
}

void snippet_store(struct request *rq, struct db *db, enum status (*put)(struct snippet_state *s, struct db *db)) {
  struct snippet_state *s = rq->state;
  struct client *c = client_of(rq);
  s->st = has_room(rq, c, &s->err);
  if (!s->st) {
    s->snippet.packed = 0; /* put may find that there is nothing to store */
    s->st = put(s, db);
    if (!s->st) {
      client_take_link_bytes(c, s->snippet.packed);
      tell_used(rq, QUOTA_USE_LINK_BYTES, s->snippet.packed);
      store_took(services_of(rq)->store, s->snippet.packed);
    }
  }
  client_let_go(c);
}

void snippet_count_miss(struct request *rq) {
  char address[ADDRESS_TEXT_SIZE];
  http_client_key(rq, address);
  misses_count(services_of(rq)->misses, address);
  told_say_miss(services_of(rq), address);
}

enum MHD_Result snippet_not_found(struct request *rq) {
  snippet_count_miss(rq);
  return http_problem(rq, PB_NOT_FOUND, NULL, NULL);
}

bool snippet_store_failed(struct request *rq, enum MHD_Result *answer) {
  const struct snippet_state *s = snippet_state_of(rq);
  const bool is_lost = api_part(rq)->call.is_lost;
  if (is_lost || s->st == ST_BUSY)
    *answer = http_problem(rq, PB_STORE, NULL, NULL);
  else if (s->st)
    *answer = http_status_problem(rq, s->st, &s->err);
  return is_lost || s->st;
}

void snippet_put_report_url(struct buf *out, const struct snippet_state *s) {
  static const char mark[] = "{link}";
  const char *at = strstr(s->report_url, mark);
  if (!at) {
    buf_puts(out, s->report_url);
    return;
  }
  buf_append(out, s->report_url, (size_t)(at - s->report_url));
  buf_printf(out, "%%2Fz%%2F%s%s", s->id, at + sizeof mark - 1); /* an id has no letter that an address escapes */
}

const char *snippet_visibility(const struct store_snippet *s, bool is_private) {
  return is_private ? "private" : s->public_id[0] ? "public" : "unlisted";
}

void snippet_put_time(struct buf *b, const char *key, int64_t ms) {
  json_put_key(b, key);
  if (ms)
    json_put_int(b, ms);
  else
    buf_puts(b, "null");
}

bool snippet_read_revision(struct request *rq, int *out) {
  const char *text = http_argument(rq, "revision");
  *out = 0;
  return !text || (diff_read_number(text, out) && *out > 0);
}

enum MHD_Result snippet_bad_revision(struct request *rq) {
  return http_problem(rq, PB_BAD_FIELD, "revision: expected a number from 1", "revision");
}

/* ---- looking up -------------------------------------------------------------------------------------------------- */

/* Whether s->who may open it: what the document of its first revision says. */
static enum status check_access(struct snippet_state *s, struct db *db) {
  struct store_snippet first;
  bool found = true;
  enum status st = ST_OK;
  store_snippet_init(&first);
  if (s->snippet.revision > 1)
    st = store_get_snippet(db, &s->id_hash, STORE_DOC, &first, &found, &s->err);
  const struct buf *doc = s->snippet.revision > 1 ? &first.doc : &s->snippet.doc;
  s->is_private = access_is_private(doc);
  s->found = !st && found && access_allows(doc, s->who);
  if (s->found && doc == &first.doc)
    st = access_carry(doc, &s->snippet.doc, &s->err);
  store_snippet_clear(&first);
  return st;
}

void snippet_fetch(struct snippet_state *s, struct db *db, enum store_extent extent) {
  assert(extent >= STORE_DOC && s->who);
  s->st = store_get_revision(db, &s->id_hash, s->revision, extent, &s->snippet, &s->found, &s->err);
  if (!s->st && s->found)
    s->st = check_access(s, db);
}

void snippet_hide(struct snippet_state *s, struct db *db) {
  struct store_snippet first;
  bool found;
  if (s->st || !s->found || s->is_allowed)
    return;
  store_snippet_init(&first);
  s->st = store_get_snippet(db, &s->id_hash, STORE_DOC, &first, &found, &s->err);
  s->found = !s->st && found && access_allows(&first.doc, s->who);
  store_snippet_clear(&first);
}

void snippet_load(struct snippet_state *s, struct db *db) {
  snippet_fetch(s, db, STORE_WHOLE);
}

void snippet_keep(struct request *rq, const struct buf *bytes) {
  struct snippet_state *s = rq->state;
  const int64_t own = s->snippet.expires_ms;
  if (own && (!s->expires_ms || own < s->expires_ms))
    s->expires_ms = own;
  if (!s->st && s->found && !s->is_private) /* what is kept is for everybody */
    kept_add(services_of(rq)->kept, s->kind, &s->kept_key, s->moment, s->expires_ms, bytes);
}

bool snippet_look_up_kept(struct request *rq, enum kept_kind kind, const char *suffix,
                          void (*fn)(struct request *, struct db *), enum MHD_Result *answer) {
  struct kept *kept = services_of(rq)->kept;
  struct snippet_state *s = rq->state;
  const struct store_call *call = &api_part(rq)->call;
  if (call->state != CALL_NONE) {
    if (!s->kept && (call->is_lost || s->st == ST_BUSY))
      s->kept = kept_find_away(kept, kind, &s->kept_key);
    return false;
  }
  assert(strlen(rq->rest) >= strlen(suffix));
  s = snippet_begin(rq, strlen(rq->rest) - strlen(suffix), answer);
  if (!s)
    return true;
  if (!snippet_read_revision(rq, &s->revision)) {
    *answer = snippet_bad_revision(rq);
    return true;
  }
  s->kept_key = s->id_hash;
  if (s->revision)
    ident_hash_revision(&s->id_hash, s->revision, &s->kept_key);
  s->kind = kind;
  s->kept = kept_find(kept, kind, &s->kept_key);
  if (s->kept)
    return false;
  s->moment = kept_moment(kept);
  *answer = api_call_store(rq, STORE_READ, fn);
  return true;
}

static void let_go(void *user) {
  kept_release(user);
}

enum MHD_Result snippet_send(struct request *rq, struct http_bytes *b) {
  struct snippet_state *s = rq->state;
  const struct kept_answer *a = s->kept;
  if (buf_status(&s->answer))
    return http_problem(rq, PB_INTERNAL, NULL, NULL);
  b->data = a ? a->data : buf_text(&s->answer);
  b->len = a ? a->len : s->answer.len;
  b->release = a ? let_go : free;
  b->is_shared = a != NULL;
  b->user = a ? (void *)(uintptr_t)a : s->answer.data;
  s->kept = NULL;
  buf_init(&s->answer, s->answer.max); /* the response has the bytes now */
  return http_bytes(rq, MHD_HTTP_OK, b);
}

/* ---- frames and documents ---------------------------------------------------------------------------------------- */

enum status snippet_thaw(const struct store_snippet *s, struct work **out, struct error *err) {
  static const char no_key[JOB_KEY_SIZE] = "";
  struct work *w = work_new_stored(no_key);
  if (!w)
    return fail(err, ST_NOMEM, "snippet");
  if (work_load(w, buf_text(&s->frames), s->frames.len, err)) {
    work_unref(w);
    return fail(err, ST_IO, "a snippet's frames cannot be read");
  }
  *out = w;
  return ST_OK;
}

enum status snippet_take_frames(struct request *rq) {
  size_t len;
  char *frames = work_frames(api_part(rq)->work, &len);
  enum status st = frames ? buf_append(&snippet_state_of(rq)->snippet.frames, frames, len) : ST_NOMEM;
  free(frames);
  return st;
}

/* Takes text (heap), NULL when out of memory. */
static void put_text(struct buf *out, char *text) {
  if (text)
    buf_puts(out, text);
  else
    out->failed = ST_NOMEM;
  free(text);
}

static void put_json(struct buf *out, const char *key, const json_t *v) {
  json_put_key(out, key);
  put_text(out, json_dumps(v, JSON_COMPACT | JSON_ENCODE_ANY));
}

enum status snippet_write_doc(struct buf *out, const struct job *job, const struct snippet_extra *extra,
                              struct error *err) {
  struct job bare = *job;
  size_t len;
  bare.scope = NULL;
  buf_putc(out, '{');
  if (extra->access)
    put_json(out, "access", extra->access); /* first: access.h looks for it there */
  if (extra->title)
    put_json(out, "title", extra->title);
  put_json(out, "view", extra->view ? extra->view : json_null());
  json_put_key(out, "request");
  put_text(out, job_dump(&bare, &len));
  json_put_field_str(out, "pipeline", job->version ? job->version : pipeline_version());
  if (extra->ce)
    put_json(out, "ce", extra->ce);
  buf_putc(out, '}');
  return buf_status(out) ? fail(err, buf_status(out), "snippet") : ST_OK;
}
