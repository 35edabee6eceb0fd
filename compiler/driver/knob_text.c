/* knob_text: see the header. */
#include "driver/knob_text.h"

#include <string.h>

#include <jansson.h>

#include "trace/written_knobs.h"

static const char *text_of(struct arena *a, const json_t *o, const char *key) {
  const char *s = json_string_value(json_object_get(o, key));
  return s ? arena_strdup(a, s) : NULL;
}

static size_t number(const json_t *list, size_t i) {
  return (size_t)json_integer_value(json_array_get(list, i));
}

static size_t place(const json_t *o, const char *key) {
  return (size_t)json_integer_value(json_object_get(o, key));
}

static struct knob_brackets read_brackets(struct arena *a, const json_t *o) {
  const json_t *list = json_object_get(o, "arguments"), *x;
  struct knob_brackets b = {text_of(a, o, "name"), place(o, "put"), text_of(a, o, "separator"),
                            (int)json_array_size(list), NULL};
  size_t i;
  b.arguments = arena_new_array(a, struct knob_argument, (size_t)b.n + 1);
  json_array_foreach(list, i, x) b.arguments[i] =
      (struct knob_argument){arena_strdup(a, json_string_value(json_array_get(x, 0))), {number(x, 1), number(x, 2)}};
  return b;
}

static struct knob_call read_call(struct arena *a, const json_t *o) {
  const json_t *methods = json_object_get(o, "methods"), *value = json_object_get(o, "value"), *x;
  struct knob_call c = {.is_around = json_is_true(json_object_get(o, "is_around")),
                        .value = {number(value, 0), number(value, 1)},
                        .end = place(o, "end"),
                        .knob = read_brackets(a, o),
                        .n = (int)json_array_size(methods)};
  size_t i;
  c.methods = arena_new_array(a, struct knob_brackets, (size_t)c.n + 1);
  json_array_foreach(methods, i, x) c.methods[i] = read_brackets(a, x);
  return c;
}

enum status knob_text_read(struct arena *a, const char *text, size_t from, size_t to, struct knob_text *out) {
  const char *found;
  *out = (struct knob_text){0};
  const enum status st = trace_written_knobs(a, text, from, to, &found);
  json_t *o = st ? NULL : json_loads(found, 0, NULL), *x;
  const json_t *statements = json_object_get(o, "statements"), *calls = json_object_get(o, "calls");
  size_t i;
  if (st)
    return st;
  *out = (struct knob_text){.import_at = place(o, "import_at"),
                            .name = text_of(a, o, "name"),
                            .n_statements = (int)json_array_size(statements),
                            .n_calls = (int)json_array_size(calls)};
  out->statements = arena_new_array(a, struct knob_statement, (size_t)out->n_statements + 1);
  out->calls = arena_new_array(a, struct knob_call, (size_t)out->n_calls + 1);
  json_array_foreach(statements, i, x) out->statements[i] =
      (struct knob_statement){{number(x, 0), number(x, 1)}, (int)number(x, 2), (int)number(x, 3)};
  json_array_foreach(calls, i, x) out->calls[i] = read_call(a, x);
  json_decref(o);
  return ST_OK;
}

const struct knob_part *knob_argument(const struct knob_brackets *b, const char *name) {
  for (int k = 0; k < b->n; k++)
    if (!strcmp(b->arguments[k].name, name))
      return &b->arguments[k].value;
  return NULL;
}
