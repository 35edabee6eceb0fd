"""A server beside which the vendor's compiler is installed: NEFFs and NKI without a Neuron host, in a jail of the compiler's own."""
import os
import pathlib
import subprocess
import tempfile

import pytest

from support.marks import needs_reach
from support.paths import NKX
from support.runners import ask, cancel_all, connected, follow, begin, wait_connected
from support.server import Server
from support.vendor import Vendor
from support.wait import wait_until

KERNEL = "import numpy as np\n\n\ndef f(x):\n    y = x + 1\n    return y * x * {}\n"


@pytest.fixture(scope="module")
def vendor(tmp_path_factory):
    v = Vendor(tmp_path_factory.mktemp("vendor"))
    with v.server:
        wait_connected(v.server, 1)
        yield v


@pytest.fixture(autouse=True)
def cancelled():
    yield
    cancel_all()


def runners_of(server):
    """Process ids of the runners that ask this server."""
    found = []
    for p in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
        try:
            line = p.read_bytes().split(b"\0")
        except OSError:
            continue
        if line[0].endswith(b"/nkx-runner") and f"http://127.0.0.1:{server.port}".encode() in line:
            found.append(int(p.parent.name))
    return found


def test_the_vendors_neff_is_had_without_a_neuron_host_and_the_second_time_from_the_cache(vendor):
    about = vendor.server.get("/api/v1/runners").json["runners"][0]["about"]
    assert about["name"] == "this server" and about["compiler"] == "stand-in 1.0" and about["can"] == ["compile", "nki"] and "only compiles" in about["missing"]
    answers = []
    for source in (KERNEL.format(1), KERNEL.format(1) + "# another text, the same kernel\n"):
        run = begin(vendor.server, run="compile", source=source, compiler={"options": ["--optlevel=2"], "lnc": 2})
        last = follow(vendor.server, run)[-1]
        assert last["state"] == "done" and last["outcome"] == {"status": "ok"} and last["about"]["compiler"] == {"options": ["--optlevel=2"], "lnc": 2}
        answers.append((last["log"], vendor.server.get(f"/api/v1/runs/{run}/files/kernel.neff").body))
    (first, made), (second, kept) = answers
    assert "INFO compiling f for trn2" in first and "compiled: a NEFF of" in first and len(made) > 1024
    assert "compiled before, and kept" in second and "INFO" not in second and kept == made
    assert vendor.server.request("POST", "/api/v1/neff", made, {"Content-Type": "application/octet-stream"}).json["neff"]["kind"] == "vendor"
    assert ask(vendor.server).error["code"] == "no-runner", "it executes nothing"


def metric(server, name):
    return next(float(line.split()[-1]) for line in server.get("/metrics").body.decode().splitlines() if line.startswith(name + " "))


def test_runs_are_counted_for_prometheus(vendor):
    before = {e: metric(vendor.server, f'nkx_runs_total{{event="{e}"}}') for e in ("asked", "taken", "done", "failed", "wrong-data")}
    assert vendor.compiled(source=KERNEL.format(4))["state"] == "done"
    assert ask(vendor.server).status == 409
    vendor.behave("nothing")
    assert vendor.compiled(source=KERNEL.format(6))["state"] == "failed"
    vendor.behave("works")
    now = {e: metric(vendor.server, f'nkx_runs_total{{event="{e}"}}') - n for e, n in before.items()}
    assert now == {"asked": 2, "taken": 2, "done": 1, "failed": 1, "wrong-data": 0}
    gauges = ("nkx_runners", "nkx_runs_running", "nkx_runs_waiting")  # counted every few seconds
    wait_until(lambda: [metric(vendor.server, g) for g in gauges] == [1, 0, 0], "one runner, and no run", 70)


def test_the_kernel_as_nki_is_one_more_file(vendor):
    run = begin(vendor.server, run="nki", source=KERNEL.format(2))
    last = follow(vendor.server, run)[-1]
    assert last["state"] == "done" and [f["name"] for f in last["files"] if f["is_output"]] == ["kernel.nki.py"]
    text = vendor.server.get(f"/api/v1/runs/{run}/files/kernel.nki.py").body.decode()
    assert "def f():\n" in text and "nl.multiply()" in text
    answer = vendor.server.get(f"/api/v1/runs/{run}/stage")
    stage, places, sources = (answer.json[k] for k in ("stage", "places", "sources"))
    pipeline = vendor.server.get("/api/v1/pipeline").json["stages"]
    assert (stage["name"], stage["dialect"], stage["text"], stage["index"]) == ("vendor-nki", "nki", text, len(pipeline))
    assert stage["op_counts"]["nl.multiply"] == 2 and stage["op_counts"]["def"] == 1 and len(stage["lines"]) == text.count("\n")
    of = {t.split()[-1]: [places[p][:5] for p in sources[line["src"]]["places"]] for t, line in zip(text.splitlines(), stage["lines"]) if "src" in line}
    assert of["nl.add()"] == [[0, 5, 9, 5, 14]] and answer.json["files"] == ["kernel.py"], "y = x + 1"
    assert "src" not in stage["lines"][0] and "op" not in stage["lines"][1]


def test_only_a_run_of_nki_that_is_done_has_a_stage(vendor):
    run = begin(vendor.server, run="compile", source=KERNEL.format(2))
    assert follow(vendor.server, run)[-1]["state"] == "done"
    assert vendor.server.get(f"/api/v1/runs/{run}/stage").status == 404
    answer = vendor.server.request("DELETE", f"/api/v1/runs/{run}/stage", None, {"X-Nkx-Request": "1"})
    assert answer.status == 404 and vendor.server.get(f"/api/v1/runs/{run}").status == 200


def test_an_error_that_names_an_instruction_has_its_place_in_the_source(vendor):
    vendor.behave("internal")
    last = vendor.compiled(source=KERNEL.format(3))
    vendor.behave("works")
    outcome = last["outcome"]
    assert last["state"] == "failed" and outcome["code"] == "vendor-failed" and "NCC_ITEN404" in outcome["message"]
    assert outcome["instruction"] in outcome["message"]
    assert outcome["range"] == {"file": "kernel.py", "line": 6, "col": 12, "end_line": 6, "end_col": 17}


@pytest.mark.parametrize("how, code", [("memory", "vendor-memory"), ("hangs", "vendor-timeout"), ("nothing", "vendor-output"), ("allocates", "vendor-memory")])
def test_each_failure_has_its_code_and_nothing_is_left(vendor, how, code):
    vendor.behave(how)
    last = vendor.compiled(source=KERNEL.format(how.__hash__() % 1000 + 10))
    vendor.behave("works")
    assert last["outcome"]["code"] == code, last
    wait_until(lambda: not list(vendor.tmp.iterdir()), "an empty folder", 10)


def test_the_compiler_reads_no_data_of_the_server_and_writes_only_into_its_own_folder(vendor):
    vendor.behave("works", "for f in $(find {0}/data -mindepth 1); do echo saw $f; done; touch {0}/x {0}/data/x /etc/x 2>/dev/null && echo wrote\n"
                  "touch here tmp/here /dev/shm/x /var/tmp/x && echo own\necho net $(grep -c : /proc/net/dev)\n"
                  "mount -t tmpfs none /mnt 2>/dev/null && echo mounted\numount {0}/data 2>/dev/null && echo unmounted\n".format(vendor.dir))
    last = vendor.compiled(source=KERNEL.format(5))
    vendor.behave("works")
    said = [line.removeprefix("neuronx-cc: ") for line in last["log"].splitlines() if line.startswith("neuronx-cc: ") and "INFO" not in line]
    assert last["state"] == "done" and said == ["own", "net 1"], last["log"]
    assert (vendor.dir / "data/nkx.sqlite").exists()


@pytest.mark.parametrize("compiler, why", [({"options": ["--tensorizer-options=--run=/bin/sh"]}, "not among the options"), ({"options": ["--optlevel=9"]}, "takes one of 1|2|3"),
                                           ({"options": "x"}, "texts"), ({"options": [1]}, "texts"), ({"lnc": 3}, "1 or 2"), ({"jobs": 4}, "no such field"), ([], "object")])
def test_options_that_are_not_allowed_are_refused(vendor, compiler, why):
    answer = ask(vendor.server, run="compile", compiler=compiler)
    assert answer.status == 400 and answer.error["code"] == "bad-field" and why in answer.error["message"], answer.body


def test_a_runner_that_was_killed_is_started_again_and_ends_with_the_server(tmp_path):
    v = Vendor(tmp_path)
    with v.server:
        wait_until(lambda: runners_of(v.server), "a runner", 30)
        (first,) = runners_of(v.server)
        os.kill(first, 9)
        wait_until(lambda: first not in runners_of(v.server) and runners_of(v.server), "another runner", 30)
        assert v.compiled()["state"] == "done"
    wait_until(lambda: not runners_of(v.server), "no runner", 10)


def test_a_server_without_the_compiler_has_none_and_says_so():
    with Server("--neuronx-cc", "none") as server:
        assert connected(server) == 0 and not runners_of(server)
    done = subprocess.run([NKX, "serve", "--port", "0", "--neuronx-cc", "/nowhere/neuronx-cc"], capture_output=True, text=True)
    assert done.returncode == 2 and "--neuronx-cc: /nowhere/neuronx-cc is no program" in done.stderr


@needs_reach
@pytest.mark.skipif(os.geteuid() != 0, reason="only root's server changes the runner's user")
def test_as_root_with_confinement_the_runner_is_a_user_of_its_own(tmp_path_factory):
    with tempfile.TemporaryDirectory(dir="/tmp") as d:  # pytest's directories are root's alone
        directory = pathlib.Path(d)
        directory.chmod(0o755)
        v = Vendor(directory, NKX_CONFINE="yes")
        v.tmp.chmod(0o1777)
        with v.server:
            wait_connected(v.server, 1)
            (runner,) = runners_of(v.server)
            assert os.stat(f"/proc/{runner}").st_uid == 65532
            v.behave("works", f"for f in $(find {directory}/data -mindepth 1); do echo saw; done\ntouch {directory}/x 2>/dev/null && echo wrote\nid -u\n")
            last = v.compiled(source=KERNEL.format(5))
            if (last["outcome"] or {}).get("message", "").startswith("neuronx-cc was not started"):
                pytest.skip("this kernel lets no other user than root make namespaces: " + last["outcome"]["message"])
            said = [line.removeprefix("neuronx-cc: ") for line in last["log"].splitlines() if line.startswith("neuronx-cc: ") and "INFO" not in line]
            assert last["state"] == "done" and [s for s in said if s in ("saw", "wrote")] == [] and said[-1] == "65532", last["log"]
            wait_until(lambda: not list(v.tmp.iterdir()), "an empty folder", 10)
