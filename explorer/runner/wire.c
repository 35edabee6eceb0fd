#include "runner/wire.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <curl/curl.h>
#include <jansson.h>

enum { URL_MAX = 2000, CONNECT_MS = 10000 };

struct wire {
  struct wire_config cfg;
  CURL *curl;
  char base[URL_MAX], authorization[80];
};

/* ---- the address --------------------------------------------------------------------------------------------------- */

/* Reads scheme and host; false if the text is no address of a server. */
static bool read_url(const char *url, bool *is_https, char *host, size_t size) {
  CURLU *u = curl_url();
  char *scheme = NULL, *name = NULL, *query = NULL;
  bool ok = u && !curl_url_set(u, CURLUPART_URL, url, 0) && !curl_url_get(u, CURLUPART_SCHEME, &scheme, 0) &&
            !curl_url_get(u, CURLUPART_HOST, &name, 0) && curl_url_get(u, CURLUPART_QUERY, &query, 0) != CURLUE_OK;
  ok = ok && (!strcmp(scheme, "https") || !strcmp(scheme, "http")) && strlen(url) < URL_MAX - 300;
  *is_https = ok && !strcmp(scheme, "https");
  snprintf(host, size, "%s", ok ? name : "");
  curl_free(query);
  curl_free(name);
  curl_free(scheme);
  curl_url_cleanup(u);
  return ok;
}

static bool is_this_machine(const char *host) {
  return !strcmp(host, "localhost") || !strncmp(host, "127.", 4) || !strcmp(host, "[::1]");
}

static enum status check_url(const struct wire_config *cfg, struct error *err) {
  char host[256];
  bool is_https;
  if (!read_url(cfg->url, &is_https, host, sizeof host))
    return fail(err, ST_INPUT, "%.120s is no address of a server: expected https://HOST[:PORT]", cfg->url);
  if (!is_https && !is_this_machine(host) && !cfg->allows_plain)
    return fail(err, ST_INPUT, "http:// sends the token to %.80s unencrypted: use https://, or --allow-http", host);
  return ST_OK;
}

static int on_progress(void *user, curl_off_t a, curl_off_t b, curl_off_t c, curl_off_t d) {
  const struct wire *w = user;
  (void)a, (void)b, (void)c, (void)d;
  return w->cfg.stop && *w->cfg.stop;
}

enum status wire_open(const struct wire_config *cfg, struct wire **out, struct error *err) {
  enum status st = check_url(cfg, err);
  struct wire *w = st ? NULL : calloc(1, sizeof *w);
  if (st)
    return st;
  if (w)
    w->curl = curl_easy_init();
  if (!w || !w->curl) {
    free(w);
    return fail(err, ST_NOMEM, "HTTP");
  }
  w->cfg = *cfg;
  snprintf(w->base, sizeof w->base, "%s", cfg->url);
  for (size_t n = strlen(w->base); n && w->base[n - 1] == '/'; n--)
    w->base[n - 1] = 0;
  if (cfg->token)
    snprintf(w->authorization, sizeof w->authorization, "Authorization: Bearer %s", cfg->token);
  *out = w;
  return ST_OK;
}

void wire_close(struct wire *w) {
  if (!w)
    return;
  curl_easy_cleanup(w->curl);
  free(w);
}

/* ---- one request --------------------------------------------------------------------------------------------------- */

static size_t on_data(char *data, size_t size, size_t n, void *user) {
  struct wire_answer *a = user;
  return buf_append(&a->body, data, size * n) ? 0 : size * n;
}

static struct curl_slist *make_headers(const struct wire *w, const struct wire_ask *ask, bool *ok) {
  struct curl_slist *list = NULL;
  char type[120];
  const char *own[] = {"Expect:", "Accept: application/json, application/octet-stream", "X-Nkx-Request: 1",
                       w->cfg.token ? w->authorization : NULL};
  *ok = true;
  for (size_t i = 0; i < sizeof own / sizeof *own; i++) {
    struct curl_slist *more = own[i] ? curl_slist_append(list, own[i]) : list;
    *ok &= more != NULL;
    list = more ? more : list;
  }
  for (int i = 0; i < 4 && ask->headers[i]; i++) {
    struct curl_slist *more = curl_slist_append(list, ask->headers[i]);
    *ok &= more != NULL;
    list = more ? more : list;
  }
  snprintf(type, sizeof type, "Content-Type: %s", ask->type ? ask->type : "");
  struct curl_slist *more = ask->type ? curl_slist_append(list, type) : list;
  *ok &= more != NULL;
  return more ? more : list;
}

static void set_options(struct wire *w, const struct wire_ask *ask, const char *url, const struct curl_slist *headers,
                        struct wire_answer *out) {
  CURL *c = w->curl;
  curl_easy_reset(c); /* keeps the connection */
  curl_easy_setopt(c, CURLOPT_URL, url);
  curl_easy_setopt(c, CURLOPT_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(c, CURLOPT_FOLLOWLOCATION, 0L);
  curl_easy_setopt(c, CURLOPT_SSL_VERIFYPEER, 1L);
  curl_easy_setopt(c, CURLOPT_SSL_VERIFYHOST, 2L);
  curl_easy_setopt(c, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
  if (w->cfg.ca_file)
    curl_easy_setopt(c, CURLOPT_CAINFO, w->cfg.ca_file);
  curl_easy_setopt(c, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(c, CURLOPT_CONNECTTIMEOUT_MS, (long)CONNECT_MS);
  curl_easy_setopt(c, CURLOPT_TIMEOUT_MS, (long)ask->timeout_ms);
  curl_easy_setopt(c, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
  curl_easy_setopt(c, CURLOPT_HTTPHEADER, headers);
  curl_easy_setopt(c, CURLOPT_WRITEFUNCTION, on_data);
  curl_easy_setopt(c, CURLOPT_WRITEDATA, out);
  curl_easy_setopt(c, CURLOPT_NOPROGRESS, ask->is_last ? 1L : 0L);
  curl_easy_setopt(c, CURLOPT_XFERINFOFUNCTION, on_progress);
  curl_easy_setopt(c, CURLOPT_XFERINFODATA, w);
  if (!strcmp(ask->method, "POST")) {
    curl_easy_setopt(c, CURLOPT_POST, 1L);
    curl_easy_setopt(c, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)ask->len);
    curl_easy_setopt(c, CURLOPT_POSTFIELDS, ask->len ? ask->body : "");
  } else if (strcmp(ask->method, "GET") != 0) {
    curl_easy_setopt(c, CURLOPT_CUSTOMREQUEST, ask->method);
  }
}

static void read_error(struct wire_answer *out) {
  json_t *o = json_loadb(buf_text(&out->body), out->body.len, 0, NULL);
  const json_t *e = json_object_get(o, "error");
  const char *code = json_string_value(json_object_get(e, "code"));
  const char *message = json_string_value(json_object_get(e, "message"));
  snprintf(out->code, sizeof out->code, "%s", code ? code : "");
  snprintf(out->message, sizeof out->message, "%s", message ? message : "");
  json_decref(o);
}

enum status wire_send(struct wire *w, const struct wire_ask *ask, struct wire_answer *out, struct error *err) {
  char url[URL_MAX + 400];
  bool ok;
  *out = (struct wire_answer){0};
  buf_init(&out->body, ask->max);
  snprintf(url, sizeof url, "%s%s", w->base, ask->path);
  struct curl_slist *headers = make_headers(w, ask, &ok);
  CURLcode code = CURLE_OUT_OF_MEMORY;
  if (ok) {
    set_options(w, ask, url, headers, out);
    code = curl_easy_perform(w->curl);
  }
  curl_slist_free_all(headers);
  if (code != CURLE_OK)
    return fail(err, ST_BUSY, "%.120s: %s", w->base,
                buf_status(&out->body) ? "the answer is longer than it may be" : curl_easy_strerror(code));
  curl_easy_getinfo(w->curl, CURLINFO_RESPONSE_CODE, &out->status);
  if (out->status >= 400)
    read_error(out);
  return ST_OK;
}
