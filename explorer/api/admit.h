/* admit: finds out who asks, and whether they may (identity.h). */
#ifndef API_ADMIT_H
#define API_ADMIT_H

#include "api/identity.h"

/* The hook of http/server.h: finds out who asks, once, and whether they may ask for this route.  False: the handler is not called;
 * *answer is what the library's call returns: the request was answered, or is called again. */
bool identity_admit(struct request *rq, enum MHD_Result *answer);
const struct identity *identity_of(const struct request *rq);

/* GET /api/v1/me  →  { "name": "ada" | null, "email"?, "groups": [...], "kind": "anonymous" | "person" | "token", "role",
 *                      "has_sign_in": there is a proxy or a token by which others are known } */
enum MHD_Result api_me(struct request *rq);

#endif
