/* The body of POST /api/v1/snippets: its own fields and the request in it.  Nothing can be compiled here, so whatever is
 * right is refused as busy and whatever is wrong by name; nothing else. */
#include "fuzz.h"
#include "serving.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  int status = serving_post("/api/v1/snippets", data, size);
  FUZZ_CHECK(status == 400 || status == 413 || status == 422 || status == 503);
  return 0;
}
