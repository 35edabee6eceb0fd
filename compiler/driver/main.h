/* main: the compiler's subcommands for the terminal: `nkx compile`, `nkx run`, `nkx resume`, `nkx tune`, `nkx shrink`, `nkx diff`, `nkx opt`, `nkx reproduce`,
 * `nkx doc`, `nkx lesson`, `nkx why`, `nkx steps`, `nkx nki` and `nkx neff`. */
#ifndef DRIVER_MAIN_H
#define DRIVER_MAIN_H

/* argv[0] is the program's name, argv[1] the subcommand.  Returns the exit status: 0 done; 1 the kernel was refused
 * or a check failed; 2 wrong usage; 3 a limit was reached; 4 a fault of the compiler. */
int driver_main(int argc, char **argv);

enum exit_status { EXIT_DONE, EXIT_REFUSED, EXIT_USAGE, EXIT_LIMIT, EXIT_FAULT };

/* The entry points of the subcommands.  They take the same arguments and return the same values. */
int compile_main(int argc, char **argv);
int run_main(int argc, char **argv);
int resume_main(int argc, char **argv);
int opt_main(int argc, char **argv);
int tune_main(int argc, char **argv);
int shrink_main(int argc, char **argv);
int diff_main(int argc, char **argv);
int reproduce_main(int argc, char **argv);
int nki_main(int argc, char **argv);
int doc_main(int argc, char **argv);
int lesson_main(int argc, char **argv);
int why_main(int argc, char **argv);
int steps_main(int argc, char **argv);
int neff_main(int argc, char **argv);        /* info, unpack, diff; pack with --like */
int neff_pack_main(int argc, char **argv);   /* pack of a kernel */
int neff_vendor_main(int argc, char **argv); /* vendor */

#endif
