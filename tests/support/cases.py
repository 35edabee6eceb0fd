"""The long tests, of which `make test` runs a sample that changes with the commit.

tests/support/long.txt lists each function of tests that takes long, with a number N: of every N of its cases one is run (with N
tests of one file that have no cases, one of them).  Which one depends on the commit, so that all are run within N commits, and
NKX_ROUND=K runs the sample of any other, and NKX_ROUND=all all of them.  `make nightly` (set cases) runs all of them, and so does pytest when it is called
without NKX_SAMPLE=1, which tests/run.sh sets for `make test` and `make quick`.

    NKX_COSTS=FILE make test                      appends to FILE how long each test took
    python3 -m support.cases FILE >long.txt       a list made of that
"""
import collections
import functools
import os
import pathlib
import subprocess
import sys
import time
import zlib

TABLE = pathlib.Path(__file__).with_name("long.txt")
LONG_S = ((6, 4), (2, 2))  # of at least so many seconds beside the other suites: one of so many
BROWSER = 3                # of the browser's, one of so many at least
FIXED = "always"           # what decides that a change may land is run each time, however long it takes


def read(table=TABLE):
    """The N of each function ("folder/test_file.py::test_name"); 1: it always runs."""
    words = (line.split() for line in table.read_text().splitlines() if not line.startswith("#"))
    return {name: 1 if every == FIXED else int(every) for every, name in words}


@functools.cache
def this_round():
    """The number of the sample: of commits up to this one, or as the environment says."""
    if "NKX_ROUND" in os.environ:
        return int(os.environ["NKX_ROUND"])
    r = subprocess.run(["git", "rev-list", "--count", "HEAD"], cwd=TABLE.parent, capture_output=True, text=True)
    return int(r.stdout) if r.returncode == 0 else 0


def left_out(items, tests, table=None, number=None):
    """The items of a collection that are not in the sample.  tests: the folder of all tests.  Whether an item is in it
    depends on its own file alone, so that a part of the suites, or those that failed, are sampled in the same way."""
    table = read() if table is None else table
    number = this_round() if number is None else number
    seen, out = collections.Counter(), []
    for item in items:
        file = str(item.path.relative_to(tests))
        name = f"{file}::{getattr(item, 'originalname', None) or item.name}"
        every = table.get(name, 1)
        if every == 1:
            continue
        group = name if hasattr(item, "callspec") else (file, every)
        turn = zlib.crc32(str(group).encode()) + seen[group]
        seen[group] += 1
        if (turn + number) % every:
            out.append(item)
    return out


class Costs:
    """Notes the seconds of each test."""

    def __init__(self, file):
        self.file, self.began = file, {}

    def pytest_runtest_logstart(self, nodeid):
        self.began[nodeid] = time.monotonic()

    def pytest_runtest_logfinish(self, nodeid):
        with open(self.file, "a", encoding="utf-8") as f:
            f.write(f"{time.monotonic() - self.began.pop(nodeid):.2f} {nodeid}\n")


def proposed(costs, old):
    """The lines of long.txt after a run with these costs: {test id: seconds}.  What did not run keeps its N."""
    seconds = collections.defaultdict(list)
    for test, s in costs.items():
        seconds[test.split("tests/", 1)[-1].split("[")[0]].append(s)
    lines = {}
    for name in old.keys() | seconds.keys():
        mean = sum(seconds[name]) / len(seconds[name]) if name in seconds else 0
        every = next((n for at_least, n in LONG_S if mean >= at_least), 1)
        if every > 1 and name.startswith("browser/"):
            every = max(every, BROWSER)
        lines[name] = 1 if old.get(name) == 1 else max(every, old.get(name, 1))
    return [f"{FIXED if every == 1 else every:>6} {name}" for name, every in sorted(lines.items()) if every > 1 or name in old]


if __name__ == "__main__":
    pairs = (line.rstrip("\n").split(" ", 1) for line in open(sys.argv[1], encoding="utf-8"))
    print("# see cases.py", *proposed({test: float(s) for s, test in pairs}, read()), sep="\n")
