/* http: one request as the handlers see it, and the ways to answer it.
 *
 * libmicrohttpd calls us several times for one request: with its headers, with pieces of its body, at its end, and
 * again each time a suspended connection is resumed.  struct request carries what is known between these calls.
 *
 * This folder is transport only.  The layers above keep their data about a request in request.part, whose size they
 * give at the start (server.h), and in request.state, which belongs to the handler.
 */
#ifndef HTTP_HTTP_H
#define HTTP_HTTP_H

#include <microhttpd.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"
#include "http/address.h"
#include "http/headers.h"
#include "http/hold.h"
#include "http/problem.h"
#include "http/unsent.h"

enum { REQUEST_ID_SIZE = 65, CLIENT_NAME_SIZE = 64, USER_SIZE = 257 };

struct conn;
struct route;
struct server;
struct server_config;

struct request {
  struct server *server;
  struct unsent *unsent;
  const struct server_config *cfg;
  struct MHD_Connection *connection;
  struct conn *conn; /* NULL when out of memory */
  const struct route *route;
  const char *method, *path;
  char *plain_path; /* the path without repeated and trailing slashes, if the route was found by that; heap */
  const char *rest; /* of the path, after the route's own */
  struct buf body;
  bool is_large;    /* the route takes larger bodies than others; counted, because few may be in memory at once */
  size_t body_seen; /* bytes of the body so far, kept or not */
  bool is_read;     /* the whole body has come */
  bool is_admitted; /* its handler may begin: there is room for its answer */
  char id[REQUEST_ID_SIZE]; /* in the log and in the answer's X-Request-Id: a trusted proxy's, or one of our own */
  struct address address;
  char user[USER_SIZE];      /* that a trusted proxy has named; "": none */
  bool is_proxied;           /* by a trusted proxy; address is then the client's that the proxy names */
  void *counted;             /* the hooks' handle of a client that counts this request; NULL: none does */
  struct hold hold;          /* of a client that came again before its Retry-After was over */
  int retry_s;               /* for Retry-After; 0: the problem's own */
  int extra_ms;              /* how long the answer may take beyond the usual */
  bool is_private;           /* the answer must not be indexed */
  bool is_stream;            /* the answer goes on as long as its client wants: its time says nothing */
  enum headers_kind headers; /* which security headers the answer has */
  enum problem refusal;      /* what to answer to ST_QUOTA and ST_ABSENT: which share is used up, what is not here */
  int64_t began_us;
  bool
      is_abandoned; /* the client left while it was suspended: the handler is not called again, and the connection is closed */
  unsigned status; /* of the answer, once it is queued; 0: none */
  void *state; /* the handler's own, kept from one of its calls to the next; free_state is called with it in the end */
  void (*free_state)(void *state);
  void *part; /* of the layers above: server_config.part_size bytes, zeroed at first */
};

/* ---- answers; each returns what the library's handler returns ---------------------------------------------------- */

/* Adds the security headers, sends resp and releases it; NULL closes the connection.  From now on the client has a
 * limited time to take the answer (respond.c). */
enum MHD_Result http_send(struct request *rq, unsigned status, struct MHD_Response *resp);
/* From now on the client has ms to take what is sent: for an answer that goes on. */
void http_allow(struct request *rq, int ms);
/* A whole answer. */
struct http_bytes {
  const char *data;
  size_t len;
  const char *type;            /* media type */
  const char *disposition;     /* Content-Disposition, or NULL */
  const char *cache;           /* Cache-Control; NULL: no-store */
  const char *etag;            /* ETag with its quotes, or NULL; a client that has it gets 304 instead of the bytes */
  const char *vary;            /* header that the answer also depends on, or NULL */
  bool is_packed;              /* it is compressed by its nature */
  bool is_shared;              /* others hold the data, too, so that this answer takes no memory of its own */
  void (*release)(void *user); /* called once the data is not needed any more; NULL: it outlives the server */
  void *user;
};
/* Sends a whole answer, compressed if the client accepts that and it is worth it (bytes.c).  Takes the data.  Answers 503 if too many
 * answers have not been taken by their clients (unsent.h). */
enum MHD_Result http_bytes(struct request *rq, unsigned status, const struct http_bytes *b);
/* False, which counts as a refusal, if an answer of len bytes would be refused like that: then it need not be made. */
bool http_has_room(struct request *rq, size_t len);
/* A JSON text that outlives the server (is_constant), or that is copied (json.c). */
enum MHD_Result http_json(struct request *rq, unsigned status, const char *json, size_t len, bool is_constant);
/* Takes over `json` (heap); NULL answers "out of memory". */
enum MHD_Result http_json_take(struct request *rq, unsigned status, char *json, size_t len);

/* {"error":{"code","message","field"?}}, or what the route's own `problem` makes of it.  message NULL: the table's. */
enum MHD_Result http_problem(struct request *rq, enum problem p, const char *message, const char *field);
/* 405; allow: the methods there are. */
enum MHD_Result http_not_allowed(struct request *rq, const char *allow);
/* Turns one of our statuses into a problem; err's text is used where it is meant for the user. */
enum MHD_Result http_status_problem(struct request *rq, enum status st, const struct error *err);

/* A file of the page, or 404 (static.c). */
enum MHD_Result static_get(struct request *rq);
/* Appends a file of the page; false if there is none or it is too large for out. */
MUST_USE bool static_read(const struct request *rq, const char *path, struct buf *out);
/* The page itself, whatever the request's path is. */
enum MHD_Result static_page(struct request *rq, unsigned status);

/* ---- the request and its client (client.c) ----------------------------------------------------------------------- */

/* A header's value, or NULL. */
const char *http_header(const struct request *rq, const char *name);
/* The value of an argument of the query, or NULL. */
const char *http_argument(const struct request *rq, const char *name);
/* True if the comma-separated Accept-Encoding lists `what` without ";q=0". */
bool http_accepts_encoding(const struct request *rq, const char *what);
/* True if If-None-Match names the tag, which has its quotes. */
bool http_has_etag(const struct request *rq, const char *etag);
/* The descriptor of the connection, -1 if unknown. */
int http_client_fd(const struct request *rq);
/* True if the client has closed its side of the connection: nobody waits for the answer.  While the connection is suspended any thread
 * may ask; what has come and was not read yet hides it. */
bool http_is_gone(const struct request *rq);
/* The value of a header by which a trusted proxy names something; NULL if no such proxy sent the request, name is NULL, or the header
 * comes twice, because one of the two may be the client's own. */
const char *http_header_once(const struct request *rq, const char *name);
/* Sets rq->address and rq->user, once the headers are known. */
void http_find_client(struct request *rq);
/* By what shares know the client: the user that a trusted proxy names in --user-header, or the address without its port; IPv6 is
 * cut to the network of 64 bits that one client has. */
void http_client_key(const struct request *rq, char out[ADDRESS_TEXT_SIZE]);
/* Under which address the client reaches the server, as it says itself: "https://nkx.example:8443". */
enum { OWN_ADDRESS_SIZE = 272 };
void http_own_address(const struct request *rq, char out[OWN_ADDRESS_SIZE]);
/* How the log names the client: as --log-clients says, not at all ("-"), by a name made from its address and the server's key,
 * or by the address. */
void http_client_name(const struct request *rq, char out[CLIENT_NAME_SIZE]);

/* Suspend and resume a connection; `user` is the struct MHD_Connection. */
void http_park(void *user);
void http_resume(void *user);

#endif
