/* comparison: two simulated runs side by side, for example of two settings of a knob, two targets or two versions of a
 * kernel.
 *
 * It is made from the results' JSON, so that runs of different jobs can be compared:
 *
 *     {"name", "a_us", "b_us", "ratio": b to a, "lanes": [{"name", "a_us", "b_us"}], "waits": [{"for", "a_us", "b_us"}],
 *      "lines": [{"file", "line", "a_us", "b_us"}], "outputs": [{"name", "a": summary, "b": summary}]}
 *
 * Times of lanes are those in which they are busy; waits and lines are parts of the critical path, lines by the larger
 * change.  A run has 0 for what only the other one has.  A member is absent if one of the runs does not have it.
 */
#ifndef DRIVER_COMPARISON_H
#define DRIVER_COMPARISON_H

#include "base/buf.h"

struct json_t; /* of jansson */

/* Appends the object for kernels a and b of two results, with their members "simulation" and "profile". */
void comparison_put(struct buf *b, const struct json_t *kernel_a, const struct json_t *kernel_b);

#endif
