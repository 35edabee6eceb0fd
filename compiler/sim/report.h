/* report: a profile as JSON and as text; its timeline as a trace and as columns.
 *
 * Times in JSON are microseconds with six digits after the point, so that they are exact.  A place is {"file", "line",
 * "col", "end_line", "end_col"}.
 *
 *     {"target", "total_us", "launch_us": expected latency of a launch besides, "ideal": the program has no streams,
 *      "assumed_branches", "executions", "bound": "memory" | "compute" | "vector" | … | "latency",
 *      "lanes": [{"name", "engine", "core"?, "busy_us", "share", "executions", "bytes"?, "waits_us": {"data": …}}],
 *      "path": {"waits_us": {"work": …, "data": …}, "low_confidence_us",
 *               "parts": [{"lane", "instr", "line"?, "what", "for", "from_us", "to_us", "place"?}]}     at most 200, the longest
 *      "lines": [{"file", "line", "executions", "bytes", "operations", "busy_us": {"vector": …}, "critical_us", "share"}],
 *      "advice": [{"text", "cost_us", "confidence": "high" | "medium" | "low", "place"?}],
 *      "memory": {"sbuf": {"capacity", "peak", "peak_us", "alive": [{"buffer", "line"?, "bytes", "place"?, "at"?}],
 *                          "buffers": [{"line"?, "bytes", "partitions", "first_partition"?, "copies"?, "place"?}],
 *                          "n_lives", "lives": [[number in buffers, from us, to us, byte; -1: not placed]], at most 2,048, the largest,
 *                          "points": [[us, bytes, [8 parts]]]}, "psum": …}, "core1_memory"?: the same of core 1,
 *      "dma": {"bytes", "hbm_read", "hbm_written", "gb_s", "peak_gb_s", "engines_share"},
 *      "roofline": {"operations", "bytes", "intensity", "attained_gflops", "peak_gflops", "peak_gb_s", "knee"},
 *      "tensor": {"operations", "half_clock_us", "share_of_peak"}}
 */
#ifndef SIM_REPORT_H
#define SIM_REPORT_H

#include "base/buf.h"
#include "sim/profile.h"

/* Lines of the text that the user sees, from 1; 0: not known.  NULL: of none. */
struct sim_report_lines {
  const int *instrs, *buffers; /* of each instruction and each buffer of the program */
};

/* Each appends to out and returns its status: ST_LIMIT when its ceiling is reached. */
/* lines may be NULL. */
MUST_USE enum status sim_report_json(const struct sim_profile *p, const struct sim_report_lines *lines,
                                     struct buf *out);
/* The timeline as a trace that ui.perfetto.dev and chrome://tracing open: a track per engine and queue, counters for SBUF,
 * PSUM and DMA, and arrows along the critical path. */
MUST_USE enum status sim_report_trace(const struct sim_profile *p, struct buf *out);
/* The same executions in a compact form, which a page draws from:
 *
 *     {"version": 1, "target", "total_ps", "n", "ideal", "lanes": [{"name", "engine", "on"?, "core"?}],
 *      "instructions": [{"name", "line", "file"?, "src_line"?, "bytes"?, "descriptor_bytes"?, "low"?}],
 *      "tags": [{"name", "reason", "critical"?, "half"?}], "lengths": [ps],
 *      "busy": [[percent of each 256th of the total]],     of each lane
 *      "pages": [{"lane", "from_ps", "to_ps", "instr": [], "gap": [], "length": [], "tag": []}]}
 *
 * A page has up to 2,048 executions of a lane, in the order of their starts.  Of the k-th: `instr` is its instruction minus
 * that of the one before (0 before the first; -1 is none), `gap` its start minus the end of the one before (the first starts
 * at from_ps), `length` and `tag` numbers in those tables.  Transfers overlap, so a gap may be negative.  lines may be
 * NULL. */
MUST_USE enum status sim_report_columns(const struct sim_profile *p, const struct sim_report_lines *lines,
                                        struct buf *out);
/* For a terminal: totals, a bar for each engine and queue, the dearest advice. */
MUST_USE enum status sim_report_text(const struct sim_profile *p, struct buf *out);

#endif
