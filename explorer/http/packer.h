/* packer: compresses an answer piece by piece with gzip or zstd.
 *
 * After a flush, the client can read everything that the packer has taken so far.
 */
#ifndef HTTP_PACKER_H
#define HTTP_PACKER_H

#include <microhttpd.h>
#include <stdbool.h>
#include <stddef.h>

struct packer; /* opaque; used by one thread at a time */
struct request;

enum packing { PACKING_NONE, PACKING_GZIP, PACKING_ZSTD };

/* Returns the best packing that the client accepts. */
enum packing packing_for(const struct request *rq);
/* Names the encoding of an answer, which depends on what the client accepts. */
void packing_add_headers(enum packing p, struct MHD_Response *r);

/* Returns NULL when out of memory.  p is not PACKING_NONE. */
struct packer *packer_new(enum packing p);
void packer_free(struct packer *p); /* NULL is fine */

struct packer_input {
  const char *data;
  size_t len;
};

enum packer_step { PACKER_MORE, PACKER_FLUSH, PACKER_END };

/* Takes bytes from the front of `in` and writes at most max bytes; returns how many.  *done: all of the input was taken,
 * and for a flush and for the end nothing more is to be written.  The same step is repeated until it is done.  Without
 * memory the output is cut off: *done is true, and *ok false. */
size_t packer_run(struct packer *p, struct packer_input *in, enum packer_step step, char *to, size_t max, bool *done,
                  bool *ok);

#endif
