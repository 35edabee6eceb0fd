/* framing: finds where an HTTP/1.x request ends, strictly and byte by byte.
 *
 * libmicrohttpd 0.9.75 accepts bare line feeds, folded headers, NULs, two lengths and more, so that a proxy and this
 * server could disagree on how many requests a stream of bytes holds.  So every byte passes here before the library
 * sees it, and only requests with one meaning are accepted (RFC 9112 without the forms that it merely tolerates).  This module knows
 * no sockets and allocates nothing; its result does not depend on how the bytes are cut into pieces.
 */
#ifndef HTTP_FRAMING_H
#define HTTP_FRAMING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
  FRAMING_TARGET_MAX = 16 << 10, /* bytes of path and query */
  FRAMING_HEAD_MAX = 32 << 10,   /* of the request line and all headers: with what the library adds they still fit into
                                    a connection's memory (server.c) */
  FRAMING_HEADERS_MAX = 100,
  FRAMING_PAIRS_MAX = 100,    /* of a query */
  FRAMING_BODY_MAX = 8 << 20, /* read, not kept: the handlers' limit is lower, and the answer states it */
};

enum framing_fault {
  FF_NONE,
  FF_MALFORMED,
  FF_TARGET_TOO_LONG,
  FF_HEAD_TOO_LARGE,
  FF_BODY_TOO_LARGE,
  FF_ENCODED, /* a Content-Encoding */
  FF_EXPECT,
  FF_VERSION,
  FF_CROWDED, /* the client has too many connections; set by guard.c only */
  FF_COUNT
};

/* The headers that matter here. */
enum framing_header {
  FH_HOST,
  FH_LENGTH,
  FH_TRANSFER,
  FH_TYPE,
  FH_UPGRADE,
  FH_EXPECT,
  FH_ENCODING,
  FH_CONNECTION,
  FH_COUNT,
  FH_OTHER = FH_COUNT
};

struct framing {
  /* Private; about the present request. */
  int state;
  uint32_t n; /* bytes in the present element */
  uint32_t head, target;
  int headers, pairs, percent;
  char text[64]; /* the present name or value, cut if it is longer; all known ones are shorter */
  enum framing_header header;
  uint8_t seen[FH_COUNT]; /* how often each came */
  bool in_query, is_http10, says_close, says_keep;
  bool is_chunked;
  uint64_t left, body; /* bytes left of the present chunk or the whole body; bytes of all chunks so far */
  /* For the caller. */
  bool is_last; /* the request that ended was the connection's last one */
  enum framing_fault fault;
  const char *reason; /* for the client, once there is a fault; constant */
};

enum framing_verdict { FRAMING_MORE, FRAMING_END, FRAMING_REFUSED };

void framing_init(struct framing *f);
/* Reads p[0..n); the first *taken bytes belong to the present request.  FRAMING_END: the request ends there, and the
 * next call is about the next request.  FRAMING_REFUSED is final, and the bytes taken are of no use. */
enum framing_verdict framing_feed(struct framing *f, const char *p, size_t n, size_t *taken);
/* True if no byte of the next request has come. */
bool framing_is_between(const struct framing *f);

#endif
