#include "http/address.h"

#include <arpa/inet.h>
#include <assert.h>
#include <ctype.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static const unsigned char v4_prefix[12] = {[10] = 0xff, [11] = 0xff};
static const struct address unknown;

static void set_v4(struct address *a, const void *four_bytes) {
  memcpy(a->bytes, v4_prefix, sizeof v4_prefix);
  memcpy(a->bytes + sizeof v4_prefix, four_bytes, 4);
}

static bool is_v4(const struct address *a) {
  return !memcmp(a->bytes, v4_prefix, sizeof v4_prefix);
}

static bool is_port(const char *p, size_t n) {
  size_t digits = 0;
  while (digits < n && isdigit((unsigned char)p[digits]))
    digits++;
  return n > 0 && n <= 5 && digits == n;
}

bool address_parse(const char *text, size_t len, struct address *out) {
  char host[INET6_ADDRSTRLEN];
  struct in6_addr six;
  struct in_addr four;
  const char *colon = memchr(text, ':', len), *close = memchr(text, ']', len);
  if (len && *text == '[') { /* [six] or [six]:port */
    if (!close)
      return false;
    size_t rest = len - (size_t)(close + 1 - text);
    if (rest && (close[1] != ':' || !is_port(close + 2, rest - 1)))
      return false;
    len = (size_t)(close - ++text);
  } else if (colon && !memchr(colon + 1, ':', len - (size_t)(colon + 1 - text))) { /* one colon: four:port */
    if (!is_port(colon + 1, len - (size_t)(colon + 1 - text)))
      return false;
    len = (size_t)(colon - text);
  }
  if (!len || len >= sizeof host)
    return false;
  memcpy(host, text, len);
  host[len] = 0;
  if (inet_pton(AF_INET, host, &four) == 1)
    set_v4(out, &four);
  else if (inet_pton(AF_INET6, host, &six) == 1)
    memcpy(out->bytes, &six, sizeof out->bytes);
  else
    return false;
  return true;
}

static bool parse_net(const char *text, size_t len, struct address_net *out) {
  const char *slash = memchr(text, '/', len);
  size_t n = slash ? (size_t)(slash - text) : len, digits = slash ? len - n - 1 : 0;
  if (memchr(text, ']', n) || !address_parse(text, n, &out->base)) /* no ports here */
    return false;
  bool is_four = is_v4(&out->base) && memchr(text, '.', n);
  if (is_four && memchr(text, ':', n) && strncasecmp(text, "::ffff:", 7) != 0)
    return false;
  if (slash && (digits < 1 || digits > 3 || !is_port(slash + 1, digits)))
    return false;
  int most = is_four && !memchr(text, ':', n) ? 32 : 128, bits = slash ? atoi(slash + 1) : most;
  out->bits = bits + 128 - most;
  return bits <= most;
}

enum status address_nets_parse(const char *text, struct address_nets *out, struct error *err) {
  struct address_nets nets = {0};
  for (const char *p = text; *(p += strspn(p, ", ")); p += strcspn(p, ", ")) {
    size_t n = strcspn(p, ", ");
    if (nets.n == ADDRESS_NETS_MAX)
      return fail(err, ST_INPUT, "more than %d networks", ADDRESS_NETS_MAX);
    if (!parse_net(p, n, &nets.nets[nets.n++]))
      return fail(err, ST_INPUT, "\"%.*s\" is neither an address nor a network such as 10.0.0.0/8",
                  n < 60 ? (int)n : 60, p);
  }
  *out = nets;
  return ST_OK;
}

static bool is_in_net(const struct address *a, const struct address_net *net) {
  int whole = net->bits / 8, rest = net->bits % 8;
  assert(net->bits >= 0 && net->bits <= 128);
  return !memcmp(a->bytes, net->base.bytes, (size_t)whole) &&
         (!rest || (a->bytes[whole] ^ net->base.bytes[whole]) >> (8 - rest) == 0);
}

bool address_is_in(const struct address *a, const struct address_nets *nets) {
  for (int i = 0; i < nets->n; i++)
    if (is_in_net(a, &nets->nets[i]))
      return true;
  return false;
}

bool address_is_loopback(const struct address *a) {
  static const struct address six = {{[15] = 1}};
  return (is_v4(a) && a->bytes[12] == 127) || !memcmp(a, &six, sizeof six);
}

void address_of_socket(const struct sockaddr *s, struct address *out) {
  *out = unknown;
  if (s && s->sa_family == AF_INET)
    set_v4(out, &((const struct sockaddr_in *)s)->sin_addr);
  else if (s && s->sa_family == AF_INET6)
    memcpy(out->bytes, &((const struct sockaddr_in6 *)s)->sin6_addr, sizeof out->bytes);
}

/* ---- what proxies say -------------------------------------------------------------------------------------------- */

/* Where the last element of text[0..len) begins.  Forwarded allows commas within quotes, which do not divide.  No
 * address holds a comma, so cutting there only makes an element that is not an address. */
static size_t last_element(const char *text, size_t len) {
  while (len && text[len - 1] != ',')
    len--;
  return len;
}

static void trim(const char **p, size_t *n) {
  while (*n && (**p == ' ' || **p == '\t'))
    ++*p, --*n;
  while (*n && ((*p)[*n - 1] == ' ' || (*p)[*n - 1] == '\t'))
    --*n;
}

/* The value of "for" in "proto=https;for=…", without its quotes. */
static bool find_for(const char **p, size_t *n) {
  for (const char *at = *p, *end = *p + *n; at < end;) {
    const char *semi = memchr(at, ';', (size_t)(end - at));
    size_t len = (size_t)((semi ? semi : end) - at);
    const char *pair = at;
    trim(&pair, &len);
    if (len > 4 && !strncasecmp(pair, "for=", 4)) {
      *p = pair + 4;
      *n = len - 4;
      if (*n >= 2 && **p == '"' && (*p)[*n - 1] == '"')
        ++*p, *n -= 2;
      return true;
    }
    at = semi ? semi + 1 : end;
  }
  return false;
}

void address_of_client(const struct address *peer, const struct address_nets *trusted, enum address_header form,
                       const char *list, struct address *out) {
  *out = *peer;
  for (size_t len = list ? strlen(list) : 0; len && address_is_in(out, trusted);) {
    size_t at = last_element(list, len), n = len - at;
    const char *p = list + at;
    struct address said;
    trim(&p, &n);
    if ((form == ADDRESS_FORWARDED && !find_for(&p, &n)) || !address_parse(p, n, &said))
      return; /* "unknown", or a name of the proxy's own: the last known hop counts as the client */
    *out = said;
    len = at ? at - 1 : 0;
  }
}

void address_put(const struct address *a, char out[ADDRESS_TEXT_SIZE]) {
  struct address net = *a;
  if (is_v4(a)) {
    inet_ntop(AF_INET, a->bytes + sizeof v4_prefix, out, ADDRESS_TEXT_SIZE);
    return;
  }
  if (!memcmp(a, &unknown, sizeof unknown)) {
    snprintf(out, ADDRESS_TEXT_SIZE, "?");
    return;
  }
  memset(net.bytes + 8, 0, 8);
  inet_ntop(AF_INET6, net.bytes, out, ADDRESS_TEXT_SIZE);
}
