#include "base/error.h"

#include <stdarg.h>
#include <stdio.h>

enum status fail(struct error *err, enum status code, const char *fmt, ...) {
  if (err) {
    va_list ap;
    va_start(ap, fmt);
    err->code = code;
    vsnprintf(err->text, sizeof err->text, fmt, ap);
    va_end(ap);
  }
  return code;
}

const char *status_name(enum status st) {
  static const char *const names[] = {"ok",    "input",  "limit", "timeout", "denied", "busy",
                                      "quota", "absent", "nomem", "io",      "full",   "bug"};
  return (unsigned)st < sizeof names / sizeof *names ? names[st] : "?";
}
