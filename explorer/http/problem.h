/* problem: every error that this server answers, in one table (problems.def). */
#ifndef HTTP_PROBLEM_H
#define HTTP_PROBLEM_H

#include <stdbool.h>

#include "base/buf.h"

enum problem {
#define PROBLEM(e, status, code, message) e,
#include "http/problems.def"
#undef PROBLEM
  PROBLEM_COUNT
};

struct problem_def {
  unsigned status;
  const char *code, *message;
};
const struct problem_def *problem_def(enum problem p);
/* Seconds for Retry-After; 0: trying again is of no use. */
int problem_retry_after(enum problem p);
/* Nothing of the request was begun, so that a proxy may give it to another server, whatever its method is. */
bool problem_is_not_begun(enum problem p);
/* Appends {"error":{"code","message","field"?}} and a newline; message NULL: the table's; field may be NULL. */
void problem_put_json(struct buf *b, enum problem p, const char *message, const char *field);
/* Appends a whole answer, with status line and headers, for a request that libmicrohttpd does not get to see. */
void problem_put_answer(struct buf *b, enum problem p, const char *message);

#endif
