/* server: libmicrohttpd, its threads and its connections. */
#ifndef HTTP_SERVER_H
#define HTTP_SERVER_H

#include "http/http.h"

struct server; /* opaque */

/* A socket that listens where cfg says, or the one that whoever started us passed on; *port is its port in the end. */
MUST_USE enum status server_listen(const struct config *cfg, int *out, int *port, struct error *err);
/* Serves; listen_fd is the server's from now on.  app must outlive the server. */
MUST_USE enum status server_start(const struct app *app, int listen_fd, struct server **out, struct error *err);
/* Accepts no new connections; what is answered from now on closes its connection. */
void server_quiesce(struct server *s);
/* Waits until no request is being answered, at most ms. */
void server_drain(struct server *s, int ms);
/* Closes what is left.  No work may be waited for any more. */
void server_stop(struct server *s);

#endif
