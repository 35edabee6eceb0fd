/* The listening socket: our own, or one that was passed to us. */
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "http/server.h"

enum {
  FIRST_PASSED_FD = 3,
  BIND_TRIES = 50,
  BIND_WAIT_US = 10000,
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

/* A listening socket that the process inherited (systemd's protocol: LISTEN_FDS), or -1.  Clients that connect
 * while no process accepts wait in its queue, so a restart refuses none. */
static enum status take_listener(int *out, struct error *err) {
  const char *pid = getenv("LISTEN_PID"), *n = getenv("LISTEN_FDS");
  int is_listening = 0;
  socklen_t len = sizeof is_listening;
  *out = -1;
  if (!pid || !n || atoi(pid) != getpid() || atoi(n) < 1)
    return ST_OK;
  unsetenv("LISTEN_PID");
  unsetenv("LISTEN_FDS");
  if (getsockopt(FIRST_PASSED_FD, SOL_SOCKET, SO_ACCEPTCONN, &is_listening, &len) || !is_listening)
    return fail(err, ST_INPUT, "LISTEN_FDS: descriptor %d is not a listening socket", FIRST_PASSED_FD);
  /* moved, because our child processes expect their own sockets at this number */
  *out = fcntl(FIRST_PASSED_FD, F_DUPFD_CLOEXEC, FIRST_PASSED_FD + 1);
  close(FIRST_PASSED_FD);
  if (*out < 0 || fcntl(*out, F_SETFL, O_NONBLOCK))
    return fail(err, ST_IO, "LISTEN_FDS: %m");
  return ST_OK;
}

static enum status bind_listener(const struct http_config *cfg, int *out, struct error *err) {
  struct addrinfo hints = {.ai_flags = AI_PASSIVE | AI_NUMERICSERV, .ai_socktype = SOCK_STREAM}, *list;
  int e = getaddrinfo(cfg->host, cfg->port, &hints, &list);
  if (e)
    return fail(err, ST_INPUT, "--host: %.80s: %s", cfg->host, gai_strerror(e));
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
    return fail(err, ST_INPUT, "cannot listen on %.80s port %.8s: %m", cfg->host, cfg->port);
  *out = fd;
  return ST_OK;
}

enum status server_listen(const struct http_config *cfg, int *out, int *port, struct error *err) {
  struct sockaddr_storage bound;
  socklen_t len = sizeof bound;
  char service[12];
  enum status st = take_listener(out, err);
  if (!st && *out < 0)
    st = bind_listener(cfg, out, err);
  if (st)
    return st;
  if (getsockname(*out, (struct sockaddr *)&bound, &len) ||
      getnameinfo((struct sockaddr *)&bound, len, NULL, 0, service, sizeof service, NI_NUMERICSERV))
    service[0] = 0;
  *port = atoi(service);
  return ST_OK;
}
