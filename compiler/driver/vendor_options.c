#include "driver/vendor_options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void vendor_command_init(struct vendor_command *v, struct arena *a) {
  const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
  *v = (struct vendor_command){
      .options = {.lnc = 1, .wall_ms = VENDOR_WALL_MS, .memory_mib = VENDOR_MEMORY_MIB, .cache_mib = VENDOR_CACHE_MIB}};
  if (cache && *cache == '/')
    v->options.cache_dir = arena_printf(a, "%s/nkx/neuronx-cc", cache);
  else if (home && *home == '/')
    v->options.cache_dir = arena_printf(a, "%s/.cache/nkx/neuronx-cc", home);
}

static enum status read_number(const char *option, const char *text, int least, int most, int unit, int *out,
                               struct error *err) {
  char *end;
  const long n = strtol(text, &end, 10);
  if (end == text || *end || n < least || n > most)
    return fail(err, ST_INPUT, "%s %.40s: expected a number from %d to %d", option, text, least, most);
  *out = (int)n * unit;
  return ST_OK;
}

static enum status add_extra(struct vendor_command *v, const char *text, struct error *err) {
  if (v->options.n_extra == VENDOR_EXTRA_MAX)
    return fail(err, ST_INPUT, "--cc-option: at most %d times", VENDOR_EXTRA_MAX);
  v->extra[v->options.n_extra++] = text;
  return ST_OK;
}

bool vendor_command_option(struct vendor_command *v, int c, const char *value, struct error *err, enum status *st) {
  struct vendor_options *o = &v->options;
  switch (c) {
  case VENDOR_PROGRAM:
    o->program = value;
    return true;
  case VENDOR_LNC:
    *st = read_number("--lnc", value, 1, 2, 1, &o->lnc, err);
    return true;
  case VENDOR_OPTION:
    *st = add_extra(v, value, err);
    return true;
  case VENDOR_TIME:
    *st = read_number("--cc-time", value, 1, 86400, 1000, &o->wall_ms, err);
    return true;
  case VENDOR_MEMORY:
    *st = read_number("--cc-memory", value, 64, 1 << 24, 1, &o->memory_mib, err);
    return true;
  case VENDOR_CACHE:
    o->cache_dir = strcmp(value, "none") ? value : NULL;
    return true;
  case VENDOR_CACHE_SIZE:
    *st = read_number("--cc-cache-mib", value, 0, 1 << 24, 1, &o->cache_mib, err);
    return true;
  default:
    return false;
  }
}

static void show_log(void *user, const char *line) {
  (void)user;
  fprintf(stderr, "neuronx-cc: %s\n", line);
}

enum status vendor_command_use(struct vendor_command *v, struct terminal *t) {
  v->options.extra = v->extra;
  v->job.options = &v->options;
  v->job.log = show_log;
  t->job.vendor = &v->job;
  return vendor_check_options(v->options.n_extra, v->extra, &t->err);
}
