#include "neff/vendor.h"

#include <errno.h>
#include <openssl/evp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "neff/neff.h"
#include "neff/vendor_cache.h"
#include "neff/vendor_process.h"

enum { KEY_SIZE = 2 * 32 + 1, ERRORS_SHOWN = 12 };

/* A compile in progress. */
struct compiling {
  struct arena *arena;
  const struct vendor_request *rq;
  struct diags *ds;
  const char *program, *dir;
  struct {
    const char **v;
    int n, cap;
  } argv;
  char key[KEY_SIZE];
};

static enum status refuse(struct compiling *c, enum diag_code code, const char *text) {
  diag_add(c->ds, DS_ERROR, code, NULL, "%s", text);
  return ST_INPUT;
}

/* ---- options ----------------------------------------------------------------------------------------------------- */

static const struct {
  const char *name, *values;
} allowed[] = {
#define VENDOR_OPTION(name, values) {name, values},
#include "neff/vendor_options.def"
#undef VENDOR_OPTION
};

/* True if v is one of a list divided by '|'. */
static bool is_one_of(const char *v, const char *list) {
  const size_t n = strlen(v);
  for (const char *p = list; p; p = strchr(p, '|') ? strchr(p, '|') + 1 : NULL)
    if (n && !strncmp(p, v, n) && (!p[n] || p[n] == '|'))
      return true;
  return false;
}

/* Reads the option at v[0], whose value may be v[1]; returns how many it takes, 0 if it is refused. */
static int read_option(int n, const char *const *v, struct error *err) {
  const char *equals = strchr(v[0], '=');
  const size_t len = equals ? (size_t)(equals - v[0]) : strlen(v[0]);
  for (size_t k = 0; k < sizeof allowed / sizeof *allowed; k++) {
    if (strlen(allowed[k].name) != len || memcmp(allowed[k].name, v[0], len) != 0)
      continue;
    const char *value = equals ? equals + 1 : allowed[k].values && n > 1 ? v[1] : NULL;
    if (!allowed[k].values ? !equals : value && is_one_of(value, allowed[k].values))
      return allowed[k].values && !equals ? 2 : 1;
    const enum status st =
        allowed[k].values ? fail(err, ST_INPUT, "neuronx-cc's %s takes one of %s", allowed[k].name, allowed[k].values)
                          : fail(err, ST_INPUT, "neuronx-cc's %s takes no value", allowed[k].name);
    return st ? 0 : 1;
  }
  const enum status st = fail(err, ST_INPUT, "%.80s is not among the options that may be passed to neuronx-cc", v[0]);
  return st ? 0 : 1;
}

enum status vendor_check_options(int n, const char *const *options, struct error *err) {
  for (int at = 0, took; at < n; at += took) {
    took = read_option(n - at, options + at, err);
    if (!took)
      return ST_INPUT;
  }
  return ST_OK;
}

/* ---- the command ------------------------------------------------------------------------------------------------- */

static const char *find_in_path(struct arena *a, const char *name) {
  const char *path = getenv("PATH");
  for (const char *p = path; p && *p;) {
    const char *colon = strchrnul(p, ':');
    const char *at = arena_printf(a, "%.*s/%s", (int)(colon - p), p, name);
    if (colon > p && *at == '/' && !access(at, X_OK))
      return at;
    p = *colon ? colon + 1 : colon;
  }
  return NULL;
}

const char *vendor_program(struct arena *a, const char *given) {
  if (!given)
    given = getenv("NKX_NEURONX_CC");
  char *real = given ? realpath(given, NULL) : NULL; /* it will run in another directory */
  const char *program = real ? arena_strdup(a, real) : given ? NULL : find_in_path(a, "neuronx-cc");
  free(real);
  return program && !access(program, X_OK) ? program : NULL;
}

const char *vendor_version(struct arena *a, const char *program) {
  enum { VERSION_MS = 60000, VERSION_MIB = 8 << 10 };
  const char *argv[] = {program, "--version", NULL}, *dir;
  struct vendor_end end = {0};
  if (vendor_dir_make(a, &dir, NULL))
    return "";
  const struct vendor_process p = {.argv = argv, .dir = dir, .wall_ms = VERSION_MS, .memory_mib = VERSION_MIB};
  const bool ok = !vendor_process_run(a, &p, &end, NULL) && end.is_started && !end.exit_status;
  vendor_dir_remove(dir);
  return ok ? arena_strndup(a, end.tail, strcspn(end.tail, "\n")) : "";
}

static enum status find_program(struct compiling *c) {
  const char *given = c->rq->options->program ? c->rq->options->program : getenv("NKX_NEURONX_CC");
  c->program = vendor_program(c->arena, given);
  if (c->program)
    return ST_OK;
  diag_add(c->ds, DS_ERROR, DG_VENDOR_MISSING, NULL, "neuronx-cc, the vendor's compiler, is not here%s%s",
           given ? ": " : "", given ? given : "")
      ->hint = "install the package neuronx-cc from the vendor's repository, or name the program with --neuronx-cc or "
               "NKX_NEURONX_CC; only it can make a NEFF that a device executes";
  return ST_INPUT;
}

static void add(struct compiling *c, const char *argument) {
  array_push(c->arena, &c->argv, argument);
}

static const char *product_name(const struct compiling *c) {
  return c->rq->product == VENDOR_NKI ? "nki.py" : "kernel.neff";
}

static void make_command(struct compiling *c) {
  static const char *const begin[] = {"compile", "--framework", "XLA", "hlo_module.pb", "--pipeline"};
  const struct vendor_options *o = c->rq->options;
  add(c, c->program);
  for (size_t k = 0; k < sizeof begin / sizeof *begin; k++)
    add(c, begin[k]);
  add(c, c->rq->product == VENDOR_NKI ? "tensorize" : "compile");
  add(c, "SaveTemps");
  add(c, "--target");
  add(c, target_name(c->rq->target));
  if (c->rq->product == VENDOR_NKI)
    add(c, "--tensorizer-options=--print-nki");
  else
    add(c, "--output=kernel.neff");
  add(c, "--lnc");
  add(c, o->lnc == 2 ? "2" : "1");
  for (int k = 0; k < o->n_extra; k++)
    add(c, o->extra[k]);
  add(c, NULL);
}

/* ---- the cache --------------------------------------------------------------------------------------------------- */

/* The key has the HLO, the command, and which file the compiler is. */
static enum status make_key(struct compiling *c) {
  struct stat st = {0};
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned n = 0;
  EVP_MD_CTX *md = EVP_MD_CTX_new();
  bool ok = md && !stat(c->program, &st) && EVP_DigestInit_ex(md, EVP_sha256(), NULL);
  const char *file = arena_printf(c->arena, "%lld %lld.%09ld %llu", (long long)st.st_size, (long long)st.st_mtim.tv_sec,
                                  st.st_mtim.tv_nsec, (unsigned long long)st.st_ino);
  ok = ok && EVP_DigestUpdate(md, file, strlen(file) + 1);
  for (int k = 0; ok && k < c->argv.n - 1; k++)
    ok = EVP_DigestUpdate(md, c->argv.v[k], strlen(c->argv.v[k]) + 1);
  ok = ok && EVP_DigestUpdate(md, c->rq->proto, c->rq->proto_size) && EVP_DigestFinal_ex(md, digest, &n);
  EVP_MD_CTX_free(md);
  for (unsigned k = 0; ok && k < 32; k++)
    snprintf(c->key + 2 * k, 3, "%02x", digest[k]);
  return ok ? ST_OK : refuse(c, DG_INTERNAL, "the hash of a command cannot be computed");
}

static bool read_product(const struct compiling *c, const char *path, struct vendor_result *out) {
  struct vendor_file f;
  const bool ok = vendor_file_read(c->arena, path, &f);
  if (ok)
    *out = (struct vendor_result){.data = f.data, .size = f.size};
  return ok;
}

/* The product can be read as what it is. */
static bool is_sound(const struct compiling *c, const struct vendor_result *x, struct error *err) {
  struct arena scratch;
  struct neff neff;
  if (c->rq->product == VENDOR_NKI)
    return x->size > 0;
  arena_init(&scratch);
  const enum status st = neff_read(&scratch, x->data, x->size, NEFF_LIMITS, &neff, err);
  arena_clear(&scratch);
  return !st;
}

static const char *cached_path(const struct compiling *c) {
  return arena_printf(c->arena, "%s/%s-%s", c->rq->options->cache_dir, c->key, product_name(c));
}

static bool find_cached(const struct compiling *c, struct vendor_result *out) {
  struct error err;
  out->is_cached = c->rq->options->cache_dir && read_product(c, cached_path(c), out) && is_sound(c, out, &err);
  if (out->is_cached)
    vendor_cache_use(cached_path(c));
  return out->is_cached;
}

static void keep(struct compiling *c, const struct vendor_result *x) {
  const struct vendor_options *o = c->rq->options;
  if (o->cache_dir &&
      !vendor_cache_keep(c->arena, o->cache_dir, cached_path(c), x->data, x->size, (int64_t)o->cache_mib << 20))
    diag_add(c->ds, DS_WARNING, DG_VENDOR_OUTPUT, NULL, "what neuronx-cc made cannot be kept in %s: %s", o->cache_dir,
             strerror(errno));
}

/* ---- failures ---------------------------------------------------------------------------------------------------- */

static bool has_any(const char *text, const char *const *words, size_t n) {
  for (size_t k = 0; k < n; k++)
    if (strstr(text, words[k]))
      return true;
  return false;
}
#define HAS_ANY(text, ...) \
  has_any(text, (const char *const[]){__VA_ARGS__}, sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *))

static bool is_memory(const struct vendor_end *end) {
  return end->signal == SIGKILL ||
         HAS_ANY(end->tail, "F137", "MemoryError", "std::bad_alloc", "Cannot allocate memory");
}

static bool is_argument(const struct vendor_end *end) {
  return end->exit_status == 2 || HAS_ANY(end->tail, "unrecognized arguments", "invalid choice", "NCC_EARG");
}

static bool is_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.' || c == '-';
}

/* True if the text up to p says that a name follows: a '%', a quote, or a word for an instruction. */
static bool announces_name(const char *text, const char *p) {
  static const char *const words[] = {"instruction ", "instruction: ", "op ", "operation ", "op_name="};
  if (p > text && strchr("%'\"`", p[-1]))
    return true;
  for (size_t k = 0; k < sizeof words / sizeof *words; k++) {
    const size_t n = strlen(words[k]);
    if ((size_t)(p - text) >= n && !strncasecmp(p - n, words[k], n))
      return true;
  }
  return false;
}

/* The place of the first instruction that a line names. */
static const struct src_loc *find_place(const struct compiling *c, const char *line, const char **name) {
  for (const char *p = line; *p;) {
    size_t n = 0;
    while (is_name(p[n]))
      n++;
    if (n && announces_name(line, p)) {
      while (n > 1 && p[n - 1] == '.') /* the end of a sentence */
        n--;
      *name = arena_strndup(c->arena, p, n);
      const struct src_loc *loc = c->rq->place ? c->rq->place(c->rq->user, *name) : NULL;
      if (loc)
        return loc;
    }
    p += n ? n : 1;
  }
  *name = NULL;
  return NULL;
}

static bool is_error_line(const char *line) {
  return HAS_ANY(line, "ERROR", "Error", "error", "NCC_", "assert", "Assert", "Exception");
}

/* The lines of the log's end. */
static const char **split(struct arena *a, const char *text, int *n) {
  char *copy = arena_strdup(a, text), *state = NULL;
  struct {
    const char **v;
    int n, cap;
  } lines = {0};
  for (char *line = strtok_r(copy, "\n", &state); line; line = strtok_r(NULL, "\n", &state))
    array_push(a, &lines, line);
  *n = lines.n;
  return lines.v;
}

/* The last lines of the log. */
static const char *end_of_log(struct arena *a, const char *const *lines, int n) {
  const char *text = "the end of neuronx-cc's log:";
  for (int k = n > ERRORS_SHOWN ? n - ERRORS_SHOWN : 0; k < n; k++)
    text = arena_printf(a, "%s\n           %s", text, lines[k]);
  return n ? text : NULL;
}

/* Reports a compiler that failed: by the first line of its log that tells of an error, with the place of the instruction that this
 * or a later line names. */
static void report_failure(struct compiling *c, const struct vendor_end *end) {
  const char *what = NULL, *name = NULL;
  const struct src_loc *loc = NULL;
  int n;
  const char **lines = split(c->arena, end->tail, &n);
  for (int k = 0; k < n; k++) {
    if (!is_error_line(lines[k]))
      continue;
    what = what ? what : lines[k];
    loc = loc ? loc : find_place(c, lines[k], &name);
  }
  what = what ? what : n ? lines[n - 1] : "it wrote nothing";
  const char *how = end->exit_status >= 0 ? arena_printf(c->arena, "exit status %d", end->exit_status)
                                          : arena_printf(c->arena, "signal %d", end->signal);
  const enum diag_code code = is_memory(end)     ? DG_VENDOR_MEMORY
                              : is_argument(end) ? DG_VENDOR_ARGUMENT
                                                 : DG_VENDOR_FAILED;
  diag_add(c->ds, DS_ERROR, code, loc, "neuronx-cc failed (%s): %s", how, what)->hint = end_of_log(c->arena, lines, n);
}

static enum status judge(struct compiling *c, const struct vendor_end *end, struct vendor_result *out) {
  struct error err = {0};
  const int wall_ms = c->rq->options->wall_ms;
  if (end->is_late) {
    diag_add(c->ds, DS_ERROR, DG_VENDOR_TIMEOUT, NULL, "neuronx-cc was stopped after %d.%d s, which is its limit",
             wall_ms / 1000, wall_ms % 1000 / 100);
    return ST_LIMIT;
  }
  if (end->is_too_large)
    return refuse(
        c, DG_VENDOR_MEMORY,
        arena_printf(c->arena,
                     "neuronx-cc was stopped: its processes had more than %d MiB together, which is their limit",
                     c->rq->options->memory_mib));
  if (end->lacks_walls)
    return refuse(c, DG_VENDOR_FAILED,
                  "neuronx-cc was not started: this machine does not let its jail be made (namespaces of mounts)");
  if (!end->is_started)
    return refuse(c, DG_VENDOR_MISSING, arena_printf(c->arena, "%s cannot be started", c->program));
  if (end->exit_status) {
    report_failure(c, end);
    return ST_INPUT;
  }
  if (!read_product(c, arena_printf(c->arena, "%s/%s", c->dir, product_name(c)), out))
    return refuse(c, DG_VENDOR_OUTPUT, arena_printf(c->arena, "neuronx-cc wrote no %s", product_name(c)));
  if (!is_sound(c, out, &err))
    return refuse(c, DG_VENDOR_OUTPUT,
                  arena_printf(c->arena, "neuronx-cc wrote a %s that cannot be read: %s", product_name(c), err.text));
  keep(c, out);
  return ST_OK;
}

/* ---- compiling --------------------------------------------------------------------------------------------------- */

static enum status run(struct compiling *c, struct vendor_result *out) {
  struct vendor_end end;
  struct error err = {0};
  const struct vendor_process p = {.argv = c->argv.v,
                                   .dir = c->dir,
                                   .wall_ms = c->rq->options->wall_ms,
                                   .memory_mib = c->rq->options->memory_mib,
                                   .has_walls = c->rq->options->has_walls,
                                   .hidden = c->rq->options->hidden,
                                   .log = c->rq->log,
                                   .user = c->rq->user};
  if (!vendor_file_write(c->arena, arena_printf(c->arena, "%s/hlo_module.pb", c->dir), c->rq->proto, c->rq->proto_size))
    return refuse(c, DG_INTERNAL, "the HLO cannot be written for neuronx-cc");
  const enum status st = vendor_process_run(c->arena, &p, &end, &err);
  return st ? refuse(c, DG_INTERNAL, arena_strdup(c->arena, err.text)) : judge(c, &end, out);
}

enum status vendor_compile(struct arena *a, const struct vendor_request *rq, struct diags *ds,
                           struct vendor_result *out) {
  struct compiling c = {.arena = a, .rq = rq, .ds = ds};
  struct error err = {0};
  if (vendor_check_options(rq->options->n_extra, rq->options->extra, &err))
    return refuse(&c, DG_VENDOR_ARGUMENT, arena_strdup(a, err.text));
  enum status st = find_program(&c);
  if (st)
    return st;
  make_command(&c);
  st = make_key(&c);
  if (st || find_cached(&c, out))
    return st;
  if (vendor_dir_make(a, &c.dir, &err))
    return refuse(&c, DG_INTERNAL, arena_strdup(a, err.text));
  st = run(&c, out);
  vendor_dir_remove(c.dir);
  return st;
}
