/* results: what was compiled lately, under the key that the result itself names.
 *
 * GET /api/v1/results/KEY                     the result object, as POST /api/v1/compile gave it
 * GET /api/v1/results/KEY/stages/N?kernel=K   stage N (its index) of kernel K (0): the object in kernels[K].stages
 * GET /api/v1/results/KEY/artifacts/NAME      one file, as an attachment; the names are
 *     source-map.json               {"kernels":[{"name","stages":[{"index","name","lines","from"}]}]}
 *     KERNEL/NN-STAGE.mlir (.txt for HLO)     a stage's text; KERNEL is the kernel's name, NN its index in two digits
 *     and whatever the result's "artifacts" lists (options.artifacts)
 * GET /api/v1/results/KEY/all.tar.gz          result.json and all of the above
 * GET /api/v1/results/KEY/diff?from=A&to=B    what changed between two stages: api/diffs.h
 *
 * Each has an ETag; a request that names it in If-None-Match gets 304.  JSON and text come gzip or zstd compressed to
 * who accepts that.  404: not there, or no longer.  The key is the permission: it cannot be guessed without knowing the
 * request and its scope (driver/job.h).
 */
#ifndef API_RESULTS_H
#define API_RESULTS_H

#include "http/http.h"

enum MHD_Result api_results_get(struct request *rq);

#endif
