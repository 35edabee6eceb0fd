/* blocks: see blocks.h.
 *
 * The number of tiles in a block divides the number of all, so that all blocks are full.  The operand inside gets the
 * smallest blocks that a transfer moves well: larger ones would not be loaded less often, and they rotate, so that the
 * next one arrives while the last one is in use.  Of the operand outside all numbers from that on are tried.  One copy of
 * both blocks may take half of SBUF, and two copies almost all of it.  If that leaves no choice, blocks may have a single
 * tile, and at last one copy may take four fifths.
 */
#include "passes/lib/blocks.h"

enum {
  KEPT_FREE = 8 << 10,       /* bytes of a partition that rotating blocks leave to tiles of the result */
  WORTH_A_START = 256 << 10, /* bytes: DMA moves half of them in the time that it takes to start */
};

static int64_t divide_up(int64_t x, int64_t y) {
  return (x + y - 1) / y;
}

static int64_t tiles(const struct multiplied *p, int loop) {
  return p->extent[loop] / p->tile[loop];
}

static int64_t factor_bytes(const struct multiplied *p, int loop) {
  return p->extent[loop] * p->extent[2] * p->factor[loop].bytes;
}

/* The bytes of a partition that n tiles take with the whole of K, of all products. */
static int64_t block_bytes(const struct multiplied *p, int loop, int64_t n) {
  int64_t sum = 0;
  for (; p; p = p->next) {
    const struct factor *f = &p->factor[loop];
    sum += f->is_in_sbuf && !f->is_turned ? 0 : divide_up(p->extent[2], p->tile[2]) * n * p->tile[loop] * f->bytes;
  }
  return sum;
}

int64_t blocks_bytes(const struct multiplied *p, const struct blocks *b) {
  return block_bytes(p, 0, b->m) + block_bytes(p, 1, b->n);
}

/* How often all of an operand goes to its block. */
static int64_t times(const struct multiplied *p, const struct blocks *b, int loop) {
  if (loop == b->n_outside)
    return 1;
  return loop ? divide_up(p->extent[0], b->m * p->tile[0]) : divide_up(p->extent[1], b->n * p->tile[1]);
}

int64_t blocks_traffic(const struct multiplied *p, const struct blocks *b) {
  int64_t sum = 0;
  for (; p; p = p->next)
    for (int loop = 0; loop < 2; loop++)
      sum += p->factor[loop].is_in_sbuf ? 0 : times(p, b, loop) * factor_bytes(p, loop);
  return sum;
}

/* In units of bytes that are copied: a transposed byte takes about one and a half times as long, by DMA from HBM and on
 * the Tensor engine from SBUF. */
static int64_t cost(const struct multiplied *p, const struct blocks *b) {
  int64_t sum = 0;
  for (; p; p = p->next)
    for (int loop = 0; loop < 2; loop++) {
      const struct factor *f = &p->factor[loop];
      const int64_t bytes = times(p, b, loop) * factor_bytes(p, loop);
      sum += f->is_turned ? bytes + bytes / 2 : f->is_in_sbuf ? 0 : bytes;
    }
  return sum;
}

enum room { ROOM_ROTATING, ROOM_SINGLE_TILES, ROOM_ONE_COPY, ROOM_COUNT };

static bool fits(const struct multiplied *p, const struct blocks *b, enum room room) {
  const int64_t one = blocks_bytes(p, b);
  if (room == ROOM_ONE_COPY)
    return one <= p->sbuf / 5 * 4;
  /* what is loaded only once needs no second copy */
  const int64_t outside = b->n_outside ? b->n : b->m;
  const int64_t kept = outside < tiles(p, b->n_outside) ? 0 : block_bytes(p, b->n_outside, outside);
  return one <= p->sbuf / 2 && 2 * one - kept <= p->sbuf - KEPT_FREE;
}

static bool is_better(const struct multiplied *p, const struct blocks *x, const struct blocks *y) {
  const int64_t a = cost(p, x), b = cost(p, y);
  return a != b ? a < b : blocks_bytes(p, x) < blocks_bytes(p, y);
}

/* The bytes of a tile with the whole of K: of the product in which it has the most. */
static int64_t tile_bytes(const struct multiplied *p, int loop) {
  int64_t most = 0;
  for (; p; p = p->next) {
    const int64_t bytes = p->extent[2] * p->tile[loop] * p->factor[loop].bytes;
    most = bytes > most ? bytes : most;
  }
  return most;
}

/* The fewest tiles that divide the number of tiles and are worth the start of a transfer. */
static int64_t least_tiles(const struct multiplied *p, int loop, enum room room) {
  const int64_t all = tiles(p, loop), tile = tile_bytes(p, loop);
  int64_t n = 1;
  while (room == ROOM_ROTATING && n < all && (n * tile < WORTH_A_START || all % n))
    n++;
  return n;
}

struct blocks blocks_choose(const struct multiplied *p) {
  struct blocks best = {0};
  for (int room = 0; room < ROOM_COUNT && !best.m; room++)
    for (int outside = 0; outside < 2; outside++) {
      const int64_t inside = least_tiles(p, !outside, (enum room)room);
      for (int64_t n = tiles(p, outside), least = least_tiles(p, outside, (enum room)room); n >= least; n--) {
        const struct blocks b = {outside ? inside : n, outside ? n : inside, outside};
        if (tiles(p, outside) % n || !fits(p, &b, (enum room)room) || (best.m && !is_better(p, &b, &best)))
          continue;
        best = b;
      }
    }
  return best;
}
