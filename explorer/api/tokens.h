/* tokens: the tokens of programs, for operators: `nkx token`, which proves that it can read the store (store/operator.h), or who has the
 * role (identity.h).
 *
 * GET    /api/v1/tokens         { "tokens": [ { "name", "role", "groups", "created_ms", "revoked_ms"? } ] }
 * POST   /api/v1/tokens         { "name", "hash": SHA-256 of 'nkx id:' and the token's 22 letters, "role", "groups"?: [...] }  →  201 {}
 * DELETE /api/v1/tokens/NAME    204
 */
#ifndef API_TOKENS_H
#define API_TOKENS_H

#include "http/http.h"

enum MHD_Result api_access_tokens_get(struct request *rq);
enum MHD_Result api_access_tokens_post(struct request *rq);
enum MHD_Result api_access_tokens_delete(struct request *rq);

#endif
