/* job_internal: what the files that read and write a request share: job.c, job_write.c, job_value.c for the
 * member "value", job_resume.c for "resume", and job_by_hand.c for "by_hand". */
#ifndef DRIVER_JOB_INTERNAL_H
#define DRIVER_JOB_INTERNAL_H

#include <jansson.h>

#include "driver/job.h"

/* Reads a short string without control characters: the name of a file, a kernel, an input or a stage. */
enum status job_read_name(struct arena *a, const json_t *v, const char *field, const char **out, struct error *err);
enum status job_read_value(struct arena *a, const json_t *v, struct job_value *out, struct error *err);
enum status job_read_resume(struct arena *a, const json_t *v, struct job_resume *out, struct error *err);
enum status job_read_by_hand(struct arena *a, const json_t *v, struct job *j, struct error *err);
/* Reads the name or the number of a stage that some pipeline has. */
enum status job_read_stage(struct arena *a, const json_t *v, const char *field, const char **out, struct error *err);

/* An object that is being filled.  If memory runs out, a member is missing, so the whole object is dropped. */
struct job_writer {
  json_t *object;
  bool failed;
};
static inline void job_put(struct job_writer *w, const char *key, json_t *v) {
  w->failed |= json_object_set_new(w->object, key, v) != 0; /* also when either is NULL */
}
/* Returns the object, or NULL if anything failed. */
static inline json_t *job_written(struct job_writer *w) {
  if (!w->failed)
    return w->object;
  json_decref(w->object);
  return NULL;
}

/* NULL when out of memory. */
json_t *job_value_json(const struct job_value *v);
json_t *job_resume_json(const struct job_resume *r);
json_t *job_by_hand_json(const struct job *j);

#endif
