/* knob_edit: changes the knob that a Python text already has for a value.
 *
 *     product = np.matmul(x, w)
 *     knob.knob(product).tile_op(tile_size=[128, 128, 512])     the entries are replaced; layout(…) gets its own method call
 *
 *     s = np.exp(knob.knob(x - m, mem_space="Sbuf"))            the argument is replaced, or added
 *
 * A knob belongs to a value if it stands around the value's expression, or names the variable that the expression's statement sets,
 * before another statement sets it.  The text is not executed.
 */
#ifndef DRIVER_KNOB_EDIT_H
#define DRIVER_KNOB_EDIT_H

#include "driver/knob_text.h"
#include "driver/tune_edit.h"

enum knob_edit {
  KNOB_EDIT_NONE,   /* the value has no knob: one can be written around it */
  KNOB_EDIT_DONE,   /* out is the text with the knob changed, what is the changed call */
  KNOB_EDIT_CANNOT, /* it has one, which cannot be changed here */
};

/* written: the text's knobs of the site's expression.  method: of the knob's builder that takes the argument, "tile_op" or
 * "layout". */
enum knob_edit knob_edit_existing(struct arena *a, const char *text, const struct knob_text *written,
                                  const struct tune_site *site, const struct tune_value *value, const char *method,
                                  struct buf *out, struct buf *what);

#endif
