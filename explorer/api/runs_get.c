/* GET and DELETE /api/v1/runs/ID, GET /api/v1/runs/ID/files/NAME and …/stage, GET /api/v1/runners. */
#include "api/runs_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/snippet.h"
#include "base/json.h"

/* ---- one run ------------------------------------------------------------------------------------------------------- */

static void put_object(struct buf *b, const char *key, const struct buf *json) {
  if (!json->len)
    return;
  json_put_key(b, key);
  buf_append(b, buf_text(json), json->len);
}

static void put_file(void *user, const char *name, int64_t size) {
  struct buf *b = user;
  json_put_comma(b);
  buf_putc(b, '{');
  json_put_field_str(b, "name", strncmp(name, RUN_OUT, sizeof RUN_OUT - 1) ? name : name + sizeof RUN_OUT - 1);
  json_put_field_bool(b, "is_output", !strncmp(name, RUN_OUT, sizeof RUN_OUT - 1));
  json_put_field_int(b, "size", size);
  buf_putc(b, '}');
}

static const char *wants_name(int wants) {
  return wants & RUN_NKI ? "nki" : wants & RUN_PROFILE ? "profile" : wants & RUN_EXECUTE ? "execute" : "compile";
}

/* What changes while one waits: the place in the queue changes without a new version. */
static void write_mark(const struct run_view *v, bool has_runner, char out[48]) {
  snprintf(out, 48, "%lld.%d.%d.%d", (long long)v->version, v->position, (int)v->state, (int)has_runner);
}

static enum status put_view(struct run_state_of *s, struct db *db) {
  struct buf *b = &s->answer, runners;
  const struct run_view *v = &s->view;
  char mark[48];
  int connected = 0;
  const bool has_ended = v->state > RUN_RUNNING;
  buf_init(&runners, 1 << 20);
  enum status st = runs_put_runners(db, &runners, &connected, &s->err);
  buf_clear(&runners);
  write_mark(v, connected > 0, mark);
  buf_putc(b, '{');
  json_put_field_str(b, "state", run_state_name(v->state));
  json_put_field_str(b, "mark", mark);
  if (v->position)
    json_put_field_int(b, "position", v->position);
  json_put_field_int(b, "attempt", v->tries);
  json_put_field_str(b, "target", v->target);
  json_put_field_str(b, "run", wants_name(v->wants));
  json_put_field_int(b, "created_ms", v->created_ms);
  if (has_ended)
    json_put_field_int(b, "ended_ms", v->ended_ms);
  if (!has_ended && !connected)
    json_put_field_str(b, "missing", "No Neuron host is connected any more. The run waits for one.");
  put_object(b, "about", &v->about);
  put_object(b, "runner", &v->runner);
  json_put_field_str(b, "log", buf_text(&v->log));
  put_object(b, "outcome", &v->outcome);
  json_put_key(b, "files");
  buf_putc(b, '[');
  if (!st && has_ended)
    st = store_each_run_file(db, &s->run, put_file, b, &s->err);
  buf_puts(b, "]}\n");
  if (!st && buf_status(b))
    st = fail(&s->err, ST_NOMEM, "a run");
  if (!st && !strcmp(mark, s->after)) /* nothing is new */
    buf_clear(b);
  return st;
}

/* On a store thread. */
static void look(struct request *rq, struct db *db) {
  struct run_state_of *s = rq->state;
  buf_clear(&s->answer);
  run_view_clear(&s->view);
  run_view_init(&s->view);
  s->st = store_get_run(db, &s->run, &s->view, &s->found, &s->err);
  if (!s->st && s->found)
    s->st = put_view(s, db);
}

/* "out/NAME" for the files that the runner has brought, which are complete only once the run has ended. */
static void read_file(struct request *rq, struct db *db) {
  struct run_state_of *s = rq->state;
  char out[sizeof s->name + sizeof RUN_OUT];
  s->st = store_get_run(db, &s->run, &s->view, &s->found, &s->err);
  if (s->st || !s->found)
    return;
  s->st = store_get_run_file(db, &s->run, s->name, &s->answer, &s->found, &s->err);
  if (s->st || s->found || s->view.state != RUN_DONE)
    return;
  snprintf(out, sizeof out, RUN_OUT "%s", s->name);
  s->st = store_get_run_file(db, &s->run, out, &s->answer, &s->found, &s->err);
}

/* "ID", "ID/stage" or "ID/files/NAME". */
static void read_path(struct request *rq, struct run_state_of *s) {
  static const char files[] = "/files/";
  const size_t len = strcspn(rq->rest, "/");
  const char *tail = rq->rest + len;
  const bool is_file = !strncmp(tail, files, sizeof files - 1) && tail[sizeof files - 1] &&
                       strlen(tail + sizeof files - 1) < sizeof s->name && !strchr(tail + sizeof files - 1, '/');
  s->wants_stage = !strcmp(tail, "/stage");
  const bool is_id = len == IDENT_LEN && ident_is_valid(rq->rest, len) && (!*tail || is_file || s->wants_stage);
  if (is_file)
    strcpy(s->name, tail + sizeof files - 1);
  ident_hash(is_id ? rq->rest : "", is_id ? len : 0, &s->run); /* what is no id is looked up as one that no run has */
}

static enum MHD_Result start(struct request *rq, enum store_lane lane, void (*fn)(struct request *, struct db *)) {
  const char *after = http_argument(rq, "after");
  enum MHD_Result answer;
  if (!snippet_may_ask(rq, &answer))
    return answer;
  struct run_state_of *s = run_state_new(rq);
  if (!s)
    return MHD_NO;
  read_path(rq, s);
  snprintf(s->after, sizeof s->after, "%s", after ? after : "");
  return api_call_store(rq, lane, fn ? fn : *s->name ? read_file : s->wants_stage ? runs_read_stage : look);
}

static enum MHD_Result send_file(struct request *rq) {
  struct run_state_of *s = rq->state;
  char disposition[96];
  snprintf(disposition, sizeof disposition, "attachment; filename=\"%s\"", s->name);
  struct http_bytes b = {.data = s->answer.data,
                         .len = s->answer.len,
                         .type = "application/octet-stream",
                         .disposition = disposition,
                         .release = free,
                         .user = s->answer.data};
  s->answer = (struct buf){.max = s->answer.max};
  return http_bytes(rq, MHD_HTTP_OK, &b);
}

static enum MHD_Result send_view(struct request *rq) {
  struct run_state_of *s = rq->state;
  char *json = s->answer.data;
  const size_t len = s->answer.len;
  s->answer = (struct buf){.max = s->answer.max};
  return http_json_take(rq, MHD_HTTP_OK, json, len);
}

enum MHD_Result api_runs_get(struct request *rq) {
  struct run_state_of *s = rq->state;
  enum MHD_Result answer;
  if (!s)
    return start(rq, STORE_READ, NULL);
  if (api_part(rq)->call.state == CALL_NONE) /* it was held */
    return api_call_store(rq, STORE_READ, look);
  if (run_failed(rq, &answer))
    return answer;
  if (!s->found)
    return snippet_not_found(rq);
  if (*s->name)
    return send_file(rq);
  if (s->answer.len)
    return send_view(rq);
  if (run_hold(rq))
    return MHD_YES;
  *s->after = 0; /* the time is up: it gets what there is */
  return api_call_store(rq, STORE_READ, look);
}

static void cancel(struct request *rq, struct db *db) {
  struct run_state_of *s = rq->state;
  if (!*s->name && !s->wants_stage) /* a part is not deleted alone */
    s->st = store_cancel_run(db, &s->run, &s->found, &s->err);
}

enum MHD_Result api_runs_delete(struct request *rq) {
  const struct run_state_of *s = rq->state;
  enum MHD_Result answer;
  if (!s)
    return start(rq, STORE_WRITE, cancel);
  if (run_failed(rq, &answer))
    return answer;
  if (!s->found)
    return snippet_not_found(rq);
  runs_wake(rq);
  return http_send(rq, MHD_HTTP_NO_CONTENT, MHD_create_response_from_buffer(0, (void *)"", MHD_RESPMEM_PERSISTENT));
}

/* ---- runners ------------------------------------------------------------------------------------------------------- */

static void list(struct request *rq, struct db *db) {
  struct run_state_of *s = rq->state;
  int connected;
  buf_putc(&s->answer, '{');
  s->st = runs_put_runners(db, &s->answer, &connected, &s->err);
  buf_puts(&s->answer, "}\n");
}

enum MHD_Result api_runners(struct request *rq) {
  enum MHD_Result answer;
  if (!rq->state)
    return run_state_new(rq) ? api_call_store(rq, STORE_READ, list) : MHD_NO;
  return run_failed(rq, &answer) ? answer : send_view(rq);
}
