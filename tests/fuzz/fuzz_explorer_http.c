/* What a client may send, byte for byte: the guard, routes and queries, ids, headers, bodies.  Every answer is one of
 * HTTP's, none says that we failed, what says that it is JSON is JSON, and the server is there afterwards. */
#include <string.h>

#include "fuzz.h"
#include "serving.h"

enum { EVERY = 256 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const char healthy[] = "GET /api/v1/targets HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
  static unsigned n;

  serving_status(serving_say(data, size, NULL));
  if (n++ % EVERY == 0)
    FUZZ_CHECK(serving_status(serving_say(healthy, sizeof healthy - 1, NULL)) == 200);
  return 0;
}
