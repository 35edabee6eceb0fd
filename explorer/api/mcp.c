/* POST /mcp: see the header.
 *
 * A request goes through the steps of a compile, of a stored result or of a link, by the tool that it calls; each suspends the
 * connection, and the handler is called again. */
#include "api/mcp.h"

#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "api/admit.h"
#include "api/audit.h"
#include "api/compile.h"
#include "api/part.h"
#include "api/search.h"
#include "api/services.h"
#include "api/snippet.h"
#include "job/export.h"
#include "job/results.h"

enum { ANSWER_MAX = 64 << 20, RESULT_MAX = WORK_BYTES_MAX };

struct mcp_state {
  struct mcp_call call;
  struct arena arena;
  struct results *results;
  struct work *with; /* the second result; NULL: none is asked for */
  struct work_waiter with_waiter;
  struct buf out; /* the response */
};

static void free_state(void *user) {
  struct mcp_state *s = user;
  if (s->with) {
    results_release(s->results, s->with, &s->with_waiter, -1);
    work_unref(s->with);
  }
  mcp_clear(&s->call);
  arena_clear(&s->arena);
  buf_clear(&s->out);
  free(s);
}

/* A request that makes a link has the state of one, which holds ours. */
static struct mcp_state *state_of(const struct request *rq) {
  return rq->free_state == free_state ? rq->state : snippet_state_of(rq)->more;
}

/* ---- answers ----------------------------------------------------------------------------------------------------- */

static struct MHD_Response *respond(struct buf *b) {
  struct MHD_Response *r =
      buf_status(b) ? NULL : MHD_create_response_from_buffer(b->len, (void *)buf_text(b), MHD_RESPMEM_MUST_COPY);
  if (r) {
    MHD_add_response_header(r, MHD_HTTP_HEADER_CONTENT_TYPE, "application/json");
    MHD_add_response_header(r, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store");
  }
  return r;
}

struct MHD_Response *api_mcp_problem(struct request *rq, unsigned status, const char *code, const char *message) {
  enum { PROBLEM_MAX = 8 << 10, SERVER_ERROR = -32000 };
  struct buf b;
  (void)rq;
  buf_init(&b, PROBLEM_MAX);
  rpc_put_error(&b, NULL, status == 400 || status == 413 ? RPC_INVALID : SERVER_ERROR, message,
                json_pack("{s:s}", "code", code));
  struct MHD_Response *r = respond(&b);
  buf_clear(&b);
  return r;
}

static enum MHD_Result send_out(struct request *rq, unsigned status) {
  struct mcp_state *s = state_of(rq);
  return buf_status(&s->out) ? http_problem(rq, PB_INTERNAL, NULL, NULL)
                             : http_json(rq, status, buf_text(&s->out), s->out.len, false);
}

/* The status of HTTP for an answer at once. */
static unsigned status_of(const struct mcp_call *c) {
  if (c->code == RPC_PARSE || c->code == RPC_INVALID || (c->is_modern && c->code && c->code != RPC_NO_METHOD))
    return MHD_HTTP_BAD_REQUEST;
  return c->is_modern && c->code ? MHD_HTTP_NOT_FOUND : MHD_HTTP_OK;
}

static enum MHD_Result send_initialized(struct request *rq) {
  char id[MCP_SESSION_LEN + 1];
  struct error err;
  struct MHD_Response *r = mcp_session_new(rq, id, &err) ? NULL : respond(&state_of(rq)->out);
  if (!r)
    return http_problem(rq, PB_INTERNAL, NULL, NULL);
  MHD_add_response_header(r, MCP_SESSION_HEADER, id);
  return http_send(rq, MHD_HTTP_OK, r);
}

static enum MHD_Result send_accepted(struct request *rq) {
  return http_send(rq, MHD_HTTP_ACCEPTED, MHD_create_response_from_buffer(0, "", MHD_RESPMEM_PERSISTENT));
}

/* ---- cancelling -------------------------------------------------------------------------------------------------- */

/* By this name the session's request is found again by its cancellation; false: there is none. */
static bool name_place(struct request *rq, const json_t *id) {
  struct editor_place *place = &api_part(rq)->editor;
  char session[IDENT_LEN + 1], name[IDENT_LEN + 1];
  char *text = id ? json_dumps(id, JSON_ENCODE_ANY) : NULL;
  const bool ok = text && mcp_session_text(rq, "request", session);
  if (ok) {
    ident_derive((const uint8_t *)session, IDENT_LEN, text, strlen(text), name);
    memcpy(place->key, "mcp ", 4);
    memcpy(place->key + 4, name, sizeof name);
    editors_enter(services_of(rq)->editors, place);
  }
  free(text);
  return ok;
}

/* ---- the steps --------------------------------------------------------------------------------------------------- */

static enum status compile(struct request *rq, struct mcp_state *s, struct error *err) {
  struct api_part *part = api_part(rq);
  char scope[IDENT_LEN + 1];
  const bool is_named = name_place(rq, s->call.message.id);
  if (mcp_session_text(rq, "scope", scope))
    s->call.job.scope = scope;
  const enum status st =
      s->call.tool->need == MCP_SHRINK ? search_shrink(rq, &s->call.job, err) : compile_start(rq, &s->call.job, err);
  s->call.job.scope = NULL;
  if (!st && is_named)
    editors_set_work(services_of(rq)->editors, &part->editor, part->work, &part->waiter);
  return st;
}

static enum status start_link(struct request *rq, struct mcp_state *s, struct error *err) {
  const struct snippet_extra extra = {.title = json_object_get(s->call.args, "title")};
  struct snippet_state *link = snippet_state_of(rq);
  link->snippet.created_ms = store_now_ms();
  enum status st = snippet_count_link(rq, err);
  if (!st)
    st = snippet_write_doc(&link->snippet.doc, &s->call.job, &extra, err);
  return st ? st : compile(rq, s, err);
}

/* Gives our state to that of a link. */
static bool become_link(struct request *rq) {
  struct mcp_state *s = rq->state;
  rq->state = NULL;
  rq->free_state = NULL;
  struct snippet_state *link = snippet_state_new(rq);
  if (!link) {
    free_state(s);
    return false;
  }
  link->more = s;
  link->free_more = free_state;
  return true;
}

/* Starts what the tool needs, or answers. */
static enum MHD_Result start_call(struct request *rq) {
  struct mcp_state *s = rq->state;
  struct error err = {0};
  enum status st = ST_OK;
  if (s->call.tool->need == MCP_SHARE && identity_of(rq)->role < ROLE_AUTHOR)
    return http_problem(rq, PB_ROLE, NULL, NULL);
  if (s->call.tool->need == MCP_SHARE && !become_link(rq))
    return MHD_NO;
  if (s->call.tool->need == MCP_SHARE)
    st = start_link(rq, s, &err);
  else if (s->call.tool->need == MCP_JOB || s->call.tool->need == MCP_SHRINK)
    st = compile(rq, s, &err);
  if (st)
    return http_status_problem(rq, st, &err);
  s->results = services_of(rq)->results;
  if (s->call.key && !(api_part(rq)->work = results_find(s->results, s->call.key)))
    return MHD_NO;
  if (s->call.with && !(s->with = results_find(s->results, s->call.with)))
    return MHD_NO;
  return api_mcp(rq);
}

static json_t *result_of(struct work *w) {
  struct buf b;
  buf_init(&b, RESULT_MAX);
  json_t *r = w && export_result(w, &b) ? json_loadb(buf_text(&b), b.len, JSON_ALLOW_NUL, NULL) : NULL;
  buf_clear(&b);
  return r;
}

/* On a store thread: a large result takes a while to be read. */
static void build(struct request *rq, struct db *db) {
  struct mcp_state *s = state_of(rq);
  (void)db;
  json_t *result = result_of(api_part(rq)->work), *with = result_of(s->with);
  if ((api_part(rq)->work && !result) || (s->with && !with))
    mcp_answer_failed(&s->call, "the result is too large", &s->out);
  else
    mcp_answer(&s->arena, &s->call, result, with, &s->out);
  json_decref(result);
  json_decref(with);
}

static enum MHD_Result send_link(struct request *rq) {
  struct snippet_state *link = snippet_state_of(rq);
  struct mcp_state *s = link->more;
  char address[OWN_ADDRESS_SIZE];
  enum MHD_Result answer;
  if (snippet_store_failed(rq, &answer))
    return answer;
  http_own_address(rq, address);
  const char *url = arena_printf(&s->arena, "%s/z/%s", address, link->id);
  mcp_answer_text(&s->call, url, json_pack("{s:s,s:s,s:s}", "url", url, "id", link->id, "edit_token", link->edit_token),
                  &s->out);
  return send_out(rq, MHD_HTTP_OK);
}

static bool is_refused(struct work *w) {
  return w && work_look(w, NULL, NULL) == WORK_REFUSED;
}

/* Reads the message; answers it, or starts what it needs. */
static enum MHD_Result start(struct request *rq) {
  struct mcp_state *s = calloc(1, sizeof *s);
  struct error err = {0};
  int code = 0;
  if (!s)
    return MHD_NO;
  rq->state = s;
  rq->free_state = free_state;
  rq->is_private = true;
  buf_init(&s->out, ANSWER_MAX);
  if (compile_arena(&s->arena, rq->body.len + MCP_ARENA, &err))
    return http_status_problem(rq, ST_NOMEM, &err);
  const enum mcp_do what = mcp_take(&s->arena, buf_text(&rq->body), rq->body.len, &s->call, &s->out);
  buf_clear(&rq->body);
  const unsigned refused = mcp_check_head(rq, &s->call, &code, &err);
  if (refused) {
    s->out.len = 0;
    rpc_put_error(&s->out, s->call.message.id, code, err.text, NULL);
    return send_out(rq, refused);
  }
  switch (what) {
  case MCP_CANCEL:
    name_place(rq, s->call.cancelled); /* which calls off the request that has it */
    return send_accepted(rq);
  case MCP_NOTHING:
    return send_accepted(rq);
  case MCP_CALL:
    return start_call(rq);
  default:
    return s->call.is_initialize ? send_initialized(rq) : send_out(rq, status_of(&s->call));
  }
}

enum MHD_Result api_mcp(struct request *rq) {
  struct api_part *part = api_part(rq);
  if (!mcp_origin_allowed(rq))
    return http_problem(rq, PB_FOREIGN, "Pages of other sites may not use this address.", NULL);
  if (!rq->state)
    return start(rq);
  struct mcp_state *s = state_of(rq);
  const bool is_link = s->call.tool->need == MCP_SHARE;
  if (part->call.state == CALL_DONE)
    return part->call.is_lost ? http_problem(rq, PB_STORE, NULL, NULL)
           : is_link          ? send_link(rq)
                              : send_out(rq, MHD_HTTP_OK);
  if ((part->work && !api_wait(rq)) || (s->with && !api_wait_for(rq, s->with, &s->with_waiter)))
    return MHD_YES;
  if (part->work && work_is_called_off(part->work, &part->waiter))
    return http_problem(rq, PB_SUPERSEDED, "The client has cancelled the request.", NULL);
  if (s->call.tool->need != MCP_RESULT && is_refused(part->work))
    return compile_refused(rq);
  if (is_refused(part->work) || is_refused(s->with)) {
    mcp_answer_failed(&s->call, "there is no such result, or not any more: compile again", &s->out);
    return send_out(rq, MHD_HTTP_OK);
  }
  if (!is_link)
    return api_build(rq, build);
  return snippet_take_frames(rq) ? http_problem(rq, PB_INTERNAL, NULL, NULL)
                                 : api_call_store(rq, STORE_WRITE, snippet_put_new);
}
