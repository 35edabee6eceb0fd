/* app: everything that serves requests, short of the HTTP server itself. */
#ifndef APP_H
#define APP_H

#include "http/http.h"

/* Fills *app, which is zeroed but for its confinement, in the order in which the parts need each other; cfg must outlive it.  On failure the
 * parts that were started are there, to be stopped as after a success.  launcher_fd is the pool's from now on. */
MUST_USE enum status app_start(const struct config *cfg, int launcher_fd, struct app *app, struct error *err);

#endif
