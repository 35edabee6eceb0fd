/* blocks: how many tiles of a product's operands lie in SBUF together, and which loop goes around the other.
 *
 *     rows outside                                  columns outside
 *     for blocks of M: load A, keep it              for blocks of N: load B, keep it
 *       for blocks of N: load B                       for blocks of M: load A
 *
 * What is outside is loaded once; the other operand is loaded once for each block of it.  Time: the tiles of M and N.
 */
#ifndef PASSES_BLOCKS_H
#define PASSES_BLOCKS_H

#include <stdbool.h>
#include <stdint.h>

/* A, with the loop over M, or B, with the loop over N. */
struct factor {
  int64_t bytes;   /* of an element */
  bool is_in_sbuf; /* nothing is loaded */
  bool is_turned;  /* it is transposed on its way to the block */
};

struct multiplied {
  int64_t extent[3], tile[3]; /* M, N, K */
  struct factor factor[2];
  int64_t sbuf; /* bytes of a partition */
  const struct multiplied
      *next; /* a product that is added to this one in PSUM, tile by tile: the same M and N; or NULL */
};

/* The tiles of M and of N in a block; 0: not even one tile of each fits with the whole of K. */
struct blocks {
  int64_t m, n;
  bool n_outside;
};

/* The blocks with the least traffic that fit, in the smallest memory.  Products that are added have the same blocks, which lie in SBUF
 * together. */
struct blocks blocks_choose(const struct multiplied *p);
/* The bytes in each partition that one copy of all blocks takes. */
int64_t blocks_bytes(const struct multiplied *p, const struct blocks *b);
/* The bytes that DMA moves from HBM for all operands. */
int64_t blocks_traffic(const struct multiplied *p, const struct blocks *b);

#endif
