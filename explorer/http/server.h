/* server: libmicrohttpd, its threads and its connections.
 *
 * server_start begins to answer requests, and server_stop undoes it.  The transport calls the layers above through hooks.
 */
#ifndef HTTP_SERVER_H
#define HTTP_SERVER_H

#include <microhttpd.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "http/address.h"
#include "http/unsent.h"

struct guard_counts;
struct request;
struct route;
struct server; /* opaque */

enum client_log { CLIENT_LOG_NO, CLIENT_LOG_NAME, CLIENT_LOG_ADDRESS };
enum { CLIENT_KEY_SIZE = 32 };

/* The operator's settings; times are in milliseconds. */
struct http_config {
  const char *host, *port;
  const char *ops_host, *ops_port; /* of the operations listener; ops_port NULL: there is none */
  const char *web_dir;             /* the page's files */
  int connections_max;
  int answers_mib; /* memory of answers that clients have not taken yet */
  struct address_nets trusted_proxies;
  int proxy_header;                         /* enum address_header: where they name their client */
  const char *user_header;                  /* where they name the user that has signed in; NULL: nowhere */
  const char *email_header, *groups_header; /* the same for what else they know of the user */
  int header_timeout_ms, body_timeout_ms, answer_timeout_ms, idle_timeout_ms;
  int log_requests; /* a line for each */
  int log_clients;  /* enum client_log */
};

/* Any of the functions may be NULL.  All may be called from any of the server's threads. */
struct http_hooks {
  void *user; /* for the first argument of enter and is_early; also the application's own, for its handlers */
  /* A connection, or a request that came through a trusted proxy, begins for the client at this address.  False: the
   * client has as many as it may have.  *client, NULL at first, is passed to `leave` when it ends, unless it stays
   * NULL. */
  bool (*enter)(void *user, const char *address, void **client);
  void (*leave)(void *client);
  /* Before the handler is called, each time: who asks, and may they?  False: *answer is what the library's call returns, and the
   * request was answered or will be called again. */
  bool (*admit)(struct request *rq, enum MHD_Result *answer);
  /* True if the client at this address was told to wait (Retry-After) before its next compile, or link, and that time is not over. */
  bool (*is_early)(void *user, const char *address, bool is_link);
  /* The request's answer was sent or given up (rq->status 0: there is none).  Releases the contents of rq->part. */
  void (*end)(struct request *rq);
};

enum listener { LISTEN_PUBLIC, LISTEN_OPS, LISTENERS };
/* Which routes a server has. */
enum server_kind {
  SERVER_ALL,    /* all but those of the operator alone */
  SERVER_PUBLIC, /* no operations */
  SERVER_OPS,    /* operations only, and no files */
};

struct server_config {
  enum server_kind kind;
  struct http_config http;
  const struct route *routes; /* whatever is not here may be a file of the page */
  int n_routes;
  size_t body_max;           /* bytes of a body that are kept; a longer one is refused */
  int handler_ms;            /* how long a handler may take, from the end of the body until it answers */
  size_t part_size;          /* bytes of struct request's part */
  const uint8_t *client_key; /* CLIENT_KEY_SIZE bytes, from which the log's names of clients are made */
  struct http_hooks hooks;
};

/* Sockets that listen where cfg says, or those that the process was started with (listen.c), and their ports; -1 and 0 for one that
 * there is not to be. */
struct listeners {
  int fds[LISTENERS], ports[LISTENERS];
};
MUST_USE enum status server_listen(const struct http_config *cfg, struct listeners *out, struct error *err);
/* Serves; copies cfg, of which the routes and texts must outlive the server.  The server owns listen_fd from now on. */
MUST_USE enum status server_start(const struct server_config *cfg, int listen_fd, struct server **out,
                                  struct error *err);
/* Accepts no new connections; every answer from now on closes its connection. */
void server_quiesce(struct server *s);
/* Waits until no request is being answered, at most ms. */
void server_drain(struct server *s, int ms);
/* Closes the remaining connections.  No connection may be suspended by a layer above any more.  NULL is fine. */
void server_stop(struct server *s);
void server_look(struct server *s, struct guard_counts *out);
void server_look_unsent(struct server *s, struct unsent_counts *out);

#endif
