/* What the server gives up, tried from inside: each test is a process of its own that confines itself. */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* before cmocka, which has a macro called fail */
#include "jail/confine.h"

#include <cmocka.h>

static char dir[64], file[96], foreign[96];

static void *nothing(void *user) {
  return user;
}

static int write_to(const char *path, int flags) {
  int fd = open(path, flags, 0600);
  if (fd < 0)
    return errno;
  int e = write(fd, "x", 1) == 1 ? 0 : errno;
  close(fd);
  return e;
}

static int connect_to_port_9(void) {
  const struct sockaddr_in to = {
      .sin_family = AF_INET, .sin_port = htons(9), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  int fd = socket(AF_INET, SOCK_STREAM, 0);
  if (fd < 0)
    return errno;
  int e = connect(fd, (const struct sockaddr *)&to, sizeof to) ? errno : 0;
  close(fd);
  return e;
}

static int start_thread(void) {
  pthread_t t;
  return pthread_create(&t, NULL, nothing, NULL) || pthread_join(t, NULL);
}

static int map_code(void) {
  return mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED ? errno : 0;
}

/* Tried in the child; the result is the number of the first line that is not as it should be. */
#define MUST(is) \
  do \
    if (!(is)) \
      return __LINE__; \
  while (0)

static int try_everything(const struct confinement *c) {
  char link[128];
  snprintf(link, sizeof link, "%s/link", dir);
  MUST(c->layers == (1u << CONFINE_COUNT) - 1);
  MUST(c->uid && getuid() == c->uid && geteuid() == c->uid && c->uid != 65534);
  MUST(setuid(0) && errno == EPERM);
  MUST(write_to(file, O_WRONLY | O_CREAT) == 0 && unlink(file) == 0);
  MUST(write_to(foreign, O_WRONLY) == EACCES);
  MUST(open(foreign, O_RDONLY) < 0 && errno == EACCES);
  MUST(open("/etc/passwd", O_RDONLY) >= 0);
  MUST(open("/root", O_RDONLY) < 0 && open("/tmp", O_RDONLY) < 0 && open("/dev/mem", O_RDONLY) < 0);
  MUST(symlink("/etc/passwd", link) && errno == EPERM);
  MUST(start_thread() == 0);
  MUST(fork() < 0 && errno == EPERM);
  MUST(syscall(SYS_clone3, NULL, 0) < 0 && errno == ENOSYS);
  MUST(socket(AF_PACKET, SOCK_RAW, 0) < 0 && socket(AF_VSOCK, SOCK_STREAM, 0) < 0 && errno == EPERM);
  MUST(connect_to_port_9() == EACCES);
  MUST(kill(getppid(), 0) < 0 && errno == EPERM);
  MUST(map_code() == EPERM);
  MUST(prctl(PR_SET_DUMPABLE, 0) < 0 && errno == EPERM);
  return 0;
}

static int execute(const struct confinement *c) {
  char *const argv[] = {"true", NULL};
  (void)c;
  execv("/bin/true", argv);
  return 1;
}

static int unshare_something(const struct confinement *c) {
  (void)c;
  return (int)syscall(SYS_unshare, 0);
}

/* The wait status of a child that confines itself and then does this. */
static int confined(const struct confine_plan *plan, int (*what)(const struct confinement *c)) {
  int status;
  pid_t pid = fork();
  if (pid == 0) {
    struct confinement c;
    struct error err;
    int line = confine(plan, &c, &err) ? 1 : what(&c);
    fprintf(stderr, line ? "line %d: %s\n" : "", line, strerror(errno));
    _exit(line != 0);
  }
  assert_int_equal(waitpid(pid, &status, 0), pid);
  return status;
}

static const struct confine_plan plan = {.n_own = 1,
                                         .own = {dir},
                                         .family = "kept",
                                         .n_read = 3,
                                         .read = {"/etc", "/proc", "/dev/null"},
                                         .may_stay_root = true};

static void everything_else_is_out_of_reach(void **state) {
  (void)state;
  if (geteuid())
    skip();
  assert_int_equal(confined(&plan, try_everything), 0);
}

static void what_nobody_calls_who_means_well_kills(void **state) {
  int (*const calls[])(const struct confinement *c) = {execute, unshare_something};
  (void)state;
  for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
    int status = confined(&plan, calls[i]);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGSYS);
  }
}

static int stays_root(const struct confinement *c) {
  MUST(!(c->layers >> CONFINE_USER & 1) && strstr(c->why, "cannot reach"));
  MUST(c->layers == (((1u << CONFINE_COUNT) - 1) & ~(1u << CONFINE_USER)));
  MUST(getuid() == 0 && setuid(65534) && errno == EPERM);
  MUST(open("/etc/shadow", O_WRONLY) < 0); /* root's own files, too */
  return 0;
}

/* A file of somebody else in the directory: it is not handed over, and root keeps the work but none of its powers. */
static void a_directory_with_foreign_files_is_not_given_away(void **state) {
  struct stat s;
  char other[128];
  (void)state;
  if (geteuid())
    skip();
  assert_int_equal(chown(dir, 0, 0), 0);
  snprintf(other, sizeof other, "%s/precious", dir);
  assert_int_equal(write_to(other, O_WRONLY | O_CREAT), 0);
  assert_int_equal(confined(&plan, stays_root), 0);
  assert_int_equal(stat(dir, &s), 0);
  assert_int_equal(s.st_uid, 0);
  assert_int_equal(unlink(other), 0);
}

/* What lies below a directory that is root's alone stays root's, so that root without its powers can use it. */
static void what_another_cannot_reach_is_not_given_away(void **state) {
  char above[] = "/tmp/nkx-confine-XXXXXX", below[96], kept[128];
  struct stat s;
  (void)state;
  if (geteuid())
    skip();
  assert_non_null(mkdtemp(above));
  snprintf(below, sizeof below, "%s/below", above);
  snprintf(kept, sizeof kept, "%s/kept.sqlite", below);
  assert_int_equal(mkdir(below, 0700) | write_to(kept, O_WRONLY | O_CREAT), 0);
  const struct confine_plan p = {
      .n_own = 1, .own = {below}, .family = "kept", .n_read = 1, .read = {"/etc"}, .may_stay_root = true};
  for (int i = 0; i < 2; i++) { /* also if it was another's before it came here */
    assert_int_equal(confined(&p, stays_root), 0);
    assert_int_equal(stat(below, &s), 0);
    assert_int_equal(s.st_uid, 0);
    assert_int_equal(stat(kept, &s), 0);
    assert_int_equal(s.st_uid, 0);
    assert_int_equal(chown(below, CONFINE_UID, CONFINE_UID) | chown(kept, CONFINE_UID, CONFINE_UID), 0);
  }
  assert_int_equal(unlink(kept) | rmdir(below) | rmdir(above), 0);
}

static int is_refused(const struct confinement *c) {
  (void)c;
  return 0;
}

/* Unless that is allowed, the work does not begin as root. */
static void root_is_refused_where_no_other_user_reaches_the_files(void **state) {
  char above[] = "/tmp/nkx-confine-XXXXXX", below[96];
  struct stat s;
  (void)state;
  if (geteuid())
    skip();
  assert_non_null(mkdtemp(above));
  snprintf(below, sizeof below, "%s/below", above);
  assert_int_equal(mkdir(below, 0700), 0);
  struct confine_plan p = {.n_own = 1, .own = {below}, .family = "kept"};
  assert_int_not_equal(confined(&p, is_refused), 0);
  assert_int_equal(stat(below, &s), 0);
  assert_int_equal(s.st_uid, 0);
  p.may_stay_root = true;
  assert_int_equal(confined(&p, is_refused), 0);
  assert_int_equal(rmdir(below) | rmdir(above), 0);
}

static int becomes_another(const struct confinement *c) {
  return !(c->layers >> CONFINE_USER & 1);
}

/* Files of the family go with the directory, but no link to a file elsewhere makes that one go as well. */
static void files_go_with_their_directory_but_not_through_links(void **state) {
  char kept[128], soft[128], hard[128];
  struct stat s;
  (void)state;
  if (geteuid())
    skip();
  snprintf(kept, sizeof kept, "%s/kept.sqlite", dir);
  snprintf(soft, sizeof soft, "%s/kept.soft", dir);
  snprintf(hard, sizeof hard, "%s/kept.hard", dir);
  assert_int_equal(write_to(kept, O_WRONLY | O_CREAT), 0);
  assert_int_equal(symlink(foreign, soft), 0);
  assert_int_equal(link(foreign, hard), 0);
  assert_int_equal(confined(&plan, becomes_another), 0);
  assert_int_equal(stat(kept, &s), 0);
  assert_int_equal(s.st_uid, CONFINE_UID);
  assert_int_equal(stat(foreign, &s), 0);
  assert_int_equal(s.st_uid, 0);
  assert_int_equal(unlink(kept) | unlink(soft) | unlink(hard), 0);
}

static void an_unknown_user_is_named(void **state) {
  static const char *const wrong[] = {"no-such-user-here", "root", "0"};
  (void)state;
  if (geteuid())
    skip();
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    struct confine_plan p = plan;
    p.user = wrong[i];
    assert_true(WIFEXITED(confined(&p, becomes_another)));
    assert_int_equal(WEXITSTATUS(confined(&p, becomes_another)), 1);
  }
}

static int make_dir(void **state) {
  (void)state;
  snprintf(dir, sizeof dir, "/tmp/nkx-confine-XXXXXX");
  if (!mkdtemp(dir))
    return -1;
  snprintf(file, sizeof file, "%s/kept", dir);
  snprintf(foreign, sizeof foreign, "%s-foreign", dir);
  return write_to(foreign, O_WRONLY | O_CREAT);
}

static int remove_dir(void **state) {
  (void)state;
  unlink(foreign);
  return rmdir(dir);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(files_go_with_their_directory_but_not_through_links),
      cmocka_unit_test(everything_else_is_out_of_reach),
      cmocka_unit_test(what_nobody_calls_who_means_well_kills),
      cmocka_unit_test(root_is_refused_where_no_other_user_reaches_the_files),
      cmocka_unit_test(a_directory_with_foreign_files_is_not_given_away),
      cmocka_unit_test(what_another_cannot_reach_is_not_given_away),
      cmocka_unit_test(an_unknown_user_is_named),
  };
  return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
