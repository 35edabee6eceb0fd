/* gather: which frames a job has sent, and the result object made of them.
 *
 * Keeps places, not copies: the frames' text stays in the buffer of the work, and the result is spliced from it.
 */
#ifndef JOB_GATHER_H
#define JOB_GATHER_H

#include <stdbool.h>

#include "base/buf.h"
#include "job/frame.h"

enum { GATHER_KERNELS_MAX = 64, GATHER_STAGES_MAX = 128, GATHER_DIAGS_MAX = 1000, GATHER_ARTIFACTS_MAX = 256 };

struct gather_part {
  enum frame_kind kind;
  int kernel;     /* FRAME_STAGE: of which kernel */
  size_t at, len; /* the frame in the text */
};

struct gather {
  struct gather_part *parts; /* in order of arrival, without start and end */
  int n, cap;
  int n_kernels, n_stages, n_diags, n_artifacts;
  bool is_started, is_ended, is_ok;
  long time_us;
};

void gather_clear(struct gather *g);
/* Notes the frame that lies at `at` in the text.  ST_INPUT when it may not come now, ST_LIMIT when there are too many
 * of its kind; g is then unchanged. */
MUST_USE enum status gather_add(struct gather *g, const struct frame *f, size_t at, size_t len, struct error *err);
/* Which stage of a kernel is meant. */
struct gather_stage {
  int kernel;
  const char *name; /* the nth of that name, from 1; NULL: the nth of all, from 0 */
  size_t name_len;
  int nth;
};
/* The JSON text of the stage's object, in `text`; NULL if there is no such stage. */
const char *gather_find_stage(const struct gather *g, const char *text, const struct gather_stage *which, size_t *len);
/* `{"version":1, head, "status":…,"kernels":[…],"diagnostics":[…],"artifacts":[…]}`; head is the text of members. */
void gather_result(const struct gather *g, const char *text, const char *head, struct buf *out);

#endif
