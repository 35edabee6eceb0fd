/* operate: what an operator asks about links, and does to them.
 *
 * For the command line, beside a server that may be running.  See store.h for the statuses; ST_INPUT: the text is the name of two
 * links.
 */
#ifndef STORE_OPERATE_H
#define STORE_OPERATE_H

#include <stddef.h>

#include "store/store.h"

struct store_link {
  struct ident_hash hash;
  char public_id[IDENT_PUBLIC_LEN + 1]; /* "" for an unlisted one */
  int64_t created_ms, expires_ms;       /* 0: never */
  int n_revisions;
  int64_t bytes; /* of all revisions, in the store */
  bool is_revision, is_private;
};
struct store_links {
  struct store_link *at; /* the oldest first */
  size_t n, room;
};
/* is_private: what a link's document says of itself (api/access.h); one that cannot be read says nothing. */
MUST_USE enum status store_list_links(const char *url, bool (*is_private)(const struct buf *doc),
                                      struct store_links *out, struct error *err);
void store_links_clear(struct store_links *l);
/* text: an id, a link with it, or at least the name's digits of the hash.  Appends the document of its newest revision. */
MUST_USE enum status store_show_link(const char *url, const char *text, struct store_link *out, struct buf *doc,
                                     bool *found, struct error *err);
/* Deletes the link, or lets it expire at at_ms (0: now).  If a server has the SQLite store, that server does it (remote.h). */
MUST_USE enum status store_remove_link(const char *url, const char *text, int64_t at_ms, struct store_link *out,
                                       bool *found, struct error *err);

#endif
