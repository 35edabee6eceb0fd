/* GET /api/v1/versions: the versions of the compiler that a request can name; and which of them a request names. */
#include <string.h>

#include "api/compile.h"
#include "api/info.h"
#include "api/services.h"
#include "base/json.h"
#include "pool/versions.h"

enum { ANSWER_MAX = 256 + VERSIONS_MAX * 4 * (JOB_VERSION_MAX + 32) };

enum status compile_choose_version(struct request *rq, struct job *job, struct error *err) {
  const struct versions *vs = services_of(rq)->versions;
  const int v = versions_find(vs, job->version);
  if (v < 0) {
    rq->refusal = PB_NO_VERSION;
    return fail(err, ST_ABSENT, "version: \"%.40s\" is not installed here", job->version);
  }
  job->version = v == VERSION_TODAY ? NULL : vs->v[v].pipeline;
  return ST_OK;
}

enum MHD_Result api_versions(struct request *rq) {
  const struct versions *vs = services_of(rq)->versions;
  struct buf b;
  buf_init(&b, ANSWER_MAX);
  buf_puts(&b, "{\"versions\":[");
  for (int i = 0; i < vs->n; i++) {
    json_put_comma(&b);
    buf_putc(&b, '{');
    json_put_field_str(&b, "name", vs->v[i].name);
    json_put_field_str(&b, "release", vs->v[i].release);
    json_put_field_str(&b, "pipeline", vs->v[i].pipeline);
    json_put_field_bool(&b, "is_current", i == VERSION_TODAY);
    buf_putc(&b, '}');
  }
  buf_puts(&b, "]}\n");
  enum MHD_Result r = buf_status(&b) ? http_problem(rq, PB_INTERNAL, NULL, NULL)
                                     : http_json(rq, MHD_HTTP_OK, buf_text(&b), b.len, false);
  buf_clear(&b);
  return r;
}
