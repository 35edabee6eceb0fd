/* runs: kernels on Neuron hosts, through runners that ask this server for work (store/runs.h).
 *
 * The user's side:
 *
 *     POST /api/v1/runs                     a compile's request, with "run": "execute" | "compile" | "profile" | "nki",
 *                                           and "compiler": {"options", "lnc"} for the vendor's compiler; 201 {"id", "url"}
 *     GET /api/v1/runs/ID                   how far it is; with ?after=MARK only once that has changed, or after a while
 *     GET /api/v1/runs/ID/files/NAME        a file of it
 *     GET /api/v1/runs/ID/stage             the kernel as NKI, in the form of a stage
 *     DELETE /api/v1/runs/ID                cancels it
 *     GET /api/v1/runners                   who is connected
 *
 * The kernel is compiled and simulated first.  The run keeps its HLO, the inputs of the simulated run, and what is expected of it;
 * a runner gets the first two.  The Python source stays here.
 *
 * The runner's side, each with "Authorization: Bearer TOKEN", and from the second on with "X-Nkx-Fence: NUMBER":
 *
 *     POST /api/v1/runner/next              what the runner is and can do; a run for it, or 204 after a while
 *     GET /api/v1/runner/files/RUN/NAME     hlo.pb, inputs.safetensors
 *     POST /api/v1/runner/files/RUN/NAME    outputs.safetensors, kernel.neff, kernel.nki.py, profile.ntff; X-Nkx-Sha256 is that of the body
 *     POST /api/v1/runner/beat/RUN          a sign of life, and lines of the log
 *     POST /api/v1/runner/end/RUN           how it ended
 *
 * The answer `lease-lost` means that the run is another runner's now: this one forgets it.  Everything else that fails may be tried
 * again; POST end is the same the second time.  Outputs are compared here, with NumPy's and with the simulator's.  Outputs of
 * other names, types or shapes are refused (`runner-data`), and the run goes to another runner, or fails if no other is connected when the time of a lease is over.  An error that names an
 * HLO instruction gets that instruction's place in the source here, because the runner has only the HLO.
 *
 * The operator's side, with "X-Nkx-Operator: MS.HEX": the time, and an HMAC-SHA256 under the store's secret, which only who can
 * read the store knows (store/operator.h):
 *
 *     POST /api/v1/runners/tokens           {"name", "hash"}: the token itself is never sent
 *     GET /api/v1/runners/tokens, DELETE /api/v1/runners/tokens/NAME
 */
#ifndef API_RUNS_H
#define API_RUNS_H

#include "http/http.h"

struct runs; /* opaque */

struct runs_config {
  int most, most_own; /* runs that may wait or run: at all, 0: there are none; of one client, 0: no limit */
  int lease_ms;
};

MUST_USE enum status runs_start(const struct runs_config *cfg, struct runs **out, struct error *err);
/* What has happened to runs since the server started, on this server: RUNS_COUNT(enum, "name"). */
#define RUNS_COUNTS(COUNT) \
  COUNT(RUNS_ASKED, "asked") \
  COUNT(RUNS_TAKEN, "taken") \
  COUNT(RUNS_AGAIN, "taken-again") \
  COUNT(RUNS_ENDED_DONE, "done") \
  COUNT(RUNS_ENDED_FAILED, "failed") \
  COUNT(RUNS_REFUSED, "wrong-data") \
  COUNT(RUNS_LATE, "lease-lost")
enum runs_count {
#define COUNT(e, name) e,
  RUNS_COUNTS(COUNT)
#undef COUNT
      RUNS_COUNT_N
};
const char *runs_count_name(enum runs_count c);
int64_t runs_counted(const struct runs *r, enum runs_count c);

/* Requests that wait for news are answered now, and later ones at once. */
void runs_end_waits(struct runs *r);
void runs_stop(struct runs *r); /* after the server has ended; NULL is fine, here and above */

enum MHD_Result api_runs_post(struct request *rq);   /* runs_ask.c */
enum MHD_Result api_runs_get(struct request *rq);    /* runs_get.c */
enum MHD_Result api_runs_delete(struct request *rq); /* runs_get.c */
enum MHD_Result api_runners(struct request *rq);     /* runs_get.c */

enum MHD_Result api_runner_next(struct request *rq);     /* runner.c */
enum MHD_Result api_runner_file_get(struct request *rq); /* runner_files.c */
enum MHD_Result api_runner_file_put(struct request *rq); /* runner_files.c */
enum MHD_Result api_runner_beat(struct request *rq);     /* runner.c */
enum MHD_Result api_runner_end(struct request *rq);      /* runner_end.c */

enum MHD_Result api_tokens_get(struct request *rq);    /* runner_tokens.c */
enum MHD_Result api_tokens_post(struct request *rq);   /* runner_tokens.c */
enum MHD_Result api_tokens_delete(struct request *rq); /* runner_tokens.c */

#endif
