/* test_base: what an arena gives, and lists of places that share memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/arena.h"
#include "base/src.h"

#include <cmocka.h> /* behind ours: it defines fail() */

static int setup(void **state) {
  static struct arena a;
  arena_init(&a);
  *state = &a;
  return 0;
}

static int teardown(void **state) {
  arena_clear(*state);
  return 0;
}

static void what_is_taken_is_zero_and_aligned(void **state) {
  struct arena *a = *state;
  for (size_t n = 0; n < 200; n++) {
    unsigned char *p = arena_alloc(a, n);
    assert_int_equal((uintptr_t)p % sizeof(void *), 0);
    for (size_t k = 0; k < n; k++)
      assert_int_equal(p[k], 0);
    memset(p, 0xff, n);
  }
}

static void only_what_was_taken_last_gets_longer(void **state) {
  struct arena *a = *state;
  char *first = arena_alloc(a, 5);
  assert_true(arena_extend(a, first, 5, 2)); /* within the same eight bytes */
  assert_true(arena_extend(a, first, 7, 20));
  unsigned char *second = arena_alloc(a, 8);
  assert_true((char *)second >= first + 27);
  assert_false(arena_extend(a, first, 27, 8));
  memset(first, 0xff, 27);
  assert_int_equal(second[0], 0);
  assert_true(arena_extend(a, second, 8, 8));
  assert_int_equal(((unsigned char *)arena_alloc(a, 1))[0], 0);
}

static void nothing_gets_longer_than_its_block(void **state) {
  struct arena *a = *state;
  assert_true(arena_reserve(a, 64));
  char *p = arena_alloc(a, 48);
  assert_false(arena_extend(a, p, 48, 24));
  assert_true(arena_extend(a, p, 48, 16));
  assert_false(arena_extend(a, p, 64, 1));
}

/* Two continue the same list: each has what it added, and the list what it had. */
static void lists_of_places_that_share_memory(void **state) {
  struct arena *a = *state;
  struct src_loc loc[6] = {0};
  struct src_locs one[6], all = {0}, left, right;
  for (int k = 0; k < 6; k++) {
    loc[k].range.line = k + 1;
    one[k] = src_locs_one(a, &loc[k]);
  }
  for (int k = 0; k < 3; k++)
    all = src_locs_union(a, all, one[k]);
  left = src_locs_union(a, all, one[3]);
  right = src_locs_union(a, all, one[4]);
  right = src_locs_union(a, right, one[5]);
  left = src_locs_union(a, left, one[5]);
  assert_int_equal(all.n, 3);
  assert_int_equal(left.n, 5);
  assert_int_equal(right.n, 5);
  const int lines[2][5] = {{1, 2, 3, 4, 6}, {1, 2, 3, 5, 6}};
  for (int k = 0; k < 5; k++) {
    assert_int_equal(left.v[k]->range.line, lines[0][k]);
    assert_int_equal(right.v[k]->range.line, lines[1][k]);
  }
  assert_ptr_equal(src_locs_union(a, left, one[2]).v, left.v);
}

int main(void) {
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
  const struct CMUnitTest tests[] = {
      T(what_is_taken_is_zero_and_aligned),
      T(only_what_was_taken_last_gets_longer),
      T(nothing_gets_longer_than_its_block),
      T(lists_of_places_that_share_memory),
  };
#undef T
  return cmocka_run_group_tests(tests, NULL, NULL);
}
