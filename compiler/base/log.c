#include "base/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

enum { LINE_MAX_BYTES = 1024 };

static enum log_level least_level = LOG_INFO;

void log_set_level(enum log_level least) {
  least_level = least;
}

/* One write(2) per event, so that lines of several processes on one descriptor do not mix. */
void log_event(enum log_level level, const char *event, const char *fmt, ...) {
  static const char *const names[] = {"debug", "info", "warn", "error"};
  char line[LINE_MAX_BYTES];
  struct timespec t;
  struct tm tm;

  if (level < least_level)
    return;
  clock_gettime(CLOCK_REALTIME, &t);
  gmtime_r(&t.tv_sec, &tm);
  size_t n = strftime(line, sizeof line, "%Y-%m-%dT%H:%M:%S", &tm);
  n += (size_t)snprintf(line + n, sizeof line - n, ".%03ldZ %s %s ", t.tv_nsec / 1000000, names[level], event);
  va_list ap;
  va_start(ap, fmt);
  int k = vsnprintf(line + n, sizeof line - n - 1, fmt, ap);
  va_end(ap);
  n += k < 0 ? 0 : (size_t)k;
  if (n > sizeof line - 2)
    n = sizeof line - 2;
  line[n++] = '\n';
  if (write(STDERR_FILENO, line, n) < 0) {
    /* nobody left to tell */
  }
}
