/* promote: determines the dtype that an operation computes in.
 *
 * The rules are those of NKIPy's HLO back end.  64-bit types are first narrowed to 32 bits, because the hardware has
 * none.  The rules differ from NumPy's for an integer with float16 or bfloat16: the result is that float (in NumPy:
 * float32 or float64).  Operations for which NumPy has a special rule (exp of integers, sums) use the functions at the
 * end.
 */
#include <assert.h>
#include <float.h>

#include "trace/operand.h"
#include "trace/refuse.h"

static bool is_f8(enum dtype t) {
  return dtype_is_float(t) && dtype_size(t) == 1;
}

static enum dtype signed_of(size_t bytes) {
  return bytes == 1 ? DT_I8 : bytes == 2 ? DT_I16 : DT_I32;
}

static enum dtype promote_ints(enum dtype x, enum dtype y) {
  if (dtype_kind(x) == dtype_kind(y))
    return dtype_size(x) >= dtype_size(y) ? x : y;
  enum dtype s = dtype_kind(x) == DK_SIGNED ? x : y, u = s == x ? y : x;
  return dtype_size(s) > dtype_size(u) ? s : signed_of(2 * dtype_size(u)); /* i32 with u32: i64, narrowed */
}

enum dtype promote_pair(enum dtype x, enum dtype y) {
  assert(x != DT_TUPLE && y != DT_TUPLE);
  x = dtype_narrow(x);
  y = dtype_narrow(y);
  if (dtype_is_complex(x) || dtype_is_complex(y))
    return DT_C64;
  if (x == y || y == DT_BOOL)
    return x;
  if (x == DT_BOOL)
    return y;
  if (dtype_is_int(x) && dtype_is_int(y))
    return promote_ints(x, y);
  if (dtype_is_int(x))
    return y;
  if (dtype_is_int(y))
    return x;
  if (is_f8(x) && is_f8(y))
    return DT_NONE;
  if (is_f8(x))
    return y;
  if (is_f8(y))
    return x;
  return DT_F32; /* two different types of f16, bf16, f32 */
}

enum dtype promote_weak(enum dtype x, enum weak w) {
  if (w == WEAK_INT)
    return x == DT_BOOL ? DT_I32 : x;
  if (w == WEAK_FLOAT)
    return dtype_is_float(x) || dtype_is_complex(x) ? x : DT_F32;
  if (w == WEAK_COMPLEX)
    return DT_C64;
  return x;
}

enum dtype promote_operands(int n, const struct operand *xs) {
  enum dtype t = DT_NONE;
  enum weak w = STRONG;
  for (int i = 0; i < n; i++) {
    if (xs[i].weak) {
      w = xs[i].weak > w ? xs[i].weak : w;
      continue;
    }
    enum dtype next = t == DT_NONE ? xs[i].dtype : promote_pair(t, xs[i].dtype);
    if (next == DT_NONE) {
      trace_refuse(DG_DTYPE_PROMOTION, "convert one of them with .astype(np.float32)",
                   "No implicit dtype promotion path between %s and %s", dtype_numpy_name(t),
                   dtype_numpy_name(xs[i].dtype));
      return DT_NONE;
    }
    t = next;
  }
  if (t == DT_NONE)
    return w == WEAK_COMPLEX ? DT_C64 : w == WEAK_FLOAT ? DT_F32 : DT_I32;
  return promote_weak(t, w);
}

enum dtype promote_float(enum dtype t) {
  if (dtype_is_float(t) || dtype_is_complex(t))
    return t;
  return dtype_size(t) == 1 ? DT_F16 : DT_F32; /* int16 gives float32; int32 gives float64, narrowed */
}

enum dtype promote_sum(enum dtype t) {
  if (dtype_kind(t) == DK_UNSIGNED)
    return DT_U32;
  return dtype_is_float(t) || dtype_is_complex(t) ? t : DT_I32;
}

double dtype_largest(enum dtype t) {
  switch (t) {
  case DT_F16:
    return 65504;
  case DT_BF16:
    return 0x1.fep127;
  case DT_F8E4M3:
    return 240;
  case DT_F8E4M3FN:
    return 448;
  case DT_F8E5M2:
    return 57344;
  case DT_F32:
    return (double)FLT_MAX;
  default:
    return DBL_MAX;
  }
}
