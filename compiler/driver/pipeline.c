#include "driver/pipeline.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "version.h" /* made by the build: compiler/driver/version.sh and VERSION */

#define STAGE(runner, name, phase, dialect, pass, summary) \
  {runner, name, phase, dialect, pass, summary, .is_own = false},
#define STAGE_OWN(runner, name, phase, dialect, pass, summary) \
  {runner, name, phase, dialect, pass, summary, .is_own = true},
static const struct stage_def hlo_stages[] = {
#include "driver/stages.def"
};
static const struct stage_def nki_stages[] = {
#include "driver/nki_stages.def"
};
#undef STAGE_OWN
#define STAGE_OWN(runner, name, phase, dialect, pass, summary)
static const struct stage_def reference_stages[] = {
#include "driver/stages.def"
};
#undef STAGE_OWN
#undef STAGE

const struct pipeline pipeline_hlo = {"hlo", hlo_stages, sizeof hlo_stages / sizeof *hlo_stages, NULL};
const struct pipeline pipeline_nki = {"nki", nki_stages, sizeof nki_stages / sizeof *nki_stages, NULL};
const struct pipeline pipeline_reference = {"reference", reference_stages,
                                            sizeof reference_stages / sizeof *reference_stages, NULL};

static bool has(const struct pipeline *p, const struct stage_def *def) {
  return def >= p->stages && def < p->stages + p->n;
}

int pipeline_index_in_hlo(const struct stage_def *def) {
  assert(!has(&pipeline_nki, def));
  if (has(&pipeline_hlo, def))
    return (int)(def - hlo_stages);
  int before = (int)(def - reference_stages), i = 0; /* stages of the reference that come before it */
  while (hlo_stages[i].is_own || before-- > 0)
    i++;
  return i;
}

enum stage_form stage_form(const struct stage_def *def) {
  switch (def->runner) {
  case RUN_TRACE:
  case RUN_HLO:
    return FORM_HLO;
  case RUN_TO_LINALG:
  case RUN_UPSTREAM:
  case RUN_PASS:
    return FORM_MLIR;
  case RUN_NKI_AST:
  case RUN_NKI_TRACE:
  case RUN_NKI_CANONICALIZE:
  case RUN_NKI_REROLL:
    return FORM_NKI;
  case RUN_TO_NISA:
  case RUN_NKI_LOWER:
    break;
  }
  return FORM_NISA;
}

bool pipeline_takes_buffers(const char *pass) {
  return pipeline_find(&pipeline_hlo, pass) > pipeline_find(&pipeline_hlo, "one-shot-bufferize");
}

enum { DESCRIPTION_MAX = 64 << 10 };

int pipeline_find(const struct pipeline *p, const char *spec) {
  const char *colon = strchr(spec, ':');
  size_t len = colon ? (size_t)(colon - spec) : strlen(spec);
  long nth = 1;
  if (colon) {
    char *end;
    nth = strtol(colon + 1, &end, 10);
    if (end == colon + 1 || *end || nth < 1)
      return -1;
  }
  for (int i = 0; i < p->n; i++) {
    const char *name = p->stages[i].name;
    if (strlen(name) == len && !memcmp(name, spec, len) && --nth == 0)
      return i;
  }
  return -1;
}

int pipeline_stage(const struct pipeline *p, const char *text) {
  const size_t n = strspn(text, "0123456789");
  if (!n || text[n])
    return pipeline_find(p, text);
  return n <= 4 && atoi(text) < p->n ? atoi(text) : -1;
}

bool pipeline_has_stage(const char *spec) {
  return pipeline_find(&pipeline_hlo, spec) >= 0 || pipeline_find(&pipeline_nki, spec) >= 0;
}

const char *pipeline_version(void) {
  return NKX_PIPELINE;
}

const char *release_version(void) {
  return NKX_RELEASE;
}

char *pipeline_describe(const struct pipeline *p, size_t *len) {
  struct buf b;
  buf_init(&b, DESCRIPTION_MAX);
  buf_putc(&b, '[');
  for (int i = 0; i < p->n; i++) {
    const struct stage_def *s = &p->stages[i];
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
