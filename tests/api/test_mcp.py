"""The Model Context Protocol over HTTP."""
import json
import threading

import pytest
from mcp.client.streamable_http import streamable_http_client

from support import mcp_client
from support.server import JSON, Server

MODERN = "2026-07-28"
META = {"io.modelcontextprotocol/protocolVersion": MODERN, "io.modelcontextprotocol/clientCapabilities": {}}


def http(server):
    return streamable_http_client(server.url + "/mcp")


def request(method, n=1, **params):
    return {"jsonrpc": "2.0", "id": n, "method": method, "params": params}


def call(tool, n=1, **arguments):
    return request("tools/call", n, name=tool, arguments=arguments)


def post(server, body, **headers):
    return server.request("POST", "/mcp", body, {**JSON, **{k.replace("_", "-"): v for k, v in headers.items()}})


@pytest.fixture(scope="module")
def session(server):
    answer = post(server, request("initialize", protocolVersion="2025-11-25", capabilities={}, clientInfo={"name": "t", "version": "0"}))
    assert answer.status == 200 and answer.json["result"]["protocolVersion"] == "2025-11-25"
    return answer.headers["Mcp-Session-Id"]


@pytest.mark.parametrize("mode", ["auto", pytest.param("legacy", marks=pytest.mark.nightly)])
def test_the_protocols_client_uses_every_tool(server, mode):
    async def everything(client):
        await mcp_client.tour(client)
        await mcp_client.two_kernels(client)
    mcp_client.talk(http(server), everything, mode)


def test_wrong_calls_are_answered(server):
    mcp_client.talk(http(server), mcp_client.wrong_calls)


def test_a_shared_kernel_is_a_stored_link_with_its_title(server):
    async def share(client):
        return await mcp_client.ask(client, "share", source=mcp_client.TWO, title="Two of them")
    text, made = mcp_client.talk(http(server), share)
    assert text == made["url"] == f"{server.url}/z/{made['id']}"
    stored = server.get(f"/api/v1/snippets/{made['id']}").json
    assert stored["title"] == "Two of them" and stored["request"]["source"] == mcp_client.TWO and len(stored["result"]["kernels"]) == 2
    gone = server.request("DELETE", f"/api/v1/snippets/{made['id']}", headers={"X-Nkx-Request": "1", "X-Nkx-Edit-Token": made["edit_token"]})
    assert gone.status == 204


# ---- the transport


def test_a_session_is_needed_and_must_be_the_servers(server, session):
    ping = request("ping")
    assert post(server, ping, Mcp_Session_Id=session).json == {"jsonrpc": "2.0", "id": 1, "result": {}}
    assert post(server, ping).status == 400
    for forged in ("x", session[:-1] + ("a" if session[-1] != "a" else "b"), session[1:] + "a", "a" * 45):
        assert post(server, ping, Mcp_Session_Id=forged).status == 404


def test_results_belong_to_the_session_that_made_them_but_their_key_opens_them(server, session):
    other = post(server, request("initialize", protocolVersion="2025-11-25")).headers["Mcp-Session-Id"]
    keys = {post(server, call("compile", source=mcp_client.TWO), Mcp_Session_Id=s).json["result"]["structuredContent"]["result"] for s in (session, session, other)}
    assert len(keys) == 2
    for key in keys:
        assert not post(server, call("stages", result=key), Mcp_Session_Id=session).json["result"]["isError"]


def test_pages_of_other_sites_are_refused(server, session):
    for origin in ("https://evil.example", "null", f"http://evil.example:{server.port}", "http://localhost:1", f"http://127.0.0.1.evil.example:{server.port}"):
        answer = post(server, request("ping"), Mcp_Session_Id=session, Origin=origin)
        assert answer.status == 403 and answer.json["error"]["data"] == {"code": "foreign"}, origin
    assert post(server, request("ping"), Mcp_Session_Id=session, Origin=server.url).status == 200
    # a name that a page has given our address
    rebound = post(server, request("ping"), Mcp_Session_Id=session, Origin="http://evil.example", Host="evil.example")
    assert rebound.status == 403


def test_there_is_no_stream_of_the_servers_own(server):
    for method in ("GET", "DELETE"):
        answer = server.request(method, "/mcp", headers={"Accept": "text/event-stream"})
        assert answer.status == 405 and answer.headers["Allow"] == "POST"


def test_notifications_are_accepted(server, session):
    for method in ("notifications/initialized", "notifications/cancelled", "notifications/no-such"):
        answer = post(server, {"jsonrpc": "2.0", "method": method}, Mcp_Session_Id=session)
        assert (answer.status, answer.body) == (202, b"")


def test_headers_must_describe_the_message(server, session):
    assert post(server, request("ping"), Mcp_Session_Id=session, MCP_Protocol_Version="1999-01-01").status == 400
    listing = request("tools/list", _meta=META)
    right = {"MCP_Protocol_Version": MODERN, "Mcp_Method": "tools/list"}
    assert len(post(server, listing, **right).json["result"]["tools"]) == len(mcp_client.TOOLS)
    for wrong in ({}, {**right, "Mcp_Method": "tools/call"}, {**right, "MCP_Protocol_Version": "2025-11-25"}):
        answer = post(server, listing, **wrong)
        assert answer.status == 400 and answer.json["error"]["code"] == -32020
    tool = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "explain", "arguments": {"code": "no-kernel"}, "_meta": META}}
    assert post(server, tool, **{**right, "Mcp_Method": "tools/call", "Mcp_Name": "share"}).status == 400
    assert post(server, tool, **{**right, "Mcp_Method": "tools/call", "Mcp_Name": "explain"}).json["result"]["resultType"] == "complete"


@pytest.mark.parametrize(("body", "status", "code"), [
    ("{", 400, -32700),
    ("[" * 50_000, 400, -32700),
    ("[]", 400, -32600),
    ('{"jsonrpc":"2.0","id":{},"method":"ping"}', 400, -32600),
    ("\xff\x00", 400, -32700),
    ('{"jsonrpc":"2.0","id":1,"method":"resources/list"}', 200, -32601),
    ('{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"rm"}}', 200, -32602),
    ('"' + "x" * (2 << 20) + '"', 413, -32600),
])
def test_hostile_bodies_get_errors_of_json_rpc(server, session, body, status, code):
    answer = post(server, body.encode("latin-1"), Mcp_Session_Id=session)
    assert (answer.status, answer.json["error"]["code"]) == (status, code), answer.body
    assert post(server, request("ping"), Mcp_Session_Id=session).status == 200


def test_a_cancelled_request_ends_at_once(server, session):
    answers = []
    slow = call("compile", "slow", source="while True:\n    pass\n")
    thread = threading.Thread(target=lambda: answers.append(post(server, slow, Mcp_Session_Id=session)))
    thread.start()
    cancel = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "slow"}}

    def is_cancelled():
        assert post(server, cancel, Mcp_Session_Id=session).status == 202
        return answers
    server.wait_until(is_cancelled, "the answer to the request that was cancelled")
    thread.join()
    assert answers[0].status == 409 and answers[0].json["error"]["data"] == {"code": "superseded"}


def test_calls_take_the_clients_share_of_compiles():
    with Server("--workers", "1", "--client-compiles", "6") as s:
        own = post(s, request("initialize", protocolVersion="2025-11-25")).headers["Mcp-Session-Id"]
        sources = [f"import numpy as np\n\ndef f(x):\n    return x + {i}\n" for i in range(30)]
        inputs = [{"name": "x", "shape": [4, 8], "dtype": "float32"}]
        answers = [post(s, call("compile", source=x, inputs=inputs, stop_after="trace"), Mcp_Session_Id=own) for x in sources]
        refused = [a for a in answers if a.status == 429]
        assert answers[0].status == 200 and refused, [a.status for a in answers]
        assert refused[0].json["error"]["data"] == {"code": "too-many-compiles"} and int(refused[0].headers["Retry-After"]) > 0
