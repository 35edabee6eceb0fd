/* One table from what went wrong to what a client is told. */
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/log.h"
#include "ce/ce.h"
#include "http/http.h"

enum { PROBLEM_TEXT_MAX = 2048, RETRY_AFTER_S = 2, RETRY_MISSES_S = 60 };

#define TOO_MANY 429 /* the library's name for it changes from version to version */

static const struct {
  unsigned status;
  const char *code, *message;
} problems[] = {
#define PROBLEM(e, status, code, message) {status, code, message},
#include "api/problems.def"
#undef PROBLEM
};

/* Seconds for Retry-After; 0: trying again is no use. */
static int retry_after(enum problem p) {
  if (p == PB_MISSES)
    return RETRY_MISSES_S;
  return problems[p].status == MHD_HTTP_SERVICE_UNAVAILABLE || problems[p].status == TOO_MANY ? RETRY_AFTER_S : 0;
}

static void put_problem(struct buf *b, enum problem p, const char *message, const char *field) {
  buf_puts(b, "{\"error\":{");
  json_put_field_str(b, "code", problems[p].code);
  json_put_field_str(b, "message", message ? message : problems[p].message);
  if (field)
    json_put_field_str(b, "field", field);
  buf_puts(b, "}}\n");
}

void http_put_refusal(struct buf *b, enum problem p, const char *message) {
  struct buf json;
  buf_init(&json, PROBLEM_TEXT_MAX);
  put_problem(&json, p, message, NULL);
  buf_printf(b,
             "HTTP/1.1 %u %s\r\nConnection: close\r\nContent-Type: application/problem+json\r\n"
             "Cache-Control: no-store\r\nContent-Length: %zu\r\n",
             problems[p].status, MHD_get_reason_phrase_for(problems[p].status), json.len);
  if (retry_after(p))
    buf_printf(b, "Retry-After: %d\r\n", retry_after(p));
  http_put_headers(b);
  buf_puts(b, "\r\n");
  buf_append(b, buf_text(&json), json.len);
  buf_clear(&json);
}

/* {"error":{…}}: the form of our own API. */
static struct MHD_Response *problem_object(enum problem p, const char *message, const char *field) {
  struct buf b;
  buf_init(&b, PROBLEM_TEXT_MAX);
  put_problem(&b, p, message, field);
  struct MHD_Response *r = MHD_create_response_from_buffer(b.len, (void *)buf_text(&b), MHD_RESPMEM_MUST_COPY);
  buf_clear(&b);
  if (r)
    MHD_add_response_header(r, MHD_HTTP_HEADER_CONTENT_TYPE, "application/problem+json");
  return r;
}

static enum MHD_Result send_problem(struct request *rq, enum problem p, const char *message, const char *field,
                                    const char *allow) {
  char retry[12];
  bool is_ce = rq->route && rq->route->is_ce;
  if (!message)
    message = problems[p].message;
  struct MHD_Response *r =
      is_ce ? ce_problem(rq, problems[p].status, problems[p].code, message) : problem_object(p, message, field);
  if (!r)
    return MHD_NO;
  MHD_add_response_header(r, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store");
  if (allow)
    MHD_add_response_header(r, MHD_HTTP_HEADER_ALLOW, allow);
  if (retry_after(p)) {
    snprintf(retry, sizeof retry, "%d", rq->retry_s ? rq->retry_s : retry_after(p));
    MHD_add_response_header(r, MHD_HTTP_HEADER_RETRY_AFTER, retry);
  }
  if (p == PB_BAD_REQUEST || p == PB_TOO_LARGE ||
      (is_ce && p == PB_BAD_JSON)) /* what else this client sends on this connection is not trusted */
    MHD_add_response_header(r, MHD_HTTP_HEADER_CONNECTION, "close");
  return http_send(rq, problems[p].status, r);
}

enum MHD_Result http_problem(struct request *rq, enum problem p, const char *message, const char *field) {
  return send_problem(rq, p, message, field, NULL);
}

enum MHD_Result http_not_allowed(struct request *rq, const char *allow) {
  return send_problem(rq, PB_METHOD, NULL, NULL, allow);
}

/* "options.check: expected …" names a field; "line 3 column 4: …" does not. */
static bool split_field(const char *text, char field[64], const char **rest) {
  size_t n = strcspn(text, ": ");
  if (n == 0 || n >= 64 || text[n] != ':')
    return false;
  memcpy(field, text, n);
  field[n] = 0;
  *rest = text + n + 1 + strspn(text + n + 1, " ");
  return true;
}

enum MHD_Result http_status_problem(struct request *rq, enum status st, const struct error *err) {
  char field[64];
  const char *rest = err->text;

  switch (st) {
  case ST_INPUT:
  case ST_LIMIT:
    if (split_field(err->text, field, &rest))
      return http_problem(rq, st == ST_LIMIT ? PB_TOO_LARGE : PB_BAD_FIELD, err->text, field);
    return http_problem(rq, st == ST_LIMIT ? PB_TOO_LARGE : PB_BAD_JSON, err->text, NULL);
  case ST_BUSY:
    return http_problem(rq, PB_BUSY, NULL, NULL);
  case ST_QUOTA:
    return http_problem(rq, rq->quota == QUOTA_JOBS ? PB_JOBS : PB_COMPILES, NULL, NULL);
  case ST_FULL:
    return http_problem(rq, PB_FULL, NULL, NULL);
  default:
    log_error("request", "status=%s %s", status_name(st), err->text);
    return http_problem(rq, PB_INTERNAL, NULL, NULL);
  }
}
