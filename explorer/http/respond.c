/* Sending: what is the same for every answer. */
#include <assert.h>
#include <strings.h>

#include "http/guard.h"
#include "http/headers.h"
#include "http/http.h"
#include "http/route.h"
#include "http/server.h"

enum MHD_Result http_send(struct request *rq, unsigned status, struct MHD_Response *resp) {
  if (!resp)
    return MHD_NO;
  assert(!rq->status); /* one answer to a request */
  headers_add(resp, rq->headers);
  if (rq->route && rq->route->add_headers)
    rq->route->add_headers(resp);
  if (rq->id[0])
    MHD_add_response_header(resp, "X-Request-Id", rq->id);
  if (rq->is_private)
    MHD_add_response_header(resp, "X-Robots-Tag", "noindex, nofollow");
  if (guard_is_draining(rq->conn) && !MHD_get_response_header(resp, MHD_HTTP_HEADER_CONNECTION))
    MHD_add_response_header(resp, MHD_HTTP_HEADER_CONNECTION, "close");
  enum MHD_Result r = MHD_queue_response(rq->connection, status, resp);
  const char *connection = MHD_get_response_header(resp, MHD_HTTP_HEADER_CONNECTION);
  bool closes = connection && !strcasecmp(connection, "close");
  MHD_destroy_response(resp);
  rq->status = status;
  guard_answered(rq->conn, rq->cfg->http.answer_timeout_ms + rq->extra_ms, closes);
  return r;
}

void http_allow(struct request *rq, int ms) {
  guard_allow(rq->conn, ms);
}
