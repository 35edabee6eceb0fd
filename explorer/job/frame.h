/* frame: one line of a worker's output, checked as what it is: bytes from a hostile process.
 *
 * The scanner accepts exactly one JSON object on one line, remembers where its members lie, and copies nothing: a frame
 * of megabytes costs no memory and little time, which a parsed tree would not.
 */
#ifndef JOB_FRAME_H
#define JOB_FRAME_H

#include <stddef.h>

#include "base/error.h"

enum frame_kind { FRAME_START, FRAME_KERNEL, FRAME_STAGE, FRAME_DIAGNOSTIC, FRAME_ARTIFACT, FRAME_END };

enum { FRAME_MEMBERS_MAX = 16, FRAME_NEST_MAX = 64 };

struct frame_member {
  const char *key; /* without its quotes; as written, so a key with escapes equals no plain name */
  size_t key_len;
  const char *value; /* JSON text */
  size_t value_len;
};

struct frame {
  enum frame_kind kind;
  int n;
  struct frame_member members[FRAME_MEMBERS_MAX]; /* point into the text */
};

/* ST_INPUT with the reason if it is not a frame: strict JSON (RFC 8259, UTF-8, no newline, no NUL), no member of its own
 * twice (objects within are looked at when they are scanned themselves), a known "frame", and the members that kind
 * needs, of the right type. */
MUST_USE enum status frame_scan(const char *json, size_t len, struct frame *out, struct error *err);
/* The members of any JSON object, alike; out->kind means nothing. */
MUST_USE enum status frame_scan_object(const char *json, size_t len, struct frame *out, struct error *err);
/* NULL if there is none. */
const struct frame_member *frame_get(const struct frame *f, const char *key);
/* The value of an integer member from 0 to 10^9 (frame_scan checked that it is one), or -1. */
long frame_int(const struct frame *f, const char *key);

#endif
