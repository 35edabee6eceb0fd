/* The bytes on a child's socket, in two pieces: whatever comes, its work ends or waits for more, and never twice. */
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log.h"
#include "fuzz_frames.h"
#include "pool/internal.h"

enum { PIECE_MAX = 64 << 10 }; /* what a socket certainly takes */

static void give(struct pool *p, int fd, const char *data, size_t n) {
  struct kid *k = kid_find(p, p->last_kid_id);
  if (k->state != KID_RUNNING)
    return; /* its end of the socket is closed */
  FUZZ_CHECK(!n || send(fd, data, n, MSG_DONTWAIT) == (ssize_t)n);
  kid_event(p, k, EPOLLIN, 0);
}

static struct work *new_work(void) {
  struct job job;
  job_init(&job);
  job.source = "";
  struct work *w = work_new(&job);
  FUZZ_CHECK(w);
  return w;
}

/* data[0] says where the bytes are cut. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static struct pool pool;
  int pair[2];

  log_set_level(LOG_ERROR);
  if (size < 1 || size > PIECE_MAX)
    return 0;
  if (!pool.cfg.job_timeout_ms) {
    pool.cfg.job_timeout_ms = 15000;
    pool.epoll_fd = epoll_create1(EPOLL_CLOEXEC);
  }
  FUZZ_CHECK(!socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair));
  struct work *w = new_work();
  struct queued q = {.work = work_ref(w), .tries = TRIES_MAX}; /* another death is a verdict */
  kid_add(&pool, &pool.zygotes[0], &(struct ctl_msg){.id = 7}, pair[0], -1);
  FUZZ_CHECK(pool.n_kids == 1);
  kid_give(&pool, &pool.kids[0], &q, 0);

  size_t cut = 1 + (size - 1) * data[0] / 256;
  char *text = frames_of(w, data, size);
  give(&pool, pair[1], text + 1, cut - 1);
  give(&pool, pair[1], text + cut, size - cut);
  free(text);
  bool was_over = work_look(w, NULL, NULL) == WORK_ENDED;
  FUZZ_CHECK(was_over == (kid_find(&pool, pool.last_kid_id)->state != KID_RUNNING));
  close(pair[1]);
  kid_exited(&pool, kid_find(&pool, pool.last_kid_id), &(struct ctl_msg){.id = 7, .value = 0});
  FUZZ_CHECK(pool.n_kids == 0 && work_look(w, NULL, NULL) == WORK_ENDED);
  work_unref(w);
  return 0;
}
