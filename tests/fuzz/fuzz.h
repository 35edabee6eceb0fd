/* fuzz: what every target shares.
 *
 * A target fuzz_NAME.c defines LLVMFuzzerTestOneInput; its seeds and every input that once failed lie in corpus/NAME/,
 * its words in NAME.dict (may be missing).  Beside crashes, leaks and sanitizers' findings, a target checks with
 * FUZZ_CHECK what must hold for every input.  fuzz_*_mlir.c links MLIR, fuzz_explorer_*.c the server; the others link
 * base, hlo, nisa and the job parser only (Makefile, FUZZED_SRC).
 */
#ifndef FUZZ_FUZZ_H
#define FUZZ_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define FUZZ_CHECK(what) \
  do { \
    if (!(what)) { \
      fprintf(stderr, "%s:%d: does not hold: %s\n", __FILE__, __LINE__, #what); \
      abort(); \
    } \
  } while (0)

#endif
