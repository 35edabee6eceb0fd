#include "api/pack.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/sha.h>
#include <zlib.h>
#include <zstd.h>

enum {
  BODY_MAX = 4 * WORK_BYTES_MAX, /* a result is hardly longer than its frames; a tar also has its texts unescaped */
  WORTH_PACKING = 1024,          /* smaller answers fit into one packet anyway */
  ZSTD_LEVEL = 3,
  GZIP_LEVEL = 4,
  GZIP_WINDOW = 15 + 16, /* asks zlib for gzip's header */
};

static const char *const face_encodings[WORK_FACES] = {NULL, "gzip", "zstd"};

void body_init(struct body *b, const struct request *rq) {
  *b = (struct body){.may_gzip = http_accepts_encoding(rq, "gzip"), .may_zstd = http_accepts_encoding(rq, "zstd")};
  buf_init(&b->bytes, BODY_MAX);
}

void body_clear(struct body *b) {
  buf_clear(&b->bytes);
}

static bool pack_zstd(const struct buf *in, struct buf *out) {
  size_t bound = ZSTD_compressBound(in->len);
  if (buf_reserve(out, bound))
    return false;
  size_t n = ZSTD_compress(out->data, bound, in->data, in->len, ZSTD_LEVEL);
  out->len = ZSTD_isError(n) ? 0 : n;
  return out->len > 0;
}

static bool pack_gzip(const struct buf *in, struct buf *out) {
  z_stream z = {0};
  if (deflateInit2(&z, GZIP_LEVEL, Z_DEFLATED, GZIP_WINDOW, 8, Z_DEFAULT_STRATEGY) != Z_OK)
    return false;
  size_t bound = deflateBound(&z, in->len);
  bool is_done = false;
  if (!buf_reserve(out, bound)) {
    z.next_in = (Bytef *)in->data;
    z.avail_in = (uInt)in->len;
    z.next_out = (Bytef *)out->data;
    z.avail_out = (uInt)bound;
    is_done = deflate(&z, Z_FINISH) == Z_STREAM_END;
    out->len = z.total_out;
  }
  deflateEnd(&z);
  return is_done;
}

void body_pack(struct body *b, bool is_packed) {
  uint8_t digest[SHA256_DIGEST_LENGTH];
  struct buf out;
  SHA256((const unsigned char *)buf_text(&b->bytes), b->bytes.len, digest);
  buf_init(&out, BODY_MAX);
  if (!is_packed && b->bytes.len >= WORTH_PACKING) {
    if (b->may_zstd && pack_zstd(&b->bytes, &out))
      b->encoding = face_encodings[2];
    else if (b->may_gzip && pack_gzip(&b->bytes, &out))
      b->encoding = face_encodings[1];
  }
  if (b->encoding) {
    buf_clear(&b->bytes);
    b->bytes = out;
  } else {
    buf_clear(&out);
  }
  b->etag[0] = '"';
  for (int i = 0; i < 16; i++)
    snprintf(b->etag + 1 + 2 * i, 3, "%02x", digest[i]);
  snprintf(b->etag + 33, sizeof b->etag - 33, "%s%s\"", b->encoding ? "-" : "", b->encoding ? b->encoding : "");
}

/* Adds a name for the file, in which everything but plain characters becomes an underscore. */
static void add_disposition(struct MHD_Response *r, const char *name) {
  char text[160], plain[100];
  size_t n = 0;
  for (const char *p = name; *p && n < sizeof plain - 1; p++)
    plain[n++] = strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-", *p) ? *p : '_';
  plain[n] = 0;
  snprintf(text, sizeof text, "attachment; filename=\"%s\"", plain);
  MHD_add_response_header(r, MHD_HTTP_HEADER_CONTENT_DISPOSITION, text);
}

static enum MHD_Result send_tagged(struct request *rq, struct MHD_Response *r, const struct body *b, bool is_known) {
  if (!r)
    return MHD_NO;
  MHD_add_response_header(r, MHD_HTTP_HEADER_CONTENT_TYPE, b->type);
  MHD_add_response_header(r, MHD_HTTP_HEADER_ETAG, b->etag);
  MHD_add_response_header(r, MHD_HTTP_HEADER_VARY, "Accept-Encoding");
  MHD_add_response_header(r, MHD_HTTP_HEADER_CACHE_CONTROL, "private, no-cache");
  if (b->encoding)
    MHD_add_response_header(r, MHD_HTTP_HEADER_CONTENT_ENCODING, b->encoding);
  if (b->file_name)
    add_disposition(r, b->file_name);
  return http_send(rq, is_known ? MHD_HTTP_NOT_MODIFIED : MHD_HTTP_OK, r);
}

static struct MHD_Response *empty(void) {
  return MHD_create_response_from_buffer(0, (void *)"", MHD_RESPMEM_PERSISTENT);
}

enum MHD_Result body_send(struct body *b, struct request *rq) {
  assert(b->etag[0] == '"'); /* body_pack was called */
  bool is_known = http_has_etag(rq, b->etag);
  struct MHD_Response *r;
  if (buf_status(&b->bytes))
    return http_problem(rq, PB_INTERNAL, NULL, NULL);
  if (is_known || !b->bytes.len) {
    r = empty();
  } else {
    r = MHD_create_response_from_buffer(b->bytes.len, b->bytes.data, MHD_RESPMEM_MUST_FREE);
    if (r)
      buf_init(&b->bytes, BODY_MAX); /* the response has the bytes now */
  }
  return send_tagged(rq, r, b, is_known);
}

/* ---- kept with the work ------------------------------------------------------------------------------------------ */

static int face_for(bool may_gzip, bool may_zstd) {
  return may_zstd ? 2 : may_gzip ? 1 : 0;
}

void body_keep(struct body *b, struct work *w) {
  struct work_face f = {.data = b->bytes.data, .len = b->bytes.len};
  int which = face_for(b->may_gzip, b->may_zstd);
  if (buf_status(&b->bytes) || !f.len || b->encoding != face_encodings[which])
    return; /* a body so small that it was not packed is quickly made anew */
  memcpy(f.etag, b->etag, sizeof f.etag);
  work_set_face(w, which, &f);
  buf_init(&b->bytes, BODY_MAX);
}

static void let_go(void *user) {
  work_unref(user);
}

bool body_send_kept(struct request *rq, struct work *w, enum MHD_Result *answer) {
  int which = face_for(http_accepts_encoding(rq, "gzip"), http_accepts_encoding(rq, "zstd"));
  const struct work_face *f = work_face(w, which);
  if (!f)
    return false;
  struct body b = {.type = "application/json", .encoding = face_encodings[which]};
  memcpy(b.etag, f->etag, sizeof f->etag);
  bool is_known = http_has_etag(rq, b.etag);
  struct MHD_Response *r;
  if (is_known) {
    r = empty();
  } else {
    r = MHD_create_response_from_buffer_with_free_callback_cls(f->len, f->data, let_go, work_ref(w));
    if (!r)
      work_unref(w);
  }
  *answer = send_tagged(rq, r, &b, is_known);
  return true;
}
