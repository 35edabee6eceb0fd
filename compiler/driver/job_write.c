/* job_write: compile requests as JSON, and the key of a request's result. */
#include "driver/job_internal.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/evp.h>
#include <openssl/sha.h>

#include "driver/pipeline.h"

static json_t *input_json(const struct job_input *in) {
  struct job_writer w = {.object = json_object()};
  json_t *dims = json_array();
  assert(in->rank >= 0 && in->rank <= JOB_RANK_MAX);
  for (int i = 0; i < in->rank; i++)
    w.failed |= json_array_append_new(dims, json_integer(in->dims[i])) != 0;
  if (in->name)
    job_put(&w, "name", json_string(in->name));
  job_put(&w, "shape", dims);
  job_put(&w, "dtype", json_string(dtype_numpy_name(in->dtype)));
  return job_written(&w);
}

/* Returns an array, or NULL when out of memory. */
static json_t *inputs_json(const struct job *j) {
  json_t *inputs = json_array();
  bool failed = !inputs;
  for (int i = 0; i < j->n_inputs; i++)
    failed |= json_array_append_new(inputs, input_json(&j->inputs[i])) != 0;
  if (!failed)
    return inputs;
  json_decref(inputs);
  return NULL;
}

/* Returns an array, or NULL when out of memory. */
static json_t *files_json(const struct job *j) {
  json_t *files = json_array();
  bool failed = !files;
  for (int i = 0; i < j->n_files; i++) {
    struct job_writer w = {.object = json_object()};
    job_put(&w, "name", json_string(j->files[i].name));
    job_put(&w, "source", json_stringn(j->files[i].source, j->files[i].source_len));
    failed |= json_array_append_new(files, job_written(&w)) != 0;
  }
  if (!failed)
    return files;
  json_decref(files);
  return NULL;
}

static json_t *base64_json(const struct job *j) {
  unsigned char *text = malloc((j->source_len + 2) / 3 * 4 + 1);
  if (!text)
    return NULL;
  EVP_EncodeBlock(text, (const unsigned char *)j->source, (int)j->source_len);
  json_t *v = json_string((const char *)text);
  free(text);
  return v;
}

/* Returns an array, or NULL when out of memory. */
static json_t *watches_json(const struct job *j) {
  json_t *watches = json_array();
  bool failed = !watches;
  for (int i = 0; i < j->n_watches; i++) {
    struct job_writer w = {.object = json_object()};
    job_put(&w, "line", json_integer(j->watches[i].line));
    if (j->watches[i].file)
      job_put(&w, "file", json_string(j->watches[i].file));
    if (j->watches[i].operand)
      job_put(&w, "operand", json_string(j->watches[i].operand));
    if (j->watches[i].nth)
      job_put(&w, "nth", json_integer(j->watches[i].nth));
    failed |= json_array_append_new(watches, job_written(&w)) != 0;
  }
  if (!failed)
    return watches;
  json_decref(watches);
  return NULL;
}

static json_t *options_json(const struct job *j) {
  struct job_writer w = {.object = json_object()};
  if (j->stop_after)
    job_put(&w, "stop_after", json_string(j->stop_after));
  job_put(&w, "check", json_boolean(j->check));
  job_put(&w, "artifacts", json_boolean(j->artifacts));
  job_put(&w, "simulate", json_boolean(j->simulate));
  if (j->for_device)
    job_put(&w, "for_device", json_true());
  if (j->is_reference)
    job_put(&w, "pipeline", json_string("reference"));
  if (j->n_by_hand)
    job_put(&w, "by_hand", job_by_hand_json(j));
  if (j->patterns)
    job_put(&w, "patterns", json_stringn(j->patterns, j->patterns_len));
  if (j->steps)
    job_put(&w, "steps", json_string(j->steps));
  if (j->steps_from)
    job_put(&w, "steps_from", json_integer(j->steps_from));
  if (j->keep_rounds)
    job_put(&w, "unroll", json_true());
  if (j->constants != JOB_CONSTANTS)
    job_put(&w, "constants", json_integer(j->constants));
  if (j->tune.seconds)
    job_put(&w, "tune", json_pack("{s:i,s:i}", "seconds", j->tune.seconds, "candidates", j->tune.candidates));
  if (j->shrink.is_set)
    job_put(&w, "shrink", json_pack("{s:i}", "from", j->shrink.from));
  if (j->upgrade)
    job_put(&w, "upgrade", json_true());
  if (j->instance >= 0)
    job_put(&w, "instance", json_integer(j->instance));
  if (j->n_watches)
    job_put(&w, "watch", watches_json(j));
  if (j->value.is_set)
    job_put(&w, "value", job_value_json(&j->value));
  if (j->resume.stage)
    job_put(&w, "resume", job_resume_json(&j->resume));
  return job_written(&w);
}

/* Members always have this order, and members with a default are always present (a NEFF has
 * fewer), so equal jobs have equal texts. */
static json_t *job_json(const struct job *j) {
  struct job_writer w = {.object = json_object()};
  if (j->is_binary)
    job_put(&w, "source_base64", base64_json(j));
  else
    job_put(&w, "source", json_stringn(j->source, j->source_len));
  job_put(&w, "filename", json_string(j->filename));
  if (j->n_files)
    job_put(&w, "files", files_json(j));
  job_put(&w, "language", json_string(language_name(j->language)));
  if (j->language != LANG_NEFF)
    job_put(&w, "target", json_string(target_name(j->target)));
  if (j->kernel)
    job_put(&w, "kernel", json_string(j->kernel));
  if (j->n_inputs)
    job_put(&w, "inputs", inputs_json(j));
  if (j->scope)
    job_put(&w, "scope", json_string(j->scope));
  if (j->language != LANG_NEFF)
    job_put(&w, "options", options_json(j));
  return job_written(&w);
}

/* Returns v as text and releases v, which may be NULL. */
static char *dump(json_t *v) {
  char *text = v ? json_dumps(v, JSON_COMPACT) : NULL;
  json_decref(v);
  return text;
}

char *job_dump(const struct job *j, size_t *len) {
  assert(!j->is_binary || j->language == LANG_HLO || j->language == LANG_NEFF);
  char *text = dump(job_json(j));
  *len = text ? strlen(text) : 0;
  return text;
}

char *job_dump_inputs(const struct job *j) {
  return dump(inputs_json(j));
}

char *job_dump_files(const struct job *j) {
  return dump(files_json(j));
}

void job_key(const char *text, size_t len, char key[JOB_KEY_SIZE]) {
  job_key_by(text, len, pipeline_version(), key);
}

void job_key_by(const char *text, size_t len, const char *version, char key[JOB_KEY_SIZE]) {
  unsigned char parts[2][SHA256_DIGEST_LENGTH], digest[SHA256_DIGEST_LENGTH];
  SHA256((const unsigned char *)text, len, parts[0]);
  SHA256((const unsigned char *)version, strlen(version), parts[1]);
  SHA256(parts[0], sizeof parts, digest);
  for (int i = 0; i < SHA256_DIGEST_LENGTH; i++)
    snprintf(key + 2 * i, 3, "%02x", digest[i]);
}
