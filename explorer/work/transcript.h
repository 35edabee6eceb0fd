/* transcript: the frames of one work as text, one on each line, with notes on where each of them lies.
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

struct transcript {
  char key[JOB_KEY_SIZE]; /* of the job; this and what follows are for the start frame */
  enum language language;
  enum target target;
  struct buf lines;     /* frames, each with its newline */
  struct gather gather; /* where in lines each of them lies */
  bool hit_limit;       /* of time or memory: another run of the job may end in another way */
};

void transcript_init(struct transcript *t);
void transcript_clear(struct transcript *t);

/* Keeps one frame of a child; a start frame is replaced by one of our own.  ST_INPUT when it is not a legal frame at
 * this point, ST_LIMIT when the bytes of a job are used up. */
MUST_USE enum status transcript_add(struct transcript *t, const char *json, size_t len, struct error *err);
/* Takes the frames of an ended work, one on each line, into an empty transcript; on failure it is empty again. */
MUST_USE enum status transcript_load(struct transcript *t, const char *frames, size_t len, struct error *err);

/* A diagnostic of our own, of severity "error"; hint may be NULL. */
struct own_error {
  enum diag_code code;
  const char *message, *hint;
};
/* Ends the transcript with such an error, after a start if there is none yet.  There is always room for that. */
void transcript_fail(struct transcript *t, const struct own_error *e, int64_t time_us);
/* Appends what ends the stream of a reader that has read up to `at` and gets no more: the rest of its line, or a start
 * if it has read nothing; an error; an end. */
void transcript_put_farewell(const struct transcript *t, size_t at, const struct own_error *e, int64_t time_us,
                             struct buf *out);

/* The result object, in a buffer that the caller clears. */
void transcript_put_result(const struct transcript *t, struct buf *out);
/* Most bytes of a result object. */
extern const size_t transcript_result_max;

#endif
