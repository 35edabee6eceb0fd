#include "driver/source_table.h"

#include <stddef.h>

enum { PLACE_FILE, PLACE_LINE, PLACE_COL, PLACE_END_LINE, PLACE_END_COL, PLACE_FN, PLACE_CALLER };

void source_table_clear(struct source_table *t) {
  json_decref(t->files);
  json_decref(t->places);
  json_decref(t->sources);
  *t = (struct source_table){0};
}

/* Appends the frame's array `key` to *to.  If memory runs out, the table stays short, so that some numbers have no
 * entry. */
static void extend(json_t **to, const json_t *frame, const char *key) {
  if (!*to)
    *to = json_array();
  json_array_extend(*to, json_object_get(frame, key));
}

void source_table_add(struct source_table *t, const json_t *frame) {
  extend(&t->files, frame, "files");
  extend(&t->places, frame, "places");
  extend(&t->sources, frame, "sources");
}

/* Returns the element with this number, NULL if there is none. */
static const json_t *at(const json_t *array, json_int_t number) {
  return number < 0 ? NULL : json_array_get(array, (size_t)number);
}

const json_t *source_table_list(const struct source_table *t, const json_t *src) {
  return json_is_integer(src) ? json_object_get(at(t->sources, json_integer_value(src)), "places") : NULL;
}

bool source_table_place(const struct source_table *t, json_int_t number, struct source_place *out) {
  const json_t *p = at(t->places, number);
  if (!p)
    return false;
  const char *file = json_string_value(at(t->files, json_integer_value(json_array_get(p, PLACE_FILE))));
  const char *fn = json_string_value(json_array_get(p, PLACE_FN));
  const json_int_t caller = json_integer_value(json_array_get(p, PLACE_CALLER));
  *out = (struct source_place){
      .file = file ? file : "",
      .fn = fn ? fn : "",
      .line = json_integer_value(json_array_get(p, PLACE_LINE)),
      .col = json_integer_value(json_array_get(p, PLACE_COL)),
      .end_line = json_integer_value(json_array_get(p, PLACE_END_LINE)),
      .end_col = json_integer_value(json_array_get(p, PLACE_END_COL)),
      .caller = caller < number ? caller : -1,
  };
  return true;
}
