#include "api/debug.h"

#include <malloc.h>

#include "api/services.h"
#include "base/json.h"
#include "http/guard.h"
#include "job/results.h"
#include "pool/pool.h"
#include "store/store.h"
#include "work/quota.h"

enum { DEBUG_MAX = 16 << 10 };

static void open_part(struct buf *b, const char *name) {
  json_put_key(b, name);
  buf_putc(b, '{');
}

static void put_pool(struct buf *b, struct pool *p) {
  struct pool_health h;
  pool_look(p, &h);
  open_part(b, "pool");
  json_put_field_bool(b, "is_ready", h.is_ready);
  json_put_field_str(b, "trouble", h.trouble);
  json_put_field_int(b, "running", h.running);
  json_put_field_int(b, "waiting", h.waiting);
  json_put_field_int(b, "idle", h.idle);
  json_put_field_int(b, "restarts", h.restarts);
  json_put_field_int(b, "replaced", h.replaced);
  open_part(b, "outcomes");
  for (int i = 0; i < POOL_OUTCOMES; i++)
    json_put_field_int(b, pool_outcomes[i], h.outcomes[i]);
  buf_puts(b, "}}");
}

static void put_store(struct buf *b, struct store *s) {
  static const char *const lanes[STORE_LANES] = {
      [STORE_READ] = "read", [STORE_WRITE] = "write", [STORE_BUILD] = "build"};
  struct store_counts c;
  store_look(s, &c);
  open_part(b, "store");
  for (int l = 0; l < STORE_LANES; l++) {
    open_part(b, lanes[l]);
    json_put_field_int(b, "waiting", c.waiting[l]);
    json_put_field_int(b, "done", c.done[l]);
    json_put_field_int(b, "refused", c.refused[l]);
    buf_putc(b, '}');
  }
  json_put_field_int(b, "bytes", c.bytes);
  json_put_field_int(b, "max_bytes", c.max_bytes);
  json_put_field_int(b, "free_bytes", c.free_bytes);
  json_put_field_int(b, "links", c.links);
  buf_putc(b, '}');
}

static void put_results(struct buf *b, struct results *r) {
  struct results_counts c;
  results_look(r, &c);
  open_part(b, "results");
  json_put_field_int(b, "compiled", c.compiled);
  json_put_field_int(b, "joined", c.joined);
  json_put_field_int(b, "from_memory", c.from_memory);
  json_put_field_int(b, "from_store", c.from_store);
  json_put_field_int(b, "memory_bytes", c.memory_bytes);
  buf_putc(b, '}');
}

static void put_clients(struct buf *b, const struct services *s) {
  struct quota_counts q;
  struct guard_counts g;
  struct unsent_counts u;
  quota_look(s->quota, &q);
  server_look(s->server, &g);
  server_look_unsent(s->server, &u);
  open_part(b, "clients");
  json_put_field_int(b, "known", q.clients);
  json_put_field_int(b, "connections", g.connections);
  json_put_field_int(b, "accepted", g.accepted);
  json_put_field_int(b, "unsent_bytes", (int64_t)u.bytes);
  json_put_field_int(b, "unsent_refused", u.refused);
  buf_putc(b, '}');
}

static void put_memory(struct buf *b) {
  const struct mallinfo2 m = mallinfo2();
  open_part(b, "memory");
  json_put_field_int(b, "used", (int64_t)m.uordblks);
  json_put_field_int(b, "free", (int64_t)m.fordblks);
  json_put_field_int(b, "mapped", (int64_t)m.hblkhd);
  buf_putc(b, '}');
}

enum MHD_Result api_debug(struct request *rq) {
  const struct services *s = services_of(rq);
  struct buf b;
  buf_init(&b, DEBUG_MAX);
  buf_putc(&b, '{');
  put_pool(&b, s->pool);
  put_store(&b, s->store);
  put_results(&b, s->results);
  put_clients(&b, s);
  put_memory(&b);
  buf_puts(&b, "}\n");
  enum MHD_Result r = http_json(rq, MHD_HTTP_OK, buf_text(&b), b.len, false);
  buf_clear(&b);
  return r;
}
