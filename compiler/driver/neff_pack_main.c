/* neff_pack_main: `nkx neff pack KERNEL -o FILE`: compiles a kernel and writes its simulation package. */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>
#include <openssl/evp.h>

#include "driver/compile.h"
#include "driver/frame_scan.h"
#include "driver/main.h"
#include "driver/terminal.h"
#include "ir/ir.h"
#include "neff/package.h"

static const char usage[] =
    "usage: nkx neff pack KERNEL [FILE.py…] -o FILE.sim.neff [options]\n"
    "  Compiles the kernel and packs the engine programs of its last stage. `nkx run FILE.sim.neff` runs the package "
    "on the\n"
    "  simulated machine. No device executes it: the encoding of engine instructions is not public.\n" //
    "  nkx neff pack DIR --like FILE -o FILE2 packs a folder that nkx neff unpack has written.\n"      //
    TERMINAL_HELP_FILES                                                                                //
    TERMINAL_HELP_INPUTS "Exit status: 0 done; 1 the kernel was refused; 2 wrong usage; 3 a limit was hit.\n";

struct command {
  struct terminal t;
  const char *path;
  unsigned char *package; /* NULL: none yet */
  size_t size;
};

static enum status parse_options(void *command, int argc, char **argv) {
  static const struct option options[] = {TERMINAL_OPTIONS, {"help", no_argument, NULL, 'h'}, {NULL, 0, NULL, 0}};
  struct command *c = command;
  enum status st = ST_OK;
  int o;
  while (!st && (o = getopt_long(argc, argv, "ho:", options, NULL)) != -1) {
    if (o == 'h') {
      fputs(usage, stdout);
      exit(EXIT_DONE);
    }
    if (o == 'o')
      c->path = optarg;
    else
      st = terminal_option(&c->t, o, optarg);
  }
  if (!st && (optind >= argc || !c->path))
    st = fail(&c->t.err, ST_INPUT, "expected a KERNEL and -o FILE; see nkx neff pack --help");
  return st;
}

/* Keeps the package of the file's kernel; there may be one only, because there is one file to write. */
static enum status keep_package(struct command *c, const json_t *frame) {
  const json_t *data = json_object_get(frame, "data");
  const size_t n = json_string_length(data);
  if (c->package)
    return fail(&c->t.err, ST_INPUT, "the file has several kernels: choose one by --kernel NAME");
  c->size = (size_t)json_integer_value(json_object_get(json_object_get(frame, "artifact"), "size"));
  c->package = arena_alloc(c->t.arena, n / 4 * 3 + 1);
  EVP_DecodeBlock(c->package, (const unsigned char *)json_string_value(data), (int)n);
  return ST_OK;
}

static enum status write_package(struct command *c) {
  enum status st = terminal_write(&c->t, c->path, c->package, c->size);
  if (!st)
    printf("%s: a simulation package of %zu bytes; no device executes it\n", c->path, c->size);
  return st;
}

static bool is_package(const json_t *frame) {
  const char *name = json_string_value(json_object_get(json_object_get(frame, "artifact"), "name"));
  const char *base = name ? strrchr(name, '/') : NULL;
  return base && !strcmp(base + 1, NEFF_PACKAGE_NAME);
}

static enum status sink(void *user, const char *json, size_t len) {
  struct command *c = user;
  struct frame scanned;
  enum status st = ST_OK;
  if (!frame_scan(json, len, &scanned, NULL) && scanned.kind != FRAME_DIAGNOSTIC && scanned.kind != FRAME_ARTIFACT)
    return ST_OK;
  json_t *f = json_loadb(json, len, 0, NULL);
  if (f && json_object_get(f, "diagnostic"))
    terminal_show_diag(&c->t, json_object_get(f, "diagnostic"));
  else if (f && is_package(f))
    st = keep_package(c, f);
  json_decref(f);
  return f ? st : ST_NOMEM;
}

static enum status run(void *command) {
  struct command *c = command;
  struct ir ir;
  enum status st = terminal_start(&c->t, &ir);
  c->t.job.artifacts = true;
  if (!st)
    st = compile_run(&ir, &c->t.job, sink, c);
  return st ? st : c->package ? write_package(c) : ST_INPUT;
}

int neff_pack_main(int argc, char **argv) {
  static const struct terminal_command def = {"neff pack", parse_options, NULL, run};
  struct arena arena;
  struct command c = {.path = NULL};
  if (argc < 2 || strcmp(argv[1], "pack") != 0)
    return EXIT_USAGE;
  arena_init(&arena);
  terminal_init(&c.t, &arena);
  const int code = terminal_main(&c.t, &def, &c, argc - 1, argv + 1);
  arena_clear(&arena);
  return code;
}
