#include "driver/accuracy.h"

#include <math.h>

#include "base/json.h"
#include "sim/accuracy.h"

static void put_item(void *user, const char *what) {
  struct buf *b = user;
  json_put_comma(b);
  json_put_cstr(b, what);
}

void accuracy_put(struct buf *b, enum target t) {
  const struct sim_accuracy a = sim_accuracy(t);
  buf_putc(b, '{');
  json_put_field_double(b, "median", a.kernels ? a.median : NAN);
  json_put_field_double(b, "worst", a.kernels ? a.worst : NAN);
  json_put_field_int(b, "kernels", a.kernels);
  json_put_key(b, "uncalibrated");
  buf_putc(b, '[');
  sim_uncalibrated(t, put_item, b);
  buf_puts(b, "]}");
}
