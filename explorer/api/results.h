/* results: serves recent results by their key.
 *
 * GET /api/v1/results/KEY                     the result object, as POST /api/v1/compile gave it
 * GET /api/v1/results/KEY/stages/N?kernel=K   stage N (its index) of kernel K (0): the object in kernels[K].stages
 * GET /api/v1/results/KEY/artifacts/NAME      one file, as an attachment; its name is one of
 *     source-map.json               {"kernels":[{"name","stages":[{"index","name","lines","from"}]}]}
 *     KERNEL/NN-STAGE.mlir (.txt for HLO)     a stage's text; KERNEL is the kernel's name, NN its index in two digits
 *     and whatever the result's "artifacts" lists (options.artifacts)
 * GET /api/v1/results/KEY/all.tar.gz          result.json and all of the above
 * GET /api/v1/results/KEY/diff?from=A&to=B    what changed between two stages: api/diffs.h
 * GET /api/v1/results/KEY/comparison?with=KEY2   the simulated runs of two results side by side: driver/comparison.h;
 *     404 when they have none
 * GET /api/v1/results/KEY/why?stage=A&line=N  why an operation is as it is: api/whys.h
 *
 * Each answer has an ETag; a request that names it in If-None-Match gets 304.  JSON and text are compressed with gzip
 * or zstd for clients that accept it.  404: there is no such result, or it is no longer kept.  The key is the
 * permission: only a client that knows the request and its scope (driver/job.h) can know the key.
 */
#ifndef API_RESULTS_H
#define API_RESULTS_H

#include "http/http.h"

enum MHD_Result api_results_get(struct request *rq);

#endif
