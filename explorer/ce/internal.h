/* What the files of ce/ share. */
#ifndef CE_INTERNAL_H
#define CE_INTERNAL_H

#include <jansson.h>

#include "base/arena.h"
#include "ce/ce.h"
#include "driver/job.h"

#define CE_LANGUAGE "nki"
#define CE_FILENAME "example.py"
#define CE_TOOL "numerics"

/* ---- answer.c ------------------------------------------------------------------------------------------------------ */

/* Is JSON what the client asked for?  Only if it names it, and not after or below text/plain. */
bool ce_wants_json(const struct request *rq);
enum ce_age { CE_NO_STORE, CE_LISTED }; /* lists may be kept for some minutes */
/* Takes `v`; NULL answers "out of memory". */
enum MHD_Result ce_send(struct request *rq, unsigned status, json_t *v, enum ce_age age);
/* Takes the bytes of b. */
enum MHD_Result ce_send_text(struct request *rq, struct buf *b, enum ce_age age);
enum MHD_Result ce_send_json(struct request *rq, struct buf *b, enum ce_age age);
/* {"error":true,"message":…}, where clients know that form. */
enum MHD_Result ce_refuse(struct request *rq, unsigned status, const char *message);
/* A string, whatever the bytes: what is not UTF-8 becomes U+FFFD.  For texts that were cut, or are not ours. */
json_t *ce_text(const char *s, size_t n);
/* A query argument, or NULL. */
const char *ce_query(const struct request *rq, const char *name);

/* ---- lists.c ------------------------------------------------------------------------------------------------------- */

/* By id or alias; false if there is no such compiler. */
bool ce_find_compiler(const char *id, size_t len, enum target *out);
void ce_compiler_id(enum target t, char out[16]);

/* ---- args.c -------------------------------------------------------------------------------------------------------- */

/* What a user writes where a C compiler takes its flags. */
struct ce_args {
  const char *stop_after, *kernel; /* or NULL */
  bool has_target, check;
  enum target target;
  int n_inputs;
  struct job_input *inputs;
  const char *complaint; /* NULL, or what is wrong: the compile fails with it */
};

/* The words of a shell-like text, or of an array of strings; other values have none.  Fills `words` (an array). */
void ce_split(const json_t *text_or_array, json_t *words);
/* --target=T  --kernel=NAME  --stop=STAGE[:N] (or its index; also --stop-after)  --input=NAME=SHAPE:DTYPE  --check
 * (also --sim).  A value may also be the next word. */
void ce_args_parse(struct arena *a, const json_t *words, struct ce_args *out);
/* {"--target=": {"description","timesused"}, …} */
json_t *ce_args_describe(void);

/* ---- ask.c --------------------------------------------------------------------------------------------------------- */

/* A compile request, whichever form it came in. */
struct ce_ask {
  const char *source; /* UTF-8 */
  size_t source_len;
  enum target target;
  json_t *words; /* of userArguments; owned */
  struct ce_args args;
  bool skip_asm, is_executor, executes, has_numerics, filters_ansi, is_fresh, has_files;
  bool wants_pipeline, wants_ir, wants_remarks;
};

void ce_ask_init(struct ce_ask *q);
void ce_ask_clear(struct ce_ask *q);
/* From the request's body and path.  False: *answer was given.  Texts live in a. */
bool ce_ask_read(struct request *rq, struct arena *a, struct ce_ask *q, enum MHD_Result *answer);
/* The job for it; ST_INPUT and ST_LIMIT as job_parse gives them.  An argument that job_parse refuses becomes
 * q->args.complaint. */
MUST_USE enum status ce_ask_job(struct ce_ask *q, struct arena *a, struct job *out, struct error *err);

/* ---- reply.c, text.c ----------------------------------------------------------------------------------------------- */

/* The answer for an ended work; NULL when out of memory.  Takes milliseconds per megabyte of frames. */
json_t *ce_reply(const struct ce_ask *q, struct work *w, bool was_cached);
/* The answer for arguments that make no sense: nothing was run. */
json_t *ce_reply_complaint(const struct ce_ask *q);
/* The same as text. */
void ce_reply_text(const json_t *reply, bool filters_ansi, struct buf *out);

/* ---- state.c ------------------------------------------------------------------------------------------------------- */

/* The ClientState of what a client stored: itself if it has sessions, or made of a GoldenLayout.  A new reference; NULL
 * if it is neither. */
json_t *ce_state_of(json_t *stored);
/* What our page would show of it: source, arguments and compiler of the first session. */
void ce_state_ask(const json_t *state, struct arena *a, struct ce_ask *q);
/* The ClientState for one of our own requests (driver/job.h). */
json_t *ce_state_of_request(const json_t *request);
/* Base64 of JSON or of a zlib stream of JSON: a new reference, or NULL. */
json_t *ce_state_decode(const char *text, size_t len);

#endif
