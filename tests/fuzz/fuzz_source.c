/* Python source before CPython sees it: what is let through is UTF-8 without NUL, what is not has a diagnostic. */
#include <string.h>

#include "fuzz.h"
#include "trace/program.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  struct arena a;
  struct diags ds;
  enum status st = ST_OK;
  struct trace_request rq = {.filename = "k.py"};

  arena_init(&a);
  diags_init(&ds, &a);
  rq.source = arena_strndup(&a, (const char *)data, size);
  rq.source_len = size;
  bool is_fine = precheck_source(&rq, &ds, &a, &st);
  if (is_fine)
    FUZZ_CHECK(!ds.has_error && strlen(rq.source) == size);
  else
    FUZZ_CHECK(ds.has_error && ds.v[0].message[0] && (st == ST_INPUT || st == ST_LIMIT));
  arena_clear(&a);
  return 0;
}
