/* framing: where an HTTP/1.x request ends, decided strictly and byte by byte.
 *
 * libmicrohttpd 0.9.75 accepts bare line feeds, folded headers, NULs, two lengths and more, which lets a proxy in front
 * and us disagree on how many requests a stream of bytes holds.  So every byte passes here before the library sees it,
 * and only what has one meaning gets through (RFC 9112, with what it merely tolerates refused).  Knows no sockets and
 * allocates nothing; fed with any cut of the same bytes it says the same.
 */
#ifndef HTTP_FRAMING_H
#define HTTP_FRAMING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
  FRAMING_TARGET_MAX = 16 << 10, /* bytes of path and query */
  FRAMING_HEAD_MAX = 32 << 10,   /* of the request line and all headers: with what the library makes of them it still
                                    fits into a connection's memory (server.c) */
  FRAMING_HEADERS_MAX = 100,
  FRAMING_PAIRS_MAX = 100,    /* of a query */
  FRAMING_BODY_MAX = 8 << 20, /* read, not kept: what a handler takes is less, and its sender shall hear how much */
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
  FF_CROWDED, /* never framing's own: its client has too many connections (guard.c) */
  FF_COUNT
};

/* Headers that decide something, and how often they came. */
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
  /* Of the request that is coming; private. */
  int state;
  uint32_t n; /* bytes in the present element */
  uint32_t head, target;
  int headers, pairs, percent;
  char text[64]; /* the present name or value; longer ones are cut, which no known one survives */
  enum framing_header header;
  uint8_t seen[FH_COUNT];
  bool in_query, is_http10, says_close, says_keep;
  bool is_chunked;
  uint64_t left, body; /* of the present chunk or the whole; so far */
  /* What the caller may look at. */
  bool is_last; /* the request that ended was the connection's last one */
  enum framing_fault fault;
  const char *reason; /* for the client, once there is a fault; constant */
};

enum framing_verdict { FRAMING_MORE, FRAMING_END, FRAMING_REFUSED };

void framing_init(struct framing *f);
/* Looks at p[0..n): *taken of them belong to the present request.  FRAMING_END: it ends there, and the next call is
 * about the next request.  FRAMING_REFUSED: for good; what was taken is of no use. */
enum framing_verdict framing_feed(struct framing *f, const char *p, size_t n, size_t *taken);
/* No byte of the next request has come. */
bool framing_is_between(const struct framing *f);

#endif
