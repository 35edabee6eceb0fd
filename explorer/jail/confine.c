/* confine: see confine.h.
 *
 * The user changes first, because that needs root; then capabilities and new privileges go, and Landlock and the filter
 * come last, because they forbid the calls that the earlier steps need.
 */
#include "jail/confine.h"

#include <assert.h>
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define BIT(layer) (1u << (layer))

struct user_ids {
  uid_t uid;
  gid_t gid;
};

/* Keeps the first reason why a layer is missing. */
static void note(struct confinement *c, const char *what, const char *detail) {
  if (!c->why[0])
    snprintf(c->why, sizeof c->why, "%.40s: %.140s", what, detail);
}

/* ---- another user --------------------------------------------------------------------------------------------------
 */

static bool is_number(const char *text) {
  size_t n = 0;
  while (isdigit((unsigned char)text[n]))
    n++;
  return n > 0 && n < 10 && !text[n];
}

static enum status find_user(const struct confine_plan *plan, struct user_ids *out, struct error *err) {
  const char *name = plan->user ? plan->user : "nkx";
  struct stat s;
  if (plan->user && is_number(plan->user)) {
    *out = (struct user_ids){(uid_t)atoi(plan->user), (gid_t)atoi(plan->user)};
    return out->uid ? ST_OK : fail(err, ST_INPUT, "--user: 0 is root");
  }
  if (!plan->user && plan->n_own && !stat(plan->own[0], &s) && s.st_uid) {
    *out = (struct user_ids){s.st_uid, s.st_gid};
    return ST_OK;
  }
  const struct passwd *pw = getpwnam(name);
  if (plan->user && (!pw || !pw->pw_uid))
    return fail(err, ST_INPUT, "--user: %.60s is no user but root", name);
  *out = pw && pw->pw_uid ? (struct user_ids){pw->pw_uid, pw->pw_gid} : (struct user_ids){CONFINE_UID, CONFINE_UID};
  return ST_OK;
}

static bool is_of_family(const char *name, const char *family) {
  return family && *family && !strncmp(name, family, strlen(family));
}

/* False if the directory holds other files than the server's: then it must keep its owner. */
static bool holds_family_only(int dir, const char *family) {
  int fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR *d = fd < 0 ? NULL : fdopendir(fd);
  bool ok = d != NULL;
  for (const struct dirent *e; ok && (e = readdir(d));)
    ok = !strcmp(e->d_name, ".") || !strcmp(e->d_name, "..") || is_of_family(e->d_name, family);
  if (d)
    closedir(d);
  return ok;
}

/* Gives the family's files that belong to `from` to another user.  An attacker in the server may have planted links there:
 * no symbolic link is followed, and a file with a second hard link keeps its owner. */
static void hand_over_files(int dir, const char *family, uid_t from, const struct user_ids *to) {
  int at = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR *d = at < 0 ? NULL : fdopendir(at);
  struct stat s;
  for (const struct dirent *e; d && (e = readdir(d));) {
    if (!is_of_family(e->d_name, family))
      continue;
    int fd = openat(dir, e->d_name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd >= 0 && !fstat(fd, &s) && S_ISREG(s.st_mode) && s.st_nlink == 1 && s.st_uid == from)
      (void)!fchown(fd, to->uid, to->gid); /* if it fails, `unreachable` reports it later */
    if (fd >= 0)
      close(fd);
  }
  if (d)
    closedir(d);
}

/* Gives a directory and the family's files in it from one user to another.  Only a directory that belongs to `from`, that
 * nobody else may write to, and that holds nothing else changes its owner. */
static void hand_over(const char *path, const char *family, uid_t from, const struct user_ids *to) {
  struct stat s;
  int dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (dir < 0)
    return;
  if (!fstat(dir, &s) && s.st_uid == from && !(s.st_mode & 022) && holds_family_only(dir, family) &&
      !fchown(dir, to->uid, to->gid))
    s.st_uid = to->uid;
  if (s.st_uid == to->uid)
    hand_over_files(dir, family, from, to);
  close(dir);
}

/* Whether this user may search all parent directories; the rights of the path itself do not matter. */
static bool can_look_up(const char *path) {
  struct stat s;
  return !stat(path, &s) || errno != EACCES;
}

/* The first path of the plan that this user cannot use, or NULL.  Before the hand-over, the rights of own[] themselves do
 * not matter. */
static const char *unreachable(const struct confine_plan *plan, bool is_before_hand_over) {
  for (int i = 0; i < plan->n_read; i++)
    if (plan->read[i] && faccessat(AT_FDCWD, plan->read[i], R_OK, AT_EACCESS) && errno == EACCES)
      return plan->read[i];
  for (int i = 0; i < plan->n_own; i++) {
    if (!plan->own[i])
      continue;
    if (is_before_hand_over ? !can_look_up(plan->own[i])
                            : faccessat(AT_FDCWD, plan->own[i], R_OK | W_OK | X_OK, AT_EACCESS))
      return plan->own[i];
  }
  return NULL;
}

/* Calls `unreachable` as the other user.  ST_BUG if the process cannot become root again. */
static enum status ask_as(const struct user_ids *user, const struct confine_plan *plan, bool is_before_hand_over,
                          const char **out, struct error *err) {
  if (setegid(user->gid) || seteuid(user->uid))
    *out = "another user's identity";
  else
    *out = unreachable(plan, is_before_hand_over);
  return seteuid(0) || setegid(0) ? fail(err, ST_BUG, "cannot become root again: %m") : ST_OK;
}

/* Changes from root to the user, if that user can reach all paths of the plan; a checkout below /root, for example, is out
 * of reach for everybody else. */
static enum status change_user(const struct confine_plan *plan, struct confinement *c, struct error *err) {
  const struct user_ids root = {0, 0};
  struct user_ids to = {0, 0};
  const char *what = NULL;
  char text[160];
  int death_signal = 0;
  enum status st = find_user(plan, &to, err);
  if (!st && setgroups(0, NULL))
    return note(c, "groups", strerror(errno)), ST_OK;
  if (!st)
    st = ask_as(&to, plan, true, &what, err);
  for (int i = 0; i < plan->n_own && !st && !what; i++)
    if (plan->own[i])
      hand_over(plan->own[i], plan->family, 0, &to);
  if (!st && !what)
    st = ask_as(&to, plan, false, &what, err);
  if (st)
    return st;
  if (what && !plan->may_stay_root)
    return fail(err, ST_INPUT,
                "root has started this, and user %u cannot reach %.100s: name another --user, move it, or allow "
                "--confine as-root",
                to.uid, what);
  if (what) { /* stay root, but without capabilities, which could not read another user's files: take them back */
    snprintf(text, sizeof text, "user %u cannot reach %.120s", to.uid, what);
    note(c, "user", text);
    for (int i = 0; i < plan->n_own; i++)
      if (plan->own[i])
        hand_over(plan->own[i], plan->family, to.uid, &root);
    return ST_OK;
  }
  prctl(PR_GET_PDEATHSIG, &death_signal); /* a change of ids clears it */
  if (setresgid(to.gid, to.gid, to.gid) || setresuid(to.uid, to.uid, to.uid))
    return fail(err, ST_BUG, "cannot become another user: %m");
  prctl(PR_SET_PDEATHSIG, death_signal);
  prctl(PR_SET_DUMPABLE, 1); /* otherwise /proc/self would belong to root */
  return ST_OK;
}

/* ---- the layers ----------------------------------------------------------------------------------------------------
 */

static int enter_landlock(const struct confine_plan *plan) {
  struct wall_path paths[2 * CONFINE_PATHS_MAX];
  const struct wall_extent extent = {
      .no_bind = true, .no_connect = !plan->may_connect, .no_abstract = !plan->may_connect, .no_signal = true};
  int n = 0, abi = wall_landlock_abi();
  assert(plan->n_own <= CONFINE_PATHS_MAX && plan->n_read <= CONFINE_PATHS_MAX);
  for (int i = 0; i < plan->n_own; i++)
    if (plan->own[i] && !access(plan->own[i], F_OK))
      paths[n++] = (struct wall_path){plan->own[i], WALL_OWN};
  for (int i = 0; i < plan->n_read; i++)
    if (plan->read[i] && !access(plan->read[i], F_OK))
      paths[n++] = (struct wall_path){plan->read[i], WALL_READ};
  return abi ? wall_landlock(abi, paths, n, &extent) : ENOSYS;
}

/* Notes whether a step succeeded; error: 0 or errno. */
static void set_layer(struct confinement *c, enum confine_layer layer, int error) {
  assert((unsigned)layer < CONFINE_COUNT);
  if (error)
    note(c, confine_layer_name(layer), strerror(error));
  else
    c->layers |= BIT(layer);
}

enum status confine(const struct confine_plan *wanted, struct confinement *out, struct error *err) {
  struct confine_plan present = *wanted, *plan = &present;
  struct confinement c = {0};
  struct sock_fprog filter = {0};
  bool was_root = !geteuid();
  for (int i = 0; i < plan->n_read; i++) /* a path that does not exist is not needed */
    if (plan->read[i] && access(plan->read[i], F_OK))
      plan->read[i] = NULL;
  enum status st = wall_filter_build(WALL_SERVER, &filter, err);
  int bound = was_root ? wall_caps_bound() : 0; /* needs root */
  if (!st && was_root)
    st = change_user(plan, &c, err);
  if (st) {
    free(filter.filter);
    return st;
  }
  c.uid = geteuid();
  if (c.uid)
    c.layers |= BIT(CONFINE_USER);
  set_layer(&c, CONFINE_CAPS, bound ? bound : wall_caps_drop());
  set_layer(&c, CONFINE_NO_NEW_PRIVS, prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ? errno : 0);
  set_layer(&c, CONFINE_LANDLOCK, enter_landlock(plan));
  set_layer(&c, CONFINE_SECCOMP, wall_filter_install(&filter));
  free(filter.filter);
  *out = c;
  return ST_OK;
}

enum status confine_probe(struct confinement *out, struct error *err) {
  const struct confine_plan plan = {.n_read = 1, .read = {"/usr"}, .may_stay_root = true};
  enum status st = ST_OK;
  int ends[2];
  if (pipe2(ends, O_CLOEXEC))
    return fail(err, ST_IO, "pipe: %m");
  pid_t pid = fork();
  if (pid == 0) {
    struct confinement c;
    bool ok = !confine(&plan, &c, err) && write(ends[1], &c, sizeof c) == (ssize_t)sizeof c;
    _exit(!ok);
  }
  close(ends[1]);
  if (pid < 0 || read(ends[0], out, sizeof *out) != (ssize_t)sizeof *out)
    st = fail(err, ST_DENIED, "the server cannot be confined");
  close(ends[0]);
  if (pid > 0)
    waitpid(pid, NULL, 0);
  return st;
}
