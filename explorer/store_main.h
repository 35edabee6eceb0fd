/* store_main: `nkx store …`. */
#ifndef STORE_MAIN_H
#define STORE_MAIN_H

/* argv after "store"; returns the exit status. */
int store_main(int argc, char **argv);

#endif
