#include "api/part.h"

#include <assert.h>
#include <string.h>

#include "api/metrics.h"
#include "api/services.h"
#include "base/clock.h"
#include "base/index.h"
#include "job/results.h"

static_assert(_Alignof(struct api_part) <= _Alignof(struct request), "a part lies after its request");

/* On a store thread.  The request exists at least until its connection is resumed. */
static void run_call(struct store_task *t, struct db *db) {
  struct store_call *c = (struct store_call *)t;
  struct MHD_Connection *connection = c->rq->connection;
  assert(c->state == CALL_RUNNING);
  if (c->is_answer && http_is_gone(c->rq))
    c->rq->is_abandoned = true;
  else
    c->fn(c->rq, db);
  c->state = CALL_DONE;
  http_resume(connection);
}

static enum MHD_Result call(struct request *rq, enum store_lane lane, void (*fn)(struct request *rq, struct db *db),
                            bool is_answer) {
  struct store_call *c = &api_part(rq)->call;
  assert(c->state != CALL_RUNNING);
  *c = (struct store_call){.task.run = run_call, .rq = rq, .fn = fn, .state = CALL_RUNNING, .is_answer = is_answer};
  if (lane == STORE_BUILD) {
    char client[ADDRESS_TEXT_SIZE];
    http_client_key(rq, client);
    c->task.owner = hash_bytes(client, strlen(client)) | 1; /* that of two clients may be the same by chance */
  }
  http_park(rq->connection);
  if (!store_submit(services_of(rq)->store, lane, &c->task)) {
    c->is_lost = true;
    c->state = CALL_DONE;
    http_resume(rq->connection);
  }
  return MHD_YES;
}

enum MHD_Result api_call_store(struct request *rq, enum store_lane lane,
                               void (*fn)(struct request *rq, struct db *db)) {
  return call(rq, lane, fn, false);
}

enum MHD_Result api_build(struct request *rq, void (*fn)(struct request *rq, struct db *db)) {
  return call(rq, STORE_BUILD, fn, true);
}

bool api_wait_for(struct request *rq, struct work *w, struct work_waiter *me) {
  return work_wait(w, me, true, http_park, http_resume, rq->connection);
}

bool api_wait(struct request *rq) {
  struct api_part *part = api_part(rq);
  return api_wait_for(rq, part->work, &part->waiter);
}

void api_end(struct request *rq) {
  const struct services *s = services_of(rq);
  struct api_part *part = api_part(rq);
  assert(part->call.state != CALL_RUNNING);
  metrics_count(s->metrics, rq->route, rq->status, rq->is_stream ? 0 : clock_now_us() - rq->began_us);
  editors_leave(s->editors, &part->editor); /* before the work is released, which a newer request could cancel */
  if (part->work) {
    results_release(s->results, part->work, &part->waiter, http_client_fd(rq));
    work_unref(part->work);
  }
  identity_clear(&part->identity);
}
