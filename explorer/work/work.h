/* work: one compile on its way through the server.
 *
 * A handler makes it from a job and gives it to the pool; the pool's thread adds frames as they come from a child, and
 * ends it.  Several requests may read the same work.  Everyone who uses it holds a reference.  Everything that changes
 * after work_new is guarded by the work's own lock.  A reader never blocks: it asks, and if there is nothing yet it is
 * called back once.
 */
#ifndef WORK_WORK_H
#define WORK_WORK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/diag.h"
#include "base/error.h"
#include "driver/gather.h"
#include "driver/job.h"

struct client;
struct work; /* opaque */

enum {
  WORK_BYTES_MAX = 256 << 20,  /* of all frames of one job, as text */
  WORK_TEXT_STORED = 32 << 20, /* up to here the store gets the text */
  WORK_PACKED_MAX = 40 << 20,  /* … packed, as they are kept; the store takes as many (STORE_BLOB_MAX) */
  WORK_TAG_SIZE = 9,
};

/* Refused: it never ran, because the service was busy or ending. */
enum work_state { WORK_WAITING, WORK_RUNNING, WORK_ENDED, WORK_REFUSED };

/* A work for this job, of which it keeps the JSON text and the key; NULL when out of memory.  It has one reference and
 * one reader, the caller's. */
struct work *work_new(const struct job *job);
/* The same for a work that will be loaded with frames stored under this key. */
struct work *work_new_stored(const char key[JOB_KEY_SIZE]);
struct work *work_ref(struct work *w);
void work_unref(struct work *w); /* NULL is fine */

const char *work_tag(const struct work *w); /* random; for the log */
const char *work_key(const struct work *w);
/* The version of the pipeline that is to run it: job->version, which is then that and no name, or this program's own. */
const char *work_pipeline(const struct work *w);
/* The job as the worker reads it, which is job_dump's text; borrowed. */
const char *work_json(const struct work *w, size_t *len);

/* Called once, when w has ended or was refused, on the thread that ended it and outside the work's lock.
 * is_lasting: this job always gives these frames, none of them is an accident of ours.  Set before the work is given
 * to the pool. */
typedef void (*work_end_fn)(void *user, struct work *w, bool is_lasting);
void work_on_end(struct work *w, work_end_fn fn, void *user);
/* Called when the last reader has left, on that reader's thread and outside the work's lock: nobody can join any more.
 * Set by the pool while the work has a reader. */
typedef void (*work_abandoned_fn)(void *user, struct work *w);
void work_on_abandoned(struct work *w, work_abandoned_fn fn, void *user);

/* ---- the client that pays for it (payer.c) ----------------------------------------------------------------------- */

/* Takes the caller's hold of the client (quota.h), and counts the job's end once w has ended, was refused or given
 * up. */
void work_set_payer(struct work *w, struct client *payer);
/* How many other works of the same client wait or run: a work's turn comes after those with fewer. */
int work_turn(struct work *w);
/* The client, of IPv6 its network of 56 bits, only to be compared with others: it may be gone.  NULL: it is not known. */
const void *work_payer(struct work *w);

/* ---- the pool's side --------------------------------------------------------------------------------------------- */

void work_begin(struct work *w);
/* Its place in the queue, from 1; readers of its stream are told. */
void work_set_position(struct work *w, int position);
/* Keeps one frame of a child and shows it to the readers.  ST_INPUT when it is not a legal frame at this point,
 * ST_LIMIT when the bytes of a job are used up.  *is_end: it was the last, and the work has ended. */
MUST_USE enum status work_add_frame(struct work *w, const char *json, size_t len, bool *is_end, struct error *err);
/* Ends the work with an error of ours, after the frames that have come. */
void work_fail(struct work *w, enum diag_code code, const char *message, const char *hint);
/* Ends a work that never ran. */
void work_refuse(struct work *w);
bool work_has_frames(struct work *w);
/* Ends it with the frames of an earlier work, as work_frames gave them.  ST_INPUT, ST_LIMIT: they are no such frames; w
 * is then unchanged. */
MUST_USE enum status work_load(struct work *w, const char *frames, size_t len, struct error *err);

/* ---- what it has so far ------------------------------------------------------------------------------------------ */

/* Its state, and how many stages have come and whether it ended well; both pointers may be NULL. */
enum work_state work_look(struct work *w, int *n_stages, bool *is_ok);
size_t work_bytes(struct work *w); /* that the frames so far take, packed */
bool work_was_loaded(struct work *w);
/* Names the run that made the frames of an ended work, which distinguishes it from other runs of its job. */
enum { WORK_RUN_SIZE = JOB_KEY_SIZE + 24 };
void work_run(struct work *w, char run[WORK_RUN_SIZE]);
int64_t work_began_us(struct work *w); /* of clock_now_us, when a child took it; 0: none did */
/* Copies at most max bytes of the frames, one on each line, from `at`; *at_end when nothing will follow. */
size_t work_read(struct work *w, size_t at, char *to, size_t max, bool *at_end);
/* Appends the frame at *at, which begins there, and moves *at after it; appends nothing if it has not come yet.  Returns
 * false, and changes nothing, if the frame is longer than max bytes or memory runs out. */
bool work_read_frame(struct work *w, size_t *at, size_t max, struct buf *out, bool *at_end);
/* Appends what ends the stream of one reader that has read up to `at` (transcript.h). */
void work_put_farewell(struct work *w, size_t at, enum diag_code code, const char *message, struct buf *out);

size_t work_text_len(struct work *w); /* of all frames that have come, unpacked */

/* These are for a work that has ended.  Heap, the caller frees; NULL when out of memory. */
char *work_result(struct work *w, size_t *len); /* the result object */
/* All frames, for work_load: as text, whose equal stages the store packs better together; a long text packed. */
char *work_frames(struct work *w, size_t *len);
/* Calls fn for each frame in order; false if fn returned false or memory ran out.  fn must not ask w. */
bool work_each_frame(struct work *w, bool (*fn)(void *user, const char *json, size_t len), void *user);
/* The same for the frames of artifacts. */
bool work_each_artifact(struct work *w, bool (*fn)(void *user, const char *json, size_t len), void *user);
/* Appends the JSON object of one stage; false if there is no such stage. */
bool work_stage(struct work *w, const struct gather_stage *which, struct buf *out);
/* Appends the JSON object that says what the sources of the stages mean (gather.h); false when out has no room. */
bool work_sources(struct work *w, struct buf *out);

/* The result as it is sent, in up to three encodings: made by the first request that needs it, kept as long as the
 * work. */
enum { WORK_FACES = 3, WORK_ETAG_SIZE = 64 };
struct work_face {
  char *data; /* heap; NULL: not made yet */
  size_t len;
  char etag[WORK_ETAG_SIZE];
};
/* NULL if it was not made.  The pointer is valid while the caller holds a reference. */
const struct work_face *work_face(struct work *w, int which);
/* Takes face->data; frees it if there is such a face already. */
void work_set_face(struct work *w, int which, const struct work_face *face);

/* ---- readers (readers.c) ----------------------------------------------------------------------------------------- */

/* One reader, and its place in the list of those to be called back; lies with the reader, zeroed at first. */
struct work_waiter {
  struct work_waiter *next;
  void (*resume)(void *);
  void *user;
  size_t at;
  bool whole;
  bool is_first;      /* the work was made for it */
  bool is_called_off; /* it is no reader any more; under the work's lock */
  int position;       /* in the queue, as the reader was last told */
};

/* Says whether the reader has to wait.  It has not if it was cancelled, or w has ended or was refused; without `whole`
 * it has not if there is a frame to read, or news about its place in the queue.  If it has to wait, calls `park(user)`
 * under the work's lock and returns false; later, once that has changed, calls `resume(user)` exactly once. */
bool work_wait(struct work *w, struct work_waiter *me, bool whole, void (*park)(void *), void (*resume)(void *),
               void *user);
/* The same, without `whole`, for a reader that has read up to `at`. */
bool work_wait_at(struct work *w, struct work_waiter *me, size_t at, void (*park)(void *), void (*resume)(void *),
                  void *user);
/* The reader is not called back once this has returned. */
void work_forget_reader(struct work *w, struct work_waiter *me);
/* Its place in the queue if that is news to this reader, else 0. */
int work_take_position(struct work *w, struct work_waiter *me);

/* Adds a reader; false if the work was refused, or its last reader has left: it is then of no use. */
bool work_join(struct work *w);
/* Removes a reader; NULL: one that has no waiter.  Does nothing for one that was cancelled. */
void work_leave(struct work *w, struct work_waiter *me);
/* True as long as somebody reads it. */
bool work_has_readers(struct work *w);
/* Removes a reader on behalf of another: it is called back, and finds that it was cancelled.  False if w has ended, or
 * the reader was cancelled before. */
bool work_call_off(struct work *w, struct work_waiter *me);
bool work_is_called_off(struct work *w, const struct work_waiter *me);
/* Marks w as having no reader any more, as long as its only reader is the one that it was made for; false if others
 * read it. */
bool work_give_up(struct work *w);

#endif
