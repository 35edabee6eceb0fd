/* audit: a line of the log for whoever stored, changed or removed which link.
 *
 * The link is named by ident_name and the client as --log-clients says, so a line holds no id of an unlisted link.  An operator
 * who has one link of an abuser finds the others by the client's name.
 */
#ifndef API_AUDIT_H
#define API_AUDIT_H

#include "api/snippet.h"

/* what: "link-stored", …; the outcome is the state's: st, found, is_allowed. */
void audit_link(const struct request *rq, const char *what, const struct ident_hash *link);

#endif
