/* frames: the form in which a job's results are reported.
 *
 * A frame is one JSON object on one line.  Frames are sent in this order, each as soon as it is known:
 *
 *   {"frame":"start","version":1,"key":"…","language":"nkipy","target":"trn2","pipeline":"…"}
 *   {"frame":"kernel","kernel":0,"name":"…","pipeline":"hlo"|"nki","inputs":[{"name","shape","dtype"}],"outputs":[{…,"alias_of"?}]}
 *   {"frame":"sources","files":["kernel.py"],"places":[[file,line,col,end_line,end_col,"fn",caller,[place…]?]…],
 *    "sources":[{"places":[place…],"rounds"?:[…],"more_rounds"?:N,"more"?:N}…]}
 *   {"frame":"stage","kernel":0,"stage":{"index","name","pass","phase","dialect","changed","partial"?,
 *                                        "time_us","op_counts","text","lines","from","remarks"?,"grid"?,"check"?}}
 *   {"frame":"simulation","kernel":0,"simulation":{"status",…}}     (with options.simulate, after the kernel's stages)
 *   {"frame":"profile","kernel":0,"profile":{…},"text":"…"}         (after the simulation)
 *   {"frame":"device","kernel":0,"device":{…}}                      (after the profile, if the terminal wants a run on a device)
 *   {"frame":"value","kernel":0,"value":{…}}                       (with "value", instead of stages and their sources)
 *   {"frame":"steps","kernel":0,"steps":{…}}                       (with options.steps, before that stage)
 *   {"frame":"upgrade","upgrade":{"files":[{"name","source","marks":[{"line","reason"}]}]}}   (with "upgrade", instead of kernels)
 *   {"frame":"neff","neff":{…}}                                    (of a NEFF, instead of kernels; neff/inspect.h has the form)
 *   {"frame":"tune","tune":{…}}                                    (with options.tune, instead of kernels)
 *   {"frame":"shrink","shrink":{"candidates":[{"what","request","then"}],"next"?}}   (with options.shrink, instead of kernels; shrink.h)
 *   {"frame":"shrunk","shrunk":{…}}, {"frame":"parting","parting":{…}}   (of a search of the server's, instead of kernels)
 *   {"frame":"diagnostic","diagnostic":{"severity","code","message","hint"?,"stage"?,"kernel"?,
 *                                       "range"?:{"file","line","col","end_line","end_col"},"calls"?:[range…]}}
 *   {"frame":"artifact","artifact":{"name","media_type","what"?,"size","sha256"},"data":"<base64>"}   (with options.artifacts)
 *   {"frame":"end","status":"ok"|"error","time_us":N}
 *
 * frame_scan.h reads a frame; gather.h makes the result object of the API from all frames of a job.
 *
 * A kernel that is refused while it is traced has one stage, "trace", with the operations before the refusal.  That
 * stage has "partial": true, and the kernel has no outputs.
 *
 * Files, places and sources are numbered from 0 through all "sources" frames of a job; such a frame comes before the
 * first stage that refers to its contents, and file 0 is the job's own.  A place is a range in a file, the function
 * that contains it ("" if it is not known), and the place of the call that led there, which has a smaller number (-1:
 * none).  Its last member, if it has one, lists the Python loops of that function that enclose it, the outermost first, as
 * the places of their headers, which have smaller numbers, too.  A source is the list of places that an operation implements:
 * the first 8 at most, and a lower bound of the number of others.
 *
 * source.rounds has an element for each place: null, or the rounds of the loops in which the operation was recorded there,
 * a list of at most 8 boxes.  A box has an element for each loop, first those of the outermost caller, then the place's own:
 * a round, counted from 0, or [first,last].  So [[1,[0,3]]] is round 1 of the outer loop, and 0 to 3 of the inner one.
 * more_rounds is the largest number, for one place, of further rounds that are not in its boxes.
 *
 * stage.lines[i] describes line i+1 of the text: {} or {"op": id, "src"?: source}.  Ids are unique within one stage of one
 * kernel.
 *
 * stage.from maps the id of an operation (as a string key) to the ids of the operations in the previous stage from
 * which it was made.
 *
 * stage.remarks lists the decisions of the pass, in the order in which it made them; the member is absent if there are
 * none. Each is {"pass","text","op"?,"from"?,"src"?: source,"rule","cost"?,"forced"?,"limits"?,"rejected"?,"knob"?}.  "op" is the operation of this stage at whose line the
 * remark is shown; it is absent if the remark's operation no longer exists.  "from" is the id of the remark's
 * operation in the previous stage; if the pass had just created that operation, it is the id of the operation from
 * which it was made.  "rule" is a name of rule.def.  The reasons are (passes/remark.h):
 *   "cost":     what the chosen costs, in the unit of those of the rejected choices
 *   "forced":   why there is no other choice here, though the rule chooses in general
 *   "limits":   [{"name","unit","used","available"}]
 *   "rejected": [{"choice","reason","cost"?,"value"?}]; value is what the knob takes for that choice
 *   "knob":     {"call","argument","value","offers","dims"?}, for the value of the innermost place of src
 *
 * stage.grid is of nki-trace and nki-canonicalize if the kernel is launched with a grid: {"shape","cores","instances":[{"id","lines"?,"same_as"?}]},
 * for each instance its nl.program_id of each axis, and the first and the last line of its calls, from 1.  An instance with
 * the same calls as an earlier one, which run once for both, has the earlier one's number instead.
 *
 * simulation is the run of the kernel's last stage on the simulated machine:
 *   "status": "ok", "fault" (a fault of the program), "limit" (of memory or time), "skipped"
 *   "reason": of "skipped", and of "limit" if nothing was run; then there are no other members
 *   "stage", "time_us" (of this processor), "instructions", "matmuls", "dma_bytes"
 *   "reference"?: "numpy" or "first stage": what the outputs are compared with
 *   "outputs": with "ok", [{"name","shape","dtype","min","max","mean","std","nan","inf","zero","pass"?,
 *              "max_abs_err"?,"max_rel_err"?}]; min, max, mean and std are over finite elements, null if there are none
 *   "fault": with "fault" and "limit", {"kind","message","instruction"?,"engine"?,"line"?,"range"?}, and
 *              of a race "other","other_line"?,"other_range"?
 *   "values"?: for options.watch, [{"line","file"?,"of_source"?,"instruction","operand","at"?,"part"?,"executions","nth", the members
 *              of an output,"histogram"?: {"from","to","counts"},"slice": rows,"parts"?: the same of other instructions,"more"?},
 *              or {"line","reason",…}]
 *
 * profile is the time of that run, in the form of sim/report.h; "text" is a report for a terminal.  It is absent if the time
 * cannot be found; a diagnostic says why.  With options.artifacts the timeline is an artifact, NAME/timeline.json, and another one in
 * columns, NAME/executions.json.
 *
 * device is the run of a NEFF of the kernel on a Neuron device, with the same inputs (device_run.h):
 *   "status": "ok" or "error"; with "error" there is a diagnostic
 *   "library", "version", "stand_in" (true: no device, but the tests' library, which simulates), "cores"?: once it is open
 *   "outputs": with "ok", [{the members of an output of a simulation without errors, "reference"?: {"of": as of the
 *              simulation,"pass","max_abs_err","max_rel_err"},"simulator"?: {the same without "of"}}]
 *   "measured": with "ok", {"executions","first_us","least_us"?,"median_us"?}: of the runtime's call, on the host's clock; least and
 *              median are over those after the first
 *   "simulated_us"?: of the profile
 *
 * value is what one value of one stage holds (value.h), on the inputs of a check:
 *   "stage", "index", "line"?, "op"?, "name"?, "operand"?
 *   "reason": why there is none; then there are no further members
 *   "execution", "executions", the members of an output of a simulation, "unwritten"?, "histogram"?
 *   "slice": {"start": [int], "step": [int], "shape": [int], "data": [elements in row-major order]}, or {"reason"}
 *   "heat"?: of the last two dimensions that are longer than 1, in SBUF and PSUM of the partitions and the last such, {"at": [index of the first element], "row_dim" (-1: one
 *            row), "column_dim", "rows","columns" (at most 128), "row_step","column_step" (elements in a cell),
 *            "means": [of the finite elements of each cell, row by row; null if it has none]}
 *   "reference"?: what the trace has at the same place, {"of": "numpy" | "trace","name","line","pass","max_abs_err",
 *            "max_rel_err","order"?: "transposed","differs"?: {"index": [int],"got","want"}}; absent if there is no one
 *            instruction of the trace that the value stands for
 * With options.artifacts its elements, in row-major order, are the artifact NAME/value.bin, unless they have more than 32 MiB.
 *
 * steps are the rewrites inside one stage (steps.h):
 *   "stage", "index", "pass"
 *   "reason": why there are none; then there are no further members
 *   "how":    "rewrites" of a pass of ours, as it reports them; "operations" of the stage before, as a lowering replaces them;
 *             "again": MLIR's canonicalizer, run again on a copy one rewrite at a time, perhaps in another order, with a last step
 *             "rest" if that comes to another text; "whole": of this pass of MLIR only the text before and after is known
 *   "from":   the number of the first step here, from 0
 *   "begin"?: the text that it changes; absent if there is no step
 *   "steps":  [{"rule","op"?: {"name","id"?,"line"?,"src"?: source},"at"?: line,"diff": {…},"edit": {"line","removed","text"}}]
 *             op is what the rule was tried on, with its id and line in the stage before; at is its line in the text that the step
 *             changes; diff is of the form of POST /api/v1/diff; edit: from this line on, so many lines become the text
 *   "next"?:  the number of the next step, if there may be more than these; 500 steps and 4 MiB are the most
 *
 * upgrade has the job's files in their order, the main one first, rewritten for the newest NKI, and what is left to be done by
 * hand: the lines of the new text, from 1, below whose comment a statement stays as it was.  There is none if a file is no
 * Python; a diagnostic says why.
 *
 * tune is a candidate as it was tried, {"number","knobs","best", and "us","sbuf" (simulated time, the most bytes in a partition) or
 * "refused": true}; number 0 is the kernel as it is.  A knob is {"line","col","end_line","end_col","file","writes"}: what stands
 * there, "…" for the expression, or "pass" in place of a statement.  The last one is {"done": true,"kernel","stopped": "seconds" |
 * "candidates" | "no change is faster","tried","refusals","seconds","start_us","points":[{"us","sbuf","knobs","source"}]}: the
 * candidates that none beats in both time and SBUF, the fastest first, each with the whole text.
 *
 * shrunk is a candidate as it was tried, {"tried","lines","what"?,"is_kept","request"? if it was}; the first, without "what", is the
 * kernel as it is.  The last one is {"done": true,"tried","kept","lines","stopped","code","stage"?,"request"}: the fault, and the
 * members of the request that are others in the small one (shrink.h).
 *
 * parting is how far the comparison of values is, {"stage","line","compared"}.  The last one is {"done": true,"stages","alone","text"?,
 * "values"?,"compared"?,"note"?}: where two results part (parting.h).  A place is {"stage","a"?: {"line","text"},"b"?: the same}; that of
 * values has the first element that differs, too: "index", "value" of a and of b, and "max_abs_err".
 *
 * The stage "vendor-nki" is the kernel as NKI as the vendor's compiler printed it (vendor_stage.h).  It is the last one, is made
 * from the trace, not from the stage before it, and so has no "from".
 *
 * stage.check is {"status":"pass"|"fail"|"skipped","max_abs_err","max_rel_err","reason"?}.
 */
#ifndef DRIVER_FRAMES_H
#define DRIVER_FRAMES_H

#include <stddef.h>

#include "base/buf.h"
#include "base/error.h"

/* Takes one frame, without a newline.  Any status but ST_OK stops the job, and compile_run returns that status. */
typedef enum status (*frame_sink)(void *user, const char *json, size_t len);

/* The limit for one frame in bytes; a reader holds a whole frame: a stage's text and its maps.  A job reaches its
 * limits of time and memory first, unless those were raised. */
enum { FRAME_MAX = 64 << 20 };

/* Appends the start frame. */
void frames_put_start(struct buf *b, const char *key, const char *language, const char *target, const char *pipeline);

#define VALUE_FILE_NAME "value.bin"
enum { VALUE_FILE_MAX = 32 << 20 };

#endif
