/* The table of problems, and answers that are written without the library. */
#include <assert.h>
#include <microhttpd.h>

#include "base/json.h"
#include "http/headers.h"
#include "http/problem.h"

enum { JSON_MAX = 2048, RETRY_S = 2, RETRY_MISSES_S = 60 };

#define TOO_MANY 429 /* the library's name for it changes from version to version */

static const struct problem_def problems[] = {
#define PROBLEM(e, status, code, message) {status, code, message},
#include "http/problems.def"
#undef PROBLEM
};

const struct problem_def *problem_def(enum problem p) {
  assert((unsigned)p < PROBLEM_COUNT);
  return &problems[p];
}

int problem_retry_after(enum problem p) {
  const unsigned status = problem_def(p)->status;
  if (p == PB_MISSES)
    return RETRY_MISSES_S;
  return status == MHD_HTTP_SERVICE_UNAVAILABLE || status == TOO_MANY ? RETRY_S : 0;
}

bool problem_is_not_begun(enum problem p) {
  return p == PB_BUSY || p == PB_STARTING || p == PB_UNAVAILABLE || p == PB_VERSION_DOWN || p == PB_UNSENT;
}

void problem_put_json(struct buf *b, enum problem p, const char *message, const char *field) {
  const struct problem_def *def = problem_def(p);
  buf_puts(b, "{\"error\":{");
  json_put_field_str(b, "code", def->code);
  json_put_field_str(b, "message", message ? message : def->message);
  if (field)
    json_put_field_str(b, "field", field);
  buf_puts(b, "}}\n");
}

void problem_put_answer(struct buf *b, enum problem p, const char *message) {
  const struct problem_def *def = problem_def(p);
  struct buf json;
  buf_init(&json, JSON_MAX);
  problem_put_json(&json, p, message, NULL);
  buf_printf(b,
             "HTTP/1.1 %u %s\r\nConnection: close\r\nContent-Type: application/problem+json\r\n"
             "Cache-Control: no-store\r\nContent-Length: %zu\r\n",
             def->status, MHD_get_reason_phrase_for(def->status), json.len);
  if (problem_retry_after(p))
    buf_printf(b, "Retry-After: %d\r\n", problem_retry_after(p));
  headers_put(b);
  buf_puts(b, "\r\n");
  buf_append(b, buf_text(&json), json.len);
  buf_clear(&json);
}
