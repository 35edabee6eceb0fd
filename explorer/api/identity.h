/* identity: who asks, and what they may do.
 *
 * A person is whom a trusted proxy names in --user-header, with the address and the groups of --email-header and --groups-header; the
 * proxy has signed them in, and we keep no passwords.  A program shows a token, `Authorization: Bearer nkx_…` (store/tokens.h).  Who
 * does neither is anonymous.
 *
 *   reader     opens links and compiles
 *   author     also stores links, and asks for runs on Neuron hosts
 *   operator   also opens private links of others, deletes any link, and manages tokens
 *
 * A person is the highest that their groups make of them (--operator-groups, --author-groups); if no group makes authors, whoever has
 * signed in is one.  --anonymous says what the others are.
 */
#ifndef API_IDENTITY_H
#define API_IDENTITY_H

#include <stdbool.h>

#include "http/http.h"

enum role { ROLE_NONE, ROLE_READER, ROLE_AUTHOR, ROLE_OPERATOR, ROLES };
const char *role_name(enum role r); /* "reader"; "none" */
/* ROLE_NONE if there is no role of this name. */
enum role role_find(const char *name);

/* The operator's settings. */
struct identity_config {
  const char *author_groups, *operator_groups; /* separated by commas, or NULL */
  int anonymous;                               /* enum role: none, reader or author */
};

enum identity_kind { IDENTITY_ANONYMOUS, IDENTITY_PERSON, IDENTITY_TOKEN };
struct identity {
  bool is_known; /* what follows is set */
  bool is_admitted;
  enum identity_kind kind;
  enum role role;
  char name[USER_SIZE];  /* of a token "token:NAME"; "" if anonymous */
  char email[USER_SIZE]; /* "" if the proxy names none */
  char *groups;          /* one a line, each ended by one; heap, NULL: none */
  enum status st;        /* of looking up the token */
};

void identity_clear(struct identity *id);
bool identity_has_group(const struct identity *id, const char *group);
/* True if `who` is this person's name or address, or this token. */
bool identity_is(const struct identity *id, const char *who);

/* The groups of a header: "a, b", or Envoy's form of a list; heap, one a line, NULL: none. */
char *identity_read_groups(const char *text);
/* True if one of the groups of a list "a, b" is theirs. */
bool identity_has_any_group(const struct identity *id, const char *list);
const char *identity_kind_name(enum identity_kind kind);

#endif
