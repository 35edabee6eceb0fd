/* What a worker sends, line by line: the result made of it is JSON, and its frames load again to the same result. */
#include "fuzz_frames.h"

static const char key[JOB_KEY_SIZE] = "0000000000000000000000000000000000000000000000000000000000000000";

static void check_loads(const char *frames, size_t len, const char *result, size_t result_len) {
  struct error err;
  size_t n;
  struct work *again = work_new_stored(key);
  FUZZ_CHECK(again);
  FUZZ_CHECK(work_load(again, frames, len, &err) == ST_OK);
  char *text = work_result(again, &n);
  FUZZ_CHECK(text && n == result_len && !memcmp(text, result, n));
  free(text);
  work_unref(again);
}

static void check_result(struct work *w, bool is_whole, bool allows_twins) {
  size_t len, frames_len;
  char *result = work_result(w, &len), *frames = work_frames(w, &frames_len);
  FUZZ_CHECK(result && frames);
  check_json(result, len, allows_twins);
  if (is_whole)
    check_loads(frames, frames_len, result, len);
  free(frames);
  free(result);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  char *text;
  bool is_whole;
  struct work *w = worked(data, size, &text, &is_whole);
  FUZZ_CHECK(work_look(w, NULL, NULL) == WORK_ENDED);
  check_result(w, is_whole, !frames_have_no_twins(text, size));
  free(text);
  work_unref(w);
  return 0;
}
