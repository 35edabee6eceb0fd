/* watch_part: which part of a buffer an operand of an instruction is, from the text of its line. */
#ifndef DRIVER_WATCH_PART_H
#define DRIVER_WATCH_PART_H

#include <stddef.h>

#include "base/arena.h"

/* "%sbuf_0[0:128, 1, 0, 0:512]" for "dst<128| 512>=memref<…> %sbuf_0[d0, 1, 0, d1]" on line `line`, from 1, of a stage of NISA.  An index
 * that a loop moves stays as it is written.  NULL: the line has no such operand, or it is no access.  Lives in a. */
const char *watch_part(struct arena *a, const char *text, size_t len, int line, const char *operand);

#endif
