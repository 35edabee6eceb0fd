/* headers: the security headers that every answer carries. */
#ifndef HTTP_HEADERS_H
#define HTTP_HEADERS_H

#include "base/buf.h"

struct MHD_Response;

enum headers_kind {
  HEADERS_PAGE,   /* the page and its API */
  HEADERS_FRAMED, /* an answer that other sites may show in a frame */
  HEADERS_INERT,  /* text of users, in which no script may run */
  HEADERS_KINDS
};

void headers_add(struct MHD_Response *r, enum headers_kind kind);
/* The same as lines of text, for answers that are not the library's. */
void headers_put(struct buf *b);

#endif
