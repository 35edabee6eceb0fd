/* run: control flow, and operations on buffers and scalars. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "interp/internal.h"

bool machine_fault(struct machine *m, const struct instr *in, const char *what) {
  if (fail(m->err, ST_INPUT, "%s %s", in->name, what)) {
  }
  return false;
}

/* ---- values ------------------------------------------------------------------------------------------------------ */

int64_t machine_int(const struct machine *m, int slot) {
  int64_t v;
  memcpy(&v, &m->scalars[slot], sizeof v);
  return v;
}
static void set_int(struct machine *m, int slot, int64_t v) {
  memcpy(&m->scalars[slot], &v, sizeof v);
}

static void assign(struct machine *m, int to, int from) {
  if (m->p->slots[to].view < 0) {
    m->scalars[to] = m->scalars[from];
    return;
  }
  machine_assign_view(m, view_of(m, to), view_of(m, from), rank_of(m, to));
}
static void drop(struct machine *m, int slot) {
  if (m->p->slots[slot].view >= 0)
    machine_drop_view(m, view_of(m, slot));
}
static void assign_all(struct machine *m, int n, const int *to, const int *from) {
  for (int k = 0; k < n; k++)
    assign(m, to[k], from[k]);
}

/* Assigns, and the sources lose their views. */
static void move_all(struct machine *m, int n, const int *to, const int *from) {
  assign_all(m, n, to, from);
  for (int k = 0; k < n; k++)
    drop(m, from[k]);
}
static void drop_all(struct machine *m, int n, const int *slots) {
  for (int k = 0; k < n; k++)
    drop(m, slots[k]);
}

void machine_row_major(struct view *v, int rank) {
  int64_t step = 1;
  for (int k = rank - 1; k >= 0; k--) {
    v->strides[k] = step;
    step *= v->dims[k];
  }
}

char *element_at(const struct machine *m, int slot, const int *indices) {
  const struct view *v = view_of(m, slot);
  int64_t offset = 0;
  for (int d = 0; d < rank_of(m, slot); d++) {
    const int64_t i = machine_int(m, indices[d]);
    if (i < 0 || i >= v->dims[d])
      return NULL;
    offset += i * v->strides[d];
  }
  return v->data + offset * (int64_t)dtype_size(m->p->slots[slot].t);
}

/* ---- buffers ----------------------------------------------------------------------------------------------------- */

/* The next dynamic value of an operation's list, or a static one. */
int64_t machine_next_value(const struct machine *m, int64_t fixed, const int **operands) {
  return fixed == interp_dynamic ? machine_int(m, *(*operands)++) : fixed;
}

static bool run_alloc(struct machine *m, const struct instr *in) {
  struct view *v = view_of(m, in->results[0]);
  const int rank = in->view.n;
  const size_t size = dtype_size(m->p->slots[in->results[0]].t);
  const int *operands = in->args;
  int64_t last = in->view.offsets[0];
  bool is_empty = false;
  for (int k = 0; k < rank; k++) {
    v->dims[k] = machine_next_value(m, in->view.sizes[k], &operands);
    if (v->dims[k] < 0)
      return machine_fault(m, in, "has a negative size");
    is_empty |= v->dims[k] == 0;
  }
  if (rank && in->view.strides[0] == interp_dynamic)
    machine_row_major(v, rank);
  else
    memcpy(v->strides, in->view.strides, (size_t)rank * sizeof *v->strides);
  for (int k = 0; k < rank && !is_empty; k++)
    last += (v->dims[k] - 1) * v->strides[k];
  if (!machine_allocate(m, in, v, (size_t)(last + 1) * size))
    return false;
  v->data = v->base + in->view.offsets[0] * (int64_t)size;
  return true;
}

static void run_dealloc(struct machine *m, const struct instr *in) {
  machine_release(view_of(m, in->args[0]));
}

bool machine_slice(struct machine *m, const struct instr *in, const struct view *from, const int *operands,
                   struct view *to) {
  const size_t size = dtype_size(m->p->slots[in->results[0]].t);
  const int n = in->view.n;
  int64_t offsets[HLO_RANK_MAX], sizes[HLO_RANK_MAX];
  for (int k = 0; k < n; k++)
    offsets[k] = machine_next_value(m, in->view.offsets[k], &operands);
  for (int k = 0; k < n; k++)
    sizes[k] = machine_next_value(m, in->view.sizes[k], &operands);
  to->base = from->base;
  to->data = from->data;
  for (int k = 0; k < n; k++) {
    const int64_t step = machine_next_value(m, in->view.strides[k], &operands);
    const int64_t last = offsets[k] + (sizes[k] - 1) * step;
    if (sizes[k] < 0 ||
        (sizes[k] && (offsets[k] < 0 || offsets[k] >= from->dims[k] || last < 0 || last >= from->dims[k])))
      return machine_fault(m, in, "goes outside of its buffer");
    to->data += offsets[k] * from->strides[k] * (int64_t)size;
    if (in->view.groups[k] >= 0) {
      to->dims[in->view.groups[k]] = sizes[k];
      to->strides[in->view.groups[k]] = step * from->strides[k];
    }
  }
  return true;
}

/* Makes `to` a view of the memory of `from`; the caller sets its dims and strides. */
static void share(struct machine *m, struct view *to, const struct view *from) {
  machine_assign_view(m, to, from, 0);
}

static bool run_subview(struct machine *m, const struct instr *in) {
  share(m, view_of(m, in->results[0]), view_of(m, in->args[0]));
  return machine_slice(m, in, view_of(m, in->args[0]), in->args + 1, view_of(m, in->results[0]));
}

static bool run_reinterpret(struct machine *m, const struct instr *in) {
  const struct view *from = view_of(m, in->args[0]);
  struct view *to = view_of(m, in->results[0]);
  const int *operands = in->args + 1;
  share(m, to, from);
  to->data = from->base +
             machine_next_value(m, in->view.offsets[0], &operands) * (int64_t)dtype_size(m->p->slots[in->results[0]].t);
  for (int k = 0; k < in->view.n; k++)
    to->dims[k] = machine_next_value(m, in->view.sizes[k], &operands);
  for (int k = 0; k < in->view.n; k++)
    to->strides[k] = machine_next_value(m, in->view.strides[k], &operands);
  return true;
}

/* Each group of dimensions becomes one, with the step of its innermost dimension that has several elements. */
static void collapse(const struct machine *m, const struct instr *in, const struct view *from, struct view *to) {
  for (int k = 0; k < rank_of(m, in->results[0]); k++)
    to->dims[k] = 1, to->strides[k] = 1;
  for (int k = in->view.n - 1; k >= 0; k--) {
    const int g = in->view.groups[k];
    if (g < 0)
      continue;
    if (to->dims[g] == 1)
      to->strides[g] = from->strides[k];
    to->dims[g] *= from->dims[k];
  }
}

static bool run_collapse(struct machine *m, const struct instr *in) {
  const int slot = m->p->slots[in->args[0]].is_tensor ? in->temps[0] : in->args[0];
  if (slot != in->args[0] && !tensor_pack(m, in, slot, in->args[0]))
    return false;
  share(m, view_of(m, in->results[0]), view_of(m, slot));
  collapse(m, in, view_of(m, slot), view_of(m, in->results[0]));
  if (slot != in->args[0])
    drop(m, slot);
  return true;
}

static void run_expand(struct machine *m, const struct instr *in) {
  const struct view *from = view_of(m, in->args[0]);
  struct view *to = view_of(m, in->results[0]);
  int64_t step = 1;
  int group = -1;
  share(m, to, from);
  for (int k = in->view.n - 1; k >= 0; k--) {
    const int g = in->view.groups[k];
    if (g != group)
      step = g < 0 ? 1 : from->strides[g];
    group = g;
    to->dims[k] = in->view.sizes[k];
    to->strides[k] = step;
    step *= to->dims[k];
  }
}

static bool run_global(struct machine *m, const struct instr *in) {
  struct view *v = view_of(m, in->results[0]);
  const size_t size = dtype_size(m->p->slots[in->results[0]].t);
  int64_t n = 1;
  memcpy(v->dims, in->view.sizes, (size_t)in->view.n * sizeof *v->dims);
  machine_row_major(v, in->view.n);
  for (int k = 0; k < in->view.n; k++)
    n *= v->dims[k];
  if (!machine_allocate(m, in, v, (size_t)n * size)) /* a copy, because the program may not change the constant */
    return false;
  memcpy(v->data, in->view.offsets, (size_t)n * size);
  return machine_will_fill(m, in, in->results[0]);
}

static bool run_copy(struct machine *m, const struct instr *in) {
  if (machine_put_off_copy(m, in->args[0], view_of(m, in->args[1])))
    return true;
  if (!machine_may_use(m, in, in->args[0]) || !machine_will_fill(m, in, in->args[1]))
    return false;
  const struct view *from = view_of(m, in->args[0]), *to = view_of(m, in->args[1]);
  const int rank = rank_of(m, in->args[0]);
  bool is_empty = false;
  for (int k = 0; k < rank; k++) {
    is_empty |= from->dims[k] == 0;
    if (from->dims[k] != to->dims[k])
      return machine_fault(m, in, "copies between buffers of different shapes");
  }
  if (!is_empty)
    interp_copy(dtype_size(m->p->slots[in->args[0]].t), rank, from->dims, to->data, to->strides, from->data,
                from->strides);
  return true;
}

static bool run_access(struct machine *m, const struct instr *in) {
  const bool is_load = in->op == OP_LOAD;
  const int memref = in->args[!is_load], value = is_load ? in->results[0] : in->args[0];
  char *at = element_at(m, memref, in->args + 1 + !is_load);
  const enum dtype t = m->p->slots[memref].t;
  if (is_load ? !machine_may_use(m, in, memref) : !machine_may_write(m, in, memref))
    return false;
  if (!at)
    return machine_fault(m, in, "accesses an element outside of its buffer");
  if (is_load)
    row_load(t, at, 1, 1, &m->scalars[value]);
  else
    row_store(t, at, 1, 1, &m->scalars[value]);
  return true;
}

/* ---- control flow ------------------------------------------------------------------------------------------------ */

static bool run_block(struct machine *m, const struct block *b);

/* The operands that die here lose their views once they are handed on, so that the body may write in place. */
static void drop_operands(struct machine *m, const struct instr *in) {
  drop_all(m, in->n_sole, in->dying);
}

/* Runs the block and hands its results on. */
static bool run_body(struct machine *m, const struct block *b, int n, const int *to, const int *results) {
  if (!run_block(m, b))
    return false;
  assign_all(m, n, to, results);
  drop_all(m, b->n_ends, b->ends);
  return true;
}

static bool run_for(struct machine *m, const struct instr *in) {
  const struct block *body = in->blocks[0];
  const int64_t from = machine_int(m, in->args[0]), to = machine_int(m, in->args[1]),
                step = machine_int(m, in->args[2]);
  if (step <= 0)
    return machine_fault(m, in, "does not advance");
  assign_all(m, in->n_results, in->results, in->args + 3);
  drop_operands(m, in);
  for (int64_t i = from; i < to; i += step) {
    set_int(m, body->args[0], i);
    move_all(m, in->n_results, body->args + 1, in->results);
    if (!run_body(m, body, in->n_results, in->temps, body->results)) /* a result may be an argument of the body */
      return false;
    move_all(m, in->n_results, in->results, in->temps);
    if (i > INT64_MAX - step)
      break;
  }
  return true;
}

static bool run_if(struct machine *m, const struct instr *in) {
  const struct block *b = in->blocks[machine_int(m, in->args[0]) ? 0 : 1];
  return run_body(m, b, in->n_results, in->results, b->results);
}

static bool run_while(struct machine *m, const struct instr *in) {
  const struct block *before = in->blocks[0], *after = in->blocks[1];
  assign_all(m, in->n_args, before->args, in->args);
  drop_operands(m, in);
  for (;;) {
    if (!run_body(m, before, in->n_results, in->results, before->results + 1))
      return false;
    if (!machine_int(m, before->results[0]))
      return true;
    move_all(m, in->n_results, after->args, in->results);
    if (!run_body(m, after, in->n_args, in->temps, after->results))
      return false;
    move_all(m, in->n_args, before->args, in->temps);
  }
}

static bool run_call(struct machine *m, const struct instr *in) {
  const struct block *body = &in->callee->body;
  assign_all(m, in->n_args, body->args, in->args);
  drop_operands(m, in);
  return run_body(m, body, in->n_results, in->results, body->results);
}

static void run_arith(struct machine *m, const struct instr *in) {
  const void *x[3] = {NULL, NULL, NULL};
  for (int k = 0; k < in->n_args; k++)
    x[k] = &m->scalars[in->args[k]];
  arith_row(&in->arith, 1, &m->scalars[in->results[0]], x[0], x[1], x[2]);
}

static int64_t floor_of(int64_t x, int64_t y) {
  return x / y - (x % y != 0 && (x < 0) != (y < 0));
}

int64_t machine_affine(const struct affine *e, int64_t (*operand)(void *user, int k), void *user) {
  if (e->kind == AFFINE_OPERAND)
    return operand(user, (int)e->value);
  if (e->kind == AFFINE_CONSTANT)
    return e->value;
  const int64_t x = machine_affine(e->x, operand, user), y = machine_affine(e->y, operand, user);
  switch (e->kind) {
  case AFFINE_ADD:
    return x + y;
  case AFFINE_MUL:
    return x * y;
  case AFFINE_MOD:
    return y ? x - floor_of(x, y) * y : 0;
  case AFFINE_FLOOR:
    return y ? floor_of(x, y) : 0;
  default:
    return y ? -floor_of(-x, y) : 0;
  }
}

struct apply {
  const struct machine *m;
  const int *args;
};

static int64_t apply_operand(void *user, int k) {
  const struct apply *a = user;
  return machine_int(a->m, a->args[k]);
}

static void run_apply(struct machine *m, const struct instr *in) {
  struct apply a = {m, in->args};
  set_int(m, in->results[0], machine_affine(in->affine, apply_operand, &a));
}

static bool run_dim(struct machine *m, const struct instr *in) {
  const int64_t d = machine_int(m, in->args[1]);
  if (d < 0 || d >= rank_of(m, in->args[0]))
    return machine_fault(m, in, "names a dimension that is not there");
  set_int(m, in->results[0], view_of(m, in->args[0])->dims[d]);
  return true;
}

/* Scalar operations between two readings of the clock, which takes as long as a few of them. */
enum { LOOK_EVERY = 64 };

static bool is_late(struct machine *m, const struct instr *in) {
  const bool is_long = in->op == OP_STRUCTURED || in->op == OP_COPY || in->op == OP_ELEMENTS;
  return (is_long || ++m->n_operations % LOOK_EVERY == 0) && time_is_up(&m->limit);
}

bool run_instr(struct machine *m, const struct instr *in) {
  if (is_late(m, in))
    return !fail(m->err, ST_TIMEOUT, "%s was not run: there is no time left", in->name);
  switch (in->op) {
  case OP_ARITH:
    run_arith(m, in);
    return true;
  case OP_CONSTANT:
    m->scalars[in->results[0]] = in->bits;
    return true;
  case OP_ALLOC:
    return run_alloc(m, in);
  case OP_DEALLOC:
    run_dealloc(m, in);
    return true;
  case OP_LOAD:
  case OP_STORE:
    return run_access(m, in);
  case OP_COPY:
    return run_copy(m, in);
  case OP_SUBVIEW:
    return run_subview(m, in);
  case OP_REINTERPRET:
    return run_reinterpret(m, in);
  case OP_COLLAPSE:
    return run_collapse(m, in);
  case OP_EXPAND:
    run_expand(m, in);
    return true;
  case OP_CAST:
    assign(m, in->results[0], in->args[0]);
    return true;
  case OP_GLOBAL:
    return run_global(m, in);
  case OP_CONSTANT_TENSOR:
    run_constant_tensor(m, in);
    return true;
  case OP_INSERT_SLICE:
    return run_insert_slice(m, in);
  case OP_INSERT:
    return run_insert(m, in);
  case OP_ELEMENTS:
    return run_elements(m, in);
  case OP_DIM:
    return run_dim(m, in);
  case OP_AFFINE_APPLY:
    run_apply(m, in);
    return true;
  case OP_FOR:
    return run_for(m, in);
  case OP_IF:
    return run_if(m, in);
  case OP_WHILE:
    return run_while(m, in);
  case OP_CALL:
    return run_call(m, in);
  case OP_STRUCTURED:
    return run_structured(m, in);
  case OP_WATCH:
    return run_watch(m, in);
  case OP_NATIVE:
    return run_native(m, in);
  case OP_TOPK:
    return run_topk(m, in);
  case OP_INDEX: /* only in bodies */
    break;
  }
  assert(!"an instruction of a block");
  return false;
}

static bool run_block(struct machine *m, const struct block *b) {
  for (int k = 0; k < b->code.n; k++) {
    const struct instr *in = &b->code.v[k];
    if (!(m->memo && b == &m->p->entry->body ? memo_run(m, in) : run_instr(m, in)))
      return false;
    drop_all(m, in->n_dying, in->dying);
  }
  return true;
}

/* ---- the program ------------------------------------------------------------------------------------------------- */

enum { ROW_BYTES = 256 * FORM_SIZE };

static void set_up(struct machine *m, struct arena *scratch) {
  const struct interp_program *p = m->p;
  int64_t *numbers = arena_new_array(scratch, int64_t, 2 * (size_t)p->rank_sum);
  m->scalars = arena_new_array(scratch, uint64_t, (size_t)p->n_slots);
  m->views = arena_new_array(scratch, struct view, (size_t)p->n_views);
  m->rows = arena_alloc(scratch, (size_t)p->n_rows * ROW_BYTES);
  memset(numbers, 0, 2 * (size_t)p->rank_sum * sizeof *numbers);
  for (int k = 0; k < p->n_views; k++) {
    m->views[k] = (struct view){.dims = numbers, .strides = numbers + p->ranks[k]};
    numbers += 2 * p->ranks[k];
  }
}

enum status interp_run(const struct interp_program *p, const struct interp_options *options,
                       const struct interp_buffer *args, interp_taker *take, void *user, struct error *err) {
  struct machine m = {.p = p,
                      .products = options->products,
                      .watch = options->watch,
                      .native = options->native,
                      .limit = options->limit,
                      .err = err};
  const struct block *body = &p->entry->body;
  const struct instr returned = {.name = "func.return"};
  struct arena scratch;
  arena_init(&scratch);
  set_up(&m, &scratch);
  m.memo = m.products ? memo_room(&scratch, p->n_slots) : NULL;
  for (int k = 0; k < body->n_args; k++) {
    struct view *v = view_of(&m, body->args[k]);
    v->base = v->data = args[k].data;
    v->is_fixed = args[k].is_fixed;
    memcpy(v->dims, args[k].dims, (size_t)rank_of(&m, body->args[k]) * sizeof *v->dims);
    memcpy(v->strides, args[k].strides, (size_t)rank_of(&m, body->args[k]) * sizeof *v->strides);
  }
  bool ok = run_block(&m, body);
  for (int k = 0; ok && k < body->n_results; k++)
    ok = machine_may_use(&m, &returned, body->results[k]);
  for (int k = 0; ok && k < body->n_results; k++) {
    const struct view *v = view_of(&m, body->results[k]);
    struct interp_buffer out = {.data = v->data};
    memcpy(out.strides, v->strides, (size_t)rank_of(&m, body->results[k]) * sizeof *v->strides);
    take(user, k, &out);
  }
  machine_free_all(&m);
  arena_clear(&scratch);
  return ok ? ST_OK : err->code;
}
