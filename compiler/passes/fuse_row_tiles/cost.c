/* cost: how much of a group fits into SBUF at a time, and what fusing it saves.  See fuse_row_tiles.c. */
#include <inttypes.h>

#include "nisa/nisa.h"
#include "passes/fuse_row_tiles/fuse_row_tiles.h"

/* The loop's buffers may take this part of SBUF: the rest is for whole values. */
enum { SBUF_SHARE_NUMERATOR = 3, SBUF_SHARE_DENOMINATOR = 4 };
/* Rounds whose buffers have room at the same time, so that one is loaded while another is computed. */
enum { ROUNDS = 2 };
/* A longer row is cut where nothing needs it whole: 16 KiB of each partition are 2 MiB, for which a DMA takes its full
 * rate.  A shorter piece than 2 KiB of each partition costs rate. */
enum { PIECE_MOST = 16 << 10, PIECE_ROOMY = 4 << 10, PIECE_LEAST = 2 << 10 };
/* Bytes of each partition for which an instruction takes longer than one engine waits for another one. */
enum { JAM_PIECE_MOST = 8 << 10 };

static int64_t element_bytes(MlirValue v) {
  return nisa_element_bytes(mlirShapedTypeGetElementType(mlirValueGetType(v)));
}

/* The bytes of one row of v, in one plane. */
static int64_t row_bytes(MlirValue v, int row_dim) {
  int64_t dims[STRUCTURED_LOOPS_MAX], n = element_bytes(v);
  const int rank = ir_shape(v, STRUCTURED_LOOPS_MAX, dims);
  for (int d = row_dim + 1; d < rank; d++)
    n *= dims[d];
  return n;
}

/* The same of a member's result. */
static int64_t result_bytes(const struct fuse_member *m) {
  MlirValue out = ir_result(m->node->op);
  return fuse_turns_out(m) ? m->s.extents[m->column_loop] * element_bytes(out) : row_bytes(out, m->row_dim);
}

/* A value that the loop has in SBUF for a while: the numbers of the first and the last member that use it. */
struct span {
  int first, last;
  int64_t bytes;
};

/* Adds up the spans; returns the most that is in use at a time. */
static int64_t most_in_use(struct arena *a, int n_members, int n, const struct span *v) {
  int64_t *change = arena_new_array(a, int64_t, (size_t)n_members + 2), now = 0, most = 0;

  for (int i = 0; i < n; i++) {
    change[v[i].first] += v[i].bytes;
    change[v[i].last + 1] -= v[i].bytes;
  }
  for (int i = 0; i < n_members; i++) {
    now += change[i];
    most = now > most ? now : most;
  }
  return most;
}

static bool is_in_sbuf(MlirValue v) {
  return layout_read(v).space == MEM_SBUF;
}

/* True if every row reads the same: legalize-layout loads it before the loop. */
static bool is_kept(const struct fuse_member *m, int o) {
  return fuse_is_one_row(m, o) || fuse_is_same_in_rows(m, o);
}

/* Notes that member i reads its operand o.  known: value -> its span. */
static void note_read(struct fuse_group *g, struct table *known, struct span *spans, int *n, int i, int o) {
  MlirValue v = mlirOperationGetOperand(g->v[i]->node->op, o);
  if (g->v[i]->takes_columns) {
    const int64_t all = row_bytes(ir_result(g->v[i]->node->op), g->n_planes) * g->rows * g->planes;
    spans[(*n)++] = (struct span){i, i, fuse_taken_bytes(g->v[i])};
    g->moved += all;
    g->moved_alone += all;
    return;
  }
  const struct fuse_window *w = fuse_window_of(g, v);
  const void *tile = w ? (void *)w->cover : v.ptr;
  struct span *s = table_get(known, tile);

  if (!is_in_sbuf(v))
    g->moved_alone += row_bytes(v, g->n_planes) * (is_kept(g->v[i], o) ? g->tile : g->rows * g->planes);
  if (s) {
    s->last = i;
    return;
  }
  s = &spans[(*n)++];
  *s = (struct span){i, i, w ? w->cover->elements * element_bytes(v) : row_bytes(v, g->n_planes)};
  table_put(known, tile, s);
  if (is_kept(g->v[i], o)) {
    g->kept_bytes += s->bytes;
    g->moved += s->bytes * g->tile;
    s->bytes = 0;
  } else if (is_in_sbuf(v)) {
    s->bytes = 0;
  } else {
    g->moved += s->bytes * g->rows * g->planes;
  }
}

/* Sums the bytes that are in use at a time, and those that move between HBM and SBUF. */
static void add_up(struct fuse_block *b, struct fuse_group *g) {
  struct arena *a = b->run->arena;
  struct table known = {.arena = a};
  size_t most = 0;
  int n = 0;

  g->all_bytes = g->kept_bytes = g->moved = g->moved_alone = 0;
  for (int i = 0; i < g->n; i++)
    most += (size_t)g->v[i]->s.n_inputs + 1;
  struct span *spans = arena_new_array(a, struct span, most);
  for (int i = 0; i < g->n; i++) {
    const struct fuse_member *m = g->v[i];
    MlirValue out = ir_result(m->node->op);
    for (int o = 0; o < m->s.n_inputs; o++) {
      MlirValue v = mlirOperationGetOperand(m->node->op, o);
      if (mlirTypeIsARankedTensor(mlirValueGetType(v)))
        note_read(g, &known, spans, &n, i, o);
    }
    spans[n] = (struct span){i, i, result_bytes(m)};
    table_put(&known, out.ptr, &spans[n++]);
    const int64_t stored = m->at.space == MEM_SBUF ? 0 : result_bytes(m) * g->rows * g->planes;
    g->moved_alone += stored;
    g->moved += fuse_leaves(b, g, out) ? stored : 0;
  }
  g->row_bytes = most_in_use(a, g->n, n, spans);
  for (int i = 0; i < n; i++)
    g->all_bytes += spans[i].bytes;
}

/* Sets the longest last dimension.  Returns false if a member has another one that is not 1: then one iteration has
 * whole rows. */
static bool find_columns(struct fuse_group *g) {
  bool are_alike = true;

  for (int i = 0; i < g->n; i++) {
    const int64_t last = g->v[i]->s.extents[g->v[i]->column_loop];
    g->columns = last > g->columns ? last : g->columns;
  }
  for (int i = 0; i < g->n; i++) {
    const struct fuse_member *m = g->v[i];
    const int64_t last = m->s.extents[m->column_loop];
    are_alike &= m->s.n_loops == 2 && (last == g->columns || last == 1);
    for (int o = 0; o <= m->s.n_inputs; o++)
      are_alike &= mlirAffineMapGetNumResults(m->s.maps[o]) <= 2;
  }
  return are_alike;
}

/* The middle dimension that rows can be cut along although their last ones are needed whole; see fuse_row_tiles.h. */
enum { MIDDLE = 1 };

/* True if the operand, or the result, has loop MIDDLE in dimension MIDDLE only, and in this either all of it or one element. */
static bool has_middle_in_place(const struct fuse_member *m, int o) {
  const MlirAffineMap map = m->s.maps[o];
  MlirValue v = mlirOperationGetOperand(m->node->op, o);

  if (!mlirTypeIsARankedTensor(mlirValueGetType(v)))
    return true;
  for (int d = 0; d < mlirAffineMapGetNumResults(map); d++)
    if ((d == MIDDLE) != (structured_map_loop(map, d) == MIDDLE) &&
        (d != MIDDLE || mlirShapedTypeGetDimSize(mlirValueGetType(v), d) != 1))
      return false;
  return mlirAffineMapGetNumResults(map) > MIDDLE;
}

/* True if each member computes every part of dimension MIDDLE from the same part, or from one that is for all of them. */
static bool has_middle(const struct fuse_group *g) {
  for (int i = 0; i < g->n; i++) {
    const struct fuse_member *m = g->v[i];
    if (m->row_dim || fuse_turns(m) || m->s.n_loops <= MIDDLE + 1 || m->s.reduction[MIDDLE] ||
        m->s.extents[MIDDLE] != g->v[0]->s.extents[MIDDLE])
      return false;
    for (int o = 0; o <= m->s.n_inputs; o++)
      if (!has_middle_in_place(m, o))
        return false;
  }
  return true;
}

/* The bytes of a row of what is the same for all parts of dimension MIDDLE. */
static int64_t bytes_for_all_parts(const struct fuse_group *g) {
  int64_t n = 0;
  for (int i = 0; i < g->n; i++)
    for (int o = 0; o < g->v[i]->s.n_inputs; o++) {
      MlirValue v = mlirOperationGetOperand(g->v[i]->node->op, o);
      if (mlirTypeIsARankedTensor(mlirValueGetType(v)) && mlirShapedTypeGetDimSize(mlirValueGetType(v), MIDDLE) == 1)
        n += row_bytes(v, 0);
    }
  return n;
}

/* True if there is room for so many tiles side by side, each of a part of the columns. */
static bool fits(const struct fuse_block *b, const struct fuse_group *g, int64_t pieces, int jam) {
  const int64_t room = nisa_machine(b->run->target)->sbuf_bytes / SBUF_SHARE_DENOMINATOR * SBUF_SHARE_NUMERATOR;
  return (g->row_bytes + pieces - 1) / pieces * ROUNDS * jam + g->kept_bytes <= room;
}

/* True if each value has buffers of its own for two rounds with as many tiles side by side as pay: then engines that share
 * the work do not wait for memory. */
static bool is_roomy(const struct fuse_block *b, const struct fuse_group *g, int64_t pieces) {
  const int64_t room = nisa_machine(b->run->target)->sbuf_bytes / SBUF_SHARE_DENOMINATOR * SBUF_SHARE_NUMERATOR;
  return (g->all_bytes + pieces - 1) / pieces * ROUNDS * FUSE_JAM_MAX + g->kept_bytes <= room;
}

/* True if most values of the loop come from no transfer and go to none: then engines, not transfers, take the time. */
static bool computes_more(const struct fuse_group *g) {
  return g->all_bytes * g->rows * g->planes > 2 * g->moved;
}

/* The bytes of an element of the group's widest type. */
static int64_t widest(const struct fuse_group *g) {
  int64_t most = 1;
  for (int i = 0; i < g->n; i++)
    for (int o = 0; o <= g->v[i]->s.n_inputs; o++) {
      MlirValue v = mlirOperationGetOperand(g->v[i]->node->op, o);
      const int64_t n = mlirTypeIsARankedTensor(mlirValueGetType(v)) ? element_bytes(v) : 1;
      most = n > most ? n : most;
    }
  return most;
}

/* Returns how many tiles of rows, or planes, are computed side by side.  The engines execute their instructions in order, so that an
 * engine waits while another one computes what it reads next; with two tiles it computes the other one in the
 * meantime.  Without a reduction a long row is longer than such a wait. */
static int jam_of(const struct fuse_block *b, const struct fuse_group *g, int64_t pieces, int64_t width) {
  const int64_t tiles = fuse_jams_planes(g) ? g->v[0]->s.extents[g->n_planes - 1] : (g->rows + g->tile - 1) / g->tile;
  int jam = 1;

  if (!g->has_reduction && g->cut * width > JAM_PIECE_MOST)
    return 1;
  while (jam < FUSE_JAM_MAX && jam < tiles && fits(b, g, pieces, jam + 1))
    jam++;
  return jam;
}

/* The largest divisor of n from most / 2 on up to most; most if there is none. */
static int64_t part_of(int64_t n, int64_t most) {
  for (int64_t part = most; part > most / 2; part--)
    if (n % part == 0)
      return part;
  return most;
}

/* Cuts rows that do not fit along dimension MIDDLE, into pieces that instructions of a usual length compute.  Returns false if that is
 * not possible. */
static bool cut_middle(const struct fuse_block *b, struct fuse_group *g, int64_t width) {
  if (!has_middle(g))
    return false;
  const int64_t extent = g->v[0]->s.extents[MIDDLE], kept = g->kept_bytes,
                for_all = ROUNDS * FUSE_JAM_MAX * bytes_for_all_parts(g);
  int64_t inner = width; /* the bytes of a row in one place of dimension MIDDLE */
  for (int l = MIDDLE + 1; l < g->v[0]->s.n_loops; l++)
    inner *= g->v[0]->s.extents[l];
  int64_t most = JAM_PIECE_MOST / inner < extent / 2 ? JAM_PIECE_MOST / inner : extent / 2;
  for (most = most > 1 ? most : 1; most; most /= 2) {
    const int64_t cut = part_of(extent, most), pieces = extent / cut;
    g->kept_bytes = (kept + pieces - 1) / pieces * ROUNDS + for_all;
    if (pieces < 2 || !fits(b, g, pieces, 1))
      continue;
    for (int i = 0; i < g->n; i++)
      g->v[i]->column_loop = MIDDLE;
    g->columns = extent;
    g->cut = cut;
    return true;
  }
  g->kept_bytes = kept;
  return false;
}

void fuse_weigh(struct fuse_block *b, struct fuse_group *g) {
  fuse_find_windows(b, g);
  add_up(b, g);
  const bool can_cut = find_columns(g) && !g->has_reduction;
  const int64_t width = widest(g);
  const bool is_middle = !can_cut && !fits(b, g, 1, 1) && cut_middle(b, g, width);
  int64_t pieces = is_middle ? g->columns / g->cut : 1;

  while (can_cut && g->columns / (pieces + 1) * width >= PIECE_LEAST &&
         (!fits(b, g, pieces, 1) || g->columns * width > PIECE_MOST * pieces))
    pieces++;
  while (can_cut && computes_more(g) && g->columns / (pieces + 1) * width >= PIECE_ROOMY && !is_roomy(b, g, pieces))
    pieces++;
  if (!is_middle)
    g->cut = (g->columns + pieces - 1) / pieces;
  for (int64_t p = pieces; can_cut && p < 2 * pieces && g->columns / p * width >= PIECE_LEAST; p++)
    if (g->columns % p == 0) { /* equal pieces, if there are some of about this size */
      g->cut = g->columns / p;
      break;
    }
  if (g->has_transpose && g->cut < g->columns) /* the Tensor engine transposes whole blocks */
    g->cut = g->cut < NISA_PARTITIONS ? NISA_PARTITIONS : g->cut / NISA_PARTITIONS * NISA_PARTITIONS;
  if (g->cut < g->columns && g->n_covers) { /* pieces of rows have no windows */
    fuse_forget_windows(b, g);
    add_up(b, g);
  }
  g->jam = jam_of(b, g, pieces, width);
  bool keeps = false, is_single = true, has_windows = false;
  for (int i = 0; i < g->n; i++)
    is_single &= g->v[i]->is_single;
  for (int k = 0; k < g->n_covers; k++)
    has_windows |= g->covers[k].pays;
  for (int i = 0; i < g->n; i++)
    for (int o = 0; o < g->v[i]->s.n_inputs; o++)
      keeps |= fuse_is_same_in_rows(g->v[i], o);
  if (is_single && !has_windows)
    g->why_not = "";
  else if (g->n < 2 && !keeps && !g->has_reduction) /* a reduction's accumulator stays in SBUF in a loop over rows */
    g->why_not = "";
  else if (!g->moved_alone && !g->has_reduction)
    g->why_not = "its operands and its values are in SBUF anyhow";
  else if (!fits(b, g, pieces, 1))
    g->why_not = arena_printf(b->run->arena,
                              "%d tiles of whole rows, %" PRId64 " elements in the last dimension, take %" PRId64
                              " bytes of a partition, more than three quarters of SBUF",
                              ROUNDS, g->columns, g->row_bytes * ROUNDS + g->kept_bytes);
}
