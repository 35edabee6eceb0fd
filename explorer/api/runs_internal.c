#include "api/runs_internal.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "http/route.h"

enum { ANSWER_MAX = RUN_FILE_MAX + (1 << 20) };

/* ---- requests that wait ------------------------------------------------------------------------------------------ */

enum status runs_start(const struct runs_config *cfg, struct runs **out, struct error *err) {
  struct runs *r = calloc(1, sizeof *r);
  if (!r)
    return fail(err, ST_NOMEM, "runs");
  *out = r;
  r->cfg = *cfg;
  return holds_start(RUNS_TICK_MS, &r->holds, err);
}

void runs_end_waits(struct runs *r) {
  if (r)
    holds_stop(r->holds);
}

void runs_stop(struct runs *r) {
  if (r)
    holds_free(r->holds);
  free(r);
}

bool run_hold(struct request *rq) {
  const struct run_state_of *s = rq->state;
  api_part(rq)->call.state = CALL_NONE;
  if (clock_now_ms() >= s->until_ms)
    return false;
  rq->hold = (struct hold){0};
  return holds_add(services_of(rq)->runs->holds, &rq->hold, rq->connection);
}

void runs_wake(struct request *rq) {
  holds_wake(services_of(rq)->runs->holds);
}

/* ---- counting ---------------------------------------------------------------------------------------------------- */

const char *runs_count_name(enum runs_count c) {
  static const char *const names[] = {
#define COUNT(e, name) name,
      RUNS_COUNTS(COUNT)
#undef COUNT
  };
  assert((unsigned)c < RUNS_COUNT_N);
  return names[c];
}

int64_t runs_counted(const struct runs *r, enum runs_count c) {
  return atomic_load(&r->counts[c]);
}

void runs_note(struct request *rq, enum runs_count c) {
  atomic_fetch_add(&services_of(rq)->runs->counts[c], 1);
}

/* ---- the state --------------------------------------------------------------------------------------------------- */

static void free_state(void *user) {
  struct run_state_of *s = user;
  json_decref(s->body);
  json_decref(s->compiler);
  buf_clear(&s->ask_about);
  for (int i = 0; i < RUN_FILES_MAX; i++)
    buf_clear(&s->files[i]);
  buf_clear(&s->taken.about);
  run_view_clear(&s->view);
  buf_clear(&s->answer);
  free(s);
}

struct run_state_of *run_state_new(struct request *rq) {
  struct run_state_of *s = calloc(1, sizeof *s);
  if (!s)
    return NULL;
  s->is_allowed = true;
  buf_init(&s->ask_about, RUN_ABOUT_MAX);
  for (int i = 0; i < RUN_FILES_MAX; i++)
    buf_init(&s->files[i], RUN_FILE_MAX);
  buf_init(&s->taken.about, RUN_ABOUT_MAX);
  run_view_init(&s->view);
  buf_init(&s->answer, ANSWER_MAX);
  s->until_ms = clock_now_ms() + RUNS_WAIT_MS;
  rq->state = s;
  rq->free_state = free_state;
  rq->is_private = true;
  return s;
}

bool run_failed(struct request *rq, enum MHD_Result *answer) {
  const struct run_state_of *s = rq->state;
  const bool is_lost = api_part(rq)->call.is_lost;
  if (is_lost || s->st == ST_BUSY)
    *answer = http_problem(rq, PB_STORE, NULL, NULL);
  else if (s->st)
    *answer = http_status_problem(rq, s->st, &s->err);
  else if (!s->is_allowed)
    *answer = http_problem(rq, PB_TOKEN, NULL, NULL);
  return is_lost || s->st || !s->is_allowed;
}

/* ---- what a runner's request names ------------------------------------------------------------------------------- */

static int digit_of(char c) {
  return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

bool run_read_hex(const char *text, size_t len, struct ident_hash *out) {
  if (len != 2 * IDENT_HASH_SIZE)
    return false;
  for (size_t i = 0; i < IDENT_HASH_SIZE; i++) {
    const int high = digit_of(text[2 * i]), low = digit_of(text[2 * i + 1]);
    if (high < 0 || low < 0)
      return false;
    out->bytes[i] = (uint8_t)(high << 4 | low);
  }
  return true;
}

static bool read_token(struct request *rq, struct ident_hash *out) {
  static const char bearer[] = "Bearer ";
  const char *h = http_header(rq, MHD_HTTP_HEADER_AUTHORIZATION);
  if (!h || strncmp(h, bearer, sizeof bearer - 1) != 0)
    return false;
  h += sizeof bearer - 1;
  if (strlen(h) != IDENT_LEN || !ident_is_valid(h, IDENT_LEN))
    return false;
  ident_hash(h, IDENT_LEN, out);
  return true;
}

static bool read_run(struct request *rq, bool has_name, struct run_state_of *s) {
  const char *slash = strchr(rq->rest, '/'), *fence = http_header(rq, "X-Nkx-Fence");
  const size_t len = slash ? (size_t)(slash - rq->rest) : strlen(rq->rest);
  char *end = NULL;
  if (!run_read_hex(rq->rest, len, &s->run) || (slash != NULL) != has_name || !fence)
    return false;
  s->fence = strtoll(fence, &end, 10);
  if (has_name && (!slash[1] || strlen(slash + 1) >= sizeof s->name))
    return false;
  if (has_name)
    strcpy(s->name, slash + 1);
  return end != fence && !*end && s->fence > 0;
}

bool runner_read(struct request *rq, bool has_name, enum MHD_Result *answer) {
  struct run_state_of *s = run_state_new(rq);
  if (!s) {
    *answer = MHD_NO;
    return false;
  }
  if (!read_token(rq, &s->token)) {
    *answer = http_problem(rq, PB_TOKEN, NULL, NULL);
    return false;
  }
  if (rq->route->path[strlen(rq->route->path) - 1] == '/' && !read_run(rq, has_name, s)) {
    *answer = http_problem(rq, PB_BAD_FIELD, "The path names no run, or X-Nkx-Fence no lease.", NULL);
    return false;
  }
  return true;
}

bool runner_read_body(struct request *rq, enum MHD_Result *answer) {
  struct run_state_of *s = rq->state;
  json_error_t jerr;
  s->body = json_loadb(buf_text(&rq->body), rq->body.len, JSON_REJECT_DUPLICATES, &jerr);
  buf_clear(&rq->body);
  if (json_is_object(s->body))
    return true;
  *answer = http_problem(rq, PB_BAD_JSON, NULL, NULL);
  return false;
}

bool runner_check(struct run_state_of *s, struct db *db) {
  s->st = store_check_token(db, &s->token, &s->is_allowed, &s->err);
  return !s->st && s->is_allowed;
}

enum MHD_Result runner_answer_hold(struct request *rq) {
  const struct run_state_of *s = rq->state;
  enum MHD_Result answer;
  if (run_failed(rq, &answer))
    return answer;
  if (s->hold == RUN_LOST)
    runs_note(rq, RUNS_LATE);
  if (s->hold == RUN_LOST)
    return http_problem(rq, PB_LEASE, NULL, NULL);
  return http_json(rq, MHD_HTTP_OK, "{}\n", 3, true);
}

/* ---- runners ----------------------------------------------------------------------------------------------------- */

struct listing {
  struct buf *b;
  int connected, busy;
};

static void put_runner(void *user, const struct runner_seen *r) {
  struct listing *l = user;
  if (!r->is_connected)
    return;
  json_put_comma(l->b);
  buf_putc(l->b, '{');
  json_put_field_bool(l->b, "busy", r->is_busy);
  json_put_field_int(l->b, "seen_ms", r->seen_ms);
  json_put_key(l->b, "about");
  buf_puts(l->b, r->about);
  buf_putc(l->b, '}');
  l->connected++;
  l->busy += r->is_busy;
}

enum status runs_put_runners(struct db *db, struct buf *b, int *n_connected, struct error *err) {
  struct listing l = {.b = b};
  int waiting = 0, running = 0;
  json_put_key(b, "runners");
  buf_putc(b, '[');
  enum status st = store_each_runner(db, put_runner, &l, err);
  buf_putc(b, ']');
  if (!st)
    st = store_count_runs(db, &waiting, &running, err);
  json_put_field_int(b, "connected", l.connected);
  json_put_field_int(b, "busy", l.busy);
  json_put_field_int(b, "waiting", waiting);
  json_put_field_int(b, "running", running);
  if (!l.connected)
    json_put_field_str(b, "missing", "No Neuron host is connected to this server: `nkx runner` on one connects it.");
  *n_connected = l.connected;
  return st;
}
