/* archive: the tar archive of a NEFF, by libarchive. */
#ifndef NEFF_ARCHIVE_H
#define NEFF_ARCHIVE_H

#include "neff/neff.h"

/* Adds the regular files of an archive, plain or compressed with gzip, to x.  Directories are left out; links, devices and
 * names that are not valid or stand twice are refused. */
MUST_USE enum status neff_archive_read(struct arena *a, const void *bytes, size_t n, struct neff_limits limits,
                                       struct neff *x, struct error *err);
/* Appends an archive of the members; the same members give the same bytes. */
MUST_USE enum status neff_archive_write(const struct neff *x, struct buf *b, struct error *err);

#endif
