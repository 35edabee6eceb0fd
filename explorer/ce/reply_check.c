#include "ce/reply.h"

#include <stdlib.h>

static void tell_value(json_t *to, const char *role, const json_t *v) {
  char *shape = json_dumps(json_object_get(v, "shape"), JSON_COMPACT);
  reply_add_formatted(to, "  %s %s: %s %s", role, reply_string(v, "name"), reply_string(v, "dtype"),
                      shape ? shape : "");
  free(shape);
}

static void tell_check(json_t *to, const json_t *s) {
  const json_t *c = json_object_get(s, "check"), *reason = json_object_get(c, "reason");
  if (!c)
    return;
  if (json_is_string(reason))
    reply_add_formatted(to, "  %s: %s, %s", reply_string(s, "name"), reply_string(c, "status"),
                        json_string_value(reason));
  else
    reply_add_formatted(to, "  %s: %s, max abs error %g, max rel error %g", reply_string(s, "name"),
                        reply_string(c, "status"), json_number_value(json_object_get(c, "max_abs_err")),
                        json_number_value(json_object_get(c, "max_rel_err")));
}

json_t *reply_numerics(struct reply *r) {
  json_t *lines = json_array();
  for (int k = 0; k < r->n_kernels; k++) {
    const json_t *kernel = json_array_get(r->kernels, (size_t)k), *v;
    size_t i;
    reply_add_formatted(lines, "%s, each stage against NumPy", reply_kernel_name(r, k));
    json_array_foreach(json_object_get(kernel, "inputs"), i, v) tell_value(lines, "input", v);
    json_array_foreach(json_object_get(kernel, "outputs"), i, v) tell_value(lines, "output", v);
    for (int s = 0; s < r->n_stages; s++)
      if (r->stages[s].kernel == k)
        tell_check(lines, reply_stage(r, s));
  }
  return lines;
}
