/* Compiler Explorer's links, kept as our own snippets.
 *
 * A stored state gets an unlisted id that follows from it and the store's secret: equal states share a link, and nobody
 * without the secret can tell which states are kept.  Its kernel is compiled when it is stored, as for every snippet, so
 * that the link shows frozen stages; reading a link runs nothing.  The document is a snippet's, with the state as it was
 * posted in "ce".
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <openssl/evp.h>
#include <zlib.h>

#include "api/compile.h"
#include "api/snippets.h"
#include "base/json.h"
#include "ce/internal.h"
#include "driver/pipeline.h"

enum { URL_MAX = 32 << 10 };

struct state {
  char id[IDENT_LEN + 1], token[IDENT_LEN + 1];
  struct store_snippet snippet;
  enum status st;
  struct error err;
  bool found;
};

static void free_state(void *user) {
  struct state *s = user;
  store_snippet_clear(&s->snippet);
  free(s);
}

static struct state *new_state(struct request *rq) {
  struct state *s = calloc(1, sizeof *s);
  if (!s)
    return NULL;
  store_snippet_init(&s->snippet);
  rq->state = s;
  rq->free_state = free_state;
  rq->is_private = true;
  return s;
}

static enum MHD_Result store_failed(struct request *rq, const struct state *s) {
  if (rq->call.is_lost || s->st == ST_BUSY)
    return http_problem(rq, PB_STORE, NULL, NULL);
  return http_status_problem(rq, s->st, &s->err);
}

/* ---- POST /api/shortener -------------------------------------------------------------------------------------------
 */

static bool derive_id(struct request *rq, const json_t *posted, char id[IDENT_LEN + 1]) {
  char *text = json_dumps(posted, JSON_COMPACT | JSON_SORT_KEYS); /* whatever order the client wrote the members in */
  if (text)
    ident_derive(store_secret(rq->app->store), STORE_SECRET_SIZE, text, strlen(text), id);
  free(text);
  return text != NULL;
}

/* {"request","view","pipeline","ce"} into the snippet. */
static enum status write_doc(struct state *s, const struct job *job, const json_t *posted, struct error *err) {
  struct job bare = *job;
  size_t len;
  bare.scope = NULL;
  char *request = job_dump(&bare, &len), *state = json_dumps(posted, JSON_COMPACT);
  struct buf *b = &s->snippet.doc;
  if (request && state) {
    buf_puts(b, "{\"view\":null,\"request\":");
    buf_append(b, request, len);
    json_put_field_str(b, "pipeline", pipeline_version());
    json_put_key(b, "ce");
    buf_puts(b, state);
    buf_putc(b, '}');
  }
  enum status st = request && state ? buf_status(b) : ST_NOMEM;
  free(request);
  free(state);
  return st ? fail(err, st, "link") : ST_OK;
}

/* Starts the compile of what the state shows first. */
static enum status start_compile(struct request *rq, struct state *s, const json_t *posted, const json_t *state,
                                 struct error *err) {
  struct arena a;
  struct ce_ask q;
  struct job job;
  enum status st = compile_arena(&a, rq->body.len, err);
  if (st)
    return st;
  ce_ask_init(&q);
  ce_state_ask(state, &a, &q);
  st = ce_ask_job(&q, &a, &job, err);
  if (!st && q.args.complaint) { /* a stage or kernel that is not there: as without arguments */
    q.args = (struct ce_args){0};
    st = ce_ask_job(&q, &a, &job, err);
  }
  if (!st)
    st = write_doc(s, &job, posted, err);
  if (!st)
    st = compile_start(rq, &a, &job, err);
  ce_ask_clear(&q);
  arena_clear(&a);
  return st;
}

/* Sets rq->work, or answers. */
static enum MHD_Result start(struct request *rq) {
  struct error err;
  json_error_t jerr;
  struct state *s = new_state(rq);
  enum MHD_Result answer;
  if (!s)
    return MHD_NO;
  if (compile_check_nesting(&rq->body, &err))
    return http_status_problem(rq, ST_INPUT, &err);
  json_t *root = json_loadb(buf_text(&rq->body), rq->body.len, JSON_ALLOW_NUL, &jerr);
  json_t *posted = json_object_get(root, "config") ? json_object_get(root, "config") : root;
  json_t *state = ce_state_of(posted);
  if (!root) {
    answer = http_problem(rq, PB_BAD_JSON, jerr.text, NULL);
  } else if (!state) {
    answer = http_problem(rq, PB_BAD_FIELD, "There is no state: neither \"sessions\" nor \"content\".", NULL);
  } else {
    s->snippet.created_ms = store_now_ms();
    enum status st = derive_id(rq, posted, s->id) ? start_compile(rq, s, posted, state, &err) : ST_NOMEM;
    answer = st ? http_status_problem(rq, st, &err) : MHD_YES;
  }
  json_decref(state);
  json_decref(root);
  buf_clear(&rq->body);
  return answer;
}

/* On the store's writing thread.  An id that is taken is this state's already. */
static void put(struct request *rq, struct db *db) {
  struct state *s = rq->state;
  ident_hash(s->id, IDENT_LEN, &s->snippet.id);
  s->st = ident_new(s->token, &s->err);
  if (s->st)
    return;
  ident_hash(s->token, IDENT_LEN, &s->snippet.token);
  s->st = store_put_snippet(db, &s->snippet, &s->err);
  s->found = s->st == ST_DENIED;
  if (s->found)
    s->st = ST_OK;
}

/* A name and port as they may stand in an address. */
static bool is_host(const char *h) {
  static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-:[]_";
  return h && *h && strlen(h) < 256 && !h[strspn(h, letters)];
}

/* The token is told to who stored the state first, and to nobody else. */
static enum MHD_Result send_link(struct request *rq, const struct state *s) {
  const char *host = http_header(rq, MHD_HTTP_HEADER_HOST), *proto = http_header(rq, "X-Forwarded-Proto");
  json_t *url = json_sprintf("%s://%s/z/%s", proto && !strcmp(proto, "https") ? "https" : "http",
                             is_host(host) ? host : "localhost", s->id);
  json_t *o = json_pack("{s:o,s:s}", "url", url, "id", s->id);
  if (!s->found)
    json_object_set_new(o, "edit_token", json_string(s->token));
  return ce_send(rq, MHD_HTTP_OK, o, CE_NO_STORE);
}

enum MHD_Result ce_shorten(struct request *rq) {
  struct state *s = rq->state;
  size_t len;
  if (!s) {
    enum MHD_Result answer = start(rq);
    if (!rq->work)
      return answer;
    s = rq->state;
  }
  if (rq->call.state == CALL_DONE)
    return rq->call.is_lost || s->st ? store_failed(rq, s) : send_link(rq, s);
  if (!work_wait(rq->work, &rq->waiter, true, http_park, http_resume, rq->connection))
    return MHD_YES;
  if (work_look(rq->work, NULL, NULL) == WORK_REFUSED)
    return compile_refused(rq);
  char *frames = work_frames(rq->work, &len);
  enum status st = frames ? buf_append(&s->snippet.frames, frames, len) : ST_NOMEM;
  free(frames);
  return st ? http_problem(rq, PB_INTERNAL, NULL, NULL) : http_call_store(rq, STORE_WRITE, put);
}

/* ---- GET /api/shortlinkinfo/ID --------------------------------------------------------------------------------------
 */

static void get(struct request *rq, struct db *db) {
  struct state *s = rq->state;
  s->st = store_get_snippet(db, &s->snippet.id, true, &s->snippet, &s->found, &s->err);
}

static enum MHD_Result send_state(struct request *rq, const struct state *s) {
  const struct buf *doc = &s->snippet.doc;
  json_t *root = json_loadb(buf_text(doc), doc->len, JSON_ALLOW_NUL, NULL), *stored = json_object_get(root, "ce");
  json_t *state = stored ? ce_state_of(stored) : ce_state_of_request(json_object_get(root, "request"));
  char *text = state ? json_dumps(state, JSON_COMPACT) : NULL, date[40];
  time_t t = (time_t)(s->snippet.created_ms / 1000);
  struct tm tm;
  json_decref(state);
  json_decref(root);
  if (!text)
    return http_problem(rq, PB_INTERNAL, NULL, NULL);
  struct MHD_Response *r = MHD_create_response_from_buffer(strlen(text), text, MHD_RESPMEM_MUST_FREE);
  if (!r) {
    free(text);
    return MHD_NO;
  }
  strftime(date, sizeof date, "%a, %d %b %Y %H:%M:%S GMT", gmtime_r(&t, &tm));
  MHD_add_response_header(r, MHD_HTTP_HEADER_CONTENT_TYPE, "application/json");
  MHD_add_response_header(r, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store");
  MHD_add_response_header(r, "Link-Created", date);
  return http_send(rq, MHD_HTTP_OK, r);
}

enum MHD_Result ce_link_info(struct request *rq) {
  struct state *s = rq->state;
  enum MHD_Result answer;
  if (rq->call.state == CALL_NONE) {
    if (!snippet_may_ask(rq, &answer))
      return answer;
    s = new_state(rq);
    if (!s)
      return MHD_NO;
    bool is_valid = ident_is_valid(rq->rest, strlen(rq->rest));
    ident_hash(is_valid ? rq->rest : "", is_valid ? strlen(rq->rest) : 0, &s->snippet.id);
    return http_call_store(rq, STORE_READ, get);
  }
  if (rq->call.is_lost || s->st)
    return store_failed(rq, s);
  return s->found ? send_state(rq, s) : snippet_not_found(rq);
}

/* ---- GET /clientstate/BASE64 ---------------------------------------------------------------------------------------
 */

/* Appends what may stand in a fragment's value as it is, and the rest as %XX. */
static void put_escaped(struct buf *b, const char *s) {
  static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.~:,";
  for (; *s; s++)
    buf_printf(b, strchr(plain, *s) ? "%c" : "%%%02X", (unsigned char)*s);
}

/* The source as the page's own links have it: base64url of a zlib stream. */
static void put_source(struct buf *b, const char *source, size_t n) {
  uLongf bound = compressBound(n);
  unsigned char *packed = malloc(bound), *text = malloc(bound / 3 * 4 + 8);
  if (packed && text && compress(packed, &bound, (const Bytef *)source, n) == Z_OK) {
    int k = EVP_EncodeBlock(text, packed, (int)bound);
    while (k > 0 && text[k - 1] == '=')
      k--;
    for (int i = 0; i < k; i++)
      buf_putc(b, text[i] == '+' ? '-' : text[i] == '/' ? '_' : (char)text[i]);
  } else {
    b->failed = ST_NOMEM;
  }
  free(packed);
  free(text);
}

static void put_inputs(struct buf *b, const struct job *job) {
  size_t len;
  char *dump = job_dump(job, &len);
  json_t *o = dump ? json_loadb(dump, len, JSON_ALLOW_NUL, NULL) : NULL;
  char *inputs = json_dumps(json_object_get(o, "inputs"), JSON_COMPACT);
  if (inputs) {
    buf_puts(b, "&in=");
    put_escaped(b, inputs);
  }
  free(inputs);
  free(dump);
  json_decref(o);
}

/* The page's own address for what the state shows first. */
static enum status write_address(struct buf *b, const json_t *state) {
  struct arena a;
  struct ce_ask q;
  struct job job;
  struct error err;
  enum status st = compile_arena(&a, JOB_JSON_MAX, &err);
  if (st)
    return st;
  ce_ask_init(&q);
  ce_state_ask(state, &a, &q);
  st = ce_ask_job(&q, &a, &job, &err);
  if (!st && !q.args.complaint) {
    buf_puts(b, "/#");
    if (job.stop_after) {
      buf_puts(b, "stage=");
      put_escaped(b, job.stop_after);
      buf_putc(b, '&');
    }
    if (job.kernel) {
      buf_puts(b, "kernel=");
      put_escaped(b, job.kernel);
      buf_putc(b, '&');
    }
    buf_printf(b, "target=%s", target_name(job.target));
    if (job.check)
      buf_puts(b, "&check=1");
    if (job.n_inputs)
      put_inputs(b, &job);
    buf_puts(b, "&code=");
    put_source(b, job.source, job.source_len);
    st = buf_status(b);
  } else if (!st) {
    st = ST_INPUT;
  }
  ce_ask_clear(&q);
  arena_clear(&a);
  return st;
}

/* The state becomes the page's own form of a link with everything in it, behind the '#' that no server sees; so nothing
 * runs here, and nothing of it is kept. */
enum MHD_Result ce_open_state(struct request *rq) {
  struct buf url;
  rq->is_private = true;
  json_t *state = ce_state_decode(rq->rest, strlen(rq->rest));
  buf_init(&url, URL_MAX);
  enum status st = state ? write_address(&url, state) : ST_INPUT;
  json_decref(state);
  if (st) {
    buf_clear(&url);
    return http_problem(rq, st == ST_LIMIT ? PB_TOO_LARGE : PB_BAD_FIELD,
                        st == ST_LIMIT ? "The state is too large for an address; store it with /api/shortener."
                                       : "Invalid client state data in URL",
                        NULL);
  }
  struct MHD_Response *r = MHD_create_response_from_buffer(0, (void *)"", MHD_RESPMEM_PERSISTENT);
  if (r) {
    MHD_add_response_header(r, MHD_HTTP_HEADER_LOCATION, buf_text(&url));
    MHD_add_response_header(r, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store");
  }
  buf_clear(&url);
  return http_send(rq, MHD_HTTP_FOUND, r);
}
