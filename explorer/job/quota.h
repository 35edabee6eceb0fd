/* quota: each client's share, so that nobody's flood is another one's wait.
 *
 * A client (http/address.h) may start so many compiles a minute, as a bucket that fills again evenly; have so many of them
 * wait or run; and have so many connections open.  What is answered from what is there already costs nothing, and a compile
 * that never got a worker is given back.  All functions may be called from any thread.
 */
#ifndef JOB_QUOTA_H
#define JOB_QUOTA_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

struct quota;  /* all clients; opaque */
struct client; /* one of them, opaque: for as long as somebody holds it */

struct quota_config {
  int compiles; /* a minute */
  int jobs, connections;
}; /* 0: any number */

enum quota_verdict { QUOTA_OK, QUOTA_COMPILES, QUOTA_JOBS, QUOTA_CONNECTIONS, QUOTA_VERDICTS };

struct quota_counts {
  int64_t refused[QUOTA_VERDICTS]; /* since start */
  int clients;                     /* that are known at present */
};

MUST_USE enum status quota_start(const struct quota_config *cfg, struct quota **out, struct error *err);
void quota_stop(struct quota *q); /* once no client is held; NULL is fine */

/* The client at this address, held; NULL when out of memory, which the functions below take for one without limits. */
struct client *quota_client(struct quota *q, const char *address);
struct client *client_hold(struct client *c);
void client_let_go(struct client *c);

/* Counts a compile that is about to start.  If it may not, *retry_s is when to try again. */
enum quota_verdict client_begin_job(struct client *c, int *retry_s);
/* It ended; has_run: a worker had it. */
void client_end_job(struct client *c, bool has_run);
int client_jobs(struct client *c); /* that wait or run at present */
/* True if the client at this address was refused a compile, and the time it was told to wait is not over. */
bool quota_is_early(struct quota *q, const char *address);

/* A share of another kind: a connection, or a request that came through a proxy's. */
enum quota_verdict client_connect(struct client *c);
void client_disconnect(struct client *c);

void quota_look(struct quota *q, struct quota_counts *out);

#endif
