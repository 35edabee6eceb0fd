/* The scanner of frames against jansson, and against what it must refuse. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

/* before cmocka, which has a macro called fail */
#include "driver/frame_scan.h"

#include <cmocka.h>

static const char good[] = "{\"frame\":\"diagnostic\",\"diagnostic\":{\"a\":[1,-2.5e+3,true,false,null,\"\\u00e9\\n"
                           "\xc3\xa9\xf0\x9f\x98\x80\\ud83d\\ude00\"],\"b\":{}}}";

static enum status scan(const char *json, size_t len) {
  struct frame f;
  return frame_scan(json, len, &f, NULL);
}

static void frame_finds_its_members(void **state) {
  static const char text[] = "{\"frame\":\"kernel\", \"kernel\": 7 ,\"name\":\"k\",\"inputs\":[],\"outputs\":[{}]}";
  struct frame f;
  (void)state;
  assert_int_equal(frame_scan(text, strlen(text), &f, NULL), ST_OK);
  assert_int_equal(f.kind, FRAME_KERNEL);
  assert_int_equal(frame_int(&f, "kernel"), 7);
  const struct frame_member *m = frame_get(&f, "outputs");
  assert_non_null(m);
  assert_int_equal(m->value_len, 4);
  assert_memory_equal(m->value, "[{}]", 4);
  assert_null(frame_get(&f, "output"));
  assert_int_equal(frame_int(&f, "name"), -1);
}

static void frame_refuses_what_is_no_frame(void **state) {
  static const char *const bad[] = {
      "",
      "{}",
      "[]",
      "1",
      "{\"frame\":\"end\"}",
      "{\"frame\":\"end\",\"status\":\"ok\"}",
      "{\"frame\":\"end\",\"status\":1,\"time_us\":1}",
      "{\"frame\":\"end\",\"status\":\"ok\",\"time_us\":-1}",
      "{\"frame\":\"end\",\"status\":\"ok\",\"time_us\":1}x",
      "{\"frame\":\"end\",\"status\":\"ok\",\"time_us\":1}\n",
      "{\"frame\":\"end\",\n\"status\":\"ok\",\"time_us\":1}",
      "{\"frame\":\"other\"}",
      "{\"frame\":1}",
      "{\"frame\":\"stage\",\"kernel\":0,\"stage\":[]}",
      "{\"frame\":\"stage\",\"kernel\":1.5,\"stage\":{}}",
      "{\"frame\":\"stage\",\"kernel\":99999999999,\"stage\":{}}",
      "{\"frame\":\"stage\",\"kernel\":0,\"stage\":{},}",
      "{\"frame\":\"artifact\",\"artifact\":{},\"artifact\":{}}",
      "{\"frame\":\"artifact\",\"artifact\":{},\"\\u0061rtifact\":{}}",
      "{\"frame\":\"diagnostic\",\"diagnostic\":{\"a\":1e999}}",
      "{\"frame\":\"diagnostic\",\"diagnostic\":{\"a\":[-1E+309]}}",
      "{\"frame\":\"diagnostic\",\"diagnostic\":{\"a\":9223372036854775808}}",
      "{\"frame\":\"diagnostic\",\"diagnostic\":{\"a\":-9223372036854775809}}",
      "{\"frame\":\"diagnostic\",\"diagnostic\":{\"a\":0.1234567890123456789012345678901234567890}}",
  };
  (void)state;
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
    if (scan(bad[i], strlen(bad[i])) != ST_INPUT)
      fail_msg("accepted: %s", bad[i]);
}

static void frame_takes_the_largest_and_the_smallest_numbers(void **state) {
  static const char text[] =
      "{\"frame\":\"diagnostic\",\"diagnostic\":{\"a\":[9223372036854775807,-9223372036854775808,"
      "1.7976931348623157e+308,-1e308,1e-999,5e-324,0E0,-0,12345678901234567890.5]}}";
  (void)state;
  assert_int_equal(scan(text, strlen(text)), ST_OK);
  json_t *tree = json_loadb(text, strlen(text), JSON_REJECT_DUPLICATES, NULL);
  assert_non_null(tree);
  json_decref(tree);
}

static void frame_refuses_deep_nesting_without_recursing_into_it(void **state) {
  static const char head[] = "{\"frame\":\"diagnostic\",\"diagnostic\":{\"x\":";
  size_t depth = 1 << 20, n = strlen(head);
  char *text = malloc(n + depth);
  (void)state;
  assert_non_null(text);
  memcpy(text, head, n);
  memset(text + n, '[', depth);
  assert_int_equal(scan(text, n + depth), ST_INPUT);
  free(text);
}

/* Everything one changed, removed or doubled byte makes of a frame: both parsers agree on what is JSON.  jansson also
 * takes newlines and what is no frame, so only frames that keep their shape are compared both ways. */
static void check_against_jansson(const char *text, size_t len) {
  json_t *tree = json_loadb(text, len, JSON_REJECT_DUPLICATES, NULL);
  bool ours = scan(text, len) == ST_OK;
  if (ours && !tree)
    fail_msg("accepted what is no JSON: %.*s", (int)len, text);
  if (!ours && tree && !memchr(text, '\n', len) && !memchr(text, '\r', len)) {
    const char *kind = json_string_value(json_object_get(tree, "frame"));
    if (kind && !strcmp(kind, "diagnostic") && json_is_object(json_object_get(tree, "diagnostic")))
      fail_msg("refused: %.*s", (int)len, text);
  }
  json_decref(tree);
}

static void frame_agrees_with_jansson_on_every_small_change(void **state) {
  static const char with[] = "\"\\{}[],:0-.eEu \t\n\x01\x7f\x80\xc0\xed\xf5\xff";
  size_t len = sizeof good - 1;
  char text[sizeof good + 1];
  (void)state;
  check_against_jansson(good, len);
  assert_int_equal(scan(good, len), ST_OK);
  for (size_t i = 0; i < len; i++) {
    for (size_t k = 0; k + 1 < sizeof with; k++) {
      memcpy(text, good, len);
      text[i] = with[k];
      check_against_jansson(text, len);
      memmove(text + i + 1, good + i, len - i); /* inserted instead */
      text[i] = with[k];
      check_against_jansson(text, len + 1);
    }
    memcpy(text, good, len);
    memmove(text + i, good + i + 1, len - i - 1);
    check_against_jansson(text, len - 1);
    check_against_jansson(good, i);
  }
}

/* A string is scanned some bytes at a time: any byte, at any place in such a group, beside one that is not plain either. */
static void frame_agrees_with_jansson_on_any_byte_of_a_long_string(void **state) {
  static const char head[] = "{\"frame\":\"diagnostic\",\"diagnostic\":{\"a\":\"", tail[] = "\"}}";
  enum { LONG = 26, PLACES = 17 };
  char text[sizeof head + LONG + sizeof tail];
  const size_t at = sizeof head - 1, len = at + LONG + sizeof tail - 1;
  (void)state;
  memcpy(text, head, at);
  memcpy(text + at + LONG, tail, sizeof tail);
  for (size_t i = 0; i < PLACES; i++)
    for (int byte = 0; byte < 256; byte++)
      for (size_t k = 0; k < PLACES; k += 3) {
        memset(text + at, 'a', LONG);
        memcpy(text + at + k, "\xc3\xa9", 2);
        text[at + i] = (char)byte;
        check_against_jansson(text, len);
      }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(frame_finds_its_members),
      cmocka_unit_test(frame_refuses_what_is_no_frame),
      cmocka_unit_test(frame_takes_the_largest_and_the_smallest_numbers),
      cmocka_unit_test(frame_refuses_deep_nesting_without_recursing_into_it),
      cmocka_unit_test(frame_agrees_with_jansson_on_every_small_change),
      cmocka_unit_test(frame_agrees_with_jansson_on_any_byte_of_a_long_string),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
