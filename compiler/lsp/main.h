/* main: `nkx lsp` (serve.c). */
#ifndef LSP_MAIN_H
#define LSP_MAIN_H

/* Takes argv from the subcommand on; returns the exit status: that of the protocol, or EXIT_USAGE (driver/main.h). */
int lsp_main(int argc, char **argv);

#endif
