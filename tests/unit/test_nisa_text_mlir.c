/* The readable form of NISA: lines, places, round trips, and what is said about text that is wrong. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "ir/snapshot.h"
#include "nisa/nisa.h"
#include "nisa/parse.h"
#include "nisa/print.h"
#include "mlir_support.h"

#include <cmocka.h> /* last: it defines a macro called fail */

#define N(a) (int)(sizeof(a) / sizeof(a)[0])
#define S "memref<128x256xf32, #nisa.mem<sbuf>>"
#define COPY(dst, src) "nisa.tensor_copy(dst<128| 8>=" S " " dst ", src<128| 8>=" S " " src ") engine=vector"
#define IN_FUNC(body) "func.func @k(%a: " S ", %i: index, %f: f32) {\n" body "\nreturn\n}\n"

enum { TEXT_MAX = 4 << 20 };

struct run {
  struct arena arena;
  struct diags ds;
  struct error err;
  MlirModule m;
};

static void open_run(struct run *r) {
  memset(r, 0, sizeof *r);
  arena_init(&r->arena);
  diags_init(&r->ds, &r->arena);
}

static enum status parse(struct run *r, const char *text) {
  open_run(r);
  return nisa_parse(&ir, text, strlen(text), "t.nisa", &r->arena, &r->ds, &r->m);
}

static void parse_ok(struct run *r, const char *text) {
  if (parse(r, text))
    fail_msg("%s", r->ds.n ? r->ds.v[0].message : "no message");
}

static void close_run(struct run *r) {
  if (!mlirModuleIsNull(r->m))
    mlirModuleDestroy(r->m);
  arena_clear(&r->arena);
}

static const char *print(struct run *r, const int **lines) {
  struct buf b;
  buf_init(&b, TEXT_MAX);
  if (nisa_print(&ir, mlirModuleGetOperation(r->m), 0, &b, &r->arena, lines, &r->err))
    fail_msg("%s", r->err.text);
  const char *text = arena_strdup(&r->arena, buf_text(&b));
  buf_clear(&b);
  return text;
}

static void append(MlirStringRef s, void *user) {
  buf_append(user, s.data, s.length);
}

/* The generic form, with locations. */
static const char *generic(struct run *r) {
  struct buf b;
  buf_init(&b, TEXT_MAX);
  MlirOpPrintingFlags flags = mlirOpPrintingFlagsCreate();
  mlirOpPrintingFlagsPrintGenericOpForm(flags);
  mlirOpPrintingFlagsEnableDebugInfo(flags, true, false);
  mlirOperationPrintWithFlags(mlirModuleGetOperation(r->m), flags, append, &b);
  mlirOpPrintingFlagsDestroy(flags);
  const char *text = arena_strdup(&r->arena, buf_text(&b));
  buf_clear(&b);
  return text;
}

/* The n-th line of a text, from 1. */
static const char *line(struct run *r, const char *text, int n) {
  while (--n > 0) {
    text = strchr(text, '\n');
    assert_non_null(text);
    text++;
  }
  return arena_strndup(&r->arena, text, strcspn(text, "\n"));
}

/* ---- printing --------------------------------------------------------------------------------------------------- */

static const char kernel[] =
    "module attributes {nisa.target = #nisa.target<trn2>} {\n"
    "  func.func @k(%a: " S ", %n: index) {\n"
    "    %c1 = arith.constant 1 : index\n"
    "    %z = arith.constant 0.0 : f32\n"
    "    %b = arith.cmpi eq, %n, %c1 : index\n"
    "    scf.for %q = %c1 to %n step %c1 {\n"
    "      %m = nisa.alloc : memref<128x8xf32, #nisa.mem<psum>>\n"
    "      scf.if %b {\n        " COPY(
        "%a[d0, d1]",
        "%a[d0, %q + d1]") "\n"
                           "      } else {\n        " COPY(
                               "%a[d0, %q + d1]",
                               "%a[d0, d1]") "\n      }\n"
                                             "      nisa.release %m : memref<128x8xf32, #nisa.mem<psum>>\n"
                                             "    }\n    return\n  }\n}\n";

static void lines_are_those_of_the_operations(void **state) {
  struct run r;
  const int *lines;
  (void)state;
  parse_ok(&r, kernel);
  const char *text = print(&r, &lines);
  static const struct {
    int line;
    const char *begins;
  } want[] = {
      {1, "module attributes {nisa.target = #nisa.target<trn2>} {"},
      {2, "  func.func @k(%arg0: " S ", %arg1: index) {"},
      {3, "    %c1 = arith.constant 1 : index"},
      {4, "    %cst = arith.constant 0.0"},
      {5, "    %0 = arith.cmpi eq, %arg1, %c1 : index"},
      {6, "    scf.for %i = %c1 to %arg1 step %c1 {"},
      {7, "      %psum = nisa.alloc : memref<128x8xf32, #nisa.mem<psum>>"},
      {8, "      scf.if %0 {"},
      {9,
       "        nisa.tensor_copy(dst<128| 8>=" S " %arg0[d0, d1], src<128| 8>=" S " %arg0[d0, %i + d1]) engine=vector"},
      {0, NULL}, /* scf.yield */
      {11, "        nisa.tensor_copy(dst<128| 8>=" S " %arg0[d0, %i + d1]"},
      {0, NULL},
      {13, "      nisa.release %psum"},
      {0, NULL},
      {15, "    return"},
  };
  for (int k = 0; k < N(want); k++) {
    assert_int_equal(lines[k], want[k].line);
    if (want[k].begins)
      assert_memory_equal(line(&r, text, lines[k]), want[k].begins, strlen(want[k].begins));
  }
  close_run(&r);
}

static void printing_changes_nothing(void **state) {
  struct run r;
  const int *lines;
  (void)state;
  parse_ok(&r, IN_FUNC("%m = nisa.alloc : " S "\n" COPY("%m[d0, d1]", "%a[d0, %i + d1]")));
  const char *before = generic(&r);
  uint64_t print_of = ir_fingerprint(mlirModuleGetOperation(r.m));
  const char *text = print(&r, &lines);
  assert_string_equal(generic(&r), before);
  assert_true(ir_fingerprint(mlirModuleGetOperation(r.m)) == print_of);
  assert_string_equal(print(&r, &lines), text);
  close_run(&r);
}

static void a_full_buffer_is_a_limit(void **state) {
  struct run r;
  struct buf b;
  const int *lines;
  (void)state;
  parse_ok(&r, IN_FUNC(COPY("%a[d0, d1]", "%a[d0, d1]")));
  const char *before = generic(&r);
  for (size_t max = 1; max < 250; max += 57) {
    buf_init(&b, max);
    assert_int_equal(nisa_print(&ir, mlirModuleGetOperation(r.m), 0, &b, &r.arena, &lines, &r.err), ST_LIMIT);
    buf_clear(&b);
    assert_string_equal(generic(&r), before);
  }
  close_run(&r);
}

static void snapshots_take_text_and_lines_from_the_printer(void **state) {
  struct run r;
  struct buf first, second;
  struct ir_snapshot was, is;
  (void)state;
  parse_ok(&r, IN_FUNC("%m = nisa.alloc : " S "\n" COPY("%m[d0, d1]", "%a[d0, %i + d1]")));
  buf_init(&first, TEXT_MAX);
  buf_init(&second, TEXT_MAX);
  MlirOperation m = mlirModuleGetOperation(r.m);
  assert_int_equal(ir_snapshot(&ir, m, 0, &first, &r.arena, &was, &r.err), ST_OK);
  assert_int_equal(ir_snapshot_with(&ir, m, nisa_print, 0, &second, &r.arena, &is, &r.err), ST_OK);
  assert_int_equal(is.n, was.n);
  for (int k = 0; k < is.n; k++) {
    assert_int_equal(is.ops[k].id, k);
    assert_string_equal(is.ops[k].name, was.ops[k].name);
    assert_int_equal(is.ops[k].n_from, 1);
    assert_int_equal(is.ops[k].from[0], k);
    assert_int_equal(is.ops[k].locs.n, was.ops[k].locs.n);
    const char *head = k == 2 ? "%sbuf = nisa.alloc" : k == 3 ? "nisa.tensor_copy(" : "";
    assert_non_null(strstr(line(&r, buf_text(&second), is.ops[k].line), head));
  }
  assert_int_equal(is.ops[3].locs.v[0]->range.line, 3);
  assert_int_equal(is.ops[3].locs.v[0]->range.col, 1);
  buf_clear(&first);
  buf_clear(&second);
  close_run(&r);
}

/* ---- reading ---------------------------------------------------------------------------------------------------- */

static void operations_have_their_places(void **state) {
  struct run r;
  (void)state;
  /* columns count characters: two bytes each before the second operation */
  parse_ok(&r, "func.func @k(%a: " S ") attributes {n = \"#nisa.mem<sbuf> \u00e9\u00e9\"} { nisa.release %a : " S "\n"
               "  nisa.release %a\n : " S "\n  return\n}\n");
  MlirBlock body =
      mlirRegionGetFirstBlock(mlirOperationGetRegion(mlirBlockGetFirstOperation(mlirModuleGetBody(r.m)), 0));
  MlirOperation op = mlirBlockGetFirstOperation(body);
  static const int want[][2] = {{1, 96}, {2, 3}, {4, 3}};
  for (int k = 0; k < N(want); k++, op = mlirOperationGetNextInBlock(op)) {
    MlirLocation loc = mlirOperationGetLocation(op);
    assert_int_equal(mlirLocationFileLineColRangeGetStartLine(loc), want[k][0]);
    assert_int_equal(mlirLocationFileLineColRangeGetStartColumn(loc), want[k][1]);
  }
  close_run(&r);
}

static void the_marker_is_the_first_line(void **state) {
  (void)state;
  assert_true(nisa_is_text(NISA_TEXT_MARKER, strlen(NISA_TEXT_MARKER)));
  assert_true(nisa_is_text(NISA_TEXT_MARKER "\nx", strlen(NISA_TEXT_MARKER "\nx")));
  assert_false(nisa_is_text(NISA_TEXT_MARKER "2\n", strlen(NISA_TEXT_MARKER "2\n")));
  assert_false(nisa_is_text("\n" NISA_TEXT_MARKER, strlen("\n" NISA_TEXT_MARKER)));
  assert_false(nisa_is_text("", 0));
}

static void errors_say_what_and_where(void **state) {
  static const struct {
    const char *text, *message;
    int line, col;
  } cases[] = {
      {"nisa.bogus(dst)", "there is no operation nisa.bogus", 2, 1},
      {"nisa.tensor_copy", "expected '(' and the operands", 3, 1},
      {"nisa.tensor_copy(", "expected ')' or ',' after an operand or an attribute", 4, 1}, /* return may be a name */
      {"nisa.tensor_copy()", "the operand dst is missing", 2, 1},
      {"nisa.tensor_copy(5", "expected the name of an operand or an attribute", 2, 18},
      {"nisa.tensor_copy(dst<128", "expected '|' between partition and free dimensions", 3, 1},
      {"nisa.tensor_copy(dst<| 8>", "expected a number", 2, 22},
      {"nisa.tensor_copy(dst<128| 8=", "expected '>' after the tile", 2, 28},
      {"nisa.tensor_copy(dst<128| 99999999999999999999>", "the number is too large", 2, 27},
      {"nisa.tensor_copy(dst<128| 8>=", "expected a %value", 4, 1},
      {"nisa.tensor_copy(dst<128| 8>=memref<8", "the '<' is never closed", 2, 36},
      {"nisa.tensor_copy(dst<128| 8>=" S " a", "expected a %value", 2, 67},
      {"nisa.tensor_copy(dst<128| 8>=" S " %a[d0, d2]", "there is no d2: the tile has 2 dimensions", 2, 74},
      {"nisa.tensor_copy(dst<128| 8>=" S " %a[d0 +]", "expected a %value, d0, d1", 2, 74},
      {"nisa.tensor_copy(dst<128| 8>=" S " %a[d0 d1]", "expected ']' after the indices", 2, 73},
      {"nisa.tensor_copy(dst<128| 8>=" S " %a[%i*d0]", "expected a number", 2, 73},
      {"nisa.tensor_copy(dst<128| 8>=" S " %a affine_map<(d0)[", "the '<' is never closed", 2, 80},
      {"nisa.tensor_copy(dst<128| 8>=" S " %a affine[d0]", "expected affine_map<…>", 2, 70},
      {"nisa.tensor_copy(dst=f32 %f, dst=f32 %f", "the operand dst is there twice", 2, 30},
      {"nisa.tensor_copy(dst=f32 %f, src=f32 %f)", "the operand dst is an access: its tile is missing", 2, 22},
      {"nisa.tensor_copy(out<128| 8>", "nisa.tensor_copy has no operand out", 2, 18},
      {"nisa.tensor_copy(x=)", "expected a value after '='", 2, 20},
      {"nisa.tensor_copy(x=[1)", "the '[' is never closed", 2, 20},
      {"nisa.tensor_copy(x=(", "the '(' is never closed", 2, 20},
      {"nisa.memset(dst<128| 8>=" S " %a[d0, d1], value=f32 %f)", "expected engine=… after the operands", 3, 1},
      {"nisa.memset(dst<128| 8>=" S " %a[d0, d1], value=f32 %f) engine=warp", "there is no engine warp", 2, 95},
      {"%m = nisa.alloc size=4 : " S, "nisa.alloc has no attribute size", 2, 17},
      {"%m = nisa.alloc copies=2 copies=3 : " S, "nisa.alloc has no attribute copies, or has it twice", 2, 26},
      {"%m = nisa.alloc at=4 : " S, "expected '[' and the place of the memory", 2, 20},
      {"%m = nisa.alloc at=[] : " S, "expected a number", 2, 21},
      {"%m = nisa.alloc at=[1, 2, 3] : " S, "a place has at most two numbers", 2, 26},
      {"%m = nisa.alloc at=[1, 2 : " S, "expected ']' after the place", 2, 26},
      {"%m = nisa.alloc at=[1, -2] : " S, "expected a number", 2, 24},
      {"%m = nisa.alloc at=[1, 2] : memref<8xf32, #nisa.mem<hbm>>", "a place of two numbers is in sbuf or psum", 2, 29},
      {"%m = nisa.alloc at=[1] stride=x : " S, "expected a number", 2, 31},
      {"%m = nisa.alloc 4", "expected ':' and the type of the memory", 2, 17},
      {"nisa.release a", "expected a %value", 2, 14},
      {"nisa.release %a", "expected ':' and the type of the memory", 3, 1},
      /* what MLIR finds */
      {"nisa.release %b : " S, "use of undeclared SSA value name", 2, 14},
      {"nisa.release %i : " S, "expects different type than prior uses", 2, 14},
      {"%m = nisa.alloc : memref<128xf33>", "", 2, 30},
      {"nisa.memset(dst<128| 8>=" S " %a[d0, d1], value=f32 %f) engine=tensor",
       "nisa.memset does not run on the tensor engine", 2, 95},
      {"nisa.tensor_copy(dst<128| 8>=" S " %a[d0, d1], src<128| 8>=" S " %a[d0, %f]) engine=vector",
       "expects different type than prior uses", 2, 135},
      /* what only the accesses show */
      {"nisa.memset(dst<128| 8>=" S " %a[d0], value=f32 %f) engine=vector",
       "nisa.memset: a map has another number of results than the memref has dimensions", 2, 1},
      {"nisa.memset(dst<128| 0>=" S " %a[d0, d1], value=f32 %f) engine=vector", "a tile dimension is not positive", 2,
       1},
  };
  int n_wrong = 0;
  (void)state;
  for (int k = 0; k < N(cases); k++) {
    struct run r;
    open_run(&r);
    const char *text =
        arena_printf(&r.arena, "func.func @k(%%a: " S ", %%i: index, %%f: f32) {\n%s\nreturn\n}\n", cases[k].text);
    enum status st = nisa_parse(&ir, text, strlen(text), "t.nisa", &r.arena, &r.ds, &r.m);
    if (st != ST_INPUT || !r.ds.n)
      fail_msg("%s: status %s", cases[k].text, status_name(st));
    const struct diag *d = &r.ds.v[0];
    assert_int_equal(d->code, DG_IR_INVALID);
    bool is_right = strstr(d->message, cases[k].message) && d->loc && d->loc->range.line == cases[k].line &&
                    d->loc->range.col == cases[k].col && !strcmp(d->loc->range.file, "t.nisa");
    n_wrong += !is_right;
    if (!is_right)
      print_error("%s\n  says %s at %d:%d, expected \"%s\" at %d:%d\n", cases[k].text, d->message,
                  d->loc ? d->loc->range.line : 0, d->loc ? d->loc->range.col : 0, cases[k].message, cases[k].line,
                  cases[k].col);
    r.m = (MlirModule){NULL};
    close_run(&r);
  }
  assert_int_equal(n_wrong, 0);
}

static void sizes_are_limited(void **state) {
  static const struct {
    const char *head, *item, *tail, *message;
  } cases[] = {
      {"nisa.memset(dst<128", ", 8", "", "a tile has at most 10 dimensions"},
      {"nisa.memset(dst<128| 8>=" S " %a[0", ", d0", "", "an operand has at most 12 dimensions"},
      {"nisa.memset(dst<128| 8>=" S " %a[%i", ", %i + %i", "", "an operand has at most 12 indices"},
      {"nisa.memset(dst<128| 8>=" S " %a[0", " + d0", "", "an index has at most 64 terms"},
      {"nisa.memset(value=f32 %f", ", x=1", "", "it has more than 32 attributes"},
  };
  (void)state;
  for (int k = 0; k < N(cases); k++) {
    struct run r;
    open_run(&r);
    const char *text = cases[k].head;
    for (int i = 0; i < 100; i++)
      text = arena_printf(&r.arena, "%s%s", text, cases[k].item);
    assert_int_equal(nisa_parse(&ir, text, strlen(text), "t.nisa", &r.arena, &r.ds, &r.m), ST_INPUT);
    assert_non_null(strstr(r.ds.v[0].message, cases[k].message));
    close_run(&r);
  }
}

/* MLIR's parser would fall over. */
static void deep_nesting_is_refused(void **state) {
  enum { DEEP = 200000 };
  static const char *const heads[] = {"", "nisa.memset(x=", "nisa.memset(dst<128| 8>="};
  static const char brackets[] = "{[(<";
  (void)state;
  for (int h = 0; h < N(heads); h++)
    for (const char *b = brackets; *b; b++) {
      struct run r;
      struct buf text;
      open_run(&r);
      buf_init(&text, 1 << 20);
      buf_puts(&text, heads[h]);
      for (int k = 0; k < DEEP; k++)
        buf_putc(&text, *b);
      enum status st = nisa_parse(&ir, buf_text(&text), text.len, "t.nisa", &r.arena, &r.ds, &r.m);
      /* where a value or a type may follow, each of the brackets nests */
      assert_int_equal(st, h == 2 ? ST_INPUT : ST_LIMIT);
      assert_int_equal(r.ds.v[0].code, h == 2 ? DG_IR_INVALID : DG_NESTING_TOO_DEEP);
      buf_clear(&text);
      close_run(&r);
    }
}

/* A text with some bytes changed is read or refused with a place, nothing else; what is read prints and reads again. */
static void damaged_text_is_refused_or_round_trips(void **state) {
  static const char bytes[] = "0123456789d%+-* \n,[]<>(){}=:|\"/ax#!.";
  uint64_t random = 0x9e3779b97f4a7c15u;
  int n_read = 0;
  (void)state;
  for (int k = 0; k < 1500; k++) {
    struct run r, again;
    open_run(&r);
    char *text = arena_strdup(&r.arena, IN_FUNC("%m = nisa.alloc alignment=64 : " S "\n"
                                                "nisa.memset(dst<128| 8>=" S " %m[d0, %i*2 + d1 + 3], value=f32 %f, "
                                                "x=[1, 2], y=word, z=\"s\") engine=vector\nnisa.release %m : " S));
    size_t len = strlen(text);
    for (int n = k % 3 + 1; n > 0; n--) {
      random = random * 6364136223846793005u + 1442695040888963407u;
      text[(random >> 33) % len] = bytes[(random >> 20) % (sizeof bytes - 1)];
    }
    if (nisa_parse(&ir, text, len, "t.nisa", &r.arena, &r.ds, &r.m)) {
      assert_true(r.ds.n > 0);
    } else {
      const int *lines;
      n_read++;
      const char *printed = print(&r, &lines);
      parse_ok(&again, printed);
      assert_string_equal(print(&again, &lines), printed);
      close_run(&again);
    }
    close_run(&r);
  }
  assert_true(n_read > 20);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(lines_are_those_of_the_operations),
      cmocka_unit_test(printing_changes_nothing),
      cmocka_unit_test(a_full_buffer_is_a_limit),
      cmocka_unit_test(snapshots_take_text_and_lines_from_the_printer),
      cmocka_unit_test(operations_have_their_places),
      cmocka_unit_test(the_marker_is_the_first_line),
      cmocka_unit_test(errors_say_what_and_where),
      cmocka_unit_test(sizes_are_limited),
      cmocka_unit_test(deep_nesting_is_refused),
      cmocka_unit_test(damaged_text_is_refused_or_round_trips),
  };
  return cmocka_run_group_tests(tests, start_mlir, stop_mlir);
}
