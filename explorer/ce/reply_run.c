/* The simulated run as lines of output: what `nkx run` prints. */
#include <stdlib.h>

#include "ce/reply.h"

static void add_number(json_t *to, const char *label, const json_t *v) {
  if (json_is_number(v))
    json_array_append_new(to, json_sprintf(" %s %.6g", label, json_number_value(v)));
}

/* The strings of an array, one after the other. */
static json_t *joined(const json_t *parts) {
  const json_t *v;
  size_t i;
  json_t *all = json_string("");
  json_array_foreach(parts, i, v) {
    json_t *more = json_sprintf("%s%s", json_string_value(all), json_string_value(v));
    json_decref(all);
    all = more;
  }
  return all;
}

static void tell_output(json_t *to, const json_t *o) {
  char *shape = json_dumps(json_object_get(o, "shape"), JSON_COMPACT);
  const json_t *pass = json_object_get(o, "pass");
  json_t *parts = json_array(), *numbers;
  add_number(parts, "min", json_object_get(o, "min"));
  add_number(parts, "max", json_object_get(o, "max"));
  add_number(parts, "mean", json_object_get(o, "mean"));
  if (pass)
    json_array_append_new(parts, json_string(json_is_true(pass) ? " pass" : " FAIL"));
  add_number(parts, "largest error", json_object_get(o, "max_abs_err"));
  numbers = joined(parts);
  reply_add_formatted(to, "  output %s: %s %s%s", reply_string(o, "name"), reply_string(o, "dtype"), shape ? shape : "",
                      json_string_value(numbers));
  json_decref(numbers);
  json_decref(parts);
  free(shape);
}

void reply_take_simulation(struct reply *r, int kernel, const json_t *s) {
  const json_t *o, *fault = json_object_get(s, "fault");
  size_t i;
  reply_add_formatted(r->run_lines, "%s on the simulated %s", reply_kernel_name(r, kernel),
                      target_name(r->ask->args.has_target ? r->ask->args.target : r->ask->target));
  if (*reply_string(s, "reason"))
    reply_add_formatted(r->run_lines, "  not run: %s", reply_string(s, "reason"));
  if (fault)
    reply_add_formatted(r->run_lines, "  %s: %s: %s", reply_string(fault, "kind"), reply_string(fault, "instruction"),
                        reply_string(fault, "message"));
  json_array_foreach(json_object_get(s, "outputs"), i, o) tell_output(r->run_lines, o);
}

void reply_take_profile(struct reply *r, const json_t *text) {
  reply_add_lines(r->run_lines, json_string_value(text), json_string_length(text));
}
