/* transcript: the frames of one work as text, one on each line, with notes on where each of them lies.
 *
 * Each frame is kept packed with zstd on its own, with its newline: the text of a large kernel is hundreds of megabytes
 * long, and packs to a few.  The packed frames one after another are a zstd stream of the whole text, which the store
 * takes as it is.  Places are counted in the unpacked text.
 *
 * Frames come from a child process and are checked here; or they are our own, which end a work that its child did not
 * end; or they are those of an earlier work.  There is no lock: the work has one.
 */
#ifndef WORK_TRANSCRIPT_H
#define WORK_TRANSCRIPT_H

#include "base/buf.h"
#include "base/diag.h"
#include "driver/gather.h"
#include "driver/job.h"

enum { TRANSCRIPT_PIPELINE_SIZE = JOB_VERSION_MAX + 1 };

struct transcript {
  char key[JOB_KEY_SIZE]; /* of the job; this and what follows are for the start frame */
  enum language language;
  enum target target;
  char pipeline[TRANSCRIPT_PIPELINE_SIZE]; /* its compiler's version */
  struct buf packed;                       /* the frames, one after another */
  struct transcript_frame *frames;
  int n_frames, cap_frames;
  size_t text_len;            /* of all frames, unpacked */
  struct gather gather;       /* where in the text each of them lies */
  struct buf open;            /* the unpacked text of one frame, while readers are within it */
  int open_frame;             /* its number, if open has a text */
  struct ZSTD_CCtx_s *packer; /* NULL: none yet, or no more */
  bool hit_limit;             /* of time or memory: another run of the job may end in another way */
};

struct transcript_frame {
  size_t at, len;               /* in the text, with its newline */
  size_t packed_at, packed_len; /* in `packed` */
};

void transcript_init(struct transcript *t);
void transcript_clear(struct transcript *t);

/* Keeps one frame of a child; a start frame is replaced by one of our own.  ST_INPUT when it is not a legal frame at
 * this point, ST_LIMIT when the bytes of a job are used up. */
MUST_USE enum status transcript_add(struct transcript *t, const char *json, size_t len, struct error *err);
/* Takes the frames of an ended work, packed or as text, into an empty transcript; on failure it is empty again. */
MUST_USE enum status transcript_load(struct transcript *t, const char *frames, size_t len, struct error *err);

/* Copies at most max bytes of the text from `at`. */
size_t transcript_read(struct transcript *t, size_t at, char *to, size_t max);
/* Appends the text of the frame that begins at `at`, with its newline; appends nothing if there is none yet.  Returns false
 * if `at` is not the beginning of a frame, or the frame is longer than max bytes, or memory runs out. */
bool transcript_read_frame(struct transcript *t, size_t at, size_t max, struct buf *out);
/* The text of the stage's object; NULL if there is none.  Valid until the next call. */
const char *transcript_stage(struct transcript *t, const struct gather_stage *which, size_t *len);
/* Calls fn for the text of each frame, without its newline, in order; false if fn returned false or memory ran out. */
bool transcript_each(struct transcript *t, bool (*fn)(void *user, const char *json, size_t len), void *user);
/* The same for the frames of artifacts; the others, which may have many MiB, are not unpacked. */
bool transcript_each_artifact(struct transcript *t, bool (*fn)(void *user, const char *json, size_t len), void *user);
/* Appends the files, places and sources. */
void transcript_put_sources(struct transcript *t, struct buf *out);

/* A diagnostic of our own, of severity "error"; hint may be NULL. */
struct own_error {
  enum diag_code code;
  const char *message, *hint;
};
/* Ends the transcript with such an error, after a start if there is none yet.  There is always room for that. */
void transcript_fail(struct transcript *t, const struct own_error *e, int64_t time_us);
/* Appends what ends the stream of a reader that has read up to `at` and gets no more: the rest of its line, or a start
 * if it has read nothing; an error; an end. */
void transcript_put_farewell(struct transcript *t, size_t at, const struct own_error *e, int64_t time_us,
                             struct buf *out);

/* The result object, in a buffer that the caller clears. */
void transcript_put_result(struct transcript *t, struct buf *out);
/* Most bytes of a result object. */
extern const size_t transcript_result_max;

#endif
