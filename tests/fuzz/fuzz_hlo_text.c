/* HLO text: what is read verifies, and its print reads back and prints the same. */
#include <string.h>

#include "fuzz.h"
#include "hlo/print.h"
#include "hlo/read.h"

static char *print(struct arena *a, const struct hlo_module *m) {
  struct buf b;
  buf_init(&b, 64 << 20);
  FUZZ_CHECK(hlo_print(m, &(struct hlo_print_options){0}, &b, a, NULL) == ST_OK);
  char *text = arena_strndup(a, buf_text(&b), b.len);
  buf_clear(&b);
  return text;
}

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
    const char *text = print(&a, m);
    struct hlo_module *again = read(&a, text, strlen(text));
    FUZZ_CHECK(again);
    FUZZ_CHECK(!strcmp(print(&a, again), text));
  }
  arena_clear(&a);
  return 0;
}
