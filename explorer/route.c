#include "route.h"

#include "api/compile.h"
#include "api/debug.h"
#include "api/admit.h"
#include "api/info.h"
#include "api/lessons.h"
#include "api/mcp.h"
#include "api/metrics.h"
#include "api/ready.h"
#include "api/results.h"
#include "api/runs.h"
#include "api/search.h"
#include "api/sessions.h"
#include "api/snippets.h"
#include "api/tokens.h"
#include "ce/ce.h"
#include "driver/job.h"
#include "store/runs.h"

/* What Compiler Explorer's routes have in common; pages of other sites may read their answers. */
#define CE \
  .takes_any_type = true, .takes_more_slashes = true, .problem = ce_problem, .add_headers = ce_add_headers, \
  .options = ce_options

const struct route app_routes[] = {
    {.path = "/api/v1/compile", .allow = "POST", .post = api_compile, .is_job = true, .is_bulky = true},
    {.path = "/api/v1/shrink", .allow = "POST", .post = api_shrink, .is_job = true, .is_bulky = true},
    {.path = "/api/v1/parting",
     .allow = "POST",
     .post = api_parting,
     .is_job = true,
     .is_bulky = true,
     .body_max = SEARCH_BODY_MAX},
    {.path = "/api/v1/neff",
     .allow = "POST",
     .post = api_neff,
     .is_job = true,
     .takes_any_type = true,
     .body_max = JOB_NEFF_MAX},
    {.path = "/api/v1/results/", .allow = "GET, HEAD", .get = api_results_get, .is_bulky = true},
    {.path = "/api/v1/runs", .allow = "POST", .post = api_runs_post, .is_job = true, .is_change = true},
    {.path = "/api/v1/runs/",
     .allow = "GET, HEAD, DELETE",
     .get = api_runs_get,
     .remove = api_runs_delete,
     .is_change = true},
    {.path = "/api/v1/runners", .allow = "GET, HEAD", .get = api_runners},
    {.path = "/api/v1/runners/tokens",
     .allow = "GET, HEAD, POST",
     .get = api_tokens_get,
     .post = api_tokens_post,
     .is_change = true,
     .is_open = true},
    {.path = "/api/v1/runners/tokens/",
     .allow = "DELETE",
     .remove = api_tokens_delete,
     .is_change = true,
     .is_open = true},
    {.path = "/api/v1/me", .allow = "GET, HEAD", .get = api_me, .is_open = true},
    {.path = "/api/v1/tokens",
     .allow = "GET, HEAD, POST",
     .get = api_access_tokens_get,
     .post = api_access_tokens_post,
     .is_change = true,
     .is_open = true},
    {.path = "/api/v1/tokens/",
     .allow = "DELETE",
     .remove = api_access_tokens_delete,
     .is_change = true,
     .is_open = true},
    {.path = "/api/v1/runner/next", .allow = "POST", .post = api_runner_next, .is_open = true},
    {.path = "/api/v1/runner/files/",
     .allow = "GET, HEAD, POST",
     .get = api_runner_file_get,
     .post = api_runner_file_put,
     .takes_any_type = true,
     .body_max = RUN_FILE_MAX,
     .is_open = true},
    {.path = "/api/v1/runner/beat/", .allow = "POST", .post = api_runner_beat, .is_open = true},
    {.path = "/api/v1/runner/end/", .allow = "POST", .post = api_runner_end, .is_open = true},
    {.path = "/api/v1/snippets", .allow = "POST", .post = api_snippet_post, .is_link = true, .is_change = true},
    {.path = "/api/v1/snippets/",
     .allow = "GET, HEAD, POST, DELETE",
     .get = api_snippet_get,
     .post = api_snippet_change,
     .remove = api_snippet_delete,
     .is_change = true,
     .is_bulky = true},
    {.path = "/api/v1/sessions",
     .allow = "POST",
     .post = api_session_post,
     .is_change = true,
     .body_max = SESSION_BODY_MAX},
    {.path = "/api/v1/sessions/", .allow = "GET, HEAD", .get = api_session_get},
    {.path = "/api/v1/session/join/", .allow = "POST", .post = api_session_join},
    {.path = "/api/v1/session/events/", .allow = "GET, HEAD", .get = api_session_events},
    {.path = "/api/v1/session/updates/", .allow = "POST", .post = api_session_updates},
    {.path = "/api/v1/session/presence/", .allow = "POST", .post = api_session_presence},
    {.path = "/api/v1/session/snapshot/", .allow = "POST", .post = api_session_snapshot, .body_max = SESSION_BODY_MAX},
    {.path = "/api/v1/session/lead/", .allow = "POST", .post = api_session_lead},
    {.path = "/s/", .allow = "GET, HEAD", .get = api_session_page},
    {.path = "/z/", .allow = "GET, HEAD", .get = api_snippet_open, .is_bulky = true},
    {.path = "/e/", .allow = "GET, HEAD", .get = api_snippet_embed},
    {.path = "/api/v1/pipeline", .allow = "GET, HEAD", .get = api_pipeline},
    {.path = "/api/v1/examples", .allow = "GET, HEAD", .get = api_examples},
    {.path = "/api/v1/targets", .allow = "GET, HEAD", .get = api_targets},
    {.path = "/api/v1/rules", .allow = "GET, HEAD", .get = api_rules},
    {.path = "/api/v1/lessons", .allow = "GET, HEAD, POST", .get = api_lessons, .post = api_lessons_read},
    {.path = "/api/v1/lessons/", .allow = "GET, HEAD", .get = api_lesson},
    {.path = "/api/v1/versions", .allow = "GET, HEAD", .get = api_versions},
    {.path = "/api/v1/ops", .allow = "GET, HEAD", .get = api_ops},
    {.path = "/api/v1/instructions", .allow = "GET, HEAD", .get = api_instructions},
    {.path = "/api/v1/nki", .allow = "GET, HEAD", .get = api_nki},
    /* the Model Context Protocol */
    {.path = "/mcp", .allow = "POST", .post = api_mcp, .is_job = true, .is_bulky = true, .problem = api_mcp_problem},
    /* Compiler Explorer's API */
    {.path = "/api/languages", .allow = "GET, HEAD", .get = ce_languages, CE},
    {.path = "/api/compilers", .allow = "GET, HEAD", .get = ce_compilers, CE},
    {.path = "/api/compilers/", .allow = "GET, HEAD", .get = ce_compilers, CE},
    {.path = "/api/libraries", .allow = "GET, HEAD", .get = ce_libraries, CE},
    {.path = "/api/libraries/", .allow = "GET, HEAD", .get = ce_libraries, CE},
    {.path = "/api/tools/", .allow = "GET, HEAD", .get = ce_tools, CE},
    {.path = "/api/formats", .allow = "GET, HEAD", .get = ce_formats, CE},
    {.path = "/api/format/", .allow = "POST", .post = ce_format, CE},
    {.path = "/api/version", .allow = "GET, HEAD", .get = ce_version, CE},
    {.path = "/api/releaseBuild", .allow = "GET, HEAD", .get = ce_version, CE},
    {.path = "/api/popularArguments/", .allow = "GET, HEAD, POST", .get = ce_arguments, .post = ce_arguments, CE},
    {.path = "/api/optimizationArguments/", .allow = "GET, HEAD, POST", .get = ce_arguments, .post = ce_arguments, CE},
    {.path = "/api/siteTemplates", .allow = "GET, HEAD", .get = ce_templates, CE},
    {.path = "/api/asm/", .allow = "GET, HEAD", .get = ce_opcode, CE},
    {.path = "/source/builtin/list", .allow = "GET, HEAD", .get = ce_examples, CE},
    {.path = "/source/builtin/load/", .allow = "GET, HEAD", .get = ce_example, CE},
    {.path = "/api/compiler/", .allow = "POST", .post = ce_compile, .is_job = true, .is_bulky = true, CE},
    {.path = "/api/noscript/compile", .allow = "POST", .post = ce_compile, .is_job = true, .is_bulky = true, CE},
    {.path = "/api/shortener", .allow = "POST", .post = ce_shorten, .is_link = true, .is_kept = true, CE},
    {.path = "/shortener", .allow = "POST", .post = ce_shorten, .is_link = true, .is_kept = true, CE},
    {.path = "/api/shortlinkinfo/", .allow = "GET, HEAD", .get = ce_link_info, CE},
    {.path = "/clientstate/", .allow = "GET, HEAD", .get = ce_open_state, .problem = ce_problem},
    {.path = "/healthz", .allow = "GET, HEAD", .get = api_health, .who = ROUTE_OPS},
    {.path = "/api/openapi.json", .allow = "GET, HEAD", .get = api_openapi},
    {.path = "/readyz", .allow = "GET, HEAD", .get = api_ready, .who = ROUTE_OPS},
    {.path = "/debug/state", .allow = "GET, HEAD", .get = api_debug, .who = ROUTE_OPERATOR},
    {.path = "/metrics", .allow = "GET, HEAD", .get = api_metrics, .who = ROUTE_OPS},
};
const int app_n_routes = sizeof app_routes / sizeof *app_routes;
