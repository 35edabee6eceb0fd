/* One child, from the moment its zygote hands it over until its exit is known.
 *
 * Nothing that comes from a child is trusted.  Its stream is cut into frames of bounded size, and work_add_frame checks
 * each of them; a child that sends anything else is ended.
 */
#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/log.h"
#include "driver/frames.h"
#include "jail/limits.h"
#include "pool/internal.h"

enum {
  READ_CHUNK = 64 << 10,
  READS_PER_EVENT = 8,  /* then other events are handled */
  GRACE_MS = 1000,      /* from the signal that the time is up until the child is killed */
  EXIT_WAIT_MS = 5000,  /* from the end of a stream until the zygote reports the exit; a large process takes long */
  LONG_MS = 250,        /* a kernel that somebody is typing takes less */
  LONG_NICE = 10,       /* gets a tenth of the processor time of a short job that runs at the same time */
  REFILL_DELAY_MS = 30, /* so that making a new child does not compete with a short job */
};

int kids_in(const struct pool *p, enum kid_state s) {
  int n = 0;
  for (int i = 0; i < p->n_kids; i++)
    n += p->kids[i].state == s;
  return n;
}

int kids_of(const struct pool *p, const struct zygote *z) {
  int n = 0;
  for (int i = 0; i < p->n_kids; i++)
    n += p->kids[i].zygote == z;
  return n;
}

struct kid *kid_find_of(struct pool *p, const struct zygote *z, uint32_t zygote_id) {
  for (int i = 0; i < p->n_kids; i++)
    if (p->kids[i].zygote == z && p->kids[i].zygote_id == zygote_id)
      return &p->kids[i];
  return NULL;
}

struct kid *kid_find(struct pool *p, uint32_t id) {
  for (int i = 0; i < p->n_kids; i++)
    if (p->kids[i].id == id)
      return &p->kids[i];
  return NULL;
}

/* A pidfd becomes readable when its process ends. */
static bool is_alive(const struct kid *k) {
  struct pollfd f = {.fd = k->pidfd, .events = POLLIN};
  return poll(&f, 1, 0) == 0;
}

struct kid *kid_idle(struct pool *p, int version) {
  for (int i = 0; i < p->n_kids; i++)
    if (p->kids[i].state == KID_IDLE && p->kids[i].zygote->version == version && is_alive(&p->kids[i]))
      return &p->kids[i];
  return NULL;
}

static void kill_kid(struct kid *k) {
  zygote_signal(k->zygote, k->zygote_id, SIGKILL);
}

static void close_stream(struct kid *k) {
  if (k->fd >= 0)
    close(k->fd); /* leaves the epoll set with its last descriptor */
  k->fd = -1;
  buf_clear(&k->in);
  buf_clear(&k->out);
}

/* Removes the child from the table; the last one moves into its place. */
static void forget(struct pool *p, struct kid *k) {
  close_stream(k);
  if (k->pidfd >= 0)
    close(k->pidfd);
  work_unref(k->work);
  *k = p->kids[--p->n_kids];
}

/* The time between asking a job to stop and killing it. */
static int grace_ms(const struct pool *p) {
  return p->cfg.job_timeout_ms < 4 * GRACE_MS ? p->cfg.job_timeout_ms / 4 : GRACE_MS;
}

void kid_add(struct pool *p, struct zygote *z, const struct ctl_msg *m, int fd, int pidfd) {
  uint32_t id = ++p->last_kid_id;
  struct epoll_event ev = {.events = EPOLLIN, .data.u64 = event_tag(EV_KID, id)};
  if (p->n_kids == KIDS_MAX || epoll_ctl(p->epoll_fd, EPOLL_CTL_ADD, fd, &ev)) {
    log_error("pool", "no place for a child");
    zygote_signal(z, m->id, SIGKILL);
    close(fd);
    close(pidfd);
    return;
  }
  struct kid *k = &p->kids[p->n_kids++];
  *k = (struct kid){
      .id = id, .zygote = z, .zygote_id = m->id, .pid = m->value, .state = KID_IDLE, .fd = fd, .pidfd = pidfd};
  buf_init(&k->in, FRAME_MAX + WIRE_HEADER + READ_CHUNK);
  buf_init(&k->out, JOB_WIRE_MAX + WIRE_HEADER);
}

/* ---- the end of a work ------------------------------------------------------------------------------------------- */

static void log_done(struct pool *p, struct kid *k, const char *how) {
  int stages;
  pool_count(p, how);
  work_look(k->work, &stages, NULL);
  log_info("job_done", "job=%s status=%s wall_ms=%lld waited_ms=%lld stages=%d", work_tag(k->work), how,
           (long long)(clock_now_ms() - k->began_ms), (long long)k->waited_ms, stages);
}

/* The work is over.  A child serves one job, so it is killed, and its exit awaited. */
static void leave(struct pool *p, struct kid *k, const char *how) {
  assert(k->work && k->state != KID_IDLE);
  int64_t now = clock_now_ms();
  log_done(p, k, how);
  work_unref(k->work);
  k->work = NULL;
  kill_kid(k);
  close_stream(k);
  k->state = KID_LEAVING;
  k->deadline_ms = now + EXIT_WAIT_MS;
  p->refill_at_ms = now;
}

static void fail_work(struct pool *p, struct kid *k, enum diag_code code, const char *message, const char *hint) {
  work_fail(k->work, code, message, hint);
  leave(p, k, diag_code_name(code));
}

static const char output_hint[] = "Stop after an earlier stage, or compile parts of the kernel.";
static const char limits_hint[] = "A kernel is traced, not run on data: large loops and arrays belong outside it.";

static void fail_time(struct pool *p, struct kid *k, const char *what, int limit_ms) {
  char text[160];
  snprintf(text, sizeof text, "The job took more than %g s%s and was stopped.", limit_ms / 1000.0, what);
  fail_work(p, k, DG_TIME_LIMIT, text, limits_hint);
}

static void fail_memory(struct pool *p, struct kid *k, int limit_mib) {
  char text[160];
  snprintf(text, sizeof text, "The job needed more than its %d MiB of memory.", limit_mib);
  fail_work(p, k, DG_MEMORY_LIMIT, text, limits_hint);
}

/* Pages of a process that are not shared with files; -1 if it is gone. */
static long resident_pages(pid_t pid) {
  char path[32];
  long resident, shared;
  snprintf(path, sizeof path, "/proc/%d/statm", (int)pid);
  FILE *f = fopen(path, "re");
  bool ok = f && fscanf(f, "%*d %ld %ld", &resident, &shared) == 2;
  if (f)
    fclose(f);
  return ok ? resident - shared : -1;
}

void kids_watch_memory(struct pool *p) {
  const long most = ((long)p->cfg.limits.resident_mib << 20) / sysconf(_SC_PAGESIZE);
  for (int i = 0; i < p->n_kids && !p->has_cgroup; i++) {
    struct kid *k = &p->kids[i];
    if (k->state != KID_RUNNING)
      continue;
    long now = resident_pages(k->pid); /* maybe of another process with this pid, so is_alive is asked afterwards */
    if (now > 0 && now - k->resident_start > most && is_alive(k))
      fail_memory(p, k, p->cfg.limits.resident_mib);
  }
}

/* Ends the work of a child that has exited without finishing it.  A child is process 1 of its pid namespace, which
 * ignores its own fatal signals, so that an abort shows as a segmentation fault; the signal's number would tell a user
 * nothing. */
static void judge(struct pool *p, struct kid *k, const struct ctl_msg *m) {
  const int status = m->value, cpu_s = p->cfg.limits.cpu_s;

  if (!work_has_frames(k->work) && k->tries < TRIES_MAX) { /* the job never began, so it is not the cause */
    struct work *w = k->work;
    log_warn("child_died_idle", "job=%s", work_tag(w));
    k->work = NULL;
    k->state = KID_LEAVING;
    queue_put_back(p, w, k->watch_id, k->tries + 1);
  } else if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL && jail_cpu_is_used_up(&p->cfg.limits, m->cpu_ms)) {
    fail_time(p, k, " of processor time", cpu_s * 1000);
  } else if (m->was_oom) {
    fail_memory(p, k, p->cfg.limits.resident_mib);
  } else if (WIFEXITED(status) && WEXITSTATUS(status) == EXIT_OOM) {
    fail_memory(p, k, p->cfg.limits.memory_mib);
  } else if (WIFEXITED(status) && WEXITSTATUS(status) == EXIT_JOB_FAULT) {
    fail_work(p, k, DG_INTERNAL, "The compiler failed on this kernel.", NULL);
  } else {
    fail_work(p, k, DG_WORKER_DIED, "The process that compiled the kernel died.",
              "Stages that were reached are shown. Code that leaves Python, such as ctypes or os._exit, ends it.");
  }
}

void kid_exited(struct pool *p, struct kid *k, const struct ctl_msg *m) {
  const uint32_t id = k->id;
  if (k->state == KID_IDLE)
    log_warn("child_died_idle", "status=0x%x", (unsigned)m->value);
  if (k->work) {
    /* the socket may still hold frames, which were written before the child ended */
    if (k->fd >= 0)
      kid_event(p, k, EPOLLIN | EPOLLHUP, clock_now_ms());
    k = kid_find(p, id);
    if (k && k->work)
      judge(p, k, m);
  }
  k = kid_find(p, id);
  if (k)
    forget(p, k);
  p->refill_at_ms = clock_now_ms();
}

void kid_drop(struct pool *p, struct kid *k) {
  kill_kid(k);
  if (k->work && !work_has_frames(k->work) && k->tries < TRIES_MAX) {
    queue_put_back(p, k->work, k->watch_id, k->tries + 1);
    k->work = NULL;
  } else if (k->work) {
    work_fail(k->work, DG_WORKER_DIED, "The process that compiled the kernel died.", "Compile again.");
    log_done(p, k, diag_code_name(DG_WORKER_DIED));
  }
  forget(p, k);
}

void kid_retire(struct kid *k) {
  kill_kid(k);
  close_stream(k);
  k->state = KID_LEAVING;
  k->deadline_ms = clock_now_ms() + EXIT_WAIT_MS;
}

void kid_overdue(struct pool *p, struct kid *k) {
  if (k->state == KID_RUNNING && !k->is_warned) { /* Python code can then report where it is; see trace.h */
    zygote_signal(k->zygote, k->zygote_id, SIGPROF);
    k->is_warned = true;
    k->deadline_ms += grace_ms(p);
  } else if (k->state == KID_RUNNING)
    fail_time(p, k, "", p->cfg.job_timeout_ms);
  else
    kid_drop(p, k); /* the zygote did not report its exit */
}

void kid_yield(struct kid *k) {
  k->yields_at_ms = 0;
  zygote_nice(k->zygote, k->zygote_id, LONG_NICE);
}

void kid_sleeps(struct pool *p, struct kid *k, int ms) {
  char text[160];
  snprintf(text, sizeof text, "The job waited for %g s instead of computing while others waited, and was stopped.",
           ms / 1000.0);
  fail_work(p, k, DG_TIME_LIMIT, text, "A kernel is traced: there is nothing that it has to wait for.");
}

void kid_cancel(struct pool *p, struct kid *k) {
  work_fail(k->work, DG_WORKER_DIED, "The request was cancelled.", NULL); /* it has no reader any more */
  leave(p, k, "cancelled");
}

/* ---- its stream -------------------------------------------------------------------------------------------------- */

static void watch(struct pool *p, struct kid *k) {
  struct epoll_event ev = {.events = EPOLLIN, .data.u64 = event_tag(EV_KID, k->id)};
  if (k->out.len > k->out_at)
    ev.events |= EPOLLOUT;
  epoll_ctl(p->epoll_fd, EPOLL_CTL_MOD, k->fd, &ev);
}

static void write_out(struct pool *p, struct kid *k) {
  while (k->out_at < k->out.len) {
    ssize_t n = send(k->fd, k->out.data + k->out_at, k->out.len - k->out_at, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR)
      continue;
    if (n < 0)
      break; /* EAGAIN: later; anything else shows as the end of its stream */
    k->out_at += (size_t)n;
  }
  if (k->out_at == k->out.len) {
    buf_clear(&k->out);
    k->out_at = 0;
  }
  watch(p, k);
}

void kid_give(struct pool *p, struct kid *k, struct queued *q, int64_t now) {
  unsigned char head[WIRE_HEADER];
  size_t len;
  const char *json = work_json(q->work, &len);

  assert(k->state == KID_IDLE && !k->work);
  k->state = KID_RUNNING;
  k->work = q->work;
  k->payer = q->payer;
  k->busy_at_ms = now;
  k->busy_ms = 0;
  k->tries = q->tries;
  k->watch_id = q->watch_id;
  k->began_ms = now;
  k->waited_ms = now - q->since_ms;
  k->yields_at_ms = now + LONG_MS;
  k->deadline_ms = now + p->cfg.job_timeout_ms - grace_ms(p);
  k->resident_start = p->has_cgroup ? 0 : resident_pages(k->pid);
  k->zygote->jobs++;
  p->lines[k->zygote->version].used_ms = now;
  work_begin(k->work);
  wire_put_len(head, (uint32_t)len);
  buf_append(&k->out, head, sizeof head);
  if (buf_append(&k->out, json, len)) {
    fail_work(p, k, DG_INTERNAL, "The job could not be handed to a worker.", NULL);
    return;
  }
  write_out(p, k);
  p->refill_at_ms = now + REFILL_DELAY_MS;
}

/* Takes complete frames from the start of k->in.  False when the work is over. */
static bool take_frames(struct pool *p, struct kid *k) {
  struct error err;
  char text[80];
  size_t at = 0;

  while (k->in.len - at >= WIRE_HEADER) {
    size_t len = wire_get_len((unsigned char *)k->in.data + at);
    bool is_end = false;
    if (len > FRAME_MAX) {
      snprintf(text, sizeof text, "A stage of the result is longer than %d MiB.", FRAME_MAX >> 20);
      fail_work(p, k, DG_OUTPUT_LIMIT, text, output_hint);
      return false;
    }
    if (k->in.len - at - WIRE_HEADER < len)
      break;
    enum status st = work_add_frame(k->work, k->in.data + at + WIRE_HEADER, len, &is_end, &err);
    if (st == ST_LIMIT) {
      fail_work(p, k, DG_OUTPUT_LIMIT, err.text, output_hint);
      return false;
    }
    if (st) {
      log_warn("bad_frame", "job=%s reason=\"%s\"", work_tag(k->work), err.text);
      fail_work(p, k, DG_WORKER_DIED, "The process that compiled the kernel sent something that is no result.", NULL);
      return false;
    }
    if (is_end) {
      bool is_ok;
      work_look(k->work, NULL, &is_ok);
      leave(p, k, is_ok ? "ok" : "error");
      return false;
    }
    at += WIRE_HEADER + len;
    assert(at <= k->in.len);
  }
  memmove(k->in.data, k->in.data + at, k->in.len - at);
  k->in.len -= at;
  return true;
}

/* An idle child that sends anything, or whose stream ends, is of no use. */
static void idle_event(struct pool *p, struct kid *k) {
  kid_retire(k);
  p->refill_at_ms = k->deadline_ms;
}

/* The child's end of the stream was closed: the child has ended, or its job has closed the stream and must end. */
static void end_of_stream(struct kid *k) {
  kill_kid(k);
  close_stream(k);
  k->state = KID_LEAVING; /* with its work, until the zygote reports why it ended */
  k->deadline_ms = clock_now_ms() + EXIT_WAIT_MS;
}

void kid_event(struct pool *p, struct kid *k, uint32_t events, int64_t now) {
  (void)now;
  if (k->state == KID_IDLE) {
    idle_event(p, k);
    return;
  }
  if (events & EPOLLOUT)
    write_out(p, k);
  for (int i = 0; i < READS_PER_EVENT || events & EPOLLHUP; i++) {
    if (buf_reserve(&k->in, READ_CHUNK)) {
      fail_work(p, k, DG_INTERNAL, "The server is out of memory.", NULL);
      return;
    }
    ssize_t n = recv(k->fd, k->in.data + k->in.len, READ_CHUNK, MSG_DONTWAIT);
    if (n < 0 && errno == EINTR)
      continue;
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
      return;
    if (n <= 0) {
      end_of_stream(k);
      return;
    }
    k->in.len += (size_t)n;
    if (!take_frames(p, k))
      return;
  }
}
