/* Framing that libmicrohttpd 0.9.75 accepts and that lets a proxy and us disagree on where a request ends. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "http/http.h"

struct seen {
  int hosts, lengths, encodings, types, upgrades;
  bool bad_length, bad_encoding, bad_name, compressed;
};

static bool is_digits(const char *s) {
  size_t n = strspn(s, "0123456789");
  return n > 0 && n < 19 && !s[n];
}

/* RFC 9110 token. */
static bool is_token(const char *s) {
  static const char ok[] = "!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
  return *s && !s[strspn(s, ok)];
}

static enum MHD_Result look(void *user, enum MHD_ValueKind kind, const char *name, const char *value) {
  struct seen *s = user;
  (void)kind;
  if (!value)
    value = "";
  s->bad_name |= !is_token(name);
  if (!strcasecmp(name, "Host")) {
    s->hosts++;
  } else if (!strcasecmp(name, "Content-Length")) {
    s->lengths++;
    s->bad_length |= !is_digits(value);
  } else if (!strcasecmp(name, "Transfer-Encoding")) {
    s->encodings++;
    s->bad_encoding |= strcasecmp(value, "chunked") != 0;
  } else if (!strcasecmp(name, "Content-Type")) {
    s->types++;
  } else if (!strcasecmp(name, "Upgrade")) {
    s->upgrades++;
  }
  return MHD_YES;
}

bool guard_refuses(struct MHD_Connection *c, const char *version, const char **reason) {
  struct seen s = {0};
  MHD_get_connection_values(c, MHD_HEADER_KIND, look, &s);
  const struct {
    bool is_bad;
    const char *reason;
  } checks[] = {
      {strcmp(version, "HTTP/1.1") && strcmp(version, "HTTP/1.0"), "Only HTTP/1.0 and HTTP/1.1 are spoken here."},
      {s.bad_name, "A header's name is not valid."},
      {s.hosts > 1 || (s.hosts == 0 && !strcmp(version, "HTTP/1.1")), "There must be exactly one Host header."},
      {s.lengths > 1, "There must be at most one Content-Length header."},
      {s.bad_length, "Content-Length must be a number."},
      {s.encodings > 1 || s.bad_encoding, "Transfer-Encoding must be \"chunked\"."},
      {s.encodings && s.lengths, "Content-Length and Transfer-Encoding exclude each other."},
      {s.encodings && !strcmp(version, "HTTP/1.0"), "HTTP/1.0 has no Transfer-Encoding."},
      {s.types > 1, "There must be at most one Content-Type header."},
      {s.upgrades > 0, "There is nothing to upgrade to."},
  };
  for (size_t i = 0; i < sizeof checks / sizeof *checks; i++) {
    if (checks[i].is_bad) {
      *reason = checks[i].reason;
      return true;
    }
  }
  return false;
}

long long guard_body_length(struct MHD_Connection *c) {
  const char *v = MHD_lookup_connection_value(c, MHD_HEADER_KIND, MHD_HTTP_HEADER_CONTENT_LENGTH);
  return v && is_digits(v) ? strtoll(v, NULL, 10) : -1;
}
