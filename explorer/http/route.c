#include "http/route.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "http/http.h"
#include "http/server.h"

bool route_is_get(const char *method) {
  return !strcmp(method, MHD_HTTP_METHOD_GET) || !strcmp(method, MHD_HTTP_METHOD_HEAD);
}

route_handler route_handler_of(const struct route *route, const char *method) {
  if (route_is_get(method))
    return route->get;
  if (!strcmp(method, MHD_HTTP_METHOD_POST))
    return route->post;
  if (!strcmp(method, MHD_HTTP_METHOD_OPTIONS))
    return route->options;
  return !strcmp(method, MHD_HTTP_METHOD_DELETE) ? route->remove : NULL;
}

static bool is_served(enum server_kind kind, const struct route *r) {
  switch (kind) {
  case SERVER_OPS:
    return r->who != ROUTE_USERS;
  case SERVER_PUBLIC:
    return r->who == ROUTE_USERS;
  case SERVER_ALL:
    break;
  }
  return r->who != ROUTE_OPERATOR;
}

/* The first route of the table that fits, with the rest of the path. */
static const struct route *look_up(const struct server_config *cfg, const char *path, const char **rest) {
  for (int i = 0; i < cfg->n_routes; i++) {
    const struct route *r = &cfg->routes[i];
    size_t n = strlen(r->path);
    assert(n > 0);
    if (!is_served(cfg->kind, r))
      continue;
    bool is_prefix = r->path[n - 1] == '/';
    if (!strncmp(r->path, path, n) && (is_prefix || !path[n])) {
      *rest = path + n;
      return r;
    }
  }
  return NULL;
}

/* The path without repeated slashes and without one at its end, heap; NULL if it has none of these. */
static char *plain_path(const char *path) {
  char *plain = malloc(strlen(path) + 1), *to = plain;
  if (!plain)
    return NULL;
  for (const char *p = path; *p; p++)
    if (*p != '/' || p[1] != '/')
      *to++ = *p;
  if (to > plain + 1 && to[-1] == '/')
    to--;
  *to = 0;
  if (strcmp(plain, path) != 0)
    return plain;
  free(plain);
  return NULL;
}

/* Looks up the path as it came.  If that finds no route, or one that takes more slashes, looks up the plain path, so that
 * rq->rest has no extra slashes either. */
void route_find(struct request *rq) {
  const char *rest;
  rq->route = look_up(rq->cfg, rq->path, &rq->rest);
  if (rq->route && !rq->route->takes_more_slashes)
    return;
  rq->plain_path = plain_path(rq->path);
  const struct route *route = rq->plain_path ? look_up(rq->cfg, rq->plain_path, &rest) : NULL;
  if (route && route->takes_more_slashes) {
    rq->route = route;
    rq->rest = rest;
  }
}
