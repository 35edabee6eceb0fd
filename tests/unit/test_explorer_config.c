/* Flags and variables: each wrong one is named, in either form. */
#include "config.h"

#include <setjmp.h>
#include <stdbool.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "pool/wire.h"

static char release[64]; /* "6=DIR", a directory as test_explorer_versions.c makes more of */

/* A right value ("" if there is none that is fixed) and a wrong one of every setting. */
static const struct {
  const char *flag, *right, *wrong;
} settings[] = {
    {"--host", "::1", ""},
    {"--port", "0", "65536"},
    {"--ops-host", "127.0.0.1", ""},
    {"--ops-port", "0", "-1"},
    {"--workers", "1", "0"},
    {"--queue", "0", "-1"},
    {"--queue-timeout-ms", "100", "99"},
    {"--job-timeout-ms", "600000", "600001"},
    {"--job-cpu-s", "600", "601"},
    {"--job-memory-mib", "64", "63"},
    {"--job-resident-mib", "64", ""},
    {"--zygote-jobs", "1", "0"},
    {"--zygote-minutes", "1", "one"},
    {"--jail-min", "none", "D"},
    {"--cgroup", "/sys", "/nowhere"},
    {"--jail-without", "mount,landlock", "mounts"},
    {"--jail-failing", "seccomp", "everything"},
    {"--worker-memory", "heap,prefault", "heap,pack"},
    {"--confine", "no", "maybe"},
    {"--user", "nobody", ""},
    {"--drain-timeout-ms", "0", "soon"},
    {"--connections", "4", "3"},
    {"--client-connections", "0", "1e3"},
    {"--client-compiles", "60", "-1"},
    {"--client-jobs", "4", "10001"},
    {"--client-links", "0", "100001"},
    {"--client-links-day", "200", "-1"},
    {"--client-links-mib", "0", "64.5"},
    {"--client-runs", "0", "many"},
    {"--runs", "0", "-1"},
    {"--run-lease-ms", "500", "499"},
    {"--neuronx-cc", "none", ""},
    {"--neuronx-cc-s", "1", "0"},
    {"--neuronx-cc-memory-mib", "64", "63"},
    {"--neuronx-cc-cache", "none", ""},
    {"--neuronx-cc-cache-mib", "0", "-1"},
    {"--trusted-proxies", "10.0.0.0/8,::1", "10.0.0.0/99"},
    {"--proxy-header", "forwarded", "Via"},
    {"--user-header", "X-Forwarded-User", "X Forwarded User"},
    {"--email-header", "X-Forwarded-Email", "X Forwarded Email"},
    {"--groups-header", "X-Forwarded-Groups", ""},
    {"--author-groups", "eng,kernels", ""},
    {"--operator-groups", "sre", ""},
    {"--anonymous", "none", "operator"},
    {"--header-timeout-ms", "100", "100 "},
    {"--body-timeout-ms", "100", "99999999999999999999"},
    {"--answer-timeout-ms", "100", ""},
    {"--idle-timeout-ms", "100", "0x100"},
    {"--answers-mib", "1", "0"},
    {"--data-dir", "/tmp", ""},
    {"--store", "sqlite:/tmp/x", ""},
    {"--cache-mib", "1", "0"},
    {"--cache-s", "0", "-1"},
    {"--results-mib", "1", " 1"},
    {"--s3-url", "https://s3.example.org/nkx", "s3://nkx"},
    {"--s3-region", "eu-central-1", ""},
    {"--s3-credentials", "/etc/nkx/credentials", ""},
    {"--s3-ca-file", "/etc/nkx/ca.pem", ""},
    {"--store-max-mib", "4096", "16 GiB"},
    {"--session-idle-s", "60", "0"},
    {"--web-dir", "/tmp", "/nowhere"},
    {"--examples-dir", "/", "/dev/null"},
    {"--worker", "/bin/sh", "/etc/passwd"},
    {"--worker-version", release, "6"},
    {"--python-dir", "/", "/nowhere"},
    {"--site-dir", "/", "/dev/null"},
    {"--log-format", "json", "JSON"},
    {"--log-level", "warn", "loud"},
    {"--log-clients", "address", "hash"},
    {"--report-url", "mailto:abuse@example.org?subject={link}", "javascript:alert(1)"},
    {"--log-requests", "yes", "1"},
};
enum { N = sizeof settings / sizeof *settings };

static void variable_of(const char *flag, char to[64]) {
  size_t n = (size_t)snprintf(to, 64, "NKX_%s", flag + 2);
  for (size_t i = 0; i < n; i++)
    to[i] = to[i] == '-' ? '_' : to[i] >= 'a' && to[i] <= 'z' ? (char)(to[i] - 32) : to[i];
}

/* Parses with the worker set, which is not where the default looks for it; err says what is wrong. */
static enum status parse(int argc, char **argv, char *const *env, struct config *c, struct error *err) {
  struct arena a;
  char *all[16] = {"--worker",      "/bin/sh", "--trusted-proxies", "::1",
                   "--user-header", "X-User",  "--groups-header",   "X-Groups"};
  arena_init(&a);
  for (int i = 0; i < argc; i++)
    all[8 + i] = argv[i];
  enum status st = config_parse(&a, 8 + argc, all, env, c, err);
  arena_clear(&a); /* the paths that were made up; nobody here looks at them */
  return st;
}

static void help_and_settings_name_the_same(void **state) {
  (void)state;
  int n = 0;
  for (const char *p = config_help; (p = strstr(p, "\n  --")); p++) {
    size_t len = strcspn(p + 3, " ");
    bool is_here = false;
    for (int i = 0; i < N; i++)
      is_here |= strlen(settings[i].flag) == len && !strncmp(settings[i].flag, p + 3, len);
    if (!is_here)
      fail_msg("%.*s is not tested", (int)len, p + 3);
    n++;
  }
  assert_int_equal(n, N);
}

static void every_right_value_is_taken_from_flag_and_variable(void **state) {
  struct config c;
  struct error err;
  char text[128], name[64], joined[128];
  (void)state;
  for (int i = 0; i < N; i++) {
    char *apart[] = {(char *)settings[i].flag, (char *)settings[i].right};
    if (parse(2, apart, NULL, &c, &err))
      fail_msg("%s %s: %s", settings[i].flag, settings[i].right, err.text);
    snprintf(joined, sizeof joined, "%s=%s", settings[i].flag, settings[i].right);
    char *one[] = {joined};
    assert_int_equal(parse(1, one, NULL, &c, &err), ST_OK);
    variable_of(settings[i].flag, name);
    snprintf(text, sizeof text, "%s=%s", name, settings[i].right);
    char *env[] = {"PATH=/bin", text, NULL};
    if (parse(0, NULL, env, &c, &err))
      fail_msg("%s: %s", text, err.text);
  }
}

static void every_wrong_value_is_named_as_it_was_given(void **state) {
  struct config c;
  struct error err;
  char text[128], name[64];
  (void)state;
  for (int i = 0; i < N; i++) {
    char *argv[] = {(char *)settings[i].flag, (char *)settings[i].wrong};
    assert_int_equal(parse(2, argv, NULL, &c, &err), ST_INPUT);
    if (strncmp(err.text, settings[i].flag, strlen(settings[i].flag)) != 0)
      fail_msg("%s: %s", settings[i].flag, err.text);
    assert_int_equal(parse(1, argv, NULL, &c, &err), ST_INPUT);
    assert_non_null(strstr(err.text, settings[i].flag));
    variable_of(settings[i].flag, name);
    snprintf(text, sizeof text, "%s=%s", name, settings[i].wrong);
    char *env[] = {text, NULL};
    assert_int_equal(parse(0, NULL, env, &c, &err), ST_INPUT);
    if (strncmp(err.text, name, strlen(name)) != 0)
      fail_msg("%s: %s", name, err.text);
  }
}

static void a_flag_wins_over_a_variable_and_that_over_the_default(void **state) {
  struct config c;
  struct error err;
  char *env[] = {"NKX_QUEUE=7", "NKX_LOG_FORMAT=json", "NKX_NOTHING=1", "OTHER_QUEUE=x", NULL};
  char *argv[] = {"--queue", "8"};
  (void)state;
  assert_int_equal(parse(2, argv, env, &c, &err), ST_OK);
  assert_int_equal(c.queue_max, 8);
  assert_int_equal(c.log_format, 1);
  assert_int_equal(parse(0, NULL, env, &c, &err), ST_OK);
  assert_int_equal(c.queue_max, 7);
  assert_int_equal(parse(0, NULL, NULL, &c, &err), ST_OK);
  assert_int_equal(c.queue_max, 64);
  assert_string_equal(c.http.port, "10240");
}

static void what_is_no_flag_is_named(void **state) {
  struct config c;
  struct error err;
  char *wrong[] = {"--colour", "extra", "--", "--port1=2", "-p"};
  (void)state;
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    assert_int_equal(parse(1, &wrong[i], NULL, &c, &err), ST_INPUT);
    assert_non_null(strstr(err.text, wrong[i]));
  }
}

static void the_default_worker_is_checked_too(void **state) {
  struct config c;
  struct error err;
  struct arena a;
  (void)state;
  arena_init(&a); /* beside this test there is none */
  assert_int_equal(config_parse(&a, 0, NULL, NULL, &c, &err), ST_INPUT);
  assert_non_null(strstr(err.text, "--worker"));
  arena_clear(&a);
}

static void groups_need_someone_who_names_them(void **state) {
  static char *wrong[][8] = {
      {"--trusted-proxies", "::1", "--email-header", "X-Email"},
      {"--trusted-proxies", "::1", "--groups-header", "X-Groups"},
      {"--trusted-proxies", "::1", "--user-header", "X-User", "--author-groups", "eng"},
      {"--trusted-proxies", "::1", "--user-header", "X-User", "--operator-groups", "sre"},
  };
  (void)state;
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    struct config c;
    struct error err;
    struct arena a;
    char *all[10] = {"--worker", "/bin/sh"};
    int n = 0;
    for (; wrong[i][n]; n++)
      all[2 + n] = wrong[i][n];
    arena_init(&a);
    assert_int_equal(config_parse(&a, 2 + n, all, NULL, &c, &err), ST_INPUT);
    if (strncmp(err.text, wrong[i][n - 2], strlen(wrong[i][n - 2])) != 0)
      fail_msg("%s: %s", wrong[i][n - 2], err.text);
    arena_clear(&a);
  }
}

static void results_alone_must_not_fill_the_store(void **state) {
  struct config c;
  struct error err;
  char *argv[] = {"--store-max-mib", "100", "--results-mib", "51"};
  (void)state;
  assert_int_equal(parse(4, argv, NULL, &c, &err), ST_INPUT);
  assert_non_null(strstr(err.text, "--store-max-mib"));
  argv[3] = "50";
  assert_int_equal(parse(4, argv, NULL, &c, &err), ST_OK);
  argv[1] = "0"; /* no ceiling */
  argv[3] = "20000";
  assert_int_equal(parse(4, argv, NULL, &c, &err), ST_OK);
}

static void make_release(void) {
  char dir[] = "/tmp/nkx-config-XXXXXX", command[300];
  if (!mkdtemp(dir))
    abort();
  snprintf(
      command, sizeof command,
      "cd %s && mkdir -p bin python venv/lib/python3.11/site-packages && touch bin/nkx-worker && chmod +x "
      "bin/nkx-worker && echo '{\"release\":\"0.1.0\",\"pipeline\":\"0123456789ab\",\"protocol\":%d}' > release.json",
      dir, WIRE_PROTOCOL);
  if (system(command))
    abort();
  snprintf(release, sizeof release, "6=%s", dir);
}

static int drop_release(void **state) {
  char command[100];
  (void)state;
  snprintf(command, sizeof command, "rm -r %s", release + 2);
  return system(command);
}

static void versions_of_flags_replace_those_of_the_variable(void **state) {
  struct config c;
  struct error err;
  char variable[100], *env[] = {variable, NULL}, again[100], *argv[] = {"--worker-version", again};
  (void)state;
  snprintf(variable, sizeof variable, "NKX_WORKER_VERSION=%s", release);
  snprintf(again, sizeof again, "seven=%s", release + 2);
  assert_int_equal(parse(0, NULL, env, &c, &err), ST_OK);
  assert_int_equal(c.versions.n, 2);
  assert_int_equal(parse(2, argv, env, &c, &err), ST_OK); /* both together would be the same version twice */
  assert_int_equal(c.versions.n, 2);
}

int main(void) {
  make_release();
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(versions_of_flags_replace_those_of_the_variable),
      cmocka_unit_test(help_and_settings_name_the_same),
      cmocka_unit_test(every_right_value_is_taken_from_flag_and_variable),
      cmocka_unit_test(every_wrong_value_is_named_as_it_was_given),
      cmocka_unit_test(a_flag_wins_over_a_variable_and_that_over_the_default),
      cmocka_unit_test(what_is_no_flag_is_named),
      cmocka_unit_test(the_default_worker_is_checked_too),
      cmocka_unit_test(groups_need_someone_who_names_them),
      cmocka_unit_test(results_alone_must_not_fill_the_store),
  };
  return cmocka_run_group_tests(tests, NULL, drop_release);
}
