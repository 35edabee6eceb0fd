#include "store/space.h"

#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>

#include "base/clock.h"
#include "base/log.h"
#include "store/runs.h"

enum { RUNS_MS = 5000, COUNT_MS = 60000, NEARLY_OF = 5 /* the alarm is at 4 of 5 */ };

void space_init(struct space *s, const char *url) {
  static const char prefix[] = "sqlite:";
  *s = (struct space){0};
  atomic_init(&s->free_bytes, -1);
  if (strncmp(url, prefix, sizeof prefix - 1) != 0)
    return;
  const char *path = url + sizeof prefix - 1, *slash = strrchr(path, '/');
  s->dir = slash ? strndup(path, (size_t)(slash - path) + 1)
                 : strdup("."); /* NULL without memory: free_bytes stays unknown */
}

void space_clear(struct space *s) {
  free(s->dir);
  s->dir = NULL;
}

enum store_space space_look(const struct space *s) {
  const long long max = atomic_load(&s->max), bytes = atomic_load(&s->bytes);
  if (!max)
    return SPACE_OK;
  return bytes >= max ? SPACE_FULL : bytes >= max - max / NEARLY_OF ? SPACE_NEARLY_FULL : SPACE_OK;
}

static void tell(struct space *s) {
  static const char *const what[] = {[SPACE_OK] = "ok", [SPACE_NEARLY_FULL] = "nearly-full", [SPACE_FULL] = "full"};
  const enum store_space now = space_look(s);
  if (now == s->told)
    return;
  s->told = now;
  const long long mib = atomic_load(&s->bytes) >> 20, max = atomic_load(&s->max) >> 20;
  if (now == SPACE_OK)
    log_info("store_space", "space=%s mib=%lld max_mib=%lld", what[now], mib, max);
  else if (now == SPACE_NEARLY_FULL)
    log_warn("store_space", "space=%s mib=%lld max_mib=%lld", what[now], mib, max);
  else
    log_error("store_space", "space=%s mib=%lld max_mib=%lld no link is stored", what[now], mib, max);
}

static void look_at_disk(struct space *s) {
  struct statvfs v;
  if (s->dir && !statvfs(s->dir, &v))
    atomic_store(&s->free_bytes, (long long)v.f_bavail * (long long)v.f_frsize);
}

static void count_runner(void *user, const struct runner_seen *r) {
  *(int *)user += r->is_connected;
}

static enum status count_runs(struct space *s, struct db *db, struct error *err) {
  int waiting, running, runners = 0;
  enum status st = store_count_runs(db, &waiting, &running, err);
  if (!st)
    st = store_each_runner(db, count_runner, &runners, err);
  if (st)
    return st;
  atomic_store(&s->runs_waiting, waiting);
  atomic_store(&s->runs_running, running);
  atomic_store(&s->runners, runners);
  return ST_OK;
}

static enum status measure_objects(struct space *s, struct db *db, struct error *err) {
  int64_t bytes, to_send;
  enum status st = store_measure_objects(db, &bytes, &to_send, err);
  if (st)
    return st;
  atomic_fetch_add(&s->bytes, bytes - atomic_exchange(&s->object_bytes, bytes));
  atomic_store(&s->objects_to_send, to_send);
  return ST_OK;
}

void space_tend(struct space *s, struct db *db) {
  const int64_t now = clock_now_ms();
  struct error err;
  int64_t n = 0;
  enum status st = ST_OK;
  if (now >= s->measure_at_ms) {
    s->measure_at_ms = now + db->ops->size_every_ms;
    st = store_measure(db, &n, &err);
    if (!st)
      atomic_store(&s->bytes, n + atomic_load(&s->object_bytes));
  }
  if (!st && now >= s->count_at_ms) {
    s->count_at_ms = now + COUNT_MS;
    look_at_disk(s);
    st = store_count_links(db, &n, &err);
    if (!st)
      atomic_store(&s->links, n);
    if (!st)
      st = measure_objects(s, db, &err);
  }
  if (!st && now >= s->runs_at_ms) {
    s->runs_at_ms = now + RUNS_MS;
    st = count_runs(s, db, &err);
  }
  if (st)
    log_warn("store_space", "status=%s %s", status_name(st), err.text);
  tell(s);
}
