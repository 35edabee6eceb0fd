/* runner: the commands of nkx-runner besides serving. */
#ifndef RUNNER_RUNNER_H
#define RUNNER_RUNNER_H

#include <signal.h>

/* argv[0] is "token" or "run".  Returns the exit status. */
enum token_kind { TOKEN_OF_RUNNER, TOKEN_OF_PROGRAM };
int runner_token_main(enum token_kind kind, int argc, char **argv);
int runner_run_main(int argc, char **argv, const volatile sig_atomic_t *stop);

#endif
