#include "store/ident.h"

#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include <openssl/crypto.h>
#include <openssl/hmac.h>
#include <openssl/sha.h>

static const char base64url[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
enum { FIRST_LETTERS = 62 }; /* those that are no punctuation */
static const char readable[] = "23456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"; /* no 0 O 1 l I */

static enum status fill(void *to, size_t n, struct error *err) {
  return getrandom(to, n, 0) == (ssize_t)n ? ST_OK : fail(err, ST_IO, "no random bytes: %m");
}

/* Writes 128 bits as text, which begins with a letter or a digit: clients of Compiler Explorer take no other, and a
 * command line reads "-x" as an option.  62 and 63 become 0 and 1 there, which costs less than 0.1 bit. */
static void write_long(const uint8_t bits[16], char out[IDENT_LEN + 1]) {
  uint8_t r[18] = {0}; /* 16 bytes and two zeros: groups of three */
  memcpy(r, bits, 16);
  for (int i = 0; i < IDENT_LEN; i++) { /* letter i is bits 6i to 6i + 5 */
    const uint8_t *group = r + i / 4 * 3;
    uint32_t v = (uint32_t)group[0] << 16 | (uint32_t)group[1] << 8 | group[2];
    const uint32_t letter = v >> (18 - i % 4 * 6) & 63;
    out[i] = base64url[i ? letter : letter % FIRST_LETTERS];
  }
  out[IDENT_LEN] = 0;
}

enum status ident_new(char out[IDENT_LEN + 1], struct error *err) {
  uint8_t r[16];
  enum status st = fill(r, sizeof r, err);
  if (!st)
    write_long(r, out);
  return st;
}

void ident_derive(const uint8_t *secret, size_t secret_len, const char *text, size_t len, char out[IDENT_LEN + 1]) {
  unsigned char digest[SHA256_DIGEST_LENGTH];
  unsigned int n;
  HMAC(EVP_sha256(), secret, (int)secret_len, (const unsigned char *)text, len, digest, &n);
  write_long(digest, out);
}

enum status ident_new_public(char out[IDENT_PUBLIC_LEN + 1], struct error *err) {
  enum { LETTERS = sizeof readable - 1, FAIR = 256 / LETTERS * LETTERS };
  int n = 0;
  while (n < IDENT_PUBLIC_LEN) {
    uint8_t r[16];
    enum status st = fill(r, sizeof r, err);
    if (st)
      return st;
    for (size_t i = 0; i < sizeof r && n < IDENT_PUBLIC_LEN; i++)
      if (r[i] < FAIR) /* larger values would make some letters more likely */
        out[n++] = readable[r[i] % LETTERS];
  }
  out[n] = 0;
  return ST_OK;
}

static bool consists_of(const char *s, size_t len, const char *letters) {
  for (size_t i = 0; i < len; i++)
    if (!s[i] || !strchr(letters, s[i]))
      return false;
  return true;
}

bool ident_is_public(const char *s, size_t len) {
  return len == IDENT_PUBLIC_LEN && consists_of(s, len, readable);
}

bool ident_is_valid(const char *s, size_t len) {
  return ident_is_public(s, len) || (len == IDENT_LEN && consists_of(s, len, base64url));
}

void ident_hash(const char *s, size_t len, struct ident_hash *out) {
  static const char domain[] = "nkx id:"; /* so that no other SHA-256 of this program has the same value */
  char text[sizeof domain + IDENT_LEN];
  size_t n = len < IDENT_LEN ? len : IDENT_LEN;
  memcpy(text, domain, sizeof domain - 1);
  memcpy(text + sizeof domain - 1, s, n);
  SHA256((const unsigned char *)text, sizeof domain - 1 + n, out->bytes);
}

void ident_hash_revision(const struct ident_hash *id, int n, struct ident_hash *out) {
  static const char domain[] = "nkx revision:";
  uint8_t text[sizeof domain - 1 + IDENT_HASH_SIZE + 4];
  uint8_t *p = text;
  memcpy(p, domain, sizeof domain - 1);
  p += sizeof domain - 1;
  memcpy(p, id->bytes, IDENT_HASH_SIZE);
  p += IDENT_HASH_SIZE;
  for (int i = 0; i < 4; i++)
    p[i] = (uint8_t)((unsigned)n >> 8 * i);
  SHA256(text, sizeof text, out->bytes);
}

void ident_name(const struct ident_hash *h, char out[IDENT_NAME_SIZE]) {
  for (int i = 0; i < (IDENT_NAME_SIZE - 1) / 2; i++)
    snprintf(out + 2 * i, 3, "%02x", h->bytes[i]);
}

bool ident_hash_equal(const struct ident_hash *a, const struct ident_hash *b) {
  return CRYPTO_memcmp(a->bytes, b->bytes, IDENT_HASH_SIZE) == 0;
}
