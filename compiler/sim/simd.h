/* simd: rows of f32 as vectors of 16, which GCC and Clang map to what the machine has. */
#ifndef SIM_SIMD_H
#define SIM_SIMD_H

#include <stdint.h>

#include "base/per_machine.h"

enum { SIM_LANES = 16 };

typedef float sim_lanes __attribute__((vector_size(SIM_LANES * sizeof(float)), aligned(4), may_alias));
typedef int32_t sim_ints __attribute__((vector_size(SIM_LANES * sizeof(int32_t)), aligned(4), may_alias));

/* Before a loop in which what is written is read, if at all, as the same element. */
#ifdef __clang__
#define SIM_EACH_ALONE
#else
#define SIM_EACH_ALONE _Pragma("GCC ivdep")
#endif
#define SIM_PER_MACHINE_WITH(...) PER_MACHINE_WITH(__VA_ARGS__)
#define SIM_PER_MACHINE PER_MACHINE

#endif
