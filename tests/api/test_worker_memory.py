"""The worker's memory tricks (explorer/worker/memory/memory.h) change how long a job takes, and nothing else.

The whole suite runs without them by NKX_WORKER_MEMORY=off, which every server of the tests reads from its environment."""
import json
import re

import pytest
from support.audit import stop_and_audit
from support.paths import ROOT
from support.server import ADD_ONE, FLOAT_INPUT, Server, codes

TRICKS = re.findall(r'TRICK\(MEMORY_\w+, "(\w+)"\)', (ROOT / "explorer/worker/memory/memory.h").read_text())
LOGGED = {"heap": " heap ", "hugetext": " hugetext ", "prefault": " prefault "}  # events of the zygote's log


@pytest.fixture(scope="module", params=["on", "off", *TRICKS])
def memory(request):
    s = Server("--log-level", "debug", "--workers", "2", env={"NKX_WORKER_MEMORY": request.param})
    s.settle()
    yield s, request.param
    stop_and_audit(s)


def without_times(value):
    if isinstance(value, dict):
        return {k: without_times(v) for k, v in value.items() if k != "time_us"}
    return [without_times(v) for v in value] if isinstance(value, list) else value


results = {}


def test_only_the_tricks_that_were_asked_for_are_used(memory):
    server, tricks = memory
    used = {t for t in TRICKS if any(LOGGED[t] in line for line in server.log)}
    assert used == {"on": set(TRICKS), "off": set()}.get(tricks, {tricks})


def test_results_are_the_same_with_every_setting(memory):
    server, tricks = memory
    found = []
    for name in ("01_matmul_bias_relu", "03_softmax", "08_attention"):
        source = (ROOT / f"explorer/examples/{name}.py").read_text()
        for _ in range(3):
            result = server.post({"source": source, "scope": "a" * 16, "options": {"check": True, "artifacts": True}}).json
            assert result["status"] == "ok", result["diagnostics"]
            found.append(json.dumps(without_times(result), sort_keys=True))
    assert found == results.setdefault("examples", found), tricks


def test_limits_and_refusals_are_the_same_with_every_setting(memory):
    server, _ = memory
    cases = [("import numpy as np\ndef f(x):\n    return np.linalg.qr(x)\n", "unsupported-op"),
             ("b = bytearray(1 << 40)\n" + ADD_ONE, "python-error"),
             ("b = []\nwhile True:\n    b.append(bytearray(1 << 20))\n" + ADD_ONE, "python-error"),
             ("import ctypes\nctypes.string_at(0)\n" + ADD_ONE, "worker-died")]
    found = [codes(server.compile(source)) for source, _ in cases]
    assert found == results.setdefault("refusals", found)
    assert all(found)
    assert server.compile(ADD_ONE, FLOAT_INPUT)["status"] == "ok"


def test_a_burst_of_jobs_is_answered_with_every_setting(memory):
    """More jobs than there are children in stock: some children get their job at once, some while they prefault."""
    import concurrent.futures
    server, _ = memory
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        assert all(r["status"] == "ok" for r in pool.map(lambda _: server.compile(ADD_ONE), range(40)))
