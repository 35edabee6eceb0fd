/* linalg_to_nisa: what the files of the pass share.
 *
 * One operation is lowered at a time.  Its loops span a space; a loop is one atom, or several, row-major, after it had
 * to be split.  Every operand is a view: for each dimension of the buffer it is a part of, the index as a sum of atoms.
 * All views of a space share its atoms, so that any two of them can be operands of one instruction.
 */
#ifndef PASSES_LINALG_TO_NISA_H
#define PASSES_LINALG_TO_NISA_H

#include "base/table.h"
#include "ir/structured.h"
#include "ir/build.h"
#include "nisa/nisa.h"
#include "passes/pass.h"

enum { LN_TERMS_MAX = 24, LN_ATOMS_MAX = 40, LN_VIEWS_MAX = 64 };

/* ---- the pass --------------------------------------------------------------------------------------------------- */

struct ln {
  struct pass_run *run;
  MlirOperation op;    /* being lowered */
  struct ir_builder b; /* before it */
  struct table allocs; /* memref.alloc -> the nisa.alloc that stands for it */
  MlirAttribute codes; /* of custom ops, or null */
};

/* An error about ln->op: "not supported on NISA: linalg.pooling: <reason>".  Returns ST_INPUT. */
enum status ln_fail(struct ln *ln, const char *fmt, ...) PRINTF(2, 3);
/* Until the end of the pass memory spaces are integers. */
enum mem_space ln_space(MlirValue memref);
MlirType ln_memref(struct ln *ln, MlirType element, int rank, const int64_t *dims, enum mem_space s);
/* The buffer that NISA operations use for v: v itself unless it is a memref.alloc that was replaced. */
MlirValue ln_buffer(struct ln *ln, MlirValue v);
MlirOperation ln_insert(struct ln *ln, MlirOperation op); /* at ln->b */

/* Custom ops (custom.c); codes: the module's nkipy.custom_op_bodies, or null. */
bool ln_has_code(MlirOperation call, MlirAttribute codes);
/* Puts code in the place of every func.call; all of them must have some, and memory spaces are #nisa.mem already. */
MUST_USE enum status ln_inline_custom(struct pass_run *run, MlirAttribute codes);
/* Collectives (collective.c): the nkipy.collective of the function that is called, or null; ln->op as an
 * instruction. */
MlirAttribute ln_collective_of(MlirOperation module, MlirOperation call);
enum status ln_lower_collective(struct ln *ln, MlirAttribute what);

/* ---- spaces and views ------------------------------------------------------------------------------------------- */

struct ln_term {
  int atom;
  int64_t coef;
};
/* offset + constant + sum of coef * atom; offset may be null. */
struct ln_form {
  MlirValue offset;
  int64_t constant;
  int n;
  struct ln_term term[LN_TERMS_MAX];
};

struct ln_view {
  MlirValue base;
  enum mem_space space;
  MlirType element;
  bool is_temp; /* to be released by ln_release */
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
  int n_atoms, order[LN_ATOMS_MAX]; /* the atoms in row-major order of the loops */
  struct ln_atom atom[LN_ATOMS_MAX];
  int n_views;
  struct ln_view *view[LN_VIEWS_MAX];
};

/* A set of atoms, as bits. */
typedef uint64_t ln_atoms;

void ln_walk_init(struct ln_walk *w, struct ln *ln, int n_loops, const int64_t *extents);

/* The view that operand v is when it is read through `map` (loops to v's dimensions; null: identity).  Follows
 * subview, collapse_shape, expand_shape, cast and reinterpret_cast down to the buffer; in HBM it stops at a reshape
 * that no split of the loops expresses, which then is the base. */
enum status ln_trace(struct ln_walk *w, MlirValue v, MlirAffineMap map, struct ln_view **out);
/* A single element of v, at constant or SSA indices (memref.load). */
enum status ln_trace_element(struct ln_walk *w, MlirValue v, int n, MlirValue const *indices, struct ln_view **out);

/* A new buffer that has an element for every value of `atoms`, the atoms of `par` on the partitions. */
struct ln_view *ln_temp(struct ln_walk *w, MlirType element, enum mem_space s, ln_atoms par, ln_atoms atoms);
void ln_release(struct ln *ln, const struct ln_view *v);

/* Row-major position in a loop. */
struct ln_form ln_loop_form(const struct ln_walk *w, int loop);
ln_atoms ln_all_atoms(const struct ln_walk *w);
ln_atoms ln_loop_atoms(const struct ln_walk *w, int loop);
ln_atoms ln_view_atoms(const struct ln_view *v);      /* atoms that its index depends on */
ln_atoms ln_partition_atoms(const struct ln_view *v); /* on chip: those of dimension 0; HBM: none */
/* True if both are on chip and instructions would see element for element the same partitions. */
bool ln_same_partitions(const struct ln_view *a, const struct ln_view *b);
/* True if a and b are the same elements, atom for atom. */
bool ln_same_elements(const struct ln_view *a, const struct ln_view *b);
int64_t ln_extent(const struct ln_walk *w, ln_atoms atoms); /* product */

/* The order in which an instruction goes through atoms: partitions, then the others. */
struct ln_shape {
  int n_par, n;
  int atom[LN_ATOMS_MAX];
};
struct ln_shape ln_shape_of(const struct ln_walk *w, ln_atoms par, ln_atoms atoms);
/* The operand for an instruction of that shape. */
enum status ln_access(struct ln_walk *w, const struct ln_view *v, const struct ln_shape *s, struct nisa_access *out);
struct nisa_access ln_scalar(MlirValue v);

/* ---- instructions ----------------------------------------------------------------------------------------------- */

struct ln_attr {
  const char *name;
  MlirAttribute value;
};
MlirAttribute ln_text(struct ln *ln, const char *s);
MlirAttribute ln_bool(struct ln *ln, bool v);
MlirAttribute ln_int(struct ln *ln, int64_t v);

/* Emits the instruction; operands in the order of ops.def, attributes end with a NULL name. */
MlirOperation ln_emit(struct ln *ln, enum nisa_kind k, enum nisa_engine engine, const struct nisa_access *operands,
                      const struct ln_attr *attrs);

/* dst = src over all atoms that dst has, whatever memories they are in, by whichever instruction can do it;
 * is_unsigned: integers in it are. */
enum status ln_move(struct ln_walk *w, const struct ln_view *dst, const struct ln_view *src, bool is_unsigned);
/* A view with the same elements in SBUF whose partitions are `par`: src itself if it is so already. */
enum status ln_stage(struct ln_walk *w, struct ln_view *src, ln_atoms par, struct ln_view **out);
/* Partitions are the atoms of par, counted row-major, and nothing else. */
bool ln_has_partitions(const struct ln_walk *w, const struct ln_view *v, ln_atoms par);
/* dst = scalar. */
enum status ln_set(struct ln_walk *w, const struct ln_view *dst, MlirValue scalar);

/* Which atoms the operation's instructions spread over the partitions, from the views on chip, dst first. */
enum status ln_choose_partitions(struct ln_walk *w, const struct ln_view *dst, int n, struct ln_view *const *inputs,
                                 ln_atoms *out);

/* ---- one operation each ----------------------------------------------------------------------------------------- */

enum status ln_lower_copy(struct ln *ln);   /* memref.copy, linalg.copy, transpose, broadcast */
enum status ln_lower_fill(struct ln *ln);   /* linalg.fill */
enum status ln_lower_matmul(struct ln *ln); /* linalg.matmul with any maps */
enum status ln_lower_structured(struct ln *ln, const struct structured *s); /* element-wise, reduction, gather */

/* combine.c: on a module of instructions with their memory spaces.  Returns how many it has saved. */
int ln_combine(struct pass_run *run);

/* ---- bodies ----------------------------------------------------------------------------------------------------- */

/* A value in a body: a scalar for all elements, an element of a view, or a linear function of the loops' indices. */
enum ln_kind { LN_ONE, LN_MANY, LN_POSITION };
struct ln_value {
  MlirValue v; /* in the body */
  enum ln_kind kind;
  MlirValue one;           /* LN_ONE */
  struct ln_view *at;      /* LN_MANY: where it is; perhaps in another type, with the same value */
  struct ln_form position; /* LN_POSITION */
};

struct ln_body {
  struct ln_walk *w;
  MlirBlock block;
  ln_atoms par;
  MlirValue sink; /* the value that is to be computed right into dst; null: none */
  struct ln_view *dst;
  struct {
    struct ln_value *v;
    int n, cap;
  } values;
};

struct ln_value *ln_value_of(struct ln_body *b, MlirValue v); /* an unknown value comes from outside: LN_ONE */
void ln_define(struct ln_body *b, struct ln_value value);
/* Compiles the operations of the block up to `until`.  Temporaries go when the last operation that needs them is done;
 * ln_body_finish releases the others. */
enum status ln_compile_body(struct ln_body *b, MlirOperation until);
void ln_body_finish(struct ln_body *b);

/* x as a view on chip with the body's partitions; remembers it. */
enum status ln_materialize(struct ln_body *b, struct ln_value *x, struct ln_view **out);
/* Writes position as integers, or converted to dst's type. */
enum status ln_iota(struct ln_walk *w, ln_atoms par, const struct ln_view *dst, const struct ln_form *position);
/* What result (of an operation on these operands) is written to: the sink or a new buffer; defines result. */
enum status ln_target(struct ln_body *b, MlirValue result, ln_atoms atoms, struct ln_view **out);
/* One operation on elements, of arith or math. */
enum status ln_apply(struct ln_body *b, MlirOperation op);
/* True if op is part of what a later operation does in one instruction. */
bool ln_is_absorbed(MlirOperation op);
/* memref.load at computed places. */
enum status ln_gather(struct ln_body *b, MlirOperation load);

struct ln_arg {
  const struct ln_view *view; /* or NULL: */
  MlirValue scalar;
};
static inline struct ln_arg ln_data(const struct ln_view *v) {
  return (struct ln_arg){.view = v};
}
static inline struct ln_arg ln_number(MlirValue scalar) {
  return (struct ln_arg){.scalar = scalar};
}
/* dst = x `op` y, an operator of nisa.h; one of them is a view. */
enum status ln_arith(struct ln_walk *w, ln_atoms par, const char *op, const struct ln_view *dst, struct ln_arg x,
                     struct ln_arg y, bool is_unsigned);
/* dst = (x `op0` c0) `op1` c1 in f32, in one instruction; reverse0: c0 `op0` x. */
enum status ln_two_ops(struct ln_walk *w, ln_atoms par, const struct ln_view *dst, const struct ln_view *x,
                       const char *op0, double c0, bool reverse0, const char *op1, double c1);
/* dst = function(src), one of nisa.h's; dst = 1 / src. */
enum status ln_activate(struct ln_walk *w, ln_atoms par, const char *function, const struct ln_view *dst,
                        const struct ln_view *src);
enum status ln_reciprocal(struct ln_walk *w, ln_atoms par, const struct ln_view *dst, const struct ln_view *src);
/* dst = src where the predicate is not 0; reverse: where it is. */
enum status ln_copy_where(struct ln_body *b, const struct ln_view *dst, const struct ln_arg *src,
                          const struct ln_view *predicate, bool reverse);
/* What v is in an instruction; a new buffer in SBUF with the body's partitions (NULL if there are too many); a constant. */
enum status ln_arg_of(struct ln_body *b, MlirValue v, struct ln_arg *out);
struct ln_view *ln_temp_like(struct ln_body *b, MlirType t, ln_atoms atoms);
struct ln_arg ln_number_arg(struct ln_body *b, MlirType t, double v);
/* A loop of n turns at ln->b, which goes into its body; its counter.  An atom of v becomes that counter. */
MlirValue ln_open_loop(struct ln *ln, int64_t n);
void ln_fix_atom(struct ln *ln, struct ln_view *v, int atom, MlirValue iv);
/* angles.c */
enum status ln_cos(struct ln_body *b, const struct ln_view *dst, const struct ln_view *x);
enum status ln_arctan2(struct ln_body *b, const struct ln_view *dst, struct ln_arg y, struct ln_arg x);
/* The operator that an arith or math operation of two operands is; NULL if it is none. */
const char *ln_operator(MlirOperation op, bool *is_unsigned);
/* The type that values of t have in memory: index is i32.  Null for types that no engine has. */
MlirType ln_storage(MlirType t);

#endif
