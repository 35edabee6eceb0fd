"""Writes the table of tests/RESULTS.md: the tests of reliability and load, with the figures of the last `make nightly`.

Each set of tests/nightly.sh leaves one line in BUILD/nightly/summary: its verdict, its seconds, and the last line that it
printed, which has the figures.  What runs in `make test` is named with the tests that hold it.  A set without a line keeps
what the table has of it, so that sets may be run one by one.

    python3 tests/results.py            after make nightly [SETS="…"]
"""
import datetime
import os
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[1]
BUILD = ROOT / os.environ.get("BUILD", "build")
RESULTS = ROOT / "tests/RESULTS.md"
NOT_YET = "not run yet"

# id, what, the nightly set that has its figures or "", where `make test` holds it
TESTS = [
    ("S1–S5, S8", "the jail from within: system calls, paths, ways out, escapes, own memory, filter", "", "tests/jail/test_inside.py"),
    ("S9", "jail set-up with each step failing", "", "tests/jail/test_levels.py"),
    ("H-all", "hostile kernels and texts end in their verdict", "", "tests/hostile"),
    ("N1–N7", "hostile HTTP: slow, large, framing, JSON; 10,000 connections nightly", "http", "tests/api/test_http.py"),
    ("L1", "static and stored pages, 2,000/s, p99 ≤ 20 ms", "L1", ""),
    ("L2", "40 small compiles/s for 30 min, p50 ≤ 80 ms, p95 ≤ 250 ms", "L2", ""),
    ("L3", "160/s for 10 min: shed, and recovered from in 5 s", "L3", ""),
    ("R1", "kill -9 of children and zygotes at random moments", "kills", "tests/jail/test_zygotes.py"),
    ("D1", "500 × kill -9 of the writer under load", "store", "tests/store/test_sqlite.py"),
    ("D3, D7, D9", "full disk, backup under load, second writer", "", "tests/store/test_sqlite.py"),
    ("D5", "flipped bits are found", "flips", "tests/unit/test_explorer_store.c"),
    ("D8", "PostgreSQL away for 60 s", "outage", "tests/store/test_postgresql.py"),
    ("X2, X4", "headers of every route, foreign origins", "", "tests/api/test_routes.py, tests/api/test_http.py"),
    ("P1, P3, P4", "ids, what a dump tells, leaks", "", "tests/unit/test_explorer_store.c, tests/store, tests/api/test_snippets.py"),
    ("P5", "deleted, malformed and unknown links cannot be told apart by time", "timing", ""),
    ("F", "fuzzing of every parser, 10 min a target", "fuzz", "tests/fuzz (corpus and 6 s a target)"),
    ("API", "schemathesis against the OpenAPI document", "openapi", "tests/api/test_openapi.py"),
    ("Deploy", "two servers, PostgreSQL, proxy; one killed", "", "tests/deploy/test_two_servers.py"),
    ("Root", "the Dockerfile's steps in a clean Debian, the service in it", "root", ""),
    ("Docker", "images and compose with a daemon", "", "SKIP: no Docker daemon on this machine"),
    ("Level A", "limits by control groups", "", "SKIP: no memory, pids and cpu controllers of cgroup v2 here"),
]


def machine():
    memory = int(re.search(r"MemTotal: +(\d+)", pathlib.Path("/proc/meminfo").read_text())[1])
    return f"{os.cpu_count()} cores, {round(memory / 2**20)} GB"


def from_nightly():
    """set -> (result, figures, date)"""
    summary = BUILD / "nightly/summary"
    out = {}
    if summary.exists():
        date = datetime.date.fromtimestamp(summary.stat().st_mtime).isoformat()
        for line in summary.read_text().splitlines():
            m = re.fullmatch(r"(\w+): (\w+), (\d+) s, (.*)", line)
            if m:
                skipped = m[4].startswith("SKIP")
                out[m[1]] = ("SKIP" if skipped else m[2], m[4].strip("= "), f"{date}, {machine()}")
    return out


def from_table():
    out = {}
    if RESULTS.exists():
        for line in RESULTS.read_text().splitlines():
            cells = [c.strip() for c in line.strip("|").split("|")]
            if len(cells) == 7 and cells[2] not in ("set", "---", ""):
                out[cells[2]] = (cells[4], cells[5], cells[6])
    return out


def main():
    known = from_table() | from_nightly()
    rows = []
    for name, what, nightly, here in TESTS:
        skip = here.startswith("SKIP: ")
        result, figures, date = known.get(nightly, (NOT_YET, "", "")) if nightly else ("SKIP" if skip else "in make test", "", "")
        rows.append(f"| {name} | {what} | {nightly} | {'' if skip else here} | {result} | "
                    f"{here[6:] if skip else figures.replace('|', '/')} | {date} |")
    RESULTS.write_text("# Results\n\nWritten by tests/results.py from what `make nightly` left; see there.\n\n"
                       "| test | what | set | in make test | result | figures | date, machine |\n"
                       "| --- | --- | --- | --- | --- | --- | --- |\n" + "\n".join(rows) + "\n")


if __name__ == "__main__":
    main()
