/* A link of Compiler Explorer's: the base64 behind /clientstate/.  It opens or is refused; nothing else happens. */
#include <string.h>

#include "base/buf.h"
#include "fuzz.h"
#include "serving.h"

enum { LINE_MAX_BYTES = 16 << 10 };

/* Inputs are the state itself; every other one is sent as it is, as if it were base64 already. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
  struct buf b;

  if (size < 1 || size > LINE_MAX_BYTES / 2)
    return 0;
  buf_init(&b, 2 * LINE_MAX_BYTES);
  buf_puts(&b, "GET /clientstate/");
  if (data[0] & 1) {
    buf_append(&b, data + 1, size - 1);
  } else {
    for (size_t i = 1; i < size; i += 3) {
      uint32_t v =
          (uint32_t)data[i] << 16 | (i + 1 < size ? (uint32_t)data[i + 1] << 8 : 0) | (i + 2 < size ? data[i + 2] : 0);
      for (size_t k = 0; k < (size - i < 3 ? size - i + 1 : 4); k++)
        buf_putc(&b, digits[v >> (18 - 6 * k) & 63]);
    }
  }
  buf_puts(&b, " HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  FUZZ_CHECK(buf_status(&b) == ST_OK);
  serving_status(serving_say(b.data, b.len, NULL));
  buf_clear(&b);
  return 0;
}
