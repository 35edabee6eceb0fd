#include "api/snippets.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "api/compile.h"
#include "api/diffs.h"
#include "api/kept.h"
#include "api/misses.h"
#include "base/json.h"
#include "base/log.h"
#include "driver/pipeline.h"
#include "job/results.h"

enum {
  TITLE_MAX = 200,
  VIEW_MAX = 64 << 10,
  EXPIRES_MIN_S = 60,
  EXPIRES_MAX_S = 10 * 366 * 24 * 3600,
  NEW_ID_TRIES = 8,
  ANSWER_ROOM = 64 << 10, /* of an answer, besides the snippet's own texts */
};

/* Where a request about a snippet is. */
struct state {
  /* what it asks */
  char id[IDENT_LEN + 1]; /* "" if what the client sent cannot be one */
  struct ident_hash id_hash, token;
  int64_t after_ms; /* DELETE: -1 for now */
  struct store_snippet snippet;
  char edit_token[IDENT_LEN + 1];
  bool is_public;
  /* what came of it */
  enum status st;
  struct error err;
  bool found, is_allowed;
  enum diff_found diff_found; /* DIFF_FOUND also where no diff was asked for */
  struct buf answer;
  /* what may be kept of it */
  enum kept_kind kind;
  uint64_t moment;
  int64_t expires_ms; /* the first of what the answer tells of to expire; 0: nothing does */
  const struct kept_answer *kept;
};

static void free_state(void *user) {
  struct state *s = user;
  store_snippet_clear(&s->snippet);
  buf_clear(&s->answer);
  kept_release(s->kept);
  free(s);
}

/* NULL when out of memory. */
static struct state *new_state(struct request *rq) {
  struct state *s = calloc(1, sizeof *s);
  if (!s)
    return NULL;
  store_snippet_init(&s->snippet);
  buf_init(&s->answer, 2 * (size_t)STORE_BLOB_MAX + ANSWER_ROOM);
  s->after_ms = -1;
  rq->state = s;
  rq->free_state = free_state;
  rq->is_private = true;
  return s;
}

/* A text that cannot be an id is looked up like any other, as one that nobody has: it must not be told apart, not even
 * by the time it takes. */
static void set_id(struct state *s, const char *text, size_t len) {
  if (ident_is_valid(text, len)) {
    memcpy(s->id, text, len);
    s->id[len] = 0;
  }
  ident_hash(s->id, strlen(s->id), &s->id_hash);
}

static const char *visibility(const struct store_snippet *s) {
  return s->public_id[0] ? "public" : "unlisted";
}

static void put_time(struct buf *b, const char *key, int64_t ms) {
  json_put_key(b, key);
  if (ms)
    json_put_int(b, ms);
  else
    buf_puts(b, "null");
}

/* What a failure of the store means for the client. */
static enum MHD_Result store_problem(struct request *rq, const struct state *s) {
  if (rq->call.is_lost || s->st == ST_BUSY)
    return http_problem(rq, PB_STORE, NULL, NULL);
  return http_status_problem(rq, s->st, &s->err);
}

/* ---- POST ----------------------------------------------------------------------------------------------------------
 */

/* Takes `key` out of the object; NULL if it is not there. */
static json_t *take(json_t *o, const char *key) {
  json_t *v = json_object_get(o, key);
  json_incref(v);
  json_object_del(o, key);
  return v;
}

static enum status check_title(const json_t *v, struct error *err) {
  if (!json_is_string(v) || json_string_length(v) > TITLE_MAX)
    return fail(err, ST_INPUT, "title: expected a string of at most %d bytes", TITLE_MAX);
  return ST_OK;
}

static enum status check_view(const json_t *v, struct error *err) {
  if (!json_is_object(v))
    return fail(err, ST_INPUT, "view: expected an object");
  size_t n = json_dumpb(v, NULL, 0, JSON_COMPACT);
  return n > VIEW_MAX ? fail(err, ST_LIMIT, "view: %zu bytes; the limit is %d", n, VIEW_MAX) : ST_OK;
}

static enum status read_visibility(const json_t *v, struct state *s, struct error *err) {
  const char *text = json_string_value(v);
  if (!text || (strcmp(text, "unlisted") && strcmp(text, "public")))
    return fail(err, ST_INPUT, "visibility: expected \"unlisted\" or \"public\"");
  s->is_public = !strcmp(text, "public");
  return ST_OK;
}

static enum status read_parent(const json_t *v, struct state *s, struct error *err) {
  if (!json_is_string(v))
    return fail(err, ST_INPUT, "parent: expected the id of a snippet");
  const char *text = json_string_value(v);
  bool is_valid = ident_is_valid(text, json_string_length(v));
  s->snippet.has_parent = true;
  ident_hash(is_valid ? text : "", is_valid ? strlen(text) : 0, &s->snippet.parent);
  return ST_OK;
}

static enum status read_expiry(const json_t *v, struct state *s, struct error *err) {
  json_int_t n = json_integer_value(v);
  if (!json_is_integer(v) || n < EXPIRES_MIN_S || n > EXPIRES_MAX_S)
    return fail(err, ST_INPUT, "expires_in: expected seconds, from %d to %d", EXPIRES_MIN_S, EXPIRES_MAX_S);
  s->snippet.expires_ms = s->snippet.created_ms + (int64_t)n * 1000;
  return ST_OK;
}

/* The members that are ours; they are taken out of the request, which is compile's then. */
static enum status read_own(json_t *root, struct state *s, json_t *doc, struct error *err) {
  json_t *title = take(root, "title"), *view = take(root, "view"), *parent = take(root, "parent"),
         *kind = take(root, "visibility"), *expires = take(root, "expires_in");
  enum status st = ST_OK;
  if (title)
    st = check_title(title, err);
  if (!st && view)
    st = check_view(view, err);
  if (!st && kind)
    st = read_visibility(kind, s, err);
  if (!st && parent)
    st = read_parent(parent, s, err);
  if (!st && expires)
    st = read_expiry(expires, s, err);
  if (!st && title)
    json_object_set(doc, "title", title);
  if (!st)
    json_object_set_new(doc, "view", view ? json_incref(view) : json_null());
  json_decref(title);
  json_decref(view);
  json_decref(parent);
  json_decref(kind);
  json_decref(expires);
  return st;
}

static enum status append_json(struct buf *b, const json_t *v, struct error *err) {
  char *text = json_dumps(v, JSON_COMPACT);
  enum status st = text ? buf_puts(b, text) : ST_NOMEM;
  free(text);
  return st ? fail(err, st, "snippet") : ST_OK;
}

/* Checks what is compile's, starts the compile, and adds the request as it was understood, without its scope. */
static enum status start_job(struct request *rq, const json_t *root, json_t *doc, struct error *err) {
  struct arena a;
  struct job job;
  struct buf text;
  size_t len;

  job_init(&job);
  buf_init(&text, JOB_JSON_MAX);
  enum status st = compile_arena(&a, rq->body.len, err);
  if (!st)
    st = append_json(&text, root, err);
  if (!st)
    st = job_parse(&a, buf_text(&text), text.len, &job, err);
  if (!st) {
    struct job bare = job;
    bare.scope = NULL;
    char *dump = job_dump(&bare, &len);
    json_t *request = dump ? json_loadb(dump, len, JSON_ALLOW_NUL, NULL) : NULL;
    free(dump);
    if (!request || json_object_set_new(doc, "request", request))
      st = fail(err, ST_NOMEM, "snippet");
  }
  if (!st)
    st = compile_start(rq, &a, &job, err);
  buf_clear(&text);
  arena_clear(&a);
  return st;
}

static enum status start(struct request *rq, struct state *s, struct error *err) {
  json_error_t jerr;
  enum status st = compile_check_nesting(&rq->body, err);
  if (st)
    return st;
  json_t *root = json_loadb(buf_text(&rq->body), rq->body.len, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &jerr);
  json_t *doc = json_object();
  buf_clear(&rq->body);
  s->snippet.created_ms = store_now_ms();
  if (!root)
    st = fail(err, ST_INPUT, "line %d column %d: %s", jerr.line, jerr.column, jerr.text);
  else if (!json_is_object(root))
    st = fail(err, ST_INPUT, "expected a JSON object");
  if (!st)
    st = read_own(root, s, doc, err);
  if (!st)
    st = start_job(rq, root, doc, err);
  if (!st) {
    json_object_set_new(doc, "pipeline", json_string(pipeline_version()));
    st = append_json(&s->snippet.doc, doc, err);
  }
  json_decref(root);
  json_decref(doc);
  return st;
}

/* One try with a fresh id. */
static enum status put_once(struct state *s, struct db *db) {
  enum status st = s->is_public ? ident_new_public(s->id, &s->err) : ident_new(s->id, &s->err);
  if (st)
    return st;
  if (s->is_public)
    memcpy(s->snippet.public_id, s->id, IDENT_PUBLIC_LEN + 1);
  ident_hash(s->id, strlen(s->id), &s->snippet.id);
  return store_put_snippet(db, &s->snippet, &s->err);
}

/* On the store's writing thread. */
static void put(struct request *rq, struct db *db) {
  struct state *s = rq->state;
  struct store_snippet parent;
  s->found = true;
  if (s->snippet.has_parent) {
    store_snippet_init(&parent);
    s->st = store_get_snippet(db, &s->snippet.parent, false, &parent, &s->found, &s->err);
    store_snippet_clear(&parent);
  }
  if (s->st || !s->found)
    return;
  s->st = ident_new(s->edit_token, &s->err);
  if (s->st)
    return;
  ident_hash(s->edit_token, IDENT_LEN, &s->snippet.token);
  s->st = ST_DENIED;
  for (int i = 0; i < NEW_ID_TRIES && s->st == ST_DENIED; i++)
    s->st = put_once(s, db);
}

enum MHD_Result snippet_not_found(struct request *rq) {
  char address[48];
  http_client_address(rq, address);
  misses_count(rq->app->misses, address);
  return http_problem(rq, PB_NOT_FOUND, NULL, NULL);
}

static enum MHD_Result created(struct request *rq, struct state *s) {
  struct buf *b = &s->answer;
  buf_putc(b, '{');
  json_put_field_str(b, "id", s->id);
  json_put_key(b, "url");
  buf_printf(b, "\"/z/%s\"", s->id);
  json_put_key(b, "embed_url");
  buf_printf(b, "\"/e/%s\"", s->id);
  json_put_key(b, "raw_url");
  buf_printf(b, "\"/z/%s/raw\"", s->id);
  json_put_field_str(b, "edit_token", s->edit_token);
  json_put_field_str(b, "visibility", visibility(&s->snippet));
  json_put_field_int(b, "created_ms", s->snippet.created_ms);
  put_time(b, "expires_ms", s->snippet.expires_ms);
  json_put_field_str(b, "key", work_key(rq->work));
  buf_puts(b, "}\n");
  return http_json(rq, MHD_HTTP_CREATED, buf_text(b), b->len, false);
}

bool snippet_may_ask(struct request *rq, enum MHD_Result *answer) {
  char address[48];
  http_client_address(rq, address);
  if (misses_allow(rq->app->misses, address))
    return true;
  rq->is_private = true;
  *answer = http_problem(rq, PB_MISSES, NULL, NULL);
  return false;
}

enum MHD_Result api_snippet_post(struct request *rq) {
  struct state *s = rq->state;
  struct error err;
  enum MHD_Result answer;
  size_t len;

  if (!s) {
    if (!snippet_may_ask(rq, &answer)) /* a parent can be guessed, too */
      return answer;
    s = new_state(rq);
    if (!s)
      return MHD_NO;
    enum status st = start(rq, s, &err);
    if (st)
      return http_status_problem(rq, st, &err);
  }
  if (rq->call.state == CALL_DONE) {
    if (rq->call.is_lost || s->st)
      return store_problem(rq, s);
    return s->found ? created(rq, s) : snippet_not_found(rq);
  }
  if (!work_wait(rq->work, &rq->waiter, true, http_park, http_resume, rq->connection))
    return MHD_YES;
  if (work_look(rq->work, NULL, NULL) == WORK_REFUSED)
    return compile_refused(rq);
  char *frames = work_frames(rq->work, &len);
  if (!frames || buf_append(&s->snippet.frames, frames, len)) {
    free(frames);
    return http_problem(rq, PB_INTERNAL, NULL, NULL);
  }
  free(frames);
  return http_call_store(rq, STORE_WRITE, put);
}

/* ---- GET -----------------------------------------------------------------------------------------------------------
 */

static bool has_suffix(const char *path, const char *suffix) {
  size_t n = strlen(path), k = strlen(suffix);
  return n >= k && !strcmp(path + n - k, suffix);
}

/* Starts a look-up by `fn` of the id that makes up the rest of the path before `suffix`. */
static enum MHD_Result look_up(struct request *rq, const char *suffix, void (*fn)(struct request *, struct db *)) {
  enum MHD_Result answer;
  if (!snippet_may_ask(rq, &answer))
    return answer;
  struct state *s = new_state(rq);
  if (!s)
    return MHD_NO;
  size_t n = strlen(rq->rest) - strlen(suffix);
  set_id(s, rq->rest, n);
  return http_call_store(rq, STORE_READ, fn);
}

static void note_expiry(struct state *s, int64_t expires_ms) {
  if (expires_ms && (!s->expires_ms || expires_ms < s->expires_ms))
    s->expires_ms = expires_ms;
}

/* On a store thread: what was found is kept for the next who ask. */
static void keep(struct request *rq, const struct buf *bytes) {
  struct state *s = rq->state;
  note_expiry(s, s->snippet.expires_ms);
  if (!s->st && s->found)
    kept_add(rq->app->kept, s->kind, &s->id_hash, s->moment, s->expires_ms, bytes);
}

/* look_up, unless the answer is kept.  True: *answer is what the handler returns now; false: rq->state->kept is the
 * answer, or the store has spoken. */
static bool look_up_kept(struct request *rq, enum kept_kind kind, const char *suffix,
                         void (*fn)(struct request *, struct db *), enum MHD_Result *answer) {
  struct kept *kept = rq->app->kept;
  struct state *s = rq->state;
  if (rq->call.state != CALL_NONE) {
    if (!s->kept && (rq->call.is_lost || s->st == ST_BUSY))
      s->kept = kept_find_away(kept, kind, &s->id_hash);
    return false;
  }
  if (!snippet_may_ask(rq, answer))
    return true;
  s = new_state(rq);
  if (!s) {
    *answer = MHD_NO;
    return true;
  }
  set_id(s, rq->rest, strlen(rq->rest) - strlen(suffix));
  s->kind = kind;
  s->kept = kept_find(kept, kind, &s->id_hash);
  if (s->kept)
    return false;
  s->moment = kept_moment(kept);
  *answer = http_call_store(rq, STORE_READ, fn);
  return true;
}

static void let_go(void *user) {
  kept_release(user);
}

/* An answer with the kept bytes, which it takes over from the state. */
static struct MHD_Response *kept_response(struct state *s) {
  const struct kept_answer *a = s->kept;
  struct MHD_Response *r = MHD_create_response_from_buffer_with_free_callback_cls(a->len, (void *)(uintptr_t)a->data,
                                                                                  let_go, (void *)(uintptr_t)a);
  if (r)
    s->kept = NULL;
  return r;
}

static void put_title(struct buf *b, const struct store_snippet *s) {
  json_t *doc = json_loadb(buf_text(&s->doc), s->doc.len, JSON_ALLOW_NUL, NULL);
  const json_t *title = json_object_get(doc, "title");
  if (title) {
    json_put_key(b, "title");
    json_put_string(b, json_string_value(title), json_string_length(title));
  }
  json_decref(doc);
}

static enum status put_ancestor(struct state *s, struct db *db, struct ident_hash *id, bool *more, struct error *err) {
  struct buf *b = &s->answer;
  struct store_snippet a;
  store_snippet_init(&a);
  enum status st = store_get_snippet(db, id, true, &a, more, err);
  if (!st && *more) {
    json_put_comma(b);
    buf_putc(b, '{');
    json_put_field_str(b, "visibility", visibility(&a));
    json_put_field_int(b, "created_ms", a.created_ms);
    if (a.public_id[0]) {
      json_put_field_str(b, "id", a.public_id);
      put_title(b, &a);
    }
    buf_putc(b, '}');
    note_expiry(s, a.expires_ms);
    *more = a.has_parent;
    *id = a.parent;
  }
  store_snippet_clear(&a);
  return st;
}

static enum status put_ancestry(struct state *s, struct db *db, struct error *err) {
  struct buf *b = &s->answer;
  struct ident_hash id = s->snippet.parent;
  bool more = s->snippet.has_parent;
  enum status st = ST_OK;
  json_put_key(b, "ancestry");
  buf_putc(b, '[');
  for (int i = 0; !st && more && i < STORE_ANCESTORS_MAX; i++)
    st = put_ancestor(s, db, &id, &more, err);
  buf_putc(b, ']');
  return st;
}

/* A work of the frames that were kept. */
static enum status thaw(const struct store_snippet *s, struct work **out, struct error *err) {
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

static enum status put_result(struct buf *b, const struct store_snippet *s, struct error *err) {
  struct work *w;
  size_t len;
  enum status st = thaw(s, &w, err);
  if (st)
    return st;
  char *text = work_result(w, &len);
  if (text) {
    json_put_key(b, "result");
    buf_append(b, text, len);
  }
  free(text);
  work_unref(w);
  return text ? ST_OK : fail(err, ST_NOMEM, "snippet");
}

static enum status put_snippet(struct state *s, struct db *db, struct error *err) {
  struct buf *b = &s->answer;
  const struct buf *doc = &s->snippet.doc;
  char current[128];
  if (doc->len < 2)
    return fail(err, ST_IO, "a damaged snippet");
  buf_putc(b, '{');
  json_put_field_str(b, "id", s->id);
  json_put_field_str(b, "visibility", visibility(&s->snippet));
  json_put_field_int(b, "created_ms", s->snippet.created_ms);
  put_time(b, "expires_ms", s->snippet.expires_ms);
  json_put_comma(b);
  buf_append(b, doc->data + 1, doc->len - 2); /* the members of an object that we wrote */
  snprintf(current, sizeof current, "\"pipeline\":\"%s\"", pipeline_version());
  json_put_field_bool(b, "is_current", memmem(doc->data, doc->len, current, strlen(current)) != NULL);
  enum status st = put_ancestry(s, db, err);
  if (!st)
    st = put_result(b, &s->snippet, err);
  buf_puts(b, "}\n");
  return st ? st : buf_status(b) ? fail(err, buf_status(b), "snippet") : ST_OK;
}

/* On a store thread. */
static void get(struct request *rq, struct db *db) {
  struct state *s = rq->state;
  s->st = store_get_snippet(db, &s->id_hash, true, &s->snippet, &s->found, &s->err);
  if (!s->st && s->found)
    s->st = put_snippet(s, db, &s->err);
  keep(rq, &s->answer);
}

/* On a store thread. */
static void get_diff(struct request *rq, struct db *db) {
  struct state *s = rq->state;
  struct diff_query query;
  const char *field;
  struct work *w;
  s->st = store_get_snippet(db, &s->id_hash, true, &s->snippet, &s->found, &s->err);
  if (s->st || !s->found || !diff_read_query(rq, &query, &field))
    return;
  s->st = thaw(&s->snippet, &w, &s->err);
  if (s->st)
    return;
  s->st = diff_build(w, w, &query, &s->answer, &s->diff_found, &s->err);
  work_unref(w);
}

static enum MHD_Result get_diff_answer(struct request *rq) {
  static const char diff[] = "/diff";
  struct diff_query query;
  const char *field;
  struct state *s = rq->state;
  if (!diff_read_query(rq, &query, &field))
    return diff_bad_query(rq, field);
  if (rq->call.state == CALL_NONE)
    return look_up(rq, diff, get_diff);
  if (rq->call.is_lost || s->st)
    return store_problem(rq, s);
  if (s->found && s->diff_found != DIFF_FOUND)
    return diff_not_found(rq, s->diff_found);
  return s->found ? http_json(rq, MHD_HTTP_OK, buf_text(&s->answer), s->answer.len, false) : snippet_not_found(rq);
}

static enum MHD_Result send_kept_json(struct request *rq) {
  struct MHD_Response *r = kept_response(rq->state);
  if (!r)
    return MHD_NO;
  MHD_add_response_header(r, MHD_HTTP_HEADER_CONTENT_TYPE, "application/json");
  MHD_add_response_header(r, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store");
  return http_send(rq, MHD_HTTP_OK, r);
}

enum MHD_Result api_snippet_get(struct request *rq) {
  enum MHD_Result answer;
  if (has_suffix(rq->rest, "/diff"))
    return get_diff_answer(rq);
  if (look_up_kept(rq, KEPT_JSON, "", get, &answer))
    return answer;
  struct state *s = rq->state;
  if (s->kept)
    return send_kept_json(rq);
  if (rq->call.is_lost || s->st)
    return store_problem(rq, s);
  return s->found ? http_json(rq, MHD_HTTP_OK, buf_text(&s->answer), s->answer.len, false) : snippet_not_found(rq);
}

/* ---- DELETE --------------------------------------------------------------------------------------------------------
 */

static void remove_it(struct request *rq, struct db *db) {
  struct state *s = rq->state;
  if (s->after_ms < 0)
    s->st = store_delete_snippet(db, &s->id_hash, &s->token, &s->found, &s->is_allowed, &s->err);
  else
    s->st = store_expire_snippet(db, &s->id_hash, &s->token, store_now_ms() + s->after_ms, &s->found, &s->is_allowed,
                                 &s->err);
  if (s->st || s->is_allowed) /* also where it is not known whether it was done */
    kept_forget(rq->app->kept);
}

static bool read_after(struct request *rq, int64_t *ms) {
  const char *text = MHD_lookup_connection_value(rq->connection, MHD_GET_ARGUMENT_KIND, "after");
  char *end;
  if (!text)
    return true;
  long n = strtol(text, &end, 10);
  *ms = (int64_t)n * 1000;
  return end != text && !*end && n >= 0 && n <= EXPIRES_MAX_S;
}

enum MHD_Result api_snippet_delete(struct request *rq) {
  struct state *s = rq->state;
  const char *token = http_header(rq, "X-Nkx-Edit-Token");
  if (rq->call.state == CALL_NONE) {
    int64_t after_ms = -1;
    enum MHD_Result answer;
    if (!read_after(rq, &after_ms))
      return http_problem(rq, PB_BAD_FIELD, "after: expected seconds", "after");
    if (!snippet_may_ask(rq, &answer))
      return answer;
    s = new_state(rq);
    if (!s)
      return MHD_NO;
    s->after_ms = after_ms;
    set_id(s, rq->rest, strlen(rq->rest));
    bool is_token = token && strlen(token) == IDENT_LEN && ident_is_valid(token, IDENT_LEN);
    ident_hash(is_token ? token : "", is_token ? IDENT_LEN : 0, &s->token);
    return http_call_store(rq, STORE_WRITE, remove_it);
  }
  if (rq->call.is_lost || s->st)
    return store_problem(rq, s);
  if (!s->found)
    return snippet_not_found(rq);
  if (!s->is_allowed)
    return http_problem(rq, PB_DENIED, NULL, NULL);
  return http_send(rq, MHD_HTTP_NO_CONTENT, MHD_create_response_from_buffer(0, (void *)"", MHD_RESPMEM_PERSISTENT));
}

/* ---- /z/ and /e/ ---------------------------------------------------------------------------------------------------
 */

static void find(struct request *rq, struct db *db) {
  struct state *s = rq->state;
  s->st = store_get_snippet(db, &s->id_hash, false, &s->snippet, &s->found, &s->err);
  keep(rq, NULL);
}

/* The page says itself that a link leads nowhere, or that the store is away. */
static enum MHD_Result open_page(struct request *rq) {
  char address[48];
  enum MHD_Result answer;
  if (look_up_kept(rq, KEPT_PAGE, "", find, &answer))
    return answer;
  const struct state *s = rq->state;
  if (s->kept)
    return static_page(rq, MHD_HTTP_OK);
  if (rq->call.is_lost || s->st)
    return static_page(rq, MHD_HTTP_SERVICE_UNAVAILABLE);
  if (s->found)
    return static_page(rq, MHD_HTTP_OK);
  http_client_address(rq, address);
  misses_count(rq->app->misses, address);
  return static_page(rq, MHD_HTTP_NOT_FOUND);
}

static void get_source(struct request *rq, struct db *db) {
  struct state *s = rq->state;
  s->st = store_get_snippet(db, &s->id_hash, true, &s->snippet, &s->found, &s->err);
  if (s->st || !s->found)
    return;
  json_t *doc = json_loadb(buf_text(&s->snippet.doc), s->snippet.doc.len, JSON_ALLOW_NUL, NULL);
  const json_t *source = json_object_get(json_object_get(doc, "request"), "source");
  if (!json_is_string(source))
    s->st = fail(&s->err, ST_IO, "a snippet without a source");
  else if (buf_append(&s->answer, json_string_value(source), json_string_length(source)))
    s->st = fail(&s->err, ST_NOMEM, "snippet");
  json_decref(doc);
  keep(rq, &s->answer);
}

static enum MHD_Result send_source(struct request *rq) {
  struct state *s = rq->state;
  struct MHD_Response *r =
      s->kept ? kept_response(s)
              : MHD_create_response_from_buffer(s->answer.len, (void *)buf_text(&s->answer), MHD_RESPMEM_MUST_COPY);
  if (!r)
    return MHD_NO;
  MHD_add_response_header(r, MHD_HTTP_HEADER_CONTENT_TYPE, "text/plain; charset=utf-8");
  MHD_add_response_header(r, MHD_HTTP_HEADER_CONTENT_DISPOSITION, "attachment; filename=\"kernel.py\"");
  MHD_add_response_header(r, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store");
  return http_send(rq, MHD_HTTP_OK, r);
}

enum MHD_Result api_snippet_open(struct request *rq) {
  static const char raw[] = "/raw";
  enum MHD_Result answer;
  if (!has_suffix(rq->rest, raw))
    return open_page(rq);
  if (look_up_kept(rq, KEPT_SOURCE, raw, get_source, &answer))
    return answer;
  const struct state *s = rq->state;
  if (s->kept)
    return send_source(rq);
  if (rq->call.is_lost || s->st)
    return store_problem(rq, s);
  return s->found ? send_source(rq) : snippet_not_found(rq);
}

enum MHD_Result api_snippet_embed(struct request *rq) {
  rq->is_framed = true;
  return open_page(rq);
}
