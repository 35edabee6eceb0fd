/* rpc: messages of JSON-RPC 2.0, which the Model Context Protocol and the Language Server Protocol consist of.
 *
 * A message is read from text that may be anything.  A request has an id and is answered once; a notification has none and is
 * never answered.
 */
#ifndef RPC_RPC_H
#define RPC_RPC_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/error.h"

struct json_t;

enum rpc_code {
  RPC_PARSE = -32700,     /* no JSON */
  RPC_INVALID = -32600,   /* JSON, but no message, or one that may not come now */
  RPC_NO_METHOD = -32601, /* there is no such method */
  RPC_PARAMS = -32602,    /* its parameters are wrong */
  RPC_INTERNAL = -32603,  /* a fault of ours */
};

enum {
  RPC_NEST_MAX = 64,        /* levels of nesting */
  RPC_MESSAGE_MAX = 4 << 20 /* bytes of a message; the longest source fits, with each byte as an escape */
};

enum rpc_kind { RPC_REQUEST, RPC_NOTIFICATION, RPC_RESPONSE };

struct rpc_message {
  enum rpc_kind kind;
  struct json_t *root;         /* owned; the others are parts of it */
  const struct json_t *id;     /* a string or an integer; NULL: it is a notification */
  const char *method;          /* NULL: it is a response */
  const struct json_t *params; /* an object, or NULL */
};

/* Reads one message.  Returns 0, or a code with the reason in err; m->id is set if the text had one, and rpc_clear is called in
 * both cases. */
MUST_USE int rpc_read(const char *text, size_t len, struct rpc_message *m, struct error *err);
void rpc_clear(struct rpc_message *m);

/* Appends a response without a newline.  result is released; NULL: memory ran out, and the response says so. */
void rpc_put_result(struct buf *out, const struct json_t *id, struct json_t *result);
/* id NULL: the request's is not known.  data: released, may be NULL. */
void rpc_put_error(struct buf *out, const struct json_t *id, int code, const char *message, struct json_t *data);
/* Appends a notification; params is released. */
void rpc_put_notification(struct buf *out, const char *method, struct json_t *params);
/* Appends a request of ours with a number as its id; params is released. */
void rpc_put_request(struct buf *out, int id, const char *method, struct json_t *params);

/* A string parameter, or NULL. */
const char *rpc_text(const struct json_t *params, const char *key);

#endif
