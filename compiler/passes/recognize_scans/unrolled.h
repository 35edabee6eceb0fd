/* unrolled: finds recurrences that a kernel writes out step by step, and computes all of their steps at once.
 *
 *     state = a[t] * state + u[t];  rows.append(f(state, c[t]))          for t = 0 … n - 1, with a loop in Python
 *
 *                                                              ==>  A = a's table, U = u's table: the steps along the last dimension
 *                                                                   H = scan of A and U along it (lib/scan.h)
 *                                                                   rows = f(H, C)
 *
 * Values that correspond, one for each step, are packed into one value with one more dimension, the last: the steps.
 * What is packed (struct pack):
 *
 *     the same value in each step                            it has no dimension of steps
 *     slices of one tensor at equal distances                the tensor, turned
 *     operations that do the same with other operands        one operation, with one more loop, of the packs of their operands
 *     v[t] = (v[t-1] op0 a[t]) op1 b[t], or with one op      a scan
 *     some of these v[t], or the state before them, too      a part of the scan's result
 *
 * Shapes are compared without dimensions of one element, which NumPy's indexing adds and removes.  A plan is made first (pack.c,
 * steps.c); nothing is changed before it is known to be complete and worth it (roots.c, build.c).
 */
#ifndef PASSES_UNROLLED_H
#define PASSES_UNROLLED_H

#include "base/table.h"
#include "ir/build.h"
#include "ir/structured.h"
#include "passes/pass.h"

/* Fewer steps than this remain as they are, and so do slices of a value with more. */
enum { UNROLLED_STEPS_MIN = 4, UNROLLED_STEPS_MAX = 4096 };

/* ---- operations without dimensions of one element (form.c) ---------------------------------------------------------- */

struct form {
  int n_loops, n_inputs;
  int64_t extents[STRUCTURED_LOOPS_MAX];
  bool reduction[STRUCTURED_LOOPS_MAX];
  int rank[STRUCTURED_OPERANDS_MAX]; /* of the inputs, then of the result */
  int loop[STRUCTURED_OPERANDS_MAX][STRUCTURED_LOOPS_MAX];
  bool reads_init; /* its body reads the result's initial value */
};

/* Writes the extents of v other than 1 to dims; returns how many there are, -1 if v is no tensor of static shape. */
int form_dims(MlirValue v, int64_t dims[STRUCTURED_LOOPS_MAX]);
/* The value that v is a reshape of which only adds or drops dimensions of one element. */
MlirValue form_source(MlirValue v);
/* Reads an element-wise operation or a reduction with one result on tensors.  False if it is something else. */
bool form_read(MlirOperation op, struct form *out);
/* True if x and y compute the same of their operands, and have the same form. */
bool form_is_same(MlirOperation x, const struct form *fx, MlirOperation y, const struct form *fy);
/* The only operation of a body, apart from its end; null if it has none or more. */
MlirOperation form_only_operation(MlirOperation op);
/* A knob asks something for v. */
bool form_is_annotated(MlirValue v);

/* ---- plans (pack.c, steps.c) ---------------------------------------------------------------------------------------- */

enum pack_kind { PACK_REFUSED, PACK_SAME, PACK_SLICES, PACK_OPERATIONS, PACK_STEPS, PACK_PART };

/* One of the two operations of a step. */
struct link {
  MlirOperation op;
  const char *name; /* of arith */
  bool is_left;     /* the state is the left operand */
  MlirValue other;  /* the other operand; null if it is a scalar */
  MlirValue scalar; /* likewise */
  int rank;         /* of other: the dimensions of the state that its dimensions are */
  int loop[STRUCTURED_LOOPS_MAX];
};

struct steps {
  int n_links, from;     /* v[from] is the first that a step computes: 0, or 1 if v[0] is where the state begins */
  struct link *links[2]; /* for each v */
  struct pack *other[2]; /* of what each link combines the state with; NULL: the scalar */
  MlirValue first;       /* the state before v[from]; null: the scalar in every element */
  MlirValue first_scalar;
};

struct pack {
  enum pack_kind kind;
  int n;
  MlirValue *v; /* without reshapes (form_source) */
  int rank;
  int64_t dims[STRUCTURED_LOOPS_MAX]; /* of each v, without those of one element */
  int order[STRUCTURED_LOOPS_MAX];    /* dimension k of the packed value is dimension order[k] of v */
  MlirOperation before;               /* where it can be computed: before this operation; null: not known */
  struct pack *next;                  /* another one that begins with the same value */
  MlirValue made, last;               /* once it is built; of steps: the last state */

  int axis; /* of slices: the dimension of the source, and where they begin and how far they are from each other */
  int64_t begin, stride; /* of a part: the first state in `whole`; -1 if it is the one before */
  struct pack *whole;
  bool is_between;
  struct form form; /* of operations */
  struct pack *in[STRUCTURED_OPERANDS_MAX];
  MlirValue fill; /* what the result starts with, if the body reads it */
  struct steps *steps;
};

struct unrolled {
  struct pass_run *run;
  MlirBlock block;
  struct table packs; /* the second value of a list -> struct pack */
  struct table busy;  /* values of packs that are being planned -> &busy or &done */
  struct {
    struct pack **v;
    int n, cap;
  } chains;
};

/* Plans the pack of these n values, at least two; kind is PACK_REFUSED if there is none. */
struct pack *pack_values(struct unrolled *u, int n, MlirValue const *v);
/* Sets steps if p->v are the states of a recurrence whose operands can be packed. */
bool pack_steps(struct unrolled *u, struct pack *p);
/* Sets whole and begin if p->v are some of the states of a longer one, or one that begins with p->v[0].  Sets is_between if they would be
 * states, but are better computed from those of another recurrence. */
bool pack_part(struct unrolled *u, struct pack *p);
/* How a step computes a state: which operand of its last operation, and which of the one before, is the state before. */
struct step_form {
  int last, first; /* first: -1 if a step is one operation */
};
struct states {
  MlirValue *v;
  int n, cap;
  MlirValue first; /* the value before them; null if it is a scalar */
};
/* Every state before and after v, with it, that is computed by a step like the one that computes v. */
struct states steps_around(struct unrolled *u, MlirValue v, struct step_form at);
/* Where something can be computed that needs v: moves *before behind what defines v. */
void pack_needs(const struct unrolled *u, MlirValue v, MlirOperation *before);
void pack_needs_pack(struct pack *p, const struct pack *needed);

/* ---- changes (build.c, roots.c) ------------------------------------------------------------------------------------- */

/* Builds what p needs and p; returns the packed value, whose last dimension is the steps unless p is PACK_SAME. */
MlirValue unrolled_build(struct unrolled *u, struct pack *p);
/* Returns state `at` of a recurrence that was built, of v[at]'s type. */
MlirValue unrolled_element(struct ir_builder *b, struct pack *p, int at);
/* A location of all of these operations. */
MlirLocation unrolled_location(struct unrolled *u, int n, MlirValue const *v);

/* Replaces the recurrences of every block of the module. */
void unrolled_recurrences(struct pass_run *run);

#endif
