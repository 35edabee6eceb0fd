/* neff_vendor_main: `nkx neff vendor KERNEL -o FILE.neff`: compiles a kernel with the vendor's compiler, where it is installed. */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "driver/compile.h"
#include "driver/frame_scan.h"
#include "driver/main.h"
#include "driver/vendor_options.h"
#include "ir/ir.h"

static const char usage[] =
    "usage: nkx neff vendor KERNEL [FILE.py…] -o FILE.neff [options]\n"
    "  Compiles the kernel's HLO with neuronx-cc, the vendor's compiler, into a NEFF that a Neuron device "
    "executes.\n" //
    TERMINAL_HELP_FILES TERMINAL_HELP_INPUTS VENDOR_HELP "  --nki FILE.py              write the kernel as NKI, which "
    "the compiler prints, there; -o is not needed then\n"
    "Exit status: 0 done; 1 the kernel or the compiler failed; 2 wrong usage; 3 a limit was hit.\n";

struct command {
  struct terminal t;
  struct vendor_command vendor;
  int n_kernels;
};

static enum status parse_options(void *command, int argc, char **argv) {
  enum { NKI = 'K' };
  static const struct option options[] = {TERMINAL_OPTIONS,
                                          VENDOR_OPTIONS,
                                          {"nki", required_argument, NULL, NKI},
                                          {"help", no_argument, NULL, 'h'},
                                          {NULL, 0, NULL, 0}};
  struct command *c = command;
  enum status st = ST_OK;
  int o;
  while (!st && (o = getopt_long(argc, argv, "ho:", options, NULL)) != -1) {
    if (o == 'h') {
      fputs(usage, stdout);
      exit(EXIT_DONE);
    }
    if (o == 'o')
      c->vendor.job.neff_path = optarg;
    else if (o == NKI)
      c->vendor.job.nki_path = optarg;
    else if (!vendor_command_option(&c->vendor, o, optarg, &c->t.err, &st))
      st = terminal_option(&c->t, o, optarg);
  }
  if (!st && (optind >= argc || (!c->vendor.job.neff_path && !c->vendor.job.nki_path)))
    st = fail(&c->t.err, ST_INPUT, "expected a KERNEL and -o FILE; see nkx neff vendor --help");
  return st ? st : vendor_command_use(&c->vendor, &c->t);
}

/* The file's kernels would all be written to the same path. */
static enum status count_kernel(struct command *c) {
  return ++c->n_kernels == 1 ? ST_OK
                             : fail(&c->t.err, ST_INPUT, "the file has several kernels: choose one by --kernel NAME");
}

static enum status sink(void *user, const char *json, size_t len) {
  struct command *c = user;
  struct frame scanned;
  if (frame_scan(json, len, &scanned, NULL))
    return ST_BUG;
  if (scanned.kind == FRAME_KERNEL)
    return count_kernel(c);
  if (scanned.kind != FRAME_DIAGNOSTIC)
    return ST_OK;
  json_t *f = json_loadb(json, len, 0, NULL);
  terminal_show_diag(&c->t, json_object_get(f, "diagnostic"));
  json_decref(f);
  return f ? ST_OK : ST_NOMEM;
}

static enum status run(void *command) {
  struct command *c = command;
  struct ir ir;
  enum status st = terminal_start(&c->t, &ir);
  c->t.job.stop_after = "trace";
  if (!st)
    st = compile_run(&ir, &c->t.job, sink, c);
  if (!st && c->vendor.job.neff_path)
    printf("%s: a NEFF of the vendor's compiler for %s\n", c->vendor.job.neff_path, target_name(c->t.job.target));
  if (!st && c->vendor.job.nki_path)
    printf("%s: the kernel as NKI\n", c->vendor.job.nki_path);
  return st;
}

int neff_vendor_main(int argc, char **argv) {
  static const struct terminal_command def = {"neff vendor", parse_options, NULL, run};
  struct arena arena;
  struct command c = {.n_kernels = 0};
  arena_init(&arena);
  terminal_init(&c.t, &arena);
  vendor_command_init(&c.vendor, &arena);
  const int code = terminal_main(&c.t, &def, &c, argc - 1, argv + 1);
  arena_clear(&arena);
  return code;
}
