/* Carets below the characters of a line, whatever columns they take, and what does not reach a terminal. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* before cmocka, which has a macro called fail */
#include "base/caret.h"
#include "base/utf8.h"

#include <cmocka.h>

static char *out;
static size_t out_size;

/* The two lines of a caret, without what comes before the source. */
static const char *caret(const char *line, int col, int end_col) {
  static char both[400];
  free(out);
  FILE *f = open_memstream(&out, &out_size);
  caret_print(f, 7, line, strlen(line), col, end_col);
  fclose(f);
  const char *second = strchr(out, '\n') + 1;
  assert_memory_equal(out, "     7 | ", 9);
  assert_memory_equal(second, "       | ", 9);
  snprintf(both, sizeof both, "%.*s%s", (int)(second - out - 9), out + 9, second + 9);
  return both;
}

static const char *printed(const char *s, size_t n) {
  free(out);
  FILE *f = open_memstream(&out, &out_size);
  utf8_print(f, s, n);
  fclose(f);
  return out;
}
#define PRINTED(s) printed("" s, sizeof s - 1)

static void carets_are_below_their_characters(void **state) {
  (void)state;
  assert_string_equal(caret("ab cde f", 4, 7), "ab cde f\n   ^~~\n");
  assert_string_equal(caret("ab", 1, CARET_TO_END), "ab\n^~\n");
  assert_string_equal(caret("\u00e9\u00e8x", 3, 4), "\u00e9\u00e8x\n  ^\n");
  assert_string_equal(caret("\"\u4e2d\u6587\" @ x", 6, 7), "\"\u4e2d\u6587\" @ x\n       ^\n");
  assert_string_equal(caret("\u4e2d\u6587x", 1, 3), "\u4e2d\u6587x\n^~~~\n");
  assert_string_equal(caret("\U0001F600 + y", 5, 6), "\U0001F600 + y\n     ^\n");
  assert_string_equal(caret("e\u0301e\u0301 + y", 8, 9), "e\u0301e\u0301 + y\n     ^\n");
  assert_string_equal(caret("\u1112\u1161\u11ab!", 4, 5), "\u1112\u1161\u11ab!\n  ^\n");
}

static void tabs_are_columns_of_spaces(void **state) {
  (void)state;
  assert_string_equal(caret("\tx @ y", 4, 5), "        x @ y\n          ^\n");
  assert_string_equal(caret("ab\tx", 4, 5), "ab      x\n        ^\n");
  assert_string_equal(caret("ab\tx", 3, 5), "ab      x\n  ^~~~~~~\n");
  assert_string_equal(caret("\u4e2d\tx", 3, 4), "\u4e2d      x\n        ^\n");
}

static void a_caret_is_always_there(void **state) {
  (void)state;
  assert_string_equal(caret("", 1, 1), "\n^\n");
  assert_string_equal(caret("ab", 3, 3), "ab\n  ^\n");
  assert_string_equal(caret("ab", 90, 95), "ab\n  ^\n");
  assert_string_equal(caret("ab", 2, 1), "ab\n ^\n");
  assert_string_equal(caret("ae\u0301b", 3, 4), "ae\u0301b\n ^\n");
  assert_string_equal(caret("\u0301", 1, 2), "\u0301\n^\n");
  assert_string_equal(caret("ab\r", 2, 3), "ab\n ^\n");
}

static void escapes_take_the_columns_that_they_are_written_in(void **state) {
  (void)state;
  assert_string_equal(caret("\x1b[1mx", 5, 6), "\\x1b[1mx\n       ^\n");
  assert_string_equal(caret("a\x1b"
                            "b",
                            2, 3),
                      "a\\x1b"
                      "b\n ^~~~\n");
  assert_string_equal(caret("\u202ex y", 4, 5), "\\u202ex y\n        ^\n");
  assert_string_equal(caret("a\x9b"
                            "bc",
                            3, 4),
                      "a\\x9b"
                      "bc\n      ^\n");
}

static void nothing_commands_the_terminal(void **state) {
  (void)state;
  assert_string_equal(PRINTED("a\tb\n\u00e9\u4e2d\U0001F600"), "a\tb\n\u00e9\u4e2d\U0001F600");
  assert_string_equal(PRINTED("\x1b[2J\x07\r\b\x7f"), "\\x1b[2J\\x07\\x0d\\x08\\x7f");
  assert_string_equal(PRINTED("\x00"
                              "x"),
                      "\\x00x");
  assert_string_equal(PRINTED("\x9b"
                              "31m\xc2\x9b"
                              "31m\xc2\x85"),
                      "\\x9b31m\\x9b31m\\x85");
  assert_string_equal(PRINTED("\u202a\u202e\u2066\u2069\u200e\u200f\u061c"),
                      "\\u202a\\u202e\\u2066\\u2069\\u200e\\u200f\\u061c");
  assert_string_equal(PRINTED("\u2028\u2029\ufeff\U000e0041"), "\\u2028\\u2029\\ufeff\\U000e0041");
  assert_string_equal(PRINTED("\xed\xa0\x80\xff"), "\\xed\\xa0\\x80\\xff");
}

static void any_bytes_are_survived(void **state) {
  (void)state;
  char line[40];
  srand(3);
  for (int round = 0; round < 20000; round++) {
    const size_t n = (size_t)rand() % sizeof line;
    for (size_t i = 0; i < n; i++)
      line[i] = (char)(rand() % 3 ? rand() : "\t\xe4\xb8\xad\x1b"[rand() % 5]);
    free(out);
    FILE *f = open_memstream(&out, &out_size);
    caret_print(f, 7, line, n, rand() % 50 - 2, rand() % 50 - 2);
    fclose(f);
    for (const char *p = out; *p; p++)
      assert_true(*p == '\n' || (unsigned char)*p >= ' ');
    assert_non_null(strrchr(out, '^'));
    assert_true(utf8_is_valid(out, out_size));
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(carets_are_below_their_characters),
      cmocka_unit_test(tabs_are_columns_of_spaces),
      cmocka_unit_test(a_caret_is_always_there),
      cmocka_unit_test(escapes_take_the_columns_that_they_are_written_in),
      cmocka_unit_test(nothing_commands_the_terminal),
      cmocka_unit_test(any_bytes_are_survived),
  };
  const int failed = cmocka_run_group_tests(tests, NULL, NULL);
  free(out);
  return failed;
}
