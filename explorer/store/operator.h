/* operator: how a program of the operator's proves to a server that it can read the server's store. */
#ifndef STORE_OPERATOR_H
#define STORE_OPERATOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "store/store.h"

enum { OPERATOR_PROOF_SIZE = 96, OPERATOR_SKEW_MS = 60000 };
#define OPERATOR_HEADER "X-Nkx-Operator"

/* Writes "MS.HEX" for a request: HMAC-SHA256 under the secret over the time, the method, the path and the body. */
void operator_prove(const uint8_t secret[STORE_SECRET_SIZE], int64_t now_ms, const char *method, const char *path,
                    const void *body, size_t len, char out[OPERATOR_PROOF_SIZE]);
/* True if `proof` is that of this request, and not older or newer than OPERATOR_SKEW_MS. */
bool operator_is_proven(const uint8_t secret[STORE_SECRET_SIZE], int64_t now_ms, const char *method, const char *path,
                        const void *body, size_t len, const char *proof);

/* Reads the secret of a store that a server has made; it may be running.  ST_INPUT: no server has used the store yet. */
MUST_USE enum status operator_read_secret(const char *url, uint8_t out[STORE_SECRET_SIZE], struct error *err);

#endif
