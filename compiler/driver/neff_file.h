/* neff_file: reads a NEFF from a file, for the terminal. */
#ifndef DRIVER_NEFF_FILE_H
#define DRIVER_NEFF_FILE_H

#include "neff/neff.h"

/* Reads the file, "-": standard input.  Everything lives in a.  ST_INPUT and ST_LIMIT: err begins with the path. */
MUST_USE enum status neff_file_read(struct arena *a, const char *path, struct neff *out, struct error *err);
/* Reads the file's bytes only. */
MUST_USE enum status neff_file_bytes(struct arena *a, const char *path, const void **out, size_t *size,
                                     struct error *err);
/* The path is that of a NEFF by its name. */
bool neff_file_is(const char *path);

#endif
