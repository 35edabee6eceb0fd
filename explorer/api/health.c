/* GET /healthz: can a kernel be compiled now? */
#include "api/info.h"
#include "api/services.h"
#include "base/json.h"
#include "driver/pipeline.h"
#include "jail/layer.h"
#include "pool/pool.h"

enum { HEALTH_MAX = 4096 };

enum MHD_Result api_health(struct request *rq) {
  struct pool_health h;
  struct buf b;

  pool_look(services_of(rq)->pool, &h);
  buf_init(&b, HEALTH_MAX);
  buf_putc(&b, '{');
  json_put_field_str(&b, "status", h.is_ready ? "ok" : h.trouble[0] ? "unavailable" : "starting");
  json_put_field_str(&b, "pipeline", pipeline_version());
  json_put_field_int(&b, "running", h.running);
  json_put_field_int(&b, "waiting", h.waiting);
  json_put_field_int(&b, "idle", h.idle);
  json_put_field_int(&b, "restarts", h.restarts);
  json_put_field_str(&b, "level", jail_level_name(h.level));
  json_put_key(&b, "jail");
  buf_putc(&b, '{');
  for (int l = 0; l < LAYER_COUNT; l++)
    json_put_field_bool(&b, jail_layer_name((enum jail_layer)l), h.layers >> l & 1);
  json_put_field_int(&b, "landlock-abi", h.landlock_abi);
  buf_puts(&b, "}}\n");
  enum MHD_Result r =
      http_json(rq, h.is_ready ? MHD_HTTP_OK : MHD_HTTP_SERVICE_UNAVAILABLE, buf_text(&b), b.len, false);
  buf_clear(&b);
  return r;
}
