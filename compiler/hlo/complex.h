/* complex: complex numbers as pairs of reals. */
#ifndef HLO_COMPLEX_H
#define HLO_COMPLEX_H

#include "hlo/build.h"

struct hlo_pair {
  hlo_val re, im; /* of one shape; both NULL where a builder refused */
};

/* The shape of the array of reals in which c64 values cross the border of a computation: f32 with a last dimension of 2,
 * which is how they lie in memory.  Elements of tuples likewise; other shapes stay as they are. */
struct hlo_shape hlo_complex_shape(struct arena *a, const struct hlo_shape *s);
bool hlo_complex_is_in(const struct hlo_shape *s); /* c64, or a tuple with it */

bool hlo_complex_is_used(const struct hlo_module *m);
/* Writes the module, which has been verified, without complex numbers. */
void hlo_complex_expand(struct hlo_module *m);

/* fft.c: the transform of i, an fft; a transform to reals has no imaginary part (NULL). */
struct hlo_pair hlo_complex_fft(struct hlo_builder *b, const struct hlo_instr *i, struct hlo_pair x);

#endif
