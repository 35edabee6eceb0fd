/* edit: changing linalg operations where they stand.
 *
 * Our passes go through a list of operations and change each in place: new operands, new maps, a new result type.
 * Users of the result that want the old type get a reshape of the new one; annotations stay with the new one.
 */
#ifndef PASSES_EDIT_H
#define PASSES_EDIT_H

#include "ir/structured.h"
#include "linalg/emit.h"
#include "passes/pass.h"

/* New operations go in front of op and get its location. */
struct emit edit_before(struct pass_run *run, MlirOperation op);
/* New operations go behind op and the annotations of its results. */
struct emit edit_behind(struct pass_run *run, MlirOperation op);

/* The block of the first region of op. */
MlirBlock edit_body(MlirOperation op);
bool edit_is_nkipy(MlirOperation op);
/* The scalar constant that defines v: its attribute, or a null attribute. */
MlirAttribute edit_constant(MlirValue v);
/* The integer constant that defines v, into *out. */
bool edit_int(MlirValue v, int64_t *out);
/* v is a constant 0, also -0. */
bool edit_is_zero(MlirValue v);
/* The body of a generic of two inputs is out + left * right.  Extensions of floats and signed integers only: those
 * linalg.matmul does by itself. */
bool edit_multiplies_and_adds(MlirOperation generic);

/* Uses of v, except by nkipy operations and by `except` (may be null), read `by` from now on. */
void edit_replace_data_uses(struct arena *a, MlirValue v, MlirValue by, MlirOperation except);
/* Erases op if none of its results is used; then the operations that only it used, as far as they have no effect. */
void edit_erase_unused(MlirOperation op);
/* Tidies up behind a pass: round trips of reshapes; fills, empty tensors, reshapes, transposes, broadcasts and
 * constants that nobody reads. */
void edit_sweep(struct pass_run *run);

MlirType edit_tensor(MlirType element, int rank, const int64_t *dims);
/* v in another shape with as many elements: nothing, the value that v is itself a reshape of, a transpose between a
 * column and a row that were computed, or tensor.collapse_shape and expand_shape.  No dimension is 0. */
MlirValue edit_reshape(struct emit *e, MlirValue v, int rank, const int64_t *dims);
MlirValue edit_transpose(struct emit *e, MlirValue v, int rank, const int64_t *permutation);
/* What op writes to, in another shape: a new tensor.empty or fill if it is one, otherwise a reshape. */
MlirValue edit_reshape_init(struct emit *e, MlirValue init, int rank, const int64_t *dims);

#endif
