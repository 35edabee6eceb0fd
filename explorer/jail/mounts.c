/* mounts: an empty read-only root with the few trees that imports and passes read.
 *
 * The outer user clones the trees as detached mounts while it can still reach them (a checkout may be below a directory
 * that only its owner may search) and before a mount covers them.  They are then attached to a new tmpfs, which becomes
 * the root.  There is no /proc, no /sys, no device but /dev/null, and nothing is writable.
 */
#include "jail/jail.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* A directory that exists on every system: the new root is mounted over it and then becomes "/". */
static const char stage_dir[] = "/usr";

int jail_mounts_open(const struct jail *j, struct jail_trees *t) {
  if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL))
    return errno;
  for (int i = 0; i < j->n_paths; i++) {
    struct mount_attr attr = {.attr_set = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID};
    attr.attr_set |= j->paths[i].rights == WALL_DEVICE ? MOUNT_ATTR_NOEXEC : MOUNT_ATTR_NODEV;
    t->fd[i] = open_tree(AT_FDCWD, j->paths[i].path, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE);
    if (t->fd[i] < 0 || mount_setattr(t->fd[i], "", AT_EMPTY_PATH | AT_RECURSIVE, &attr, sizeof attr))
      return errno;
  }
  return 0;
}

/* Makes the parent directories of `path` (relative), and path itself as a directory or an empty file.  0 or errno. */
static int make_place(const char *path, bool is_file) {
  char part[PATH_MAX];
  size_t n = strlen(path);
  if (n >= sizeof part)
    return ENAMETOOLONG;
  for (size_t i = 1; i <= n; i++) {
    if (path[i] != '/' && path[i])
      continue;
    memcpy(part, path, i);
    part[i] = 0;
    if (i == n && is_file) {
      int fd = open(part, O_WRONLY | O_CREAT | O_CLOEXEC, 0444);
      if (fd < 0)
        return errno;
      close(fd);
    } else if (mkdir(part, 0755) && errno != EEXIST) {
      return errno;
    }
  }
  return 0;
}

static int attach(const struct jail *j, const struct jail_trees *t) {
  for (int i = 0; i < j->n_paths; i++) {
    const char *place = j->paths[i].path + 1; /* relative to the new root */
    assert(j->paths[i].path[0] == '/');
    struct stat s;
    if (fstat(t->fd[i], &s))
      return errno;
    int e = make_place(place, !S_ISDIR(s.st_mode));
    if (e)
      return e;
    if (move_mount(t->fd[i], "", AT_FDCWD, place, MOVE_MOUNT_F_EMPTY_PATH))
      return errno;
  }
  return 0;
}

int jail_mounts_pivot(const struct jail *j, const struct jail_trees *t) {
  struct mount_attr attr = {.attr_set = MOUNT_ATTR_RDONLY};

  /* each directory takes one page; noexec only concerns the tmpfs itself, which holds no files */
  if (mount("nkx", stage_dir, "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC, "size=64k,nr_inodes=256,mode=0755") ||
      chdir(stage_dir))
    return errno;
  int e = attach(j, t);
  if (e)
    return e;
  if (syscall(SYS_pivot_root, ".", ".") || umount2(".", MNT_DETACH) || chdir("/"))
    return errno;
  return mount_setattr(AT_FDCWD, "/", 0, &attr, sizeof attr) ? errno : 0;
}
