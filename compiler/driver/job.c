/* job: reads compile requests; job_write.c writes them.
 *
 * Every field is checked here and nowhere else: its type, its range, its length.  jansson refuses invalid UTF-8,
 * duplicate keys (by flag) and nesting beyond its own limit; the caller has limited the number of bytes.
 */
#include "driver/job_internal.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>
#include <openssl/evp.h>

#include "driver/patterns.h"
#include "driver/pipeline.h"
#include "nki/nki.h"

enum { NAME_LEN_MAX = JOB_FILE_NAME_MAX, DIM_MAX = 1 << 30, WATCH_MAX = 1 << 30 };

void job_init(struct job *j) {
  *j = (struct job){.source = "",
                    .filename = "kernel.py",
                    .language = LANG_NKIPY,
                    .target = TARGET_TRN2,
                    .instance = -1,
                    .constants = JOB_CONSTANTS,
                    .seed = 42};
}

/* Reads a short string without control characters: the name of a file, a kernel, an input or a stage. */
enum status job_read_name(struct arena *a, const json_t *v, const char *field, const char **out, struct error *err) {
  if (!json_is_string(v))
    return fail(err, ST_INPUT, "%s: expected a string", field);
  const char *s = json_string_value(v);
  size_t n = json_string_length(v);
  if (n == 0 || n > NAME_LEN_MAX)
    return fail(err, ST_INPUT, "%s: expected 1 to %d bytes, got %zu", field, NAME_LEN_MAX, n);
  for (size_t i = 0; i < n; i++)
    if ((unsigned char)s[i] < 0x20 || s[i] == 0x7f)
      return fail(err, ST_INPUT, "%s: control characters are not allowed", field);
  *out = arena_strndup(a, s, n);
  return ST_OK;
}

static enum status read_language(const json_t *v, struct job *j, struct error *err) {
  if (!json_is_string(v) || !language_from_name(json_string_value(v), &j->language))
    return fail(err, ST_INPUT, "language: expected " LANGUAGE_NAMES ", or neff");
  return ST_OK;
}

static enum status read_target(const json_t *v, struct job *j, struct error *err) {
  if (!json_is_string(v) || !target_from_name(json_string_value(v), &j->target))
    return fail(err, ST_INPUT, "target: expected " TARGET_NAMES);
  return ST_OK;
}

static enum status read_bool(const json_t *v, const char *field, bool *out, struct error *err) {
  if (!json_is_boolean(v))
    return fail(err, ST_INPUT, "%s: expected true or false", field);
  *out = json_is_true(v);
  return ST_OK;
}

static enum status read_pipeline(const json_t *v, struct job *j, struct error *err) {
  return json_is_string(v) && job_choose_pipeline(j, json_string_value(v))
             ? ST_OK
             : fail(err, ST_INPUT, "options.pipeline: expected " PIPELINE_CHOICES);
}

static enum status read_int(const json_t *v, const char *field, int least, int most, int *out, struct error *err) {
  const json_int_t n = json_is_integer(v) ? json_integer_value(v) : (json_int_t)least - 1;
  if (n < least || n > most)
    return fail(err, ST_INPUT, "%s: expected an integer from %d to %d", field, least, most);
  *out = (int)n;
  return ST_OK;
}

static enum status read_tune(const json_t *v, struct job_tune *out, struct error *err) {
  const char *key;
  json_t *field;
  enum status st = ST_OK;
  *out = (struct job_tune){JOB_TUNE_SECONDS, JOB_TUNE_CANDIDATES};
  if (!json_is_object(v))
    return fail(err, ST_INPUT, "options.tune: expected an object");
  json_object_foreach((json_t *)v, key, field) {
    if (!strcmp(key, "seconds"))
      st = read_int(field, "options.tune.seconds", 1, JOB_TUNE_SECONDS_MAX, &out->seconds, err);
    else if (!strcmp(key, "candidates"))
      st = read_int(field, "options.tune.candidates", 1, JOB_TUNE_CANDIDATES_MAX, &out->candidates, err);
    else
      st = fail(err, ST_INPUT, "options.tune.%.40s: there is no such field", key);
    if (st)
      return st;
  }
  return ST_OK;
}

static enum status read_shrink(const json_t *v, struct job_shrink *out, struct error *err) {
  const json_t *from = json_object_get(v, "from");
  const json_int_t n = from ? json_integer_value(from) : 0;
  if (!json_is_object(v) || json_object_size(v) != (from != NULL))
    return fail(err, ST_INPUT, "options.shrink: expected an object with \"from\" or without members");
  if ((from && !json_is_integer(from)) || n < 0 || n > JOB_SHRINK_FROM_MAX)
    return fail(err, ST_INPUT, "options.shrink.from: expected an integer from 0 to %d", JOB_SHRINK_FROM_MAX);
  *out = (struct job_shrink){true, (int)n};
  return ST_OK;
}

bool job_choose_pipeline(struct job *j, const char *name) {
  j->is_reference = !strcmp(name, "reference");
  return j->is_reference || !strcmp(name, "default");
}

static enum status read_shape(const json_t *v, int index, struct job_input *out, struct error *err) {
  int64_t elements = 1;
  size_t rank = json_array_size(v);
  if (!json_is_array(v))
    return fail(err, ST_INPUT, "inputs[%d].shape: expected an array of integers", index);
  if (rank > JOB_RANK_MAX)
    return fail(err, ST_INPUT, "inputs[%d].shape: at most %d dimensions", index, JOB_RANK_MAX);
  for (size_t i = 0; i < rank; i++) {
    const json_t *d = json_array_get(v, i);
    if (!json_is_integer(d) || json_integer_value(d) < 0 || json_integer_value(d) > DIM_MAX)
      return fail(err, ST_INPUT, "inputs[%d].shape[%zu]: expected an integer from 0 to %d", index, i, DIM_MAX);
    out->dims[i] = json_integer_value(d);
    if (__builtin_mul_overflow(elements, out->dims[i], &elements))
      return fail(err, ST_INPUT, "inputs[%d].shape: too many elements", index);
  }
  out->rank = (int)rank;
  return ST_OK;
}

static enum status read_input(struct arena *a, const json_t *v, int index, struct job_input *out, struct error *err) {
  const char *key;
  json_t *field;
  const json_t *shape = json_object_get(v, "shape");

  *out = (struct job_input){.dtype = DT_F32};
  if (!json_is_object(v))
    return fail(err, ST_INPUT, "inputs[%d]: expected an object", index);
  json_object_foreach((json_t *)v, key, field) {
    if (!strcmp(key, "name")) {
      char label[48];
      snprintf(label, sizeof label, "inputs[%d].name", index);
      enum status st = job_read_name(a, field, label, &out->name, err);
      if (st)
        return st;
    } else if (!strcmp(key, "dtype")) {
      out->dtype = json_is_string(field) ? dtype_from_name(json_string_value(field)) : DT_NONE;
      if (out->dtype == DT_NONE)
        return fail(err, ST_INPUT, "inputs[%d].dtype: expected a NumPy dtype name such as \"float32\"", index);
    } else if (strcmp(key, "shape")) {
      return fail(err, ST_INPUT, "inputs[%d].%.40s: there is no such field", index, key);
    }
  }
  if (!shape)
    return fail(err, ST_INPUT, "inputs[%d].shape: missing", index);
  return read_shape(shape, index, out, err);
}

enum status job_parse_input(struct arena *a, const char *text, struct job_input *out, struct error *err) {
  const char *eq = strchr(text, '='), *colon = eq ? strchr(eq, ':') : NULL;
  struct job_input in = {.dtype = DT_F32};
  int64_t elements = 1;

  if (!eq || eq == text)
    return fail(err, ST_INPUT, "--input %.60s: expected NAME=SHAPE:DTYPE", text);
  if (colon)
    in.dtype = dtype_from_name(colon + 1);
  if (in.dtype == DT_NONE)
    return fail(err, ST_INPUT, "--input %.60s: unknown dtype", text);
  for (const char *p = eq + 1; *p && *p != ':';) {
    char *end = NULL;
    errno = 0;
    long long d = *p >= '0' && *p <= '9' ? strtoll(p, &end, 10) : -1;
    if (d < 0 || d > DIM_MAX || errno || in.rank == JOB_RANK_MAX ||
        (*end && *end != 'x' && *end != ',' && *end != ':') || __builtin_mul_overflow(elements, d, &elements))
      return fail(err, ST_INPUT, "--input %.60s: expected a shape such as 128x256", text);
    in.dims[in.rank++] = d;
    p = *end == 'x' || *end == ',' ? end + 1 : end;
  }
  in.name = arena_strndup(a, text, (size_t)(eq - text));
  *out = in;
  return ST_OK;
}

static enum status read_inputs(struct arena *a, const json_t *v, struct job *j, struct error *err) {
  if (!json_is_array(v))
    return fail(err, ST_INPUT, "inputs: expected an array");
  size_t n = json_array_size(v);
  if (n > JOB_INPUTS_MAX)
    return fail(err, ST_LIMIT, "inputs: at most %d", JOB_INPUTS_MAX);
  struct job_input *inputs = arena_new_array(a, struct job_input, n);
  for (size_t i = 0; i < n; i++) {
    enum status st = read_input(a, json_array_get(v, i), (int)i, &inputs[i], err);
    if (st)
      return st;
  }
  j->inputs = inputs;
  j->n_inputs = (int)n;
  return ST_OK;
}

/* It may be said in two places. */
static enum status read_simulate(const json_t *v, const char *field, struct job *j, struct error *err) {
  bool is_true = false;
  enum status st = read_bool(v, field, &is_true, err);
  j->simulate |= is_true;
  return st;
}

static enum status read_watch(struct arena *a, const json_t *v, int index, struct job_watch *out, struct error *err) {
  const char *key;
  json_t *field;
  *out = (struct job_watch){0};
  if (!json_is_object(v))
    return fail(err, ST_INPUT, "options.watch[%d]: expected an object", index);
  json_object_foreach((json_t *)v, key, field) {
    const json_int_t n = json_is_integer(field) ? json_integer_value(field) : 0;
    char label[64];
    snprintf(label, sizeof label, "options.watch[%d].%.24s", index, key);
    if (!strcmp(key, "operand") || !strcmp(key, "file")) {
      enum status st = job_read_name(a, field, label, *key == 'o' ? &out->operand : &out->file, err);
      if (st)
        return st;
    } else if (strcmp(key, "line") != 0 && strcmp(key, "nth") != 0) {
      return fail(err, ST_INPUT, "%s: there is no such field", label);
    } else if (n < 1 || n > WATCH_MAX) {
      return fail(err, ST_INPUT, "%s: expected an integer from 1 to %d", label, WATCH_MAX);
    } else if (*key == 'l') {
      out->line = (int)n;
    } else {
      out->nth = n;
    }
  }
  return out->line ? ST_OK : fail(err, ST_INPUT, "options.watch[%d].line: missing", index);
}

static enum status read_watches(struct arena *a, const json_t *v, struct job *j, struct error *err) {
  if (!json_is_array(v))
    return fail(err, ST_INPUT, "options.watch: expected an array");
  const size_t n = json_array_size(v);
  if (n > JOB_WATCHES_MAX)
    return fail(err, ST_LIMIT, "options.watch: at most %d", JOB_WATCHES_MAX);
  struct job_watch *watches = arena_new_array(a, struct job_watch, n);
  for (size_t i = 0; i < n; i++) {
    enum status st = read_watch(a, json_array_get(v, i), (int)i, &watches[i], err);
    if (st)
      return st;
  }
  j->watches = watches;
  j->n_watches = (int)n;
  return ST_OK;
}

enum status job_parse_watch(struct arena *a, const char *text, struct job_watch *out, struct error *err) {
  const char *const all = text, *file = strstr(text, ".py:");
  char *end;
  *out = (struct job_watch){0};
  for (const char *next = file; next; next = strstr(next + 1, ".py:"))
    file = next;
  if (file && file > text) {
    out->file = arena_strndup(a, text, (size_t)(file - text) + 3);
    text = file + 4;
  }
  const char *colon = strchr(text, ':'), *at = strchr(text, '@');
  errno = 0;
  const long line = strtol(text, &end, 10);
  bool ok = end > text && line > 0 && line <= WATCH_MAX && !errno && *text >= '0' && *text <= '9';
  if (ok && colon) {
    const char *stop = at ? at : text + strlen(text);
    ok = end == colon && stop > colon + 1;
    out->operand = ok ? arena_strndup(a, colon + 1, (size_t)(stop - colon - 1)) : NULL;
  } else if (ok) {
    ok = !*end || end == at;
  }
  if (ok && at) {
    out->nth = strtol(at + 1, &end, 10);
    ok = at[1] >= '1' && at[1] <= '9' && !*end && out->nth <= WATCH_MAX;
  }
  out->line = (int)line;
  return ok ? ST_OK
            : fail(err, ST_INPUT,
                   "--watch %.60s: expected LINE, LINE:OPERAND or LINE:OPERAND@N, after KERNEL.py: if it is of the "
                   "source",
                   all);
}

static enum status read_patterns(struct arena *a, const json_t *v, struct job *j, struct error *err) {
  if (!json_is_string(v) || strlen(json_string_value(v)) != json_string_length(v))
    return fail(err, ST_INPUT, "options.patterns: expected a string without NUL characters");
  j->patterns_len = json_string_length(v);
  if (j->patterns_len > PATTERNS_LEN_MAX)
    return fail(err, ST_LIMIT, "options.patterns: %zu bytes; the limit is %d", j->patterns_len, PATTERNS_LEN_MAX);
  j->patterns = arena_strndup(a, json_string_value(v), j->patterns_len);
  return ST_OK;
}

/* A stage by its name, or by its index in digits. */
static enum status read_steps(struct arena *a, const json_t *v, struct job *j, struct error *err) {
  const enum status st = job_read_name(a, v, "options.steps", &j->steps, err);
  if (st || j->steps[strspn(j->steps, "0123456789")] == 0 || pipeline_has_stage(j->steps))
    return st;
  return fail(err, ST_INPUT, "options.steps: no stage is called \"%.60s\"", j->steps);
}

static enum status read_options(struct arena *a, const json_t *v, struct job *j, struct error *err) {
  const char *key;
  json_t *field;
  enum status st = ST_OK;

  if (!json_is_object(v))
    return fail(err, ST_INPUT, "options: expected an object");
  json_object_foreach((json_t *)v, key, field) {
    if (!strcmp(key, "check")) {
      st = read_bool(field, "options.check", &j->check, err);
    } else if (!strcmp(key, "artifacts")) {
      st = read_bool(field, "options.artifacts", &j->artifacts, err);
    } else if (!strcmp(key, "for_device")) {
      st = read_bool(field, "options.for_device", &j->for_device, err);
    } else if (!strcmp(key, "unroll")) {
      st = read_bool(field, "options.unroll", &j->keep_rounds, err);
    } else if (!strcmp(key, "pipeline")) {
      st = read_pipeline(field, j, err);
    } else if (!strcmp(key, "by_hand")) {
      st = job_read_by_hand(a, field, j, err);
    } else if (!strcmp(key, "patterns")) {
      st = read_patterns(a, field, j, err);
    } else if (!strcmp(key, "tune")) {
      st = read_tune(field, &j->tune, err);
    } else if (!strcmp(key, "steps")) {
      st = read_steps(a, field, j, err);
    } else if (!strcmp(key, "steps_from")) {
      st = read_int(field, "options.steps_from", 0, JOB_STEPS_FROM_MAX, &j->steps_from, err);
    } else if (!strcmp(key, "shrink")) {
      st = read_shrink(field, &j->shrink, err);
    } else if (!strcmp(key, "upgrade")) {
      st = read_bool(field, "options.upgrade", &j->upgrade, err);
    } else if (!strcmp(key, "constants")) {
      st = read_int(field, "options.constants", 0, JOB_CONSTANTS_MAX, &j->constants, err);
    } else if (!strcmp(key, "instance")) {
      st = read_int(field, "options.instance", 0, NKI_INSTANCES_MAX - 1, &j->instance, err);
    } else if (!strcmp(key, "simulate")) {
      st = read_simulate(field, "options.simulate", j, err);
    } else if (!strcmp(key, "watch")) {
      st = read_watches(a, field, j, err);
    } else if (!strcmp(key, "value")) {
      st = job_read_value(a, field, &j->value, err);
    } else if (!strcmp(key, "resume")) {
      st = job_read_resume(a, field, &j->resume, err);
    } else if (!strcmp(key, "stop_after")) {
      st = job_read_name(a, field, "options.stop_after", &j->stop_after, err);
      if (!st && !pipeline_has_stage(j->stop_after))
        st = fail(err, ST_INPUT, "options.stop_after: no stage is called \"%.60s\"", j->stop_after);
    } else {
      st = fail(err, ST_INPUT, "options.%.40s: there is no such field", key);
    }
    if (st)
      return st;
  }
  return ST_OK;
}

static enum status read_source(struct arena *a, const json_t *v, struct job *j, struct error *err) {
  if (!json_is_string(v))
    return fail(err, ST_INPUT, "source: expected a string");
  j->source_len = json_string_length(v);
  if (j->source_len > JOB_SOURCE_MAX)
    return fail(err, ST_LIMIT, "source: %zu bytes; the limit is %d", j->source_len, JOB_SOURCE_MAX);
  j->source = arena_strndup(a, json_string_value(v), j->source_len);
  return ST_OK;
}

static enum status read_binary(struct arena *a, const json_t *v, struct job *j, struct error *err) {
  const char *text = json_string_value(v); /* NULL if v is not a string */
  const size_t n = json_string_length(v);
  if (!text || n % 4 || !n)
    return fail(err, ST_INPUT, "source_base64: expected base64, padded to a multiple of four characters");
  if (n / 4 > (JOB_NEFF_MAX + 2) / 3)
    return fail(err, ST_LIMIT, "source_base64: %zu bytes; the limit is %d", n / 4 * 3, JOB_NEFF_MAX);
  unsigned char *bytes = arena_alloc(a, n / 4 * 3 + 1);
  const int len = EVP_DecodeBlock(bytes, (const unsigned char *)text, (int)n);
  if (len < 0)
    return fail(err, ST_INPUT, "source_base64: this is not base64");
  j->source = (const char *)bytes;
  j->source_len = (size_t)len - (text[n - 1] == '=') - (text[n - 2] == '=');
  j->is_binary = true;
  return ST_OK;
}

const char *job_file_name_fault(const char *name, size_t len) {
  static const char safe[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-.";
  if (len > JOB_FILE_NAME_MAX)
    return "is too long";
  if (len < sizeof ".py" || memcmp(name + len - 3, ".py", 3) != 0)
    return "does not end in .py";
  for (size_t at = 0; at < len;) {
    const char *slash = memchr(name + at, '/', len - at);
    const size_t n = slash ? (size_t)(slash - name) - at : len - at;
    if (n == 0 || name[at] == '.') /* an absolute path, "..", ".", a hidden file */
      return "has an empty part, or one that begins with a dot";
    for (size_t i = 0; i < n; i++)
      if (!memchr(safe, name[at + i], sizeof safe - 1))
        return "has other characters than letters, digits, _, -, . and /";
    at += n + 1;
    if (at == len)
      return "has an empty part, or one that begins with a dot";
  }
  return NULL;
}

static enum status read_file_name(struct arena *a, const json_t *v, int index, struct job_file *out,
                                  struct error *err) {
  const char *name = json_string_value(v); /* NULL if v is not a string */
  const size_t len = json_string_length(v);
  if (!name)
    return fail(err, ST_INPUT, "files[%d].name: expected a string", index);
  const char *fault = job_file_name_fault(name, len);
  if (fault)
    return fail(err, ST_INPUT, "files[%d].name: it %s", index, fault);
  out->name = arena_strndup(a, name, len);
  return ST_OK;
}

static enum status read_file(struct arena *a, const json_t *v, int index, struct job_file *out, struct error *err) {
  const char *key;
  json_t *field;
  if (!json_is_object(v))
    return fail(err, ST_INPUT, "files[%d]: expected an object", index);
  json_object_foreach((json_t *)v, key, field) {
    if (!strcmp(key, "name")) {
      enum status st = read_file_name(a, field, index, out, err);
      if (st)
        return st;
    } else if (strcmp(key, "source") != 0) {
      return fail(err, ST_INPUT, "files[%d].%.40s: there is no such field", index, key);
    } else if (!json_is_string(field)) {
      return fail(err, ST_INPUT, "files[%d].source: expected a string", index);
    } else {
      out->source_len = json_string_length(field);
      if (out->source_len > JOB_SOURCE_MAX)
        return fail(err, ST_LIMIT, "files[%d].source: %zu bytes; the limit is %d", index, out->source_len,
                    JOB_SOURCE_MAX);
      out->source = arena_strndup(a, json_string_value(field), out->source_len);
    }
  }
  return out->name && out->source ? ST_OK
                                  : fail(err, ST_INPUT, "files[%d].%s: missing", index, out->name ? "source" : "name");
}

static enum status read_files(struct arena *a, const json_t *v, struct job *j, struct error *err) {
  if (!json_is_array(v))
    return fail(err, ST_INPUT, "files: expected an array");
  const size_t n = json_array_size(v);
  if (n > JOB_FILES_MAX)
    return fail(err, ST_LIMIT, "files: at most %d", JOB_FILES_MAX);
  struct job_file *files = arena_new_array(a, struct job_file, n);
  for (size_t i = 0; i < n; i++) {
    enum status st = read_file(a, json_array_get(v, i), (int)i, &files[i], err);
    if (st)
      return st;
  }
  j->files = files;
  j->n_files = (int)n;
  return ST_OK;
}

/* Checks the rules that involve several files. */
static enum status check_files(const struct job *j, struct error *err) {
  size_t total = j->source_len;
  if (j->n_files && j->language != LANG_NKIPY && j->language != LANG_HLO)
    return fail(err, ST_INPUT, "files: only the languages \"nkipy\" and \"hlo\" have several files");
  for (int i = 0; i < j->n_files; i++) {
    total += j->files[i].source_len;
    if (!strcmp(j->files[i].name, j->filename))
      return fail(err, ST_INPUT, "files[%d].name: it is the name of the main file", i);
    for (int k = 0; k < i; k++)
      if (!strcmp(j->files[i].name, j->files[k].name))
        return fail(err, ST_INPUT, "files[%d].name: files[%d] has the same name", i, k);
  }
  if (total > JOB_SOURCE_MAX && j->language != LANG_NEFF)
    return fail(err, ST_LIMIT, "files: %zu bytes with the source; the limit is %d", total, JOB_SOURCE_MAX);
  return ST_OK;
}

static enum status read_scope(struct arena *a, const json_t *v, struct job *j, struct error *err) {
  static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
  const char *s = json_string_value(v); /* NULL if v is not a string */
  size_t n = json_string_length(v);
  if (!s || n < JOB_SCOPE_MIN || n > JOB_SCOPE_MAX || strspn(s, letters) != n)
    return fail(err, ST_INPUT, "scope: expected %d to %d letters, digits, - or _", JOB_SCOPE_MIN, JOB_SCOPE_MAX);
  j->scope = arena_strndup(a, s, n);
  return ST_OK;
}

bool job_is_version(const char *name) {
  static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.";
  const size_t n = strlen(name);
  return n && n <= JOB_VERSION_MAX && strspn(name, letters) == n;
}

static enum status read_version(struct arena *a, const json_t *v, struct job *j, struct error *err) {
  const char *s = json_string_value(v); /* NULL if v is not a string */
  if (!s || !job_is_version(s) || strlen(s) != json_string_length(v))
    return fail(err, ST_INPUT, "version: expected 1 to %d letters, digits, -, _ or .", JOB_VERSION_MAX);
  j->version = arena_strdup(a, s);
  return ST_OK;
}

static enum status read_field(struct arena *a, const char *key, const json_t *v, struct job *j, struct error *err) {
  if (!strcmp(key, "source"))
    return read_source(a, v, j, err);
  if (!strcmp(key, "source_base64"))
    return read_binary(a, v, j, err);
  if (!strcmp(key, "filename"))
    return job_read_name(a, v, key, &j->filename, err);
  if (!strcmp(key, "files"))
    return read_files(a, v, j, err);
  if (!strcmp(key, "kernel"))
    return job_read_name(a, v, key, &j->kernel, err);
  if (!strcmp(key, "inputs"))
    return read_inputs(a, v, j, err);
  if (!strcmp(key, "options"))
    return read_options(a, v, j, err);
  if (!strcmp(key, "simulate"))
    return read_simulate(v, key, j, err);
  if (!strcmp(key, "scope"))
    return read_scope(a, v, j, err);
  if (!strcmp(key, "version"))
    return read_version(a, v, j, err);
  if (!strcmp(key, "language"))
    return read_language(v, j, err);
  if (!strcmp(key, "target"))
    return read_target(v, j, err);
  return fail(err, ST_INPUT, "%.40s: there is no such field", key);
}

const char *job_lacking_stage(const struct job *j) {
  const char *const named = j->value.is_set ? j->value.stage : j->stop_after;
  const bool is_there = !named || !j->is_reference || pipeline_stage(&pipeline_reference, named) >= 0 ||
                        pipeline_stage(&pipeline_nki, named) >= 0;
  return is_there ? NULL : named;
}

/* Checks the rules of sources that are not text. */
static enum status check_binary(const json_t *root, const struct job *j, struct error *err) {
  static const char *const fields[] = {"source_base64", "filename", "language", "scope"};
  size_t known = 0;
  if (j->is_binary && j->language != LANG_HLO && j->language != LANG_NEFF)
    return fail(err, ST_INPUT, "source_base64: only the languages \"hlo\" and \"neff\" have a binary form");
  const int most = j->language == LANG_NEFF ? JOB_NEFF_MAX : JOB_SOURCE_MAX;
  if (j->is_binary && j->source_len > (size_t)most)
    return fail(err, ST_LIMIT, "source_base64: %zu bytes; the limit is %d", j->source_len, most);
  if (j->language != LANG_NEFF)
    return ST_OK;
  if (!j->is_binary)
    return fail(err, ST_INPUT, "source: a NEFF is binary: send it as source_base64");
  for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
    known += json_object_get(root, fields[i]) != NULL;
  return known == json_object_size(root)
             ? ST_OK
             : fail(err, ST_INPUT, "language: a NEFF is described: only filename and scope may be given with it");
}

/* Reads the fields, and checks the rules that involve more than one field. */
static enum status read_fields(struct arena *a, const json_t *root, struct job *j, struct error *err) {
  const json_t *text = json_object_get(root, "source"), *binary = json_object_get(root, "source_base64");
  const char *key;
  json_t *v;

  if (!json_is_object(root))
    return fail(err, ST_INPUT, "expected a JSON object");
  if (text && binary)
    return fail(err, ST_INPUT, "source: there is source_base64, too");
  if (!text && !binary)
    return fail(err, ST_INPUT, "source: missing");
  json_object_foreach((json_t *)root, key, v) {
    enum status st = read_field(a, key, v, j, err);
    if (st)
      return st;
  }
  enum status st = check_binary(root, j, err);
  if (st)
    return st;
  if (job_lacking_stage(j))
    return fail(err, ST_INPUT, "options.pipeline: the reference has no stage \"%.60s\"", job_lacking_stage(j));
  if (j->upgrade && (j->language != LANG_NKIPY || j->value.is_set))
    return fail(err, ST_INPUT,
                j->value.is_set ? "options.upgrade: there is options.value, too"
                                : "options.upgrade: only the language \"nkipy\" has NKI kernels");
  if (j->tune.seconds && (j->language != LANG_NKIPY || j->value.is_set || j->upgrade || j->simulate || j->check))
    return fail(err, ST_INPUT,
                "options.tune: it is for the language \"nkipy\", without check, simulate, value and upgrade");
  if (j->shrink.is_set && (j->is_binary || j->value.is_set || j->upgrade || j->tune.seconds || j->resume.stage))
    return fail(err, ST_INPUT, "options.shrink: it is for texts, without value, upgrade, tune and resume");
  if (j->resume.stage && (j->upgrade || j->tune.seconds))
    return fail(err, ST_INPUT, "options.resume: with options.%s no stage is made", j->upgrade ? "upgrade" : "tune");
  if (j->steps_from && !j->steps)
    return fail(err, ST_INPUT, "options.steps_from: it needs options.steps");
  if (j->steps && (j->value.is_set || j->upgrade || j->tune.seconds || j->shrink.is_set))
    return fail(err, ST_INPUT, "options.steps: no stage is shown with value, upgrade, tune and shrink");
  if (j->for_device && !j->simulate)
    return fail(err, ST_INPUT, "options.for_device: it needs options.simulate");
  return check_files(j, err);
}

enum status job_read(struct arena *a, const json_t *root, struct job *out, struct error *err) {
  struct job j;
  job_init(&j);
  enum status st = read_fields(a, root, &j, err);
  assert(st ||
         (j.source_len <= (j.language == LANG_NEFF ? JOB_NEFF_MAX : JOB_SOURCE_MAX) && j.n_inputs <= JOB_INPUTS_MAX));
  if (!st)
    *out = j;
  return st;
}

enum status job_parse(struct arena *a, const char *json, size_t len, struct job *out, struct error *err) {
  json_error_t jerr;
  json_t *root = json_loadb(json, len, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &jerr);
  if (!root)
    return fail(err, ST_INPUT, "line %d column %d: %s", jerr.line, jerr.column, jerr.text);
  enum status st = job_read(a, root, out, err);
  json_decref(root);
  return st;
}
