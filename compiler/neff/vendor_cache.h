/* vendor_cache: files that the vendor's compiler has made, each under the hash of what it was made from, and no more of them than a
 * number of bytes: those that were used last stay. */
#ifndef NEFF_VENDOR_CACHE_H
#define NEFF_VENDOR_CACHE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"

/* Reads a file whole; false if it is not there or too large. */
struct vendor_file {
  const void *data; /* a NUL follows */
  size_t size;
};
bool vendor_file_read(struct arena *a, const char *path, struct vendor_file *out);
/* Writes a file that is there whole or not at all. */
bool vendor_file_write(struct arena *a, const char *path, const void *data, size_t n);

/* Writes the file, in a folder that is made if it is not there, and removes those that were not used for the longest time until the
 * rest have most_bytes together; the new one stays.  False, with errno, if it cannot be written. */
bool vendor_cache_keep(struct arena *a, const char *dir, const char *path, const void *data, size_t n,
                       int64_t most_bytes);
/* Notes that the file was used. */
void vendor_cache_use(const char *path);

#endif
