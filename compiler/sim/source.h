/* source: what each lane of a timeline executes, item by item.
 *
 * The lanes of a program with streams are these, and each has a cursor.  For a program without streams the source walks the
 * one sequence, deals its instructions out to the lanes of an ideal machine, and finds out what each must wait for: each
 * instruction counts as one signal of its lane.  A program of two cores without engine programs has such lanes for each.
 */
#ifndef SIM_SOURCE_H
#define SIM_SOURCE_H

#include "base/clock.h"
#include "sim/cursor.h"
#include "sim/lane.h"

struct sim_source;

/* An ideal schedule deals out at most items_max instructions, until the limit.  NULL with a fault if the
 * program's own code cannot run. */
struct sim_source *sim_source_new(const struct sim_program *p, const struct sim_record *record, int items_max,
                                  const struct time_limit *limit, struct arena *a, int *n_assumed,
                                  struct sim_fault *fault);
const struct sim_lane *sim_source_lanes(const struct sim_source *s, int *n);
/* The next item of a lane; SIM_ITEM_END again and again after the last one.  A queue's items are its transfers. */
MUST_USE bool sim_source_next(struct sim_source *s, int lane, struct sim_item *item, struct sim_fault *fault);
/* True if an instruction raises the semaphore of its lane. */
bool sim_source_signals(const struct sim_source *s, int instr);
/* The copies of a buffer. */
int64_t sim_source_copies(const struct sim_program *p, int buffer);

#endif
