/* mcp: messages of the Model Context Protocol and their answers, for every transport.
 *
 * A transport gives each message to mcp_take.  What needs no work is answered at once; a call of a tool names what the transport
 * has to get, and mcp_answer writes the response with it.  Clients of the versions up to 2025-11-25 begin with `initialize`; those
 * of 2026-07-28 name their version in each request (params._meta) and may ask `server/discover`.
 */
#ifndef MCP_MCP_H
#define MCP_MCP_H

#include <stdbool.h>

#include "base/arena.h"
#include "base/buf.h"
#include "driver/job.h"
#include "mcp/tools.h"
#include "rpc/rpc.h"

/* Codes of the protocol besides those of JSON-RPC. */
enum { MCP_HEADER_MISMATCH = -32020, MCP_UNSUPPORTED_VERSION = -32022 };

#define MCP_META_VERSION "io.modelcontextprotocol/protocolVersion"

enum mcp_do {
  MCP_SEND,    /* the response is in `out` */
  MCP_NOTHING, /* a notification or a response: nothing is sent */
  MCP_CANCEL,  /* the client gives up the request with the id `cancelled` */
  MCP_CALL,    /* a tool is called */
};

struct mcp_call {
  struct rpc_message message;
  bool is_modern;     /* of 2026-07-28: it names its version itself */
  bool is_initialize; /* the request that begins a session */
  int code;           /* of the error that was sent; 0: none */
  const struct json_t *cancelled;
  /* MCP_CALL: */
  const struct mcp_tool *tool;
  const struct json_t *args; /* an object, or NULL: none were given */
  struct job job;            /* of a tool that takes one; in the arena */
  const char *key, *with;    /* of a tool that needs results; NULL: not asked for */
};

/* True for a version that clients begin sessions with. */
bool mcp_has_version(const char *version);
/* Reads a message and answers it if that needs no work.  mcp_clear releases what it holds in any case.  How the job is to be read
 * from other hands: the caller's arena holds it. */
enum mcp_do mcp_take(struct arena *a, const char *text, size_t len, struct mcp_call *call, struct buf *out);
void mcp_clear(struct mcp_call *call);

/* Writes the response to a call of a tool.  The results are those of call->key and with, or of the job. */
void mcp_answer(struct arena *a, const struct mcp_call *call, const struct json_t *result, const struct json_t *with,
                struct buf *out);
/* The same with a text, and an object that is released. */
void mcp_answer_text(const struct mcp_call *call, const char *text, struct json_t *structured, struct buf *out);
/* Says that the tool could not do it, for the model to read. */
void mcp_answer_failed(const struct mcp_call *call, const char *why, struct buf *out);

#endif
