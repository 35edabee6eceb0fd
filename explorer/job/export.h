/* export: the result of a work that has ended, in parts and as files. */
#ifndef JOB_EXPORT_H
#define JOB_EXPORT_H

#include "base/buf.h"
#include "work/work.h"

/* Each appends to out; false if the result has no such part, or out has no room (buf_status tells which). */
bool export_result(struct work *w, struct buf *out);
/* Appends {"kernels": [one of driver/comparison.h for each kernel that both results have simulated]}; false if there is
 * none. */
bool export_comparison(struct work *a, struct work *b, struct buf *out);
/* A stage's text alone. */
bool export_stage_text(struct work *w, const struct gather_stage *which, struct buf *out);
/* One file by its name (api/results.h); *type is its media type, a constant. */
bool export_file(struct work *w, const char *name, struct buf *out, const char **type);
/* A gzipped tar of result.json and all files. */
bool export_all(struct work *w, struct buf *out);

#endif
