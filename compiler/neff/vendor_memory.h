/* vendor_memory: what a process, its descendants and its process group have of memory together. */
#ifndef NEFF_VENDOR_MEMORY_H
#define NEFF_VENDOR_MEMORY_H

#include <stdbool.h>
#include <sys/types.h>

/* True if they have more than this.  Pages that several of them share count once: where the sum of what is resident exceeds the limit,
 * each one's proportional share is read.  What cannot be read counts nothing. */
bool vendor_memory_exceeds(pid_t root, int mib);

#endif
