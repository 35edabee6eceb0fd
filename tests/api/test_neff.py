"""POST /api/v1/neff: what a NEFF holds, read in the jail; hostile files get an error with a code."""
import base64
import json
import os
import re
import select
import subprocess
import time

import ml_dtypes  # noqa: F401  NumPy then knows the names of its types
import numpy as np
import pytest

from support.hostile import neff as hostile
from support.neff import neff, small
from support.paths import NKX, ROOT
from support.server import Server

OCTETS = {"Content-Type": "application/octet-stream"}
LIMIT = 8 << 20
OFTEN = ("03_softmax", "11_kv_cache", "nki/10_edges_and_masks")  # the others run at night


def sources():
    """(name, text) of every example, those in NKI, too, and of every kernel of the lessons but those that show how one is refused."""
    for p in sorted((ROOT / "explorer/examples").rglob("*.py")):
        yield str(p.relative_to(ROOT / "explorer/examples").with_suffix("")), p.read_text()
    for p in sorted((ROOT / "explorer/lessons").glob("*.md")):
        for i, step in enumerate(re.split(r"^## ", p.read_text(), flags=re.M)):
            if (kernel := re.search(r"^```python kernel\n(.*?)^```$", step, re.M | re.S)) and not re.search(r"^refused ", step, re.M):
                yield f"lesson-{p.stem}-{i}", kernel[1]


KERNELS = [pytest.param(text, marks=() if name in OFTEN else pytest.mark.nightly, id=name) for name, text in sources()]


def describe(server, data, headers=OCTETS):
    return server.request("POST", "/api/v1/neff", data, headers)


def refusal(server, data):
    """The code and the message of a file that is refused."""
    answer = describe(server, data)
    assert answer.status == 200, answer.body
    result = answer.json
    assert result["status"] == "error" and "neff" not in result and result["kernels"] == []
    (d,) = result["diagnostics"]
    assert d["severity"] == "error"
    return d["code"], d["message"]


def test_a_simulation_package_is_described_as_in_the_terminal(server, tmp_path):
    package = tmp_path / "k.sim.neff"
    subprocess.run([NKX, "neff", "pack", ROOT / "explorer/examples/03_softmax.py", "-o", package], check=True, capture_output=True)
    info = subprocess.run([NKX, "neff", "info", package, "--json"], check=True, capture_output=True).stdout
    result = describe(server, package.read_bytes()).json
    assert result["status"] == "ok" and result["language"] == "neff" and result["diagnostics"] == []
    assert result["neff"] == json.loads(info)
    assert result["neff"]["kind"] == "simulation" and "No device executes it" in result["neff"]["what"]


DOWNLOAD_S = 0.02  # beside the compile


def fetched(server, path):
    """An artifact, asked for five times: it takes little beside the compile."""
    took = []
    for _ in range(5):
        began = time.perf_counter()
        data = server.get(path).body
        took.append(time.perf_counter() - began)
    assert min(took) < DOWNLOAD_S or os.getloadavg()[0] > os.cpu_count(), took
    return data


def about(tensors):
    return [(t["name"], t["shape"], t["dtype"], t.get("alias_of")) for t in tensors]


def drawn(made):
    rng = np.random.default_rng(2)
    return {i["name"]: rng.standard_normal(i["shape"]).astype(i["dtype"]) if "float" in i["dtype"] else
            rng.integers(0, 3, i["shape"]).astype(i["dtype"]) for i in made["inputs"]}


@pytest.mark.parametrize("text", KERNELS)
def test_the_package_that_is_downloaded_runs_and_computes_what_numpy_computes(server, text, tmp_path):
    """Compiled, downloaded, unpacked and run: the package of the terminal, and equal to the kernel's own run, which is compared with NumPy on the same inputs."""
    kernel = tmp_path / "kernel.py"
    kernel.write_text(text)
    result = server.post({"source": text, "options": {"artifacts": True}}, cache=None).json
    assert result["status"] == "ok" and result["kernels"], result["diagnostics"]
    for made in result["kernels"]:
        package, packed, inputs, shown = (tmp_path / n for n in ("kernel.sim.neff", "packed.sim.neff", "in.npz", "shown.json"))
        package.write_bytes(fetched(server, f"/api/v1/results/{result['key']}/artifacts/{made['name']}/kernel.sim.neff"))
        subprocess.run([NKX, "neff", "pack", kernel, "--kernel", made["name"], "-o", packed], check=True, capture_output=True)
        assert package.read_bytes() == packed.read_bytes()
        (listed,) = [a for a in result["artifacts"] if a["name"] == f"{made['name']}/kernel.sim.neff"]
        assert listed["size"] == package.stat().st_size and "No device executes it, because" in listed["what"]
        parts = tmp_path / f"parts-{made['name']}"
        subprocess.run([NKX, "neff", "unpack", package, "-o", parts], check=True, capture_output=True)
        assert (parts / "program.mlir").stat().st_size > 0 and (parts / "sg00/def.json").exists()
        np.savez(inputs, **drawn(made))
        out = {}
        for what, choice in ((kernel, ("--kernel", made["name"])), (package, ())):
            saved = tmp_path / f"{what.suffix[1:]}.npz"
            ran = subprocess.run([NKX, "run", what, *choice, "--inputs", inputs, "--save-outputs", saved, "--json", shown], capture_output=True, text=True)
            assert ran.returncode == 0, ran.stderr
            (run,) = json.loads(shown.read_text())["kernels"]
            out[what] = np.load(saved)
            assert what is package or all(o["pass"] for o in run["simulation"]["outputs"]), "beside NumPy"
            assert about(run["inputs"]) == about(made["inputs"]) and about(run["outputs"]) == about(made["outputs"])
        assert out[kernel].files == out[package].files == [o["name"] for o in made["outputs"]]
        for n in out[kernel].files:
            np.testing.assert_array_equal(out[kernel][n], out[package][n])
        # an output that is a parameter in place has its name, and each other one of a NumPy kernel is named by its position
        named = [made["inputs"][o["alias_of"]]["name"] if o.get("alias_of") is not None else None if made["pipeline"] == "nki" else f"output{i}"
                 for i, o in enumerate(made["outputs"])]
        assert all(n in (None, o["name"]) for n, o in zip(named, made["outputs"]))


def test_a_vendors_file_is_described_from_its_documented_parts(server):
    got = describe(server, neff(small(), compressed=False)).json["neff"]
    assert got["kind"] == "vendor" and got["header"]["build"] == "2.21.1234" and got["header"]["hash_matches"] and not got["compressed"]
    (sub,) = got["subgraphs"]
    assert [(v["name"], v["type"], v["size"]) for v in sub["variables"]] == [("x", "input", 64), ("y", "output", 64)]
    assert sub["queues"] == [{"name": "q0", "type": "data", "owner": "pe", "rings": 2, "transfers": 1, "descriptors": 1, "bytes": 64}]
    (pe,) = [e for e in sub["engines"] if e["key"] == "pe"]
    assert (pe["instr_size"], pe["transfers"], pe["bytes"]) == (48, 1, 64)
    assert [t["usage"] for t in got["tensors"]] == ["input", "output"] and got["info"] == {"tool_version": "2.21"}


@pytest.mark.parametrize("make, code", [pytest.param(make, code, id=name) for name, make, code in hostile.FILES])
def test_a_hostile_file_is_refused_with_a_code(server, make, code):
    got, message = refusal(server, make())
    assert got == code and message and "\n" not in message


def test_the_deepest_info_that_is_read_passes_through_the_server(server):
    result = describe(server, neff({**small(), "info.json": hostile.deep(32)})).json
    assert result["status"] == "ok" and json.dumps(result["neff"]["info"]).count("{") == 32


@pytest.mark.parametrize("headers, body, status, code", [
    ({"Content-Type": "application/json"}, b"{}", 415, "media-type"),
    ({"Content-Type": "multipart/form-data"}, b"x", 415, "media-type"),
    (OCTETS, b"", 400, "bad-field"),
    (OCTETS, bytes(LIMIT + 1), 413, "too-large"),
])
def test_a_request_that_is_no_upload_is_a_problem(server, headers, body, status, code):
    answer = describe(server, body, headers)
    assert (answer.status, answer.error["code"]) == (status, code)


def test_the_largest_file_reaches_the_worker(server):
    members = small()
    data = neff({**members, "sg00/pad.bin": bytes(1)}, compressed=False)
    pad = LIMIT - len(data) - 1024
    data = neff({**members, "sg00/pad.bin": bytes(pad)}, compressed=False)
    data = neff({**members, "sg00/pad.bin": bytes(pad - max(0, len(data) - LIMIT))}, compressed=False)
    assert LIMIT - (64 << 10) < len(data) <= LIMIT
    assert describe(server, data).json["status"] == "ok"


def test_nothing_of_an_upload_is_kept(server):
    key = describe(server, neff(small())).json["key"]
    assert server.get(f"/api/v1/results/{key}").status == 404


def test_the_same_is_a_job_of_the_language_neff(server):
    source = base64.b64encode(neff(small())).decode()
    assert server.post({"source_base64": source, "language": "neff"}).json["neff"]["kind"] == "vendor"
    for fields, field in (({"source": "x"}, "source"), ({"source_base64": source, "target": "trn1"}, "language"),
                          ({"source_base64": source, "options": {"check": True}}, "language")):
        answer = server.post({"language": "neff", **fields})
        assert answer.status == 400 and answer.error["field"] == field, answer.body
    answer = server.request("POST", "/api/v1/snippets", {"source_base64": source, "language": "neff"},
                            {"Content-Type": "application/json", "X-Nkx-Request": "1"})
    assert answer.status == 400 and "snippet has stages" in answer.error["message"]


def test_few_large_bodies_are_read_at_once():
    with Server("--workers", "1") as server:
        data = neff(small())
        held = [server.connect() for _ in range(9)]
        for c in held:
            c.putrequest("POST", "/api/v1/neff")
            c.putheader("Content-Type", OCTETS["Content-Type"])
            c.putheader("Content-Length", str(len(data)))
            c.endheaders(data[:-1])
        (refused,), _, _ = select.select([c.sock for c in held], [], [], 30)  # before its body is whole
        assert server.post({"source": "x = 1\n"}).status == 200  # other routes go on
        for c in held:
            if c.sock is refused:
                answer = c.getresponse()
                assert answer.status == 503 and json.loads(answer.read())["error"]["code"] == "busy"
            else:
                c.send(data[-1:])
        assert {c.getresponse().status for c in held if c.sock is not None and c.sock is not refused} <= {200, 429}
        for c in held:
            c.close()
        assert describe(server, data).status in (200, 429)
