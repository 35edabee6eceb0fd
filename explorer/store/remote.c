#include "store/remote.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/log.h"
#include "store/store.h"

enum {
  VERSION = 1,
  BACKLOG = 8,
  PEER_S = 5,    /* how long a peer may take */
  ANSWER_S = 60, /* how long the writing thread may take */
};

struct question {
  uint32_t version;
  struct remote_order order;
};

struct reply {
  uint32_t status; /* enum status */
  uint32_t found;
  char text[200];
};

struct remote {
  struct store *store;
  void (*changed)(void *user);
  void *user;
  struct sockaddr_un address;
  int fd, stop_fd;
  pthread_t thread;
};

static enum status make_address(const char *path, struct sockaddr_un *out, struct error *err) {
  *out = (struct sockaddr_un){.sun_family = AF_UNIX};
  const int n = snprintf(out->sun_path, sizeof out->sun_path, "%s-control", path);
  return n > 0 && (size_t)n < sizeof out->sun_path ? ST_OK
                                                   : fail(err, ST_IO, "%.150s: too long for a socket's name", path);
}

static int set_patience(int fd, int seconds) {
  const struct timeval t = {.tv_sec = seconds};
  return setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &t, sizeof t) || setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &t, sizeof t);
}

/* ---- the server -------------------------------------------------------------------------------------------------- */

/* One order on its way through the writing thread. */
struct change {
  struct store_task task; /* first: a struct store_task * is also a struct change * */
  const struct remote_order *order;
  pthread_mutex_t lock;
  pthread_cond_t over;
  bool is_over, found;
  enum status st;
  struct error err;
};

static void run_change(struct store_task *t, struct db *db) {
  struct change *c = (struct change *)t;
  bool done;
  const enum status st =
      c->order->at_ms ? store_expire_snippet(db, &c->order->link, NULL, c->order->at_ms, &c->found, &done, &c->err)
                      : store_delete_snippet(db, &c->order->link, NULL, &c->found, &done, &c->err);
  pthread_mutex_lock(&c->lock);
  c->st = st;
  c->is_over = true;
  pthread_cond_signal(&c->over);
  pthread_mutex_unlock(&c->lock);
}

static void carry_out(struct remote *r, const struct remote_order *o, struct reply *out) {
  struct change c = {.task.run = run_change, .order = o};
  pthread_mutex_init(&c.lock, NULL);
  pthread_cond_init(&c.over, NULL);
  if (store_submit(r->store, STORE_WRITE, &c.task)) {
    pthread_mutex_lock(&c.lock);
    while (!c.is_over)
      pthread_cond_wait(&c.over, &c.lock);
    pthread_mutex_unlock(&c.lock);
    r->changed(r->user); /* after a failure, too: it may have been deleted */
  } else {
    c.st = fail(&c.err, ST_BUSY, "too many writes wait");
  }
  pthread_cond_destroy(&c.over);
  pthread_mutex_destroy(&c.lock);
  *out = (struct reply){.status = (uint32_t)c.st, .found = c.found};
  if (c.st)
    snprintf(out->text, sizeof out->text, "%.199s", c.err.text);
}

static void audit(int fd, const struct remote_order *o, const struct reply *reply) {
  struct ucred peer = {.uid = (uid_t)-1};
  socklen_t len = sizeof peer;
  char name[IDENT_NAME_SIZE];
  if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len))
    log_debug("store_control", "%m");
  ident_name(&o->link, name);
  log_info("audit", "what=%s outcome=%s link=%s by=operator uid=%d", o->at_ms ? "link-expires" : "link-deleted",
           reply->status  ? status_name((enum status)reply->status)
           : reply->found ? "ok"
                          : "not-found",
           name, (int)peer.uid);
}

static void serve_peer(struct remote *r, int fd) {
  struct question q;
  struct reply reply;
  if (set_patience(fd, PEER_S) || recv(fd, &q, sizeof q, 0) != (ssize_t)sizeof q)
    return;
  if (q.version == VERSION) {
    carry_out(r, &q.order, &reply);
    audit(fd, &q.order, &reply);
  } else {
    reply = (struct reply){.status = ST_DENIED};
    snprintf(reply.text, sizeof reply.text, "the server is of another version");
  }
  if (send(fd, &reply, sizeof reply, MSG_NOSIGNAL) < 0)
    log_debug("store_control", "%m");
}

static void *run(void *user) {
  struct remote *r = user;
  struct pollfd p[2] = {{.fd = r->fd, .events = POLLIN}, {.fd = r->stop_fd, .events = POLLIN}};
  for (;;) {
    if (poll(p, 2, -1) < 0 && errno != EINTR)
      break;
    if (p[1].revents)
      break;
    int fd = p[0].revents ? accept4(r->fd, NULL, NULL, SOCK_CLOEXEC) : -1;
    if (fd < 0)
      continue;
    serve_peer(r, fd);
    close(fd);
  }
  return NULL;
}

static void remote_free(struct remote *r) {
  if (r->fd >= 0)
    close(r->fd);
  if (r->stop_fd >= 0)
    close(r->stop_fd);
  free(r);
}

enum status remote_start(struct store *s, const char *path, void (*changed)(void *user), void *user,
                         struct remote **out, struct error *err) {
  struct remote *r = calloc(1, sizeof *r);
  if (!r)
    return fail(err, ST_NOMEM, "store");
  *r = (struct remote){.store = s, .changed = changed, .user = user, .fd = -1, .stop_fd = -1};
  enum status st = make_address(path, &r->address, err);
  if (!st) {
    unlink(r->address.sun_path); /* of a server that was killed; this process has the lock */
    r->stop_fd = eventfd(0, EFD_CLOEXEC);
    r->fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (r->stop_fd < 0 || r->fd < 0 || bind(r->fd, (struct sockaddr *)&r->address, sizeof r->address) ||
        listen(r->fd, BACKLOG))
      st = fail(err, ST_IO, "%.150s: %m", r->address.sun_path);
  }
  if (!st && pthread_create(&r->thread, NULL, run, r))
    st = fail(err, ST_IO, "no thread");
  if (st)
    remote_free(r);
  else
    *out = r;
  return st;
}

void remote_stop(struct remote *r) {
  if (!r)
    return;
  const uint64_t one = 1;
  if (write(r->stop_fd, &one, sizeof one) == (ssize_t)sizeof one)
    pthread_join(r->thread, NULL);
  unlink(r->address.sun_path);
  remote_free(r);
}

/* ---- the command ------------------------------------------------------------------------------------------------- */

enum status remote_ask(const char *path, const struct remote_order *o, bool *found, struct error *err) {
  struct question q = {.version = VERSION, .order = *o};
  struct sockaddr_un address;
  struct reply reply;
  enum status st = make_address(path, &address, err);
  if (st)
    return st;
  int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
  if (fd < 0 || set_patience(fd, ANSWER_S))
    st = fail(err, ST_IO, "socket: %m");
  else if (connect(fd, (struct sockaddr *)&address, sizeof address))
    st = fail(err, errno == EACCES ? ST_IO : ST_BUSY, "%.150s: %m", address.sun_path);
  else if (send(fd, &q, sizeof q, MSG_NOSIGNAL) != (ssize_t)sizeof q ||
           recv(fd, &reply, sizeof reply, 0) != (ssize_t)sizeof reply)
    st = fail(err, ST_IO, "the server did not answer: %m");
  else if (reply.status)
    st = fail(err, (enum status)reply.status, "%.*s", (int)sizeof reply.text - 1, reply.text);
  if (fd >= 0)
    close(fd);
  *found = !st && reply.found;
  return st;
}
