/* ident: the names of snippets, and what is kept of them.
 *
 * An unlisted id is 128 bits from the kernel, written as 22 characters of base64url: whoever has it may read the
 * snippet, so the store keeps its hash only.  A public id is short, to be read aloud and typed.  The edit token has the
 * unlisted id's form.
 */
#ifndef STORE_IDENT_H
#define STORE_IDENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

enum {
  IDENT_LEN = 22,       /* of an unlisted id and of a token */
  IDENT_PUBLIC_LEN = 8, /* 57^8, about 2^46: enough to be unique, not to be secret */
  IDENT_HASH_SIZE = 32,
};

struct ident_hash {
  uint8_t bytes[IDENT_HASH_SIZE];
};

/* ST_IO when the kernel gives no random bytes. */
MUST_USE enum status ident_new(char out[IDENT_LEN + 1], struct error *err);
MUST_USE enum status ident_new_public(char out[IDENT_PUBLIC_LEN + 1], struct error *err);
/* An unlisted id that follows from the text, for who knows the secret: equal texts get equal ids. */
void ident_derive(const uint8_t *secret, size_t secret_len, const char *text, size_t len, char out[IDENT_LEN + 1]);
/* Has `s` the form of an id of either kind?  A text that cannot be one needs no look-up. */
bool ident_is_valid(const char *s, size_t len);
bool ident_is_public(const char *s, size_t len);
void ident_hash(const char *s, size_t len, struct ident_hash *out);
/* In time that does not depend on where they differ. */
bool ident_hash_equal(const struct ident_hash *a, const struct ident_hash *b);

#endif
