#include "base/diag.h"

#include <stdarg.h>
#include <string.h>

#include "base/utf8.h"

const char *diag_code_name(enum diag_code code) {
  static const char *const names[] = {
#define DIAG(e, code, what) code,
#include "base/diag.def"
#undef DIAG
  };
  return (unsigned)code < DIAG_COUNT ? names[code] : "?";
}

const char *diag_code_meaning(const char *code) {
  static const char *const meanings[] = {
#define DIAG(e, name, what) what,
#include "base/diag.def"
#undef DIAG
  };
  for (int i = 0; i < DIAG_COUNT; i++)
    if (!strcmp(diag_code_name((enum diag_code)i), code))
      return meanings[i];
  return NULL;
}

const char *diag_severity_name(enum diag_severity severity) {
  static const char *const names[] = {"error", "warning", "note"};
  return names[severity];
}

void diags_init(struct diags *ds, struct arena *a) {
  *ds = (struct diags){.arena = a};
}

struct diag *diag_add(struct diags *ds, enum diag_severity severity, enum diag_code code, const struct src_loc *loc,
                      const char *fmt, ...) {
  if (ds->n == ds->cap) {
    int cap = ds->cap ? ds->cap * 2 : 8;
    struct diag *v = arena_new_array(ds->arena, struct diag, (size_t)cap);
    if (ds->n)
      memcpy(v, ds->v, (size_t)ds->n * sizeof *v);
    ds->v = v;
    ds->cap = cap;
  }
  /* at the limit the last entry is overwritten, because the first ones are the most useful */
  struct diag *d = &ds->v[ds->n < DIAGS_MAX ? ds->n++ : ds->n - 1];
  va_list ap;
  va_start(ap, fmt);
  *d = (struct diag){.severity = severity, .code = code, .loc = loc, .message = arena_vprintf(ds->arena, fmt, ap)};
  va_end(ap);
  ds->has_error |= severity == DS_ERROR;
  return d;
}

void diag_print(FILE *to, const struct diag *d) {
  fprintf(to, "%s: ", diag_severity_name(d->severity));
  utf8_print(to, d->message, strlen(d->message));
  fprintf(to, " [%s]\n", diag_code_name(d->code));
}
