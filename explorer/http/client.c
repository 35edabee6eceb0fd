/* What handlers ask about the client, and how they wait. */
#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

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

void http_client_address(const struct request *rq, char out[48]) {
  const union MHD_ConnectionInfo *info = MHD_get_connection_info(rq->connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
  const struct sockaddr *a = info ? info->client_addr : NULL;
  snprintf(out, 48, "?");
  if (a && a->sa_family == AF_INET) {
    inet_ntop(AF_INET, &((const struct sockaddr_in *)a)->sin_addr, out, 48);
  } else if (a && a->sa_family == AF_INET6) {
    struct in6_addr net = ((const struct sockaddr_in6 *)a)->sin6_addr;
    if (!IN6_IS_ADDR_V4MAPPED(&net))
      memset(net.s6_addr + 8, 0, 8);
    inet_ntop(AF_INET6, &net, out, 48);
  }
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
