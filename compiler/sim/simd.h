/* simd: rows of f32 as vectors of 16, which GCC and Clang map to what the machine has. */
#ifndef SIM_SIMD_H
#define SIM_SIMD_H

#include <stdint.h>

enum { SIM_LANES = 16 };

typedef float sim_lanes __attribute__((vector_size(SIM_LANES * sizeof(float)), aligned(4), may_alias));
typedef int32_t sim_ints __attribute__((vector_size(SIM_LANES * sizeof(int32_t)), aligned(4), may_alias));

/* Before a function: a version of it for each kind of machine is compiled, and one is chosen at start-up.  Values are the
 * same in each run on one machine.  With a sanitizer the choice would be made before its runtime is ready. */
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(__SANITIZE_ADDRESS__)
#define SIM_PER_MACHINE_WITH(...) \
  __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default"), optimize(__VA_ARGS__)))
#else
#define SIM_PER_MACHINE_WITH(...)
#endif
/* Before a loop in which what is written is read, if at all, as the same element. */
#ifdef __clang__
#define SIM_EACH_ALONE
#else
#define SIM_EACH_ALONE _Pragma("GCC ivdep")
#endif
#define SIM_PER_MACHINE SIM_PER_MACHINE_WITH("O3", "no-math-errno", "no-trapping-math")

#endif
