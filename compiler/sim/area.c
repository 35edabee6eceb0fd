/* area: see the header.  Patterns meet exactly, not only by their boxes: engines may write alternate columns. */
#include "sim/area.h"

#include <assert.h>
#include <string.h>

enum { BANK_BYTES = NISA_BANK_F32 * 4 };

/* ---- making ----------------------------------------------------------------------------------------------------- */

int sim_area_buffer(const struct sim_operand *o, const int64_t *regs) {
  return o->ref >= 0 ? (int)regs[o->ref] : o->buffer;
}

int64_t sim_area_copy(const struct sim_program *p, const struct sim_operand *o, const int64_t *regs) {
  const int copies = p->buffers[sim_area_buffer(o, regs)].place.copies;
  const int64_t n = sim_linear_value(&o->copy, regs);
  return copies > 1 ? (n % copies + copies) % copies : 0;
}

/* The bytes of a row of the buffer: of a partition on chip, of everything in HBM. */
static int64_t row_bytes(const struct sim_buffer *b) {
  const bool has_rows = mem_is_on_chip(b->space) && b->rank && b->dims[0] > 0;
  return has_rows ? b->bytes / b->dims[0] : b->bytes;
}

static void add_row(struct sim_area *x, int64_t row) {
  if (row >= 0 && row < NISA_PARTITIONS)
    x->rows[row / 64] |= UINT64_C(1) << row % 64;
}

/* The rows of x and those `by` further on. */
static void add_moved(struct sim_area *x, int64_t by) {
  const uint64_t low = x->rows[0], high = x->rows[1];
  assert(SIM_ROW_WORDS == 2 && by > 0 && by < NISA_PARTITIONS);
  if (by < 64) {
    x->rows[0] |= low << by;
    x->rows[1] |= high << by | low >> (64 - by);
  } else {
    x->rows[1] |= low << (by - 64);
  }
}

/* n times the rows of x, each `step` after the one before. */
static void repeat_rows(struct sim_area *x, int64_t n, int64_t step) {
  for (int64_t have = 1; have < n;) {
    const int64_t more = have < n - have ? have : n - have;
    if (more >= NISA_PARTITIONS || more * step >= NISA_PARTITIONS)
      break;
    add_moved(x, more * step);
    have += more;
  }
}

/* Where the buffer's copy lies: the memory, and its first byte there; *row is its first row. */
static void place(const struct sim_program *p, int buffer, int64_t copy, struct sim_area *x, int64_t *row) {
  const struct sim_buffer *b = &p->buffers[buffer];
  const struct sim_place *at = &b->place;
  *row = 0;
  if (!at->is_set) {
    *x = (struct sim_area){.memory = SIM_MEMORY_BUFFERS + buffer, .from = copy * row_bytes(b)};
    return;
  }
  *x = (struct sim_area){.memory = SIM_MEMORY_SCRATCH, .from = at->offset + copy * at->stride};
  if (b->space == MEM_SBUF) {
    x->memory = b->core ? SIM_MEMORY_SBUF_1 : SIM_MEMORY_SBUF;
    *row = at->partition;
  } else if (b->space == MEM_PSUM) {
    x->memory = b->core ? SIM_MEMORY_PSUM_1 : SIM_MEMORY_PSUM;
    x->from += (int64_t)at->bank * BANK_BYTES;
  }
}

/* The bytes that dimensions k … of the pattern reach over. */
static int64_t span(const struct sim_area *x, int k) {
  int64_t bytes = x->run;
  for (; k < x->n; k++)
    bytes += (x->dim[k].n - 1) * x->dim[k].step;
  return bytes;
}

/* The dimensions of an operand's bytes, the one with the largest step first. */
struct pattern {
  int n;
  struct sim_dim dim[NISA_TILE_MAX + 1];
};

static void add_dim(struct pattern *x, struct sim_dim d) {
  int k = x->n++;
  for (; k && x->dim[k - 1].step < d.step; k--)
    x->dim[k] = x->dim[k - 1];
  x->dim[k] = d;
}

/* The pattern of x: dimensions that continue each other become one, and what still does not fit becomes a run. */
static void merge(const struct pattern *from, struct sim_area *x) {
  int n = from->n;
  for (; n && from->dim[n - 1].step <= x->run; n--)
    x->run += (from->dim[n - 1].n - 1) * from->dim[n - 1].step;
  struct pattern merged = {0};
  for (int k = 0; k < n; k++) {
    struct sim_dim *last = merged.n ? &merged.dim[merged.n - 1] : NULL;
    if (last && last->step == from->dim[k].n * from->dim[k].step)
      *last = (struct sim_dim){last->n * from->dim[k].n, from->dim[k].step};
    else
      merged.dim[merged.n++] = from->dim[k];
  }
  for (; merged.n > SIM_AREA_DIMS; merged.n--, x->is_rough = true)
    x->run += (merged.dim[merged.n - 1].n - 1) * merged.dim[merged.n - 1].step;
  x->n = merged.n;
  memcpy(x->dim, merged.dim, (size_t)merged.n * sizeof *x->dim);
}

/* Adds dimension d of a tile, which goes over rows or over bytes; false if it goes over both. */
static bool add(struct sim_area *x, struct pattern *bytes, struct sim_dim d, int64_t row, bool has_rows) {
  if (d.n == 1 || !d.step)
    return true;
  if (d.step < 0 || (has_rows && d.step > row && d.step % row))
    return false;
  if (has_rows && d.step >= row)
    repeat_rows(x, d.n, d.step / row);
  else
    add_dim(bytes, d);
  return true;
}

/* All bytes of the buffer's copy. */
static void all_of_copy(const struct sim_program *p, int buffer, int64_t copy, struct sim_area *x) {
  const struct sim_buffer *b = &p->buffers[buffer];
  int64_t row;
  place(p, buffer, copy, x, &row);
  add_row(x, row);
  if (mem_is_on_chip(b->space) && b->rank)
    repeat_rows(x, b->dims[0], 1);
  x->run = row_bytes(b);
  x->to = x->from + x->run;
}

void sim_area_of(const struct sim_program *p, const struct sim_instr *i, int k, const int64_t *regs,
                 struct sim_area *out) {
  const struct sim_operand *o = &i->operand[k];
  const int buffer = sim_area_buffer(o, regs);
  const struct sim_buffer *b = &p->buffers[buffer];
  const bool has_rows = mem_is_on_chip(b->space);
  const int64_t copy = sim_area_copy(p, o, regs), row = row_bytes(b), start = sim_linear_value(&o->start, regs);
  bool is_pattern = row > 0 && start >= 0 && start < b->bytes;
  struct pattern bytes = {0};
  int64_t first_row;

  place(p, buffer, copy, out, &first_row);
  const int64_t first = out->from;
  out->run = sim_type_bytes(o->type);
  if (is_pattern) {
    add_row(out, first_row + (has_rows ? start / row : 0));
    out->from += has_rows ? start % row : start;
  }
  for (int d = 0; d < o->n_dims && is_pattern; d++)
    is_pattern = add(out, &bytes, o->dim[d], row, has_rows);
  if (nisa_indirect_operand(i->kind) == k && is_pattern) /* any of the rows that an index can name */
    is_pattern = add(out, &bytes, (struct sim_dim){i->limit, i->index_step}, row, has_rows);
  merge(&bytes, out);
  out->to = out->from + span(out, 0);
  if (!is_pattern || out->to > first + row) {
    all_of_copy(p, buffer, copy, out);
    out->is_rough = true;
  }
}

void sim_area_of_buffer(const struct sim_program *p, int buffer, struct sim_area *out) {
  const struct sim_place *at = &p->buffers[buffer].place;
  all_of_copy(p, buffer, 0, out);
  if (at->copies > 1)
    out->to += (at->copies - 1) * (at->is_set ? at->stride : out->run);
  out->run = out->to - out->from;
}

/* ---- comparing -------------------------------------------------------------------------------------------------- */

static bool boxes_meet(const struct sim_area *x, const struct sim_area *y) {
  if (x->memory != y->memory || x->from >= y->to || y->from >= x->to)
    return false;
  for (int k = 0; k < SIM_ROW_WORDS; k++)
    if (x->rows[k] & y->rows[k])
      return true;
  return false;
}

/* Dimensions k … of x's pattern, which begin at `at`, have a byte in [from, to). */
static bool hits(const struct sim_area *x, int k, int64_t at, int64_t from, int64_t to) {
  const int64_t reach = span(x, k);
  if (at >= to || at + reach <= from)
    return false;
  if (k == x->n || (at >= from && at < to))
    return true;
  /* the positions of this dimension whose bytes can reach [from, to) */
  const int64_t step = x->dim[k].step, inner = span(x, k + 1);
  int64_t first = from - inner < at ? 0 : (from - inner - at) / step + 1, last = (to - 1 - at) / step;
  if (last >= x->dim[k].n)
    last = x->dim[k].n - 1;
  for (; first <= last; first++)
    if (hits(x, k + 1, at + first * step, from, to))
      return true;
  return false;
}

/* Some run of x's dimensions k …, which begin at `at`, meets y. */
static bool runs_hit(const struct sim_area *x, int k, int64_t at, const struct sim_area *y) {
  if (!hits(y, 0, y->from, at, at + span(x, k)))
    return false;
  if (k == x->n)
    return true;
  for (int64_t i = 0; i < x->dim[k].n; i++)
    if (runs_hit(x, k + 1, at + i * x->dim[k].step, y))
      return true;
  return false;
}

static int64_t runs(const struct sim_area *x) {
  int64_t n = 1;
  for (int k = 0; k < x->n; k++)
    n *= x->dim[k].n;
  return n;
}

/* Two patterns of runs with the same step, each run inside its step: they are boxes of a matrix. */
static bool columns_meet(const struct sim_area *x, const struct sim_area *y) {
  const int64_t step = x->dim[0].step, apart = ((y->from - x->from) % step + step) % step;
  return apart < x->run || apart + y->run > step;
}

bool sim_area_meets(const struct sim_area *x, const struct sim_area *y) {
  if (!boxes_meet(x, y))
    return false;
  if (!x->n && !y->n)
    return true;
  if (x->n == 1 && y->n == 1 && x->dim[0].step == y->dim[0].step && !columns_meet(x, y))
    return false;
  return runs(x) <= runs(y) ? runs_hit(x, 0, x->from, y) : runs_hit(y, 0, y->from, x);
}

bool sim_area_covers(const struct sim_area *x, const struct sim_area *y) {
  if (x->is_rough || x->memory != y->memory || x->from > y->from || x->to < y->to)
    return false;
  for (int k = 0; k < SIM_ROW_WORDS; k++)
    if (y->rows[k] & ~x->rows[k])
      return false;
  if (!x->n)
    return true;
  bool is_same = x->from == y->from && x->run == y->run && x->n == y->n;
  for (int k = 0; is_same && k < x->n; k++)
    is_same = x->dim[k].n == y->dim[k].n && x->dim[k].step == y->dim[k].step;
  return is_same;
}
