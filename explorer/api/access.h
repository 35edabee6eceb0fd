/* access: for whom a private link is.
 *
 * It is kept at the beginning of the link's document, where a checksum covers it: {"access":{"owner","people","groups"},…}.  All
 * revisions have that of the first one, which alone is kept.  Its owner can change it (POST /api/v1/snippets/ID/access).  Who may not open a link cannot tell it from one that does not exist.
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
/* True if it is theirs: a private link's owner, not merely one of its readers. */
bool access_is_owner(const struct buf *doc, const struct identity *who);

/* Writes the document of a link that is from now on for those whom `asked` names, or for everybody with the link if not is_private.
 * It stays its owner's; one that had none becomes that of `who`.  ST_INPUT: asked is wrong, or nobody has signed in to own it. */
MUST_USE enum status access_change(const struct buf *doc, const struct identity *who, bool is_private,
                                   const json_t *asked, struct buf *out, struct error *err);
/* Writes the member of a private link's document, into a JSON object. */
void access_put(struct buf *out, const struct buf *doc);
/* Gives the document of a later revision the member that the first one's has. */
MUST_USE enum status access_carry(const struct buf *from, struct buf *to, struct error *err);

#endif
