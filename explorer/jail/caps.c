/* Capabilities: none is held and none can be gained. */
#include "jail/wall.h"

#include <errno.h>
#include <linux/capability.h>
#include <linux/securebits.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

int wall_caps_bound(void) {
  if (prctl(PR_SET_SECUREBITS, SECBIT_NOROOT | SECBIT_NOROOT_LOCKED | SECBIT_NO_SETUID_FIXUP_LOCKED |
                                   SECBIT_KEEP_CAPS_LOCKED | SECBIT_NO_CAP_AMBIENT_RAISE |
                                   SECBIT_NO_CAP_AMBIENT_RAISE_LOCKED))
    return errno;
  for (int cap = 0; prctl(PR_CAPBSET_READ, cap) >= 0; cap++)
    if (prctl(PR_CAPBSET_DROP, cap))
      return errno;
  return 0;
}

int wall_caps_drop(void) {
  struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
  struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = {{0}};
  return syscall(SYS_capset, &head, none) ? errno : 0;
}
