/* What passes share: remarks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include "mlir_support.h"
#include "passes/pass.h"

#include <cmocka.h> /* last: it defines a macro called fail */

static const struct pass_def some_pass = {.name = "some-pass"};

struct fixture {
  struct arena arena;
  struct diags ds;
  struct remarks remarks;
  MlirModule m;
  struct pass_run run;
};

static void begin(struct fixture *f) {
  static const char text[] = "module {}";

  memset(f, 0, sizeof *f);
  arena_init(&f->arena);
  diags_init(&f->ds, &f->arena);
  assert_int_equal(ir_parse(&ir, text, strlen(text), "t.mlir", &f->arena, &f->ds, &f->m), ST_OK);
  f->run = (struct pass_run){.ir = &ir,
                             .module = mlirModuleGetOperation(f->m),
                             .options = "",
                             .arena = &f->arena,
                             .ds = &f->ds,
                             .remarks = &f->remarks,
                             .def = &some_pass};
}

static void end(struct fixture *f) {
  mlirModuleDestroy(f->m);
  arena_clear(&f->arena);
}

static void as_many_remarks_as_the_limit_leave_no_note(void **state) {
  struct fixture f;

  (void)state;
  begin(&f);
  for (int k = 0; k < REMARKS_MAX; k++)
    pass_remark(&f.run, f.run.module, "remark %d", k);
  assert_int_equal(f.remarks.n, REMARKS_MAX);
  assert_int_equal(f.ds.n, 0);
  end(&f);
}

static void remarks_beyond_the_limit_are_left_out_and_one_note_says_so(void **state) {
  struct fixture f;

  (void)state;
  begin(&f);
  for (int k = 0; k < REMARKS_MAX + 10; k++)
    pass_remark(&f.run, f.run.module, "remark %d", k);
  assert_int_equal(f.remarks.n, REMARKS_MAX);
  assert_string_equal(f.remarks.last->text, "remark 1999");
  assert_int_equal(f.ds.n, 1);
  assert_int_equal(f.ds.v[0].code, DG_OUTPUT_LIMIT);
  assert_int_equal(f.ds.v[0].severity, DS_NOTE);
  assert_string_equal(f.ds.v[0].stage, "some-pass");
  end(&f);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(as_many_remarks_as_the_limit_leave_no_note),
      cmocka_unit_test(remarks_beyond_the_limit_are_left_out_and_one_note_says_so),
  };
  return cmocka_run_group_tests(tests, start_mlir, stop_mlir);
}
