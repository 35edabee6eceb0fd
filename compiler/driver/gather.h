/* gather: records which frames a job has sent, and makes the result object from them.
 *
 * The caller keeps the text of all frames, each on a line, in any form; struct gather keeps positions in that text,
 * and the result is made of parts of it.  A gather starts zeroed; it has no lock of its own.
 */
#ifndef DRIVER_GATHER_H
#define DRIVER_GATHER_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "driver/frame_scan.h"

enum {
  GATHER_KERNELS_MAX = 64,
  GATHER_STAGES_MAX = 128, /* of a kernel */
  GATHER_SOURCES_MAX = GATHER_KERNELS_MAX * GATHER_STAGES_MAX,
  GATHER_DIAGS_MAX = 1000,
  GATHER_ARTIFACTS_MAX = GATHER_KERNELS_MAX * 8,
  GATHER_TUNES_MAX = 4096
};

struct gather_part {
  enum frame_kind kind;
  int kernel; /* FRAME_STAGE, FRAME_SIMULATION, FRAME_PROFILE, FRAME_DEVICE, FRAME_VALUE, FRAME_STEPS, FRAME_KERNEL: its number */
  size_t at, len; /* the frame in the text */
};

struct gather {
  struct gather_part *parts; /* in order of arrival, without the end; the start first */
  int n, cap;
  int n_kernels, n_sources, n_stages, n_runs, n_alone, n_tunes, n_diags, n_artifacts;
  bool is_started, is_ended, is_ok;
  long time_us;
};

/* Returns the len bytes at `at` of the text, which are one frame: borrowed until the next call; NULL when out of
 * memory. */
struct gather_text {
  const char *(*frame)(void *user, size_t at, size_t len);
  void *user;
};
/* Removes the contents of `out` except its last byte; it may also do nothing for now. */
typedef void (*gather_drain)(void *user, struct buf *out);

void gather_clear(struct gather *g);
/* Records a frame of len bytes at `at` in the text.  ST_INPUT if this frame may not come now, ST_LIMIT if there are
 * too many of its kind, ST_NOMEM; g is then unchanged. */
MUST_USE enum status gather_add(struct gather *g, const struct frame *f, size_t at, size_t len, struct error *err);

/* Identifies a stage of a kernel. */
struct gather_stage {
  int kernel;
  const char *name; /* the nth stage of that name, from 1; NULL: the nth of all stages, from 0 */
  size_t name_len;
  int nth;
};
/* Returns the JSON text of the stage's object, in its frame; NULL if there is no such stage, or its text is not
 * available. */
const char *gather_find_stage(const struct gather *g, const struct gather_text *text, const struct gather_stage *which,
                              size_t *len);

/* Appends the result object, which fails if the text cannot be had; drain is called after each part, NULL: never:
 *   {"version":1,"status","files":[…],"places":[…],"sources":[…],
 *    "kernels":[{"name","inputs","outputs","stages":[…],"simulation"?,"profile"?,"device"?,"value"?,"steps"?}],"upgrade"?,"neff"?,"shrink"?,"tune"?: […],"shrunk"?,"parting"?,"diagnostics":[…],"artifacts":[…],
 *    "key","language","target","pipeline","time_us"} */
void gather_result(const struct gather *g, const struct gather_text *text, struct buf *out, gather_drain drain,
                   void *user);
/* Appends {"files":[…],"places":[…],"sources":[…]}, which describe the sources of the stages. */
void gather_sources(const struct gather *g, const struct gather_text *text, struct buf *out);

#endif
