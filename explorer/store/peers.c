#include "store/peers.h"

#include <assert.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <libpq-fe.h>

#include "base/clock.h"
#include "base/log.h"

enum {
  WAITING_MAX = 7 << 10, /* bytes that wait to be sent; PostgreSQL takes just under 8000 in a notification */
  ANSWER_MS = 5000,
  RETRY_MS = 1000,
  TICK_MS = 250,
};

struct peers {
  char *url;
  struct peers_hooks hooks;
  pthread_t thread;
  int wake_fd;
  PGconn *c;        /* of the thread, as what follows */
  bool is_busy;     /* a statement has not been answered */
  int64_t since_ms; /* then: when it was sent; while connecting: when that began */
  int64_t sent_us;  /* when the notification was sent that has not come back; 0: there is none */
  int64_t tick_ms;  /* when it ticked last */

  pthread_mutex_t lock;          /* guards what follows */
  char waiting[WAITING_MAX + 1]; /* messages, each with a newline */
  size_t n_waiting;
  bool is_up, is_ending;
  struct peers_counts counts;
};

/* ---- any thread -------------------------------------------------------------------------------------------------- */

static void wake(struct peers *p) {
  const uint64_t one = 1;
  if (write(p->wake_fd, &one, sizeof one) < 0) {
    /* full: it will wake up anyway */
  }
}

void peers_say(struct peers *p, const char *message) {
  const size_t n = strlen(message);
  if (!p)
    return;
  assert(n <= PEERS_MESSAGE_MAX && !strchr(message, '\n'));
  pthread_mutex_lock(&p->lock);
  const bool has_room = p->is_up && p->n_waiting + n + 1 <= WAITING_MAX;
  if (has_room) {
    memcpy(p->waiting + p->n_waiting, message, n);
    p->n_waiting += n;
    p->waiting[p->n_waiting++] = '\n';
  } else {
    p->counts.dropped++;
  }
  pthread_mutex_unlock(&p->lock);
  if (has_room)
    wake(p);
}

void peers_look(struct peers *p, struct peers_counts *out) {
  *out = (struct peers_counts){0};
  if (!p)
    return;
  pthread_mutex_lock(&p->lock);
  *out = p->counts;
  out->is_up = p->is_up;
  pthread_mutex_unlock(&p->lock);
}

/* ---- the thread -------------------------------------------------------------------------------------------------- */

static void set_up(struct peers *p, bool is_up) {
  pthread_mutex_lock(&p->lock);
  p->is_up = is_up;
  for (size_t i = 0; !is_up && i < p->n_waiting; i++)
    p->counts.dropped += p->waiting[i] == '\n';
  p->n_waiting = is_up ? p->n_waiting : 0;
  pthread_mutex_unlock(&p->lock);
}

/* Waits for the connection's socket, for messages to send, or for the end; false: it is the end. */
static bool wait_for(struct peers *p, short events, int ms) {
  uint64_t drained;
  struct pollfd f[2] = {{.fd = p->wake_fd, .events = POLLIN}, {.fd = p->c ? PQsocket(p->c) : -1, .events = events}};
  if (poll(f, 2, ms) > 0 && f[0].revents && read(p->wake_fd, &drained, sizeof drained) < 0) {
    /* it was read before */
  }
  pthread_mutex_lock(&p->lock);
  const bool goes_on = !p->is_ending;
  pthread_mutex_unlock(&p->lock);
  return goes_on;
}

static bool is_overdue(const struct peers *p) {
  return clock_now_ms() - p->since_ms > ANSWER_MS;
}

static bool connect_to(struct peers *p) {
  p->since_ms = clock_now_ms();
  p->c = PQconnectStart(p->url);
  if (!p->c || PQstatus(p->c) == CONNECTION_BAD)
    return false;
  for (PostgresPollingStatusType s = PGRES_POLLING_WRITING; s != PGRES_POLLING_OK; s = PQconnectPoll(p->c))
    if (s == PGRES_POLLING_FAILED || is_overdue(p) ||
        !wait_for(p, s == PGRES_POLLING_READING ? POLLIN : POLLOUT, ANSWER_MS))
      return false;
  p->is_busy = !PQsetnonblocking(p->c, 1) && PQsendQuery(p->c, "LISTEN nkx_peers");
  p->since_ms = clock_now_ms();
  return p->is_busy;
}

/* Sends all that waits as one notification. */
static bool send_waiting(struct peers *p) {
  char text[WAITING_MAX + 1];
  const char *const values[] = {text};
  pthread_mutex_lock(&p->lock);
  const size_t n = p->n_waiting;
  memcpy(text, p->waiting, n);
  text[n] = 0;
  p->n_waiting = 0;
  for (size_t i = 0; i < n; i++)
    p->counts.sent += text[i] == '\n';
  pthread_mutex_unlock(&p->lock);
  if (!n)
    return true;
  p->is_busy = PQsendQueryParams(p->c, "SELECT pg_notify('nkx_peers', $1)", 1, NULL, values, NULL, NULL, 0);
  p->since_ms = clock_now_ms();
  p->sent_us = clock_now_us();
  return p->is_busy;
}

/* Takes the answer to the statement, if it has come; false: it failed. */
static bool take_answer(struct peers *p) {
  bool is_good = true;
  while (p->is_busy && !PQisBusy(p->c)) {
    PGresult *r = PQgetResult(p->c);
    p->is_busy = r != NULL;
    is_good &= !r || PQresultStatus(r) == PGRES_COMMAND_OK || PQresultStatus(r) == PGRES_TUPLES_OK;
    PQclear(r);
  }
  if (is_good && !p->is_busy)
    set_up(p, true);
  return is_good && !(p->is_busy && is_overdue(p));
}

static void hear(struct peers *p, char *text) {
  char *rest;
  for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
    pthread_mutex_lock(&p->lock);
    p->counts.heard++;
    pthread_mutex_unlock(&p->lock);
    p->hooks.heard(p->hooks.user, line);
  }
}

/* Our own notification has come back. */
static void take_own(struct peers *p) {
  if (!p->sent_us)
    return;
  pthread_mutex_lock(&p->lock);
  p->counts.lag_us = clock_now_us() - p->sent_us;
  pthread_mutex_unlock(&p->lock);
  p->sent_us = 0;
}

static void take_notifications(struct peers *p) {
  PGnotify *n;
  while ((n = PQnotifies(p->c))) {
    if (n->be_pid != PQbackendPID(p->c))
      hear(p, n->extra);
    else
      take_own(p);
    PQfreemem(n);
  }
}

static void tick(struct peers *p) {
  const int64_t now = clock_now_ms();
  if (now - p->tick_ms < TICK_MS)
    return;
  p->tick_ms = now;
  p->hooks.tick(p->hooks.user);
}

/* Sends and receives until the connection is lost, or it is the end. */
static void converse(struct peers *p) {
  for (;;) {
    const int unsent = PQflush(p->c);
    if (unsent < 0 || !wait_for(p, unsent ? POLLIN | POLLOUT : POLLIN, TICK_MS))
      return;
    tick(p);
    if (!PQconsumeInput(p->c) || !take_answer(p))
      return;
    take_notifications(p);
    if (!p->is_busy && !send_waiting(p))
      return;
  }
}

static void *run(void *user) {
  struct peers *p = user;
  do {
    if (connect_to(p))
      converse(p);
    set_up(p, false);
    log_debug("peers", "why=\"%s\"", p->c ? PQerrorMessage(p->c) : "out of memory");
    PQfinish(p->c);
    p->c = NULL;
    p->is_busy = false;
    p->sent_us = 0;
    tick(p);
  } while (wait_for(p, 0, RETRY_MS));
  return NULL;
}

/* ---- start and stop ---------------------------------------------------------------------------------------------- */

enum status peers_start(const char *url, const struct peers_hooks *hooks, struct peers **out, struct error *err) {
  struct peers *p = calloc(1, sizeof *p);
  if (!p)
    return fail(err, ST_NOMEM, "peers");
  p->url = strdup(url);
  p->hooks = *hooks;
  p->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  pthread_mutex_init(&p->lock, NULL);
  if (p->url && p->wake_fd >= 0 && !pthread_create(&p->thread, NULL, run, p)) {
    *out = p;
    return ST_OK;
  }
  if (p->wake_fd >= 0)
    close(p->wake_fd);
  free(p->url);
  free(p);
  return fail(err, ST_IO, "peers: no thread");
}

void peers_stop(struct peers *p) {
  if (!p)
    return;
  pthread_mutex_lock(&p->lock);
  p->is_ending = true;
  pthread_mutex_unlock(&p->lock);
  wake(p);
  pthread_join(p->thread, NULL);
  close(p->wake_fd);
  pthread_mutex_destroy(&p->lock);
  free(p->url);
  free(p);
}
