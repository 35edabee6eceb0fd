#include "app.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "api/info.h"
#include "api/kept.h"
#include "api/metrics.h"
#include "api/misses.h"
#include "api/ready.h"
#include "http/guard.h"
#include "job/editors.h"
#include "job/quota.h"
#include "job/results.h"
#include "pool/pool.h"
#include "store/store.h"

static enum status open_store(const struct config *cfg, struct store **out, struct error *err) {
  if (!strncmp(cfg->store, "sqlite:", 7) && mkdir(cfg->data_dir, 0700) && errno != EEXIST)
    return fail(err, ST_INPUT, "--data-dir: %.160s: %m", cfg->data_dir);
  return store_open(cfg->store, out, err);
}

enum status app_start(const struct config *cfg, struct app *app, struct error *err) {
  app->cfg = cfg;
  const struct pool_config pool_cfg = {
      .worker_path = cfg->worker_path,
      .python_dir = cfg->python_dir,
      .site_dir = cfg->site_dir,
      .workers = cfg->workers,
      .queue_max = cfg->queue_max,
      .job_timeout_ms = cfg->job_timeout_ms,
      .wait_timeout_ms = cfg->wait_timeout_ms,
      .limits = cfg->limits,
      .jail_min = cfg->jail_min,
      .jail_without = cfg->jail_without,
      .jail_failing = cfg->jail_failing,
      .cgroup_dir = cfg->cgroup_dir,
      .log_format = cfg->log_format,
      .log_level = cfg->log_level,
      .zygote_jobs = cfg->zygote_jobs,
      .zygote_minutes = cfg->zygote_minutes,
  };
  enum status st = info_load(app, err);
  if (!st)
    st = open_store(cfg, &app->store, err);
  if (!st)
    st = misses_start(&app->misses, err);
  if (!st)
    st = kept_start(store_is_shared(app->store), &app->kept, err);
  if (!st)
    st = pool_start(&pool_cfg, &app->pool, err);
  if (st)
    return st;
  const struct results_config results_cfg = {
      .pool = app->pool,
      .store = app->store,
      .memory_max = (int64_t)cfg->cache_mib << 20,
      .store_max = (int64_t)cfg->results_mib << 20,
  };
  st = results_start(&results_cfg, &app->results, err);
  if (!st)
    st = quota_start(&cfg->quota, &app->quota, err);
  if (!st)
    st = editors_start(app->results, &app->editors, err);
  if (!st)
    st = metrics_start(&app->metrics, err);
  if (!st)
    st = ready_start(app, &app->ready, err);
  return st ? st : guard_start(cfg, app->quota, &app->guard, err);
}
