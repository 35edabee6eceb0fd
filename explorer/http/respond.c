/* The headers that every answer carries. */
#include <stdlib.h>
#include <strings.h>

#include "ce/ce.h"
#include "http/guard.h"
#include "http/http.h"

#define CSP \
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; " \
  "connect-src 'self'; worker-src 'self'; base-uri 'none'; form-action 'none'; "
#define TRUSTED "require-trusted-types-for 'script'"

/* framed: for the embed form.  It leaves frame-ancestors out rather than naming "*", which would not cover a slide
 * opened from a file. */
static const struct {
  const char *name, *value, *framed;
} security_headers[] = {
    {"Content-Security-Policy", CSP "frame-ancestors 'none'; " TRUSTED, CSP TRUSTED},
    {"X-Content-Type-Options", "nosniff", "nosniff"},
    {"Referrer-Policy", "no-referrer", "no-referrer"},
    {"Cross-Origin-Opener-Policy", "same-origin", "same-origin"},
    {"Cross-Origin-Embedder-Policy", "require-corp", "require-corp"},
    {"Cross-Origin-Resource-Policy", "same-origin", "cross-origin"},
    {"Permissions-Policy", "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
     "camera=(), geolocation=(), microphone=(), payment=(), usb=()"},
};

void http_put_headers(struct buf *b) {
  for (size_t i = 0; i < sizeof security_headers / sizeof *security_headers; i++)
    buf_printf(b, "%s: %s\r\n", security_headers[i].name, security_headers[i].value);
}

/* How long the client may take to read it; a stream ends with its job. */
static int answer_ms(const struct request *rq) {
  const struct config *cfg = rq->app->cfg;
  return cfg->answer_timeout_ms + (rq->is_streaming ? cfg->job_timeout_ms + cfg->wait_timeout_ms : 0);
}

enum MHD_Result http_send(struct request *rq, unsigned status, struct MHD_Response *resp) {
  if (!resp)
    return MHD_NO;
  for (size_t i = 0; i < sizeof security_headers / sizeof *security_headers; i++)
    MHD_add_response_header(resp, security_headers[i].name,
                            rq->is_framed ? security_headers[i].framed : security_headers[i].value);
  if (rq->route && rq->route->is_open)
    ce_add_headers(resp);
  if (rq->is_private)
    MHD_add_response_header(resp, "X-Robots-Tag", "noindex, nofollow");
  if (rq->conn && guard_is_draining(rq->app->guard) && !MHD_get_response_header(resp, MHD_HTTP_HEADER_CONNECTION))
    MHD_add_response_header(resp, MHD_HTTP_HEADER_CONNECTION, "close");
  enum MHD_Result r = MHD_queue_response(rq->connection, status, resp);
  const char *connection = MHD_get_response_header(resp, MHD_HTTP_HEADER_CONNECTION);
  bool closes = connection && !strcasecmp(connection, "close");
  MHD_destroy_response(resp);
  rq->status = status;
  guard_answered(rq->conn, answer_ms(rq), closes);
  return r;
}

static enum MHD_Result send_json(struct request *rq, unsigned status, struct MHD_Response *r) {
  if (r) {
    MHD_add_response_header(r, MHD_HTTP_HEADER_CONTENT_TYPE, "application/json");
    MHD_add_response_header(r, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store");
  }
  return http_send(rq, status, r);
}

enum MHD_Result http_json(struct request *rq, unsigned status, const char *json, size_t len, bool is_constant) {
  enum MHD_ResponseMemoryMode mode = is_constant ? MHD_RESPMEM_PERSISTENT : MHD_RESPMEM_MUST_COPY;
  return send_json(rq, status, MHD_create_response_from_buffer(len, (void *)json, mode));
}

enum MHD_Result http_json_take(struct request *rq, unsigned status, char *json, size_t len) {
  if (!json)
    return http_problem(rq, PB_INTERNAL, NULL, NULL);
  struct MHD_Response *r = MHD_create_response_from_buffer(len, json, MHD_RESPMEM_MUST_FREE);
  if (!r)
    free(json);
  return send_json(rq, status, r);
}
