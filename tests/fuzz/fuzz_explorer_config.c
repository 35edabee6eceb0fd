/* The server's flags and, in lines with NKX_, its environment: refused with a reason, or all fields in their ranges. */
#include <string.h>

#include "config.h"
#include "fuzz.h"

enum { ARGS_MAX = 32 };

static void check_accepted(const struct config *c) {
  FUZZ_CHECK(c->workers >= 1 && c->workers <= 64 && c->queue_max >= 0 && c->queue_max <= 10000);
  FUZZ_CHECK(c->job_timeout_ms >= 100 && c->http.connections_max >= 4);
  FUZZ_CHECK(*c->http.host && *c->http.port && *c->data_dir && *c->store);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  struct arena a;
  struct config c;
  struct error err = {0};
  char *argv[ARGS_MAX + 1], *env[ARGS_MAX + 1], *rest = NULL;
  int n = 0, n_env = 0;

  arena_init(&a);
  char *text = arena_strndup(&a, (const char *)data, strnlen((const char *)data, size));
  for (char *line = strtok_r(text, "\n", &rest); line && n < ARGS_MAX && n_env < ARGS_MAX;
       line = strtok_r(NULL, "\n", &rest))
    if (strncmp(line, "NKX_", 4))
      argv[n++] = line;
    else
      env[n_env++] = line;
  argv[n] = NULL;
  env[n_env] = NULL;
  enum status st = config_parse(&a, n, argv, env, &c, &err);
  if (st)
    FUZZ_CHECK(st == ST_INPUT && err.text[0]);
  else
    check_accepted(&c);
  arena_clear(&a);
  return 0;
}
