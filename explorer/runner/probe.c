/* probe: what this host has: instance type, cores, and the versions of compiler and runtime.
 *
 * libnrt is opened in a child, because it may take cores that runs need later, or crash.
 */
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/json.h"
#include "base/log.h"
#include "base/target.h"
#include "driver/pipeline.h"
#include "neff/device.h"
#include "runner/host.h"

enum { PROBE_MS = 120000, TEXT_MAX_LEN = 200, ANSWER_MAX = 64 << 10 };

/* ---- the runtime --------------------------------------------------------------------------------------------------- */

static void put_cut(struct buf *b, const char *key, const char *text) {
  char cut[TEXT_MAX_LEN / 2];
  snprintf(cut, sizeof cut, "%s", text);
  json_put_field_str(b, key, cut);
}

/* In the child: writes {"runtime","cores","stand_in"} or {"missing"}. */
static void probe_runtime(const struct host_config *cfg, int fd) {
  const struct device_options options = {cfg->library, cfg->cores};
  struct device *d = NULL;
  struct arena a;
  struct diags ds;
  struct buf b;
  arena_init(&a);
  diags_init(&ds, &a);
  buf_init(&b, ANSWER_MAX);
  buf_putc(&b, '{');
  if (!device_open(&options, &ds, &d)) {
    const struct device_about *about = device_about(d);
    put_cut(&b, "runtime", *about->version ? about->version : "of unknown version");
    json_put_field_bool(&b, "stand_in", about->is_stand_in);
    json_put_field_int(&b, "cores", about->cores < 0 ? 0 : about->cores);
  } else {
    put_cut(&b, "missing", ds.n ? ds.v[0].message : "libnrt cannot be used");
  }
  device_close(d, &ds);
  buf_putc(&b, '}');
  if (write(fd, buf_text(&b), b.len) != (ssize_t)b.len)
    _exit(1);
  _exit(0);
}

/* Reads until the child ends, or PROBE_MS are over. */
static json_t *read_answer(int fd) {
  struct buf b;
  char piece[4096];
  ssize_t n = 0;
  buf_init(&b, ANSWER_MAX);
  for (struct pollfd p = {fd, POLLIN, 0}; poll(&p, 1, PROBE_MS) > 0 && (n = read(fd, piece, sizeof piece)) > 0;)
    buf_append(&b, piece, (size_t)n);
  json_t *o = json_loadb(buf_text(&b), b.len, 0, NULL);
  buf_clear(&b);
  return json_is_object(o) ? o : json_pack("{s:s}", "missing", "libnrt crashed or hung when it was opened");
}

static json_t *ask_runtime(const struct host_config *cfg) {
  int fds[2];
  if (pipe(fds))
    return NULL;
  const pid_t pid = fork();
  if (!pid) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    close(fds[0]);
    probe_runtime(cfg, fds[1]);
  }
  close(fds[1]);
  json_t *o = pid > 0 ? read_answer(fds[0]) : NULL;
  close(fds[0]);
  if (pid > 0) {
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
  }
  return o;
}

/* ---- the host ------------------------------------------------------------------------------------------------------ */

/* EC2 says the instance type where others say the product's name. */
static void find_instance_type(char *out, size_t size) {
  FILE *f = fopen("/sys/devices/virtual/dmi/id/product_name", "re");
  *out = 0;
  if (f && fgets(out, (int)size, f))
    out[strcspn(out, "\r\n")] = 0;
  if (f)
    fclose(f);
}

/* "trn2" of "trn2.48xlarge"; NULL if it names no machine. */
static const char *target_of(const char *instance_type) {
  char family[8];
  enum target t;
  snprintf(family, sizeof family, "%.*s", (int)strcspn(instance_type, "."), instance_type);
  family[4] = 0; /* "trn1n", "trn2u" */
  return target_from_name(family, &t) ? target_name(t) : NULL;
}

static void set_text(json_t *o, const char *key, const char *text) {
  char cut[TEXT_MAX_LEN / 2];
  snprintf(cut, sizeof cut, "%s", text);
  if (*cut)
    json_object_set_new(o, key, json_string(cut));
}

static void set_host(json_t *o, const struct host_config *cfg) {
  char host[64] = "", type[TEXT_MAX_LEN / 2] = "";
  if (gethostname(host, sizeof host - 1))
    *host = 0;
  find_instance_type(type, sizeof type);
  if (cfg->instance_type)
    snprintf(type, sizeof type, "%s", cfg->instance_type);
  const char *target = cfg->target ? cfg->target : target_of(type);
  set_text(o, "name", cfg->name ? cfg->name : host);
  set_text(o, "instance_type", type);
  set_text(o, "release", release_version());
  if (target)
    json_object_set_new(o, "target", json_string(target));
}

enum status host_probe(const struct host_config *cfg, json_t **out, bool *can_execute, struct error *err) {
  struct arena a;
  arena_init(&a);
  const char *program = vendor_program(&a, cfg->vendor.program);
  json_t *o = !program             ? NULL
              : cfg->only_compiles ? json_pack("{s:s}", "missing", "it only compiles: it is no Neuron host")
                                   : ask_runtime(cfg),
         *can = json_pack("[s,s]", "compile", "nki");
  *can_execute = json_object_get(o, "runtime") && json_integer_value(json_object_get(o, "cores")) != 0;
  if (!*can_execute && json_object_get(o, "runtime"))
    json_object_set_new(o, "missing", json_string("libnrt sees no core"));
  if (*can_execute) {
    json_array_append_new(can, json_string("execute"));
    json_array_append_new(can, json_string("profile"));
  }
  if (o) {
    const char *version = vendor_version(&a, program);
    set_text(o, "compiler", *version ? version : "neuronx-cc, of unknown version");
    set_host(o, cfg);
    json_object_set(o, "can", can);
  }
  json_decref(can);
  arena_clear(&a);
  *out = o;
  if (o)
    return ST_OK;
  return program ? fail(err, ST_IO, "this host cannot be examined: %m")
                 : fail(err, ST_INPUT,
                        "neuronx-cc, the vendor's compiler, is not here: a runner needs it; name it with "
                        "--neuronx-cc or NKX_NEURONX_CC");
}
