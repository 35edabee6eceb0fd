/* cgroup: see cgroup.h.  Files of a control group are read and written as text. */
#include "jail/cgroup.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The leaf for the server and its zygotes: a group whose controllers are enabled may have processes in its leaves only. */
static const char own_leaf[] = "nkx-server";
static const char prefix[] = "nkx-jobs-";

enum { TEXT_MAX = 512, REMOVE_TRIES = 50, REMOVE_WAIT_US = 1000 };

/* ---- small files --------------------------------------------------------------------------------------------------- */

static bool read_text(int dir, const char *name, char text[TEXT_MAX]) {
  int fd = openat(dir, name, O_RDONLY | O_CLOEXEC);
  ssize_t n = fd < 0 ? -1 : read(fd, text, TEXT_MAX - 1);
  if (fd >= 0)
    close(fd);
  text[n > 0 ? n : 0] = 0;
  return n >= 0;
}

static bool write_text(int dir, const char *name, const char *text) {
  int fd = openat(dir, name, O_WRONLY | O_CLOEXEC);
  bool ok = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);
  if (fd >= 0)
    close(fd);
  return ok;
}

/* True if the space-separated list has the word. */
static bool lists(const char *list, const char *word) {
  size_t n = strlen(word);
  for (const char *p = list; (p = strstr(p, word)); p += n)
    if ((p == list || p[-1] == ' ') && (!p[n] || p[n] == ' ' || p[n] == '\n'))
      return true;
  return false;
}

/* ---- the directory ------------------------------------------------------------------------------------------------- */

/* Finds the mount point of version 2; false if it is not mounted. */
static bool find_mount(char path[PATH_MAX]) {
  FILE *f = fopen("/proc/self/mountinfo", "re");
  char line[2 * PATH_MAX];
  bool found = false;
  while (f && !found &&
         fgets(line, sizeof line, f)) /* … root mount-point options - type …; a blank in a path is \040 */
    found = strstr(line, " - cgroup2 ") && sscanf(line, "%*s %*s %*s %*s %4095s", path) == 1;
  if (f)
    fclose(f);
  return found;
}

/* Finds the group of this process; if that is our own leaf, its parent. */
static bool find_own(char path[PATH_MAX]) {
  char mount[PATH_MAX], line[PATH_MAX];
  FILE *f = find_mount(mount) ? fopen("/proc/self/cgroup", "re") : NULL;
  bool found = false;
  while (f && !found && fgets(line, sizeof line, f)) {
    if (strncmp(line, "0::/", 4) != 0)
      continue;
    line[strcspn(line, "\n")] = 0;
    char *slash = strrchr(line, '/');
    if (!strcmp(slash + 1, own_leaf))
      *slash = 0;
    found = (size_t)snprintf(path, PATH_MAX, "%s%s", mount, line + 3) < PATH_MAX;
  }
  if (f)
    fclose(f);
  return found;
}

/* Opens the directory and notes its controllers; -1 with t->why set. */
static int look(const char *dir, struct cgroup_tree *t) {
  char own[PATH_MAX], text[TEXT_MAX];
  *t = (struct cgroup_tree){.fd = -1, .home = -1};
  if (!dir && !find_own(own)) {
    snprintf(t->why, sizeof t->why, "control groups of version 2 are not mounted");
    return -1;
  }
  int fd = open(dir ? dir : own, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0 || !read_text(fd, "cgroup.controllers", text)) {
    snprintf(t->why, sizeof t->why, "%.100s is not a control group of version 2", dir ? dir : own);
    if (fd >= 0)
      close(fd);
    return -1;
  }
  t->has_memory = lists(text, "memory");
  t->has_pids = lists(text, "pids");
  t->has_cpu = lists(text, "cpu");
  if (!t->has_memory || !t->has_pids || !t->has_cpu)
    snprintf(t->why, sizeof t->why, "%.80s lacks the controllers%s%s%s", dir ? dir : own,
             t->has_memory ? "" : " memory", t->has_pids ? "" : " pids", t->has_cpu ? "" : " cpu");
  return fd;
}

void cgroup_look(const char *dir, struct cgroup_tree *t) {
  int fd = look(dir, t);
  if (fd >= 0)
    close(fd);
}

/* ---- opening ------------------------------------------------------------------------------------------------------- */

static void kill_group(int dir) {
  write_text(dir, "cgroup.kill", "1"); /* Linux 5.14; on older kernels the end of the pid namespace kills them */
}

/* rmdir fails with EBUSY while the kernel still removes the last process. */
static bool remove_group(int dir, const char *name) {
  for (int i = 0; i < REMOVE_TRIES; i++) {
    if (!unlinkat(dir, name, AT_REMOVEDIR) || errno == ENOENT)
      return true;
    if (errno != EBUSY)
      return false;
    usleep(REMOVE_WAIT_US);
  }
  return false;
}

/* Removes a jobs' directory and the groups in it. */
static void remove_tree(int home, const char *name) {
  int fd = openat(home, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR *d = fd < 0 ? NULL : fdopendir(fd);
  if (!d) {
    if (fd >= 0)
      close(fd);
    return;
  }
  kill_group(fd);
  for (struct dirent *e; (e = readdir(d));)
    if (e->d_type == DT_DIR && e->d_name[0] != '.')
      remove_group(fd, e->d_name);
  closedir(d);
  remove_group(home, name);
}

/* Removes the directories of zygotes that were killed: the name ends in the pid of the zygote that made it. */
static void remove_stale(int home) {
  int fd = openat(home, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR *d = fd < 0 ? NULL : fdopendir(fd);
  for (struct dirent *e; d && (e = readdir(d));)
    if (!strncmp(e->d_name, prefix, sizeof prefix - 1) && kill(atoi(e->d_name + sizeof prefix - 1), 0) &&
        errno == ESRCH)
      remove_tree(home, e->d_name);
  if (d)
    closedir(d);
}

/* Moves the server, the launcher and this zygote into the leaf, so that the parent group can enable controllers for its
 * children. */
static bool clear_out(int home, pid_t server) {
  char text[32];
  if (mkdirat(home, own_leaf, 0755) && errno != EEXIST)
    return false;
  int leaf = openat(home, own_leaf, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  const pid_t pids[] = {getppid(), getpid(), server};
  bool ok = leaf >= 0;
  for (int i = 0; i < (server ? 3 : 2) && ok; i++) {
    snprintf(text, sizeof text, "%d", (int)pids[i]);
    ok = write_text(leaf, "cgroup.procs", text);
  }
  if (leaf >= 0)
    close(leaf);
  return ok;
}

/* Enables the controllers for the groups in dir. */
static bool enable_controllers(const struct cgroup_tree *t, int dir) {
  char text[64];
  snprintf(text, sizeof text, "%s%s%s", t->has_memory ? "+memory " : "", t->has_pids ? "+pids " : "",
           t->has_cpu ? "+cpu " : "");
  return !text[0] || write_text(dir, "cgroup.subtree_control", text);
}

static bool open_jobs(struct cgroup_tree *t, bool is_own, pid_t server) {
  if (is_own && !clear_out(t->home, server))
    return false;
  remove_stale(t->home);
  snprintf(t->name, sizeof t->name, "%s%d", prefix, (int)getpid());
  if (!enable_controllers(t, t->home) || mkdirat(t->home, t->name, 0755))
    return false;
  t->fd = openat(t->home, t->name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  return t->fd >= 0 && enable_controllers(t, t->fd);
}

void cgroup_open(const char *dir, pid_t server, const struct jail_limits *limits, struct cgroup_tree *t) {
  int home = look(dir, t);
  if (home < 0)
    return;
  t->home = home;
  t->resident_mib = limits->resident_mib;
  if (!dir && t->why[0]) { /* without all controllers it is not worth moving processes */
    close(home);
    t->home = -1;
    return;
  }
  if (open_jobs(t, !dir, server)) {
    t->is_open = true;
    return;
  }
  snprintf(t->why, sizeof t->why, "the control group cannot be used: %s", strerror(errno));
  t->is_open = true; /* so that cgroup_close removes what was made */
  cgroup_close(t);
}

void cgroup_close(struct cgroup_tree *t) {
  if (!t->is_open)
    return;
  if (t->fd >= 0)
    close(t->fd);
  if (t->name[0])
    remove_tree(t->home, t->name);
  if (t->home >= 0)
    close(t->home);
  t->is_open = false;
}

/* ---- a job's group ------------------------------------------------------------------------------------------------- */

static const char *group_name(uint32_t id, char name[24]) {
  snprintf(name, 24, "job-%u", id);
  return name;
}

enum status cgroup_make(const struct cgroup_tree *t, uint32_t id, int *fd, struct error *err) {
  char name[24], most[24];
  assert(t->is_open && t->resident_mib > 0);
  if (mkdirat(t->fd, group_name(id, name), 0755))
    return fail(err, ST_DENIED, "control group: %m");
  int dir = openat(t->fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  snprintf(most, sizeof most, "%lld", (long long)t->resident_mib << 20);
  const struct {
    bool is_there;
    const char *file, *value;
  } limits[] = {
      {t->has_memory, "memory.max", most},
      {t->has_memory, "memory.oom.group", "1"},
      {t->has_pids, "pids.max", "1"},
      {t->has_cpu, "cpu.max", "100000 100000"}, /* one processor */
  };
  bool ok = dir >= 0;
  for (size_t i = 0; i < sizeof limits / sizeof *limits && ok; i++)
    ok = !limits[i].is_there || write_text(dir, limits[i].file, limits[i].value);
  if (ok && t->has_memory && !faccessat(dir, "memory.swap.max", F_OK, 0)) /* absent without swap accounting */
    ok = write_text(dir, "memory.swap.max", "0");
  if (ok) {
    *fd = dir;
    return ST_OK;
  }
  enum status st = fail(err, ST_DENIED, "limits of a control group: %m");
  if (dir >= 0)
    close(dir);
  remove_group(t->fd, name);
  return st;
}

bool cgroup_remove(const struct cgroup_tree *t, uint32_t id) {
  char name[24], text[TEXT_MAX];
  bool was_oom = false;
  assert(t->is_open);
  int dir = openat(t->fd, group_name(id, name), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (dir < 0)
    return false;
  if (t->has_memory && read_text(dir, "memory.events", text)) {
    const char *kills = strstr(text, "oom_kill ");
    was_oom = kills && atoi(kills + strlen("oom_kill ")) > 0;
  }
  kill_group(dir);
  close(dir);
  remove_group(t->fd, name);
  return was_oom;
}
