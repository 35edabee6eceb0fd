#include "app.h"

#include "api/info.h"
#include "api/kept.h"
#include "api/metrics.h"
#include "api/misses.h"
#include "api/ready.h"
#include "http/guard.h"
#include "http/hold.h"
#include "job/editors.h"
#include "job/quota.h"
#include "job/results.h"
#include "pool/pool.h"
#include "store/store.h"

enum status app_start(const struct config *cfg, int launcher_fd, struct app *app, struct error *err) {
  app->cfg = cfg;
  const struct pool_config pool_cfg = {
      .launcher_fd = launcher_fd,
      .workers = cfg->workers,
      .queue_max = cfg->queue_max,
      .job_timeout_ms = cfg->job_timeout_ms,
      .wait_timeout_ms = cfg->wait_timeout_ms,
      .limits = cfg->limits,
      .zygote_jobs = cfg->zygote_jobs,
      .zygote_minutes = cfg->zygote_minutes,
  };
  enum status st = info_load(app, err);
  if (!st)
    st = store_open(cfg->store, &app->store, err);
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
      .memory_ms = (int64_t)cfg->cache_s * 1000,
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
  if (!st)
    st = holds_start(&app->holds, err);
  return st ? st : guard_start(cfg, app->quota, &app->guard, err);
}
