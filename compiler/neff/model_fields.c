/* model_fields: the names of types and operations, and the members of a variable, a queue or an engine
 * that the model does not use itself. */
#include <assert.h>
#include <string.h>

#include "neff/model.h"

static const struct {
  const char *name, *place;
} var_types[NEFF_VAR_TYPES] = {
#define NEFF_VAR(e, name, place) {name, place},
#include "neff/var.def"
#undef NEFF_VAR
};

static const char *const move_ops[NEFF_MOVE_OPS] = {
#define NEFF_MOVE_OP(e, name) name,
#include "neff/move_op.def"
#undef NEFF_MOVE_OP
};

const char *neff_move_op_name(enum neff_move_op op) {
  assert(op < NEFF_MOVE_OPS);
  return move_ops[op];
}
const char *neff_var_type_name(enum neff_var_type t) {
  assert(t < NEFF_VAR_TYPES);
  return var_types[t].name;
}
const char *neff_var_type_place(enum neff_var_type t) {
  assert(t < NEFF_VAR_TYPES);
  return var_types[t].place;
}

/* ---- fields --------------------------------------------------------------------------------------------------------- */

enum kind { COUNT, TEXT, COUNTS, TEXTS, ANY };

static const struct field {
  const char *key;
  enum kind kind;
} var_fields[] = {{"alignment", COUNT},         {"fabric_path", TEXT}, {"backing_variable_off", COUNT},
                  {"referenced_var_id", COUNT}, {"list", COUNTS},      {NULL, COUNT}},
  queue_fields[] = {{"queue_instances", TEXTS},
                    {"semaphore_set", COUNTS},
                    {"semaphore", COUNT},
                    {"fabric_path", TEXT},
                    {NULL, COUNT}},
  engine_fields[] = {{"activation_function_sets", ANY}, {"dve_tables", ANY}, {NULL, COUNT}};

static bool is_kind(const json_t *v, enum kind kind) {
  const json_t *one;
  size_t i;
  if (kind == TEXT)
    return json_is_string(v);
  if (kind == COUNT)
    return json_is_integer(v) && json_integer_value(v) >= 0;
  if (kind == ANY)
    return true;
  json_array_foreach(v, i, one) {
    if (!is_kind(one, kind == TEXTS ? TEXT : COUNT))
      return false;
  }
  return json_is_array(v);
}

static const struct field *fields_of(enum neff_object of) {
  return of == NEFF_OF_VAR ? var_fields : of == NEFF_OF_QUEUE ? queue_fields : engine_fields;
}

const char *neff_model_wrong_field(const json_t *o, enum neff_object of) {
  for (const struct field *f = fields_of(of); f->key; f++) {
    const json_t *v = json_object_get(o, f->key);
    if (v && !is_kind(v, f->kind))
      return f->key;
  }
  return NULL;
}

json_t *neff_model_fields(const json_t *o, enum neff_object of) {
  json_t *found = json_object();
  for (const struct field *f = fields_of(of); f->key; f++) {
    json_t *v = json_object_get(o, f->key);
    if (v)
      json_object_set_new(found, f->key, json_deep_copy(v));
  }
  return found;
}
