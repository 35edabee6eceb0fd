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
    for (char *p = err->text; *p; p++) /* names come from files: what a terminal would obey is not passed on */
      if ((unsigned char)*p < ' ' || *p == 0x7f)
        *p = *p == '\n' || *p == '\t' ? *p : '?';
  }
  return code;
}

const char *status_name(enum status st) {
  static const char *const names[] = {"ok",    "input",  "limit", "timeout", "denied", "busy",
                                      "quota", "absent", "nomem", "io",      "full",   "bug"};
  return (unsigned)st < sizeof names / sizeof *names ? names[st] : "?";
}
