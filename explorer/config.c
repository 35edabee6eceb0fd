#include "config.h"

#include <limits.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "jail/layer.h"

const char config_help[] =
    "usage: nkx serve [flags]\n"
    "  --host HOST            address to listen on (127.0.0.1)\n"
    "  --port PORT            port, 0 for any free one (10240)\n"
    "  --workers N            jobs that run at once (the number of processors)\n"
    "  --queue N              jobs that may wait for a worker (64)\n"
    "  --job-timeout-ms MS    wall time of a job (15000)\n"
    "  --job-cpu-s N          processor time of a job (10)\n"
    "  --job-memory-mib N     address space of a job (2048)\n"
    "  --job-resident-mib N   memory that a job really uses (768)\n"
    "  --zygote-jobs N        jobs after which the workers' origin is replaced (1000)\n"
    "  --zygote-minutes N     … or minutes (60)\n"
    "  --jail-min LEVEL       the least jail in which kernels run: A, B, C or none (C)\n"
    "  --cgroup DIR           a delegated control group for jobs (the one it lies in, if it can)\n"
    "  --jail-without LAYERS  as if the kernel lacked them: mount,landlock (for tests)\n"
    "  --jail-failing LAYERS  as if they failed after the start (for tests)\n"
    "  --connections N        open connections at most (10000)\n"
    "  --data-dir DIR         where the store lies (../data)\n"
    "  --store URL            sqlite:PATH (nkx.sqlite in the data directory) or postgresql://…\n"
    "  --cache-mib N          compiled results kept in memory (128)\n"
    "  --results-mib N        compiled results kept in the store, compressed (1024)\n"
    "  --web-dir DIR          the page's files (../web beside this program)\n"
    "  --examples-dir DIR     the example kernels (../examples)\n"
    "  --worker PATH          the worker program (nkx-worker beside this one)\n"
    "  --python-dir DIR       the kernels' packages (../python)\n"
    "  --site-dir DIR         site-packages with NumPy (where the build found it)\n";

enum flag_kind { FLAG_TEXT, FLAG_INT, FLAG_DIR, FLAG_FILE };

struct flag {
  const char *name;
  enum flag_kind kind;
  size_t offset;
  int least, most; /* FLAG_INT */
};

#define AT(member) offsetof(struct config, member)
static const struct flag flags[] = {
    {"--host", FLAG_TEXT, AT(host), 0, 0},
    {"--port", FLAG_TEXT, AT(port), 0, 0},
    {"--workers", FLAG_INT, AT(workers), 1, 64},
    {"--queue", FLAG_INT, AT(queue_max), 0, 10000},
    {"--job-timeout-ms", FLAG_INT, AT(job_timeout_ms), 100, 600000},
    {"--job-cpu-s", FLAG_INT, AT(limits.cpu_s), 1, 600},
    {"--job-memory-mib", FLAG_INT, AT(limits.memory_mib), 64, 1 << 19},
    {"--job-resident-mib", FLAG_INT, AT(limits.resident_mib), 64, 1 << 19},
    {"--zygote-jobs", FLAG_INT, AT(zygote_jobs), 1, 1 << 30},
    {"--zygote-minutes", FLAG_INT, AT(zygote_minutes), 1, 1 << 20},
    {"--jail-min", FLAG_TEXT, AT(jail_min), 0, 0},
    {"--jail-without", FLAG_TEXT, AT(jail_without), 0, 0},
    {"--jail-failing", FLAG_TEXT, AT(jail_failing), 0, 0},
    {"--cgroup", FLAG_DIR, AT(cgroup_dir), 0, 0},
    {"--connections", FLAG_INT, AT(connections_max), 4, 100000},
    {"--data-dir", FLAG_TEXT, AT(data_dir), 0, 0},
    {"--store", FLAG_TEXT, AT(store), 0, 0},
    {"--cache-mib", FLAG_INT, AT(cache_mib), 1, 1 << 20},
    {"--results-mib", FLAG_INT, AT(results_mib), 1, 1 << 20},
    {"--web-dir", FLAG_DIR, AT(web_dir), 0, 0},
    {"--examples-dir", FLAG_DIR, AT(examples_dir), 0, 0},
    {"--worker", FLAG_FILE, AT(worker_path), 0, 0},
    {"--python-dir", FLAG_DIR, AT(python_dir), 0, 0},
    {"--site-dir", FLAG_DIR, AT(site_dir), 0, 0},
};

enum status config_program_dir(struct arena *a, const char **out, struct error *err) {
  char path[PATH_MAX];
  ssize_t n = readlink("/proc/self/exe", path, sizeof path - 1);
  if (n <= 0)
    return fail(err, ST_BUG, "cannot find this program's own directory: %m");
  path[n] = 0;
  *strrchr(path, '/') = 0;
  *out = arena_strdup(a, path);
  return ST_OK;
}

static enum status parse_int(const struct flag *f, const char *text, int *out, struct error *err) {
  char *end;
  long v = strtol(text, &end, 10);
  if (end == text || *end || v < f->least || v > f->most)
    return fail(err, ST_INPUT, "%s: expected a number from %d to %d, got \"%.40s\"", f->name, f->least, f->most, text);
  *out = (int)v;
  return ST_OK;
}

static enum status parse_path(const struct flag *f, const char *text, enum flag_kind kind, struct error *err) {
  struct stat s;
  if (stat(text, &s))
    return fail(err, ST_INPUT, "%s: %.120s: %m", f->name, text);
  if (kind == FLAG_DIR ? !S_ISDIR(s.st_mode) : !S_ISREG(s.st_mode))
    return fail(err, ST_INPUT, "%s: %.120s is not a %s", f->name, text, kind == FLAG_DIR ? "directory" : "file");
  return ST_OK;
}

static enum status set(const struct flag *f, const char *text, struct config *c, struct error *err) {
  void *at = (char *)c + f->offset;
  enum status st = ST_OK;
  if (f->kind == FLAG_INT)
    return parse_int(f, text, at, err);
  if (f->kind != FLAG_TEXT)
    st = parse_path(f, text, f->kind, err);
  else if (!*text)
    st = fail(err, ST_INPUT, "%s: must not be empty", f->name);
  if (!st)
    *(const char **)at = text;
  return st;
}

static const struct flag *find(const char *name, size_t len) {
  for (size_t i = 0; i < sizeof flags / sizeof *flags; i++)
    if (strlen(flags[i].name) == len && !memcmp(flags[i].name, name, len))
      return &flags[i];
  return NULL;
}

/* --flag value and --flag=value. */
static enum status parse_args(int argc, char **argv, struct config *c, struct error *err) {
  for (int i = 0; i < argc; i++) {
    const char *eq = strchr(argv[i], '=');
    size_t len = eq ? (size_t)(eq - argv[i]) : strlen(argv[i]);
    const struct flag *f = find(argv[i], len);
    if (!f)
      return fail(err, ST_INPUT, "%.60s: there is no such flag; see `nkx serve --help`", argv[i]);
    if (!eq && i + 1 == argc)
      return fail(err, ST_INPUT, "%s: needs a value", f->name);
    enum status st = set(f, eq ? eq + 1 : argv[++i], c, err);
    if (st)
      return st;
  }
  return ST_OK;
}

static enum status check_port(const char *port, struct error *err) {
  char *end;
  long v = strtol(port, &end, 10);
  if (end == port || *end || v < 0 || v > 65535)
    return fail(err, ST_INPUT, "--port: expected a number from 0 to 65535, got \"%.40s\"", port);
  return ST_OK;
}

static enum status check_layers(const char *flag, const char *list, struct error *err) {
  uint32_t bits = 0;
  if (!list || jail_layers_find(list, &bits))
    return ST_OK;
  return fail(err, ST_INPUT, "%s: \"%.60s\" names a layer that there is none of; see `nkx doctor`", flag, list);
}

enum status config_parse(struct arena *a, int argc, char **argv, struct config *out, struct error *err) {
  const char *here;
  long cpus = sysconf(_SC_NPROCESSORS_ONLN);
  enum status st = config_program_dir(a, &here, err);
  if (st)
    return st;
  struct config c = {
      .host = "127.0.0.1",
      .port = "10240",
      .workers = cpus < 1    ? 1
                 : cpus > 64 ? 64
                             : (int)cpus,
      .queue_max = 64,
      .job_timeout_ms = 15000,
      .limits = {JAIL_CPU_S, JAIL_MEMORY_MIB, JAIL_RESIDENT_MIB},
      .zygote_jobs = 1000,
      .zygote_minutes = 60,
      .jail_min = jail_level_name(JAIL_C),
      .connections_max = 10000,
      .data_dir = arena_printf(a, "%s/../data", here),
      .cache_mib = 128,
      .results_mib = 1024,
      .worker_path = arena_printf(a, "%s/nkx-worker", here),
      .web_dir = arena_printf(a, "%s/../web", here),
      .examples_dir = arena_printf(a, "%s/../examples", here),
  };
  st = parse_args(argc, argv, &c, err);
  if (!st)
    st = check_port(c.port, err);
  if (!st && jail_level_find(c.jail_min) < 0)
    st = fail(err, ST_INPUT, "--jail-min: expected A, B, C or none, got \"%.40s\"", c.jail_min);
  if (!st)
    st = check_layers("--jail-without", c.jail_without, err);
  if (!st)
    st = check_layers("--jail-failing", c.jail_failing, err);
  if (!st && access(c.worker_path, X_OK))
    st = fail(err, ST_INPUT, "--worker: %.120s: %m", c.worker_path);
  if (!c.store)
    c.store = arena_printf(a, "sqlite:%s/nkx.sqlite", c.data_dir);
  if (!st)
    *out = c;
  return st;
}
