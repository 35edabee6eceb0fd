/* dtype: element types, one table for NumPy, HLO and MLIR. */
#ifndef BASE_DTYPE_H
#define BASE_DTYPE_H

#include <stdbool.h>
#include <stddef.h>

enum dtype_kind { DK_NONE, DK_BOOL, DK_SIGNED, DK_UNSIGNED, DK_FLOAT, DK_COMPLEX, DK_TUPLE };

enum dtype {
  DT_NONE,
#define DTYPE(e, np, hlo, gen, prim, size, kind) e,
#include "base/dtype.def"
#undef DTYPE
  DT_TUPLE, /* only as the shape of an HLO tuple */
  DT_COUNT
};

const char *dtype_numpy_name(enum dtype t); /* "float32" */
const char *dtype_hlo_name(enum dtype t);   /* "f32"; "tuple" for DT_TUPLE */
int dtype_xla_number(enum dtype t);         /* PrimitiveType; 13 for DT_TUPLE, 0 for DT_NONE */
size_t dtype_size(enum dtype t);            /* bytes per element; 0 for DT_TUPLE and DT_NONE */
enum dtype_kind dtype_kind(enum dtype t);
static inline bool dtype_is_float(enum dtype t) {
  return dtype_kind(t) == DK_FLOAT;
}
static inline bool dtype_is_int(enum dtype t) {
  return dtype_kind(t) == DK_SIGNED || dtype_kind(t) == DK_UNSIGNED;
}

/* Traces and HLO modules have complex numbers, until op-expander makes pairs of reals of them. */
static inline bool dtype_is_complex(enum dtype t) {
  return dtype_kind(t) == DK_COMPLEX;
}

static inline bool dtype_is_inexact(enum dtype t) {
  return dtype_is_float(t) || dtype_is_complex(t);
}

enum dtype dtype_narrow(enum dtype t); /* 64-bit types become 32-bit */

/* DT_NONE for an unknown name.  Accepts NumPy's names and nkigen's short ones ("f32", "i32", "bf16"). */
enum dtype dtype_from_name(const char *name);
/* These do not know complex128: it is narrowed before there is HLO. */
enum dtype dtype_from_hlo_name(const char *name);
enum dtype dtype_from_xla_number(int number);

#endif
