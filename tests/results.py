"""Writes the table of tests/RESULTS.md: the tests of reliability and load, with the figures of the last `make nightly`.

Each set of tests/nightly.sh leaves one line in BUILD/nightly/summary: its verdict, its seconds, the machine's load when it
began, the figures that its tests noted, and the last line that it printed.  What runs in `make test` is named with the tests that hold it.  A set without a line keeps
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
    ("random", "2,000 random kernels: every stage equals NumPy, or a listed diagnostic", "random", "tests/conformance/test_random_kernels.py (200)"),
    ("kernels", "every kernel and knob form on trn1, trn2, trn3: each stage by the check, by LLVM's tools and by the hardware's rules", "kernels", "tests/kernels (compiled, a sample checked)"),
    ("rows", "360 random kernels of each kind: transposes, slices of every n-th element, matrices with a short side, axes taken backwards, short rows, few long ones: every stage equals NumPy", "rows", "tests/passes/test_rows_in_other_orders_values.py (24 of each)"),
    ("images", "60 rounds of random products of images and matrices: every stage equals NumPy", "images", "tests/passes/test_image_products_values.py (a few)"),
    ("borders", "60 rounds of random borders, interiors and columns that are read along rows: every stage equals NumPy", "borders", "tests/passes/test_borders_values.py (a few)"),
    ("sbuf", "feed-forward 2048×2048×4096 and random programs: spills, what SBUF holds at each point, values", "sbuf", "tests/conformance/test_sbuf_pressure.py"),
    ("operations", "every operation, form, dtype and shape, by XLA and on every target to NISA", "operations", "tests/conformance/test_operations.py"),
    ("sim", "every NISA operation in the simulator against NumPy, 150 random programs of each kind; functions over all magnitudes; hostile programs, each stopped at its line", "sim", "tests/sim (12 of each kind)"),
    ("dumps", "memref stages of nine kernels that another compiler printed (NKX_DUMPS), lowered by linalg-to-nisa for each target and simulated, against NumPy", "dumps", ""),
    ("calls", "20,000 drawn calls against NumPy and XLA", "calls", "tests/conformance/test_operations.py (6,000)"),
    ("indices", "3,000 drawn index expressions, reading and writing", "indices", "tests/trace/test_index_cases.py (200)"),
    ("jax", "modules of JAX on NISA", "jax", "tests/conformance/test_jax_nisa.py (14)"),
    ("programs", "600 random programs of JAX: each stage by the check, the instructions against XLA", "programs", "tests/conformance/test_random_jax.py (24)"),
    ("mutation", "faults planted in every stage of the pipeline: verification or check names the pass in 95 %", "mutation", "tests/passes/test_mutation.py (8)"),
    ("growth", "a chain of 5,000 operations to its last stage: 15 s of processor time, 1 GiB", "growth", ""),
    ("nki", "kernels of NKI, of both generations, alone and in NumPy kernels: every stage of instructions on trn1, trn2, trn3", "nki", "tests/nki_kernels (trn2)"),
    ("nki-ast", "mutated NKI kernels: the analysis ends, raises nothing, gives codes and places of the source", "nki-ast", "tests/nki_kernels/test_mutations.py (600)"),
    ("nki-fuzz", "mutated NKI kernels, half an hour each: the rewriter gives a program, a whole compile ends with a code", "nki-fuzz", "tests/nki_kernels/test_upgrade.py (6 s each)"),
    ("resume", "every stage of every example, unchanged: the same later stages and maps; 200 corrupt texts: errors at lines", "resume", "tests/conformance/test_resume.py (two examples, each seventh stage; 24 texts)"),
    ("nki-rand", "1,000 random NKI programs, legal and illegal: values, and the verifier's prediction", "nki-rand", "tests/nki_kernels/test_random_nki.py (100)"),
    ("nki-views", "3,000 random chains of views and 3,000 access patterns of NKI, in SBUF and in HBM, against NumPy on the storage", "nki-views", "tests/nki_kernels/test_views.py (300 access patterns)"),
    ("journeys", "100 journeys: 20 on three kernels at five sizes of the window", "journeys", "tests/browser/test_journeys.py (two sizes)"),
    ("page", "from key to stages, paint while a decoder layer compiles, 231,315 executions panned, 100,000 lines scrolled", "page", ""),
    ("shapes", "the examples' formulas on every odd shape", "shapes", "tests/conformance/test_shapes.py (each third)"),
    ("S1–S5, S8", "the jail from within: system calls, paths, ways out, escapes, own memory, filter", "", "tests/jail/test_inside.py"),
    ("S6", "10⁵ names that mean places: no file is opened for any", "names", "tests/jail/test_names.py (150)"),
    ("S7", "two jobs that run together and 36 channels: no bit gets through", "channels", "tests/jail/test_channels.py (once each)"),
    ("S9", "jail set-up with each step failing", "", "tests/jail/test_levels.py"),
    ("S10", "cost of a jail: p50 ≤ 4 ms, p99 ≤ 15 ms; job handed over p99 ≤ 5 ms; ≥ 250 a second", "jails", ""),
    ("H-all, H-kill", "hostile kernels and texts end in their verdict; memory within 1 %", "hostile", "tests/hostile"),
    ("H-mix", "an hour with a fifth of hostile jobs: none lost, p95 ≤ 2 × quiet", "mix", ""),
    ("N1–N7, N9", "hostile HTTP: slow, large, framing, JSON; 10,000 connections and a crawler nightly", "http", "tests/api/test_http.py"),
    ("N8", "flood from one address: 429, others' p95 ≤ 2 × quiet", "N8", "tests/api/test_quotas.py"),
    ("L1", "static and stored pages, 2,000/s, p99 ≤ 20 ms", "L1", ""),
    ("L2", "40 small compiles/s for 30 min, p50 ≤ 80 ms, p95 ≤ 250 ms", "L2", ""),
    ("L3", "160/s for 10 min: shed, and recovered from in 5 s", "L3", ""),
    ("sessions", "60 people in a session, one of whom types: p95 ≤ 150 ms; 200 sessions of 3; memory and descriptors back", "sessions", ""),
    ("converge", "5 clients edit at random over connections that drop and delay: one text, also for who joins then", "converge", "tests/api/test_sessions.py (3)"),
    ("L4", "200 editors: p95 ≤ 300 ms, superseded ended ≤ 100 ms", "L4", ""),
    ("R1", "kill -9 of children and zygotes at random moments; of the server: D1", "kills", "tests/jail/test_zygotes.py"),
    ("R2", "each allocation and each system call fails once", "faults", ""),
    ("R3", "the clock steps by an hour", "clock", ""),
    ("R5, R6, R7", "what the kernel counts and the server says; drain and restart; readiness", "",
     "tests/support/audit.py (after each server), tests/api/test_operations.py"),
    ("D1", "500 × kill -9 of the writer under load", "store", "tests/store/test_sqlite.py"),
    ("D3, D7, D9", "full disk, backup under load, second writer", "", "tests/store/test_sqlite.py"),
    ("D4", "slow, read-only and failing disk", "disk", ""),
    ("D5", "flipped bits are found", "flips", "tests/unit/test_explorer_store.c"),
    ("D8", "PostgreSQL away for 60 s", "outage", "tests/store/test_postgresql.py"),
    ("X1, X3", "120 payloads × all channels of text in a browser; damaged state", "payloads", "tests/browser/test_hostile.py (10)"),
    ("X2, X4, X5", "headers of every route, foreign origins, downloads", "", "tests/api/test_routes.py, tests/api/test_http.py, tests/api/test_snippets.py"),
    ("P1–P4", "ids, guessing, what a dump tells, leaks", "", "tests/unit/test_explorer_store.c, tests/store, tests/api/test_snippets.py"),
    ("P5", "deleted, malformed and unknown links cannot be told apart by time", "timing", ""),
    ("P6", "what another client compiled cannot be told by time", "guess", ""),
    ("P7", "what was deleted is in no file and no later backup", "", "tests/store/test_deleted.py"),
    ("F", "fuzzing of every parser, 10 min a target", "fuzz", "tests/fuzz (corpus and 6 s a target)"),
    ("Packages", "the simulation package of every example and lesson, downloaded, unpacked and run, against NumPy; hostile files", "packages", "tests/api/test_neff.py (three of them)"),
    ("Runners", "runners in network namespaces: kill -9 of a runner and of the server in mid-job, a cable cut for 30 s, slow, revoked, lying", "runners", "tests/api/test_runners.py (cut for 3 s)"),
    ("libnrt", "each call of libnrt fails in turn, under AddressSanitizer: its status, and nothing is left", "libnrt", "tests/unit/test_device.c, test_device_run.c"),
    ("libnrt from Python", "NEFFs from Python, on the simulated machine and through libnrt, under AddressSanitizer: no leak of ours", "libnrt-py", "tests/trace/test_neff.py"),
    ("API", "schemathesis against the OpenAPI document", "openapi", "tests/api/test_openapi.py"),
    ("Deploy", "two servers, PostgreSQL, proxy; one killed", "", "tests/deploy/test_two_servers.py"),
    ("Root", "the Dockerfile's steps in a clean Debian, the service in it", "root", ""),
    ("O", "levels of the jail, wrong settings, programs hardened (PIE, RELRO, stack and fortify checks)", "",
     "tests/jail/test_levels.py, tests/api/test_processes.py"),
    ("Site", "five servers, PostgreSQL with a replica that is promoted, nginx: shares, superseding, each server killed, stopped, drained, replaced under load", "site", ""),
    ("Scaling", "five servers answer at least 4 times what one does, each held to an equal part of the machine", "scaling", ""),
    ("Attacks", "one client with default shares: unread answers, archives, links, sleepers, all: others' p95 ≤ 2 × quiet, none refused, memory", "attacks", ""),
    ("Each", "each process stopped and killed in turn under load, 200 rounds: back in 2 s, health true, no link lost, every job answered", "each", ""),
    ("Soak", "two hours of mixed load, replaced every ten minutes: no growth, p95 ≤ 2 × the first ten minutes'", "soak", ""),
    ("Chart", "the Helm chart rendered by helm, each object against the schemas of Kubernetes 1.30 and 1.37, monitoring against the operator's", "chart", "tests/deploy/test_chart.py (without helm: its flags and metrics)"),
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
            m = re.fullmatch(r"([\w-]+): (\w+), (\d+) s, load ([\d.]+), (.*)", line)
            if m:
                skipped = m[5].startswith("SKIP")
                beside = f", beside other work (load {m[4]})" if float(m[4]) > 1 else ""
                out[m[1]] = ("SKIP" if skipped else m[2], m[5].strip("= "), f"{date}, {machine()}{beside}")
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
    # sections after the table are written by others: tests/measured/compare.py and dumps.py
    _, section, sections = (RESULTS.read_text() if RESULTS.exists() else "").partition("\n## ")
    RESULTS.write_text("# Results\n\nWritten by tests/results.py from what `make nightly` left; see there.\n\n"
                       "| test | what | set | in make test | result | figures | date, machine |\n"
                       "| --- | --- | --- | --- | --- | --- | --- |\n" + "\n".join(rows) + "\n" + section + sections)


if __name__ == "__main__":
    main()
