/* html: text in HTML. */
#ifndef API_HTML_H
#define API_HTML_H

#include "base/buf.h"

/* Appends a text so that it is only text, between tags and in quoted attributes.  Characters that HTML does not allow
 * become U+FFFD. */
void html_put_text(struct buf *b, const char *s, size_t len);
void html_put(struct buf *b, const char *s);

#endif
