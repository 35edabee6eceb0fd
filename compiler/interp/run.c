/* run: control flow, and operations on buffers and scalars. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "interp/internal.h"

/* ---- memory ------------------------------------------------------------------------------------------------------ */

const uint64_t interp_unwritten = 0x7ffa7ffa7ffa7ffa;

struct memory_block {
  struct memory_block *next; /* of all blocks */
  struct memory_block *next_free;
  size_t size;
  bool is_free;
  max_align_t data[];
};

static void spoil(struct memory_block *b) {
  for (size_t k = 0; k < b->size; k += sizeof interp_unwritten)
    memcpy((char *)b->data + k, &interp_unwritten, sizeof interp_unwritten);
}

/* The list of free blocks that has those of this size, among others. */
static struct memory_block **free_list(struct machine *m, size_t size) {
  return &m->free[(size / 64 * 0x9e3779b97f4a7c15u >> 32) % FREE_LISTS];
}

static struct memory_block *reuse(struct machine *m, size_t size) {
  for (struct memory_block **p = free_list(m, size); *p; p = &(*p)->next_free)
    if ((*p)->size == size) {
      struct memory_block *b = *p;
      *p = b->next_free;
      b->is_free = false;
      return b;
    }
  return NULL;
}

/* Memory that nothing has written holds NaNs (in 16-, 32- and 64-bit floats; in most 8-bit ones and as integers, an
 * odd number), so that a result that depends on it is wrong. */
static char *allocate(struct machine *m, size_t bytes) {
  const size_t size = (bytes | (sizeof interp_unwritten - 1)) + 1;
  struct memory_block *b = reuse(m, size);
  if (b)
    return (char *)b->data;
  b = size > SIZE_MAX / 2 ? NULL : malloc(sizeof *b + size);
  if (!b)
    arena_oom(bytes);
  *b = (struct memory_block){.next = m->blocks, .size = size};
  m->blocks = b;
  spoil(b);
  return (char *)b->data;
}

static struct memory_block *block_of(char *data) {
  return (struct memory_block *)(void *)(data - offsetof(struct memory_block, data));
}

/* Released memory stays until the end of the run, so that a use of it is a wrong result and no crash. */
static void release(struct machine *m, char *data) {
  struct memory_block *b = block_of(data);
  if (b->is_free)
    return;
  b->is_free = true;
  spoil(b);
  b->next_free = *free_list(m, b->size);
  *free_list(m, b->size) = b;
}

static void free_all(struct machine *m) {
  while (m->blocks) {
    struct memory_block *b = m->blocks;
    m->blocks = b->next;
    free(b);
  }
}

bool machine_fault(struct machine *m, const struct instr *in, const char *what) {
  if (fail(m->err, ST_INPUT, "%s %s", in->name, what)) {
  }
  return false;
}

/* ---- values ------------------------------------------------------------------------------------------------------ */

static struct view *view_of(const struct machine *m, int slot) {
  assert(m->p->slots[slot].view >= 0);
  return &m->views[m->p->slots[slot].view];
}
static int rank_of(const struct machine *m, int slot) {
  return m->p->ranks[m->p->slots[slot].view];
}
static int64_t int_of(const struct machine *m, int slot) {
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
  struct view *x = view_of(m, to);
  const struct view *y = view_of(m, from);
  const size_t n = (size_t)rank_of(m, to) * sizeof *x->dims;
  x->base = y->base;
  x->block = y->block;
  x->data = y->data;
  memcpy(x->dims, y->dims, n);
  memcpy(x->strides, y->strides, n);
}
static void assign_all(struct machine *m, int n, const int *to, const int *from) {
  for (int k = 0; k < n; k++)
    assign(m, to[k], from[k]);
}

static void set_row_major(struct view *v, int rank) {
  int64_t step = 1;
  for (int k = rank - 1; k >= 0; k--) {
    v->strides[k] = step;
    step *= v->dims[k];
  }
}

char *element_at(const struct machine *m, const struct instr *in, int memref, const int *indices) {
  const struct view *v = view_of(m, memref);
  int64_t offset = 0;
  (void)in;
  for (int d = 0; d < rank_of(m, memref); d++) {
    const int64_t i = int_of(m, indices[d]);
    if (i < 0 || i >= v->dims[d])
      return NULL;
    offset += i * v->strides[d];
  }
  return v->data + offset * (int64_t)dtype_size(m->p->slots[memref].t);
}

/* ---- buffers ----------------------------------------------------------------------------------------------------- */

/* The next dynamic value of an operation's list, or a static one. */
static int64_t next_value(const struct machine *m, int64_t fixed, const int **operands) {
  return fixed == interp_dynamic ? int_of(m, *(*operands)++) : fixed;
}

static bool run_alloc(struct machine *m, const struct instr *in) {
  struct view *v = view_of(m, in->results[0]);
  const int rank = in->view.n;
  const size_t size = dtype_size(m->p->slots[in->results[0]].t);
  const int *operands = in->args;
  int64_t last = in->view.offsets[0];
  bool is_empty = false;
  for (int k = 0; k < rank; k++) {
    v->dims[k] = next_value(m, in->view.sizes[k], &operands);
    if (v->dims[k] < 0)
      return machine_fault(m, in, "has a negative size");
    is_empty |= v->dims[k] == 0;
  }
  if (rank && in->view.strides[0] == interp_dynamic)
    set_row_major(v, rank);
  else
    memcpy(v->strides, in->view.strides, (size_t)rank * sizeof *v->strides);
  for (int k = 0; k < rank && !is_empty; k++)
    last += (v->dims[k] - 1) * v->strides[k];
  v->base = allocate(m, (size_t)(last + 1) * size);
  v->block = block_of(v->base);
  v->data = v->base + in->view.offsets[0] * (int64_t)size;
  return true;
}

static void run_dealloc(struct machine *m, const struct instr *in) {
  const struct view *v = view_of(m, in->args[0]);
  if (v->block) /* not an argument */
    release(m, v->base);
}

static bool run_subview(struct machine *m, const struct instr *in) {
  const struct view from = *view_of(m, in->args[0]);
  struct view *to = view_of(m, in->results[0]);
  const size_t size = dtype_size(m->p->slots[in->results[0]].t);
  const int n = in->view.n;
  const int *operands = in->args + 1;
  int64_t offsets[HLO_RANK_MAX], sizes[HLO_RANK_MAX];
  for (int k = 0; k < n; k++)
    offsets[k] = next_value(m, in->view.offsets[k], &operands);
  for (int k = 0; k < n; k++)
    sizes[k] = next_value(m, in->view.sizes[k], &operands);
  to->base = from.base;
  to->block = from.block;
  to->data = from.data;
  for (int k = 0; k < n; k++) {
    const int64_t step = next_value(m, in->view.strides[k], &operands);
    const int64_t last = offsets[k] + (sizes[k] - 1) * step;
    if (sizes[k] < 0 ||
        (sizes[k] && (offsets[k] < 0 || offsets[k] >= from.dims[k] || last < 0 || last >= from.dims[k])))
      return machine_fault(m, in, "goes outside of its buffer");
    to->data += offsets[k] * from.strides[k] * (int64_t)size;
    if (in->view.groups[k] >= 0) {
      to->dims[in->view.groups[k]] = sizes[k];
      to->strides[in->view.groups[k]] = step * from.strides[k];
    }
  }
  return true;
}

static bool run_reinterpret(struct machine *m, const struct instr *in) {
  const struct view *from = view_of(m, in->args[0]);
  struct view *to = view_of(m, in->results[0]);
  const int *operands = in->args + 1;
  to->base = from->base;
  to->block = from->block;
  to->data =
      from->base + next_value(m, in->view.offsets[0], &operands) * (int64_t)dtype_size(m->p->slots[in->results[0]].t);
  for (int k = 0; k < in->view.n; k++)
    to->dims[k] = next_value(m, in->view.sizes[k], &operands);
  for (int k = 0; k < in->view.n; k++)
    to->strides[k] = next_value(m, in->view.strides[k], &operands);
  return true;
}

/* Each group of dimensions becomes one, with the step of its innermost dimension that has several elements. */
static void run_collapse(struct machine *m, const struct instr *in) {
  const struct view *from = view_of(m, in->args[0]);
  struct view *to = view_of(m, in->results[0]);
  to->base = from->base;
  to->block = from->block;
  to->data = from->data;
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

static void run_expand(struct machine *m, const struct instr *in) {
  const struct view *from = view_of(m, in->args[0]);
  struct view *to = view_of(m, in->results[0]);
  int64_t step = 1;
  int group = -1;
  to->base = from->base;
  to->block = from->block;
  to->data = from->data;
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

static void run_global(struct machine *m, const struct instr *in) {
  struct view *v = view_of(m, in->results[0]);
  const size_t size = dtype_size(m->p->slots[in->results[0]].t);
  int64_t n = 1;
  memcpy(v->dims, in->view.sizes, (size_t)in->view.n * sizeof *v->dims);
  set_row_major(v, in->view.n);
  for (int k = 0; k < in->view.n; k++)
    n *= v->dims[k];
  v->base = v->data = allocate(m, (size_t)n * size); /* a copy, because the program may not change the constant */
  v->block = block_of(v->base);
  memcpy(v->data, in->view.offsets, (size_t)n * size);
}

bool machine_may_use(struct machine *m, const struct instr *in, int slot) {
  const struct memory_block *b = view_of(m, slot)->block;
  return !b || !b->is_free || machine_fault(m, in, "uses a buffer that was released");
}

static bool run_copy(struct machine *m, const struct instr *in) {
  if (!machine_may_use(m, in, in->args[0]) || !machine_may_use(m, in, in->args[1]))
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
  char *at = element_at(m, in, memref, in->args + 1 + !is_load);
  const enum dtype t = m->p->slots[memref].t;
  if (!machine_may_use(m, in, memref))
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

static bool run_for(struct machine *m, const struct instr *in) {
  const struct block *body = in->blocks[0];
  const int64_t from = int_of(m, in->args[0]), to = int_of(m, in->args[1]), step = int_of(m, in->args[2]);
  if (step <= 0)
    return machine_fault(m, in, "does not advance");
  assign_all(m, in->n_results, in->results, in->args + 3);
  for (int64_t i = from; i < to; i += step) {
    set_int(m, body->args[0], i);
    assign_all(m, in->n_results, body->args + 1, in->results);
    if (!run_block(m, body))
      return false;
    assign_all(m, in->n_results, in->temps, body->results); /* a result may be an argument of the body */
    assign_all(m, in->n_results, in->results, in->temps);
    if (i > INT64_MAX - step)
      break;
  }
  return true;
}

static bool run_if(struct machine *m, const struct instr *in) {
  const struct block *b = in->blocks[int_of(m, in->args[0]) ? 0 : 1];
  if (!run_block(m, b))
    return false;
  assign_all(m, in->n_results, in->results, b->results);
  return true;
}

static bool run_while(struct machine *m, const struct instr *in) {
  const struct block *before = in->blocks[0], *after = in->blocks[1];
  assign_all(m, in->n_args, before->args, in->args);
  for (;;) {
    if (!run_block(m, before))
      return false;
    assign_all(m, in->n_results, in->results, before->results + 1);
    if (!int_of(m, before->results[0]))
      return true;
    assign_all(m, in->n_results, after->args, in->results);
    if (!run_block(m, after))
      return false;
    assign_all(m, in->n_args, in->temps, after->results);
    assign_all(m, in->n_args, before->args, in->temps);
  }
}

static bool run_call(struct machine *m, const struct instr *in) {
  const struct block *body = &in->callee->body;
  assign_all(m, in->n_args, body->args, in->args);
  if (!run_block(m, body))
    return false;
  assign_all(m, in->n_results, in->results, body->results);
  return true;
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

/* A division by zero, which MLIR leaves undefined, gives 0. */
static int64_t evaluate(const struct machine *m, const struct affine *e, const int *args) {
  if (e->kind == AFFINE_OPERAND)
    return int_of(m, args[e->value]);
  if (e->kind == AFFINE_CONSTANT)
    return e->value;
  const int64_t x = evaluate(m, e->x, args), y = evaluate(m, e->y, args);
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

static void run_apply(struct machine *m, const struct instr *in) {
  set_int(m, in->results[0], evaluate(m, in->affine, in->args));
}

static bool run_dim(struct machine *m, const struct instr *in) {
  const int64_t d = int_of(m, in->args[1]);
  if (d < 0 || d >= rank_of(m, in->args[0]))
    return machine_fault(m, in, "names a dimension that is not there");
  set_int(m, in->results[0], view_of(m, in->args[0])->dims[d]);
  return true;
}

static bool run_instr(struct machine *m, const struct instr *in) {
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
    run_collapse(m, in);
    return true;
  case OP_EXPAND:
    run_expand(m, in);
    return true;
  case OP_CAST:
    assign(m, in->results[0], in->args[0]);
    return true;
  case OP_GLOBAL:
    run_global(m, in);
    return true;
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
  case OP_INDEX: /* only in bodies */
    break;
  }
  assert(!"an instruction of a block");
  return false;
}

static bool run_block(struct machine *m, const struct block *b) {
  for (int k = 0; k < b->code.n; k++)
    if (!run_instr(m, &b->code.v[k]))
      return false;
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

enum status interp_run(const struct interp_program *p, const struct interp_buffer *args, interp_taker *take, void *user,
                       struct error *err) {
  return interp_run_watched(p, args, take, user, NULL, err);
}

enum status interp_run_watched(const struct interp_program *p, const struct interp_buffer *args, interp_taker *take,
                               void *user, struct interp_watch *watch, struct error *err) {
  struct machine m = {.p = p, .watch = watch, .err = err};
  const struct block *body = &p->entry->body;
  struct arena scratch;
  arena_init(&scratch);
  set_up(&m, &scratch);
  for (int k = 0; k < body->n_args; k++) {
    struct view *v = view_of(&m, body->args[k]);
    v->base = v->data = args[k].data;
    memcpy(v->dims, args[k].dims, (size_t)rank_of(&m, body->args[k]) * sizeof *v->dims);
    memcpy(v->strides, args[k].strides, (size_t)rank_of(&m, body->args[k]) * sizeof *v->strides);
  }
  const bool ok = run_block(&m, body);
  for (int k = 0; ok && k < body->n_results; k++) {
    const struct view *v = view_of(&m, body->results[k]);
    struct interp_buffer out = {.data = v->data};
    memcpy(out.strides, v->strides, (size_t)rank_of(&m, body->results[k]) * sizeof *v->strides);
    take(user, k, &out);
  }
  free_all(&m);
  arena_clear(&scratch);
  return ok ? ST_OK : ST_INPUT;
}
