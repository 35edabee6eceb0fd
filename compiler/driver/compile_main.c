/* compile_main: `nkx compile KERNEL.py [FILE.py…]`: the whole pipeline for the terminal.
 *
 * The command runs in this process, without a jail, because the kernel is the user's own.  It reads the frames like
 * any client: the last stage's text goes to standard output; a table of stages and the diagnostics, with a caret
 * under the Python range, go to standard error.  --json writes the result object of the API.
 */
#include "driver/main.h"

#include <assert.h>
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <jansson.h>
#include <openssl/evp.h>

#include "base/array.h"
#include "base/buf.h"
#include "base/utf8.h"
#include "driver/compile.h"
#include "driver/entry.h"
#include "driver/gather.h"
#include "driver/paths.h"
#include "driver/pipeline.h"
#include "driver/source_table.h"
#include "hlo/read.h"
#include "ir/ir.h"
#include "trace/trace.h"

static const char usage[] =
    "usage: nkx compile KERNEL [FILE.py…] [options]  (- reads standard input)\n"
    "  FILE.py…                   files that KERNEL imports; those in its own folder are found without this\n"
    "  --file NAME=PATH           a file that KERNEL imports by another name: --file pkg/util.py=/tmp/new.py; "
    "repeatable\n"
    "  --language nkipy|hlo|mlir  the language of KERNEL: Python, HLO (text or HloModuleProto) or MLIR on tensors; by "
    "default\n"
    "                             its name (.py .hlo .pb .mlir) and its first line decide\n"
    "  --kernel NAME              compile only this kernel of the file\n"
    "  --target trn1|trn2|trn3    the machine (trn2)\n"
    "  --stop-after STAGE[:N]     the last stage to run; N counts stages of the same name from 1\n"
    "  --input NAME=SHAPE:DTYPE   the shape of a parameter of a plain function: --input x=128x256:f32; repeatable\n"
    "  --inputs FILE.npz          the inputs by parameter name; they also give the shapes\n"
    "  --check                    run every stage and compare its outputs with NumPy\n"
    "  --reproducer FILE          with --check: write the first failing stage there, for nkx reproduce: the program "
    "before\n"
    "                             the pass, the pass, inputs and NumPy's results\n"
    "  --dump-dir DIR             write each stage's text, hlo.pb and hlo.txt there\n"
    "  --json FILE|-              write the result as JSON, in the form of the API\n"
    "  --quiet                    print no table of stages\n"
    "  --remarks                  print below each stage what its pass decided: tiles, memories, fusions, spills\n";

enum { INNER_CALLS = 3 }; /* the number of calls of a long chain that are shown, besides the outermost */
static const size_t frames_max = (size_t)4 << 30; /* in bytes; far more than a useful file needs */

struct terminal {
  struct job job;
  struct arena *arena;
  struct buf frames;    /* of a run with --json, each on its own line */
  struct gather gather; /* the places of the frames */
  struct source_table sources;
  const char *dump_dir, *json_path, *reproducer_path;
  bool is_quiet, is_color, has_remarks, is_language_given;
  char *last_text; /* of the newest stage, as JSON; on the heap */
  struct job_input *inputs;
  int n_inputs, cap_inputs;
  struct {
    struct job_file *v;
    int n, cap;
  } files;
  struct error err;
};

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
  if (language_from_name(name, &t->job.language))
    return ST_OK;
  return fail(&t->err, ST_INPUT, "--language %.60s: expected " LANGUAGE_NAMES, name);
}

/* Reads a file, or standard input for "-", into the arena. */
static enum status read_text(struct terminal *t, const char *path, const char **text, size_t *len) {
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
    return fail(&t->err, ST_INPUT, "%.160s: the name of a file to import ends in .py; see nkx compile --help", name);
  enum status st = read_text(t, path, &text, &len);
  return st ? st : add_file(t, name, text, len);
}

/* Parses NAME=PATH. */
static enum status parse_file(struct terminal *t, const char *text) {
  const char *equals = strchr(text, '=');
  if (!equals || equals == text || !equals[1])
    return fail(&t->err, ST_INPUT, "--file %.160s: expected NAME=PATH", text);
  return read_file(t, arena_strndup(t->arena, text, (size_t)(equals - text)), equals + 1);
}

static enum status parse_options(struct terminal *t, int argc, char **argv) {
  static const struct option options[] = {
      {"file", required_argument, NULL, 'f'},
      {"kernel", required_argument, NULL, 'k'},
      {"language", required_argument, NULL, 'l'},
      {"target", required_argument, NULL, 't'},
      {"stop-after", required_argument, NULL, 's'},
      {"input", required_argument, NULL, 'i'},
      {"inputs", required_argument, NULL, 'I'},
      {"check", no_argument, NULL, 'c'},
      {"reproducer", required_argument, NULL, 'R'},
      {"dump-dir", required_argument, NULL, 'd'},
      {"json", required_argument, NULL, 'j'},
      {"quiet", no_argument, NULL, 'q'},
      {"remarks", no_argument, NULL, 'r'},
      {"help", no_argument, NULL, 'h'},
      {NULL, 0, NULL, 0},
  };
  enum status st = ST_OK;
  int c;

  while (!st && (c = getopt_long(argc, argv, "h", options, NULL)) != -1) {
    switch (c) {
    case 'f':
      st = parse_file(t, optarg);
      break;
    case 'k':
      t->job.kernel = optarg;
      break;
    case 'l':
      st = parse_language(t, optarg);
      break;
    case 't':
      st = parse_target(t, optarg);
      break;
    case 's':
      t->job.stop_after = optarg;
      if (!pipeline_has_stage(optarg))
        st = fail(&t->err, ST_INPUT, "--stop-after %.60s: there is no such stage", optarg);
      break;
    case 'i':
      st = parse_input(t, optarg);
      break;
    case 'I':
      t->job.inputs_npz = optarg;
      break;
    case 'c':
      t->job.check = true;
      break;
    case 'R':
      t->reproducer_path = optarg;
      t->job.check = true;
      break;
    case 'd':
      t->dump_dir = optarg;
      t->job.artifacts = true;
      break;
    case 'j':
      t->json_path = optarg;
      break;
    case 'q':
      t->is_quiet = true;
      break;
    case 'r':
      t->has_remarks = true;
      break;
    case 'h':
      fputs(usage, stdout);
      exit(EXIT_DONE);
    default:
      st = fail(&t->err, ST_INPUT, "see nkx compile --help");
    }
  }
  if (!st && optind >= argc)
    st = fail(&t->err, ST_INPUT, "expected a KERNEL; see nkx compile --help");
  return st;
}

static enum status read_source(struct terminal *t, const char *path) {
  enum status st = read_text(t, path, &t->job.source, &t->job.source_len);
  if (st)
    return st;
  t->job.filename = strcmp(path, "-") ? path : "<stdin>";
  if (!t->is_language_given)
    t->job.language = entry_guess_language(t->job.filename, t->job.source, t->job.source_len);
  t->job.is_binary = t->job.language == LANG_HLO && !hlo_is_text(t->job.source, t->job.source_len);
  return ST_OK;
}

/* Reads the kernel, and the files after it. */
static enum status read_sources(struct terminal *t, char **paths, int n) {
  enum status st = read_source(t, paths[0]);
  for (int i = 1; !st && i < n; i++)
    st = read_file(t, paths[i], paths[i]);
  if (!st && t->files.n && t->job.language != LANG_NKIPY)
    st = fail(&t->err, ST_INPUT, "only a kernel in Python imports files");
  return st;
}

/* Adds the files that the kernel imports from its own folder. */
static enum status add_files_beside(struct terminal *t) {
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

/* ---- showing ----------------------------------------------------------------------------------------------------- */

static const char *color(const struct terminal *t, const char *code) {
  return t->is_color ? code : "";
}

/* Returns the text of the file that a range is in; the kernel's own text if no other file has the name. */
static void find_text(const struct terminal *t, const json_t *range, const char **text, size_t *len) {
  const char *name = json_string_value(json_object_get(range, "file"));
  *text = t->job.source;
  *len = t->job.source_len;
  for (int i = 0; name && i < t->files.n; i++)
    if (!strcmp(t->files.v[i].name, name)) {
      *text = t->files.v[i].source;
      *len = t->files.v[i].source_len;
    }
}

/* Prints the source line and carets under the range; columns count code points. */
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
  size_t n = (size_t)((nl ? nl : end) - p);
  fprintf(stderr, "%6d | %.*s\n       | ", line, (int)n, p);
  int at = 1;
  for (size_t i = 0; i < n; i++) {
    if (utf8_is_continuation(p[i]))
      continue;
    bool is_inside = at >= col && (end_line > line || at < end_col);
    if (at > col && !is_inside)
      break;
    fputs(is_inside ? (at == col ? "^" : "~") : p[i] == '\t' ? "\t" : " ", stderr);
    at++;
  }
  if (at == col)
    fputc('^', stderr);
  fputc('\n', stderr);
}

static void show_diag(const struct terminal *t, const json_t *d) {
  const char *severity = json_string_value(json_object_get(d, "severity"));
  const char *hint = json_string_value(json_object_get(d, "hint"));
  const json_t *range = json_object_get(d, "range"), *call;
  bool is_error = severity && !strcmp(severity, "error");
  size_t i;

  if (range)
    fprintf(stderr, "%s:%d:%d: ", json_string_value(json_object_get(range, "file")),
            (int)json_integer_value(json_object_get(range, "line")),
            (int)json_integer_value(json_object_get(range, "col")));
  fprintf(stderr, "%s%s%s: %s [%s]\n", color(t, is_error ? "\033[1;31m" : "\033[1;33m"), severity, color(t, "\033[0m"),
          json_string_value(json_object_get(d, "message")), json_string_value(json_object_get(d, "code")));
  if (range)
    show_caret(t, range);
  size_t n = json_array_size(json_object_get(d, "calls"));
  json_array_foreach(json_object_get(d, "calls"), i, call) {
    bool is_folded = n > INNER_CALLS + 2 && i >= INNER_CALLS && i < n - 1;
    if (!is_folded)
      fprintf(stderr, "       = called from %s:%d\n", json_string_value(json_object_get(call, "file")),
              (int)json_integer_value(json_object_get(call, "line")));
    else if (i == INNER_CALLS)
      fprintf(stderr, "       = … %zu more calls\n", n - INNER_CALLS - 1);
  }
  if (hint)
    fprintf(stderr, "       = hint: %s\n", hint);
}

static void show_stage(const struct terminal *t, const json_t *s) {
  const json_t *check = json_object_get(s, "check"), *count;
  long long ops = 0;
  const char *key;
  bool is_changed = json_is_true(json_object_get(s, "changed"));

  json_object_foreach(json_object_get((json_t *)s, "op_counts"), key, count) ops += json_integer_value(count);
  fprintf(stderr, "%s%3d %s %-28s %5lld ops %8.2f ms", color(t, is_changed ? "" : "\033[2m"),
          (int)json_integer_value(json_object_get(s, "index")), is_changed ? "●" : "○",
          json_string_value(json_object_get(s, "name")), ops,
          (double)json_integer_value(json_object_get(s, "time_us")) / 1000);
  if (json_is_true(json_object_get(s, "partial")))
    fputs("  partial: up to the refusal", stderr);
  if (check) {
    const char *status = json_string_value(json_object_get(check, "status"));
    const json_t *reason = json_object_get(check, "reason");
    fprintf(stderr, "  %s", status);
    if (reason)
      fprintf(stderr, " (%s)", json_string_value(reason));
    else
      fprintf(stderr, " (max abs %.2g, rel %.2g)", json_number_value(json_object_get(check, "max_abs_err")),
              json_number_value(json_object_get(check, "max_rel_err")));
  }
  fprintf(stderr, "%s\n", color(t, "\033[0m"));
}

static void show_remarks(const struct terminal *t, const json_t *stage) {
  const json_t *r;
  size_t i;
  json_array_foreach(json_object_get(stage, "remarks"), i, r) {
    const json_t *first = json_array_get(source_table_list(&t->sources, json_object_get(r, "src")), 0);
    struct source_place place;
    fprintf(stderr, "%s      ", color(t, "\033[36m"));
    if (first && source_table_place(&t->sources, json_integer_value(first), &place))
      fprintf(stderr, "%s:%d:%d: ", place.file, (int)place.line, (int)place.col);
    fprintf(stderr, "%s%s\n", json_string_value(json_object_get(r, "text")), color(t, "\033[0m"));
  }
}

/* ---- dump -------------------------------------------------------------------------------------------------------- */

/* Reports why the file or directory cannot be written; returns ST_INPUT if the user's path is the reason. */
static enum status refuse_path(struct terminal *t, const char *path) {
  const bool is_disk = errno == ENOSPC || errno == EDQUOT || errno == EIO || errno == EMFILE || errno == ENFILE;
  return fail(&t->err, is_disk ? ST_IO : ST_INPUT, "cannot write %.160s: %m", path);
}

/* Creates the directories in `path` from byte `from` on, up to its last slash. */
static enum status make_directories(struct terminal *t, char *path, size_t from) {
  for (char *p = path + from; (p = strchr(p, '/')); *p++ = '/') {
    *p = 0;
    if (*path && mkdir(path, 0777) && errno != EEXIST)
      return refuse_path(t, path);
  }
  return ST_OK;
}

/* Creates the directories in `path` from byte `from` on. */
static enum status write_file(struct terminal *t, char *path, size_t from, const void *data, size_t len) {
  enum status st = make_directories(t, path, from);
  FILE *f = st ? NULL : fopen(path, "we");
  if (!f)
    return st ? st : refuse_path(t, path);
  bool ok = fwrite(data, 1, len, f) == len;
  ok &= fclose(f) == 0;
  return ok ? ST_OK : fail(&t->err, ST_IO, "%.160s: %m", path);
}

static enum status dump_stage(struct terminal *t, const json_t *frame, const json_t *s) {
  const json_t *text = json_object_get(s, "text");
  bool is_hlo = !strcmp(json_string_value(json_object_get(s, "dialect")), "hlo");
  char *path = arena_printf(t->arena, "%s/kernel%d/%02d-%s.%s", t->dump_dir,
                            (int)json_integer_value(json_object_get(frame, "kernel")),
                            (int)json_integer_value(json_object_get(s, "index")),
                            json_string_value(json_object_get(s, "name")), is_hlo ? "hlo" : "mlir");
  return write_file(t, path, strlen(t->dump_dir) + 1, json_string_value(text), json_string_length(text));
}

/* Writes an artifact to the dump directory, and the first reproducer to the file that the user named. */
static enum status write_artifact(struct terminal *t, const json_t *frame) {
  const json_t *data = json_object_get(frame, "data"), *artifact = json_object_get(frame, "artifact");
  size_t n = json_string_length(data), size = (size_t)json_integer_value(json_object_get(artifact, "size"));
  const char *name = json_string_value(json_object_get(artifact, "name")), *base = strrchr(name, '/');
  base = base ? base + 1 : name;
  const bool is_reproducer = t->reproducer_path && !strcmp(base, "reproducer.json");
  unsigned char *bytes = t->dump_dir || is_reproducer ? malloc(n / 4 * 3 + 1) : NULL;
  enum status st = ST_OK;

  if (!t->dump_dir && !is_reproducer)
    return ST_OK;
  if (!bytes)
    return fail(&t->err, ST_NOMEM, "artifact");
  EVP_DecodeBlock(bytes, (const unsigned char *)json_string_value(data), (int)n);
  if (t->dump_dir)
    st = write_file(t,
                    arena_printf(t->arena, "%s/kernel%d/%s", t->dump_dir,
                                 (int)json_integer_value(json_object_get(artifact, "kernel")), base),
                    strlen(t->dump_dir) + 1, bytes, size);
  if (!st && is_reproducer) {
    st = write_file(t, arena_strdup(t->arena, t->reproducer_path), strlen(t->reproducer_path), bytes, size);
    t->reproducer_path = NULL;
  }
  free(bytes);
  return st;
}

/* ---- running ----------------------------------------------------------------------------------------------------- */

static enum status show_frame(struct terminal *t, const json_t *f) {
  const char *kind = json_string_value(json_object_get(f, "frame"));
  const json_t *s = json_object_get(f, "stage");
  enum status st = ST_OK;

  if (!strcmp(kind, "sources")) {
    source_table_add(&t->sources, f);
  } else if (!strcmp(kind, "stage")) {
    if (!t->is_quiet)
      show_stage(t, s);
    if (t->has_remarks)
      show_remarks(t, s);
    if (t->dump_dir)
      st = dump_stage(t, f, s);
  } else if (!strcmp(kind, "diagnostic")) {
    show_diag(t, json_object_get(f, "diagnostic"));
  } else if (!strcmp(kind, "kernel") && !t->is_quiet) {
    fprintf(stderr, "%s%s%s\n", color(t, "\033[1m"), json_string_value(json_object_get(f, "name")),
            color(t, "\033[0m"));
  } else if (!strcmp(kind, "artifact")) {
    st = write_artifact(t, f);
  }
  return st;
}

/* Keeps a frame for the result object.  An artifact is kept without its data, which are in the dump directory. */
static enum status keep_frame(struct terminal *t, const char *json, size_t len) {
  struct frame f;
  const size_t at = t->frames.len;
  enum status st = frame_scan(json, len, &f, &t->err);
  if (st)
    return ST_BUG; /* this process made the frame */
  const struct frame_member *artifact = frame_get(&f, "artifact");
  if (f.kind == FRAME_ARTIFACT)
    buf_printf(&t->frames, "{\"frame\":\"artifact\",\"artifact\":%.*s}\n", (int)artifact->value_len, artifact->value);
  else if (!buf_append(&t->frames, json, len))
    buf_putc(&t->frames, '\n');
  if (buf_status(&t->frames))
    return fail(&t->err, buf_status(&t->frames), "the result is too large");
  st = gather_add(&t->gather, &f, at, t->frames.len - at - 1, &t->err);
  return st == ST_INPUT ? ST_BUG : st;
}

static bool is_called(const struct frame_member *m, const char *key) {
  return m->key_len == strlen(key) && !memcmp(m->key, key, m->key_len);
}

/* True if the terminal needs this member of a stage.  The text and the maps are most of a frame; the terminal shows
 * only the last stage's text, and no maps. */
static bool is_parsed(const struct terminal *t, const struct frame_member *m) {
  return !is_called(m, "lines") && !is_called(m, "from") && (t->dump_dir || !is_called(m, "text"));
}

/* Parses the stage of a frame, without the members that are never shown; NULL when out of memory. */
static json_t *parse_stage(struct terminal *t, const struct frame_member *stage) {
  struct frame f;
  json_t *o = json_object();
  bool ok = o && !frame_scan_object(stage->value, stage->value_len, &f, NULL);
  for (int i = 0; ok && i < f.n; i++) {
    const struct frame_member *m = &f.members[i];
    if (is_called(m, "text")) {
      free(t->last_text);
      t->last_text = strndup(m->value, m->value_len);
    }
    if (is_parsed(t, m))
      ok = !json_object_setn_new(o, m->key, m->key_len, json_loadb(m->value, m->value_len, JSON_DECODE_ANY, NULL));
  }
  if (ok)
    return o;
  json_decref(o);
  return NULL;
}

/* Parses a frame that this process made; NULL when out of memory. */
static json_t *parse_frame(struct terminal *t, const char *json, size_t len) {
  struct frame f;
  if (frame_scan(json, len, &f, NULL) || f.kind != FRAME_STAGE)
    return json_loadb(json, len, 0, NULL);
  return json_pack("{s:s,s:I,s:o}", "frame", "stage", "kernel", (json_int_t)frame_int(&f, "kernel"), "stage",
                   parse_stage(t, frame_get(&f, "stage")));
}

static enum status sink(void *user, const char *json, size_t len) {
  struct terminal *t = user;
  assert(!memchr(json, '\n', len));
  enum status st = t->json_path ? keep_frame(t, json, len) : ST_OK;
  if (st)
    return st;
  json_t *f = parse_frame(t, json, len);
  st = f ? show_frame(t, f) : ST_NOMEM;
  json_decref(f);
  return st;
}

static const char *kept_frame(void *user, size_t at, size_t len) {
  const struct terminal *t = user;
  assert(at + len <= t->frames.len);
  (void)len;
  return buf_text(&t->frames) + at;
}

/* Writes the result while it is made, because it is as long as all frames.  Errors are recorded in the stream. */
static void drain(void *user, struct buf *out) {
  enum { PIECE = 1 << 20 };
  FILE *f = user;
  if (out->len < PIECE)
    return;
  fwrite(out->data, 1, out->len - 1, f);
  out->data[0] = out->data[out->len - 1];
  out->len = 1;
}

static enum status write_json(struct terminal *t) {
  const struct gather_text text = {kept_frame, t};
  FILE *f = strcmp(t->json_path, "-") ? fopen(t->json_path, "we") : stdout;
  struct buf out;
  if (!f)
    return refuse_path(t, t->json_path);
  buf_init(&out, frames_max);
  gather_result(&t->gather, &text, &out, drain, f);
  buf_putc(&out, '\n');
  enum status st = buf_status(&out);
  bool ok = fwrite(buf_text(&out), 1, out.len, f) == out.len && !ferror(f);
  ok &= (f == stdout ? fflush(f) : fclose(f)) == 0;
  buf_clear(&out);
  if (st)
    return fail(&t->err, st, "the result is too large");
  return ok ? ST_OK : fail(&t->err, ST_IO, "%.160s: %m", t->json_path);
}

static void show_last_text(const struct terminal *t) {
  json_t *v = json_loads(t->last_text, JSON_DECODE_ANY, NULL);
  const char *text = json_string_value(v);
  if (text)
    printf("%s%s", text, *text && text[strlen(text) - 1] != '\n' ? "\n" : "");
  json_decref(v);
}

static enum status run(struct terminal *t) {
  struct paths paths;
  struct ir ir;

  enum status st = t->dump_dir ? make_directories(t, arena_printf(t->arena, "%s/", t->dump_dir), 0) : ST_OK;
  if (!st)
    st = paths_find(t->arena, &paths, &t->err);
  if (!st)
    st = trace_init(paths.python_dir, paths.site_dir, &t->err);
  if (!st)
    st = ir_init(&ir, &t->err);
  if (!st && t->job.language == LANG_NKIPY)
    st = add_files_beside(t);
  if (st)
    return st;
  st = compile_run(&ir, &t->job, sink, t);
  enum status written = t->json_path ? write_json(t) : ST_OK;
  bool is_text_wanted = !t->json_path || strcmp(t->json_path, "-");
  if (is_text_wanted && t->last_text && !t->is_quiet)
    show_last_text(t);
  return st ? st : written;
}

static int exit_status(enum status st) {
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

int compile_main(int argc, char **argv) {
  struct arena arena;
  struct terminal t = {.arena = &arena, .is_color = isatty(STDERR_FILENO)};
  int code;

  arena_init(&arena);
  job_init(&t.job);
  buf_init(&t.frames, frames_max);
  enum status st = parse_options(&t, argc, argv);
  if (!st)
    st = read_sources(&t, argv + optind, argc - optind);
  if (st) {
    code = st == ST_LIMIT ? EXIT_LIMIT : EXIT_USAGE;
  } else {
    st = run(&t);
    code = exit_status(st);
  }
  if (t.err.text[0])
    fprintf(stderr, "nkx compile: %s\n", t.err.text);
  free(t.last_text);
  source_table_clear(&t.sources);
  gather_clear(&t.gather);
  buf_clear(&t.frames);
  arena_clear(&arena);
  return code;
}
