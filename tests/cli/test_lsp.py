"""`nkx lsp`, by pytest-lsp's client, byte by byte, and in Neovim."""
import asyncio
import json
import re
import shutil
import subprocess

import pytest
import pytest_lsp
from lsprotocol import types as lsp

from support import markdown, mcp_client
from support.paths import NKX, ROOT

URI = "file:///tmp/with%20space/k%C3%A4rnel.py"
# the emoji is two units of UTF-16, so that columns differ from code points
KERNEL = """import numpy as np
from nkigen import trace

@trace(input_specs=[((256, 256), "f32")])
def softmax(x):
    s = "😀"; e = np.exp(x - np.max(x, axis=-1, keepdims=True))
    return e / np.sum(e, axis=-1, keepdims=True)
"""
WRONG = KERNEL.replace("x - np.max(x, axis=-1, keepdims=True)", "np.matmul(x, np.zeros((3, 4), np.float32))")
HALF = KERNEL + "\n@trace(input_specs=[((256,"


@pytest_lsp.fixture(config=pytest_lsp.ClientServerConfig(server_command=[str(NKX), "lsp"]))
async def client(lsp_client: pytest_lsp.LanguageClient):
    """A client in a session."""
    window = lsp.WindowClientCapabilities(show_document=lsp.ShowDocumentClientCapabilities(support=True))
    started = await lsp_client.initialize_session(lsp.InitializeParams(capabilities=lsp.ClientCapabilities(window=window)))
    assert started.server_info.name == "nkx" and started.capabilities.position_encoding == "utf-16"
    yield
    await lsp_client.shutdown_session()


async def diagnostics_of(client, version):
    """The diagnostics of this version of the text, which was just sent."""
    async def come():
        while True:
            told = await client.wait_for_notification(lsp.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)
            if told.uri == URI and told.version == version:
                return list(told.diagnostics)
    return await asyncio.wait_for(come(), 60)


def opened(client, text, version=1):
    client.text_document_did_open(lsp.DidOpenTextDocumentParams(lsp.TextDocumentItem(uri=URI, language_id="python", version=version, text=text)))


def changed(client, text, version):
    client.text_document_did_change(lsp.DidChangeTextDocumentParams(
        lsp.VersionedTextDocumentIdentifier(version=version, uri=URI), [lsp.TextDocumentContentChangeWholeDocument(text=text)]))


def units(text):
    return len(text.encode("utf-16-le")) // 2


def range_of(text, part):
    """The range of a part of a text, in the protocol's positions."""
    def position(offset):
        before = text[:offset]
        return lsp.Position(before.count("\n"), units(before.rpartition("\n")[2]))
    at = text.index(part)
    return lsp.Range(position(at), position(at + len(part)))


async def hover(client, text, part):
    answer = await client.text_document_hover_async(lsp.HoverParams(lsp.TextDocumentIdentifier(URI), range_of(text, part).start))
    return answer


@pytest.mark.asyncio
async def test_a_refusal_is_a_diagnostic_at_its_range(client):
    opened(client, WRONG)
    (d,) = await diagnostics_of(client, 1)
    assert (d.code, d.severity, d.source) == ("shape-mismatch", lsp.DiagnosticSeverity.Error, "nkx")
    assert d.range == range_of(WRONG, "np.matmul(x, np.zeros((3, 4), np.float32))")
    changed(client, KERNEL, 2)
    assert await diagnostics_of(client, 2) == []


@pytest.mark.asyncio
async def test_an_expression_tells_what_it_becomes_and_costs_also_while_the_text_is_half_typed(client):
    opened(client, KERNEL)
    answer = await hover(client, KERNEL, "np.exp(")  # waits for the first compile
    text = answer.contents.value
    assert re.search(r"\*\*HLO\*\* \(trace\)\n```mlir\n.* exponential\(", text) and "**linalg**" in text
    assert re.search(r"\*\*NISA\*\* .*\n```mlir\n(?:nisa.*\n)*?nisa\.activation\(.*op=exp", text) and "**Cost** of line 6, simulated:" in text
    assert answer.range == range_of(KERNEL, "np.exp(x - np.max(x, axis=-1, keepdims=True))")
    assert " maximum(" not in text and "reduce(" in (await hover(client, KERNEL, "np.max(")).contents.value
    changed(client, "# one more line\n" + HALF, 2)
    (d,) = await diagnostics_of(client, 2)
    assert d.code == "python-syntax"
    moved = await hover(client, "# one more line\n" + HALF, "np.exp(")
    assert moved.contents.value == text and moved.range == range_of("# one more line\n" + HALF, "np.exp(x - np.max(x, axis=-1, keepdims=True))")
    assert await hover(client, "# one more line\n" + HALF, "# one more") is None


@pytest.mark.asyncio
async def test_hints_show_tiles_and_memories_after_expressions(client):
    opened(client, KERNEL)
    whole = lsp.Range(lsp.Position(0, 0), lsp.Position(100, 0))
    hints = await client.text_document_inlay_hint_async(lsp.InlayHintParams(lsp.TextDocumentIdentifier(URI), whole))
    exp = range_of(KERNEL, "np.exp(x - np.max(x, axis=-1, keepdims=True))").end
    at_exp = [h.label for h in hints if h.position == exp]
    assert any("TILE=[" in label for label in at_exp) and any("SBUF" in label or "HBM" in label for label in at_exp), hints
    tips = [h.tooltip for h in hints if h.position == exp and h.label.startswith("TILE=[")]
    assert tips and all(re.search(r"\nthis: \d+ tiles?; instead \[.*\]: \d+ tiles?$", tip) for tip in tips), tips
    first = lsp.Range(lsp.Position(0, 0), lsp.Position(1, 0))
    assert not await client.text_document_inlay_hint_async(lsp.InlayHintParams(lsp.TextDocumentIdentifier(URI), first))


def applied(text, edit):
    def offset(p):
        lines = text.split("\n")
        line = lines[p.line].encode("utf-16-le")[:2 * p.character].decode("utf-16-le")
        return sum(len(x) + 1 for x in lines[:p.line]) + len(line)
    return text[:offset(edit.range.start)] + edit.new_text + text[offset(edit.range.end):]


@pytest.mark.asyncio
async def test_an_action_writes_the_knob_that_a_decision_offers_and_the_compiler_takes_it(client):
    opened(client, KERNEL)
    await diagnostics_of(client, 1)
    at = range_of(KERNEL, "np.exp")
    actions = await client.text_document_code_action_async(lsp.CodeActionParams(lsp.TextDocumentIdentifier(URI), at, lsp.CodeActionContext([])))
    tiles = [a for a in actions if "tile_size=[64, " in a.title]
    assert tiles and re.search(r" \(\d+ tiles?; now \d+ tiles?\): lanes of the engines would be idle$", tiles[0].title), [a.title for a in actions]
    (edit,) = tiles[0].edit.changes[URI]
    text = applied(KERNEL, edit)
    assert text != KERNEL and "knob(np.exp(" in text and ", tile_size=[64, " in text and "from nkigen import knob as" in text
    changed(client, text, 2)
    assert not [d for d in await diagnostics_of(client, 2) if d.severity == lsp.DiagnosticSeverity.Error]
    hints = await client.text_document_inlay_hint_async(lsp.InlayHintParams(lsp.TextDocumentIdentifier(URI), lsp.Range(lsp.Position(0, 0), lsp.Position(100, 0))))
    assert any("TILE=[64" in h.label for h in hints)


KNOBBED = """import numpy as np
from nkigen import trace, knob

@trace(input_specs=[((256, 256), "f32"), ((256, 512), "f32")])
def up(x, w):
    e = np.exp(x)  # 😀
    {after}
    u = {around}
    return u * 2.0
"""
FORMS = [  # the statement after e, the product, what the knob becomes
    ("knob.knob(e).tile_op(tile_size=[128, 256])", "e @ w", "knob.knob(e).tile_op(tile_size=[64, 256])"),
    ("knob.knob(e, mem_space='Sbuf', tile_size=[128, 256])", "e @ w", "knob.knob(e, mem_space='Sbuf', tile_size=[64, 256])"),
    ("knob.knob(\n        e,  # the ) value\n    ).layout(mem_space='Sbuf').tile_op(\n        tile_size=[128,\n                   256],\n    )", "e @ w", "tile_size=[64, 256],\n    )"),
    ("knob.knob(e).layout(mem_space='Sbuf')", "e @ w", "knob.knob(e).layout(mem_space='Sbuf').tile_op(tile_size=[128, 64])"),
    ("knob.knob(e).layout(tile_size=[128, 256]).tile_op(tile_size=[128, 256])", "e @ w", "knob.knob(e).layout(tile_size=[64, 256]).tile_op(tile_size=[64, 256])"),
    ("knob.knob(e).layout(\n        mem_space='Sbuf'  # not ')'\n    ).tile_op()", "e @ w", ".tile_op(tile_size=[128, 64])"),
    ("knob.knob(e, mem_space='Sbuf'  # a comment, at the end\n    )", "e @ w", "knob.knob(e, mem_space='Sbuf', tile_size=[128, 64]  # a comment, at the end\n    )"),
]


@pytest.mark.asyncio
@pytest.mark.parametrize("after, around, becomes", FORMS)
async def test_an_action_changes_the_knob_that_the_value_has(client, after, around, becomes):
    wanted = re.findall(r"tile_size=\[[\d, ]+\]", becomes)[-1]
    text = KNOBBED.format(after=after, around=around)
    opened(client, text)
    assert not [d for d in await diagnostics_of(client, 1) if d.severity == lsp.DiagnosticSeverity.Error]
    at = range_of(text, "np.exp")
    actions = await client.text_document_code_action_async(lsp.CodeActionParams(lsp.TextDocumentIdentifier(URI), at, lsp.CodeActionContext([])))
    tiles = [a for a in actions if wanted in a.title]
    assert tiles and tiles[0].title.startswith("Change the knob to "), [a.title for a in actions]
    (edit,) = tiles[0].edit.changes[URI]
    changed_text = applied(text, edit)
    assert becomes in changed_text and changed_text.count("knob.knob(") == text.count("knob.knob(") and changed_text.count("[128, 256") == 0
    changed(client, changed_text, 2)
    assert not [d for d in await diagnostics_of(client, 2) if d.severity == lsp.DiagnosticSeverity.Error], changed_text
    hints = await client.text_document_inlay_hint_async(lsp.InlayHintParams(lsp.TextDocumentIdentifier(URI), lsp.Range(lsp.Position(0, 0), lsp.Position(100, 0))))
    assert any(f"TILE={wanted[10:].replace(' ', '')}" in h.label for h in hints), [h.label for h in hints]


@pytest.mark.asyncio
async def test_an_action_changes_the_knob_around_an_expression(client):
    text = KNOBBED.format(after="pass", around="knob.knob(np.tanh(e), mem_space='Sbuf', tile_size=[128, 256]) @ w")
    opened(client, text)
    await diagnostics_of(client, 1)
    actions = await client.text_document_code_action_async(lsp.CodeActionParams(lsp.TextDocumentIdentifier(URI), range_of(text, "np.tanh"), lsp.CodeActionContext([])))
    tiles = [a for a in actions if "tile_size=[64, 256]" in a.title]
    assert tiles and tiles[0].title.startswith("Change the knob to "), [a.title for a in actions]
    (edit,) = tiles[0].edit.changes[URI]
    assert "knob.knob(np.tanh(e), mem_space='Sbuf', tile_size=[64, 256]) @ w" in applied(text, edit)


@pytest.mark.asyncio
async def test_the_explorer_opens_with_the_text_as_it_is(client):
    opened(client, HALF)
    at = range_of(HALF, "np.exp")
    actions = await client.text_document_code_action_async(lsp.CodeActionParams(lsp.TextDocumentIdentifier(URI), at, lsp.CodeActionContext([])))
    (action,) = [a for a in actions if isinstance(a, lsp.Command)]
    link = await client.workspace_execute_command_async(lsp.ExecuteCommandParams(action.command, action.arguments))
    assert link.startswith("http://localhost:10240/#sel=6:18-6:24&target=trn2&file=k%C3%A4rnel.py&code=") and mcp_client.source_of(link) == HALF
    assert [(p.uri, p.external) for p in client.shown_documents] == [(link, True)]


@pytest.mark.asyncio
async def test_the_newest_text_wins_over_a_compile_that_never_ends(client):
    opened(client, "import nki\nwhile True:\n    pass\n")
    changed(client, WRONG, 2)
    assert [d.code for d in await diagnostics_of(client, 2)] == ["shape-mismatch"]


@pytest.mark.asyncio
async def test_a_module_of_kernels_may_be_any_one_that_an_import_names(client):
    text = "import os, numpy as np, nki\nraise ValueError(1)\n"
    opened(client, text)
    assert [d.code for d in await diagnostics_of(client, 1)] == ["python-exception"]


@pytest.mark.asyncio
async def test_a_text_without_kernels_is_not_executed(client):
    client.text_document_did_open(lsp.DidOpenTextDocumentParams(lsp.TextDocumentItem(uri=URI, language_id="python", version=1, text="import numpy\nraise SystemExit\n")))
    assert await hover(client, "raise", "raise") is None and URI not in client.diagnostics


# ---- byte by byte


def framed(*messages):
    texts = [m if isinstance(m, bytes) else json.dumps(m).encode() for m in messages]
    return b"".join(b"Content-Length: %d\r\n\r\n%s" % (len(t), t) for t in texts)


def request(method, n=1, **params):
    return {"jsonrpc": "2.0", "id": n, "method": method, "params": params}


def note(method, **params):
    return {"jsonrpc": "2.0", "method": method, "params": params}


def exchange(data):
    """Sends bytes and closes; the exit status and the messages that came."""
    done = subprocess.run([NKX, "lsp"], input=data, capture_output=True, timeout=60)
    messages, out = [], done.stdout
    while out:
        head, _, out = out.partition(b"\r\n\r\n")
        n = int(head.split(b":")[1])
        messages.append(json.loads(out[:n]))
        out = out[n:]
    return done.returncode, messages


BEGIN = [request("initialize", 0, capabilities={}), note("initialized")]
ENDLESS = note("textDocument/didOpen", textDocument={"uri": URI, "languageId": "python", "version": 1, "text": "import nki\nwhile True:\n    pass\n"})


def test_shutdown_and_exit_end_the_server_also_while_a_compile_runs_and_a_question_waits():
    hovers = request("textDocument/hover", 5, textDocument={"uri": URI}, position={"line": 0, "character": 0})
    status, (_, hover, down) = exchange(framed(*BEGIN, ENDLESS, hovers, request("shutdown", 6), note("exit")))
    assert status == 0 and hover["error"]["code"] == -32800 and down == {"jsonrpc": "2.0", "id": 6, "result": None}


def test_a_cancelled_question_is_answered_at_once():
    hovers = request("textDocument/hover", 5, textDocument={"uri": URI}, position={"line": 0, "character": 0})
    status, (_, hover, other, down) = exchange(framed(*BEGIN, ENDLESS, hovers, note("$/cancelRequest", id=5), request("no/such", 7), request("shutdown", 6), note("exit")))
    assert status == 0 and (hover["id"], hover["error"]["code"]) == (5, -32800) and other["error"]["code"] == -32601 and down["id"] == 6


def test_exit_without_shutdown_and_a_client_that_goes_away_are_failures():
    assert exchange(framed(*BEGIN, note("exit")))[0] == 1
    assert exchange(framed(*BEGIN, ENDLESS))[0] == 1
    assert exchange(b"")[0] == 1


@pytest.mark.parametrize(("data", "codes"), [
    (framed(b"{", request("x/y", 2)), [-32700, -32002]),
    (framed(b"[]", b"5", b"[" * 5000), [-32600, -32600, -32700]),
    (framed(b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":[]}'), [-32602]),
    (framed(*BEGIN, request("textDocument/hover", 2), request("textDocument/hover", 3, textDocument=5, position="x")), [None, None, None]),
    (framed(*BEGIN, note("textDocument/didOpen", textDocument=[]), note("textDocument/didChange"), note("textDocument/didClose"), request("workspace/executeCommand", 2, command="rm")), [None, -32602]),
    (b"Content-Length: -5\r\n\r\n", []),
    (b"Content-Length: 99999999999999999999\r\n\r\n", []),
    (b"x" * 100_000, []),
    (b"\x00\xff\r\n\r\n", []),
])
def test_hostile_messages_get_errors_and_never_end_in_a_crash(data, codes):
    status, messages = exchange(data)
    assert status == 1 and [m.get("error", {}).get("code") for m in messages] == codes, messages


def test_positions_beyond_the_text_are_its_end():
    doc = note("textDocument/didOpen", textDocument={"uri": URI, "languageId": "python", "version": 1, "text": "x = 1\n"})
    far = [{"line": n, "character": n} for n in (-1, 10**6, 2**40)]
    asks = [request("textDocument/hover", 10 + i, textDocument={"uri": URI}, position=p) for i, p in enumerate(far)]
    actions = request("textDocument/codeAction", 20, textDocument={"uri": URI}, range={"start": far[2], "end": far[0]}, context={"diagnostics": []})
    status, messages = exchange(framed(*BEGIN, doc, *asks, actions, request("shutdown", 30), note("exit")))
    assert status == 0 and [m["id"] for m in messages if "id" in m] == [0, 10, 11, 12, 20, 30]


# ---- Neovim


@pytest.mark.skipif(not shutil.which("nvim"), reason="neovim is not installed")
def test_neovim_shows_the_refusal_with_the_configuration_of_the_documentation(tmp_path):
    page = (ROOT / "docs/editors.md").read_text()
    (config,) = [b.text for b in markdown.blocks(page) if b.language == "lua"]
    (tmp_path / "init.lua").write_text(config.replace("/path/to/build/bin/nkx", str(NKX)))
    (tmp_path / "kernel.py").write_text(WRONG)
    (tmp_path / "ask.lua").write_text("""
      local function wait(what, f) assert(vim.wait(60000, f, 50), what) end
      wait("a diagnostic", function() return #vim.diagnostic.get(0) > 0 end)
      local d = vim.diagnostic.get(0)[1]
      io.stdout:write(vim.json.encode({d.code, d.lnum, d.col, d.end_col}) .. "\\n")
      vim.api.nvim_buf_set_lines(0, 5, 6, false, {"    e = np.exp(x)"})
      wait("no diagnostic", function() return #vim.diagnostic.get(0) == 0 end)
      local at = {textDocument = vim.lsp.util.make_text_document_params(), position = {line = 5, character = 8}}
      local answers = vim.lsp.buf_request_sync(0, "textDocument/hover", at, 30000)
      for _, a in pairs(answers) do io.stdout:write(vim.json.encode(a.result.contents.value) .. "\\n") end
    """)
    done = subprocess.run(["nvim", "--headless", "--clean", "-u", tmp_path / "init.lua", tmp_path / "kernel.py", "-c", f"luafile {tmp_path}/ask.lua", "-c", "qa!"],
                          capture_output=True, text=True, timeout=120)
    first, second = done.stdout.splitlines()[:2]
    expected = range_of(WRONG, "np.matmul(x, np.zeros((3, 4), np.float32))")
    code, line, col, end = json.loads(first)
    assert (code, line) == ("shape-mismatch", 5) and end - col == expected.end.character - expected.start.character
    assert "**HLO**" in json.loads(second) and "exponential(" in second
