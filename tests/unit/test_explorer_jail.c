/* What a jail's child does when its parent ends at a bad moment; the walls themselves are tried from inside (tests/jail). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* before cmocka, which has a macro called fail */
#include "jail/jail.h"

#include <cmocka.h>

/* A parent that makes a child and ends; the child looks for its socket's other end only then. */
static void leave_a_child(const struct jail *j) {
  struct jail_child c;
  struct jail_report r;
  struct error err;
  const pid_t parent = getpid();

  if (jail_spawn(j, 1, &c, &err))
    _exit(1);
  if (c.pid)
    _exit(0);
  while (getppid() == parent)
    usleep(1000);
  _exit(jail_enter(j, &c.fd, 3, &r) == ST_IO ? 7 : 1);
}

static void a_child_whose_parent_is_gone_ends(void **state) {
  static const struct jail jail = {.level = JAIL_NONE};
  int status, ended = 0;
  (void)state;
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  pid_t parent = fork();
  if (parent == 0)
    leave_a_child(&jail);
  assert_int_equal(waitpid(parent, &status, 0), parent);
  assert_int_equal(status, 0);
  for (int i = 0; i < 1000 && !ended; i++, usleep(10000))
    ended = waitpid(-1, &status, WNOHANG) > 0;
  assert_true(ended);
  assert_int_equal(WEXITSTATUS(status), 7);
}

/* Measured: at a limit of 1 s the kernel kills after 0.95 to 1.4 s of exact time. */
static void a_limit_that_ticks_count_is_recognized_in_exact_time(void **state) {
  static const struct jail_limits one = {.cpu_s = 1}, ten = {.cpu_s = 10};
  (void)state;
  assert_true(jail_cpu_is_used_up(&one, 1411));
  assert_true(jail_cpu_is_used_up(&one, 700));
  assert_false(jail_cpu_is_used_up(&one, 500));
  assert_true(jail_cpu_is_used_up(&ten, 8800));
  assert_false(jail_cpu_is_used_up(&ten, 8500));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_limit_that_ticks_count_is_recognized_in_exact_time),
      cmocka_unit_test(a_child_whose_parent_is_gone_ends),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
