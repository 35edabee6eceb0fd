#include "base/target.h"

#include <assert.h>
#include <string.h>

static const char *const target_names[TARGET_COUNT] = {"trn1", "trn2", "trn3"};
static const char *const language_names[LANG_COUNT] = {"nkipy", "hlo", "mlir", "neff"};

const char *target_name(enum target t) {
  assert(t < TARGET_COUNT);
  return target_names[t];
}

const char *language_name(enum language l) {
  assert(l < LANG_COUNT);
  return language_names[l];
}

bool target_from_name(const char *name, enum target *out) {
  for (int i = 0; i < TARGET_COUNT; i++)
    if (!strcmp(name, target_names[i]))
      return *out = (enum target)i, true;
  return false;
}

bool language_from_name(const char *name, enum language *out) {
  for (int i = 0; i < LANG_COUNT; i++)
    if (!strcmp(name, language_names[i]))
      return *out = (enum language)i, true;
  return false;
}
