/* A worker's frame: our scanner takes nothing that a JSON parser refuses, and its places are within the text. */
#include <string.h>

#include <jansson.h>

#include "fuzz.h"
#include "driver/frame_scan.h"

static void check_members(const struct frame *f, const char *text, size_t size, const json_t *parsed) {
  FUZZ_CHECK(f->n > 0 && f->n <= FRAME_MEMBERS_MAX);
  FUZZ_CHECK(json_object_size(parsed) == (size_t)f->n);
  for (int i = 0; i < f->n; i++) {
    const struct frame_member *m = &f->members[i];
    FUZZ_CHECK(m->key >= text && m->key + m->key_len <= m->value && m->value + m->value_len <= text + size);
    json_t *value = json_loadb(m->value, m->value_len, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
    FUZZ_CHECK(value);
    json_decref(value);
  }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  const char *text = (const char *)data;
  struct frame f;
  struct error err = {0};

  enum status st = frame_scan(text, size, &f, &err);
  if (st) {
    FUZZ_CHECK(st == ST_INPUT && err.text[0]);
    return 0;
  }
  FUZZ_CHECK(!memchr(text, '\n', size) && !memchr(text, 0, size));
  /* of a member that comes twice jansson keeps one, which check_members would notice */
  json_t *parsed = json_loadb(text, size, JSON_ALLOW_NUL, NULL);
  FUZZ_CHECK(parsed);
  check_members(&f, text, size, parsed);
  json_decref(parsed);
  return 0;
}
