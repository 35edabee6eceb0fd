/* HLO text: what is read verifies, and its print reads back and prints the same. */
#include <string.h>

#include "fuzz_hlo.h"
#include "hlo/read.h"

static struct hlo_module *read(struct arena *a, const char *text, size_t len) {
  struct diags ds;
  diags_init(&ds, a);
  struct hlo_module *m = hlo_read_text(a, text, len, "m.hlo", &ds);
  FUZZ_CHECK(m || ds.has_error);
  return m;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  struct arena a;
  arena_init(&a);
  struct hlo_module *m = read(&a, (const char *)data, size);
  if (m) {
    const char *text = print_hlo(&a, m);
    struct hlo_module *again = read(&a, text, strlen(text));
    FUZZ_CHECK(again);
    FUZZ_CHECK(!strcmp(print_hlo(&a, again), text));
  }
  arena_clear(&a);
  return 0;
}
