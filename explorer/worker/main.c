/* nkx-worker: the zygote of the service, and the compiler's commands for the terminal.
 *
 *   nkx-worker [--python-dir DIR] [--site-dir DIR] [--cgroup DIR] [--cpu-s N] [--memory-mib N] [--resident-mib N] [--wall-ms N]
 *              [--log-format N] [--log-level N] [--server-pid PID] [--jail-min LEVEL] [--jail-without LAYERS] [--jail-failing LAYERS]
 *                                                      the zygote; needs a control socket
 *   nkx-worker compile|opt …                           what `nkx compile …` and `nkx opt …` run
 *   nkx-worker doctor                                  which layers of the jail this machine has
 */
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "driver/main.h"
#include "jail/jail.h"
#include "worker/worker.h"

int main(int argc, char **argv) {
  struct worker_config cfg;
  struct arena a;
  struct error err;

  if (argc > 1 && !strcmp(argv[1], "doctor"))
    return jail_doctor();
  if (argc > 1 && argv[1][0] != '-')
    return driver_main(argc, argv);
  arena_init(&a);
  if (worker_config_parse(argc, argv, &a, &cfg, &err)) {
    fprintf(stderr, "nkx-worker: %s\n", err.text);
    return EXIT_USAGE;
  }
  log_set_format((enum log_format)cfg.log_format);
  log_set_level((enum log_level)cfg.log_level);
  return zygote_main(&cfg);
}
