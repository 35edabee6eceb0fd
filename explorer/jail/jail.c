/* The order of the layers.
 *
 * With namespaces: the child first opens, as the outer user, the trees that the jail shows, before a mount covers them.
 * Then it takes the inner ids, so that everything it makes belongs to "nobody".  Then come the steps that need
 * capabilities in the new namespaces (mounts, host name), then the limits, then it drops its capabilities.  The system
 * call filter comes last, because all other steps need calls that it forbids.  Without namespaces the ids change after
 * Landlock, because Landlock's rules open paths that "nobody" may not reach.
 */
#include "jail/jail.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum status jail_add_path(struct jail *j, const char *path, bool is_device, struct error *err) {
  struct stat s;
  if (stat(path, &s))
    return ST_OK;
  assert(path[0] == '/');
  if (j->n_paths == JAIL_PATHS_MAX)
    return fail(err, ST_BUG, "more than %d paths in the jail", JAIL_PATHS_MAX);
  j->paths[j->n_paths++] = (struct wall_path){path, is_device ? WALL_DEVICE : WALL_READ};
  return ST_OK;
}

static int enter_ids(void) {
  if (setgroups(0, NULL) && errno != EPERM) /* EPERM: not root; ns.c has denied setgroups */
    return errno;
  if (setresgid(JAIL_ID, JAIL_ID, JAIL_ID) || setresuid(JAIL_ID, JAIL_ID, JAIL_ID))
    return errno;
  /* a change of ids clears it; if the parent ended before this line, reading the job socket fails */
  return prctl(PR_SET_PDEATHSIG, SIGKILL) ? errno : 0;
}

/* Forbids user namespaces inside this one, if the kernel allows that; /proc is still the host's here. */
static bool forbid_nested(void) {
  int fd = open("/proc/sys/user/max_user_namespaces", O_WRONLY | O_CLOEXEC);
  bool ok = fd >= 0 && write(fd, "0", 1) == 1;
  if (fd >= 0)
    close(fd);
  return ok;
}

/* Puts /dev/null on stdio and the job socket on keep_fd, and closes everything else. */
static int keep_only(int *job_fd, int keep_fd) {
  assert(*job_fd >= 0 && keep_fd >= 3);
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

/* A child inherits the zygote's blocked signals and handlers.  It gets the defaults of a new program, except for SIGPROF,
 * the warning about processor time, which CPython handles (trace/trace.h). */
static void reset_signals(void) {
  sigset_t none;
  for (int s = 1; s < NSIG; s++)
    if (s != SIGPROF)
      signal(s, SIG_DFL);
  signal(SIGPIPE, SIG_IGN);
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, NULL);
}

/* Notes whether a step succeeded; error: 0 or errno.  False if the level requires the layer. */
static bool set_layer(const struct jail *j, struct jail_report *r, enum jail_layer layer, int error) {
  assert((unsigned)layer < LAYER_COUNT && error >= 0);
  uint32_t off = j->missing | (j->is_probing ? 0 : j->failing);
  if (!error && off >> layer & 1)
    error = ENOSYS;
  if (!error) {
    r->layers |= 1u << layer;
    return true;
  }
  r->failed = (int32_t)layer;
  r->error = error;
  return !(jail_layers_needed(j->level) >> layer & 1);
}

static int enter_landlock(const struct jail *j) {
  static const struct wall_extent nothing = {
      .no_bind = true, .no_connect = true, .no_abstract = true, .no_signal = true};
  return j->landlock_abi ? wall_landlock(j->landlock_abi, j->paths, j->n_paths, &nothing) : ENOSYS;
}

/* With namespaces: a file system of its own, the ids of "nobody", no capabilities. */
static bool enter_with_namespaces(const struct jail *j, int *job_fd, int keep_fd, struct jail_report *r) {
  struct jail_trees trees;
  bool is_nested_off;

  if (!set_layer(j, r, LAYER_MOUNT, jail_mounts_open(j, &trees)) || !set_layer(j, r, LAYER_IDS, enter_ids()))
    return false;
  is_nested_off = forbid_nested();
  set_layer(j, r, LAYER_NO_USERNS, is_nested_off ? 0 : EPERM);
  return set_layer(j, r, LAYER_UTS, sethostname("nkx", 3) ? errno : 0) &&
         set_layer(j, r, LAYER_MOUNT, jail_mounts_pivot(j, &trees)) &&
         set_layer(j, r, LAYER_FDS, keep_only(job_fd, keep_fd)) && set_layer(j, r, LAYER_LIMITS, jail_limits_set(j)) &&
         set_layer(j, r, LAYER_CAPS, wall_caps_bound() || wall_caps_drop() ? errno : 0) &&
         set_layer(j, r, LAYER_NO_NEW_PRIVS, prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ? errno : 0) &&
         set_layer(j, r, LAYER_LANDLOCK, enter_landlock(j));
}

/* Without namespaces: Landlock before the ids, while all paths can still be opened; the ids before the capabilities,
 * which a change of ids needs. */
static bool enter_without_namespaces(const struct jail *j, int *job_fd, int keep_fd, struct jail_report *r) {
  return set_layer(j, r, LAYER_FDS, keep_only(job_fd, keep_fd)) &&
         set_layer(j, r, LAYER_NO_NEW_PRIVS, prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ? errno : 0) &&
         set_layer(j, r, LAYER_LANDLOCK, enter_landlock(j)) && set_layer(j, r, LAYER_LIMITS, jail_limits_set(j)) &&
         set_layer(j, r, LAYER_CAPS, wall_caps_bound() ? errno : 0) && set_layer(j, r, LAYER_IDS, enter_ids()) &&
         set_layer(j, r, LAYER_CAPS, wall_caps_drop() ? errno : 0);
}

enum status jail_enter(const struct jail *j, int *job_fd, int keep_fd, struct jail_report *r) {
  const uint64_t ns = j->clone_flags;
  char go;

  *r = (struct jail_report){.failed = -1, .landlock_abi = j->landlock_abi};
  reset_signals();
  if (prctl(PR_SET_PDEATHSIG, SIGKILL))
    return ST_DENIED;
  if (read(*job_fd, &go, 1) != 1) /* the parent has written the ids, or has ended */
    return ST_IO;
  bool ok = set_layer(j, r, LAYER_USER, ns & CLONE_NEWUSER ? 0 : ENOSYS) &&
            set_layer(j, r, LAYER_PID, ns & CLONE_NEWPID ? 0 : ENOSYS) &&
            set_layer(j, r, LAYER_NET, ns & CLONE_NEWNET || j->is_cut_off ? 0 : ENOSYS) &&
            set_layer(j, r, LAYER_IPC, ns & CLONE_NEWIPC ? 0 : ENOSYS) &&
            set_layer(j, r, LAYER_CGROUP_NS, ns & CLONE_NEWCGROUP ? 0 : ENOSYS) &&
            set_layer(j, r, LAYER_CGROUP, cgroup_is_whole(&j->cgroup) ? 0 : ENOSYS);
  ok = ok && (ns ? enter_with_namespaces : enter_without_namespaces)(j, job_fd, keep_fd, r) &&
       set_layer(j, r, LAYER_SECCOMP, wall_filter_install(&j->filter));
  if (!ok)
    return ST_DENIED;
  r->failed = -1; /* a layer may be missing, but the level does not need it */
  return ST_OK;
}

enum status jail_settle(const struct jail *j, const struct jail_child *c, struct error *err) {
  enum status st = jail_ns_settle(j, c->pid, err);
  if (!st && send(c->fd, "g", 1, MSG_NOSIGNAL) != 1)
    st = fail(err, ST_IO, "the child ended before its jail was built");
  return st;
}

void jail_end(const struct jail *j, uint32_t id, const struct jail_child *c) {
  kill(c->pid, SIGKILL);
  waitpid(c->pid, NULL, 0);
  jail_bury(j, id);
  close(c->pidfd);
  close(c->fd);
}

/* ---- which level this machine reaches ------------------------------------------------------------------------------ */

enum { PROBE_FD = 3, PROBE_ID = 0 };

enum status jail_probe(struct jail *j, struct jail_report *r, struct error *err) {
  struct jail_child c;

  *r = (struct jail_report){.failed = -1};
  j->is_probing = true;
  enum status st = jail_spawn(j, PROBE_ID, &c, err);
  if (!st && c.pid == 0) {
    (void)!jail_enter(j, &c.fd, PROBE_FD, r); /* the parent reads r, not the status */
    _exit(write(c.fd, r, sizeof *r) == (ssize_t)sizeof *r ? 0 : 1);
  }
  j->is_probing = false;
  if (st)
    return st;
  st = jail_settle(j, &c, err);
  if (!st && read(c.fd, r, sizeof *r) != (ssize_t)sizeof *r)
    st = fail(err, ST_DENIED, "the child died while its jail was built");
  jail_end(j, PROBE_ID, &c);
  return st;
}

/* True if a child with these flags reaches the level. */
static bool reaches(struct jail *j, enum jail_level level, uint64_t clone_flags) {
  struct jail_report r;
  struct error err;

  j->level = level;
  j->clone_flags = clone_flags;
  if (jail_probe(j, &r, &err)) {
    snprintf(j->why, sizeof j->why, "%.150s", err.text);
    return false;
  }
  if (r.failed < 0)
    return true;
  snprintf(j->why, sizeof j->why, "layer %s: %s", jail_layer_name((enum jail_layer)r.failed), strerror(r.error));
  return false;
}

static enum status find_level(struct jail *j, const char *cgroup_dir, struct error *err) {
  uint64_t all = CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWUTS;
  /* All children share one empty network namespace: making and ending one for each costs as much as the rest of a jail
   * (the kernel scans all its TCP tables), and the filter allows no child to make a socket in it.  If the zygote may not
   * unshare, each child gets its own. */
  j->is_cut_off = !unshare(CLONE_NEWNET);
  if (!j->is_cut_off)
    all |= CLONE_NEWNET;
  if (!access("/proc/self/ns/cgroup", F_OK))
    all |= CLONE_NEWCGROUP;
  cgroup_open(cgroup_dir, j->server_pid, &j->limits, &j->cgroup);
  bool has_group = cgroup_is_whole(&j->cgroup) && !(j->missing >> LAYER_CGROUP & 1);
  if (reaches(j, has_group ? JAIL_A : JAIL_B, all)) {
    if (!has_group)
      snprintf(j->why, sizeof j->why, "%s", j->cgroup.why);
    return ST_OK;
  }
  char without[sizeof j->why];
  memcpy(without, j->why, sizeof without);
  if (reaches(j, JAIL_C, 0)) {
    memcpy(j->why, without, sizeof without); /* why it is not B */
    return ST_OK;
  }
  if (j->min_level == JAIL_NONE && reaches(j, JAIL_NONE, 0))
    return ST_OK;
  j->level = JAIL_NONE;
  return j->min_level == JAIL_NONE ? fail(err, ST_DENIED, "no child can be made: %.120s", j->why) : ST_OK;
}

enum status jail_prepare(struct jail *j, const char *cgroup_dir, struct error *err) {
  uint64_t now = jail_address_space_now();
  pid_t *tid = NULL;

  if (!now)
    return fail(err, ST_BUG, "cannot read /proc/self/statm");
  j->address_space = now + ((uint64_t)j->limits.memory_mib << 20);
  j->landlock_abi = j->missing >> LAYER_LANDLOCK & 1 ? 0 : wall_landlock_abi();
  j->outer_uid = geteuid() ? geteuid() : JAIL_ID;
  j->outer_gid = geteuid() ? getegid() : JAIL_ID;
  /* libc registered the address of its cached thread id when it started the main thread */
  if (!prctl(PR_GET_TID_ADDRESS, &tid, 0, 0, 0) && tid && *tid == gettid())
    j->tid_address = tid;
  enum status st = wall_filter_build(WALL_WORKER, &j->filter, err);
  if (!st)
    st = find_level(j, cgroup_dir, err);
  if (!st && j->level < j->min_level)
    st = fail(err, ST_DENIED, "the jail reaches level %s, but %s is required: %.140s", jail_level_name(j->level),
              jail_level_name(j->min_level), j->why);
  return st;
}

void jail_clear(struct jail *j) {
  cgroup_close(&j->cgroup);
  free(j->filter.filter);
  *j = (struct jail){0};
}
