#include "api/diffs.h"

#include <stdlib.h>
#include <string.h>

#include "diff/diff.h"
#include "job/export.h"

bool diff_read_number(const char *text, int *out) {
  size_t n = strspn(text, "0123456789");
  *out = n && n <= 5 && !text[n] ? atoi(text) : -1;
  return *out >= 0;
}

bool diff_read_stage(const char *text, struct gather_stage *out) {
  if (!text || !*text)
    return false;
  if (diff_read_number(text, &out->nth))
    return true;
  const char *colon = strrchr(text, ':');
  out->name = text;
  out->name_len = colon ? (size_t)(colon - text) : strlen(text);
  out->nth = 1;
  return out->name_len > 0 && (!colon || (diff_read_number(colon + 1, &out->nth) && out->nth > 0));
}

bool diff_read_query(struct request *rq, struct diff_query *q, const char **field) {
  const char *kernel = http_argument(rq, "kernel");
  *q = (struct diff_query){0};
  *field = "kernel";
  if (kernel && !diff_read_number(kernel, &q->from.kernel))
    return false;
  q->to.kernel = q->from.kernel;
  *field = "from";
  if (!diff_read_stage(http_argument(rq, "from"), &q->from))
    return false;
  *field = "to";
  return diff_read_stage(http_argument(rq, "to"), &q->to);
}

enum MHD_Result diff_bad_query(struct request *rq, const char *field) {
  return http_problem(rq, PB_BAD_FIELD,
                      !strcmp(field, "kernel") ? "kernel: expected a number"
                      : !strcmp(field, "with") ? "with: expected the key of a result"
                                               : "from and to: expected a stage's number, its name, or NAME:N",
                      field);
}

enum MHD_Result diff_not_found(struct request *rq, enum diff_found found) {
  return http_problem(rq, PB_NOT_FOUND, "The result has no such stage.", found == DIFF_NO_FROM ? "from" : "to");
}

enum status diff_build(struct work *from, struct work *to, const struct diff_query *q, struct buf *out,
                       enum diff_found *found, struct error *err) {
  struct buf a, b;
  struct diff d = {0};
  enum status st = ST_OK;

  buf_init(&a, DIFF_TEXT_MAX);
  buf_init(&b, DIFF_TEXT_MAX);
  *found = !export_stage_text(from, &q->from, &a) ? DIFF_NO_FROM
           : !export_stage_text(to, &q->to, &b)   ? DIFF_NO_TO
                                                  : DIFF_FOUND;
  if (buf_status(&a) || buf_status(&b))
    st = fail(err, buf_status(&a) ? buf_status(&a) : buf_status(&b), "the stages are too large to compare");
  else if (*found == DIFF_FOUND) {
    struct diff_text ta = {buf_text(&a), a.len}, tb = {buf_text(&b), b.len};
    st = diff_make(ta, tb, &d, err);
    if (!st)
      diff_json(&d, ta, tb, out);
    diff_clear(&d);
    if (!st && buf_status(out))
      st = fail(err, buf_status(out), "the diff is too large");
  }
  buf_clear(&a);
  buf_clear(&b);
  return st;
}
