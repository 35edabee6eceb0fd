"""Several files of one request: the API, links, Compiler Explorer's form and the terminal."""
import base64
import json
import os
import re
import subprocess
import zlib

import pytest

from support.clients import read, share
from support.paths import NKX
from support.server import FLOAT_INPUT, JSON
from support.source_map import expanded

MAIN = "from lib.act import gelu\nimport helper\n\ndef kernel(x):\n    return gelu(x) + helper.one\n"
ACT = "import numpy as np\nfrom . import consts\n\ndef gelu(x):\n    return np.tanh(x * consts.two)\n"
FILES = [{"name": "lib/act.py", "source": ACT}, {"name": "lib/consts.py", "source": "two = 2.0\n"}, {"name": "helper.py", "source": "one = 1\n"}]
JOB = {"source": MAIN, "filename": "main.py", "files": FILES, "inputs": FLOAT_INPUT, "options": {"stop_after": "trace"}}
ALL = {"main.py": MAIN, **{f["name"]: f["source"] for f in FILES}}


def places(result):
    return {s["file"] for k in result["kernels"] for stage in k["stages"] for line in stage["lines"] for s in line.get("src", [])}


# ---- the API


def test_a_request_with_several_files_compiles_and_its_places_name_them(server):
    result = expanded(server.post({**JOB, "options": {"check": True}}).json)
    assert result["status"] == "ok" and places(result) == {"main.py", "lib/act.py"}
    stages = result["kernels"][0]["stages"]
    assert all("lib/act.py" in json.dumps(s["lines"]) for s in stages) and len(stages) > 20
    (tanh,) = [line for line, text in zip(stages[0]["lines"], stages[0]["text"].splitlines()) if " tanh(" in text]
    assert [(s["file"], s["line"], s["fn"]) for s in tanh["src"]] == [("lib/act.py", 5, "gelu"), ("main.py", 5, "kernel")]


def test_a_diagnostic_names_the_file_that_it_is_in(server):
    broken = [{**FILES[0], "source": ACT.replace("np.tanh", "np.linalg.qr")}, *FILES[1:]]
    (d,) = server.post({**JOB, "files": broken}).json["diagnostics"]
    assert (d["range"]["file"], d["range"]["line"]) == ("lib/act.py", 5) and [c["file"] for c in d["calls"]] == ["main.py"]


def test_the_files_are_a_part_of_the_key(server):
    key = lambda files: server.post({**JOB, "files": files}).json["key"]
    keys = [key(FILES), key([{**FILES[0], "source": ACT + "\n"}, *FILES[1:]]), key([*FILES, {"name": "more.py", "source": ""}])]
    assert len(set(keys)) == 3 and key(FILES) == keys[0]
    alone = {"source": "def kernel(x):\n    return x\n", "inputs": FLOAT_INPUT}
    assert server.post({**alone, "files": []}).json["key"] == server.post(alone).json["key"]


@pytest.mark.parametrize("name", ["", "a", ".py", "/a.py", "../a.py", "a/../b.py", "./a.py", "a//b.py", "a/b.py/", "a b.py", "a\\b.py", "é.py", "a.txt",
                                  ".a.py", "x/.y.py", "a\n.py", "a" * 198 + ".py", "main.py", "helper.py", 3, None])
def test_a_name_that_is_none_is_refused(server, name):
    answer = server.post({**JOB, "files": [FILES[2], {"name": name, "source": ""}]})
    assert answer.status == 400 and answer.error["field"].startswith("files"), answer.body


@pytest.mark.parametrize("change, status, field", [
    ({"files": {}}, 400, "files"),
    ({"files": [1]}, 400, "files[0]"),
    ({"files": [{"name": "a.py"}]}, 400, "files[0].source"),
    ({"files": [{"source": ""}]}, 400, "files[0].name"),
    ({"files": [{"name": "a.py", "source": "", "size": 1}]}, 400, "files[0].size"),
    ({"files": [{"name": f"a{i}.py", "source": ""} for i in range(65)]}, 413, "files"),
    ({"files": [{"name": f"a{i}.py", "source": "#" * (130 << 10)} for i in range(2)]}, 413, "files"),
    ({"language": "mlir"}, 400, "files"),
])
def test_files_that_no_request_can_have_are_refused(server, change, status, field):
    answer = server.post({**JOB, **change})
    assert answer.status == status and answer.error["field"] == field, answer.body


def test_as_many_files_as_the_limit_says(server):
    files = [{"name": f"m{i}.py", "source": f"x = {i}\n"} for i in range(64)]
    source = "import numpy\nfrom m63 import x as n\nassert n == 63\ndef kernel(x):\n    return x\n"
    assert server.post({**JOB, "source": source, "files": files}).json["status"] == "ok"


def test_one_requests_files_are_not_there_for_the_next(server):
    assert server.post(JOB).json["status"] == "ok"
    result = server.post({**JOB, "files": FILES[1:2]}).json
    assert result["status"] == "error" and {d["code"] for d in result["diagnostics"]} == {"python-import"}


# ---- links


def test_a_link_keeps_all_files(server):
    job = {k: v for k, v in JOB.items() if k not in ("source", "inputs")}
    made = share(server, source=MAIN, **job).json
    got = read(server, made).json
    assert got["request"]["files"] == FILES and got["request"]["filename"] == "main.py" and places(expanded(got["result"])) == {"main.py", "lib/act.py"}
    assert server.get(made["raw_url"]).body.decode() == MAIN


# ---- Compiler Explorer


CE_FILES = [{"filename": f["name"], "contents": f["source"]} for f in FILES]
INPUT = "--input=x=8x16:f32 --stop=trace"


def ce(server, files, source=MAIN):
    answer = server.request("POST", "/api/compiler/nki/compile", json.dumps({"source": source, "options": {"userArguments": INPUT}, "files": files}),
                            {**JSON, "Accept": "application/json"})
    assert answer.status == 200, answer.body
    return answer.json


def test_the_files_of_a_compiler_explorer_request_are_imported(server):
    result = ce(server, CE_FILES)
    assert result["code"] == 0 and result["stderr"] == []
    sources = [line["source"] for line in result["asm"] if line["source"]]
    assert {s["file"] for s in sources} == {None} and {s["line"] for s in sources} >= {4, 5}


def test_an_error_in_one_of_its_files_is_tagged_with_the_file(server):
    result = ce(server, [{"filename": "./lib/act.py", "contents": "\ndef gelu(x):\n    return x.nope()\n"}, *CE_FILES[1:]])
    first, note = result["stderr"][:2]
    assert first["text"].startswith("lib/act.py:3:12: error: ") and first["tag"]["file"] == "lib/act.py" and first["tag"]["line"] == 3
    assert note["text"].startswith("<source>:5:12: note: called from here") and "file" not in note["tag"]


def test_files_that_are_not_python_are_left_out_and_named(server):
    result = ce(server, [{"filename": "data.txt", "contents": "x"}, *CE_FILES, {"filename": "../up.py", "contents": ""}, {"filename": 3}])
    assert result["code"] == 0 and [line["text"].split(" was")[0] for line in result["stderr"]] == ["note: data.txt", "note: ../up.py"]
    result = ce(server, [{"filename": "example.py", "contents": "x"}])
    assert result["code"] == 1 and "name of the main file" in result["stderr"][0]["text"]


def test_a_tree_of_a_compiler_explorer_link_has_our_files(server):
    job = {k: v for k, v in JOB.items() if k not in ("source", "inputs")}
    link = share(server, source=MAIN, **job).json["id"]
    state = server.get(f"/api/shortlinkinfo/{link}").json
    (tree,) = state["trees"]
    assert {f["filename"]: f["content"] for f in tree["files"] if not f["isMainSource"]} == {f["name"]: f["source"] for f in FILES}
    again = server.request("POST", "/api/shortener", json.dumps(state), JSON).json["id"]
    got = read(server, again).json
    assert got["request"]["source"] == MAIN and got["request"]["files"] == FILES and got["result"]["status"] == "ok"


def test_a_tree_in_the_address_opens_the_page_with_its_files(server):
    tree = {"files": [{"filename": "main.py", "content": "x", "isMainSource": True, "isIncluded": True, "editorId": 1},
                      {"filename": "helper.py", "content": "one = 1\n", "isIncluded": True}, {"filename": "unused.py", "content": "", "isIncluded": False}]}
    state = {"sessions": [{"id": 1, "language": "nki", "source": MAIN, "compilers": []}], "trees": [tree]}
    answer = server.get("/clientstate/" + base64.urlsafe_b64encode(json.dumps(state).encode()).decode())
    unpack = lambda key: zlib.decompress(base64.urlsafe_b64decode(re.search(key + r"=([\w-]+)", answer.headers["Location"])[1] + "==")).decode()
    assert answer.status == 302 and unpack("code") == MAIN
    assert json.loads(unpack("files")) == [{"name": "helper.py", "source": "one = 1\n"}]


# ---- the terminal


def nkx(*arguments, cwd, stdin=None):
    return subprocess.run([NKX, "compile", *arguments, "--input", "x=8x16", "--stop-after", "trace", "--quiet"], input=stdin, capture_output=True,
                          text=True, timeout=120, cwd=cwd)


def write(folder, files):
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def without_what_differs(text):
    return re.sub(r'"time_us":\d+', '"time_us":0', re.sub(r'"key":"[0-9a-f]{64}"', '"key":""', text)).strip()


@pytest.mark.parametrize("arguments", [["main.py"], ["main.py", "helper.py", "lib/act.py", "lib/consts.py"], ["main.py", "lib/consts.py"]])
def test_the_terminal_takes_files_and_finds_those_beside_the_kernel(server, tmp_path, arguments):
    write(tmp_path, {**ALL, "unused.py": "1 / 0\n"})
    done = nkx(*arguments, "--json", "-", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert without_what_differs(done.stdout) == without_what_differs(server.post(JOB).body.decode())


def test_a_file_may_come_from_elsewhere(tmp_path):
    write(tmp_path, {**ALL, "lib/act.py": "1 / 0\n", "new/act2.py": ACT})
    done = nkx("main.py", "--file", "lib/act.py=new/act2.py", "--json", "-", cwd=tmp_path)
    assert done.returncode == 0 and " tanh(" in done.stdout, done.stderr


def test_a_kernel_in_another_folder_names_its_files_by_their_paths(tmp_path):
    write(tmp_path / "src", {**ALL, "helper.py": "zero = 0\none = 1 / zero\n"})
    (tmp_path / "work").mkdir()
    for main, cwd in [("src/main.py", tmp_path), ("../src/main.py", tmp_path / "work"), (str(tmp_path / "src/main.py"), tmp_path), ("./main.py", tmp_path / "src")]:
        done = nkx(main, cwd=cwd)
        helper = os.path.join(os.path.dirname(main), "helper.py")
        assert done.returncode == 1 and f"{helper}:2:" in done.stderr and "     2 | one = 1 / zero\n" in done.stderr, done.stderr


def test_the_terminal_refuses_files_that_are_none(tmp_path):
    write(tmp_path, ALL)
    for arguments, message in [(["main.py", "nowhere.py"], "No such file"), (["main.py", "--file", "x"], "expected NAME=PATH"),
                               (["main.py", "helper.py", "helper.py"], "two files are called helper.py"), (["main.py", "--file", "a.txt=main.py"], "ends in .py")]:
        done = nkx(*arguments, cwd=tmp_path)
        assert done.returncode == 2 and message in done.stderr, (arguments, done.stderr)


def test_standard_input_imports_from_the_folder_that_the_terminal_is_in(tmp_path):
    write(tmp_path, ALL)
    done = nkx("-", "--json", "-", cwd=tmp_path, stdin=MAIN)
    assert done.returncode == 0 and " tanh(" in done.stdout, done.stderr
    assert "FILE.py" in subprocess.run([NKX, "compile", "--help"], capture_output=True, text=True).stdout


SPLIT = """import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def split(a):
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    rows = a.shape[0] // nl.num_programs()
    part = nl.ds(nl.program_id(0) * rows, rows)
    x = nl.load(a[part])
    nisa.tensor_scalar(dst=x, data=x, op0=nl.add, operand0=float(nl.program_id(0)))
    nl.store(out[part], x)
    return out
"""


def test_an_nki_kernel_that_hlo_launches_with_a_grid_is_a_kernel_of_the_result(server):
    config = base64.b64encode(json.dumps({"func_name": "split", "grid": [2]}).encode()).decode()
    hlo = f"""HloModule calls

ENTRY main {{
  a = f32[128,64]{{1,0}} parameter(0)
  k = f32[128,64]{{1,0}} custom-call(a), custom_call_target="AwsNeuronCustomNativeKernel", backend_config="{config}"
  ROOT r = f32[128,64]{{1,0}} multiply(k, a)
}}
"""
    job = {"source": hlo, "language": "hlo", "options": {"check": True}}
    result = server.post({**job, "files": [{"name": "split.py", "source": SPLIT}]}).json
    assert result["status"] == "ok", result["diagnostics"]
    outer, inner = result["kernels"]
    assert {s["check"]["status"] for s in outer["stages"]} == {"pass"} and inner["name"] == "split" and inner["stages"][-1]["check"]["status"] == "pass"
    assert next(s for s in inner["stages"] if s["name"] == "nki-trace")["grid"]["shape"] == [2]
    (warning,) = result["diagnostics"]
    assert warning["code"] == "nki-one-core" and warning["range"]["file"] != "split.py", "the call is in the HLO"
    (note,) = (d for d in server.post(job).json["diagnostics"] if d["code"] == "native-kernel")
    assert "of which HLO has only that it is called" in note["message"]
