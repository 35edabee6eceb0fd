#include "base/dtype.h"

#include <string.h>

static const struct info {
  const char *numpy, *hlo, *gen;
  int xla;
  size_t size;
  enum dtype_kind kind;
} table[DT_COUNT] = {
    [DT_NONE] = {"", "", "", 0, 0, DK_NONE},
#define DTYPE(e, np, hlo, gen, prim, size, kind) [e] = {np, hlo, gen, prim, size, kind},
#include "base/dtype.def"
#undef DTYPE
    [DT_TUPLE] = {"tuple", "tuple", "tuple", 13, 0, DK_TUPLE},
};

static const struct info *info(enum dtype t) {
  return &table[(unsigned)t < DT_COUNT ? t : DT_NONE];
}

const char *dtype_numpy_name(enum dtype t) {
  return info(t)->numpy;
}
const char *dtype_hlo_name(enum dtype t) {
  return info(t)->hlo;
}
int dtype_xla_number(enum dtype t) {
  return info(t)->xla;
}
size_t dtype_size(enum dtype t) {
  return info(t)->size;
}
enum dtype_kind dtype_kind(enum dtype t) {
  return info(t)->kind;
}

enum dtype dtype_from_name(const char *name) {
  for (int t = DT_NONE + 1; t < DT_TUPLE; t++)
    if (!strcmp(name, table[t].numpy) || !strcmp(name, table[t].gen))
      return (enum dtype)t;
  return DT_NONE;
}

enum dtype dtype_from_hlo_name(const char *name) {
  for (int t = DT_NONE + 1; t < DT_TUPLE; t++)
    if (t != DT_C128 && !strcmp(name, table[t].hlo))
      return (enum dtype)t;
  return DT_NONE;
}

enum dtype dtype_from_xla_number(int number) {
  for (int t = DT_NONE + 1; t < DT_COUNT; t++)
    if (t != DT_C128 && table[t].xla == number)
      return (enum dtype)t;
  return DT_NONE;
}

enum dtype dtype_narrow(enum dtype t) {
  switch (t) {
  case DT_F64:
    return DT_F32;
  case DT_I64:
    return DT_I32;
  case DT_U64:
    return DT_U32;
  case DT_C128:
    return DT_C64;
  default:
    return t;
  }
}
