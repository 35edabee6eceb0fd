/* pack: makes an answer's body with its tag, and compresses it for clients that accept that. */
#ifndef API_PACK_H
#define API_PACK_H

#include "http/http.h"
#include "work/work.h"

struct body {
  struct buf bytes;
  const char *type;      /* media type */
  const char *file_name; /* of an attachment, or NULL */
  bool may_gzip, may_zstd;
  const char *encoding;      /* the current encoding of the bytes, or NULL */
  char etag[WORK_ETAG_SIZE]; /* with its quotes */
};

/* Sets b to an empty body, with the encodings that the request accepts. */
void body_init(struct body *b, const struct request *rq);
void body_clear(struct body *b);
/* Computes the tag and, unless the bytes are packed already, compresses them.  Takes milliseconds per megabyte. */
void body_pack(struct body *b, bool is_packed);
/* Sends the body and takes ownership of its bytes.  Answers 304 if the client already has them. */
enum MHD_Result body_send(struct body *b, struct request *rq);

/* The whole result of an ended work is kept with the work once it is packed, and sent from there without a copy. */
/* Takes b's bytes, unless they are not worth keeping. */
void body_keep(struct body *b, struct work *w);
/* Sends kept bytes.  Returns false if none are kept in an encoding that the request accepts. */
bool body_send_kept(struct request *rq, struct work *w, enum MHD_Result *answer);

#endif
