#include "app.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "api/admit.h"
#include "api/info.h"
#include "api/lessons.h"
#include "api/kept.h"
#include "api/metrics.h"
#include "api/misses.h"
#include "api/part.h"
#include "api/ready.h"
#include "api/runs.h"
#include "api/seal.h"
#include "api/search.h"
#include "api/told.h"
#include "base/log.h"
#include "config.h"
#include "driver/job.h"
#include "http/server.h"
#include "job/results.h"
#include "pool/pool.h"
#include "route.h"
#include "session/hub.h"
#include "store/peers.h"
#include "store/remote.h"
#include "store/s3.h"
#include "store/store.h"
#include "work/editors.h"
#include "work/quota.h"

enum { OPS_CONNECTIONS = 64, OPS_BODY_MAX = 4096 };
enum { DRAIN_ANSWERS_MS = 1500 }; /* for the answers to jobs that were ended after --drain-timeout-ms */

/* ---- privileges -------------------------------------------------------------------------------------------------- */

/* Gives up all access to the file system but the files that the running service reads, and those that it changes. */
static enum status give_up_privileges(const struct config *cfg, struct confinement *out, struct error *err) {
  const char *database = config_sqlite_path(cfg), *slash = database ? strrchr(database, '/') : NULL;
  const char *home = database ? NULL : getenv("HOME"); /* libpq looks for passwords and certificates there */
  struct arena a;
  arena_init(&a);
  const struct confine_plan plan = {
      .user = cfg->user,
      .n_own = 1,
      .own = {slash      ? arena_printf(&a, "%.*s/", (int)(slash - database), database)
              : database ? "."
                         : NULL},
      .family = slash ? slash + 1 : database,
      .n_read = 10,
      .read = {cfg->http.web_dir, cfg->examples_dir, home ? arena_printf(&a, "%s/.pgpass", home) : NULL,
               home ? arena_printf(&a, "%s/.postgresql", home) : NULL, "/proc", "/etc", "/usr", "/run", "/dev/null",
               "/dev/urandom"},
      .may_connect = !database || cfg->s3.url,
      .may_stay_root = cfg->confine == CONFINE_AS_ROOT,
  };
  enum status st = confine(&plan, out, err);
  arena_clear(&a);
  return st;
}

static void log_confinement(const struct confinement *c) {
  char list[120] = "";
  for (int l = 0; l < CONFINE_COUNT; l++)
    if (c->layers >> l & 1)
      snprintf(list + strlen(list), sizeof list - strlen(list), "%s%s", *list ? "," : "",
               confine_layer_name((enum confine_layer)l));
  if (c->why[0])
    log_warn("confined", "uid=%u walls=%s missing=\"%s\"", c->uid, list, c->why);
  else
    log_info("confined", "uid=%u walls=%s", c->uid, list);
}

/* ---- parts ------------------------------------------------------------------------------------------------------- */

static enum status start_pool(const struct config *cfg, int launcher_fd, struct services *s, struct error *err) {
  const struct pool_config pool = {
      .versions = &cfg->versions,
      .launcher_fd = launcher_fd,
      .workers = cfg->workers,
      .queue_max = cfg->queue_max,
      .job_timeout_ms = cfg->job_timeout_ms,
      .wait_timeout_ms = cfg->wait_timeout_ms,
      .limits = cfg->limits,
      .zygote_jobs = cfg->zygote_jobs,
      .zygote_minutes = cfg->zygote_minutes,
  };
  return pool_start(&pool, &s->pool, err);
}

static enum status start_results(const struct config *cfg, struct services *s, struct error *err) {
  const struct results_config results = {
      .pool = s->pool,
      .store = s->store,
      .memory_max = (int64_t)cfg->cache_mib << 20,
      .memory_ms = (int64_t)cfg->cache_s * 1000,
      .store_max = (int64_t)cfg->results_mib << 20,
  };
  return results_start(&results, &s->results, err);
}

static bool enter(void *user, const char *address, void **client) {
  const struct services *s = user;
  struct client *c = NULL;
  bool may = quota_enter(s->quota, address, &c);
  *client = c;
  return may;
}

static void leave(void *client) {
  quota_leave(client);
}

static bool is_early(void *user, const char *address, bool is_link) {
  const struct services *s = user;
  return quota_is_early(s->quota, address, is_link);
}

static enum status start_server(const struct config *cfg, const struct listeners *at, struct app *app,
                                struct error *err) {
  const struct server_config server = {
      .kind = cfg->http.ops_port ? SERVER_PUBLIC : SERVER_ALL,
      .http = cfg->http,
      .routes = app_routes,
      .n_routes = app_n_routes,
      .body_max = JOB_JSON_MAX,
      .handler_ms = app->services.work_ms,
      .part_size = sizeof(struct api_part),
      .client_key = store_secret(app->services.store),
      .hooks = {.user = &app->services,
                .enter = enter,
                .leave = leave,
                .admit = identity_admit,
                .is_early = is_early,
                .end = api_end},
  };
  enum status st = server_start(&server, at->fds[LISTEN_PUBLIC], &app->server, err);
  app->services.server = app->server;
  return st;
}

/* The operator's own listener: it goes on while the public one drains, counts no client, and has no files. */
static enum status start_ops(const struct config *cfg, const struct listeners *at, struct app *app, struct error *err) {
  struct server_config ops = {
      .kind = SERVER_OPS,
      .http = cfg->http,
      .routes = app_routes,
      .n_routes = app_n_routes,
      .body_max = OPS_BODY_MAX,
      .handler_ms = app->services.work_ms,
      .part_size = sizeof(struct api_part),
      .client_key = store_secret(app->services.store),
      .hooks = {.user = &app->services, .end = api_end},
  };
  ops.http.connections_max = OPS_CONNECTIONS;
  ops.http.trusted_proxies = (struct address_nets){0};
  return server_start(&ops, at->fds[LISTEN_OPS], &app->ops, err);
}

/* After an operator has removed a link. */
static void forget_answers(void *user) {
  kept_forget(((struct services *)user)->kept);
}

/* Without it `nkx store delete` needs a server that is stopped; that is no reason not to start. */
static void start_remote(const struct config *cfg, struct services *s) {
  const char *path = config_sqlite_path(cfg);
  struct error err;
  if (path && remote_start(s->store, path, forget_answers, s, &s->remote, &err))
    log_warn("store_control", "%s", err.text);
}

static enum status start_peers(const struct config *cfg, struct services *s, struct error *err) {
  const struct peers_hooks hooks = {.heard = told_heard, .tick = told_tick, .user = s};
  if (getrandom(&s->server_id, sizeof s->server_id, 0) != (ssize_t)sizeof s->server_id)
    return fail(err, ST_IO, "no random bytes: %m");
  enum status st = peers_start(cfg->store, &hooks, &s->peers, err);
  if (!st)
    quota_tell_others(s->quota, told_say_open, s);
  return st;
}

/* ---- all of it --------------------------------------------------------------------------------------------------- */

enum status app_start(const struct config *cfg, int launcher_fd, const struct listeners *at, struct app *app,
                      struct error *err) {
  struct services *s = &app->services;
  app->cfg = cfg;
  s->confinement = &app->confinement;
  s->report_url = cfg->report_url;
  s->identity = &cfg->identity;
  s->versions = &cfg->versions;
  s->work_ms = cfg->job_timeout_ms + cfg->wait_timeout_ms;
  enum status st =
      cfg->s3.url ? s3_site_open(&cfg->s3, &app->objects, err) : ST_OK; /* while it can read the credentials */
  if (!st && cfg->confine)
    st = give_up_privileges(cfg, &app->confinement, err);
  if (!st && cfg->confine)
    log_confinement(&app->confinement);
  if (!st)
    st = info_load(s, cfg->examples_dir, err);
  if (!st)
    st = lessons_load(cfg->examples_dir, &s->lessons, err);
  if (!st)
    st = store_open(cfg->store, app->objects, &s->store, err);
  if (!st)
    store_limit(s->store, (int64_t)cfg->store_max_mib << 20);
  if (!st)
    st = misses_start(&s->misses, err);
  if (!st)
    st = kept_start(store_is_shared(s->store), (int64_t)cfg->cache_mib << 19, &s->kept, err);
  if (!st)
    st = quota_start(&cfg->quota, &s->quota, err);
  if (!st)
    st = editors_start(&s->editors, err);
  if (!st && store_is_shared(s->store))
    st = start_peers(cfg, s, err);
  if (!st)
    st = start_pool(cfg, launcher_fd, s, err);
  if (!st)
    st = start_results(cfg, s, err);
  if (!st)
    st = metrics_start(app_routes, app_n_routes, &s->metrics, err);
  if (!st)
    start_remote(cfg, s);
  if (!st)
    st = runs_start(&cfg->runs, &s->runs, err);
  if (!st)
    st = hub_start(s->store, cfg->store, (int64_t)cfg->session_idle_s * 1000, &s->sessions, err);
  if (!st)
    st = seal_start(s, (int64_t)cfg->session_idle_s * 1000, &s->seal, err);
  if (!st)
    st = searches_start(s, &s->searches, err);
  if (!st)
    st = ready_start(s, &s->ready, err);
  if (!st)
    st = start_server(cfg, at, app, err);
  return st || !cfg->http.ops_port ? st : start_ops(cfg, at, app, err);
}

/* Ends the requests: first no new ones come, then jobs may go on for a while, then they are ended. */
static void drain(struct app *app) {
  struct services *s = &app->services;
  ready_drain(s->ready);
  runs_end_waits(s->runs);
  hub_end_streams(s->sessions);
  searches_end(s->searches);
  server_quiesce(app->server);
  server_drain(app->server, app->cfg->drain_timeout_ms); /* works in the queue go on, too */
  ready_stop(s->ready);                                  /* its trial needs the pool */
  seal_stop(s->seal);                                    /* and so do the links that it makes */
  s->seal = NULL;
  pool_close(s->pool, 0);
  server_drain(app->server, DRAIN_ANSWERS_MS);
}

/* The reverse of app_start, except that the threads of the pool and the store end before the server does, because they
 * call back the requests that wait for them. */
void app_stop(struct app *app) {
  struct services *s = &app->services;
  if (app->server)
    drain(app);
  else if (s->pool)
    pool_close(s->pool, 0);
  seal_stop(s->seal);
  searches_stop(s->searches);
  remote_stop(s->remote);
  store_stop(s->store);
  server_stop(app->server);
  if (app->ops)
    server_quiesce(app->ops); /* or the library would shut the socket down, which a successor is to take over */
  server_stop(app->ops);
  app->server = app->ops = NULL;
  peers_stop(s->peers);
  ready_free(s->ready);
  runs_stop(s->runs);
  hub_stop(s->sessions);
  metrics_stop(s->metrics);
  results_stop(s->results);
  pool_free(s->pool);
  editors_stop(s->editors);
  quota_stop(s->quota);
  kept_stop(s->kept);
  misses_stop(s->misses);
  store_close(s->store);
  s3_site_close(app->objects);
  lessons_free(s->lessons);
  info_clear(s);
}
