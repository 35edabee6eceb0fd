/* What passes share: remarks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
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

static void every_remark_is_kept_in_order(void **state) {
  enum { MANY = 20000 };
  struct fixture f;
  int k = 0;

  (void)state;
  begin(&f);
  for (int i = 0; i < MANY; i++)
    pass_remark(&f.run, f.run.module, RULE_TILES, "remark %d", i);
  assert_int_equal(f.remarks.n, MANY);
  for (const struct remark *r = f.remarks.first; r; r = r->next)
    assert_int_equal(atoi(r->text + strlen("remark ")), k++);
  assert_int_equal(k, MANY);
  assert_int_equal(f.ds.n, 0);
  end(&f);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_remark_is_kept_in_order),
  };
  return cmocka_run_group_tests(tests, start_mlir, stop_mlir);
}
