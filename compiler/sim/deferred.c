/* deferred: transfers from HBM to SBUF that have happened, but whose bytes have not been moved yet.
 *
 *     dma_copy   sbuf <- x[128 rows]       sbuf's elements count as written; its bytes are still those before
 *     activation y <- exp(sbuf)            reads the rows of x
 *
 * What reads the destination reads the source instead.  Most tiles are loaded, read once or twice and then replaced by
 * the next ones, so that half of all data is never moved at all.  The values are those of a transfer that was carried
 * out at once, because it is carried out before anything can tell the difference:
 *
 *     a byte of the destination is written, or read as part of another buffer that has the same place;
 *     the source is written or released;
 *     an instruction reads more than the destination, or in a way that the rows of the source do not allow;
 *     a matmul holds it as its stationary operand, which it reads column by column: that is fast in SBUF only.
 *
 * It is forgotten when all of the destination is overwritten, released or allocated again. */
#include <string.h>

#include "sim/machine.h"

enum { BYTES_MIN = 16 << 10 }; /* of a transfer: a smaller one is moved faster than it is found again */

static void forget(struct sim_machine *m, int k) {
  m->n_deferred--;
  memmove(&m->deferred[k], &m->deferred[k + 1], (size_t)(m->n_deferred - k) * sizeof m->deferred[0]);
}

static void carry_out(struct sim_machine *m, int k) {
  const struct sim_deferred *d = &m->deferred[k];
  for (int64_t p = 0; p < d->rows; p++)
    memcpy(d->to + p * d->to_step, d->from + p * d->from_step, (size_t)d->bytes);
  forget(m, k);
}

/* ---- the rows and columns of operands ---------------------------------------------------------------------------- */

static int64_t row_bytes(const struct sim_buffer *b) {
  return b->dims[0] ? b->bytes / b->dims[0] : 0;
}

/* Bytes byte0 … byte1 - 1 of partitions row0 … row1 - 1 of a buffer in SBUF. */
struct box {
  int64_t row0, row1, byte0, byte1;
};

/* The box around the bytes of x; false if a step of x neither stays in its partition nor leads from one to another. */
static bool find_box(const struct sim_machine *m, const struct sim_access *x, struct box *out) {
  const int64_t row = row_bytes(&m->program->buffers[x->buffer]);
  if (row < 1)
    return false;
  int64_t rows = 1, bytes = x->size;
  for (int k = 0; k < x->o->n_dims; k++) {
    const struct sim_dim d = x->o->dim[k];
    if (d.step < 0 || (d.step >= row && d.step % row))
      return false;
    if (d.step >= row)
      rows += (d.n - 1) * (d.step / row);
    else
      bytes += (d.n - 1) * d.step;
  }
  *out = (struct box){.row0 = x->start / row, .byte0 = x->start % row};
  out->row1 = out->row0 + rows;
  out->byte1 = out->byte0 + bytes;
  return out->byte1 <= row;
}

static bool is_inside(const struct sim_deferred *d, const struct box *b) {
  return b->row0 >= d->row0 && b->row1 <= d->row0 + d->rows && b->byte0 >= d->byte0 && b->byte1 <= d->byte0 + d->bytes;
}

static bool is_apart(const struct sim_deferred *d, const struct box *b) {
  return b->row0 >= d->row0 + d->rows || b->row1 <= d->row0 || b->byte0 >= d->byte0 + d->bytes || b->byte1 <= d->byte0;
}

/* The first byte of the copy's place in each partition of SBUF; -1 if it has none there. */
static int64_t column_of(const struct sim_machine *m, int buffer, int64_t copy) {
  const struct sim_buffer *b = &m->program->buffers[buffer];
  return b->space == MEM_SBUF && b->place.is_set ? b->place.offset + copy * b->place.stride : -1;
}

/* An operand, or all of a copy of a buffer, that is compared with transfers. */
struct touched {
  int buffer;
  int64_t copy, column, end; /* the columns of the copy's place; -1 */
  bool has_box;              /* else it may be any part of the copy */
  struct box box;
};

static struct touched touch_copy(const struct sim_machine *m, int buffer, int64_t copy) {
  struct touched t = {.buffer = buffer, .copy = copy, .column = column_of(m, buffer, copy)};
  t.end = t.column + row_bytes(&m->program->buffers[buffer]);
  return t;
}

static struct touched touch(const struct sim_machine *m, const struct sim_access *x) {
  struct touched t = touch_copy(m, x->buffer, x->copy);
  t.has_box = m->program->buffers[x->buffer].space == MEM_SBUF && find_box(m, x, &t.box);
  return t;
}

/* They may have a byte in common. */
static bool meets(const struct sim_deferred *d, const struct touched *t) {
  if (d->buffer == t->buffer && d->copy == t->copy)
    return !t->has_box || !is_apart(d, &t->box);
  return t->column >= 0 && d->column >= 0 && t->column < d->column + d->bytes && d->column < t->end;
}

/* ---- deferring --------------------------------------------------------------------------------------------------- */

/* x is rows of bytes without gaps, in as many partitions. */
static bool is_box(const struct sim_machine *m, const struct sim_access *x, struct box *out) {
  return sim_plain(x) >= 0 && find_box(m, x, out) && out->row1 - out->row0 == x->o->partitions &&
         out->byte1 - out->byte0 == x->o->elements * x->size;
}

bool sim_defer(struct sim_machine *m, const struct sim_access *dst, const struct sim_access *src, bool *is_done) {
  const struct sim_buffer *buffers = m->program->buffers;
  struct box box;
  *is_done = m->instr->kind == NISA_DMA_COPY && src->buffer >= 0 && dst->type == src->type &&
             dst->o->partitions * dst->o->elements * dst->size >= BYTES_MIN && buffers[dst->buffer].space == MEM_SBUF &&
             !mem_is_on_chip(buffers[src->buffer].space) && is_box(m, dst, &box) && sim_plain(src) > 0;
  if (!*is_done)
    return true;
  if (!sim_check_plain(m, src))
    return *is_done = false;
  sim_mark_plain(dst);
  if (m->n_deferred == SIM_DEFERRED)
    carry_out(m, 0);
  const int64_t column = column_of(m, dst->buffer, dst->copy);
  m->deferred[m->n_deferred++] = (struct sim_deferred){.buffer = dst->buffer,
                                                       .copy = dst->copy,
                                                       .row0 = box.row0,
                                                       .rows = box.row1 - box.row0,
                                                       .byte0 = box.byte0,
                                                       .bytes = box.byte1 - box.byte0,
                                                       .to = dst->at,
                                                       .from = src->at,
                                                       .to_step = dst->dim[0].step,
                                                       .from_step = src->dim[0].step,
                                                       .column = column < 0 ? -1 : column + box.byte0};
  return true;
}

/* ---- reading ----------------------------------------------------------------------------------------------------- */

/* Makes x, which is inside the destination, read the source. */
static void redirect(const struct sim_machine *m, const struct sim_deferred *d, struct sim_access *x) {
  const uintptr_t before = (uintptr_t)(d->row0 * d->from_step + d->byte0); /* from the buffer's first byte on */
  x->rows = (struct sim_rows){(char *)((uintptr_t)d->from - before), row_bytes(&m->program->buffers[x->buffer]),
                              d->from_step};
  x->state = (struct sim_state){.bits = NULL}; /* all of it is written */
}

void sim_settle_read(struct sim_machine *m, struct sim_access *x) {
  const struct touched t = touch(m, x);
  const bool is_stationary = m->instr->kind == NISA_MATMUL && x->o == &m->instr->operand[1];
  for (int k = 0; k < m->n_deferred;) {
    const struct sim_deferred *d = &m->deferred[k];
    if (!meets(d, &t)) {
      k++;
    } else if (d->buffer == x->buffer && d->copy == x->copy && t.has_box && is_inside(d, &t.box) && !is_stationary) {
      redirect(m, d, x);
      return; /* nothing else meets it: a later transfer to the same bytes would have ended this one */
    } else {
      carry_out(m, k);
    }
  }
}

/* ---- writing ----------------------------------------------------------------------------------------------------- */

/* The instruction overwrites all of d's destination, and reads nothing of SBUF.  */
static bool replaces(const struct sim_machine *m, const struct sim_access *dst, const struct sim_deferred *d) {
  const struct sim_operand *src = &m->instr->operand[1];
  struct box box;
  return m->instr->kind == NISA_DMA_COPY && d->buffer == dst->buffer && d->copy == dst->copy &&
         src->kind == SIM_ACCESS && src->ref < 0 && m->program->buffers[src->buffer].space != MEM_SBUF &&
         is_box(m, dst, &box) && box.row0 <= d->row0 && d->row0 + d->rows <= box.row1 && box.byte0 <= d->byte0 &&
         d->byte0 + d->bytes <= box.byte1;
}

/* The bytes [begin, end) may be some of d's source. */
static bool is_source(const struct sim_deferred *d, const char *begin, const char *end) {
  return begin < d->from + (d->rows - 1) * d->from_step + d->bytes && d->from < end;
}

void sim_settle_write(struct sim_machine *m, const struct sim_access *x) {
  const struct touched t = touch(m, x);
  const char *begin = x->at, *end = x->at + x->size;
  for (int k = 0; k < x->o->n_dims; k++) {
    const int64_t length = (x->dim[k].n - 1) * x->dim[k].step;
    *(length < 0 ? &begin : &end) += length;
  }
  for (int k = 0; k < m->n_deferred;) {
    const struct sim_deferred *d = &m->deferred[k];
    if (!meets(d, &t) && !is_source(d, begin, end))
      k++;
    else if (replaces(m, x, d))
      forget(m, k);
    else
      carry_out(m, k);
  }
}

/* ---- lives of buffers -------------------------------------------------------------------------------------------- */

void sim_settle_drop(struct sim_machine *m, int buffer) {
  const struct sim_buffer *b = &m->program->buffers[buffer];
  const char *begin = m->memories[buffer].data;
  const int copies = b->place.copies > 1 ? b->place.copies : 1;
  for (int k = 0; k < m->n_deferred;) {
    const struct sim_deferred *d = &m->deferred[k];
    if (d->buffer == buffer)
      forget(m, k);
    else if (is_source(d, begin, begin + b->bytes * copies))
      carry_out(m, k);
    else
      k++;
  }
}

void sim_settle_place(struct sim_machine *m, int buffer, int64_t copy) {
  const struct touched t = touch_copy(m, buffer, copy);
  for (int k = 0; k < m->n_deferred;)
    if (!meets(&m->deferred[k], &t))
      k++;
    else if (m->deferred[k].buffer == buffer && m->deferred[k].copy == copy)
      forget(m, k);
    else
      carry_out(m, k);
}

void sim_settle_all(struct sim_machine *m) {
  while (m->n_deferred)
    carry_out(m, 0);
}
