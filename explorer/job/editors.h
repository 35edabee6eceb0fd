/* editors: of each editor only the newest compile is worth a worker.
 *
 * A request may name the editor that it comes from (X-Nkx-Editor): a random text, one per editor on a page.  A newer
 * compile of the same editor of the same client calls off the one before: its reader gets its end at once, and if nobody
 * else reads that compile, its worker is free again.  A compile that others read too goes on for them.
 */
#ifndef JOB_EDITORS_H
#define JOB_EDITORS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "job/work.h"

struct editors; /* opaque */
struct results;

enum {
  EDITOR_NAME_MIN = 16, /* shorter ones could be guessed */
  EDITOR_NAME_MAX = 64,
  EDITOR_KEY_SIZE = EDITOR_NAME_MAX + 64, /* with the client's address */
};

/* One request as an editor's newest; its owner's storage, zeroed at first. */
struct editor_place {
  struct editor_place *chain;
  char key[EDITOR_KEY_SIZE];
  struct work *work;
  struct work_waiter *waiter;
  int client_fd;
  bool is_entered;
};

MUST_USE enum status editors_start(struct results *r, struct editors **out, struct error *err);
void editors_stop(struct editors *e); /* once no place is entered; NULL is fine */

/* An editor's name is 16 to 64 letters, digits, "-" and "_". */
bool editor_is_name(const char *name);

/* Calls off the present compile of this editor, unless it is of the job with the key `but` (NULL: whichever it is). */
void editors_call_off(struct editors *e, const char *key, const char *but);
/* place->key, work, waiter and client_fd are set: this is the editor's newest compile now.  One that came in between is
 * called off. */
void editors_enter(struct editors *e, struct editor_place *place);
/* The request ends; once this has returned nobody calls it off any more. */
void editors_leave(struct editors *e, struct editor_place *place);
int64_t editors_called_off(struct editors *e); /* compiles, since start */

#endif
