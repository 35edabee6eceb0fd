/* complex: tensors of complex numbers.
 *
 * HLO has them as c64 until op-expander makes pairs of reals of them.  complex128 is narrowed, as float64 is.  The
 * operations that take complex operands are listed in complex.c; every other one refuses them.
 */
#ifndef TRACE_COMPLEX_H
#define TRACE_COMPLEX_H

#include "trace/ops.h"

static inline bool val_is_complex(hlo_val x) {
  return x && dtype_is_complex(x->shape.dtype);
}
/* The parts of a complex value, and the value with these float32 parts. */
hlo_val val_real(struct tracer *tr, hlo_val x);
hlo_val val_imag(struct tracer *tr, hlo_val x);
hlo_val val_complex(struct tracer *tr, hlo_val re, hlo_val im);
hlo_val val_conjugate(struct tracer *tr, hlo_val x);       /* a real value itself */
hlo_val val_scale(struct tracer *tr, hlo_val x, double k); /* a complex value times a real number */
/* x to a whole power, by multiplications. */
hlo_val val_whole_power(struct tracer *tr, hlo_val x, long long n);
/* The product over one axis, which stays with size 1. */
hlo_val val_complex_product(struct tracer *tr, hlo_val x, int axis);
/* f of the real and of the imaginary parts. */
hlo_val val_by_parts(struct tracer *tr, hlo_val x, hlo_val (*f)(struct tracer *tr, hlo_val x));
hlo_val val_complex_tanh(struct tracer *tr, hlo_val x);
hlo_val val_complex_tan(struct tracer *tr, hlo_val x);
hlo_val val_complex_sinh(struct tracer *tr, hlo_val x);
hlo_val val_complex_cosh(struct tracer *tr, hlo_val x);

#endif
