/* access: for whom a private link is.
 *
 * It is kept at the beginning of the link's document, where a checksum covers it: {"access":{"owner","people","groups"},…}.  All
 * revisions have that of the first one, and it never changes.  Who may not open a link cannot tell it from one that does not exist.
 */
#ifndef API_ACCESS_H
#define API_ACCESS_H

#include <jansson.h>

#include "api/identity.h"
#include "base/buf.h"

enum { ACCESS_ENTRIES_MAX = 64, ACCESS_ENTRY_MAX = 256 };

/* The member for the document: of `owner`, shared as `asked` says, {"people"?: [...], "groups"?: [...]}, or NULL: with nobody.  A new
 * reference; NULL: err says what is wrong. */
json_t *access_make(const struct identity *owner, const json_t *asked, struct error *err);
/* True if the document is that of a private link. */
bool access_is_private(const struct buf *doc);
/* True if the document is that of a link which this identity may open. */
bool access_allows(const struct buf *doc, const struct identity *who);

#endif
