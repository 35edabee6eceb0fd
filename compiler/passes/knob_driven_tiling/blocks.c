/* blocks: see blocks.h.
 *
 * The operand that is inside gets blocks of one tile: larger ones would not be loaded less often, and they rotate, so that
 * the next one arrives while the last one is in use.  Of the operand outside all of the numbers of tiles are tried that
 * divide the number of tiles, so that all blocks are full.  One copy of both blocks may take half of SBUF, and two copies
 * almost all of it; if that leaves no choice, one copy may take four fifths.
 */
#include "passes/knob_driven_tiling/blocks.h"

enum { KEPT_FREE = 8 << 10 }; /* bytes of a partition that rotating blocks leave to tiles of the result */

static int64_t divide_up(int64_t x, int64_t y) {
  return (x + y - 1) / y;
}

static int64_t tiles(const struct product *p, int loop) {
  return p->extent[loop] / p->tile[loop];
}

static int64_t a_bytes(const struct product *p, const struct blocks *b) {
  return divide_up(p->extent[2], p->tile[2]) * b->m * p->tile[0] * p->bytes_a;
}

static int64_t b_bytes(const struct product *p, const struct blocks *b) {
  return divide_up(p->extent[2], p->tile[2]) * b->n * p->tile[1] * p->bytes_b;
}

int64_t blocks_bytes(const struct product *p, const struct blocks *b) {
  return a_bytes(p, b) + b_bytes(p, b);
}

int64_t blocks_traffic(const struct product *p, const struct blocks *b) {
  const int64_t a = p->extent[0] * p->extent[2] * p->bytes_a, x = p->extent[1] * p->extent[2] * p->bytes_b;
  return b->n_outside ? x + a * divide_up(p->extent[1], b->n * p->tile[1])
                      : a + x * divide_up(p->extent[0], b->m * p->tile[0]);
}

/* The traffic in units of bytes that are copied: DMA moves a transposed byte in about one and a half times the time. */
static int64_t cost(const struct product *p, const struct blocks *b) {
  const int64_t a = p->extent[0] * p->extent[2] * p->bytes_a;
  const int64_t loads = b->n_outside ? divide_up(p->extent[1], b->n * p->tile[1]) : 1;
  return blocks_traffic(p, b) + (p->turns_a ? loads * a / 2 : 0);
}

enum room { ROOM_ROTATING, ROOM_SINGLE, ROOM_COUNT };

static bool fits(const struct product *p, const struct blocks *b, enum room room) {
  const int64_t one = blocks_bytes(p, b);
  if (room == ROOM_SINGLE)
    return one <= p->sbuf / 5 * 4;
  /* what is loaded only once needs no second copy */
  const bool is_whole = b->n_outside ? b->n >= tiles(p, 1) : b->m >= tiles(p, 0);
  const int64_t kept = b->n_outside ? b_bytes(p, b) : a_bytes(p, b);
  return one <= p->sbuf / 2 && 2 * one - (is_whole ? kept : 0) <= p->sbuf - KEPT_FREE;
}

static bool is_better(const struct product *p, const struct blocks *x, const struct blocks *y) {
  const int64_t a = cost(p, x), b = cost(p, y);
  return a != b ? a < b : blocks_bytes(p, x) < blocks_bytes(p, y);
}

struct blocks blocks_choose(const struct product *p) {
  struct blocks best = {0};
  for (int room = 0; room < ROOM_COUNT && !best.m; room++)
    for (int outside = 0; outside < 2; outside++)
      for (int64_t n = tiles(p, outside); n > 0; n--) {
        const struct blocks b = {outside ? 1 : n, outside ? n : 1, outside};
        if (tiles(p, outside) % n || !fits(p, &b, (enum room)room) || (best.m && !is_better(p, &b, &best)))
          continue;
        best = b;
      }
  return best;
}
