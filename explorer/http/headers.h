/* headers: the security headers that every answer carries. */
#ifndef HTTP_HEADERS_H
#define HTTP_HEADERS_H

#include <stdbool.h>

#include "base/buf.h"

struct MHD_Response;

/* is_framed: for an answer that other sites may show in a frame. */
void headers_add(struct MHD_Response *r, bool is_framed);
/* The same as lines of text, for answers that are not the library's. */
void headers_put(struct buf *b);

#endif
