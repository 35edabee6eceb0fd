/* runs_internal: what the handlers of runs share.
 *
 *   runs_internal.c  the waiting requests; statuses as answers; the descriptions of runs and runners
 *   runs_ask.c       asks for a run
 *   runs_get.c       follows one; lists runners
 *   runs_stage.c     the kernel as NKI, as a stage
 *   runner.c         a runner asks for work, and says that it is alive
 *   runner_files.c   a runner takes and brings files
 *   runner_end.c     a runner ends its run: the outputs are compared
 *   runner_tokens.c  the operator's tokens
 */
#ifndef API_RUNS_INTERNAL_H
#define API_RUNS_INTERNAL_H

#include <stdatomic.h>

#include <jansson.h>

#include "api/part.h"
#include "api/runs.h"
#include "api/services.h"
#include "store/runs.h"

/* The file of a run that says where its HLO instructions come from: {"NAME": {"file", "line", "col", "end_line", "end_col"}}. */
#define RUN_PLACES "places.json"

enum {
  RUNS_TICK_MS = 1000, /* after so long a waiting request looks into the store, where another server may have written */
  RUNS_WAIT_MS = 15000, /* after so long it is answered in any case */
};

struct runs {
  struct runs_config cfg;
  struct holds *holds;
  atomic_llong counts[RUNS_COUNT_N];
};
void runs_note(struct request *rq, enum runs_count c);

/* The state of a request about a run; the store's functions fill it on their threads. */
struct run_state_of {
  /* the request */
  char id[IDENT_LEN + 1];
  struct ident_hash run, token; /* token: of the runner */
  int64_t fence;
  char name[64];    /* of a file, or of a token */
  int64_t until_ms; /* of the monotonic clock: when a waiting request is answered in any case */
  bool wants_stage;
  char after[48];
  json_t *body, *compiler; /* compiler: what is passed on to the vendor's compiler; NULL: nothing */
  struct runner runner;
  struct store_run ask;
  struct buf ask_about, files[RUN_FILES_MAX];
  /* the outcome */
  enum status st;
  struct error err;
  bool found, is_offered; /* is_offered: there is a run that the runner may take */
  bool is_allowed;        /* the runner's token is valid */
  enum run_put put;
  enum run_hold hold;
  enum run_state end;
  bool has_wrong_data, is_written;
  struct run_taken taken;
  struct run_view view;
  struct buf answer;
};
struct run_state_of *run_state_new(struct request *rq); /* NULL: no memory */

/* True if the store has failed on the request, or its runner's token is not valid; *answer is set then. */
bool run_failed(struct request *rq, enum MHD_Result *answer);
/* Holds the request until there may be news.  False: it must be answered now. */
bool run_hold(struct request *rq);
void runs_wake(struct request *rq);

/* The hash of a run in the path, or of a token in a header.  False if the text is no such thing. */
bool run_read_hex(const char *text, size_t len, struct ident_hash *out);
/* Reads the runner's token and, if the path names a run, the run's hash and the fence; "RUN/NAME" also sets the name.  False:
 * *answer is set. */
bool runner_read(struct request *rq, bool has_name, enum MHD_Result *answer);
/* Parses the body, an object, into state->body. */
bool runner_read_body(struct request *rq, enum MHD_Result *answer);
/* On a store thread: sets is_allowed.  False: the function must return. */
bool runner_check(struct run_state_of *s, struct db *db);
/* Answers the holder of a lease: 200 {} or `lease-lost`. */
enum MHD_Result runner_answer_hold(struct request *rq);

/* Compares the outputs that the run's runner has brought, on a store thread.  Appends the members "outputs" and "simulated_us" of
 * the device's object.  ST_INPUT: they are not those of the run; err has the sentence. */
MUST_USE enum status runs_compare(struct db *db, const struct ident_hash *run, const char *sha256, struct buf *out,
                                  struct error *err);

/* On a store thread: the run's kernel as NKI, as the object {"stage", "files", "places", "sources"}; found is false if it has none. */
void runs_read_stage(struct request *rq, struct db *db);

/* Appends members "connected", "busy", "waiting", "running", "runners" and, if none is connected, "missing". */
MUST_USE enum status runs_put_runners(struct db *db, struct buf *b, int *n_connected, struct error *err);

#endif
