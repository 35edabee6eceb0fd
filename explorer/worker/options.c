/* The zygote's options; main.c lists them. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "driver/paths.h"
#include "worker/worker.h"

enum { COUNT_MAX = (1 << 20) - 1 };

const char *worker_resolve(const char *dir, const char *name) {
  char path[PATH_MAX];
  if ((size_t)snprintf(path, sizeof path, "%s%s%s", dir, *dir ? "/" : "", name) >= sizeof path)
    return NULL;
  return realpath(path, NULL);
}

static bool parse_number(const char *text, int least, int most, int *out) {
  char *end;
  long v = strtol(text, &end, 10);
  if (end == text || *end || v < least || v > most)
    return false;
  *out = (int)v;
  return true;
}

/* False if the value is wrong; *is_known says whether the option exists. */
static bool take_option(const char *name, const char *value, struct worker_config *c, bool *is_known) {
  *is_known = true;
  if (!strcmp(name, "--python-dir"))
    return (c->python_dir = value) != NULL;
  if (!strcmp(name, "--site-dir"))
    return (c->site_dir = value) != NULL;
  if (!strcmp(name, "--cgroup"))
    return (c->cgroup_dir = value) != NULL;
  if (!strcmp(name, "--cpu-s"))
    return value && parse_number(value, 1, COUNT_MAX, &c->limits.cpu_s);
  if (!strcmp(name, "--memory-mib"))
    return value && parse_number(value, 1, COUNT_MAX, &c->limits.memory_mib);
  if (!strcmp(name, "--resident-mib"))
    return value && parse_number(value, 1, COUNT_MAX, &c->limits.resident_mib);
  if (!strcmp(name, "--wall-ms"))
    return value && parse_number(value, 0, INT_MAX, &c->limits.wall_ms);
  if (!strcmp(name, "--memory-tricks"))
    return value && memory_tricks_find(value, &c->memory_tricks);
  if (!strcmp(name, "--log-format"))
    return value && parse_number(value, 0, LOG_JSON, &c->log_format);
  if (!strcmp(name, "--log-level"))
    return value && parse_number(value, 0, LOG_ERROR, &c->log_level);
  if (!strcmp(name, "--server-pid"))
    return value && parse_number(value, 0, INT_MAX, &c->server_pid);
  if (!strcmp(name, "--jail-min"))
    return value && (c->min_level = jail_level_find(value)) >= 0;
  if (!strcmp(name, "--jail-without"))
    return value && jail_layers_find(value, &c->missing);
  if (!strcmp(name, "--jail-failing"))
    return value && jail_layers_find(value, &c->failing);
  return *is_known = false;
}

/* Makes *dir absolute; where it was not given, the build's own directory is taken. */
static enum status resolve_dir(const char *option, const char *built, const char **dir, struct error *err) {
  const char *given = *dir ? *dir : built;
  *dir = worker_resolve("", given);
  return *dir ? ST_OK : fail(err, ST_INPUT, "%s: no directory %s", option, given);
}

enum status worker_config_parse(int argc, char **argv, struct arena *a, struct worker_config *out, struct error *err) {
  struct paths built = {0};
  enum status st = ST_OK;
  struct worker_config c = {
      .limits = {JAIL_CPU_S, JAIL_MEMORY_MIB, JAIL_RESIDENT_MIB, 0},
      .min_level = JAIL_C,
      .memory_tricks = MEMORY_ALL,
      .log_level = LOG_INFO,
  };

  for (int i = 1; i < argc; i += 2) {
    bool is_known;
    if (!take_option(argv[i], argv[i + 1], &c, &is_known))
      return fail(err, ST_INPUT, is_known ? "%s: wrong or missing value" : "unknown option %s", argv[i]);
  }
  if (!c.python_dir || !c.site_dir)
    st = paths_find(a, &built, err);
  if (!st)
    st = resolve_dir("--python-dir", built.python_dir, &c.python_dir, err);
  if (!st)
    st = resolve_dir("--site-dir", built.site_dir, &c.site_dir, err);
  if (!st)
    *out = c;
  return st;
}
