/* plan: chooses the blocks of an attention.
 *
 * If the scores of 128 queries, with all values that are computed from them, fit into SBUF, a block has all keys: each
 * reduction is complete before the next operation starts, and nothing is scaled again.  Otherwise the keys are in blocks,
 * and the largest score, the sum and the accumulated result of a row run along (running.c); for every block of keys that
 * costs about 2 * width + 512 cycles of the vector engine more.
 *
 * A block has two tiles of 128 queries, if both fit: while the tensor engine computes one, the other engines work on the other
 * one.  More would need more banks of PSUM than there are, and wait for each other.  Where a batch has one tile, a block is that of
 * two batches, if both fit and if their number is even.
 *
 * A constant by which all scores are multiplied multiplies the keys instead if they are kept: once for each batch.
 */
#include "mlir-c/BuiltinTypes.h"

#include "nisa/nisa.h"
#include "passes/flash_attention/rewrite.h"

enum {
  STEP_LEAST = 512, /* keys: the columns of a PSUM bank */
  STEP_MOST = 2048,
  SMALL_STEPS = 5,    /* operations on one column: a difference, exp, two products, a maximum */
  SMALL_CYCLES = 128, /* of each of these, with its start */
};

static int64_t bytes_of(MlirValue v) {
  return nisa_element_bytes(ir_value_element(v));
}

static int64_t ceil_div(int64_t x, int64_t y) {
  return (x + y - 1) / y;
}

/* Bytes in a partition of what is computed from the scores of 128 queries and so many keys. */
static int64_t block_bytes(const struct attention *a, int64_t keys, int64_t width) {
  const MlirValue weights = mlirOperationGetOperand(a->mixed.op, 0);
  int64_t tile = rewrite_free_tile(keys), row = ceil_div(keys, tile) * tile, each = bytes_of(ir_result(a->scores.op));

  for (int k = 0; k < a->n; k++)
    each += a->member[k].is_row ? 0 : bytes_of(ir_result(a->member[k].op));
  each += bytes_of(weights); /* transposed */
  return row * each + width * bytes_of(ir_result(a->mixed.op)) * (2 + a->n_epilogue);
}

static bool is_multiple(int64_t x, int64_t y) {
  return x % y == 0;
}

/* Returns how many times 128 queries a block has, 0 if 128 do not fit into `room`. */
static int64_t choose_rows(int64_t queries, int64_t bytes, int64_t room) {
  const int64_t n = ceil_div(queries, NISA_PARTITIONS);
  int64_t most = rewrite_min(rewrite_min(ATTENTION_TILES_MAX, n), room / bytes), best = most;

  while (best > 1 && !is_multiple(n, best))
    best--;
  return best > 1 ? best : most;
}

/* Two batches of one tile each may be computed beside each other. */
static bool can_pair(const struct attention *a, const struct attention_plan *p, int64_t sbuf) {
  const struct product *m = &a->mixed;
  if (!m->n_batch || p->rows < p->queries || p->rows > NISA_PARTITIONS || p->step < p->keys)
    return false;
  const int64_t batches = m->s.extents[structured_map_loop(m->s.maps[2], m->n_batch - 1)];
  return is_multiple(batches, ATTENTION_TILES_MAX) && ATTENTION_TILES_MAX * p->bytes <= sbuf * 3 / 4;
}

/* True if x multiplies its only operand, element by element, by a constant. */
static bool multiplies_by_constant(const struct member *x) {
  if (!ir_is(x->op, "linalg.generic") || x->s.n_inputs != 1 || x->is_row || x->s.kind == SK_REDUCTION)
    return false;
  MlirBlock body = ir_body(x->op);
  MlirOperation first = mlirBlockGetFirstOperation(body), end = mlirBlockGetTerminator(body);
  return ir_is(first, "arith.mulf") && mlirOperationEqual(mlirOperationGetNextInBlock(first), end) &&
         mlirValueEqual(mlirOperationGetOperand(first, 0), mlirBlockGetArgument(body, 0)) &&
         !mlirAttributeIsNull(ir_constant(mlirOperationGetOperand(first, 1)));
}

/* The only member that reads the scores, if it multiplies them by a constant; -1: there is none.  Of f32: to round the keys once more
 * loses no more than the sums of the products do. */
static int find_scale_of_f32(const struct attention *a) {
  int scale = -1;

  for (int k = 0; k < a->n; k++)
    for (int o = 0; o < a->member[k].s.n_inputs; o++) {
      if (!mlirOperationEqual(ir_defining_op(mlirOperationGetOperand(a->member[k].op, o)), a->scores.op))
        continue;
      if (scale >= 0 || !multiplies_by_constant(&a->member[k]) ||
          !mlirTypeIsAF32(ir_value_element(ir_result(a->member[k].op))))
        return -1;
      scale = k;
    }
  return scale;
}

/* The member that multiplies scores of the keys' own type, which is shorter than f32.  The scores were rounded to it before, so
 * that to round the keys instead loses no more. */
static int find_scale_of_short(const struct attention *a, MlirType keys) {
  int n_readers = 0, scale = -1;

  for (int k = 0; k < a->n; k++)
    for (int o = 0; o < a->member[k].s.n_inputs; o++) {
      MlirValue v = mlirOperationGetOperand(a->member[k].op, o);
      const struct member *from = attention_member(a, v);
      if (mlirOperationEqual(ir_defining_op(v), a->scores.op))
        n_readers++;
      else if (from && !from->is_row && from->s.n_inputs == 1 && from->s.kind != SK_BROADCAST &&
               mlirOperationEqual(ir_defining_op(mlirOperationGetOperand(from->op, 0)), a->scores.op) &&
               !multiplies_by_constant(from)) {
        n_readers++;
        scale = multiplies_by_constant(&a->member[k]) ? k : -1;
      }
    }
  if (n_readers != 2 || scale < 0 ||
      !mlirTypeEqual(ir_value_element(mlirOperationGetOperand(a->member[scale].op, 0)), keys) ||
      !mlirTypeEqual(ir_value_element(ir_result(a->member[scale].op)), keys))
    return -1;
  return scale;
}

static int find_scale(const struct attention *a) {
  const MlirType keys = ir_value_element(mlirOperationGetOperand(a->scores.op, 1));
  return mlirTypeIsAF32(keys) ? find_scale_of_f32(a) : find_scale_of_short(a, keys);
}

bool attention_plan(struct pass_run *run, const struct attention *a, struct attention_plan *out) {
  const struct product *s = &a->scores, *m = &a->mixed;
  const int64_t sbuf = nisa_machine(run->target)->sbuf_bytes;
  struct attention_plan p = {.queries = m->s.extents[m->m],
                             .keys = m->s.extents[m->k],
                             .features = s->s.extents[s->k],
                             .width = m->s.extents[m->n]};

  const int64_t keys = ceil_div(p.features, NISA_PARTITIONS) * p.keys * bytes_of(mlirOperationGetOperand(s->op, 1));
  const int64_t values = ceil_div(p.keys, NISA_PARTITIONS) * p.width * bytes_of(mlirOperationGetOperand(m->op, 1));
  p.keeps_keys = keys <= sbuf / 8;
  p.keeps_values = values <= sbuf / 8;
  p.scale = p.keeps_keys ? find_scale(a) : -1;
  /* keys: as loaded, turned, and scaled */
  p.bytes = (p.keeps_keys ? (p.scale < 0 ? 2 : 3) * keys : 0) + (p.keeps_values ? values : 0);
  const int64_t room = sbuf * 3 / 4 - p.bytes;
  p.step = p.keys;
  int64_t bytes = block_bytes(a, p.step, p.width), n = choose_rows(p.queries, bytes, room);
  if (!n) {
    if (!a->can_run)
      return false;
    for (p.step = STEP_MOST; !n && p.step >= STEP_LEAST && p.step < p.keys; p.step -= n ? 0 : STEP_LEAST) {
      bytes = block_bytes(a, p.step, p.width);
      n = choose_rows(p.queries, bytes, room);
    }
    if (!n)
      return false;
  }
  p.rows = rewrite_min(n * NISA_PARTITIONS, p.queries);
  p.bytes += n * bytes;
  p.batches = can_pair(a, &p, sbuf) ? ATTENTION_TILES_MAX : 1;
  p.bytes *= p.batches;
  *out = p;
  return true;
}

bool attention_is_narrow(const struct attention *a) {
  const struct product *p = &a->mixed;
  int64_t batches = 1;
  for (int d = 0; d < p->n_batch; d++)
    batches *= p->s.extents[structured_map_loop(p->s.maps[2], d)];
  return batches > 1 && p->s.extents[p->m] < NISA_PARTITIONS / 4;
}

int64_t attention_running_cycles(const struct attention_plan *p) {
  return ceil_div(p->queries, NISA_PARTITIONS) * ceil_div(p->keys, rewrite_free_tile(p->keys)) *
         (2 * p->width + SMALL_STEPS * SMALL_CYCLES);
}

/* Of all batches. */
static int64_t scores_of(const struct attention *a) {
  int64_t n = 1;
  for (int d = 0; d < a->mixed.rank; d++)
    n *= a->mixed.s.extents[structured_map_loop(a->mixed.s.maps[0], d)];
  return n;
}

static int64_t batches_of(const struct attention *a, const struct attention_plan *p) {
  const int64_t each = p->queries * p->keys;
  return each ? scores_of(a) / each : 1;
}

int64_t attention_operand_bytes(const struct attention *a, const struct attention_plan *p) {
  const int64_t each = bytes_of(ir_result(a->mixed.op));
  return batches_of(a, p) * (p->queries + p->keys) * (p->features + p->width) * each;
}

int64_t attention_block_bytes(const struct attention *a, const struct attention_plan *p) {
  const int64_t each = bytes_of(ir_result(a->mixed.op)), again = ceil_div(p->queries, p->rows) - 1;
  const int64_t columns = (p->keeps_keys ? 0 : p->features) + (p->keeps_values ? 0 : p->width);
  return attention_operand_bytes(a, p) + batches_of(a, p) * again * p->keys * columns * each;
}

int64_t attention_plain_bytes(const struct attention *a) {
  int64_t elements = scores_of(a), each = bytes_of(ir_result(a->scores.op));
  for (int k = 0; k < a->n; k++)
    each += a->member[k].is_row ? 0 : bytes_of(ir_result(a->member[k].op));
  return 2 * elements * each; /* written and read */
}
