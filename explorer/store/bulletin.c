#include "store/bulletin.h"

#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <libpq-fe.h>

#include "base/log.h"
#include "store/db.h"

enum { RETRY_MS = 500, CONNECT_MS = 3000 };
#define CHANNEL "nkx_bulletin"

struct bulletin {
  char *url;
  bulletin_fn fn;
  void *user;
  pthread_t thread;
  bool has_thread;
  int stop_fd; /* readable: the thread must end */
  PGconn *c;
};

/* Waits for the connection's socket, if it has one; false if the thread must end. */
static bool wait_for(struct bulletin *b, short events, int ms) {
  struct pollfd f[2] = {{.fd = b->stop_fd, .events = POLLIN}, {.fd = b->c ? PQsocket(b->c) : -1, .events = events}};
  while (poll(f, 2, ms) < 0)
    f[0].revents = 0; /* a signal */
  return !f[0].revents;
}

static bool has_connected(struct bulletin *b) {
  b->c = PQconnectStart(b->url);
  PostgresPollingStatusType s = PGRES_POLLING_WRITING;
  while (b->c && PQstatus(b->c) != CONNECTION_BAD && s != PGRES_POLLING_OK && s != PGRES_POLLING_FAILED) {
    if (!wait_for(b, s == PGRES_POLLING_READING ? POLLIN : POLLOUT, CONNECT_MS))
      return false;
    s = PQconnectPoll(b->c);
  }
  return b->c && PQstatus(b->c) == CONNECTION_OK && PQsendQuery(b->c, "LISTEN " CHANNEL);
}

/* Takes what has come.  *is_listening: the server has taken the statement. */
static bool take(struct bulletin *b, bool *is_listening) {
  PGnotify *n;
  PGresult *r;
  if (!PQconsumeInput(b->c))
    return false;
  while (!PQisBusy(b->c) && (r = PQgetResult(b->c)) != NULL) {
    *is_listening |= PQresultStatus(r) == PGRES_COMMAND_OK;
    PQclear(r);
  }
  while ((n = PQnotifies(b->c)) != NULL) {
    b->fn(b->user, n->extra);
    PQfreemem(n);
  }
  return PQstatus(b->c) == CONNECTION_OK;
}

static void *run(void *user) {
  struct bulletin *b = user;
  bool goes_on = true;
  while (goes_on) {
    bool was_listening = false, is_listening = false, ok = has_connected(b);
    while (ok && (goes_on = wait_for(b, POLLIN, -1))) {
      ok = take(b, &is_listening);
      if (is_listening && !was_listening)
        b->fn(b->user, NULL);
      was_listening = is_listening;
    }
    if (goes_on)
      log_warn("bulletin_lost", "listening=%d", is_listening);
    PQfinish(b->c);
    b->c = NULL;
    goes_on = goes_on && wait_for(b, 0, RETRY_MS);
  }
  return NULL;
}

enum status bulletin_start(const char *url, bulletin_fn fn, void *user, struct bulletin **out, struct error *err) {
  struct bulletin *b = calloc(1, sizeof *b);
  if (!b || !(b->url = strdup(url))) {
    free(b);
    return fail(err, ST_NOMEM, "bulletin");
  }
  *out = b;
  b->fn = fn;
  b->user = user;
  b->stop_fd = eventfd(0, EFD_CLOEXEC);
  if (b->stop_fd < 0 || pthread_create(&b->thread, NULL, run, b))
    return fail(err, ST_IO, "bulletin: no thread");
  b->has_thread = true;
  return ST_OK;
}

void bulletin_stop(struct bulletin *b) {
  if (!b)
    return;
  if (b->has_thread) {
    eventfd_write(b->stop_fd, 1);
    pthread_join(b->thread, NULL);
  }
  if (b->stop_fd >= 0)
    close(b->stop_fd);
  free(b->url);
  free(b);
}

enum status bulletin_post(struct db *db, const char *text, struct error *err) {
  const struct db_value arg = db_text(text);
  return db_run(db, "SELECT pg_notify('" CHANNEL "', $1)", &arg, 1, NULL, NULL, NULL, err);
}
