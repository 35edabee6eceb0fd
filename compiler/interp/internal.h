/* internal: the program in memory, shared by the files of interp.
 *
 *   read.c        makes the program from MLIR
 *   read_linalg.c structured operations
 *   read_tensor.c operations on tensors
 *   lifetime.c    finds the last use of every view
 *   run.c         control flow, views
 *   memory.c      blocks of memory
 *   parts.c       copies that are put off
 *   memo.c        operations that were run before
 *   memo_scan.c   what an operation does, as a part of its key
 *   tensor.c      runs operations on tensors
 *   linalg.c      runs structured operations
 *   arith.c       operations on rows of elements
 *   writes.c      finds the arguments that are written
 *   products.c    matrix products that were computed before
 *   copy.c        copies between layouts
 *   watch.c       keeps a value
 *   native.c      calls of functions that the caller computes
 *   topk.c        calls that find the largest elements of rows
 *
 * Every value of MLIR has a slot.  A scalar's slot holds one element in the form of its class; the slot of a memref or a
 * tensor holds the number of its view.
 *
 * A view is a part of a block of memory.  A block counts the slots that hold views of it, and a slot loses its view after
 * the last use of its value; a block without views is used again.  A memref's elements are written in place.  A tensor
 * never changes: an operation that makes a tensor from another one writes into a new block, or into the operand's block
 * if this was the operand's last use and no other slot has a view of the block.
 */
#ifndef INTERP_INTERNAL_H
#define INTERP_INTERNAL_H

#include "mlir-c/AffineExpr.h"

#include "base/index.h"
#include "interp/interp.h"
#include "sim/product.h"

/* The form in which elements are computed: int64_t, sign-extended (i1: 0 or 1); float, for f32 and narrower types, whose
 * values are exact in it; double. */
enum form { FORM_INT, FORM_F32, FORM_F64 };
enum { FORM_SIZE = 8 }; /* bytes that a row has for each element, in every form */

static inline enum form form_of(enum dtype t) {
  return t == DT_F64 ? FORM_F64 : dtype_is_float(t) ? FORM_F32 : FORM_INT;
}
static inline size_t form_bytes(enum dtype t) {
  return form_of(t) == FORM_F32 ? sizeof(float) : 8;
}

/* ---- operations on rows ------------------------------------------------------------------------------------------ */

enum arith_op {
#define ARITH(e, name, n) e,
#include "interp/arith.def"
#undef ARITH
  ARITH_COUNT
};

struct arith {
  enum arith_op op;
  enum dtype from, to; /* of the last operand and of the result; signless integers count as signed */
  int predicate;       /* of comparisons */
};

/* Sets n elements of `out` from the operands, which may be the same row as out. */
void arith_row(const struct arith *x, int n, void *out, const void *a, const void *b, const void *c);

/* Convert n elements that lie `step` elements apart in memory to a row, and back. */
void row_load(enum dtype t, const char *at, int64_t step, int n, void *row);
void row_store(enum dtype t, char *at, int64_t step, int n, const void *row);
void row_fill(enum dtype t, int n, void *row, const void *scalar);

/* ---- the program ------------------------------------------------------------------------------------------------- */

enum op {
  OP_ARITH,
  OP_CONSTANT,
  OP_ALLOC,
  OP_DEALLOC,
  OP_LOAD,
  OP_STORE,
  OP_COPY,
  OP_SUBVIEW,
  OP_REINTERPRET,
  OP_COLLAPSE,
  OP_EXPAND,
  OP_CONSTANT_TENSOR,
  OP_INSERT_SLICE,
  OP_INSERT,
  OP_ELEMENTS, /* a tensor of scalars */
  OP_CAST,
  OP_GLOBAL,
  OP_DIM,
  OP_AFFINE_APPLY,
  OP_FOR,
  OP_IF,
  OP_WHILE,
  OP_CALL,
  OP_STRUCTURED,
  OP_WATCH,
  OP_NATIVE,
  OP_TOPK,
  OP_INDEX, /* linalg.index, in bodies only */
};

/* A value's type.  dtype of a memref or a tensor: of its elements.  view: the number of its view; -1 for a scalar. */
struct slot {
  enum dtype t;
  int view;
  bool is_tensor;
};

struct instr;
struct block {
  int n_args, n_results; /* results: what the terminator hands on; of scf.condition the condition is the first */
  const int *args, *results;
  struct {
    struct instr *v;
    int n, cap;
  } code;
  int n_ends; /* slots that lose their views at the block's end */
  int *ends;
};

/* An affine expression: a constant plus a coefficient for each loop (of a structured operation) or operand. */
struct linear {
  int64_t constant;
  const int64_t *by;
};

/* Any affine expression of operands. */
struct affine {
  enum { AFFINE_OPERAND, AFFINE_CONSTANT, AFFINE_ADD, AFFINE_MUL, AFFINE_MOD, AFFINE_FLOOR, AFFINE_CEIL } kind;
  int64_t value; /* the number of the operand, or the constant */
  const struct affine *x, *y;
};

struct operand {
  int slot; /* of an output that is a tensor: the result's */
  int init; /* the slot of a tensor that an output starts from; -1 for inputs and memrefs */
  enum dtype t;
  int rank; /* -1: a scalar, which is the same for all elements */
  const struct linear *at;
  bool is_read; /* the body uses the element */
  bool is_all;  /* each element is that of one iteration, if the extents are equal */
};

/* Values of the body are rows.  The operands come first, then scalars from outside, then what the body computes. */
struct body_value {
  enum dtype t;
  int outer; /* slot of a scalar from outside; -1 for others */
};
struct structured {
  int n_loops, n_operands, n_inputs;
  const struct operand *operands;
  const bool *is_parallel;
  const int *extent_operand, *extent_dim; /* the operand and its dimension that give the extent of each loop */
  int n_values;
  const struct body_value *values;
  struct {
    struct instr *v;
    int n, cap;
  } code;
  const int *yields;
  bool is_copy; /* it only copies elements of one type from operand copied_from to the output */
  int copied_from;
  bool is_fold;       /* the last instruction combines an element with the output, and nothing else uses that */
  enum dtype product; /* of a matrix product's operands, with f32 accumulation; DT_NONE for other operations */
  bool transposed[2];
  bool accumulates; /* a matrix product: an output that nothing has written starts from zero, as in PSUM */
};

struct instr {
  enum op op;
  int n_args, n_results;
  const int *args, *results;
  union {
    struct arith arith;
    uint64_t bits;    /* constant: in the form of its type */
    const void *data; /* global */
    const struct structured *structured;
    struct block *blocks[2]; /* for, if, while */
    const struct function *callee;
    const struct native *native; /* native.c */
    const struct topk *topk;     /* topk.c */
    const struct affine *affine; /* apply */
    int64_t index;               /* index: the loop */
    struct {
      /* offsets, sizes, strides: of each dimension; DYNAMIC takes the next operand after the memref */
      int n; /* dimensions of offsets, sizes and strides */
      const int64_t *offsets, *sizes, *strides;
      const int *groups; /* collapse, expand: the dimension of the shorter shape that each one of the longer belongs to;
                            subview: the result's dimension, -1 if it is dropped */
    } view;
  };
  const int *temps; /* for, while: slots of the types of the values handed on; collapse of a tensor: of its operand's */
  /* Slots whose views are not used after the instruction.  The first n_sole of them are used by it once, as an operand. */
  int n_dying, n_sole;
  const int *dying;
  const char *name; /* of the operation, for messages */
};

struct function {
  const char *name;
  struct block body;
  bool is_read;
};

struct interp_program {
  struct function *entry;
  int n_slots, n_views;
  const struct slot *slots;
  const int *ranks; /* of each view */
  int rank_sum;     /* of all views */
  int n_rows;       /* most values of a body */
};

extern const uint64_t interp_unwritten; /* what memory holds that nothing has written */
extern const int64_t interp_dynamic;    /* marks a dynamic offset, size or stride */

/* ---- reading ----------------------------------------------------------------------------------------------------- */

struct reader;
bool read_unknown(struct reader *r, const char *what); /* false */
struct arena *reader_arena(struct reader *r);
enum dtype read_dtype(MlirType element);
int reader_slot(struct reader *r, MlirValue v);
int reader_rank(struct reader *r, MlirValue v); /* of a memref; -1 of a scalar */
void reader_rows(struct reader *r, int n);      /* a body has n values */
bool read_structured(struct reader *r, MlirOperation op, struct instr *out);
bool read_arith(struct reader *r, MlirOperation op,
                struct arith *out);                   /* false without a reason if op is another one */
bool read_watch(MlirOperation op, struct instr *out); /* false: op is no call of INTERP_WATCH */
bool read_native(struct reader *r, MlirOperation op, struct instr *out); /* false: op is no call of such a function */
bool read_topk(struct reader *r, MlirOperation op, struct instr *out);   /* the same */
bool read_constant(struct reader *r, MlirOperation op, uint64_t *bits);
bool read_linear(struct arena *a, MlirAffineExpr e, int n, int n_dims, struct linear *out);
/* Reads an affine.apply; false if its map is unknown. */
bool read_apply(struct reader *r, MlirOperation op, struct instr *in);
bool read_tensor(struct reader *r, MlirOperation op, struct instr *out);
bool read_tensor_constant(struct reader *r, MlirOperation op, struct instr *out);
const int64_t *read_list(struct reader *r, MlirOperation op, const char *name, int *n); /* see read.c */
bool read_slice(struct reader *r, MlirOperation op, MlirType smaller, struct instr *out);
bool read_reshape(struct reader *r, MlirOperation op, struct instr *out);
bool read_elements(struct reader *r, MlirAttribute v, enum dtype t, bool *is_splat, void **out);

/* Sets the lists of slots that lose their views, in this block and those inside of it. */
void find_lifetimes(struct arena *a, int n_slots, const struct slot *slots, struct block *body);

/* ---- running ----------------------------------------------------------------------------------------------------- */

struct memory_block;
struct view {
  char *base, *data; /* of the allocation; of element 0 */
  int64_t *dims, *strides;
  struct memory_block *block; /* that it is a part of; NULL: memory that the program does not own */
  bool is_fixed;              /* the memory does not change as long as the machine's products are used */
};
enum { FREE_LISTS = 64 };
struct machine {
  const struct interp_program *p;
  struct interp_products *products; /* NULL: every product is computed */
  uint64_t *scalars;                /* by slot */
  struct view *views;
  char *rows;
  struct memory_block *blocks, *free[FREE_LISTS];
  size_t bytes;                       /* of all blocks */
  struct interp_watch *watch;         /* or NULL */
  const struct interp_native *native; /* or NULL */
  struct time_limit limit;
  unsigned n_operations;  /* that were run */
  struct memo_room *memo; /* memo.c; NULL: no operation is looked up */
  struct error *err;
};
bool run_structured(struct machine *m, const struct instr *in);
bool run_watch(struct machine *m, const struct instr *in);
bool run_native(struct machine *m, const struct instr *in);
bool run_topk(struct machine *m, const struct instr *in);
/* Runs an operation of the function's own block, or takes what an equal one has computed before. */
bool memo_run(struct machine *m, const struct instr *in);
bool run_instr(struct machine *m, const struct instr *in);

/* products.c: 128 bits of what was mixed in. */
struct key {
  uint64_t low, high;
};
static inline void key_mix(struct key *k, uint64_t v) {
  k->low = hash_mix(k->low, v);
  k->high = hash_mix(k->high, v + 0x632be59bd9b4e019u);
}

/* A matrix in a product.  is_fixed: its memory does not change as long as the products are used; data NULL: all zeros. */
struct factor {
  struct sim_matrix x;
  bool is_fixed;
};
/* As sim_multiply; takes the result of an earlier product from `p`, or keeps it there. */
void interp_multiply(struct interp_products *p, const struct factor *a, const struct factor *b,
                     const struct sim_matrix *c, enum dtype t);
/* Returns c + a b, row-major, which `p` keeps; NULL if it cannot keep it. */
char *interp_product(struct interp_products *p, const struct factor *a, const struct factor *b, const struct factor *c,
                     enum dtype t);
bool machine_fault(struct machine *m, const struct instr *in, const char *what); /* false */

static inline struct view *view_of(const struct machine *m, int slot) {
  return &m->views[m->p->slots[slot].view];
}
static inline int rank_of(const struct machine *m, int slot) {
  return m->p->ranks[m->p->slots[slot].view];
}

/* memory.c.  machine_allocate gives the view a block; its dims and strides are not set.  False, ST_LIMIT: there is not so much
 * memory. */
bool machine_allocate(struct machine *m, const struct instr *in, struct view *v, size_t bytes);
void machine_assign_view(struct machine *m, struct view *to, const struct view *from, int rank);
void machine_drop_view(struct machine *m, struct view *v); /* the slot has no view any more */
void machine_release(struct view *v);                      /* memref.dealloc */
void machine_free_all(struct machine *m);
/* The instruction reads elements of the slot's view; false with a fault if the memory was released. */
bool machine_may_use(struct machine *m, const struct instr *in, int slot);
/* The same, but the instruction writes some elements of the view, or all. */
bool machine_may_write(struct machine *m, const struct instr *in, int slot);
bool machine_will_fill(struct machine *m, const struct instr *in, int slot);
bool machine_is_sole_view(const struct view *v); /* of its block */
bool machine_is_unwritten(const struct view *v); /* nothing has written its block */
/* The same, but the instruction adds a product to the view, whose unwritten elements count as zeros; *has_unwritten: there
 * may be some. */
bool machine_may_accumulate(struct machine *m, const struct instr *in, int slot, bool *has_unwritten);
/* For such an instruction: nothing has written the slot's block, all of which the view is; a product has accumulated into
 * all of the block. */
bool machine_is_zero(const struct machine *m, int slot);
bool machine_is_sum(const struct machine *m, int slot);

/* parts.c: n rows of `length` bytes, which lie `step` bytes apart. */
struct rows {
  char *data;
  int64_t n, length, step;
};
/* Copies into a block that were put off, in their order. */
enum { PARTS_MAX = 512 }; /* they are searched one after the other */
struct parts {
  struct part {
    struct rows to;
    const char *from;
    int64_t from_step;
  } *v;
  int n, cap;
};
bool parts_rows(const struct view *v, int rank, size_t size, struct rows *out); /* false: it does not consist of rows */
bool parts_find(const struct parts *p, const struct rows *rows,
                struct rows *from);                    /* false: no part writes all of them */
bool parts_add(struct parts *p, const struct part *x); /* false: there are too many */
void parts_copy(struct parts *p);                      /* does what was put off */

/* The digest of rows; is_fixed: they do not change as long as the products are used. */
struct key products_digest(struct interp_products *p, const struct rows *x, bool is_fixed);
/* Returns a copy of the bytes, which have this digest, that lasts as long as the products; one copy of equal bytes.  NULL
 * if there is no room. */
const char *products_keep_bytes(struct interp_products *p, const char *data, size_t bytes, struct key digest);

/* memo.c */
struct memo *memo_new(struct arena *a); /* what operations have computed */
struct memo *products_memo(struct interp_products *p);
struct memo_room *memo_room(struct arena *a, int n_slots); /* for one run */

/* Where the view's rows lie in memory that does not change; false if they do not. */
bool machine_find_fixed(const struct machine *m, int slot, struct rows *out);
/* Puts off a copy of `from`, whose memory does not change, into the view, a matrix of elements of `size` bytes; false if
 * it must be done now. */
bool machine_put_off(const struct machine *m, const struct view *to, size_t size, const struct rows *from);
/* The same for a product of f32 that has accumulated into the slot's view. */
bool machine_put_off_sum(const struct machine *m, int slot, const struct rows *from);
/* machine_put_off, for an instruction that copies a slot's view.  False without a fault. */
bool machine_put_off_copy(const struct machine *m, int from, const struct view *to);
/* The bytes of a block. */
struct memory_block {
  struct memory_block *next; /* of all blocks */
  struct memory_block *next_free;
  size_t size, bytes; /* of data; that the program asked for */
  int64_t n_views;    /* slots that hold a view of it */
  bool is_raw, is_released;
  bool is_sum;        /* a product has accumulated into all of it, and nothing else has written it since */
  struct parts parts; /* elements that it has once they are copied */
  bool has_digest;    /* nothing has written the block since it had this one (memo.c) */
  struct key digest;
  max_align_t data[];
};

/* run.c */
int64_t machine_int(const struct machine *m, int slot);
/* The value of e, of whose operands `operand` gives the numbers.  A division by zero, which MLIR leaves undefined, gives 0. */
int64_t machine_affine(const struct affine *e, int64_t (*operand)(void *user, int k), void *user);
int64_t machine_next_value(const struct machine *m, int64_t fixed, const int **operands);
void machine_row_major(struct view *v, int rank);
char *element_at(const struct machine *m, int slot, const int *indices); /* NULL: outside */
bool machine_slice(struct machine *m, const struct instr *in, const struct view *from, const int *operands,
                   struct view *to);

/* tensor.c */
/* Gives the result the shape of the operand `from` and, if they are needed, its elements.  Afterwards the result may be
 * written: it has its own memory, or that of `from`, which is not used any more.  False with a fault. */
MUST_USE bool tensor_begin(struct machine *m, const struct instr *in, int result, int from, bool needs_elements);
/* Makes `result` a row-major tensor with the elements of `from`, of the same rank: its view if that is row-major. */
MUST_USE bool tensor_pack(struct machine *m, const struct instr *in, int result, int from);
void run_constant_tensor(struct machine *m, const struct instr *in);
bool run_insert_slice(struct machine *m, const struct instr *in);
bool run_insert(struct machine *m, const struct instr *in);
bool run_elements(struct machine *m, const struct instr *in);

#endif
