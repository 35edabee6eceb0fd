/* The document and the table of routes name the same addresses with the same methods. */
#include "http/http.h"
#include "http/server.h"
#include "route.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

static json_t *load_paths(json_t **doc) {
  *doc = json_load_file("explorer/api/openapi.json", JSON_REJECT_DUPLICATES, NULL);
  assert_non_null(*doc);
  json_t *paths = json_object_get(*doc, "paths");
  assert_true(json_object_size(paths) > 0);
  return paths;
}

static const struct server_config cfg = {.routes = app_routes};

/* What a request for this path finds; the rest of the path into `rest`, if that is not NULL. */
static const struct route *find(const char *path, char rest[64]) {
  struct server_config with = cfg;
  with.n_routes = app_n_routes;
  struct request rq = {.cfg = &with, .path = path};
  route_find(&rq);
  if (!rq.route) { /* it may be the operator's alone */
    with.kind = SERVER_OPS;
    route_find(&rq);
  }
  if (rest && rq.route) {
    assert_true(strlen(rq.rest) < 64);
    strcpy(rest, rq.rest);
  }
  free(rq.plain_path);
  return rq.route;
}

/* The document must name exactly the methods that have a handler; of a part of what a path names, as /snippets/{id}/notes, only
 * such methods, as the handlers answer others with 404. */
static void check_methods(const char *path, const struct route *r, const json_t *item) {
  const struct {
    const char *method;
    bool is_here;
  } all[] = {{"get", r->get}, {"post", r->post}, {"delete", r->remove}, {"put", false}, {"patch", false}};
  const char *id = strchr(path, '}');
  const bool is_part = id && id[1];
  for (size_t i = 0; i < sizeof all / sizeof *all; i++)
    if (is_part ? json_object_get(item, all[i].method) && !all[i].is_here
                : !json_object_get(item, all[i].method) != !all[i].is_here)
      fail_msg("%s: %s", path, all[i].method);
}

static void every_documented_path_has_its_route(void **state) {
  json_t *doc, *item;
  const char *path;
  (void)state;
  json_t *paths = load_paths(&doc);
  json_object_foreach(paths, path, item) {
    const struct route *r = find(path, NULL);
    if (!r)
      fail_msg("%s has no route", path);
    check_methods(path, r, item);
  }
  json_decref(doc);
}

static void every_route_is_documented(void **state) {
  json_t *doc, *item;
  const char *path;
  (void)state;
  json_t *paths = load_paths(&doc);
  for (int i = 0; i < app_n_routes; i++) {
    int n = 0;
    json_object_foreach(paths, path, item) n += find(path, NULL) == &app_routes[i];
    if (!n)
      fail_msg("%s is not in the document", app_routes[i].path);
  }
  json_decref(doc);
}

static void only_routes_that_take_them_are_found_with_more_slashes(void **state) {
  char rest[64];
  (void)state;
  assert_ptr_equal(find("//api///compilers//", NULL), find("/api/compilers", NULL));
  assert_string_equal(find("/api//compiler/nki-trn2///compile", rest)->path, "/api/compiler/");
  assert_string_equal(rest, "nki-trn2/compile");
  assert_null(find("//api/v1/targets", NULL));
  assert_null(find("/api/v1//targets", NULL));
  assert_string_equal(find("/clientstate/a//b/", rest)->path, "/clientstate/");
  assert_string_equal(rest, "a//b/"); /* base64 has slashes of its own */
}

/* What a server of this kind finds for the path. */
static bool has(enum server_kind kind, const char *path) {
  const struct server_config with = {.kind = kind, .routes = app_routes, .n_routes = app_n_routes};
  struct request rq = {.cfg = &with, .path = path};
  route_find(&rq);
  free(rq.plain_path);
  return rq.route != NULL;
}

static void operations_are_not_public_where_they_have_a_listener(void **state) {
  static const char *const operations[] = {"/healthz", "/readyz", "/metrics"};
  (void)state;
  for (int i = 0; i < 3; i++) {
    assert_true(has(SERVER_ALL, operations[i]));
    assert_true(has(SERVER_OPS, operations[i]));
    assert_false(has(SERVER_PUBLIC, operations[i]));
  }
  assert_true(has(SERVER_OPS, "/debug/state"));
  assert_false(has(SERVER_ALL, "/debug/state"));
  assert_false(has(SERVER_PUBLIC, "/debug/state"));
  assert_false(has(SERVER_OPS, "/api/v1/compile"));
  assert_true(has(SERVER_PUBLIC, "/api/v1/compile"));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(only_routes_that_take_them_are_found_with_more_slashes),
      cmocka_unit_test(every_documented_path_has_its_route),
      cmocka_unit_test(every_route_is_documented),
      cmocka_unit_test(operations_are_not_public_where_they_have_a_listener),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
