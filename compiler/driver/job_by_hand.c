/* job_by_hand: reads and writes the member options.by_hand of a compile request. */
#include <string.h>

#include "driver/by_hand.h"
#include "driver/job_internal.h"

enum status job_read_by_hand(struct arena *a, const json_t *v, struct job *j, struct error *err) {
  const size_t n = json_array_size(v);
  if (!json_is_array(v))
    return fail(err, ST_INPUT, "options.by_hand: expected an array");
  if (n > BY_HAND_MAX)
    return fail(err, ST_LIMIT, "options.by_hand: at most %d changes", BY_HAND_MAX);
  const char **changes = arena_new_array(a, const char *, n);
  for (size_t i = 0; i < n; i++) {
    const json_t *x = json_array_get(v, i);
    struct error why = {0};
    if (!json_is_string(x) || strlen(json_string_value(x)) != json_string_length(x))
      return fail(err, ST_INPUT, "options.by_hand[%zu]: expected a string", i);
    enum status st = by_hand_check(json_string_value(x), &why);
    if (st)
      return fail(err, st, "options.by_hand[%zu]: %s", i, why.text);
    changes[i] = arena_strndup(a, json_string_value(x), json_string_length(x));
  }
  j->by_hand = changes;
  j->n_by_hand = (int)n;
  return ST_OK;
}

enum status job_choose_by_hand(struct arena *a, const char *text, struct job *j, struct error *err) {
  const char **changes = arena_new_array(a, const char *, (size_t)j->n_by_hand + BY_HAND_MAX);
  for (int i = 0; i < j->n_by_hand; i++)
    changes[i] = j->by_hand[i];
  const int n = by_hand_split(a, text, changes + j->n_by_hand);
  if (n < 0 || j->n_by_hand + n > BY_HAND_MAX)
    return fail(err, ST_LIMIT, "at most %d changes of the pipeline", BY_HAND_MAX);
  j->by_hand = changes;
  for (int i = 0; i < n; i++) {
    enum status st = by_hand_check(changes[j->n_by_hand], err);
    if (st)
      return st;
    j->n_by_hand++;
  }
  return ST_OK;
}

json_t *job_by_hand_json(const struct job *j) {
  json_t *v = json_array();
  for (int i = 0; v && i < j->n_by_hand; i++)
    if (json_array_append_new(v, json_string(j->by_hand[i]))) {
      json_decref(v);
      v = NULL;
    }
  return v;
}
