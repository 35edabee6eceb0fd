/* Media types, headers and errors as Compiler Explorer's clients expect them. */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/json.h"
#include "ce/internal.h"

enum { PROBLEM_MAX = 4 << 10 };

/* ---- what the client accepts ------------------------------------------------------------------------------------- */

/* One entry of an Accept header. */
struct accepted {
  const char *type;
  size_t len;
  double q;
};

static double quality(const char *p, const char *end) {
  while ((p = memchr(p, ';', (size_t)(end - p)))) {
    p++;
    p += strspn(p, " \t");
    if (end - p > 2 && (*p == 'q' || *p == 'Q') && p[1] == '=')
      return strtod(p + 2, NULL);
  }
  return 1;
}

/* Reads the entry at *at and moves on; false at the end. */
static bool next_accepted(const char **at, struct accepted *out) {
  const char *p = *at + strspn(*at, " ,\t");
  if (!*p)
    return false;
  const char *end = p + strcspn(p, ",");
  out->type = p;
  out->len = strcspn(p, ",; \t");
  out->q = quality(p, end);
  *at = end;
  return true;
}

static bool is_type(const struct accepted *a, const char *name) {
  return a->len == strlen(name) && !strncasecmp(a->type, name, a->len);
}

bool ce_wants_json(const struct request *rq) {
  const char *p = http_header(rq, MHD_HTTP_HEADER_ACCEPT);
  struct accepted a;
  double json = 0, text = 0;
  bool json_first = false;

  while (p && next_accepted(&p, &a)) {
    if (is_type(&a, "application/json") || is_type(&a, "application/*")) {
      json_first |= text == 0;
      json = a.q > json ? a.q : json;
    } else if (is_type(&a, "text/plain") || is_type(&a, "text/*")) {
      text = a.q > text ? a.q : text;
    }
  }
  return json > text || (json > 0 && json_first && json >= text);
}

json_t *ce_text(const char *s, size_t n) {
  struct buf b;
  json_t *v = json_stringn(s, n);
  if (v)
    return v;
  buf_init(&b, 8 * n + 16);
  json_put_string(&b, s, n);
  v = json_loadb(buf_text(&b), b.len, JSON_DECODE_ANY, NULL);
  buf_clear(&b);
  return v;
}

/* ---- answers ----------------------------------------------------------------------------------------------------- */

void ce_add_headers(struct MHD_Response *r) {
  MHD_add_response_header(r, MHD_HTTP_HEADER_ACCESS_CONTROL_ALLOW_ORIGIN, "*");
  MHD_add_response_header(r, "Access-Control-Allow-Headers", "Origin, X-Requested-With, Content-Type, Accept");
}

static enum MHD_Result send_bytes(struct request *rq, unsigned status, char *data, size_t len, const char *type,
                                  enum ce_age age) {
  return http_bytes(rq, status,
                    &(struct http_bytes){.data = data,
                                         .len = len,
                                         .type = type,
                                         .cache = age == CE_LISTED ? "public, max-age=600" : NULL,
                                         .vary = MHD_HTTP_HEADER_ACCEPT,
                                         .release = free,
                                         .user = data});
}

enum MHD_Result ce_send(struct request *rq, unsigned status, json_t *v, enum ce_age age) {
  char *text = v ? json_dumps(v, JSON_COMPACT | JSON_ENCODE_ANY) : NULL;
  json_decref(v);
  if (!text)
    return http_problem(rq, PB_INTERNAL, NULL, NULL);
  return send_bytes(rq, status, text, strlen(text), "application/json", age);
}

static enum MHD_Result send_buf(struct request *rq, struct buf *b, const char *type, enum ce_age age) {
  char *data = b->data;
  size_t len = b->len;
  if (buf_status(b) || (!data && !(data = calloc(1, 1))))
    return http_problem(rq, PB_INTERNAL, NULL, NULL);
  buf_init(b, b->max);
  return send_bytes(rq, MHD_HTTP_OK, data, len, type, age);
}

enum MHD_Result ce_send_text(struct request *rq, struct buf *b, enum ce_age age) {
  return send_buf(rq, b, "text/plain; charset=utf-8", age);
}

enum MHD_Result ce_send_json(struct request *rq, struct buf *b, enum ce_age age) {
  return send_buf(rq, b, "application/json", age);
}

enum MHD_Result ce_refuse(struct request *rq, unsigned status, const char *message) {
  return ce_send(rq, status, json_pack("{s:b,s:o}", "error", 1, "message", ce_text(message, strlen(message))),
                 CE_NO_STORE);
}

enum MHD_Result ce_options(struct request *rq) {
  return http_send(rq, MHD_HTTP_OK, MHD_create_response_from_buffer(0, (void *)"", MHD_RESPMEM_PERSISTENT));
}

struct MHD_Response *ce_problem(struct request *rq, unsigned status, const char *code, const char *message) {
  struct buf b;
  bool is_named = status == MHD_HTTP_NOT_FOUND || status == MHD_HTTP_METHOD_NOT_ALLOWED;
  bool is_text = is_named && !ce_wants_json(rq);

  buf_init(&b, PROBLEM_MAX);
  if (is_text) {
    buf_puts(&b, status == MHD_HTTP_NOT_FOUND ? "Not Found" : "Method Not Allowed");
  } else {
    buf_putc(&b, '{');
    json_put_field_str(&b, "error", message);
    json_put_field_str(&b, "message", message);
    json_put_field_str(&b, "code", code);
    buf_putc(&b, '}');
  }
  struct MHD_Response *r = MHD_create_response_from_buffer(b.len, (void *)buf_text(&b), MHD_RESPMEM_MUST_COPY);
  buf_clear(&b);
  if (r)
    MHD_add_response_header(r, MHD_HTTP_HEADER_CONTENT_TYPE,
                            is_text ? "text/plain; charset=utf-8" : "application/json");
  if (r && !strcmp(code, problem_def(PB_BAD_JSON)->code))
    MHD_add_response_header(r, MHD_HTTP_HEADER_CONNECTION,
                            "close"); /* nothing more on this connection can be trusted */
  return r;
}
