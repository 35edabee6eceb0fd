/* A message on the control socket, of any size: it is taken whole or refused, and its text always ends. */
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "fuzz.h"
#include "pool/wire.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static int pair[2] = {-1, -1};
  struct ctl_msg m, same;
  struct error err;
  int fds[2];

  if (size == 0 || size > 4096)
    return 0;
  if (pair[0] < 0)
    FUZZ_CHECK(!socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair));
  FUZZ_CHECK(send(pair[1], data, size, 0) == (ssize_t)size);
  enum status st = wire_ctl_recv(pair[0], &m, fds, &err);
  FUZZ_CHECK(fds[0] == -1 && fds[1] == -1);
  FUZZ_CHECK(size >= sizeof m ? st == ST_OK : st == ST_BUG);
  FUZZ_CHECK(wire_ctl_recv(pair[0], &same, fds, &err) == ST_BUSY); /* nothing is left of it */
  if (st)
    return 0;
  FUZZ_CHECK(memchr(m.text, 0, sizeof m.text));
  FUZZ_CHECK(wire_ctl_send(pair[1], &m, NULL, 0, &err) == ST_OK);
  FUZZ_CHECK(wire_ctl_recv(pair[0], &same, fds, &err) == ST_OK && !memcmp(&m, &same, sizeof m));
  return 0;
}
