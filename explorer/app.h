/* app: everything that serves requests, short of the HTTP server itself. */
#ifndef APP_H
#define APP_H

#include "http/http.h"

/* Fills *app, which is zeroed, in the order in which the parts need each other; cfg must outlive it.  On failure the
 * parts that were started are there, to be stopped as after a success. */
MUST_USE enum status app_start(const struct config *cfg, struct app *app, struct error *err);

#endif
