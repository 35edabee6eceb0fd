#include "config.h"

#include <assert.h>
#include <ctype.h>
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "jail/layer.h"
#include "neff/vendor.h"
#include "worker/memory/memory.h"

const char config_help[] =
    "usage: nkx serve [flags]                   (defaults in parentheses)\n"
    "  --host HOST                  address to listen on (127.0.0.1)\n"
    "  --port PORT                  port, 0 for any free one (10240)\n"
    "  --ops-host HOST              address of the operations listener (127.0.0.1)\n"
    "  --ops-port PORT              its port: metrics, health and readiness are there instead (none)\n"
    "  --workers N                  jobs that run at once (the number of processors)\n"
    "  --queue N                    jobs that may wait for a worker (64)\n"
    "  --queue-timeout-ms MS        how long a job may wait for a worker (10000)\n"
    "  --job-timeout-ms MS          wall-clock time that a job may take (15000)\n"
    "  --job-cpu-s N                processor time that a job may take (10)\n"
    "  --job-memory-mib N           address space that a job may have (2048)\n"
    "  --job-resident-mib N         resident memory that a job may use (768)\n"
    "  --zygote-jobs N              jobs after which the zygote, which makes the workers, is replaced (1000)\n"
    "  --zygote-minutes N           minutes after which the zygote is replaced (60)\n"
    "  --jail-min LEVEL             the least level of the jail at which kernels run: A, B, C or none (C)\n"
    "  --cgroup DIR                 a delegated control group for jobs (the server's own, if it is usable)\n"
    "  --jail-without LAYERS        layers of the jail to leave out, such as mount,landlock (none; for tests)\n"
    "  --jail-failing LAYERS        layers of the jail that fail after the start (none; for tests)\n"
    "  --worker-memory LIST         how workers arrange their memory: on, off, or some of heap,hugetext,prefault (on)\n"
    "  --confine yes|no|as-root     whether the server drops the privileges that it does not need; as-root: also if "
    "no\n"
    "                               other user can reach its files, as root without capabilities (yes)\n"
    "  --user NAME                  the user it becomes when root starts it (the data directory's owner, nkx, or "
    "65533)\n"
    "  --drain-timeout-ms MS        how long jobs may continue after SIGTERM (15000)\n"
    "  --connections N              the most open connections (10000)\n"
    "  --client-connections N       the most open connections of one client, 0: no limit (1000)\n"
    "  --client-compiles N          compiles that one client may start in a minute, 0: no limit (120)\n"
    "  --client-jobs N              compiles of one client that may wait or run, 0: no limit (8)\n"
    "  --client-links N             links that one client may store in a minute, 0: no limit (30)\n"
    "  --client-links-day N         … and in a day, 0: no limit (200)\n"
    "  --client-links-mib N         space, compressed, that one client's links may take in a day, 0: no limit (64)\n"
    "  --client-runs N              runs on Neuron hosts of one client that may wait or run, 0: no limit (4)\n"
    "                               (these six are 0 if only this machine can connect, without proxies)\n"
    "  --trusted-proxies LIST       addresses and networks of proxies that may name the client (none)\n"
    "  --proxy-header NAME          the header in which they do: x-forwarded-for or forwarded (x-forwarded-for)\n"
    "  --user-header NAME           the header in which they name the user that has signed in, who is then the client "
    "(none)\n"
    "  --email-header NAME          … and their address, such as X-Forwarded-Email (none)\n"
    "  --groups-header NAME         … and their groups, separated by commas or as a list in base64 (none)\n"
    "  --author-groups LIST         the groups that may store links; without it, whoever has signed in (none)\n"
    "  --operator-groups LIST       the groups whose members are operators (none)\n"
    "  --anonymous author|reader|none  what others may do: everything, open links and compile, nothing (author)\n"
    "  --header-timeout-ms MS       time from a request's first byte to the end of its headers (10000)\n"
    "  --body-timeout-ms MS         time from the end of its headers to the end of its body (20000)\n"
    "  --answer-timeout-ms MS       how long a client may take to read an answer (30000)\n"
    "  --idle-timeout-ms MS         how long a connection stays open without a request (60000)\n"
    "  --answers-mib N              memory for answers that clients have not taken yet (256)\n"
    "  --runs N                     runs on Neuron hosts that may wait or run, 0: there are none (64)\n"
    "  --run-lease-ms MS            how long a runner may be silent before another one gets its run (30000)\n"
    "  --neuronx-cc FILE|auto|none  the vendor's compiler, for NEFFs without a Neuron host (auto: the one in PATH)\n"
    "  --neuronx-cc-s N             it is stopped after so many seconds (600)\n"
    "  --neuronx-cc-memory-mib N    memory that its processes may have together (16384)\n"
    "  --neuronx-cc-cache DIR|none  where what it made is kept (the data directory's name and .neuronx-cc)\n"
    "  --neuronx-cc-cache-mib N     what is kept there at most: what was used last (4096)\n"
    "  --data-dir DIR               the directory of the store (../data beside this program)\n"
    "  --store URL                  sqlite:PATH (nkx.sqlite in the data directory) or postgresql://…\n"
    "  --s3-url URL                 where results are moved to: https://HOST/BUCKET[/PREFIX] of an S3-compatible store "
    "(none)\n"
    "  --s3-region NAME             its region (us-east-1)\n"
    "  --s3-credentials FILE        aws_access_key_id and aws_secret_access_key, as AWS's tools have them (none)\n"
    "  --s3-ca-file FILE            certificates to trust, PEM (the system's)\n"
    "  --cache-mib N                memory for cached results, and half as much for links that were read (128)\n"
    "  --cache-s N                  seconds that a cached result is kept after its last use (3600)\n"
    "  --results-mib N              space for results in the store, compressed (1024)\n"
    "  --store-max-mib N            what the store may take before links are refused, 0: no limit (16384)\n"
    "  --session-idle-s N           a session without anyone for so long ends, and becomes a link (86400)\n"
    "  --web-dir DIR                the page's files (../web beside this program)\n"
    "  --examples-dir DIR           the example kernels (../examples beside this program)\n"
    "  --worker PATH                the worker program (nkx-worker beside this one)\n"
    "  --worker-version NAME=DIR    another version of the compiler, packed by `make release`, that can be chosen; may "
    "be given\n"
    "                               more than once, or as a list with commas (none)\n"
    "  --python-dir DIR             the packages that kernels import (../python beside this program)\n"
    "  --site-dir DIR               site-packages with NumPy (where the build found it)\n"
    "  --log-format text|json       form of the log (text)\n"
    "  --log-level LEVEL            the least level that is logged: debug, info, warn or error (info)\n"
    "  --log-requests yes|no        whether each request is logged (no)\n"
    "  --log-clients no|name|address  how the log names clients: not, by a name made from the address, or by it "
    "(name)\n"
    "  --report-url URL             where links can be reported, https: or mailto:; {link} stands for the link (none)\n"
    "Each flag can be set in the environment instead: --queue-timeout-ms as NKX_QUEUE_TIMEOUT_MS.  A flag has "
    "precedence.\n";

enum flag_kind {
  FLAG_TEXT,
  FLAG_INT,
  FLAG_PORT,
  FLAG_CHOICE,
  FLAG_DIR,
  FLAG_PROGRAM,
  FLAG_LEVEL,
  FLAG_LAYERS,
  FLAG_MEMORY,
  FLAG_NETS,
  FLAG_URL,
  FLAG_HEADER,
  FLAG_VERSIONS
};

struct flag {
  const char *name;
  enum flag_kind kind;
  size_t offset;
  int least, most;            /* FLAG_INT */
  const char *const *choices; /* FLAG_CHOICE: NULL-terminated; the field is the index */
};

static const char *const yes_no[] = {"no", "yes", NULL};
static const char *const formats[] = {[LOG_TEXT] = "text", [LOG_JSON] = "json", NULL};
static const char *const headers[] = {
    [ADDRESS_X_FORWARDED_FOR] = "x-forwarded-for", [ADDRESS_FORWARDED] = "forwarded", NULL};
static const char *const client_logs[] = {
    [CLIENT_LOG_NO] = "no", [CLIENT_LOG_NAME] = "name", [CLIENT_LOG_ADDRESS] = "address", NULL};
static const char *const confinements[] = {
    [CONFINE_NO] = "no", [CONFINE_YES] = "yes", [CONFINE_AS_ROOT] = "as-root", NULL};
static const char *const anonymous[] = {[ROLE_NONE] = "none", [ROLE_READER] = "reader", [ROLE_AUTHOR] = "author", NULL};
static const char *const levels[] = {
    [LOG_DEBUG] = "debug", [LOG_INFO] = "info", [LOG_WARN] = "warn", [LOG_ERROR] = "error", NULL};

enum {
  HOUR_MS = 3600000,
  URL_MAX = 1000,
  HEADER_MAX = 100,
  UNSET = -1, /* a quota whose default depends on other settings */
  CLIENT_CONNECTIONS = 1000,
  CLIENT_COMPILES = 120, /* the page compiles after each pause in typing */
  CLIENT_JOBS = 8,
  CLIENT_LINKS = 30,
  CLIENT_LINKS_DAY = 200,
  CLIENT_LINKS_MIB = 64, /* of a day; a usual link takes some 25 KiB */
  CLIENT_RUNS = 4,
};

#define AT(member) .offset = offsetof(struct config, member)
#define INT(member, from, to) .kind = FLAG_INT, AT(member), .least = (from), .most = (to)
static const struct flag flags[] = {
    {"--host", FLAG_TEXT, AT(http.host)},
    {"--port", FLAG_PORT, AT(http.port)},
    {"--ops-host", FLAG_TEXT, AT(http.ops_host)},
    {"--ops-port", FLAG_PORT, AT(http.ops_port)},
    {"--workers", INT(workers, 1, 64)},
    {"--queue", INT(queue_max, 0, 10000)},
    {"--queue-timeout-ms", INT(wait_timeout_ms, 100, HOUR_MS)},
    {"--job-timeout-ms", INT(job_timeout_ms, 100, 600000)},
    {"--job-cpu-s", INT(limits.cpu_s, 1, 600)},
    {"--job-memory-mib", INT(limits.memory_mib, 64, 1 << 19)},
    {"--job-resident-mib", INT(limits.resident_mib, 64, 1 << 19)},
    {"--zygote-jobs", INT(zygote_jobs, 1, 1 << 30)},
    {"--zygote-minutes", INT(zygote_minutes, 1, 1 << 20)},
    {"--jail-min", FLAG_LEVEL, AT(jail_min)},
    {"--jail-without", FLAG_LAYERS, AT(jail_without)},
    {"--jail-failing", FLAG_LAYERS, AT(jail_failing)},
    {"--cgroup", FLAG_DIR, AT(cgroup_dir)},
    {"--worker-memory", FLAG_MEMORY, AT(worker_memory)},
    {"--confine", FLAG_CHOICE, AT(confine), .choices = confinements},
    {"--user", FLAG_TEXT, AT(user)},
    {"--drain-timeout-ms", INT(drain_timeout_ms, 0, HOUR_MS)},
    {"--connections", INT(http.connections_max, 4, 100000)},
    {"--client-connections", INT(quota.connections, 0, 100000)},
    {"--client-compiles", INT(quota.compiles, 0, 1000000)},
    {"--client-jobs", INT(quota.jobs, 0, 10000)},
    {"--client-links", INT(quota.links, 0, 100000)},
    {"--client-links-day", INT(quota.links_a_day, 0, 1000000)},
    {"--client-links-mib", INT(quota.link_mib_a_day, 0, 1 << 20)},
    {"--client-runs", INT(runs.most_own, 0, 10000)},
    {"--runs", INT(runs.most, 0, 10000)},
    {"--run-lease-ms", INT(runs.lease_ms, 500, HOUR_MS)},
    {"--neuronx-cc", FLAG_TEXT, AT(neuronx_cc)},
    {"--neuronx-cc-s", INT(cc_s, 1, 86400)},
    {"--neuronx-cc-memory-mib", INT(cc_memory_mib, 64, 1 << 24)},
    {"--neuronx-cc-cache", FLAG_TEXT, AT(cc_cache)},
    {"--neuronx-cc-cache-mib", INT(cc_cache_mib, 0, 1 << 24)},
    {"--trusted-proxies", FLAG_NETS, AT(http.trusted_proxies)},
    {"--proxy-header", FLAG_CHOICE, AT(http.proxy_header), .choices = headers},
    {"--user-header", FLAG_HEADER, AT(http.user_header)},
    {"--email-header", FLAG_HEADER, AT(http.email_header)},
    {"--groups-header", FLAG_HEADER, AT(http.groups_header)},
    {"--author-groups", FLAG_TEXT, AT(identity.author_groups)},
    {"--operator-groups", FLAG_TEXT, AT(identity.operator_groups)},
    {"--anonymous", FLAG_CHOICE, AT(identity.anonymous), .choices = anonymous},
    {"--header-timeout-ms", INT(http.header_timeout_ms, 100, HOUR_MS)},
    {"--body-timeout-ms", INT(http.body_timeout_ms, 100, HOUR_MS)},
    {"--answer-timeout-ms", INT(http.answer_timeout_ms, 100, HOUR_MS)},
    {"--idle-timeout-ms", INT(http.idle_timeout_ms, 100, HOUR_MS)},
    {"--answers-mib", INT(http.answers_mib, 1, 1 << 20)},
    {"--data-dir", FLAG_TEXT, AT(data_dir)},
    {"--store", FLAG_TEXT, AT(store)},
    {"--s3-url", FLAG_URL, AT(s3.url)},
    {"--s3-region", FLAG_TEXT, AT(s3.region)},
    {"--s3-credentials", FLAG_TEXT, AT(s3.credentials)},
    {"--s3-ca-file", FLAG_TEXT, AT(s3.ca_file)},
    {"--cache-mib", INT(cache_mib, 1, 1 << 20)},
    {"--cache-s", INT(cache_s, 0, 7 * 24 * 3600)},
    {"--results-mib", INT(results_mib, 1, 1 << 20)},
    {"--store-max-mib", INT(store_max_mib, 0, 1 << 30)},
    {"--session-idle-s", INT(session_idle_s, 1, 30 * 24 * 3600)},
    {"--web-dir", FLAG_DIR, AT(http.web_dir)},
    {"--examples-dir", FLAG_DIR, AT(examples_dir)},
    {"--worker", FLAG_PROGRAM, AT(worker_path)},
    {"--worker-version", FLAG_VERSIONS, AT(versions)},
    {"--python-dir", FLAG_DIR, AT(python_dir)},
    {"--site-dir", FLAG_DIR, AT(site_dir)},
    {"--log-format", FLAG_CHOICE, AT(log_format), .choices = formats},
    {"--log-level", FLAG_CHOICE, AT(log_level), .choices = levels},
    {"--log-clients", FLAG_CHOICE, AT(http.log_clients), .choices = client_logs},
    {"--report-url", FLAG_URL, AT(report_url)},
    {"--log-requests", FLAG_CHOICE, AT(http.log_requests), .choices = yes_no},
};

const char *config_sqlite_path(const struct config *cfg) {
  static const char prefix[] = "sqlite:";
  return strncmp(cfg->store, prefix, sizeof prefix - 1) != 0 ? NULL : cfg->store + sizeof prefix - 1;
}

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

/* `name`, here and below: the flag or the variable, whichever the user wrote. */
static enum status parse_number(const char *name, const char *text, int least, int most, int *out, struct error *err) {
  char *end;
  long v = strtol(text, &end, 10);
  if (!isdigit((unsigned char)*text) || *end || v < least || v > most)
    return fail(err, ST_INPUT, "%s: expected a number from %d to %d, got \"%.40s\"", name, least, most, text);
  *out = (int)v;
  return ST_OK;
}

static enum status parse_choice(const char *name, const char *text, const char *const *choices, int *out,
                                struct error *err) {
  char list[80] = "";
  for (int i = 0; choices[i]; i++) {
    if (!strcmp(choices[i], text)) {
      *out = i;
      return ST_OK;
    }
    assert(strlen(list) + strlen(choices[i]) + sizeof ", " < sizeof list);
    strcat(strcat(list, i ? ", " : ""), choices[i]);
  }
  return fail(err, ST_INPUT, "%s: expected one of %s, got \"%.40s\"", name, list, text);
}

static enum status check_path(const char *name, const char *text, enum flag_kind kind, struct error *err) {
  struct stat s;
  if (stat(text, &s) || (kind == FLAG_PROGRAM && S_ISREG(s.st_mode) && access(text, X_OK)))
    return fail(err, ST_INPUT, "%s: %.120s: %m", name, text);
  if (kind == FLAG_DIR ? !S_ISDIR(s.st_mode) : !S_ISREG(s.st_mode))
    return fail(err, ST_INPUT, "%s: %.120s is not a %s", name, text, kind == FLAG_DIR ? "directory" : "file");
  return ST_OK;
}

static enum status check_jail(const char *name, const char *text, enum flag_kind kind, struct error *err) {
  uint32_t bits = 0;
  if (kind == FLAG_LEVEL && jail_level_find(text) < 0)
    return fail(err, ST_INPUT, "%s: expected A, B, C or none, got \"%.40s\"", name, text);
  if (kind == FLAG_LAYERS && !jail_layers_find(text, &bits))
    return fail(err, ST_INPUT, "%s: \"%.60s\" names a layer that does not exist; see `nkx doctor`", name, text);
  return ST_OK;
}

static enum status check_memory(const char *name, const char *text, struct error *err) {
  uint32_t bits;
  return memory_tricks_find(text, &bits)
             ? ST_OK
             : fail(err, ST_INPUT, "%s: expected on, off or a list of heap, hugetext and prefault, got \"%.60s\"", name,
                    text);
}

static enum status check_header(const char *name, const char *text, struct error *err) {
  size_t n = 0;
  while (isalnum((unsigned char)text[n]) || text[n] == '-' || text[n] == '_')
    n++;
  return n && n < HEADER_MAX && !text[n]
             ? ST_OK
             : fail(err, ST_INPUT, "%s: expected a header's name, got \"%.60s\"", name, text);
}

static enum status check_url(const char *name, const char *text, struct error *err) {
  const bool is_known = !strncmp(text, "https:", 6) || !strncmp(text, "http:", 5) || !strncmp(text, "mailto:", 7);
  for (const char *p = text; *p; p++)
    if (*p <= ' ' || *p > '~' || *p == '"' || *p == '<' || *p == '>')
      return fail(err, ST_INPUT, "%s: \"%.60s\" has a letter that no URL has", name, text);
  return is_known && strlen(text) <= URL_MAX
             ? ST_OK
             : fail(err, ST_INPUT, "%s: expected an https: or mailto: URL of at most %d bytes, got \"%.60s\"", name,
                    URL_MAX, text);
}

static enum status parse_nets(const char *name, const char *text, struct address_nets *out, struct error *err) {
  struct error e;
  return address_nets_parse(text, out, &e) ? fail(err, ST_INPUT, "%s: %.160s", name, e.text) : ST_OK;
}

static enum status add_versions(struct arena *a, const char *name, const char *text, struct versions *out,
                                struct error *err) {
  struct error e;
  return versions_add(a, out, text, &e) ? fail(err, ST_INPUT, "%s: %.180s", name, e.text) : ST_OK;
}

static enum status set(struct arena *a, const struct flag *f, const char *name, const char *text, struct config *c,
                       struct error *err) {
  void *at = (char *)c + f->offset;
  enum status st = ST_OK;
  int port;
  if (f->kind == FLAG_INT)
    return parse_number(name, text, f->least, f->most, at, err);
  if (f->kind == FLAG_CHOICE)
    return parse_choice(name, text, f->choices, at, err);
  if (f->kind == FLAG_NETS)
    return parse_nets(name, text, at, err);
  if (f->kind == FLAG_VERSIONS)
    return add_versions(a, name, text, at, err);
  if (f->kind == FLAG_PORT)
    st = parse_number(name, text, 0, 65535, &port, err);
  else if (f->kind == FLAG_LEVEL || f->kind == FLAG_LAYERS)
    st = check_jail(name, text, f->kind, err);
  else if (f->kind == FLAG_MEMORY)
    st = check_memory(name, text, err);
  else if (f->kind == FLAG_URL)
    st = check_url(name, text, err);
  else if (f->kind == FLAG_HEADER)
    st = check_header(name, text, err);
  else if (f->kind != FLAG_TEXT)
    st = check_path(name, text, f->kind, err);
  else if (!*text)
    st = fail(err, ST_INPUT, "%s: must not be empty", name);
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

/* Reads "--flag value" and "--flag=value". */
static enum status parse_args(struct arena *a, int argc, char **argv, struct config *c, struct error *err) {
  bool has_versions = false; /* then those of the variable do not count */
  for (int i = 0; i < argc; i++) {
    const char *eq = strchr(argv[i], '=');
    size_t len = eq ? (size_t)(eq - argv[i]) : strlen(argv[i]);
    const struct flag *f = find(argv[i], len);
    if (!f)
      return fail(err, ST_INPUT, "%.60s: there is no such flag; see `nkx serve --help`", argv[i]);
    if (!eq && i + 1 == argc)
      return fail(err, ST_INPUT, "%s: needs a value", f->name);
    if (f->kind == FLAG_VERSIONS && !has_versions) {
      versions_init(&c->versions);
      has_versions = true;
    }
    enum status st = set(a, f, f->name, eq ? eq + 1 : argv[++i], c, err);
    if (st)
      return st;
  }
  return ST_OK;
}

/* True for "QUEUE_TIMEOUT_MS", without its NKX_, and "--queue-timeout-ms". */
static bool is_variable_of(const char *name, size_t len, const char *flag) {
  flag += 2;
  if (len != strlen(flag))
    return false;
  for (size_t i = 0; i < len; i++)
    if (name[i] != (flag[i] == '-' ? '_' : toupper((unsigned char)flag[i])))
      return false;
  return true;
}

/* The length of the name in "NAME=value" if it begins with NKX_, else 0; *f is its flag, NULL if it has none. */
static size_t find_variable(const char *entry, const struct flag **f) {
  static const char prefix[] = "NKX_";
  const size_t skip = sizeof prefix - 1;
  const char *eq = strchr(entry, '=');
  *f = NULL;
  if (!eq || strncmp(entry, prefix, skip) != 0)
    return 0;
  const size_t len = (size_t)(eq - entry);
  for (size_t i = 0; i < sizeof flags / sizeof *flags && !*f; i++)
    if (is_variable_of(entry + skip, len - skip, flags[i].name))
      *f = &flags[i];
  return len;
}

static enum status parse_environment(struct arena *a, char *const *env, struct config *c, struct error *err) {
  const struct flag *f;
  for (; env && *env; env++) {
    size_t len = find_variable(*env, &f);
    enum status st = f ? set(a, f, arena_printf(a, "%.*s", (int)len, *env), *env + len + 1, c, err) : ST_OK;
    if (st)
      return st;
  }
  return ST_OK;
}

void config_warn_unknown(char *const *env) {
  const struct flag *f;
  for (; env && *env; env++) {
    size_t len = find_variable(*env, &f);
    if (len && !f)
      log_warn("config", "variable=%.*s there is no such setting", len > 60 ? 60 : (int)len, *env);
  }
}

/* True for an address that only this machine can reach. */
static bool is_loopback(const char *host) {
  struct address a;
  return !strcmp(host, "localhost") || (address_parse(host, strlen(host), &a) && address_is_loopback(&a));
}

static void default_quota(int *at, int value) {
  if (*at == UNSET)
    *at = value;
}

/* Who is named, and by whom, must be known before roles and groups can be. */
static enum status check_sign_in(const struct config *c, struct error *err) {
  const struct identity_config *id = &c->identity;
  if ((c->http.email_header || c->http.groups_header) && !c->http.user_header)
    return fail(err, ST_INPUT, "%s: needs --user-header", c->http.email_header ? "--email-header" : "--groups-header");
  if ((id->author_groups || id->operator_groups) && !c->http.groups_header)
    return fail(err, ST_INPUT, "%s: needs --groups-header",
                id->author_groups ? "--author-groups" : "--operator-groups");
  return ST_OK;
}

enum status config_parse(struct arena *a, int argc, char **argv, char *const *env, struct config *out,
                         struct error *err) {
  const char *here;
  long cpus = sysconf(_SC_NPROCESSORS_ONLN);
  enum status st = config_program_dir(a, &here, err);
  if (st)
    return st;
  struct config c = {
      .http.host = "127.0.0.1",
      .http.port = "10240",
      .http.ops_host = "127.0.0.1",
      .workers = cpus < 1    ? 1
                 : cpus > 64 ? 64
                             : (int)cpus,
      .queue_max = 64,
      .wait_timeout_ms = 10000,
      .job_timeout_ms = 15000,
      .cc_s = VENDOR_WALL_MS / 1000,
      .cc_memory_mib = VENDOR_MEMORY_MIB,
      .cc_cache_mib = VENDOR_CACHE_MIB,
      .limits = {JAIL_CPU_S, JAIL_MEMORY_MIB, JAIL_RESIDENT_MIB, 0},
      .zygote_jobs = 1000,
      .zygote_minutes = 60,
      .jail_min = jail_level_name(JAIL_C),
      .worker_memory = "on",
      .confine = CONFINE_YES,
      .drain_timeout_ms = 15000,
      .http.connections_max = 10000,
      .quota = {.compiles = UNSET,
                .jobs = UNSET,
                .connections = UNSET,
                .links = UNSET,
                .links_a_day = UNSET,
                .link_mib_a_day = UNSET},
      .identity.anonymous = ROLE_AUTHOR,
      .runs = {.most = 64, .most_own = UNSET, .lease_ms = 30000},
      .http.header_timeout_ms = 10000,
      .http.body_timeout_ms = 20000,
      .http.answer_timeout_ms = 30000,
      .http.idle_timeout_ms = 60000,
      .http.answers_mib = 256,
      .log_level = LOG_INFO,
      .http.log_clients = CLIENT_LOG_NAME,
      .data_dir = arena_printf(a, "%s/../data", here),
      .s3.region = "us-east-1",
      .cache_mib = 128,
      .cache_s = 3600,
      .results_mib = 1024,
      .store_max_mib = 16384,
      .session_idle_s = 24 * 3600,
      .worker_path = arena_printf(a, "%s/nkx-worker", here),
      .http.web_dir = arena_printf(a, "%s/../web", here),
      .examples_dir = arena_printf(a, "%s/../examples", here),
  };
  versions_init(&c.versions);
  st = parse_environment(a, env, &c, err);
  if (!st)
    st = parse_args(a, argc, argv, &c, err);
  struct version *today = &c.versions.v[VERSION_TODAY];
  today->worker_path = c.worker_path;
  today->python_dir = c.python_dir;
  today->site_dir = c.site_dir;
  if (!st) /* also checks the default */
    st = check_path("--worker", c.worker_path, FLAG_PROGRAM, err);
  bool is_private = is_loopback(c.http.host) && !c.http.trusted_proxies.n;
  default_quota(&c.quota.connections, is_private ? 0 : CLIENT_CONNECTIONS);
  default_quota(&c.quota.compiles, is_private ? 0 : CLIENT_COMPILES);
  default_quota(&c.quota.jobs, is_private ? 0 : CLIENT_JOBS);
  default_quota(&c.quota.links, is_private ? 0 : CLIENT_LINKS);
  default_quota(&c.quota.links_a_day, is_private ? 0 : CLIENT_LINKS_DAY);
  default_quota(&c.quota.link_mib_a_day, is_private ? 0 : CLIENT_LINKS_MIB);
  if (!st && c.store_max_mib &&
      c.results_mib > c.store_max_mib / 2) /* or results alone would leave no room for links */
    st =
        fail(err, ST_INPUT, "--store-max-mib: %d is less than twice --results-mib, %d", c.store_max_mib, c.results_mib);
  if (!st && c.http.user_header && !c.http.trusted_proxies.n) /* nobody would be believed */
    st = fail(err, ST_INPUT, "--user-header: needs --trusted-proxies");
  if (!st)
    st = check_sign_in(&c, err);
  default_quota(&c.runs.most_own, is_private ? 0 : CLIENT_RUNS);
  if (!c.store)
    c.store = arena_printf(a, "sqlite:%s/nkx.sqlite", c.data_dir);
  if (!st)
    *out = c;
  return st;
}
