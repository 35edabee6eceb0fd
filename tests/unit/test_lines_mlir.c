/* Lines read from the printed text are those that MLIR reports: for every program of the lit tests, whose texts hold all
 * that the stages can show, and for forms that printers treat in ways of their own. */
#include <glob.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "ir/lines.h"
#include "ir/structured.h"
#include "mlir_support.h"

#include <cmocka.h> /* last: it defines a macro called fail */

enum { TEXT_MAX = 4 << 20, PROGRAMS_MIN = 80 };

static void append(MlirStringRef s, void *user) {
  buf_append(user, s.data, s.length);
}

static struct buf print(MlirOperation module, bool has_local_scope) {
  MlirOpPrintingFlags flags = mlirOpPrintingFlagsCreate();
  struct buf text;

  buf_init(&text, TEXT_MAX);
  if (has_local_scope)
    mlirOpPrintingFlagsUseLocalScope(flags);
  mlirOperationPrintWithFlags(module, flags, append, &text);
  mlirOpPrintingFlagsDestroy(flags);
  return text;
}

static void compare(struct arena *a, MlirOperation module, bool has_local_scope, const char *what) {
  struct buf text = print(module, has_local_scope);
  struct ir_ops ops = ir_collect(a, module, NULL, NULL);
  struct error err;

  const struct ir_printed p = {
      .n = ops.n, .ops = ops.v, .text = buf_text(&text), .len = text.len, .has_local_scope = has_local_scope};
  int *read = arena_new_array(a, int, (size_t)p.n), *asked = arena_new_array(a, int, (size_t)p.n);
  if (!ir_lines_read(&p, a, read))
    fail_msg("%s: not read\n%s", what, p.text);
  assert_int_equal(ir_lines_ask(&ir, &p, a, asked, &err), ST_OK);
  for (int k = 0; k < p.n; k++)
    if (read[k] != asked[k])
      fail_msg("%s: operation %d: line %d instead of %d\n%s", what, k, read[k], asked[k], p.text);
  buf_clear(&text);
}

/* False: not a program; some tests are about texts that are wrong. */
static bool compare_text(const char *text, size_t len, const char *what) {
  struct arena a;
  struct diags ds;
  MlirModule m;

  arena_init(&a);
  diags_init(&ds, &a);
  bool ok = ir_parse(&ir, text, len, what, &a, &ds, &m) == ST_OK;
  if (ok) {
    compare(&a, mlirModuleGetOperation(m), false, what);
    compare(&a, mlirModuleGetOperation(m), true, what);
    mlirModuleDestroy(m);
  }
  arena_clear(&a);
  return ok;
}

static char *read_file(const char *path, size_t *len) {
  FILE *f = fopen(path, "rb");
  char *text = malloc(TEXT_MAX);
  assert_non_null(f);
  assert_non_null(text);
  *len = fread(text, 1, TEXT_MAX, f);
  fclose(f);
  return text;
}

static void lines_of_all_golden_programs_are_those_that_mlir_reports(void **state) {
  glob_t files;
  int n = 0;
  (void)state;
  assert_int_equal(glob("tests/lit/*/*.mlir", 0, NULL, &files), 0);
  for (size_t i = 0; i < files.gl_pathc; i++) {
    size_t len;
    char *text = read_file(files.gl_pathv[i], &len);
    n += compare_text(text, len, files.gl_pathv[i]);
    free(text);
  }
  globfree(&files);
  assert_true(n >= PROGRAMS_MIN);
}

/* What printers treat in ways of their own. */
static const char *const forms[] = {
    /* terminators that are left out, and regions that are empty without them */
    "func.func @f(%c: i1, %n: index) {\n"
    "  scf.if %c {\n    scf.for %i = %n to %n step %n {\n    }\n  } else {\n    scf.if %c {\n    }\n  }\n"
    "  return\n}",
    /* regions that are left out, before operations of the same names */
    "func.func @f(%a: tensor<4x4xf32>, %v: tensor<4xf32>) -> tensor<4x4xf32> {\n"
    "  %0 = linalg.matmul ins(%a, %a : tensor<4x4xf32>, tensor<4x4xf32>) outs(%a : tensor<4x4xf32>) -> "
    "tensor<4x4xf32>\n"
    "  %1 = linalg.map { arith.addf } ins(%0, %a : tensor<4x4xf32>, tensor<4x4xf32>) outs(%a : tensor<4x4xf32>)\n"
    "  %2 = linalg.reduce { arith.addf } ins(%1 : tensor<4x4xf32>) outs(%v : tensor<4xf32>) dimensions = [1]\n"
    "  %3 = arith.addf %0, %1 : tensor<4x4xf32>\n  %4 = arith.mulf %3, %1 : tensor<4x4xf32>\n"
    "  return %4 : tensor<4x4xf32>\n}",
    /* several results, several blocks, names that look like text */
    "func.func @\"a = b.c\"(%c: i1) -> (i32, i32) {\n"
    "  %0:2 = scf.if %c -> (i32, i32) {\n    %x = arith.constant 1 : i32\n    scf.yield %x, %x : i32, i32\n  } else {\n"
    "    %x = arith.constant {note = \"scf.yield\\0A  return = 1\"} 2 : i32\n    scf.yield %x, %x : i32, i32\n  }\n"
    "  cf.cond_br %c, ^bb1, ^bb2(%0#0 : i32)\n^bb1:\n  cf.br ^bb2(%0#1 : i32)\n^bb2(%y: i32):\n"
    "  return %y, %0#1 : i32, i32\n}",
    /* a module in a module, aliases, resources */
    "#m = affine_map<(d0) -> (d0 + 1)>\nmodule @outer {\n  module @inner {\n    func.func private @g(memref<4xf32, "
    "#m>)\n"
    "  }\n  memref.global constant @w : memref<1xi32> = dense_resource<blob>\n}\n"
    "{-#\n  dialect_resources: {\n    builtin: {\n      blob: \"0x0400000001000000\"\n    }\n  }\n#-}",
    /* the loop with two regions, and one whose body has a value */
    "func.func @f(%n: index, %c: i1) -> index {\n"
    "  %0 = scf.while (%i = %n) : (index) -> index {\n    scf.condition(%c) %i : index\n  } do {\n  ^bb0(%j: index):\n"
    "    %k = arith.addi %j, %j : index\n    scf.yield %k : index\n  }\n  return %0 : index\n}",
};

static void forms_that_printers_treat_in_their_own_way_are_read(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
    assert_true(compare_text(forms[i], strlen(forms[i]), forms[i]));
}

/* MLIR's parser falls over a dense array of index. */
static void an_array_of_index_is_refused_with_its_place(void **state) {
  static const struct {
    const char *text;
    int line, col; /* 0: it is read */
    size_t len;    /* 0: as far as it goes */
  } cases[] = {
      {"module attributes {a =\0array\0<\0index: 1>} {}", 1, 24, 42},
      {"module attributes {a = array<index: 1>} {}", 1, 24, 0},
      {"module attributes {a = array< // why\n  index>} {}", 1, 24, 0},
      {"!t = index\nmodule attributes {b.b = array<i64: 1>, a = array <!t: 1>} {}", 2, 45, 0},
      {"!t = index\nmodule attributes {b.b = array<i64: 1>, a = array // why\n <!t: 1>} {}", 2, 45, 0},
      {"module attributes {t.a = array<i64: 1>, t.b = \"array<index\", t.c = !llvm.array<4 x i8>} {}", 0, 0, 0},
  };
  (void)state;
  for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
    struct arena a;
    struct diags ds;
    MlirModule m;
    arena_init(&a);
    diags_init(&ds, &a);
    const size_t len = cases[k].len ? cases[k].len : strlen(cases[k].text);
    enum status st = ir_parse(&ir, cases[k].text, len, "t", &a, &ds, &m);
    assert_int_equal(st, cases[k].line ? ST_INPUT : ST_OK);
    if (cases[k].line) {
      assert_int_equal(ds.v[0].loc->range.line, cases[k].line);
      assert_int_equal(ds.v[0].loc->range.col, cases[k].col);
    } else {
      mlirModuleDestroy(m);
    }
    arena_clear(&a);
  }
}

/* scf.index_switch begins lines with words that are no operations. */
static void a_text_that_is_not_as_expected_is_asked_for(void **state) {
  static const char text[] = "func.func @f(%n: index) {\n  scf.index_switch %n\n  case 2 {\n    scf.yield\n  }\n"
                             "  default {\n    scf.index_switch %n\n    default {\n    }\n  }\n  return\n}";
  struct arena a;
  struct diags ds;
  struct error err;
  MlirModule m;
  const int *lines;
  (void)state;

  arena_init(&a);
  diags_init(&ds, &a);
  assert_int_equal(ir_parse(&ir, text, strlen(text), "t", &a, &ds, &m), ST_OK);
  struct buf printed = print(mlirModuleGetOperation(m), false);
  struct ir_ops ops = ir_collect(&a, mlirModuleGetOperation(m), NULL, NULL);
  const struct ir_printed p = {.n = ops.n, .ops = ops.v, .text = buf_text(&printed), .len = printed.len};
  int *mine = arena_new_array(&a, int, (size_t)p.n);
  assert_false(ir_lines_read(&p, &a, mine));
  assert_int_equal(ir_lines(&ir, &p, &a, &lines, &err), ST_OK);
  for (int k = 0, line = 1; k < p.n; k++) { /* every operation that has a line stands where its name is */
    const char *s = p.text;
    MlirStringRef name = mlirIdentifierStr(mlirOperationGetName(p.ops[k]));
    if (!lines[k])
      continue;
    for (line = 1; line < lines[k]; line++)
      s = strchr(s, '\n') + 1;
    const char *dot = memchr(name.data, '.', name.length);
    assert_non_null(memmem(s, strcspn(s, "\n"), dot + 1, (size_t)(name.data + name.length - dot - 1)));
  }
  buf_clear(&printed);
  mlirModuleDestroy(m);
  arena_clear(&a);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(lines_of_all_golden_programs_are_those_that_mlir_reports),
      cmocka_unit_test(forms_that_printers_treat_in_their_own_way_are_read),
      cmocka_unit_test(an_array_of_index_is_refused_with_its_place),
      cmocka_unit_test(a_text_that_is_not_as_expected_is_asked_for),
  };
  return cmocka_run_group_tests(tests, start_mlir, stop_mlir);
}
