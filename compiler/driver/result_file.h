/* result_file: the result object of the API, written to a file from a job's frames. */
#ifndef DRIVER_RESULT_FILE_H
#define DRIVER_RESULT_FILE_H

#include "base/buf.h"
#include "driver/gather.h"

struct result_file {
  struct buf frames;    /* each on its own line */
  struct gather gather; /* their places */
};

void result_file_init(struct result_file *r);
void result_file_clear(struct result_file *r);
/* Keeps a frame that this process made.  ST_LIMIT if there are too many. */
MUST_USE enum status result_file_add(struct result_file *r, const char *json, size_t len, struct error *err);
/* The same for one that was scanned already. */
MUST_USE enum status result_file_keep(struct result_file *r, const struct frame *f, const char *json, size_t len,
                                      struct error *err);
struct json_t;
/* Returns the object, which the caller releases.  ST_LIMIT or ST_NOMEM. */
MUST_USE enum status result_file_parse(const struct result_file *r, struct json_t **out, struct error *err);
/* Writes the object to the file, "-": to standard output.  A failure is described in err. */
MUST_USE enum status result_file_write(const struct result_file *r, const char *path, struct error *err);
/* The error of a file that could not be opened to be written, from errno. */
enum status result_file_refuse_path(const char *path, struct error *err);

#endif
