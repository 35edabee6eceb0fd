/* frames: the first frame of whatever has frames. */
#include "driver/frames.h"

#include "base/json.h"

void frames_put_start(struct buf *b, const char *key, const char *language, const char *target, const char *pipeline) {
  buf_puts(b, "{\"frame\":\"start\",\"version\":1");
  json_put_field_str(b, "key", key);
  json_put_field_str(b, "language", language);
  json_put_field_str(b, "target", target);
  json_put_field_str(b, "pipeline", pipeline);
  buf_putc(b, '}');
}
