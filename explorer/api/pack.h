/* pack: an answer's body with its tag, compressed for who accepts that. */
#ifndef API_PACK_H
#define API_PACK_H

#include "http/http.h"

struct body {
  struct buf bytes;
  const char *type;      /* media type */
  const char *file_name; /* of an attachment, or NULL */
  bool may_gzip, may_zstd;
  const char *encoding;      /* of bytes now, or NULL */
  char etag[WORK_ETAG_SIZE]; /* with its quotes */
};

/* Empty, and with the encodings that the request accepts. */
void body_init(struct body *b, const struct request *rq);
void body_clear(struct body *b);
/* Computes the tag and, unless it is packed already, compresses. Takes milliseconds per megabyte. */
void body_pack(struct body *b, bool is_packed);
/* Takes the bytes.  304 if the client has them. */
enum MHD_Result body_send(struct body *b, struct request *rq);

/* The whole result of an ended work as JSON: kept with the work once packed, and sent from there without a copy.
 * body_keep takes b's bytes; body_send_kept returns false if that encoding is not there yet. */
void body_keep(struct body *b, struct work *w);
bool body_send_kept(struct request *rq, struct work *w, enum MHD_Result *answer);

#endif
