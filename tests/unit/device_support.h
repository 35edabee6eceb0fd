/* device_support: a simulation package of a kernel, and the library of the tests that runs it as libnrt (tests/neuron/libnrt.c).
 *
 * The package's kernel copies its input x, a tensor of 4 x 8 f32.  In DEVICE_IN_PLACE the result is x itself.
 */
#ifndef UNIT_DEVICE_SUPPORT_H
#define UNIT_DEVICE_SUPPORT_H

#include <dlfcn.h>
#include <limits.h>
#include <unistd.h>

#include "neff/neff.h"

#define MEM "memref<4x8xf32, #nisa.mem<shared_hbm>>"
#define SBUF "memref<4x8xf32, #nisa.mem<sbuf>>"
#define ALL(name, type, base) name "<4| 8>=" type " " base "[d0, d1]"
static const char program[] =
    "module attributes {nisa.target = #nisa.target<\"trn2\">} {\n"
    "func.func @k(%a: " MEM ") -> " MEM " {\n"
    "%r = nisa.alloc : " MEM "\n%s = nisa.alloc : " SBUF "\n"
    "nisa.dma_copy(" ALL("dst", SBUF, "%s") ", " ALL("src", MEM, "%a") ") engine=dma\n"
                                                                       "nisa.dma_copy(" ALL("dst", MEM, "%r") ", " ALL(
                                                                           "src", SBUF, "%s") ") engine=dma\n"
                                                                                              "nisa.release %s : " SBUF
                                                                                              "\nreturn %r : " MEM
                                                                                              "\n}\n}\n";
#define INFO(aliases) "{\"kernel\": \"k\", \"target\": \"trn2\", \"simulation\": true, \"aliases\": [" aliases "]}"
#define GRAPH(output) \
  "{\"nodes\": [{\"op\": \"null\", \"name\": \"x\", \"inputs\": []}, {\"op\": \"NeuronCore\", \"name\": \"sg00\"}," \
  " {\"op\": \"output\", \"name\": \"" output "\"}], \"arg_nodes\": [0], \"heads\": [[2, 0, 0]]," \
  " \"attrs\": {\"shape\": [\"list_shape\", [[4, 8], [], [4, 8]]]," \
  " \"dltype\": [\"list_str\", [\"float32\", \"\", \"float32\"]]}}"
enum device_package { DEVICE_IN_PLACE, DEVICE_OWN_OUTPUT };
static const char *const infos[] = {INFO("{\"output\": \"x\", \"input\": \"x\"}"), INFO("")};
static const char *const graphs[] = {GRAPH("x"), GRAPH("y")};

enum { N = 32, BYTES = 4 * N };

static char library[PATH_MAX + 32];
static int (*live)(void); /* objects that the library has handed out and that were not given back */

static void find_library(void) {
  char exe[PATH_MAX];
  const ssize_t n = readlink("/proc/self/exe", exe, sizeof exe - 1);
  assert_true(n > 0);
  exe[n] = 0;
  *strrchr(exe, '/') = 0;
  snprintf(library, sizeof library, "%s/neuron/libnrt.so.1", exe);
  void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
  void *f = handle ? dlsym(handle, "nkx_stand_in_live") : NULL;
  if (!f)
    fail_msg("%s", dlerror());
  memcpy(&live, &f, sizeof live);
}

static void make_package(enum device_package which, struct buf *out) {
  struct error err;
  struct arena a;
  struct neff x = {.header = {.package_version = 2, .features = NEFF_FEATURE_SIMULATION}};
  arena_init(&a);
  buf_init(out, 1 << 20);
  neff_add(&a, &x, "info.json", infos[which], strlen(infos[which]));
  neff_add(&a, &x, "neff.json", graphs[which], strlen(graphs[which]));
  neff_add(&a, &x, "program.mlir", program, sizeof program - 1);
  assert_int_equal(neff_write(&x, out, &err), ST_OK);
  arena_clear(&a);
}

#endif
