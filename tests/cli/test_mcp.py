"""`nkx mcp`: the Model Context Protocol over standard input and output."""
import json
import subprocess

import pytest

from support import mcp_client
from support.paths import NKX


def exchange(*lines, flags=()):
    """Sends lines as they are, closes, and returns the answers."""
    text = "".join((x if isinstance(x, str) else json.dumps(x)) + "\n" for x in lines)
    done = subprocess.run([NKX, "mcp", *flags], input=text, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def request(method, n=1, **params):
    return {"jsonrpc": "2.0", "id": n, "method": method, "params": params}


def call(tool, n=1, **arguments):
    return request("tools/call", n, name=tool, arguments=arguments)


@pytest.mark.parametrize("mode", ["legacy", pytest.param("auto", marks=pytest.mark.nightly)])
def test_the_protocols_client_uses_every_tool(mode):
    mcp_client.talk(mcp_client.stdio(), mcp_client.tour, mode)


def test_kernels_of_one_file_are_told_apart_and_wrong_calls_are_answered():
    async def both(client):
        await mcp_client.two_kernels(client)
        await mcp_client.wrong_calls(client)
    mcp_client.talk(mcp_client.stdio(), both)


def test_a_link_opens_the_kernel_on_the_named_server():
    async def share(client):
        return await mcp_client.ask(client, "share", source=mcp_client.TWO, target="trn1")
    text, made = mcp_client.talk(mcp_client.stdio("--server", "https://nkx.example"), share)
    assert text == made["url"] and text.startswith("https://nkx.example/#target=trn1&")
    assert mcp_client.source_of(text) == mcp_client.TWO


@pytest.mark.parametrize(("line", "code"), [
    ("{", -32700),
    ("nonsense", -32700),
    ("[" * 100_000, -32700),
    ("[]", -32600),
    ("5", -32600),
    ('{"jsonrpc":"1.0","id":1,"method":"ping"}', -32600),
    ('{"jsonrpc":"2.0","id":{},"method":"ping"}', -32600),
    ('{"jsonrpc":"2.0","id":1,"method":7}', -32600),
    ('{"jsonrpc":"2.0","id":1,"method":"ping","params":[1]}', -32602),
    ('{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}', -32700),
    ('{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":[]}}', -32602),
    ('{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"compile","arguments":"x"}}', -32602),
    ('{"jsonrpc":"2.0","id":1,"method":"resources/list"}', -32601),
    ('{"jsonrpc":"2.0","id":1,"method":"ping","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2031-01-01"}}}', -32022),
    ('{"jsonrpc":"2.0","id":1,"method":"ping","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":5}}}', -32022),
    ('"' + "x" * (5 << 20) + '"', -32600),
])
def test_hostile_lines_get_an_error_and_the_next_line_its_answer(line, code):
    first, second = exchange(line, request("ping", 9))
    assert first["error"]["code"] == code, first
    assert second == {"jsonrpc": "2.0", "id": 9, "result": {}}


def test_bytes_that_are_no_text_get_an_error():
    done = subprocess.run([NKX, "mcp"], input=b"\xff\xfe\x00{}\n" + json.dumps(request("ping")).encode() + b"\n", capture_output=True, timeout=60)
    first, second = map(json.loads, done.stdout.splitlines())
    assert first["error"]["code"] == -32700 and second["result"] == {}


def test_notifications_and_responses_get_no_answer():
    note = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    unknown = {"jsonrpc": "2.0", "method": "notifications/no-such"}
    response = {"jsonrpc": "2.0", "id": 4, "result": {}}
    assert exchange(note, unknown, response, {"jsonrpc": "2.0", "method": "x", "params": 5}) == []


def test_a_rule_without_a_choice_says_why_and_others_do_not():
    forced, chooses = exchange(call("explain", 1, rule="psum-sum"), call("explain", 2, rule="tile-size"))
    assert forced["result"]["structuredContent"]["forced"] == "The Tensor engine writes to PSUM only."
    assert "No other choice: The Tensor engine writes to PSUM only." in forced["result"]["content"][0]["text"]
    assert "forced" not in chooses["result"]["structuredContent"]


def test_versions_are_negotiated():
    def version(asked):
        return exchange(request("initialize", protocolVersion=asked, capabilities={}, clientInfo={"name": "t", "version": "0"}))[0]["result"]["protocolVersion"]
    assert [version(v) for v in ("2025-06-18", "2024-11-05", "2025-03-26", "1999-01-01")] == ["2025-06-18", "2024-11-05", "2025-11-25", "2025-11-25"]


def test_what_a_kernel_prints_and_a_kernel_that_ends_its_process_leave_the_protocol_alone():
    loud = "import sys\nprint('{\"jsonrpc\":\"2.0\"}')\nsys.stdout.flush()\n" + mcp_client.TWO
    dying = "import os, signal\nos.kill(os.getpid(), signal.SIGKILL)\n"
    first, second, third = exchange(call("compile", 1, source=loud), call("compile", 2, source=dying), call("compile", 3, source=mcp_client.TWO))
    assert (first["id"], second["id"], third["id"]) == (1, 2, 3)
    assert not first["result"]["isError"] and not third["result"]["isError"]
    assert second["result"]["isError"] or second["result"]["structuredContent"]["status"] == "error"


def test_a_job_that_is_cancelled_gets_no_answer_and_the_next_one_runs():
    endless = "while True:\n    pass\n"
    cancel = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "endless"}}
    waiting = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 2}}
    answers = exchange(call("compile", "endless", source=endless), call("compile", 2, source=endless), call("compile", 3, source=mcp_client.TWO), waiting, cancel)
    assert [a["id"] for a in answers] == [3] and answers[0]["result"]["structuredContent"]["status"] == "ok"


def test_a_job_that_takes_too_long_is_stopped():
    (answer,) = exchange(call("compile", source="while True:\n    pass\n"), flags=("--seconds", "1"))
    assert answer["result"]["isError"] and "longer than its limit" in answer["result"]["content"][0]["text"]
