/* overrides: library functions that this program replaces.  tests/jail/test_overrides.py notices when one of them stops
 * working, or when it is no longer needed.
 *
 * A third one, LLVM's listener for `perf`, is in compiler/driver/check.c, since the terminal's commands need it too.
 */
#include <printf.h>
#include <unistd.h>

#include "pool/wire.h"
#include "worker/worker.h"

/* Replaces glibc's function; the Makefile exports it so that libraries find it first.  libquadmath, which NumPy's linear
 * algebra loads, registers a printf format of its own, and from then on glibc formats all text on a path that is several
 * times slower.  Told that there is no room for a format, libquadmath works without. */
__attribute__((visibility("default"))) int register_printf_type(printf_va_arg_function *take) {
  (void)take;
  return -1;
}

/* std::set_new_handler, under the name that the C++ ABI gives it, because C has no header for it.  C++ calls the handler
 * when `operator new` fails; without one the exception would cross C code and look like a crash. */
typedef void (*new_handler)(void);
new_handler cpp_set_new_handler(new_handler h) __asm__("_ZSt15set_new_handlerPFvvE");

static void out_of_memory(void) {
  _exit(EXIT_OOM);
}

void worker_exit_when_out_of_memory(void) {
  cpp_set_new_handler(out_of_memory);
}
