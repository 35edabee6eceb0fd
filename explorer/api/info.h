/* info: the answers that are the same for the whole life of the server. */
#ifndef API_INFO_H
#define API_INFO_H

#include "http/http.h"

/* Fills app's constant answers; app->cfg is set. */
MUST_USE enum status info_load(struct app *app, struct error *err);
void info_clear(struct app *app);

#endif
