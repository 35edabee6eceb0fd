/* part: the state of a request that the handlers of api/ and ce/ keep in addition to that of http/.
 *
 * A handler that compiles reads a work, and one that needs the store runs a function on a store thread; in both cases
 * the connection is suspended meanwhile, and the handler is called again afterwards.
 */
#ifndef API_PART_H
#define API_PART_H

#include <stdbool.h>

#include "api/identity.h"
#include "http/http.h"
#include "store/store.h"
#include "work/editors.h"
#include "work/work.h"

/* A call that runs on a store thread while the connection is suspended. */
enum call_state { CALL_NONE, CALL_RUNNING, CALL_DONE };
struct store_call {
  struct store_task task; /* first: a struct store_task * is also a struct store_call * */
  struct request *rq;
  void (*fn)(struct request *rq, struct db *db);
  enum call_state state;
  bool is_lost;   /* true if it was not run, because too many tasks wait for the store */
  bool is_answer; /* fn only makes the answer: it is not run once the client has left */
};

struct api_part {
  struct work *work; /* the compile or the stored result that is read; a reference, NULL at first */
  struct work_waiter waiter;
  bool is_found;              /* the work had ended before the request came: it is from the cache */
  struct editor_place editor; /* set if the request names its editor */
  struct store_call call;
  struct identity identity; /* of who asks */
};

static inline struct api_part *api_part(const struct request *rq) {
  return rq->part;
}

/* Runs fn on a store thread.  After that, the handler is called again with call.state CALL_DONE.  Returns the value
 * that the handler must return. */
enum MHD_Result api_call_store(struct request *rq, enum store_lane lane, void (*fn)(struct request *rq, struct db *db));
/* The same on a thread for what takes long, where fn only makes the answer: if the client has left by then, neither fn nor the handler
 * is called. */
enum MHD_Result api_build(struct request *rq, void (*fn)(struct request *rq, struct db *db));
/* Returns true after the work has ended or was refused, or the request was cancelled.  Otherwise the handler must
 * return MHD_YES, and is called again. */
bool api_wait(struct request *rq);
/* The same for another work that the request reads. */
bool api_wait_for(struct request *rq, struct work *w, struct work_waiter *me);
/* The hook for the end of a request (http/server.h): counts the request, and releases the members of its part. */
void api_end(struct request *rq);

#endif
