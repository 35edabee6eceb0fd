/* own_runner: where the vendor's compiler is installed beside the server, the server has a runner of its own (runner/host.h), which
 * only compiles: so a kernel's NEFF can be had without a Neuron host.
 *
 *     nkx serve ── fork ──▶ keeper ── fork, exec ──▶ nkx-runner --only-compile --cc-walls --server http://127.0.0.1:PORT …
 *
 * The runner asks for work over HTTP as any other one does, and starts the compiler with limits and walls.  If root starts the server, the
 * runner becomes a user that is neither the service's nor the workers'.  The keeper is forked while the server still has one thread;
 * it waits on a pipe for the runner's token, which the service writes when its store is open, starts the runner again when that ends,
 * and ends it when the pipe does: when the launcher and the service are gone.
 */
#ifndef OWN_RUNNER_H
#define OWN_RUNNER_H

#include "base/error.h"
#include "config.h"
#include "http/server.h"
#include "store/store.h"

/* Before the first thread.  *token_fd: the pipe; -1 if there is no compiler, or if it is not wanted.  ST_INPUT: --neuronx-cc names no
 * program. */
MUST_USE enum status own_runner_split(const struct config *cfg, const struct listeners *at, int *token_fd,
                                      struct error *err);

/* Makes the runner's token and lets the runner start, on a thread of the store.  token_fd may be -1. */
void own_runner_begin(struct store *store, int token_fd);

#endif
