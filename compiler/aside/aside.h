/* aside: jobs that run beside a program which serves a client, such as an editor.
 *
 * The program starts Python, NumPy and MLIR once.  Each job runs in a fork of it, as in the service (explorer/worker): the output, the
 * crashes and the endless loops of a kernel stay there, and a job is cancelled by killing its process.  There is no jail: a kernel is the
 * user's own.
 */
#ifndef ASIDE_ASIDE_H
#define ASIDE_ASIDE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/arena.h"
#include "driver/job.h"
#include "driver/result_file.h"

struct aside_host; /* opaque: what every job needs */
struct json_t;

/* Starts Python and MLIR; the host lives as long as the process. */
MUST_USE enum status aside_host_start(struct arena *a, struct aside_host **out, struct error *err);

/* One job; starts zeroed. */
struct aside {
  pid_t pid;           /* 0: none runs */
  int fd;              /* its frames; to be polled while pid is set */
  int64_t deadline_ms; /* of clock_now_ms: when it is stopped; 0: never */
  bool is_late;        /* it was */
  bool has_end;        /* its last frame came */
  struct buf line;     /* of the frame that is being read */
  struct result_file file;
};

/* Runs the job in a new process; seconds 0: without a limit.  with_files: also the files beside the kernel, whose name is a path, that
 * it imports.  ST_IO: no process can be started. */
MUST_USE enum status aside_start(struct aside *s, struct aside_host *host, const struct job *job, bool with_files,
                                 int seconds, struct error *err);
/* Milliseconds until the deadline, for poll(); -1: there is none. */
int aside_timeout_ms(const struct aside *s);
/* Reads what there is, and stops a job that is late.  True once it has ended, by itself or not: pid is 0 then. */
bool aside_read(struct aside *s);
/* Stops it, if it runs, and releases everything. */
void aside_clear(struct aside *s);
/* The result object of a job that has ended, which the caller releases.  ST_TIMEOUT: it was stopped; ST_BUG: its process died. */
MUST_USE enum status aside_result(const struct aside *s, struct json_t **out, struct error *err);

#endif
