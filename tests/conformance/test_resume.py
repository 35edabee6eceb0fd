"""A stage's text takes the place of its program: unchanged it gives the same later stages, changed it keeps maps and checks."""
import json
import os
import random

import pytest

from support import compiler, warm
from support.paths import ROOT

EXAMPLES = ROOT / "explorer/examples"
ALL = sorted(EXAMPLES.glob("*.py")) + sorted((EXAMPLES / "nki").glob("*.py"))
FEW = ["01_matmul_bias_relu", "nki/03_psum_accumulation"]
SUM = """
import numpy as np
from nkigen import trace

@trace(input_specs=[((4, 8), "float32"), ((4, 8), "float32")])
def kernel(x, y):
    a = x * y
    return np.exp(a) + y
"""
CONSTANT = """
import numpy as np
from nkigen import trace

TABLE = np.arange(128 * 64, dtype=np.float32).reshape(128, 64) / 8192

@trace(input_specs=[((128, 64), "float32")])
def kernel(x):
    return x * TABLE + np.float32(2)
"""


@pytest.fixture
def resumed(tmp_path):
    """Compiles on from a stage's text: a function of the source, the stage's index and the text."""

    def run(source, stage, text, *arguments, check=False):
        path = tmp_path / "text"
        path.write_text(text)
        return compiler.compile(source, "--resume", f"{stage}={path}", *arguments, check=check)

    return run


def errors(result):
    return [d for d in result["diagnostics"] if d["severity"] == "error"]


def one_stage(source, name, *arguments):
    return compiler.stage(compiler.compile(source, *arguments)["kernels"][0], name)


def readable(kernel):
    return [s for s in kernel["stages"] if s["dialect"] != "nki"]


# ---- unchanged texts


def assert_same(kernel, again, at):
    for old, new in zip(kernel["stages"], again["stages"], strict=True):
        assert new["text"] == old["text"], (at, new["name"])
        assert [e.get("op") for e in new["lines"]] == [e.get("op") for e in old["lines"]], (at, new["name"])
        assert ["src" in e for e in new["lines"]] == ["src" in e for e in old["lines"]], (at, new["name"])
        assert new["from"] == old["from"], (at, new["name"])


def cases():
    whole = os.environ.get("NKX_RESUME") == "all"
    for path in ALL:
        name = str(path.relative_to(EXAMPLES).with_suffix(""))
        if whole or name in FEW:
            yield pytest.param(path, 1 if whole else 7, id=name)


@pytest.mark.parametrize("path, step", list(cases()))
def test_an_unchanged_stage_gives_the_same_later_stages(path, step, resumed):
    source = path.read_text()
    for kernel in compiler.compile(source)["kernels"]:
        stages = readable(kernel)
        for stage in stages[::step]:
            result = resumed(source, stage["index"], stage["text"], "--kernel", kernel["name"])
            assert not errors(result), (stage["name"], errors(result))
            [again] = result["kernels"]
            assert_same(kernel, again, stage["name"])
            assert [s.get("edit") for s in again["stages"]] == [
                None if s["index"] < stage["index"] else "here" if s["index"] == stage["index"] else "earlier" for s in again["stages"]]


def test_long_constants_are_read_from_the_lines_that_they_were_in(resumed):
    [kernel] = compiler.compile(CONSTANT)["kernels"]
    n_elided = 0
    for stage in readable(kernel)[::6]:
        n_elided += "{...}" in stage["text"] or "__elided__" in stage["text"]
        result = resumed(CONSTANT, stage["index"], stage["text"], check=True)
        assert not errors(result), (stage["name"], errors(result))
        assert_same(kernel, result["kernels"][0], stage["name"])
        assert all(s["check"]["status"] == "pass" for s in result["kernels"][0]["stages"])
    assert n_elided > 4


# ---- changed texts


def test_a_change_that_means_the_same_passes_and_keeps_the_places(resumed):
    stage = one_stage(SUM, "hlo-to-linalg")
    lines = stage["text"].split("\n")
    [at] = [i for i, line in enumerate(lines) if "linalg.mul" in line]
    swapped = lines[at].replace("ins(%arg0, %arg1", "ins(%arg1, %arg0")
    assert swapped != lines[at]
    result = resumed(SUM, stage["index"], "\n".join([*lines[:at], swapped, *lines[at + 1 :]]), check=True)
    [kernel] = result["kernels"]
    assert not errors(result)
    assert all(s["check"]["status"] == "pass" for s in kernel["stages"])
    edited = kernel["stages"][stage["index"]]
    assert edited["text"].split("\n")[at] == swapped
    assert edited["lines"][at]["src"] == stage["lines"][at]["src"]
    assert edited["from"] == stage["from"]


def test_a_change_that_means_something_else_fails_the_check_from_there_on(resumed):
    stage = one_stage(SUM, "hlo-to-linalg")
    result = resumed(SUM, stage["index"], stage["text"].replace("linalg.mul", "linalg.sub", 1), check=True)
    status = [s["check"]["status"] for s in result["kernels"][0]["stages"]]
    assert set(status[: stage["index"]]) == {"pass"} and set(status[stage["index"] :]) == {"fail"}
    [error] = errors(result)
    assert error["code"] == "check-failed" and error["stage"] == "hlo-to-linalg"


def test_a_changed_hlo_instruction_is_lowered(resumed):
    stage = one_stage(SUM, "trace")
    result = resumed(SUM, "trace", stage["text"].replace("exponential(", "tanh("))
    assert not errors(result)
    assert "linalg.tanh" in compiler.stage(result["kernels"][0], "hlo-to-linalg")["text"]


def test_instructions_may_share_a_line(resumed):
    lines = one_stage(SUM, "dce")["text"].split("\n")
    at = next(i for i, line in enumerate(lines) if "multiply(" in line)
    result = resumed(SUM, "dce", "\n".join([*lines[:at], lines[at] + " " + lines[at + 1].strip(), *lines[at + 2 :]]), check=True)
    assert not errors(result)
    edited = compiler.stage(result["kernels"][0], "dce")
    assert edited["text"] == "\n".join(lines) and len({e["op"] for e in edited["lines"] if "op" in e}) == sum("op" in e for e in edited["lines"])


def test_a_changed_instruction_reaches_the_engine_programs(resumed):
    stage = one_stage(SUM, "linalg-to-nisa")
    assert "op=exp" in stage["text"]
    result = resumed(SUM, "linalg-to-nisa", stage["text"].replace("op=exp", "op=tanh"))
    assert not errors(result)
    assert "op=tanh" in result["kernels"][0]["stages"][-1]["text"]


def test_a_new_line_has_no_place_and_the_others_keep_theirs(resumed):
    stage = one_stage(SUM, "hlo-to-linalg")
    lines = stage["text"].split("\n")
    at = next(i for i, line in enumerate(lines) if "tensor.empty" in line)
    new = "    %mine = arith.constant 77 : index"
    result = resumed(SUM, stage["index"], "\n".join([*lines[:at], new, *lines[at:]]))
    edited = result["kernels"][0]["stages"][stage["index"]]
    assert "src" not in edited["lines"][at]
    assert [e.get("src") for i, e in enumerate(edited["lines"]) if i != at] == [e.get("src") for e in stage["lines"]]


def test_the_command_goes_on_as_the_option_does(resumed, tmp_path):
    kernel, text = tmp_path / "kernel.py", tmp_path / "changed.mlir"
    kernel.write_text(SUM)
    dumped = warm.run("compile", kernel, "--quiet", "--dump-dir", tmp_path / "stages", "--json", "-")
    stage = compiler.stage(json.loads(dumped.stdout)["kernels"][0], "hlo-to-linalg")
    (file,) = (tmp_path / "stages").rglob(f"{stage['index']:02d}-hlo-to-linalg.mlir")
    text.write_text(file.read_text().replace("linalg.mul", "linalg.sub", 1))
    done = warm.run("resume", "hlo-to-linalg", text, kernel, "--quiet", "--json", "-")
    assert done.returncode == 0, done.stderr.decode()
    option = resumed(SUM, "hlo-to-linalg", text.read_text())["kernels"][0]["stages"]
    own = json.loads(done.stdout)["kernels"][0]["stages"]
    assert [(s["name"], s["text"], s.get("edit")) for s in own] == [(s["name"], s["text"], s.get("edit")) for s in option]
    assert own[stage["index"]]["edit"] == "here" and own[-1]["edit"] == "earlier" and own[-1]["text"] != compiler.compile(SUM)["kernels"][0]["stages"][-1]["text"]
    checked = warm.run("resume", "hlo-to-linalg", text, kernel, "--quiet", "--check", "--json", "-")
    assert checked.returncode == 1 and errors(json.loads(checked.stdout))[0]["code"] == "check-failed"
    assert warm.run("resume", "hlo-to-linalg", text).returncode == 2


# ---- refusals


def refused(result, code):
    """The error; the stages up to the changed one are there."""
    found = errors(result)
    assert found and found[0]["code"] == code, found
    assert result["kernels"][0]["stages"]
    return found[0]


@pytest.mark.parametrize("name, old, new", [
    ("trace", "exponential(", "expo("), ("dce", "multiply(", "multiplies("), ("hlo-to-linalg", "linalg.mul", "linalg.mull"),
    ("infer-layout", "linalg.exp", "linalg.expo"), ("legalize-layout", "memref.alloc", "memref.aloc"), ("engine-programs", "engine=vector", "engine=victor"),
])
def test_an_error_has_the_line_of_the_text(name, old, new, resumed):
    stage = one_stage(SUM, name)
    line = next(i for i, text in enumerate(stage["text"].split("\n"), 1) if old in text)
    result = resumed(SUM, name, stage["text"].replace(old, new, 1))
    found = errors(result)[0]
    assert found["stage"] == name and found["range"]["file"].startswith(f"{stage['index']:02d}-{name}.")
    assert found["range"]["line"] == line
    assert result["kernels"][0]["stages"][-1]["text"] == stage["text"]  # as the pass made it


def test_the_kernel_keeps_its_arguments(resumed):
    hlo = one_stage(SUM, "trace")["text"]
    assert refused(resumed(SUM, "trace", hlo.replace("f32[4,8]", "f32[8,4]")), "cannot-resume")["message"].startswith("parameter 0")
    mlir = one_stage(SUM, "hlo-to-linalg")["text"]
    refused(resumed(SUM, "hlo-to-linalg", mlir.replace("@kernel", "@other")), "cannot-resume")
    refused(resumed(SUM, "hlo-to-linalg", mlir.replace("4x8xf32", "8x4xf32")), "cannot-resume")


def test_a_new_constant_without_its_elements_is_refused_at_its_line(resumed):
    text = one_stage(CONSTANT, "trace")["text"]
    lines = text.split("\n")
    at = next(i for i, line in enumerate(lines) if "{...}" in line)
    body = [*lines[: at + 1], "  %mine = f32[100] constant({...})", *lines[at + 1 :]]
    assert refused(resumed(CONSTANT, "trace", "\n".join(body)), "cannot-resume")["range"]["line"] == at + 2


def test_what_is_shown_of_nki_source_is_not_read_back(resumed):
    source = (EXAMPLES / "nki/03_psum_accumulation.py").read_text()
    result = resumed(source, "nki-trace", "def", "--kernel", compiler.compile(source)["kernels"][0]["name"])
    assert errors(result)[0]["code"] == "cannot-resume"


def test_a_stage_that_the_kernel_has_not_is_refused(resumed):
    assert errors(resumed(SUM, "nki-to-nisa", "module {}"))[0]["code"] == "cannot-resume"


# ---- any text


def corrupt(text, draw):
    """One change to a text: characters, tokens or lines."""
    lines = text.split("\n")
    at = draw.randrange(len(lines))
    kind = draw.randrange(6)
    if kind == 0:
        del lines[at]
    elif kind == 1:
        lines.insert(at, lines[draw.randrange(len(lines))])
    elif kind == 2:
        lines[at] = lines[at][: draw.randrange(len(lines[at]) + 1)]
    elif kind == 3:
        words = lines[at].split(" ")
        draw.shuffle(words)
        lines[at] = " ".join(words)
    elif kind == 4:
        place = draw.randrange(len(lines[at]) + 1)
        lines[at] = lines[at][:place] + draw.choice("%#{}()[]<>,:\"x0 é") + lines[at][place + 1 :]
    else:
        i, k = draw.randrange(len(lines)), draw.randrange(len(lines))
        lines[i], lines[k] = lines[k], lines[i]
    return "\n".join(lines)


def test_corrupt_texts_give_errors_at_lines_and_never_a_crash(resumed):
    n = int(os.environ.get("NKX_RESUME_CORRUPT", 24))
    draw = random.Random(11)
    texts = [(source, s) for source in (SUM, CONSTANT) for s in readable(compiler.compile(source)["kernels"][0])]
    n_errors = n_placed = 0
    for _ in range(n):
        source, stage = draw.choice(texts)
        result = resumed(source, stage["index"], corrupt(stage["text"], draw))
        assert len(result["kernels"][0]["stages"]) > stage["index"], "the stages up to the changed one are there"
        own = [e for e in errors(result) if e.get("stage") == stage["name"] and e["code"] != "cannot-resume"]
        n_errors += bool(own)
        n_placed += any("range" in e for e in own)
    assert n_errors > n / 3 and n_placed == n_errors
