#include "pool/versions.h"

#include <jansson.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "driver/job.h"
#include "driver/pipeline.h"
#include "pool/wire.h"

void versions_init(struct versions *vs) {
  *vs = (struct versions){
      .n = 1,
      .v[VERSION_TODAY] = {.name = release_version(), .release = release_version(), .pipeline = pipeline_version()}};
}

int versions_find(const struct versions *vs, const char *name) {
  for (int i = 0; i < vs->n; i++)
    if (!name || !strcmp(vs->v[i].name, name))
      return i;
  for (int i = 0; i < vs->n; i++)
    if (!strcmp(vs->v[i].pipeline, name))
      return i;
  return -1;
}

static bool is_directory(const char *path) {
  struct stat s;
  return !stat(path, &s) && S_ISDIR(s.st_mode);
}

/* Reads release.json, and looks for what a worker needs. */
static enum status read_release(struct arena *a, const char *dir, struct version *v, struct error *err) {
  json_error_t jerr;
  const char *release, *pipeline;
  int protocol;
  json_t *about = json_load_file(arena_printf(a, "%s/release.json", dir), 0, &jerr);
  enum status st = ST_OK;
  if (!about || json_unpack(about, "{s:s,s:s,s:i}", "release", &release, "pipeline", &pipeline, "protocol", &protocol))
    st = fail(err, ST_INPUT, "%.120s has no release.json as `make release` writes it", dir);
  else if (protocol != WIRE_PROTOCOL)
    st = fail(err, ST_INPUT, "%.120s speaks protocol %d, this server %d: pack it with a newer `make release`", dir,
              protocol, WIRE_PROTOCOL);
  else if (!job_is_version(pipeline) || strlen(release) > JOB_VERSION_MAX)
    st = fail(err, ST_INPUT, "%.120s/release.json has no version of a pipeline", dir);
  if (!st) {
    v->release = arena_strdup(a, release);
    v->pipeline = arena_strdup(a, pipeline);
    v->worker_path = arena_printf(a, "%s/bin/nkx-worker", dir);
    v->python_dir = arena_printf(a, "%s/python", dir);
    v->site_dir = arena_printf(a, "%s/venv/lib/python3.11/site-packages", dir);
    if (access(v->worker_path, X_OK))
      st = fail(err, ST_INPUT, "%.120s: %m", v->worker_path);
    else if (!is_directory(v->python_dir) || !is_directory(v->site_dir))
      st = fail(err, ST_INPUT, "%.120s lacks python or venv", dir);
  }
  json_decref(about);
  return st;
}

static enum status add(struct arena *a, struct versions *vs, const char *name, const char *dir, struct error *err) {
  struct version v = {.name = name};
  if (!job_is_version(name))
    return fail(err, ST_INPUT, "\"%.60s\" is no name of at most %d letters, digits, -, _ and .", name, JOB_VERSION_MAX);
  enum status st = read_release(a, dir, &v, err);
  if (st)
    return st;
  const int same = versions_find(vs, v.pipeline), namesake = versions_find(vs, name);
  if (same == VERSION_TODAY && namesake <= VERSION_TODAY) {
    vs->v[VERSION_TODAY].name = name;
    return ST_OK;
  }
  if (namesake >= 0)
    return fail(err, ST_INPUT, "%.40s is already the name of %s", name,
                namesake == VERSION_TODAY ? "this server's own version" : "another version");
  if (same >= 0)
    return fail(err, ST_INPUT, "%.120s is the same version as %.40s", dir, vs->v[same].name);
  if (vs->n == VERSIONS_MAX)
    return fail(err, ST_INPUT, "there is room for %d versions beside this server's own", VERSIONS_MAX - 1);
  vs->v[vs->n++] = v;
  return ST_OK;
}

enum status versions_add(struct arena *a, struct versions *vs, const char *list, struct error *err) {
  enum status st = ST_OK;
  for (const char *at = list; at && !st;) {
    const size_t len = strcspn(at, ",");
    char *item = arena_strndup(a, at, len), *eq = strchr(item, '=');
    if (!eq || !eq[1])
      return fail(err, ST_INPUT, "expected NAME=DIR, got \"%.60s\"", item);
    *eq = 0;
    st = add(a, vs, item, eq + 1, err);
    at = at[len] ? at + len + 1 : NULL;
  }
  return st;
}
