/* test_hlo_read_mlir: HLO as JAX writes it: read, printed, read again, and run as linalg.
 *
 * NKX_JAX_HLO names a directory with NAME.hlo, NAME.pb (the same module as XLA serialises it) and the inputs
 * NAME.in0, NAME.in1, … as raw bytes; NAME.txt (our print) and NAME.out0, … are written beside them, where
 * tests/conformance/test_jax_hlo.py compares them with XLA's.  Without it only the errors are tested.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <glob.h>

#include "driver/check.h"
#include "hlo/passes.h"
#include "hlo/print.h"
#include "hlo/read.h"
#include "linalg/lower.h"
#include "mlir_support.h"

#include <cmocka.h> /* last: it defines a macro called fail */

static char *read_file(struct arena *a, const char *path, size_t *len) {
  FILE *f = fopen(path, "rb");
  if (!f)
    fail_msg("%s cannot be opened", path);
  fseek(f, 0, SEEK_END);
  *len = (size_t)ftell(f);
  rewind(f);
  char *data = arena_alloc(a, *len + 1);
  assert_int_equal(fread(data, 1, *len, f), *len);
  data[*len] = 0;
  fclose(f);
  return data;
}

static void write_file(const char *path, const void *data, size_t len) {
  FILE *f = fopen(path, "wb");
  assert_non_null(f);
  assert_int_equal(fwrite(data, 1, len, f), len);
  fclose(f);
}

static const char *print(struct arena *a, const struct hlo_module *m, bool metadata) {
  struct buf b;
  buf_init(&b, 64 << 20);
  assert_int_equal(hlo_print(m, &(struct hlo_print_options){.metadata = metadata}, &b, a, NULL), ST_OK);
  const char *text = arena_strndup(a, buf_text(&b), b.len);
  buf_clear(&b);
  return text;
}

static struct hlo_module *read_text(struct arena *a, const char *text, size_t len) {
  struct diags ds;
  diags_init(&ds, a);
  struct hlo_module *m = hlo_read_text(a, text, len, "module.hlo", &ds);
  if (!m)
    fail_msg("%d:%d %s\n%.*s", ds.v[0].loc ? ds.v[0].loc->range.line : 0, ds.v[0].loc ? ds.v[0].loc->range.col : 0,
             ds.v[0].message, (int)(len < 3000 ? len : 3000), text);
  return m;
}

static struct hlo_module *read_proto(struct arena *a, const void *data, size_t len) {
  struct diags ds;
  diags_init(&ds, a);
  struct hlo_module *m = hlo_read_proto(a, data, len, &ds);
  if (!m)
    fail_msg("%s", ds.v[0].message);
  return m;
}

/* ---- modules of JAX ---------------------------------------------------------------------------------------- */

static void run(struct arena *a, const char *base, struct hlo_module *m) {
  const struct hlo_shape *root = &m->entry->root->shape;
  struct trace_array *in = arena_new_array(a, struct trace_array, (size_t)m->entry->n_params);
  struct trace_array *out = arena_new_array(a, struct trace_array, (size_t)m->n_outputs);
  MlirModule module;
  struct diags ds;
  diags_init(&ds, a);
  for (int k = 0; k < m->entry->n_params; k++) {
    size_t len;
    in[k].shape = m->entry->params[k]->shape;
    in[k].data = read_file(a, arena_printf(a, "%s.in%d", base, k), &len);
    assert_int_equal(len, (size_t)hlo_shape_elements(&in[k].shape) * dtype_size(in[k].shape.dtype));
  }
  for (int k = 0; k < m->n_outputs; k++)
    out[k].shape = root->dtype == DT_TUPLE ? root->elems[k] : *root;
  if (linalg_from_hlo(&ir, m, &ds, &module))
    fail_msg("%s: %s", base, ds.v[0].message);
  if (check_execute(&ir, module, m->name, m->entry->n_params, in, m->n_outputs, out, a, &ds))
    fail_msg("%s: %s", base, ds.n ? ds.v[0].message : "cannot be run");
  mlirModuleDestroy(module);
  for (int k = 0; k < m->n_outputs; k++)
    write_file(arena_printf(a, "%s.out%d", base, k), out[k].data,
               (size_t)hlo_shape_elements(&out[k].shape) * dtype_size(out[k].shape.dtype));
}

static void one_module(const char *path) {
  struct arena a;
  size_t len;
  arena_init(&a);
  const char *base = arena_strndup(&a, path, strlen(path) - strlen(".hlo"));
  char *text = read_file(&a, path, &len);
  struct hlo_module *m = read_text(&a, text, len);
  const char *printed = print(&a, m, false);
  write_file(arena_printf(&a, "%s.txt", base), printed, strlen(printed));
  assert_string_equal(print(&a, read_text(&a, printed, strlen(printed)), false), printed);

  const char *whole = print(&a, m, true);
  assert_string_equal(print(&a, read_text(&a, whole, strlen(whole)), false), printed);
  for (const struct hlo_computation *c = m->computations; c; c = c->next)
    hlo_for_each(i, c) assert_string_equal(i->locs.v[0]->range.file, "module.hlo");

  struct buf proto;
  buf_init(&proto, 64 << 20);
  assert_int_equal(hlo_write_proto(m, &proto), ST_OK);
  assert_string_equal(print(&a, read_proto(&a, buf_text(&proto), proto.len), false), printed);
  buf_clear(&proto);
  char *from_xla = read_file(&a, arena_printf(&a, "%s.pb", base), &len);
  struct hlo_module *x = read_proto(&a, from_xla, len);
  write_file(arena_printf(&a, "%s.pb.txt", base), print(&a, x, false), strlen(print(&a, x, false)));

  static const char *const passes[] = {"op-expander",
                                       "call-inliner",
                                       "zero-sized-hlo-elimination",
                                       "simplify-conditional",
                                       "simplify-while-loops",
                                       "constant-folding",
                                       "algebraic-simplifier",
                                       "transpose-folding",
                                       "cse",
                                       "dce"};
  for (size_t k = 0; k < sizeof passes / sizeof *passes; k++) {
    struct hlo_pass_result changed = {0};
    struct diags ds;
    diags_init(&ds, &a);
    hlo_stage_mark(m);
    hlo_pass_find(passes[k])(m, &changed);
    if (hlo_verify(m, &ds))
      fail_msg("%s after %s: %s", base, passes[k], ds.v[0].message);
    if (!k)
      write_file(arena_printf(&a, "%s.expanded.txt", base), print(&a, m, false), strlen(print(&a, m, false)));
  }
  for (const struct hlo_computation *c = m->computations; c; c = c->next)
    hlo_for_each(i, c) assert_int_not_equal(i->op, HLO_CALL);
  run(&a, base, m); /* what the passes left computes the same */
  arena_clear(&a);
}

static void modules_of_jax_are_read_printed_and_run(void **state) {
  const char *directory = getenv("NKX_JAX_HLO");
  char pattern[4096];
  glob_t found;
  (void)state;
  if (!directory)
    return;
  snprintf(pattern, sizeof pattern, "%s/*.hlo", directory);
  assert_int_equal(glob(pattern, 0, NULL, &found), 0);
  for (size_t k = 0; k < found.gl_pathc; k++)
    one_module(found.gl_pathv[k]);
  globfree(&found);
}

/* ---- errors -------------------------------------------------------------------------------------------------- */

#define HEAD "HloModule m\n\nENTRY main {\n  x = f32[2,3]{1,0} parameter(0)\n  "

static void wrong_text_is_refused_at_its_place(void **state) {
  static const struct {
    const char *line, *what;
    int col;
  } wrong[] = {
      {"ROOT y = f32[2,3] nothing(x)", "nothing", 21},
      {"ROOT y = f32[2,3] add(x, z)", "z is not an instruction", 28},
      {"ROOT y = f32[2,3] add(x)", "takes 2 operands", 3},
      {"ROOT y = c128[2,3] add(x, x)", "c128", 12},
      {"ROOT y = c64[2,3] iota(), iota_dimension=0", "complex numbers are not supported", 3},
      {"y = c64[2,3] complex(x, x)\n  ROOT z = c64[2,3] tanh(y)", "tanh: complex numbers are not supported", 3},
      {"ROOT y = c64[2,3] complex(x, x), side=1", "side", 36},
      {"ROOT y = c64[2,3] fft(x), fft_type=FFT, fft_length={3}", "cannot be transformed", 3},
      {"ROOT y = c64[2,3] fft(x), fft_type=ANY, fft_length={3}", "ANY is not a kind of Fourier transform", 38},
      {"ROOT y = f32[2,3] cholesky(x), lower=true", "square matrices", 3},
      {"ROOT y = f32[2,3] reduce-precision(x), exponent_bits=0, mantissa_bits=4", "0 exponent", 3},
      {"ROOT y = u64[2,3] bitcast-convert(x)", "cannot be read as u64", 3},
      {"ROOT y = f32[3,2] sort(x), dimensions={0}, to_apply=less", "less is not a computation", 55},
      {"ROOT y = f32[2] convolution(x, x), window={tall=3}, dim_labels=bf_io->bf", "tall", 46},
      {"ROOT y = f32[2] convolution(x, x), dim_labels=bq_io->bf", "'q'", 50},
      {"ROOT y = f32[2,3] reverse(x), sideways={0}", "sideways", 33},
  };
  (void)state;
  for (size_t k = 0; k < sizeof wrong / sizeof *wrong; k++) {
    struct arena a;
    struct diags ds;
    arena_init(&a);
    diags_init(&ds, &a);
    const char *text = arena_printf(&a, "%s%s\n}\n", HEAD, wrong[k].line);
    assert_null(hlo_read_text(&a, text, strlen(text), "m.hlo", &ds));
    assert_int_equal(ds.n, 1);
    if (!strstr(ds.v[0].message, wrong[k].what) || !ds.v[0].loc || ds.v[0].loc->range.line != 5 ||
        ds.v[0].loc->range.col != wrong[k].col)
      fail_msg("%s: %s at %d:%d", wrong[k].line, ds.v[0].message, ds.v[0].loc ? ds.v[0].loc->range.line : 0,
               ds.v[0].loc ? ds.v[0].loc->range.col : 0);
    arena_clear(&a);
  }
}

static void wrong_bytes_are_refused(void **state) {
  struct arena a;
  struct diags ds;
  struct buf proto;
  static const char text[] = HEAD "ROOT y = f32[2,3] add(x, x)\n}\n";
  (void)state;
  arena_init(&a);
  buf_init(&proto, 1 << 20);
  assert_int_equal(hlo_write_proto(read_text(&a, text, sizeof text - 1), &proto), ST_OK);
  for (size_t cut = 0; cut < proto.len; cut++) { /* whatever is left either verifies or is refused with a reason */
    diags_init(&ds, &a);
    if (!hlo_read_proto(&a, buf_text(&proto), cut, &ds))
      assert_int_equal(ds.n, 1);
  }
  for (size_t at = 0; at < 8 * proto.len; at++) {
    char *bytes = arena_strndup(&a, buf_text(&proto), proto.len);
    bytes[at / 8] = (char)(bytes[at / 8] ^ 1 << at % 8);
    diags_init(&ds, &a);
    if (!hlo_read_proto(&a, bytes, proto.len, &ds))
      assert_true(ds.n > 0);
  }
  buf_clear(&proto);
  arena_clear(&a);
}

/* tuple_shapes in tuple_shapes …: protobuf-c would follow them to the end of the stack */
static void deep_messages_are_refused(void **state) {
  enum { DEPTH = 60000 };
  struct arena a;
  struct diags ds;
  (void)state;
  arena_init(&a);
  diags_init(&ds, &a);
  uint8_t *data = arena_alloc(&a, 8 * DEPTH), *end = data + 8 * DEPTH, *at = end;
  size_t len = 0;
  for (int k = 0; k < DEPTH + 2; k++) { /* from the inside out: tag, length, what there is */
    size_t n = len;
    uint8_t bytes[5];
    int n_bytes = 0;
    do
      bytes[n_bytes++] = (uint8_t)((n & 0x7f) | (n > 0x7f ? 0x80 : 0));
    while (n >>= 7);
    if (at - data < n_bytes + 1)
      break;
    at -= n_bytes;
    memcpy(at, bytes, (size_t)n_bytes);
    *--at = k < DEPTH    ? 4 << 3 | 2
            : k == DEPTH ? 2 << 3 | 2
                         : 4 << 3 | 2; /* tuple_shapes; result; host_program_shape */
    len = (size_t)(end - at);
  }
  assert_null(hlo_read_proto(&a, at, len, &ds));
  assert_int_equal(ds.n, 1);
  arena_clear(&a);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(modules_of_jax_are_read_printed_and_run),
      cmocka_unit_test(wrong_text_is_refused_at_its_place),
      cmocka_unit_test(wrong_bytes_are_refused),
      cmocka_unit_test(deep_messages_are_refused),
  };
  return cmocka_run_group_tests(tests, start_mlir, stop_mlir);
}
