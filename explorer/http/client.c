/* What handlers ask about the client, and how they wait. */
#include <string.h>
#include <strings.h>

#include "http/framing.h"
#include "http/http.h"

const char *http_header(const struct request *rq, const char *name) {
  return MHD_lookup_connection_value(rq->connection, MHD_HEADER_KIND, name);
}

bool http_accepts_encoding(const struct request *rq, const char *what) {
  const char *h = http_header(rq, MHD_HTTP_HEADER_ACCEPT_ENCODING);
  size_t n = strlen(what);
  while (h && *h) {
    h += strspn(h, " ,\t");
    size_t len = strcspn(h, ",");
    if (len >= n && !strncasecmp(h, what, n) && (len == n || strchr(" ;\t", h[n]))) {
      const char *q = memmem(h, len, "q=0", 3);
      return !q || (q + 3 < h + len && q[3] == '.' && strspn(q + 4, "0") < strspn(q + 4, "0123456789"));
    }
    h += len;
  }
  return false;
}

bool http_has_etag(const struct request *rq, const char *etag) {
  const char *h = http_header(rq, MHD_HTTP_HEADER_IF_NONE_MATCH);
  return h && (!strcmp(h, "*") || strstr(h, etag));
}

int http_client_fd(const struct request *rq) {
  const union MHD_ConnectionInfo *info = MHD_get_connection_info(rq->connection, MHD_CONNECTION_INFO_CONNECTION_FD);
  return info ? info->connect_fd : -1;
}

/* ---- who it is -----------------------------------------------------------------------------------------------------
 */

struct listed {
  const char *header;
  struct buf values;
};

/* The same header may come several times, which means the same as once with commas. */
static enum MHD_Result join_values(void *user, enum MHD_ValueKind kind, const char *name, const char *value) {
  struct listed *l = user;
  (void)kind;
  if (value && !strcasecmp(name, l->header))
    buf_printf(&l->values, "%s%s", l->values.len ? "," : "", value);
  return MHD_YES;
}

void http_find_client(struct request *rq) {
  static const char *const headers[] = {[ADDRESS_X_FORWARDED_FOR] = "X-Forwarded-For",
                                        [ADDRESS_FORWARDED] = "Forwarded"};
  const struct config *cfg = rq->app->cfg;
  const union MHD_ConnectionInfo *info = MHD_get_connection_info(rq->connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
  struct address peer;
  address_of_socket(info ? info->client_addr : NULL, &peer);
  rq->address = peer;
  rq->is_proxied = address_is_in(&peer, &cfg->trusted_proxies);
  if (!rq->is_proxied)
    return;
  struct listed l = {.header = headers[cfg->proxy_header]};
  buf_init(&l.values, FRAMING_HEAD_MAX);
  MHD_get_connection_values(rq->connection, MHD_HEADER_KIND, join_values, &l);
  address_of_client(&peer, &cfg->trusted_proxies, (enum address_header)cfg->proxy_header, buf_text(&l.values),
                    &rq->address);
  buf_clear(&l.values);
}

void http_client_address(const struct request *rq, char out[ADDRESS_TEXT_SIZE]) {
  address_put(&rq->address, out);
}

/* ---- waiting -------------------------------------------------------------------------------------------------------
 */

void http_park(void *user) {
  MHD_suspend_connection(user);
}

void http_resume(void *user) {
  MHD_resume_connection(user);
}

/* On a store thread.  The request lives until its connection is resumed. */
static void run_call(struct store_task *t, struct db *db) {
  struct store_call *c = (struct store_call *)t;
  struct MHD_Connection *connection = c->rq->connection;
  c->fn(c->rq, db);
  c->state = CALL_DONE;
  MHD_resume_connection(connection);
}

enum MHD_Result http_call_store(struct request *rq, enum store_lane lane,
                                void (*fn)(struct request *rq, struct db *db)) {
  rq->call = (struct store_call){.task.run = run_call, .rq = rq, .fn = fn, .state = CALL_RUNNING};
  MHD_suspend_connection(rq->connection);
  if (!store_submit(rq->app->store, lane, &rq->call.task)) {
    rq->call.is_lost = true;
    rq->call.state = CALL_DONE;
    MHD_resume_connection(rq->connection);
  }
  return MHD_YES;
}
