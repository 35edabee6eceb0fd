#include "driver/pipeline.h"

#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "version.h" /* made by the build: compiler/driver/version.sh and VERSION */

const struct stage_def pipeline_stages[] = {
#define STAGE(runner, name, phase, dialect, pass, summary) {runner, name, phase, dialect, pass, summary},
#include "driver/stages.def"
#undef STAGE
};
const int pipeline_n_stages = sizeof pipeline_stages / sizeof *pipeline_stages;

enum { DESCRIPTION_MAX = 64 << 10 };

int pipeline_find(const char *spec) {
  const char *colon = strchr(spec, ':');
  size_t len = colon ? (size_t)(colon - spec) : strlen(spec);
  long nth = 1;
  if (colon) {
    char *end;
    nth = strtol(colon + 1, &end, 10);
    if (end == colon + 1 || *end || nth < 1)
      return -1;
  }
  for (int i = 0; i < pipeline_n_stages; i++) {
    const char *name = pipeline_stages[i].name;
    if (strlen(name) == len && !memcmp(name, spec, len) && --nth == 0)
      return i;
  }
  return -1;
}

bool pipeline_has_stage(const char *spec) {
  return pipeline_find(spec) >= 0;
}

const char *pipeline_version(void) {
  return NKX_PIPELINE;
}

const char *release_version(void) {
  return NKX_RELEASE;
}

char *pipeline_describe(size_t *len) {
  struct buf b;
  buf_init(&b, DESCRIPTION_MAX);
  buf_putc(&b, '[');
  for (int i = 0; i < pipeline_n_stages; i++) {
    const struct stage_def *s = &pipeline_stages[i];
    json_put_comma(&b);
    buf_putc(&b, '{');
    json_put_field_int(&b, "index", i);
    json_put_field_str(&b, "name", s->name);
    json_put_field_str(&b, "pass", s->pass);
    json_put_field_str(&b, "phase", s->phase);
    json_put_field_str(&b, "dialect", s->dialect);
    json_put_field_str(&b, "summary", s->summary);
    buf_putc(&b, '}');
  }
  buf_putc(&b, ']');
  *len = b.len;
  return b.data; /* NULL if it failed */
}
