/* runner: the commands of nkx-runner besides serving. */
#ifndef RUNNER_RUNNER_H
#define RUNNER_RUNNER_H

/* argv[0] is "token".  Returns the exit status. */
int runner_token_main(int argc, char **argv);

#endif
