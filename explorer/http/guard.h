/* guard: checks every byte between the sockets and libmicrohttpd, so that the library reads only well-formed requests.
 *
 * The build links the library's archive with its recv renamed to guard_recv (Makefile), so each byte passes framing.h
 * first.  A refused request is answered here, with the headers that all our answers carry; the library never sees it,
 * and so never sends an error page of its own, which would lack them.  After a refusal nothing more is taken from the
 * connection, and it is closed once the client has had a moment to read the answer.
 *
 * Each connection belongs to one of the library's threads, and only that thread uses it here.  The deadlines look at it
 * from another thread, under their own lock.
 */
#ifndef HTTP_GUARD_H
#define HTTP_GUARD_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>

#include "base/error.h"
#include "http/deadline.h"
#include "http/framing.h"

struct guard; /* opaque */
struct server_config;

struct conn {
  struct deadline deadline;
  struct framing framing;
  struct guard *guard;
  void *counted; /* the hooks' handle of the client that counts the connection; NULL: none does */
  int fd;
  int ahead;        /* requests that the library has and whose answers are not yet sent; 0 or more */
  int64_t lingers;  /* bytes dropped since the refusal */
  bool is_kept;     /* it had a request before */
  bool is_answered; /* the present request's answer is queued: a refusal must not come within it */
  bool is_closing;  /* an answer announced the end: no refusal may follow it */
  bool is_told;     /* the refusal was sent */
  bool has_more;    /* bytes after the last request were dropped, because that request was to be the last */
};

struct guard_counts {
  int64_t connections, accepted; /* open; since start */
  int64_t refused[FF_COUNT];
};

/* Raises the limit of descriptors to what the connections need.  The first guard of a process has the most
 * connections, for which it makes room; cfg must outlive it. */
MUST_USE enum status guard_start(const struct server_config *cfg, struct guard **out, struct error *err);
/* Once no connection is left; NULL is fine. */
void guard_stop(struct guard *g);

/* The library has opened a connection.  NULL when out of memory: guard_recv then fails, and the library closes it. */
struct conn *guard_open(struct guard *g, int fd, const struct sockaddr *peer);

/* c may be NULL in all of these. */
void guard_close(struct conn *c);
/* The connection is cut in this many milliseconds, unless another call moves that. */
void guard_allow(struct conn *c, int ms);
/* The answer to the present request is queued and has this long; closes: it announces that it is the last one. */
void guard_answered(struct conn *c, int ms, bool closes);
/* The answer was sent or given up. */
void guard_completed(struct conn *c);
/* Whether guard_drain was called. */
bool guard_is_draining(const struct conn *c);

/* From now on every answer is its connection's last. */
void guard_drain(struct guard *g);

void guard_look(struct guard *g, struct guard_counts *out);

/* Takes the place of recv(2) in the library. */
ssize_t guard_recv(int fd, void *to, size_t n, int flags);

#endif
