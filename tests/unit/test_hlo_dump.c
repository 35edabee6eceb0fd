/* test_hlo_dump: modules of every kind, built, verified, printed and serialised.
 *
 * With NKX_HLO_DUMP_DIR set, each module is also written there as NAME.pb, NAME.txt (with metadata) and NAME.plain.txt
 * (without), and what the passes leave of it as NAME.opt.pb and NAME.opt.txt: tests/conformance/test_hlo_xla.py lets
 * XLA read and run them.
 */
#include <math.h>

#include "hlo_test.h"

#undef PARAM
#define PARAM(b, name, t, ...) param(b, name, t, N(__VA_ARGS__), DIMS(__VA_ARGS__))

static hlo_val param(struct hlo_builder *b, const char *name, enum dtype t, int rank, const int64_t *dims) {
  return hlo_parameter(b, name, hlo_shape_array(b->module->arena, t, rank, dims));
}

static hlo_val scalar_param(struct hlo_builder *b, const char *name, enum dtype t) {
  return param(b, name, t, 0, NULL);
}

static void finish(struct hlo_builder *b, hlo_val result) {
  assert_int_equal(hlo_finish(b, 1, &result, (const char *[]){"output0"}), ST_OK);
}

static struct src_locs place(struct arena *a, int line, int col, int end_col, const char *func,
                             const struct src_loc *caller) {
  struct src_loc *l = arena_new(a, struct src_loc);
  *l =
      (struct src_loc){.range = {"dir \"x\"/k\u00e9rnel.py", line, col, line, end_col}, .func = func, .caller = caller};
  return src_locs_one(a, l);
}

/* ---- element-wise: every opcode on every dtype that it takes ----------------------------------------- */

static const enum hlo_op unary_ops[] = {HLO_ABS,   HLO_NEGATE, HLO_EXP,        HLO_LOG,       HLO_SQRT,   HLO_SIN,
                                        HLO_COS,   HLO_TANH,   HLO_CEIL,       HLO_FLOOR,     HLO_SIGN,   HLO_NOT,
                                        HLO_COPY,  HLO_RSQRT,  HLO_CBRT,       HLO_TAN,       HLO_ERF,    HLO_LOGISTIC,
                                        HLO_LOG1P, HLO_EXPM1,  HLO_ROUND_EVEN, HLO_ROUND_AFZ, HLO_POPCNT, HLO_CLZ};
static const enum hlo_op binary_ops[] = {HLO_ADD,
                                         HLO_SUBTRACT,
                                         HLO_MULTIPLY,
                                         HLO_DIVIDE,
                                         HLO_REMAINDER,
                                         HLO_POWER,
                                         HLO_MAXIMUM,
                                         HLO_MINIMUM,
                                         HLO_ATAN2,
                                         HLO_AND,
                                         HLO_OR,
                                         HLO_XOR,
                                         HLO_SHIFT_LEFT,
                                         HLO_SHIFT_RIGHT_ARITHMETIC,
                                         HLO_SHIFT_RIGHT_LOGICAL};

static void all_elementwise(struct hlo_builder *b, enum dtype t) {
  hlo_val results[64];
  const char *names[64];
  int n = 0;
  hlo_val x = PARAM(b, "x", t, 3, 4), y = PARAM(b, "y", t, 3, 4);
  for (size_t k = 0; k < sizeof unary_ops / sizeof *unary_ops; k++) {
    results[n] = hlo_unary(b, unary_ops[k], x);
    if (results[n])
      names[n++] = hlo_op_name(unary_ops[k]);
    b->err = (struct error){0};
  }
  for (size_t k = 0; k < sizeof binary_ops / sizeof *binary_ops; k++) {
    results[n] = hlo_binary(b, binary_ops[k], x, y);
    if (results[n])
      names[n++] = hlo_op_name(binary_ops[k]);
    b->err = (struct error){0};
  }
  assert_int_equal(hlo_finish(b, n, results, names), ST_OK);
}

static void elementwise_f32(struct hlo_builder *b) {
  all_elementwise(b, DT_F32);
}
static void elementwise_f64(struct hlo_builder *b) {
  all_elementwise(b, DT_F64);
}
static void elementwise_f16(struct hlo_builder *b) {
  all_elementwise(b, DT_F16);
}
static void elementwise_bf16(struct hlo_builder *b) {
  all_elementwise(b, DT_BF16);
}
static void elementwise_s32(struct hlo_builder *b) {
  all_elementwise(b, DT_I32);
}
static void elementwise_s8(struct hlo_builder *b) {
  all_elementwise(b, DT_I8);
}
static void elementwise_u16(struct hlo_builder *b) {
  all_elementwise(b, DT_U16);
}
static void elementwise_u64(struct hlo_builder *b) {
  all_elementwise(b, DT_U64);
}
static void elementwise_pred(struct hlo_builder *b) {
  all_elementwise(b, DT_BOOL);
}

static void compare_all(struct hlo_builder *b) {
  hlo_val x = PARAM(b, "x", DT_F32, 5), y = PARAM(b, "y", DT_F32, 5), r[6];
  const char *names[6];
  for (int d = HLO_EQ; d <= HLO_LT; d++) {
    r[d] = hlo_compare(b, (enum hlo_direction)d, x, y);
    names[d] = hlo_direction_name((enum hlo_direction)d);
  }
  assert_int_equal(hlo_finish(b, 6, r, names), ST_OK);
}

static void select_max(struct hlo_builder *b) {
  hlo_val x = PARAM(b, "x", DT_F32, 3, 4), y = PARAM(b, "y", DT_F32, 3, 4);
  finish(b, hlo_select(b, hlo_compare(b, HLO_GT, x, y), x, y));
}

static void convert_all(struct hlo_builder *b) {
  hlo_val x = PARAM(b, "x", DT_F32, 3), r[DT_TUPLE];
  const char *names[DT_TUPLE];
  int n = 0;
  for (int t = DT_NONE + 1; t < DT_C64; t++) {
    names[n] = dtype_numpy_name((enum dtype)t);
    r[n++] = hlo_convert(b, x, (enum dtype)t);
  }
  assert_int_equal(hlo_finish(b, n, r, names), ST_OK);
}

/* ---- constants --------------------------------------------------------------------------------------- */

static void constants_all(struct hlo_builder *b) {
  static const double values[] = {0, 1, -1, 2.5, 0.1, 100, 1e-3, 3};
  hlo_val r[2 * DT_TUPLE];
  const char *names[2 * DT_TUPLE];
  int n = 0;
  for (int t = DT_NONE + 1; t < DT_C64; t++) {
    size_t size = dtype_size((enum dtype)t);
    char data[8 * 8];
    for (int k = 0; k < 8; k++) {
      hlo_val s = hlo_scalar(b, (enum dtype)t, dtype_kind((enum dtype)t) == DK_UNSIGNED ? fabs(values[k]) : values[k]);
      memcpy(data + (size_t)k * size, s->attrs->literal->data, size);
    }
    struct hlo_shape s = hlo_shape_array(b->module->arena, (enum dtype)t, 3, DIMS(2, 1, 4));
    names[n] = dtype_numpy_name((enum dtype)t);
    r[n++] = hlo_constant(b, s, data);
    names[n] = dtype_numpy_name((enum dtype)t);
    r[n++] = hlo_scalar(b, (enum dtype)t, 3);
  }
  assert_int_equal(hlo_finish(b, n, r, names), ST_OK);
}

static void constants_extreme(struct hlo_builder *b) {
  hlo_val r[2 * DT_TUPLE];
  const char *names[2 * DT_TUPLE];
  int n = 0;
  for (int t = DT_NONE + 1; t < DT_C64; t++)
    for (int lowest = 0; lowest < 2; lowest++) {
      names[n] = dtype_numpy_name((enum dtype)t);
      r[n++] = hlo_extreme(b, (enum dtype)t, lowest);
    }
  assert_int_equal(hlo_finish(b, n, r, names), ST_OK);
}

/* Every bit pattern of the 8- and 16-bit floats, and hard ones of the wide. */
static void all_bits(struct hlo_builder *b, enum dtype t) {
  size_t size = dtype_size(t);
  int64_t n = size == 1 ? 256 : 65536;
  uint8_t *v = arena_alloc(b->module->arena, (size_t)n * size);
  for (int64_t k = 0; k < n; k++)
    memcpy(v + (size_t)k * size, &k, size);
  finish(b, hlo_constant(b, hlo_shape_array(b->module->arena, t, 2, DIMS(16, n / 16)), v));
}
static void bits_f16(struct hlo_builder *b) {
  all_bits(b, DT_F16);
}
static void bits_bf16(struct hlo_builder *b) {
  all_bits(b, DT_BF16);
}
static void bits_e4m3(struct hlo_builder *b) {
  all_bits(b, DT_F8E4M3);
}
static void bits_e4m3fn(struct hlo_builder *b) {
  all_bits(b, DT_F8E4M3FN);
}
static void bits_e5m2(struct hlo_builder *b) {
  all_bits(b, DT_F8E5M2);
}

static void bits_f32(struct hlo_builder *b) {
  enum { COUNT = 4096 };
  static const uint32_t hard[] = {0,          0x80000000, 1,          0x807fffff, 0x7f7fffff, 0x7f800000, 0xff800000,
                                  0x7fc00000, 0xffc00000, 0x7f800001, 0xffc00123, 0x3dcccccd, 0x3f800001, 0x00800000};
  uint32_t v[COUNT], x = 12345;
  for (int k = 0; k < COUNT; k++)
    v[k] = (size_t)k < sizeof hard / sizeof *hard ? hard[k] : (x = x * 1664525 + 1013904223);
  finish(b, hlo_constant(b, hlo_shape_array(b->module->arena, DT_F32, 1, DIMS(COUNT)), v));
}

static void bits_f64(struct hlo_builder *b) {
  enum { COUNT = 1024 };
  static const uint64_t hard[] = {0,
                                  1,
                                  0x8000000000000000,
                                  0x7fefffffffffffff,
                                  0x7ff0000000000000,
                                  0xfff0000000000000,
                                  0x7ff8000000000000,
                                  0xfff8000000000000,
                                  0x3fb999999999999a,
                                  0x7ff8000000000123};
  uint64_t v[COUNT], x = 12345;
  for (int k = 0; k < COUNT; k++)
    v[k] = (size_t)k < sizeof hard / sizeof *hard ? hard[k] : (x = x * 6364136223846793005u + 1442695040888963407u);
  finish(b, hlo_constant(b, hlo_shape_array(b->module->arena, DT_F64, 1, DIMS(COUNT)), v));
}

static void constants_empty(struct hlo_builder *b) {
  struct arena *a = b->module->arena;
  hlo_val r[] = {hlo_constant(b, hlo_shape_array(a, DT_F32, 1, DIMS(0)), NULL),
                 hlo_constant(b, hlo_shape_array(a, DT_I32, 2, DIMS(2, 0)), NULL),
                 hlo_constant(b, hlo_shape_array(a, DT_BOOL, 3, DIMS(0, 2, 3)), NULL)};
  assert_int_equal(hlo_finish(b, 3, r, (const char *[]){"a", "b", "c"}), ST_OK);
}

static void iotas(struct hlo_builder *b) {
  hlo_val r[] = {hlo_iota(b, DT_I32, 2, DIMS(3, 4), 0), hlo_iota(b, DT_F32, 2, DIMS(3, 4), 1),
                 hlo_iota(b, DT_U8, 1, DIMS(7), 0)};
  assert_int_equal(hlo_finish(b, 3, r, (const char *[]){"a", "b", "c"}), ST_OK);
}

/* ---- shapes ------------------------------------------------------------------------------------------ */

static void broadcasts(struct hlo_builder *b) {
  hlo_val x = PARAM(b, "x", DT_F32, 3), s = scalar_param(b, "s", DT_F32);
  hlo_val r[] = {hlo_broadcast(b, x, 2, DIMS(3, 4), DIMS(0)), hlo_broadcast(b, x, 3, DIMS(2, 4, 3), DIMS(2)),
                 hlo_broadcast(b, s, 2, DIMS(2, 2), NULL), hlo_broadcast(b, s, 0, NULL, NULL)};
  assert_int_equal(hlo_finish(b, 4, r, (const char *[]){"a", "b", "c", "d"}), ST_OK);
}

static void reshapes(struct hlo_builder *b) {
  hlo_val x = PARAM(b, "x", DT_F32, 3, 4), one = PARAM(b, "one", DT_F32, 1, 1);
  hlo_val r[] = {hlo_reshape(b, x, 1, DIMS(12)), hlo_reshape(b, x, 4, DIMS(2, 1, 3, 2)), hlo_reshape(b, one, 0, NULL)};
  assert_int_equal(hlo_finish(b, 3, r, (const char *[]){"a", "b", "c"}), ST_OK);
}

static void transposes(struct hlo_builder *b) {
  hlo_val x = PARAM(b, "x", DT_F32, 2, 3, 4), s = scalar_param(b, "s", DT_F32);
  hlo_val r[] = {hlo_transpose(b, x, DIMS(2, 0, 1)), hlo_transpose(b, x, DIMS(0, 2, 1)), hlo_transpose(b, s, NULL)};
  assert_int_equal(hlo_finish(b, 3, r, (const char *[]){"a", "b", "c"}), ST_OK);
}

static void slices(struct hlo_builder *b) {
  hlo_val x = PARAM(b, "x", DT_F32, 10, 7);
  hlo_val r[] = {hlo_slice(b, x, (struct hlo_slice_dim[]){{1, 9, 3}, {0, 7, 1}}),
                 hlo_slice(b, x, (struct hlo_slice_dim[]){{4, 4, 1}, {2, 5, 2}})};
  assert_int_equal(hlo_finish(b, 2, r, (const char *[]){"a", "b"}), ST_OK);
}

static void pads(struct hlo_builder *b) {
  hlo_val x = PARAM(b, "x", DT_F32, 3, 4), v = hlo_scalar(b, DT_F32, 0.5);
  hlo_val r[] = {hlo_pad(b, x, v, (struct hlo_pad_dim[]){{1, 2, 0}, {0, 0, 0}}),
                 hlo_pad(b, x, v, (struct hlo_pad_dim[]){{-1, 2, 1}, {3, -2, 2}})};
  assert_int_equal(hlo_finish(b, 2, r, (const char *[]){"a", "b"}), ST_OK);
}

static void pad_0d(struct hlo_builder *b) {
  hlo_val x = scalar_param(b, "x", DT_F32);
  finish(b, hlo_pad(b, x, hlo_scalar(b, DT_F32, 0), (struct hlo_pad_dim[]){{0, 0, 0}}));
}

static void slice_0d(struct hlo_builder *b) {
  hlo_val x = scalar_param(b, "x", DT_F32);
  finish(b, hlo_slice(b, x, (struct hlo_slice_dim[]){{0, 0, 1}}));
}

static void concatenates(struct hlo_builder *b) {
  hlo_val x = PARAM(b, "x", DT_F32, 3, 4), y = PARAM(b, "y", DT_F32, 3, 2), z = PARAM(b, "z", DT_F32, 3, 0);
  finish(b, hlo_concatenate(b, 4, (hlo_val[]){x, y, z, x}, 1));
}

/* ---- reductions and products ------------------------------------------------------------------------- */

static void reduces(struct hlo_builder *b) {
  hlo_val x = PARAM(b, "x", DT_F32, 3, 4, 5), p = PARAM(b, "p", DT_BOOL, 6);
  hlo_val zero = hlo_scalar(b, DT_F32, 0), one = hlo_scalar(b, DT_F32, 1);
  hlo_val r[] = {hlo_reduce(b, HLO_ADD, x, zero, 1, DIMS(1)),
                 hlo_reduce(b, HLO_MAXIMUM, x, hlo_extreme(b, DT_F32, true), 2, DIMS(0, 2)),
                 hlo_reduce(b, HLO_MINIMUM, x, hlo_extreme(b, DT_F32, false), 3, DIMS(0, 1, 2)),
                 hlo_reduce(b, HLO_MULTIPLY, x, one, 1, DIMS(2)),
                 hlo_reduce(b, HLO_ADD, x, zero, 0, NULL),
                 hlo_reduce(b, HLO_OR, p, hlo_scalar(b, DT_BOOL, 0), 1, DIMS(0)),
                 hlo_reduce(b, HLO_AND, p, hlo_scalar(b, DT_BOOL, 1), 1, DIMS(0))};
  assert_int_equal(hlo_finish(b, 7, r, (const char *[]){"a", "b", "c", "d", "e", "f", "g"}), ST_OK);
}

static void dot_2d(struct hlo_builder *b) {
  hlo_val x = PARAM(b, "x", DT_F32, 3, 5), y = PARAM(b, "y", DT_F32, 5, 4);
  finish(b, hlo_dot(b, x, y, &(struct hlo_dot_dims){INTS(1), INTS(0), {0}, {0}}, DT_F32));
}

static void dot_batch(struct hlo_builder *b) {
  hlo_val x = PARAM(b, "x", DT_F32, 2, 6, 3, 5), y = PARAM(b, "y", DT_F32, 6, 2, 4, 5);
  finish(b, hlo_dot(b, x, y, &(struct hlo_dot_dims){INTS(3), INTS(3), INTS(0, 1), INTS(1, 0)}, DT_F32));
}

static void dot_widening(struct hlo_builder *b) {
  hlo_val x = PARAM(b, "x", DT_BF16, 3, 5), y = PARAM(b, "y", DT_BF16, 5, 4);
  finish(b, hlo_dot(b, x, y, &(struct hlo_dot_dims){INTS(1), INTS(0), {0}, {0}}, DT_F32));
}

static void dot_vectors(struct hlo_builder *b) {
  hlo_val x = PARAM(b, "x", DT_F32, 5), y = PARAM(b, "y", DT_F32, 5);
  finish(b, hlo_dot(b, x, y, &(struct hlo_dot_dims){INTS(0), INTS(0), {0}, {0}}, DT_F32));
}

static void dot_empty(struct hlo_builder *b) {
  hlo_val x = PARAM(b, "x", DT_F32, 3, 0), y = PARAM(b, "y", DT_F32, 0, 4);
  finish(b, hlo_dot(b, x, y, &(struct hlo_dot_dims){INTS(1), INTS(0), {0}, {0}}, DT_F32));
}

static void gather_rows(struct hlo_builder *b) {
  hlo_val x = PARAM(b, "x", DT_F32, 6, 4), i = PARAM(b, "i", DT_I32, 3, 1);
  finish(b, hlo_gather(b, x, i,
                       &(struct hlo_gather_dims){.offset_dims = INTS(1),
                                                 .collapsed_slice_dims = INTS(0),
                                                 .start_index_map = INTS(0),
                                                 .slice_sizes = INTS(1, 4),
                                                 .index_vector_dim = 1}));
}

static void gather_windows(struct hlo_builder *b) {
  hlo_val x = PARAM(b, "x", DT_F32, 6, 4, 5), i = PARAM(b, "i", DT_I64, 2, 3);
  finish(b, hlo_gather(b, x, i,
                       &(struct hlo_gather_dims){.offset_dims = INTS(0, 2),
                                                 .collapsed_slice_dims = INTS(1),
                                                 .start_index_map = INTS(2, 0),
                                                 .slice_sizes = INTS(3, 1, 2),
                                                 .index_vector_dim = 0,
                                                 .indices_are_sorted = true}));
}

static void scatter_rows(struct hlo_builder *b) {
  hlo_val x = PARAM(b, "x", DT_F32, 6, 4), i = PARAM(b, "i", DT_I32, 2, 1), u = PARAM(b, "u", DT_F32, 2, 4);
  finish(b, hlo_scatter_assign(b, x, i, u,
                               &(struct hlo_scatter_dims){.update_window_dims = INTS(1),
                                                          .inserted_window_dims = INTS(0),
                                                          .scatter_dims_to_operand_dims = INTS(0),
                                                          .index_vector_dim = 1,
                                                          .unique_indices = true}));
}

static void ordering(struct hlo_builder *b) {
  hlo_val x = PARAM(b, "x", DT_F32, 3, 7);
  hlo_val i = hlo_iota(b, DT_I32, 2, DIMS(3, 7), 1), pair[] = {x, i};
  hlo_val sorted = hlo_sort(b, 2, pair, 1, true), top = hlo_topk(b, x, 3);
  hlo_val v[] = {hlo_sort(b, 1, &x, 0, false),  hlo_tuple_element(b, sorted, 0), hlo_tuple_element(b, sorted, 1),
                 hlo_reverse(b, x, 1, DIMS(1)), hlo_tuple_element(b, top, 0),    hlo_tuple_element(b, top, 1)};
  assert_int_equal(hlo_finish(b, 6, v, (const char *[]){"a", "b", "c", "d", "e", "f"}), ST_OK);
}

static void limits(struct hlo_builder *b) {
  hlo_val x = PARAM(b, "x", DT_F32, 3, 4), low = scalar_param(b, "low", DT_F32), high = PARAM(b, "high", DT_F32, 3, 4);
  hlo_val v[] = {hlo_clamp(b, low, x, hlo_scalar(b, DT_F32, 1)),
                 hlo_clamp(b, hlo_full(b, DT_F32, 2, DIMS(3, 4), -1), x, high), hlo_bitcast_convert(b, x, DT_I32)};
  assert_int_equal(hlo_finish(b, 3, v, (const char *[]){"a", "b", "c"}), ST_OK);
}

static const struct hlo_window_dim plain = {1, 1, 0, 0, 1, 1, false};

static void windows(struct hlo_builder *b) {
  hlo_val x = PARAM(b, "x", DT_F32, 2, 7, 6), k = PARAM(b, "k", DT_F32, 3, 2, 4);
  const struct hlo_window_dim pool[] = {plain, {3, 2, 1, 1, 1, 1, false}, {2, 1, 0, 1, 2, 1, false}},
                              conv[] = {{3, 2, 1, 2, 1, 2, true}};
  hlo_val pooled = hlo_reduce_window(b, HLO_MAXIMUM, x, hlo_extreme(b, DT_F32, true), &(struct hlo_window){3, pool});
  hlo_val summed = hlo_reduce_window(b, HLO_ADD, x, hlo_scalar(b, DT_F32, 0), &(struct hlo_window){3, pool});
  /* batches of 2, 7 long, 6 features in three groups of two */
  hlo_val kernel = hlo_slice(b, hlo_concatenate(b, 2, (hlo_val[]){k, k}, 2),
                             (struct hlo_slice_dim[]){{0, 3, 1}, {0, 2, 1}, {0, 6, 1}});
  const struct hlo_conv_dims dims = {.input_batch = 0,
                                     .input_spatial = INTS(1),
                                     .input_feature = 2,
                                     .kernel_spatial = INTS(0),
                                     .kernel_input_feature = 1,
                                     .kernel_output_feature = 2,
                                     .output_batch = 1,
                                     .output_feature = 0,
                                     .output_spatial = INTS(2),
                                     .feature_group_count = 3,
                                     .batch_group_count = 1};
  hlo_val convolved = hlo_convolution(b, x, kernel, &(struct hlo_window){1, conv}, &dims, DT_F32);
  hlo_val v[] = {pooled, summed, convolved};
  assert_int_equal(hlo_finish(b, 3, v, (const char *[]){"a", "b", "c"}), ST_OK);
}

static void collectives(struct hlo_builder *b) {
  hlo_val x = PARAM(b, "x", DT_F32, 4, 6);
  const struct hlo_ints pairs[] = {INTS(0, 1), INTS(2, 3)};
  const struct hlo_groups groups = {2, pairs};
  hlo_val v[] = {hlo_collective(b, HLO_ALL_GATHER, x, &groups, HLO_ADD, 1),
                 hlo_collective(b, HLO_ALL_REDUCE, x, &groups, HLO_MAXIMUM, 0),
                 hlo_collective(b, HLO_REDUCE_SCATTER, x, &groups, HLO_ADD, 0),
                 hlo_collective(b, HLO_ALL_TO_ALL, x, &groups, HLO_ADD, 1)};
  assert_int_equal(hlo_finish(b, 4, v, (const char *[]){"a", "b", "c", "d"}), ST_OK);
}

static void custom(struct hlo_builder *b) {
  hlo_val x = PARAM(b, "x", DT_F32, 4, 6);
  const struct hlo_shape elems[] = {x->shape, {.dtype = DT_I32}},
                         pair = {.dtype = DT_TUPLE, .n_elems = 2, .elems = elems};
  const struct hlo_operand_alias alias = {INTS(0), 0};
  hlo_val c = hlo_custom_call(b, &(struct hlo_custom){"Opaque", "a \"config\"", 1, &alias, true}, pair, 1, &x);
  finish(b, hlo_tuple_element(b, c, 0));
}

static void dynamic(struct hlo_builder *b) {
  hlo_val x = PARAM(b, "x", DT_F32, 6, 4), u = PARAM(b, "u", DT_F32, 2, 3);
  hlo_val s[] = {scalar_param(b, "i", DT_I32), scalar_param(b, "j", DT_I32)};
  hlo_val r[] = {hlo_dynamic_slice(b, x, s, DIMS(2, 3)), hlo_dynamic_update_slice(b, x, u, s)};
  assert_int_equal(hlo_finish(b, 2, r, (const char *[]){"a", "b"}), ST_OK);
}

#include "hlo_control.h" /* modules with call, while and conditional */

/* ---- structure --------------------------------------------------------------------------------------- */

static void identity_0d(struct hlo_builder *b) {
  finish(b, scalar_param(b, "x", DT_F32));
}

static void no_inputs(struct hlo_builder *b) {
  finish(b, hlo_full(b, DT_F32, 2, DIMS(2, 3), 7));
}

static void no_results(struct hlo_builder *b) {
  PARAM(b, "x", DT_F32, 2);
  assert_int_equal(hlo_finish(b, 0, NULL, NULL), ST_OK);
}

static void set_aliases(struct hlo_module *m, int n, const struct hlo_alias *v) {
  m->n_aliases = n;
  m->aliases = arena_dup(m->arena, v, (size_t)n * sizeof *v);
}

static void alias_one(struct hlo_builder *b) {
  hlo_val x = PARAM(b, "cache", DT_F32, 6, 4), u = PARAM(b, "u", DT_F32, 2, 4), zero = hlo_scalar(b, DT_I32, 0);
  hlo_val r = hlo_dynamic_update_slice(b, x, u, (hlo_val[]){zero, zero});
  assert_int_equal(hlo_finish(b, 1, &r, (const char *[]){"cache"}), ST_OK);
  set_aliases(b->module, 1, &(struct hlo_alias){0, 0, "cache", true});
}

static void alias_two(struct hlo_builder *b) {
  hlo_val x = PARAM(b, "k", DT_F32, 4), y = PARAM(b, "v", DT_F32, 4), z = PARAM(b, "z", DT_F32, 4);
  hlo_val r[] = {hlo_binary(b, HLO_ADD, x, z), hlo_binary(b, HLO_MULTIPLY, x, y), hlo_unary(b, HLO_NEGATE, y)};
  assert_int_equal(hlo_finish(b, 3, r, (const char *[]){"output0", "k", "v"}), ST_OK);
  set_aliases(b->module, 2, (struct hlo_alias[]){{1, 0, "k", false}, {2, 1, "v", false}});
}

static void odd_names(struct hlo_builder *b) {
  static const char *const names[] = {"f32", "result", "op4", "true", "ENTRY", "gr\u00f6\u00dfe",
                                      "inf", "main",   "s32", "op9",  "_",     "add_float32_lhs"};
  hlo_val sum = NULL;
  for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
    hlo_val p = PARAM(b, names[k], DT_F32, 2);
    sum = sum ? hlo_binary(b, HLO_ADD, sum, p) : p;
  }
  finish(b, hlo_reduce(b, HLO_ADD, sum, hlo_scalar(b, DT_F32, 0), 1, DIMS(0)));
}

static void metadata(struct hlo_builder *b) {
  struct arena *a = b->module->arena;
  struct src_locs outer = place(a, 12, 5, 20, "kernel", NULL);
  struct src_locs inner = place(a, 3, 10, 15, "helper", outer.v[0]);
  struct src_locs other = place(a, 4, 10, 15, "helper", outer.v[0]);
  hlo_val x = PARAM(b, "x", DT_F32, 3, 4);
  b->locs = inner;
  hlo_val y = hlo_unary(b, HLO_EXP, x);
  b->locs = other;
  y = hlo_reduce(b, HLO_ADD, y, hlo_scalar(b, DT_F32, 0), 1, DIMS(1));
  b->locs = outer;
  y = hlo_unary(b, HLO_SQRT, y);
  b->locs = src_locs_union(a, other, inner);
  y = hlo_unary(b, HLO_LOG, y);
  b->locs = (struct src_locs){0};
  finish(b, y);
}

static void softmax(struct hlo_builder *b) {
  hlo_val x = PARAM(b, "x", DT_F32, 13, 17);
  hlo_val m = hlo_reduce(b, HLO_MAXIMUM, x, hlo_extreme(b, DT_F32, true), 1, DIMS(1));
  hlo_val e = hlo_unary(b, HLO_EXP, hlo_binary(b, HLO_SUBTRACT, x, hlo_broadcast(b, m, 2, DIMS(13, 17), DIMS(0))));
  hlo_val s = hlo_reduce(b, HLO_ADD, e, hlo_scalar(b, DT_F32, 0), 1, DIMS(1));
  finish(b, hlo_binary(b, HLO_DIVIDE, e, hlo_broadcast(b, s, 2, DIMS(13, 17), DIMS(0))));
}

/* ---- random programs, for the passes ----------------------------------------------------------------- */

struct rng {
  uint64_t x;
};

static int64_t pick(struct rng *r, int64_t n) {
  r->x = r->x * 6364136223846793005u + 1442695040888963407u;
  return (int64_t)((r->x >> 33) % (uint64_t)n);
}

static hlo_val random_reshape(struct hlo_builder *b, struct rng *r, hlo_val x) {
  int64_t n = hlo_shape_elements(&x->shape), d = 1 + pick(r, 6);
  if (pick(r, 3) == 0)
    return hlo_reshape(b, x, 3, DIMS(n, 1, 1));
  return n % d ? hlo_reshape(b, x, 1, &n) : hlo_reshape(b, x, 2, DIMS(d, n / d));
}

static hlo_val random_transpose(struct hlo_builder *b, struct rng *r, hlo_val x) {
  int64_t p[HLO_RANK_MAX];
  for (int k = 0; k < x->shape.rank; k++) {
    int at = (int)pick(r, k + 1);
    p[k] = p[at];
    p[at] = k;
  }
  return hlo_transpose(b, x, p);
}

static hlo_val random_slice(struct hlo_builder *b, struct rng *r, hlo_val x) {
  struct hlo_slice_dim d[HLO_RANK_MAX];
  for (int k = 0; k < x->shape.rank; k++) {
    int64_t size = x->shape.dims[k], cut = size > 2 ? pick(r, 2) : 0;
    d[k] = (struct hlo_slice_dim){cut, size - (size > 3 ? pick(r, 2) : 0), 1 + (size > 4 ? pick(r, 2) : 0)};
  }
  return hlo_slice(b, x, d);
}

static hlo_val random_broadcast(struct hlo_builder *b, struct rng *r, hlo_val x) {
  int64_t dims[HLO_RANK_MAX], at[HLO_RANK_MAX];
  int n = 0, extra = x->shape.rank < 3 && hlo_shape_elements(&x->shape) < 200 ? (int)pick(r, x->shape.rank + 1) : -1;
  for (int k = 0; k <= x->shape.rank; k++) {
    if (k == extra)
      dims[n++] = 2;
    if (k < x->shape.rank) {
      at[k] = n;
      dims[n++] = x->shape.dims[k];
    }
  }
  return hlo_broadcast(b, x, n, dims, at);
}

static hlo_val random_arithmetic(struct hlo_builder *b, struct rng *r, hlo_val x) {
  static const enum hlo_op ops[] = {HLO_ADD, HLO_SUBTRACT, HLO_MULTIPLY, HLO_DIVIDE, HLO_POWER, HLO_MAXIMUM};
  hlo_val c = hlo_full(b, x->shape.dtype, x->shape.rank, x->shape.dims, (double)pick(r, 3));
  enum hlo_op op = ops[pick(r, 6)];
  if (pick(r, 4) == 0)
    return hlo_binary(b, HLO_ADD, x, x);
  if (op == HLO_DIVIDE && *(const float *)(c->n_operands ? c->operands[0] : c)->attrs->literal->data == 0)
    op = HLO_ADD;
  return pick(r, 3) ? hlo_binary(b, op, x, c) : hlo_binary(b, op == HLO_DIVIDE ? HLO_SUBTRACT : op, c, x);
}

static hlo_val random_other(struct hlo_builder *b, struct rng *r, hlo_val x) {
  hlo_val zero = hlo_scalar(b, DT_F32, 0);
  struct hlo_pad_dim pads[HLO_RANK_MAX] = {0};
  switch (pick(r, 8)) {
  case 0:
    return hlo_unary(b, HLO_NEGATE, x);
  case 1:
    return hlo_unary(b, HLO_COPY, x);
  case 2:
    return hlo_convert(b, hlo_convert(b, x, pick(r, 2) ? DT_F64 : DT_BF16), DT_F32);
  case 3:
    return hlo_select(b, hlo_compare(b, (enum hlo_direction)pick(r, 6), x, x), x, hlo_unary(b, HLO_ABS, x));
  case 4:
    return hlo_pad(b, x, zero, pads);
  case 5:
    return x->shape.rank ? hlo_concatenate(b, 1, &x, 0) : x;
  case 6:
    return x->shape.rank && hlo_shape_elements(&x->shape) < 200
               ? hlo_concatenate(b, 3, (hlo_val[]){x, hlo_unary(b, HLO_NEGATE, x), x}, x->shape.rank - 1)
               : x;
  default:
    return x->shape.rank ? hlo_reduce(b, pick(r, 2) ? HLO_ADD : HLO_MAXIMUM, x, zero, 1, DIMS(pick(r, x->shape.rank)))
                         : x;
  }
}

static void random_program(struct hlo_builder *b, uint64_t seed) {
  struct rng r = {seed * 1000003 + 17};
  hlo_val pool[48];
  int n = 2;
  pool[0] = PARAM(b, "x", DT_F32, 4, 6);
  pool[1] = PARAM(b, "y", DT_F32, 5);
  while (n < 48) {
    hlo_val x = pool[n < 8 ? pick(&r, n) : n - 1 - pick(&r, 6)], v;
    switch (pick(&r, 6)) {
    case 0:
      v = random_reshape(b, &r, x);
      break;
    case 1:
      v = random_transpose(b, &r, x);
      break;
    case 2:
      v = random_slice(b, &r, x);
      break;
    case 3:
      v = random_broadcast(b, &r, x);
      break;
    case 4:
      v = random_arithmetic(b, &r, x);
      break;
    default:
      v = random_other(b, &r, x);
    }
    if (!v)
      fail_msg("random program %d: %s", (int)seed, b->err.text);
    pool[n++] = v;
  }
  const char *names[48];
  for (int k = 0; k < n; k++)
    names[k] = "o";
  assert_int_equal(hlo_finish(b, 16, pool + n - 16, names), ST_OK);
}

#define RANDOM(k) \
  static void random_##k(struct hlo_builder *b) { \
    random_program(b, k); \
  }
RANDOM(1)
RANDOM(2)
RANDOM(3)
RANDOM(4)
RANDOM(5)
RANDOM(6)
RANDOM(7)
RANDOM(8)

static const struct {
  const char *name;
  void (*build)(struct hlo_builder *b);
} modules[] = {
#define M(f) {#f, f}
    M(elementwise_f32),
    M(elementwise_f64),
    M(elementwise_f16),
    M(elementwise_bf16),
    M(elementwise_s32),
    M(elementwise_s8),
    M(elementwise_u16),
    M(elementwise_u64),
    M(elementwise_pred),
    M(compare_all),
    M(select_max),
    M(convert_all),
    M(constants_all),
    M(constants_extreme),
    M(bits_f16),
    M(bits_bf16),
    M(bits_e4m3),
    M(bits_e4m3fn),
    M(bits_e5m2),
    M(bits_f32),
    M(bits_f64),
    M(constants_empty),
    M(iotas),
    M(broadcasts),
    M(reshapes),
    M(transposes),
    M(slices),
    M(pads),
    M(pad_0d),
    M(slice_0d),
    M(concatenates),
    M(reduces),
    M(dot_2d),
    M(dot_batch),
    M(dot_widening),
    M(dot_vectors),
    M(dot_empty),
    M(gather_rows),
    M(gather_windows),
    M(scatter_rows),
    M(dynamic),
    M(identity_0d),
    M(no_inputs),
    M(no_results),
    M(alias_one),
    M(alias_two),
    M(odd_names),
    M(metadata),
    M(call_twice),
    M(while_sum),
    M(while_nested),
    M(while_grows),
    M(ordering),
    M(limits),
    M(windows),
    M(collectives),
    M(custom),
    M(choose_pred),
    M(choose_index),
    M(tuples),
    M(softmax),
    M(random_1),
    M(random_2),
    M(random_3),
    M(random_4),
    M(random_5),
    M(random_6),
    M(random_7),
    M(random_8),
#undef M
};

static void write_file(const char *dir, const char *name, const char *ext, const struct buf *b) {
  char path[4096];
  snprintf(path, sizeof path, "%s/%s%s", dir, name, ext);
  FILE *f = fopen(path, "wb");
  assert_non_null(f);
  assert_int_equal(fwrite(b->data, 1, b->len, f), b->len);
  assert_int_equal(fclose(f), 0);
}

static void check_lines(const struct buf *text, const struct hlo_lines *lines) {
  int line = 1, k = 0;
  for (const char *p = text->data; *p && k < lines->n; p = strchr(p, '\n') + 1, line++)
    if (line == lines->v[k].line) {
      char op[64];
      snprintf(op, sizeof op, " %s(", hlo_op_name(lines->v[k].instr->op));
      const char *at = strstr(p, op);
      assert_true(at && at < strchr(p, '\n'));
      k++;
    }
  assert_int_equal(k, lines->n);
}

static void check_verifies(struct hlo_module *m, struct arena *a) {
  struct diags ds;
  diags_init(&ds, a);
  if (hlo_verify(m, &ds))
    fail_msg("%s: %s", m->name, ds.v[0].message);
}

static void dump_proto(const struct hlo_module *m, const char *dir, const char *name, const char *ext) {
  struct buf out;
  buf_init(&out, 64 << 20);
  assert_int_equal(hlo_write_proto(m, &out), ST_OK);
  if (dir)
    write_file(dir, name, ext, &out);
  buf_clear(&out);
}

static void dump_text(const struct hlo_module *m, bool metadata, const char *dir, const char *name, const char *ext) {
  struct buf out;
  struct hlo_lines lines;
  struct arena a;
  arena_init(&a);
  buf_init(&out, 64 << 20);
  assert_int_equal(hlo_print(m, &(struct hlo_print_options){.metadata = metadata}, &out, &a, &lines), ST_OK);
  check_lines(&out, &lines);
  if (dir)
    write_file(dir, name, ext, &out);
  buf_clear(&out);
  arena_clear(&a);
}

static void every_kind_of_module_verifies_prints_and_serialises(void **state) {
  const char *dir = getenv("NKX_HLO_DUMP_DIR");
  (void)state;
  for (size_t k = 0; k < sizeof modules / sizeof *modules; k++) {
    const char *name = modules[k].name;
    struct arena a;
    struct hlo_builder b;
    struct hlo_pass_result r = {0};
    arena_init(&a);
    hlo_builder_init(&b, hlo_module_new(&a, name));
    modules[k].build(&b);
    check_verifies(b.module, &a);
    dump_text(b.module, true, dir, name, ".txt");
    dump_text(b.module, false, dir, name, ".plain.txt");
    dump_proto(b.module, dir, name, ".pb");
    for (int p = 0; p < hlo_n_passes; p++) {
      hlo_passes[p].fn(b.module, &r);
      check_verifies(b.module, &a);
    }
    dump_text(b.module, true, dir, name, ".opt.txt");
    dump_proto(b.module, dir, name, ".opt.pb");
    arena_clear(&a);
  }
}

static void a_buffer_that_is_too_small_gives_a_limit(void **state) {
  struct arena a;
  struct buf out;
  struct hlo_builder b;
  (void)state;
  arena_init(&a);
  buf_init(&out, 50);
  hlo_builder_init(&b, hlo_module_new(&a, "m"));
  softmax(&b);
  assert_int_equal(hlo_print(b.module, &(struct hlo_print_options){0}, &out, &a, NULL), ST_LIMIT);
  buf_clear(&out);
  assert_int_equal(hlo_write_proto(b.module, &out), ST_LIMIT);
  arena_clear(&a);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_kind_of_module_verifies_prints_and_serialises),
      cmocka_unit_test(a_buffer_that_is_too_small_gives_a_limit),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
