/* GET /api/openapi.json: the document as it lies in openapi.json. */
#include "http/http.h"

static const char document[] =
#include "openapi.inc"
    ;

enum MHD_Result api_openapi(struct request *rq) {
  return http_json(rq, MHD_HTTP_OK, document, sizeof document - 1, true);
}
