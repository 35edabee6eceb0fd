/* s3: an object store that speaks the S3 protocol.  libcurl signs the requests (AWS signature version 4).
 *
 * A site is the bucket and what is known of its state; each thread has a connection of its own to it.  After a failure the site rests:
 * for some seconds requests fail at once, so that nobody waits for a store that is away.
 *
 * A key may lack a permission: the store answers AccessDenied to one kind of request and serves the others.  Then only puts, or only
 * deletes, rest, and for longer, because somebody has to grant it.  Gets never rest for this: a store tells a key that may not list
 * the bucket AccessDenied for an object that is missing, too.
 */
#ifndef STORE_S3_H
#define STORE_S3_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"
#include "store/ident.h"

struct s3_config {
  const char *url;         /* "https://HOST[:PORT]/BUCKET[/PREFIX]"; NULL: there is no object store */
  const char *region;      /* such as "us-east-1" */
  const char *credentials; /* a file with aws_access_key_id and aws_secret_access_key, as AWS's tools have it */
  const char *ca_file;     /* certificates to trust, PEM, instead of the system's; NULL: the system's */
};

enum { S3_PATIENCE_MS = 2000 /* for an answer's first MiB */, S3_URL_MAX = 1000 };

struct s3_site; /* any thread */
struct s3;      /* one thread */

/* Reads the credentials and the certificates; the store itself need not answer.  ST_INPUT: a setting is wrong. */
MUST_USE enum status s3_site_open(const struct s3_config *cfg, struct s3_site **out, struct error *err);
/* After the last connection was closed; NULL is fine, here and below. */
void s3_site_close(struct s3_site *site);
MUST_USE enum status s3_open(struct s3_site *site, struct s3 **out, struct error *err);
void s3_close(struct s3 *c);
struct s3_site *s3_site_of(const struct s3 *c);

/* Statuses of these: ST_BUSY: the store does not answer in time, answers with a failure, or rests after one. */
MUST_USE enum status s3_put(struct s3 *c, const char *name, const void *p, size_t n, struct error *err);
/* Appends the object of `n` bytes to out.  ST_IO: there is none of this name and size. */
MUST_USE enum status s3_get(struct s3 *c, const char *name, size_t n, struct buf *out, struct error *err);
/* ST_OK, too, if there is no such object. */
MUST_USE enum status s3_delete(struct s3 *c, const char *name, struct error *err);

enum s3_kind { S3_PUT, S3_GET, S3_DELETE, S3_KINDS };
enum s3_outcome { S3_DONE, S3_MISSING, S3_FAILED, S3_DENIED, S3_RESTED, S3_OUTCOMES };

/* True while requests of this kind fail at once. */
bool s3_rests(struct s3_site *site, enum s3_kind kind);

/* An object turned out to be missing or damaged: what is stored next under this hash is to replace it.  The last few are known. */
void s3_suspect(struct s3_site *site, const struct ident_hash *hash);
/* True once for a hash that was suspected. */
bool s3_was_suspected(struct s3_site *site, const struct ident_hash *hash);

struct s3_counts {
  int64_t requests[S3_KINDS][S3_OUTCOMES];
  bool is_up;               /* it does not rest */
  bool is_denied[S3_KINDS]; /* the last request of the kind was answered with AccessDenied */
};
void s3_look(struct s3_site *site, struct s3_counts *out);

#endif
