/* Landlock: a second layer in addition to a worker's read-only mounts, and the only one around the server's files.
 *
 * Every right that the kernel's ABI knows is handled, so that whatever is not granted is denied.  The structures are
 * declared here because the system's headers may be older than the kernel.
 */
#include "jail/wall.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

struct ruleset_attr {
  uint64_t handled_fs, handled_net, scoped;
};
struct path_beneath_attr {
  uint64_t allowed;
  int32_t parent_fd;
} __attribute__((packed));

enum { CREATE_RULESET_VERSION = 1, RULE_PATH_BENEATH = 1 };
enum {
  FS_WRITE_FILE = 1 << 1,
  FS_READ_FILE = 1 << 2,
  FS_READ_DIR = 1 << 3,
  FS_REMOVE_DIR = 1 << 4,
  FS_REMOVE_FILE = 1 << 5,
  FS_MAKE_DIR = 1 << 7,
  FS_MAKE_REG = 1 << 8,
  FS_MAKE_SOCK = 1 << 9,
  FS_TRUNCATE = 1 << 14, /* ABI 3 */
};
enum { NET_BIND = 1 << 0, NET_CONNECT = 1 << 1, SCOPE_ABSTRACT = 1 << 0, SCOPE_SIGNAL = 1 << 1 };
#define LAST(n) ((UINT64_C(1) << (n)) - 1)

int wall_landlock_abi(void) {
  long abi = syscall(SYS_landlock_create_ruleset, NULL, 0, CREATE_RULESET_VERSION);
  return abi > 0 ? (int)abi : 0;
}

/* The file system rights of each ABI: 13 in the first; 2 adds refer, 3 truncate, 5 ioctl on devices. */
static uint64_t fs_rights(int abi) {
  return abi >= 5 ? LAST(16) : abi >= 3 ? LAST(15) : abi == 2 ? LAST(14) : LAST(13);
}

static int allow(int ruleset, const struct wall_path *p, uint64_t handled) {
  struct stat s;
  struct path_beneath_attr rule = {.parent_fd = open(p->path, O_PATH | O_CLOEXEC)};
  if (rule.parent_fd < 0)
    return errno;
  int e = fstat(rule.parent_fd, &s) ? errno : 0;
  rule.allowed = FS_READ_FILE;
  if (S_ISDIR(s.st_mode))
    rule.allowed |= FS_READ_DIR;
  if (p->rights != WALL_READ)
    rule.allowed |= FS_WRITE_FILE | FS_TRUNCATE;
  if (p->rights == WALL_OWN)
    rule.allowed |= FS_REMOVE_DIR | FS_REMOVE_FILE | FS_MAKE_DIR | FS_MAKE_REG | FS_MAKE_SOCK;
  rule.allowed &= handled;
  if (!e && syscall(SYS_landlock_add_rule, ruleset, RULE_PATH_BENEATH, &rule, 0))
    e = errno;
  close(rule.parent_fd);
  return e;
}

int wall_landlock(int abi, const struct wall_path *paths, int n, const struct wall_extent *extent) {
  assert(abi >= 1 && n >= 0);
  struct ruleset_attr attr = {.handled_fs = fs_rights(abi)};
  size_t size = sizeof attr.handled_fs;
  if (abi >= 4) {
    attr.handled_net = (extent->no_bind ? NET_BIND : 0) | (extent->no_connect ? NET_CONNECT : 0);
    size += sizeof attr.handled_net;
  }
  if (abi >= 6) {
    attr.scoped = (extent->no_abstract ? SCOPE_ABSTRACT : 0) | (extent->no_signal ? SCOPE_SIGNAL : 0);
    size += sizeof attr.scoped;
  }
  int ruleset = (int)syscall(SYS_landlock_create_ruleset, &attr, size, 0);
  if (ruleset < 0)
    return errno;
  int e = 0;
  for (int i = 0; i < n && !e; i++)
    e = allow(ruleset, &paths[i], attr.handled_fs);
  if (!e && syscall(SYS_landlock_restrict_self, ruleset, 0))
    e = errno;
  close(ruleset);
  return e;
}
