/* compile: the whole path of one job, reported as frames.
 *
 * A frame is one JSON object on one line.  They go to the sink in this order, as soon as each is known:
 *
 *   {"frame":"start","version":1,"key":"…","language":"nkipy","target":"trn2","pipeline":"…"}
 *   {"frame":"kernel","kernel":0,"name":"…","inputs":[{"name","shape","dtype"}],"outputs":[{…,"alias_of"?}]}
 *   {"frame":"stage","kernel":0,"stage":{ "index","name","pass","phase","dialect","changed","partial"?,"time_us","op_counts",
 *                                          "text","lines","from","remarks"?,"check"? }}
 *   {"frame":"diagnostic","diagnostic":{ "severity","code","message","hint"?,"stage"?,"kernel"?,
 *                                         "range"?:{"file","line","col","end_line","end_col"}, "calls"?:[range…] }}
 *   {"frame":"artifact","artifact":{"name","media_type","size","sha256"},"data":"<base64>"}   (only with
 * options.artifacts)
 *   {"frame":"end","status":"ok"|"error","time_us":N}
 *
 * The result object of the API is the same things gathered (driver/result.h).
 *
 * A kernel that is refused while it is traced has one stage, "trace", with the operations before the refusal; it is
 * partial: true, and the kernel has no outputs.
 *
 * stage.lines[i] belongs to line i+1 of the text: {} or {"op": id, "src": [range…]}; each range has, besides file,
 * line, col, end_line, end_col, "fn" (the function that contains it, if known) and "depth" (0 innermost, 1 its caller,
 * …; a new 0 starts the next place).  stage.from maps an op id (as a string key) to ids of the stage before; ids are
 * unique within one stage of one kernel.  stage.remarks, if the pass made any, are what it decided, in the order in which
 * it did: {"pass", "text", "op"?, "from"?, "src"?: [range…]}, where "op" is the operation of this stage at whose line the
 * remark is read (absent: nothing is left of the one it is about) and "from" the id, in the stage before, of the operation
 * it is about or, if the pass had just made that, of what it was made from.  stage.check =
 * {"status":"pass"|"fail"|"skipped","max_abs_err","max_rel_err","reason"?}.
 */
#ifndef DRIVER_COMPILE_H
#define DRIVER_COMPILE_H

#include "driver/job.h"
#include "ir/ir.h"

/* Called with one frame (no newline).  Any status but ST_OK stops the job and is returned by compile_run. */
typedef enum status (*frame_sink)(void *user, const char *json, size_t len);

enum {
  STAGE_TEXT_MAX = 2 << 20, /* bytes of one stage text; more is cut at a line, with a diagnostic */
  FRAME_MAX = 16 << 20,     /* bytes of one frame: text, escaped, and its maps */
};

/* Runs the job.  ST_OK when every kernel reached the last stage (frame "end" says ok), ST_INPUT when the kernel was
 * refused or a check failed (frames say why, stages reached are out), ST_LIMIT, or what the sink said.  trace_init and
 * ir_init have been called. */
MUST_USE enum status compile_run(struct ir *ir, const struct job *job, frame_sink sink, void *user);

/* The same for one kernel that was traced already: the job's source and inputs are not looked at, and there is no check.
 * The HLO passes change k's module.  Needs no trace_init. */
MUST_USE enum status compile_traced(struct ir *ir, const struct job *job, struct trace_kernel *k, frame_sink sink,
                                    void *user);

/* Describes the stages: a JSON array of {"index","name","pass","phase","dialect","summary"}, heap, caller frees.
 * Needs neither CPython nor MLIR (pipeline_info.c). */
char *pipeline_describe(size_t *len);
/* Version of the pipeline, 12 hex digits: changes whenever a stage's output may change (driver/version.sh). */
const char *pipeline_version(void);
/* The release number, such as "0.2.0": the file VERSION. */
const char *release_version(void);
/* True if `spec` ("name" or "name:N", N-th stage of that name, 1-based) names a stage. */
bool pipeline_has_stage(const char *spec);

#endif
