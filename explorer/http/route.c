/* Every address of the service; whatever is not here may be a file of the page. */
#include <string.h>

#include "api/results.h"
#include "api/snippets.h"
#include "http/http.h"

static const struct route routes[] = {
    {.path = "/api/v1/compile", .allow = "POST", .post = api_compile},
    {.path = "/api/v1/results/", .allow = "GET, HEAD", .get = api_results_get},
    {.path = "/api/v1/snippets", .allow = "POST", .post = api_snippet_post, .is_change = true},
    {.path = "/api/v1/snippets/",
     .allow = "GET, HEAD, DELETE",
     .get = api_snippet_get,
     .remove = api_snippet_delete,
     .is_change = true},
    {.path = "/z/", .allow = "GET, HEAD", .get = api_snippet_open},
    {.path = "/e/", .allow = "GET, HEAD", .get = api_snippet_embed},
    {.path = "/api/v1/pipeline", .allow = "GET, HEAD", .get = api_pipeline},
    {.path = "/api/v1/examples", .allow = "GET, HEAD", .get = api_examples},
    {.path = "/api/v1/targets", .allow = "GET, HEAD", .get = api_targets},
    {.path = "/healthz", .allow = "GET, HEAD", .get = api_health},
};

const struct route *route_find(const char *path, const char **rest) {
  for (size_t i = 0; i < sizeof routes / sizeof *routes; i++) {
    size_t n = strlen(routes[i].path);
    bool is_prefix = routes[i].path[n - 1] == '/';
    if (!strncmp(routes[i].path, path, n) && (is_prefix || !path[n])) {
      *rest = path + n;
      return &routes[i];
    }
  }
  return NULL;
}
