/* ns: one clone3 makes all namespaces; the parent then writes the child's ids.
 *
 * clone3 instead of fork and unshare saves one process per job, and makes the child the init of its pid namespace, so
 * that killing it kills every process in there.  libc's fork would also update its cached thread id; here the kernel does
 * it (CLONE_CHILD_SETTID).
 */
#include "jail/jail.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

static enum status clone_child(const struct jail *j, uint32_t id, struct jail_child *out, struct error *err) {
  int fd = -1, group = -1;
  struct clone_args args = {
      .flags = j->clone_flags | CLONE_PIDFD,
      .pidfd = (uint64_t)(uintptr_t)&fd,
      .exit_signal = SIGCHLD,
  };
  if (j->tid_address) {
    args.flags |= CLONE_CHILD_SETTID | CLONE_CHILD_CLEARTID;
    args.child_tid = (uint64_t)(uintptr_t)j->tid_address;
  }
  if (cgroup_is_open(&j->cgroup)) { /* the child starts inside, so its limits hold from the first moment */
    enum status st = cgroup_make(&j->cgroup, id, &group, err);
    if (st)
      return st;
    args.flags |= CLONE_INTO_CGROUP;
    args.cgroup = (uint64_t)group;
  }
  long r = syscall(SYS_clone3, &args, sizeof args);
  if (r == 0)
    return *out = (struct jail_child){.pid = 0, .pidfd = -1}, ST_OK;
  int e = errno;
  if (group >= 0)
    close(group);
  if (r < 0) {
    jail_bury(j, id);
    errno = e;
    return fail(err, ST_DENIED, "a new process%s: %m", j->clone_flags ? " in new namespaces" : "");
  }
  *out = (struct jail_child){.pid = (pid_t)r, .pidfd = fd};
  return ST_OK;
}

enum status jail_spawn(const struct jail *j, uint32_t id, struct jail_child *out, struct error *err) {
  int pair[2];

  *out = (struct jail_child){.pid = -1, .pidfd = -1, .fd = -1};
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair))
    return fail(err, ST_IO, "socketpair: %m");
  enum status st = clone_child(j, id, out, err);
  if (st) {
    close(pair[0]);
    close(pair[1]);
    return st;
  }
  /* with a copy of the parent's end the child would never see the end of the stream */
  const int other = out->pid == 0;
  out->fd = pair[other];
  close(pair[!other]);
  return ST_OK;
}

bool jail_bury(const struct jail *j, uint32_t id) {
  return cgroup_is_open(&j->cgroup) && cgroup_remove(&j->cgroup, id);
}

static enum status write_proc(pid_t pid, const char *name, const char *text, struct error *err) {
  char path[64];
  snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, name);
  int fd = open(path, O_WRONLY | O_CLOEXEC);
  if (fd < 0)
    return fail(err, ST_DENIED, "open %s: %m", path);
  ssize_t n = write(fd, text, strlen(text));
  int e = errno;
  close(fd);
  errno = e;
  return n == (ssize_t)strlen(text) ? ST_OK : fail(err, ST_DENIED, "write %s: %m", path);
}

enum status jail_ns_settle(const struct jail *j, pid_t pid, struct error *err) {
  char map[64];
  enum status st = ST_OK;
  assert(pid > 0);

  if (!(j->clone_flags & CLONE_NEWUSER))
    return ST_OK;
  if (geteuid() != 0) /* the kernel requires this before an unprivileged gid_map */
    st = write_proc(pid, "setgroups", "deny", err);
  snprintf(map, sizeof map, "%d %u 1\n", JAIL_ID, j->outer_gid);
  if (!st)
    st = write_proc(pid, "gid_map", map, err);
  snprintf(map, sizeof map, "%d %u 1\n", JAIL_ID, j->outer_uid);
  if (!st)
    st = write_proc(pid, "uid_map", map, err);
  return st;
}
