"""Runs on Neuron hosts: a server and runners as processes, on stand-ins of compiler and runtime; and what goes wrong between them."""
import base64
import hashlib
import json
import os
import re
import subprocess

import numpy as np
import pytest

from support.paths import NKX
from support.runners import (SOURCE, Cable, Host, Liar, Runner, ask, begin, cancel, cancel_all, connected, follow, is_right, look, make_package, read_safetensors, safetensors,
                             wait_connected)
from support.server import OURS, Server
from support.wait import stays, wait_until

LEASE_MS = 1500
CUT_S = float(os.environ.get("NKX_CUT_S", "3"))


@pytest.fixture(scope="module")
def server():
    with Server("--run-lease-ms", str(LEASE_MS), "--client-runs", "6") as s:
        yield s


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    return make_package(tmp_path_factory.mktemp("package"))


@pytest.fixture
def host(server, package, tmp_path):
    return Host(tmp_path, server, package)


@pytest.fixture
def lab(host):
    """A host whose token is the test's own; what the test leaves in the queue is cancelled."""
    name = host.dir.name
    host.token_name = name
    host.token(name)
    yield host
    cancel_all()
    if "revoked" not in next(line for line in host.token_command("list").splitlines() if line.startswith(name + " ")):
        host.token_command("revoke", name)


def runner(lab, name, **kw):
    return Runner(lab, name, token=lab.token_name, **kw)


def test_without_a_neuron_host_every_answer_says_what_is_missing(server):
    assert connected(server) == 0
    assert "No Neuron host is connected" in server.get("/api/v1/runners").json["missing"]
    answer = ask(server)
    assert answer.status == 409 and answer.error["code"] == "no-runner" and "No Neuron host is connected" in answer.error["message"]


def test_a_kernel_runs_on_a_neuron_host_and_is_compared_with_numpy_and_the_simulator(server, lab):
    with runner(lab, "one", flags=("--instance-type", "trn2.48xlarge")):
        wait_connected(server, 1)
        about = server.get("/api/v1/runners").json["runners"][0]["about"]
        assert about["instance_type"] == "trn2.48xlarge" and about["target"] == "trn2" and about["cores"] == 2 and about["stand_in"] is True
        assert about["compiler"] == "stand-in 1.0" and "stand-in for tests" in about["runtime"]
        run = begin(server, run="profile")
        seen = follow(server, run)
    last = seen[-1]
    assert is_right(last) and last["attempt"] == 1 and last["run"] == "profile"
    device = last["outcome"]["device"]
    assert device["stand_in"] is True and device["simulated_us"] > 0 and device["measured"]["executions"] == 3
    log = last["log"].splitlines()
    assert log[0] == "taken by one" and any("INFO compiling add_one for trn2" in line for line in log) and log[-1] == "done"
    sizes = {f["name"]: f["size"] for f in last["files"] if f["is_output"]}
    assert set(sizes) == {"kernel.neff", "outputs.safetensors", "profile.ntff"}
    got = {n: server.get(f"/api/v1/runs/{run}/files/{n}") for n in sizes}
    assert got["kernel.neff"].body == lab.package.read_bytes() and all(len(a.body) == sizes[n] for n, a in got.items())
    x = read_safetensors(server.get(f"/api/v1/runs/{run}/files/inputs.safetensors").body)["x"]
    np.testing.assert_array_equal(read_safetensors(got["outputs.safetensors"].body)["output0"], x + 1)


def test_a_runner_gets_the_hlo_and_the_inputs_but_neither_the_source_nor_the_results(server, lab):
    liar = Liar(server, lab.token(lab.token_name))
    assert liar.next().status in (200, 204)
    run = begin(server)
    assert liar.next().status == 200
    files = {n: liar.send("GET", f"/api/v1/runner/files/{liar.taken['run']}/{n}") for n in
             ("hlo.pb", "inputs.safetensors", "expected.safetensors", "out/outputs.safetensors", "..", "source.py")}
    assert [a.status for a in files.values()] == [200, 200, 404, 404, 404, 404]
    everything = b"".join(a.body for a in files.values()) + str(liar.taken).encode()
    assert b"import numpy" not in everything and b"return x" not in everything
    cancel(server, run)
    assert liar.beat().status == 409


def test_a_runner_killed_in_mid_job_loses_nothing_and_the_run_ends_once(server, lab):
    with runner(lab, "first", gated=True) as first:
        wait_connected(server, 1)
        run = begin(server)
        first.wait_inside()
        first.kill()
        with runner(lab, "second"):
            seen = follow(server, run)
    assert is_right(seen[-1]) and seen[-1]["attempt"] == 2 and seen[-1]["runner"]["name"] == "second"
    taken = re.findall("^taken by (.*)$", seen[-1]["log"], re.M)
    assert taken == ["first", "second"] and seen[-1]["log"].count("\ndone\n") == 1
    assert not [p for p in lab.dir.glob("nkx-*") if "first" in p.name]
    stays(lambda: look(server, run) == seen[-1], "an ended run changes", 0.3)


def test_a_runner_that_left_while_it_waited_for_work_gets_none(server, lab):
    liar = Liar(server, lab.token(lab.token_name), runner="N" * 22)
    c = server.connect()
    c.request("POST", "/api/v1/runner/next", json.dumps({"runner": "O" * 22, "about": Liar.ABOUT}),
              {"Authorization": f"Bearer {liar.token}", "Content-Type": "application/json"})
    wait_connected(server, 1)
    c.close()
    run = begin(server)  # wakes the request that waits
    assert liar.next().status == 200 and liar.taken["attempt"] == 1
    cancel(server, run)


def test_a_slow_runner_keeps_its_lease_beside_one_that_is_idle(server, lab):
    with runner(lab, "slow", gated=True) as slow:
        wait_connected(server, 1)
        run = begin(server)
        slow.wait_inside()
        with runner(lab, "idle"):
            wait_connected(server, 2)
            stays(lambda: look(server, run)["state"] == "running", "a slow run was given away", 2.5 * LEASE_MS / 1000, poll_s=0.1)
            slow.let()
            last = follow(server, run)[-1]
    assert is_right(last) and last["attempt"] == 1 and last["runner"]["name"] == "slow"


def test_a_runner_behind_a_cut_network_is_replaced_and_what_it_brings_later_is_refused(server, lab):
    cable = Cable(server.port)
    with runner(lab, "away", url=cable.url, gated=True) as away:
        wait_connected(server, 1)
        run = begin(server)
        away.wait_inside()
        cable.cut()
        with runner(lab, "near"):
            last = follow(server, run)[-1]
            assert is_right(last) and last["runner"]["name"] == "near" and last["attempt"] == 2
            away.let()  # it compiles and executes, and cannot say so
            cable.mend()
            wait_until(lambda: any("run_lost" in line or "lease-lost" in line for line in away.log), "the refusal", 60)
            assert look(server, run) == last
            again = begin(server)  # both are there for the next
            assert is_right(follow(server, again)[-1])
    cable.close()


def test_a_run_goes_on_after_the_network_was_cut_if_nobody_else_took_it(server, lab):
    cable = Cable(server.port)
    with runner(lab, "only", url=cable.url, gated=True) as only:
        wait_connected(server, 1)
        run = begin(server)
        only.wait_inside()
        cable.cut()
        wait_until(lambda: look(server, run)["state"] == "waiting", "the end of the lease", 30)
        stays(lambda: look(server, run)["state"] == "waiting", "the run moved", CUT_S, poll_s=0.2)
        only.let()
        cable.mend()
        last = follow(server, run)[-1]
    cable.close()
    assert is_right(last) and last["attempt"] == 1


def test_a_server_killed_in_mid_job_knows_the_run_when_it_is_back(package, tmp_path):
    with Server("--run-lease-ms", str(LEASE_MS), data=tmp_path / "data") as first:
        host = Host(tmp_path, first, package)
        with Runner(host, "patient", gated=True) as patient:
            wait_connected(first, 1)
            run, waiting = begin(first), begin(first)
            patient.wait_inside()
            first.kill()
            patient.let()
            with Server("--run-lease-ms", str(LEASE_MS), "--port", str(first.port), data=tmp_path / "data") as second:
                ends = [follow(second, r)[-1] for r in (run, waiting)]
                assert all(map(is_right, ends)) and ends[0]["log"].count("\ndone\n") == 1
                assert ends[0]["attempt"] <= 2


def test_a_revoked_token_ends_its_runners_and_gives_their_runs_to_others(server, lab):
    other = Host(lab.dir, server, lab.package)
    other.token_name = lab.token_name + "-other"
    with runner(lab, "bad", gated=True) as bad:
        wait_connected(server, 1)
        run = begin(server)
        bad.wait_inside()
        with runner(other, "good"):
            wait_connected(server, 2)
            lab.token_command("revoke", lab.token_name)
            last = follow(server, run)[-1]
            assert is_right(last) and last["runner"]["name"] == "good"
            bad.let()
            assert bad.process.wait(30) == 1 and connected(server) == 1
        assert "runner-token" in "".join(bad.log)
    other.token_command("revoke", other.token_name)
    assert "revoked" in lab.token_command("list") and "no valid token" in lab.token_command("revoke", lab.token_name, status=1)


WRONG = {
    "no outputs": None,
    "another shape": safetensors(("output0", np.ones((8, 17), np.float32))),
    "another type": safetensors(("output0", np.ones((8, 16), np.int32))),
    "another name": safetensors(("output1", np.ones((8, 16), np.float32))),
    "one output too many": safetensors(("output0", np.ones((8, 16), np.float32)), ("more", np.ones(3, np.float32))),
    "no file of arrays": b"\xff" * 100,
    "a header beyond the file": b"\xff\x00\x00\x00\x00\x00\x00\x00{}",
    "arrays that overlap": safetensors(("output0", np.ones((8, 16), np.float32))).replace(b"[0, 512]", b"[8, 520]"),
    "bytes after the arrays": safetensors(("output0", np.ones((8, 16), np.float32))) + b"x",
}


@pytest.mark.parametrize("what", WRONG)
def test_wrong_data_of_a_lying_runner_are_refused_and_an_honest_one_gets_the_run(server, lab, what):
    liar = Liar(server, lab.token(lab.token_name))
    liar.next()  # makes it known
    run = begin(server)
    assert liar.next().status == 200
    if WRONG[what] is not None:
        assert liar.bring("outputs.safetensors", WRONG[what]).status == 200
    answer = liar.end(WRONG[what])
    assert answer.status == 422 and answer.error["code"] == "runner-data"
    assert liar.end(WRONG[what]).status == 409 and liar.beat().status == 409, "its lease is over"
    assert liar.next().status == 204, "it does not get the run again"
    assert look(server, run)["state"] == "waiting" and "was refused" in look(server, run)["log"]
    honest = Liar(server, lab.token(lab.token_name), runner="H" * 22)
    assert honest.next().status == 200 and honest.taken["attempt"] == 2
    assert honest.end(WRONG[what]).status == 422, "what another runner has brought is gone"
    cancel(server, run)


def test_a_run_that_a_liar_had_ends_with_the_data_of_an_honest_runner(server, lab):
    liar = Liar(server, lab.token(lab.token_name), runner="G" * 22)
    liar.next()
    run = begin(server)
    assert liar.next().status == 200
    assert liar.bring("outputs.safetensors", WRONG["another shape"]).status == 200 and liar.end(WRONG["another shape"]).status == 422
    with runner(lab, "honest"):
        last = follow(server, run)[-1]
    assert is_right(last) and last["runner"]["name"] == "honest"


def test_a_run_whose_only_runner_lies_fails_and_does_not_wait_for_a_day(server, lab):
    liar = Liar(server, lab.token(lab.token_name), runner="K" * 22)
    liar.next()
    run = begin(server)
    assert liar.next().status == 200
    assert liar.end().status == 422 and look(server, run)["state"] == "waiting", "another one may come for as long as a lease"
    wait_until(lambda: liar.next().status == 204 and look(server, run)["state"] == "failed", "the end of the run", 10)
    last = look(server, run)
    assert last["outcome"]["code"] == "runner-data" and "no other runner is connected" in last["outcome"]["message"]


def test_a_run_whose_runner_lied_waits_for_one_that_is_busy(server, lab):
    with runner(lab, "busy", gated=True) as busy:
        wait_connected(server, 1)
        first = begin(server)
        busy.wait_inside()
        liar = Liar(server, lab.token(lab.token_name), runner="K" * 22)
        run = begin(server)
        assert liar.next().status == 200 and liar.end().status == 422
        stays(lambda: liar.next().status == 204 and look(server, run)["state"] == "waiting", "it was given up", 1.5 * LEASE_MS / 1000, poll_s=0.2)
        busy.let()
        assert is_right(follow(server, run)[-1]) and is_right(follow(server, first)[-1])


def forged(expected):
    """A kernel that writes its whole result itself."""
    def artifact(name, data):
        return {"frame": "artifact", "artifact": {"name": f"k/{name}", "kernel": 0, "media_type": "application/octet-stream", "size": len(data),
                                                  "sha256": hashlib.sha256(data).hexdigest()}, "data": base64.b64encode(data).decode()}
    frames = [{"frame": "kernel", "kernel": 0, "name": "k", "inputs": [], "outputs": [{"name": "output0", "shape": [-1, 1 << 62], "dtype": "float32"}]},
              artifact("hlo.pb", b"x"), artifact("inputs.safetensors", safetensors()), artifact("expected.safetensors", expected),
              {"frame": "end", "status": "ok", "time_us": 1}]
    return ("import base64, ctypes, json, os, struct\n"
            f"for f in json.loads(base64.b64decode({base64.b64encode(json.dumps(frames).encode())!r})):\n    b = json.dumps(f).encode()\n"
            "    b = struct.pack('<I', len(b)) + b\n    while b:\n        b = b[os.write(3, b):]\nctypes.CDLL(None)._exit(0)\n")


def test_what_a_kernel_forges_as_expected_results_harms_no_server_and_no_runner(server, lab):
    small, large = np.zeros((2, 2), np.float32), np.zeros((64, 64), np.float32)
    liar = Liar(server, lab.token(lab.token_name), runner="P" * 22)
    liar.next()
    run = begin(server, source=forged(safetensors(("simulated/output0", large), ("reference/output0", small), ("spread/output0", small))))
    assert liar.next().status == 200
    outputs = safetensors(("output0", large))
    assert liar.bring("outputs.safetensors", outputs).status == 200 and liar.end(outputs).status == 200
    output, = look(server, run)["outcome"]["device"]["outputs"]
    assert "reference" not in output and output["simulator"]["pass"] is True
    assert ask(server, source=forged(b"no arrays")).error["code"] == "cannot-run"
    with runner(lab, "honest"):
        last = follow(server, begin(server, source=forged(safetensors())))[-1]
    assert last["state"] == "failed"


def test_files_of_a_wrong_hash_or_size_or_name_and_other_peoples_leases_are_refused(server, lab):
    liar, other = (Liar(server, lab.token(lab.token_name), runner=c * 22) for c in "AB")
    liar.next()
    right = safetensors(("output0", np.zeros((8, 16), np.float32)))
    run = begin(server)
    assert liar.next().status == 200
    assert liar.bring("outputs.safetensors", right, sha256="0" * 64).status == 422
    assert liar.bring("outputs.safetensors", bytes(9 << 20)).status == 413
    assert liar.bring("expected.safetensors", right).status == 404 and liar.bring("x", right).status == 404
    other.taken = {**liar.taken, "fence": str(int(liar.taken["fence"]) + 1)}
    assert [other.beat("x").status, other.bring("kernel.neff", b"x").status, other.end(right).status] == [409, 409, 409]
    for fence in ("0", "-1", "x", "", "9" * 40):
        assert other.beat("x", X_Nkx_Fence=fence).status in (400, 409)
    other.token = "x" * 22
    assert other.beat("x").status == 401 and other.next().status == 401
    assert "x" not in look(server, run)["log"]
    # honest about its form and wrong in its values: the run ends, and the comparison says so
    assert liar.bring("outputs.safetensors", right).status == 200 and liar.end(right).status == 200 and liar.end(right).status == 200
    last = look(server, run)
    assert last["state"] == "done" and last["outcome"]["device"]["outputs"][0]["reference"]["pass"] is False


@pytest.mark.parametrize("wrong", [{"measured": None}, {"measured": {"executions": 0, "first_us": 1}}, {"measured": {"executions": 1, "first_us": -1}},
                                   {"device": {}}, {"status": "fine"}, {"status": "error"}, {"status": "error", "code": "x" * 9000, "message": ""}])
def test_an_end_that_says_too_little_or_too_much_is_refused(server, lab, wrong):
    liar = Liar(server, lab.token(lab.token_name), runner="C" * 22)
    liar.next()
    run = begin(server)
    assert liar.next().status == 200
    outputs = safetensors(("output0", np.zeros((8, 16), np.float32)))
    assert liar.bring("outputs.safetensors", outputs).status == 200
    assert liar.end(outputs, **wrong).status == 422
    assert look(server, run)["state"] == "waiting"
    cancel(server, run)


@pytest.mark.parametrize("wrong", [{"runner": "x"}, {"about": None}, {"about": {"can": ["fly"]}}, {"about": {"can": []}},
                                   {"about": {"can": ["compile"], "target": "gpu"}}, {"about": {"can": ["compile"], "name": "x" * 300}}, {"wait_ms": -1}])
def test_a_runner_that_says_what_it_cannot_be_is_refused(server, lab, wrong):
    liar = Liar(server, lab.token(lab.token_name))
    answer = liar.send("POST", "/api/v1/runner/next", {"runner": "D" * 22, "about": Liar.ABOUT, **wrong})
    assert answer.status == 400, answer.body


def test_runs_wait_in_a_queue_whose_places_are_told(server, lab):
    with runner(lab, "busy", gated=True) as busy:
        wait_connected(server, 1)
        first = begin(server)
        busy.wait_inside()
        second, third = begin(server), begin(server)
        assert [look(server, r).get("position") for r in (first, second, third)] == [None, 1, 2]
        cancel(server, second)
        assert look(server, second)["state"] == "cancelled" and look(server, third)["position"] == 1
        busy.let()
        assert [follow(server, r)[-1]["state"] for r in (first, third)] == ["done", "done"]


def test_what_the_compiler_refuses_ends_the_run_with_its_code_and_its_log(server, lab):
    source = "import numpy as np\n\n\ndef f(x):\n    return x * 3 + 1\n"
    with runner(lab, "refusing", behaviour="internal"):
        wait_connected(server, 1)
        last = follow(server, begin(server, source=source))[-1]
    assert last["state"] == "failed" and last["outcome"]["status"] == "error"
    assert last["outcome"]["code"].startswith("vendor-") and "NCC_ITEN404" in last["log"]


def test_a_runtime_that_fails_ends_the_run_with_the_status_of_the_call(server, lab):
    with runner(lab, "broken", env={"NRT_STAND_IN_FAIL": "nrt_execute@1=1005"}):
        wait_connected(server, 1)
        last = follow(server, begin(server))[-1]
    assert last["state"] == "failed" and last["outcome"]["code"] == "neuron-status" and "nrt_execute" in last["outcome"]["message"]


def test_kernels_that_no_runner_can_run_are_refused_with_the_reason(server, lab):
    Liar(server, lab.token(lab.token_name), runner="E" * 22).next()
    two = ("import numpy as np\nfrom nkipy.core.compile import trace\n\n" + "".join(
        f"\n@trace\ndef {n}(x):\n    return x + 1\n\n\n{n}.specialize(np.ones((4, 8), np.float32))\n" for n in "ab"))
    nki = "import nki\nimport nki.language as nl\n\n\n@nki.jit\ndef k(x):\n    b = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)\n    nl.store(b, nl.load(x))\n    return b\n"
    for source, field in ((two, "several kernels"), ("x = 1\n", "cannot be run"), (nki, "k is an NKI kernel, and a runner gets HLO")):
        answer = ask(server, source=source)
        assert answer.status == 422 and answer.error["code"] == "cannot-run" and field in answer.error["message"], answer.body
    answer = ask(server, source="func.func @f() { return }\n", language="mlir", inputs=[])
    assert answer.status == 400 and "no way for MLIR or NISA text into the vendor's compiler" in answer.error["message"], answer.body
    assert ask(server, run="fly").error["code"] == "bad-field"
    assert ask(server, options={"stop_after": "trace"}).error["code"] == "bad-field"
    assert server.request("POST", "/api/v1/runs", {"source": SOURCE}, {"Content-Type": "application/json"}).status == 403


def test_one_client_has_a_share_of_the_queue(server, lab):
    Liar(server, lab.token(lab.token_name), runner="F" * 22).next()
    runs = [begin(server) for _ in range(6)]
    answer = ask(server)
    assert answer.status == 429 and answer.error["code"] == "too-many-runs"
    for r in runs:
        cancel(server, r)


def test_only_the_operator_manages_tokens(server, lab):
    path = "/api/v1/runners/tokens"
    body = {"name": "mine", "hash": "0" * 64}
    for proof in ({}, {"X-Nkx-Operator": "1.2"}, {"X-Nkx-Operator": f"{10**13}.{'0' * 64}"}):
        assert server.request("GET", path, headers=proof).error["code"] == "operator"
        assert server.request("POST", path, body, {**OURS, **proof}).error["code"] == "operator"
        assert server.request("DELETE", path + "/mine", headers={**OURS, **proof}).error["code"] == "operator"
    assert "name-taken" in lab.token_command("create", lab.token_name, status=1)
    assert "name: expected" in lab.token_command("create", "a/b", status=1)
    assert oct(lab.token(lab.token_name).stat().st_mode)[-3:] == "600"
    assert lab.token(lab.token_name).read_text().strip().encode() not in (server.data / "nkx.sqlite").read_bytes()


def test_the_terminal_runs_a_kernel_on_a_host_and_shows_what_came_out(server, lab, tmp_path):
    kernel = tmp_path / "kernel.py"
    kernel.write_text(SOURCE)

    def run(*args, status=0):
        r = subprocess.run([NKX, "runner", "run", kernel, "--server", server.url, "--input", "x=8x16:f32", *args], capture_output=True, text=True, timeout=60)
        assert r.returncode == status, r.stdout + r.stderr
        return r.stdout + r.stderr
    assert "No Neuron host is connected" in run(status=1)
    with runner(lab, "one"):
        wait_connected(server, 1)
        text = run("-o", tmp_path / "out", "--json", tmp_path / "run.json", "--run", "profile")
    assert "NO DEVICE, but a stand-in of the tests" in text and "beside numpy" in text and "beside simulator" in text and "taken by one" in text
    assert sorted(p.name for p in (tmp_path / "out").iterdir()) == ["kernel.neff", "outputs.safetensors", "profile.ntff"]
    assert is_right(json.loads((tmp_path / "run.json").read_text()))
    wait_until(lambda: connected(server) == 0, "the runner's farewell", 10)


def test_a_runner_does_not_send_its_token_where_it_can_be_read(lab):
    def refused(*args):
        r = subprocess.run([NKX, "runner", "--token-file", lab.token(lab.token_name), *args], capture_output=True, text=True, timeout=30)
        return r.returncode, r.stderr
    assert refused("--server", "http://10.1.2.3:1")[0] == 2 or "unencrypted" in refused("--server", "http://10.1.2.3:1")[1]
    assert "unencrypted" in refused("--server", "http://10.1.2.3:1")[1]
    assert "is no address of a server" in refused("--server", "ftp://localhost")[1]
    status, text = refused("--server", lab.server.url, "--neuronx-cc", "/nowhere")
    assert status == 1 and "neuronx-cc, the vendor's compiler, is not here" in text
