/* per_machine: functions that are compiled for each kind of machine. */
#ifndef BASE_PER_MACHINE_H
#define BASE_PER_MACHINE_H

/* Before a function: a version of it for each kind of machine is compiled, and one is chosen at start-up.  Values are the
 * same in each run on one machine.  With a sanitizer the choice would be made before its runtime is ready. */
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(__SANITIZE_ADDRESS__)
#define PER_MACHINE_WITH(...) \
  __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default"), optimize(__VA_ARGS__)))
#else
#define PER_MACHINE_WITH(...)
#endif
#define PER_MACHINE PER_MACHINE_WITH("O3", "no-math-errno", "no-trapping-math")

#endif
