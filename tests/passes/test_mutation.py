"""The verification and the check name the pass in which a fault was planted (tests/mutation).

NKX_FAULTS=all plants every fault of the table; otherwise a few over all kinds of stages.
"""
import collections
import json
import os
import re
import subprocess

import pytest

from support import jax_functions
from support.paths import BUILD, EXAMPLES, NKX, ROOT, TESTS

WORKER = BUILD / "test/nkx-worker-planted"
LEAST = 0.95
OWN = {"recognize-scans", "recognize-activations", "flash-attention", "fuse-row-tiles", "round-products", "coalesce-transfers", "schedule", "balance-engines"}
PROGRAMS = {p.stem: p for p in [*jax_functions.DIRECTORY.glob("*.hlo"), *EXAMPLES]}


def read_table():
    faults = []
    for line in (TESTS / "mutation/faults.txt").read_text().splitlines():
        if line and not line.startswith("#"):
            what, example, *why = line.split(maxsplit=2)
            faults.append((what, example, why[0].removeprefix("unseen: ") if why else None))
    return faults


TABLE = read_table()
SAMPLE = TABLE if os.environ.get("NKX_FAULTS") == "all" else TABLE[::16]
SEEN = [f for f in TABLE if f[2] is None]


# Loops and buffers with copies are where these stages can go wrong; a short program is written out without them otherwise.
WITH_LOOPS = ("allocate-memory", "engine-programs")


def with_loops(what):
    return ("--pipeline", "with schedule{parts=0}") if what.split("/")[0] in WITH_LOOPS else ()


def run(what, example, *arguments):
    done = subprocess.run([WORKER, "compile", PROGRAMS[example], "--check", "--quiet", "--json", "-", *arguments],
                          capture_output=True, timeout=300, env={**os.environ, "NKX_PLANT": what})
    assert f"planted {what}" in done.stderr.decode(), done.stderr.decode()[-1000:]
    assert done.returncode in (0, 1), done.stderr.decode()[-1000:]
    return json.loads(done.stdout)


def blamed(result):
    """The stage that is wrong first, as --stop-after takes it, and by what: "check" or "verification"; None if all are right."""
    names = collections.Counter()
    (kernel,) = result["kernels"]
    for s in kernel["stages"]:
        names[s["name"]] += 1
        if s["check"]["status"] == "fail":
            return s["name"] + (f":{names[s['name']]}" if names[s["name"]] > 1 else ""), "check"
    errors = [d["stage"] for d in result["diagnostics"] if d["severity"] == "error"]
    if not errors:
        return None
    names[errors[0]] += 1  # the stage was not made
    return errors[0] + (f":{names[errors[0]]}" if names[errors[0]] > 1 else ""), "verification"


def test_the_table_has_faults_of_all_stages():
    assert len(TABLE) >= 80
    stages = collections.Counter(what.split("/")[0] for what, _, _ in TABLE)
    names = collections.Counter()
    for name in re.findall(r'^STAGE(?:_OWN)?\(\w+, "([\w-]+)"', (ROOT / "compiler/driver/stages.def").read_text(), re.M):
        names[name] += 1
        assert stages[name if names[name] == 1 else f"{name}:{names[name]}"], name
    assert OWN == set(re.findall(r'^STAGE_OWN\(\w+, "([\w-]+)"', (ROOT / "compiler/driver/stages.def").read_text(), re.M))
    assert all(stages[s] >= 5 for s in OWN) and sum(stages[s] for s in OWN) >= 40
    assert stages["allocate-memory"] >= 12 and stages["engine-programs"] >= 20
    assert len(SEEN) >= LEAST * len(TABLE)


@pytest.mark.parametrize("what, example, why", SAMPLE, ids=lambda v: v if isinstance(v, str) and "/" in v else "")
def test_the_pass_of_a_planted_fault_is_named(what, example, why, record_property):
    found, by = blamed(run(what, example, *with_loops(what))) or (None, None)
    assert (found == what.split("/")[0]) == (why is None), found
    record_property("faults", 1)
    record_property(f"named by {by}" if why is None else "not named, as the table says", 1)


# passes on linalg, memref, NISA, and the two stages of the machine
@pytest.mark.parametrize("what, example", [
    ("prepare-arithmetic/swap-operands/0", "03_softmax"),
    ("linalg-to-nisa/drop-fill/0", "03_softmax"),
    ("allocate-memory/wrong-type/0", "08_attention"),
    ("engine-programs/drop-wait/0", "08_attention"),
    ("engine-programs/weak-wait/1", "13_attention_loop"),
])
def test_a_pass_with_a_fault_leaves_a_reproducer_in_which_only_the_pass_is_wrong(what, example, tmp_path):
    path = tmp_path / "r.json"
    run(what, example, "--reproducer", str(path))
    stage = what.split("/")[0]
    assert json.loads(path.read_text())["stage"] == stage
    done = subprocess.run([NKX, "reproduce", path], capture_output=True, text=True, timeout=60)
    before, after = done.stdout.splitlines()
    assert before.startswith(f"before {stage}: pass")
    assert after.startswith(f"after {stage}: pass")  # this program has the pass without the fault
    assert done.returncode == 0


def test_the_products_cannot_plant_faults():
    assert b"NKX_PLANT" not in (BUILD / "bin/nkx-worker").read_bytes()
    assert b"NKX_PLANT" in WORKER.read_bytes()
