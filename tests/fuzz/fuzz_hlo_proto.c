/* HloModuleProto: what is read verifies, comes through every pass, and can be written and read again. */
#include <string.h>

#include "fuzz_hlo.h"
#include "hlo/passes.h"
#include "hlo/read.h"

static struct hlo_module *read(struct arena *a, const void *data, size_t len) {
  struct diags ds;
  diags_init(&ds, a);
  struct hlo_module *m = hlo_read_proto(a, data, len, &ds);
  FUZZ_CHECK(m || ds.has_error);
  return m;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  struct arena a;
  arena_init(&a);
  struct hlo_module *m = read(&a, data, size);
  if (m) {
    struct buf b;
    buf_init(&b, 64 << 20);
    FUZZ_CHECK(hlo_write_proto(m, &b) == ST_OK);
    FUZZ_CHECK(read(&a, buf_text(&b), b.len));
    buf_clear(&b);
    const char *text = print_hlo(&a, m);
    for (int k = 0; k < hlo_n_passes; k++) {
      struct diags ds;
      struct hlo_pass_result r = {.ds = &ds};
      diags_init(&ds, &a);
      hlo_stage_mark(m);
      hlo_passes[k].fn(m, &r);
      FUZZ_CHECK(hlo_verify(m, &ds) == ST_OK);
      const char *after = print_hlo(&a, m);
      FUZZ_CHECK(r.changed || !strcmp(text, after)); /* a stage that is said to be the same is not looked at */
      text = after;
    }
  }
  arena_clear(&a);
  return 0;
}
