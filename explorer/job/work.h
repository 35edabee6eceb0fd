/* work: one compile on its way through the server.
 *
 * The HTTP side makes it, hands it to the pool, and reads frames; the pool's thread adds frames as they come from a
 * child and ends it.  Several requests may read the same work.  All hold a reference; everything after work_new is
 * guarded by the work's own lock.  A reader never waits: it asks, and if there is nothing yet it is called back once.
 */
#ifndef JOB_WORK_H
#define JOB_WORK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/diag.h"
#include "base/error.h"
#include "driver/job.h"
#include "driver/gather.h"

struct client;
struct work; /* opaque */

enum {
  WORK_BYTES_MAX = 32 << 20, /* of all frames of one job; a stage is at most FRAME_MAX, a kernel has a few dozen */
  WORK_TAG_SIZE = 9,
};

/* Refused means that it never ran: the service was busy or ending. */
enum work_state { WORK_WAITING, WORK_RUNNING, WORK_ENDED, WORK_REFUSED };

/* Takes over nothing of job; NULL when out of memory.  One reference, one reader. */
struct work *work_new(const struct job *job);
/* A work whose frames are stored somewhere, under this key. */
struct work *work_new_stored(const char key[JOB_KEY_SIZE]);
struct work *work_ref(struct work *w);
void work_unref(struct work *w); /* NULL is fine */

const char *work_tag(const struct work *w); /* random; for the log */
const char *work_key(const struct work *w);
/* The job as the worker reads it; borrowed. */
const char *work_json(const struct work *w, size_t *len);

/* Called once, when w has ended or was refused, on the thread that ended it and outside its lock.  is_lasting: the
 * frames are what this job always gives, not an accident of ours.  Set before the work is handed on. */
typedef void (*work_end_fn)(void *user, struct work *w, bool is_lasting);
void work_on_end(struct work *w, work_end_fn fn, void *user);

/* Who pays for it (job/quota.h): takes the hold over, and tells the client once w has ended, was refused or given up. */
void work_set_payer(struct work *w, struct client *payer);
/* How many other works of who pays for it wait or run: its turn comes after those with fewer. */
int work_turn(struct work *w);

/* ---- the pool's side ------------------------------------------------------------------------------------------- */

void work_begin(struct work *w);
/* Its place in the queue, from 1; told to readers of its stream. */
void work_set_position(struct work *w, int position);
/* One frame from a child: checked, kept, and shown to the reader.  ST_INPUT when it is not a legal frame, ST_LIMIT
 * when the job's bytes are used up. *is_end says that it was the last. */
MUST_USE enum status work_add_frame(struct work *w, const char *json, size_t len, bool *is_end, struct error *err);
/* Ends the work with an error of ours, after whatever frames came. */
void work_fail(struct work *w, enum diag_code code, const char *message, const char *hint);
/* Ends a work that never ran: the service is busy, or ends itself. */
void work_refuse(struct work *w);
bool work_has_frames(const struct work *w);
/* Ends it with the frames of an earlier one, as work_frames gave them; ST_INPUT if they are none: it has not ended
 * then, and is as it was. */
MUST_USE enum status work_load(struct work *w, const char *frames, size_t len, struct error *err);

/* ---- the reader's side ------------------------------------------------------------------------------------------ */

/* Where the work is; stages and is_ok count from what arrived so far. Any of the pointers may be NULL. */
enum work_state work_look(struct work *w, int *n_stages, bool *is_ok);
/* One reader, and its place in the list of those to be called back; its owner's storage, zeroed at first. */
struct work_waiter {
  struct work_waiter *next;
  void (*resume)(void *);
  void *user;
  size_t at;
  bool whole;
  bool is_first;      /* the work was made for it */
  bool is_called_off; /* it is no reader any more; under the work's lock */
  int position;       /* in the queue, as it was last told */
};
/* True once `whole` ? it has ended or was refused : there is something to read or to tell or it was refused; or the reader
 * was called off.  If not, calls `park(user)` under the lock and returns false; later, once it is true, `resume(user)` is
 * called, exactly once. */
bool work_wait(struct work *w, struct work_waiter *me, bool whole, void (*park)(void *), void (*resume)(void *),
               void *user);
/* Copies at most max bytes of the frames, one per line, from `at`; *at_end when nothing will follow. */
size_t work_read(struct work *w, size_t at, char *to, size_t max, bool *at_end);
/* Like work_wait for a reader at `at`. */
bool work_wait_at(struct work *w, struct work_waiter *me, size_t at, void (*park)(void *), void (*resume)(void *),
                  void *user);
/* Its place in the queue if that is news to this reader, else 0. */
int work_take_position(struct work *w, struct work_waiter *me);
/* Appends what ends the stream of one reader who has read up to `at` and gets no more of it: the rest of its line, or a
 * start if it has read nothing; an error; an end. */
void work_put_farewell(struct work *w, size_t at, enum diag_code code, const char *message, struct buf *out);
/* The result object, heap, caller frees; NULL when out of memory.  Only once it has ended. */
char *work_result(struct work *w, size_t *len);
/* All frames, one per line: heap, caller frees; NULL when out of memory.  Only once it has ended. */
char *work_frames(struct work *w, size_t *len);
/* Appends the JSON object of one stage; false if there is none.  Only once it has ended. */
bool work_stage(struct work *w, const struct gather_stage *which, struct buf *out);
size_t work_bytes(struct work *w); /* of the frames so far */
bool work_was_loaded(struct work *w);
int64_t work_began_us(struct work *w); /* on clock_now_us, when a child took it; 0: none did */
/* Its result as it is sent, in up to three encodings: made once by whoever first needs it, kept as long as the work. */
enum { WORK_FACES = 3, WORK_ETAG_SIZE = 64 };
struct work_face {
  char *data; /* heap; NULL: not made yet */
  size_t len;
  char etag[WORK_ETAG_SIZE];
};
/* NULL if it was not made.  The pointer is good while the caller holds a reference. */
const struct work_face *work_face(struct work *w, int which);
/* Takes face->data, unless there is such a face already: then frees it. */
void work_set_face(struct work *w, int which, const struct work_face *face);
/* No callback to this reader after this returns. */
void work_forget_reader(struct work *w, struct work_waiter *me);

/* One reader more; false if the work is being given up, or was refused: then it is of no use. */
bool work_join(struct work *w);
/* One reader less (NULL: one without a place); true if that was the last one: nobody can join any more, and who got true
 * cancels the work. */
bool work_leave(struct work *w, const struct work_waiter *me);
/* The same on behalf of a reader, who is called back and finds itself called off; false if there is nothing to call off
 * any more. */
bool work_call_off(struct work *w, struct work_waiter *me, bool *is_last);
bool work_is_called_off(struct work *w, const struct work_waiter *me);
/* As if its only reader, the one it was made for, had left, and true; false if others read it. */
bool work_give_up(struct work *w);

#endif
