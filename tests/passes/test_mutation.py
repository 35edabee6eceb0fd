"""The check names the pass in which a fault was planted (tests/mutation).

NKX_FAULTS=all plants every fault of the table; otherwise a few over all kinds of stages.
"""
import json
import os
import subprocess

import pytest

from support.paths import BUILD, EXAMPLES, NKX, TESTS

WORKER = BUILD / "test/nkx-worker-planted"
LEAST = 0.95


def read_table():
    faults = []
    for line in (TESTS / "mutation/faults.txt").read_text().splitlines():
        if line and not line.startswith("#"):
            what, example, *why = line.split(maxsplit=2)
            faults.append((what, example, why[0].removeprefix("unseen: ") if why else None))
    return faults


TABLE = read_table()
SAMPLE = TABLE if os.environ.get("NKX_FAULTS") == "all" else TABLE[::7]


def run(what, example, *arguments):
    (path,) = [p for p in EXAMPLES if p.stem == example]
    done = subprocess.run([WORKER, "compile", path, "--check", "--quiet", "--json", "-", *arguments], capture_output=True,
                          timeout=120, env={**os.environ, "NKX_PLANT": what})
    assert f"planted {what}" in done.stderr.decode(), done.stderr.decode()[-1000:]
    assert done.returncode in (0, 1), done.stderr.decode()[-1000:]
    return json.loads(done.stdout)


def blamed(result):
    """The stage that the check calls wrong first; None if it finds nothing."""
    failed = [d["stage"] for d in result["diagnostics"] if d["code"] == "check-failed"]
    return failed[0] if failed else None


def test_the_table_has_faults_of_most_passes():
    assert len(TABLE) >= 30
    assert len({what.split("/")[0] for what, _, _ in TABLE}) >= 20
    assert sum(why is None for _, _, why in TABLE) >= LEAST * len(TABLE)


@pytest.mark.parametrize("what, example, why", SAMPLE, ids=lambda v: v if isinstance(v, str) and "/" in v else "")
def test_the_check_names_the_pass_of_a_planted_fault(what, example, why):
    found = blamed(run(what, example))
    stage = what.split("/")[0].split(":")[0]
    assert found == (stage if why is None else None)


def test_a_pass_with_a_fault_leaves_a_reproducer_in_which_only_the_pass_is_wrong(tmp_path):
    path = tmp_path / "r.json"
    run("prepare-arithmetic/swap-operands/0", "03_softmax", "--reproducer", str(path))
    assert json.loads(path.read_text())["stage"] == "prepare-arithmetic"
    done = subprocess.run([NKX, "reproduce", path], capture_output=True, text=True, timeout=60)
    before, after = done.stdout.splitlines()
    assert before.startswith("before prepare-arithmetic: pass")
    assert after.startswith("after prepare-arithmetic: pass")  # this program has the pass without the fault
    assert done.returncode == 0


def test_the_products_cannot_plant_faults():
    assert b"NKX_PLANT" not in (BUILD / "bin/nkx-worker").read_bytes()
    assert b"NKX_PLANT" in WORKER.read_bytes()
