/* header: the first 1024 bytes of a NEFF. */
#include <assert.h>
#include <string.h>

#include "base/utf8.h"
#include "neff/neff.h"

enum {
  AT_PACKAGE_VERSION = 0,
  AT_HEADER_SIZE = 8,
  AT_DATA_SIZE = 16,
  AT_MAJOR = 24,
  AT_MINOR = 32,
  AT_BUILD = 40,
  AT_CORES = 168,
  AT_HASH = 172,
  AT_UUID = 204,
  AT_NAME = 220,
  AT_REQUESTED = 476,
  AT_NODES = 480,
  AT_FEATURES = 544,
  AT_LNC = 552,
  AT_PAD = 556,
};
static_assert(AT_BUILD + NEFF_BUILD_SIZE == AT_CORES, "the build version ends where the cores begin");
static_assert(AT_HASH + NEFF_HASH_SIZE == AT_UUID && AT_UUID + NEFF_UUID_SIZE == AT_NAME, "hash and uuid");
static_assert(AT_NAME + NEFF_NAME_SIZE == AT_REQUESTED && AT_NODES + NEFF_NODES == AT_FEATURES, "name and nodes");

static uint64_t get(const unsigned char *p, int bytes) {
  uint64_t v = 0;
  for (int i = bytes; i-- > 0;)
    v = v << 8 | p[i];
  return v;
}

static void put(unsigned char *p, int bytes, uint64_t v) {
  for (int i = 0; i < bytes; i++, v >>= 8)
    p[i] = (unsigned char)v;
}

/* Copies a text that ends with a NUL or after n bytes; what is no UTF-8 becomes '?'. */
static void get_text(const unsigned char *p, size_t n, char *out) {
  const unsigned char *end = memchr(p, 0, n);
  const size_t len = end ? (size_t)(end - p) : n;
  memcpy(out, p, len);
  out[len] = 0;
  for (size_t i = 0, step; i < len; i += step) {
    step = utf8_char(out + i, len - i);
    if (!step || (unsigned char)out[i] < ' ' || out[i] == 0x7f) {
      out[i] = '?';
      step = 1;
    }
  }
}

static void put_text(unsigned char *p, size_t n, const char *text) {
  const size_t len = strnlen(text, n);
  memcpy(p, text, len);
}

enum status neff_header_get(const void *bytes, size_t n, struct neff_header *out, struct error *err) {
  const unsigned char *p = bytes;
  struct neff_header h = {0};

  if (n < NEFF_HEADER_SIZE)
    return fail(err, ST_INPUT, "not a NEFF: it has %zu bytes, and a header has %d", n, NEFF_HEADER_SIZE);
  h.package_version = get(p + AT_PACKAGE_VERSION, 8);
  h.header_size = get(p + AT_HEADER_SIZE, 8);
  h.data_size = get(p + AT_DATA_SIZE, 8);
  h.major = get(p + AT_MAJOR, 8);
  h.minor = get(p + AT_MINOR, 8);
  h.cores = (uint32_t)get(p + AT_CORES, 4);
  h.requested_cores = (uint32_t)get(p + AT_REQUESTED, 4);
  h.features = get(p + AT_FEATURES, 8);
  h.lnc = (uint32_t)get(p + AT_LNC, 4);
  memcpy(h.hash, p + AT_HASH, NEFF_HASH_SIZE);
  memcpy(h.uuid, p + AT_UUID, NEFF_UUID_SIZE);
  memcpy(h.node_cores, p + AT_NODES, NEFF_NODES);
  get_text(p + AT_BUILD, NEFF_BUILD_SIZE, h.build);
  get_text(p + AT_NAME, NEFF_NAME_SIZE, h.name);

  if (h.header_size < NEFF_HEADER_SIZE || h.header_size > n)
    return fail(err, ST_INPUT, "not a NEFF: its header gives itself %llu bytes; the file has %zu",
                (unsigned long long)h.header_size, n);
  if (h.data_size > n - h.header_size)
    return fail(err, ST_INPUT, "the NEFF is cut: its header promises %llu bytes of data, and %zu follow it",
                (unsigned long long)h.data_size, n - (size_t)h.header_size);
  *out = h;
  return ST_OK;
}

void neff_header_put(const struct neff_header *h, unsigned char out[NEFF_HEADER_SIZE]) {
  memset(out, 0, NEFF_HEADER_SIZE);
  put(out + AT_PACKAGE_VERSION, 8, h->package_version);
  put(out + AT_HEADER_SIZE, 8, h->header_size);
  put(out + AT_DATA_SIZE, 8, h->data_size);
  put(out + AT_MAJOR, 8, h->major);
  put(out + AT_MINOR, 8, h->minor);
  put(out + AT_CORES, 4, h->cores);
  put(out + AT_REQUESTED, 4, h->requested_cores);
  put(out + AT_FEATURES, 8, h->features);
  put(out + AT_LNC, 4, h->lnc);
  memcpy(out + AT_HASH, h->hash, NEFF_HASH_SIZE);
  memcpy(out + AT_UUID, h->uuid, NEFF_UUID_SIZE);
  memcpy(out + AT_NODES, h->node_cores, NEFF_NODES);
  put_text(out + AT_BUILD, NEFF_BUILD_SIZE, h->build);
  put_text(out + AT_NAME, NEFF_NAME_SIZE, h->name);
}
