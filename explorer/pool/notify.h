/* notify: tells the service manager how the server does, by systemd's protocol (sd_notify(3)): one datagram with lines NAME=VALUE.
 *
 * The launcher tells, because it is the main process.  A sign of life needs both: the service, which asks the launcher for one, and
 * the launcher, which then passes it on.  So if either hangs, the manager restarts the server.
 */
#ifndef POOL_NOTIFY_H
#define POOL_NOTIFY_H

#include <stdbool.h>
#include <stdint.h>

struct notify {
  int fd; /* -1: nobody wants to know */
  bool is_ready;
  int64_t every_ms, next_ms; /* of signs of life; every_ms 0: none are wanted */
};

/* From the environment: NOTIFY_SOCKET, WATCHDOG_USEC, WATCHDOG_PID. */
void notify_open(struct notify *n);
void notify_close(struct notify *n);
/* Sends the text; failures do not matter. */
void notify_send(const struct notify *n, const char *text);
/* The service lives; is_serving: it answers requests. */
void notify_alive(struct notify *n, bool is_serving);

#endif
