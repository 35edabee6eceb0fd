/* seccomp: system call filters, compiled from a list by libseccomp.  The workers' filter is compiled once in the zygote;
 * each child installs it.
 *
 * libseccomp's program checks the architecture first: a call with an x32 or 32-bit number kills the process.
 */
#include "jail/wall.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <seccomp.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

/* Not every libc defines the locks on open file descriptions. */
#ifndef F_OFD_GETLK
#define F_OFD_GETLK 36
#define F_OFD_SETLK 37
#define F_OFD_SETLKW 38
#endif

#define FUTEX_WAIT_BITSET_PRIVATE_REALTIME (FUTEX_WAIT_BITSET_PRIVATE | FUTEX_CLOCK_REALTIME)

struct rule {
  const char *name;
  uint32_t action;
  int n_args;
  struct scmp_arg_cmp arg;
};

#define ALLOW_BITS(name, a, bits) \
  {#name, SCMP_ACT_ALLOW, 1, {.arg = (a), .op = SCMP_CMP_MASKED_EQ, .datum_a = (bits), .datum_b = (bits)}},
#define ALLOW_CLEAR(name, a, bits) \
  {#name, SCMP_ACT_ALLOW, 1, {.arg = (a), .op = SCMP_CMP_MASKED_EQ, .datum_a = (bits), .datum_b = 0}},
#define KILL(name) {#name, SCMP_ACT_KILL_PROCESS, 0, {0}},
#define ALLOW(name) {#name, SCMP_ACT_ALLOW, 0, {0}},
#define ALLOW_EQ(name, a, v) {#name, SCMP_ACT_ALLOW, 1, {.arg = (a), .op = SCMP_CMP_EQ, .datum_a = (v)}},
#define DENY(name, e) {#name, SCMP_ACT_ERRNO(e), 0, {0}},
#define DENY_BITS(name, a, bits, e) \
  {#name, SCMP_ACT_ERRNO(e), 1, {.arg = (a), .op = SCMP_CMP_MASKED_EQ, .datum_a = (bits), .datum_b = (bits)}},
#define DENY_EQ(name, a, v, e) {#name, SCMP_ACT_ERRNO(e), 1, {.arg = (a), .op = SCMP_CMP_EQ, .datum_a = (v)}},
#define DENY_NE(name, a, v, e) {#name, SCMP_ACT_ERRNO(e), 1, {.arg = (a), .op = SCMP_CMP_NE, .datum_a = (v)}},
static const struct rule worker_rules[] = {
#include "jail/syscalls.def"
};
static const struct rule server_rules[] = {
#include "jail/server_syscalls.def"
};

static const struct {
  uint32_t otherwise; /* the action for calls that are not in the list */
  const struct rule *rules;
  size_t n;
} filters[] = {
    [WALL_WORKER] = {SCMP_ACT_KILL_PROCESS, worker_rules, sizeof worker_rules / sizeof *worker_rules},
    [WALL_SERVER] = {SCMP_ACT_ERRNO(EPERM), server_rules, sizeof server_rules / sizeof *server_rules},
};

static enum status add_rule(scmp_filter_ctx ctx, const struct rule *r, struct error *err) {
  int nr = seccomp_syscall_resolve_name(r->name);
  if (nr < 0) /* this architecture does not have it */
    return ST_OK;
  int e = seccomp_rule_add_array(ctx, r->action, nr, (unsigned)r->n_args, &r->arg);
  return e ? fail(err, ST_BUG, "seccomp rule for %s: error %d", r->name, -e) : ST_OK;
}

/* Reads the compiled program; libseccomp only writes it to a descriptor. */
static enum status read_program(scmp_filter_ctx ctx, struct sock_fprog *out, struct error *err) {
  enum status st = ST_BUG;
  struct stat s;
  void *bytes = NULL;
  int fd = memfd_create("filter", MFD_CLOEXEC);

  if (fd < 0 || seccomp_export_bpf(ctx, fd) || fstat(fd, &s) || !(bytes = malloc((size_t)s.st_size)) ||
      pread(fd, bytes, (size_t)s.st_size, 0) != s.st_size) {
    st = fail(err, ST_BUG, "seccomp program: %m");
    free(bytes);
  } else {
    st = ST_OK;
    *out =
        (struct sock_fprog){.len = (unsigned short)((size_t)s.st_size / sizeof(struct sock_filter)), .filter = bytes};
  }
  if (fd >= 0)
    close(fd);
  return st;
}

enum status wall_filter_build(enum wall_filter which, struct sock_fprog *out, struct error *err) {
  assert((size_t)which < sizeof filters / sizeof *filters);
  scmp_filter_ctx ctx = seccomp_init(filters[which].otherwise);
  enum status st = ST_OK;

  if (!ctx)
    return fail(err, ST_NOMEM, "seccomp");
  if (seccomp_attr_set(ctx, SCMP_FLTATR_CTL_OPTIMIZE,
                       2)) /* a binary tree instead of a list: the filter runs on every call */
    st = fail(err, ST_BUG, "seccomp: no binary tree");
  if (!st && seccomp_attr_set(ctx, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS))
    st = fail(err, ST_BUG, "seccomp: no action for other architectures");
  for (size_t i = 0; i < filters[which].n && !st; i++)
    st = add_rule(ctx, &filters[which].rules[i], err);
  if (!st)
    st = read_program(ctx, out, err);
  seccomp_release(ctx);
  return st;
}

int wall_filter_install(const struct sock_fprog *filter) {
  return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, filter, 0, 0) ? errno : 0;
}
