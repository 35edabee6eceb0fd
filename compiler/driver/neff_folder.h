/* neff_folder: a NEFF from a folder of its members, which `nkx neff unpack` has written. */
#ifndef DRIVER_NEFF_FOLDER_H
#define DRIVER_NEFF_FOLDER_H

#include "neff/neff.h"

/* Reads the files in dir and below as the members of a NEFF with the header of `like`: first those that it has, in its order,
 * then the others by their names.  Everything lives in a.  ST_INPUT: dir has something other than files and folders, or a file
 * whose name no member can have; ST_LIMIT: it has more than NEFF_LIMITS allow. */
MUST_USE enum status neff_folder_read(struct arena *a, const char *dir, const struct neff *like, struct neff *out,
                                      struct error *err);

#endif
