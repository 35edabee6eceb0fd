/* What handlers ask about the request and its client, and how they suspend it. */
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/sha.h>

#include "http/framing.h"
#include "http/http.h"
#include "http/server.h"

const char *http_header(const struct request *rq, const char *name) {
  return MHD_lookup_connection_value(rq->connection, MHD_HEADER_KIND, name);
}

const char *http_argument(const struct request *rq, const char *name) {
  return MHD_lookup_connection_value(rq->connection, MHD_GET_ARGUMENT_KIND, name);
}

bool http_accepts_encoding(const struct request *rq, const char *what) {
  const char *h = http_header(rq, MHD_HTTP_HEADER_ACCEPT_ENCODING);
  size_t n = strlen(what);
  while (h && *h) {
    h += strspn(h, " ,\t");
    size_t len = strcspn(h, ",");
    if (len >= n && !strncasecmp(h, what, n) && (len == n || strchr(" ;\t", h[n]))) {
      const char *q = memmem(h, len, "q=0", 3);
      return !q || (q + 3 < h + len && q[3] == '.' && strspn(q + 4, "0") < strspn(q + 4, "0123456789"));
    }
    h += len;
  }
  return false;
}

bool http_has_etag(const struct request *rq, const char *etag) {
  const char *h = http_header(rq, MHD_HTTP_HEADER_IF_NONE_MATCH);
  return h && (!strcmp(h, "*") || strstr(h, etag));
}

int http_client_fd(const struct request *rq) {
  const union MHD_ConnectionInfo *info = MHD_get_connection_info(rq->connection, MHD_CONNECTION_INFO_CONNECTION_FD);
  return info ? info->connect_fd : -1;
}

bool http_is_gone(const struct request *rq) {
  const int fd = http_client_fd(rq);
  char c;
  return fd >= 0 && recv(fd, &c, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
}

/* ---- the client's address ---------------------------------------------------------------------------------------- */

struct listed {
  const char *header;
  struct buf values;
};

/* A header that comes several times means the same as one whose values are joined by commas. */
static enum MHD_Result join_values(void *user, enum MHD_ValueKind kind, const char *name, const char *value) {
  struct listed *l = user;
  (void)kind;
  if (value && !strcasecmp(name, l->header))
    buf_printf(&l->values, "%s%s", l->values.len ? "," : "", value);
  return MHD_YES;
}

const char *http_header_once(const struct request *rq, const char *name) {
  struct listed l = {.header = name};
  const char *said = rq->is_proxied && name ? http_header(rq, name) : NULL;
  if (!said || !*said)
    return NULL;
  buf_init(&l.values, FRAMING_HEAD_MAX);
  MHD_get_connection_values(rq->connection, MHD_HEADER_KIND, join_values, &l);
  const bool is_one = !strcmp(buf_text(&l.values), said);
  buf_clear(&l.values);
  return is_one ? said : NULL;
}

/* The user that the proxy names. */
static void find_user(struct request *rq) {
  const char *said = http_header_once(rq, rq->cfg->http.user_header);
  if (said && strlen(said) < USER_SIZE)
    memcpy(rq->user, said, strlen(said) + 1);
}

void http_find_client(struct request *rq) {
  static const char *const headers[] = {[ADDRESS_X_FORWARDED_FOR] = "X-Forwarded-For",
                                        [ADDRESS_FORWARDED] = "Forwarded"};
  const struct http_config *cfg = &rq->cfg->http;
  const union MHD_ConnectionInfo *info = MHD_get_connection_info(rq->connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
  struct address peer;
  address_of_socket(info ? info->client_addr : NULL, &peer);
  rq->address = peer;
  rq->is_proxied = address_is_in(&peer, &cfg->trusted_proxies);
  if (!rq->is_proxied)
    return;
  struct listed l = {.header = headers[cfg->proxy_header]};
  buf_init(&l.values, FRAMING_HEAD_MAX);
  MHD_get_connection_values(rq->connection, MHD_HEADER_KIND, join_values, &l);
  address_of_client(&peer, &cfg->trusted_proxies, (enum address_header)cfg->proxy_header, buf_text(&l.values),
                    &rq->address);
  buf_clear(&l.values);
  find_user(rq);
}

void http_client_key(const struct request *rq, char out[ADDRESS_TEXT_SIZE]) {
  enum { BYTES = 16 };
  unsigned char digest[SHA256_DIGEST_LENGTH];
  if (!rq->user[0]) {
    address_put(&rq->address, out);
    return;
  }
  SHA256((const unsigned char *)rq->user, strlen(rq->user), digest);
  int n = snprintf(out, ADDRESS_TEXT_SIZE, "user-");
  for (int i = 0; i < BYTES; i++)
    snprintf(out + n + 2 * i, 3, "%02x", digest[i]);
}

/* The user's name or the address, for the log: with no letter that ends a field. */
static void put_identity(const struct request *rq, const char *address, char out[CLIENT_NAME_SIZE]) {
  snprintf(out, CLIENT_NAME_SIZE, "%.*s", CLIENT_NAME_SIZE - 1, rq->user[0] ? rq->user : address);
  for (char *p = out; *p; p++)
    if (*p <= ' ' || *p > '~' || *p == '"' || *p == '=')
      *p = '_';
}

void http_client_name(const struct request *rq, char out[CLIENT_NAME_SIZE]) {
  enum { BYTES = 6 };
  char address[ADDRESS_TEXT_SIZE];
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned n = 0;
  http_client_key(rq, address);
  if (rq->cfg->http.log_clients == CLIENT_LOG_ADDRESS) {
    put_identity(rq, address, out);
    return;
  }
  const bool is_named = rq->cfg->http.log_clients == CLIENT_LOG_NAME &&
                        HMAC(EVP_sha256(), rq->cfg->client_key, CLIENT_KEY_SIZE, (const unsigned char *)address,
                             strlen(address), digest, &n) != NULL;
  snprintf(out, CLIENT_NAME_SIZE, "-");
  for (int i = 0; is_named && i < BYTES; i++)
    snprintf(out + 2 * i, 3, "%02x", digest[i]);
}

/* ---- suspending -------------------------------------------------------------------------------------------------- */

void http_park(void *user) {
  MHD_suspend_connection(user);
}

void http_resume(void *user) {
  MHD_resume_connection(user);
}

/* True for a name and port that can be a part of an address. */
static bool is_host(const char *h) {
  static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-:[]_";
  return h && *h && strlen(h) < 256 && !h[strspn(h, letters)];
}

void http_own_address(const struct request *rq, char out[OWN_ADDRESS_SIZE]) {
  const char *host = http_header(rq, MHD_HTTP_HEADER_HOST), *proto = http_header(rq, "X-Forwarded-Proto");
  snprintf(out, OWN_ADDRESS_SIZE, "%s://%s", proto && !strcmp(proto, "https") ? "https" : "http",
           is_host(host) ? host : "localhost");
}
