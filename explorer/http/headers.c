#include "http/headers.h"

#include <microhttpd.h>

#define CSP \
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; " \
  "connect-src 'self'; worker-src 'self'; base-uri 'none'; form-action 'none'; "
#define TRUSTED "require-trusted-types-for 'script'"

/* framed: for the embed form.  It has no frame-ancestors, because "frame-ancestors *" would not cover a slide that was
 * opened from a file. */
static const struct {
  const char *name, *value, *framed;
} headers[] = {
    {"Content-Security-Policy", CSP "frame-ancestors 'none'; " TRUSTED, CSP TRUSTED},
    {"X-Content-Type-Options", "nosniff", "nosniff"},
    {"Referrer-Policy", "no-referrer", "no-referrer"},
    {"Cross-Origin-Opener-Policy", "same-origin", "same-origin"},
    {"Cross-Origin-Embedder-Policy", "require-corp", "require-corp"},
    {"Cross-Origin-Resource-Policy", "same-origin", "cross-origin"},
    {"Permissions-Policy", "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
     "camera=(), geolocation=(), microphone=(), payment=(), usb=()"},
};
enum { N_HEADERS = sizeof headers / sizeof *headers };

void headers_add(struct MHD_Response *r, bool is_framed) {
  for (int i = 0; i < N_HEADERS; i++)
    MHD_add_response_header(r, headers[i].name, is_framed ? headers[i].framed : headers[i].value);
}

void headers_put(struct buf *b) {
  for (int i = 0; i < N_HEADERS; i++)
    buf_printf(b, "%s: %s\r\n", headers[i].name, headers[i].value);
}
