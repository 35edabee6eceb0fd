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

struct pool;
struct work;
struct route;
struct conn;

/* What handlers need of the running server; constant after start. */
struct app {
  const struct config *cfg;
  struct pool *pool;
  struct buf examples, pipeline, targets; /* answers that never change */
};

struct request {
  const struct app *app;
  struct MHD_Connection *connection;
  struct conn *conn; /* its connection's deadline */
  const struct route *route;
  const char *path;
  struct buf body;
  size_t body_seen;  /* bytes of the body so far, kept or not */
  struct work *work; /* of POST /api/v1/compile */
  bool is_streaming, is_sse;
};

/* ---- answers (respond.c); each returns what the library's handler returns ------------------------------------------
 */

/* Adds the security headers, sends, and lets go of resp. */
enum MHD_Result http_send(struct request *rq, unsigned status, struct MHD_Response *resp);
/* A JSON text that outlives the server, or that is copied. */
enum MHD_Result http_json(struct request *rq, unsigned status, const char *json, size_t len, bool is_constant);
/* Takes over `json` (heap); NULL answers "out of memory". */
enum MHD_Result http_json_take(struct request *rq, unsigned status, char *json, size_t len);

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
/* What a status of ours means for the client.  text: err's, used where it is meant for the user. */
enum MHD_Result http_status_problem(struct request *rq, enum status st, const struct error *err);

/* ---- routes (route.c) -------------------------------------------------------------------------------------------- */

struct route {
  const char *path;
  const char *allow;                           /* for 405 */
  enum MHD_Result (*get)(struct request *rq);  /* also answers HEAD */
  enum MHD_Result (*post)(struct request *rq); /* the body is complete; may be called again after a resume */
};

/* NULL: no such route, it may be a file. */
const struct route *route_find(const char *path);

enum MHD_Result api_compile(struct request *rq);
enum MHD_Result api_pipeline(struct request *rq);
enum MHD_Result api_examples(struct request *rq);
enum MHD_Result api_targets(struct request *rq);
enum MHD_Result api_health(struct request *rq);

/* A file of the page, or 404. */
enum MHD_Result static_get(struct request *rq);

/* ---- guard.c ------------------------------------------------------------------------------------------------------
 */

/* What libmicrohttpd lets through although servers behind a proxy must not: true, with a reason, if it is refused. */
bool guard_refuses(struct MHD_Connection *c, const char *version, const char **reason);
/* The declared length of the body: -1 if it is not declared. */
long long guard_body_length(struct MHD_Connection *c);

#endif
