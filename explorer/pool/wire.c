#include "pool/wire.h"

#include <assert.h>
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

union fd_space {
  char bytes[CMSG_SPACE(2 * sizeof(int))];
  struct cmsghdr align;
};

enum status wire_ctl_send(int fd, const struct ctl_msg *m, const int *fds, int n_fds, struct error *err) {
  union fd_space space = {0};
  struct iovec iov = {.iov_base = (void *)m, .iov_len = sizeof *m};
  struct msghdr h = {.msg_iov = &iov, .msg_iovlen = 1};

  assert(n_fds >= 0 && n_fds <= 2);
  if (n_fds) {
    h.msg_control = space.bytes;
    h.msg_controllen = CMSG_SPACE((size_t)n_fds * sizeof(int));
    struct cmsghdr *c = CMSG_FIRSTHDR(&h);
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN((size_t)n_fds * sizeof(int));
    memcpy(CMSG_DATA(c), fds, (size_t)n_fds * sizeof(int));
  }
  for (;;) {
    if (sendmsg(fd, &h, MSG_NOSIGNAL) == (ssize_t)sizeof *m)
      return ST_OK;
    if (errno != EINTR)
      return fail(err, ST_IO, "control socket: %m");
  }
}

/* Takes the descriptors from h.  More than two cannot arrive, because the space is for two. */
static void take_fds(struct msghdr *h, int fds[2]) {
  for (struct cmsghdr *c = CMSG_FIRSTHDR(h); c; c = CMSG_NXTHDR(h, c)) {
    if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
      continue;
    size_t n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    memcpy(fds, CMSG_DATA(c), (n > 2 ? 2 : n) * sizeof(int));
  }
}

enum status wire_ctl_recv(int fd, struct ctl_msg *m, int fds[2], struct error *err) {
  union fd_space space = {0};
  struct iovec iov = {.iov_base = m, .iov_len = sizeof *m};
  struct msghdr h = {
      .msg_iov = &iov, .msg_iovlen = 1, .msg_control = space.bytes, .msg_controllen = sizeof space.bytes};
  ssize_t n;

  fds[0] = fds[1] = -1;
  do
    n = recvmsg(fd, &h, MSG_CMSG_CLOEXEC);
  while (n < 0 && errno == EINTR);
  if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
    return ST_BUSY;
  if (n <= 0)
    return fail(err, ST_IO, n ? "control socket: %m" : "control socket: closed");
  take_fds(&h, fds);
  if (n != (ssize_t)sizeof *m) {
    for (int i = 0; i < 2; i++)
      if (fds[i] >= 0)
        close(fds[i]);
    fds[0] = fds[1] = -1;
    return fail(err, ST_BUG, "control message of %zd bytes", n);
  }
  m->text[sizeof m->text - 1] = 0;
  return ST_OK;
}
