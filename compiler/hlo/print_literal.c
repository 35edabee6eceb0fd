/* print_literal: numbers that XLA's parser reads back to the same bits.
 *
 * A float is printed with the fewest digits from which its own type is read back exactly.  "nan" is the quiet NaN of the
 * type; any other NaN has its payload, as "nan(0x…)".
 */
#include "hlo/print_literal.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hlo/literal.h"

static void put_nan(struct buf *out, enum dtype t, uint64_t bits) {
  const int mantissa_bits = hlo_literal_nan_bits(t);
  uint64_t payload = bits & (((uint64_t)1 << mantissa_bits) - 1);
  bool is_negative = bits >> (8 * dtype_size(t) - 1) & 1;
  buf_puts(out, is_negative ? "-nan" : "nan");
  if (mantissa_bits && payload != (uint64_t)1 << (mantissa_bits - 1))
    buf_printf(out, "(0x%" PRIx64 ")", payload);
}

static void put_float(struct buf *out, const struct hlo_literal *l, size_t k) {
  enum dtype t = l->shape.dtype;
  double v = hlo_literal_double(l, k);
  char text[40];

  if (isnan(v)) {
    put_nan(out, t, (uint64_t)hlo_literal_int(l, k));
    return;
  }
  if (isinf(v)) {
    buf_puts(out, v < 0 ? "-inf" : "inf");
    return;
  }
  if (v == 0) { /* the parser reads "-0" as an integer, which has no sign */
    buf_puts(out, signbit(v) ? "-0.0" : "0");
    return;
  }
  int most = t == DT_F64 ? 17 : t == DT_F32 ? 9 : 6;
  for (int digits = t == DT_F64 ? 15 : t == DT_F32 ? 6 : 2; digits <= most; digits++) {
    char back[8] = {0};
    snprintf(text, sizeof text, "%.*g", digits, v);
    hlo_literal_store(t, strtod(text, NULL), back);
    if (!memcmp(back, (const char *)l->data + k * dtype_size(t), dtype_size(t)))
      break;
  }
  buf_puts(out, text);
}

/* (real, imaginary) */
static void put_complex(struct buf *out, const struct hlo_literal *l, size_t k) {
  const struct hlo_literal parts = {{.dtype = DT_F32}, l->data, l->size};
  buf_putc(out, '(');
  put_float(out, &parts, 2 * k);
  buf_puts(out, ", ");
  put_float(out, &parts, 2 * k + 1);
  buf_putc(out, ')');
}

static void put_element(struct buf *out, const struct hlo_literal *l, size_t k) {
  switch (dtype_kind(l->shape.dtype)) {
  case DK_FLOAT:
    put_float(out, l, k);
    break;
  case DK_COMPLEX:
    put_complex(out, l, k);
    break;
  case DK_BOOL:
    buf_puts(out, l->shape.rank ? (hlo_literal_int(l, k) ? "1" : "0") : hlo_literal_int(l, k) ? "true" : "false");
    break;
  case DK_UNSIGNED:
    buf_printf(out, "%" PRIu64, (uint64_t)hlo_literal_int(l, k));
    break;
  default:
    buf_printf(out, "%" PRId64, hlo_literal_int(l, k));
  }
}

/* The sub-array at depth `dim` that starts at element *at. */
static void put_elements(struct buf *out, const struct hlo_literal *l, int dim, size_t *at) {
  const struct hlo_shape *s = &l->shape;
  if (dim == s->rank) {
    put_element(out, l, (*at)++);
    return;
  }
  bool is_innermost = dim == s->rank - 1;
  buf_puts(out, is_innermost ? "{" : "{ ");
  for (int64_t k = 0; k < s->dims[dim] && !buf_status(out); k++) {
    buf_puts(out, k ? ", " : "");
    put_elements(out, l, dim + 1, at);
  }
  buf_puts(out, is_innermost ? "}" : " }");
}

void hlo_print_literal(struct buf *out, const struct hlo_literal *l, int64_t elide_above) {
  size_t at = 0;
  if (elide_above && hlo_shape_elements(&l->shape) > elide_above)
    buf_puts(out, "{...}");
  else
    put_elements(out, l, 0, &at);
}
