"""nkx neff vendor, with a stand-in for neuronx-cc (tests/neuron/neuronx_cc.py)."""
import json
import os
import pathlib
import sys
import time

import pytest

from support import warm
from support.paths import BUILD, ROOT

STAND_IN = ROOT / "tests/neuron/neuronx_cc.py"
KERNEL = """
import numpy as np
from nkipy.core.compile import trace

@trace
def scale(x, w):
    y = x + 1
    return y * w

scale.specialize(np.ones((4, 8), np.float32), np.ones((4, 8), np.float32))
"""


class Vendor:
    def __init__(self, tmp_path):
        self.dir, self.kernel, self.out = tmp_path, tmp_path / "k.py", tmp_path / "k.neff"
        self.record, self.work, self.cache = tmp_path / "record", tmp_path / "work", tmp_path / "cache"
        self.kernel.write_text(KERNEL)
        self.work.mkdir()

    def program(self, behaviour):
        path = self.dir / "bin" / "neuronx-cc"
        path.parent.mkdir(exist_ok=True)
        text = (f"#!/bin/sh\nexec {sys.executable} -I -S {STAND_IN} '{behaviour}' {self.record} \"$@\"\n")
        if not path.exists() or path.read_text() != text:
            path.write_text(text)
            path.chmod(0o755)
        return path

    def __call__(self, behaviour, *options, status=0, command=("neff", "vendor"), wants=("-o",), **env):
        env = {"TMPDIR": str(self.work), "XDG_CACHE_HOME": str(self.cache), "NKX_NEURONX_CC": str(self.program(behaviour)), **env}
        if wants == ("-o",):
            wants = ("-o", self.out)
        run = warm.text(*command, self.kernel, *wants, *options, env=env)
        assert run.returncode == status, run.stdout + run.stderr
        assert not list(self.work.iterdir()), "a directory is left"
        for seen in self.seen():
            assert not is_running(seen), "a process is left"
        return run.stdout + run.stderr

    def seen(self):
        return [json.loads(line) for line in self.record.read_text().splitlines()] if self.record.exists() else []


def is_running(seen):
    """A process in the directory, which every process of the compiler has as its own."""
    for p in pathlib.Path("/proc").glob("[0-9]*/cwd"):
        try:
            if os.readlink(p).startswith(seen["cwd"]):
                return True
        except OSError:
            pass
    return False


@pytest.fixture
def vendor(tmp_path):
    return Vendor(tmp_path)


def test_the_compiler_gets_the_hlo_and_the_arguments_that_nkipy_gives(vendor):
    text = vendor("works", "--target", "trn1", "--lnc", "2", "--cc-option=--optlevel=1", "--cc-option=--auto-cast", "--cc-option=all")
    (seen,) = vendor.seen()
    assert seen["arguments"] == ["compile", "--framework", "XLA", "hlo_module.pb", "--pipeline", "compile", "SaveTemps", "--target", "trn1",
                                 "--output=kernel.neff", "--lnc", "2", "--optlevel=1", "--auto-cast", "all"]
    assert seen["module"] == "scale" and "multiply" in [op for _, op in seen["instructions"]]
    assert set(seen["environment"]) <= {"PATH", "HOME", "TMPDIR", "LANG", "PWD", "SHLVL", "_", "OLDPWD"}
    assert "neuronx-cc: " in text and "compiling scale for trn1" in text and "a NEFF of the vendor's compiler for trn1" in text
    shown = warm.text("run", vendor.out).stderr
    assert "a Neuron device executes" in shown


def test_what_was_made_once_is_taken_from_the_cache_unless_anything_differs(vendor):
    vendor("works")
    made = vendor.out.read_bytes()
    vendor.out.unlink()
    assert "compiling" not in vendor("works") and vendor.out.read_bytes() == made and len(vendor.seen()) == 1
    vendor("works", "--cc-option=-O=1")
    vendor("works", "--cc-cache", "none")
    assert len(vendor.seen()) == 3
    kept = list((vendor.cache / "nkx/neuronx-cc").iterdir())
    assert len(kept) == 2
    for path in kept:
        path.write_bytes(made[:1040])
    assert "compiling" in vendor("works") and vendor.out.read_bytes() == made
    assert sorted(len(path.read_bytes()) for path in kept) == [1040, len(made)]


def test_what_is_kept_is_bounded_and_what_was_used_last_stays(vendor):
    kept, noted = vendor.cache / "nkx/neuronx-cc", vendor.cache / "nkx/neuronx-cc/notes.txt"
    vendor("works")
    noted.write_text("somebody else's")
    vendor("works", "--cc-option=-O=1")
    first, second = sorted((p for p in kept.iterdir() if p != noted), key=lambda p: p.stat().st_mtime)
    for path in (first, second):
        path.write_bytes(path.read_bytes() + bytes(600 << 10))  # what follows the archive is no part of it
        os.utime(path, (path.stat().st_atime, path.stat().st_mtime - 1000))
    os.utime(second, (1, 1))
    vendor("works", "--cc-option=-O=2", "--cc-cache-mib", "1")
    assert first.exists() and not second.exists() and noted.exists() and len(list(kept.iterdir())) == 3
    vendor("works", "--cc-option=-O=1", "--cc-cache-mib", "0")
    assert len(list(kept.iterdir())) == 2 and noted.exists(), "what is made stays"


FAILURES = {
    "internal": (1, "vendor-failed", "(exit status 70)"),
    "memory": (1, "vendor-memory", "[F137]"),
    "allocates": (1, "vendor-memory", "MemoryError"),
    "killed": (1, "vendor-memory", "(signal 9)"),
    "nothing": (1, "vendor-output", "neuronx-cc wrote no kernel.neff"),
    "cut": (1, "vendor-output", "neuronx-cc wrote a kernel.neff that cannot be read"),
}


@pytest.mark.parametrize("behaviour", FAILURES)
def test_each_failure_has_its_code_and_leaves_nothing(vendor, behaviour):
    status, code, words = FAILURES[behaviour]
    text = vendor(behaviour, status=status)
    assert f"[{code}]" in text and words in text
    assert not vendor.out.exists() and not list(vendor.cache.rglob("*.neff"))
    if behaviour == "internal":
        assert "k.py:8:12: error: neuronx-cc failed" in text and "[NCC_ITEN404]" in text
        assert "return y * w" in text and "the end of neuronx-cc's log:" in text


def test_a_compiler_that_hangs_is_stopped_with_all_that_it_started(vendor):
    began = time.monotonic()
    text = vendor("hangs", "--cc-time", "1", status=1)
    assert "neuronx-cc was stopped after 1.0 s, which is its limit [vendor-timeout]" in text
    assert time.monotonic() - began < 30


def test_the_limit_of_memory_is_one_of_all_its_processes_together(vendor):
    began = time.monotonic()
    text = vendor("forks", "--cc-memory", "300", status=1)
    assert "[vendor-memory]" in text and "its processes had more than 300 MiB together" in text
    assert time.monotonic() - began < 30
    vendor("shares", "--cc-memory", "300")  # what they share counts once


def test_arguments_that_are_not_allowed_or_that_the_compiler_refuses_have_a_code(vendor):
    refused = vendor("works", "--cc-option=--output=/etc/passwd", status=2)
    assert "--output=/etc/passwd is not among the options that may be passed to neuronx-cc" in refused
    assert "takes one of 1|2|3" in vendor("works", "--cc-option=--optlevel=9", status=2) and not vendor.seen()
    text = vendor("works", "--cc-option=--optlevel=3", status=1)
    assert "neuronx-cc failed (exit status 2)" in text and "invalid choice: '3'" in text and "[vendor-argument]" in text


def test_a_machine_without_the_compiler_says_so(vendor):
    none = vendor("works", NKX_NEURONX_CC="/none/neuronx-cc", status=1)
    assert "is not here: /none/neuronx-cc [vendor-missing]" in none and "only it can make a NEFF that a device executes" in none
    run = warm.text("neff", "vendor", vendor.kernel, "-o", vendor.out, env={"PATH": "/nowhere"})
    assert run.returncode == 1 and "[vendor-missing]" in run.stderr


def test_the_kernel_as_nki_and_kernels_that_are_no_hlo(vendor):
    vendor("works", wants=("--nki", vendor.dir / "nki.py"))
    (seen,) = vendor.seen()
    assert "--tensorizer-options=--print-nki" in seen["arguments"] and "tensorize" in seen["arguments"]
    assert "def scale" in (vendor.dir / "nki.py").read_text()
    vendor.kernel = ROOT / "explorer/examples/nki/01_vector_add.py"
    assert "[vendor-kernel]" in vendor("works", status=1)


def test_the_kernel_as_nki_is_one_more_stage_with_the_places_of_what_it_names(vendor):
    result = vendor.dir / "result.json"
    text = vendor("works", command=("compile",), wants=("--vendor-nki", "--json", result, "--dump-dir", vendor.dir / "dump"))
    assert " 54 ● vendor-nki " in text and text.startswith("import neuronxcc.nki"), "the last row, and its text"
    r = json.loads(result.read_text())
    stages = r["kernels"][0]["stages"]
    stage = stages[-1]
    assert [s["name"] for s in stages].count("vendor-nki") == 1 and stage["index"] == len(stages) - 1 and stage["pass"].startswith("neuronx-cc")
    at = {t.split()[-1]: r["sources"][x["src"]]["places"] for t, x in zip(stage["text"].splitlines(), stage["lines"]) if "src" in x}
    assert [r["places"][p][:5] for p in at["nl.multiply()"]] == [[0, 8, 12, 8, 17]], "y * w"
    assert (vendor.dir / "dump/kernel0/54-vendor-nki.py").read_text() == stage["text"]
    assert "[vendor-failed]" in vendor("internal", "--cc-cache", "none", command=("compile",), wants=("--vendor-nki",), status=1)


def test_a_line_of_the_vendors_nki_may_also_name_a_file_and_a_line(vendor):
    tool = vendor.program("works")
    tool.write_text("#!/bin/sh\nprintf 'def k(x):\\n    y = nl.load(x)  # k.py:7\\n    # nothing\\n    z = nl.store(op_9, x.T)\\n    return z' > nki.py\n")
    result = vendor.dir / "result.json"
    run = warm.text("compile", vendor.kernel, "--vendor-nki", "--neuronx-cc", tool, "--cc-cache", "none", "--json", result)
    assert run.returncode == 0, run.stderr
    r = json.loads(result.read_text())
    stage = r["kernels"][0]["stages"][-1]
    lines = [sorted(r["places"][p][1] for p in r["sources"][x["src"]]["places"]) if "src" in x else None for x in stage["lines"]]
    assert lines == [[6], [6, 7], None, [6], None] and stage["op_counts"] == {"def": 1, "nl.load": 1, "nl.store": 1, "return": 1}


def test_run_on_a_device_compiles_the_kernel_and_executes_what_came_out(vendor):
    package = vendor.dir / "k.sim.neff"
    assert warm.text("neff", "pack", vendor.kernel, "-o", package).returncode == 0
    library = BUILD / "test/neuron/libnrt.so.1"
    run = dict(command=("run",), wants=("--device", "neuron", "--libnrt", library, "--repeat", "0"))
    text = vendor(f"package:{package}", **run)
    assert "compiling scale for trn2" in text and text.count("  pass\n") == 3
    failed = vendor("internal", "--cc-cache", "none", status=1, **run)
    assert "[vendor-failed]" in failed and "NO DEVICE" not in failed and "where the time" not in failed
    assert "nrt_load: NRT_INVALID (2)" in vendor("works", "--cc-cache", "none", status=1, **run)
