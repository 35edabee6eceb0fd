/* linalg_to_nisa: declarations that the files of the pass share.  linalg_to_nisa.c describes the pass.
 *
 * The pass lowers one operation at a time.  A loop of the operation is one atom, or several atoms in row-major order
 * once the loop has been split.  Every operand is a view of a buffer: for each dimension of the buffer, the view has
 * the index as a sum of multiples of atoms.  All views of one operation use the same atoms, so any two of them can
 * be operands of one instruction.
 */
#ifndef PASSES_LINALG_TO_NISA_H
#define PASSES_LINALG_TO_NISA_H

#include "base/table.h"
#include "ir/build.h"
#include "ir/structured.h"
#include "nisa/nisa.h"
#include "passes/pass.h"

/* ---- the pass --------------------------------------------------------------------------------------------------- */

/* The identity matrix of a type in SBUF, for transposes in one function. */
struct ln_identity {
  MlirOperation function;
  MlirType element;
  MlirValue matrix;
};
enum { LN_IDENTITIES_MAX = 3 }; /* f32, bf16, f16 */

struct ln {
  struct pass_run *run;
  MlirOperation op;    /* the operation that is being lowered */
  struct ir_builder b; /* builds before op */
  struct table
      allocs; /* the result of a memref.alloc or memref.load -> the result of the nisa.alloc that replaces it */
  MlirAttribute codes;              /* of custom ops; may be null */
  struct arena scratch;             /* for the views of op */
  uint64_t said[NISA_ENGINE_COUNT]; /* of op: for each engine the kinds of instructions that a remark names, as bits */
  bool is_converted;                /* memory spaces are #nisa.mem already */
  int n_identities;
  struct ln_identity identity[LN_IDENTITIES_MAX];
};

/* Adds an error about ln->op: "not supported on NISA: linalg.pooling: <reason>".  Returns ST_INPUT. */
enum status ln_fail(struct ln *ln, const char *fmt, ...) PRINTF(2, 3);
/* The memory of a memref; MEM_HBM if it has none.  Memory spaces are integers until the end of the pass. */
enum mem_space ln_space(MlirValue memref);
enum mem_space ln_type_space(MlirType memref);
/* As memory spaces are at the time. */
MlirType ln_memref(struct ln *ln, MlirType element, int rank, const int64_t *dims, enum mem_space s);
/* The buffer that NISA operations use for v: v itself unless another buffer replaces it. */
MlirValue ln_buffer(struct ln *ln, MlirValue v);
/* Inserts op at the insertion point of ln->b. */
MlirOperation ln_insert(struct ln *ln, MlirOperation op);

/* custom.c: custom ops, and the kernel's native code (ir.h).  codes: the module's nkipy.custom_op_bodies; may be null. */
bool ln_has_code(const struct ir *ir, MlirOperation call, MlirAttribute codes);
/* Replaces every func.call by its code.  Every call has code, and memory spaces are #nisa.mem already. */
MUST_USE enum status ln_inline_custom(struct pass_run *run, MlirAttribute codes);
/* collective.c: an attribute of the function that ln->op calls; null if it has none. */
MlirAttribute ln_declared(struct ln *ln, const char *name);
/* Lowers ln->op, a call of a function with nkipy.collective. */
enum status ln_lower_collective(struct ln *ln, MlirAttribute what);
/* The memref that v is a cast of, or the buffer that replaces it. */
MlirValue ln_without_casts(struct ln *ln, MlirValue v);
/* Allocates an array in HBM for a result of the call and replaces the uses of the result by it. */
MlirValue ln_new_result(struct ln *ln, MlirValue result);
/* topk.c: lowers ln->op, a call of a function with nkipy.topk. */
enum status ln_lower_topk(struct ln *ln, MlirAttribute what);

/* finish.c: the end of the pass.  Replaces those lowered allocations that are still used, and erases all of them. */
enum status ln_replace_allocs(struct ln *ln, const struct ir_ops *allocs);
/* Adds an error about each operation that is neither an instruction nor allowed beside instructions. */
enum status ln_refuse_leftovers(struct ln *ln);
/* Converts memory spaces to #nisa.mem, removes nkipy attributes, and adds nki.output_names to functions. */
void ln_convert_types(struct ln *ln);
void ln_erase_declarations(struct pass_run *run);
/* Adds "12 instructions, loops counted once: 4 tensor, 3 vector, 5 dma" to each function. */
void ln_remark_engines(struct pass_run *run, int n_merged);

/* ---- atoms and views -------------------------------------------------------------------------------------------- */

enum {
  LN_ATOMS_MAX = 24,
  /* Loops longer than 1.  Each takes a dimension of a temporary buffer, after the partitions. */
  LN_LOOPS_MAX = NISA_RANK_MAX - 1,
};

struct ln_term {
  int atom;
  int64_t coef;
};
/* offset + constant + sum of coef * atom, with at most one term for each atom; offset may be null. */
struct ln_form {
  MlirValue offset;
  int64_t constant;
  int n;
  struct ln_term term[LN_ATOMS_MAX];
};

struct ln_view {
  MlirValue base;
  enum mem_space space;
  MlirType element;
  bool is_temp; /* ln_release releases it */
  int rank;
  struct ln_form index[NISA_RANK_MAX];
};

struct ln_atom {
  int64_t extent;
  int loop;
};

struct ln_walk {
  struct ln *ln;
  int n_loops;
  int64_t extent[STRUCTURED_LOOPS_MAX];
  int n_atoms, order[LN_ATOMS_MAX]; /* order: the atoms in row-major order of the loops */
  struct ln_atom atom[LN_ATOMS_MAX];
  struct {
    struct ln_view **v;
    int n, cap;
  } views; /* all views that use the atoms; splitting an atom changes them, too */
};

/* A set of atoms: bit k is atom k. */
typedef uint64_t ln_atoms;

/* Every loop longer than 1 becomes an atom.  Fails if there are more than LN_LOOPS_MAX of these. */
MUST_USE enum status ln_walk_init(struct ln_walk *w, struct ln *ln, int n_loops, const int64_t *extents);
/* Initializes w without loops, for single elements. */
void ln_walk_element(struct ln_walk *w, struct ln *ln);

/* Returns in *out the part of a buffer that operand v covers when it is read through `map`, from the loops to v's
 * dimensions (null: the identity).  Follows subview, collapse_shape, expand_shape, cast and reinterpret_cast to the
 * buffer.  In HBM it stops at a reshape that no split of the loops can express; the view's base is then the result
 * of that reshape. */
enum status ln_trace(struct ln_walk *w, MlirValue v, MlirAffineMap map, struct ln_view **out);
/* Returns in *out a single element of v, at the n indices of a memref.load; for n 0, at index 0 of every dimension. */
enum status ln_trace_element(struct ln_walk *w, MlirValue v, int n, MlirValue const *indices, struct ln_view **out);
/* Follows the views that define v->base. */
enum status ln_follow(struct ln_walk *w, struct ln_view *v);

/* Splits the atom into inner * atom + a new atom, the last one, in all views.  False if inner does not divide its extent, or there are
 * too many atoms. */
bool ln_split_atom(struct ln_walk *w, int atom, int64_t inner);

/* Allocates a buffer with an element for every value of `atoms`.  The atoms that are also in `par` are its
 * partitions. */
struct ln_view *ln_temp(struct ln_walk *w, MlirType element, enum mem_space s, ln_atoms par, ln_atoms atoms);
/* Releases v if it is a temporary buffer; v may be NULL. */
void ln_release(struct ln *ln, const struct ln_view *v);

/* f += coef * atom; f += factor * v; f += factor * g. */
void ln_add_term(struct ln_form *f, int atom, int64_t coef);
void ln_add_value(struct ir_builder *b, struct ln_form *f, MlirValue v, int64_t factor);
void ln_add_form(struct ir_builder *b, struct ln_form *f, const struct ln_form *g, int64_t factor);
ln_atoms ln_form_atoms(const struct ln_form *f);

/* The row-major position in a loop, as a formula. */
struct ln_form ln_loop_form(const struct ln_walk *w, int loop);
ln_atoms ln_all_atoms(const struct ln_walk *w);
ln_atoms ln_loop_atoms(const struct ln_walk *w, int loop);
ln_atoms ln_view_atoms(const struct ln_view *v);      /* the atoms that its indices depend on */
ln_atoms ln_partition_atoms(const struct ln_view *v); /* on chip: the atoms of dimension 0; in HBM: none */
/* True if both are on chip and an instruction that accesses both finds each element in the same partition. */
bool ln_same_partitions(const struct ln_view *a, const struct ln_view *b);
/* True if a and b are the same elements for all values of the atoms. */
bool ln_same_elements(const struct ln_view *a, const struct ln_view *b);
/* True if the partitions of v are exactly the atoms of par in row-major order. */
bool ln_has_partitions(const struct ln_walk *w, const struct ln_view *v, ln_atoms par);
int64_t ln_extent(const struct ln_walk *w, ln_atoms atoms); /* the product of their extents */

/* The order in which an instruction iterates over atoms: the partitions, then the others. */
struct ln_shape {
  int n_par, n;
  int atom[LN_ATOMS_MAX];
};
struct ln_shape ln_shape_of(const struct ln_walk *w, ln_atoms par, ln_atoms atoms);
/* Returns in *out v as an operand of an instruction of that shape.  Fails if the instruction would have too many
 * dimensions. */
enum status ln_access(struct ln_walk *w, const struct ln_view *v, const struct ln_shape *s, struct nisa_access *out);
struct nisa_access ln_scalar(MlirValue v);

/* ---- instructions ----------------------------------------------------------------------------------------------- */

/* The largest number of attributes of an instruction, without those of its operands. */
enum { LN_ATTRS_MAX = 8 };

struct ln_attr {
  const char *name;
  MlirAttribute value;
};
MlirAttribute ln_text(struct ln *ln, const char *s);
MlirAttribute ln_bool(struct ln *ln, bool v);
MlirAttribute ln_int(struct ln *ln, int64_t v);

/* Emits an instruction.  The operands are in the order of ops.def.  attrs ends with a NULL name; NULL: none. */
MlirOperation ln_emit(struct ln *ln, enum nisa_kind k, enum nisa_engine engine, const struct nisa_access *operands,
                      const struct ln_attr *attrs);

/* dst = src over all atoms of dst, whatever their memories are; chooses the instruction.  is_unsigned: integers in src
 * and dst are unsigned. */
enum status ln_move(struct ln_walk *w, const struct ln_view *dst, const struct ln_view *src, bool is_unsigned);
/* transpose.c: dst = src for two views of the same loops: each has those on its partitions that the other has not.
 * ln_can_transpose: both are in SBUF and of a type that the tensor engine passes through. */
bool ln_passes_through(MlirType element);
/* The identity matrix of this type in the function of ln->op, of all partitions; it is released before the function returns. */
MlirValue ln_identity(struct ln *ln, MlirType element);
/* Emits psum = src transposed, where src has so many rows. */
void ln_emit_turn(struct ln *ln, const struct nisa_access *psum, const struct nisa_access *src, int64_t rows);
bool ln_can_transpose(const struct ln_view *dst, const struct ln_view *src);
enum status ln_transpose(struct ln_walk *w, const struct ln_view *dst, const struct ln_view *src);
/* Returns in *out a view in SBUF with the elements of src and the partitions `par`: src itself if it is such a view,
 * otherwise a copy. */
enum status ln_stage(struct ln_walk *w, struct ln_view *src, ln_atoms par, struct ln_view **out);
/* dst = scalar */
enum status ln_set(struct ln_walk *w, const struct ln_view *dst, MlirValue scalar);

/* Chooses the atoms that the operation's instructions spread over the partitions: those of the first view on chip
 * (dst comes before the inputs), otherwise the first loop. */
enum status ln_choose_partitions(struct ln_walk *w, const struct ln_view *dst, int n, struct ln_view *const *inputs,
                                 ln_atoms *out);

/* Opens a loop of n iterations at ln->b, which builds inside it afterwards.  Returns the counter. */
MlirValue ln_open_loop(struct ln *ln, int64_t n);
/* Replaces an atom of v by the counter of a loop. */
void ln_fix_atom(struct ln *ln, struct ln_view *v, int atom, MlirValue iv);

/* ---- lowering of one operation ---------------------------------------------------------------------------------- */

enum status ln_lower_copy(struct ln *ln);   /* memref.copy, linalg.copy, transpose, broadcast */
enum status ln_lower_fill(struct ln *ln);   /* linalg.fill */
enum status ln_lower_matmul(struct ln *ln); /* linalg.matmul with any maps */
enum status ln_lower_structured(struct ln *ln, const struct structured *s); /* element-wise, reduction, gather */

/* The same elements in the same order, apart from the base. */
bool ln_same_access(const struct nisa_access *a, const struct nisa_access *b);
/* fold.c: data that a block loads twice is loaded once; sums are added up by the activation that writes what is added.  Both
 * return the number of instructions that they save. */
int ln_reuse_loads(struct pass_run *run);
int ln_sum_along(struct pass_run *run);
/* combine_turns.c: lets several readers read what is transposed in PSUM.  Returns how many buffers. */
int ln_combine_turns(struct pass_run *run);
/* keep.c: buffers in HBM that each partition only uses for itself are in SBUF instead. */
void ln_keep_on_chip(struct ln *ln);
/* widen.c: loads of neighbouring columns become one.  Returns how many it saves. */
int ln_widen_loads(struct pass_run *run);
/* The bytes of SBUF per partition that longer lives of buffers may take, all together. */
struct ln_room {
  bool is_known;
  int64_t bytes;
};
/* Takes so many of them; false if there are fewer. */
bool ln_takes_room(struct pass_run *run, struct ln_room *r, int64_t bytes);
/* combine.c: merges instructions of a finished module.  Both return the number of instructions that they save; the first one
 * only lets reductions write where their result was added to a neutral element. */
int ln_combine_reductions(struct pass_run *run);
int ln_combine(struct pass_run *run);
/* For balance-engines: two instructions on Vector become scalar_tensor_tensor.  Returns how many were saved. */
int ln_combine_tensors(struct pass_run *run);
/* moments.c: mean and variance of rows by bn_stats and bn_aggr.  Returns how many variances it found. */
int ln_moments(struct pass_run *run);

/* The instruction that writes a buffer, and its release. */
struct ln_uses {
  MlirOperation writer, release;
  int n_writers;
  bool is_known; /* all users are instructions that access it */
};
struct ln_uses ln_uses_of(MlirValue buffer);
/* True if v is an argument, or a view of one, that nothing writes and all users of which are instructions and views.  `known` keeps
 * what was found, as long as no writer is added: an argument may have as many uses as the program has loads. */
bool ln_is_read_only(struct table *known, MlirValue v);
/* The allocation of a buffer in SBUF, in the block of op; null for anything else. */
MlirOperation ln_own_alloc(MlirValue buffer, MlirOperation op);
/* Collects the attributes of op that do not belong to an operand.  Returns how many. */
int ln_own_attrs(MlirOperation op, MlirNamedAttribute out[LN_ATTRS_MAX]);
/* True for an instruction that computes element by element in f32, and may write any float (rounded.c). */
bool ln_rounds_when_it_writes(const struct nisa_instr *in);
/* Writes what is only read to be copied where the copy goes (rounded.c).  Returns how many buffers are gone. */
int ln_pass_on(struct pass_run *run);

/* ---- bodies ----------------------------------------------------------------------------------------------------- */

enum ln_kind {
  LN_ONE,     /* a scalar that all elements share */
  LN_MANY,    /* an element of a view */
  LN_POSITION /* a linear function of the loops' indices */
};
struct ln_value {
  MlirValue v; /* in the body */
  enum ln_kind kind;
  MlirValue one;           /* LN_ONE */
  struct ln_view *at;      /* LN_MANY: it has the value of v, perhaps in another type */
  struct ln_form position; /* LN_POSITION */
};

struct ln_body {
  struct ln_walk *w;
  MlirBlock block;
  ln_atoms par;
  MlirValue sink; /* the value that is computed directly into dst; null: none */
  struct ln_view *dst;
  struct {
    struct ln_value *v;
    int n, cap;
  } values;
};

/* Returns the known value of v; a value that was not defined comes from outside the body and is LN_ONE. */
struct ln_value *ln_value_of(struct ln_body *b, MlirValue v);
void ln_define(struct ln_body *b, struct ln_value value);
/* Compiles the operations of the block up to `until`.  A temporary buffer is released after the last operation that
 * needs it; ln_body_finish releases the others. */
enum status ln_compile_body(struct ln_body *b, MlirOperation until);
void ln_body_finish(struct ln_body *b);
/* functions.c: replaces functions of the Scalar engine by operations that ops.c lowers to one activation, and removes what is
 * not used any more. */
void ln_mark_functions(struct ln_body *b);

/* Returns in *out x as a view on chip with the body's partitions.  Later users of x get the same view. */
enum status ln_materialize(struct ln_body *b, struct ln_value *x, struct ln_view **out);
/* dst = position, as integers or converted to dst's type. */
enum status ln_iota(struct ln_walk *w, ln_atoms par, const struct ln_view *dst, const struct ln_form *position);
/* Returns in *out the view that `result` is written to: dst for the sink, otherwise a new buffer over `atoms`.
 * Defines result. */
enum status ln_target(struct ln_body *b, MlirValue result, ln_atoms atoms, struct ln_view **out);

/* A linalg operation with a body.  ln_begin traces its operands and defines the body's arguments. */
struct ln_generic {
  struct ln *ln;
  const struct structured *s;
  struct ln_walk w;
  struct ln_body body;
  MlirOperation yield;
  struct ln_view *view[STRUCTURED_OPERANDS_MAX]; /* NULL for inputs that are not used */
};
enum status ln_begin(struct ln_generic *g, struct ln *ln, const struct structured *s);
struct scan;
enum status ln_lower_scan(struct ln *ln, const struct scan *scan); /* scan.c */

/* An operand of an instruction. */
struct ln_arg {
  const struct ln_view *view; /* NULL: it is `scalar` */
  MlirValue scalar;
};
static inline struct ln_arg ln_data(const struct ln_view *v) {
  return (struct ln_arg){.view = v};
}
static inline struct ln_arg ln_number(MlirValue scalar) {
  return (struct ln_arg){.scalar = scalar};
}
static inline ln_atoms ln_arg_atoms(const struct ln_arg *x) {
  return x->view ? ln_view_atoms(x->view) : 0;
}
/* Returns in *out v as an operand. */
enum status ln_arg_of(struct ln_body *b, MlirValue v, struct ln_arg *out);
/* Returns the constant v of type t as an operand. */
struct ln_arg ln_number_arg(struct ln_body *b, MlirType t, double v);
/* Allocates a buffer in SBUF with the body's partitions. */
struct ln_view *ln_temp_like(struct ln_body *b, MlirType t, ln_atoms atoms);

/* Compiles one operation of arith or math on elements. */
enum status ln_apply(struct ln_body *b, MlirOperation op);
/* True if the instruction of a later operation does the work of op. */
bool ln_is_absorbed(MlirOperation op);
/* The value into which op's result may be computed: the result, or a conversion of it that costs nothing. */
MlirValue ln_converted_result(MlirOperation op);
/* backwards.c: dst = src, where src may go backwards along atoms: the coefficients of their terms are negative. */
enum status ln_move_backwards(struct ln_walk *w, const struct ln_view *dst, const struct ln_view *src);
/* gather.c: memref.load with computed indices. */
enum status ln_gather(struct ln_body *b, MlirOperation load);
/* compare.c: arith.cmpi, cmpf and select. */
enum status ln_compare(struct ln_body *b, MlirOperation op);
enum status ln_select(struct ln_body *b, MlirOperation op);
/* convert.c: conversions between types, and arith.bitcast. */
bool ln_is_conversion(MlirOperation op);
enum status ln_convert(struct ln_body *b, MlirOperation op);
enum status ln_bitcast(struct ln_body *b, MlirOperation op);
/* angles.c */
enum status ln_cos(struct ln_body *b, const struct ln_view *dst, const struct ln_view *x);
enum status ln_arctan2(struct ln_body *b, const struct ln_view *dst, struct ln_arg y, struct ln_arg x);

/* dst = x `op` y, an operator of nisa.h.  x or y is a view. */
enum status ln_arith(struct ln_walk *w, ln_atoms par, const char *op, const struct ln_view *dst, struct ln_arg x,
                     struct ln_arg y, bool is_unsigned);
/* dst = (x `op0` c0) `op1` c1 in f32, in one instruction; reverse0: c0 `op0` x. */
enum status ln_two_ops(struct ln_walk *w, ln_atoms par, const struct ln_view *dst, const struct ln_view *x,
                       const char *op0, double c0, bool reverse0, const char *op1, double c1);
/* dst = function(src), a function of nisa.h; is_unsigned: integers of dst and src are. */
enum status ln_activate(struct ln_walk *w, ln_atoms par, const char *function, const struct ln_view *dst,
                        const struct ln_view *src, bool is_unsigned);
/* dst = 1 / src */
enum status ln_reciprocal(struct ln_walk *w, ln_atoms par, const struct ln_view *dst, const struct ln_view *src);
/* dst = src where the predicate is not 0; reverse: where it is 0. */
enum status ln_copy_where(struct ln_body *b, const struct ln_view *dst, const struct ln_arg *src,
                          const struct ln_view *predicate, bool reverse);

/* Returns the operator of nisa.h for an arith or math operation of two operands; NULL if there is none. */
const char *ln_operator(MlirOperation op, bool *is_unsigned);
/* The type that values of type t have in memory; index has i32.  Null for a type that no engine has. */
MlirType ln_storage(MlirType t);

#endif
