/* POST /api/v1/neff: describes the NEFF that is the body.
 *
 * A worker reads the file, in its jail, as a job of the language "neff"; the answer is the result of that job.  Nothing is kept:
 * what somebody uploads here is neither shared nor stored.
 */
#include <strings.h>

#include "api/compile.h"
#include "api/part.h"
#include "api/whole.h"

static bool has_right_type(const struct request *rq) {
  const char *type = http_header(rq, MHD_HTTP_HEADER_CONTENT_TYPE);
  return type && !strcasecmp(type, "application/octet-stream");
}

static enum status start(struct request *rq, struct error *err) {
  struct job job;
  job_init(&job);
  job.language = LANG_NEFF;
  job.filename = "kernel.neff";
  job.source = buf_text(&rq->body);
  job.source_len = rq->body.len;
  job.is_binary = true;
  enum status st = compile_start_as(rq, &job, RESULTS_APART, err);
  buf_clear(&rq->body);
  return st;
}

enum MHD_Result api_neff(struct request *rq) {
  struct api_part *part = api_part(rq);
  struct error err;
  if (!part->work) {
    /* A form of another site cannot send this type. */
    if (!has_right_type(rq))
      return http_problem(rq, PB_MEDIA_TYPE, "The body must be a NEFF, sent as application/octet-stream, uncompressed.",
                          NULL);
    if (!rq->body.len)
      return http_problem(rq, PB_BAD_FIELD, "The body is empty: it must be a NEFF.", NULL);
    enum status st = start(rq, &err);
    if (st)
      return http_status_problem(rq, st, &err);
  }
  if (!api_wait(rq))
    return MHD_YES; /* we are called again */
  if (work_look(part->work, NULL, NULL) == WORK_REFUSED)
    return compile_refused(rq);
  return whole_send(rq);
}
