/* resume_main: `nkx resume STAGE TEXT KERNEL`: goes on from a stage's text that somebody changed.
 *
 * It is `nkx compile KERNEL --resume STAGE=TEXT`.
 */
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "driver/main.h"

static const char usage[] =
    "usage: nkx resume STAGE TEXT KERNEL [FILE.py…] [options of nkx compile]\n"
    "  Compiles KERNEL up to STAGE, puts the file TEXT in the place of that stage's program, and goes on from there. "
    "The\n"
    "  text is a stage's, as nkx compile --dump-dir writes it, with changes; errors name its lines. STAGE counts "
    "stages "
    "of\n"
    "  the same name from 1: canonicalize:2. --check compares all stages with what NumPy computes from KERNEL.\n"
    "  nkx compile, nkx run and nkx neff pack take the same as --resume STAGE=TEXT.\n";

int resume_main(int argc, char **argv) {
  struct arena a;
  if (argc >= 2 && (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h")))
    return fputs(usage, stdout), EXIT_DONE;
  if (argc < 4)
    return fputs(usage, stderr), EXIT_USAGE;
  arena_init(&a);
  char **args = arena_new_array(&a, char *, (size_t)argc + 1);
  args[0] = argv[0];
  args[1] = arena_strdup(&a, "--resume");
  args[2] = arena_printf(&a, "%s=%s", argv[1], argv[2]);
  for (int i = 3; i < argc; i++)
    args[i] = argv[i];
  const int code = compile_main(argc, args);
  arena_clear(&a);
  return code;
}
