/* The order of the layers.
 *
 * Outer identity first (open the trees to show, before they are covered), then the inner identity (what is made from
 * here on belongs to "nobody"), then what needs capabilities in the new namespaces (mounts, host name), then limits
 * and capabilities away, and the system call filter last, because everything above needs calls it forbids.
 */
#include "jail/jail.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum status jail_add_path(struct jail *j, const char *path, bool is_device, struct error *err) {
  struct stat s;
  if (stat(path, &s))
    return ST_OK;
  if (j->n_paths == JAIL_PATHS_MAX)
    return fail(err, ST_BUG, "more than %d paths in the jail", JAIL_PATHS_MAX);
  j->paths[j->n_paths++] = (struct jail_path){.path = path, .is_device = is_device};
  return ST_OK;
}

static int enter_ids(void) {
  if (setgroups(0, NULL) && errno != EPERM) /* EPERM: not root, and setgroups is denied for good */
    return errno;
  if (setresgid(JAIL_ID, JAIL_ID, JAIL_ID) || setresuid(JAIL_ID, JAIL_ID, JAIL_ID))
    return errno;
  /* changing ids cleared it; a parent that died before this line has closed the job socket, which the child reads */
  return prctl(PR_SET_PDEATHSIG, SIGKILL) ? errno : 0;
}

/* No user namespace inside this one, where the kernel lets us say so; /proc is still the host's here. */
static bool forbid_nested(void) {
  int fd = open("/proc/sys/user/max_user_namespaces", O_WRONLY | O_CLOEXEC);
  bool ok = fd >= 0 && write(fd, "0", 1) == 1;
  if (fd >= 0)
    close(fd);
  return ok;
}

/* Stdio becomes /dev/null, keep_fd the job socket, and nothing else stays open. */
static int keep_only(int *job_fd, int keep_fd) {
  int null = open("/dev/null", O_RDWR | O_CLOEXEC);
  if (null < 0)
    return errno;
  for (int fd = 0; fd < 3; fd++)
    if (dup2(null, fd) < 0)
      return errno;
  if (*job_fd != keep_fd) {
    if (dup2(*job_fd, keep_fd) < 0)
      return errno;
    *job_fd = keep_fd;
  }
  return close_range((unsigned)keep_fd + 1, ~0u, 0) ? errno : 0;
}

/* A child inherits the zygote's blocked signals and handlers; it starts like any program, but for the signal that says
 * that its time is up, which CPython handles (trace/trace.h). */
static void reset_signals(void) {
  sigset_t none;
  for (int s = 1; s < NSIG; s++)
    if (s != SIGPROF)
      signal(s, SIG_DFL);
  signal(SIGPIPE, SIG_IGN);
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, NULL);
}

static bool stands(struct jail_report *r, enum jail_layer layer, int error) {
  if (error) {
    r->failed = (int32_t)layer;
    r->error = error;
    return false;
  }
  r->layers |= 1u << layer;
  return true;
}

static bool raise_layers(const struct jail *j, int *job_fd, int keep_fd, struct jail_report *r) {
  struct jail_trees trees;

  if (!stands(r, LAYER_MOUNT, jail_mounts_open(j, &trees)) || !stands(r, LAYER_IDS, enter_ids()))
    return false;
  if (forbid_nested())
    stands(r, LAYER_NO_USERNS, 0);
  if (!stands(r, LAYER_UTS, sethostname("nkx", 3) ? errno : 0) ||
      !stands(r, LAYER_MOUNT, jail_mounts_pivot(j, &trees)) || !stands(r, LAYER_FDS, keep_only(job_fd, keep_fd)) ||
      !stands(r, LAYER_LIMITS, jail_limits_set(j)) || !stands(r, LAYER_CAPS, jail_caps_drop()) ||
      !stands(r, LAYER_NO_NEW_PRIVS, prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ? errno : 0))
    return false;
  if (j->landlock_abi) {
    if (!stands(r, LAYER_LANDLOCK, jail_landlock_restrict(j)))
      return false;
    r->landlock_abi = j->landlock_abi;
  }
  return stands(r, LAYER_SECCOMP, jail_seccomp_install(&j->filter));
}

enum status jail_enter(const struct jail *j, int *job_fd, int keep_fd, struct jail_report *r) {
  char go;

  *r = (struct jail_report){.failed = -1};
  reset_signals();
  if (prctl(PR_SET_PDEATHSIG, SIGKILL))
    return ST_DENIED;
  if (read(*job_fd, &go, 1) != 1) /* the parent has written our ids, or is gone */
    return ST_IO;
  r->layers = 1u << LAYER_USER | 1u << LAYER_PID | 1u << LAYER_NET | 1u << LAYER_IPC;
  if (j->clone_flags & CLONE_NEWCGROUP)
    r->layers |= 1u << LAYER_CGROUP_NS;
  if (!raise_layers(j, job_fd, keep_fd, r))
    return ST_DENIED;
  return (r->layers & jail_layers_required()) == jail_layers_required() ? ST_OK : ST_DENIED;
}

enum status jail_settle(const struct jail *j, pid_t pid, int gate, struct error *err) {
  enum status st = jail_ns_settle(j, pid, err);
  if (!st && write(gate, "g", 1) != 1)
    st = fail(err, ST_IO, "child gone before its jail was built");
  return st;
}

enum status jail_prepare(struct jail *j, struct error *err) {
  uint64_t now = jail_address_space_now();
  pid_t *tid = NULL;

  if (!now)
    return fail(err, ST_BUG, "cannot read /proc/self/statm");
  j->address_space = now + ((uint64_t)JAIL_MEMORY_MB << 20);
  j->landlock_abi = jail_landlock_abi();
  j->clone_flags = CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS;
  if (!access("/proc/self/ns/cgroup", F_OK))
    j->clone_flags |= CLONE_NEWCGROUP;
  j->outer_uid = geteuid() ? geteuid() : JAIL_ID;
  j->outer_gid = geteuid() ? getegid() : JAIL_ID;
  /* libc registered the address of its cached id when it started the main thread */
  if (!prctl(PR_GET_TID_ADDRESS, &tid, 0, 0, 0) && tid && *tid == gettid())
    j->tid_address = tid;
  return jail_seccomp_build(&j->filter, err);
}

void jail_clear(struct jail *j) {
  free(j->filter.filter);
  *j = (struct jail){0};
}
