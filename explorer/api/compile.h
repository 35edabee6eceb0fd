/* compile: functions for all handlers that start a compile. */
#ifndef API_COMPILE_H
#define API_COMPILE_H

#include "base/arena.h"
#include "driver/job.h"
#include "http/http.h"
#include "job/results.h"

/* Makes an arena with room for a job whose JSON or text has text_len bytes.  Fails with ST_NOMEM. */
MUST_USE enum status compile_arena(struct arena *a, size_t text_len, struct error *err);
/* Returns ST_INPUT if the brackets of a JSON text are nested deeper than any request needs.  Must be called before the
 * text is parsed. */
MUST_USE enum status compile_check_nesting(const struct buf *b, struct error *err);

/* Replaces the version that the job names by that version's pipeline; by NULL if it is today's.  Returns ST_ABSENT if it is not
 * installed.  To be called for each job whose request may name one; versions.c. */
MUST_USE enum status compile_choose_version(struct request *rq, struct job *job, struct error *err);

/* Sets the request's work (part.h) to a work for this job.  The request's headers determine if the cache is used.  A
 * job without a scope gets the client's own scope.  Returns ST_QUOTA if the client may not start it. */
MUST_USE enum status compile_start(struct request *rq, const struct job *job, struct error *err);
/* The same, but `mode` determines if the cache is used. */
MUST_USE enum status compile_start_as(struct request *rq, const struct job *job, enum results_mode mode,
                                      struct error *err);
/* The scope of a client that names none. */
void compile_own_scope(struct request *rq, char scope[JOB_SCOPE_MAX + 1]);
/* Answers with the request's work, whole or as frames, as its Accept says; suspends the connection while there is nothing to send,
 * and is to be called again then. */
enum MHD_Result compile_answer(struct request *rq);
/* Sends the answer for a work that was refused. */
enum MHD_Result compile_refused(struct request *rq);

/* POST /api/v1/compile */
enum MHD_Result api_compile(struct request *rq);
/* POST /api/v1/neff; neff.c */
enum MHD_Result api_neff(struct request *rq);

#endif
