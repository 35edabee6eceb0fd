/* parts: finds the part of a value that an iteration writes and reads.  See knob_driven_fusion.h.
 *
 * A tiled loop writes its value by slices at its counter:
 *
 *     %p = scf.for %i = 0 to 256 step 128 iter_args(%c = %init) {
 *       … tensor.insert_slice %tile into %c[%i, 0] [128, 512] …
 *
 * Iteration %i writes the rows from %i to %i + 127 and no other iteration does, so they are complete after it.  A
 * reduction over the loop writes the same part in each iteration, which is complete only after the last one.
 */
#include "mlir-c/BuiltinTypes.h"

#include "base/array.h"
#include "ir/build.h"
#include "passes/knob_driven_fusion/knob_driven_fusion.h"

int parts_first_dim(unsigned dims) {
  for (int d = 0; d < STRUCTURED_LOOPS_MAX; d++)
    if (dims >> d & 1)
      return d;
  return -1;
}

struct ir_ops parts_loops_in(struct arena *a, MlirBlock block) {
  struct ir_ops loops = {0};
  for (MlirOperation o = mlirBlockGetFirstOperation(block); !mlirOperationIsNull(o); o = mlirOperationGetNextInBlock(o))
    if (ir_is(o, "scf.for"))
      array_push(a, &loops, o);
  return loops;
}

/* ---- slices of what a loop carries ------------------------------------------------------------------------------- */

bool parts_each_slice(MlirValue v, bool (*visit)(const struct slice *, void *), void *user) {
  for (MlirOpOperand u = mlirValueGetFirstUse(v); !mlirOpOperandIsNull(u); u = mlirOpOperandGetNextUse(u)) {
    MlirOperation op = mlirOpOperandGetOwner(u);
    const intptr_t at = mlirOpOperandGetOperandNumber(u);
    struct slice s;

    if (ir_is_of(op, "nkipy.") || ir_is(op, "scf.yield"))
      continue;
    if (ir_is(op, "scf.for") && at >= 3) {
      if (!parts_each_slice(mlirBlockGetArgument(ir_body(op), at - 2), visit, user) ||
          !parts_each_slice(mlirOperationGetResult(op, at - 3), visit, user))
        return false;
      continue;
    }
    if (!slice_read(op, &s) || at != (s.is_insert ? 1 : 0) || !visit(&s, user))
      return false;
    if (s.is_insert && !parts_each_slice(mlirOperationGetResult(op, 0), visit, user))
      return false;
  }
  return true;
}

bool parts_runs_once(MlirOperation loop) {
  int64_t low, high, step;
  return ir_int_constant(mlirOperationGetOperand(loop, 0), &low) &&
         ir_int_constant(mlirOperationGetOperand(loop, 1), &high) &&
         ir_int_constant(mlirOperationGetOperand(loop, 2), &step) && low < high && high - low <= step;
}

struct at_counter {
  MlirValue counter;
  int64_t step;
  bool is_any_size, runs_once;
  unsigned dims;
  bool is_used;
};

/* In a loop that runs once the counter is a constant and may have been folded into the offsets. */
static bool is_at_counter(const struct slice *s, int d, const struct at_counter *c) {
  if (s->offset[d] != SLICE_DYNAMIC)
    return c->runs_once && s->size[d] == c->step;
  return mlirValueEqual(s->at[d], c->counter) && (c->is_any_size || s->size[d] <= c->step);
}

static void keep_dims_at_counter(const struct slice *s, struct at_counter *c) {
  c->is_used = true;
  for (int d = 0; d < STRUCTURED_LOOPS_MAX; d++)
    if (d >= s->rank || !is_at_counter(s, d, c))
      c->dims &= ~(1u << d);
}

static bool note_use(const struct slice *s, void *user) {
  keep_dims_at_counter(s, user);
  return true;
}

static bool note_write(const struct slice *s, void *user) {
  if (s->is_insert)
    keep_dims_at_counter(s, user);
  return true;
}

static struct at_counter begin(MlirOperation loop) {
  struct at_counter c = {.counter = parts_counter(loop), .dims = PARTS_ALL_DIMS, .runs_once = parts_runs_once(loop)};
  if (!ir_int_constant(mlirOperationGetOperand(loop, 2), &c.step))
    c.dims = PARTS_NO_DIM;
  return c;
}

unsigned parts_written(MlirOperation loop, int k) {
  struct at_counter c = begin(loop);

  if (!parts_each_slice(mlirBlockGetArgument(ir_body(loop), 1 + k), note_write, &c) || !c.is_used)
    return PARTS_NO_DIM;
  return c.dims;
}

unsigned parts_used(MlirOperation loop, int k) {
  struct at_counter c = begin(loop);

  if (!parts_each_slice(mlirBlockGetArgument(ir_body(loop), 1 + k), note_use, &c))
    return PARTS_NO_DIM;
  return c.dims;
}

unsigned parts_read(MlirOperation loop, MlirValue v, bool is_within_step) {
  struct at_counter c = begin(loop);
  MlirBlock block = mlirOperationGetBlock(loop);

  c.is_any_size = !is_within_step;
  for (MlirOpOperand u = mlirValueGetFirstUse(v); !mlirOpOperandIsNull(u); u = mlirOpOperandGetNextUse(u)) {
    MlirOperation op = mlirOpOperandGetOwner(u), here = ir_ancestor_in(op, block);
    struct slice s;
    if (mlirOperationIsNull(here) || !mlirOperationEqual(here, loop))
      continue;
    if (!slice_read(op, &s) || s.is_insert)
      return PARTS_NO_DIM;
    keep_dims_at_counter(&s, &c);
  }
  return c.dims;
}

/* ---- parts in constant bounds ------------------------------------------------------------------------------------ */

struct range {
  int64_t low, high; /* high is exclusive */
};
static const struct range everything = {INT64_MIN, INT64_MAX};

/* Returns the range of indices of the slice in dimension d over all values of the counter that it depends on. */
static struct range range_of(const struct slice *s, int d) {
  int64_t low, high, step;

  if (s->offset[d] != SLICE_DYNAMIC)
    return (struct range){s->offset[d], s->offset[d] + s->size[d]};
  if (!mlirValueIsABlockArgument(s->at[d]) || mlirBlockArgumentGetArgNumber(s->at[d]) != 0)
    return everything;
  MlirOperation loop = mlirBlockGetParentOperation(mlirBlockArgumentGetOwner(s->at[d]));
  if (!ir_is(loop, "scf.for") || !ir_int_constant(mlirOperationGetOperand(loop, 0), &low) ||
      !ir_int_constant(mlirOperationGetOperand(loop, 1), &high) ||
      !ir_int_constant(mlirOperationGetOperand(loop, 2), &step) || step <= 0 || low >= high)
    return everything;
  return (struct range){low, low + (high - 1 - low) / step * step + s->size[d]};
}

struct box {
  int rank; /* -1: empty */
  struct range dim[STRUCTURED_LOOPS_MAX];
};

static void extend(struct box *b, const struct slice *s) {
  for (int d = 0; d < s->rank; d++) {
    const struct range r = range_of(s, d);
    if (b->rank < 0 || r.low < b->dim[d].low)
      b->dim[d].low = r.low;
    if (b->rank < 0 || r.high > b->dim[d].high)
      b->dim[d].high = r.high;
  }
  b->rank = s->rank;
}

static bool add_write(const struct slice *s, void *user) {
  if (s->is_insert)
    extend(user, s);
  return true;
}

static bool add_any(const struct slice *s, void *user) {
  extend(user, s);
  return true;
}

static bool are_apart(const struct box *x, const struct box *y) {
  for (int d = 0; x->rank == y->rank && d < x->rank; d++)
    if (x->dim[d].high <= y->dim[d].low || y->dim[d].high <= x->dim[d].low)
      return true;
  return false;
}

/* Finds the part that def, a loop with the result k or an insertion, writes.  Returns false if def is another
 * operation. */
static bool read_written(MlirOperation def, int k, struct box *written) {
  struct slice s;

  *written = (struct box){.rank = -1};
  if (ir_is(def, "scf.for"))
    return parts_each_slice(mlirBlockGetArgument(ir_body(def), 1 + k), add_write, written);
  if (!slice_read(def, &s) || !s.is_insert)
    return false;
  extend(written, &s);
  return true;
}

/* Skips the loops and insertions that write only outside of the box, and returns the value before them. */
static MlirValue before_others(MlirValue v, const struct box *read) {
  for (;;) {
    MlirOperation def = ir_defining_op(v);
    struct box written;
    if (mlirOperationIsNull(def))
      return v;
    const int k = (int)mlirOpResultGetResultNumber(v);
    if (!read_written(def, k, &written) || !are_apart(read, &written))
      return v;
    v = mlirOperationGetOperand(def, ir_is(def, "scf.for") ? 3 + k : 1);
  }
}

MlirValue parts_initial(MlirOperation loop, int k) {
  MlirValue v = mlirOperationGetOperand(loop, 3 + k);
  struct box used = {.rank = -1};

  if (!parts_each_slice(mlirBlockGetArgument(ir_body(loop), 1 + k), add_any, &used))
    return v;
  return before_others(v, &used);
}

static bool is_extract(MlirOperation op, void *user) {
  (void)user;
  return ir_is(op, "tensor.extract_slice");
}

void parts_read_where_written(struct pass_run *run, MlirOperation loop) {
  struct ir_ops reads = ir_collect(run->arena, loop, is_extract, NULL);

  for (int i = 0; i < reads.n; i++) {
    struct slice s;
    struct box read = {.rank = -1};
    if (!slice_read(reads.v[i], &s))
      continue;
    extend(&read, &s);
    mlirOperationSetOperand(reads.v[i], 0, before_others(slice_of(&s), &read));
  }
}

/* Returns the value that a loop or an insertion before `reader` computes from v by writing only outside of the box,
 * or v if there is none. */
static MlirValue carried_further(MlirValue v, MlirOperation reader, const struct box *read) {
  for (MlirOpOperand u = mlirValueGetFirstUse(v); !mlirOpOperandIsNull(u); u = mlirOpOperandGetNextUse(u)) {
    MlirOperation op = mlirOpOperandGetOwner(u), here = ir_ancestor_in(reader, mlirOperationGetBlock(op));
    const int at = (int)mlirOpOperandGetOperandNumber(u), k = ir_is(op, "scf.for") ? at - 3 : 0;
    struct box written;
    const bool carries = ir_is(op, "scf.for") ? k >= 0 : at == 1;
    if (carries && !mlirOperationIsNull(here) && mlirOperationIsBeforeInBlock(op, here) &&
        read_written(op, k, &written) && are_apart(read, &written))
      return mlirOperationGetResult(op, k);
  }
  return v;
}

void parts_read_latest(struct pass_run *run) {
  struct ir_ops reads = ir_collect(run->arena, run->module, is_extract, NULL);

  for (int i = 0; i < reads.n; i++) {
    struct slice s;
    struct box read = {.rank = -1};
    if (!slice_read(reads.v[i], &s))
      continue;
    extend(&read, &s);
    MlirValue v = slice_of(&s), next;
    while (next = carried_further(v, reads.v[i], &read), !mlirValueEqual(next, v))
      v = next;
    mlirOperationSetOperand(reads.v[i], 0, v);
  }
}

/* ---- reading what was inserted ----------------------------------------------------------------------------------- */

/* Changes the offset of `read` in dimension d to an offset into the part that `ins` inserts.  Returns false if `read`
 * may include other elements. */
static bool rebase_dim(struct slice *read, const struct slice *ins, int d, int64_t extent) {
  const bool is_whole = ins->offset[d] == 0 && ins->size[d] == extent;

  if (is_whole)
    return true;
  if (read->offset[d] == SLICE_DYNAMIC || ins->offset[d] == SLICE_DYNAMIC) {
    if (read->offset[d] != ins->offset[d] || !mlirValueEqual(read->at[d], ins->at[d]) || read->size[d] > ins->size[d])
      return false;
    read->offset[d] = 0;
    return true;
  }
  if (read->offset[d] < ins->offset[d] || read->offset[d] + read->size[d] > ins->offset[d] + ins->size[d])
    return false;
  read->offset[d] -= ins->offset[d];
  return true;
}

static bool rebase(struct slice *read, const struct slice *ins) {
  MlirType t = mlirValueGetType(slice_of(ins));

  if (read->rank != ins->rank || mlirShapedTypeGetRank(mlirValueGetType(slice_part(ins))) != ins->rank)
    return false;
  for (int d = 0; d < read->rank; d++)
    if (!rebase_dim(read, ins, d, mlirShapedTypeGetDimSize(t, d)))
      return false;
  return true;
}

/* Makes one slice read the tile that was inserted last.  A slice of a whole tile is replaced by the tile.  A slice of
 * a loop's result stays, because that loop may still be merged with the reader. */
static void forward(MlirOperation op) {
  struct slice read, ins;

  while (slice_read(op, &read)) {
    MlirOperation def = ir_defining_op(slice_of(&read));
    struct box r = {.rank = -1}, w = {.rank = -1};
    if (mlirOperationIsNull(def) || !slice_read(def, &ins) || !ins.is_insert)
      break;
    extend(&r, &read);
    extend(&w, &ins);
    if (are_apart(&r, &w))
      mlirOperationSetOperand(op, 0, slice_of(&ins));
    else if (rebase(&read, &ins))
      slice_set(&read, slice_part(&ins));
    else
      break;
  }
  MlirValue from = slice_of(&read);
  MlirOperation def = ir_defining_op(from);
  if (mlirOperationIsNull(def) || ir_is(def, "scf.for") ||
      !mlirTypeEqual(mlirValueGetType(from), mlirValueGetType(ir_result(op))) ||
      !slice_is_whole(&read, mlirValueGetType(from)))
    return;
  mlirValueReplaceAllUsesOfWith(ir_result(op), from);
  mlirOperationDestroy(op);
}

void parts_forward(struct pass_run *run, MlirValue v, MlirBlock block) {
  struct ir_ops reads = {0};

  for (MlirOpOperand u = mlirValueGetFirstUse(v); !mlirOpOperandIsNull(u); u = mlirOpOperandGetNextUse(u)) {
    MlirOperation op = mlirOpOperandGetOwner(u);
    struct slice s;
    if (slice_read(op, &s) && !s.is_insert && !mlirOperationIsNull(ir_ancestor_in(op, block)))
      array_push(run->arena, &reads, op);
  }
  for (int i = 0; i < reads.n; i++)
    forward(reads.v[i]);
}
