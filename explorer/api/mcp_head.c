/* mcp_head: what the headers of a request say about its message, its session and the page that sent it. */
#include "api/mcp.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include <jansson.h>
#include <openssl/crypto.h>

#include "api/services.h"
#include "store/store.h"

static const char version_header[] = "MCP-Protocol-Version";

/* ---- pages ------------------------------------------------------------------------------------------------------- */

static bool is_loopback(const char *host) {
  static const char *const names[] = {"localhost", "127.0.0.1", "[::1]"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    const size_t n = strlen(names[i]);
    if (!strncasecmp(host, names[i], n) && (!host[n] || host[n] == ':'))
      return true;
  }
  return false;
}

/* The names of other hosts prove nothing: a page can give its own name our address. */
bool mcp_origin_allowed(const struct request *rq) {
  const char *origin = http_header(rq, MHD_HTTP_HEADER_ORIGIN), *host = http_header(rq, MHD_HTTP_HEADER_HOST);
  const char *at = origin ? strstr(origin, "://") : NULL;
  return !origin || (at && host && is_loopback(at + 3) && !strcasecmp(at + 3, host));
}

/* ---- sessions ---------------------------------------------------------------------------------------------------- */

/* IDENT_LEN characters that only a server of this store can make for the text. */
static void derive(const struct request *rq, const char *purpose, const char *text, size_t len,
                   char out[IDENT_LEN + 1]) {
  char all[128];
  const int n = snprintf(all, sizeof all, "mcp %s %.*s", purpose, (int)len, text);
  ident_derive(store_secret(services_of(rq)->store), STORE_SECRET_SIZE, all, (size_t)n, out);
}

enum status mcp_session_new(const struct request *rq, char id[MCP_SESSION_LEN + 1], struct error *err) {
  const enum status st = ident_new(id, err);
  if (st)
    return st;
  id[IDENT_LEN] = '.';
  derive(rq, "session", id, IDENT_LEN, id + IDENT_LEN + 1);
  return ST_OK;
}

static bool is_session(const struct request *rq, const char *id) {
  char proof[IDENT_LEN + 1];
  if (strlen(id) != MCP_SESSION_LEN || id[IDENT_LEN] != '.' || !ident_is_valid(id, IDENT_LEN))
    return false;
  derive(rq, "session", id, IDENT_LEN, proof);
  return !CRYPTO_memcmp(proof, id + IDENT_LEN + 1, IDENT_LEN);
}

bool mcp_session_text(const struct request *rq, const char *purpose, char out[IDENT_LEN + 1]) {
  const char *id = http_header(rq, MCP_SESSION_HEADER);
  if (!id || !is_session(rq, id))
    return false;
  derive(rq, purpose, id, IDENT_LEN, out);
  return true;
}

/* ---- messages ---------------------------------------------------------------------------------------------------- */

static unsigned refuse(int *code, int with, unsigned status, struct error *err, const char *why) {
  *code = with;
  (void)fail(err, ST_INPUT, "%s", why);
  return status;
}

static bool says(const struct request *rq, const char *header, const char *value) {
  const char *h = http_header(rq, header);
  return h && value && !strcmp(h, value);
}

/* Headers let proxies judge a request without reading its body, so they must not lie. */
static unsigned check_modern(const struct request *rq, const struct mcp_call *call, int *code, struct error *err) {
  const json_t *params = call->message.params;
  const char *method = call->message.method;
  if (!says(rq, version_header, rpc_text(json_object_get(params, "_meta"), MCP_META_VERSION)))
    return refuse(code, MCP_HEADER_MISMATCH, 400, err, "MCP-Protocol-Version differs from the version in _meta");
  if (!says(rq, "Mcp-Method", method))
    return refuse(code, MCP_HEADER_MISMATCH, 400, err, "Mcp-Method differs from the method");
  if (!strcmp(method, "tools/call") && !says(rq, "Mcp-Name", rpc_text(params, "name")))
    return refuse(code, MCP_HEADER_MISMATCH, 400, err, "Mcp-Name differs from the tool's name");
  return 0;
}

unsigned mcp_check_head(const struct request *rq, const struct mcp_call *call, int *code, struct error *err) {
  const char *session = http_header(rq, MCP_SESSION_HEADER), *version = http_header(rq, version_header);
  if (!call->message.method)
    return 0;
  if (call->is_modern && call->code != MCP_UNSUPPORTED_VERSION)
    return check_modern(rq, call, code, err);
  if (call->is_modern || !strcmp(call->message.method, "initialize") ||
      !strcmp(call->message.method, "server/discover"))
    return 0;
  if (version && !mcp_has_version(version))
    return refuse(code, RPC_INVALID, 400, err, "MCP-Protocol-Version: this version is not supported");
  if (!session)
    return refuse(code, RPC_INVALID, 400, err, MCP_SESSION_HEADER " is missing: initialize gives one");
  return is_session(rq, session) ? 0
                                 : refuse(code, RPC_INVALID, 404, err, "there is no such session: initialize again");
}
