/* mcp: the Model Context Protocol over streamable HTTP.
 *
 * POST /mcp   one message of compiler/mcp/mcp.h; Content-Type: application/json
 *   200 with the response as JSON; 202 for a notification; errors of HTTP, such as 429, have a JSON-RPC error as their body
 *   400 if the message, or a header that describes it, is wrong
 *
 * There is no stream of the server's own (GET answers 405): it has nothing to say that was not asked for.
 *
 * `initialize` answers with Mcp-Session-Id, which later requests of versions up to 2025-11-25 must repeat (400 without one, 404 with
 * one that is not the server's).  A session is no state: its id proves itself, on every server of a store, and is the scope of the
 * results that it makes (driver/job.h).  Requests of 2026-07-28 have no session; their headers must say what their message says.
 *
 * A request with an Origin, which is a browser's, is answered only for pages of this server on the machine itself (403).  Tools
 * compile within the client's shares, as POST /api/v1/compile does; `share` stores a link, as POST /api/v1/snippets does.
 */
#ifndef API_MCP_H
#define API_MCP_H

#include "http/http.h"
#include "mcp/mcp.h"
#include "store/ident.h"

enum MHD_Result api_mcp(struct request *rq);
/* Errors of HTTP as errors of JSON-RPC (http/route.h). */
struct MHD_Response *api_mcp_problem(struct request *rq, unsigned status, const char *code, const char *message);

/* ---- mcp_head.c --------------------------------------------------------------------------------------------------- */

enum { MCP_SESSION_LEN = 2 * IDENT_LEN + 1 };
#define MCP_SESSION_HEADER "Mcp-Session-Id"

/* False if a browser sent it for a page that must not reach us. */
bool mcp_origin_allowed(const struct request *rq);
/* Checks the headers that belong to a message.  Returns 0, or the status of HTTP and an error of JSON-RPC in *code and err. */
unsigned mcp_check_head(const struct request *rq, const struct mcp_call *call, int *code, struct error *err);
/* A new session's id. */
MUST_USE enum status mcp_session_new(const struct request *rq, char id[MCP_SESSION_LEN + 1], struct error *err);
/* A text that is secret to the request's session and the purpose, for scopes and names; false: it has no session. */
bool mcp_session_text(const struct request *rq, const char *purpose, char out[IDENT_LEN + 1]);

#endif
