#include "sim/program.h"

#include <assert.h>
#include <string.h>

enum kind { BOOL, SIGNED, UNSIGNED, FLOAT };

static const struct {
  const char *name;
  int bytes;
  enum kind kind;
} types[] = {
#define SIM_TYPE(e, name, bytes, kind) [e] = {name, bytes, kind},
#include "sim/types.def"
#undef SIM_TYPE
};

static const char *const operators[] = {
#define SIM_ARITH(e, name) [e] = name,
#define SIM_BITS(e, name) [e] = name,
#define SIM_FUNCTION(e, name) [e] = name,
#include "sim/operators.def"
#undef SIM_ARITH
#undef SIM_BITS
#undef SIM_FUNCTION
};

int sim_type_bytes(enum sim_type t) {
  assert(t > SIM_NONE && t < SIM_TYPE_COUNT);
  return types[t].bytes;
}

const char *sim_type_name(enum sim_type t) {
  return types[t].name;
}

bool sim_type_is_float(enum sim_type t) {
  return types[t].kind == FLOAT;
}

bool sim_type_is_unsigned(enum sim_type t) {
  return types[t].kind == UNSIGNED;
}

enum sim_type sim_int_type(int bytes, bool is_unsigned) {
  switch (bytes) {
  case 1:
    return is_unsigned ? SIM_U8 : SIM_I8;
  case 2:
    return is_unsigned ? SIM_U16 : SIM_I16;
  case 4:
    return is_unsigned ? SIM_U32 : SIM_I32;
  case 8:
    return is_unsigned ? SIM_U64 : SIM_I64;
  default:
    return SIM_NONE;
  }
}

enum sim_operator sim_operator_from_name(const char *name) {
  for (int o = 1; o < SIM_OPERATOR_COUNT; o++)
    if (!strcmp(operators[o], name))
      return (enum sim_operator)o;
  return SIM_NO_OPERATOR;
}

bool sim_operator_is_function(enum sim_operator o) {
  switch (o) {
#define SIM_ARITH(e, name)
#define SIM_BITS(e, name)
#define SIM_FUNCTION(e, name) case e:
#include "sim/operators.def"
#undef SIM_ARITH
#undef SIM_BITS
#undef SIM_FUNCTION
    return true;
  default:
    return false;
  }
}

bool sim_operator_is_bits(enum sim_operator o) {
  switch (o) {
#define SIM_ARITH(e, name)
#define SIM_BITS(e, name) case e:
#define SIM_FUNCTION(e, name)
#include "sim/operators.def"
#undef SIM_ARITH
#undef SIM_BITS
#undef SIM_FUNCTION
    return true;
  default:
    return false;
  }
}
