/* app: the whole service: its parts, in the order in which they need each other. */
#ifndef APP_H
#define APP_H

#include "api/services.h"
#include "jail/confine.h"

struct config;
struct listeners;
struct server;

struct app {
  const struct config *cfg;
  struct confinement confinement; /* what the process gave up */
  struct s3_site *objects;        /* where results are moved to, or NULL */
  struct services services;
  struct server *server; /* NULL until requests are answered */
  struct server *ops;    /* the operations listener's, or NULL */
};

/* Gives up privileges, starts all parts and begins to answer requests.  app is zeroed at first; cfg and app must
 * outlive the service.  launcher_fd and the sockets are the app's from now on.  On failure what was started is to be
 * stopped with app_stop, as after a success. */
MUST_USE enum status app_start(const struct config *cfg, int launcher_fd, const struct listeners *at, struct app *app,
                               struct error *err);
/* Lets requests end as far as the configuration gives them time, and stops all parts. */
void app_stop(struct app *app);

#endif
