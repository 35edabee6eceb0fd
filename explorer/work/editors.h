/* editors: of each editor only the newest compile is worth a worker.
 *
 * A request may name the editor that it comes from (X-Nkx-Editor): a random text, one for each editor on a page.  A
 * newer compile of the same editor of the same client calls off the one before it: that one's reader gets its end at
 * once, and if nobody else reads that compile, its worker is free again.  A compile that others read goes on for them.
 */
#ifndef WORK_EDITORS_H
#define WORK_EDITORS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/chain.h"
#include "base/error.h"
#include "driver/job.h"
#include "work/work.h"

struct editors; /* opaque */

enum {
  EDITOR_NAME_MIN = 16, /* shorter ones could be guessed */
  EDITOR_NAME_MAX = 64,
  EDITOR_KEY_SIZE = EDITOR_NAME_MAX + 64, /* with the client's address */
};

/* One request of an editor; lies with the request, zeroed at first. */
struct editor_place {
  struct chain_link link; /* first: a struct chain_link * is also a struct editor_place * */
  char key[EDITOR_KEY_SIZE];
  int64_t entered_ms;     /* by the wall clock, which other servers have, too */
  char job[JOB_KEY_SIZE]; /* the key of what it compiles; empty: not to be shared with another request */
  struct work *work;      /* NULL until it is started */
  struct work_waiter *waiter;
  bool is_entered;
  bool is_late; /* a newer one came before its work was started */
};

MUST_USE enum status editors_start(struct editors **out, struct error *err);
void editors_stop(struct editors *e); /* once no place is entered; NULL is fine */

/* True for 16 to 64 letters, digits, "-" and "_". */
bool editor_is_name(const char *name);

/* place->key and job are set: from now on this request is its editor's newest.  Calls off the older ones, except one of
 * the same job, which goes on until this request reads it too. */
void editors_enter(struct editors *e, struct editor_place *place);
/* The entered request reads `work`, borrowed, as `waiter`.  Calls off the remaining older ones; and this one, if a
 * newer one has entered meanwhile: requests run at the same time, and the last to enter wins, not the last to start. */
void editors_set_work(struct editors *e, struct editor_place *place, struct work *work, struct work_waiter *waiter);
/* Another server has a newer request of this editor: calls off those that entered before it.  The clocks of servers may differ by a
 * little; a page that is told wrongly sends its newest compile once more. */
void editors_end_before(struct editors *e, const char *key, int64_t entered_ms);
/* The request ends, entered or not; it is not cancelled any more once this has returned. */
void editors_leave(struct editors *e, struct editor_place *place);
int64_t editors_called_off(struct editors *e); /* compiles, since start */

#endif
