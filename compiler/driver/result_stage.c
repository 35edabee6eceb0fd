/* result_stage: see the header. */
#include "driver/result_stage.h"

#include <stdlib.h>
#include <string.h>

#include <jansson.h>

/* The number that a text of at most five digits is; -1 for any other text. */
static int number_of(const char *text) {
  const size_t n = strspn(text, "0123456789");
  return n && n <= 5 && !text[n] ? atoi(text) : -1;
}

const json_t *result_stage(const json_t *result, int kernel, const char *key) {
  const json_t *stages = json_object_get(json_array_get(json_object_get(result, "kernels"), (size_t)kernel), "stages");
  const char *colon = strrchr(key, ':');
  const size_t len = colon ? (size_t)(colon - key) : strlen(key);
  int nth = colon ? number_of(colon + 1) : 1;
  const json_t *stage;
  size_t i;
  if (number_of(key) >= 0)
    return json_array_get(stages, (size_t)number_of(key));
  json_array_foreach(stages, i, stage) {
    const json_t *name = json_object_get(stage, "name");
    if (json_string_length(name) == len && !memcmp(json_string_value(name), key, len) && --nth == 0)
      return stage;
  }
  return NULL;
}

int result_kernel(const json_t *result, const char *name) {
  const json_t *kernels = json_object_get(result, "kernels"), *k;
  size_t i;
  json_array_foreach(kernels, i, k) {
    const char *own = json_string_value(json_object_get(k, "name"));
    if (own && !strcmp(own, name))
      return (int)i;
  }
  return number_of(name) < (int)json_array_size(kernels) ? number_of(name) : -1;
}

const char *result_line(const json_t *stage, int line, size_t *len) {
  const char *p = json_string_value(json_object_get(stage, "text"));
  for (int i = 1; p && i < line; i++) {
    p = strchr(p, '\n');
    p = p ? p + 1 : NULL;
  }
  if (!p)
    p = "";
  p += strspn(p, " ");
  *len = strcspn(p, "\n");
  return p;
}

const json_t *result_place(const json_t *result, const json_t *line, size_t i, const char **file) {
  const json_t *src = json_object_get(line, "src");
  const json_t *source =
      src ? json_array_get(json_object_get(result, "sources"), (size_t)json_integer_value(src)) : NULL;
  const json_t *number = json_array_get(json_object_get(source, "places"), i);
  const json_t *place =
      number ? json_array_get(json_object_get(result, "places"), (size_t)json_integer_value(number)) : NULL;
  if (!place)
    return NULL;
  const json_t *name =
      json_array_get(json_object_get(result, "files"), (size_t)json_integer_value(json_array_get(place, 0)));
  *file = json_string_value(name) ? json_string_value(name) : "";
  return place;
}
