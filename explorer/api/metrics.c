#include "api/metrics.h"

#include <dirent.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/clock.h"
#include "driver/pipeline.h"
#include "http/guard.h"
#include "job/editors.h"
#include "job/quota.h"
#include "job/results.h"
#include "pool/pool.h"

enum { ROUTES_MAX = 64, STATUS_MAX = 600, TEXT_MAX = 1 << 20 };

static const double buckets[] = {.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30};
enum { BUCKETS = sizeof buckets / sizeof *buckets };

struct counted {
  atomic_llong by_status[STATUS_MAX];
  atomic_llong by_time[BUCKETS + 1]; /* each request in one: the last one is +Inf */
  atomic_llong us;
};

struct metrics {
  time_t started;
  struct counted routes[ROUTES_MAX]; /* 0: files; then as route_at counts them */
};

enum status metrics_start(struct metrics **out, struct error *err) {
  struct metrics *m = calloc(1, sizeof *m);
  if (!m)
    return fail(err, ST_NOMEM, "metrics");
  m->started = time(NULL); /* for the operator's eye, who wants to see the date */
  *out = m;
  return ST_OK;
}

void metrics_stop(struct metrics *m) {
  free(m);
}

void metrics_count(struct metrics *m, const struct route *route, unsigned status, int64_t us) {
  int i = route ? route_index(route) + 1 : 0, b = 0;
  if (i >= ROUTES_MAX || status >= STATUS_MAX)
    return;
  while (b < BUCKETS && (double)us > buckets[b] * 1e6)
    b++;
  atomic_fetch_add(&m->routes[i].by_status[status], 1);
  atomic_fetch_add(&m->routes[i].by_time[b], 1);
  atomic_fetch_add(&m->routes[i].us, us);
}

/* ---- the text ------------------------------------------------------------------------------------------------------
 */

static void head(struct buf *b, const char *name, const char *type, const char *help) {
  buf_printf(b, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void put(struct buf *b, const char *name, const char *type, const char *help, double value) {
  head(b, name, type, help);
  buf_printf(b, "%s %.15g\n", name, value);
}

static const char *label(int i) {
  return i ? route_at(i - 1)->path : "file";
}

static void put_requests(struct buf *b, struct metrics *m) {
  head(b, "nkx_http_requests_total", "counter", "Requests by route and status; 0: the client left before an answer.");
  for (int i = 0; i <= route_count(); i++)
    for (int s = 0; s < STATUS_MAX; s++) {
      long long n = atomic_load(&m->routes[i].by_status[s]);
      if (n)
        buf_printf(b, "nkx_http_requests_total{route=\"%s\",status=\"%d\"} %lld\n", label(i), s, n);
    }
  head(b, "nkx_http_request_seconds", "histogram", "From a request's headers to the end of its answer.");
  for (int i = 0; i <= route_count(); i++) {
    long long sum = 0, us = atomic_load(&m->routes[i].us);
    for (int k = 0; k <= BUCKETS; k++) {
      sum += atomic_load(&m->routes[i].by_time[k]);
      if (k < BUCKETS)
        buf_printf(b, "nkx_http_request_seconds_bucket{route=\"%s\",le=\"%g\"} %lld\n", label(i), buckets[k], sum);
    }
    buf_printf(b, "nkx_http_request_seconds_bucket{route=\"%s\",le=\"+Inf\"} %lld\n", label(i), sum);
    buf_printf(b, "nkx_http_request_seconds_sum{route=\"%s\"} %.6f\n", label(i), (double)us / 1e6);
    buf_printf(b, "nkx_http_request_seconds_count{route=\"%s\"} %lld\n", label(i), sum);
  }
}

static void put_connections(struct buf *b, const struct app *app) {
  static const char *const faults[] = {"",        "malformed",   "address-too-long", "headers-too-large", "too-large",
                                       "encoded", "expectation", "http-version",     "connections"};
  struct guard_counts g;
  guard_look(app->guard, &g);
  put(b, "nkx_http_connections", "gauge", "Open connections.", (double)g.connections);
  put(b, "nkx_http_connections_total", "counter", "Connections accepted.", (double)g.accepted);
  head(b, "nkx_http_refused_total", "counter", "Requests refused before they were understood.");
  for (int f = FF_MALFORMED; f < FF_COUNT; f++)
    buf_printf(b, "nkx_http_refused_total{reason=\"%s\"} %lld\n", faults[f], (long long)g.refused[f]);
}

static void put_quota(struct buf *b, const struct app *app) {
  static const char *const names[] = {
      [QUOTA_COMPILES] = "compiles", [QUOTA_JOBS] = "jobs", [QUOTA_CONNECTIONS] = "connections"};
  struct quota_counts q;
  quota_look(app->quota, &q);
  head(b, "nkx_quota_refused_total", "counter", "Requests and connections of clients that had used up their share.");
  for (int v = QUOTA_COMPILES; v <= QUOTA_CONNECTIONS; v++)
    buf_printf(b, "nkx_quota_refused_total{share=\"%s\"} %lld\n", names[v], (long long)q.refused[v]);
  put(b, "nkx_clients", "gauge", "Clients seen lately.", q.clients);
  put(b, "nkx_superseded_total", "counter", "Compiles called off by a newer one of the same editor.",
      (double)editors_called_off(app->editors));
}

static void put_jobs(struct buf *b, const struct app *app) {
  struct pool_health h;
  struct results_counts r;
  pool_look(app->pool, &h);
  results_look(app->results, &r);
  head(b, "nkx_jobs_total", "counter", "Jobs by outcome.");
  for (int i = 0; i < POOL_OUTCOMES; i++)
    buf_printf(b, "nkx_jobs_total{outcome=\"%s\"} %lld\n", pool_outcomes[i], (long long)h.outcomes[i]);
  put(b, "nkx_queue_length", "gauge", "Jobs that wait for a worker.", h.waiting);
  put(b, "nkx_workers_running", "gauge", "Workers with a job.", h.running);
  put(b, "nkx_workers_idle", "gauge", "Workers that wait, jailed.", h.idle);
  put(b, "nkx_pool_ready", "gauge", "Can jobs be run?", h.is_ready);
  put(b, "nkx_zygote_restarts_total", "counter", "Deaths of the workers' origin.", h.restarts);
  head(b, "nkx_jail_level", "gauge", "1 for the level of the jail that stands.");
  buf_printf(b, "nkx_jail_level{level=\"%s\"} 1\n", jail_level_name(h.level));
  head(b, "nkx_results_total", "counter", "Requests for a result by where it came from.");
  buf_printf(b, "nkx_results_total{from=\"compiled\"} %lld\n", (long long)r.compiled);
  buf_printf(b, "nkx_results_total{from=\"joined\"} %lld\n", (long long)r.joined);
  buf_printf(b, "nkx_results_total{from=\"memory\"} %lld\n", (long long)r.from_memory);
  buf_printf(b, "nkx_results_total{from=\"store\"} %lld\n", (long long)r.from_store);
  put(b, "nkx_results_memory_bytes", "gauge", "Results kept in memory.", (double)r.memory_bytes);
}

static void put_store(struct buf *b, const struct app *app) {
  static const char *const lanes[STORE_LANES] = {[STORE_READ] = "read", [STORE_WRITE] = "write"};
  struct store_counts s;
  store_look(app->store, &s);
  head(b, "nkx_store_tasks_total", "counter", "Tasks done.");
  for (int l = 0; l < STORE_LANES; l++)
    buf_printf(b, "nkx_store_tasks_total{lane=\"%s\"} %lld\n", lanes[l], (long long)s.done[l]);
  head(b, "nkx_store_refused_total", "counter", "Tasks not taken because too many waited.");
  for (int l = 0; l < STORE_LANES; l++)
    buf_printf(b, "nkx_store_refused_total{lane=\"%s\"} %lld\n", lanes[l], (long long)s.refused[l]);
  head(b, "nkx_store_waiting", "gauge", "Tasks that wait.");
  for (int l = 0; l < STORE_LANES; l++)
    buf_printf(b, "nkx_store_waiting{lane=\"%s\"} %d\n", lanes[l], s.waiting[l]);
}

static int count_fds(void) {
  DIR *d = opendir("/proc/self/fd");
  int n = -3; /* ".", "..", and the directory itself */
  while (d && readdir(d))
    n++;
  if (d)
    closedir(d);
  return n < 0 ? 0 : n;
}

static void put_process(struct buf *b, const struct metrics *m) {
  struct rusage u = {0};
  struct rlimit r = {0};
  long long pages = 0;
  FILE *f = fopen("/proc/self/statm", "re");
  if (f && fscanf(f, "%*d %lld", &pages) != 1)
    pages = 0;
  if (f)
    fclose(f);
  getrusage(RUSAGE_SELF, &u);
  getrlimit(RLIMIT_NOFILE, &r);
  double cpu =
      (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) + (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
  put(b, "process_resident_memory_bytes", "gauge", "Resident memory of the server.",
      (double)pages * (double)sysconf(_SC_PAGESIZE));
  put(b, "process_open_fds", "gauge", "Open descriptors of the server.", count_fds());
  put(b, "process_max_fds", "gauge", "Most descriptors it may open.", (double)r.rlim_cur);
  put(b, "process_cpu_seconds_total", "counter", "Processor time of the server.", cpu);
  put(b, "process_start_time_seconds", "gauge", "When it started, Unix time.", (double)m->started);
  head(b, "nkx_build_info", "gauge", "1 for the pipeline's version.");
  buf_printf(b, "nkx_build_info{pipeline=\"%s\"} 1\n", pipeline_version());
}

enum MHD_Result api_metrics(struct request *rq) {
  struct buf b;
  buf_init(&b, TEXT_MAX);
  put_requests(&b, rq->app->metrics);
  put_connections(&b, rq->app);
  put_jobs(&b, rq->app);
  put_quota(&b, rq->app);
  put_store(&b, rq->app);
  put_process(&b, rq->app->metrics);
  struct MHD_Response *r = MHD_create_response_from_buffer(b.len, (void *)buf_text(&b), MHD_RESPMEM_MUST_COPY);
  buf_clear(&b);
  if (!r)
    return MHD_NO;
  MHD_add_response_header(r, MHD_HTTP_HEADER_CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8");
  MHD_add_response_header(r, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store");
  return http_send(rq, MHD_HTTP_OK, r);
}
