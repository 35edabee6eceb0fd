/* frame_scan: reads one frame (frames.h), which may come from a hostile process.
 *
 * The scanner accepts exactly one JSON object on one line, records the positions of its members, and copies nothing.
 * So a frame of megabytes takes no memory and little time, unlike a parsed tree.
 */
#ifndef DRIVER_FRAME_SCAN_H
#define DRIVER_FRAME_SCAN_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

enum frame_kind {
  FRAME_START,
  FRAME_KERNEL,
  FRAME_SOURCES,
  FRAME_STAGE,
  FRAME_SIMULATION,
  FRAME_PROFILE,
  FRAME_DEVICE,
  FRAME_VALUE,
  FRAME_STEPS,
  FRAME_UPGRADE,
  FRAME_NEFF,
  FRAME_TUNE,
  FRAME_SHRINK,
  FRAME_SHRUNK,
  FRAME_PARTING,
  FRAME_DIAGNOSTIC,
  FRAME_ARTIFACT,
  FRAME_END
};

enum { FRAME_MEMBERS_MAX = 16, FRAME_NEST_MAX = 64 };

struct frame_member {
  const char *key; /* without quotes; has no escapes */
  size_t key_len;
  const char *value; /* JSON text */
  size_t value_len;
};

struct frame {
  enum frame_kind kind;
  int n;
  struct frame_member members[FRAME_MEMBERS_MAX]; /* point into the text */
};

/* Returns ST_INPUT with the reason if the text is not a frame.  A frame is strict JSON (RFC 8259, UTF-8, no newline,
 * no NUL; every number is a finite double or an integer of 64 bits with its sign), has no member twice and no key with an
 * escape (objects inside it are not examined), a known "frame", and the members that this kind needs, with values of the
 * right type. */
MUST_USE enum status frame_scan(const char *json, size_t len, struct frame *out, struct error *err);
/* Reads the members of any JSON object, by the same rules; out->kind is not set. */
MUST_USE enum status frame_scan_object(const char *json, size_t len, struct frame *out, struct error *err);
/* Returns NULL if there is no such member. */
const struct frame_member *frame_get(const struct frame *f, const char *key);
/* True if the member's value is this string, which needs no escapes; false if there is no such member. */
bool frame_has_string(const struct frame *f, const char *key, const char *text, size_t len);
/* Returns the value of a member that is a whole number from 0 to 999,999,999; -1 for any other value. */
long frame_int(const struct frame *f, const char *key);

#endif
