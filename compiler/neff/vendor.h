/* vendor: compiles HLO with neuronx-cc, the vendor's compiler, where it is installed.
 *
 *     neuronx-cc compile --framework XLA hlo_module.pb --pipeline compile SaveTemps --target T --output=kernel.neff --lnc N …
 *
 * as NKIPy calls it, in a directory of its own that is removed in the end (vendor_process.h says with which limits).  What it
 * made is kept in a cache, by a hash of the HLO, of the command and of the compiler's file.
 */
#ifndef NEFF_VENDOR_H
#define NEFF_VENDOR_H

#include "base/diag.h"
#include "base/target.h"

enum vendor_product {
  VENDOR_NEFF,
  VENDOR_NKI /* the text of the kernel in NKI, which the compiler prints on its way */
};

struct vendor_options {
  const char *program;   /* NULL: $NKX_NEURONX_CC, else neuronx-cc in PATH */
  const char *cache_dir; /* made if it is not there; NULL: nothing is kept */
  int cache_mib;         /* what is kept there at most: what was used last */
  int lnc;               /* physical cores of a logical one: 1 or 2 */
  int n_extra;
  const char *const *extra; /* options of vendor_options.def, "--name=value" or "--name", "value" */
  int wall_ms, memory_mib;  /* limits */
  bool has_walls;           /* vendor_process.h */
  const char *hidden;       /* likewise */
};

enum { VENDOR_WALL_MS = 600000, VENDOR_MEMORY_MIB = 16 << 10, VENDOR_CACHE_MIB = 4 << 10 };

struct vendor_request {
  const struct vendor_options *options;
  enum vendor_product product;
  enum target target;
  const void *proto; /* a HloModuleProto */
  size_t proto_size;
  /* The place of the HLO instruction of this name; NULL: there is none, or it is not known. */
  const struct src_loc *(*place)(void *user, const char *name);
  /* Takes each line of the log as it comes; may be NULL. */
  void (*log)(void *user, const char *line);
  void *user;
};

struct vendor_result {
  const void *data; /* of the product; a NUL follows */
  size_t size;
  bool is_cached;
};

/* The path of the compiler, which is `given` or is searched as vendor_options say; NULL if it is not there. */
const char *vendor_program(struct arena *a, const char *given);
/* What it says about its version, on one line; "" if it says nothing. */
const char *vendor_version(struct arena *a, const char *program);

/* ST_INPUT if an option is not one of vendor_options.def; err has the sentence. */
MUST_USE enum status vendor_check_options(int n, const char *const *options, struct error *err);

/* Compiles.  Everything lives in a.  ST_INPUT or ST_LIMIT with a diagnostic, one of the DG_VENDOR_…; the hint of a failure has the
 * end of the log. */
MUST_USE enum status vendor_compile(struct arena *a, const struct vendor_request *rq, struct diags *ds,
                                    struct vendor_result *out);

#endif
