/* What the files of an answer to a compile share.
 *
 *   reply.c           frames, and the answer as a whole
 *   reply_messages.c  diagnostics as lines of output
 *   reply_stages.c    stages as listings, passes and remarks
 *   reply_check.c     the numeric check as an execution's output
 *   reply_run.c       the simulated run as an execution's output
 */
#ifndef CE_REPLY_H
#define CE_REPLY_H

#include <stdbool.h>
#include <stddef.h>

#include "ce/internal.h"
#include "driver/gather.h"
#include "driver/source_table.h"

/* One stage, not parsed yet. */
struct piece {
  int kernel, nth; /* the nth stage of that kernel, from 0 */
};

struct reply {
  const struct ce_ask *ask;
  struct work *work; /* borrowed; NULL: there is none, and no stage */
  struct piece *stages;
  int n_stages, n_kernels;
  int n_of_kernel[GATHER_KERNELS_MAX]; /* stages */
  json_t *names;                       /* of the kernels */
  json_t *kernels;                     /* their frames */
  struct source_table sources;
  json_t *parsed; /* by index: the stages that were parsed, null for the others */
  json_t *out_lines, *err_lines;
  json_t *run_lines; /* of the simulated run */
  bool is_ok, build_failed, check_failed, hit_limit, is_ours, is_cut;
  long time_ms;
};

/* reply_messages.c */
/* The string member, "" if there is none. */
const char *reply_string(const json_t *o, const char *key);
bool reply_is_users(const json_t *range); /* a place in the user's own source */
json_int_t reply_at_least_one(const json_t *v);
/* Append lines: {"text"} each. */
void reply_add_line(json_t *to, const char *text, size_t len);
void reply_add_lines(json_t *to, const char *text, size_t len); /* each line of the text */
void reply_add_formatted(json_t *to, const char *fmt, ...) PRINTF(2, 3);
void reply_add_error(json_t *to, const char *text);
void reply_add_diagnostic(struct reply *r, const json_t *d);

/* reply_stages.c */
/* The stage as JSON, parsed once; borrowed. */
const json_t *reply_stage(struct reply *r, int i);
const char *reply_kernel_name(const struct reply *r, int k);
/* Sets the members asm, labelDefinitions and asmSize. */
void reply_put_asm(struct reply *r, json_t *out);
json_t *reply_pipeline(struct reply *r);
json_t *reply_ir(struct reply *r);
json_t *reply_remarks(struct reply *r);

/* reply_check.c: shapes, and how far each stage is from NumPy, as lines. */
json_t *reply_numerics(struct reply *r);

/* reply_run.c: add the simulation of a kernel, and the text of its profile, to the lines of the run. */
void reply_take_simulation(struct reply *r, int kernel, const json_t *simulation);
void reply_take_profile(struct reply *r, const json_t *text);

#endif
