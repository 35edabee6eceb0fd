/* config: the server's flags and variables (NKX_…) as one constant struct.  A flag wins over a variable, that over the
 * default.  The list is in config.c; config_help says it to the user. */
#ifndef CONFIG_H
#define CONFIG_H

#include "base/arena.h"
#include "base/error.h"
#include "http/address.h"
#include "jail/limits.h"
#include "job/quota.h"

struct config {
  const char *host, *port;
  int workers;   /* jobs that run at once */
  int queue_max; /* jobs that may wait */
  int wait_timeout_ms, job_timeout_ms, drain_timeout_ms;
  struct jail_limits limits;
  int zygote_jobs, zygote_minutes;         /* after which a zygote is replaced */
  const char *jail_min;                    /* the least level: enum jail_level by name */
  const char *jail_without, *jail_failing; /* layers; for tests */
  const char *cgroup_dir;                  /* NULL: find one */
  const char *worker_memory;               /* memory_tricks_find of worker/memory/memory.h reads it */
  int is_confined;                         /* the server gives up what it does not need */
  const char *user;                        /* who it becomes, if it is root; NULL: jail/confine.h finds one */
  int connections_max;
  struct quota_config quota; /* of one client */
  struct address_nets trusted_proxies;
  int proxy_header; /* enum address_header: how they say whom they ask for */
  int header_timeout_ms, body_timeout_ms, answer_timeout_ms, idle_timeout_ms;
  const char *data_dir;                /* created if it is not there */
  const char *store;                   /* "sqlite:PATH" or "postgresql://…" */
  int cache_mib, cache_s, results_mib; /* compiled results: in memory, in the store */
  const char *worker_path;             /* nkx-worker, beside this program */
  const char *web_dir, *examples_dir;
  const char *python_dir, *site_dir; /* NULL: the worker's defaults */
  int log_format, log_level;         /* of base/log.h */
  int log_requests;
};

extern const char config_help[];

/* argv after "serve"; env as in environ, or NULL.  Both must outlive *out.  ST_INPUT with a text that names the flag or
 * the variable and what it takes. */
MUST_USE enum status config_parse(struct arena *a, int argc, char **argv, char *const *env, struct config *out,
                                  struct error *err);

/* Logs the variables named like ours that are no settings: they may be meant for something else, so they are only told.
 * Apart from config_parse, as the log's format is a setting. */
void config_warn_unknown(char *const *env);

/* The directory this program lies in. */
MUST_USE enum status config_program_dir(struct arena *a, const char **out, struct error *err);

#endif
