"""What an operator relies on: readiness, metrics, logs, and stops and restarts that lose nothing."""
import html
import http.client
import json
import os
import re
import resource
import signal
import socket
import subprocess
import threading
import time

import pytest
from prometheus_client.parser import text_string_to_metric_families

from support.clients import in_thread, in_threads, nkx, open_stream, read_until, remove, share
from support.paths import NKX
from support.server import ADD_ONE, FLOAT_INPUT, JOB, OURS, Server

@pytest.fixture
def own():
    """Makes servers that a test may break or stop."""
    servers = []

    def make(*flags, **kw):
        servers.append(Server(*flags, **kw))
        return servers[-1]
    yield make
    for s in servers:
        if s.process.poll() is None:
            s.kill()


def ready(server):
    answer = server.get("/readyz")
    return answer.status, answer.json


# ---- readiness


def test_a_trial_of_readiness_runs_a_kernel_and_writes_a_row(server):
    status, body = ready(server)
    assert status == 200 and body["status"] == "ready" and body["worker"] == body["store"] == "ok"
    assert body["level"] in "ABC" and body["took_ms"] >= 0
    before = samples(server)["nkx_jobs_total", ("ok",)]

    def is_tried_again():  # an outcome holds for a second
        assert ready(server)[0] == 200
        return samples(server)["nkx_jobs_total", ("ok",)] > before
    server.wait_until(is_tried_again, "another trial", 30)


def test_requests_that_come_together_share_a_trial(server):
    def writes():
        return samples(server)["nkx_store_tasks_total", ("write",)]

    def together():
        """Writes for 20 requests at once: none while the last outcome holds, else those of one trial."""
        before = writes()
        assert [status for status, _ in in_threads(20, lambda _: ready(server))] == [200] * 20
        assert writes() - before <= 3
        return writes() > before
    server.wait_until(together, "a trial for 20 requests", 30)


def unready_within_10_s(server, part):
    def is_unready():
        status, body = ready(server)
        assert status == 200 or body["status"] == "unready" and body[part] not in ("ok", "busy"), body
        return status == 503
    server.wait_until(is_unready, f"the {part} to be found at fault", 10.5)


def test_the_server_is_unready_while_its_workers_hang(own):
    s = own()
    s.settle()
    stopped = [s.zygote(), *s.kids()]
    for pid in stopped:
        os.kill(pid, signal.SIGSTOP)
    unready_within_10_s(s, "worker")
    for pid in stopped:
        try:
            os.kill(pid, signal.SIGCONT)
        except ProcessLookupError:
            pass
    s.wait_until(lambda: ready(s)[0] == 200, "it to recover", 30)


def test_the_server_is_unready_while_its_disk_is_full(own):
    s = own("--confine", "no")  # limits of another user's process are not for every root to set
    assert ready(s)[0] == 200
    before = resource.prlimit(s.pid, resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))
    unready_within_10_s(s, "store")
    assert s.get("/healthz").status == 200, "alive all the same"
    resource.prlimit(s.pid, resource.RLIMIT_FSIZE, before)
    s.wait_until(lambda: ready(s)[0] == 200, "it to recover", 10)


# ---- metrics


def samples(server):
    answer = server.get("/metrics")
    assert answer.status == 200 and answer.headers["Content-Type"].startswith("text/plain; version=0.0.4")
    return {(s.name, tuple(s.labels.values())): s.value
            for f in text_string_to_metric_families(answer.body.decode()) for s in f.samples}


def test_metrics_parse_and_count_what_happens(own):
    s = own()
    before = samples(s)
    s.compile(ADD_ONE)
    s.compile("raise ValueError\n")
    key = s.compile(ADD_ONE, cache=None)["key"]
    s.compile(ADD_ONE, cache=None)
    s.get("/api/v1/results/" + key)
    s.get("/no/such/file")
    s.raw(b"GET / HTTP/1.1\n\n")
    # the pool counts a job when the worker has ended, which is just after the answer
    s.wait_until(lambda: samples(s).get(("nkx_jobs_total", ("ok",)), 0) - before.get(("nkx_jobs_total", ("ok",)), 0) >= 2, "the jobs to be counted")
    after = samples(s)

    def gained(name, *labels):
        return after.get((name, labels), 0) - before.get((name, labels), 0)
    assert gained("nkx_http_requests_total", "/api/v1/compile", "200") == 4
    assert gained("nkx_http_requests_total", "/api/v1/results/", "200") == 1
    assert gained("nkx_http_requests_total", "file", "404") == 1
    assert gained("nkx_http_refused_total", "malformed") == 1
    assert gained("nkx_http_request_seconds_count", "/api/v1/compile") == 4
    assert gained("nkx_http_request_seconds_bucket", "/api/v1/compile", "+Inf") == 4
    assert after["nkx_http_request_seconds_sum", ("/api/v1/compile",)] > 0
    assert gained("nkx_jobs_total", "ok") == 2 and gained("nkx_jobs_total", "error") == 1
    assert gained("nkx_results_total", "memory") >= 1 and gained("nkx_results_total", "compiled") == 3
    assert after["nkx_queue_length", ()] == 0 and after["nkx_pool_ready", ()] == 1
    assert 1 << 20 < after["process_resident_memory_bytes", ()] < 1 << 30
    assert abs(after["process_open_fds", ()] - len(os.listdir(f"/proc/{s.pid}/fd"))) < 8
    assert abs(after["process_start_time_seconds", ()] - time.time()) < 300
    # buckets only grow
    les = [v for (n, labels), v in after.items() if n == "nkx_http_request_seconds_bucket" and labels[0] == "/api/v1/compile"]
    assert les == sorted(les)


def test_metrics_hold_no_text_of_users(own):
    s = own()
    made = share(s, "# tell-tale-5521\n" + ADD_ONE).json
    s.get("/z/" + made["id"])
    s.get("/tell-tale-5521?tell-tale-5521")
    text = s.get("/metrics").body.decode()
    assert made["id"] not in text and "tell-tale" not in text and made["key"] not in text


# ---- logs


def test_logs_are_json_without_source_or_unlisted_ids(own):
    s = own("--log-format", "json", "--log-requests", "yes", "--log-level", "debug")
    made = share(s, "# tell-tale-7712\n" + ADD_ONE).json
    for path in ("/z/", "/e/", "/api/v1/snippets/"):
        s.get(path + made["id"])
    remove(s, made)
    s.compile("raise ValueError('tell-tale-7712')\n")
    assert s.stop() == 0
    s.wait_for_log("stopping")
    events = [json.loads(line) for line in s.log]
    assert len(events) > 10 and all({"time", "level", "event"} <= set(e) for e in events)
    done = [e for e in events if e["event"] == "job_done"]
    assert done and all(e["status"] and int(e["wall_ms"]) >= 0 for e in done)
    assert [e["status"] for e in events if e["event"] == "request" and e["route"] == "/z/"] == [200]
    text = "".join(s.log)
    assert "tell-tale" not in text and made["id"] not in text and made["edit_token"] not in text


def events_of(server, event):
    return [json.loads(line) for line in server.log if json.loads(line)["event"] == event]


def test_who_did_what_to_which_link_is_in_the_log(own):
    """A line for each change, with names from which nobody finds the id or the address; the request's id is in the answer, too."""
    s = own("--log-format", "json", "--log-requests", "yes", "--trusted-proxies", "127.0.0.1")
    one, other = ({**OURS, "X-Forwarded-For": a} for a in ("198.51.100.1", "198.51.100.2"))
    answer = share(s, headers=one)
    made = answer.json
    edit = {**one, "X-Nkx-Edit-Token": made["edit_token"]}
    revised = s.request("POST", f"/api/v1/snippets/{made['id']}", {"source": ADD_ONE + "# 2\n", "inputs": FLOAT_INPUT}, edit)
    denied = s.request("DELETE", f"/api/v1/snippets/{made['id']}", headers={**other, "X-Nkx-Edit-Token": "x" * 22})
    expires = s.request("DELETE", f"/api/v1/snippets/{made['id']}?after=60", headers=edit)
    deleted = s.request("DELETE", f"/api/v1/snippets/{made['id']}", headers=edit)
    assert [a.status for a in (answer, revised, denied, expires, deleted)] == [201, 201, 403, 204, 204]
    shared_again = share(s, headers=one).json
    assert nkx("store", "delete", "--store", f"sqlite:{s.data}/nkx.sqlite", shared_again["id"]).returncode == 0
    assert s.stop() == 0
    lines = events_of(s, "audit")
    assert [(e["what"], e["outcome"]) for e in lines] == [("link-stored", "ok"), ("link-revised", "ok"), ("link-deleted", "denied"), ("link-expires", "ok"),
                                                          ("link-deleted", "ok"), ("link-stored", "ok"), ("link-deleted", "ok")]
    assert len({e["link"] for e in lines[:5]}) == 1 and lines[5]["link"] == lines[6]["link"] != lines[0]["link"]
    assert lines[0]["client"] == lines[1]["client"] == lines[5]["client"] != lines[2]["client"] and int(lines[0]["bytes"]) > 500
    assert [e["request"] for e in lines[:5]] == [a.headers["X-Request-Id"] for a in (answer, revised, denied, expires, deleted)]
    assert lines[6]["by"] == "operator" and int(lines[6]["uid"]) == os.getuid()
    assert {e["id"] for e in events_of(s, "request")} >= {e["request"] for e in lines[:5]}
    text = "".join(s.log)
    assert "198.51.100" not in text and made["id"] not in text and made["edit_token"] not in text


def test_a_client_is_named_in_the_log_as_the_operator_chooses():
    for how, client in ("no", "-"), ("address", "198.51.100.7"):
        with Server("--log-clients", how, "--trusted-proxies", "127.0.0.1") as s:
            share(s, headers={**OURS, "X-Forwarded-For": "198.51.100.7"})
            s.wait_for_log("audit", "what=link-stored", f"client={client} ")


def test_only_a_trusted_proxy_gives_a_request_its_id(own):
    asked = "0f3c-trace.17_A"
    with Server("--trusted-proxies", "127.0.0.2") as s:
        def id_of(said, address):
            return s.request("GET", "/healthz", headers={"X-Request-Id": said}, address=address).headers["X-Request-Id"]
        assert id_of(asked, "127.0.0.2") == asked
        others = [id_of(asked, "127.0.0.3"), id_of("x" * 65, "127.0.0.2"), id_of("short", "127.0.0.2"), id_of("white space", "127.0.0.2")]
        assert len(set(others)) == 4 and all(re.fullmatch("[0-9a-f]{16}", i) for i in others)


def test_a_link_says_where_it_can_be_reported(server):
    with Server("--report-url", "mailto:abuse@example.org?subject=Report&body={link}.") as s:
        made = share(s).json
        where = f"mailto:abuse@example.org?subject=Report&body=%2Fz%2F{made['id']}."
        assert s.get(f"/api/v1/snippets/{made['id']}").json["report_url"] == where
        assert html.escape(where) in s.get(f"{made['url']}?view=plain").body.decode()
    made = share(server).json
    assert "report_url" not in server.get(f"/api/v1/snippets/{made['id']}").json and b"Report" not in server.get(f"{made['url']}?view=plain").body


# ---- stop and restart


class Load:
    """Clients that compile until stop(), each request on a new connection."""

    def __init__(self, port, n=4):
        self.port, self.outcomes, self._stop = port, [], False
        self._threads = [threading.Thread(target=self._run, args=(i,)) for i in range(n)]
        for t in self._threads:
            t.start()

    def _run(self, i):
        k = 0
        while not self._stop:
            k += 1
            c = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
            try:
                c.connect()
            except OSError as e:
                self.outcomes.append(("refused", str(e)))
                continue
            try:
                c.request("POST", "/api/v1/compile", json.dumps({**JOB, "source": f"# {i} {k}\n" + ADD_ONE}),
                          {"Content-Type": "application/json"})
                r = c.getresponse()
                self.outcomes.append((r.status, json.loads(r.read()).get("status")))
            except OSError as e:
                self.outcomes.append(("lost", str(e)))
            finally:
                c.close()

    def stop(self):
        self._stop = True
        for t in self._threads:
            t.join()
        return self.outcomes


def test_a_stopping_server_finishes_what_waits_in_its_queue(own):
    s = own("--workers", "1")
    s.settle()
    slow = {"source": "import time\ntime.sleep(0.3)\n" + ADD_ONE, "inputs": FLOAT_INPUT}
    with open_stream(s, "import time\ntime.sleep(60)\n") as first:
        read_until(first, b'"frame":"start"')
        answers = [in_thread(s.post, slow) for _ in range(6)]
        s.wait_waiting(6)
        first.close()
    assert s.stop() == 0
    answers = [answer() for answer in answers]
    assert [(a.status, a.json["status"]) for a in answers] == [(200, "ok")] * 6
    assert all(a.headers["Connection"] == "close" for a in answers)


def test_a_restart_on_sighup_refuses_and_loses_nothing(own):
    s = own()
    load = Load(s.port)
    s.wait_until(lambda: len(load.outcomes) > 10, "some load")
    for _ in range(2):
        n = len([line for line in s.log if " serving " in line])
        s.process.send_signal(signal.SIGHUP)
        s.wait_until(lambda: len([line for line in s.log if " serving " in line]) > n, "the successor", 30)
        at = len(load.outcomes)
        s.wait_until(lambda: len(load.outcomes) > at + 10, "load at the successor", 30)
    outcomes = load.stop()
    wrong = [o for o in outcomes if o != (200, "ok") and o[0] != 503]  # 503: its workers are still starting
    assert not wrong, wrong[:5]
    assert s.process.poll() is None and s.get("/readyz").status == 200
    assert s.stop() == 0


def test_a_successor_has_a_warm_zygote_and_the_service_goes_on_until_then():
    with Server("--workers", "1") as s:
        s.settle()
        s.wait_until(lambda: len(s.zygotes()) == 2, "the one that stands by", 60)
        before, service = set(s.zygotes()), s.pid
        s.process.send_signal(signal.SIGHUP)
        warm = s.wait_until(lambda: next(iter(set(s.zygotes()) - before), None), "the successor's zygote", 30)
        while not any(" stopping " in line for line in list(s.log)):
            assert s.compile(ADD_ONE)["status"] == "ok"
        s.wait_until(lambda: sum(" serving " in line for line in list(s.log)) == 2, "the successor", 30)
        assert s.compile(ADD_ONE)["status"] == "ok" and s.pid != service
        active = [line for line in s.log if " zygote_active " in line]
        assert f"pid={warm} " in active[1] and s.zygote() == warm


def test_a_successor_whose_zygote_died_starts_another():
    with Server("--workers", "1") as s:
        s.settle()
        s.wait_until(lambda: len(s.zygotes()) == 2, "the one that stands by", 60)
        before = set(s.zygotes())
        s.process.send_signal(signal.SIGHUP)
        os.kill(s.wait_until(lambda: next(iter(set(s.zygotes()) - before), None), "the successor's zygote", 30), signal.SIGKILL)
        s.wait_until(lambda: sum(" serving " in line for line in list(s.log)) == 2, "the successor", 30)
        s.wait_until(lambda: s.get("/healthz").status == 200, "a zygote", 30)
        assert s.compile(ADD_ONE)["status"] == "ok"


def test_a_service_is_replaced_once_no_long_job_runs():
    slow = "import time\nuntil = time.monotonic() + 3\nwhile time.monotonic() < until:\n    pass\n" + ADD_ONE
    with Server("--workers", "2") as s:
        s.settle()
        long = in_thread(s.post, {"source": slow, "inputs": FLOAT_INPUT})
        s.wait_running()
        s.process.send_signal(signal.SIGHUP)
        took = []
        while not any(" stopping " in line for line in list(s.log)):
            began = time.monotonic()
            assert s.compile(ADD_ONE)["status"] == "ok"
            took.append(time.monotonic() - began)
        assert long().json["status"] == "ok" and took
        s.wait_until(lambda: sum(" serving " in line for line in list(s.log)) == 2, "the successor", 30)


def test_a_passed_socket_is_served(tmp_path):
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        port = listener.getsockname()[1]
        fd = listener.fileno()
        early = socket.create_connection(("127.0.0.1", port), timeout=30)  # before there is a server
        early.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        p = subprocess.Popen(["bash", "-c", f'exec 3<&{fd}; LISTEN_PID=$$ LISTEN_FDS=1 exec "$@"', "bash", NKX,
                              "serve", "--data-dir", tmp_path], pass_fds=[fd], stderr=subprocess.DEVNULL)
        try:
            assert early.recv(100).startswith(b"HTTP/1.1 ")
        finally:
            early.close()
            p.terminate()
            assert p.wait(timeout=20) == 0


def test_a_passed_descriptor_that_is_no_socket_is_named(tmp_path):
    r = subprocess.run(["sh", "-c", 'exec env LISTEN_PID=$$ LISTEN_FDS=1 "$@" 3</dev/null', "sh", NKX, "serve",
                        "--data-dir", tmp_path], capture_output=True, text=True, timeout=20)
    assert r.returncode == 2 and "LISTEN_FDS" in r.stderr


# ---- configuration


def test_a_wrong_variable_is_named():
    r = subprocess.run([NKX, "serve"], capture_output=True, text=True, timeout=20,
                       env={**os.environ, "NKX_QUEUE_TIMEOUT_MS": "soon"})
    assert r.returncode == 2 and "NKX_QUEUE_TIMEOUT_MS" in r.stderr and r.stdout == ""
