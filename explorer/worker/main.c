/* nkx-worker: the zygote of the service, and the compiler's commands for the terminal.
 *
 *   nkx-worker [OPTION VALUE]…             the zygote; needs a control socket, so `nkx serve` starts it.  Options:
 *     --python-dir DIR  --site-dir DIR       the kernels' packages; site-packages with NumPy
 *     --cpu-s N  --memory-mib N  --resident-mib N  --wall-ms N       limits of a job (jail/limits.h)
 *     --jail-min LEVEL  --jail-without LAYERS  --jail-failing LAYERS  --cgroup DIR    (jail/jail.h)
 *     --memory-tricks on|off|LIST            (memory/memory.h)
 *     --log-format N  --log-level N  --server-pid PID
 *   nkx-worker compile|opt …               what `nkx compile …` runs
 *   nkx-worker mcp, lsp                    what `nkx mcp` and `nkx lsp` run
 *   nkx-worker doctor                      which layers of the jail this machine supports
 */
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "driver/main.h"
#include "jail/jail.h"
#include "lsp/main.h"
#include "mcp/main.h"
#include "worker/worker.h"

int main(int argc, char **argv) {
  struct worker_config cfg;
  struct arena a;
  struct error err;

  if (argc > 1 && !strcmp(argv[1], "doctor"))
    return jail_doctor();
  if (argc > 1 && !strcmp(argv[1], "mcp"))
    return mcp_main(argc - 1, argv + 1);
  if (argc > 1 && !strcmp(argv[1], "lsp"))
    return lsp_main(argc - 1, argv + 1);
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
