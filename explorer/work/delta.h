/* delta: a stage's frame as its difference from the same stage of another result.
 *
 * When one constant of a kernel changes, most stages differ in a line or two of their text, and in nothing else.  A delta
 * leaves out what is equal:
 *
 *   {"frame":"stage","kernel":0,"same":["pass","lines","from"],"stage":{"index":7,"time_us":12,
 *    "text":[[1,20],"  %c = arith.constant 2.0 : f32",[22,300]]}}
 *
 * "same" names the members that have the value of the base, which is the stage with this index of the kernel with this
 * number.  A "text" that is an array is made of lines: [first, count] copies lines of the base's text, counted from 1, and a
 * string is a line of its own.
 */
#ifndef WORK_DELTA_H
#define WORK_DELTA_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "driver/frame_scan.h"
#include "driver/gather.h"

/* A stage's frame; points into its text. */
struct delta {
  struct frame stage; /* the members of the stage */
  struct gather_stage which;
  size_t len;
};

/* Reads a frame, without its newline.  Returns false if it is no stage's. */
bool delta_read(struct delta *d, const char *frame, size_t len);
/* Appends the delta.  base is the JSON object of the base stage.  Returns false, with nothing appended, if the delta would
 * not be shorter than the frame, or memory runs out. */
bool delta_put(const struct delta *d, const char *base, size_t base_len, struct buf *out);

#endif
