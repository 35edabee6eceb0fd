/* neff: reads and writes the container of a compiled kernel.
 *
 * A NEFF is a header of 1024 bytes and a tar archive, plain or compressed with gzip:
 *
 *     offset size                          offset size
 *       0     8  version of the package      204    16  uuid
 *       8     8  size of this header         220   256  name of the network
 *      16     8  size of what follows it     476     4  requested cores
 *      24     8  version of the format,      480    64  cores of each node
 *      32     8    major and minor           544     8  bits of features
 *      40   128  the compiler's version      552     4  physical cores of a logical one
 *     168     4  cores                       556   468  zero
 *     172    32  hash of the archive        1024        the archive
 *
 * Integers are little endian.  The hash is that of the bytes after the header: SHA-256 in packages of version 1, MD5 in
 * those of version 2.  Source: the vendor's description of the header's C struct, with natural alignment, and of the
 * packager's options; what the hash covers is not stated there, so a hash that differs is reported, not refused.
 *
 * A file comes from anybody.  Everything in it is checked before it is used, and what does not fit is refused with
 * ST_INPUT or ST_LIMIT and a sentence for the user.
 */
#ifndef NEFF_NEFF_H
#define NEFF_NEFF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/error.h"

enum {
  NEFF_HEADER_SIZE = 1024,
  NEFF_HASH_SIZE = 32,
  NEFF_UUID_SIZE = 16,
  NEFF_BUILD_SIZE = 128,
  NEFF_NAME_SIZE = 256,
  NEFF_NODES = 64,
};

struct neff_header {
  uint64_t package_version, header_size, data_size;
  uint64_t major, minor; /* of the format */
  uint64_t features;
  uint32_t cores, requested_cores, lnc; /* lnc: physical cores of a logical one, 1 or 2; 0 in old packages */
  uint8_t hash[NEFF_HASH_SIZE], uuid[NEFF_UUID_SIZE];
  char build[NEFF_BUILD_SIZE + 1], name[NEFF_NAME_SIZE + 1]; /* UTF-8; other bytes are replaced */
  uint8_t node_cores[NEFF_NODES];
};

/* The feature bit that says "no device executes this package".  The vendor publishes no numbers of bits; a runtime refuses a package
 * with a bit that it does not know, and bits are given out from 0 on. */
#define NEFF_FEATURE_SIMULATION (UINT64_C(1) << 63)
/* What such a package is, for the user. */
#define NEFF_SIMULATION_WHAT \
  "A simulation package: it runs on the simulated machine only. No device executes it, because the encoding of " \
  "engine " \
  "instructions is not public."

struct neff_member {
  const char *name; /* a relative path without "." and "..", UTF-8 */
  const void *data; /* NUL after the last byte */
  size_t size;
};

enum neff_hash { NEFF_HASH_UNKNOWN, NEFF_HASH_RIGHT, NEFF_HASH_WRONG };

struct neff {
  struct neff_header header;
  enum neff_hash hash; /* UNKNOWN: a version of the package whose hash is not documented */
  bool is_compressed;
  struct {
    struct neff_member *v; /* in the order of the archive */
    int n, cap;
  } members;
};

/* What a reader accepts. */
struct neff_limits {
  size_t total_bytes; /* of all members together, unpacked */
  int members;
};
#define NEFF_LIMITS ((struct neff_limits){.total_bytes = (size_t)1 << 30, .members = 10000})

/* Reads a container; everything lives in a.  ST_INPUT: it is none, or damaged.  ST_LIMIT: it has more than `limits` allow. */
MUST_USE enum status neff_read(struct arena *a, const void *bytes, size_t n, struct neff_limits limits,
                               struct neff *out, struct error *err);

/* Appends the container of x.  header_size, data_size and hash of the header are computed; package_version is 1 or 2.
 * The same x gives the same bytes.  ST_LIMIT if b is full; ST_INPUT for a name that neff_read would refuse. */
MUST_USE enum status neff_write(const struct neff *x, struct buf *b, struct error *err);

/* Returns the member of that name, or NULL. */
const struct neff_member *neff_find(const struct neff *x, const char *name);
/* Adds a member; name and data are borrowed. */
void neff_add(struct arena *a, struct neff *x, const char *name, const void *data, size_t size);

/* The header alone.  neff_header_get refuses a header whose sizes do not fit into n, the bytes of the file. */
MUST_USE enum status neff_header_get(const void *bytes, size_t n, struct neff_header *out, struct error *err);
void neff_header_put(const struct neff_header *h, unsigned char out[NEFF_HEADER_SIZE]);

/* The name may stand in an archive: relative, no empty part, no "." and "..", no control character, no backslash. */
bool neff_name_is_valid(const char *name);

#endif
