#include "pool/notify.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"

/* "/path" or "@abstract". */
static bool connect_to(int fd, const char *name) {
  struct sockaddr_un to = {.sun_family = AF_UNIX};
  const size_t n = strlen(name);
  if ((*name != '/' && *name != '@') || n >= sizeof to.sun_path)
    return false;
  memcpy(to.sun_path, name, n);
  if (*name == '@')
    to.sun_path[0] = 0;
  return !connect(fd, (struct sockaddr *)&to, (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n));
}

void notify_open(struct notify *n) {
  const char *name = getenv("NOTIFY_SOCKET"), *usec = getenv("WATCHDOG_USEC"), *pid = getenv("WATCHDOG_PID");
  *n = (struct notify){.fd = -1};
  if (!name)
    return;
  n->fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (n->fd < 0 || !connect_to(n->fd, name)) {
    log_warn("notify", "NOTIFY_SOCKET cannot be reached: %m");
    notify_close(n);
    return;
  }
  if (usec && (!pid || atoi(pid) == getpid()))
    n->every_ms = atoll(usec) / 1000 / 2; /* as systemd advises: half of the time */
}

void notify_close(struct notify *n) {
  if (n->fd >= 0)
    close(n->fd);
  n->fd = -1;
}

void notify_send(const struct notify *n, const char *text) {
  if (n->fd >= 0 && send(n->fd, text, strlen(text), MSG_NOSIGNAL) < 0)
    log_debug("notify", "%m");
}

void notify_alive(struct notify *n, bool is_serving) {
  const int64_t now = clock_now_ms();
  if (is_serving && !n->is_ready) {
    n->is_ready = true;
    notify_send(n, "READY=1");
  }
  if (!n->every_ms || now < n->next_ms)
    return;
  n->next_ms = now + n->every_ms;
  notify_send(n, "WATCHDOG=1");
}
