#include "driver/device_report.h"

#include "base/json.h"
#include "driver/check.h"
#include "driver/summary.h"

/* of: what it was compared with; NULL if the key says it. */
static void put_comparison(struct buf *b, const char *key, const char *of, const struct check_result *r) {
  json_put_key(b, key);
  buf_putc(b, '{');
  if (of)
    json_put_field_str(b, "of", of);
  json_put_field_bool(b, "pass", r->pass);
  json_put_field_double(b, "max_abs_err", r->max_abs_err);
  json_put_field_double(b, "max_rel_err", r->max_rel_err);
  buf_putc(b, '}');
}

void device_report_put_output(struct buf *b, const char *name, const struct trace_array *got,
                              const struct device_expected *e, struct check_result *of_reference,
                              struct check_result *of_simulator) {
  json_put_comma(b);
  buf_putc(b, '{');
  json_put_field_str(b, "name", name);
  summary_put(b, got);
  if (e->reference) {
    check_compare(1, got, e->want, of_reference);
    put_comparison(b, "reference", e->reference, of_reference);
  }
  if (e->simulated) {
    check_compare(1, got, e->simulated, of_simulator);
    put_comparison(b, "simulator", NULL, of_simulator);
  }
  buf_putc(b, '}');
}
