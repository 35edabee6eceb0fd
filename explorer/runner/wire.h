/* wire: HTTP to one server, with libcurl.  Certificates and names are verified; redirects are not followed. */
#ifndef RUNNER_WIRE_H
#define RUNNER_WIRE_H

#include <signal.h>
#include <stdbool.h>

#include "base/buf.h"
#include "base/error.h"

struct wire;

struct wire_config {
  const char *url;     /* "https://host[:port]" */
  const char *token;   /* NULL: none is sent */
  const char *ca_file; /* certificates to trust instead of the system's; NULL: those */
  bool allows_plain;   /* http: to another machine than this one is fine, although the token can be read on the way */
  const volatile sig_atomic_t *stop; /* a request ends early once it is set; NULL: never */
};

/* ST_INPUT: the address is none, or must not be used without encryption. */
MUST_USE enum status wire_open(const struct wire_config *cfg, struct wire **out, struct error *err);
void wire_close(struct wire *w); /* NULL is fine */

struct wire_ask {
  const char *method, *path;
  const char *type; /* media type of the body; NULL: there is none */
  const void *body;
  size_t len;
  const char *headers[4]; /* "Name: value", up to the first NULL */
  int timeout_ms;
  bool is_last; /* it is sent although the program is to stop */
  size_t max;   /* bytes of an answer; a longer one fails */
};

struct wire_answer {
  long status; /* of HTTP */
  struct buf body;
  char code[40], message[240]; /* of an error as this project's servers answer it; "" otherwise */
};

/* ST_BUSY: there is no answer; err says why.  The caller clears out->body in any case. */
MUST_USE enum status wire_send(struct wire *w, const struct wire_ask *ask, struct wire_answer *out, struct error *err);

#endif
