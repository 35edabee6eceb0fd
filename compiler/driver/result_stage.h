/* result_stage: parts of a result object of the API (gather.h), as they are named from outside. */
#ifndef DRIVER_RESULT_STAGE_H
#define DRIVER_RESULT_STAGE_H

#include <stddef.h>

struct json_t;

/* Returns the stage with this key of a kernel: its name, "cse:2" for the second of that name, or its number, from 0, in digits.
 * NULL: there is none. */
const struct json_t *result_stage(const struct json_t *result, int kernel, const char *key);
/* Returns the number of the kernel with this name, or this number in digits; -1: there is none. */
int result_kernel(const struct json_t *result, const char *name);
/* Returns the text of a line, from 1, of a stage, without the spaces before it; "" with len 0: there is none. */
const char *result_line(const struct json_t *stage, int line, size_t *len);
/* Returns place number i, from 0, of the source of a line, or of a remark, of the result's stages, as an array of frames.h; NULL: it
 * has no more.  *file: its file's name. */
const struct json_t *result_place(const struct json_t *result, const struct json_t *line, size_t i, const char **file);

#endif
