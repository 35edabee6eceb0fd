/* edit: changes linalg operations in place.
 *
 * The passes go through a list of operations and change each one in place: they set new operands, new maps and a new
 * result type.  Users of the result that need the old type get a reshape of the new result; annotations stay on the
 * new result.
 */
#ifndef PASSES_EDIT_H
#define PASSES_EDIT_H

#include "ir/build.h"
#include "ir/structured.h"
#include "passes/pass.h"

/* Returns a builder that inserts before op, with op's location. */
struct ir_builder edit_before(struct pass_run *run, MlirOperation op);
/* Returns a builder that inserts after op and the annotations of its results, with op's location. */
struct ir_builder edit_after(struct pass_run *run, MlirOperation op);

/* True if the body of a generic with two inputs is out + left * right, and extends only floats and signed integers,
 * as linalg.matmul does itself. */
bool edit_multiplies_and_adds(MlirOperation generic);

/* Replaces the uses of v, except those by nkipy operations and by `except` (may be null). */
void edit_replace_data_uses(struct arena *a, MlirValue v, MlirValue by, MlirOperation except);
/* Erases op if it has results and none is used, then the operations without an effect that only op used.  `a` holds
 * temporary lists. */
void edit_erase_unused(struct arena *a, MlirOperation op);
/* Sets the function's type to the types of its body's arguments and of the values that it returns.  The function has a
 * body. */
void edit_retype_function(struct pass_run *run, MlirOperation function);
/* Cleans up after a pass.  Replaces reshapes of reshapes that lead back to the first value by that value; erases
 * unused fills, empty tensors, reshapes, transposes, broadcasts and constants. */
void edit_sweep(struct pass_run *run);

/* Returns v in another shape with the same number of elements: v itself; the value that v is a reshape of; a
 * transpose between a column and a row that were computed; or a tensor.collapse_shape and expand_shape.  No
 * dimension is 0. */
MlirValue edit_reshape(struct ir_builder *b, MlirValue v, int rank, const int64_t *dims);
/* Returns the destination `init` of an operation in another shape: a new tensor.empty or fill if init is one,
 * otherwise a reshape. */
MlirValue edit_reshape_init(struct ir_builder *b, MlirValue init, int rank, const int64_t *dims);

/* Sets indexing_maps and iterator_types of a generic. */
void edit_set_maps(MlirOperation generic, int n, MlirAffineMap const *maps);
void edit_set_iterators(MlirOperation generic, int n, const bool *reduction);
/* Adds `by` to the dimension of every linalg.index in the generic. */
void edit_shift_indices(struct pass_run *run, MlirOperation generic, int by);

#endif
