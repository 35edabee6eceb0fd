"""nkx shrink: a kernel with a planted fault (tests/mutation) becomes a few lines with the same code and failing pass.

NKX_FAULTS=all shrinks the kernels of 40 faults; otherwise of five.  Each search has 20 minutes, since one of the kernels is a decoder
layer and the machine may have other work.
"""
import json
import os
import re
import statistics
import subprocess
import textwrap

import pytest

from support.paths import BUILD, EXAMPLES, ROOT, TESTS, WORKER

PLANTED = BUILD / "test/nkx-worker-planted"
MEDIAN = 12  # lines
NUMPY = {p.stem: p for p in EXAMPLES if p.suffix == ".py" and p.parent.name == "examples"}
ROWS = [line.split(maxsplit=2) for line in (TESTS / "mutation/faults.txt").read_text().splitlines() if line and line[0] != "#"]
FAULTS = [(row[0], row[1]) for row in ROWS if len(row) == 2 and row[1] in NUMPY]
EVERY = FAULTS[::len(FAULTS) // 40][:40]
SMALL = [f for f in FAULTS if f[1] == "03_softmax" and f[0] in (
    "trace/wrong-axis/1", "cse/swap-operands/0", "hlo-to-linalg/drop-fill/0", "canonicalize/wrong-function/0", "recognize-activations/swap-operands/0")]
assert len(SMALL) == 5 and len(EVERY) == 40


def shrink(path, *arguments, program=WORKER, plant=None):
    """(exit status, the small text, what stands on standard error)"""
    done = subprocess.run([program, "shrink", path, *arguments], capture_output=True, text=True, timeout=1500,
                          env={**os.environ, **({"NKX_PLANT": plant} if plant else {})})
    return done.returncode, done.stdout, done.stderr


def kernel(folder, text):
    (folder / "kernel.py").write_text(textwrap.dedent(text))
    return folder / "kernel.py"


def lines(text):
    return [line for line in text.splitlines() if line.strip() and not line.startswith("#")]


def first_fault(path, plant):
    """Code and stage of the first error."""
    done = subprocess.run([PLANTED, "compile", path, "--check", "--quiet", "--json", "-"], capture_output=True, text=True, env={**os.environ, "NKX_PLANT": plant})
    return next((d["code"], d["stage"]) for d in json.loads(done.stdout)["diagnostics"] if d["severity"] == "error")


def test_kernels_with_planted_faults_become_a_few_lines_with_the_same_fault(tmp_path, record_property):
    lengths = []
    for plant, example in EVERY if os.environ.get("NKX_FAULTS") == "all" else SMALL:
        status, text, said = shrink(NUMPY[example], "--check", "--quiet", "--seconds", "1200", program=PLANTED, plant=plant)
        assert status == 0, (plant, said)
        small = kernel(tmp_path, text)
        code, stage = first_fault(small, plant)
        assert f"{code} in {stage}" in said, (plant, text, said)
        lengths.append(len(lines(text)))
        print(f"{plant} of {example}: {lengths[-1]} lines")
    record_property("median lines", statistics.median(lengths))
    assert statistics.median(lengths) <= MEDIAN, lengths


def test_a_refusal_keeps_its_reason(tmp_path):
    """Other refusals of the same code, and names that go missing, are other faults."""
    source = kernel(tmp_path, """\
        import numpy as np
        from nkigen import trace

        SCALE = 0.5

        def helper(t):
            \"\"\"Halves.\"\"\"
            return t * SCALE

        @trace(input_specs=[((128, 256), "bf16"), ((128, 256), "f32")])
        def first(x, y):
            return np.exp(x)

        @trace(input_specs=[((128, 256), "bf16"), ((128, 256), "f32")])
        def second(x, y):
            a = np.exp(x) + helper(y)
            for i in range(3):
                a = a * 2.0
            b = np.convolve(a, a)
            return np.correlate(b, a)
        """)
    status, text, said = shrink(source)
    assert status == 0 and "as it is" in said and "nothing smaller has the fault" in said
    *head, last = lines(text)
    assert head == ["import numpy as np", "from nkigen import trace", "@trace(input_specs=[((1, 1), 'f32')])", "def second(x):"]
    assert last.endswith("np.convolve(x, x)")
    assert text.endswith("# unsupported-op\n")


def test_several_files_become_one(tmp_path):
    (tmp_path / "helper.py").write_text("import numpy as np\n\n\ndef other(x):\n    return x\n\n\ndef bad(x):\n    return np.convolve(x, x)\n")
    source = kernel(tmp_path, """\
        from nkigen import trace
        from helper import bad, other

        @trace(input_specs=[((128, 256), "f32")])
        def f(x):
            return bad(other(x))
        """)
    status, text, _ = shrink(source)
    assert status == 0 and "helper" not in text and "np.convolve(x, x)" in text and len(lines(text)) <= 7


def test_an_nki_kernel_keeps_its_refusal(tmp_path):
    example = min((p for p in (ROOT / "explorer/examples/nki").glob("*.py") if "@nki.jit" in p.read_text() and "nisa." in p.read_text()),
                  key=lambda p: len(p.read_text()))
    text = example.read_text()
    at = re.search(r"^( +)\w.*nisa\.\w+\(", text, re.M) or re.search(r"^( +)nisa\.\w+\(", text, re.M)
    source = kernel(tmp_path, text[:at.start()] + at[1] + "nisa.no_such_call(1, 2, name='x')\n" + text[at.start():])
    before = subprocess.run([WORKER, "compile", source, "--quiet"], capture_output=True, text=True).stderr
    status, small, said = shrink(source)
    assert status == 0, said
    assert "no_such_call" in small and len(lines(small)) <= 12 < len(lines(text)), small
    after = subprocess.run([WORKER, "compile", kernel(tmp_path, small), "--quiet"], capture_output=True, text=True).stderr
    assert re.findall(r"\[(nki-[\w-]+)\]", after)[0] == re.findall(r"\[(nki-[\w-]+)\]", before)[0]


def test_a_text_that_is_no_python_loses_lines(tmp_path):
    status, text, _ = shrink(kernel(tmp_path, "import numpy as np\n\nx = 1\ndef f(:\n    return x\ny = 2\n"))
    assert status == 0 and lines(text) == ["def f(:"]


def test_changes_of_the_pipeline_that_do_not_matter_go(tmp_path):
    source = kernel(tmp_path, """\
        import numpy as np
        from nkigen import trace

        @trace(input_specs=[((128, 256), "f32")])
        def f(x):
            return np.convolve(x, x)
        """)
    status, text, said = shrink(source, "--pipeline", "without cse:2; without dce")
    assert status == 0 and said.count("without the pipeline's change") == 2 and "--pipeline" not in text
    status, text, said = shrink(source, "--candidates", "1")
    assert status == 0 and "256" not in text and "128" in text and "1 candidates, 1 of them kept; stopped: candidates" in said


def test_what_is_right_is_not_shrunk(tmp_path):
    status, text, said = shrink(NUMPY["02_add_bias"])
    assert (status, text) == (1, "") and "nothing is wrong with the kernel; --check" in said
    assert shrink(NUMPY["02_add_bias"], "--seconds", "0")[0] == 2
    (tmp_path / "hlo.pb").write_bytes(b"\x0a\x01m\xff")
    assert shrink(tmp_path / "hlo.pb", "--language", "hlo")[0] == 2
