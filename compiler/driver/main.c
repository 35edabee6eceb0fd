#include "driver/main.h"

#include <stdio.h>
#include <string.h>

int driver_main(int argc, char **argv) {
  if (argc >= 2 && !strcmp(argv[1], "compile"))
    return compile_main(argc - 1, argv + 1);
  if (argc >= 2 && !strcmp(argv[1], "resume"))
    return resume_main(argc - 1, argv + 1);
  if (argc >= 2 && !strcmp(argv[1], "opt"))
    return opt_main(argc - 1, argv + 1);
  if (argc >= 2 && !strcmp(argv[1], "run"))
    return run_main(argc - 1, argv + 1);
  if (argc >= 2 && !strcmp(argv[1], "tune"))
    return tune_main(argc - 1, argv + 1);
  if (argc >= 2 && !strcmp(argv[1], "diff"))
    return diff_main(argc - 1, argv + 1);
  if (argc >= 2 && !strcmp(argv[1], "shrink"))
    return shrink_main(argc - 1, argv + 1);
  if (argc >= 2 && !strcmp(argv[1], "reproduce"))
    return reproduce_main(argc - 1, argv + 1);
  if (argc >= 2 && !strcmp(argv[1], "doc"))
    return doc_main(argc - 1, argv + 1);
  if (argc >= 2 && !strcmp(argv[1], "why"))
    return why_main(argc - 1, argv + 1);
  if (argc >= 2 && !strcmp(argv[1], "steps"))
    return steps_main(argc - 1, argv + 1);
  if (argc >= 2 && !strcmp(argv[1], "lesson"))
    return lesson_main(argc - 1, argv + 1);
  if (argc >= 2 && !strcmp(argv[1], "nki"))
    return nki_main(argc - 1, argv + 1);
  if (argc >= 3 && !strcmp(argv[1], "neff") && !strcmp(argv[2], "vendor"))
    return neff_vendor_main(argc - 1, argv + 1);
  if (argc >= 2 && !strcmp(argv[1], "neff"))
    return neff_pack_main(argc - 1, argv + 1);
  fprintf(stderr,
          "nkx: expected a subcommand: compile, run, resume, tune, shrink, diff, opt, reproduce, doc, lesson, why, "
          "steps, nki or neff\n");
  return EXIT_USAGE;
}
