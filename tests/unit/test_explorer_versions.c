/* Versions of the compiler side by side: which directories are taken, what they are called, how they are found. */
#include "pool/versions.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "driver/pipeline.h"
#include "pool/wire.h"

static char root[] = "/tmp/nkx-versions-XXXXXX";
static struct arena arena;

static void write_file(const char *path, const char *text, mode_t mode) {
  FILE *f = fopen(path, "w");
  assert_non_null(f);
  fputs(text, f);
  fclose(f);
  chmod(path, mode);
}

/* A directory as `make release` packs it, with nothing in its programs and packages. */
static const char *make_release(const char *name, const char *pipeline, int protocol) {
  static const char *const dirs[] = {
      "", "/bin", "/python", "/venv", "/venv/lib", "/venv/lib/python3.11", "/venv/lib/python3.11/site-packages"};
  const char *dir = arena_printf(&arena, "%s/%s", root, name);
  for (size_t i = 0; i < sizeof dirs / sizeof *dirs; i++)
    mkdir(arena_printf(&arena, "%s%s", dir, dirs[i]), 0700);
  write_file(arena_printf(&arena, "%s/bin/nkx-worker", dir), "", 0700);
  write_file(
      arena_printf(&arena, "%s/release.json", dir),
      arena_printf(&arena, "{\"release\": \"0.1.0\", \"pipeline\": \"%s\", \"protocol\": %d}", pipeline, protocol),
      0600);
  return dir;
}

static enum status add(struct versions *vs, struct error *err, const char *name, const char *dir) {
  return versions_add(&arena, vs, arena_printf(&arena, "%s=%s", name, dir), err);
}

static void a_version_is_found_by_name_and_by_pipeline(void **state) {
  struct versions vs;
  struct error err;
  (void)state;
  versions_init(&vs);
  const char *six = make_release("six", "aaaaaaaaaaaa", WIRE_PROTOCOL),
             *seven = make_release("seven", "bbbbbbbbbbbb", WIRE_PROTOCOL);
  assert_int_equal(versions_add(&arena, &vs, arena_printf(&arena, "6=%s,7=%s", six, seven), &err), ST_OK);
  assert_int_equal(vs.n, 3);
  assert_int_equal(versions_find(&vs, NULL), VERSION_TODAY);
  assert_int_equal(versions_find(&vs, pipeline_version()), VERSION_TODAY);
  assert_int_equal(versions_find(&vs, release_version()), VERSION_TODAY);
  assert_int_equal(versions_find(&vs, "6"), 1);
  assert_int_equal(versions_find(&vs, "bbbbbbbbbbbb"), 2);
  assert_int_equal(versions_find(&vs, "8"), -1);
  assert_string_equal(vs.v[1].release, "0.1.0");
  assert_string_equal(vs.v[2].worker_path, arena_printf(&arena, "%s/bin/nkx-worker", seven));
}

static void a_directory_of_todays_pipeline_only_gives_it_a_name(void **state) {
  struct versions vs;
  struct error err;
  (void)state;
  versions_init(&vs);
  assert_int_equal(add(&vs, &err, "7", make_release("today", pipeline_version(), WIRE_PROTOCOL)), ST_OK);
  assert_int_equal(vs.n, 1);
  assert_string_equal(vs.v[VERSION_TODAY].name, "7");
  assert_int_equal(versions_find(&vs, "7"), VERSION_TODAY);
}

static void what_is_wrong_is_named(void **state) {
  struct versions vs;
  struct error err;
  (void)state;
  versions_init(&vs);
  const char *six = make_release("six", "aaaaaaaaaaaa", WIRE_PROTOCOL);
  assert_int_equal(add(&vs, &err, "6", six), ST_OK);
  const char *other = make_release("protocol", "cccccccccccc", WIRE_PROTOCOL + 1),
             *bare = make_release("bare", "dddddddddddd", WIRE_PROTOCOL);
  rmdir(arena_printf(&arena, "%s/python", bare));
  const struct {
    const char *name, *dir, *says;
  } wrong[] = {
      {"a b", six, "no name"},
      {"8", root, "release.json"},
      {"8", other, "protocol"},
      {"8", bare, "lacks python"},
      {"8", six, "the same version as 6"},
      {"6", make_release("eight", "eeeeeeeeeeee", WIRE_PROTOCOL), "already the name of another"},
      {release_version(), make_release("eight", "eeeeeeeeeeee", WIRE_PROTOCOL), "this server's own"},
      {"8", "", "expected NAME=DIR"},
  };
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    assert_int_equal(add(&vs, &err, wrong[i].name, wrong[i].dir), ST_INPUT);
    if (!strstr(err.text, wrong[i].says))
      fail_msg("%s=%s: %s", wrong[i].name, wrong[i].dir, err.text);
  }
  assert_int_equal(vs.n, 2);
}

static void there_is_room_for_four_others(void **state) {
  struct versions vs;
  struct error err;
  (void)state;
  versions_init(&vs);
  for (int i = 1; i <= VERSIONS_MAX; i++) {
    const char *name = arena_printf(&arena, "v%d", i);
    const enum status st = add(&vs, &err, name, make_release(name, name, WIRE_PROTOCOL));
    assert_int_equal(st, i < VERSIONS_MAX ? ST_OK : ST_INPUT);
  }
  assert_non_null(strstr(err.text, "room for 4"));
}

static int begin(void **state) {
  (void)state;
  arena_init(&arena);
  return mkdtemp(root) ? 0 : -1;
}

static int end(void **state) {
  (void)state;
  const int status = system(arena_printf(&arena, "rm -r %s", root));
  arena_clear(&arena);
  return status;
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_version_is_found_by_name_and_by_pipeline),
      cmocka_unit_test(a_directory_of_todays_pipeline_only_gives_it_a_name),
      cmocka_unit_test(what_is_wrong_is_named),
      cmocka_unit_test(there_is_room_for_four_others),
  };
  return cmocka_run_group_tests(tests, begin, end);
}
