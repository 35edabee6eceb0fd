#include "base/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/json.h"

enum {
  LINE_MAX_BYTES = 1024,
  JSON_LINE_MAX = 6 * LINE_MAX_BYTES + 512, /* every byte may become \u00XX */
  NUMBER_DIGITS = 11,
};

static enum log_level least_level = LOG_INFO;
static enum log_format format = LOG_TEXT;

void log_set_level(enum log_level least) {
  least_level = least;
}

void log_set_format(enum log_format f) {
  format = f;
}

/* Finds "key=value" or key="a value" at the start of p; returns its end, or NULL if there is none. */
static const char *find_field(const char *p, size_t *key, const char **value, size_t *len) {
  *key = strspn(p, "abcdefghijklmnopqrstuvwxyz_");
  if (!*key || p[*key] != '=')
    return NULL;
  const char *v = p + *key + 1, *quote = *v == '"' ? strchr(v + 1, '"') : NULL;
  if (quote && (quote[1] == ' ' || !quote[1])) {
    *value = v + 1;
    *len = (size_t)(quote - v - 1);
    return quote + 1;
  }
  *value = v;
  *len = strcspn(v, " ");
  return v + *len;
}

/* A whole number without quotes.  Longer ones may be names that happen to have no letter. */
static bool is_number(const char *v, size_t len) {
  const size_t sign = len && *v == '-', digits = len - sign;
  return digits && digits <= NUMBER_DIGITS && strspn(v + sign, "0123456789") >= digits &&
         (digits == 1 || v[sign] != '0');
}

/* The leading fields become members; the rest of the text, which may be anything, becomes one string. */
static void put_json(struct buf *b, const char *time, const char *level, const char *event, const char *text) {
  size_t key, len;
  const char *value, *end;
  char name[32];
  buf_putc(b, '{');
  json_put_field_str(b, "time", time);
  json_put_field_str(b, "level", level);
  json_put_field_str(b, "event", event);
  while ((end = find_field(text, &key, &value, &len)) && key < sizeof name) {
    snprintf(name, sizeof name, "%.*s", (int)key, text);
    json_put_key(b, name);
    if (value[-1] == '=' && is_number(value, len))
      buf_append(b, value, len);
    else
      json_put_string(b, value, len);
    text = end + (*end == ' ');
  }
  if (*text)
    json_put_field_str(b, "text", text);
  buf_puts(b, "}\n");
}

static void write_line(const char *p, size_t n) {
  if (write(STDERR_FILENO, p, n) < 0) {
    /* nothing can be reported */
  }
}

/* One write(2) per event, so that lines of several processes on one descriptor do not mix. */
void log_event(enum log_level level, const char *event, const char *fmt, ...) {
  static const char *const names[] = {"debug", "info", "warn", "error"};
  char line[LINE_MAX_BYTES], text[LINE_MAX_BYTES - 64], when[32];
  struct timespec t;
  struct tm tm;
  struct buf b;

  if (level < least_level)
    return;
  clock_gettime(CLOCK_REALTIME, &t);
  gmtime_r(&t.tv_sec, &tm);
  size_t n = strftime(when, sizeof when, "%Y-%m-%dT%H:%M:%S", &tm);
  snprintf(when + n, sizeof when - n, ".%03ldZ", t.tv_nsec / 1000000);
  va_list ap;
  va_start(ap, fmt);
  if (vsnprintf(text, sizeof text, fmt, ap) < 0)
    text[0] = 0;
  va_end(ap);
  for (char *p = text; *p; p++) /* one line, whatever the message contains */
    if (*p == '\n' || *p == '\r')
      *p = ' ';
  if (format == LOG_TEXT) {
    int k = snprintf(line, sizeof line, "%s %s %s %s\n", when, names[level], event, text);
    n = k < (int)sizeof line ? (size_t)k : sizeof line - 1;
    line[n - 1] = '\n';
    write_line(line, n);
    return;
  }
  buf_init(&b, JSON_LINE_MAX);
  put_json(&b, when, names[level], event, text);
  write_line(buf_text(&b), b.len);
  buf_clear(&b);
}
