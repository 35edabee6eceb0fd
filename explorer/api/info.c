/* GET /api/v1/pipeline, /examples, /targets and /rules: answers that are made once, at the start.
 *
 * The machines' figures are those that the vendor publishes, for one NeuronCore.  SBUF has two sizes: as built, and
 * what a program may use.
 */
#include "api/info.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "api/services.h"
#include "base/json.h"
#include "base/rule.h"
#include "driver/accuracy.h"
#include "driver/by_hand.h"
#include "driver/pipeline.h"
#include "driver/job.h"

enum { INFO_MAX = 4 << 20, PARTITIONS = 128 };

/* ---- machines ---------------------------------------------------------------------------------------------------- */

struct machine {
  const char *name, *title, *core;
  int cores_per_device;
  int sbuf_partition, sbuf_usable, psum_partition, psum_banks; /* bytes per partition; banks per partition */
  double tensor_ghz, vector_ghz, scalar_ghz, gpsimd_ghz;
  int hbm_gib;
};

static const struct machine machines[] = {
    {"trn1", "Trainium 1", "NeuronCore-v2", 2, 192 << 10, 180224, 16 << 10, 8, 2.8, 1.12, 1.4, 1.4, 32},
    {"trn2", "Trainium 2", "NeuronCore-v3", 8, 224 << 10, 212984, 16 << 10, 8, 2.4, 0.96, 1.2, 1.2, 96},
    {"trn3", "Trainium 3", "NeuronCore-v4", 8, 256 << 10, 245752, 16 << 10, 8, 2.4, 1.2, 1.2, 1.2, 144},
};

static void put_memory(struct buf *b, const char *name, int partition_bytes) {
  json_put_key(b, name);
  buf_putc(b, '{');
  json_put_field_int(b, "partitions", PARTITIONS);
  json_put_field_int(b, "partition_bytes", partition_bytes);
  json_put_field_int(b, "bytes", (long long)PARTITIONS * partition_bytes);
}

static void put_ghz(struct buf *b, const char *name, double ghz) {
  json_put_key(b, name);
  buf_printf(b, "%g", ghz);
}

static void put_machine(struct buf *b, const struct machine *m) {
  json_put_comma(b);
  buf_putc(b, '{');
  json_put_field_str(b, "name", m->name);
  json_put_field_str(b, "title", m->title);
  json_put_field_str(b, "core", m->core);
  json_put_field_int(b, "cores_per_device", m->cores_per_device);
  json_put_field_int(b, "hbm_gib", m->hbm_gib);
  put_memory(b, "sbuf", m->sbuf_partition);
  json_put_field_int(b, "usable_partition_bytes", m->sbuf_usable);
  buf_putc(b, '}');
  put_memory(b, "psum", m->psum_partition);
  json_put_field_int(b, "banks", m->psum_banks);
  json_put_field_int(b, "bank_bytes", m->psum_partition / m->psum_banks);
  buf_putc(b, '}');
  json_put_key(b, "clock_ghz");
  buf_putc(b, '{');
  put_ghz(b, "tensor", m->tensor_ghz);
  put_ghz(b, "vector", m->vector_ghz);
  put_ghz(b, "scalar", m->scalar_ghz);
  put_ghz(b, "gpsimd", m->gpsimd_ghz);
  buf_putc(b, '}');
  enum target t;
  if (target_from_name(m->name, &t)) {
    json_put_key(b, "simulated_time_error");
    accuracy_put(b, t);
  }
  buf_putc(b, '}');
}

static void put_machines(struct buf *b) {
  buf_puts(b, "{\"targets\":[");
  for (size_t i = 0; i < sizeof machines / sizeof *machines; i++)
    put_machine(b, &machines[i]);
  buf_puts(b, "]}\n");
}

/* ---- stages ------------------------------------------------------------------------------------------------------ */

static enum status put_pipeline(struct buf *b, struct error *err) {
  static const struct {
    const char *key;
    const struct pipeline *pipeline;
  } lists[] = {{"stages", &pipeline_hlo}, {"reference_stages", &pipeline_reference}, {"nki_stages", &pipeline_nki}};
  buf_putc(b, '{');
  json_put_field_str(b, "version", pipeline_version());
  for (size_t k = 0; k < sizeof lists / sizeof *lists; k++) {
    size_t len;
    char *stages = pipeline_describe(lists[k].pipeline, &len);
    if (!stages)
      return fail(err, ST_NOMEM, "pipeline");
    json_put_key(b, lists[k].key);
    buf_append(b, stages, len);
    free(stages);
  }
  json_put_key(b, "passes");
  by_hand_describe(b);
  buf_puts(b, "}\n");
  return ST_OK;
}

/* ---- examples ---------------------------------------------------------------------------------------------------- */

static enum status read_file(int dir, const char *name, struct buf *out, struct error *err) {
  int fd = openat(dir, name, O_RDONLY | O_CLOEXEC);
  if (fd < 0)
    return fail(err, ST_IO, "example %.80s: %m", name);
  ssize_t n = 0;
  enum status st = ST_OK;
  do {
    st = buf_reserve(out, 16 << 10);
    if (st)
      st = fail(err, st, "example %.80s: larger than a source may be", name);
    else if ((n = read(fd, out->data + out->len, 16 << 10)) > 0)
      out->len += (size_t)n;
    else if (n < 0)
      st = fail(err, ST_IO, "example %.80s: %m", name);
  } while (!st && n > 0);
  close(fd);
  return st;
}

/* The text of a comment or docstring in the first line, without its signs; empty if the line is code. */
static void first_line(const char *source, size_t len, const char **text, size_t *n) {
  const char *end = memchr(source, '\n', len);
  const char *p = source;
  size_t k = end ? (size_t)(end - source) : len;
  *text = "";
  *n = 0;
  if (k && *p == '#') {
    p++, k--;
  } else if (k >= 3 && !memcmp(p, "\"\"\"", 3)) {
    p += 3, k -= 3;
    const char *close_at = memmem(p, k, "\"\"\"", 3);
    if (close_at)
      k = (size_t)(close_at - p);
  } else {
    return;
  }
  while (k && *p == ' ')
    p++, k--;
  while (k && (p[k - 1] == '.' || p[k - 1] == ' '))
    k--;
  *text = p;
  *n = k;
}

/* "03_softmax.py" is called "softmax", that of a group "nki_softmax"; the number orders the list. */
static void put_example(struct buf *b, const char *prefix, const char *group, const char *file,
                        const struct buf *source) {
  const char *name = file, *title;
  size_t n;
  size_t digits = strspn(file, "0123456789");
  if (digits && (file[digits] == '-' || file[digits] == '_'))
    name = file + digits + 1;
  json_put_comma(b);
  buf_putc(b, '{');
  char full[NAME_MAX + 8];
  snprintf(full, sizeof full, "%s%.*s", prefix, (int)(strlen(name) - strlen(".py")), name);
  json_put_field_str(b, "name", full);
  first_line(buf_text(source), source->len, &title, &n);
  json_put_key(b, "title");
  json_put_string(b, n ? title : full, n ? n : strlen(full));
  json_put_field_str(b, "language", "nkipy");
  json_put_field_str(b, "group", group);
  json_put_key(b, "source");
  json_put_string(b, buf_text(source), source->len);
  buf_putc(b, '}');
}

static int is_example(const struct dirent *e) {
  size_t n = strlen(e->d_name);
  return n > 3 && e->d_name[0] != '.' && e->d_name[0] != '_' && !strcmp(e->d_name + n - 3, ".py");
}

/* The files of a folder that is opened relative to the examples; none if there is no such folder. */
static enum status put_folder(struct buf *b, int dir, const char *folder, const char *prefix, const char *group,
                              struct error *err) {
  struct dirent **list = NULL;
  enum status st = ST_OK;
  int fd = dir < 0 ? -1 : openat(dir, folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  int n = fd < 0 ? -1 : scandirat(fd, ".", &list, is_example, alphasort);

  for (int i = 0; i < n; i++) {
    struct buf source;
    buf_init(&source, JOB_SOURCE_MAX);
    if (!st)
      st = read_file(fd, list[i]->d_name, &source, err);
    if (!st)
      put_example(b, prefix, group, list[i]->d_name, &source);
    buf_clear(&source);
    free(list[i]);
  }
  free(list);
  if (fd >= 0)
    close(fd);
  return st;
}

static enum status put_examples(struct buf *b, const char *path, struct error *err) {
  int dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  buf_puts(b, "{\"examples\":[");
  enum status st = put_folder(b, dir, ".", "", "NumPy", err);
  if (!st)
    st = put_folder(b, dir, "nki", "nki_", "NKI", err);
  buf_puts(b, "]}\n");
  if (dir >= 0)
    close(dir);
  return st;
}

static void put_rules(struct buf *b) {
  buf_puts(b, "{\"rules\":");
  rule_put_all(b);
  buf_puts(b, "}\n");
}

/* ---- the answers ------------------------------------------------------------------------------------------------- */

enum status info_load(struct services *s, const char *examples_dir, struct error *err) {
  buf_init(&s->targets, INFO_MAX);
  buf_init(&s->pipeline, INFO_MAX);
  buf_init(&s->examples, INFO_MAX);
  buf_init(&s->rules, INFO_MAX);
  put_machines(&s->targets);
  put_rules(&s->rules);
  enum status st = put_pipeline(&s->pipeline, err);
  if (!st)
    st = put_examples(&s->examples, examples_dir, err);
  if (!st && (buf_status(&s->targets) || buf_status(&s->pipeline) || buf_status(&s->examples) || buf_status(&s->rules)))
    st = fail(err, ST_LIMIT, "the examples are larger than %d bytes", INFO_MAX);
  return st;
}

void info_clear(struct services *s) {
  buf_clear(&s->targets);
  buf_clear(&s->pipeline);
  buf_clear(&s->examples);
  buf_clear(&s->rules);
}

static enum MHD_Result send_constant(struct request *rq, const struct buf *b) {
  return http_json(rq, MHD_HTTP_OK, buf_text(b), b->len, true);
}
enum MHD_Result api_pipeline(struct request *rq) {
  return send_constant(rq, &services_of(rq)->pipeline);
}
enum MHD_Result api_examples(struct request *rq) {
  return send_constant(rq, &services_of(rq)->examples);
}
enum MHD_Result api_targets(struct request *rq) {
  return send_constant(rq, &services_of(rq)->targets);
}
enum MHD_Result api_rules(struct request *rq) {
  return send_constant(rq, &services_of(rq)->rules);
}
