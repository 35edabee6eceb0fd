/* The document and the table of routes name the same addresses with the same methods. */
#include "http/http.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <jansson.h>

static json_t *load_paths(json_t **doc) {
  *doc = json_load_file("explorer/api/openapi.json", JSON_REJECT_DUPLICATES, NULL);
  assert_non_null(*doc);
  json_t *paths = json_object_get(*doc, "paths");
  assert_true(json_object_size(paths) > 0);
  return paths;
}

/* As the handlers are, so the methods must be. */
static void check_methods(const char *path, const struct route *r, const json_t *item) {
  const struct {
    const char *method;
    bool is_here;
  } all[] = {{"get", r->get}, {"post", r->post}, {"delete", r->remove}, {"put", false}, {"patch", false}};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++)
    if (!json_object_get(item, all[i].method) != !all[i].is_here)
      fail_msg("%s: %s", path, all[i].method);
}

static void every_documented_path_has_its_route(void **state) {
  json_t *doc, *item;
  const char *path, *rest;
  (void)state;
  json_t *paths = load_paths(&doc);
  json_object_foreach(paths, path, item) {
    const struct route *r = route_find(path, &rest);
    if (!r)
      fail_msg("%s has no route", path);
    check_methods(path, r, item);
  }
  json_decref(doc);
}

static void every_route_is_documented(void **state) {
  json_t *doc, *item;
  const char *path, *rest;
  (void)state;
  json_t *paths = load_paths(&doc);
  for (int i = 0; i < route_count(); i++) {
    int n = 0;
    json_object_foreach(paths, path, item) n += route_find(path, &rest) == route_at(i);
    if (!n)
      fail_msg("%s is not in the document", route_at(i)->path);
  }
  json_decref(doc);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_documented_path_has_its_route),
      cmocka_unit_test(every_route_is_documented),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
