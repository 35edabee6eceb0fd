/* nkx runner: connects a Neuron host to a server, manages the tokens of runners, and asks for runs.  A program of its own, so that the service
 * needs no HTTP client. */
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <curl/curl.h>

#include "base/log.h"
#include "base/target.h"
#include "driver/device_run.h"
#include "runner/host.h"
#include "runner/runner.h"
#include "store/ident.h"

static const char usage[] =
    "usage: nkx runner --server URL --token-file FILE [options]\n"
    "  Takes kernels from a server, compiles them with the vendor's compiler, executes them on this host's Neuron "
    "device, and\n"
    "  brings logs, outputs and times back.  It only makes connections; it accepts none.\n"
    "  --server URL               https://HOST[:PORT]\n"
    "  --token-file FILE          the token that the operator of the server has made (nkx runner token create)\n"
    "  --ca-file FILE             certificates to trust, instead of the system's\n"
    "  --allow-http               allow http:// to other machines: the token can be read on the way\n"
    "  --name NAME                how this host is called (its host name)\n"
    "  --instance-type TYPE       what this host is, such as trn2.48xlarge (as the machine says)\n"
    "  --target trn1|trn2|trn3    the kernels that it takes (those of its instance type; all if that is unknown)\n"
    "  --neuronx-cc FILE          the vendor's compiler ($NKX_NEURONX_CC, neuronx-cc in PATH)\n"
    "  --cc-time S                it is stopped after so many seconds (600)\n"
    "  --cc-memory MIB            its limit of memory, of all its processes together (16384)\n"
    "  --cc-option=OPTION         passed on to it for every run; repeatable\n"
    "  --cc-cache DIR|none        where what it made is kept (none)\n"
    "  --cc-cache-mib N           what is kept there at most: what was used last (4096)\n"
    "  --cc-walls                 it sees a file system that it can only read, but for its directory\n"
    "  --cc-hide DIR              with walls: a folder that is empty for it\n"
    "  --only-compile             this host compiles, and executes nothing\n"
    "  --libnrt FILE              the runtime's library ($NKX_LIBNRT, libnrt.so.1, or where the vendor's packages put "
    "it)\n"
    "  --cores N|N-M              the cores that may be used ($NEURON_RT_VISIBLE_CORES)\n"
    "  --repeat N                 executions after the first, for the time (10)\n"
    "  --run-time S               a run is stopped after so many seconds (1800)\n"
    "  --once                     end after one run\n"
    "       nkx runner token create|list|revoke …   see nkx runner token --help\n"
    "       nkx runner run KERNEL --server URL      runs a kernel on a host that is connected; see nkx runner run "
    "--help\n"
    "Exit status: 0 it was asked to stop; 1 the token is not valid, or the server refuses; 2 wrong usage; 4 a fault.\n";

enum { EXIT_DONE, EXIT_REFUSED, EXIT_USAGE, EXIT_FAULT = 4 };

static volatile sig_atomic_t stop;

static void on_stop(int sig) {
  (void)sig;
  stop = 1;
}

enum {
  SERVER = 256,
  TOKEN_FILE,
  CA_FILE,
  ALLOW_HTTP,
  NAME,
  INSTANCE_TYPE,
  TARGET,
  NEURONX_CC,
  CC_TIME,
  CC_MEMORY,
  LIBNRT,
  CORES,
  REPEAT,
  RUN_TIME,
  ONCE,
  CC_OPTION,
  CC_CACHE,
  CC_CACHE_MIB,
  CC_WALLS,
  CC_HIDE,
  ONLY_COMPILE
};

static const struct option options[] = {{"server", required_argument, NULL, SERVER},
                                        {"token-file", required_argument, NULL, TOKEN_FILE},
                                        {"ca-file", required_argument, NULL, CA_FILE},
                                        {"allow-http", no_argument, NULL, ALLOW_HTTP},
                                        {"name", required_argument, NULL, NAME},
                                        {"instance-type", required_argument, NULL, INSTANCE_TYPE},
                                        {"target", required_argument, NULL, TARGET},
                                        {"neuronx-cc", required_argument, NULL, NEURONX_CC},
                                        {"cc-time", required_argument, NULL, CC_TIME},
                                        {"cc-memory", required_argument, NULL, CC_MEMORY},
                                        {"libnrt", required_argument, NULL, LIBNRT},
                                        {"cores", required_argument, NULL, CORES},
                                        {"repeat", required_argument, NULL, REPEAT},
                                        {"run-time", required_argument, NULL, RUN_TIME},
                                        {"once", no_argument, NULL, ONCE},
                                        {"cc-option", required_argument, NULL, CC_OPTION},
                                        {"cc-cache", required_argument, NULL, CC_CACHE},
                                        {"cc-cache-mib", required_argument, NULL, CC_CACHE_MIB},
                                        {"cc-walls", no_argument, NULL, CC_WALLS},
                                        {"cc-hide", required_argument, NULL, CC_HIDE},
                                        {"only-compile", no_argument, NULL, ONLY_COMPILE},
                                        {"help", no_argument, NULL, 'h'},
                                        {NULL, 0, NULL, 0}};

enum { EXTRA_MAX = 32 };

struct command {
  struct host_config host;
  struct wire_config wire;
  const char *token_file;
  const char *extra[EXTRA_MAX];
};

static enum status read_number(const char *option, int least, int most, int unit, int *out, struct error *err) {
  char *end;
  const long n = strtol(optarg, &end, 10);
  if (end == optarg || *end || n < least || n > most)
    return fail(err, ST_INPUT, "%s %.40s: expected a number from %d to %d", option, optarg, least, most);
  *out = (int)n * unit;
  return ST_OK;
}

static enum status set_text(struct command *c, int o, struct error *err) {
  enum target t;
  const char **to = o == SERVER          ? &c->wire.url
                    : o == TOKEN_FILE    ? &c->token_file
                    : o == CA_FILE       ? &c->wire.ca_file
                    : o == NAME          ? &c->host.name
                    : o == INSTANCE_TYPE ? &c->host.instance_type
                    : o == TARGET        ? &c->host.target
                    : o == NEURONX_CC    ? &c->host.vendor.program
                    : o == LIBNRT        ? &c->host.library
                    : o == CC_HIDE       ? &c->host.vendor.hidden
                                         : &c->host.cores;
  *to = optarg;
  return o != TARGET || target_from_name(optarg, &t)
             ? ST_OK
             : fail(err, ST_INPUT, "--target %.40s: there is no such machine", optarg);
}

static enum status set_option(struct command *c, int o, struct error *err) {
  switch (o) {
  case ALLOW_HTTP:
    c->wire.allows_plain = true;
    return ST_OK;
  case ONCE:
    c->host.is_once = true;
    return ST_OK;
  case ONLY_COMPILE:
    c->host.only_compiles = true;
    return ST_OK;
  case CC_WALLS:
    c->host.vendor.has_walls = true;
    return ST_OK;
  case CC_OPTION:
    if (c->host.vendor.n_extra == EXTRA_MAX)
      return fail(err, ST_INPUT, "--cc-option: at most %d times", EXTRA_MAX);
    c->extra[c->host.vendor.n_extra++] = optarg;
    return ST_OK;
  case CC_CACHE:
    c->host.vendor.cache_dir = strcmp(optarg, "none") ? optarg : NULL;
    return ST_OK;
  case CC_CACHE_MIB:
    return read_number("--cc-cache-mib", 0, 1 << 24, 1, &c->host.vendor.cache_mib, err);
  case CC_TIME:
    return read_number("--cc-time", 1, 86400, 1000, &c->host.vendor.wall_ms, err);
  case CC_MEMORY:
    return read_number("--cc-memory", 64, 1 << 24, 1, &c->host.vendor.memory_mib, err);
  case REPEAT:
    return read_number("--repeat", 0, 1000000, 1, &c->host.repeats, err);
  case RUN_TIME:
    return read_number("--run-time", 1, 86400, 1, &c->host.run_s, err);
  case '?':
    return fail(err, ST_INPUT, "see nkx runner --help");
  default:
    return set_text(c, o, err);
  }
}

static enum status read_options(struct command *c, int argc, char **argv, struct error *err) {
  enum status st = ST_OK;
  int o;
  while (!st && (o = getopt_long(argc, argv, "h", options, NULL)) != -1) {
    if (o == 'h') {
      fputs(usage, stdout);
      exit(EXIT_DONE);
    }
    st = set_option(c, o, err);
  }
  c->host.vendor.extra = c->extra;
  if (!st)
    st = vendor_check_options(c->host.vendor.n_extra, c->extra, err);
  if (!st && (optind < argc || !c->wire.url || !c->token_file))
    st = fail(err, ST_INPUT, "expected --server URL and --token-file FILE; see nkx runner --help");
  return st;
}

static enum status read_token(const char *path, char out[IDENT_LEN + 1], struct error *err) {
  char line[IDENT_LEN + 8] = "";
  FILE *f = fopen(path, "re");
  if (!f)
    return fail(err, ST_INPUT, "%.160s: %m", path);
  if (!fgets(line, sizeof line, f))
    *line = 0;
  fclose(f);
  line[strcspn(line, "\r\n \t")] = 0;
  if (strlen(line) != IDENT_LEN || !ident_is_valid(line, IDENT_LEN))
    return fail(err, ST_INPUT, "%.160s holds no token: nkx runner token create makes one", path);
  memcpy(out, line, IDENT_LEN + 1);
  return ST_OK;
}

static enum status serve(struct command *c, struct error *err) {
  char token[IDENT_LEN + 1];
  struct host h = {.cfg = &c->host, .stop = &stop};
  enum status st = read_token(c->token_file, token, err);
  c->wire.token = token;
  c->wire.stop = &stop;
  if (!st)
    st = wire_open(&c->wire, &h.wire, err);
  if (!st)
    st = ident_new(h.id, err);
  if (!st)
    st = host_probe(&c->host, &h.about, &h.can_execute, err);
  if (!st) {
    const char *missing = json_string_value(json_object_get(h.about, "missing"));
    log_info("runner", "server=%s executes=%s %s", c->wire.url, h.can_execute ? "yes" : "no", missing ? missing : "");
    st = host_serve(&h, err);
  }
  json_decref(h.about);
  wire_close(h.wire);
  return st;
}

static void handle_signals(void) {
  struct sigaction sa = {.sa_handler = on_stop};
  sigaction(SIGTERM, &sa, NULL);
  sigaction(SIGINT, &sa, NULL);
  signal(SIGPIPE, SIG_IGN);
}

int main(int argc, char **argv) {
  struct command c = {.host = {.repeats = 10,
                               .run_s = HOST_RUN_S,
                               .vendor = {.lnc = 1,
                                          .wall_ms = VENDOR_WALL_MS,
                                          .memory_mib = VENDOR_MEMORY_MIB,
                                          .cache_mib = VENDOR_CACHE_MIB}}};
  struct error err = {0};
  const char *format = getenv("NKX_LOG_FORMAT");
  if (format && !strcmp(format, "json")) /* as its server's */
    log_set_format(LOG_JSON);
  enum token_kind kind = TOKEN_OF_RUNNER;
  handle_signals();
  curl_global_init(CURL_GLOBAL_DEFAULT);
  if (argc > 1 && !strcmp(argv[1], "runner")) { /* as nkx starts it */
    argv++;
    argc--;
  } else if (argc > 2 && !strcmp(argv[1], "for") && !strcmp(argv[2], "token")) { /* nkx token */
    kind = TOKEN_OF_PROGRAM;
    argv++;
    argc--;
  }
  if (argc > 1 && !strcmp(argv[1], "token"))
    return runner_token_main(kind, argc - 1, argv + 1);
  if (argc > 1 && !strcmp(argv[1], "run"))
    return runner_run_main(argc - 1, argv + 1, &stop);
  enum status st = read_options(&c, argc, argv, &err);
  const bool is_usage = st != ST_OK;
  if (!st)
    st = serve(&c, &err);
  curl_global_cleanup();
  if (!st)
    return EXIT_DONE;
  fprintf(stderr, "nkx: %s\n", err.text);
  return is_usage ? EXIT_USAGE : st == ST_DENIED || st == ST_INPUT ? EXIT_REFUSED : EXIT_FAULT;
}
