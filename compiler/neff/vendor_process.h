/* vendor_process: runs a program of somebody else in a directory of its own, with limits, so that nothing of it is left.
 *
 * Where the kernel allows it, the program has namespaces of its own: no network, and process numbers that end with it, so that no
 * descendant survives.  Elsewhere its process group is killed.  Its environment has PATH, HOME, TMPDIR and LANG only.
 *
 * With walls it also sees a file system that it can only read, but for its directory and an empty /dev/shm and /var/tmp of its own,
 * and without the files of one folder; it gains no privileges.  A machine that does not let these be raised does not run it.
 */
#ifndef NEFF_VENDOR_PROCESS_H
#define NEFF_VENDOR_PROCESS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/error.h"

struct vendor_process {
  const char *const *argv; /* ends with NULL; argv[0] is a path */
  const char *dir;         /* its working directory, and its HOME; temporary files are in dir/tmp */
  int wall_ms,
      memory_mib; /* the second: of all processes together, which are looked at four times a second, and of the address
                              space of each, which the kernel holds to at once */
  bool has_walls;
  const char *hidden; /* with walls: a folder that is empty for it; NULL: none */
  void (*log)(void *user, const char *line);
  void *user;
};

struct vendor_end {
  bool is_started, is_late; /* late: it was killed at wall_ms */
  bool is_too_large;        /* it was killed because its processes had more than memory_mib together */
  bool lacks_walls;         /* it was not started because they could not be raised */
  int exit_status;          /* -1: a signal ended it */
  int signal;
  const char *tail; /* the end of what it wrote to standard output and error, whole lines, UTF-8 */
};

enum { VENDOR_TAIL_MAX = 16 << 10 };

/* Returns ST_IO or ST_NOMEM if no process can be made.  Everything lives in a. */
MUST_USE enum status vendor_process_run(struct arena *a, const struct vendor_process *p, struct vendor_end *out,
                                        struct error *err);

/* Makes an empty directory in $TMPDIR or /tmp, and removes one with all that is in it. */
MUST_USE enum status vendor_dir_make(struct arena *a, const char **out, struct error *err);
void vendor_dir_remove(const char *dir);

#endif
