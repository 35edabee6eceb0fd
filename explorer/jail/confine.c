#include "jail/confine.h"

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

struct who {
  uid_t uid;
  gid_t gid;
};

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

static enum status find_user(const struct confine_plan *plan, struct who *out, struct error *err) {
  const char *name = plan->user ? plan->user : "nkx";
  struct stat s;
  if (plan->user && is_number(plan->user)) {
    *out = (struct who){(uid_t)atoi(plan->user), (gid_t)atoi(plan->user)};
    return out->uid ? ST_OK : fail(err, ST_INPUT, "--user: 0 is root");
  }
  if (!plan->user && plan->n_own && !stat(plan->own[0], &s) && s.st_uid) {
    *out = (struct who){s.st_uid, s.st_gid};
    return ST_OK;
  }
  const struct passwd *pw = getpwnam(name);
  if (plan->user && (!pw || !pw->pw_uid))
    return fail(err, ST_INPUT, "--user: %.60s is no user but root", name);
  *out = pw && pw->pw_uid ? (struct who){pw->pw_uid, pw->pw_gid} : (struct who){CONFINE_UID, CONFINE_UID};
  return ST_OK;
}

static bool is_of_family(const char *name, const char *family) {
  return family && *family && !strncmp(name, family, strlen(family));
}

/* False if somebody else's files lie there: then the directory is not ours to give away. */
static bool holds_family_only(int dir, const char *family) {
  int fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR *d = fd < 0 ? NULL : fdopendir(fd);
  bool ok = d;
  for (const struct dirent *e; ok && (e = readdir(d));)
    ok = !strcmp(e->d_name, ".") || !strcmp(e->d_name, "..") || is_of_family(e->d_name, family);
  if (d)
    closedir(d);
  return ok;
}

/* The files of the family that belong to one get another owner.  The server may have planted links there: none is
 * followed, and a file with a second name stays as it is. */
static void hand_over_files(int dir, const char *family, uid_t from, const struct who *to) {
  int at = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR *d = at < 0 ? NULL : fdopendir(at);
  struct stat s;
  for (const struct dirent *e; d && (e = readdir(d));) {
    if (!is_of_family(e->d_name, family))
      continue;
    int fd = openat(dir, e->d_name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd >= 0 && !fstat(fd, &s) && S_ISREG(s.st_mode) && s.st_nlink == 1 && s.st_uid == from)
      (void)!fchown(fd, to->uid, to->gid); /* if not, the look at what is within reach finds it */
    if (fd >= 0)
      close(fd);
  }
  if (d)
    closedir(d);
}

/* A directory that is one's alone and has nothing but the server's files becomes another's, with them. */
static void hand_over(const char *path, const char *family, uid_t from, const struct who *to) {
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

/* A directory can be looked up if all those above it may be entered; its own rights do not count yet. */
static bool can_look_up(const char *path) {
  struct stat s;
  return !stat(path, &s) || errno != EACCES;
}

/* Can this user get there, and work there?  NULL, or the first path that it cannot. */
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

/* The answer as the other user; root again afterwards, or ST_BUG. */
static enum status ask_as(const struct who *who, const struct confine_plan *plan, bool is_before_hand_over,
                          const char **out, struct error *err) {
  if (setegid(who->gid) || seteuid(who->uid))
    *out = "another user";
  else
    *out = unreachable(plan, is_before_hand_over);
  return seteuid(0) || setegid(0) ? fail(err, ST_BUG, "root does not come back: %m") : ST_OK;
}

/* Root becomes the user, if that one can do the work: a checkout below /root, say, is out of everybody else's reach. */
static enum status change_user(const struct confine_plan *plan, struct confinement *c, struct error *err) {
  const struct who root = {0, 0};
  struct who to = {0, 0};
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
  if (what) { /* root without its powers does the work; what is another's it could not even read */
    snprintf(text, sizeof text, "%u has no way to %.120s", to.uid, what);
    note(c, "user", text);
    for (int i = 0; i < plan->n_own; i++)
      if (plan->own[i])
        hand_over(plan->own[i], plan->family, to.uid, &root);
    return ST_OK;
  }
  prctl(PR_GET_PDEATHSIG, &death_signal); /* changing ids clears it */
  if (setresgid(to.gid, to.gid, to.gid) || setresuid(to.uid, to.uid, to.uid))
    return fail(err, ST_BUG, "another user: %m");
  prctl(PR_SET_PDEATHSIG, death_signal);
  prctl(PR_SET_DUMPABLE, 1); /* or /proc/self would be root's */
  return ST_OK;
}

/* ---- the walls -----------------------------------------------------------------------------------------------------
 */

static int raise_landlock(const struct confine_plan *plan) {
  struct wall_path paths[2 * CONFINE_PATHS_MAX];
  const struct wall_extent extent = {
      .no_bind = true, .no_connect = !plan->may_connect, .no_abstract = !plan->may_connect, .no_signal = true};
  int n = 0, abi = wall_landlock_abi();
  for (int i = 0; i < plan->n_own; i++)
    if (plan->own[i] && !access(plan->own[i], F_OK))
      paths[n++] = (struct wall_path){plan->own[i], WALL_OWN};
  for (int i = 0; i < plan->n_read; i++)
    if (plan->read[i] && !access(plan->read[i], F_OK))
      paths[n++] = (struct wall_path){plan->read[i], WALL_READ};
  return abi ? wall_landlock(abi, paths, n, &extent) : ENOSYS;
}

static void stands(struct confinement *c, enum confine_layer layer, int error) {
  if (error)
    note(c, confine_layer_name(layer), strerror(error));
  else
    c->layers |= BIT(layer);
}

enum status confine(const struct confine_plan *wish, struct confinement *out, struct error *err) {
  struct confine_plan there = *wish, *plan = &there;
  struct confinement c = {0};
  struct sock_fprog filter = {0};
  bool was_root = !geteuid();
  for (int i = 0; i < plan->n_read; i++) /* what is not there is not missed */
    if (plan->read[i] && access(plan->read[i], F_OK))
      plan->read[i] = NULL;
  enum status st = wall_filter_build(WALL_SERVER, &filter, err);
  int bound = was_root ? wall_caps_bound() : 0; /* while it can be */
  if (!st && was_root)
    st = change_user(plan, &c, err);
  if (st) {
    free(filter.filter);
    return st;
  }
  c.uid = geteuid();
  if (c.uid)
    c.layers |= BIT(CONFINE_USER);
  stands(&c, CONFINE_CAPS, bound ? bound : wall_caps_drop());
  stands(&c, CONFINE_NO_NEW_PRIVS, prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ? errno : 0);
  stands(&c, CONFINE_LANDLOCK, raise_landlock(plan));
  stands(&c, CONFINE_SECCOMP, wall_filter_install(&filter));
  free(filter.filter);
  *out = c;
  return ST_OK;
}

enum status confine_probe(struct confinement *out, struct error *err) {
  const struct confine_plan plan = {.n_read = 1, .read = {"/usr"}};
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
    st = fail(err, ST_DENIED, "the server's own walls cannot be raised");
  close(ends[0]);
  if (pid > 0)
    waitpid(pid, NULL, 0);
  return st;
}
