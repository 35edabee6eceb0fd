#include "store/operator.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/crypto.h>
#include <openssl/hmac.h>
#include <openssl/sha.h>

#include "store/db.h"

void operator_prove(const uint8_t secret[STORE_SECRET_SIZE], int64_t now_ms, const char *method, const char *path,
                    const void *body, size_t len, char out[OPERATOR_PROOF_SIZE]) {
  unsigned char digest[SHA256_DIGEST_LENGTH], of_body[SHA256_DIGEST_LENGTH];
  char text[1024];
  unsigned int n;
  SHA256(len ? body : "", len, of_body);
  int at = snprintf(text, sizeof text, "nkx operator:%lld:%s:%.500s:", (long long)now_ms, method, path);
  for (size_t i = 0; i < sizeof of_body; i++)
    at += snprintf(text + at, sizeof text - (size_t)at, "%02x", of_body[i]);
  HMAC(EVP_sha256(), secret, STORE_SECRET_SIZE, (const unsigned char *)text, (size_t)at, digest, &n);
  at = snprintf(out, OPERATOR_PROOF_SIZE, "%lld.", (long long)now_ms);
  for (size_t i = 0; i < sizeof digest; i++)
    at += snprintf(out + at, OPERATOR_PROOF_SIZE - (size_t)at, "%02x", digest[i]);
}

bool operator_is_proven(const uint8_t secret[STORE_SECRET_SIZE], int64_t now_ms, const char *method, const char *path,
                        const void *body, size_t len, const char *proof) {
  char want[OPERATOR_PROOF_SIZE], *end;
  const long long ms = strtoll(proof, &end, 10);
  if (*end != '.' || ms < now_ms - OPERATOR_SKEW_MS || ms > now_ms + OPERATOR_SKEW_MS)
    return false;
  operator_prove(secret, ms, method, path, body, len, want);
  return strlen(proof) == strlen(want) && CRYPTO_memcmp(proof, want, strlen(want)) == 0;
}

struct taking {
  uint8_t *secret;
  bool found;
};

static enum status take(void *user, const struct db_value *row, int n, struct error *err) {
  struct taking *to = user;
  (void)n;
  if (row[0].kind != DB_BYTES || row[0].n != STORE_SECRET_SIZE)
    return fail(err, ST_IO, "the store's secret is damaged");
  memcpy(to->secret, row[0].p, STORE_SECRET_SIZE);
  to->found = true;
  return ST_OK;
}

enum status operator_read_secret(const char *url, uint8_t out[STORE_SECRET_SIZE], struct error *err) {
  struct taking to = {out, false};
  struct db *db = NULL;
  enum status st = db_open(url, false, &db, err);
  if (!st)
    st = db_run(db, "SELECT value FROM meta WHERE name = 'secret'", NULL, 0, take, &to, NULL, err);
  db_close(db);
  return st || to.found ? st : fail(err, ST_INPUT, "no server has used this store yet: start it first");
}
