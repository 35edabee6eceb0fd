#include "http/framing.h"

#include <assert.h>
#include <string.h>
#include <strings.h>

enum state {
  S_START,
  S_METHOD,
  S_TARGET,
  S_VERSION,
  S_LINE_LF,
  S_HEADER,
  S_NAME,
  S_BEFORE_VALUE,
  S_VALUE,
  S_VALUE_LF,
  S_HEAD_LF,
  S_BODY,
  S_SIZE,
  S_SIZE_LF,
  S_DATA,
  S_DATA_CR,
  S_DATA_LF,
  S_LAST_CR,
  S_LAST_LF,
  S_REFUSED,
};

enum { METHOD_MAX = 16, SIZE_DIGITS_MAX = 8 };

static const char *const known[FH_COUNT] = {
    [FH_HOST] = "host",
    [FH_LENGTH] = "content-length",
    [FH_TRANSFER] = "transfer-encoding",
    [FH_TYPE] = "content-type",
    [FH_UPGRADE] = "upgrade",
    [FH_EXPECT] = "expect",
    [FH_ENCODING] = "content-encoding",
    [FH_CONNECTION] = "connection",
};

static bool refuse(struct framing *f, enum framing_fault fault, const char *reason) {
  assert(!f->fault && fault);
  f->fault = fault;
  f->reason = reason;
  f->state = S_REFUSED;
  return false;
}

static bool malformed(struct framing *f, const char *reason) {
  return refuse(f, FF_MALFORMED, reason);
}

static bool is_alnum(unsigned char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* RFC 9110 tchar. */
static bool is_token(unsigned char c) {
  return is_alnum(c) || (c && strchr("!#$%&'*+-.^_`|~", c));
}

static int hex(unsigned char c) {
  if (c >= '0' && c <= '9')
    return c - '0';
  c |= 0x20;
  return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static void enter(struct framing *f, enum state s) {
  f->state = s;
  f->n = 0;
}

static void keep(struct framing *f, unsigned char c) {
  if (f->n < sizeof f->text - 1)
    f->text[f->n] = (char)c;
  f->text[f->n < sizeof f->text - 1 ? f->n + 1 : sizeof f->text - 1] = 0;
  f->n++;
}

void framing_init(struct framing *f) {
  *f = (struct framing){.state = S_START};
}

bool framing_is_between(const struct framing *f) {
  return f->state == S_START;
}

/* ---- the request line; each function takes a byte, and returns false once the request is refused ----------------- */

static bool on_method(struct framing *f, unsigned char c) {
  if (c == ' ' && f->n > 0) {
    enter(f, S_TARGET);
    return true;
  }
  if (c < 'A' || c > 'Z' || ++f->n > METHOD_MAX)
    return malformed(f, "The request line does not begin with a method.");
  return true;
}

/* The target must be a path, because other forms are for proxies; no path holds "%00". */
static bool on_target_byte(struct framing *f, unsigned char c) {
  if (f->n == 0 && c != '/')
    return malformed(f, "The request's target must be a path.");
  if (c <= ' ' || c >= 0x7f || c == '#')
    return malformed(f, "The request's target holds a character that must be percent-encoded.");
  if (f->percent) {
    int digit = hex(c);
    if (digit < 0 || (f->percent == 2 && digit == 0))
      return malformed(f, "The request's target holds a wrong percent-encoding.");
    f->percent = f->percent == 1 ? (digit == 0 ? 2 : 3) : 0;
  } else if (c == '%') {
    f->percent = 1;
  }
  if (c == '?' && !f->in_query) {
    f->in_query = true;
    f->pairs = 1;
  } else if (c == '&' && f->in_query && ++f->pairs > FRAMING_PAIRS_MAX) {
    return malformed(f, "The query has more than 100 pairs.");
  }
  return ++f->n <= FRAMING_TARGET_MAX || refuse(f, FF_TARGET_TOO_LONG, "The address is longer than 16384 bytes.");
}

static bool on_target(struct framing *f, unsigned char c) {
  if (c != ' ' || f->n == 0)
    return on_target_byte(f, c);
  if (f->percent)
    return malformed(f, "The request's target holds a wrong percent-encoding.");
  enter(f, S_VERSION);
  return true;
}

static bool on_version(struct framing *f, unsigned char c) {
  static const char version[] = "HTTP/1.";
  if (f->n < sizeof version - 1 && c != (unsigned char)version[f->n])
    return f->n >= 5 ? refuse(f, FF_VERSION, "The server supports only HTTP/1.0 and HTTP/1.1.")
                     : malformed(f, "The request line does not end with a version.");
  if (f->n == sizeof version - 1) {
    if (c != '0' && c != '1')
      return refuse(f, FF_VERSION, "The server supports only HTTP/1.0 and HTTP/1.1.");
    f->is_http10 = c == '0';
  }
  if (f->n == sizeof version) {
    if (c != '\r')
      return malformed(f, "The request line must end with CR LF.");
    enter(f, S_LINE_LF);
    return true;
  }
  f->n++;
  return true;
}

/* ---- headers ----------------------------------------------------------------------------------------------------- */

static bool on_header(struct framing *f, unsigned char c) {
  if (c == '\r') {
    enter(f, S_HEAD_LF);
    return true;
  }
  if (c == ' ' || c == '\t')
    return malformed(f, "A header must not go on in the next line.");
  if (!is_token(c))
    return malformed(f, "A header's name is not valid.");
  if (++f->headers > FRAMING_HEADERS_MAX)
    return refuse(f, FF_HEAD_TOO_LARGE, "The request has more than 100 headers.");
  enter(f, S_NAME);
  keep(f, c);
  return true;
}

static enum framing_header find_header(const struct framing *f) {
  for (int h = 0; h < FH_COUNT; h++)
    if (!strcasecmp(f->text, known[h]))
      return (enum framing_header)h;
  return FH_OTHER;
}

static bool on_name(struct framing *f, unsigned char c) {
  if (c == ':') {
    f->header = f->n < sizeof f->text ? find_header(f) : FH_OTHER;
    if (f->header != FH_OTHER && f->seen[f->header] < UINT8_MAX)
      f->seen[f->header]++;
    enter(f, S_BEFORE_VALUE);
    f->text[0] = 0;
    return true;
  }
  if (!is_token(c))
    return malformed(f, "A header's name is not valid.");
  keep(f, c);
  return true;
}

static bool on_length(struct framing *f) {
  uint64_t v = 0;
  if (f->seen[FH_LENGTH] > 1)
    return malformed(f, "There must be at most one Content-Length header.");
  for (const char *p = f->text; *p; p++) {
    if (*p < '0' || *p > '9')
      return malformed(f, "Content-Length must be a number.");
    if (v <= FRAMING_BODY_MAX) /* a larger one is refused whatever digits follow */
      v = 10 * v + (uint64_t)(*p - '0');
  }
  if (!f->n || f->n >= sizeof f->text)
    return malformed(f, "Content-Length must be a number.");
  f->left = v;
  return true;
}

/* Looks for "close" and "keep-alive" in the list. */
static void on_connection(struct framing *f) {
  for (const char *p = f->text; *p;) {
    p += strspn(p, ", \t");
    size_t n = strcspn(p, ", \t");
    f->says_close |= n == 5 && !strncasecmp(p, "close", n);
    f->says_keep |= n == 10 && !strncasecmp(p, "keep-alive", n);
    p += n;
  }
}

/* Checks a header that is complete. */
static bool on_header_end(struct framing *f) {
  switch (f->header) {
  case FH_HOST:
    return f->seen[FH_HOST] == 1 || malformed(f, "There must be exactly one Host header.");
  case FH_LENGTH:
    return on_length(f);
  case FH_TRANSFER:
    f->is_chunked = true;
    return (f->seen[FH_TRANSFER] == 1 && !strcasecmp(f->text, "chunked")) ||
           malformed(f, "Transfer-Encoding must be \"chunked\".");
  case FH_TYPE:
    return f->seen[FH_TYPE] == 1 || malformed(f, "There must be at most one Content-Type header.");
  case FH_UPGRADE:
    return malformed(f, "There is nothing to upgrade to.");
  case FH_EXPECT:
    return !strcasecmp(f->text, "100-continue") ||
           refuse(f, FF_EXPECT, "The only expectation that is supported is 100-continue.");
  case FH_ENCODING:
    return !strcasecmp(f->text, "identity") || refuse(f, FF_ENCODED, "The body must be sent uncompressed.");
  case FH_CONNECTION:
    on_connection(f);
    return true;
  default:
    return true;
  }
}

static bool on_value(struct framing *f, unsigned char c) {
  if (f->state == S_BEFORE_VALUE) {
    if (c == ' ' || c == '\t')
      return true;
    enter(f, S_VALUE);
  }
  if (c == '\r') {
    f->state = S_VALUE_LF;
    return on_header_end(f);
  }
  if ((c < ' ' && c != '\t') || c == 0x7f)
    return malformed(f, "A header's value holds a control character.");
  if (f->header == FH_HOST && !is_alnum(c) && !strchr(".-_:[]", c))
    return malformed(f, "The Host header is not valid.");
  keep(f, c);
  return true;
}

/* After the empty line: sets the state in which the body, if there is one, begins. */
static bool on_head_end(struct framing *f) {
  if (!f->seen[FH_HOST] && !f->is_http10)
    return malformed(f, "There must be exactly one Host header.");
  if (f->is_chunked && f->seen[FH_LENGTH])
    return malformed(f, "Content-Length and Transfer-Encoding exclude each other.");
  if (f->is_chunked && f->is_http10)
    return malformed(f, "HTTP/1.0 has no Transfer-Encoding.");
  if (f->left > FRAMING_BODY_MAX)
    return refuse(f, FF_BODY_TOO_LARGE, "The body is larger than this server reads.");
  f->is_last = f->says_close || (f->is_http10 && !f->says_keep);
  enter(f, f->is_chunked ? S_SIZE : f->left ? S_BODY : S_START);
  return true;
}

/* ---- chunks ------------------------------------------------------------------------------------------------------ */

/* Extensions are refused: clients do not send them, and servers differ in where they end. */
static bool on_size(struct framing *f, unsigned char c) {
  int digit = hex(c);
  if (digit >= 0 && f->n < SIZE_DIGITS_MAX) {
    f->left = (f->n ? f->left << 4 : 0) | (uint64_t)digit;
    f->n++;
    return true;
  }
  if (c != '\r' || !f->n)
    return malformed(f, "A chunk must begin with its size in hexadecimal, and nothing else.");
  f->body += f->left;
  if (f->body > FRAMING_BODY_MAX)
    return refuse(f, FF_BODY_TOO_LARGE, "The body is larger than this server reads.");
  enter(f, S_SIZE_LF);
  return true;
}

static bool expect(struct framing *f, unsigned char c, unsigned char want, enum state next, const char *reason) {
  if (c != want)
    return malformed(f, reason);
  enter(f, next);
  return true;
}

/* ---- all of it --------------------------------------------------------------------------------------------------- */

static bool step(struct framing *f, unsigned char c) {
  static const char line[] = "Lines must end with CR LF.";
  static const char chunk[] = "A chunk is longer than it says.";
  switch ((enum state)f->state) {
  case S_START:
    framing_init(f);
    f->state = S_METHOD;
    return on_method(f, c);
  case S_METHOD:
    return on_method(f, c);
  case S_TARGET:
    return on_target(f, c);
  case S_VERSION:
    return on_version(f, c);
  case S_LINE_LF:
  case S_VALUE_LF:
    return expect(f, c, '\n', S_HEADER, line);
  case S_HEADER:
    return on_header(f, c);
  case S_NAME:
    return on_name(f, c);
  case S_BEFORE_VALUE:
  case S_VALUE:
    return on_value(f, c);
  case S_HEAD_LF:
    return expect(f, c, '\n', S_START, line) && on_head_end(f);
  case S_SIZE:
    return on_size(f, c);
  case S_SIZE_LF:
    return expect(f, c, '\n', f->left ? S_DATA : S_LAST_CR, line);
  case S_DATA_CR:
    return expect(f, c, '\r', S_DATA_LF, chunk);
  case S_DATA_LF:
    return expect(f, c, '\n', S_SIZE, line);
  case S_LAST_CR:
    return expect(f, c, '\r', S_LAST_LF, "There must be nothing after the last chunk.");
  case S_LAST_LF:
    return expect(f, c, '\n', S_START, line);
  case S_BODY:
  case S_DATA:
  case S_REFUSED:
    break; /* these do not come byte by byte */
  }
  return false;
}

static size_t skip(struct framing *f, size_t n) {
  assert(f->left > 0);
  size_t k = f->left < n ? (size_t)f->left : n;
  f->left -= k;
  if (!f->left)
    enter(f, f->state == S_BODY ? S_START : S_DATA_CR);
  return k;
}

enum framing_verdict framing_feed(struct framing *f, const char *p, size_t n, size_t *taken) {
  size_t i = 0;
  while (i < n && f->state != S_REFUSED) {
    if (f->state == S_BODY || f->state == S_DATA) {
      i += skip(f, n - i);
    } else {
      bool is_head = f->state <= S_HEAD_LF;
      if (step(f, (unsigned char)p[i]))
        i++;
      if (is_head && f->state != S_REFUSED && ++f->head > FRAMING_HEAD_MAX)
        refuse(f, FF_HEAD_TOO_LARGE, "The request's headers have more than 32768 bytes.");
    }
    if (f->state == S_START)
      break;
  }
  *taken = i;
  return f->state == S_REFUSED ? FRAMING_REFUSED : f->state == S_START && i ? FRAMING_END : FRAMING_MORE;
}
