/* Who a client is: addresses, networks, and what proxies say. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* before cmocka, which has a macro called fail */
#include "http/address.h"

#include <cmocka.h>

static const char *shown(const char *text) {
  static char out[ADDRESS_TEXT_SIZE];
  struct address a;
  if (!address_parse(text, strlen(text), &a))
    return "none";
  address_put(&a, out);
  return out;
}

static void an_ipv6_address_is_its_network_of_64_bits(void **state) {
  (void)state;
  assert_string_equal(shown("192.0.2.7"), "192.0.2.7");
  assert_string_equal(shown("192.0.2.7:8080"), "192.0.2.7");
  assert_string_equal(shown("::ffff:192.0.2.7"), "192.0.2.7");
  assert_string_equal(shown("2001:db8:1:2:3:4:5:6"), "2001:db8:1:2::");
  assert_string_equal(shown("[2001:db8:1:2:ffff::1]:443"), "2001:db8:1:2::");
  assert_string_equal(shown("[2001:db8::1]"), "2001:db8::");
  assert_string_equal(shown("::1"), "::");
}

static void what_is_no_address_is_refused(void **state) {
  static const char *const wrong[] = {
      "",       "unknown",      "_hidden",     "192.0.2",     "192.0.2.7:", "192.0.2.7:x",  "[::1",       "[::1]x",
      "[::1]:", "[::1]:123456", "1.2.3.4:5:6", "192.0.2.300", "::1%eth0",   "::ffff:1.2.3", "0x7f.1.1.1", " 192.0.2.7"};
  (void)state;
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
    assert_string_equal(shown(wrong[i]), "none");
}

static void a_network_holds_its_addresses_and_no_other(void **state) {
  static const struct {
    const char *nets, *address;
    bool is_in;
  } cases[] = {
      {"10.0.0.0/8", "10.255.1.2", true},
      {"10.0.0.0/8", "11.0.0.0", false},
      {"192.0.2.128/25", "192.0.2.129", true},
      {"192.0.2.128/25", "192.0.2.127", false},
      {"127.0.0.1", "127.0.0.1", true},
      {"127.0.0.1", "127.0.0.2", false},
      {"2001:db8::/33", "2001:db8:7fff::", true},
      {"2001:db8::/33", "2001:db8:8000::", false},
      {"::1, 10.0.0.0/8", "10.1.1.1", true},
      {"::1,10.0.0.0/8", "::1", true},
      {"0.0.0.0/0", "8.8.8.8", true},
      {"0.0.0.0/0", "2001:db8::", false},
      {"", "8.8.8.8", false},
      {"::ffff:10.0.0.0/104", "10.1.1.1", true},
  };
  struct error err;
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    struct address_nets nets;
    struct address a;
    assert_int_equal(address_nets_parse(cases[i].nets, &nets, &err), ST_OK);
    assert_true(address_parse(cases[i].address, strlen(cases[i].address), &a));
    assert_int_equal(address_is_in(&a, &nets), cases[i].is_in);
  }
}

static void what_is_no_network_is_named(void **state) {
  static const char *const wrong[] = {"10.0.0.0/33", "::/129",    "10.0.0.0/", "10.0.0.0/x",
                                      "localhost",   "::1 proxy", "10/8",      "/8"};
  struct address_nets nets;
  struct error err;
  (void)state;
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    assert_int_equal(address_nets_parse(wrong[i], &nets, &err), ST_INPUT);
    assert_non_null(strstr(err.text, "is neither an address nor a network"));
  }
}

static const char *client(const char *peer, enum address_header form, const char *list) {
  static char out[ADDRESS_TEXT_SIZE];
  struct address_nets trusted;
  struct address a, c;
  struct error err;
  assert_int_equal(address_nets_parse("10.0.0.0/8 fd00::/8", &trusted, &err), ST_OK);
  assert_true(address_parse(peer, strlen(peer), &a));
  address_of_client(&a, &trusted, form, list, &c);
  address_put(&c, out);
  return out;
}

static void only_trusted_hops_are_believed(void **state) {
  const enum address_header x = ADDRESS_X_FORWARDED_FOR, f = ADDRESS_FORWARDED;
  (void)state;
  assert_string_equal(client("192.0.2.1", x, "198.51.100.9"), "192.0.2.1"); /* no proxy of ours */
  assert_string_equal(client("10.0.0.1", x, NULL), "10.0.0.1");
  assert_string_equal(client("10.0.0.1", x, ""), "10.0.0.1");
  assert_string_equal(client("10.0.0.1", x, "198.51.100.9"), "198.51.100.9");
  assert_string_equal(client("10.0.0.1", x, "1.1.1.1, 198.51.100.9"),
                      "198.51.100.9"); /* what the client claims itself */
  assert_string_equal(client("10.0.0.1", x, "1.1.1.1, 198.51.100.9 , 10.2.3.4"), "198.51.100.9");
  assert_string_equal(client("10.0.0.1", x, "10.9.9.9,10.2.3.4"), "10.9.9.9"); /* all of them ours */
  assert_string_equal(client("10.0.0.1", x, "1.1.1.1, unknown"), "10.0.0.1");
  assert_string_equal(client("10.0.0.1", x, "1.1.1.1,"), "10.0.0.1");
  assert_string_equal(client("fd00::1", x, "2001:db8:1:2:3:4:5:6"), "2001:db8:1:2::");
  assert_string_equal(client("10.0.0.1", f, "for=198.51.100.9;proto=https"), "198.51.100.9");
  assert_string_equal(client("10.0.0.1", f, "for=1.1.1.1, proto=http; FOR=\"198.51.100.9:4711\""), "198.51.100.9");
  assert_string_equal(client("10.0.0.1", f, "for=\"[2001:db8:1:2:3::1]:80\";by=10.0.0.1, for=10.7.7.7"),
                      "2001:db8:1:2::");
  assert_string_equal(client("10.0.0.1", f, "for=_hidden"), "10.0.0.1");
  assert_string_equal(client("10.0.0.1", f, "198.51.100.9"), "10.0.0.1"); /* the other form */
  assert_string_equal(client("10.0.0.1", f, "for=\"198.51.100.9"), "10.0.0.1");
}

static void loopback_is_this_machine(void **state) {
  static const struct {
    const char *text;
    bool is_it;
  } cases[] = {{"127.0.0.1", true},  {"127.9.9.9", true}, {"::1", true},
               {"128.0.0.1", false}, {"::2", false},      {"::", false}};
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    struct address a;
    assert_true(address_parse(cases[i].text, strlen(cases[i].text), &a));
    assert_int_equal(address_is_loopback(&a), cases[i].is_it);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(an_ipv6_address_is_its_network_of_64_bits),
      cmocka_unit_test(what_is_no_address_is_refused),
      cmocka_unit_test(a_network_holds_its_addresses_and_no_other),
      cmocka_unit_test(what_is_no_network_is_named),
      cmocka_unit_test(only_trusted_hops_are_believed),
      cmocka_unit_test(loopback_is_this_machine),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
