/* export: an ended work's result in parts and as files. */
#ifndef JOB_EXPORT_H
#define JOB_EXPORT_H

#include "base/buf.h"
#include "job/work.h"

/* Each appends to out, and returns false if there is no such thing or out has no room (buf_status says which). */
bool export_result(struct work *w, struct buf *out);
/* A stage's text alone. */
bool export_stage_text(struct work *w, const struct gather_stage *which, struct buf *out);
/* One file by its name (api/results.h); *type is its media type, and constant. */
bool export_file(struct work *w, const char *name, struct buf *out, const char **type);
/* A gzipped tar of result.json and all files. */
bool export_all(struct work *w, struct buf *out);

#endif
