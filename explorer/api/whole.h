/* whole: the result of an ended work as one answer.
 *
 * A large one is cut out of its frames on one of the store's building threads, of which a client has one at a time: on the
 * server's own threads it would hold up every other connection.
 */
#ifndef API_WHOLE_H
#define API_WHOLE_H

#include "http/http.h"

/* Sends the result of the request's work (part.h), which has ended; the request must have no other state.  A handler that
 * returns MHD_YES without an answer is called again, and then calls this again. */
enum MHD_Result whole_send(struct request *rq);

#endif
