/* doctor: what this machine offers for the jail, found out by building one. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "jail/jail.h"

enum { EXIT_NO_JAIL = 1, PROBE_FD = 3 };

static const char *const advice[LAYER_COUNT] = {
    [LAYER_USER] = "allow unprivileged user namespaces, or run as root with CAP_SYS_ADMIN",
    [LAYER_MOUNT] = "the kernel must be 5.12 or newer and allow mounts in a user namespace",
    [LAYER_IDS] = "uid 65534 must exist in the outer user namespace",
    [LAYER_LANDLOCK] = "boot with landlock in the list of security modules",
    [LAYER_SECCOMP] = "the kernel must have seccomp filters",
    [LAYER_CGROUP_NS] = "the kernel must have cgroup namespaces",
    [LAYER_NO_USERNS] = "not needed: the system call filter refuses nested namespaces too",
};

/* The report of a child that built its jail and left. */
static enum status probe(struct jail *j, struct jail_report *r, struct error *err) {
  int pair[2], pidfd;
  pid_t pid;

  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair))
    return fail(err, ST_IO, "socketpair: %m");
  enum status st = jail_spawn(j, &pid, &pidfd, err);
  if (!st && pid == 0) {
    int fd = pair[1];
    st = jail_enter(j, &fd, PROBE_FD, r); /* r says more than st */
    _exit(write(fd, r, sizeof *r) == (ssize_t)sizeof *r ? 0 : 1);
  }
  close(pair[1]);
  if (!st) {
    st = jail_settle(j, pid, pair[0], err);
    if (!st && read(pair[0], r, sizeof *r) != (ssize_t)sizeof *r)
      st = fail(err, ST_DENIED, "the child died while its jail was built");
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    close(pidfd);
  }
  close(pair[0]);
  return st;
}

int jail_doctor(void) {
  struct jail j = {0};
  struct jail_report r = {.failed = -1};
  struct error err;

  enum status st = jail_add_path(&j, "/usr/lib", false, &err);
  if (!st)
    st = jail_add_path(&j, "/dev/null", true, &err);
  if (!st)
    st = jail_prepare(&j, &err);
  if (!st)
    st = probe(&j, &r, &err);
  if (st) {
    printf("jail: %s\n%s\n", err.text, advice[LAYER_USER]);
    jail_clear(&j);
    return EXIT_NO_JAIL;
  }
  for (int l = 0; l < LAYER_COUNT; l++) {
    bool on = r.layers >> l & 1;
    bool required = jail_layers_required() >> l & 1;
    printf("%-18s %s", jail_layer_name((enum jail_layer)l), on ? "yes" : required ? "NO" : "no");
    if (l == r.failed)
      printf(" (%s)", strerror(r.error));
    if (!on && advice[l])
      printf(": %s", advice[l]);
    printf("\n");
  }
  printf("landlock ABI       %d\n", j.landlock_abi);
  jail_clear(&j);
  bool whole = (r.layers & jail_layers_required()) == jail_layers_required();
  puts(whole ? "Kernels can be compiled here." : "Kernels cannot be compiled here: a required layer is missing.");
  return whole ? 0 : EXIT_NO_JAIL;
}
