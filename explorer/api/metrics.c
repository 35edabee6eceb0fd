#include "api/metrics.h"

#include <assert.h>
#include <dirent.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "api/kept.h"
#include "api/runs.h"
#include "api/services.h"
#include "driver/pipeline.h"
#include "http/guard.h"
#include "http/route.h"
#include "job/results.h"
#include "pool/pool.h"
#include "session/hub.h"
#include "store/peers.h"
#include "store/s3.h"
#include "store/store.h"
#include "work/editors.h"
#include "work/quota.h"

enum { STATUS_MAX = 600, TEXT_MAX = 1 << 20 };

static const double buckets[] = {.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30};
enum { BUCKETS = sizeof buckets / sizeof *buckets };

struct counted {
  atomic_llong by_status[STATUS_MAX];
  atomic_llong by_time[BUCKETS + 1]; /* each request is in one of them; the last is +Inf */
  atomic_llong us;
};

struct metrics {
  time_t started;
  const struct route *routes;
  int n_routes;
  struct counted files, by_route[METRICS_ROUTES_MAX];
};

enum status metrics_start(const struct route *routes, int n_routes, struct metrics **out, struct error *err) {
  struct metrics *m = calloc(1, sizeof *m);
  if (!m)
    return fail(err, ST_NOMEM, "metrics");
  assert(n_routes <= METRICS_ROUTES_MAX);
  m->routes = routes;
  m->n_routes = n_routes;
  m->started = time(NULL); /* an operator wants to see the date, so not the monotonic clock */
  *out = m;
  return ST_OK;
}

void metrics_stop(struct metrics *m) {
  free(m);
}

void metrics_count(struct metrics *m, const struct route *route, unsigned status, int64_t us) {
  assert(!route || (route >= m->routes && route < m->routes + m->n_routes));
  struct counted *c = route ? &m->by_route[route - m->routes] : &m->files;
  int b = 0;
  if (status >= STATUS_MAX)
    return;
  while (b < BUCKETS && (double)us > buckets[b] * 1e6)
    b++;
  atomic_fetch_add(&c->by_status[status], 1);
  atomic_fetch_add(&c->by_time[b], 1);
  atomic_fetch_add(&c->us, us);
}

/* ---- the text ---------------------------------------------------------------------------------------------------- */

static void head(struct buf *b, const char *name, const char *type, const char *help) {
  buf_printf(b, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void put(struct buf *b, const char *name, const char *type, const char *help, double value) {
  head(b, name, type, help);
  buf_printf(b, "%s %.15g\n", name, value);
}

static void put_statuses(struct buf *b, struct counted *c, const char *label) {
  for (int s = 0; s < STATUS_MAX; s++) {
    long long n = atomic_load(&c->by_status[s]);
    if (n)
      buf_printf(b, "nkx_http_requests_total{route=\"%s\",status=\"%d\"} %lld\n", label, s, n);
  }
}

static void put_times(struct buf *b, struct counted *c, const char *label) {
  long long sum = 0, us = atomic_load(&c->us);
  for (int k = 0; k <= BUCKETS; k++) {
    sum += atomic_load(&c->by_time[k]);
    if (k < BUCKETS)
      buf_printf(b, "nkx_http_request_seconds_bucket{route=\"%s\",le=\"%g\"} %lld\n", label, buckets[k], sum);
  }
  buf_printf(b, "nkx_http_request_seconds_bucket{route=\"%s\",le=\"+Inf\"} %lld\n", label, sum);
  buf_printf(b, "nkx_http_request_seconds_sum{route=\"%s\"} %.6f\n", label, (double)us / 1e6);
  buf_printf(b, "nkx_http_request_seconds_count{route=\"%s\"} %lld\n", label, sum);
}

static void put_requests(struct buf *b, struct metrics *m) {
  head(b, "nkx_http_requests_total", "counter", "Requests by route and status; 0: the client left before an answer.");
  put_statuses(b, &m->files, "file");
  for (int i = 0; i < m->n_routes; i++)
    put_statuses(b, &m->by_route[i], m->routes[i].path);
  head(b, "nkx_http_request_seconds", "histogram", "From a request's headers to the end of its answer.");
  put_times(b, &m->files, "file");
  for (int i = 0; i < m->n_routes; i++)
    put_times(b, &m->by_route[i], m->routes[i].path);
}

static void put_connections(struct buf *b, struct server *server) {
  static const char *const faults[] = {"",        "malformed",   "address-too-long", "headers-too-large", "too-large",
                                       "encoded", "expectation", "http-version",     "connections"};
  struct guard_counts g;
  server_look(server, &g);
  put(b, "nkx_http_connections", "gauge", "Open connections.", (double)g.connections);
  put(b, "nkx_http_connections_total", "counter", "Connections accepted.", (double)g.accepted);
  head(b, "nkx_http_refused_total", "counter",
       "Requests refused because they are not well-formed, or their client has too many.");
  for (int f = FF_MALFORMED; f < FF_COUNT; f++)
    buf_printf(b, "nkx_http_refused_total{reason=\"%s\"} %lld\n", faults[f], (long long)g.refused[f]);
  struct unsent_counts u;
  server_look_unsent(server, &u);
  put(b, "nkx_http_unsent_bytes", "gauge", "Bytes of large answers that clients have not taken yet.", (double)u.bytes);
  put(b, "nkx_http_unsent_refused_total", "counter", "Answers for which there was no room besides those.",
      (double)u.refused);
}

static void put_quota(struct buf *b, const struct services *services) {
  static const char *const names[QUOTA_VERDICTS] = {[QUOTA_COMPILES] = "compiles",
                                                    [QUOTA_JOBS] = "jobs",
                                                    [QUOTA_CONNECTIONS] = "connections",
                                                    [QUOTA_LINKS] = "links",
                                                    [QUOTA_LINK_BYTES] = "link-bytes"};
  struct quota_counts q;
  quota_look(services->quota, &q);
  head(b, "nkx_quota_refused_total", "counter", "Requests and connections of clients that had used up their share.");
  for (int v = QUOTA_COMPILES; v < QUOTA_VERDICTS; v++)
    buf_printf(b, "nkx_quota_refused_total{share=\"%s\"} %lld\n", names[v], (long long)q.refused[v]);
  put(b, "nkx_clients", "gauge", "Clients seen lately.", q.clients);
  put(b, "nkx_superseded_total", "counter", "Compiles that a newer one of the same editor cancelled.",
      (double)editors_called_off(services->editors));
}

static void put_jobs(struct buf *b, const struct services *services) {
  struct pool_health h;
  struct results_counts r;
  pool_look(services->pool, &h);
  results_look(services->results, &r);
  head(b, "nkx_jobs_total", "counter", "Jobs by outcome.");
  for (int i = 0; i < POOL_OUTCOMES; i++)
    buf_printf(b, "nkx_jobs_total{outcome=\"%s\"} %lld\n", pool_outcomes[i], (long long)h.outcomes[i]);
  put(b, "nkx_queue_length", "gauge", "Jobs that wait for a worker.", h.waiting);
  put(b, "nkx_workers_running", "gauge", "Workers with a job.", h.running);
  put(b, "nkx_workers_idle", "gauge", "Workers that wait in their jails for a job.", h.idle);
  put(b, "nkx_pool_ready", "gauge", "1 when jobs can be run.", h.is_ready);
  put(b, "nkx_zygote_restarts_total", "counter", "Zygotes that died and were replaced.", h.restarts);
  head(b, "nkx_jail_level", "gauge", "1 for the level of the jail in use.");
  buf_printf(b, "nkx_jail_level{level=\"%s\"} 1\n", jail_level_name(h.level));
  head(b, "nkx_results_total", "counter", "Requests for a result by where it came from.");
  buf_printf(b, "nkx_results_total{from=\"compiled\"} %lld\n", (long long)r.compiled);
  buf_printf(b, "nkx_results_total{from=\"joined\"} %lld\n", (long long)r.joined);
  buf_printf(b, "nkx_results_total{from=\"memory\"} %lld\n", (long long)r.from_memory);
  buf_printf(b, "nkx_results_total{from=\"store\"} %lld\n", (long long)r.from_store);
  put(b, "nkx_results_memory_bytes", "gauge", "Results kept in memory.", (double)r.memory_bytes);
}

/* The object store that results are moved to. */
static void put_objects(struct buf *b, struct s3_site *site, const struct store_counts *s) {
  static const char *const kinds[S3_KINDS] = {[S3_PUT] = "put", [S3_GET] = "get", [S3_DELETE] = "delete"};
  static const char *const outcomes[S3_OUTCOMES] = {[S3_DONE] = "done",
                                                    [S3_MISSING] = "missing",
                                                    [S3_FAILED] = "failed",
                                                    [S3_DENIED] = "denied",
                                                    [S3_RESTED] = "rested"};
  struct s3_counts c;
  s3_look(site, &c);
  put(b, "nkx_objects_up", "gauge", "1 if the object store answered last.", c.is_up);
  put(b, "nkx_objects_bytes", "gauge", "What results take there.", (double)s->object_bytes);
  put(b, "nkx_objects_to_send", "gauge", "Results that are still in the database, counted once a minute.",
      (double)s->objects_to_send);
  head(b, "nkx_objects_denied", "gauge", "1 if the last such request was refused: its key lacks the permission.");
  for (int k = 0; k < S3_KINDS; k++)
    buf_printf(b, "nkx_objects_denied{method=\"%s\"} %d\n", kinds[k], c.is_denied[k]);
  head(b, "nkx_objects_requests_total", "counter", "Requests to it; rested: not sent, because one before had failed.");
  for (int k = 0; k < S3_KINDS; k++)
    for (int o = 0; o < S3_OUTCOMES; o++)
      buf_printf(b, "nkx_objects_requests_total{method=\"%s\",outcome=\"%s\"} %lld\n", kinds[k], outcomes[o],
                 (long long)c.requests[k][o]);
}

static void put_store(struct buf *b, const struct services *services) {
  static const char *const lanes[STORE_LANES] = {
      [STORE_READ] = "read", [STORE_WRITE] = "write", [STORE_BUILD] = "build"};
  struct store_counts s;
  store_look(services->store, &s);
  head(b, "nkx_store_tasks_total", "counter", "Tasks done.");
  for (int l = 0; l < STORE_LANES; l++)
    buf_printf(b, "nkx_store_tasks_total{lane=\"%s\"} %lld\n", lanes[l], (long long)s.done[l]);
  head(b, "nkx_store_refused_total", "counter", "Tasks not taken because too many waited.");
  for (int l = 0; l < STORE_LANES; l++)
    buf_printf(b, "nkx_store_refused_total{lane=\"%s\"} %lld\n", lanes[l], (long long)s.refused[l]);
  head(b, "nkx_store_waiting", "gauge", "Tasks that wait.");
  for (int l = 0; l < STORE_LANES; l++)
    buf_printf(b, "nkx_store_waiting{lane=\"%s\"} %d\n", lanes[l], s.waiting[l]);
  put(b, "nkx_store_bytes", "gauge", "What the store takes, without free pages, objects included.", (double)s.bytes);
  put(b, "nkx_store_max_bytes", "gauge", "Its ceiling, above which no link is stored; 0: none.", (double)s.max_bytes);
  if (store_objects(services->store))
    put_objects(b, store_objects(services->store), &s);
  put(b, "nkx_links_memory_bytes", "gauge", "Answers about links kept in memory.", (double)kept_bytes(services->kept));
  put(b, "nkx_store_links", "gauge", "Links with their revisions, counted once a minute.", (double)s.links);
  if (s.free_bytes >= 0)
    put(b, "nkx_store_free_bytes", "gauge", "Free space where the store's file is.", (double)s.free_bytes);
}

static void put_runs(struct buf *b, const struct services *services) {
  struct store_counts s;
  store_look(services->store, &s);
  head(b, "nkx_runs_total", "counter", "Runs on Neuron hosts by what happened to them on this server.");
  for (enum runs_count c = 0; c < RUNS_COUNT_N; c++)
    buf_printf(b, "nkx_runs_total{event=\"%s\"} %lld\n", runs_count_name(c),
               (long long)runs_counted(services->runs, c));
  put(b, "nkx_runs_waiting", "gauge", "Runs that wait for a runner, in the store.", s.runs_waiting);
  put(b, "nkx_runs_running", "gauge", "Runs that a runner has.", s.runs_running);
  put(b, "nkx_runners", "gauge", "Runners that are connected to servers on this store.", s.runners);
}

static void put_sessions(struct buf *b, const struct services *services) {
  struct hub_counts h;
  hub_look(services->sessions, &h);
  put(b, "nkx_sessions", "gauge", "Sessions in memory: people together in one kernel.", h.rooms);
  put(b, "nkx_session_people", "gauge", "People who are there.", h.people);
  put(b, "nkx_session_streams", "gauge", "Streams of sessions that are open.", h.streams);
  put(b, "nkx_session_bytes", "gauge", "Memory of their texts.", (double)h.bytes);
  put(b, "nkx_session_updates_total", "counter", "Updates that were stored.", (double)h.updates);
  put(b, "nkx_session_presences_total", "counter", "Presences that were told.", (double)h.presences);
}

/* What servers on one PostgreSQL tell each other. */
static void put_peers(struct buf *b, const struct services *s) {
  struct peers_counts c;
  if (!s->peers)
    return;
  peers_look(s->peers, &c);
  put(b, "nkx_peers_up", "gauge", "1 if messages to other servers are sent.", c.is_up);
  put(b, "nkx_peers_lag_seconds", "gauge", "How long the last notification took to come back.", (double)c.lag_us / 1e6);
  head(b, "nkx_peers_messages_total", "counter", "Messages between servers.");
  buf_printf(b, "nkx_peers_messages_total{what=\"sent\"} %lld\n", (long long)c.sent);
  buf_printf(b, "nkx_peers_messages_total{what=\"heard\"} %lld\n", (long long)c.heard);
  buf_printf(b, "nkx_peers_messages_total{what=\"dropped\"} %lld\n", (long long)c.dropped);
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
  const struct services *services = services_of(rq);
  struct buf b;
  buf_init(&b, TEXT_MAX);
  put_requests(&b, services->metrics);
  put_connections(&b, services->server);
  put_jobs(&b, services);
  put_quota(&b, services);
  put_store(&b, services);
  put_runs(&b, services);
  put_sessions(&b, services);
  put_peers(&b, services);
  put_process(&b, services->metrics);
  struct MHD_Response *r = MHD_create_response_from_buffer(b.len, (void *)buf_text(&b), MHD_RESPMEM_MUST_COPY);
  buf_clear(&b);
  if (!r)
    return MHD_NO;
  MHD_add_response_header(r, MHD_HTTP_HEADER_CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8");
  MHD_add_response_header(r, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store");
  return http_send(rq, MHD_HTTP_OK, r);
}
