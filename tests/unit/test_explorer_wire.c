/* The control socket: messages with descriptors, and what is no message. */
#include "pool/wire.h"

#include <setjmp.h>
#include <stdbool.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <dirent.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static int pair[2];

static int open_pair(void **state) {
  (void)state;
  return socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair);
}

static int close_pair(void **state) {
  (void)state;
  close(pair[0]);
  if (pair[1] >= 0)
    close(pair[1]);
  return 0;
}

static int count_fds(void) {
  int n = 0;
  DIR *d = opendir("/proc/self/fd");
  assert_non_null(d);
  while (readdir(d))
    n++;
  closedir(d);
  return n;
}

static void a_message_arrives_with_its_descriptors(void **state) {
  struct ctl_msg out = {.kind = CTL_CHILD, .id = 7, .value = -3, .layers = 0x7fff}, in;
  struct error err;
  struct stat a, b;
  int pipe_fds[2], got[2];
  (void)state;
  assert_int_equal(pipe(pipe_fds), 0);
  for (int n = 0; n <= 2; n++) {
    assert_int_equal(wire_ctl_send(pair[0], &out, pipe_fds, n, &err), ST_OK);
    assert_int_equal(wire_ctl_recv(pair[1], &in, got, &err), ST_OK);
    assert_memory_equal(&in, &out, sizeof in);
    for (int i = 0; i < 2; i++) {
      assert_int_equal(got[i] >= 0, i < n);
      if (got[i] < 0)
        continue;
      assert_true(fcntl(got[i], F_GETFD) & FD_CLOEXEC);
      assert_int_equal(fstat(got[i], &a) | fstat(pipe_fds[i], &b), 0);
      assert_int_equal(a.st_ino, b.st_ino);
      close(got[i]);
    }
  }
  close(pipe_fds[0]);
  close(pipe_fds[1]);
}

static void a_text_without_an_end_gets_one(void **state) {
  struct ctl_msg out = {.kind = CTL_FAIL}, in;
  struct error err;
  int got[2];
  (void)state;
  memset(out.text, 'x', sizeof out.text);
  assert_int_equal(wire_ctl_send(pair[0], &out, NULL, 0, &err), ST_OK);
  assert_int_equal(wire_ctl_recv(pair[1], &in, got, &err), ST_OK);
  assert_int_equal(strlen(in.text), sizeof in.text - 1);
}

static void silence_is_told_from_the_end(void **state) {
  struct ctl_msg in;
  struct error err;
  int got[2];
  (void)state;
  assert_int_equal(wire_ctl_recv(pair[0], &in, got, &err), ST_BUSY);
  close(pair[1]);
  pair[1] = -1;
  assert_int_equal(wire_ctl_recv(pair[0], &in, got, &err), ST_IO);
  assert_int_equal(wire_ctl_send(pair[0], &in, NULL, 0, &err), ST_IO);
}

/* Shorter ones, and descriptors that come with them or in too great a number, leave nothing open. */
static void what_is_no_message_is_refused_and_leaks_nothing(void **state) {
  struct ctl_msg in;
  struct error err;
  int got[2], fds[4] = {0, 1, 2, 0};
  union {
    char bytes[CMSG_SPACE(sizeof fds)];
    struct cmsghdr align;
  } space = {0};
  char half[sizeof(struct ctl_msg) / 2] = {0};
  struct iovec iov = {.iov_base = half, .iov_len = sizeof half};
  struct msghdr h = {
      .msg_iov = &iov, .msg_iovlen = 1, .msg_control = space.bytes, .msg_controllen = sizeof space.bytes};
  struct cmsghdr *c = CMSG_FIRSTHDR(&h);
  (void)state;
  c->cmsg_level = SOL_SOCKET;
  c->cmsg_type = SCM_RIGHTS;
  c->cmsg_len = CMSG_LEN(sizeof fds);
  memcpy(CMSG_DATA(c), fds, sizeof fds);
  int before = count_fds();
  assert_true(sendmsg(pair[0], &h, 0) > 0);
  assert_int_equal(wire_ctl_recv(pair[1], &in, got, &err), ST_BUG);
  assert_int_equal(got[0], -1);
  assert_int_equal(got[1], -1);
  assert_int_equal(count_fds(), before);
}

static void lengths_are_little_endian_and_whole(void **state) {
  static const uint32_t values[] = {0, 1, 255, 256, 0x01020304, UINT32_MAX};
  unsigned char h[WIRE_HEADER];
  (void)state;
  for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
    wire_put_len(h, values[i]);
    assert_int_equal(h[0], values[i] & 255);
    assert_int_equal(h[3], values[i] >> 24);
    assert_int_equal(wire_get_len(h), values[i]);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(a_message_arrives_with_its_descriptors, open_pair, close_pair),
      cmocka_unit_test_setup_teardown(a_text_without_an_end_gets_one, open_pair, close_pair),
      cmocka_unit_test_setup_teardown(silence_is_told_from_the_end, open_pair, close_pair),
      cmocka_unit_test_setup_teardown(what_is_no_message_is_refused_and_leaks_nothing, open_pair, close_pair),
      cmocka_unit_test(lengths_are_little_endian_and_whole),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
