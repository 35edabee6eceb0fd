/* Where requests end, and that no cut of the bytes changes that. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "http/framing.h"

#define GET "GET /a?b=c HTTP/1.1\r\nHost: x\r\n\r\n"
#define LONG "POST /a HTTP/1.1\r\nHost: x:80\r\nContent-Length: 5\r\n\r\nhello"
#define CHUNKED \
  "POST /a HTTP/1.1\r\nHost: [::1]\r\nTransfer-Encoding: Chunked\r\n\r\n5\r\nhello\r\nA\r\n0123456789\r\n0\r\n\r\n"

struct seen {
  int n;
  size_t ends[8];
  enum framing_fault fault;
  bool is_last;
};

/* Feeds `text` in pieces of `step` bytes. */
static struct seen look(const char *text, size_t step) {
  struct framing f;
  struct seen s = {0};
  size_t len = strlen(text), at = 0;
  framing_init(&f);
  while (at < len) {
    size_t taken, n = len - at < step ? len - at : step;
    enum framing_verdict v = framing_feed(&f, text + at, n, &taken);
    at += taken;
    if (v == FRAMING_REFUSED)
      break;
    if (v == FRAMING_END)
      s.ends[s.n++] = at;
    else
      assert_int_equal(taken, n);
  }
  s.fault = f.fault;
  s.is_last = f.is_last;
  assert_true(!f.fault == !f.reason);
  return s;
}

static void requests_end_where_they_say_in_any_cut(void **state) {
  static const char text[] = GET LONG CHUNKED GET;
  (void)state;
  for (size_t step = 1; step < sizeof text; step++) {
    struct seen s = look(text, step);
    assert_int_equal(s.fault, FF_NONE);
    assert_int_equal(s.n, 4);
    assert_int_equal(s.ends[0], strlen(GET));
    assert_int_equal(s.ends[1], strlen(GET LONG));
    assert_int_equal(s.ends[2], strlen(GET LONG CHUNKED));
    assert_int_equal(s.ends[3], strlen(text));
  }
}

static void what_has_two_meanings_is_refused_in_any_cut(void **state) {
  static const struct {
    const char *text;
    enum framing_fault fault;
  } cases[] = {
      {"GET / HTTP/1.1\nHost: x\r\n\r\n", FF_MALFORMED},
      {"GET / HTTP/1.1\r\nHost: x\r\nHost: x\r\n\r\n", FF_MALFORMED},
      {"GET / HTTP/1.1\r\n\r\n", FF_MALFORMED},
      {"GET / HTTP/1.1\r\nHost : x\r\n\r\n", FF_MALFORMED},
      {"GET / HTTP/1.1\r\nHost: x\r\n folded\r\n\r\n", FF_MALFORMED},
      {"GET / HTTP/2.0\r\n\r\n", FF_VERSION},
      {"GET /%0 HTTP/1.1\r\n\r\n", FF_MALFORMED},
      {"GET /%00 HTTP/1.1\r\n\r\n", FF_MALFORMED},
      {"GET /#a HTTP/1.1\r\n\r\n", FF_MALFORMED},
      {"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\n", FF_MALFORMED},
      {"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n", FF_MALFORMED},
      {"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999999999999\r\n\r\n", FF_BODY_TOO_LARGE},
      {"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n1;a\r\n", FF_MALFORMED},
      {"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nffffffff\r\n", FF_BODY_TOO_LARGE},
      {"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nA: b\r\n", FF_MALFORMED},
      {"POST / HTTP/1.1\r\nHost: x\r\nContent-Encoding: gzip\r\n\r\n", FF_ENCODED},
      {"POST / HTTP/1.1\r\nHost: x\r\nExpect: much\r\n\r\n", FF_EXPECT},
  };
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    for (size_t step = 1; step <= strlen(cases[i].text); step++) {
      struct seen s = look(cases[i].text, step);
      if (s.fault != cases[i].fault || s.n)
        fail_msg("%s (in steps of %zu): fault %d, %d requests", cases[i].text, step, s.fault, s.n);
    }
  }
}

static void percent_encodings_of_other_bytes_than_nul_pass(void **state) {
  (void)state;
  assert_int_equal(look("GET /%20%0a%a0%FF?%01 HTTP/1.1\r\nHost: x\r\n\r\n", 7).n, 1);
}

static void the_last_request_of_a_connection_is_known(void **state) {
  (void)state;
  assert_false(look(GET, 1000).is_last);
  assert_true(look("GET / HTTP/1.0\r\n\r\n", 1000).is_last);
  assert_false(look("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", 1000).is_last);
  assert_true(look("GET / HTTP/1.1\r\nHost: x\r\nConnection: TE, close\r\n\r\n", 1000).is_last);
  assert_false(look("GET / HTTP/1.1\r\nHost: x\r\nConnection: closed\r\n\r\n", 1000).is_last);
}

static void limits_are_exact(void **state) {
  static char text[64 << 10];
  (void)state;
  for (int over = 0; over < 2; over++) {
    int n = snprintf(text, sizeof text, "GET /%*s HTTP/1.1\r\nHost: x\r\n\r\n", FRAMING_TARGET_MAX - 1 + over, "");
    assert_true(n > 0);
    memset(text + 5, 'a', (size_t)(FRAMING_TARGET_MAX - 1 + over));
    assert_int_equal(look(text, 4096).fault, over ? FF_TARGET_TOO_LONG : FF_NONE);

    n = snprintf(text, sizeof text, "GET / HTTP/1.1\r\nHost: x\r\n");
    for (int i = 1; i < FRAMING_HEADERS_MAX + over; i++)
      n += snprintf(text + n, sizeof text - (size_t)n, "X: y\r\n");
    snprintf(text + n, sizeof text - (size_t)n, "\r\n");
    assert_int_equal(look(text, 4096).fault, over ? FF_HEAD_TOO_LARGE : FF_NONE);

    n = snprintf(text, sizeof text, "GET / HTTP/1.1\r\nHost: x\r\nX: ");
    memset(text + n, 'y', (size_t)(FRAMING_HEAD_MAX + over - n - 4));
    strcpy(text + FRAMING_HEAD_MAX + over - 4, "\r\n\r\n");
    assert_int_equal(look(text, 4096).fault, over ? FF_HEAD_TOO_LARGE : FF_NONE);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(requests_end_where_they_say_in_any_cut),
      cmocka_unit_test(what_has_two_meanings_is_refused_in_any_cut),
      cmocka_unit_test(percent_encodings_of_other_bytes_than_nul_pass),
      cmocka_unit_test(the_last_request_of_a_connection_is_known),
      cmocka_unit_test(limits_are_exact),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
