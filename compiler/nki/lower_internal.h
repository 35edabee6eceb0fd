/* lower_internal: what the files of the lowering share; lower.h is the interface.
 *
 *   lower_access.c   the memories of tensors, and views as operands
 *   lower_call.c     one call as instructions
 *   lower_gather.c   the same for shuffles, gathers and random numbers
 *   lower_device.c   loops and branches on the device
 *   registers.c      registers and their arithmetic
 *   lower.c          the program: temporaries, releases, the function
 */
#ifndef NKI_LOWER_INTERNAL_H
#define NKI_LOWER_INTERNAL_H

#include "ir/build.h"
#include "ir/ir.h"
#include "nisa/nisa.h"
#include "nki/compose.h"
#include "nki/nki.h"

/* The memory of a tensor, and where in the program it ends. */
struct nki_home {
  MlirValue memref; /* null: there is none at present */
  bool is_flat;   /* some view does not step along the tensor's own dimensions: on chip it is (partitions, elements) */
  MlirValue flat; /* of a flat tensor in HBM that comes from outside: its memref as one dimension */
};

struct nki_release {
  const struct nki_tensor *tensor;
  struct nki_release *next;
};

/* A register.  One that is written once, where it is made, is a value; any other is a cell of SBUF, its home. */
struct nki_register {
  bool is_cell;
  MlirValue value; /* of one that is no cell: i32 or f32 */
  MlirValue index; /* the same of type index, if it is the index of a loop */
};

struct nki_lower {
  struct ir *ir;
  const struct nki_program *p;
  int n_cores, core; /* that execute it; whose program is being made */
  struct diags *ds;
  struct arena arena;
  struct ir_builder b;               /* where the next instruction goes: the end of the function, or of a loop in it */
  int nesting;                       /* of loops there */
  MlirValue counters[NKI_LOOPS_MAX]; /* of the loops that are open, by their depth */
  struct nki_home *homes;            /* of the program's tensors, and of those below */
  struct nki_register *values;       /* of the program's tensors that are registers */
  struct nki_release **releases;     /* by the id of an item: what ends after it */
  struct nki_tensor identity[DT_COUNT];       /* identity matrices; rank 0: not made yet */
  struct nki_tensor registers[NKI_REGISTERS]; /* accumulator registers; rank 0: the program needs none */
};

/* The numbers of tensors that the program does not have: operands of a call as f32, the k-th of which is its parameter k,
 * temporary ones of compose.c, and identity matrices. */
static inline int nki_floats_number(const struct nki_lower *l, int k) {
  return l->p->tensors.n + k;
}
static inline int nki_first_temp(const struct nki_lower *l) {
  return nki_floats_number(l, NKI_PARAMS_MAX);
}
static inline int nki_identity_number(const struct nki_lower *l, enum dtype t) {
  return nki_first_temp(l) + NKI_TEMPS_MAX + (int)t;
}

static inline int nki_registers_number(const struct nki_lower *l, enum nki_registers r) {
  return nki_identity_number(l, DT_COUNT) + (int)r;
}

/* Adds an error about a call.  Returns ST_INPUT. */
enum status nki_lower_refuse(struct nki_lower *l, const struct nki_call *c, const char *hint, const char *what);

/* ---- lower.c ----------------------------------------------------------------------------------------------------- */

/* Appends the instructions of items from … to - 1, inside of so many loops. */
enum status nki_lower_items(struct nki_lower *l, const struct nki_items *items, int from, int to, int nesting);
/* Makes the values that these items in a loop need, and that are made once, before the loop. */
void nki_prepare(struct nki_lower *l, const struct nki_items *items, int from, int to);
/* Releases what ends after the item of this id. */
void nki_release_after(struct nki_lower *l, int id);

/* ---- lower_device.c ---------------------------------------------------------------------------------------------- */

/* Appends the loop or branch that item `begin` begins, as far as its end. */
enum status nki_lower_region(struct nki_lower *l, const struct nki_items *items, int begin, int middle, int end,
                             int nesting);

/* ---- registers.c ------------------------------------------------------------------------------------------------- */

/* Finds the registers that are cells. */
void nki_find_cells(struct nki_lower *l);
/* The value of a register now, i32 or f32, and as an index. */
MlirValue nki_register_value(struct nki_lower *l, const struct nki_tensor *reg);
MlirValue nki_register_index(struct nki_lower *l, const struct nki_tensor *reg);
/* The value of a parameter that is a register or a number, as a register of this type has it. */
MlirValue nki_register_or_number(struct nki_lower *l, const struct nki_value *v, enum dtype t);
/* nki.isa.register_… and arithmetic. */
enum status nki_lower_registers(struct nki_lower *l, const struct nki_call *c);

/* ---- lower_access.c ---------------------------------------------------------------------------------------------- */

/* Finds the tensors that some view does not follow along their own dimensions. */
void nki_find_flat(struct nki_lower *l);
MlirType nki_memref_type(struct nki_lower *l, const struct nki_tensor *t, bool is_flat);
/* The memref of a tensor; on chip it is allocated if there is none.  is_flat: in HBM, as one dimension. */
MlirValue nki_memref_of(struct nki_lower *l, const struct nki_tensor *t, bool is_flat);
/* The sum of a number and of multiples of the counters of loops: their `offset`. */
MlirValue nki_sum(struct nki_lower *l, int64_t start, int n, const struct nki_term *terms);
/* Releases a tensor on chip, which has a memref. */
void nki_release(struct nki_lower *l, struct nki_home *h);
/* dst of an iota in the shape of its pattern. */
bool nki_shape_by_pattern(const struct nki_call *c, struct nki_view *out, struct nki_error *err);
/* A view as an operand whose par_dims leading dimensions are partitions. */
struct nisa_access nki_access_of(struct nki_lower *l, const struct nki_view *v, int par_dims);
/* True if each dimension of the view steps along the tensor's own dimensions; then it can be an operand over them even if
 * other views of the tensor cannot. */
bool nki_follows_dims(const struct nki_view *v);
struct nisa_access nki_access_with_dims(struct nki_lower *l, const struct nki_view *v);
/* A view on chip as an operand with as few dimensions as it can have. */
struct nisa_access nki_access_on_chip(struct nki_lower *l, const struct nki_view *v);

/* ---- lower_call.c ------------------------------------------------------------------------------------------------ */

/* Makes the identity matrix that a call needs, if there is none yet. */
void nki_make_identity(struct nki_lower *l, const struct nki_call *c);
/* The sides of a plain dma_copy with the same dimensions, of which par_dims count partitions. */
struct nki_copy {
  struct nki_view dst, src;
  int par_dims;
  const char *what, *hint; /* if they are refused */
};
bool nki_copy_of(const struct nki_call *c, struct nki_copy *out);
/* Appends the instructions of a call that nki_compose leaves as it is. */
enum status nki_lower_call(struct nki_lower *l, const struct nki_call *c);
/* lower_dma.c: transfers of rows that numbers select, sums, transposes. */
enum status nki_lower_dma(struct nki_lower *l, const struct nki_call *c);
/* lower_gather.c: the calls that lower_call.c does not know. */
enum status nki_lower_more(struct nki_lower *l, const struct nki_call *c);
/* Appends an instruction with the operands dst and `src`. */
void nki_lower_copy(struct nki_lower *l, const struct nki_call *c, enum nisa_kind kind, const char *src);

#endif
