/* quota: each client's share, so that one client's flood does not make the others wait.
 *
 * A client, known by its address (http/address.h), may start so many compiles a minute, have so many of them waiting or
 * running, store so many links a minute and a day, which take so many bytes a day, and have so many connections open.  The
 * compiles of a minute, the links of a minute and of a day, and their bytes, are buckets that fill again evenly.  What a link
 * takes is known once it was stored, so the last one may take more than was left; that is owed.  An answer that needs no compile costs no compile, and a compile
 * that never reached a worker is given back.  All functions may be called from any thread.
 *
 * Shares of IPv6 are nested, because whoever has a network of 48 bits has 65,536 of 64: a network of 56 bits has the shares of 4
 * clients, one of 48 bits those of 16.  A network of 48 bits is known as so many clients at most; further ones are one client.
 */
#ifndef WORK_QUOTA_H
#define WORK_QUOTA_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

struct quota;  /* all clients; opaque */
struct client; /* one of them, opaque; it exists at least as long as it is held */

struct quota_config {
  int compiles; /* a minute */
  int jobs, connections;
  int links, links_a_day; /* stored: a minute, a day */
  int link_mib_a_day;     /* that they take in the store */
}; /* 0: any number */

enum quota_verdict {
  QUOTA_OK,
  QUOTA_COMPILES,
  QUOTA_JOBS,
  QUOTA_CONNECTIONS,
  QUOTA_LINKS,
  QUOTA_LINK_BYTES,
  QUOTA_VERDICTS
};

struct quota_counts {
  int64_t refused[QUOTA_VERDICTS]; /* since start */
  int clients;                     /* known at present */
};

MUST_USE enum status quota_start(const struct quota_config *cfg, struct quota **out, struct error *err);
void quota_stop(struct quota *q); /* once no client is held; NULL is fine */

/* The client at this address, held for the caller; NULL when out of memory.  The functions below take NULL for a client
 * without limits. */
struct client *quota_client(struct quota *q, const char *address);
struct client *client_hold(struct client *c);
void client_let_go(struct client *c);

/* Counts a compile that is about to start.  If it may not start, *retry_s says when to try again. */
enum quota_verdict client_begin_job(struct client *c, int *retry_s);
/* The compile has ended; has_run: a worker had it. */
void client_end_job(struct client *c, bool has_run);
/* Counts a link, or a revision of one, that is about to be stored: QUOTA_OK or QUOTA_LINKS, with *retry_s. */
enum quota_verdict client_store_link(struct client *c, int *retry_s);
/* The same for notes that are about to be written to a link, of which a minute has so many for each link of its share: a page writes
 * them as somebody types. */
enum { QUOTA_NOTES_A_LINK = 4 };
enum quota_verdict client_write_notes(struct client *c, int *retry_s);
/* QUOTA_LINK_BYTES, with *retry_s, while the client's links have taken its share of bytes; else QUOTA_OK. */
enum quota_verdict client_has_link_bytes(struct client *c, int *retry_s);
/* Counts the bytes of a link that was stored. */
void client_take_link_bytes(struct client *c, int64_t bytes);
/* The client at this address has done that on another server of the site: it is taken from its shares here, as far as they reach.
 * n: how many; of bytes, how many of them. */
enum quota_use { QUOTA_USE_COMPILE, QUOTA_USE_LINK, QUOTA_USE_LINK_BYTES };
void quota_used_elsewhere(struct quota *q, const char *address, enum quota_use what, int64_t n);
/* What a client has open on a server: compiles that wait or run, and connections.  Each server tells the others when it becomes more, by
 * `tell`, which must not block, and by quota_tick when it has become less; it repeats that as long as something is open.  What a
 * server has not repeated for some seconds counts no more.  Connections are told in steps of a sixteenth of their share. */
struct quota_open {
  int jobs, connections;
};
typedef void (*quota_tell_fn)(void *user, const char *address, const struct quota_open *open);
/* Before any client comes. */
void quota_tell_others(struct quota *q, quota_tell_fn tell, void *user);
/* Tells the other servers of what clients have closed here, and forgets what others told and do not repeat.  Call it several
 * times a second. */
void quota_tick(struct quota *q);
/* The server of this number says what the client has open there. */
void quota_open_elsewhere(struct quota *q, uint64_t server, const char *address, const struct quota_open *open);
/* Compiles waiting or running at present; of a network, its part for each share that it has, if that is more. */
int client_jobs(struct client *c);
/* What stands for all clients of one network of 56 bits; a client of IPv4 stands for itself. */
const void *client_site(const struct client *c);
/* True if the client at this address was refused a compile, or a link (is_link), and was told to wait until a time that has
 * not come yet. */
bool quota_is_early(struct quota *q, const char *address, bool is_link);

/* Counts a connection, or a request that came through a proxy.  False: this client has too many.  *client is then not
 * set; else it is the client, held, or NULL where connections are not limited. */
bool quota_enter(struct quota *q, const char *address, struct client **client);
/* The connection, or the request, has ended; lets the client go. */
void quota_leave(struct client *c);

void quota_look(struct quota *q, struct quota_counts *out);

#endif
