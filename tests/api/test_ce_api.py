"""Compiler Explorer's API, rule by rule: what its clients rely on."""
import base64
import email.utils
import json
import re
import socket
import zlib

import pytest

from support.paths import ROOT
from support.server import ADD_ONE, Server

JSON = {"Accept": "application/json", "Content-Type": "application/json"}
TWO_KERNELS = """import numpy as np
from nkigen import trace

@trace(input_specs=[((8, 16), "f32")])
def once(x):
    return x * 1.5

@trace(input_specs=[((8, 16), "f32")])
def twice(x):
    return x * 2
"""
AXIOS = "application/json, text/plain, */*"
INPUT = "--input=x=8x16:float32"


@pytest.fixture(scope="module")
def ce():
    """Of its own: misses are counted per address, and a job may run for long here."""
    with Server("--job-timeout-ms", "60000") as s:
        yield s


def post(server, body, path="/api/compiler/nki/compile", **headers):
    body = body if isinstance(body, (str, bytes)) else json.dumps(body)
    return server.request("POST", path, body, {**JSON, **{k.replace("_", "-"): v for k, v in headers.items()}})


def compile(server, source=ADD_ONE, arguments=INPUT, compiler="nki", backend=None, filters=None, **fields):
    answer = post(server, {"source": source, "options": {"userArguments": arguments, "compilerOptions": backend or {},
                                                         "filters": filters or {}}, **fields}, f"/api/compiler/{compiler}/compile")
    assert answer.status == 200, answer.body
    return answer.json


def get(server, path):
    answer = server.get(path, Accept="application/json")
    assert answer.status == 200, answer.body
    return answer.json


def texts(lines):
    return "\n".join(line["text"] for line in lines)


def nested_ints(value):
    """Every number of an answer that is no integer."""
    if isinstance(value, dict):
        return [x for v in value.values() for x in nested_ints(v)]
    if isinstance(value, list):
        return [x for v in value for x in nested_ints(v)]
    return [value] if isinstance(value, float) else []


# ---- 1: the form of answers

@pytest.mark.parametrize("path", ["/api/languages?fields=all", "/api/compilers?fields=all", "/api/libraries/nki", "/api/tools/nki",
                                  "/api/formats", "/source/builtin/list", "/api/siteTemplates", "/api/popularArguments/nki"])
def test_lists_are_one_line_of_json_without_a_newline_at_the_end(ce, path):
    answer = ce.get(path, Accept="application/json")
    assert answer.headers["Content-Type"] == "application/json" and b"\n" not in answer.body
    assert not nested_ints(answer.json)


def test_a_compile_is_one_line_with_integers_as_integers(ce):
    answer = post(ce, {"source": ADD_ONE, "options": {"userArguments": INPUT, "filters": {"execute": True},
                                                      "compilerOptions": {"produceOptPipeline": {}, "produceOptInfo": True}}})
    assert b"\n" not in answer.body and not nested_ints(answer.json)
    assert type(answer.json["execTime"]) is int and type(answer.json["asmSize"]) is int


# ---- 2: negotiation

@pytest.mark.parametrize("accept, is_json", [
    ("application/json", True), ("*/*", False), (None, False), ("text/plain", False), (AXIOS, True), ("application/*", True),
    ("text/plain, application/json", False), ("text/plain;q=0.5, application/json", True),
    ("application/json;q=0.2, text/plain", False), ("application/json;q=0", False), ("text/html, */*", False)])
def test_json_is_sent_to_a_client_that_names_it_first_or_prefers_it(ce, accept, is_json):
    for method, path, body in [("POST", "/api/compiler/nki/compile", json.dumps({"source": "", "options": {}})),
                               ("GET", "/api/compilers", None)]:
        headers = {"Content-Type": "application/json", **({"Accept": accept} if accept else {})}
        answer = ce.request(method, path, body, headers)
        assert answer.status == 200
        assert answer.headers["Content-Type"].startswith("application/json" if is_json else "text/plain")


# ---- 3: lines and their source

def test_every_line_has_a_source_that_is_null_or_a_place_in_the_users_text(ce):
    asm = compile(ce)["asm"]
    assert all("source" in line and "\n" not in line["text"] for line in asm)
    places = [line["source"] for line in asm if line["source"]]
    assert places and all(p["file"] is None and type(p["line"]) is int and type(p["column"]) is int for p in places)
    added = [line for line in asm if "tensor_scalar_arith" in line["text"] or "tensor_tensor_arith" in line["text"]]
    assert added and all(line["source"] == {"file": None, "line": 5, "column": 12} for line in added)


def test_labels_lead_to_the_lines_that_define_them(ce):
    result = compile(ce)
    assert list(result["labelDefinitions"]) == ["add_one"]
    assert "func.func @add_one(" in result["asm"][result["labelDefinitions"]["add_one"] - 1]["text"]


# ---- 4: slashes and aliases

@pytest.mark.parametrize("path", ["/api/compilers/", "//api/compilers", "/api//compilers//", "/api/compilers//nki/"])
def test_slashes_too_many_do_not_matter(ce, path):
    assert [c["id"] for c in get(ce, path)] == ["nki-trn1", "nki-trn2", "nki-trn3"]


def test_slashes_too_many_do_not_matter_on_compile_but_our_own_api_is_strict(ce):
    assert post(ce, {"source": ADD_ONE, "options": INPUT}, "//api/compiler/nki-trn2//compile/").json["code"] == 0
    assert ce.get("//api/v1/targets").status == ce.get("/api/v1/targets/").status == 404


def test_the_old_path_of_the_shortener_works(ce):
    assert post(ce, {"sessions": []}, "/shortener").json["url"].startswith(f"http://127.0.0.1:{ce.port}/z/")


# ---- 5: what clients write

@pytest.mark.parametrize("body", [
    {"source": ADD_ONE, "options": INPUT, "filters": {"execute": "true"}},
    {"source": ADD_ONE, "options": {"userArguments": f'"{INPUT}"', "filters": {"execute": "true"}, "libraries": {}, "tools": {}}},
    {"source": ADD_ONE, "options": {"userArguments": [INPUT], "filters": {"execute": True, "comments": True}, "libraries": [{"id": "a", "version": "1"}]}},
    {"source": ADD_ONE, "lang": "c++", "unknown": [1], "files": [], "options": {
        "userArguments": "--input x=8x16", "filters": {"execute": 1}, "compilerOptions": [], "executeParameters": None}},
])
def test_the_forms_that_clients_write_mean_the_same(ce, body):
    result = post(ce, body).json
    assert result["code"] == 0 and result["execResult"]["code"] == 0 and result["stderr"] == []


def test_the_compile_options_that_older_clients_send_are_not_requests(ce):
    result = compile(ce, backend={"produceGccDump": {}, "produceLLVMOptPipeline": False, "produceCfg": False, "produceIr": None})
    assert result["code"] == 0 and not {"optPipelineOutput", "irOutput", "optOutput", "execResult", "didExecute"} & set(result)


def test_stages_kernels_and_targets_are_chosen_by_arguments(ce):
    source = TWO_KERNELS
    result = compile(ce, source, "--kernel=twice --stop 0 --target=trn1")
    assert list(result["labelDefinitions"]) == ["twice"] and "linalg." in texts(result["asm"])
    assert result["compilationOptions"] == ["--kernel=twice", "--stop", "0", "--target=trn1"]
    assert "linalg." in texts(compile(ce, source, "--stop-after=cse:2")["asm"])
    assert "nisa." in texts(compile(ce, source, "--kernel=twice")["asm"])
    both = compile(ce, source, "")
    assert list(both["labelDefinitions"]) == ["once", "twice"] and "// kernel twice" in texts(both["asm"])
    for target in ("trn1", "trn2", "trn3"):
        assert f"#nisa.target<{target}>" in texts(compile(ce, compiler=f"nki-{target}")["asm"])


@pytest.mark.parametrize("number, name", [(0, "cse:2"), (1, "remove-redundant-zero-fill"), (3, "infer-layout"), (8, "canonicalize-loop-step"),
                                          (9, "one-shot-bufferize"), (24, "linalg-to-nisa")])
def test_a_number_counts_the_passes_as_old_links_do(ce, number, name):
    by_number, by_name = (texts(compile(ce, arguments=f"{INPUT} --stop={stop}")["asm"]) for stop in (number, name))
    assert by_number == by_name and "func.func" in by_name


def test_raw_text_has_no_places(ce):
    tied, raw = (compile(ce, arguments=arguments)["asm"] for arguments in (INPUT, f"{INPUT} --raw"))
    assert texts(raw) == texts(tied) and any(line["source"] for line in tied)
    assert not any(line["source"] for line in raw)


@pytest.mark.parametrize("arguments, complaint", [
    ("-O2", "unknown argument: '-O2'"), ("--stop=99", "--stop=99: passes are numbered from 1 to 26"), ("--stop=foo", 'no stage is called "foo"'),
    ("--input=x", "expected NAME=SHAPE:DTYPE"), ("--input=x=4x-1", "expected a shape"), ("--kernel", "--kernel: needs a value"),
    ("--target=trn9", "expected trn1, trn2 or trn3"), ("--hw", "no Neuron device"),
    ("--check " * 1001, "there are more than 1000 arguments"), (["--check"] * 1001, "there are more than 1000 arguments")])
def test_arguments_that_make_no_sense_fail_the_compile_with_a_reason(ce, arguments, complaint):
    result = compile(ce, arguments=arguments)
    assert result["code"] == 1 and complaint in texts(result["stderr"])
    assert result["asm"] == [{"text": "<Compilation failed>", "source": None, "labels": []}]


def test_foreign_texts_that_are_cut_stay_readable(ce):
    assert "unknown argument: '--é" in texts(compile(ce, arguments="--é" + "é" * 200)["stderr"])
    assert "unknown argument: '-é" in texts(compile(ce, arguments="-é" + "é" * 200)["stderr"])
    for name in ("%C3%A9" * 60, "a" + "%C3%A9" * 60, "%ff"):
        assert post(ce, {}, f"/api/compiler/nki/build/{name}").json["message"].startswith("Unknown build system")
        assert post(ce, {"source": "x"}, f"/api/format/{name}").json["exit"] == 2


# ---- 6, 7: lists

def test_every_language_names_its_default_compiler_and_every_compiler_its_aliases(ce):
    compilers = get(ce, "/api/compilers?fields=all")
    for language in get(ce, "/api/languages?fields=all"):
        assert language["defaultCompiler"] in [c["id"] for c in compilers] and language["extensions"] == [".py"]
        assert language["example"] and isinstance(language["monaco"], str)
    assert all(isinstance(c["alias"], list) and re.fullmatch("[a-z0-9_-]+", c["id"]) for c in compilers)
    aliases = [a for c in compilers for a in c["alias"]]
    assert all(compile(ce, compiler=a)["code"] == 0 for a in aliases) and "nki" in aliases
    assert not any(isinstance(v, str) and v.startswith("/") for c in compilers for v in c.values())


def test_fields_pick_members_and_unknown_ones_are_dropped(ce):
    assert [set(c) for c in get(ce, "/api/compilers")] == [{"id", "name", "lang", "compilerType", "semver", "instructionSet"}] * 3
    assert [set(x) for x in get(ce, "/api/languages")] == [{"id", "name", "extensions", "monaco"}]
    assert [set(c) for c in get(ce, "/api/compilers/nki?fields=id,alias,nothing")] == [{"id", "alias"}] * 3


@pytest.mark.parametrize("path", ["/api/compilers/c%2B%2B", "/api/compilers/c++", "/api/libraries/c%2B%2B", "/api/tools/c++", "/api/libraries/nki"])
def test_another_language_has_empty_lists(ce, path):
    assert get(ce, path) == []


def test_lists_have_a_text_form(ce):
    assert ce.get("/api/languages").body.decode() == "Id  | Name\nnki | NumPy/NKI kernel"
    head, *rows = ce.get("/api/compilers/nki").body.decode().split("\n")
    assert head == "Compiler Name | Name" and [r[:16] for r in rows] == ["nki-trn1      | ", "nki-trn2      | ", "nki-trn3      | "]


def test_the_small_lists_have_the_members_that_clients_read(ce):
    assert re.fullmatch(rb"nkx-\w+", ce.get("/api/version").body) and len(ce.get("/api/releaseBuild").body) < 512
    assert [t["id"] for t in get(ce, "/api/tools/nki")] == ["numerics", "simulation"]
    assert {"--target=", "--stop=", "--check", "--simulate"} <= set(get(ce, "/api/popularArguments/nki-trn1"))
    assert post(ce, {"usedOptions": "", "presplit": False}, "/api/optimizationArguments/nki").status == 200
    listed = get(ce, "/source/builtin/list")
    assert len(listed) == len(list((ROOT / "explorer/examples").rglob("*.py")))
    assert "@nki.jit" in get(ce, "/source/builtin/load/nki/nki_softmax")["file"]
    assert "import" in get(ce, f"/source/builtin/load/nki/{listed[0]['file']}")["file"]
    assert get(ce, "/source/builtin/load/nki/nothing") == {"file": "There is no such example."}
    assert ce.get("/source/other/list").status == 404


def test_there_are_no_formatters_and_asking_for_one_says_so(ce):
    assert get(ce, "/api/formats") == []
    unknown = post(ce, {"source": "x", "base": "__DefaultStyle"}, "/api/format/black")
    assert (unknown.status, unknown.json) == (422, {"exit": 2, "answer": "Unknown format tool 'black'"})
    assert post(ce, {}, "/api/format/black").json == {"exit": 0, "answer": ""}
    assert post(ce, "x", "/api/format/black", Content_Type="text/plain").status == 400


def test_instructions_are_documented(ce):
    found = get(ce, "/api/asm/nisa/ACTIVATION")
    assert "scalar" in found["tooltip"] and found["html"].startswith("<p>") and found["url"].startswith("https://")
    assert ce.get("/api/asm/nisa/nisa.matmul").body.startswith(b"nisa.matmul runs on tensor")
    assert ce.get("/api/asm/nisa/mov").json == {"error": "Unknown opcode 'MOV'"}
    assert ce.get("/api/asm/amd64/mov").json == {"error": "No documentation for 'amd64'"}


# ---- 8: errors

@pytest.mark.parametrize("method, path, body, status", [
    ("POST", "/api/compilers", "{}", 405), ("GET", "/api/compiler/nki/compile", None, 405), ("DELETE", "/api/shortener", None, 405),
    ("POST", "/api/compiler/gcc/compile", "{}", 404), ("GET", "/api/shortlinkinfo/nothing", None, 404), ("POST", "/api/compiler/nki/run", "{}", 404),
    ("POST", "/api/compiler/nki/compile", "", 400), ("POST", "/api/compiler/nki/compile", "{", 400), ("POST", "/api/compiler/nki/compile", "[]", 400),
    ("POST", "/api/compiler/nki/compile", "[" * 5000, 400), ("POST", "/api/shortener", "{}", 400), ("POST", "/api/shortener", "x", 400),
    ("POST", "/api/compiler/nki/compile", '{"source":"' + "x" * (2 << 20) + '"}', 413),
    ("POST", "/api/compiler/nki/compile", json.dumps({"source": "#" * 300000, "options": {}}), 413)])
def test_errors_are_json_with_a_string_for_a_client_that_accepts_json(ce, method, path, body, status):
    answer = ce.request(method, path, body, JSON)
    assert answer.status == status and answer.headers["Content-Type"] == "application/json"
    assert isinstance(answer.json["error"], str) and answer.json["error"] == answer.json["message"]
    assert answer.headers["Cache-Control"] == "no-store" and (status != 405 or answer.headers["Allow"])


def test_too_many_unknown_links_get_429_with_a_time_to_wait():
    s = Server()
    answers = [s.get(f"/api/shortlinkinfo/{i:022d}", Accept="application/json") for i in range(40)]
    assert [a.status for a in answers[:30]] == [404] * 30 and answers[-1].status == 429
    assert isinstance(answers[-1].json["error"], str) and int(answers[-1].headers["Retry-After"]) > 0
    assert s.stop() == 0


@pytest.mark.parametrize("path, body, status, message", [
    ("compile", {"source": "x"}, 400, "Missing options property"), ("compile", {"options": {}}, 400, "Missing source property"),
    ("cmake", {}, 404, "Build system 'cmake' is not available on this compiler"), ("build/cmake", {}, 404, "Build system 'cmake' is not available on this compiler"),
    ("build/make", {}, 404, "Unknown build system 'make'")])
def test_some_errors_have_the_shape_that_clients_know(ce, path, body, status, message):
    answer = post(ce, body, f"/api/compiler/nki/{path}")
    assert (answer.status, answer.json) == (status, {"error": True, "message": message})


def test_without_json_an_unknown_thing_is_reported_in_plain_text(ce):
    unknown, wrong = ce.request("POST", "/api/compiler/gcc/compile", "x"), ce.request("POST", "/api/languages", "x")
    assert (unknown.status, unknown.body) == (404, b"Not Found") and (wrong.status, wrong.body) == (405, b"Method Not Allowed")


# ---- 9: execution

def test_an_executor_request_is_answered_with_the_run(ce):
    result = compile(ce, backend={"executorRequest": True})
    assert (result["code"], result["didExecute"], result["stderr"]) == (0, True, [])
    out = texts(result["stdout"])
    assert "input x: float32 [8,16]" in out and re.search(r"hlo-to-linalg: pass, max abs error", out)
    assert result["buildResult"]["code"] == 0 and result["buildResult"]["inputFilename"] == "example.py" and "asm" not in result


def test_an_executor_request_for_a_kernel_that_does_not_compile_did_not_execute(ce):
    result = compile(ce, "def f(x:\n", backend={"executorRequest": True})
    assert result["code"] == -1 and result["didExecute"] is False and result["stdout"] == []
    assert result["buildResult"]["code"] == 1 and result["buildResult"]["stderr"]


def test_the_execute_filter_adds_the_run_to_the_compile(ce):
    result = compile(ce, filters={"execute": True})
    assert result["asm"] and result["execResult"]["didExecute"] and result["execResult"]["buildResult"]["code"] == 0
    assert "execResult" not in compile(ce, "def f(x:\n", filters={"execute": True})


def test_nothing_of_a_run_is_there_unless_asked_for(ce):
    assert not {"execResult", "didExecute", "buildResult"} & set(compile(ce))


def test_the_tool_compares_each_stage_with_numpy(ce):
    result = post(ce, {"source": ADD_ONE, "options": {"userArguments": INPUT, "tools": [{"id": "numerics", "args": ""}, {"id": "other"}]}}).json
    assert [(t["id"], t["code"]) for t in result["tools"]] == [("numerics", 0)] and "pass" in texts(result["tools"][0]["stdout"])
    assert compile(ce)["tools"] == []


def test_check_and_simulate_as_arguments_are_output_below_the_listing(ce):
    plain, checked, run = (compile(ce, arguments=f"{INPUT} {a}") for a in ("", "--check", "--simulate"))
    assert plain["stdout"] == [] and plain["asm"] == checked["asm"] == run["asm"]
    assert "each stage against NumPy" in texts(checked["stdout"]) and "engine-programs: pass" in texts(checked["stdout"])
    out = texts(run["stdout"])
    assert "on the simulated trn2" in out and " us, " in out and "DMA engines" in out and " pass" in out and run["code"] == 0
    assert re.search(r"^ +[\d.]+ us  example.py:\d+: ", out, re.M)


def test_a_run_has_the_simulation_if_it_is_an_argument(ce):
    result = compile(ce, arguments=f"{INPUT} --simulate", backend={"executorRequest": True})
    out = texts(result["stdout"])
    assert result["didExecute"] and "each stage against NumPy" in out and "on the simulated trn2" in out and result["buildResult"]["stdout"] == []
    both = compile(ce, arguments=f"{INPUT} --simulate", filters={"execute": True})
    assert "on the simulated" in texts(both["execResult"]["stdout"]) and both["stdout"] == []


def test_the_simulation_is_a_tool(ce):
    result = post(ce, {"source": ADD_ONE, "options": {"userArguments": INPUT, "tools": [{"id": "simulation"}]}}, "/api/compiler/nki-trn1/compile").json
    (tool,) = result["tools"]
    assert (tool["id"], tool["code"]) == ("simulation", 0) and "on the simulated trn1" in texts(tool["stdout"]) and result["stdout"] == []


# ---- NKI kernels

NKI = """import nki
import nki.isa as nisa
import nki.language as nl

@nki.jit
def scaled(a, b, factor=2.0):
    out = nl.ndarray(a.shape, a.dtype, buffer=nl.shared_hbm)
    t = nl.load(a)
    nisa.tensor_scalar(dst=t, data=t, op0=nl.multiply, operand0=factor)
    nisa.tensor_tensor(dst=t, data1=t, data2=nl.load(b), op=nl.add)
    nl.store(out, t)
    return out
"""
NKI_INPUTS = "--input=a=128x64:float32 --input=b=128x64:float32"


def test_an_nki_kernel_compiles_with_the_shapes_of_the_arguments_and_each_line_has_its_place(ce):
    result = compile(ce, NKI, NKI_INPUTS)
    assert result["code"] == 0 and list(result["labelDefinitions"]) == ["scaled"]
    places = {line["source"]["line"] for line in result["asm"] if line["source"] and "tensor_scalar_arith" in line["text"]}
    assert places == {9}
    trace = compile(ce, NKI, f"{NKI_INPUTS} --stop=nki-trace")
    assert "nisa.tensor_scalar(dst=t, data=t, op0=nl.multiply, operand0=2.0)" in texts(trace["asm"])
    for target in ("trn1", "trn3"):
        assert f"#nisa.target<{target}>" in texts(compile(ce, NKI, NKI_INPUTS, compiler=f"nki-{target}")["asm"])


def test_the_stages_checks_and_runs_of_an_nki_kernel_are_given_as_for_others(ce):
    result = compile(ce, NKI, f"{NKI_INPUTS} --check --simulate", backend={"produceOptPipeline": {}})
    passes = result["optPipelineOutput"]["results"]["scaled"]
    assert passes[-1]["name"] == "engine-programs"
    assert "t = nl.load(a)" in texts(next(p for p in passes if p["name"] == "nki-trace")["after"])
    assert "nisa.dma_copy(dst=t, src=a)" in texts(next(p for p in passes if p["name"] == "nki-canonicalize")["after"])
    out = texts(result["stdout"])
    assert "engine-programs: pass" in out and "on the simulated trn2" in out


def test_an_nki_kernel_without_shapes_or_with_a_wrong_call_is_refused_at_its_place(ce):
    result = compile(ce, NKI, "")
    assert result["code"] == 1 and "the shapes of the inputs" in texts(result["stderr"])
    wrong = compile(ce, NKI.replace("nisa.tensor_scalar(dst=t, data=t,", "nisa.tensor_scaler(dst=t, data=t,"), NKI_INPUTS)
    assert wrong["code"] == 1 and "did you mean tensor_scalar?" in texts(wrong["stderr"])
    assert {line["tag"]["line"] for line in wrong["stderr"] if "tag" in line} == {9}


# ---- diagnostics

def test_an_error_is_tagged_with_its_place(ce):
    result = compile(ce, "import numpy as np\ndef f(x):\n  return x @ x\n")
    first = result["stderr"][0]
    assert result["code"] == 1 and first["text"].startswith("<source>:3:10: error: matmul: shapes (8, 16)")
    assert first["tag"].items() >= {"line": 3, "column": 10, "severity": 3}.items() and first["tag"]["text"].startswith("error: matmul")
    assert all(t["column"] >= 1 and re.match(r"\w+: ", t["text"]) for t in (x["tag"] for x in result["stderr"] if "tag" in x))


def test_what_a_kernel_prints_is_standard_output(ce):
    assert compile(ce, 'print("a\\nb")\n' + ADD_ONE)["stdout"] == [{"text": "a"}, {"text": "b"}]


# ---- stages

def test_the_pipeline_has_every_stage_in_order_only_when_asked_for(ce):
    passes = compile(ce, backend={"produceOptPipeline": {"fullModule": True}})["optPipelineOutput"]["results"]["add_one"]
    stages = ce.get("/api/v1/pipeline").json["stages"]
    assert [p["name"] for p in passes] == [s["name"] for s in stages] and passes[0]["before"] == []
    for earlier, later in zip(passes, passes[1:]):
        assert later["before"] == earlier["after"]
        if not later["irChanged"]:
            assert later["before"] == later["after"]
    assert [p["machine"] for p in passes] == [s["dialect"] == "nisa" for s in stages] and passes[-1]["machine"]
    own = ce.compile(ADD_ONE)["kernels"][0]["stages"]
    assert [texts(p["after"]) for p in passes] == [s["text"].rstrip("\n") for s in own]


def test_the_pipeline_keeps_the_stages_that_a_failing_source_reached(ce):
    result = compile(ce, TWO_KERNELS.replace("x * 2", "x @ x"), "", backend={"produceOptPipeline": {}})
    assert result["code"] == 1 and result["asm"][0]["text"] == "<Compilation failed>"
    assert result["optPipelineOutput"]["results"]["once"][0]["name"] == "trace"


def test_ir_and_remarks_come_on_request(ce):
    result = compile(ce, backend={"produceIr": {"demangle": True}, "produceOptInfo": True})
    assert "linalg." in texts(result["irOutput"]["asm"]) and any(x["source"] for x in result["irOutput"]["asm"])
    assert {"Pass", "Name", "Function", "displayString", "Args"} <= set(result["optOutput"][0])
    assert any(r["Name"] == "linalg-to-nisa" for r in result["optOutput"])


def test_skip_asm_leaves_the_instructions_out(ce):
    assert "asm" not in compile(ce, backend={"skipAsm": True})


# ---- 10, 11: links

LAYOUT = {"version": 4, "content": [{"type": "row", "content": [
    {"type": "component", "componentName": "codeEditor", "componentState": {"id": 7, "lang": "nki", "source": ADD_ONE, "options": {}}},
    {"type": "stack", "content": [
        {"type": "component", "componentName": "compiler", "componentState": {"source": 7, "compiler": "nki-trn1", "options": INPUT, "filters": {"trim": True}}},
        {"type": "component", "componentName": "executor", "componentState": {"source": 7, "compiler": "nki-trn3", "options": INPUT, "execArgs": "a"}},
        {"type": "component", "componentName": "optPipelineView", "componentState": {"id": 1}}]}]}]}
STATE = {"sessions": [{"id": 1, "language": "nki", "source": ADD_ONE, "compilers": [{"id": "nki-trn1", "options": INPUT, "extra": 1}]}], "x-view": {"a": [1]}}


def shorten(server, state):
    answer = post(server, state, "/api/shortener")
    assert answer.status == 200, answer.body
    return answer.json


def info(server, link):
    return server.get("/api/shortlinkinfo/" + link["url"].rsplit("/", 1)[1], Accept="application/json")


def test_a_client_state_comes_back_as_it_was_posted(ce):
    answer = info(ce, shorten(ce, STATE))
    assert answer.json == STATE and email.utils.parsedate_to_datetime(answer.headers["Link-Created"])


def test_a_layout_comes_back_as_a_client_state(ce):
    session = info(ce, shorten(ce, {"config": LAYOUT})).json["sessions"][0]
    assert session["source"] == ADD_ONE and session["language"] == "nki" and session["id"] == 7
    compiler, executor = session["compilers"][0], session["executors"][0]
    assert compiler["id"] == "nki-trn1" and compiler["options"] == INPUT and compiler["filters"]["trim"] and compiler["filters"]["labels"]
    assert executor["arguments"] == "a" and executor["compiler"]["id"] == "nki-trn3"


def test_a_layout_keeps_at_most_a_hundred_editors(ce):
    many = {"content": [{"componentName": "codeEditor", "componentState": {"id": i, "source": ""}} for i in range(150)]}
    assert [s["id"] for s in info(ce, shorten(ce, many)).json["sessions"]] == list(range(100))


def test_equal_states_share_a_link_whatever_the_order_of_their_members(ce):
    state = json.loads(json.dumps(STATE).replace("add_one", "share_me"))
    first, again = shorten(ce, state), shorten(ce, dict(reversed(state.items())))
    assert first["url"] == again["url"] and shorten(ce, LAYOUT)["url"] != first["url"]
    assert "edit_token" in first and "edit_token" not in again


def test_a_link_opens_the_page_with_frozen_stages_and_can_be_deleted_by_its_maker(ce):
    state = json.loads(json.dumps(STATE).replace("add_one", "mine"))
    link = shorten(ce, state)
    assert ce.get(f"/z/{link['id']}").headers["Content-Type"].startswith("text/html")
    kept = ce.get(f"/api/v1/snippets/{link['id']}").json
    assert kept["request"]["target"] == "trn1" and kept["result"]["kernels"][0]["name"] == "mine" and kept["result"]["status"] == "ok"
    removed = ce.request("DELETE", f"/api/v1/snippets/{link['id']}", headers={"X-Nkx-Request": "1", "X-Nkx-Edit-Token": link["edit_token"]})
    assert removed.status == 204 and info(ce, link).status == 404


def test_our_own_snippets_are_client_states_too(ce):
    made = ce.request("POST", "/api/v1/snippets", json.dumps({
        "source": ADD_ONE, "target": "trn3", "kernel": "add_one", "inputs": [{"name": "x", "shape": [8, 16], "dtype": "float32"}],
        "options": {"stop_after": "cse"}}), {"Content-Type": "application/json", "X-Nkx-Request": "1"}).json
    session = ce.get(f"/api/shortlinkinfo/{made['id']}").json["sessions"][0]
    compiler = session["compilers"][0]
    assert session["source"] == ADD_ONE and compiler["id"] == "nki-trn3"
    again = compile(ce, arguments=compiler["options"], compiler=compiler["id"])
    assert texts(again["asm"]) == made_stage(ce, made, "cse")


def made_stage(ce, made, name):
    stages = ce.get(f"/api/v1/snippets/{made['id']}").json["result"]["kernels"][0]["stages"]
    assert stages[-1]["name"] == name
    return stages[-1]["text"].rstrip("\n")


def jobs_done(ce):
    """As the server counts them: a line of the log may come after the answer."""
    return sum(int(n) for n in re.findall(r"^nkx_jobs_total\{.*\} (\d+)$", ce.get("/metrics").body.decode(), re.M))


def test_reading_a_link_runs_nothing(ce):
    link = shorten(ce, STATE)
    compile(ce, bypassCache=1)
    ce.wait_idle()
    before = jobs_done(ce)
    for path in ("/api/shortlinkinfo/" + link["id"], "/z/" + link["id"], "/clientstate/" + encode(STATE)):
        assert ce.get(path).status in (200, 302)
    compile(ce, bypassCache=1)
    ce.wait_idle()
    assert jobs_done(ce) == before + 1


def encode(state, pack=lambda b: b):
    return base64.b64encode(pack(json.dumps(state).encode())).decode()


def opened(server, path):
    answer = server.get(path)
    assert answer.status == 302, answer.body
    address = answer.headers["Location"]
    assert address.startswith("/#target=trn1&")
    packed = re.search(r"code=([\w-]+)", address)[1]
    return zlib.decompress(base64.urlsafe_b64decode(packed + "=" * (-len(packed) % 4))).decode()


@pytest.mark.parametrize("pack", [lambda b: b, lambda b: zlib.compress(b, 9)], ids=["json", "zlib"])
@pytest.mark.parametrize("quote", [lambda s: s, lambda s: s.replace("/", "%2F").replace("+", "%2B").replace("=", "%3D"),
                                   lambda s: s.rstrip("=")], ids=["plain", "quoted", "bare"])
def test_a_state_in_the_address_opens_the_page(ce, pack, quote):
    # characters whose base64 has both '/' and '+'
    state = json.loads(json.dumps(STATE))
    state["sessions"][0]["source"] = ADD_ONE + "# ÿ>>>???~~~ÿÿÿ??>>" + "?>~" * 50 + "\n"
    assert opened(ce, "/clientstate/" + quote(base64.b64encode(pack(json.dumps(state, ensure_ascii=False).encode())).decode())) == state["sessions"][0]["source"]


def test_a_layout_in_the_address_opens_the_page(ce):
    assert opened(ce, "/clientstate/" + encode(LAYOUT)) == ADD_ONE


@pytest.mark.parametrize("payload", ["", "!!!!", "AAAA", encode([]), encode({"a": 1}), encode(STATE)[:-9], encode(STATE, zlib.compress)[:40], "eJw="])
def test_a_bad_state_in_the_address_is_refused(ce, payload):
    assert ce.get("/clientstate/" + payload).status in (400, 404 if not payload else 400)


# ---- 13: size

def test_the_largest_example_stays_below_what_clients_take(ce):
    source = max((ROOT / "explorer/examples").glob("*.py"), key=lambda p: p.stat().st_size).read_text()
    answer = post(ce, {"source": source, "options": {}})
    assert answer.json["code"] == 0 and len(answer.body) < 1_000_000
    assert answer.json["truncated"] == ("[Truncated]" in answer.json["asm"][-1]["text"])


# ---- 14: text

def test_the_text_form_is_what_clients_patterns_expect(ce):
    result = compile(ce, 'print("hi")\n' + ADD_ONE, filters={"execute": True})
    answer = ce.request("POST", "/api/compiler/nki/compile?" + "options=--input%3Dx%3D8x16:float32&filters=execute", 'print("hi")\n' + ADD_ONE)
    run = result["execResult"]
    assert answer.headers["Content-Type"] == "text/plain; charset=utf-8"
    assert answer.body.decode() == (texts(result["asm"]) + "\nStandard out:\nhi" + "\n\n# Execution result with exit code 0\n"
                                    + "# Standard out:\n" + texts(run["stdout"]) + "\n")


def test_the_text_form_of_a_failure(ce):
    answer = ce.request("POST", "/api/compiler/nki/compile", "def f(x):\n    return undefined\n", {"Accept": "text/plain"})
    lines = answer.body.decode().split("\n")
    assert lines[:3] == ["<Compilation failed>", "# Compiler exited with result code 1", "Standard error:"] and answer.body.endswith(b"\n")


def test_a_form_is_compiled_with_only_the_filters_it_names(ce):
    from urllib.parse import urlencode
    form = {"compiler": "nki-trn1", "source": ADD_ONE, "userArguments": INPUT, "execute": "true"}
    headers = {"Content-Type": "application/x-www-form-urlencoded", "Accept": "application/json"}
    result = ce.request("POST", "/api/noscript/compile", urlencode(form), headers).json
    assert result["code"] == 0 and result["execResult"]["code"] == 0 and "#nisa.target<trn1>" in texts(result["asm"])
    del form["execute"]
    assert "execResult" not in ce.request("POST", "/api/noscript/compile", urlencode(form), headers).json
    assert ce.request("POST", "/api/noscript/compile", "compiler=nki", headers).json == {"error": True, "message": "Missing source property"}


# ---- 15: connections

def test_a_client_that_hangs_up_ends_its_compile(ce):
    body = json.dumps({"source": "while True: pass\n", "options": {}, "bypassCache": 1}).encode()
    with socket.create_connection(("127.0.0.1", ce.port)) as s:
        s.sendall(b"POST /api/compiler/nki/compile HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
                  b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
        ce.wait_until(lambda: ce.health["running"] == 1, "a running job")
    ce.wait_until(lambda: ce.health["running"] == 0, "no running job", seconds=20)  # its own limit is a minute


def test_a_body_longer_than_it_says_does_not_reach_the_next_request(ce):
    body = json.dumps({"source": "# é\n" + ADD_ONE, "options": {}}, ensure_ascii=False)
    raw = ce.raw(b"POST /api/compiler/nki/compile HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s"
                 % (len(body), body.encode()) + b"GET /api/version HTTP/1.1\r\nHost: x\r\n\r\n")
    assert raw.startswith(b"HTTP/1.1 400 ") and b"Connection: close" in raw and raw.count(b"HTTP/1.1 ") == 1


# ---- other sites, caches

def test_other_sites_may_read_this_api_and_no_other(ce):
    origin = {"Origin": "https://example.org", "Accept": "application/json"}
    for path in ("/api/languages", "/api/compiler/nki/compile", "/api/shortlinkinfo/x", "/source/builtin/list"):
        assert ce.request("GET", path, headers=origin).headers["Access-Control-Allow-Origin"] == "*"
    preflight = ce.request("OPTIONS", "/api/compiler/nki/compile", headers=origin)
    assert (preflight.status, preflight.body) == (200, b"") and "Content-Type" in preflight.headers["Access-Control-Allow-Headers"]
    for path in ("/api/v1/compile", "/api/v1/targets", "/healthz", "/", "/clientstate/AAAA", "/z/x"):
        assert "Access-Control-Allow-Origin" not in ce.request("GET", path, headers=origin).headers
    assert ce.request("OPTIONS", "/api/v1/compile", headers=origin).status == 405


def test_lists_may_be_cached_and_nothing_else(ce):
    assert ce.get("/api/languages").headers["Cache-Control"] == "public, max-age=600"
    assert post(ce, {"source": "", "options": {}}).headers["Cache-Control"] == "no-store"
    assert info(ce, shorten(ce, STATE)).headers["Cache-Control"] == "no-store"


def test_a_second_compile_comes_from_the_cache_unless_it_is_bypassed(ce):
    source = ADD_ONE + "# only here\n"
    assert "retreivedFromCache" not in compile(ce, source)
    assert compile(ce, source)["retreivedFromCache"] is True
    assert "retreivedFromCache" not in compile(ce, source, bypassCache=1)
