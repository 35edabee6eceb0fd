#include "store/s3.h"

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <curl/curl.h>
#include <openssl/sha.h>

#include "base/clock.h"
#include "base/log.h"

enum {
  CONNECT_MS = 1500,
  SEND_MS = 10000,   /* nobody waits for it */
  BYTES_A_MS = 2048, /* at which an object comes in at least */
  REST_MS = 5000,
  DENIED_MS = 60000, /* until a kind of request that was denied is tried again */
  SUSPECTS = 64,
  DIGEST_HEADER = 100,
  KEY_MAX = 256,
  TOKEN_MAX = 4096, /* of a session */
  FILE_MAX = 16384,
  CA_MAX = 1 << 20,
  ANSWER_MAX = 4096, /* of a failure: its code is in it */
};

struct s3_site {
  char url[S3_URL_MAX + 1], sigv4[100], user[2 * KEY_MAX + 2], token[TOKEN_MAX + 32];
  struct buf ca; /* certificates to trust, PEM; empty: the system's */
  atomic_llong rests_until_ms;
  atomic_bool is_away; /* what the log has said */
  atomic_llong denied_until_ms[S3_KINDS];
  atomic_bool is_denied[S3_KINDS];
  atomic_llong requests[S3_KINDS][S3_OUTCOMES];
  pthread_mutex_t lock; /* guards the suspects */
  struct ident_hash suspects[SUSPECTS];
  bool is_suspect[SUSPECTS];
  int next;
};

struct s3 {
  struct s3_site *site;
  CURL *curl;
};

/* ---- settings ---------------------------------------------------------------------------------------------------- */

static bool is_this_machine(const char *host) {
  return !strcmp(host, "localhost") || !strncmp(host, "127.", 4) || !strcmp(host, "[::1]");
}

static enum status check_url(const char *url, struct error *err) {
  CURLU *u = curl_url();
  char *scheme = NULL, *host = NULL, *more = NULL;
  const bool ok = u && !curl_url_set(u, CURLUPART_URL, url, 0) && !curl_url_get(u, CURLUPART_SCHEME, &scheme, 0) &&
                  !curl_url_get(u, CURLUPART_HOST, &host, 0) &&
                  curl_url_get(u, CURLUPART_QUERY, &more, 0) != CURLUE_OK &&
                  curl_url_get(u, CURLUPART_USER, &more, 0) != CURLUE_OK && strlen(url) <= S3_URL_MAX;
  enum status st = ST_OK;
  if (!ok || (strcmp(scheme, "https") != 0 && strcmp(scheme, "http") != 0))
    st = fail(err, ST_INPUT, "--s3-url: expected https://HOST[:PORT]/BUCKET[/PREFIX], got \"%.100s\"", url);
  else if (!strcmp(scheme, "http") && !is_this_machine(host))
    st = fail(err, ST_INPUT, "--s3-url: http:// would send results to %.80s unencrypted: use https://", host);
  curl_free(more);
  curl_free(host);
  curl_free(scheme);
  curl_url_cleanup(u);
  return st;
}

/* Takes "name = value" of the first profile; false: the value is too long. */
static bool take(const char *line, const char *name, char *out, size_t size) {
  const size_t n = strlen(name);
  line += strspn(line, " \t");
  if (strncmp(line, name, n) != 0)
    return true;
  line += n;
  line += strspn(line, " \t");
  if (*line != '=' || *out)
    return true;
  line++;
  line += strspn(line, " \t");
  const size_t len = strcspn(line, " \t\r\n");
  if (len >= size)
    return false;
  memcpy(out, line, len);
  out[len] = 0;
  return true;
}

static enum status read_credentials(const char *path, struct s3_site *site, struct error *err) {
  char line[TOKEN_MAX + 64], key[KEY_MAX] = "", secret[KEY_MAX] = "", token[TOKEN_MAX] = "";
  bool fits = true;
  FILE *f = fopen(path, "re");
  if (!f)
    return fail(err, ST_INPUT, "--s3-credentials: %.120s: %m", path);
  while (fits && fgets(line, sizeof line, f))
    fits = take(line, "aws_access_key_id", key, sizeof key) &&
           take(line, "aws_secret_access_key", secret, sizeof secret) &&
           take(line, "aws_session_token", token, sizeof token);
  fclose(f);
  const bool ok = fits && *key && *secret && !strchr(key, ':');
  if (ok)
    snprintf(site->user, sizeof site->user, "%s:%s", key, secret);
  if (ok && *token)
    snprintf(site->token, sizeof site->token, "x-amz-security-token: %s", token);
  explicit_bzero(line, sizeof line);
  explicit_bzero(secret, sizeof secret);
  return ok ? ST_OK
            : fail(err, ST_INPUT,
                   "--s3-credentials: %.120s: expected lines aws_access_key_id = … and aws_secret_access_key = …",
                   path);
}

/* Into memory, because the service cannot read every file once it has given up its privileges. */
static enum status read_ca(const char *path, struct s3_site *site, struct error *err) {
  FILE *f = fopen(path, "re");
  if (!f)
    return fail(err, ST_INPUT, "--s3-ca-file: %.120s: %m", path);
  char part[4096];
  for (size_t n; (n = fread(part, 1, sizeof part, f)) > 0;)
    buf_append(&site->ca, part, n);
  const bool ok = !ferror(f) && !buf_status(&site->ca) && strstr(buf_text(&site->ca), "-----BEGIN CERTIFICATE-----");
  fclose(f);
  return ok ? ST_OK : fail(err, ST_INPUT, "--s3-ca-file: %.120s: expected certificates in PEM, of 1 MiB at most", path);
}

static enum status set_region(const char *region, struct s3_site *site, struct error *err) {
  const size_t n = region ? strlen(region) : 0;
  if (!n || n > 40 || strspn(region, "abcdefghijklmnopqrstuvwxyz0123456789-") != n)
    return fail(err, ST_INPUT, "--s3-region: expected a region's name, got \"%.60s\"", region ? region : "");
  snprintf(site->sigv4, sizeof site->sigv4, "aws:amz:%s:s3", region);
  return ST_OK;
}

enum status s3_site_open(const struct s3_config *cfg, struct s3_site **out, struct error *err) {
  assert(cfg->url);
  if (!cfg->credentials)
    return fail(err, ST_INPUT, "--s3-url: needs --s3-credentials");
  struct s3_site *site = calloc(1, sizeof *site);
  if (!site || curl_global_init(CURL_GLOBAL_DEFAULT)) {
    free(site);
    return fail(err, ST_NOMEM, "S3");
  }
  pthread_mutex_init(&site->lock, NULL);
  buf_init(&site->ca, CA_MAX);
  enum status st = check_url(cfg->url, err);
  if (!st)
    st = set_region(cfg->region, site, err);
  if (!st)
    st = read_credentials(cfg->credentials, site, err);
  if (!st && cfg->ca_file)
    st = read_ca(cfg->ca_file, site, err);
  if (st) {
    s3_site_close(site);
    return st;
  }
  snprintf(site->url, sizeof site->url, "%s", cfg->url);
  for (size_t n = strlen(site->url); n && site->url[n - 1] == '/'; n--)
    site->url[n - 1] = 0;
  *out = site;
  return ST_OK;
}

void s3_site_close(struct s3_site *site) {
  if (!site)
    return;
  pthread_mutex_destroy(&site->lock);
  buf_clear(&site->ca);
  explicit_bzero(site, sizeof *site);
  free(site);
}

enum status s3_open(struct s3_site *site, struct s3 **out, struct error *err) {
  struct s3 *c = calloc(1, sizeof *c);
  if (c)
    c->curl = curl_easy_init();
  if (!c || !c->curl) {
    free(c);
    return fail(err, ST_NOMEM, "S3");
  }
  c->site = site;
  *out = c;
  return ST_OK;
}

void s3_close(struct s3 *c) {
  if (!c)
    return;
  curl_easy_cleanup(c->curl);
  free(c);
}

struct s3_site *s3_site_of(const struct s3 *c) {
  return c->site;
}

/* ---- its state --------------------------------------------------------------------------------------------------- */

/* What the key needs for them. */
static const char *const permissions[S3_KINDS] = {
    [S3_PUT] = "PutObject", [S3_GET] = "GetObject", [S3_DELETE] = "DeleteObject"};

static void count(struct s3_site *site, enum s3_kind kind, enum s3_outcome outcome) {
  atomic_fetch_add(&site->requests[kind][outcome], 1);
}

bool s3_rests(struct s3_site *site, enum s3_kind kind) {
  const int64_t now_ms = clock_now_ms();
  return now_ms < atomic_load(&site->rests_until_ms) || now_ms < atomic_load(&site->denied_until_ms[kind]);
}

static void note_failure(struct s3_site *site, const char *why) {
  atomic_store(&site->rests_until_ms, clock_now_ms() + REST_MS);
  if (!atomic_exchange(&site->is_away, true))
    log_warn("objects", "state=away %s", why);
}

/* It is there, whatever it has answered. */
static void note_there(struct s3_site *site) {
  atomic_store(&site->rests_until_ms, 0);
  if (atomic_exchange(&site->is_away, false))
    log_info("objects", "state=back");
}

static void note_answer(struct s3_site *site, enum s3_kind kind) {
  note_there(site);
  if (atomic_exchange(&site->is_denied[kind], false)) {
    atomic_store(&site->denied_until_ms[kind], 0);
    log_info("objects", "state=granted permission=%s", permissions[kind]);
  }
}

static void note_denial(struct s3_site *site, enum s3_kind kind, const char *why) {
  note_there(site);
  if (kind != S3_GET)
    atomic_store(&site->denied_until_ms[kind], clock_now_ms() + DENIED_MS);
  if (!atomic_exchange(&site->is_denied[kind], true))
    log_warn("objects", "state=denied permission=%s %s", permissions[kind], why);
}

void s3_suspect(struct s3_site *site, const struct ident_hash *hash) {
  pthread_mutex_lock(&site->lock);
  site->suspects[site->next] = *hash;
  site->is_suspect[site->next] = true;
  site->next = (site->next + 1) % SUSPECTS;
  pthread_mutex_unlock(&site->lock);
}

bool s3_was_suspected(struct s3_site *site, const struct ident_hash *hash) {
  bool found = false;
  pthread_mutex_lock(&site->lock);
  for (int i = 0; i < SUSPECTS; i++)
    if (site->is_suspect[i] && ident_hash_equal(&site->suspects[i], hash)) {
      site->is_suspect[i] = false;
      found = true;
    }
  pthread_mutex_unlock(&site->lock);
  return found;
}

void s3_look(struct s3_site *site, struct s3_counts *out) {
  for (int k = 0; k < S3_KINDS; k++)
    for (int o = 0; o < S3_OUTCOMES; o++)
      out->requests[k][o] = atomic_load(&site->requests[k][o]);
  out->is_up = !atomic_load(&site->is_away);
  for (int k = 0; k < S3_KINDS; k++)
    out->is_denied[k] = atomic_load(&site->is_denied[k]);
}

/* ---- one request ------------------------------------------------------------------------------------------------- */

static size_t on_data(char *data, size_t size, size_t n, void *user) {
  return buf_append(user, data, size * n) ? 0 : size * n;
}

/* The text between <Code> and </Code> of a failure, or "". */
static void read_code(const struct buf *answer, char *out, size_t size) {
  const char *at = strstr(buf_text(answer), "<Code>");
  at = at ? at + 6 : "";
  const size_t n = strspn(at, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz");
  snprintf(out, size, "%.*s", (int)(n < size ? n : size - 1), at);
}

static void set_options(struct s3 *c, const char *url, const struct curl_slist *headers, long timeout_ms,
                        struct buf *answer) {
  const struct s3_site *site = c->site;
  CURL *e = c->curl;
  curl_easy_reset(e); /* keeps the connection */
  curl_easy_setopt(e, CURLOPT_URL, url);
  curl_easy_setopt(e, CURLOPT_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(e, CURLOPT_FOLLOWLOCATION, 0L);
  curl_easy_setopt(e, CURLOPT_SSL_VERIFYPEER, 1L);
  curl_easy_setopt(e, CURLOPT_SSL_VERIFYHOST, 2L);
  curl_easy_setopt(e, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
  if (site->ca.len) {
    struct curl_blob ca = {.data = site->ca.data, .len = site->ca.len, .flags = CURL_BLOB_NOCOPY};
    curl_easy_setopt(e, CURLOPT_CAINFO_BLOB, &ca);
  }
  curl_easy_setopt(e, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(e, CURLOPT_PROXY, ""); /* not what the environment says for other programs */
  curl_easy_setopt(e, CURLOPT_NETRC, (long)CURL_NETRC_IGNORED);
  curl_easy_setopt(e, CURLOPT_CONNECTTIMEOUT_MS, (long)CONNECT_MS);
  curl_easy_setopt(e, CURLOPT_TIMEOUT_MS, timeout_ms);
  curl_easy_setopt(e, CURLOPT_EXPECT_100_TIMEOUT_MS, 1L); /* an empty header "Expect" would be signed, but not sent */
  curl_easy_setopt(e, CURLOPT_AWS_SIGV4, site->sigv4);
  curl_easy_setopt(e, CURLOPT_USERPWD, site->user);
  curl_easy_setopt(e, CURLOPT_HTTPHEADER, headers);
  curl_easy_setopt(e, CURLOPT_WRITEFUNCTION, on_data);
  curl_easy_setopt(e, CURLOPT_WRITEDATA, answer);
}

static struct curl_slist *add(struct curl_slist *list, const char *header, bool *ok) {
  struct curl_slist *more = curl_slist_append(list, header);
  *ok &= more != NULL;
  return more ? more : list;
}

/* The header that S3 wants to be signed, and that libcurl takes the digest of the body from. */
static void put_digest(const void *p, size_t n, bool has_body, char out[DIGEST_HEADER]) {
  unsigned char digest[SHA256_DIGEST_LENGTH];
  SHA256(has_body ? p : "", has_body ? n : 0, digest);
  int at = snprintf(out, DIGEST_HEADER, "x-amz-content-sha256: ");
  for (size_t i = 0; i < sizeof digest; i++)
    at += snprintf(out + at, DIGEST_HEADER - (size_t)at, "%02x", digest[i]);
}

/* Sends one request; p: the body of a put.  *code: of the answer, 0 if there is none in time. */
static enum status ask(struct s3 *c, enum s3_kind kind, const char *name, const void *p, size_t n, struct buf *answer,
                       long *code, struct error *err) {
  char url[S3_URL_MAX + 128];
  bool ok = true;
  *code = 0;
  snprintf(url, sizeof url, "%s/%.100s", c->site->url, name);
  char digest[DIGEST_HEADER];
  put_digest(p, n, kind == S3_PUT, digest);
  struct curl_slist *headers = add(NULL, digest, &ok);
  if (kind == S3_PUT)
    headers = add(headers, "Content-Type: application/octet-stream", &ok);
  if (*c->site->token)
    headers = add(headers, c->site->token, &ok);
  if (!ok) {
    curl_slist_free_all(headers);
    return fail(err, ST_NOMEM, "S3");
  }
  set_options(c, url, headers, kind == S3_GET ? S3_PATIENCE_MS + (long)(n / BYTES_A_MS) : SEND_MS, answer);
  if (kind == S3_PUT) {
    curl_easy_setopt(c->curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)n);
    curl_easy_setopt(c->curl, CURLOPT_POSTFIELDS, p);
    curl_easy_setopt(c->curl, CURLOPT_CUSTOMREQUEST, "PUT");
  } else if (kind == S3_DELETE) {
    curl_easy_setopt(c->curl, CURLOPT_CUSTOMREQUEST, "DELETE");
  }
  const CURLcode result = curl_easy_perform(c->curl);
  curl_slist_free_all(headers);
  if (result != CURLE_OK && !(result == CURLE_WRITE_ERROR && buf_status(answer)))
    return fail(err, ST_BUSY, "S3: %s", curl_easy_strerror(result));
  curl_easy_getinfo(c->curl, CURLINFO_RESPONSE_CODE, code);
  return ST_OK;
}

/* The same, with what it means for the site.  ST_IO: the store says that there is no such object. */
static enum status ask_site(struct s3 *c, enum s3_kind kind, const char *name, const void *p, size_t n,
                            struct buf *answer, struct error *err) {
  char why[64] = "";
  long code;
  if (s3_rests(c->site, kind)) {
    count(c->site, kind, S3_RESTED);
    return fail(err, ST_BUSY, "S3 has failed a moment ago");
  }
  enum status st = ask(c, kind, name, p, n, answer, &code, err);
  if (!st && code == 404) {
    read_code(answer, why, sizeof why);
    if (strcmp(why, "NoSuchBucket") != 0) {
      note_answer(c->site, kind);
      count(c->site, kind, S3_MISSING);
      return fail(err, ST_IO, "a missing object");
    }
  }
  if (!st && (code < 200 || code > 299)) {
    read_code(answer, why, sizeof why);
    st = fail(err, ST_BUSY, "S3: HTTP %ld %s", code, why);
  }
  const bool is_denied = st && !strcmp(why, "AccessDenied");
  if (is_denied)
    note_denial(c->site, kind, err->text);
  else if (st)
    note_failure(c->site, err->text);
  else
    note_answer(c->site, kind);
  count(c->site, kind, is_denied ? S3_DENIED : st ? S3_FAILED : S3_DONE);
  return st;
}

enum status s3_put(struct s3 *c, const char *name, const void *p, size_t n, struct error *err) {
  struct buf answer;
  buf_init(&answer, ANSWER_MAX);
  enum status st = ask_site(c, S3_PUT, name, p, n, &answer, err);
  buf_clear(&answer);
  return st == ST_IO ? fail(err, ST_BUSY, "S3: there is no such bucket") : st;
}

enum status s3_get(struct s3 *c, const char *name, size_t n, struct buf *out, struct error *err) {
  struct buf answer;
  buf_init(&answer, n < ANSWER_MAX ? ANSWER_MAX : n);
  enum status st = ask_site(c, S3_GET, name, NULL, n, &answer, err);
  if (!st && (buf_status(&answer) || answer.len != n))
    st = fail(err, ST_IO, "an object of %zu bytes instead of %zu", answer.len, n);
  if (!st)
    st = buf_append(out, buf_text(&answer), n) ? fail(err, ST_NOMEM, "an object") : ST_OK;
  buf_clear(&answer);
  return st;
}

enum status s3_delete(struct s3 *c, const char *name, struct error *err) {
  struct buf answer;
  buf_init(&answer, ANSWER_MAX);
  enum status st = ask_site(c, S3_DELETE, name, NULL, 0, &answer, err);
  buf_clear(&answer);
  return st == ST_IO ? ST_OK : st;
}
