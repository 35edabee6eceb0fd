/* block: memory for the data of runs.
 *
 * Blocks that were given back are kept, up to a limit, for others of the same size, of the same run or a later one: the
 * system would else clear each page again.  Every function may be called from any thread. */
#ifndef SIM_BLOCK_H
#define SIM_BLOCK_H

#include <stddef.h>

/* A block of that many bytes, which have any values; NULL if there is no memory. */
char *sim_block_take(size_t size);
/* Gives a block of that size back. */
void sim_block_give(char *block, size_t size);

#endif
