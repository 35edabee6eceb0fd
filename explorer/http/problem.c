/* Problems as answers: the one place that turns errors into answers for clients. */
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "http/http.h"
#include "http/route.h"

enum { JSON_MAX = 2048, FIELD_MAX = 64 };

/* The form of our own API. */
static struct MHD_Response *make_problem(enum problem p, const char *message, const char *field) {
  struct buf b;
  buf_init(&b, JSON_MAX);
  problem_put_json(&b, p, message, field);
  struct MHD_Response *r = MHD_create_response_from_buffer(b.len, (void *)buf_text(&b), MHD_RESPMEM_MUST_COPY);
  buf_clear(&b);
  if (r)
    MHD_add_response_header(r, MHD_HTTP_HEADER_CONTENT_TYPE, "application/problem+json");
  return r;
}

static enum MHD_Result send_problem(struct request *rq, enum problem p, const char *message, const char *field,
                                    const char *allow) {
  const struct problem_def *def = problem_def(p);
  char retry[12];
  if (!message)
    message = def->message;
  struct MHD_Response *r = rq->route && rq->route->problem ? rq->route->problem(rq, def->status, def->code, message)
                                                           : make_problem(p, message, field);
  if (!r)
    return MHD_NO;
  MHD_add_response_header(r, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store");
  if (allow)
    MHD_add_response_header(r, MHD_HTTP_HEADER_ALLOW, allow);
  if (problem_retry_after(p)) {
    snprintf(retry, sizeof retry, "%d", rq->retry_s ? rq->retry_s : problem_retry_after(p));
    MHD_add_response_header(r, MHD_HTTP_HEADER_RETRY_AFTER, retry);
  }
  if (problem_is_not_begun(p))
    MHD_add_response_header(r, "X-Nkx-Not-Begun", "1");
  if (p == PB_BAD_REQUEST || p == PB_TOO_LARGE) /* nothing more that comes on this connection can be trusted */
    MHD_add_response_header(r, MHD_HTTP_HEADER_CONNECTION, "close");
  return http_send(rq, def->status, r);
}

enum MHD_Result http_problem(struct request *rq, enum problem p, const char *message, const char *field) {
  return send_problem(rq, p, message, field, NULL);
}

enum MHD_Result http_not_allowed(struct request *rq, const char *allow) {
  return send_problem(rq, PB_METHOD, NULL, NULL, allow);
}

/* Takes the field's name from the start of a text: "options.check: expected …" names one, "line 3 column 4: …" does
 * not.  False if there is none. */
static bool read_field(const char *text, char field[FIELD_MAX]) {
  size_t n = strcspn(text, ": ");
  if (n == 0 || n >= FIELD_MAX || text[n] != ':')
    return false;
  memcpy(field, text, n);
  field[n] = 0;
  return true;
}

enum MHD_Result http_status_problem(struct request *rq, enum status st, const struct error *err) {
  char field[FIELD_MAX];

  switch (st) {
  case ST_INPUT:
  case ST_LIMIT:
    if (read_field(err->text, field))
      return http_problem(rq, st == ST_LIMIT ? PB_TOO_LARGE : PB_BAD_FIELD, err->text, field);
    return http_problem(rq, st == ST_LIMIT ? PB_TOO_LARGE : PB_BAD_JSON, err->text, NULL);
  case ST_BUSY:
    return http_problem(rq, PB_BUSY, NULL, NULL);
  case ST_QUOTA:
    return http_problem(rq, rq->refusal, NULL, NULL);
  case ST_ABSENT:
    return http_problem(rq, rq->refusal, err->text, read_field(err->text, field) ? field : NULL);
  case ST_FULL:
    return http_problem(rq, PB_FULL, NULL, NULL);
  default:
    log_error("request", "status=%s %s", status_name(st), err->text);
    return http_problem(rq, PB_INTERNAL, NULL, NULL);
  }
}
