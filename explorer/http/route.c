/* Every address of the service; whatever is not here may be a file of the page. */
#include <string.h>

#include "http/http.h"

static const struct route routes[] = {
    {"/api/v1/compile", "POST", NULL, api_compile},        {"/api/v1/pipeline", "GET, HEAD", api_pipeline, NULL},
    {"/api/v1/examples", "GET, HEAD", api_examples, NULL}, {"/api/v1/targets", "GET, HEAD", api_targets, NULL},
    {"/healthz", "GET, HEAD", api_health, NULL},
};

const struct route *route_find(const char *path) {
  for (size_t i = 0; i < sizeof routes / sizeof *routes; i++)
    if (!strcmp(routes[i].path, path))
      return &routes[i];
  return NULL;
}
