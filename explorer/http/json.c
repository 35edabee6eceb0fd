/* Answers in JSON. */
#include <stdlib.h>
#include <string.h>

#include "http/http.h"

enum MHD_Result http_json_take(struct request *rq, unsigned status, char *json, size_t len) {
  if (!json)
    return http_problem(rq, PB_INTERNAL, NULL, NULL);
  return http_bytes(
      rq, status,
      &(struct http_bytes){.data = json, .len = len, .type = "application/json", .release = free, .user = json});
}

enum MHD_Result http_json(struct request *rq, unsigned status, const char *json, size_t len, bool is_constant) {
  if (is_constant)
    return http_bytes(rq, status, &(struct http_bytes){.data = json, .len = len, .type = "application/json"});
  char *copy = malloc(len + 1);
  return http_json_take(rq, status, copy ? memcpy(copy, json, len) : NULL, len);
}
