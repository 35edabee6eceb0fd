/* rpc: see the header. */
#include "rpc/rpc.h"

#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "base/json.h"

/* ---- reading ----------------------------------------------------------------------------------------------------- */

static bool is_id(const json_t *v) {
  return json_is_string(v) || json_is_integer(v);
}

static int refuse(struct error *err, enum rpc_code code, const char *why) {
  (void)fail(err, ST_INPUT, "%s", why);
  return code;
}

static int read_object(struct rpc_message *m, struct error *err) {
  const json_t *id = json_object_get(m->root, "id"), *method = json_object_get(m->root, "method");
  const char *version = json_string_value(json_object_get(m->root, "jsonrpc"));
  m->id = is_id(id) ? id : NULL;
  if (!version || strcmp(version, "2.0") != 0)
    return refuse(err, RPC_INVALID, "jsonrpc: expected \"2.0\"");
  if (!method && (json_object_get(m->root, "result") || json_object_get(m->root, "error"))) {
    m->kind = RPC_RESPONSE;
    return 0;
  }
  if (id && !m->id)
    return refuse(err, RPC_INVALID, "id: expected a string or an integer");
  m->method = json_string_value(method);
  if (!m->method)
    return refuse(err, RPC_INVALID, "method: expected a string");
  m->kind = m->id ? RPC_REQUEST : RPC_NOTIFICATION;
  m->params = json_object_get(m->root, "params");
  if (json_is_null(m->params))
    m->params = NULL;
  return m->params && !json_is_object(m->params) ? refuse(err, RPC_PARAMS, "params: expected an object") : 0;
}

int rpc_read(const char *text, size_t len, struct rpc_message *m, struct error *err) {
  json_error_t why;
  *m = (struct rpc_message){0};
  if (len > RPC_MESSAGE_MAX)
    return refuse(err, RPC_INVALID, "the message is longer than 4 MiB");
  if (json_nesting(text, len) > RPC_NEST_MAX)
    return refuse(err, RPC_PARSE, "the JSON is nested more than 64 levels deep");
  m->root = json_loadb(text, len, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL | JSON_DECODE_ANY, &why);
  if (!m->root) {
    (void)fail(err, ST_INPUT, "line %d column %d: %s", why.line, why.column, why.text);
    return RPC_PARSE;
  }
  if (json_is_array(m->root))
    return refuse(err, RPC_INVALID, "batches are not supported: send one message at a time");
  return json_is_object(m->root) ? read_object(m, err) : refuse(err, RPC_INVALID, "expected a JSON object");
}

void rpc_clear(struct rpc_message *m) {
  json_decref(m->root);
  *m = (struct rpc_message){0};
}

const char *rpc_text(const json_t *params, const char *key) {
  return json_string_value(json_object_get(params, key));
}

/* ---- writing ----------------------------------------------------------------------------------------------------- */

static void put_value(struct buf *out, const json_t *v) {
  char *text = v ? json_dumps(v, JSON_COMPACT | JSON_ENCODE_ANY) : NULL;
  buf_puts(out, text ? text : "null");
  free(text);
}

static void put_head(struct buf *out, const json_t *id) {
  buf_puts(out, "{\"jsonrpc\":\"2.0\",\"id\":");
  put_value(out, id);
}

void rpc_put_error(struct buf *out, const json_t *id, int code, const char *message, json_t *data) {
  put_head(out, id);
  buf_printf(out, ",\"error\":{\"code\":%d,\"message\":", code);
  json_put_cstr(out, message);
  if (data) {
    buf_puts(out, ",\"data\":");
    put_value(out, data);
  }
  buf_puts(out, "}}");
  json_decref(data);
}

void rpc_put_result(struct buf *out, const json_t *id, json_t *result) {
  char *text = result ? json_dumps(result, JSON_COMPACT | JSON_ENCODE_ANY) : NULL;
  json_decref(result);
  if (!text) {
    rpc_put_error(out, id, RPC_INTERNAL, "out of memory", NULL);
    return;
  }
  put_head(out, id);
  buf_puts(out, ",\"result\":");
  buf_puts(out, text);
  buf_putc(out, '}');
  free(text);
}

static void put_call(struct buf *out, const char *method, json_t *params) {
  json_put_key(out, "method");
  json_put_cstr(out, method);
  if (params) {
    buf_puts(out, ",\"params\":");
    put_value(out, params);
  }
  buf_putc(out, '}');
  json_decref(params);
}

void rpc_put_notification(struct buf *out, const char *method, json_t *params) {
  buf_puts(out, "{\"jsonrpc\":\"2.0\"");
  put_call(out, method, params);
}

void rpc_put_request(struct buf *out, int id, const char *method, json_t *params) {
  buf_printf(out, "{\"jsonrpc\":\"2.0\",\"id\":%d", id);
  put_call(out, method, params);
}
