/* link: addresses that open the explorer's page with a kernel, without storing anything.
 *
 * The kernel is in the fragment, which a browser does not send: web/src/state/fragment.ts reads it.
 */
#ifndef DRIVER_LINK_H
#define DRIVER_LINK_H

#include "base/buf.h"
#include "base/error.h"
#include "driver/job.h"

/* What the page shows of the kernel; members may be NULL. */
struct link_view {
  const char *stage, *kernel; /* names */
  const char *selection;      /* "10:9-10:24", a range of the source */
};

/* Appends an address of the page at `base`, such as http://localhost:10240.  ST_LIMIT, ST_NOMEM. */
MUST_USE enum status link_put(struct buf *out, const char *base, const struct job *job, const struct link_view *view,
                              struct error *err);

#endif
