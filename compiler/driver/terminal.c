/* terminal: see the header. */
#include "driver/terminal.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include <jansson.h>

#include "driver/by_hand.h"
#include "base/array.h"
#include "base/buf.h"
#include "base/caret.h"
#include "base/utf8.h"
#include "driver/entry.h"
#include "driver/main.h"
#include "driver/neff_file.h"
#include "driver/paths.h"
#include "driver/patterns.h"
#include "driver/pipeline.h"
#include "driver/result_file.h"
#include "hlo/read.h"
#include "ir/ir.h"
#include "neff/package.h"
#include "nki/nki.h"
#include "trace/trace.h"

enum { INNER_CALLS = 3 }; /* the number of calls of a long chain that are shown, besides the outermost */

void terminal_init(struct terminal *t, struct arena *a) {
  *t = (struct terminal){.arena = a, .is_color = isatty(STDERR_FILENO)};
  job_init(&t->job);
}

/* ---- options ----------------------------------------------------------------------------------------------------- */

static enum status parse_input(struct terminal *t, const char *text) {
  if (t->n_inputs == t->cap_inputs)
    t->inputs = array_grow(t->arena, t->inputs, t->n_inputs, &t->cap_inputs, sizeof *t->inputs);
  enum status st = job_parse_input(t->arena, text, &t->inputs[t->n_inputs], &t->err);
  t->n_inputs += !st;
  t->job.inputs = t->inputs;
  t->job.n_inputs = t->n_inputs;
  return st;
}

static enum status parse_target(struct terminal *t, const char *name) {
  if (target_from_name(name, &t->job.target))
    return ST_OK;
  return fail(&t->err, ST_INPUT, "--target %.60s: expected " TARGET_NAMES, name);
}

static enum status parse_language(struct terminal *t, const char *name) {
  t->is_language_given = true;
  if (language_from_name(name, &t->job.language) && t->job.language != LANG_NEFF)
    return ST_OK;
  return fail(&t->err, ST_INPUT, "--language %.60s: expected " LANGUAGE_NAMES, name);
}

enum status terminal_read_text(struct terminal *t, const char *path, const char **text, size_t *len) {
  FILE *f = strcmp(path, "-") ? fopen(path, "re") : stdin;
  char chunk[16 << 10];
  struct buf b;
  size_t n;

  if (!f)
    return fail(&t->err, ST_IO, "%.160s: %m", path);
  buf_init(&b, 4 * JOB_SOURCE_MAX); /* the tracer enforces the real limit and reports it with a diagnostic */
  while ((n = fread(chunk, 1, sizeof chunk, f)) > 0)
    if (buf_append(&b, chunk, n))
      break;
  enum status st = ferror(f)        ? fail(&t->err, ST_IO, "%.160s: %m", path)
                   : buf_status(&b) ? fail(&t->err, buf_status(&b), "%.160s is far too large", path)
                                    : ST_OK;
  if (f != stdin)
    fclose(f);
  *len = b.len;
  *text = st ? NULL : arena_strndup(t->arena, buf_text(&b), b.len);
  buf_clear(&b);
  return st;
}

/* Adds a file that the kernel may import. */
static enum status add_file(struct terminal *t, const char *name, const char *text, size_t len) {
  for (int i = 0; i < t->files.n; i++)
    if (!strcmp(t->files.v[i].name, name))
      return fail(&t->err, ST_INPUT, "two files are called %.160s", name);
  if (t->files.n == JOB_FILES_MAX)
    return fail(&t->err, ST_LIMIT, "the kernel imports more than %d files", JOB_FILES_MAX);
  array_push(t->arena, &t->files, (struct job_file){name, text, len});
  t->job.files = t->files.v;
  t->job.n_files = t->files.n;
  return ST_OK;
}

static enum status read_file(struct terminal *t, const char *name, const char *path) {
  const char *text;
  size_t len;
  if (strlen(name) < sizeof ".py" || strcmp(name + strlen(name) - 3, ".py") != 0)
    return fail(&t->err, ST_INPUT, "%.160s: the name of a file to import ends in .py; see nkx %s --help", name,
                t->command);
  enum status st = terminal_read_text(t, path, &text, &len);
  return st ? st : add_file(t, name, text, len);
}

/* Parses NAME=PATH. */
static enum status parse_file(struct terminal *t, const char *text) {
  const char *equals = strchr(text, '=');
  if (!equals || equals == text || !equals[1])
    return fail(&t->err, ST_INPUT, "--file %.160s: expected NAME=PATH", text);
  return read_file(t, arena_strndup(t->arena, text, (size_t)(equals - text)), equals + 1);
}

enum status terminal_read_int(struct terminal *t, const char *option, const char *text, int least, int most, int *out) {
  char *end;
  const long n = strtol(text, &end, 10);
  if (end == text || *end || n < least || n > most)
    return fail(&t->err, ST_INPUT, "%s %.40s: expected a number from %d to %d", option, text, least, most);
  *out = (int)n;
  return ST_OK;
}

/* Parses STAGE=PATH. */
static enum status parse_resume(struct terminal *t, const char *text) {
  struct job_resume *r = &t->job.resume;
  const char *equals = strchr(text, '=');
  if (!equals || equals == text || !equals[1])
    return fail(&t->err, ST_INPUT, "--resume %.160s: expected STAGE=TEXT", text);
  r->stage = arena_strndup(t->arena, text, (size_t)(equals - text));
  if (pipeline_stage(&pipeline_hlo, r->stage) < 0 && pipeline_stage(&pipeline_nki, r->stage) < 0)
    return fail(&t->err, ST_INPUT, "--resume %.60s: there is no such stage", r->stage);
  enum status st = terminal_read_text(t, equals + 1, &r->text, &r->len);
  if (!st && r->len > JOB_RESUME_MAX)
    st = fail(&t->err, ST_LIMIT, "%.160s: %zu bytes; the limit is %d", equals + 1, r->len, JOB_RESUME_MAX);
  return st;
}

/* Parses a name, or changes. */
static enum status parse_pipeline(struct terminal *t, const char *text) {
  struct error why = {0};
  if (!strcmp(text, "list")) {
    by_hand_print(stdout);
    exit(EXIT_DONE);
  }
  if (!strchr(text, ' '))
    return job_choose_pipeline(&t->job, text) ? ST_OK
                                              : fail(&t->err, ST_INPUT,
                                                     "--pipeline %.60s: expected " PIPELINE_CHOICES
                                                     ", or a change: \"without STAGE\", \"after STAGE PASS\"",
                                                     text);
  enum status st = job_choose_by_hand(t->arena, text, &t->job, &why);
  return st ? fail(&t->err, st, "--pipeline: %s", why.text) : ST_OK;
}

enum status terminal_read_patterns(struct terminal *t, const char *path) {
  enum status st = terminal_read_text(t, path, &t->job.patterns, &t->job.patterns_len);
  if (!st && t->job.patterns_len > PATTERNS_LEN_MAX)
    st = fail(&t->err, ST_LIMIT, "%.160s: %zu bytes; the limit is %d", path, t->job.patterns_len, PATTERNS_LEN_MAX);
  return st;
}

enum status terminal_option(struct terminal *t, int c, const char *value) {
  switch (c) {
  case 'f':
    return parse_file(t, value);
  case 'k':
    t->job.kernel = value;
    return ST_OK;
  case 'l':
    return parse_language(t, value);
  case 't':
    return parse_target(t, value);
  case 'i':
    return parse_input(t, value);
  case 'P':
    return parse_pipeline(t, value);
  case 'u':
    t->job.keep_rounds = true;
    return ST_OK;
  case 'Z':
    return terminal_read_int(t, "--constants", value, 0, JOB_CONSTANTS_MAX, &t->job.constants);
  case 'n':
    return terminal_read_int(t, "--instance", value, 0, NKI_INSTANCES_MAX - 1, &t->job.instance);
  case 'E':
    return parse_resume(t, value);
  case 'I':
    t->job.inputs_npz = value;
    return ST_OK;
  default:
    return fail(&t->err, ST_INPUT, "see nkx %s --help", t->command);
  }
}

/* ---- sources ----------------------------------------------------------------------------------------------------- */

/* Takes the program, the machine and the names of inputs and outputs from a simulation package. */
static enum status read_package(struct terminal *t, const char *path) {
  struct error why = {0};
  struct neff_opened x;
  struct neff neff;
  enum status st = neff_file_read(t->arena, path, &neff, &t->err);
  if (st)
    return st;
  st = neff_package_open(t->arena, &neff, &x, &why);
  if (st)
    return fail(&t->err, st, "%.80s: %.150s", path, why.text);
  t->job.source = x.text;
  t->job.source_len = x.text_len;
  t->job.filename = path;
  t->job.language = LANG_MLIR;
  t->job.target = x.target;
  t->job.package = arena_dup(t->arena, &x, sizeof x);
  return ST_OK;
}

static enum status read_source(struct terminal *t, const char *path) {
  t->job.package = NULL;
  if (neff_file_is(path))
    return read_package(t, path);
  enum status st = terminal_read_text(t, path, &t->job.source, &t->job.source_len);
  if (st)
    return st;
  t->job.filename = strcmp(path, "-") ? path : "<stdin>";
  if (!t->is_language_given)
    t->job.language = entry_guess_language(t->job.filename, t->job.source, t->job.source_len);
  t->job.is_binary = t->job.language == LANG_HLO && !hlo_is_text(t->job.source, t->job.source_len);
  return ST_OK;
}

/* Reads the kernel, and the files after it. */
enum status terminal_read_sources(struct terminal *t, char **paths, int n) {
  enum status st = read_source(t, paths[0]);
  for (int i = 1; !st && i < n; i++)
    st = read_file(t, paths[i], paths[i]);
  if (!st && job_lacking_stage(&t->job))
    st = fail(&t->err, ST_INPUT, "--pipeline reference: it has no stage %.60s", job_lacking_stage(&t->job));
  if (!st && t->files.n && t->job.language != LANG_NKIPY && t->job.language != LANG_HLO)
    st = fail(&t->err, ST_INPUT, "only a kernel in Python or in HLO has further files");
  return st;
}

/* Adds the files that the kernel imports from its own folder. */
enum status terminal_find_files(struct terminal *t) {
  struct trace_file *given = arena_new_array(t->arena, struct trace_file, (size_t)t->files.n);
  const struct trace_file *found = NULL;
  for (int i = 0; i < t->files.n; i++)
    given[i] = (struct trace_file){t->files.v[i].name, t->files.v[i].source, t->files.v[i].source_len};
  const struct trace_request rq = {.source = t->job.source,
                                   .source_len = t->job.source_len,
                                   .filename = t->job.filename,
                                   .n_files = t->files.n,
                                   .files = given};
  const int n = trace_files_beside(t->arena, &rq, &found);
  enum status st = n < 0 ? fail(&t->err, ST_BUG, "the files beside the kernel cannot be found") : ST_OK;
  for (int i = 0; !st && i < n; i++)
    st = add_file(t, found[i].name, found[i].source, found[i].source_len);
  return st;
}

enum status terminal_read_other(struct terminal *t, const char *path) {
  t->files.n = t->job.n_files = 0;
  enum status st = read_source(t, path);
  return st || t->job.language != LANG_NKIPY ? st : terminal_find_files(t);
}

/* Under a limit of processor time (ulimit -t) the stages reached so far still come out. */
static void warn_before_cpu_limit(void) {
  struct rlimit r;
  struct sigaction a;
  if (getrlimit(RLIMIT_CPU, &r) || r.rlim_cur == RLIM_INFINITY || r.rlim_cur > INT_MAX || r.rlim_cur < 1)
    return;
  if (!sigaction(SIGPROF, NULL, &a)) { /* output that is being written goes on after the signal */
    a.sa_flags |= SA_RESTART;
    sigaction(SIGPROF, &a, NULL);
  }
  trace_warn_before_cpu_limit((int)r.rlim_cur);
}

enum status terminal_start(struct terminal *t, struct ir *ir) {
  struct paths paths;
  enum status st = paths_find(t->arena, &paths, &t->err);
  if (!st)
    st = trace_init(paths.python_dir, paths.site_dir, &t->err);
  if (!st) {
    warn_before_cpu_limit();
    st = ir_init(ir, &t->err);
  }
  if (!st && t->job.language == LANG_NKIPY)
    st = terminal_find_files(t);
  return st;
}

/* ---- showing ----------------------------------------------------------------------------------------------------- */

const char *terminal_color(const struct terminal *t, const char *code) {
  return t->is_color ? code : "";
}

/* Returns the text of the file that a range is in: one that the kernel imports, the changed text of a stage, or the kernel. */
static void find_text(const struct terminal *t, const json_t *range, const char **text, size_t *len) {
  const char *name = json_string_value(json_object_get(range, "file"));
  const bool is_patterns = t->job.patterns && name && !strcmp(name, PATTERNS_FILE);
  const bool is_stage = !is_patterns && t->job.resume.text && name && strcmp(name, t->job.filename) != 0;
  *text = is_stage ? t->job.resume.text : t->job.source;
  *len = is_stage ? t->job.resume.len : t->job.source_len;
  if (is_patterns) {
    *text = t->job.patterns;
    *len = t->job.patterns_len;
  }
  for (int i = 0; name && i < t->files.n; i++)
    if (!strcmp(t->files.v[i].name, name)) {
      *text = t->files.v[i].source;
      *len = t->files.v[i].source_len;
    }
}

/* Prints the source line and carets under the range. */
static void show_caret(const struct terminal *t, const json_t *range) {
  int line = (int)json_integer_value(json_object_get(range, "line"));
  int col = (int)json_integer_value(json_object_get(range, "col"));
  int end_line = (int)json_integer_value(json_object_get(range, "end_line"));
  int end_col = (int)json_integer_value(json_object_get(range, "end_col"));
  const char *p;
  size_t len;
  find_text(t, range, &p, &len);
  const char *end = p + len;

  for (int i = 1; p < end && i < line; i++) {
    const char *nl = memchr(p, '\n', (size_t)(end - p));
    p = nl ? nl + 1 : end;
  }
  if (line < 1 || p >= end || t->job.is_binary)
    return;
  const char *nl = memchr(p, '\n', (size_t)(end - p));
  caret_print(stderr, line, p, (size_t)((nl ? nl : end) - p), col, end_line > line ? CARET_TO_END : end_col);
}

void terminal_put_text(const char *text, size_t n) {
  if (isatty(STDOUT_FILENO))
    utf8_print(stdout, text, n);
  else
    fwrite(text, 1, n, stdout);
}

/* What a kernel or a user wrote. */
static void show_text(const char *s) {
  utf8_print(stderr, s ? s : "", s ? strlen(s) : 0);
}

void terminal_show_diag(const struct terminal *t, const json_t *d) {
  const char *severity = json_string_value(json_object_get(d, "severity"));
  const char *hint = json_string_value(json_object_get(d, "hint"));
  const json_t *range = json_object_get(d, "range"), *call;
  bool is_error = severity && !strcmp(severity, "error");
  size_t i;

  if (range) {
    show_text(json_string_value(json_object_get(range, "file")));
    fprintf(stderr, ":%d:%d: ", (int)json_integer_value(json_object_get(range, "line")),
            (int)json_integer_value(json_object_get(range, "col")));
  }
  fprintf(stderr, "%s%s%s: ", terminal_color(t, is_error ? "\033[1;31m" : "\033[1;33m"), severity,
          terminal_color(t, "\033[0m"));
  show_text(json_string_value(json_object_get(d, "message")));
  fprintf(stderr, " [%s]\n", json_string_value(json_object_get(d, "code")));
  if (range)
    show_caret(t, range);
  size_t n = json_array_size(json_object_get(d, "calls"));
  json_array_foreach(json_object_get(d, "calls"), i, call) {
    bool is_folded = n > INNER_CALLS + 2 && i >= INNER_CALLS && i < n - 1;
    if (!is_folded) {
      fputs("       = called from ", stderr);
      show_text(json_string_value(json_object_get(call, "file")));
      fprintf(stderr, ":%d\n", (int)json_integer_value(json_object_get(call, "line")));
    } else if (i == INNER_CALLS)
      fprintf(stderr, "       = … %zu more calls\n", n - INNER_CALLS - 1);
  }
  if (hint) {
    fputs("       = hint: ", stderr);
    show_text(hint);
    fputc('\n', stderr);
  }
}

/* Reports why the file or directory cannot be written; returns ST_INPUT if the user's path is the reason. */
enum status terminal_refuse_path(struct terminal *t, const char *path) {
  return result_file_refuse_path(path, &t->err);
}

static int exit_status_of(enum status st) {
  switch (st) {
  case ST_OK:
    return EXIT_DONE;
  case ST_INPUT:
    return EXIT_REFUSED;
  case ST_LIMIT:
  case ST_TIMEOUT:
  case ST_NOMEM:
    return EXIT_LIMIT;
  default:
    return EXIT_FAULT;
  }
}

enum status terminal_write(struct terminal *t, const char *path, const void *data, size_t len) {
  FILE *f = strcmp(path, "-") ? fopen(path, "we") : stdout;
  if (!f)
    return terminal_refuse_path(t, path);
  bool ok = fwrite(data, 1, len, f) == len;
  ok &= (f == stdout ? fflush(f) : fclose(f)) == 0;
  return ok ? ST_OK : fail(&t->err, ST_IO, "%.160s: %m", path);
}

int terminal_main(struct terminal *t, const struct terminal_command *def, void *command, int argc, char **argv) {
  t->command = def->name;
  enum status st = def->parse(command, argc, argv);
  if (!st)
    st = def->read ? def->read(command, argv + optind, argc - optind)
                   : terminal_read_sources(t, argv + optind, argc - optind);
  const enum status ran = st ? ST_OK : def->run(command);
  if (t->err.text[0]) {
    fprintf(stderr, "nkx %s: ", t->command);
    show_text(t->err.text);
    fputc('\n', stderr);
  }
  return !st ? exit_status_of(ran) : st == ST_LIMIT ? EXIT_LIMIT : EXIT_USAGE;
}
