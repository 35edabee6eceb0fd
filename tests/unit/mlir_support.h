/* mlir_support: MLIR started once for a group of tests: cmocka_run_group_tests(tests, start_mlir, stop_mlir). */
#ifndef MLIR_SUPPORT_H
#define MLIR_SUPPORT_H

#include "ir/ir.h"

static struct ir ir;

static inline int start_mlir(void **state) {
  struct error err;
  (void)state;
  return ir_init(&ir, &err) ? -1 : 0;
}

static inline int stop_mlir(void **state) {
  (void)state;
  ir_clear(&ir);
  return 0;
}

#endif
