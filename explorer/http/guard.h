/* guard: stands between the sockets and libmicrohttpd, so that the library only ever reads well-formed requests.
 *
 * The build links the library's archive with its recv renamed to guard_recv (Makefile), so each byte passes framing.h
 * first.  What is refused is answered here, with the headers every answer of ours carries: the library's own error
 * pages, which lack them, are for requests it never gets to see.  A refused connection reads nothing more and is closed
 * as soon as the client had a moment to take the answer.
 *
 * Each connection belongs to one of the library's threads, which alone touches it here; only the deadlines look at it
 * from outside, under their own lock.
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

struct client;
struct config;
struct quota;

struct guard; /* opaque */

struct conn {
  struct deadline deadline;
  struct framing framing;
  struct guard *guard;
  struct client *client; /* whose connection it is; NULL: a proxy's, or nobody is counted */
  int fd;
  int ahead;        /* requests given to the library whose answers are not yet sent */
  int64_t lingers;  /* bytes thrown away since the refusal */
  bool is_kept;     /* it had a request before */
  bool is_answered; /* the present request's answer is queued: nothing of ours may come after or within it */
  bool is_closing;  /* an answer said so: nothing of ours may follow it */
  bool is_told;     /* the refusal was sent */
  bool has_more;    /* bytes behind the last request were dropped, because that request was to be the last */
};

struct guard_counts {
  int64_t connections, accepted; /* open; since start */
  int64_t refused[FF_COUNT];
};

/* Raises the limit of descriptors as far as the connections need it. */
MUST_USE enum status guard_start(const struct config *cfg, struct quota *quota, struct guard **out, struct error *err);
/* Once no connection is left; NULL is fine. */
void guard_stop(struct guard *g);

/* The library's notices.  NULL: the connection gets nothing read, and so is closed. */
struct conn *guard_open(struct guard *g, int fd, const struct sockaddr *peer);
void guard_close(struct conn *c);
/* Its headers are through, its body and answer have this long; c may be NULL in all of these. */
void guard_allow(struct conn *c, int ms);
/* The answer of the present request was queued; closes: the client was told that it is the last one. */
void guard_answered(struct conn *c, int ms, bool closes);
/* … was sent, or given up. */
void guard_completed(struct conn *c);

/* From now on every answer is its connection's last. */
void guard_drain(struct guard *g);
bool guard_is_draining(struct guard *g);

void guard_look(struct guard *g, struct guard_counts *out);

/* In the library's place of recv(2). */
ssize_t guard_recv(int fd, void *to, size_t n, int flags);

#endif
