/* The ids of compilers, and lists of names. */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "ce/internal.h"

void ce_compiler_id(enum target t, char out[CE_ID_SIZE]) {
  const int n = snprintf(out, CE_ID_SIZE, "%s-%s", CE_LANGUAGE, target_name(t));
  assert(n > 0 && n < CE_ID_SIZE);
  (void)n;
}

bool ce_find_compiler(const char *id, size_t len, enum target *out) {
  char name[CE_ID_SIZE];
  for (int i = 0; i < TARGET_COUNT; i++) {
    const enum target t = (enum target)i;
    ce_compiler_id(t, name);
    const char *const names[] = {name, target_name(t), t == CE_DEFAULT_TARGET ? CE_LANGUAGE : name};
    for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
      if (strlen(names[k]) == len && !memcmp(names[k], id, len)) {
        *out = t;
        return true;
      }
    }
  }
  return false;
}

bool ce_is_listed(const char *list, const char *name) {
  size_t n = strlen(name);
  for (const char *p = list; *p; p += strcspn(p, ","), p += *p == ',')
    if (strcspn(p, ",") == n && !strncmp(p, name, n))
      return true;
  return false;
}
