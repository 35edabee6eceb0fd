/* Running IR text on given inputs, and comparing results. */
#include <sys/wait.h>
#include <unistd.h>

#include "driver/check_internal.h"
#include "interp/interp.h"
#include "check_support.h"
#include "sim/product.h"

#define N(a) (int)(sizeof(a) / sizeof(a)[0])

/* ---- layouts, memory spaces, annotations --------------------------------------------------------------- */

static void strided_arguments_and_results_work(void **state) {
  struct job j;
  (void)state;
  job_begin(&j, "func.func @k(%a: memref<2x3xf32, strided<[1, 2]>>, %b: memref<4x5xf32, strided<[?, ?], offset: ?>>)\n"
                "    -> (memref<2x3xf32, strided<[1, 2]>>, memref<2x2xf32, strided<[?, ?], offset: ?>>) {\n"
                "  %s = memref.subview %b[1, 1] [2, 2] [2, 3] : memref<4x5xf32, strided<[?, ?], offset: ?>>\n"
                "       to memref<2x2xf32, strided<[?, ?], offset: ?>>\n"
                "  return %a, %s : memref<2x3xf32, strided<[1, 2]>>, memref<2x2xf32, strided<[?, ?], offset: ?>>\n}\n");
  count_up(&j, 0, DIMS(2, 3));
  count_up(&j, 0, DIMS(4, 5));
  result(&j, DIMS(2, 3));
  result(&j, DIMS(2, 2));
  run_ok(&j);
  for (int k = 0; k < 6; k++)
    assert_true(at(&j, 0, k) == (float)k); /* the results alias the arguments */
  const float want[] = {6, 9, 16, 19};
  for (int k = 0; k < 4; k++)
    assert_true(at(&j, 1, k) == want[k]);
  job_end(&j);
}

static void copies_between_layouts_work(void **state) {
  struct job j;
  (void)state;
  job_begin(
      &j,
      "func.func @k(%a: memref<4x6xf32>) -> memref<2x3xf32, strided<[1, 2]>> {\n"
      "  %s = memref.subview %a[1, 0] [2, 3] [2, 2] : memref<4x6xf32> to memref<2x3xf32, strided<[12, 2], offset: 6>>\n"
      "  %r = memref.alloc() : memref<2x3xf32, strided<[1, 2]>>\n"
      "  memref.copy %s, %r : memref<2x3xf32, strided<[12, 2], offset: 6>> to memref<2x3xf32, strided<[1, 2]>>\n"
      "  return %r : memref<2x3xf32, strided<[1, 2]>>\n}\n");
  count_up(&j, 0, DIMS(4, 6));
  result(&j, DIMS(2, 3));
  run_ok(&j);
  const float want[] = {6, 8, 10, 18, 20, 22};
  for (int k = 0; k < 6; k++)
    assert_true(at(&j, 0, k) == want[k]);
  job_end(&j);
}

static void memory_spaces_and_annotations_are_dropped(void **state) {
  struct job j;
  (void)state;
  job_begin(&j, "func.func @k(%a: memref<4xf32, 4 : i32> {nkipy.alias = 0 : i64}) -> memref<4xf32, 4 : i32> {\n"
                "  %s = memref.alloc() : memref<4xf32, 3 : i32>\n"
                "  memref.copy %a, %s : memref<4xf32, 4 : i32> to memref<4xf32, 3 : i32>\n"
                "  %o = memref.alloc() : memref<4xf32, 4 : i32>\n"
                "  linalg.exp {nkipy.loop_tile = array<i64: 4>, nkipy.layout = {mem_space = 3 : i32}}\n"
                "    ins(%s : memref<4xf32, 3 : i32>) outs(%o : memref<4xf32, 4 : i32>)\n"
                "  return %o : memref<4xf32, 4 : i32>\n}\n");
  count_up(&j, 0, DIMS(4));
  result(&j, DIMS(4));
  run_ok(&j);
  assert_true(fabsf(at(&j, 0, 2) - expf(2)) < 1e-4f);
  job_end(&j);
}

static void the_module_and_the_inputs_stay_as_they_are(void **state) {
  struct job j;
  struct program p = {.n_in = 0};
  (void)state;
  job_begin(&j, "func.func @k(%a: memref<4xf32>) attributes {nkipy.mark} {\n"
                "  %c = arith.constant 7.0 : f32\n"
                "  linalg.fill {nkipy.fuse = 0 : i64} ins(%c : f32) outs(%a : memref<4xf32>)\n  return\n}\n");
  arena_init(&p.arena);
  count_up(&j, 1, DIMS(4));
  const char *before = module_text(&p, j.m);
  run_ok(&j);
  assert_string_equal(before, module_text(&p, j.m));
  assert_true(((const float *)j.in[0].data)[0] == 1);
  arena_clear(&p.arena);
  job_end(&j);
}

/* ---- accumulators --------------------------------------------------------------------------------------- */

static void matmuls_without_a_fill_start_from_zero(void **state) {
  static const char *const text[] = {
      /* one empty tensor shared by two products, the first of which is not needed any more when the second writes */
      "func.func @k(%a: tensor<3x3xf32>) -> tensor<3x3xf32> {\n"
      "  %e = tensor.empty() : tensor<3x3xf32>\n"
      "  %x = linalg.matmul ins(%a, %a : tensor<3x3xf32>, tensor<3x3xf32>) outs(%e : tensor<3x3xf32>) -> "
      "tensor<3x3xf32>\n"
      "  %f = tensor.empty() : tensor<3x3xf32>\n"
      "  %y = linalg.exp ins(%x : tensor<3x3xf32>) outs(%f : tensor<3x3xf32>) -> tensor<3x3xf32>\n"
      "  %z = linalg.matmul ins(%a, %a : tensor<3x3xf32>, tensor<3x3xf32>) outs(%e : tensor<3x3xf32>) -> "
      "tensor<3x3xf32>\n"
      "  return %z : tensor<3x3xf32>\n}\n",
      "func.func @k(%a: memref<3x3xf32>) -> memref<3x3xf32> {\n"
      "  %e = memref.alloc() : memref<3x3xf32>\n"
      "  linalg.matmul ins(%a, %a : memref<3x3xf32>, memref<3x3xf32>) outs(%e : memref<3x3xf32>)\n"
      "  return %e : memref<3x3xf32>\n}\n"};
  (void)state;
  for (int k = 0; k < N(text); k++) {
    struct job j;
    job_begin(&j, text[k]);
    count_up(&j, 0, DIMS(3, 3));
    result(&j, DIMS(3, 3));
    run_ok(&j);
    const float want[] = {15, 18, 21, 42, 54, 66, 69, 90, 111};
    for (int q = 0; q < 9; q++)
      assert_true(at(&j, 0, q) == want[q]);
    job_end(&j);
  }
}

static void transposed_products_agree(void **state) {
  static const char *const maps[][2] = {
      {"(m, k)", "(k, n)"}, {"(k, m)", "(k, n)"}, {"(m, k)", "(n, k)"}, {"(k, m)", "(n, k)"}};
  (void)state;
  for (int c = 0; c < 4; c++) {
    struct job j;
    const bool ta = c & 1, tb = c & 2;
    const char *a = ta ? "memref<5x3xf32>" : "memref<3x5xf32>", *b = tb ? "memref<6x5xf32>" : "memref<5x6xf32>";
    char text[1000];
    snprintf(text, sizeof text,
             "func.func @k(%%a: %s, %%b: %s) -> memref<3x6xf32> {\n"
             "  %%o = memref.alloc() : memref<3x6xf32>\n"
             "  linalg.matmul indexing_maps = [affine_map<(m, n, k) -> %s>, affine_map<(m, n, k) -> %s>,\n"
             "    affine_map<(m, n, k) -> (m, n)>] ins(%%a, %%b : %s, %s) outs(%%o : memref<3x6xf32>)\n"
             "  return %%o : memref<3x6xf32>\n}\n",
             a, b, maps[c][0], maps[c][1], a, b);
    job_begin(&j, text);
    count_up(&j, -3, 2, ta ? INTS(5, 3) : INTS(3, 5));
    count_up(&j, 2, 2, tb ? INTS(6, 5) : INTS(5, 6));
    result(&j, DIMS(3, 6));
    run_ok(&j);
    const float *x = j.in[0].data, *y = j.in[1].data;
    for (int m = 0; m < 3; m++)
      for (int n = 0; n < 6; n++) {
        float want = 0;
        for (int k = 0; k < 5; k++)
          want += (ta ? x[k * 3 + m] : x[m * 5 + k]) * (tb ? y[n * 5 + k] : y[k * 6 + n]);
        assert_true(at(&j, 0, m * 6 + n) == want);
      }
    job_end(&j);
  }
}

/* Of a number that bf16 holds exactly. */
static uint16_t bf16_bits(float f) {
  uint32_t u;
  memcpy(&u, &f, sizeof u);
  return (uint16_t)(u >> 16);
}

/* A matrix in one of four layouts: by rows, by columns, rows further apart than they are long, every other element. */
struct layout {
  int64_t row, col, size;
};
static struct layout layout_of(int which, int64_t rows, int64_t cols) {
  switch (which) {
  case 0:
    return (struct layout){cols, 1, rows * cols};
  case 1:
    return (struct layout){1, rows, rows * cols};
  case 2:
    return (struct layout){cols + 3, 1, rows * (cols + 3)};
  default:
    return (struct layout){2 * cols, 2, 2 * rows * cols};
  }
}

static float a_value(int64_t i, int64_t q) {
  return (float)((i * 5 + q * 7) % 5 - 2);
}
static float b_value(int64_t q, int64_t j) {
  return (float)((q * 11 + j * 3) % 7 - 3);
}

static void product_agrees(int64_t m, int64_t k, int64_t n, int of_a, int of_b, int of_c) {
  const struct layout la = layout_of(of_a, m, k), lb = layout_of(of_b, k, n), lc = layout_of(of_c, m, n);
  float *a = calloc((size_t)la.size, sizeof *a), *b = calloc((size_t)lb.size, sizeof *b),
        *out = calloc((size_t)lc.size, sizeof *out), *want = calloc((size_t)(m * n), sizeof *want);
  uint16_t *wa = calloc((size_t)la.size, sizeof *wa), *wb = calloc((size_t)lb.size, sizeof *wb);
  for (int64_t i = 0; i < m; i++)
    for (int64_t q = 0; q < k; q++)
      wa[i * la.row + q * la.col] = bf16_bits(a[i * la.row + q * la.col] = a_value(i, q));
  for (int64_t q = 0; q < k; q++)
    for (int64_t j = 0; j < n; j++)
      wb[q * lb.row + j * lb.col] = bf16_bits(b[q * lb.row + j * lb.col] = b_value(q, j));
  for (int64_t i = 0; i < m; i++)
    for (int64_t q = 0; q < k; q++)
      for (int64_t j = 0; j < n; j++)
        want[i * n + j] += a_value(i, q) * b_value(q, j);
  for (int64_t i = 0; i < lc.size; i++)
    out[i] = 1;

  const struct sim_matrix to = {(char *)out, m, n, lc.row, lc.col};
  sim_multiply(&(struct sim_matrix){(char *)a, m, k, la.row, la.col},
               &(struct sim_matrix){(char *)b, k, n, lb.row, lb.col}, &to, DT_F32);
  sim_multiply(&(struct sim_matrix){(char *)wa, m, k, la.row, la.col},
               &(struct sim_matrix){(char *)wb, k, n, lb.row, lb.col}, &to, DT_BF16);
  for (int64_t i = 0; i < m; i++)
    for (int64_t j = 0; j < n; j++)
      assert_true(out[i * lc.row + j * lc.col] == 2 * want[i * n + j] + 1);
  free(a);
  free(b);
  free(wa);
  free(wb);
  free(out);
  free(want);
}

/* Sizes around the blocks' edges, in every layout; small integers are exact. */
static void products_of_any_size_and_layout_agree(void **state) {
  static const int64_t sizes[][3] = {{1, 1, 1}, {4, 256, 32}, {5, 257, 33}, {3, 300, 519}, {9, 511, 520}, {2, 7, 512}};
  (void)state;
  for (int c = 0; c < N(sizes); c++)
    for (int layouts = 0; layouts < 64; layouts++)
      product_agrees(sizes[c][0], sizes[c][1], sizes[c][2], layouts & 3, layouts >> 2 & 3, layouts >> 4);
}

/* Four dimensions in some order, of elements of some size, against a loop over all of them. */
static void copies_of_any_layout_agree(void **state) {
  static const int64_t dims[4] = {3, 2, 4, 5};
  static const size_t sizes[] = {1, 2, 4, 8};
  static const int orders[][4] = {{0, 1, 2, 3}, {1, 0, 2, 3}, {0, 1, 3, 2}, {3, 2, 1, 0}, {2, 3, 0, 1}};
  (void)state;
  for (int k = 0; k < N(sizes) * N(orders) * N(orders); k++) {
    const size_t size = sizes[k % N(sizes)];
    int64_t strides[2][4], span = 1; /* of 0: to, with a gap behind each row; of 1: from */
    for (int which = 0; which < 2; which++) {
      const int *order = orders[k / N(sizes) / (which ? 1 : N(orders)) % N(orders)];
      span = which ? 1 : 2;
      for (int d = 3; d >= 0; d--) {
        strides[which][order[d]] = span;
        span *= dims[order[d]];
      }
    }
    char from[120 * 8], to[240 * 8], want[240 * 8];
    for (size_t i = 0; i < sizeof from; i++)
      from[i] = (char)(i * 31 + i / 97);
    memset(to, 77, sizeof to);
    memset(want, 77, sizeof want);
    for (int64_t i = 0; i < 120; i++) {
      const int64_t at[4] = {i / 40, i / 20 % 2, i / 5 % 4, i % 5};
      int64_t x = 0, y = 0;
      for (int d = 0; d < 4; d++) {
        x += at[d] * strides[0][d];
        y += at[d] * strides[1][d];
      }
      memcpy(want + x * (int64_t)size, from + y * (int64_t)size, size);
    }
    interp_copy(size, 4, dims, to, strides[0], from, strides[1]);
    assert_memory_equal(to, want, sizeof to);
  }
}

/* ---- equal programs ------------------------------------------------------------------------------------- */

static void digest_of(const char *text, unsigned char *out) {
  struct job j;
  struct check_program *p;
  job_begin(&j, text);
  assert_int_equal(check_open(&ir, j.m, "k", &j.arena, &j.ds, &p), ST_OK);
  check_digest(p, out);
  check_unload(p);
  job_end(&j);
}

static void digests_tell_programs_apart_and_nothing_else(void **state) {
  static const char *const body = "func.func @k(%%a: tensor<4xf32>, %%b: tensor<4xf32>) -> tensor<4xf32> {\n"
                                  "  %%0 = arith.%s %%a, %%b %s: tensor<4xf32>\n  return %%0 : tensor<4xf32>\n}\n";
  unsigned char digests[3][CHECK_DIGEST];
  char text[400];
  (void)state;
  static const char *const forms[3][2] = {{"addf", ""}, {"addf", "{nkipy.op_id = 3 : i32} "}, {"mulf", ""}};
  for (int k = 0; k < 3; k++) {
    snprintf(text, sizeof text, body, forms[k][0], forms[k][1]);
    digest_of(text, digests[k]);
  }
  assert_memory_equal(digests[0], digests[1], CHECK_DIGEST); /* annotations are dropped */
  assert_memory_not_equal(digests[0], digests[2], CHECK_DIGEST);
}

/* ---- refusals and processes ----------------------------------------------------------------------------- */

static void wrong_signatures_are_refused(void **state) {
  struct job j;
  (void)state;
  job_begin(&j, "func.func @k(%a: tensor<4xf32>) -> tensor<4xf32> { return %a : tensor<4xf32> }\n");
  count_up(&j, 0, DIMS(5));
  result(&j, DIMS(4));
  assert_int_equal(run_job(&j), ST_BUG);
  j.n_in = 0;
  assert_int_equal(run_job(&j), ST_BUG);
  job_end(&j);
  job_begin(&j, "func.func @other() { return }\n");
  assert_int_equal(run_job(&j), ST_BUG);
  job_end(&j);
}

static void unknown_operations_are_reported(void **state) {
  struct job j;
  (void)state;
  job_begin(&j, "func.func @k(%a: memref<4xf32>) { gpu.barrier return }\n");
  count_up(&j, 0, DIMS(4));
  assert_int_not_equal(run_job(&j), ST_OK);
  assert_true(j.ds.n > 0);
  job_end(&j);
}

static void forked_children_can_check(void **state) {
  struct job j;
  int code;
  (void)state;
  job_begin(&j, "func.func @k(%a: tensor<4xf32>) -> tensor<4xf32> {\n"
                "  %e = tensor.empty() : tensor<4xf32>\n"
                "  %r = linalg.tanh ins(%a : tensor<4xf32>) outs(%e : tensor<4xf32>) -> tensor<4xf32>\n"
                "  return %r : tensor<4xf32>\n}\n");
  count_up(&j, 0, DIMS(4));
  result(&j, DIMS(4));
  run_ok(&j); /* the parent has used the engine before */
  for (int k = 0; k < 3; k++) {
    pid_t child = fork();
    assert_true(child >= 0);
    if (!child)
      _exit(run_job(&j) == ST_OK && fabsf(at(&j, 0, 1) - tanhf(1)) < 1e-6f ? 0 : 1);
    assert_int_equal(waitpid(child, &code, 0), child);
    assert_true(WIFEXITED(code) && WEXITSTATUS(code) == 0);
  }
  job_end(&j);
}

/* Printed linalg is what the stand-alone tool accepts, too. */
static void mlir_opt_accepts_what_is_lowered(void **state) {
  static const char TOOL[] = "/usr/lib/llvm-22/bin/mlir-opt";
  struct program p;
  int code, fds[2];
  (void)state;
  if (access(TOOL, X_OK))
    skip();
  begin(&p);
  hlo_val x = input(&p, DT_BF16, -1, 1, DIMS(4, 5)), i = input(&p, DT_I32, 0, 3, DIMS(3)),
          w = input(&p, DT_BF16, -1, 1, DIMS(5, 2));
  struct hlo_gather_dims g = {.offset_dims = LIST(&p, 1),
                              .collapsed_slice_dims = LIST(&p, 0),
                              .start_index_map = LIST(&p, 0),
                              .slice_sizes = LIST(&p, 1, 5),
                              .index_vector_dim = 1};
  struct hlo_dot_dims d = {LIST(&p, 1), LIST(&p, 0), NONE, NONE};
  struct hlo_scatter_dims s = {.update_window_dims = LIST(&p, 1),
                               .inserted_window_dims = LIST(&p, 0),
                               .scatter_dims_to_operand_dims = LIST(&p, 0),
                               .index_vector_dim = 1};
  hlo_val rows = hlo_gather(&p.b, x, i, &g),
          sum = hlo_reduce(&p.b, HLO_ADD, rows, hlo_scalar(&p.b, DT_BF16, 0), DIMS(1));
  hlo_val out[] = {hlo_dot(&p.b, rows, w, &d, DT_BF16), hlo_reshape(&p.b, sum, DIMS(3, 1)),
                   hlo_scatter_assign(&p.b, x, i, rows, &s), hlo_transpose(&p.b, x, INTS(1, 0))};
  check_results(&p, 4, out);
  assert_int_equal(pipe(fds), 0);
  pid_t child = fork();
  if (!child) {
    dup2(fds[0], 0);
    close(fds[0]);
    close(fds[1]);
    execl(TOOL, TOOL, "-o", "/dev/null", (char *)NULL);
    _exit(99);
  }
  close(fds[0]);
  assert_int_equal(write(fds[1], p.text, strlen(p.text)), (int)strlen(p.text));
  close(fds[1]);
  assert_int_equal(waitpid(child, &code, 0), child);
  assert_true(WIFEXITED(code) && WEXITSTATUS(code) == 0);
  end(&p);
}

/* ---- comparing ------------------------------------------------------------------------------------------ */

static struct trace_array values(struct arena *a, enum dtype t, int n, const double *v) {
  struct trace_array x = {.shape = hlo_shape_array(a, t, 1, (int64_t[]){n})};
  x.data = arena_alloc(a, (size_t)n * dtype_size(t));
  for (int k = 0; k < n; k++)
    hlo_literal_store(t, v[k], (char *)x.data + (size_t)k * dtype_size(t));
  return x;
}

static void comparison_follows_the_dtype(void **state) {
  static const struct {
    enum dtype t;
    double got, want;
    bool pass;
  } cases[] = {
      {DT_F32, 1, 1, true},
      {DT_F32, 1.00005, 1, true},
      {DT_F32, 1.001, 1, false},
      {DT_F32, 5e-6, 0, true},
      {DT_F32, 1e-3, 0, false},
      {DT_F32, NAN, NAN, true},
      {DT_F32, NAN, 1, false},
      {DT_F32, 1, NAN, false},
      {DT_F32, INFINITY, INFINITY, true},
      {DT_F32, INFINITY, -INFINITY, false},
      {DT_F32, INFINITY, 1, false},
      {DT_F32, 0.0, -0.0, true},
      {DT_F16, 1.005, 1, true},
      {DT_F16, 1.1, 1, false},
      {DT_BF16, 1.0078125, 1, true},
      {DT_F64, 1.00001, 1, false},
      {DT_I32, 3, 3, true},
      {DT_I32, 3, 4, false},
      {DT_BOOL, 1, 0, false},
      {DT_U8, 255, 255, true},
  };
  (void)state;
  for (int k = 0; k < N(cases); k++) {
    struct arena a;
    struct check_result r;
    arena_init(&a);
    struct trace_array got[] = {values(&a, cases[k].t, 1, &cases[k].got)},
                       want[] = {values(&a, cases[k].t, 1, &cases[k].want)};
    check_compare(1, got, want, &r);
    if (r.pass != cases[k].pass)
      fail_msg("case %d: %s %g against %g", k, dtype_numpy_name(cases[k].t), cases[k].got, cases[k].want);
    arena_clear(&a);
  }
}

static void comparison_names_the_worst_output(void **state) {
  struct arena a;
  struct check_result r;
  (void)state;
  arena_init(&a);
  struct trace_array want[] = {values(&a, DT_F32, VALUES(1000, 1)), values(&a, DT_F32, VALUES(1, 1)),
                               values(&a, DT_F32, VALUES(0, 0))};
  struct trace_array got[] = {values(&a, DT_F32, VALUES(1000.05, 1)), values(&a, DT_F32, VALUES(1, 1.01)),
                              values(&a, DT_F32, VALUES(0, 0))};
  check_compare(3, got, want, &r);
  assert_false(r.pass);
  assert_int_equal(r.worst_output, 1); /* the first is off by more, but within its tolerance */
  assert_true(r.max_abs_err > 0.04 && r.max_abs_err < 0.06);
  assert_true(r.max_rel_err > 0.009 && r.max_rel_err < 0.011);
  got[1] = want[0];
  got[1].shape.dtype = DT_I32;
  check_compare(3, got, want, &r);
  assert_false(r.pass); /* another dtype is never right */
  arena_clear(&a);
}

/* Against the definition, element by element, with something wrong anywhere in blocks of any length. */
static void comparison_sees_every_element(void **state) {
  static const int lengths[] = {1, 2, 511, 512, 513, 1025};
  static const double wrong[] = {0, 3e-5, 1.5e-2, NAN, INFINITY};
  (void)state;
  for (int l = 0; l < N(lengths); l++)
    for (int w = 0; w < N(wrong); w++)
      for (int where = 0; where < 3; where++) {
        struct arena a;
        struct check_result r;
        const int n = lengths[l], at = where == 0 ? 0 : where == 1 ? n / 2 : n - 1;
        arena_init(&a);
        float *x = arena_new_array(&a, float, (size_t)n), *y = arena_new_array(&a, float, (size_t)n);
        for (int i = 0; i < n; i++)
          x[i] = y[i] = (float)(i % 100) / 64;
        x[at] += (float)wrong[w];
        struct trace_array got = {.shape = hlo_shape_array(&a, DT_F32, 1, (int64_t[]){n}), .data = x}, want = got;
        want.data = y;
        check_compare(1, &got, &want, &r);
        const double off = fabs((double)x[at] - (double)y[at]), most = 1.6e-5 + 1e-4 * fabs((double)y[at]);
        assert_int_equal(r.pass, off <= most);
        assert_true(isfinite(off) ? r.max_abs_err == off : isinf(r.max_abs_err));
        y[at] = x[at]; /* equal again, a NaN and an infinity too */
        check_compare(1, &got, &want, &r);
        assert_true(r.pass && r.max_abs_err == 0);
        arena_clear(&a);
      }
}

/* Eight rows of ones, of which NumPy's runs threw off `n_off`, by 0.5; the program throws off a row that they did not. */
static struct check_result compare_thrown_off(int n_off, float by) {
  enum { ROWS = 8, WIDTH = 32, SIZE = ROWS * WIDTH };
  static float got[SIZE], want[SIZE], spread[SIZE];
  struct arena a;
  struct check_result r;
  arena_init(&a);
  for (int k = 0; k < SIZE; k++) {
    got[k] = want[k] = 1;
    spread[k] = k / WIDTH < n_off ? 0.5F : 1e-6F;
  }
  for (int k = SIZE - WIDTH; k < SIZE; k++)
    got[k] += by;
  const struct hlo_shape shape = hlo_shape_array(&a, DT_F32, 2, (int64_t[]){ROWS, WIDTH});
  struct trace_array x = {.shape = shape, .data = got}, y = {.shape = shape, .data = want, .spread = spread};
  check_compare(1, &x, &y, &r);
  arena_clear(&a);
  return r;
}

static void comparison_knows_rows_that_rounding_throws_off(void **state) {
  (void)state;
  assert_true(compare_thrown_off(2, 0.5F).pass);  /* twice as many rows may be */
  assert_false(compare_thrown_off(2, 1.5F).pass); /* but not by more than twice as much */
  assert_false(compare_thrown_off(0, 0.5F).pass); /* a kernel that NumPy's runs agree on has no such rows */
  assert_false(compare_thrown_off(0, 1e-3F).pass);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(strided_arguments_and_results_work),
      cmocka_unit_test(copies_between_layouts_work),
      cmocka_unit_test(memory_spaces_and_annotations_are_dropped),
      cmocka_unit_test(the_module_and_the_inputs_stay_as_they_are),
      cmocka_unit_test(matmuls_without_a_fill_start_from_zero),
      cmocka_unit_test(transposed_products_agree),
      cmocka_unit_test(products_of_any_size_and_layout_agree),
      cmocka_unit_test(copies_of_any_layout_agree),
      cmocka_unit_test(digests_tell_programs_apart_and_nothing_else),
      cmocka_unit_test(wrong_signatures_are_refused),
      cmocka_unit_test(unknown_operations_are_reported),
      cmocka_unit_test(forked_children_can_check),
      cmocka_unit_test(mlir_opt_accepts_what_is_lowered),
      cmocka_unit_test(comparison_follows_the_dtype),
      cmocka_unit_test(comparison_names_the_worst_output),
      cmocka_unit_test(comparison_sees_every_element),
      cmocka_unit_test(comparison_knows_rows_that_rounding_throws_off),
  };
  return cmocka_run_group_tests(tests, start_mlir, stop_mlir);
}
