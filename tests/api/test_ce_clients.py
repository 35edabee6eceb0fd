"""Real clients of Compiler Explorer, as their registries carry them; only the base address is ours.

ce-analyzer-mcp (PyPI) is made for C++, so its transport and its reading of answers are used, not its choice of compilers.
The Rust crate godbolt is called by a small program in clients/godbolt, which the set-up builds.
"""
import asyncio
import json
import re
import subprocess

import pytest

from support.paths import ROOT
from support.server import ADD_ONE, Server

INPUT = "--input=x=8x16:float32"


@pytest.fixture(scope="module")
def ce():
    with Server() as s:
        yield s


# ---- ce-analyzer-mcp

def mcp(server, talk):
    from ce_analyzer_mcp.client import CompilerExplorerClient
    from ce_analyzer_mcp.config import Settings

    async def run():
        settings = Settings.from_env({"CE_API_BASE_URL": f"http://127.0.0.1:{server.port}"})
        async with CompilerExplorerClient(settings) as client:
            return await talk(client)
    return asyncio.run(run())


def mcp_compile(server, source, arguments=(INPUT,), **what):
    from ce_analyzer_mcp.client import build_compile_payload
    from ce_analyzer_mcp.models import AnalyzerSelection, AssemblyFilters, SourceBundle
    from ce_analyzer_mcp.results import normalize_compile_response
    analyzers = [AnalyzerSelection(id=a) for a in what.pop("analyzers", [])]
    payload = build_compile_payload(source=SourceBundle(source=source), compiler_arguments=list(arguments), libraries=[],
                                    filters=AssemblyFilters(), analyzers=analyzers, **what)
    return normalize_compile_response(mcp(server, lambda c: c.compile("nki-trn2", payload, "x")))


def test_mcp_reads_a_compile_without_a_warning(ce):
    seen = mcp_compile(ce, ADD_ONE, produce_optimization_output=True)
    assert (seen.status, seen.exit_code, seen.timed_out, list(seen.warnings)) == ("success", 0, False, [])
    assert any("nisa." in line.text for line in seen.assembly) and seen.optimization


def test_mcp_reads_the_compile_of_an_nki_kernel(ce):
    source = (ROOT / "explorer/examples/nki/01_vector_add.py").read_text()
    seen = mcp_compile(ce, source, (), produce_optimization_output=True)
    assert (seen.status, seen.exit_code, list(seen.warnings)) == ("success", 0, [])
    adds = [line for line in seen.assembly if "nisa.tensor_tensor_arith" in line.text]
    assert len(adds) == 1 and {line.source.line for line in adds} == {1 + next(i for i, t in enumerate(source.splitlines()) if "nisa.tensor_tensor(" in t)}  # in a loop


def test_mcp_reads_diagnostics(ce):
    seen = mcp_compile(ce, "def f(x):\n    return x @ x\n")
    assert seen.status == "failed" and list(seen.warnings) == []
    first = seen.diagnostics[0]
    assert "matmul: shapes" in first.text and (first.tag.line, first.tag.column) == (2, 12)


def test_mcp_runs_our_tool(ce):
    seen = mcp_compile(ce, ADD_ONE, analyzers=["numerics"], skip_assembly=True)
    assert [(t.id, t.code, t.malformed) for t in seen.tools] == [("numerics", 0, False)] and seen.tools[0].output


def test_mcp_finds_nothing_in_the_language_it_is_made_for(ce):
    async def talk(client):
        return await client.get_compilers(), await client.get_libraries(), await client.get_tools(), await client.get_version()
    compilers, libraries, tools, version = mcp(ce, talk)
    assert (compilers, libraries, tools) == ([], [], []) and version.startswith("nkx-")


def test_mcp_shares_and_reads_a_link(ce):
    from ce_analyzer_mcp.client import build_shortlink_payload
    from ce_analyzer_mcp.models import ShortlinkCompilerConfiguration, SourceBundle
    from ce_analyzer_mcp.results import normalize_shortlink_creation, normalize_shortlink_info
    payload = build_shortlink_payload(SourceBundle(source=ADD_ONE), [ShortlinkCompilerConfiguration(compiler="nki-trn1", compiler_arguments=[INPUT])])
    made = mcp(ce, lambda c: c.create_shortlink(payload))
    link_id, url = normalize_shortlink_creation(made, f"http://127.0.0.1:{ce.port}/z/x")
    info = normalize_shortlink_info(mcp(ce, lambda c: c.get_shortlink(link_id)), link_id, url)
    assert ADD_ONE in info.model_dump_json().encode().decode("unicode_escape") and ce.get(f"/z/{link_id}").status == 200


def test_mcp_reads_the_documentation_of_an_instruction(ce):
    from ce_analyzer_mcp.errors import NotFound
    from ce_analyzer_mcp.results import normalize_opcode_documentation
    raw = mcp(ce, lambda c: c.get_opcode_documentation("nisa", "activation"))
    assert "scalar" in normalize_opcode_documentation(raw, "nisa", "activation").tooltip
    with pytest.raises(NotFound):
        mcp(ce, lambda c: c.get_opcode_documentation("amd64", "mov"))


def test_mcp_understands_our_errors(ce):
    from ce_analyzer_mcp.errors import NotFound
    with pytest.raises(NotFound):
        mcp(ce, lambda c: c.compile("gcc", {"source": "", "options": {}}, "x"))
    with pytest.raises(NotFound):
        mcp(ce, lambda c: c.get_shortlink("nothing"))


# ---- godbolt

@pytest.fixture(scope="module")
def seen(ce, tmp_path_factory):
    """What the crate decoded of every kind of answer: one that it cannot decode ends it."""
    kernel = tmp_path_factory.mktemp("godbolt") / "kernel.py"
    kernel.write_text(ADD_ONE)
    program = ROOT / "build/clients/debug/ce-godbolt"
    done = subprocess.run([program, f"http://127.0.0.1:{ce.port}/", kernel], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_godbolt_decodes_the_lists(seen):
    assert seen["languages"] == [["nki", [".py"], "python", "nki-trn2"]]
    assert seen["compilers"] == [["nki-trn1", "nki", ["trn1"], "nisa"], ["nki-trn2", "nki", ["trn2", "nki"], "nisa"], ["nki-trn3", "nki", ["trn3"], "nisa"]]
    assert (seen["other_language"], seen["libraries"], seen["tools"], seen["formats"]) == (0, 0, ["numerics", "simulation"], 0)
    assert seen["version"].startswith("nkx-") and "matmul" in seen["doc"]


def test_godbolt_decodes_a_compile_with_its_lines(seen):
    assert seen["code"] == 0 and seen["asm_size"] > 0
    assert [source for text, source in seen["asm"] if "_arith" in text] == [[None, 5]]


def test_godbolt_decodes_tags(seen):
    code, tags = seen["wrong"]
    assert code == 1 and tags[0][:3] == [2, 12, 3] and tags[0][3].startswith("error: matmul")


def test_godbolt_decodes_both_shapes_of_a_run(seen):
    assert seen["run"][:3] == [0, True, 0] and seen["run"][3] > 3 and seen["both"] == [0, 0]


def test_godbolt_shares_and_reads_a_link(ce, seen):
    assert seen["link"].startswith(f"http://127.0.0.1:{ce.port}/z/") and seen["state"] == [ADD_ONE, "nki-trn1", INPUT]
    opened = ce.get("/clientstate/" + seen["clientstate"])
    assert opened.status == 302 and re.match(r"/#target=trn1&in=.*&code=", opened.headers["Location"])


def test_godbolt_shows_our_errors(seen):
    unknown, no_format, no_link = seen["errors"]
    assert "404" in unknown and "There is no such compiler" in unknown
    assert "422" in no_format and "Unknown format tool" in no_format and "404" in no_link
