/* deferred: transfers from HBM to SBUF that have happened, but whose bytes have not been moved yet.
 *
 *     dma_copy   sbuf <- x[128 rows]       sbuf's elements count as written; its bytes are still those before
 *     activation y <- exp(sbuf)            reads the rows of x
 *
 * What reads the destination reads the source instead.  Most tiles are loaded, read once or twice and then replaced by
 * the next ones, so that half of all data is never moved at all.  The values are those of a transfer that was carried
 * out at once, because it is carried out before anything can tell the difference:
 *
 *     the destination, or what shares bytes with it, is written, or what shares bytes with it is read;
 *     the source is written or released;
 *     an instruction reads the destination in a way that the rows of the source do not allow, or a product reads it,
 *         which goes through an operand many times and is faster on a compact one.
 *
 * It is forgotten when all of the destination is overwritten, released or allocated again.  A destination is all of a
 * buffer, or of one of its copies, so that finding one takes a comparison of two numbers. */
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
    memcpy(d->to + p * d->to_step, d->from + p * d->from_step, (size_t)d->row);
  forget(m, k);
}

/* ---- deferring --------------------------------------------------------------------------------------------------- */

/* x is all of a copy of its buffer, partition by partition. */
static bool is_whole(const struct sim_machine *m, const struct sim_access *x) {
  const struct sim_buffer *b = &m->program->buffers[x->buffer];
  const int64_t row = x->o->elements * x->size;
  return !x->start && sim_plain(x) >= 0 && x->o->partitions == b->dims[0] && row * x->o->partitions == b->bytes &&
         (x->o->partitions == 1 || x->o->dim[0].step == row);
}

static int64_t row_bytes(const struct sim_buffer *b) {
  return b->dims[0] ? b->bytes / b->dims[0] : 0;
}

/* The first byte of the copy's place in each partition of SBUF; -1 if it has none there. */
static int64_t column_of(const struct sim_machine *m, int buffer, int64_t copy) {
  const struct sim_buffer *b = &m->program->buffers[buffer];
  return b->space == MEM_SBUF && b->place.is_set ? b->place.offset + copy * b->place.stride : -1;
}

bool sim_defer(struct sim_machine *m, const struct sim_access *dst, const struct sim_access *src, bool *is_done) {
  const struct sim_buffer *buffers = m->program->buffers;
  const int64_t row = dst->o->elements * dst->size;
  *is_done = m->instr->kind == NISA_DMA_COPY && src->buffer >= 0 && dst->type == src->type &&
             row * dst->o->partitions >= BYTES_MIN && buffers[dst->buffer].space == MEM_SBUF &&
             !mem_is_on_chip(buffers[src->buffer].space) && is_whole(m, dst) && sim_plain(src) >= 0;
  if (!*is_done)
    return true;
  if (!sim_check_plain(m, src))
    return *is_done = false;
  sim_mark_plain(dst);
  if (m->n_deferred == SIM_DEFERRED)
    carry_out(m, 0);
  m->deferred[m->n_deferred++] = (struct sim_deferred){.buffer = dst->buffer,
                                                       .copy = dst->copy,
                                                       .to = dst->at,
                                                       .from = src->at,
                                                       .to_step = dst->dim[0].step,
                                                       .from_step = src->dim[0].step,
                                                       .rows = dst->o->partitions,
                                                       .row = row,
                                                       .column = column_of(m, dst->buffer, dst->copy)};
  return true;
}

/* ---- reading ----------------------------------------------------------------------------------------------------- */

static bool is_destination(const struct sim_deferred *d, int buffer, int64_t copy) {
  return d->buffer == buffer && d->copy == copy;
}

/* Another copy or another buffer whose place has columns of d's. */
static bool shares_columns(const struct sim_machine *m, const struct sim_deferred *d, int buffer, int64_t copy) {
  const struct sim_buffer *b = &m->program->buffers[buffer];
  const int64_t column = d->column < 0 ? -1 : column_of(m, buffer, copy);
  return column >= 0 && column < d->column + d->row && d->column < column + row_bytes(b);
}

/* True if each step of the operand goes from partition to partition, or stays in one: then it may have other rows. */
static bool keeps_to_rows(const struct sim_access *x, int64_t row) {
  int64_t end = x->start % row + x->size;
  for (int k = 0; k < x->o->n_dims; k++) {
    const struct sim_dim d = x->o->dim[k];
    if (d.step < 0 || (d.step >= row && d.step % row))
      return false;
    end += d.step < row ? (d.n - 1) * d.step : 0;
  }
  return end <= row;
}

void sim_settle_read(struct sim_machine *m, struct sim_access *x) {
  for (int k = 0; k < m->n_deferred;) {
    const struct sim_deferred *d = &m->deferred[k];
    const bool is_of_x = is_destination(d, x->buffer, x->copy);
    if (is_of_x && m->instr->kind != NISA_MATMUL && keeps_to_rows(x, d->row)) {
      x->rows = (struct sim_rows){(char *)(uintptr_t)d->from, d->row, d->from_step};
      x->state = (struct sim_state){.bits = NULL}; /* all of it is written */
      k++;
    } else if (is_of_x || shares_columns(m, d, x->buffer, x->copy)) {
      carry_out(m, k);
    } else {
      k++;
    }
  }
}

/* ---- writing ----------------------------------------------------------------------------------------------------- */

/* The instruction overwrites all of x, and reads nothing of SBUF. */
static bool replaces(const struct sim_machine *m, const struct sim_access *x) {
  const struct sim_operand *src = &m->instr->operand[1];
  return m->instr->kind == NISA_DMA_COPY && is_whole(m, x) && src->kind == SIM_ACCESS && src->ref < 0 &&
         m->program->buffers[src->buffer].space != MEM_SBUF;
}

/* The bytes [begin, end) may be some of d's source. */
static bool is_source(const struct sim_deferred *d, const char *begin, const char *end) {
  return begin < d->from + (d->rows - 1) * d->from_step + d->row && d->from < end;
}

void sim_settle_write(struct sim_machine *m, const struct sim_access *x) {
  const char *begin = x->at, *end = x->at + x->size;
  for (int k = 0; k < x->o->n_dims; k++) {
    const int64_t length = (x->dim[k].n - 1) * x->dim[k].step;
    *(length < 0 ? &begin : &end) += length;
  }
  for (int k = 0; k < m->n_deferred;) {
    const struct sim_deferred *d = &m->deferred[k];
    const bool is_of_x = is_destination(d, x->buffer, x->copy);
    if (is_of_x && replaces(m, x))
      forget(m, k);
    else if (is_of_x || shares_columns(m, d, x->buffer, x->copy) || is_source(d, begin, end))
      carry_out(m, k);
    else
      k++;
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
  for (int k = 0; k < m->n_deferred;)
    if (is_destination(&m->deferred[k], buffer, copy))
      forget(m, k);
    else if (shares_columns(m, &m->deferred[k], buffer, copy))
      carry_out(m, k);
    else
      k++;
}

void sim_settle_all(struct sim_machine *m) {
  while (m->n_deferred)
    carry_out(m, 0);
}
