/* Answers in JSON. */
#include <stdlib.h>

#include "http/http.h"

/* Takes r; NULL closes the connection. */
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
