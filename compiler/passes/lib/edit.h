/* edit: changing linalg operations where they stand.
 *
 * Our passes go through a list of operations and change each in place: new operands, new maps, a new result type.
 * Users of the result that want the old type get a reshape of the new one; annotations stay with the new one.
 */
#ifndef PASSES_EDIT_H
#define PASSES_EDIT_H

#include "ir/structured.h"
#include "ir/build.h"
#include "passes/pass.h"

/* New operations go in front of op and get its location. */
struct ir_builder edit_before(struct pass_run *run, MlirOperation op);
/* New operations go behind op and the annotations of its results. */
struct ir_builder edit_after(struct pass_run *run, MlirOperation op);

bool edit_is_nkipy(MlirOperation op);
/* The body of a generic of two inputs is out + left * right.  Extensions of floats and signed integers only: those
 * linalg.matmul does by itself. */
bool edit_multiplies_and_adds(MlirOperation generic);

/* Uses of v, except by nkipy operations and by `except` (may be null), read `by` from now on. */
void edit_replace_data_uses(struct arena *a, MlirValue v, MlirValue by, MlirOperation except);
/* Erases op if none of its results is used; then the operations that only it used, as far as they have no effect. */
void edit_erase_unused(MlirOperation op);
/* Sets the function's type to the types of its body's arguments and of what it returns.  It has a body. */
void edit_retype_function(struct pass_run *run, MlirOperation function);
/* Tidies up behind a pass: round trips of reshapes; fills, empty tensors, reshapes, transposes, broadcasts and
 * constants that nobody reads. */
void edit_sweep(struct pass_run *run);

/* v in another shape with as many elements: nothing, the value that v is itself a reshape of, a transpose between a
 * column and a row that were computed, or tensor.collapse_shape and expand_shape.  No dimension is 0. */
MlirValue edit_reshape(struct ir_builder *b, MlirValue v, int rank, const int64_t *dims);
/* What op writes to, in another shape: a new tensor.empty or fill if it is one, otherwise a reshape. */
MlirValue edit_reshape_init(struct ir_builder *b, MlirValue init, int rank, const int64_t *dims);

#endif
