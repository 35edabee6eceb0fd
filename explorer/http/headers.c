#include "http/headers.h"

#include <microhttpd.h>

#define CSP \
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; " \
  "connect-src 'self'; worker-src 'self'; base-uri 'none'; form-action 'none'; "
#define TRUSTED "require-trusted-types-for 'script'"
#define INERT \
  "default-src 'none'; style-src 'self'; img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

/* The embed form has no frame-ancestors, because "frame-ancestors *" would not cover a slide that was opened from a
 * file. */
static const char *const policies[HEADERS_KINDS] = {
    [HEADERS_PAGE] = CSP "frame-ancestors 'none'; " TRUSTED,
    [HEADERS_FRAMED] = CSP TRUSTED,
    [HEADERS_INERT] = INERT,
};

static const char *const headers[][2] = {
    {"X-Content-Type-Options", "nosniff"},
    {"Referrer-Policy", "no-referrer"},
    {"Cross-Origin-Opener-Policy", "same-origin"},
    {"Cross-Origin-Embedder-Policy", "require-corp"},
    {"Permissions-Policy", "camera=(), geolocation=(), microphone=(), payment=(), usb=()"},
};
enum { N_HEADERS = sizeof headers / sizeof *headers };

static const char *resource_policy(enum headers_kind kind) {
  return kind == HEADERS_FRAMED ? "cross-origin" : "same-origin";
}

void headers_add(struct MHD_Response *r, enum headers_kind kind) {
  MHD_add_response_header(r, "Content-Security-Policy", policies[kind]);
  MHD_add_response_header(r, "Cross-Origin-Resource-Policy", resource_policy(kind));
  for (int i = 0; i < N_HEADERS; i++)
    MHD_add_response_header(r, headers[i][0], headers[i][1]);
}

void headers_put(struct buf *b) {
  buf_printf(b, "Content-Security-Policy: %s\r\n", policies[HEADERS_PAGE]);
  buf_printf(b, "Cross-Origin-Resource-Policy: %s\r\n", resource_policy(HEADERS_PAGE));
  for (int i = 0; i < N_HEADERS; i++)
    buf_printf(b, "%s: %s\r\n", headers[i][0], headers[i][1]);
}
