/* route: which handler answers a path, and the conventions of the API to which the route belongs.
 *
 * The table itself is the application's; see server_config.
 */
#ifndef HTTP_ROUTE_H
#define HTTP_ROUTE_H

#include <microhttpd.h>
#include <stdbool.h>
#include <stddef.h>

struct request;

/* May be called again, after the connection was suspended and resumed. */
typedef enum MHD_Result (*route_handler)(struct request *rq);

/* For whom a route is.  Those for operations are on the operations listener; if there is none, on the public one. */
enum route_who { ROUTE_USERS, ROUTE_OPS, ROUTE_OPERATOR /* never on the public one */ };

struct route {
  enum route_who who;
  const char *path;      /* with a slash at its end: everything below it, too */
  const char *allow;     /* the methods, for 405 */
  route_handler get;     /* also answers HEAD */
  route_handler post;    /* the body is complete */
  route_handler remove;  /* DELETE */
  route_handler options; /* OPTIONS */
  bool is_job;           /* starts a compile: a client that was refused one and comes too early is held (hold.h) */
  bool is_link;          /* stores a link: the same for who was refused one */
  bool is_change;        /* needs X-Nkx-Request, a header that a form or a link of another site cannot send */
  bool is_kept;          /* what is posted is kept, as with is_change, but other sites' pages may post it */
  bool is_open;          /* needs no sign-in: it has a proof of its own */

  bool
      is_bulky; /* its answer may be large: it is refused before it is made, if its client has too many that are unread */

  size_t body_max;         /* bytes of a body if they are more than those of other routes; 0: as those */
  bool takes_any_type;     /* the handler checks the body's media type; else it must be application/json */
  bool takes_more_slashes; /* is also found by a path with repeated or trailing slashes */
  /* The form of errors; NULL: http_problem's own.  May return NULL when out of memory. */
  struct MHD_Response *(*problem)(struct request *rq, unsigned status, const char *code, const char *message);
  /* Headers of every answer; NULL: none. */
  void (*add_headers)(struct MHD_Response *r);
};

/* Sets rq->route, rq->rest and, if it was needed, rq->plain_path.  The route stays NULL if there is none: the path may
 * be that of a file. */
void route_find(struct request *rq);
/* The route's handler of this method, or NULL. */
route_handler route_handler_of(const struct route *route, const char *method);
/* GET or HEAD. */
bool route_is_get(const char *method);

#endif
