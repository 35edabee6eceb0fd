/* http: what the parts of the server share: one request, and the ways to answer it.
 *
 * libmicrohttpd calls the handler of a request several times: with the headers, with pieces of the body, at its end,
 * and again each time a suspended connection is resumed.  struct request carries what is known in between.
 */
#ifndef HTTP_HTTP_H
#define HTTP_HTTP_H

#include <microhttpd.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/error.h"
#include "config.h"
#include "http/address.h"
#include "http/hold.h"
#include "jail/confine.h"
#include "job/editors.h"
#include "job/quota.h"
#include "job/work.h"
#include "store/store.h"

struct client;
struct db;
struct editors;
struct guard;
struct holds;
struct metrics;
struct kept;
struct misses;
struct pool;
struct quota;
struct ready;
struct results;
struct store;
struct work;
struct route;
struct conn;

/* What handlers need of the running server; constant after start. */
struct app {
  const struct config *cfg;
  struct confinement confinement; /* what the server gave up */
  struct pool *pool;
  struct store *store;
  struct results *results;
  struct quota *quota;
  struct editors *editors;
  struct misses *misses;
  struct guard *guard;
  struct holds *holds;
  struct metrics *metrics;
  struct ready *ready;
  struct kept *kept;                      /* answers about snippets */
  struct buf examples, pipeline, targets; /* answers that never change */
};

/* Something done on a store thread while the connection is suspended. */
enum call_state { CALL_NONE, CALL_RUNNING, CALL_DONE };
struct store_call {
  struct store_task task; /* first: a struct store_task * is also ours */
  struct request *rq;
  void (*fn)(struct request *rq, struct db *db);
  enum call_state state;
  bool is_lost; /* it was not run: the store is too far behind */
};

struct request {
  const struct app *app;
  struct MHD_Connection *connection;
  struct conn *conn; /* NULL when out of memory */
  const struct route *route;
  const char *path;
  char *plain_path; /* without repeated and trailing slashes, if that is what the route was found by; heap */
  const char *rest; /* of the path, behind the route's own */
  struct buf body;
  size_t body_seen;  /* bytes of the body so far, kept or not */
  struct work *work; /* the compile or the stored result it reads */
  struct work_waiter waiter;
  struct editor_place editor; /* if it names one */
  struct address address;     /* its client's */
  bool is_proxied;            /* by a proxy of ours */
  struct client *counted;     /* who is told when it ends; NULL: nobody */
  enum quota_verdict quota;   /* with ST_QUOTA: which share is used up */
  int retry_s;                /* for Retry-After, if it is known; else 0 */
  bool is_streaming, is_sse;
  bool is_private; /* what is answered must not be kept or indexed by anyone */
  bool is_framed;  /* other sites may show the answer in a frame */
  struct store_call call;
  struct hold hold;
  const char *method;
  int64_t began_us;
  unsigned status; /* of the answer, once it is queued; 0: none */
  void *state;     /* the handler's own, from one of its calls to the next */
  void (*free_state)(void *state);
};

/* The security headers as lines, for answers that are not the library's. */
void http_put_headers(struct buf *b);

/* ---- answers (respond.c); each returns what the library's handler returns ------------------------------------------
 */

/* Adds the security headers, sends, and lets go of resp.  From now on the client has a limited time to take it. */
enum MHD_Result http_send(struct request *rq, unsigned status, struct MHD_Response *resp);
/* A JSON text that outlives the server, or that is copied. */
enum MHD_Result http_json(struct request *rq, unsigned status, const char *json, size_t len, bool is_constant);
/* Takes over `json` (heap); NULL answers "out of memory". */
enum MHD_Result http_json_take(struct request *rq, unsigned status, char *json, size_t len);

/* Runs fn on a store thread; the handler is called again afterwards, with rq->call.state CALL_DONE.  Returns what the
 * handler must return. */
enum MHD_Result http_call_store(struct request *rq, enum store_lane lane,
                                void (*fn)(struct request *rq, struct db *db));
/* For work_wait: suspends and resumes the connection that `user` is. */
void http_park(void *user);
void http_resume(void *user);
int http_client_fd(const struct request *rq);
/* Sets rq->address, once its headers are known. */
void http_find_client(struct request *rq);
/* The client's address as text without its port; IPv6 cut to the network of 64 bits that one client has. */
void http_client_address(const struct request *rq, char out[ADDRESS_TEXT_SIZE]);
/* True if the comma-separated Accept-Encoding lists `what` without ";q=0". */
bool http_accepts_encoding(const struct request *rq, const char *what);
/* True if If-None-Match names the tag (with its quotes). */
bool http_has_etag(const struct request *rq, const char *etag);
/* A request's header, or NULL. */
const char *http_header(const struct request *rq, const char *name);

/* api/status.c: every error this server answers, in one table. */
enum problem {
#define PROBLEM(e, status, code, message) e,
#include "api/problems.def"
#undef PROBLEM
  PROBLEM_COUNT
};
/* {"error":{"code","message","field"?}}.  message NULL: the table's. allow: for 405, the methods, else NULL. */
enum MHD_Result http_problem(struct request *rq, enum problem p, const char *message, const char *field);
enum MHD_Result http_not_allowed(struct request *rq, const char *allow);
/* The whole answer, status line and headers included, for a request that libmicrohttpd does not get to see. */
void http_put_refusal(struct buf *b, enum problem p, const char *message);
/* What a status of ours means for the client.  text: err's, used where it is meant for the user. */
enum MHD_Result http_status_problem(struct request *rq, enum status st, const struct error *err);

/* ---- routes (route.c) -------------------------------------------------------------------------------------------- */

struct route {
  const char *path;                            /* with a slash at its end: everything below it too */
  const char *allow;                           /* for 405 */
  enum MHD_Result (*get)(struct request *rq);  /* also answers HEAD */
  enum MHD_Result (*post)(struct request *rq); /* the body is complete */
  enum MHD_Result (*remove)(struct request *rq);
  bool is_job;    /* starts a compile: whoever was refused one and does not wait as told is held up (hold.h) */
  bool is_change; /* needs X-Nkx-Request, which a form or a link of another site cannot send */
  /* Compiler Explorer's API (ce/ce.h): its habits with slashes, media types and errors.  The other routes are ours. */
  bool is_ce;
  bool is_open;       /* pages of other sites may read the answers */
  bool keeps_slashes; /* what is behind the route's path is taken as written */
};
/* A handler may be called again, after a resume. */

int route_count(void);
const struct route *route_at(int i);
int route_index(const struct route *r);
/* NULL: no such route, it may be a file. */
const struct route *route_find(const char *path, const char **rest);

enum MHD_Result api_compile(struct request *rq);
enum MHD_Result api_pipeline(struct request *rq);
enum MHD_Result api_examples(struct request *rq);
enum MHD_Result api_targets(struct request *rq);
enum MHD_Result api_openapi(struct request *rq);
enum MHD_Result api_ops(struct request *rq);
enum MHD_Result api_health(struct request *rq);

/* A file of the page, or 404. */
enum MHD_Result static_get(struct request *rq);
/* The page itself, at another address than its own. */
enum MHD_Result static_page(struct request *rq, unsigned status);

#endif
