/* ident: the ids of snippets, and their hashes.
 *
 * An unlisted id is 128 random bits, written as 22 characters of base64url.  It is the permission to read the snippet,
 * so the store keeps only its hash.  A public id is short, so that it can be read aloud and typed.  An edit token has
 * the form of an unlisted id.
 */
#ifndef STORE_IDENT_H
#define STORE_IDENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

enum {
  IDENT_LEN = 22,       /* of an unlisted id and of a token */
  IDENT_PUBLIC_LEN = 8, /* 57^8, about 2^46: enough to be unique, but not to be secret */
  IDENT_HASH_SIZE = 32,
};

struct ident_hash {
  uint8_t bytes[IDENT_HASH_SIZE];
};

/* ST_IO when the kernel gives no random bytes. */
MUST_USE enum status ident_new(char out[IDENT_LEN + 1], struct error *err);
MUST_USE enum status ident_new_public(char out[IDENT_PUBLIC_LEN + 1], struct error *err);
/* An unlisted id that is derived from the text and the secret: equal texts get equal ids. */
void ident_derive(const uint8_t *secret, size_t secret_len, const char *text, size_t len, char out[IDENT_LEN + 1]);
/* True if `s` has the form of an id of either kind. */
bool ident_is_valid(const char *s, size_t len);
bool ident_is_public(const char *s, size_t len);
void ident_hash(const char *s, size_t len, struct ident_hash *out);
/* The hash under which revision n of a snippet is kept; n is at least 1.  Revision 1 itself is kept under the snippet's own
 * hash. */
void ident_hash_revision(const struct ident_hash *id, int n, struct ident_hash *out);
/* How logs and commands name a link: 16 hexadecimal digits of its id's hash, from which nobody finds the id. */
enum { IDENT_NAME_SIZE = 17 };
void ident_name(const struct ident_hash *h, char out[IDENT_NAME_SIZE]);
/* Takes the same time wherever they differ. */
bool ident_hash_equal(const struct ident_hash *a, const struct ident_hash *b);

#endif
