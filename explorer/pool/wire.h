/* wire: the messages between server, launcher, zygote and child.
 *
 * Server and zygote share a SOCK_SEQPACKET socket, and so do server and launcher; each message is one struct ctl_msg,
 * with two descriptors attached to CTL_CHILD and one to CTL_START, CTL_COPY and CTL_ADOPT.
 *
 * Server and child share a SOCK_STREAM socket, made by the zygote: the server writes one record (the job), and the
 * child answers with records (frames).  A record is a length in four bytes, little-endian, and that many bytes.
 *
 * A zygote runs no user code and is trusted; a child is not, once it has read its job.
 */
#ifndef POOL_WIRE_H
#define POOL_WIRE_H

#include <stdint.h>

#include "base/error.h"

enum ctl_kind {
  CTL_HELLO = 1, /* zygote: process `id`, warmed up in value ms; level: of its jail; text: what a higher one needs */
  CTL_SPAWN,     /* server: make `value` more children */
  CTL_CHILD,     /* zygote: child `id`, pid `value`, is in its jail and waits; descriptors: its socket, its pidfd */
  CTL_EXIT,      /* zygote: child `id` has ended; value: its wait status */
  CTL_SIGNAL,    /* server: send child `id` the signal `value`, unless it has ended */
  CTL_START, /* server to launcher: start a zygote of version `value` (versions.h) and call it `id`; descriptor: its end of its
                    control socket */
  CTL_KILL, /* server to launcher: end zygote `id` */
  CTL_GONE, /* launcher: zygote `id` has ended, or could not be started */
  CTL_FAIL, /* zygote: a child could not be made or jailed; text says why; value: enum ctl_fault */
  CTL_NICE, /* server: give child `id` the nice value `value` */
  CTL_PING, /* server to launcher, which sends it back: a sign of life; value: the server answers requests */
  CTL_COPY, /* server to launcher: make a copy of yourself, `id`; descriptor: its end of its control socket */
  CTL_ADOPT, /* launcher: zygote `id` was started before it was asked for; descriptor: the server's end of its control socket */
};

enum ctl_fault {
  FAULT_LAYER,   /* a step failed; trying again may help, but if it keeps failing there is no jail here */
  FAULT_DIED,    /* the child ended before it could report: an accident, unless it always happens */
  FAULT_LASTING, /* trying again soon is of no use */
};

/* Counted up when a worker of an earlier release could not serve this server any more: another layout of the messages, another form
 * of its options, or a job or frames that it would not understand. */
enum { WIRE_PROTOCOL = 1 };

struct ctl_msg {
  uint32_t kind;
  uint32_t id;
  int32_t value;
  int32_t cpu_ms, rss_kb; /* CTL_EXIT: what the child used */
  uint32_t layers;        /* CTL_CHILD: active layers of the jail, a bit each (jail/layer.h) */
  int32_t landlock_abi;   /* CTL_CHILD, CTL_HELLO */
  int32_t jail_us;        /* CTL_CHILD: how long the jail took, from clone to its last layer */
  int32_t level;          /* CTL_HELLO: enum jail_level */
  int32_t has_cgroup;     /* CTL_HELLO: the kernel limits the memory of each child */
  int32_t was_oom;        /* CTL_EXIT: its control group ended it because of its memory */
  char text[200];         /* NUL-terminated */
};
_Static_assert(sizeof(struct ctl_msg) == 244, "another layout is another WIRE_PROTOCOL");

enum {
  WIRE_CTL_FD = 3,         /* of the zygote: its control socket */
  WIRE_JOB_FD = 3,         /* of a child: its job socket */
  WIRE_HEADER = 4,         /* bytes of a record's length */
  JOB_WIRE_MAX = 12 << 20, /* bytes of a job: job_dump writes a NEFF of JOB_NEFF_MAX as base64 */
  EXIT_JOB_LOST = 3,       /* a child's exit status: the job did not arrive whole */
  EXIT_JOB_FAULT = 4       /* … : the compiler failed because of a bug */
};

/* Sends m with n_fds (at most 2) descriptors.  ST_IO when the other side is gone. */
MUST_USE enum status wire_ctl_send(int fd, const struct ctl_msg *m, const int *fds, int n_fds, struct error *err);
/* Receives one message; fds[0..1] are descriptors or -1 and belong to the caller.  ST_IO at the end of the stream,
 * ST_BUSY when a non-blocking socket has nothing, ST_BUG when it is not a message. */
MUST_USE enum status wire_ctl_recv(int fd, struct ctl_msg *m, int fds[2], struct error *err);

static inline void wire_put_len(unsigned char h[WIRE_HEADER], uint32_t n) {
  for (int i = 0; i < WIRE_HEADER; i++)
    h[i] = (unsigned char)(n >> (8 * i));
}
static inline uint32_t wire_get_len(const unsigned char h[WIRE_HEADER]) {
  return (uint32_t)h[0] | (uint32_t)h[1] << 8 | (uint32_t)h[2] << 16 | (uint32_t)h[3] << 24;
}

#endif
