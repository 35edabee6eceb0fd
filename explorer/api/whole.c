#include "api/whole.h"

#include <assert.h>
#include <stdlib.h>

#include "api/part.h"

enum { LARGE = 256 << 10 }; /* bytes of frames that take a millisecond or more to be unpacked */

struct state {
  char *json; /* heap */
  size_t len;
};

static void free_state(void *user) {
  struct state *s = user;
  free(s->json);
  free(s);
}

static void build(struct request *rq, struct db *db) {
  struct state *s = rq->state;
  (void)db;
  s->json = work_result(api_part(rq)->work, &s->len);
}

static enum MHD_Result send_built(struct request *rq) {
  struct state *s = rq->state;
  char *json = s->json;
  s->json = NULL;
  return http_json_take(rq, MHD_HTTP_OK, json, s->len);
}

enum MHD_Result whole_send(struct request *rq) {
  const struct api_part *part = api_part(rq);
  size_t len;
  rq->extra_ms = 0; /* the result is all here */
  if (part->call.state == CALL_DONE)
    return part->call.is_lost ? http_problem(rq, PB_BUSY, NULL, NULL) : send_built(rq);
  const size_t n = work_text_len(part->work);
  if (n < LARGE) {
    char *json = work_result(part->work, &len);
    return http_json_take(rq, MHD_HTTP_OK, json, len);
  }
  if (!http_has_room(rq, n))
    return http_problem(rq, PB_UNSENT, NULL, NULL);
  assert(!rq->state);
  rq->state = calloc(1, sizeof(struct state));
  rq->free_state = free_state;
  return rq->state ? api_build(rq, build) : http_problem(rq, PB_INTERNAL, NULL, NULL);
}
