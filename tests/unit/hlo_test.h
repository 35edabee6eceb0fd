/* hlo_test: a module to build into, and short ways to say shapes. */
#ifndef TESTS_HLO_TEST_H
#define TESTS_HLO_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/diag.h"
#include "hlo/build.h"
#include "hlo/passes.h"
#include "hlo/print.h"

#include <cmocka.h> /* last: it defines fail as a macro */

#define DIMS(...) ((int64_t[]){__VA_ARGS__})
#define N(...) ((int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)))
#define INTS(...) ((struct hlo_ints){N(__VA_ARGS__), DIMS(__VA_ARGS__)})
#define PARAM(t, name, dt, ...) test_param(t, name, dt, N(__VA_ARGS__), DIMS(__VA_ARGS__))
#define SCALAR_PARAM(t, name, dt) test_param(t, name, dt, 0, NULL)
#define FULL(t, dt, v, ...) hlo_full(&(t)->b, dt, N(__VA_ARGS__), DIMS(__VA_ARGS__), v)

struct test {
  struct arena a;
  struct hlo_builder b;
  struct diags ds;
};

static inline int test_setup(void **state) {
  struct test *t = calloc(1, sizeof *t);
  arena_init(&t->a);
  hlo_builder_init(&t->b, hlo_module_new(&t->a, "kernel"));
  diags_init(&t->ds, &t->a);
  *state = t;
  return 0;
}

static inline int test_teardown(void **state) {
  struct test *t = *state;
  arena_clear(&t->a);
  free(t);
  return 0;
}

static inline hlo_val test_param(struct test *t, const char *name, enum dtype dt, int rank, const int64_t *dims) {
  return hlo_parameter(&t->b, name, hlo_shape_array(&t->a, dt, rank, dims));
}

static inline struct src_locs test_loc(struct test *t, int line) {
  struct src_loc *l = arena_new(&t->a, struct src_loc);
  *l = (struct src_loc){.range = {"kernel.py", line, 1, line, 9}, .func = "kernel"};
  return src_locs_one(&t->a, l);
}

#define assert_shape(t, i, text) assert_string_equal(hlo_shape_text(&(t)->a, &(i)->shape), text)

#endif
