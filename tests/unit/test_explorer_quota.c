/* Shares: each client has its own, they fill again, and many clients take no more room than there is. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* before cmocka, which has a macro called fail */
#include "work/quota.h"

#include <cmocka.h>

static struct quota *make(struct quota_config cfg) {
  struct quota *q;
  struct error err;
  assert_int_equal(quota_start(&cfg, &q, &err), ST_OK);
  return q;
}

static void a_client_may_start_its_minutes_share_and_then_waits(void **state) {
  struct quota *q = make((struct quota_config){.compiles = 60});
  struct client *a = quota_client(q, "192.0.2.1"), *b = quota_client(q, "192.0.2.2");
  int retry = 0;
  (void)state;
  for (int i = 0; i < 60; i++)
    assert_int_equal(client_begin_job(a, &retry), QUOTA_OK);
  assert_int_equal(client_begin_job(a, &retry), QUOTA_COMPILES);
  assert_int_equal(retry, 1);
  assert_int_equal(client_begin_job(b, &retry), QUOTA_OK);
  client_end_job(a, false); /* never ran: given back */
  assert_int_equal(client_begin_job(a, &retry), QUOTA_OK);
  client_end_job(a, true);
  assert_int_equal(client_begin_job(a, &retry), QUOTA_COMPILES);
  client_let_go(a);
  client_let_go(b);
  quota_stop(q);
}

static void what_was_used_is_remembered_after_the_client_went(void **state) {
  struct quota *q = make((struct quota_config){.compiles = 1});
  int retry = 0;
  (void)state;
  struct client *a = quota_client(q, "192.0.2.1");
  assert_int_equal(client_begin_job(a, &retry), QUOTA_OK);
  client_end_job(a, true);
  client_let_go(a);
  a = quota_client(q, "192.0.2.1");
  assert_int_equal(client_begin_job(a, &retry), QUOTA_COMPILES);
  assert_in_range(retry, 59, 60);
  client_let_go(a);
  quota_stop(q);
}

struct told {
  char address[64];
  struct quota_open open;
  int n;
};

static void note(void *user, const char *address, const struct quota_open *open) {
  struct told *t = user;
  snprintf(t->address, sizeof t->address, "%s", address);
  t->open = *open;
  t->n++;
}

static void what_is_open_on_other_servers_counts_until_they_say_otherwise(void **state) {
  struct quota *q = make((struct quota_config){.jobs = 4, .connections = 32});
  const char *const address = "2001:db8::1";
  struct client *a = quota_client(q, address), *c;
  int retry = 0;
  (void)state;
  quota_open_elsewhere(q, 1, address, &(struct quota_open){2, 0});
  quota_open_elsewhere(q, 2, address, &(struct quota_open){1, 30});
  quota_open_elsewhere(q, 2, address, &(struct quota_open){1, 30}); /* repeated: it is no more */
  assert_int_equal(client_begin_job(a, &retry), QUOTA_OK);
  assert_int_equal(client_begin_job(a, &retry), QUOTA_JOBS);
  quota_open_elsewhere(q, 1, address, &(struct quota_open){0, 0});
  assert_int_equal(client_begin_job(a, &retry), QUOTA_OK);
  assert_int_equal(client_begin_job(a, &retry), QUOTA_OK);
  assert_int_equal(client_begin_job(a, &retry), QUOTA_JOBS);
  struct client *entered[2];
  assert_true(quota_enter(q, address, &entered[0]) && quota_enter(q, address, &entered[1]));
  assert_false(quota_enter(q, address, &c));
  /* wrong numbers and names do no harm, and another client has its own share */
  quota_open_elsewhere(q, 3, "192.0.2.9", &(struct quota_open){-5, 2000000000});
  quota_open_elsewhere(q, 3, "2001:db8::/48", &(struct quota_open){9, 9});
  quota_open_elsewhere(q, 3, "a name that is much too long for any client, and so is none", &(struct quota_open){9, 9});
  struct client *b = quota_client(q, "192.0.2.1");
  assert_int_equal(client_begin_job(b, &retry), QUOTA_OK);
  client_end_job(b, true);
  for (int i = 0; i < 3; i++)
    client_end_job(a, true);
  quota_leave(entered[0]);
  quota_leave(entered[1]);
  client_let_go(b);
  client_let_go(a);
  quota_stop(q); /* with what others have open */
}

static void others_are_told_what_becomes_more_at_once_and_what_becomes_less_later(void **state) {
  struct quota *q = make((struct quota_config){.jobs = 4, .connections = 160});
  struct told told = {0};
  struct client *a = quota_client(q, "192.0.2.1"), *entered[25];
  int retry = 0;
  (void)state;
  quota_tell_others(q, note, &told);
  assert_int_equal(client_begin_job(a, &retry), QUOTA_OK);
  assert_true(told.n == 1 && told.open.jobs == 1 && !told.open.connections);
  assert_string_equal(told.address, "192.0.2.1");
  client_end_job(a, true);
  assert_int_equal(client_begin_job(a, &retry), QUOTA_OK); /* one after the other: they know of one */
  assert_int_equal(told.n, 1);
  client_end_job(a, true);
  quota_tick(q);
  assert_true(told.n == 2 && !told.open.jobs);
  quota_tick(q);
  assert_int_equal(told.n, 2); /* nothing is open, so nothing is repeated */
  for (int i = 0; i < 25; i++)
    assert_true(quota_enter(q, "192.0.2.1", &entered[i]));
  assert_true(told.n == 4 && told.open.connections == 20); /* in steps of ten */
  for (int i = 0; i < 25; i++)
    quota_leave(entered[i]);
  quota_tick(q);
  assert_true(told.n == 5 && !told.open.connections);
  client_let_go(a);
  quota_stop(q);
}

static void what_was_used_on_another_server_is_taken_and_no_more_than_there_is(void **state) {
  struct quota *q = make((struct quota_config){.compiles = 60, .links = 2, .links_a_day = 10, .link_mib_a_day = 1});
  const char *const address = "2001:db8::1";
  int retry = 0;
  (void)state;
  quota_used_elsewhere(q, address, QUOTA_USE_COMPILE, 59);
  quota_used_elsewhere(q, address, QUOTA_USE_COMPILE, -5);
  struct client *a = quota_client(q, address);
  assert_int_equal(client_begin_job(a, &retry), QUOTA_OK);
  client_end_job(a, true);
  quota_used_elsewhere(q, address, QUOTA_USE_COMPILE, INT64_MAX); /* nothing is owed */
  assert_int_equal(client_begin_job(a, &retry), QUOTA_COMPILES);
  assert_int_equal(retry, 1);
  quota_used_elsewhere(q, address, QUOTA_USE_LINK, 1);
  assert_int_equal(client_store_link(a, &retry), QUOTA_OK);
  assert_int_equal(client_store_link(a, &retry), QUOTA_LINKS);
  quota_used_elsewhere(q, address, QUOTA_USE_LINK_BYTES, (1 << 20) - 1000);
  assert_int_equal(client_has_link_bytes(a, &retry), QUOTA_OK);
  quota_used_elsewhere(q, address, QUOTA_USE_LINK_BYTES, 1 << 20);
  assert_int_equal(client_has_link_bytes(a, &retry), QUOTA_LINK_BYTES);
  quota_used_elsewhere(q, "a name that is longer than any that a client of this server can have", QUOTA_USE_LINK, 1);
  client_let_go(a);
  quota_stop(q);
}

static void jobs_and_connections_at_once_are_limited_and_counted(void **state) {
  struct quota *q = make((struct quota_config){.jobs = 2, .connections = 1});
  struct quota_counts counts;
  struct client *a = quota_client(q, "192.0.2.1"), *connected = NULL, *other = NULL;
  int retry = 0;
  (void)state;
  assert_int_equal(client_begin_job(a, &retry), QUOTA_OK);
  assert_int_equal(client_begin_job(a, &retry), QUOTA_OK);
  assert_int_equal(client_begin_job(a, &retry), QUOTA_JOBS);
  assert_true(retry > 0);
  client_end_job(a, true);
  assert_int_equal(client_begin_job(a, &retry), QUOTA_OK);
  assert_true(quota_enter(q, "192.0.2.1", &connected));
  assert_ptr_equal(connected, a);
  assert_false(quota_enter(q, "192.0.2.1", &other));
  assert_null(other);
  quota_leave(connected);
  assert_true(quota_enter(q, "192.0.2.1", &connected));
  quota_leave(connected);
  quota_look(q, &counts);
  assert_int_equal(counts.refused[QUOTA_JOBS], 1);
  assert_int_equal(counts.refused[QUOTA_CONNECTIONS], 1);
  assert_int_equal(counts.clients, 1);
  client_let_go(a);
  quota_stop(q);
}

static void who_was_refused_is_early_until_it_gets_through(void **state) {
  struct quota *q = make((struct quota_config){.jobs = 1});
  struct client *a = quota_client(q, "192.0.2.1");
  int retry = 0;
  (void)state;
  assert_int_equal(client_begin_job(a, &retry), QUOTA_OK);
  assert_int_equal(client_jobs(a), 1);
  assert_false(quota_is_early(q, "192.0.2.1", false));
  assert_int_equal(client_begin_job(a, &retry), QUOTA_JOBS);
  assert_true(quota_is_early(q, "192.0.2.1", false));
  assert_false(quota_is_early(q, "192.0.2.2", false));
  client_end_job(a, true);
  assert_int_equal(client_begin_job(a, &retry), QUOTA_OK);
  assert_false(quota_is_early(q, "192.0.2.1", false));
  client_let_go(a);
  quota_stop(q);
}

static void who_was_refused_a_link_is_early_for_links_only(void **state) {
  struct quota *q = make((struct quota_config){.links = 1, .jobs = 1});
  struct client *a = quota_client(q, "192.0.2.1");
  int retry = 0;
  (void)state;
  assert_int_equal(client_store_link(a, &retry), QUOTA_OK);
  assert_false(quota_is_early(q, "192.0.2.1", true));
  assert_int_equal(client_store_link(a, &retry), QUOTA_LINKS);
  assert_true(quota_is_early(q, "192.0.2.1", true));
  assert_false(quota_is_early(q, "192.0.2.1", false));
  assert_false(quota_is_early(q, "192.0.2.2", true));
  client_let_go(a);
  quota_stop(q);
}

static void without_limits_everything_is_allowed(void **state) {
  struct quota *q = make((struct quota_config){0});
  struct client *a = quota_client(q, "192.0.2.1"), *connected = NULL;
  int retry = 0;
  (void)state;
  for (int i = 0; i < 10000; i++) {
    assert_int_equal(client_begin_job(a, &retry), QUOTA_OK);
    assert_true(quota_enter(q, "192.0.2.1", &connected));
    assert_null(connected); /* nothing is counted */
  }
  assert_int_equal(client_begin_job(NULL, &retry), QUOTA_OK);
  client_let_go(a);
  quota_stop(q);
}

static void many_clients_take_no_more_room_than_there_is(void **state) {
  struct quota *q = make((struct quota_config){.compiles = 1});
  struct quota_counts counts;
  struct client *kept = quota_client(q, "held");
  char name[48];
  int retry;
  (void)state;
  for (int i = 0; i < 100000; i++) {
    snprintf(name, sizeof name, "2001:%x:%x::", i >> 16, i & 0xffff);
    struct client *c = quota_client(q, name);
    assert_int_equal(client_begin_job(c, &retry), QUOTA_OK);
    client_end_job(c, true);
    client_let_go(c);
  }
  quota_look(q, &counts);
  assert_in_range(counts.clients, 1, 1 << 16);
  assert_ptr_equal(quota_client(q, "held"), kept);
  client_let_go(kept);
  client_let_go(kept);
  quota_stop(q);
}

static void the_bytes_of_links_are_a_share_of_the_day_and_more_is_owed(void **state) {
  struct quota *q = make((struct quota_config){.link_mib_a_day = 24});
  struct quota_counts counts;
  struct client *a = quota_client(q, "192.0.2.1"), *b = quota_client(q, "192.0.2.2");
  int retry = 0;
  (void)state;
  client_take_link_bytes(a, 23 << 20);
  assert_int_equal(client_has_link_bytes(a, &retry), QUOTA_OK);
  client_take_link_bytes(a, 2 << 20); /* more than was left: an hour for each MiB that is owed */
  assert_int_equal(client_has_link_bytes(a, &retry), QUOTA_LINK_BYTES);
  assert_in_range(retry, 3599, 3601);
  client_let_go(a);
  a = quota_client(q, "192.0.2.1"); /* it is remembered */
  assert_int_equal(client_has_link_bytes(a, &retry), QUOTA_LINK_BYTES);
  assert_int_equal(client_has_link_bytes(b, &retry), QUOTA_OK);
  assert_int_equal(client_has_link_bytes(NULL, &retry), QUOTA_OK);
  quota_look(q, &counts);
  assert_int_equal(counts.refused[QUOTA_LINK_BYTES], 2);
  client_let_go(a);
  client_let_go(b);
  quota_stop(q);
}

static void networks_of_ipv6_have_the_shares_of_a_few_clients(void **state) {
  struct quota *q = make((struct quota_config){.compiles = 2});
  char name[48];
  int retry = 0, begun = 0, of_site = 0;
  (void)state;
  for (int i = 0; i < 4096; i++) { /* all in one network of 48 bits, 256 in each of 56 */
    snprintf(name, sizeof name, "2001:db8:7:%x::", i);
    struct client *c = quota_client(q, name);
    if (client_begin_job(c, &retry) == QUOTA_OK) {
      begun++;
      of_site += i < 256;
      client_end_job(c, true);
    }
    client_let_go(c);
  }
  assert_int_equal(of_site, 4 * 2);
  assert_int_equal(begun, 16 * 2);
  struct client *other = quota_client(q, "2001:db8:8::"), *four = quota_client(q, "192.0.2.1");
  assert_int_equal(client_begin_job(other, &retry), QUOTA_OK);
  assert_int_equal(client_begin_job(four, &retry), QUOTA_OK);
  client_end_job(four, true);
  client_end_job(other, true);
  client_let_go(other);
  client_let_go(four);
  quota_stop(q);
}

static void a_network_is_known_as_so_many_clients_at_most(void **state) {
  struct quota *q = make((struct quota_config){.compiles = 1});
  struct quota_counts counts;
  char name[48];
  int retry;
  (void)state;
  struct client *own = quota_client(q, "192.0.2.1");
  assert_int_equal(client_begin_job(own, &retry), QUOTA_OK);
  client_end_job(own, true);
  client_let_go(own);
  for (int i = 0; i < 65536; i++) { /* used, so that none is forgotten because it has its whole share */
    snprintf(name, sizeof name, "2001:db8:7:%x::", i);
    struct client *c = quota_client(q, name);
    client_take_link_bytes(c, 1);
    if (client_begin_job(c, &retry) == QUOTA_OK)
      client_end_job(c, true);
    client_let_go(c);
  }
  quota_look(q, &counts);
  assert_in_range(counts.clients, 1, 1500);
  own = quota_client(q, "192.0.2.1"); /* nobody made room for them */
  assert_int_equal(client_begin_job(own, &retry), QUOTA_COMPILES);
  client_let_go(own);
  quota_stop(q);
}

static void jobs_of_a_network_count_for_its_turn_in_the_queue(void **state) {
  struct quota *q = make((struct quota_config){0});
  struct client *c[64];
  char name[48];
  int retry;
  (void)state;
  for (int i = 0; i < 64; i++) {
    snprintf(name, sizeof name, "2001:db8:7:%x::", i);
    c[i] = quota_client(q, name);
    assert_int_equal(client_begin_job(c[i], &retry), QUOTA_OK);
    assert_ptr_equal(client_site(c[i]), client_site(c[0]));
  }
  assert_int_equal(client_jobs(c[63]), 64 / 4);
  struct client *other = quota_client(q, "2001:db8:8::"), *four = quota_client(q, "192.0.2.1");
  assert_int_equal(client_jobs(other), 0);
  assert_ptr_not_equal(client_site(other), client_site(c[0]));
  assert_ptr_equal(client_site(four), four);
  client_let_go(other);
  client_let_go(four);
  for (int i = 0; i < 64; i++) {
    client_end_job(c[i], true);
    client_let_go(c[i]);
  }
  quota_stop(q);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_client_may_start_its_minutes_share_and_then_waits),
      cmocka_unit_test(what_was_used_is_remembered_after_the_client_went),
      cmocka_unit_test(what_is_open_on_other_servers_counts_until_they_say_otherwise),
      cmocka_unit_test(others_are_told_what_becomes_more_at_once_and_what_becomes_less_later),
      cmocka_unit_test(what_was_used_on_another_server_is_taken_and_no_more_than_there_is),
      cmocka_unit_test(jobs_and_connections_at_once_are_limited_and_counted),
      cmocka_unit_test(who_was_refused_is_early_until_it_gets_through),
      cmocka_unit_test(who_was_refused_a_link_is_early_for_links_only),
      cmocka_unit_test(without_limits_everything_is_allowed),
      cmocka_unit_test(the_bytes_of_links_are_a_share_of_the_day_and_more_is_owed),
      cmocka_unit_test(networks_of_ipv6_have_the_shares_of_a_few_clients),
      cmocka_unit_test(a_network_is_known_as_so_many_clients_at_most),
      cmocka_unit_test(jobs_of_a_network_count_for_its_turn_in_the_queue),
      cmocka_unit_test(many_clients_take_no_more_room_than_there_is),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
