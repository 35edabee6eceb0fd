/* route: every address of the service; whatever is not here may be a file of the page. */
#ifndef ROUTE_H
#define ROUTE_H

#include "http/route.h"

extern const struct route app_routes[];
extern const int app_n_routes;

#endif
