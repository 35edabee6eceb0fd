#include "driver/reproduce.h"

#include <openssl/evp.h>

#include "base/json.h"
#include "hlo/hlo.h"

static void put_base64(struct buf *b, const char *key, const void *data, size_t n) {
  const size_t len = (n + 2) / 3 * 4;
  json_put_key(b, key);
  buf_putc(b, '"');
  if (buf_reserve(b, len + 1) == ST_OK) { /* EVP_EncodeBlock writes a NUL */
    EVP_EncodeBlock((unsigned char *)b->data + b->len, data, (int)n);
    b->len += len;
  }
  buf_putc(b, '"');
}

static void put_array(struct buf *b, const char *name, const struct trace_array *x) {
  const size_t n = (size_t)hlo_shape_elements(&x->shape);
  json_put_comma(b);
  buf_putc(b, '{');
  json_put_field_str(b, "name", name);
  json_put_field_str(b, "dtype", dtype_numpy_name(x->shape.dtype));
  json_put_key(b, "shape");
  buf_putc(b, '[');
  for (int d = 0; d < x->shape.rank; d++) {
    json_put_comma(b);
    json_put_int(b, x->shape.dims[d]);
  }
  buf_putc(b, ']');
  put_base64(b, "data", x->data, n * dtype_size(x->shape.dtype));
  if (x->spread)
    put_base64(b, "spread", x->spread, n * sizeof *x->spread);
  buf_putc(b, '}');
}

static void put_arrays(struct buf *b, const char *key, int n, const struct trace_tensor *named,
                       const struct trace_array *x) {
  json_put_key(b, key);
  buf_putc(b, '[');
  for (int i = 0; i < n; i++)
    put_array(b, named[i].name, &x[i]);
  buf_putc(b, ']');
}

static void append(MlirStringRef s, void *user) {
  buf_append(user, s.data, s.length);
}

static void put_module(struct buf *b, MlirOperation module) {
  struct buf text;
  buf_init(&text, b->max);
  mlirOperationPrint(module, append, &text);
  json_put_key(b, "before");
  json_put_string(b, buf_text(&text), text.len);
  buf_clear(&text);
}

void reproduce_put(struct buf *b, const struct reproducer *r) {
  const struct trace_kernel *k = r->kernel;
  buf_puts(b, "{\"reproducer\":1");
  json_put_field_str(b, "kernel", k->module ? k->module->name : k->name);
  json_put_field_str(b, "target", target_name(r->target));
  json_put_field_str(b, "stage", r->stage->name);
  json_put_field_int(b, "index", r->index);
  json_put_field_str(b, "pass", r->stage->pass);
  if (mlirOperationIsNull(r->module))
    put_base64(b, "before_base64", buf_text(r->proto), r->proto->len);
  else
    put_module(b, r->module);
  put_arrays(b, "inputs", k->n_inputs, k->inputs, r->set->in);
  put_arrays(b, "outputs", k->n_outputs, k->outputs, r->set->want);
  buf_puts(b, "}\n");
}
