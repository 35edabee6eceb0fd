"""The Model Context Protocol's own Python client, over `nkx mcp` and over HTTP, for tests that are not asynchronous."""
import base64
import zlib
from urllib.parse import parse_qs, urlsplit

import anyio
from mcp import StdioServerParameters
from mcp.client.client import Client
from mcp.client.stdio import stdio_client

from support.paths import NKX, ROOT

SOFTMAX = (ROOT / "explorer/examples/03_softmax.py").read_text()
TWO = """import numpy as np
from nkigen import trace

@trace(input_specs=[((8, 16), "f32")])
def first(x):
    return x + 1

@trace(input_specs=[((8, 16), "f32")])
def second(x):
    return np.exp(x) * 2
"""


def source_of(link):
    """The source in a link to the page, as web/src/state/fragment.ts reads it."""
    code = parse_qs(urlsplit(link).fragment)["code"][0]
    return zlib.decompress(base64.urlsafe_b64decode(code + "=" * (-len(code) % 4))).decode()


def stdio(*flags):
    return stdio_client(StdioServerParameters(command=str(NKX), args=["mcp", *flags]))


def talk(transport, conversation, mode="auto"):
    """Runs the coroutine function `conversation` with a connected client; returns what it returns."""
    async def run():
        with anyio.fail_after(120):
            async with Client(transport, mode=mode) as client:
                return await conversation(client)
    return anyio.run(run)


async def ask(client, tool, **arguments):
    """Calls a tool that must succeed: its text and its object."""
    answer = await client.call_tool(tool, arguments)
    assert not answer.is_error, answer.content[0].text
    return answer.content[0].text, answer.structured_content


async def tour(client):
    """Uses every tool but share once, and checks what it says."""
    assert [t.name for t in (await client.list_tools()).tools] == TOOLS
    text, made = await ask(client, "compile", source=SOFTMAX, filename="softmax.py")
    assert made["status"] == "ok" and made["diagnostics"] == [] and made["kernels"][0]["last"] == "engine-programs"
    assert made["result"] in text and "inputs: x float32[256,256]" in text
    result = made["result"]

    _, stages = await ask(client, "stages", result=result)
    names = [s["name"] for s in stages["stages"]]
    assert len(names) == made["kernels"][0]["stages"] and {"trace", "hlo-to-linalg", "engine-programs"} <= set(names)

    _, found = await ask(client, "find", result=result, text="op=exp", stage="linalg-to-nisa")
    line = found["lines"][0]
    assert found["found"] == 1 and line["place"] == "softmax.py:15:9" and line["text"].startswith("      nisa.activation(")
    _, by_place = await ask(client, "find", result=result, text="softmax.py:15", stage="linalg-to-nisa", most=3)
    assert len(by_place["lines"]) == 3 < by_place["found"] and all(x["place"].startswith("softmax.py:15:") for x in by_place["lines"])

    text, part = await ask(client, "read", result=result, stage="linalg-to-nisa", from_line=line["line"], lines=2)
    assert part["lines"][0] == {k: line[k] for k in ("line", "text", "place")} and len(part["lines"]) == 2
    assert f"go on with from_line {line['line'] + 2}" in text
    index = names.index("linalg-to-nisa")
    assert (await ask(client, "read", result=result, stage=index, from_line=line["line"], lines=2))[1] == part

    text, d = await ask(client, "diff", result=result, **{"from": "cse", "to": "dce"})
    assert d["removed"] > 0 and d["total_hunks"] == len(d["hunks"]) and "\n-" in text

    text, why = await ask(client, "explain", result=result, stage="linalg-to-nisa", line=line["line"])
    assert text == why["why"] and "softmax.py:15:9" in text and "trace" in text and "Rule " in text
    assert "not compatible" in (await ask(client, "explain", code="shape-mismatch"))[1]["meaning"]
    assert (await ask(client, "explain", rule="tile-size"))[1]["knob"].startswith("tile_op")

    text, checked = await ask(client, "check", source=SOFTMAX)
    assert checked["kernels"][0]["check"] == {"passed": len(names), "failed": 0, "skipped": 0}
    faulty = SOFTMAX.replace("    return ", "    y = np.convolve(x, x)\n    return ")
    text, small = await ask(client, "shrink", source=faulty, seconds=60)
    assert small["code"] == "unsupported-op" and small["lines"] < faulty.count("\n") and "np.convolve(" in small["request"]["source"]
    assert text.startswith(f"unsupported-op in {small['lines']} lines: ") and small["request"]["source"] in text
    text, run = await ask(client, "simulate", source=SOFTMAX, target="trn1")
    assert run["target"] == "trn1" and run["kernels"][0]["simulation"]["status"] == "ok"
    assert run["kernels"][0]["profile"]["total_us"] > 1 and "bound by" in text and "agrees with" in text
    _, d = await ask(client, "diff", result=result, **{"from": "engine-programs", "with": run["result"]})
    assert d["changed"] + d["removed"] + d["added"] > 0  # another machine


async def two_kernels(client):
    """Any kernel of a file is read and explained, by its name and by its number."""
    _, made = await ask(client, "compile", source=TWO)
    assert [k["name"] for k in made["kernels"]] == ["first", "second"]
    result = made["result"]
    for kernel in ("second", 1):
        _, found = await ask(client, "find", result=result, kernel=kernel, stage="linalg-to-nisa", text="op=exp")
        why = (await ask(client, "explain", result=result, kernel=kernel, stage="linalg-to-nisa", line=found["lines"][0]["line"]))[1]["why"]
        assert "kernel.py:10:" in why and "exponential" in why
    assert (await ask(client, "find", result=result, kernel="first", text="op=exp"))[1]["found"] == 0


TOOLS = ["compile", "check", "simulate", "shrink", "stages", "read", "find", "diff", "explain", "share"]

# calls that are wrong, and the code of the answer; None: the tool itself says what is wrong
WRONG_CALLS = [
    ("no_such_tool", {}, -32602),
    ("compile", {}, -32602),
    ("compile", {"source": 5}, -32602),
    ("compile", {"source": "x", "sauce": 1}, -32602),
    ("compile", {"source": "x", "target": "trn9"}, -32602),
    ("compile", {"source": "x", "inputs": [{"shape": "big", "dtype": "f32"}]}, -32602),
    ("compile", {"source": "x", "by_hand": ["without nothing"]}, -32602),
    ("compile", {"source": "a" * 300_000}, -32602),
    ("read", {"result": "abc", "stage": "cse"}, -32602),
    ("read", {"result": ["0" * 64], "stage": "cse"}, -32602),
    ("read", {"result": "0" * 64, "stage": {"name": "cse"}}, -32602),
    ("read", {"result": "0" * 64, "stage": "cse", "from_line": 0}, -32602),
    ("read", {"result": "0" * 64, "stage": "cse", "lines": 10**12}, -32602),
    ("read", {"result": "0" * 64, "stage": "cse"}, None),
    ("explain", {"code": "no-such-code"}, None),
    ("explain", {"code": "no-kernel", "rule": "tile-size"}, None),
    ("explain", {}, None),
]


async def wrong_calls(client):
    """Every wrong call is answered, and the next one too."""
    from mcp.shared.exceptions import MCPError
    for tool, arguments, code in WRONG_CALLS:
        try:
            answer = await client.call_tool(tool, arguments)
            got = None if answer.is_error else "no error"
        except MCPError as e:
            got = e.code
        assert got == code, (tool, str(arguments)[:80], got)
    for stage, line in (("no-such-stage", 1), ("trace", 100000)):
        _, made = await ask(client, "compile", source=TWO)
        answer = await client.call_tool("explain", {"result": made["result"], "stage": stage, "line": line})
        assert answer.is_error and ("stage" in answer.content[0].text or "no operation" in answer.content[0].text)
    answer = await client.call_tool("compile", {"source": "def f(x):\n    return x +\n"})
    assert not answer.is_error and answer.structured_content["diagnostics"][0]["code"] == "python-syntax"
