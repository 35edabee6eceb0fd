/* config: the server's flags and environment variables (NKX_…) as one constant struct.  A flag has precedence over a
 * variable, and a variable over the default.  The list is in config.c, and for the user in config_help. */
#ifndef CONFIG_H
#define CONFIG_H

#include "api/identity.h"
#include "api/runs.h"
#include "base/arena.h"
#include "base/error.h"
#include "http/server.h"
#include "jail/limits.h"
#include "pool/versions.h"
#include "store/s3.h"
#include "work/quota.h"

/* Whether the server gives up the privileges that it does not need. */
enum config_confine { CONFINE_NO, CONFINE_YES, CONFINE_AS_ROOT /* also if it must stay root then */ };

struct config {
  struct http_config http;
  int workers;   /* jobs that run at once */
  int queue_max; /* jobs that may wait */
  int wait_timeout_ms, job_timeout_ms, drain_timeout_ms;
  struct jail_limits limits;
  int zygote_jobs, zygote_minutes;         /* after which a zygote is replaced */
  const char *jail_min;                    /* the least level of the jail, by name (jail/layer.h) */
  const char *jail_without, *jail_failing; /* layers to leave out, or to let fail; for tests */
  const char *cgroup_dir;                  /* NULL: find one */
  const char *worker_memory;               /* memory_tricks_find of worker/memory/memory.h reads it */
  int confine;                             /* enum config_confine */
  const char *user;                    /* the user that a server started by root becomes; NULL: see jail/confine.h */
  struct quota_config quota;           /* of one client */
  struct runs_config runs;             /* on Neuron hosts */
  const char *neuronx_cc;              /* the vendor's compiler; NULL, "auto": the one in PATH; "none" (own_runner.h) */
  int cc_s, cc_memory_mib;             /* its limits */
  const char *cc_cache;                /* where what it made is kept; NULL: beside the data directory; "none" */
  int cc_cache_mib;                    /* and how much of it */
  struct identity_config identity;     /* who may do what */
  const char *data_dir;                /* created if it does not exist */
  const char *store;                   /* "sqlite:PATH" or "postgresql://…" */
  int cache_mib, cache_s, results_mib; /* compiled results: in memory, in the store */
  struct s3_config s3;                 /* where results are moved to */
  int store_max_mib;                   /* the store's ceiling, 0: none */
  int session_idle_s;                  /* a session without anyone for so long becomes a link */
  const char *worker_path;             /* nkx-worker, beside this program */
  const char *examples_dir;
  const char *python_dir, *site_dir; /* NULL: the worker's defaults */
  struct versions versions;          /* of the compiler: today's, with the paths above, and --worker-version */
  const char *report_url;            /* where users report links; NULL: nowhere */
  int log_format, log_level;         /* of base/log.h */
};

extern const char config_help[];

/* argv: what follows "serve"; env as in environ, or NULL.  Both must outlive *out.  ST_INPUT with a text that names the
 * flag or variable and says what it takes. */
MUST_USE enum status config_parse(struct arena *a, int argc, char **argv, char *const *env, struct config *out,
                                  struct error *err);

/* Logs a warning for each variable that is named like ours but is no setting; it may be meant for something else.  Not
 * a part of config_parse, because the log's format is a setting. */
void config_warn_unknown(char *const *env);

/* The path of the SQLite file; NULL if the store is another database. */
const char *config_sqlite_path(const struct config *cfg);

/* The directory of this program. */
MUST_USE enum status config_program_dir(struct arena *a, const char **out, struct error *err);

#endif
