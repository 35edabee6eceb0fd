/* GET /api/openapi.json and /api/v1/ops: the files openapi.json and ops.json, which the build includes here. */
#include "api/info.h"

static const char openapi[] =
#include "openapi.inc"
    ;

static const char ops[] =
#include "ops.inc"
    ;

enum MHD_Result api_openapi(struct request *rq) {
  return http_json(rq, MHD_HTTP_OK, openapi, sizeof openapi - 1, true);
}

enum MHD_Result api_ops(struct request *rq) {
  return http_json(rq, MHD_HTTP_OK, ops, sizeof ops - 1, true);
}
