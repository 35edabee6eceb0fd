/* POST /api/v1/snippets and /api/v1/snippets/ID: compiles the kernel, or finds its result, and stores both as a new snippet,
 * or as a revision of one. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/access.h"
#include "api/audit.h"
#include "api/compile.h"
#include "api/services.h"
#include "api/snippet.h"
#include "api/snippets.h"
#include "base/json.h"

enum {
  TITLE_MAX = 200,
  EXPIRES_MIN_S = 60,
  NEW_ID_TRIES = 8,
};

/* ---- the request ------------------------------------------------------------------------------------------------- */

/* The members of the request that are not those of a compile; references. */
struct own_members {
  json_t *title, *view, *parent, *visibility, *expires_in, *access;
};

/* Takes `key` out of the object; NULL if it is not there. */
static json_t *take(json_t *o, const char *key) {
  json_t *v = json_object_get(o, key);
  json_incref(v);
  json_object_del(o, key);
  return v;
}

static struct own_members take_own(json_t *root) {
  return (struct own_members){take(root, "title"),      take(root, "view"),       take(root, "parent"),
                              take(root, "visibility"), take(root, "expires_in"), take(root, "access")};
}

static void drop_own(struct own_members *own) {
  json_decref(own->title);
  json_decref(own->view);
  json_decref(own->parent);
  json_decref(own->visibility);
  json_decref(own->expires_in);
  json_decref(own->access);
}

static enum status check_title(const json_t *v, struct error *err) {
  if (!json_is_string(v) || json_string_length(v) > TITLE_MAX)
    return fail(err, ST_INPUT, "title: expected a string of at most %d bytes", TITLE_MAX);
  return ST_OK;
}

static enum status read_visibility(const json_t *v, struct snippet_state *s, struct error *err) {
  const char *text = json_string_value(v);
  if (!text || (strcmp(text, "unlisted") && strcmp(text, "public") && strcmp(text, "private")))
    return fail(err, ST_INPUT, "visibility: expected \"unlisted\", \"public\" or \"private\"");
  s->is_public = !strcmp(text, "public");
  s->is_private = !strcmp(text, "private");
  return ST_OK;
}

static enum status read_parent(const json_t *v, struct snippet_state *s, struct error *err) {
  if (!json_is_string(v))
    return fail(err, ST_INPUT, "parent: expected the id of a snippet");
  const char *text = json_string_value(v);
  bool is_valid = ident_is_valid(text, json_string_length(v));
  s->snippet.has_parent = true;
  ident_hash(is_valid ? text : "", is_valid ? strlen(text) : 0, &s->snippet.parent);
  return ST_OK;
}

static enum status read_expiry(const json_t *v, struct snippet_state *s, struct error *err) {
  json_int_t n = json_integer_value(v);
  if (!json_is_integer(v) || n < EXPIRES_MIN_S || n > SNIPPET_EXPIRES_MAX_S)
    return fail(err, ST_INPUT, "expires_in: expected seconds, from %d to %d", EXPIRES_MIN_S, SNIPPET_EXPIRES_MAX_S);
  s->snippet.expires_ms = s->snippet.created_ms + (int64_t)n * 1000;
  return ST_OK;
}

/* What all revisions of a snippet share cannot be given for one of them. */
static enum status check_revision(const struct own_members *own, struct error *err) {
  const char *name = own->parent       ? "parent"
                     : own->visibility ? "visibility"
                     : own->expires_in ? "expires_in"
                     : own->access     ? "access"
                                       : NULL;
  return name ? fail(err, ST_INPUT, "%s: all revisions of a link have the same", name) : ST_OK;
}

static enum status read_own(const struct own_members *own, struct snippet_state *s, struct error *err) {
  enum status st = s->is_revision ? check_revision(own, err) : ST_OK;
  if (!st && own->title)
    st = check_title(own->title, err);
  if (!st && own->view)
    st = snippet_check_view(own->view, err);
  if (!st && own->visibility)
    st = read_visibility(own->visibility, s, err);
  if (!st && own->parent)
    st = read_parent(own->parent, s, err);
  if (!st && own->expires_in)
    st = read_expiry(own->expires_in, s, err);
  if (!st && own->access && !s->is_private)
    st = fail(err, ST_INPUT, "access: of a private link only; say \"visibility\": \"private\", too");
  return st;
}

/* Reads the members of a compile, which are all that is left in root; writes the document, and starts the compile. */
static enum status start_job(struct request *rq, struct arena *a, const json_t *root, const struct own_members *own,
                             const json_t *access, struct error *err) {
  const struct snippet_extra extra = {.title = own->title, .view = own->view, .access = access};
  struct job job;
  enum status st = job_read(a, root, &job, err);
  if (!st && job.value.is_set)
    st = fail(err, ST_INPUT, "options.value: a snippet has stages, and no value");
  if (!st && job.tune.seconds)
    st = fail(err, ST_INPUT, "options.tune: a snippet has stages");
  if (!st && job.shrink.is_set)
    st = fail(err, ST_INPUT, "options.shrink: a snippet has stages");
  if (!st && job.language == LANG_NEFF)
    st = fail(err, ST_INPUT, "language: a snippet has stages, and a NEFF has none");
  if (!st && job.upgrade)
    st = fail(err, ST_INPUT, "options.upgrade: a snippet has stages");
  if (!st)
    st = compile_choose_version(rq, &job, err);
  if (!st)
    st = snippet_count_link(rq, err);
  if (!st)
    st = snippet_write_doc(&snippet_state_of(rq)->snippet.doc, &job, &extra, err);
  return st ? st : compile_start(rq, &job, err);
}

static enum status start_with(struct request *rq, struct arena *a, json_t *root, struct error *err) {
  if (!json_is_object(root))
    return fail(err, ST_INPUT, "expected a JSON object");
  struct own_members own = take_own(root);
  const struct snippet_state *s = rq->state;
  json_t *access = NULL;
  enum status st = read_own(&own, rq->state, err);
  if (!st && s->is_private && !(access = access_make(s->who, own.access, err)))
    st = ST_INPUT;
  if (!st)
    st = start_job(rq, a, root, &own, access, err);
  json_decref(access);
  drop_own(&own);
  return st;
}

static enum status start(struct request *rq, struct error *err) {
  json_error_t jerr;
  struct arena a;
  snippet_state_of(rq)->snippet.created_ms = store_now_ms();
  enum status st = compile_check_nesting(&rq->body, err);
  if (!st)
    st = compile_arena(&a, rq->body.len, err);
  if (st)
    return st;
  json_t *root = json_loadb(buf_text(&rq->body), rq->body.len, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &jerr);
  buf_clear(&rq->body);
  st = root ? start_with(rq, &a, root, err)
            : fail(err, ST_INPUT, "line %d column %d: %s", jerr.line, jerr.column, jerr.text);
  json_decref(root);
  arena_clear(&a);
  return st;
}

/* ---- the store's writing thread ---------------------------------------------------------------------------------- */

/* One try with a fresh id; ST_DENIED if it is taken. */
static enum status put_once(struct snippet_state *s, struct db *db) {
  enum status st = s->is_public ? ident_new_public(s->id, &s->err) : ident_new(s->id, &s->err);
  if (st)
    return st;
  if (s->is_public)
    memcpy(s->snippet.public_id, s->id, IDENT_PUBLIC_LEN + 1);
  ident_hash(s->id, strlen(s->id), &s->snippet.id);
  return store_put_snippet(db, &s->snippet, &s->err);
}

/* s->found: the parent exists, or there is none. */
static enum status put_new(struct snippet_state *s, struct db *db) {
  struct store_snippet parent;
  enum status st = ST_OK;
  s->found = true;
  if (s->snippet.has_parent) {
    store_snippet_init(&parent);
    st = store_get_snippet(db, &s->snippet.parent, STORE_DOC, &parent, &s->found, &s->err);
    s->found = s->found && access_allows(&parent.doc, s->who);
    store_snippet_clear(&parent);
  }
  if (st || !s->found)
    return st;
  st = ident_new(s->edit_token, &s->err);
  if (st)
    return st;
  ident_hash(s->edit_token, IDENT_LEN, &s->snippet.token);
  st = ST_DENIED;
  for (int i = 0; i < NEW_ID_TRIES && st == ST_DENIED; i++)
    st = put_once(s, db);
  return st;
}

void snippet_put_new(struct request *rq, struct db *db) {
  struct snippet_state *s = rq->state;
  snippet_store(rq, db, put_new);
  s->is_allowed = true;
  audit_link(rq, "link-stored", &s->snippet.id);
}

static enum status add_revision(struct snippet_state *s, struct db *db) {
  return store_add_revision(db, &s->id_hash, &s->token, &s->snippet, &s->found, &s->is_allowed, &s->err);
}

static void put_revision(struct request *rq, struct db *db) {
  struct snippet_state *s = rq->state;
  snippet_store(rq, db, add_revision);
  audit_link(rq, "link-revised", &s->id_hash);
  if (s->st || s->is_allowed) /* after a failure, too: it may have been added */
    kept_forget(services_of(rq)->kept);
  snippet_hide(s, db);
}

/* ---- the answer -------------------------------------------------------------------------------------------------- */

static enum MHD_Result send_created(struct request *rq) {
  struct snippet_state *s = rq->state;
  struct buf *b = &s->answer;
  assert(s->id[0] && (s->is_revision || s->edit_token[0]));
  buf_putc(b, '{');
  json_put_field_str(b, "id", s->id);
  json_put_key(b, "url");
  if (s->is_revision) {
    buf_printf(b, "\"/z/%s?revision=%d\"", s->id, s->snippet.revision);
    json_put_field_int(b, "revision", s->snippet.revision);
  } else {
    buf_printf(b, "\"/z/%s\"", s->id);
    json_put_key(b, "embed_url");
    buf_printf(b, "\"/e/%s\"", s->id);
    json_put_key(b, "raw_url");
    buf_printf(b, "\"/z/%s/raw\"", s->id);
    json_put_field_str(b, "edit_token", s->edit_token);
    json_put_field_str(b, "visibility", snippet_visibility(&s->snippet, s->is_private));
  }
  json_put_field_int(b, "created_ms", s->snippet.created_ms);
  snippet_put_time(b, "expires_ms", s->snippet.expires_ms);
  json_put_field_str(b, "key", work_key(api_part(rq)->work));
  buf_puts(b, "}\n");
  return http_json(rq, MHD_HTTP_CREATED, buf_text(b), b->len, false);
}

static enum MHD_Result answer_stored(struct request *rq) {
  const struct snippet_state *s = rq->state;
  enum MHD_Result answer;
  if (snippet_store_failed(rq, &answer))
    return answer;
  if (!s->found)
    return snippet_not_found(rq);
  return s->is_revision && !s->is_allowed ? http_problem(rq, PB_DENIED, NULL, NULL) : send_created(rq);
}

static enum MHD_Result post(struct request *rq, bool is_revision) {
  const struct api_part *part = api_part(rq);
  struct error err;
  enum MHD_Result answer;

  if (!rq->state) {
    if (!snippet_may_ask(rq, &answer)) /* an id could be guessed, the parent's or the snippet's own */
      return answer;
    struct snippet_state *s = snippet_state_new(rq);
    if (!s)
      return MHD_NO;
    s->is_revision = is_revision;
    if (is_revision) {
      snippet_set_id(s, rq->rest, strlen(rq->rest));
      snippet_set_token(rq);
    }
    enum status st = start(rq, &err);
    if (st)
      return http_status_problem(rq, st, &err);
  }
  if (part->call.state == CALL_DONE)
    return answer_stored(rq);
  if (!api_wait(rq))
    return MHD_YES;
  if (work_look(part->work, NULL, NULL) == WORK_REFUSED)
    return compile_refused(rq);
  return snippet_take_frames(rq) ? http_problem(rq, PB_INTERNAL, NULL, NULL)
                                 : api_call_store(rq, STORE_WRITE, is_revision ? put_revision : snippet_put_new);
}

enum MHD_Result api_snippet_post(struct request *rq) {
  return post(rq, false);
}

enum MHD_Result api_snippet_change(struct request *rq) {
  static const struct {
    const char *end;
    enum MHD_Result (*answer)(struct request *rq, size_t id_len);
  } parts[] = {{"/access", snippet_change_access}, {"/notes", snippet_post_notes}};
  const size_t n = strlen(rq->rest);
  for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
    const size_t k = strlen(parts[i].end);
    if (n >= k && !strcmp(rq->rest + n - k, parts[i].end))
      return parts[i].answer(rq, n - k);
  }
  return post(rq, true);
}
