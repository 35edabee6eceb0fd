/* serving: the whole server inside a target, without workers.
 *
 * It holds one result under SERVING_KEY and one public snippet SERVING_ID; whatever would have to be compiled is
 * refused as busy.  Every conversation comes from another address, so that no quota ends the run.
 */
#ifndef FUZZ_SERVING_H
#define FUZZ_SERVING_H

#include <stddef.h>

#define SERVING_KEY "0000000000000000000000000000000000000000000000000000000000000000"
#define SERVING_ID "fuzzABCD"

/* Sends the bytes on a connection of their own and nothing after them; all answers, until the server closes, are
 * NUL-terminated and good until the next call.  The server starts with the first call. */
const char *serving_say(const void *data, size_t len, size_t *answer_len);
/* The first answer's status, 0 if there is none; ends the run when it is not one of HTTP, says 500, or says that it is JSON and is
 * not. */
int serving_status(const char *answer);
/* POSTs a JSON body to the path, with what such a request needs; its status. */
int serving_post(const char *path, const void *body, size_t len);

#endif
