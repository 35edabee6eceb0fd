/* objects: moves the blobs of results from the database into an object store, and deletes there the blobs that nothing refers
 * to any more.
 *
 * A result is always written to the database first, so that no request waits for the object store and nothing is lost when
 * it is away; then it stays in the database until the store is back.  Each object has a name of its own (hash and random
 * digits), which no other blob ever gets, so that deleting one never hits what was stored anew under the same hash.  Before
 * an object is sent its name is in the table objects_gone, and it leaves that table in the transaction in which the blob
 * gets it: an object that was sent in vain is deleted later.  What removes a blob enters its object there in the same
 * transaction (blob_drop).
 *
 * Several servers on one database share the work: a row is claimed for some minutes.
 */
#ifndef STORE_OBJECTS_H
#define STORE_OBJECTS_H

#include "base/error.h"
#include "store/s3.h"

struct objects;
struct store;

/* Starts the threads, which write by way of the store's own thread.  */
MUST_USE enum status objects_start(struct store *s, struct s3_site *site, struct objects **out, struct error *err);
/* Before the store is stopped; NULL is fine.  What is being sent is finished or given up within ten seconds. */
void objects_stop(struct objects *o);

#endif
