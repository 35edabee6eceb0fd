/* What the files of ce/ share. */
#ifndef CE_INTERNAL_H
#define CE_INTERNAL_H

#include <jansson.h>

#include "base/arena.h"
#include "ce/ce.h"
#include "driver/job.h"

struct work;

#define CE_LANGUAGE "nki"
#define CE_FILENAME "example.py"
#define CE_TOOL "numerics"
#define CE_RUN_TOOL "simulation"

/* ---- answer.c ---------------------------------------------------------------------------------------------------- */

/* True if the Accept header names JSON, and does not prefer text/plain or name that first. */
bool ce_wants_json(const struct request *rq);
enum ce_age { CE_NO_STORE, CE_LISTED }; /* CE_LISTED: clients may keep the answer for some minutes */
/* Takes `v`; NULL answers "out of memory". */
enum MHD_Result ce_send(struct request *rq, unsigned status, json_t *v, enum ce_age age);
/* Takes the bytes of b. */
enum MHD_Result ce_send_text(struct request *rq, struct buf *b, enum ce_age age);
enum MHD_Result ce_send_json(struct request *rq, struct buf *b, enum ce_age age);
/* Answers {"error":true,"message":…}, for the routes whose clients know that form. */
enum MHD_Result ce_refuse(struct request *rq, unsigned status, const char *message);
/* A JSON string of any bytes: those that are not UTF-8 become U+FFFD.  For texts that were cut, or come from
 * outside. */
json_t *ce_text(const char *s, size_t n);

/* ---- names.c ----------------------------------------------------------------------------------------------------- */

enum { CE_ID_SIZE = 16 };
#define CE_DEFAULT_TARGET TARGET_TRN2
void ce_compiler_id(enum target t, char out[CE_ID_SIZE]);
/* Finds a compiler by its id or an alias; false if there is none. */
bool ce_find_compiler(const char *id, size_t len, enum target *out);
/* True if a comma-separated list has this name. */
bool ce_is_listed(const char *list, const char *name);

/* ---- args.c ------------------------------------------------------------------------------------------------------ */

/* What the user writes where a C compiler takes its flags. */
struct ce_args {
  const char *stop_after, *kernel; /* or NULL */
  bool has_target, check, simulate, is_raw;
  enum target target;
  int n_inputs;
  struct job_input *inputs;
  const char *complaint; /* what is wrong with the arguments, as the message of a failed compile; or NULL */
};

/* Appends the words of a shell-like text, or of an array of strings, to the array `words`; other values have none. */
void ce_split(const json_t *text_or_array, json_t *words);
/* --target=T  --kernel=NAME  --stop=STAGE[:N] (or the number of a pass; also --stop-after)  --raw  --input=NAME=SHAPE:DTYPE  --check
 * (also --sim)  --simulate.  A value may also be the next word. */
void ce_args_parse(struct arena *a, const json_t *words, struct ce_args *out);
/* {"--target=": {"description","timesused"}, …} */
json_t *ce_args_describe(void);

/* ---- ask.c ------------------------------------------------------------------------------------------------------- */

/* A compile request, whichever form it came in. */
struct ce_ask {
  const char *source; /* UTF-8 */
  size_t source_len;
  enum target target;
  json_t *words; /* of userArguments; owned */
  struct ce_args args;
  json_t *files;    /* [{"name","source"}…] as a job has them; owned */
  json_t *left_out; /* names of files that a job cannot have; owned */
  bool skip_asm, is_executor, executes, has_numerics, has_run, filters_ansi, is_fresh;
  bool wants_pipeline, wants_ir, wants_remarks;
};

void ce_ask_init(struct ce_ask *q);
void ce_ask_clear(struct ce_ask *q);
/* Adds a file that the source may import; leaves out one whose name is none of a Python file. */
void ce_ask_add_file(struct ce_ask *q, const char *name, const json_t *contents);
/* Reads the request's body and path.  False: it was refused with *answer.  Texts live in a. */
bool ce_ask_read(struct request *rq, struct arena *a, struct ce_ask *q, enum MHD_Result *answer);
/* The job for it.  ST_LIMIT as job_read gives it.  An argument that job_read refuses becomes q->args.complaint, and the
 * status is ST_OK. */
MUST_USE enum status ce_ask_job(struct ce_ask *q, struct arena *a, struct job *out, struct error *err);

/* ---- reply.c, text.c --------------------------------------------------------------------------------------------- */

/* The answer for a work that has ended; NULL when out of memory.  Takes milliseconds per megabyte of frames. */
json_t *ce_reply(const struct ce_ask *q, struct work *w, bool was_cached);
/* The answer for arguments that make no sense: nothing was run. */
json_t *ce_reply_complaint(const struct ce_ask *q);
/* An answer as text; is_plain: without the escape sequences that colour a terminal. */
void ce_reply_text(const json_t *reply, bool is_plain, struct buf *out);

/* ---- state.c ----------------------------------------------------------------------------------------------------- */

/* The ClientState of what a client stored, which is a ClientState itself (it has sessions) or a GoldenLayout.  A new
 * reference; NULL if it is neither. */
json_t *ce_state_of(json_t *stored);
/* Sets what our page shows of a state: source, arguments and compiler of its first session. */
void ce_state_ask(const json_t *state, struct arena *a, struct ce_ask *q);
/* The ClientState for one of our own requests (driver/job.h). */
json_t *ce_state_of_request(const json_t *request);
/* The ClientState in base64 of JSON, or of a zlib stream of JSON: a new reference; NULL if it is not one. */
json_t *ce_state_decode(const char *text, size_t len);

#endif
