/* What the targets share that take a worker's frames.  A work refuses the start of another job, and its key depends on the compiler's
 * version: so inputs have a key of zeros, in whose place the work's own is put. */
#ifndef FUZZ_FUZZ_FRAMES_H
#define FUZZ_FUZZ_FRAMES_H

#include <string.h>

#include <jansson.h>

#include "fuzz.h"
#include "work/work.h"

/* A copy of the input, with a NUL after it; the caller frees it. */
static inline char *frames_of(const struct work *w, const void *data, size_t size) {
  static const char zeros[] = "\"0000000000000000000000000000000000000000000000000000000000000000\"";
  const size_t n = sizeof zeros - 1;
  char *text = malloc(size + 1);
  FUZZ_CHECK(text && strlen(work_key(w)) == n - 2);
  memcpy(text, data, size);
  text[size] = 0;
  char *at = memmem(text, size, zeros, n);
  if (at)
    memcpy(at + 1, work_key(w), n - 2);
  return text;
}

/* Gives all lines to the work until one is refused; true once the last frame came. */
static inline bool frames_add(struct work *w, const char *at, size_t left) {
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

/* A work that has taken these frames, or failed; the caller drops it, and frees *text, the frames.  *is_whole: the last one came. */
static inline struct work *worked(const void *data, size_t size, char **text, bool *is_whole) {
  struct job job;
  job_init(&job);
  job.source = "";
  struct work *w = work_new(&job);
  FUZZ_CHECK(w);
  *text = frames_of(w, data, size);
  work_begin(w);
  *is_whole = frames_add(w, *text, size);
  if (!*is_whole)
    work_fail(w, DG_WORKER_DIED, "died", NULL);
  return w;
}

/* True if no object has a member twice; an object within a frame may, which is its author's own. */
static inline bool frames_have_no_twins(const char *at, size_t left) {
  bool ok = true;
  while (left && ok) {
    const char *newline = memchr(at, '\n', left);
    size_t n = newline ? (size_t)(newline - at) : left;
    json_error_t err;
    json_t *v = json_loadb(at, n, JSON_REJECT_DUPLICATES, &err);
    ok = v || json_error_code(&err) != json_error_duplicate_key;
    json_decref(v);
    at += newline ? n + 1 : n;
    left -= newline ? n + 1 : n;
  }
  return ok;
}

static inline void check_json(const char *text, size_t len, bool allows_twins) {
  json_error_t err;
  json_t *v = json_loadb(text, len, JSON_DECODE_ANY | (allows_twins ? 0 : JSON_REJECT_DUPLICATES), &err);
  if (!v)
    fprintf(stderr, "%s: %.*s\n", err.text, (int)(len < 2000 ? len : 2000), text);
  FUZZ_CHECK(v);
  json_decref(v);
}

#endif
