/* unsent: the memory of answers that clients have not taken yet.
 *
 * A whole answer stays in memory until its client has read it, or the time for that is over.  A client that asks again and again
 * and reads nothing would take all memory.  So large answers are counted: all of them together, and those of each client, have a
 * ceiling.  Answers that share their bytes with others, and small ones, are not counted: connections limit their number.
 */
#ifndef HTTP_UNSENT_H
#define HTTP_UNSENT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "http/address.h"

struct unsent;        /* all of them; opaque */
struct unsent_answer; /* one of them; opaque */

enum {
  UNSENT_COUNTED = 64 << 10, /* bytes from which an answer is counted */
  UNSENT_CLIENT_SIZE = ADDRESS_TEXT_SIZE,
  UNSENT_CLIENT_PART = 4, /* a client may have this part of the ceiling, or one answer */
};

/* max: bytes of all answers together; more than 0. */
MUST_USE enum status unsent_start(size_t max, struct unsent **out, struct error *err);
void unsent_stop(struct unsent *u); /* once no answer is left; NULL is fine */

/* Counts an answer of len bytes for this client.  NULL: there is no room, or no memory.  Any thread. */
struct unsent_answer *unsent_add(struct unsent *u, const char *client, size_t len);
/* False if one of len bytes would be refused: then nothing needs to be built for it.  Counts that as a refusal. */
bool unsent_has_room(struct unsent *u, const char *client, size_t len);
void unsent_remove(struct unsent_answer *a); /* it was sent or given up; NULL is fine */

struct unsent_counts {
  size_t bytes;
  long long refused; /* since start */
};
void unsent_look(struct unsent *u, struct unsent_counts *out);

#endif
