#include "runner/host.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/log.h"
#include "neff/vendor_process.h"

enum {
  NEXT_MS = 60000, /* a server answers after 15 s at the latest */
  BEAT_MS = 5000,
  END_MS = 60000,
  LOG_EVERY_MS = 1000, /* lines of the log are collected for so long */
  RETRY_MS = 1000,
  RETRY_MAX_MS = 15000,
  KEEP_TRYING_MS = 3600000, /* how long a finished run is brought to a server that does not answer */
  LOG_MAX = 256 << 10,
};

/* ---- waiting ------------------------------------------------------------------------------------------------------- */

/* Sleeps, unless the runner is to stop.  Returns the next time to sleep. */
static int back_off(const struct host *h, int ms) {
  for (const int64_t until = clock_now_ms() + ms; !*h->stop && clock_now_ms() < until;)
    poll(NULL, 0, 50);
  return 2 * ms < RETRY_MAX_MS ? 2 * ms : RETRY_MAX_MS;
}

/* ---- the log ------------------------------------------------------------------------------------------------------- */

struct running {
  struct host *host;
  const struct host_run *run;
  pid_t pid;
  int fd;         /* the process's output; -1 once that has ended */
  struct buf log; /* lines that the server has not got yet */
  bool is_cut;    /* lines were dropped */
  bool is_lost;
  int64_t began_ms, tried_ms; /* tried: when it last said that it is alive */
};

/* Takes what there is of the log.  What does not fit while the server cannot be reached is dropped, and that is said. */
static void read_log(struct running *r) {
  char piece[4096];
  const ssize_t n = read(r->fd, piece, sizeof piece);
  if (n > 0 && r->log.len + (size_t)n < LOG_MAX)
    buf_append(&r->log, piece, (size_t)n);
  else if (n > 0)
    r->is_cut = true;
  else if (n == 0 || (errno != EAGAIN && errno != EINTR)) {
    close(r->fd);
    r->fd = -1;
  }
}

/* Whole characters only: a letter may be cut between two reads. */
static size_t whole(const struct buf *b, bool is_end) {
  size_t n = b->len;
  if (is_end)
    return n;
  while (n && buf_text(b)[n - 1] != '\n')
    n--;
  return n;
}

static enum status send_beat(struct running *r, size_t n, struct error *err) {
  struct host *h = r->host;
  struct wire_answer a;
  struct buf b;
  char path[120];
  snprintf(path, sizeof path, "/api/v1/runner/beat/%s", r->run->run);
  buf_init(&b, 8 * LOG_MAX);
  buf_puts(&b, "{\"log\":");
  char *text = malloc(n + 1); /* NUL is no character of a log */
  for (size_t i = 0; text && i < n; i++)
    text[i] = r->log.data[i] ? r->log.data[i] : ' ';
  json_put_string(&b, text ? text : "", text ? n : 0);
  free(text);
  buf_putc(&b, '}');
  const struct wire_ask ask = {.method = "POST",
                               .path = path,
                               .type = "application/json",
                               .body = buf_text(&b),
                               .len = b.len,
                               .headers = {r->run->fence},
                               .timeout_ms = BEAT_MS,
                               .is_last = true,
                               .max = 64 << 10};
  enum status st = wire_send(h->wire, &ask, &a, err);
  if (!st)
    st = host_judge(&a, err);
  buf_clear(&a.body);
  buf_clear(&b);
  return st;
}

static void drop_front(struct buf *b, size_t n) {
  if (!n)
    return;
  memmove(b->data, b->data + n, b->len - n);
  b->len -= n;
  b->data[b->len] = 0;
}

/* Says that the run goes on, if it is time for that.  A server that does not answer is asked again later. */
static void beat(struct running *r, bool is_end) {
  struct error err;
  const int64_t now = clock_now_ms(), quiet = now - r->tried_ms;
  const size_t n = whole(&r->log, is_end);
  if (r->is_lost || (!is_end && quiet < (n ? LOG_EVERY_MS : r->run->lease_ms / 3)))
    return;
  if (r->is_cut && r->log.len + 64 < LOG_MAX) {
    buf_puts(&r->log, "… lines were dropped while the server could not be reached\n");
    r->is_cut = false;
  }
  r->tried_ms = now;
  const enum status st = send_beat(r, n, &err);
  if (!st) {
    drop_front(&r->log, n);
  } else {
    r->is_lost = st == ST_DENIED;
    log_warn(r->is_lost ? "run_lost" : "beat", "%s", err.text);
  }
}

/* ---- the process of a run ------------------------------------------------------------------------------------------ */

static void start_task(struct running *r) {
  int fds[2];
  r->fd = -1;
  r->pid = pipe2(fds, O_CLOEXEC) ? -1 : fork();
  if (r->pid < 0)
    return;
  if (!r->pid) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    setpgid(0, 0);
    signal(SIGTERM, SIG_DFL);
    signal(SIGINT, SIG_DFL);
    dup2(fds[1], STDOUT_FILENO);
    dup2(fds[1], STDERR_FILENO);
    exit(host_do_task(r->host->cfg, r->run));
  }
  setpgid(r->pid, r->pid);
  close(fds[1]);
  r->fd = fds[0];
  fcntl(r->fd, F_SETFL, O_NONBLOCK);
}

static bool is_late(const struct running *r) {
  return clock_now_ms() - r->began_ms > (int64_t)r->host->cfg->run_s * 1000;
}

/* Waits for the process's end; returns its exit status, -1 if a signal ended it. */
static int finish_task(struct running *r) {
  int status = 0;
  if (r->pid <= 0)
    return -1;
  kill(-r->pid, SIGKILL); /* what it has started, too */
  waitpid(r->pid, &status, 0);
  if (r->fd >= 0)
    close(r->fd);
  r->fd = -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* Follows the process until its output ends: until it and all that it has started have ended. */
static void follow_task(struct running *r) {
  while (r->fd >= 0 && !r->is_lost && !is_late(r)) {
    struct pollfd p = {r->fd, POLLIN, 0};
    if (poll(&p, 1, 200) > 0)
      read_log(r);
    beat(r, false);
  }
}

/* ---- the end of a run ---------------------------------------------------------------------------------------------- */

static json_t *failure(const char *code, const char *message) {
  return json_pack("{s:s,s:s,s:s}", "status", "error", "code", code, "message", message);
}

static json_t *read_result(const struct running *r, int exit_status) {
  struct buf b;
  struct error err;
  buf_init(&b, 1 << 20);
  json_t *o = NULL;
  if (!exit_status && !host_read_file(r->run->dir, "result.json", &b, &err))
    o = json_loadb(buf_text(&b), b.len, 0, NULL);
  buf_clear(&b);
  if (json_is_object(o))
    return o;
  json_decref(o);
  return is_late(r) ? failure("runner-time", "The run took longer than the runner allows (--run-time).")
                    : failure("runner-crash", "The process that compiled and executed the kernel has crashed.");
}

static enum status send_end(struct host *h, const struct host_run *run, const char *json, struct error *err) {
  struct wire_answer a;
  char path[120];
  snprintf(path, sizeof path, "/api/v1/runner/end/%s", run->run);
  const struct wire_ask ask = {.method = "POST",
                               .path = path,
                               .type = "application/json",
                               .body = json,
                               .len = strlen(json),
                               .headers = {run->fence},
                               .timeout_ms = END_MS,
                               .is_last = true, /* a run that is done is brought even if the runner is to stop */
                               .max = 64 << 10};
  enum status st = wire_send(h->wire, &ask, &a, err);
  if (!st)
    st = host_judge(&a, err);
  buf_clear(&a.body);
  return st;
}

/* A file that is too large is left out, and the log says so; the outputs are never too large (task.c). */
static enum status bring_files(struct running *r, json_t *result, struct error *err) {
  static const char *const names[] = {"kernel.neff", "kernel.nki.py", "profile.ntff", "outputs.safetensors"};
  char sha256[65];
  enum status st = ST_OK;
  for (size_t i = 0; i < sizeof names / sizeof *names && !st; i++) {
    st = host_bring(r->host, r->run, names[i], sha256, err);
    if (st == ST_LIMIT) {
      buf_printf(&r->log, "%s is left out: %s\n", names[i], err->text);
      beat(r, true);
      st = ST_OK;
    }
  }
  if (!st && *sha256)
    json_object_set_new(result, "outputs_sha256", json_string(sha256));
  return st;
}

/* Brings the result until the server has it, says that the lease is lost, or does not want it. */
static void bring(struct running *r, json_t *result) {
  const int64_t until = clock_now_ms() + KEEP_TRYING_MS;
  struct error err;
  enum status st;
  int ms = RETRY_MS;
  for (;;) {
    st = bring_files(r, result, &err);
    char *json = json_dumps(result, JSON_COMPACT);
    if (!st)
      st = json ? send_end(r->host, r->run, json, &err) : fail(&err, ST_NOMEM, "no memory for a result");
    free(json);
    if (st != ST_BUSY || clock_now_ms() > until || *r->host->stop)
      break;
    log_warn("bring", "%s", err.text);
    ms = back_off(r->host, ms);
  }
  if (st)
    log_warn("run_end", "status=%s %s", status_name(st), err.text);
  else
    log_info("run_end", "status=%s", json_string_value(json_object_get(result, "status")));
}

/* ---- a run --------------------------------------------------------------------------------------------------------- */

static void do_run(struct host *h, const struct host_run *run) {
  struct running r = {.host = h, .run = run, .fd = -1, .began_ms = clock_now_ms()};
  r.tried_ms = r.began_ms;
  buf_init(&r.log, LOG_MAX);
  const char *name = json_string_value(json_object_get(h->about, "name"));
  buf_printf(&r.log, "taken by %s\n", name ? name : "a runner");
  start_task(&r);
  beat(&r, true);
  follow_task(&r);
  json_t *result = read_result(&r, finish_task(&r));
  beat(&r, true);
  if (!r.is_lost && result)
    bring(&r, result);
  json_decref(result);
  buf_clear(&r.log);
}

static enum status fetch(struct host *h, const struct host_run *run, struct error *err) {
  enum status st = host_fetch(h, run, "hlo.pb", err);
  return st || !run->executes ? st : host_fetch(h, run, "inputs.safetensors", err);
}

/* If the files cannot be had, the lease ends by itself, and the run is given away again. */
static void take_run(struct host *h, const json_t *o) {
  const char *run = json_string_value(json_object_get(o, "run"));
  const char *fence = json_string_value(json_object_get(o, "fence"));
  struct host_run r = {.target = json_string_value(json_object_get(o, "target")),
                       .executes = json_is_true(json_object_get(o, "execute")),
                       .profiles = json_is_true(json_object_get(o, "profile")),
                       .wants_nki = json_is_true(json_object_get(o, "nki")),
                       .lease_ms = (int)json_integer_value(json_object_get(o, "lease_ms")),
                       .about = json_object_get(o, "about")};
  struct arena a;
  struct error err = {0};
  if (!run || !fence || !r.target || strlen(run) != 64 || strlen(fence) > 24 || r.lease_ms < 1) {
    log_warn("next", "the server answered with something that is no run");
    return;
  }
  snprintf(r.run, sizeof r.run, "%s", run);
  snprintf(r.fence, sizeof r.fence, "X-Nkx-Fence: %s", fence);
  log_info("run", "run=%.12s attempt=%lld", run, (long long)json_integer_value(json_object_get(o, "attempt")));
  arena_init(&a);
  enum status st = vendor_dir_make(&a, &r.dir, &err);
  if (!st) {
    st = fetch(h, &r, &err);
    if (!st)
      do_run(h, &r);
    vendor_dir_remove(r.dir);
  }
  if (st)
    log_warn("run", "%s", err.text);
  arena_clear(&a);
}

/* ---- asking -------------------------------------------------------------------------------------------------------- */

/* Asks once, or says that the runner ends.  *o: the run, or NULL. */
static enum status ask_next(struct host *h, bool leaves, json_t **o, struct error *err) {
  struct wire_answer a;
  json_t *body = json_pack("{s:s,s:O,s:b}", "runner", h->id, "about", h->about, "leaves", leaves);
  char *text = body ? json_dumps(body, JSON_COMPACT) : NULL;
  json_decref(body);
  *o = NULL;
  if (!text)
    return fail(err, ST_NOMEM, "no memory for a request");
  const struct wire_ask ask = {.method = "POST",
                               .path = "/api/v1/runner/next",
                               .type = "application/json",
                               .body = text,
                               .len = strlen(text),
                               .timeout_ms = leaves ? BEAT_MS : NEXT_MS,
                               .is_last = leaves,
                               .max = 1 << 20};
  enum status st = wire_send(h->wire, &ask, &a, err);
  free(text);
  if (!st)
    st = host_judge(&a, err);
  if (!st && a.status == 200)
    *o = json_loadb(buf_text(&a.body), a.body.len, 0, NULL);
  buf_clear(&a.body);
  return st;
}

static enum status serve(struct host *h, struct error *err) {
  int ms = RETRY_MS;
  bool is_done = false;
  while (!*h->stop && !is_done) {
    json_t *o;
    const enum status st = ask_next(h, false, &o, err);
    if (st == ST_DENIED || st == ST_INPUT)
      return st;
    if (st && !*h->stop) {
      log_warn("next", "%s", err->text);
      ms = back_off(h, ms);
      continue;
    }
    ms = RETRY_MS;
    if (o) {
      take_run(h, o);
      is_done = h->cfg->is_once;
    }
    json_decref(o);
  }
  return ST_OK;
}

enum status host_serve(struct host *h, struct error *err) {
  struct error ignored;
  json_t *o;
  const enum status st = serve(h, err);
  if (!st && !ask_next(h, true, &o, &ignored)) /* otherwise the server finds out by itself */
    json_decref(o);
  return st;
}
