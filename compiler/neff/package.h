/* package: a kernel's engine programs as a NEFF, which the simulated machine runs.
 *
 * The container, its header and its members are as documented, so that tools can open it.  Engine instructions are not: their
 * encoding is not public.  So the package has NEFF_FEATURE_SIMULATION in its header, which makes every other runtime refuse it,
 * no instruction files, and these members:
 *
 *     info.json      what made it, "executed_by", the kernel, the machine, aliases of outputs, the simulated time
 *     neff.json      inputs and outputs in their order, with shapes and types, as a graph of one node
 *     kelf-0.json    the subgraphs
 *     program.mlir   the text of the stage engine-programs, which neff_package_open gives back
 *     sgNN/          of each core: def.json (variables, queues, names of files), a JSON file for each engine with what it
 *                    executes and the transfers that it triggers, constants as .npy
 */
#ifndef NEFF_PACKAGE_H
#define NEFF_PACKAGE_H

#include "base/dtype.h"
#include "base/target.h"
#include "neff/neff.h"
#include "sim/program.h"

struct json_t;

enum { NEFF_PACKAGE_RANK_MAX = 16 };

struct neff_io {
  const char *name;
  enum dtype dtype;
  int rank;
  int64_t dims[NEFF_PACKAGE_RANK_MAX];
  int alias_of; /* of an output: the input whose memory it is; -1: none */
};

struct neff_package {
  const char *kernel, *release, *pipeline; /* of the compiler: "1.2.0", a hash */
  enum target target;
  int n_inputs, n_outputs;
  const struct neff_io *inputs, *outputs; /* in the order of the program's arguments and results */
  const char *text;                       /* of the stage; it ends with a NUL */
  size_t text_len;
  const struct sim_program *program; /* decoded from it */
  int64_t time_ps;                   /* of the simulated run; -1: not known */
};

/* Makes the package in a.  ST_INPUT with a sentence for the user: the program has no form that can be packed, such as a loop that does
 * not end. */
MUST_USE enum status neff_package_make(struct arena *a, const struct neff_package *p, struct neff *out,
                                       struct error *err);

/* What a package was made from.  Texts are borrowed from x or live in a. */
struct neff_opened {
  const char *kernel;
  enum target target;
  const char *text;
  size_t text_len;
  int n_inputs, n_outputs;
  struct neff_io *inputs, *outputs;
};
/* ST_INPUT: x is no package of neff_package_make, or has none of its members. */
MUST_USE enum status neff_package_open(struct arena *a, const struct neff *x, struct neff_opened *out,
                                       struct error *err);

/* The name of the package of a kernel, and its media type. */
#define NEFF_PACKAGE_NAME "kernel.sim.neff"
#define NEFF_MEDIA_TYPE "application/octet-stream"

#endif
