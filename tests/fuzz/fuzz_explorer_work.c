/* What a worker sends, line by line: the result made of it is JSON, and its frames load again to the same result. */
#include <string.h>

#include <jansson.h>

#include "fuzz.h"
#include "work/work.h"

static const char key[JOB_KEY_SIZE] = "0000000000000000000000000000000000000000000000000000000000000000";

/* True once the last frame came. */
static bool add_lines(struct work *w, const char *at, size_t left) {
  bool is_end = false;
  struct error err;
  while (left && !is_end) {
    const char *newline = memchr(at, '\n', left);
    size_t n = newline ? (size_t)(newline - at) : left;
    if (work_add_frame(w, at, n, &is_end, &err))
      return false;
    at += newline ? n + 1 : n;
    left -= newline ? n + 1 : n;
  }
  return is_end;
}

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

static void check_result(struct work *w, bool is_whole) {
  size_t len, frames_len;
  char *result = work_result(w, &len), *frames = work_frames(w, &frames_len);
  FUZZ_CHECK(result && frames);
  json_error_t jerr;
  json_t *parsed = json_loadb(result, len, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &jerr);
  FUZZ_CHECK(parsed || json_error_code(&jerr) == json_error_numeric_overflow);
  json_decref(parsed);
  if (is_whole)
    check_loads(frames, frames_len, result, len);
  free(frames);
  free(result);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  struct job job;
  job_init(&job);
  job.source = "";
  struct work *w = work_new(&job);
  FUZZ_CHECK(w);
  work_begin(w);
  bool is_whole = add_lines(w, (const char *)data, size);
  if (!is_whole)
    work_fail(w, DG_WORKER_DIED, "died", NULL);
  FUZZ_CHECK(work_look(w, NULL, NULL) == WORK_ENDED);
  check_result(w, is_whole);
  work_unref(w);
  return 0;
}
