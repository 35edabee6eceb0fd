/* mcp: see the header. */
#include "mcp/mcp.h"

#include <assert.h>
#include <string.h>

#include <jansson.h>

#include "base/json.h"
#include "driver/pipeline.h"

/* Versions whose clients begin with `initialize`, the newest first.  2025-03-26 is left out: it demands batches. */
static const char *const versions[] = {"2025-11-25", "2025-06-18", "2024-11-05"};
static const char modern[] = "2026-07-28";
enum { VERSIONS = sizeof versions / sizeof *versions, LIST_TTL_MS = 3600000, ANSWER_MAX = 16 << 20 };

static const char instructions[] = "Explore how a NumPy or NKI kernel is compiled for AWS Trainium. Compile first "
                                   "(compile, check or simulate) and keep the "
                                   "`result` that it returns; stages, read, find, diff and explain look into it. "
                                   "Shapes must be known: by decorators, annotations, "
                                   "a call in the source, or `inputs`.";

bool mcp_has_version(const char *version) {
  for (int i = 0; i < VERSIONS; i++)
    if (!strcmp(version, versions[i]))
      return true;
  return !strcmp(version, modern);
}

/* ---- answers ----------------------------------------------------------------------------------------------------- */

static enum mcp_do refuse(struct mcp_call *c, struct buf *out, int code, const char *message) {
  c->code = code;
  rpc_put_error(out, c->message.id, code, message, NULL);
  return MCP_SEND;
}

static enum mcp_do send_result(struct mcp_call *c, struct buf *out, json_t *result) {
  if (c->is_modern) /* earlier clients may refuse members that they do not know */
    json_object_set_new(result, "resultType", json_string("complete"));
  rpc_put_result(out, c->message.id, result);
  return MCP_SEND;
}

static json_t *server_info(void) {
  return json_pack("{s:s,s:s,s:s}", "name", "nkx", "title", "Neuron Kernel Explorer", "version", release_version());
}

/* What 2026-07-28 demands of results that clients may keep. */
static json_t *keepable(const struct mcp_call *c, json_t *result) {
  if (c->is_modern) {
    json_object_set_new(result, "ttlMs", json_integer(LIST_TTL_MS));
    json_object_set_new(result, "cacheScope", json_string("public"));
  }
  return result;
}

/* ---- methods ----------------------------------------------------------------------------------------------------- */

static enum mcp_do initialize(struct mcp_call *c, struct buf *out) {
  const char *asked = rpc_text(c->message.params, "protocolVersion");
  const char *version = versions[0];
  if (!asked)
    return refuse(c, out, RPC_PARAMS, "protocolVersion: expected a string");
  for (int i = 0; i < VERSIONS; i++)
    if (!strcmp(asked, versions[i]))
      version = versions[i];
  c->is_initialize = true;
  return send_result(c, out,
                     json_pack("{s:s,s:{s:{}},s:o,s:s}", "protocolVersion", version, "capabilities", "tools",
                               "serverInfo", server_info(), "instructions", instructions));
}

static enum mcp_do discover(struct mcp_call *c, struct buf *out) {
  json_t *all = json_pack("[s]", modern);
  for (int i = 0; i < VERSIONS; i++)
    json_array_append_new(all, json_string(versions[i]));
  json_t *r = json_pack("{s:o,s:{s:{}},s:s,s:{s:o}}", "supportedVersions", all, "capabilities", "tools", "instructions",
                        instructions, "_meta", "io.modelcontextprotocol/serverInfo", server_info());
  return send_result(c, out, keepable(c, r));
}

static enum mcp_do list_tools(struct mcp_call *c, struct buf *out) {
  if (json_object_get(c->message.params, "cursor"))
    return refuse(c, out, RPC_PARAMS, "cursor: there is only one page");
  return send_result(c, out, keepable(c, json_pack("{s:o}", "tools", mcp_tools_list())));
}

static bool is_key(const char *text) {
  return strspn(text, "0123456789abcdef") == JOB_KEY_SIZE - 1 && !text[JOB_KEY_SIZE - 1];
}

/* Reads a key from the arguments; false if it is none. */
static bool read_key(const struct mcp_call *c, const char *name, const char **key) {
  *key = rpc_text(c->args, name);
  return !*key || is_key(*key);
}

static enum mcp_do call_tool(struct arena *a, struct mcp_call *c, struct buf *out) {
  const char *name = rpc_text(c->message.params, "name");
  struct error err = {0};
  if (!name)
    return refuse(c, out, RPC_PARAMS, "name: expected a string");
  c->tool = mcp_tool_find(name);
  if (!c->tool) {
    (void)fail(&err, ST_INPUT, "there is no tool %.60s", name);
    return refuse(c, out, RPC_PARAMS, err.text);
  }
  c->args = json_object_get(c->message.params, "arguments");
  if (json_is_null(c->args))
    c->args = NULL;
  if (c->args && !json_is_object(c->args))
    return refuse(c, out, RPC_PARAMS, "arguments: expected an object");
  if (mcp_tool_check(c->tool, c->args, &err))
    return refuse(c, out, RPC_PARAMS, err.text);
  const enum status st = c->tool->takes_job ? mcp_tool_job(a, c->tool, c->args, &c->job, &err) : ST_OK;
  if (st)
    return refuse(c, out, st == ST_INPUT || st == ST_LIMIT ? RPC_PARAMS : RPC_INTERNAL,
                  st == ST_INPUT || st == ST_LIMIT ? err.text : "out of memory");
  if (c->tool->need != MCP_RESULT)
    return MCP_CALL;
  if (!read_key(c, "result", &c->key) || !read_key(c, "with", &c->with))
    return refuse(c, out, RPC_PARAMS, "result, with: expected the `result` of a compile, 64 hexadecimal digits");
  return MCP_CALL;
}

/* ---- messages ---------------------------------------------------------------------------------------------------- */

static enum mcp_do take_note(struct mcp_call *c) {
  const json_t *id = json_object_get(c->message.params, "requestId");
  if (strcmp(c->message.method, "notifications/cancelled") != 0 || !(json_is_string(id) || json_is_integer(id)))
    return MCP_NOTHING;
  c->cancelled = id;
  return MCP_CANCEL;
}

/* Reads the version that the request names; false if it was refused. */
static bool take_version(struct mcp_call *c, struct buf *out) {
  const json_t *named = json_object_get(json_object_get(c->message.params, "_meta"), MCP_META_VERSION);
  c->is_modern = named != NULL;
  if (!named || (json_is_string(named) && !strcmp(json_string_value(named), modern)))
    return true;
  c->code = MCP_UNSUPPORTED_VERSION;
  rpc_put_error(out, c->message.id, c->code, "unsupported protocol version",
                json_pack("{s:[s],s:O}", "supported", modern, "requested", named));
  return false;
}

enum mcp_do mcp_take(struct arena *a, const char *text, size_t len, struct mcp_call *c, struct buf *out) {
  struct error err = {0};
  *c = (struct mcp_call){0};
  const int code = rpc_read(text, len, &c->message, &err);
  const char *method = c->message.method;
  if (code)
    return c->message.kind == RPC_NOTIFICATION && method && !c->message.id ? MCP_NOTHING
                                                                           : refuse(c, out, code, err.text);
  if (c->message.kind == RPC_RESPONSE)
    return MCP_NOTHING; /* to nothing: we send no requests */
  if (c->message.kind == RPC_NOTIFICATION)
    return take_note(c);
  if (!take_version(c, out))
    return MCP_SEND;
  if (!strcmp(method, "tools/call"))
    return call_tool(a, c, out);
  if (!strcmp(method, "tools/list"))
    return list_tools(c, out);
  if (!strcmp(method, "server/discover"))
    return discover(c, out);
  if (!strcmp(method, "initialize") && !c->is_modern)
    return initialize(c, out);
  if (!strcmp(method, "ping") && !c->is_modern)
    return send_result(c, out, json_object());
  (void)fail(&err, ST_INPUT, "there is no method %.80s", method);
  return refuse(c, out, RPC_NO_METHOD, err.text);
}

void mcp_clear(struct mcp_call *c) {
  rpc_clear(&c->message);
  *c = (struct mcp_call){0};
}

/* ---- results of tools -------------------------------------------------------------------------------------------- */

static void put_call_result(const struct mcp_call *c, const char *text, size_t len, json_t *structured, bool is_error,
                            struct buf *out) {
  struct buf clean; /* IR may hold bytes that are no UTF-8 */
  buf_init(&clean, (size_t)6 * ANSWER_MAX);
  json_put_string(&clean, text, len);
  json_t *r =
      json_pack("{s:[{s:s,s:o}],s:b}", "content", "type", "text", "text",
                json_loadb(buf_text(&clean), clean.len, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL), "isError", is_error);
  buf_clear(&clean);
  if (structured)
    json_object_set_new(r, "structuredContent", structured);
  if (r && c->is_modern)
    json_object_set_new(r, "resultType", json_string("complete"));
  rpc_put_result(out, c->message.id, r);
}

void mcp_answer_text(const struct mcp_call *c, const char *text, json_t *structured, struct buf *out) {
  put_call_result(c, text, strlen(text), structured, false, out);
}

void mcp_answer_failed(const struct mcp_call *c, const char *why, struct buf *out) {
  put_call_result(c, why, strlen(why), NULL, true, out);
}

void mcp_answer(struct arena *a, const struct mcp_call *c, const json_t *result, const json_t *with, struct buf *out) {
  struct error err = {0};
  struct buf text;
  json_t *structured = json_object();
  assert(c->tool->tell);
  buf_init(&text, ANSWER_MAX);
  const struct mcp_ask ask = {c->args, result, with, a, &text, structured};
  enum status st = structured ? c->tool->tell(&ask, &err) : ST_NOMEM;
  if (!st)
    st = buf_status(&text);
  if (!st) {
    put_call_result(c, buf_text(&text), text.len, structured, false, out);
  } else {
    json_decref(structured);
    mcp_answer_failed(c, st == ST_INPUT ? err.text : st == ST_LIMIT ? "the answer is too large" : "out of memory", out);
  }
  buf_clear(&text);
}
