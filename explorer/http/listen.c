/* The listening socket: our own, or one that was passed to us. */
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "http/server.h"

enum {
  FIRST_PASSED_FD = 3,
  BIND_TRIES = 50,
  BIND_WAIT_US = 10000,
  DESCRIPTORS_MIN = 64,
};

static int listen_on(const struct addrinfo *at) {
  int one = 1;
  int fd = socket(at->ai_family, at->ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK, at->ai_protocol);
  if (fd < 0)
    return -1;
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
  if (bind(fd, at->ai_addr, at->ai_addrlen) || listen(fd, SOMAXCONN)) {
    int e = errno;
    close(fd);
    errno = e;
    return -1;
  }
  return fd;
}

static enum status take_listener(int fd, int *out, struct error *err) {
  int is_listening = 0;
  socklen_t len = sizeof is_listening;
  if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &is_listening, &len) || !is_listening)
    return fail(err, ST_INPUT, "LISTEN_FDS: descriptor %d is not a listening socket", fd);
  /* moved, because our child processes expect their own sockets at these numbers */
  *out = fcntl(fd, F_DUPFD_CLOEXEC, FIRST_PASSED_FD + LISTENERS);
  close(fd);
  if (*out < 0 || fcntl(*out, F_SETFL, O_NONBLOCK))
    return fail(err, ST_IO, "LISTEN_FDS: %m");
  return ST_OK;
}

/* Listening sockets that the process inherited (systemd's protocol: LISTEN_FDS): the public one, then the one for operations.
 * Clients that connect while no process accepts wait in its queue, so a restart refuses none. */
static enum status take_listeners(int n_wanted, struct listeners *out, struct error *err) {
  const char *pid = getenv("LISTEN_PID"), *count = getenv("LISTEN_FDS");
  const int n = pid && count && atoi(pid) == getpid() ? atoi(count) : 0;
  enum status st = ST_OK;
  unsetenv("LISTEN_PID");
  unsetenv("LISTEN_FDS");
  unsetenv("LISTEN_FDNAMES");
  if (n > n_wanted)
    return fail(err, ST_INPUT, "LISTEN_FDS: %d sockets, but %s", n,
                n_wanted == 1 ? "without --ops-port there is one listener" : "there are two listeners");
  for (int i = 0; !st && i < n; i++)
    st = take_listener(FIRST_PASSED_FD + i, &out->fds[i], err);
  return st;
}

static enum status bind_listener(const char *flag, const char *host, const char *port, int *out, struct error *err) {
  struct addrinfo hints = {.ai_flags = AI_PASSIVE | AI_NUMERICSERV, .ai_socktype = SOCK_STREAM}, *list;
  int e = getaddrinfo(host, port, &hints, &list);
  if (e)
    return fail(err, ST_INPUT, "%s: %.80s: %s", flag, host, gai_strerror(e));
  int fd = -1;
  for (int i = 0; i < BIND_TRIES && fd < 0; i++) { /* a server that was killed releases the port in a moment */
    for (struct addrinfo *at = list; at && fd < 0; at = at->ai_next)
      fd = listen_on(at);
    if (fd < 0 && errno != EADDRINUSE)
      break;
    if (fd < 0)
      usleep(BIND_WAIT_US);
  }
  e = errno;
  freeaddrinfo(list);
  errno = e;
  if (fd < 0)
    return fail(err, ST_INPUT, "cannot listen on %.80s port %.8s: %m", host, port);
  *out = fd;
  return ST_OK;
}

static int port_of(int fd) {
  struct sockaddr_storage bound;
  socklen_t len = sizeof bound;
  char service[12] = "";
  if (getsockname(fd, (struct sockaddr *)&bound, &len) ||
      getnameinfo((struct sockaddr *)&bound, len, NULL, 0, service, sizeof service, NI_NUMERICSERV))
    service[0] = 0;
  return atoi(service);
}

/* With fewer descriptors than it needs for itself a server would fail at one place or another, and say that of the place. */
static enum status check_descriptors(struct error *err) {
  struct rlimit r;
  if (getrlimit(RLIMIT_NOFILE, &r) || r.rlim_max >= DESCRIPTORS_MIN)
    return ST_OK;
  return fail(err, ST_INPUT,
              "a server needs %d descriptors for itself and one for each connection, and may have %llu: raise "
              "the limit (ulimit -n, or LimitNOFILE of its unit)",
              DESCRIPTORS_MIN, (unsigned long long)r.rlim_max);
}

enum status server_listen(const struct http_config *cfg, struct listeners *out, struct error *err) {
  *out = (struct listeners){.fds = {-1, -1}};
  enum status st = check_descriptors(err);
  if (!st)
    st = take_listeners(cfg->ops_port ? LISTENERS : 1, out, err);
  if (!st && out->fds[LISTEN_PUBLIC] < 0)
    st = bind_listener("--host", cfg->host, cfg->port, &out->fds[LISTEN_PUBLIC], err);
  if (!st && cfg->ops_port && out->fds[LISTEN_OPS] < 0)
    st = bind_listener("--ops-host", cfg->ops_host, cfg->ops_port, &out->fds[LISTEN_OPS], err);
  for (int i = 0; !st && i < LISTENERS; i++)
    out->ports[i] = out->fds[i] < 0 ? 0 : port_of(out->fds[i]);
  return st;
}
