/* exec_gather: instructions that move elements to places that a mask or indices give: shuffles, gathers, bounds of segments,
 * places of elements that are not 0, and the largest elements.
 *
 * Each reads all that it needs before it writes, so dst may share memory with a source. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sim/machine.h"
#include "sim/row.h"

enum { QUADRANT = 32, KEEPS = 255, CORE = 16 }; /* partitions of a quadrant, and of a core of GpSimd */

static bool refuse_shape(struct sim_machine *m) {
  return sim_fail(m, SIM_FAULT_INSTRUCTION, "the operands have shapes that do not fit");
}

/* The bits of all elements, partition by partition. */
static bool read_whole(struct sim_machine *m, const struct sim_access *x, char *out) {
  const int64_t n = x->o->elements;
  for (int64_t p = 0; p < x->o->partitions; p++)
    if (!sim_work(m, n) || !sim_read_bits(m, x, p, 0, n, out + p * n * x->size))
      return false;
  return true;
}

/* ---- shuffle ----------------------------------------------------------------------------------------------------- */

/* dst(p) = src(q), where q is in p's quadrant at the place that the mask has for p's. */
bool sim_exec_shuffle(struct sim_machine *m) {
  const struct sim_instr *i = m->instr;
  struct sim_access dst, src;
  void *memory;
  if (!sim_open(m, 0, &dst) || !sim_open(m, 1, &src))
    return false;
  const int64_t n = src.o->elements;
  if (dst.o->elements != n || dst.o->partitions != src.o->partitions || dst.type != src.type)
    return refuse_shape(m);
  if (!sim_scratch(m, (size_t)(src.o->partitions * n * src.size), &memory) || !read_whole(m, &src, memory))
    return false;
  for (int64_t p = 0; p < dst.o->partitions; p++) {
    const int64_t choice = i->shuffle[p % QUADRANT], from = p - p % QUADRANT + choice;
    if (choice == KEEPS)
      continue;
    if (choice < 0 || choice >= QUADRANT || from >= src.o->partitions)
      return refuse_shape(m);
    sim_write_bits(&dst, p, 0, n, (char *)memory + from * n * src.size);
  }
  return true;
}

/* dst(i, j) = src(j, i) */
bool sim_exec_square(struct sim_machine *m) {
  struct sim_access dst, src;
  void *memory;
  if (!sim_open(m, 0, &dst) || !sim_open(m, 1, &src))
    return false;
  const int64_t rows = src.o->partitions, columns = src.o->elements;
  if (dst.o->partitions != columns || dst.o->elements != rows || dst.type != src.type)
    return refuse_shape(m);
  if (!sim_scratch(m, (size_t)((rows + 1) * columns + rows) * (size_t)src.size, &memory) ||
      !read_whole(m, &src, memory))
    return false;
  char *row = (char *)memory + rows * columns * src.size;
  for (int64_t p = 0; p < columns; p++) {
    sim_copy(src.size, row, src.size, (char *)memory + p * src.size, columns * src.size, rows);
    sim_write_bits(&dst, p, 0, rows, row);
  }
  return true;
}

/* ---- gathers ----------------------------------------------------------------------------------------------------- */

struct gather {
  struct sim_access dst, src, index;
  int64_t run;  /* elements that an index stands for */
  char *source; /* all of src, and room for a row of dst after it */
  char *row;
};

static bool open_gather(struct sim_machine *m, struct gather *g, int64_t run) {
  void *memory;
  if (!sim_open(m, 0, &g->dst) || !sim_open(m, 1, &g->src) || !sim_open(m, 2, &g->index))
    return false;
  const int64_t partitions = g->dst.o->partitions, from = partitions * g->src.o->elements * g->src.size;
  g->run = run;
  if (g->src.o->partitions != partitions || g->index.o->partitions != partitions || g->dst.type != g->src.type ||
      run < 1 || g->src.o->elements % run || g->dst.o->elements % run)
    return refuse_shape(m);
  if (!sim_scratch(m, (size_t)(from + g->dst.o->elements * g->dst.size), &memory) || !read_whole(m, &g->src, memory))
    return false;
  g->source = memory;
  g->row = g->source + from;
  return true;
}

/* Copies run `at` of partition p of src to run `to` of the row. */
static bool pick(struct sim_machine *m, struct gather *g, int64_t p, int64_t at, int64_t to) {
  const int64_t bytes = g->run * g->src.size, n = g->src.o->elements / g->run;
  if (at < 0 || at >= n)
    return sim_fail(m, SIM_FAULT_BOUNDS, "src_index: index %lld of partition %lld is outside 0 … %lld", (long long)at,
                    (long long)p, (long long)(n - 1));
  memcpy(g->row + to * bytes, g->source + (p * n + at) * bytes, (size_t)bytes);
  return true;
}

/* dst(p, k) = src(p, src_index(p, k)) */
bool sim_exec_row_gather(struct sim_machine *m) {
  struct gather g;
  int64_t at;
  if (!open_gather(m, &g, 1))
    return false;
  const int64_t n = g.dst.o->elements;
  if (g.index.o->elements != n)
    return refuse_shape(m);
  for (int64_t p = 0; p < g.dst.o->partitions; p++) {
    for (int64_t k = 0; k < n; k++)
      if (!sim_read_int(m, &g.index, g.index.type, p, k, 1, &at) || !pick(m, &g, p, at, k))
        return false;
    if (!sim_work(m, n))
      return false;
    sim_write_bits(&g.dst, p, 0, n, g.row);
  }
  return true;
}

/* Index k of the core that has partition p comes from its partition k % 16, element k / 16. */
bool sim_exec_local_gather(struct sim_machine *m) {
  const struct sim_instr *i = m->instr;
  struct gather g;
  int64_t at;
  if (!open_gather(m, &g, i->index_run))
    return false;
  const int64_t n = i->n_indices, elements = g.dst.o->elements;
  if (elements != n * g.run || g.dst.o->partitions % CORE || n > CORE * g.index.o->elements)
    return refuse_shape(m);
  for (int64_t p = 0; p < g.dst.o->partitions; p++) {
    for (int64_t k = 0; k < n; k++)
      if (!sim_read_int(m, &g.index, g.index.type, p - p % CORE + k % CORE, k / CORE, 1, &at) || !pick(m, &g, p, at, k))
        return false;
    if (!sim_work(m, elements))
      return false;
    sim_write_bits(&g.dst, p, 0, elements, g.row);
  }
  return true;
}

/* ---- segments ---------------------------------------------------------------------------------------------------- */

/* dst(0, 0, k): where the run of equal elements that has element k begins; dst(0, 1, k): where it ends.  0 is padding. */
bool sim_exec_bounds(struct sim_machine *m) {
  struct sim_access dst, src;
  void *memory;
  if (!sim_open(m, 0, &dst) || !sim_open(m, 1, &src))
    return false;
  const int64_t n = src.o->elements;
  if (src.o->partitions != 1 || dst.o->partitions != 1 || dst.o->elements != 2 * n)
    return refuse_shape(m);
  if (!sim_scratch(m, (size_t)(3 * n) * sizeof(float), &memory))
    return false;
  float *ids = memory, *bounds = ids + n;
  for (int64_t f = 0; f < n; f += SIM_CHUNK)
    if (!sim_read_f32(m, &src, 0, f, n - f < SIM_CHUNK ? n - f : SIM_CHUNK, ids + f))
      return false;
  for (int64_t k = 0; k < n; k++)
    bounds[k] = ids[k] == 0 ? (float)n : k && ids[k] == ids[k - 1] ? bounds[k - 1] : (float)k;
  for (int64_t k = n - 1; k >= 0; k--)
    bounds[n + k] = ids[k] == 0 ? -1 : k + 1 < n && ids[k] == ids[k + 1] ? bounds[n + k + 1] : (float)(k + 1);
  for (int64_t f = 0; f < 2 * n; f += SIM_CHUNK)
    sim_write_f32(&dst, 0, f, 2 * n - f < SIM_CHUNK ? 2 * n - f : SIM_CHUNK, bounds + f);
  return true;
}

/* ---- places ------------------------------------------------------------------------------------------------------ */

/* In the first partition of each core: the places of the elements that are not 0, then padding, and last their number. */
bool sim_exec_nonzero(struct sim_machine *m) {
  const struct sim_instr *i = m->instr;
  struct sim_access dst, src;
  void *memory;
  if (!sim_open(m, 0, &dst) || !sim_open(m, 1, &src))
    return false;
  const int64_t n = src.o->elements;
  if (src.o->partitions != dst.o->partitions || dst.o->elements != n + 1)
    return refuse_shape(m);
  if (!sim_scratch(m, (size_t)(n + 1) * (sizeof(int64_t) + sizeof(float)), &memory))
    return false;
  int64_t *places = memory;
  float *row = (void *)(places + n + 1);
  for (int64_t p = 0; p < dst.o->partitions; p += CORE) {
    int64_t found = 0;
    if (!sim_work(m, n) || !sim_read_f32(m, &src, p, 0, n, row))
      return false;
    for (int64_t k = 0; k < n; k++)
      if (row[k] != 0)
        places[found++] = k + i->index_offset;
    for (int64_t k = found; k < n; k++)
      places[k] = i->padding;
    places[n] = found;
    sim_write_int_value(&dst, p, 0, n + 1, places, i->is_unsigned);
  }
  return true;
}

/* ---- the largest elements ---------------------------------------------------------------------------------------- */

struct ranked {
  float value;
  int64_t number;
};

/* The smaller ones first; of equal ones the later; NaN before all. */
static int by_rank(const void *x, const void *y) {
  const struct ranked *a = x, *b = y;
  if (isnan(a->value) || isnan(b->value)) {
    if (!isnan(a->value) || !isnan(b->value))
      return isnan(a->value) ? -1 : 1;
  } else if (a->value != b->value) {
    return a->value < b->value ? -1 : 1;
  }
  return a->number > b->number ? -1 : 1;
}

/* The partition of a group in which element k is: columns go down and up by turns. */
static int64_t snake(int64_t k) {
  const int64_t at = k % CORE;
  return k / CORE % 2 ? CORE - 1 - at : at;
}

bool sim_exec_topk(struct sim_machine *m) {
  struct sim_access dst, index, src;
  void *memory;
  if (!sim_open(m, 0, &dst) || !sim_open(m, 1, &index) || !sim_open(m, 2, &src))
    return false;
  const int64_t columns = src.o->elements, found = dst.o->elements, n = m->instr->n_indices, k = CORE * found;
  if (src.o->partitions % CORE || dst.o->partitions != src.o->partitions || index.o->partitions != src.o->partitions ||
      index.o->elements != found || n < k || n > CORE * columns)
    return refuse_shape(m);
  const size_t rows = (size_t)(CORE * columns) * sizeof(float), ranks = (size_t)n * sizeof(struct ranked);
  if (!sim_scratch(m, ranks + rows + (size_t)found * (sizeof(int64_t) + sizeof(float)), &memory))
    return false;
  struct ranked *ranked = memory;
  int64_t *numbers = (int64_t *)(ranked + n);
  float *values = (void *)(numbers + found), *in = values + found;
  for (int64_t group = 0; group < src.o->partitions; group += CORE) {
    for (int64_t p = 0; p < CORE; p++)
      if (!sim_work(m, columns) || !sim_read_f32(m, &src, group + p, 0, columns, in + p * columns))
        return false;
    for (int64_t i = 0; i < n; i++)
      ranked[i] = (struct ranked){in[snake(i) * columns + i / CORE], i};
    qsort(ranked, (size_t)n, sizeof *ranked, by_rank);
    for (int64_t p = 0; p < CORE; p++) {
      for (int64_t c = 0; c < found; c++) {
        const struct ranked *r = &ranked[n - k + c * CORE + (c % 2 ? CORE - 1 - p : p)];
        values[c] = r->value;
        numbers[c] = r->number;
      }
      sim_write_f32(&dst, group + p, 0, found, values);
      sim_write_int_value(&index, group + p, 0, found, numbers, true);
    }
  }
  return true;
}
