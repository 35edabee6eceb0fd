/* main: `nkx mcp` (stdio.c). */
#ifndef MCP_MAIN_H
#define MCP_MAIN_H

/* Takes argv from the subcommand on; returns the exit status (driver/main.h). */
int mcp_main(int argc, char **argv);

#endif
