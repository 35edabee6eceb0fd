/* The request of POST /api/v1/compile: whatever is accepted reads back, once written, as the same job. */
#include <string.h>

#include "driver/job.h"
#include "fuzz.h"

static void check_round_trip(const struct job *j) {
  struct arena a;
  struct job again;
  struct error err;
  char key[JOB_KEY_SIZE], key_again[JOB_KEY_SIZE];
  size_t len, len_again;

  arena_init(&a);
  char *text = job_dump(j, &len);
  FUZZ_CHECK(text);
  FUZZ_CHECK(job_parse(&a, text, len, &again, &err) == ST_OK);
  char *text_again = job_dump(&again, &len_again);
  FUZZ_CHECK(text_again && len == len_again && !memcmp(text, text_again, len));
  job_key(text, len, key);
  job_key(text_again, len_again, key_again);
  FUZZ_CHECK(!strcmp(key, key_again) && strlen(key) == JOB_KEY_SIZE - 1);
  free(text);
  free(text_again);
  arena_clear(&a);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  struct arena a;
  struct job job;
  struct error err = {0};

  arena_init(&a);
  enum status st = job_parse(&a, (const char *)data, size, &job, &err);
  if (!st)
    check_round_trip(&job);
  else
    FUZZ_CHECK((st == ST_INPUT || st == ST_LIMIT) && err.text[0]);
  arena_clear(&a);
  return 0;
}
