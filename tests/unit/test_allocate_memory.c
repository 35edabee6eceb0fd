/* Addresses for lifetimes: random programs, and what gives way when memory is short. */
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include "passes/allocate_memory/place.h"

#include <cmocka.h> /* last: it defines a macro called fail */

enum { ITEMS_MAX = 60, PROGRAMS = 400, TIME_MAX = 1000 };

static uint64_t state_of_random;

static int random_below(int n) {
  state_of_random = state_of_random * 6364136223846793005u + 1442695040888963407u;
  return (int)((state_of_random >> 33) % (uint64_t)n);
}

/* Items inside loops are alive within the loop; about half are in one. */
static int make_program(struct place_item *v, int seed) {
  static const int alignments[] = {1, 4, 4, 64, 64, 2048};
  state_of_random = (uint64_t)seed * 7919 + 1;
  const int n = 1 + random_below(ITEMS_MAX);
  for (int k = 0; k < n; k++) {
    const int loop_from = random_below(TIME_MAX - 20),
              loop_to = loop_from + 10 + random_below(TIME_MAX - 10 - loop_from);
    const int from = loop_from + random_below(loop_to - loop_from - 1);
    v[k] = (struct place_item){.bytes = random_below(4) ? random_below(600) : random_below(6000),
                               .align = alignments[random_below(6)],
                               .from = from,
                               .to = from + 1 + random_below(loop_to - from - 1),
                               .loop_from = loop_from,
                               .loop_to = loop_to,
                               .copies = 1 + random_below(3)};
  }
  return n;
}

static int64_t size_of(const struct place_item *x) {
  return (x->copies - 1) * x->stride + x->bytes;
}

static bool are_alive_together(const struct place_item *x, const struct place_item *y) {
  const int x0 = x->copies > 1 ? x->loop_from : x->from, x1 = x->copies > 1 ? x->loop_to : x->to;
  const int y0 = y->copies > 1 ? y->loop_from : y->from, y1 = y->copies > 1 ? y->loop_to : y->to;
  return x0 < y1 && y0 < x1;
}

static bool share_bytes(const struct place_item *x, const struct place_item *y) {
  return size_of(x) && size_of(y) && x->offset < y->offset + size_of(y) && y->offset < x->offset + size_of(x);
}

static void check_places(const struct place_item *v, const struct place_item *wanted, int n, int64_t capacity) {
  for (int k = 0; k < n; k++) {
    assert_true(v[k].offset >= 0 && v[k].offset + size_of(&v[k]) <= capacity);
    assert_int_equal(v[k].offset % v[k].align, 0);
    assert_int_equal(v[k].stride % v[k].align, 0);
    assert_true(v[k].stride >= v[k].bytes);
    assert_true(v[k].copies >= 1 && v[k].copies <= wanted[k].copies);
    for (int i = 0; i < k; i++)
      assert_false(are_alive_together(&v[i], &v[k]) && share_bytes(&v[i], &v[k]));
  }
}

static int64_t most_alive(const struct place_item *v, int n) {
  int64_t most = 0;
  for (int k = 0; k < n; k++) {
    int64_t sum = 0;
    for (int i = 0; i < n; i++)
      sum += v[i].from <= v[k].from && v[k].from < v[i].to ? v[i].bytes : 0;
    most = sum > most ? sum : most;
  }
  return most;
}

static void items_that_are_alive_together_share_no_byte(void **state) {
  struct place_item v[ITEMS_MAX], wanted[ITEMS_MAX];
  int placed = 0;
  (void)state;
  for (int seed = 0; seed < PROGRAMS; seed++) {
    struct arena a;
    int failed;
    arena_init(&a);
    const int n = make_program(v, seed);
    const int64_t peak = most_alive(v, n), capacity = peak + peak * random_below(300) / 100 + random_below(3) * 2048;
    memcpy(wanted, v, sizeof v);
    if (place_items(&a, v, n, capacity, &failed)) {
      check_places(v, wanted, n, capacity);
      placed++;
    } else {
      assert_in_range(failed, 0, n - 1);
    }
    arena_clear(&a);
  }
  assert_true(placed > PROGRAMS * 3 / 4);
}

static void what_is_not_aligned_fits_into_little_more_than_its_peak(void **state) {
  struct place_item v[ITEMS_MAX];
  int placed = 0;
  (void)state;
  for (int seed = 0; seed < PROGRAMS; seed++) {
    struct arena a;
    int failed;
    arena_init(&a);
    const int n = make_program(v, seed);
    for (int k = 0; k < n; k++)
      v[k].align = 1;
    placed += place_items(&a, v, n, most_alive(v, n) * 11 / 10, &failed);
    arena_clear(&a);
  }
  assert_true(placed > PROGRAMS * 95 / 100);
}

static struct place_item item(int64_t bytes, int from, int to, int copies) {
  return (struct place_item){
      .bytes = bytes, .align = 1, .from = from, .to = to, .loop_from = 0, .loop_to = 100, .copies = copies};
}

static bool place(struct place_item *v, int n, int64_t capacity) {
  struct arena a;
  int failed;
  arena_init(&a);
  const bool is_ok = place_items(&a, v, n, capacity, &failed);
  arena_clear(&a);
  return is_ok;
}

static void memory_is_not_reused_while_there_is_other(void **state) {
  struct place_item v[] = {item(10, 0, 10, 1), item(10, 20, 30, 1), item(10, 40, 50, 1)};
  (void)state;
  assert_true(place(v, 3, 30));
  assert_false(share_bytes(&v[0], &v[1]) || share_bytes(&v[1], &v[2]) || share_bytes(&v[0], &v[2]));
}

static void memory_that_was_free_longest_is_reused_first(void **state) {
  struct place_item v[] = {item(10, 0, 10, 1), item(10, 20, 30, 1), item(10, 40, 50, 1)};
  (void)state;
  assert_true(place(v, 3, 20));
  assert_true(share_bytes(&v[0], &v[2]));
  assert_false(share_bytes(&v[0], &v[1]) || share_bytes(&v[1], &v[2]));
}

static void third_copies_give_way_before_second_ones_and_large_before_small(void **state) {
  struct place_item v[] = {item(100, 0, 10, 3), item(10, 0, 10, 3), item(200, 0, 10, 2)};
  (void)state;
  assert_true(place(v, 3, 730));
  assert_int_equal(v[0].copies * 100 + v[1].copies * 10 + v[2].copies, 332);
  v[0] = item(100, 0, 10, 3), v[1] = item(10, 0, 10, 3), v[2] = item(200, 0, 10, 2);
  assert_true(place(v, 3, 729));
  assert_int_equal(v[0].copies * 100 + v[1].copies * 10 + v[2].copies, 232);
  v[0] = item(100, 0, 10, 3), v[1] = item(10, 0, 10, 3), v[2] = item(200, 0, 10, 2);
  assert_true(place(v, 3, 619));
  assert_int_equal(v[0].copies * 100 + v[1].copies * 10 + v[2].copies, 221);
}

static void copies_that_are_not_in_the_way_stay(void **state) {
  struct place_item v[] = {item(100, 0, 10, 3), item(150, 210, 220, 1), item(150, 210, 220, 1)};
  (void)state;
  assert_true(place(v, 3, 300));
  assert_int_equal(v[0].copies, 3);
}

/* Two transfers of 8 copies each and two values between: with 4 copies all have bytes of their own in the loop. */
static void values_of_a_loop_share_no_bytes_where_transfers_keep_four_copies(void **state) {
  struct place_item v[] = {item(10, 0, 20, 8), item(10, 10, 30, 8), item(10, 30, 40, 1), item(10, 40, 50, 1)};
  (void)state;
  assert_true(place(v, 4, 100));
  assert_false(share_bytes(&v[2], &v[3]));
  assert_int_equal(v[0].copies, 4);
  assert_int_equal(v[1].copies, 4);
  v[0] = item(10, 0, 20, 8), v[1] = item(10, 10, 30, 8), v[2] = item(10, 30, 40, 1), v[3] = item(10, 40, 50, 1);
  assert_true(place(v, 4, 90)); /* 4 copies and bytes of their own do not fit */
  assert_true(share_bytes(&v[2], &v[3]));
  assert_int_equal(v[0].copies + v[1].copies, 8);
}

/* What is in no loop shares bytes as before. */
static void values_outside_of_loops_share_bytes(void **state) {
  struct place_item v[] = {item(10, 0, 20, 8), item(10, 110, 120, 1), item(10, 130, 140, 1)};
  (void)state;
  for (int k = 1; k < 3; k++)
    v[k].loop_from = -1, v[k].loop_to = INT_MAX;
  assert_true(place(v, 3, 80));
  assert_int_equal(v[0].copies, 8);
}

static void copies_are_taken_evenly(void **state) {
  struct place_item v[] = {item(11, 0, 20, 8), item(10, 10, 30, 8)};
  (void)state;
  assert_true(place(v, 2, 110));
  assert_in_range(v[0].copies, 4, 6);
  assert_in_range(v[1].copies, 4, 6);
}

static void what_does_not_fit_is_named(void **state) {
  struct arena a;
  struct place_item v[] = {item(10, 0, 10, 3), item(60, 5, 20, 1), item(60, 15, 30, 1)};
  int failed = -1;
  (void)state;
  arena_init(&a);
  assert_false(place_items(&a, v, 3, 100, &failed));
  assert_int_equal(failed, 2);
  arena_clear(&a);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(items_that_are_alive_together_share_no_byte),
      cmocka_unit_test(what_is_not_aligned_fits_into_little_more_than_its_peak),
      cmocka_unit_test(memory_is_not_reused_while_there_is_other),
      cmocka_unit_test(memory_that_was_free_longest_is_reused_first),
      cmocka_unit_test(third_copies_give_way_before_second_ones_and_large_before_small),
      cmocka_unit_test(copies_that_are_not_in_the_way_stay),
      cmocka_unit_test(values_of_a_loop_share_no_bytes_where_transfers_keep_four_copies),
      cmocka_unit_test(values_outside_of_loops_share_bytes),
      cmocka_unit_test(copies_are_taken_evenly),
      cmocka_unit_test(what_does_not_fit_is_named),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
