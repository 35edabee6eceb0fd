/* linalg: runs structured operations.
 *
 * One loop, parallel if there is one, is cut into rows of at most ROW elements; the other loops run in order around it.
 * The body is computed for a row at a time: each operand's elements are loaded, each instruction computes a row, and
 * the results are stored.  An output's element receives its contributions in the order of the loops.
 */
#include <string.h>

#include "interp/internal.h"
#include "sim/simd.h"

enum { ROW = 256 };

struct walk {
  struct machine *m;
  const struct instr *in;
  const struct structured *s;
  int64_t extents[HLO_RANK_MAX], index[HLO_RANK_MAX];
  int row_loop;                   /* -1: there are no loops */
  bool has_unwritten;             /* elements of an accumulator may be unwritten */
  char **at;                      /* of each operand's element at `index` */
  int64_t (*steps)[HLO_RANK_MAX]; /* of each operand, for each loop, in elements */
  bool is_fixed[2];               /* of a product's factors (products.c) */
};

static char *row_of(const struct walk *w, int value) {
  return w->m->rows + (size_t)value * ROW * FORM_SIZE;
}

/* ---- set-up ------------------------------------------------------------------------------------------------------ */

/* Sets the place of the first element of operand k, and the steps from it, for a view at `data` with these strides. */
static void find_elements(struct walk *w, int k, char *data, const int64_t *strides) {
  const struct operand *x = &w->s->operands[k];
  memset(w->steps[k], 0, sizeof w->steps[k]);
  w->at[k] = data;
  for (int d = 0; d < x->rank; d++) {
    w->at[k] += x->at[d].constant * strides[d] * (int64_t)dtype_size(x->t);
    for (int l = 0; l < w->s->n_loops; l++)
      w->steps[k][l] += x->at[d].by[l] * strides[d];
  }
}

static bool find_extents(struct walk *w) {
  const struct structured *s = w->s;
  const struct slot *slots = w->m->p->slots;
  for (int l = 0; l < s->n_loops; l++) {
    const struct operand *x = &s->operands[s->extent_operand[l]];
    w->extents[l] = w->m->views[slots[x->slot].view].dims[s->extent_dim[l]];
    w->index[l] = 0;
  }
  for (int k = 0; k < s->n_operands; k++) {
    const struct operand *x = &s->operands[k];
    if (x->rank < 0)
      continue;
    const struct view *v = &w->m->views[slots[x->slot].view];
    find_elements(w, k, v->data, v->strides);
    for (int d = 0; d < x->rank; d++) {
      int64_t low = x->at[d].constant, high = low;
      bool is_empty = false;
      for (int l = 0; l < s->n_loops; l++) {
        const int64_t by = x->at[d].by[l];
        *(by < 0 ? &low : &high) += by * (w->extents[l] - 1);
        is_empty |= w->extents[l] == 0;
      }
      if (!is_empty && (low < 0 || high >= v->dims[d]))
        return machine_fault(w->m, w->in, "reads or writes outside of a buffer");
    }
  }
  return true;
}

/* True if the operation writes each element of the output and reads none. */
static bool fills(const struct walk *w, const struct operand *x) {
  const struct view *v = view_of(w->m, x->slot);
  for (int d = 0; d < x->rank && x->is_all; d++)
    for (int l = 0; l < w->s->n_loops; l++)
      if (x->at[d].by[l] && w->extents[l] != v->dims[d])
        return false;
  return x->is_all && !x->is_read && !w->s->accumulates;
}

/* Gives outputs that are tensors memory. */
static bool make_results(struct walk *w) {
  for (int k = w->s->n_inputs; k < w->s->n_operands; k++) {
    const struct operand *x = &w->s->operands[k];
    const bool is_new = x->is_all && !x->is_read && !w->s->accumulates;
    if (x->init >= 0 && !tensor_begin(w->m, w->in, x->slot, x->init, !is_new))
      return false;
  }
  return true;
}

static bool use_output(struct walk *w, int k) {
  const struct operand *x = &w->s->operands[k];
  if (w->s->accumulates)
    return machine_may_accumulate(w->m, w->in, x->slot, &w->has_unwritten);
  return fills(w, x) ? machine_will_fill(w->m, w->in, x->slot) : machine_may_write(w->m, w->in, x->slot);
}

static bool has_elements(const struct walk *w) {
  for (int l = 0; l < w->s->n_loops; l++)
    if (!w->extents[l])
      return false;
  return true;
}

static bool use_memory(struct walk *w) {
  bool ok = true;
  for (int k = 0; ok && k < w->s->n_operands; k++)
    if (w->s->operands[k].rank >= 0)
      ok = k < w->s->n_inputs ? machine_may_use(w->m, w->in, w->s->operands[k].slot) : use_output(w, k);
  return ok;
}

/* True if the elements of a row of this loop are added, see add_row.  Where they are not neighbours, NumPy adds one after the other, too. */
static bool adds_neighbours(const struct walk *w, int loop) {
  const struct structured *s = w->s;
  bool is_next = s->is_fold && s->code.v[s->code.n - 1].arith.op == A_ADDF && s->operands[s->n_inputs].t == DT_F32;
  for (int k = 0; k < s->n_inputs; k++)
    is_next &= s->operands[k].rank <= 0 || w->steps[k][loop] == 1;
  return is_next;
}

/* The longest parallel loop, preferably one whose elements are adjacent; of equal ones the innermost. */
static void choose_row(struct walk *w) {
  const struct structured *s = w->s;
  int64_t best = -1;
  w->row_loop = -1;
  for (int l = 0; l < s->n_loops; l++) {
    const int64_t n = w->extents[l] < ROW ? w->extents[l] : ROW;
    int64_t worth = 8 * n;
    for (int k = 0; k < s->n_operands; k++)
      worth += s->operands[k].rank > 0 && w->steps[k][l] == 1 ? n : 0;
    if (!s->is_parallel[l] && !adds_neighbours(w, l))
      worth = s->is_fold ? worth / 16 : 0;
    if (worth >= best)
      best = worth, w->row_loop = l;
  }
}

/* ---- one row ----------------------------------------------------------------------------------------------------- */

static bool gather(struct walk *w, const struct instr *in, int n) {
  const int *slots = in->args;
  const struct view *v = &w->m->views[w->m->p->slots[slots[0]].view];
  const enum dtype t = w->s->values[in->results[0]].t;
  const int rank = w->m->p->ranks[w->m->p->slots[slots[0]].view];
  char *out = row_of(w, in->results[0]);
  if (!machine_may_use(w->m, in, slots[0]))
    return false;
  for (int i = 0; i < n; i++) {
    int64_t offset = 0;
    for (int d = 0; d < rank; d++) {
      const int64_t index = ((const int64_t *)(const void *)row_of(w, in->args[1 + d]))[i];
      if (index < 0 || index >= v->dims[d])
        return machine_fault(w->m, in, "reads outside of a buffer");
      offset += index * v->strides[d];
    }
    row_load(t, v->data + offset * (int64_t)dtype_size(t), 1, 1, out + (size_t)i * form_bytes(t));
  }
  return true;
}

static void count(struct walk *w, const struct instr *in, int64_t first, int n) {
  int64_t *out = (int64_t *)(void *)row_of(w, in->results[0]);
  const bool moves = in->index == w->row_loop;
  for (int i = 0; i < n; i++)
    out[i] = moves ? first + i : w->index[in->index];
}

struct apply {
  const struct walk *w;
  const int *args;
  int at; /* the element of the row */
};

static int64_t apply_operand(void *user, int k) {
  const struct apply *a = user;
  return ((const int64_t *)(const void *)row_of(a->w, a->args[k]))[a->at];
}

static void apply(struct walk *w, const struct instr *in, int n) {
  int64_t *out = (int64_t *)(void *)row_of(w, in->results[0]);
  struct apply a = {.w = w, .args = in->args};
  for (; a.at < n; a.at++)
    out[a.at] = machine_affine(in->affine, apply_operand, &a);
}

static bool compute(struct walk *w, int n_code, int64_t first, int n) {
  for (int k = 0; k < n_code; k++) {
    const struct instr *in = &w->s->code.v[k];
    if (in->op == OP_ARITH)
      arith_row(&in->arith, n, row_of(w, in->results[0]), row_of(w, in->args[0]),
                in->n_args > 1 ? row_of(w, in->args[1]) : NULL, in->n_args > 2 ? row_of(w, in->args[2]) : NULL);
    else if (in->op == OP_INDEX)
      count(w, in, first, n);
    else if (in->op == OP_AFFINE_APPLY)
      apply(w, in, n);
    else if (in->op == OP_LOAD && !gather(w, in, n))
      return false;
  }
  return true;
}

/* A sum's order is not a part of its meaning.  One after the other, 4 million f32 elements would have an error of 0.3 %; NumPy
 * adds by pairs, the hardware by partitions. */
static void add_row(const float *x, int n, float *sum) {
  double of_row = 0;
  for (int i = 0; i < n; i++)
    of_row += (double)x[i];
  *sum = (float)((double)*sum + of_row);
}

/* Combines the elements of a row with one output element, one after the other. */
static void fold(struct walk *w, int n, char *to) {
  const struct structured *s = w->s;
  const struct instr *last = &s->code.v[s->code.n - 1];
  const int out = s->n_inputs, other = last->args[0] == out ? last->args[1] : last->args[0];
  const enum dtype t = s->operands[out].t;
  const char *x = row_of(w, other);
  char *sum = row_of(w, out);
  row_load(t, to, 1, 1, sum);
  if (last->arith.op == A_ADDF && t == DT_F32)
    add_row((const float *)(const void *)x, n, (float *)(void *)sum);
  else
    for (int i = 0; i < n; i++, x += form_bytes(t))
      arith_row(&last->arith, 1, sum, last->args[0] == out ? sum : x, last->args[0] == out ? x : sum, NULL);
  row_store(t, to, 1, 1, sum);
}

/* Computes n elements from number `first` of the row on. */
static bool run_row(struct walk *w, int64_t first, int n) {
  const struct structured *s = w->s;
  const int l = w->row_loop;
  const bool folds = l >= 0 && !s->is_parallel[l];
  for (int k = 0; k < s->n_operands; k++) {
    const struct operand *x = &s->operands[k];
    if (!x->is_read || x->rank < 0 || (folds && k >= s->n_inputs))
      continue;
    const int64_t step = l < 0 ? 0 : w->steps[k][l];
    row_load(x->t, w->at[k] + first * step * (int64_t)dtype_size(x->t), step, n, row_of(w, k));
  }
  if (!compute(w, s->code.n - folds, first, n))
    return false;
  if (folds) {
    fold(w, n, w->at[s->n_inputs]);
    return true;
  }
  for (int k = s->n_inputs; k < s->n_operands; k++) {
    const int64_t step = l < 0 ? 0 : w->steps[k][l];
    const enum dtype t = s->operands[k].t;
    row_store(t, w->at[k] + first * step * (int64_t)dtype_size(t), step, n, row_of(w, s->yields[k - s->n_inputs]));
  }
  return true;
}

static bool run_rows(struct walk *w) {
  const bool can_cut = w->row_loop >= 0 && (w->s->is_parallel[w->row_loop] || w->s->is_fold);
  const int most = can_cut ? ROW : 1;
  const int64_t n = w->row_loop < 0 ? 1 : w->extents[w->row_loop];
  for (int64_t k = 0; k < n; k += most) {
    if (w->row_loop >= 0)
      w->index[w->row_loop] = k;
    if (!run_row(w, k, n - k < most ? (int)(n - k) : most))
      return false;
  }
  return true;
}

/* ---- all rows ---------------------------------------------------------------------------------------------------- */

static void move(struct walk *w, int loop, int64_t by) {
  for (int k = 0; k < w->s->n_operands; k++)
    if (w->s->operands[k].rank >= 0)
      w->at[k] += by * w->steps[k][loop] * (int64_t)dtype_size(w->s->operands[k].t);
}

/* Advances the other loops; false at the end. */
static bool advance(struct walk *w) {
  for (int l = w->s->n_loops - 1; l >= 0; l--) {
    if (l == w->row_loop)
      continue;
    if (++w->index[l] < w->extents[l]) {
      move(w, l, 1);
      return true;
    }
    move(w, l, 1 - w->extents[l]);
    w->index[l] = 0;
  }
  return false;
}

static void fill_constants(struct walk *w) {
  const struct structured *s = w->s;
  const int n = w->row_loop < 0 || w->extents[w->row_loop] > ROW ? ROW : (int)w->extents[w->row_loop];
  for (int k = 0; k < s->n_values; k++)
    if (s->values[k].outer >= 0)
      row_fill(s->values[k].t, n, row_of(w, k), &w->m->scalars[s->values[k].outer]);
  for (int k = 0; k < s->n_operands; k++)
    if (s->operands[k].rank < 0)
      row_fill(s->operands[k].t, n, row_of(w, k), &w->m->scalars[s->operands[k].slot]);
  for (int k = 0; k < s->code.n; k++)
    if (s->code.v[k].op == OP_CONSTANT)
      row_fill(s->values[s->code.v[k].results[0]].t, n, row_of(w, s->code.v[k].results[0]), &s->code.v[k].bits);
}

static void run_copy(struct walk *w) {
  const int from = w->s->copied_from, to = w->s->n_inputs;
  interp_copy(dtype_size(w->s->operands[to].t), w->s->n_loops, w->extents, w->at[to], w->steps[to], w->at[from],
              w->steps[from]);
}

/* Writes zeros over the unwritten ones of n f32 elements that lie side by side. */
SIM_PER_MACHINE static void zero_row(char *at, int64_t n) {
  uint32_t *v = (uint32_t *)(void *)at;
  for (int64_t k = 0; k < n; k++)
    v[k] = v[k] == (uint32_t)interp_unwritten ? 0 : v[k];
}

static void zero_elements(char *at, int64_t step, int64_t n, size_t size) {
  for (int64_t k = 0; k < n; k++, at += step * (int64_t)size)
    if (!memcmp(at, &interp_unwritten, size))
      memset(at, 0, size);
}

/* Writes zeros over the elements of the first output that nothing has written. */
static void start_from_zero(struct walk *w) {
  const struct operand *x = &w->s->operands[w->s->n_inputs];
  const struct view *v = view_of(w->m, x->slot);
  const size_t size = dtype_size(x->t);
  const int last = x->rank - 1;
  const int64_t n = x->rank ? v->dims[last] : 1, step = x->rank ? v->strides[last] : 1;
  int64_t index[HLO_RANK_MAX] = {0};
  char *at = v->data;
  for (int d = 0; d >= 0;) {
    if (x->t == DT_F32 && step == 1)
      zero_row(at, n);
    else
      zero_elements(at, step, n, size);
    for (d = last - 1; d >= 0; d--) {
      at += v->strides[d] * (int64_t)size;
      if (++index[d] < v->dims[d])
        break;
      at -= v->dims[d] * v->strides[d] * (int64_t)size;
      index[d] = 0;
    }
  }
}

/* ---- matrix products --------------------------------------------------------------------------------------------- */

static struct sim_matrix matrix(const struct walk *w, int operand, int row_loop, int col_loop) {
  return (struct sim_matrix){w->at[operand], w->extents[row_loop], w->extents[col_loop], w->steps[operand][row_loop],
                             w->steps[operand][col_loop]};
}

/* A factor whose elements lie in memory that does not change is read there. */
static bool use_factor(struct walk *w, int k) {
  struct rows rows;
  w->is_fixed[k] = machine_find_fixed(w->m, w->s->operands[k].slot, &rows);
  if (!w->is_fixed[k])
    return machine_may_use(w->m, w->in, w->s->operands[k].slot);
  const int64_t strides[] = {rows.step / (int64_t)dtype_size(w->s->operands[k].t), 1};
  find_elements(w, k, rows.data, strides);
  return true;
}

static bool use_sum(struct walk *w) {
  if (!use_output(w, 2))
    return false;
  if (w->s->accumulates && w->has_unwritten)
    start_from_zero(w);
  return true;
}

/* Computes a product of matrices whose result is kept, and puts off the copy.  *done: it could. */
static bool run_kept_product(struct walk *w, bool *done) {
  const struct structured *s = w->s;
  const struct operand *x = &s->operands[2];
  const struct view *v = view_of(w->m, x->slot);
  const struct factor a = {matrix(w, 0, 0, 2), w->is_fixed[0]}, b = {matrix(w, 1, 2, 1), w->is_fixed[1]};
  struct factor c = {.is_fixed = false};
  struct rows rows;
  const bool is_zero = s->accumulates && machine_is_zero(w->m, x->slot);
  *done = false;
  if (!w->m->products || !v->block || !parts_rows(v, x->rank, sizeof(float), &rows))
    return true;
  c.is_fixed = machine_is_sum(w->m, x->slot) && machine_find_fixed(w->m, x->slot, &rows);
  if (!is_zero && !c.is_fixed && !use_sum(w))
    return false;
  c.x = matrix(w, 2, 0, 1);
  if (is_zero)
    c.x.data = NULL, c.x.row_stride = c.x.cols;
  if (c.is_fixed)
    c.x.data = rows.data, c.x.row_stride = rows.step / (int64_t)sizeof(float);
  char *data = interp_product(w->m->products, &a, &b, &c, s->product);
  rows = (struct rows){data, c.x.rows, c.x.cols * (int64_t)sizeof(float), c.x.cols * (int64_t)sizeof(float)};
  *done = data && machine_put_off_sum(w->m, x->slot, &rows);
  return true;
}

/* The loops are those of linalg.matmul: rows, columns and the sum's, in a batch after the batch's. */
static bool run_product(struct walk *w) {
  const struct structured *s = w->s;
  const bool is_batched = s->n_loops == 4;
  const int64_t n_batches = is_batched ? w->extents[0] : 1;
  const int m = s->n_loops - 3, n = m + 1, k = m + 2;
  bool done = false;
  if (!use_factor(w, 0) || !use_factor(w, 1) || (!is_batched && !run_kept_product(w, &done)))
    return false;
  if (done)
    return true;
  if (!use_sum(w))
    return false;
  for (int64_t i = 0; i < n_batches; i++) {
    const struct factor a = {matrix(w, 0, m, k), w->is_fixed[0]}, b = {matrix(w, 1, k, n), w->is_fixed[1]};
    const struct sim_matrix c = matrix(w, 2, m, n);
    interp_multiply(w->m->products, &a, &b, &c, s->product);
    if (is_batched)
      move(w, 0, 1);
  }
  return true;
}

bool run_structured(struct machine *m, const struct instr *in) {
  const struct structured *s = in->structured;
  char *at[s->n_operands];
  int64_t steps[s->n_operands][HLO_RANK_MAX];
  struct walk w = {.m = m, .in = in, .s = s, .at = at, .steps = steps};
  if (!make_results(&w) || !find_extents(&w))
    return false;
  if (s->product != DT_NONE && has_elements(&w))
    return run_product(&w);
  if (!use_memory(&w))
    return false;
  if (!has_elements(&w))
    return true;
  if (s->accumulates && w.has_unwritten)
    start_from_zero(&w);
  if (s->is_copy) {
    run_copy(&w);
    return true;
  }
  choose_row(&w);
  fill_constants(&w);
  do {
    if (!run_rows(&w))
      return false;
  } while (advance(&w));
  return true;
}
