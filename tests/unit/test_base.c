/* test_base: what an arena gives, and lists of places that share memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/index.h"
#include "base/src.h"
#include "base/target.h"
#include "base/utf8.h"

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

static void memory_is_used_again_and_is_zero_then(void **state) {
  enum { SMALL = 100, LARGE = 6 << 20 };
  struct arena *a = *state;
  size_t total = 0;
  for (int round = 0; round < 6; round++) {
    arena_reuse(a);
    unsigned char *small = arena_alloc(a, SMALL), *large = arena_alloc(a, LARGE + (size_t)round * SMALL);
    for (size_t k = 0; k < LARGE; k++)
      assert_int_equal(large[k], 0);
    assert_int_equal(small[SMALL - 1], 0);
    memset(small, 0xff, SMALL);
    memset(large, 0xff, LARGE + (size_t)round * SMALL);
#ifndef __SANITIZE_ADDRESS__ /* under which nothing is kept */
    assert_true(!round || a->total == total);
#endif
    total = a->total;
  }
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

static void an_array_keeps_its_elements_as_it_grows(void **state) {
  struct {
    int *v;
    int n, cap;
  } x = {0};
  for (int i = 0; i < 1000; i++) {
    assert_int_equal(*array_push(*state, &x, 3 * i), 3 * i);
    if (i % 7 == 0)
      arena_alloc(*state, 24); /* so that it cannot always be extended in place */
  }
  assert_int_equal(x.n, 1000);
  for (int i = 0; i < x.n; i++)
    assert_int_equal(x.v[i], 3 * i);
}

/* Hashes that collide, to the last bit and in the low bits only. */
static void an_index_finds_every_element_in_the_order_of_adding(void **state) {
  struct index x = {.arena = *state};
  enum { N = 5000 };
  struct index_probe none = index_probe(&x, 17);
  assert_false(index_next(&none));
  for (int i = 0; i < N; i++)
    index_add(&x, (uint32_t)(i % 50) << (i % 3 * 12), i);
  for (uint32_t h = 0; h < 50; h++)
    for (int shift = 0; shift < 3; shift++) {
      struct index_probe p = index_probe(&x, h << (shift * 12));
      int expected = -1, found = 0;
      while (index_next(&p)) {
        assert_true(p.entry > expected);
        expected = p.entry;
        found++;
      }
      int wanted = 0;
      for (int i = 0; i < N; i++)
        wanted += (uint32_t)(i % 50) << (i % 3 * 12) == h << (shift * 12);
      assert_int_equal(found, wanted);
    }
  index_reset(&x);
  struct index_probe p = index_probe(&x, 0);
  assert_false(index_next(&p));
}

static void what_was_reserved_for_an_index_suffices(void **state) {
  struct index x = {.arena = *state};
  assert_true(index_reserve(&x, 1000));
  const struct index_slot *slots = x.slots;
  for (int i = 0; i < 1000; i++)
    index_add(&x, hash_mix(0, (uint64_t)i) & 0xffffffff, i);
  assert_ptr_equal(x.slots, slots);
}

static void utf8_is_what_rfc_3629_says(void **state) {
  (void)state;
  static const struct {
    const char *text;
    size_t n, len;
  } cases[] = {
      {"a", 1, 1},
      {"\xC2\x80", 2, 2},
      {"\xDF\xBF", 2, 2},
      {"\xE0\xA0\x80", 3, 3},
      {"\xED\x9F\xBF", 3, 3},
      {"\xEF\xBF\xBF", 3, 3},
      {"\xF0\x90\x80\x80", 4, 4},
      {"\xF4\x8F\xBF\xBF", 4, 4},
      {"\x80", 1, 0},             /* a continuation alone */
      {"\xC1\xBF", 2, 0},         /* overlong */
      {"\xE0\x9F\xBF", 3, 0},     /* overlong */
      {"\xED\xA0\x80", 3, 0},     /* a surrogate */
      {"\xF0\x8F\xBF\xBF", 4, 0}, /* overlong */
      {"\xF4\x90\x80\x80", 4, 0}, /* above U+10FFFF */
      {"\xF5\x80\x80\x80", 4, 0},
      {"\xC2", 1, 0}, /* cut short */
      {"\xF0\x90\x80", 3, 0},
      {"\xE1\x80\x41", 3, 0},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    assert_int_equal(utf8_char(cases[i].text, cases[i].n), cases[i].len);
    assert_int_equal(utf8_is_valid(cases[i].text, cases[i].n), cases[i].len != 0);
  }
  const char *text = "a\u00e9\u20ac\U0001F600z";
  assert_int_equal(utf8_count(text, strlen(text)), 5);
  static const size_t cuts[] = {0, 1, 1, 3, 3, 3, 6, 6, 6, 6, 10, 11};
  for (size_t max = 0; max < sizeof cuts / sizeof *cuts; max++)
    assert_int_equal(utf8_cut(text, strlen(text), max), cuts[max]);
}

static void names_of_targets_and_languages_read_back(void **state) {
  (void)state;
  for (int i = 0; i < TARGET_COUNT; i++) {
    enum target t = TARGET_COUNT;
    assert_true(target_from_name(target_name((enum target)i), &t));
    assert_int_equal(t, i);
  }
  for (int i = 0; i < LANG_COUNT; i++) {
    enum language l = LANG_COUNT;
    assert_true(language_from_name(language_name((enum language)i), &l));
    assert_int_equal(l, i);
  }
  enum target t = TARGET_TRN1;
  assert_false(target_from_name("trn", &t));
  assert_int_equal(t, TARGET_TRN1);
}

/* ---- rounds of loops --------------------------------------------------------------------------------------------- */

enum { OUTER = 6, INNER = 5 };

static const char *rounds_text(const struct rounds *r) {
  static struct buf b;
  buf_init(&b, 4096);
  rounds_print(&b, r);
  return buf_text(&b);
}

static bool has_round(const struct rounds *r, int outer, int inner) {
  for (int i = 0; r && i < r->n; i++) {
    const struct rounds_span *v = r->v + 2 * i;
    if (v[0].first <= outer && outer <= v[0].last && v[1].first <= inner && inner <= v[1].last)
      return true;
  }
  return false;
}

/* Unions of random rounds against a table of flags: what the boxes have is exact until the set is full, and then the rest
 * is counted. */
static void a_union_of_rounds_has_the_rounds_of_both(void **state) {
  struct arena *a = *state;
  srand(3);
  for (int n = 0; n < 2000; n++) {
    bool flags[OUTER][INNER] = {{0}};
    const struct rounds *r = NULL;
    for (int k = rand() % 20; k >= 0; k--) {
      const int at[2] = {rand() % OUTER, rand() % INNER};
      flags[at[0]][at[1]] = true;
      const struct rounds *one = rounds_one(a, at, 2);
      r = rand() % 2 ? rounds_union(a, r, one) : rounds_union(a, one, r);
    }
    assert_true(r && r->n >= 1 && r->n <= ROUNDS_SHOWN);
    int missing = 0;
    for (int i = 0; i < OUTER; i++)
      for (int j = 0; j < INNER; j++) {
        assert_true(flags[i][j] || !has_round(r, i, j));
        missing += flags[i][j] && !has_round(r, i, j);
      }
    assert_true(missing ? r->more > 0 : true);
    const char *text = rounds_text(r);
    assert_true(rounds_equal(r, rounds_read(a, text, strlen(text))));
  }
}

static void all_rounds_are_one_box(void **state) {
  struct arena *a = *state;
  const struct rounds *r = NULL;
  for (int i = 0; i < 24; i++)
    for (int j = 0; j < 3; j++)
      r = rounds_union(a, r, rounds_one(a, (const int[]){i, j}, 2));
  assert_string_equal(rounds_text(r), "0-23.0-2");
}

static void a_text_that_has_no_rounds_is_refused(void **state) {
  struct arena *a = *state;
  static const char *const wrong[] = {"", "x", "1.", "1 2.3", "3-1", "1+", "1-", "99999999999", "1..2", " 1"};
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
    assert_null(rounds_read(a, wrong[i], strlen(wrong[i])));
  assert_non_null(rounds_read(a, "1.2-5 3.0+7", 11));
}

static void one_place_in_two_rounds_is_one_place(void **state) {
  struct arena *a = *state;
  const struct rounds *first = rounds_one(a, (const int[]){0}, 1), *second = rounds_one(a, (const int[]){1}, 1);
  const struct src_loc x = {.range = {"k.py", 1, 1, 1, 2}, .rounds = first};
  const struct src_loc y = {.range = {"k.py", 1, 1, 1, 2}, .rounds = second};
  const struct src_locs both = src_locs_union(a, src_locs_one(a, &x), src_locs_one(a, &y));
  assert_int_equal(both.n, 1);
  assert_string_equal(rounds_text(both.v[0]->rounds), "0-1");
  assert_ptr_equal(x.rounds, first); /* the two stay as they were */
}

int main(void) {
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
  const struct CMUnitTest tests[] = {
      T(a_union_of_rounds_has_the_rounds_of_both),
      T(all_rounds_are_one_box),
      T(a_text_that_has_no_rounds_is_refused),
      T(one_place_in_two_rounds_is_one_place),
      T(what_is_taken_is_zero_and_aligned),
      T(only_what_was_taken_last_gets_longer),
      T(nothing_gets_longer_than_its_block),
      T(memory_is_used_again_and_is_zero_then),
      T(lists_of_places_that_share_memory),
      T(an_array_keeps_its_elements_as_it_grows),
      T(an_index_finds_every_element_in_the_order_of_adding),
      T(what_was_reserved_for_an_index_suffices),
      T(utf8_is_what_rfc_3629_says),
      T(names_of_targets_and_languages_read_back),
  };
#undef T
  return cmocka_run_group_tests(tests, NULL, NULL);
}
