/* server: libmicrohttpd, its threads and its connections. */
#ifndef HTTP_SERVER_H
#define HTTP_SERVER_H

#include "http/http.h"

struct server; /* opaque */

/* Listens and serves; *port is the port in the end (for port 0). app must outlive the server. */
MUST_USE enum status server_start(const struct app *app, struct server **out, int *port, struct error *err);
/* Accepts no new connections; what is answered from now on closes its connection.  Returns the listening socket. */
int server_quiesce(struct server *s);
/* Waits until no request is being answered, at most ms. */
void server_drain(struct server *s, int ms);
/* Closes what is left.  No work may be waited for any more. */
void server_stop(struct server *s);

#endif
