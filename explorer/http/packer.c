#include "http/packer.h"

#include <assert.h>
#include <stdlib.h>

#include <zlib.h>
#include <zstd.h>

#include "http/http.h"

enum {
  GZIP_LEVEL = 4,        /* higher levels take twice the time and gain a tenth */
  GZIP_WINDOW = 15 + 16, /* asks zlib for gzip's header */
  ZSTD_LEVEL = 1,        /* level 3 takes half as long again and gains a twentieth */
  ZSTD_WINDOW_LOG = 20,  /* a stage repeats most of the stage before it, which is some hundred kilobytes long */
};

struct packer {
  enum packing kind;
  z_stream gzip;
  ZSTD_CCtx *zstd;
};

enum packing packing_for(const struct request *rq) {
  return http_accepts_encoding(rq, "zstd")   ? PACKING_ZSTD
         : http_accepts_encoding(rq, "gzip") ? PACKING_GZIP
                                             : PACKING_NONE;
}

void packing_add_headers(enum packing p, struct MHD_Response *r) {
  static const char *const names[] = {[PACKING_GZIP] = "gzip", [PACKING_ZSTD] = "zstd"};
  if (p != PACKING_NONE)
    MHD_add_response_header(r, MHD_HTTP_HEADER_CONTENT_ENCODING, names[p]);
  MHD_add_response_header(r, MHD_HTTP_HEADER_VARY, MHD_HTTP_HEADER_ACCEPT_ENCODING);
}

static bool begin_zstd(struct packer *p) {
  p->zstd = ZSTD_createCCtx();
  return p->zstd && !ZSTD_isError(ZSTD_CCtx_setParameter(p->zstd, ZSTD_c_compressionLevel, ZSTD_LEVEL)) &&
         !ZSTD_isError(ZSTD_CCtx_setParameter(p->zstd, ZSTD_c_windowLog, ZSTD_WINDOW_LOG));
}

struct packer *packer_new(enum packing kind) {
  assert(kind != PACKING_NONE);
  struct packer *p = calloc(1, sizeof *p);
  if (!p)
    return NULL;
  p->kind = kind;
  const bool ok = kind == PACKING_ZSTD
                      ? begin_zstd(p)
                      : deflateInit2(&p->gzip, GZIP_LEVEL, Z_DEFLATED, GZIP_WINDOW, 8, Z_DEFAULT_STRATEGY) == Z_OK;
  if (ok)
    return p;
  packer_free(p);
  return NULL;
}

void packer_free(struct packer *p) {
  if (!p)
    return;
  ZSTD_freeCCtx(p->zstd);
  if (p->kind == PACKING_GZIP)
    deflateEnd(&p->gzip); /* does nothing for a stream that was not begun */
  free(p);
}

static size_t run_zstd(struct packer *p, struct packer_input *in, enum packer_step step, char *to, size_t max,
                       bool *done, bool *ok) {
  static const ZSTD_EndDirective how[] = {
      [PACKER_MORE] = ZSTD_e_continue, [PACKER_FLUSH] = ZSTD_e_flush, [PACKER_END] = ZSTD_e_end};
  ZSTD_inBuffer from = {in->data, in->len, 0};
  ZSTD_outBuffer out = {to, max, 0};
  const size_t left = ZSTD_compressStream2(p->zstd, &out, &from, how[step]);
  *ok = !ZSTD_isError(left);
  in->data += from.pos;
  in->len -= from.pos;
  *done = !*ok || (step == PACKER_MORE ? !in->len : !left);
  return out.pos;
}

static size_t run_gzip(struct packer *p, struct packer_input *in, enum packer_step step, char *to, size_t max,
                       bool *done, bool *ok) {
  static const int how[] = {[PACKER_MORE] = Z_NO_FLUSH, [PACKER_FLUSH] = Z_SYNC_FLUSH, [PACKER_END] = Z_FINISH};
  enum { PIECE = 1 << 30 }; /* zlib counts in unsigned int */
  z_stream *z = &p->gzip;
  const size_t n = in->len < PIECE ? in->len : PIECE;
  z->next_in = (Bytef *)in->data;
  z->avail_in = (uInt)n;
  z->next_out = (Bytef *)to;
  z->avail_out = max < PIECE ? (uInt)max : PIECE;
  const uInt room = z->avail_out;
  const int rc = deflate(z, n < in->len ? Z_NO_FLUSH : how[step]);
  *ok = rc != Z_STREAM_ERROR;
  in->data += n - z->avail_in;
  in->len -= n - z->avail_in;
  *done = !*ok || (!in->len && (step == PACKER_END ? rc == Z_STREAM_END : z->avail_out > 0));
  return room - z->avail_out;
}

size_t packer_run(struct packer *p, struct packer_input *in, enum packer_step step, char *to, size_t max, bool *done,
                  bool *ok) {
  assert(max > 0);
  return (p->kind == PACKING_ZSTD ? run_zstd : run_gzip)(p, in, step, to, max, done, ok);
}
